//! Writes the page.
#![allow(clippy::write_with_newline, reason = "long pieces end in a line end like short ones")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::super::host::{details, printable};
use super::super::json::shown_file;
use super::super::model::{CheckReport, FunctionReport, InputReport, Summary, os_text};
use super::super::verdict;
use crate::findings::Finding;
use crate::findings::source::{PlaceFile, Spot};
use crate::rules::{Rule, RuleSet, Severity};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Lines shown around the marked ones.
const CONTEXT: u32 = 2;
/// Marked lines shown.
const MOST_LINES: u32 = 12;
/// Characters of a line shown.
const LONGEST_LINE: usize = 240;

/// Writes the report; `sets` are the rules that were run.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, sets: &[&RuleSet], out: &mut dyn Write) -> io::Result<()> {
    let mut page = String::new();
    head(report, &mut page);
    for (at, input) in report.inputs.iter().enumerate() {
        model(report, sets, at, input, &mut page);
    }
    unread(report, &mut page);
    page.push_str("</main>\n");
    let maps: Vec<_> = report.inputs.iter().map(|input| &input.maps).collect();
    let data = serde_json::to_string(&maps).map_err(io::Error::from)?;
    // Nothing in the data may end the element that it lies in.
    let data =
        data.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"maps\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    out.write_all(page.as_bytes())
}

/// Text as HTML shows it.
fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Characters that turn text around or hide it are written out.
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => {
                safe.extend(c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    safe
}

fn severity_class(severity: Severity) -> &'static str {
    severity.name()
}

fn head(report: &CheckReport, page: &mut String) {
    let counts = report.summary();
    let title = match report.inputs.as_slice() {
        [one] => format!("{} · anelint", one.path),
        several => format!("{} · anelint", verdict::counted(several.len(), "check")),
    };
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the report</a>\n\
         <header class=\"top\"><div class=\"brand\">anelint <span>{}</span></div>\
         <div class=\"total\">{}</div></header>\n",
        html(&title),
        html(env!("CARGO_PKG_VERSION")),
        html(&verdict::findings(counts)),
    );
    if report.inputs.len() > 1 {
        page.push_str("<nav class=\"models\" aria-label=\"Models\"><ul>\n");
        for (at, input) in report.inputs.iter().enumerate() {
            let own = Summary::of(&input.findings);
            let _ = writeln!(
                page,
                "<li><a href=\"#model-{at}\"><b>{}</b> <span>{} · {}</span></a></li>",
                html(&input.path),
                html(input.target.unit.name()),
                html(&verdict::findings(own))
            );
        }
        page.push_str("</ul></nav>\n");
    }
    page.push_str("<main id=\"main\">\n");
}

fn model(
    report: &CheckReport,
    sets: &[&RuleSet],
    at: usize,
    input: &InputReport,
    page: &mut String,
) {
    let target = &input.target;
    let _ = write!(
        page,
        "<section class=\"model\" id=\"model-{at}\" data-model=\"{at}\">\n<h1>{}</h1>\n\
         <p class=\"about\">{} · {} · {} {}, {}, OS {}</p>\n",
        html(&input.path),
        html(input.format),
        html(if input.producer.is_empty() { "unknown producer" } else { &input.producer }),
        html(target.unit.name()),
        html(target.chip.name()),
        html(target.runtime.name()),
        html(&os_text(target.os)),
    );
    for (index, function) in input.functions.iter().enumerate() {
        let own: Vec<&Finding> =
            input.findings.iter().filter(|f| f.functions.contains(&function.name)).collect();
        let counts = Summary::of(own.iter().copied());
        let _ = write!(
            page,
            "<section class=\"function\" aria-labelledby=\"f-{at}-{index}\">\n\
             <h2 id=\"f-{at}-{index}\"><code>{}</code></h2>\n<p class=\"verdict {}\">{}</p>\n",
            html(&function.name),
            if counts.error > 0 {
                "bad"
            } else if counts.warning > 0 {
                "fair"
            } else {
                "good"
            },
            html(&verdict::verdict(function, counts, verdict::Words::of(target))),
        );
        cards(function, counts, page);
        let map = input.maps.iter().position(|map| map.name == function.name);
        if let Some(map) = map {
            let _ = write!(
                page,
                "<div class=\"map\" data-function=\"{map}\"></div>\n\
                 <noscript><p class=\"hint\">The map of the ops needs JavaScript.</p></noscript>\n"
            );
        }
        if let Some(map) = map.and_then(|map| input.maps.get(map)) {
            steps(map, page);
        }
        page.push_str("</section>\n");
    }
    findings(report, sets, at, input, page);
    // Where there is one function, its name has been said.
    for (index, map) in input.maps.iter().enumerate().filter(|(_, map)| !map.nodes.is_empty()) {
        if input.maps.len() > 1 {
            let _ = writeln!(page, "<h2><code>{}</code> by module</h2>", html(&map.name));
        }
        let _ = write!(
            page,
            "<div class=\"layers\" data-function=\"{index}\"></div>\n\
             <div class=\"modules\" data-function=\"{index}\"></div>\n"
        );
    }
    if !input.notes.is_empty() {
        page.push_str("<details class=\"notes\"><summary>Notes</summary><ul>\n");
        for note in &input.notes {
            let _ = writeln!(page, "<li>{}</li>", html(note));
        }
        page.push_str("</ul></details>\n");
    }
    page.push_str("</section>\n");
}

fn cards(function: &FunctionReport, counts: Summary, page: &mut String) {
    let word =
        |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
    let mut cards: Vec<(String, &str, &str)> = Vec::new();
    if let Some(regions) = function.regions {
        cards.push((regions.to_string(), word(regions, "region", "regions"), ""));
    }
    if let (Some(eligible), true) = (function.eligible, function.ops > 0) {
        cards.push((format!("{}<i>%</i>", eligible * 100 / function.ops), "of ops eligible", ""));
    }
    cards.push((function.ops.to_string(), word(function.ops, "op", "ops"), ""));
    if function.eligibility_unknown > 0 {
        cards.push((function.eligibility_unknown.to_string(), "unknown", "dim"));
    }
    for (count, label, class) in [
        (counts.error, word(counts.error, "error", "errors"), "error"),
        (counts.warning, word(counts.warning, "warning", "warnings"), "warning"),
        (counts.advice, "advice", ""),
    ] {
        cards.push((count.to_string(), label, if count > 0 { class } else { "" }));
    }
    page.push_str("<div class=\"cards\">");
    for (value, label, class) in cards {
        let _ =
            write!(page, "<div class=\"card {class}\"><b>{value}</b><span>{label}</span></div>");
    }
    page.push_str("</div>\n");
}

fn steps(map: &super::FunctionMap, page: &mut String) {
    if map.steps.is_empty() {
        return;
    }
    page.push_str("<section class=\"first\"><h3>Fix this first</h3>\n<ol>\n");
    let most = map.steps.first().map_or(1, |step| step.before).max(1);
    for step in &map.steps {
        let width = |n: u32| f64::from(n) * 100.0 / f64::from(most);
        let _ = write!(
            page,
            "<li><div class=\"what\">{}<b>{}</b>{}</div>\
             <div class=\"bars\" role=\"img\" aria-label=\"{} regions before, {} after\">\
             <span class=\"before\" style=\"width:{:.1}%\"></span><span class=\"after\" style=\"width:{:.1}%\"></span></div>\
             <div class=\"gain\"><b>{} → {}</b> regions, {} back on the unit</div></li>\n",
            if step.rule.is_empty() {
                String::new()
            } else {
                format!("<a class=\"rule\" href=\"#rule-{0}\">{0}</a> ", html(&step.rule))
            },
            html(&step.reason),
            if step.place.is_empty() {
                String::new()
            } else {
                format!(" <code>{}</code>", html(&step.place))
            },
            step.before,
            step.after,
            width(step.before),
            width(step.after),
            step.before,
            step.after,
            html(&verdict::counted(step.freed as usize, "op")),
        );
    }
    page.push_str("</ol></section>\n");
}

fn findings(
    report: &CheckReport,
    sets: &[&RuleSet],
    at: usize,
    input: &InputReport,
    page: &mut String,
) {
    let all: Vec<_> = input.all().collect();
    if all.is_empty() {
        page.push_str("<p class=\"none\">Nothing found.</p>\n");
        return;
    }
    let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
    for (finding, _) in &all {
        rules.insert(&finding.rule, &finding.name);
    }
    let _ = write!(
        page,
        "<section class=\"findings\" aria-labelledby=\"findings-{at}\">\n<h2 id=\"findings-{at}\">Findings <span class=\"shown\" aria-live=\"polite\"></span></h2>\n\
         <form class=\"filters\" aria-label=\"Filter findings\">\n\
         <label>Rule <select name=\"rule\"><option value=\"\">all</option>"
    );
    for (id, name) in &rules {
        let _ = write!(page, "<option value=\"{0}\">{0} {1}</option>", html(id), html(name));
    }
    page.push_str("</select></label>\n<fieldset><legend>Severity</legend>");
    for severity in ["error", "warning", "advice"] {
        let _ = write!(
            page,
            "<label><input type=\"checkbox\" name=\"severity\" value=\"{severity}\" checked> {severity}</label>"
        );
    }
    page.push_str(
        "</fieldset>\n<label>Module or file <input type=\"search\" name=\"module\" \
         placeholder=\"layers.*.attn\" autocomplete=\"off\"></label>\n\
         <label><input type=\"checkbox\" name=\"silent\"> silenced</label>\n</form>\n",
    );
    for (finding, silent) in &all {
        let rule: Option<&Rule> =
            sets.iter().find_map(|set| set.rules().iter().find(|rule| rule.id() == finding.rule));
        let silent = silent.as_ref().map(|own| (own.by, own.reason));
        one(report, finding, silent, rule, page);
    }
    page.push_str("</section>\n");
}

fn one(
    report: &CheckReport,
    finding: &Finding,
    silent: Option<(&str, &str)>,
    rule: Option<&Rule>,
    page: &mut String,
) {
    let file = finding.spot.as_ref().map(|spot| shown_file(&spot.file, &report.working_folder));
    let modules: Vec<&str> = finding.modules.iter().map(|group| group.pattern.as_str()).collect();
    let words = format!("{} {}", modules.join(" "), file.as_deref().unwrap_or(""));
    let _ = write!(
        page,
        "<article class=\"finding {}{}\" data-rule=\"{}\" data-severity=\"{}\" data-words=\"{}\"{}>\n\
         <h3><span class=\"badge\">{}</span> <span class=\"rule\">{} {}</span> {}</h3>\n",
        severity_class(finding.severity),
        if silent.is_some() { " silent" } else { "" },
        html(&finding.rule),
        finding.severity.name(),
        html(&words.to_lowercase()),
        if silent.is_some() { " data-silent=\"1\" hidden" } else { "" },
        finding.severity.name(),
        html(&finding.rule),
        html(&finding.name),
        html(&finding.message),
    );
    if let Some((by, reason)) = silent {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let _ = writeln!(page, "<p class=\"by\">silenced by {}{}</p>", html(by), html(&reason));
    }
    let mut spots: Vec<(&Spot, &str)> = Vec::new();
    if let Some(spot) = &finding.spot {
        spots.push((spot, ""));
    }
    spots.extend(finding.related.iter().map(|(spot, words)| (spot, words.as_str())));
    for (spot, words) in spots {
        snippet(report, spot, words, page);
    }
    page.push_str("<ul class=\"details\">\n");
    for line in details(finding) {
        let _ = writeln!(page, "<li>{}</li>", html(&line));
    }
    for note in &finding.notes {
        let _ = writeln!(page, "<li>{}</li>", html(note));
    }
    page.push_str("</ul>\n");
    if let Some(fix) = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty()) {
        let _ = write!(
            page,
            "<details class=\"fix\" open><summary>Fix ({})</summary><pre>",
            html(fix.applicability.name())
        );
        for edit in &fix.edits {
            let old = match &edit.file {
                PlaceFile::Found(file) => file
                    .byte_of(edit.span.start)
                    .zip(file.byte_of(edit.span.end))
                    .and_then(|(start, end)| file.text().get(start..end))
                    .unwrap_or(""),
                PlaceFile::Recorded { .. } => "",
            };
            let at = shown_file(&edit.file, &report.working_folder);
            let _ =
                write!(page, "<span class=\"at\">{}:{}</span>", html(&at), edit.span.start.line);
            for (sign, class, text) in [("−", "del", old), ("+", "ins", edit.text.as_str())] {
                for line in text.lines() {
                    let _ = write!(page, "<span class=\"{class}\">{sign} {}</span>", html(line));
                }
            }
        }
        page.push_str("</pre></details>\n");
    }
    if let Some(rule) = rule {
        let _ = write!(
            page,
            "<details class=\"why\"><summary>Why</summary><p>{}</p>",
            html(rule.why().trim()).replace("\n\n", "</p><p>")
        );
        if let Some((bad, good)) = rule.example() {
            let _ = write!(
                page,
                "<div class=\"example\"><figure><figcaption>Instead of</figcaption><pre>{}</pre></figure>\
                 <figure><figcaption>write</figcaption><pre>{}</pre></figure></div>",
                html(bad.trim_end()),
                html(good.trim_end())
            );
        }
        page.push_str("</details>\n");
    }
    page.push_str("</article>\n");
}

/// The lines of a spot, its expression marked.
fn snippet(report: &CheckReport, spot: &Spot, words: &str, page: &mut String) {
    let file = shown_file(&spot.file, &report.working_folder);
    let column = if spot.exact { format!(":{}", spot.span.start.column) } else { String::new() };
    let stale = if spot.stale { " <em>changed since the export</em>" } else { "" };
    let words = if words.is_empty() { String::new() } else { format!(" <em>{}</em>", html(words)) };
    let _ = write!(
        page,
        "<figure class=\"code\"><figcaption>{}:{}{column}{words}{stale}</figcaption><pre>",
        html(&file),
        spot.span.start.line
    );
    let (first, last) =
        (spot.span.start.line, spot.span.end.line.min(spot.span.start.line + MOST_LINES));
    match &spot.file {
        PlaceFile::Recorded { text, .. } => {
            let _ = write!(page, "<span class=\"line\"><i>{first}</i>{}</span>", html(&cut(text)));
        }
        PlaceFile::Found(found) => {
            let from = first.saturating_sub(CONTEXT).max(1);
            for number in from..=last.saturating_add(CONTEXT) {
                let Some(line) = found.line(number) else { continue };
                let line = line.trim_end_matches(['\r', '\n']);
                let marked = (first..=last).contains(&number);
                let shown = match marked {
                    false => html(&cut(line)),
                    true => {
                        let start = if number == first {
                            (spot.span.start.column as usize).saturating_sub(1)
                        } else {
                            0
                        };
                        let end = if number == spot.span.end.line {
                            (spot.span.end.column as usize).saturating_sub(1)
                        } else {
                            usize::MAX
                        };
                        marked_line(line, start, end)
                    }
                };
                let class = if marked { "line hit" } else { "line" };
                let _ = write!(page, "<span class=\"{class}\"><i>{number}</i>{shown}</span>");
            }
        }
    }
    page.push_str("</pre></figure>\n");
}

/// A line with the characters from `start` to `end` marked; a long one is cut around the mark.
fn marked_line(line: &str, start: usize, end: usize) -> String {
    let chars: Vec<char> = line.chars().collect();
    let indent = chars.iter().take_while(|c| c.is_whitespace()).count();
    let end = end.min(chars.len());
    let start = start.max(indent.min(end)).min(end);
    let from = if chars.len() > LONGEST_LINE { start.saturating_sub(60) } else { 0 };
    let to = chars.len().min(from + LONGEST_LINE).max(start);
    let end = end.min(to);
    let part =
        |a: usize, b: usize| -> String { chars.get(a..b).unwrap_or_default().iter().collect() };
    format!(
        "{}{}<mark>{}</mark>{}{}",
        if from > 0 { "…" } else { "" },
        html(&part(from, start)),
        html(&part(start, end)),
        html(&part(end, to)),
        if to < chars.len() { "…" } else { "" }
    )
}

fn cut(line: &str) -> String {
    let mut shown: String = line.chars().take(LONGEST_LINE).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

fn unread(report: &CheckReport, page: &mut String) {
    if report.errors.is_empty() && report.skipped.is_empty() {
        return;
    }
    page.push_str("<section class=\"unread\"><h2>Not checked</h2>\n<ul>\n");
    for error in &report.errors {
        let _ = writeln!(
            page,
            "<li class=\"error\"><b>{}</b> {}</li>",
            html(&error.path),
            html(&error.message)
        );
    }
    for note in &report.skipped {
        let _ = writeln!(page, "<li><b>{}</b> {}</li>", html(&note.path), html(&note.message));
    }
    page.push_str("</ul></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_its_mark() {
        let line = format!("{}needle{}", "x".repeat(1000), "y".repeat(1000));
        let shown = marked_line(&line, 1000, 1006);
        assert!(
            shown.contains("<mark>needle</mark>") && shown.starts_with('…') && shown.ends_with('…')
        );
        assert!(shown.chars().count() < 300);
        assert_eq!(marked_line("  a < b", 0, usize::MAX), "  <mark>a &lt; b</mark>");
    }

    #[test]
    fn nothing_of_a_model_is_markup() {
        assert_eq!(html("<script>\"'&\u{202e}"), "&lt;script&gt;&quot;&#39;&amp;\\u{202e}");
    }
}
