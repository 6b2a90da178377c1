//! A rule as a page of Markdown: `docs/rules/ID.md`, where findings link to.

use std::fmt::Write;

use super::Rule;

/// The list of rules as a page of Markdown, by room; `folder` is where the pages of rules lie from there.
pub fn reference(rules: &[&Rule], folder: &str) -> String {
    let mut text = String::from(
        "# Rules\n\nMade from the rule files by `anelint rules --markdown`. A severity may differ by target, format or \
         place: the page of the rule, or `anelint explain ID`, says more.\n",
    );
    let rooms = [("ANE", "Neural Engine"), ("GPU", "GPU"), ("COM", "Common"), ("", "Others")];
    let mut left: Vec<&Rule> = rules.to_vec();
    for (prefix, title) in rooms {
        let (own, others): (Vec<&Rule>, Vec<&Rule>) =
            left.into_iter().partition(|rule| rule.id().starts_with(prefix));
        left = others;
        if own.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n## {title}\n\n| rule | name | severity | category | for | |\n|---|---|---|---|---|---|\n"
        );
        for rule in own {
            let target = &rule.raw().target;
            let units: Vec<&str> = target.unit.iter().map(|name| name.as_str()).collect();
            let units =
                if units.is_empty() { "neural-engine".to_owned() } else { units.join(", ") };
            let runtimes: Vec<&str> = target.runtime.iter().map(|name| name.as_str()).collect();
            let runtimes = runtimes.join(", ");
            let through =
                if runtimes.is_empty() { String::new() } else { format!(" by {runtimes}") };
            let off = match (rule.default_on(), rule.preview()) {
                (false, _) => " (off unless selected)",
                (true, true) => " (behind `--preview`)",
                (true, false) => "",
            };
            let _ = writeln!(
                text,
                "| [{id}]({folder}/{id}.md) | {} | {} | {} | {units}{through} | {}{off} |",
                rule.name(),
                rule.severity(),
                rule.category(),
                rule.title().replace('|', "\\|"),
                id = rule.id(),
            );
        }
    }
    text
}

/// The page of a rule.
pub fn page(rule: &Rule) -> String {
    let mut text = format!("# {} {}\n\n{}.\n\n", rule.id(), rule.name(), rule.title());
    let off = if rule.default_on() { "" } else { ", off unless selected" };
    let preview = if rule.preview() { ", behind `--preview`" } else { "" };
    let _ = writeln!(text, "{} · {}{off}{preview}\n", rule.severity(), rule.category());
    let _ = writeln!(text, "## Why\n\n{}\n", rule.why().trim());
    if !rule.help_template().is_empty() {
        let _ = writeln!(text, "## What to do\n\n{}\n", rule.help_template().trim());
    }
    if let Some((bad, good)) = rule.example() {
        let _ = writeln!(text, "## Instead of\n\n```python\n{}\n```\n", bad.trim_end());
        let _ = writeln!(text, "## write\n\n```python\n{}\n```\n", good.trim_end());
    }
    if let Some(gate) = rule.gate() {
        let _ = writeln!(text, "## Then, on a device\n\n{}\n", gate.trim());
    }
    text.push_str("## Evidence\n\n");
    for evidence in rule.evidence() {
        let id = evidence.id.as_deref().map(|id| format!("{id}: ")).unwrap_or_default();
        let _ = writeln!(text, "- {id}{} ({})", evidence.source.trim(), evidence.sureness);
    }
    for link in rule.links() {
        let _ = writeln!(text, "- <{link}>");
    }
    text
}
