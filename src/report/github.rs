//! GitHub: workflow commands that annotate lines, and a summary of the job.

use std::io::{self, Write};

use super::host::{self, HostOptions, HostPlace};
use super::markdown;
use super::model::{self, CheckReport, InputReport, Summary};
use super::verdict;
use crate::findings::Finding;
use crate::rules::Severity;

/// Rows of the summary's table: a step may write 1 MiB.
const MOST_ROWS: usize = 200;
/// Bytes of the summary's text; what is beyond is said to be left out.
const MOST_BYTES: usize = 900_000;

/// Writes the annotations.
///
/// The page of a run shows few annotations of each level (ten, it seems), so the costliest come first.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, options: &HostOptions, out: &mut dyn Write) -> io::Result<()> {
    for error in &report.errors {
        let place = host::model_place(&error.path, options);
        command(out, "error", "anelint", &place, &error.message)?;
    }
    for (input, finding) in ranked(report) {
        let level = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "notice",
        };
        let title = format!("anelint ({} {})", finding.rule, finding.name);
        let place = host::place(report, input, finding, options);
        let mut text = finding.message.clone();
        for line in host::details(finding) {
            text.push('\n');
            text.push_str(&line);
        }
        command(out, level, &title, &place, &text)?;
    }
    for note in &report.skipped {
        let place = host::model_place(&note.path, options);
        command(out, "notice", "anelint", &place, &note.message)?;
    }
    Ok(())
}

/// Findings with those first that take most regions away, else as they come.
fn ranked(report: &CheckReport) -> Vec<(&InputReport, &Finding)> {
    let mut all: Vec<(&InputReport, &Finding)> = report
        .inputs
        .iter()
        .flat_map(|input| input.findings.iter().map(move |finding| (input, finding)))
        .collect();
    all.sort_by_key(|(_, finding)| {
        let rank = match finding.severity {
            Severity::Error => 0,
            Severity::Warning => 1,
            Severity::Advice => 2,
        };
        (rank, std::cmp::Reverse(finding.regions_added.unwrap_or(0)))
    });
    all
}

/// `::error title=…,file=…,line=…::message`.
fn command(
    out: &mut dyn Write,
    level: &str,
    title: &str,
    place: &HostPlace,
    text: &str,
) -> io::Result<()> {
    write!(out, "::{level} title={},file={}", property(title), property(&place.path))?;
    if let Some((first, last)) = place.lines {
        write!(out, ",line={first},endLine={last}")?;
        // Columns are heeded on one line only; the last one is part of the mark.
        if let (Some((start, end)), true) = (place.columns, first == last) {
            write!(out, ",col={start},endColumn={}", end.saturating_sub(1).max(start))?;
        }
    }
    writeln!(out, "::{}", data(&host::printable(text)))
}

/// Escapes the text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(&host::printable(text)).replace(':', "%3A").replace(',', "%2C")
}

/// The summary of a job, in Markdown: the verdicts, then the findings, costliest first.
pub fn summary(report: &CheckReport, options: &HostOptions) -> String {
    let mut text = String::from("## anelint\n\n");
    let counts = report.summary();
    text.push_str(&format!("{}\n\n", heading(report, counts)));
    if !report.inputs.is_empty() {
        text.push_str("| model | function | verdict |\n|---|---|---|\n");
        for input in &report.inputs {
            let target = &input.target;
            let model = format!(
                "{} ({} {})",
                markdown::code(&input.path),
                target.unit.name(),
                target.chip.name()
            );
            for function in &input.functions {
                let own = Summary::of(
                    input.findings.iter().filter(|f| f.functions.contains(&function.name)),
                );
                text.push_str(&format!(
                    "| {model} | {} | {} |\n",
                    markdown::code(&function.name),
                    verdict::verdict(function, own, verdict::Words::of(target))
                ));
            }
        }
        text.push('\n');
    }
    let all = ranked(report);
    if !all.is_empty() {
        text.push_str("| | rule | place | what | regions |\n|---|---|---|---|---|\n");
    }
    let mut shown = 0;
    for (input, finding) in &all {
        let row = row(report, input, finding, options);
        if shown == MOST_ROWS || text.len() + row.len() > MOST_BYTES {
            break;
        }
        text.push_str(&row);
        shown += 1;
    }
    if shown < all.len() {
        text.push_str(&format!("\n{} more findings are not shown here.\n", all.len() - shown));
    }
    for (label, lines) in [
        (
            "Not read",
            report
                .errors
                .iter()
                .map(|error| (error.path.as_str(), error.message.as_str()))
                .collect::<Vec<_>>(),
        ),
        (
            "Left alone",
            report.skipped.iter().map(|note| (note.path.as_str(), note.message.as_str())).collect(),
        ),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n**{label}**\n\n"));
        }
        for (path, message) in lines.iter().take(MOST_ROWS) {
            text.push_str(&format!("- {}: {}\n", markdown::code(path), markdown::text(message)));
        }
    }
    text
}

fn heading(report: &CheckReport, counts: Summary) -> String {
    let models =
        report.inputs.iter().map(|input| &input.path).collect::<std::collections::BTreeSet<_>>();
    format!("**{}** in {}", verdict::findings(counts), verdict::counted(models.len(), "model"))
}

fn row(
    report: &CheckReport,
    input: &InputReport,
    finding: &Finding,
    options: &HostOptions,
) -> String {
    let mark = match finding.severity {
        Severity::Error => "❌ error",
        Severity::Warning => "⚠️ warning",
        Severity::Advice => "ℹ️ advice",
    };
    let place = host::place(report, input, finding, options);
    let at = match place.lines {
        Some((line, _)) => format!("{}:{line}", place.path),
        None => place.path,
    };
    let rule = match options.rule_url(&model::rule_page(&finding.rule)) {
        Some(url) => format!("[{}]({url})", markdown::text(&finding.rule)),
        None => markdown::text(&finding.rule),
    };
    let regions = match finding.regions_added {
        Some(n) if n > 0 => format!("−{n}"),
        _ => String::new(),
    };
    let help = match finding.help.as_str() {
        "" => String::new(),
        help => format!("<br>{}", markdown::text(help)),
    };
    format!(
        "| {mark} | {rule} | {} | {}{help} | {regions} |\n",
        markdown::code(&at),
        markdown::text(&finding.message)
    )
}
