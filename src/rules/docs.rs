//! A rule as a page of Markdown: `docs/rules/ID.md`, where findings link to.

use std::fmt::Write;

use super::Rule;

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
