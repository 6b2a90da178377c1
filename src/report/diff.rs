//! What a change did, as text, JSON (version 1) and Markdown for a pull request.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::escape;
use super::json::{Location, location};
use super::placement::amount;
use super::stats::grouped;
use super::verdict::counted;
use crate::diff::{Contract, FindingsDiff, FunctionDiff, Side};
use crate::findings::Finding;

/// Most findings of a list told in text and Markdown.
const MOST: usize = 30;

/// Two readings of a model, compared.
pub struct DiffReport<'a> {
    /// Path of the old one, as shown.
    pub old: &'a str,
    /// Path of the new one.
    pub new: &'a str,
    /// The unit that both were checked against.
    pub unit: &'static str,
    /// Findings.
    pub findings: FindingsDiff<'a>,
    /// Functions.
    pub functions: Vec<FunctionDiff<'a>>,
    /// Paths of source files are shown relative to this folder.
    pub folder: &'a Path,
}

/// A number before and after.
struct Measure {
    name: &'static str,
    key: &'static str,
    old: Option<u64>,
    new: Option<u64>,
    /// Shown with a decimal prefix and this unit; grouped in threes if empty.
    unit: &'static str,
}

fn measures(row: &FunctionDiff<'_>) -> Vec<Measure> {
    type Of = fn(&Side) -> u64;
    let list: [(&str, &str, &str, Of); 9] = [
        ("regions", "regions", "", |side| side.placement.regions.len() as u64),
        ("ops", "ops", "", |side| side.stats.ops),
        ("ops not eligible", "off_unit", "", |side| u64::from(side.placement.off_unit)),
        ("ops unknown", "unknown", "", |side| u64::from(side.placement.unknown)),
        ("parameters", "parameters", "", |side| side.stats.weights.parameters),
        ("weights", "weight_bytes", "B", |side| side.stats.weights.bytes),
        ("FLOPs", "flops", "FLOP", |side| side.stats.cost.flops),
        ("moved at least", "unavoidable_bytes", "B", |side| side.stats.unavoidable_bytes()),
        ("activation peak", "activation_peak_bytes", "B", |side| side.stats.peak.bytes),
    ];
    list.into_iter()
        .map(|(name, key, unit, of)| Measure {
            name,
            key,
            unit,
            old: row.old.map(of),
            new: row.new.map(of),
        })
        .collect()
}

impl Measure {
    fn shown(&self, number: Option<u64>) -> String {
        match number {
            None => "–".to_owned(),
            Some(number) if self.unit.is_empty() => grouped(number),
            Some(number) => format!("{}{}", amount(number), self.unit),
        }
    }

    /// `−13`, `+2.4 %`; empty if nothing changed.
    fn change(&self) -> String {
        let (Some(old), Some(new)) = (self.old, self.new) else { return String::new() };
        if old == new {
            return String::new();
        }
        let sign = if new > old { '+' } else { '−' };
        let by = old.abs_diff(new);
        if self.unit.is_empty() {
            return format!("{sign}{}", grouped(by));
        }
        if old == 0 {
            return format!("{sign}{}{}", amount(by), self.unit);
        }
        format!("{sign}{:.1} %", by as f64 * 100.0 / old as f64)
    }
}

fn headline(report: &DiffReport<'_>) -> String {
    let mut parts = vec![
        format!("{} gained", counted(report.findings.gained.len(), "finding")),
        format!("{} lost", report.findings.lost.len()),
    ];
    if !report.findings.changed.is_empty() {
        parts.push(format!("{} of another severity", report.findings.changed.len()));
    }
    let mut text = parts.join(", ");
    for row in &report.functions {
        if let (Some(old), Some(new)) = (row.old, row.new) {
            let (old, new) = (old.placement.regions.len(), new.placement.regions.len());
            if old != new {
                let _ = write!(text, " · {}: {} → {new}", row.name, counted(old, "region"));
            }
        }
    }
    text
}

/// What may be said of a function's contract, in a line.
fn contract(row: &FunctionDiff<'_>) -> String {
    match (&row.contract, row.old.is_some()) {
        (Some(Contract::Same), _) => {
            "the same function (parameters by name and shape; their values were not read)".into()
        }
        (Some(Contract::Rounding), _) => {
            "the same but for rounding: only dtypes, casts and storage of weights changed".into()
        }
        (Some(Contract::Other { constants_only: true, .. }), _) => {
            "the same function if what it computes from constants (masks, tables) has the same values: \
             that part is written otherwise"
                .into()
        }
        (Some(Contract::Other { interface, ops, .. }), _) => {
            let mut text = "another function, as far as the graph tells".to_owned();
            if !interface.is_empty() {
                let _ = write!(text, "; {}", interface.join(", "));
            }
            let changes: Vec<String> = ops
                .iter()
                .take(8)
                .map(|change| {
                    let sign = if change.new > change.old { '+' } else { '−' };
                    format!("{sign}{} {}", change.old.abs_diff(change.new), change.op)
                })
                .collect();
            if !changes.is_empty() {
                let more = if ops.len() > 8 { ", …" } else { "" };
                let _ = write!(text, "; ops: {}{more}", changes.join(", "));
            }
            if interface.is_empty() && changes.is_empty() {
                text.push_str("; the same ops, put together otherwise or with other settings");
            }
            if interface.is_empty() {
                text.push_str("; inputs and outputs are as they were");
            }
            text
        }
        (None, true) => "the function is gone".into(),
        (None, false) => "the function is new".into(),
    }
}

fn place(report: &DiffReport<'_>, finding: &Finding) -> Option<Location> {
    finding.spot.as_ref().map(|spot| location(spot, report.folder))
}

/// The report for people.
pub fn diff_text(report: &DiffReport<'_>) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} → {}: {}",
        escape::text(report.old),
        escape::text(report.new),
        escape::text(&headline(report))
    );
    for row in &report.functions {
        let _ = writeln!(text, "\n{}", escape::text(row.name));
        for measure in measures(row) {
            if measure.old == measure.new && measure.old == Some(0) {
                continue;
            }
            let _ = write!(
                text,
                "  {:<16} {:>14} → {:>14}",
                measure.name,
                measure.shown(measure.old),
                measure.shown(measure.new)
            );
            let change = measure.change();
            if !change.is_empty() {
                let _ = write!(text, "  {change}");
            }
            text.push('\n');
        }
        let _ = writeln!(text, "  contract: {}", escape::text(&contract(row)));
    }
    let list = |text: &mut String, title: &str, mark: char, findings: &[&Finding]| {
        if findings.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{title}");
        for finding in findings.iter().take(MOST) {
            let _ = write!(
                text,
                "  {mark} {} {} {}",
                finding.severity.name(),
                finding.rule,
                escape::text(&finding.message)
            );
            if let Some(place) = place(report, finding) {
                let _ = write!(text, " · {}:{}", escape::text(&place.file), place.line);
            }
            text.push('\n');
        }
        if findings.len() > MOST {
            let _ = writeln!(text, "  … {} more", findings.len() - MOST);
        }
    };
    list(&mut text, "gained", '+', &report.findings.gained);
    list(&mut text, "lost", '-', &report.findings.lost);
    if !report.findings.changed.is_empty() {
        let _ = writeln!(text, "\nof another severity");
        for pair in report.findings.changed.iter().take(MOST) {
            let _ = writeln!(
                text,
                "  {} → {} {} {}",
                pair.old.severity.name(),
                pair.new.severity.name(),
                pair.new.rule,
                escape::text(&pair.new.message)
            );
        }
    }
    text
}

/// The report for a pull request.
pub fn diff_markdown(report: &DiffReport<'_>) -> String {
    let mut text = String::new();
    let name = if report.old == report.new {
        code(report.new)
    } else {
        format!("{} → {}", code(report.old), code(report.new))
    };
    let _ = writeln!(text, "### anelint: {name}\n");
    let _ = writeln!(text, "**{}**", markdown(&headline(report)));
    for row in &report.functions {
        let changed: Vec<Measure> = measures(row)
            .into_iter()
            .filter(|measure| measure.old != measure.new || measure.key == "regions")
            .collect();
        let _ = writeln!(text, "\n| {} | before | after | change |", code(row.name));
        let _ = writeln!(text, "|---|---:|---:|---:|");
        for measure in changed {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                measure.name,
                measure.shown(measure.old),
                measure.shown(measure.new),
                measure.change()
            );
        }
        let _ = writeln!(text, "\nContract: {}.", markdown(&contract(row)));
    }
    let findings = |text: &mut String, findings: &[&Finding]| {
        for finding in findings.iter().take(MOST) {
            let _ = write!(
                text,
                "- **{}** {} {}",
                finding.severity.name(),
                finding.rule,
                markdown(&finding.message)
            );
            if let Some(place) = place(report, finding) {
                let _ = write!(text, " ({})", code(&format!("{}:{}", place.file, place.line)));
            }
            text.push('\n');
        }
        if findings.len() > MOST {
            let _ = writeln!(text, "- … {} more", findings.len() - MOST);
        }
    };
    if !report.findings.gained.is_empty() {
        let _ = writeln!(text, "\n#### Gained\n");
        findings(&mut text, &report.findings.gained);
    }
    if !report.findings.changed.is_empty() {
        let _ = writeln!(text, "\n#### Of another severity\n");
        for pair in report.findings.changed.iter().take(MOST) {
            let _ = writeln!(
                text,
                "- {} → **{}** {} {}",
                pair.old.severity.name(),
                pair.new.severity.name(),
                pair.new.rule,
                markdown(&pair.new.message)
            );
        }
    }
    if !report.findings.lost.is_empty() {
        let count = counted(report.findings.lost.len(), "finding");
        let _ = writeln!(text, "\n<details><summary>{count} lost</summary>\n");
        findings(&mut text, &report.findings.lost);
        let _ = writeln!(text, "\n</details>");
    }
    text
}

/// Words of a model file in Markdown: on one line, and nothing in them is markup.
fn markdown(words: &str) -> String {
    let clean = escape::lines(words);
    let mut text = String::with_capacity(clean.len());
    let mut in_code = false;
    // Backquotes of our own messages come in pairs; an odd one is shown as it is.
    let paired = clean.matches('`').count().is_multiple_of(2);
    for letter in clean.chars() {
        match letter {
            '\n' | '\r' => text.push(' '),
            '`' if paired => {
                in_code = !in_code;
                text.push('`');
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '@' | '!' if !in_code => {
                text.push('\\');
                text.push(letter);
            }
            letter => text.push(letter),
        }
    }
    text
}

/// A code span that holds any name.
fn code(name: &str) -> String {
    let clean = escape::lines(name).replace(['\n', '\r'], " ").replace('|', "\\|");
    let mut fence = "`".to_owned();
    while clean.contains(&fence) {
        fence.push('`');
    }
    let pad = if clean.starts_with('`') || clean.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{clean}{pad}{fence}")
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    inputs: Vec<Input<'a>>,
}

#[derive(Serialize)]
struct Input<'a> {
    old: &'a str,
    new: &'a str,
    unit: &'static str,
    gained: Vec<JsonFinding<'a>>,
    lost: Vec<JsonFinding<'a>>,
    changed: Vec<JsonChanged<'a>>,
    same: usize,
    functions: Vec<JsonFunction<'a>>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    rule: &'a str,
    name: &'a str,
    severity: &'static str,
    message: &'a str,
    count: usize,
    location: Option<Location>,
    fingerprint: &'a str,
}

#[derive(Serialize)]
struct JsonChanged<'a> {
    from: &'static str,
    to: JsonFinding<'a>,
}

#[derive(Serialize)]
struct JsonFunction<'a> {
    name: &'a str,
    contract: &'static str,
    interface: Vec<String>,
    op_changes: Vec<JsonOpChange>,
    measures: Vec<JsonMeasure>,
}

#[derive(Serialize)]
struct JsonOpChange {
    op: &'static str,
    old: u64,
    new: u64,
}

#[derive(Serialize)]
struct JsonMeasure {
    name: &'static str,
    old: Option<u64>,
    new: Option<u64>,
}

/// The report for programs.
///
/// # Errors
/// None but what the serialiser has.
pub fn diff_json(reports: &[DiffReport<'_>]) -> serde_json::Result<String> {
    let inputs = reports
        .iter()
        .map(|report| Input {
            old: report.old,
            new: report.new,
            unit: report.unit,
            gained: json_findings(report, &report.findings.gained),
            lost: json_findings(report, &report.findings.lost),
            changed: report
                .findings
                .changed
                .iter()
                .map(|pair| JsonChanged {
                    from: pair.old.severity.name(),
                    to: json_finding(report, pair.new),
                })
                .collect(),
            same: report.findings.same,
            functions: report.functions.iter().map(json_function).collect(),
        })
        .collect();
    serde_json::to_string_pretty(&Document { version: 1, inputs })
}

fn json_findings<'a>(report: &DiffReport<'_>, findings: &[&'a Finding]) -> Vec<JsonFinding<'a>> {
    findings.iter().map(|finding| json_finding(report, finding)).collect()
}

fn json_finding<'a>(report: &DiffReport<'_>, finding: &'a Finding) -> JsonFinding<'a> {
    JsonFinding {
        rule: &finding.rule,
        name: &finding.name,
        severity: finding.severity.name(),
        message: &finding.message,
        count: finding.count,
        location: place(report, finding),
        fingerprint: &finding.fingerprint,
    }
}

fn json_function<'a>(row: &FunctionDiff<'a>) -> JsonFunction<'a> {
    let (interface, ops) = match &row.contract {
        Some(Contract::Other { interface, ops, .. }) => (interface.clone(), ops.as_slice()),
        _ => (Vec::new(), [].as_slice()),
    };
    JsonFunction {
        name: row.name,
        contract: match (&row.contract, row.old.is_some()) {
            (Some(Contract::Same), _) => "same",
            (Some(Contract::Rounding), _) => "rounding",
            (Some(Contract::Other { constants_only: true, .. }), _) => "constants",
            (Some(Contract::Other { .. }), _) => "other",
            (None, true) => "gone",
            (None, false) => "new",
        },
        interface,
        op_changes: ops
            .iter()
            .map(|change| JsonOpChange { op: change.op.name(), old: change.old, new: change.new })
            .collect(),
        measures: measures(row)
            .into_iter()
            .map(|measure| JsonMeasure { name: measure.key, old: measure.old, new: measure.new })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{code, markdown};

    #[test]
    fn names_of_a_model_are_no_markup() {
        assert_eq!(markdown("a [b](c) **d** <img>"), r"a \[b\](c) \*\*d\*\* \<img\>");
        assert_eq!(markdown("`x_1` falls\ninto"), "`x_1` falls into");
        assert_eq!(markdown("odd ` one_"), r"odd \` one\_");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("a|b"), r"`a\|b`");
    }
}
