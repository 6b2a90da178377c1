//! The report for people: verdicts, then each finding with its snippet, then the verdicts again.

use std::io::{self, Write};

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle, Severity as Level};
use codespan_reporting::term::{self, Config, WriteStyle};

use super::concise::place_of;
use super::json::shown_file;
use super::model::{CheckReport, InputReport, Summary};
use super::snippet::Windows;
use super::statistics::statistics_text;
use super::verdict::{Words, counted, findings, verdict};
use super::{escape, os_text, suggestion};
use crate::findings::Finding;
use crate::findings::python::Span;
use crate::findings::source::{PlaceFile, Spot, short_library_path};
use crate::findings::suppress::By;
use crate::rules::{Applicability, Category, Severity};

/// How much to say, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Colours.
    pub color: bool,
    /// Findings only.
    pub quiet: bool,
    /// Notes, every module and node.
    pub verbose: bool,
}

/// Most modules, nodes and frames named of one finding unless asked for all.
const MAX_NAMED: usize = 4;
/// Library lines told of one finding, unless asked for all.
const MAX_THROUGH: usize = 3;

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    if !options.quiet {
        for note in &report.skipped {
            writeln!(out, "{}: {}", escape::text(&note.path), escape::text(&note.message))?;
        }
    }
    if report.statistics {
        out.write_all(statistics_text(report).as_bytes())?;
        for error in &report.errors {
            write_error(error, options, out)?;
        }
        return if options.quiet { Ok(()) } else { write_silenced(report, options, out) };
    }
    for input in &report.inputs {
        if !options.quiet {
            write_verdicts(input, options, out)?;
            if !input.findings.is_empty() {
                writeln!(out)?;
            }
        }
        for finding in &input.findings {
            write_finding(report, input, finding, options, out)?;
        }
    }
    // Findings end with a blank line of their own.
    let gap = |last: Option<&InputReport>| last.is_some_and(|input| input.findings.is_empty());
    if !report.errors.is_empty() && !options.quiet && gap(report.inputs.last()) {
        writeln!(out)?;
    }
    for error in &report.errors {
        write_error(error, options, out)?;
    }
    if options.quiet {
        return Ok(());
    }
    if !report.errors.is_empty() && !report.inputs.is_empty() {
        writeln!(out)?;
    }
    // The end of a long report says again what its start has scrolled away.
    for input in report.inputs.iter().filter(|input| !input.findings.is_empty()) {
        write_verdicts(input, TextOptions { verbose: false, ..options }, out)?;
    }
    write_fixes(report, out)?;
    let many = report.inputs.len() + report.errors.len() > 1;
    if many {
        let mut files: Vec<&str> = report.inputs.iter().map(|input| input.path.as_str()).collect();
        files.dedup();
        let mut line =
            format!("{} in {}", findings(report.summary()), counted(files.len(), "model"));
        if !report.errors.is_empty() {
            line.push_str(&format!("; {} could not be read", report.errors.len()));
        }
        writeln!(out, "{}{line}{}", on(options, BOLD), on(options, RESET))?;
    }
    write_silenced(report, options, out)
}

/// How many findings are silent, and why; which, if asked for all.
fn write_silenced(
    report: &CheckReport,
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut parts = Vec::new();
    for (by, words) in [
        (By::Comment, "ignored by comments"),
        (By::Config, "ignored by the config file"),
        (By::Baseline, "in the baseline"),
    ] {
        match report.silenced(by) {
            0 => {}
            count => parts.push(format!("{count} {words}")),
        }
    }
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}not shown: {}{}", on(options, DIM), parts.join(", "), on(options, RESET))?;
    if !options.verbose {
        return Ok(());
    }
    for input in &report.inputs {
        for own in &input.silenced {
            let reason = match own.suppression.reason.as_str() {
                "" => String::new(),
                reason => format!(": {}", escape::text(reason)),
            };
            writeln!(
                out,
                "  {} {} ({}{reason})",
                escape::text(&place_of(report, input, &own.finding)),
                escape::text(&own.finding.rule),
                own.suppression.by.name()
            )?;
        }
    }
    Ok(())
}

/// What was fixed; or what could be, where nobody asked for it.
fn write_fixes(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    let Some(fixes) = &report.fixes else {
        let count = |applicability| {
            report
                .findings()
                .filter(|f| f.fix.as_ref().is_some_and(|fix| fix.applicability == applicability))
                .count()
        };
        return match (count(Applicability::Safe), count(Applicability::Unsafe)) {
            (0, 0) => Ok(()),
            (safe, 0) => writeln!(out, "{} can be mended with --fix", counted(safe, "finding")),
            (0, more) => {
                let more = counted(more, "finding");
                writeln!(out, "{more} can be mended with --fix --unsafe-fixes")
            }
            (safe, more) => writeln!(
                out,
                "{} can be mended with --fix, {more} more with --unsafe-fixes",
                counted(safe, "finding")
            ),
        };
    };
    for note in &fixes.left {
        writeln!(out, "{}: {}", escape::text(&note.path), escape::text(&note.message))?;
    }
    for (path, edits) in &fixes.edited {
        writeln!(out, "{}: {} made", escape::text(path), counted(*edits, "edit"))?;
    }
    let fixed = report.summary().fixed;
    if fixed > 0 {
        writeln!(out, "{} fixed, re-export to verify", counted(fixed, "finding"))?;
    }
    if fixes.overlapping > 0 {
        writeln!(
            out,
            "{} not mended, since edits overlap: re-export and run again",
            counted(fixes.overlapping, "finding")
        )?;
    }
    if fixes.unsafe_left > 0 {
        writeln!(out, "{} more can be mended with --unsafe-fixes", fixes.unsafe_left)?;
    }
    Ok(())
}

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[1;31m";
const RESET: &str = "\u{1b}[0m";

fn on(options: TextOptions, style: &'static str) -> &'static str {
    if options.color { style } else { "" }
}

fn write_verdicts(
    input: &InputReport,
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let target = &input.target;
    let mut about = vec![input.format.to_owned()];
    if !input.producer.is_empty() {
        about.push(escape::text(&input.producer).into_owned());
    }
    let words = Words::of(target);
    let provider = target.provider.map(|p| format!(" ({p})")).unwrap_or_default();
    let target = format!(
        "{} {}, {}{provider}, OS {}",
        target.unit,
        target.chip,
        target.runtime,
        os_text(target.os)
    );
    writeln!(
        out,
        "{}{}{} {}({} → {target}){}",
        on(options, BOLD),
        escape::text(&input.path),
        on(options, RESET),
        on(options, DIM),
        about.join(", "),
        on(options, RESET)
    )?;
    for function in &input.functions {
        let own = input.findings.iter().filter(|f| f.functions.contains(&function.name));
        let summary = Summary::of(own);
        // A branch with nothing to say is a detail.
        if function.nested && summary == Summary::default() && !options.verbose {
            continue;
        }
        writeln!(out, "  {}: {}", escape::text(&function.name), verdict(function, summary, words))?;
    }
    let outside = || input.findings.iter().filter(|f| f.functions.is_empty());
    let is_upkeep = |f: &&Finding| f.category == Category::Upkeep;
    let upkeep = Summary::of(outside().filter(is_upkeep));
    let outside = Summary::of(outside().filter(|f| !is_upkeep(f)));
    for (words, summary) in [("whole model", outside), ("suppressions", upkeep)] {
        if summary != Summary::default() {
            writeln!(out, "  {words}: {}", findings(summary))?;
        }
    }
    if options.verbose {
        for note in &input.notes {
            writeln!(out, "  note: {}", escape::text(note))?;
        }
    }
    Ok(())
}

fn write_error(
    error: &super::model::InputError,
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let offset = error.offset.map(|at| format!(" (byte {at} of the file)")).unwrap_or_default();
    writeln!(
        out,
        "{}error{}: {}: {}{offset}",
        on(options, RED),
        on(options, RESET),
        escape::text(&error.path),
        escape::text(&error.message)
    )
}

fn write_finding(
    report: &CheckReport,
    input: &InputReport,
    finding: &Finding,
    options: TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let level = match finding.severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
        Severity::Advice => Level::Note,
    };
    let mut windows = Windows::default();
    let mut labels = Vec::new();
    // Spots of one file share a window; the first is the finding's own.
    let spots: Vec<(&Spot, &str, LabelStyle)> = finding
        .spot
        .iter()
        .map(|spot| (spot, "", LabelStyle::Primary))
        .chain(
            finding
                .related
                .iter()
                .map(|(spot, words)| (spot, words.as_str(), LabelStyle::Secondary)),
        )
        .filter(|(spot, ..)| has_text(spot))
        .collect();
    let mut done = vec![false; spots.len()];
    for at in 0..spots.len() {
        if done[at] {
            continue;
        }
        let file = &spots[at].0.file;
        let mates: Vec<usize> =
            (at..spots.len()).filter(|&n| spots[n].0.file.key() == file.key()).collect();
        let spans: Vec<Span> = mates.iter().map(|&n| spots[n].0.span).collect();
        let name = shown_file(file, &report.working_folder);
        let (id, ranges) = windows.add(&name, file, &spans);
        for (&n, range) in mates.iter().zip(ranges) {
            done[n] = true;
            let (_, words, style) = spots[n];
            labels.push(Label::new(style, id, range).with_message(escape::text(words)));
        }
    }
    let code = format!("{} {}", escape::text(&finding.rule), escape::text(&finding.name));
    let diagnostic = Diagnostic::new(level)
        .with_code(code)
        .with_message(escape::text(&finding.message))
        .with_labels(labels)
        .with_notes(notes(report, input, finding, options));
    let mut text = Vec::new();
    // The words for severities are the project's own, not codespan's.
    let word = finding.severity.name();
    let mut styled = Styled { out: &mut text, color: options.color };
    term::emit_to_write_style(&mut styled, &Config::default(), &windows, &diagnostic)
        .map_err(io::Error::other)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = match finding.severity {
        Severity::Advice => text.replacen("note[", &format!("{word}["), 1),
        _ => text,
    };
    // codespan ends empty gutter lines with blanks.
    for line in text.trim_end().lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)
}

/// Whether there is a line to show. One that was edited away is told in words: it stands nowhere.
fn has_text(spot: &Spot) -> bool {
    match &spot.file {
        PlaceFile::Found(_) => true,
        PlaceFile::Recorded { text, .. } => !text.is_empty() && !spot.stale,
    }
}

fn notes(
    report: &CheckReport,
    input: &InputReport,
    finding: &Finding,
    options: TextOptions,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !finding.help.is_empty() {
        notes.push(format!("help: {}", escape::lines(&finding.help)));
    }
    notes.extend(suggestion::note(finding, &report.working_folder));
    if let Some(spot) = &finding.spot {
        let file = shown_file(&spot.file, &report.working_folder);
        match &spot.file {
            PlaceFile::Recorded { text, .. } if spot.stale => {
                let at = format!("{}:{}", escape::text(&file), spot.span.start.line);
                let line = if text.is_empty() { "" } else { ": " };
                notes.push(format!("exported from {at}{line}{}", escape::text(text)));
                notes.push(
                    "the source was edited since the export, and this line is not in it any more"
                        .to_owned(),
                );
            }
            PlaceFile::Recorded { text, .. } => {
                let missing = "recorded there; the file is not on this machine";
                notes.push(if text.is_empty() {
                    format!("{}:{}: {missing}", escape::text(&file), spot.span.start.line)
                } else {
                    missing.to_owned()
                });
            }
            PlaceFile::Found(_) if spot.stale => notes.push(format!(
                "{} has changed since the export: the line was found again",
                escape::text(&file),
            )),
            PlaceFile::Found(_) => {}
        }
    }
    for note in &finding.notes {
        notes.push(escape::text(note).into_owned());
    }
    let mut place = Vec::new();
    let modules: Vec<String> = finding
        .modules
        .iter()
        .map(|group| match group.count {
            1 => escape::text(&group.pattern).into_owned(),
            count => format!("{} ×{count}", escape::text(&group.pattern)),
        })
        .collect();
    if !modules.is_empty() {
        place.push(format!("in {}", listed(&modules, options.verbose)));
    }
    if !finding.nodes.is_empty() {
        let word = if finding.nodes.len() == 1 { "node" } else { "nodes" };
        let names: Vec<String> =
            finding.nodes.iter().map(|node| escape::text(node).into_owned()).collect();
        let spelling = match (finding.op.1.as_str(), finding.nodes.len()) {
            ("", _) | (_, 2..) => String::new(),
            (spelling, _) => format!(" ({})", escape::text(spelling)),
        };
        place.push(format!("{word} {}{spelling}", listed(&names, options.verbose)));
    }
    let several = input.functions.iter().filter(|function| !function.nested).count() > 1;
    if several && !finding.functions.is_empty() {
        let names: Vec<String> =
            finding.functions.iter().map(|name| escape::text(name).into_owned()).collect();
        place.push(format!("function {}", listed(&names, options.verbose)));
    }
    if finding.spot.is_none() {
        place.push(escape::text(&input.path).into_owned());
    }
    if !place.is_empty() {
        notes.push(place.join(", "));
    }
    let shown = if options.verbose { finding.through.len() } else { MAX_THROUGH };
    let through = finding.through.iter().take(shown);
    // The stack of the occurrence that speaks, when asked for more, goes on from its telling frame.
    let stack = finding.deeper.iter().take(if options.verbose { usize::MAX } else { 0 });
    let stack = stack.filter(|frame| !finding.through.contains(frame));
    for frame in through.chain(stack) {
        let file = short_library_path(&frame.file);
        let text = if frame.text.is_empty() { "" } else { ": " };
        notes.push(format!(
            "through {}:{}{text}{}",
            escape::text(file),
            frame.line,
            escape::text(&frame.text)
        ));
    }
    if let Some(more) = finding.through.len().checked_sub(shown).filter(|more| *more > 0) {
        notes.push(format!("and through {}", counted(more, "other line")));
    }
    if let Some(added) = finding.regions_added.filter(|added| *added > 0) {
        notes
            .push(format!("without it there would be {} fewer", counted(added as usize, "region")));
    }
    if options.verbose {
        let evidence = match finding.evidence.is_empty() {
            true => finding.sureness.name().to_owned(),
            false => format!("{} ({})", finding.sureness, finding.evidence.join(", ")),
        };
        notes.push(format!("evidence: {}", escape::text(&evidence)));
    }
    notes
}

/// `a, b, c and 12 more`.
fn listed(names: &[String], all: bool) -> String {
    if all || names.len() <= MAX_NAMED {
        return names.join(", ");
    }
    let shown = names.get(..MAX_NAMED - 1).unwrap_or(names);
    format!("{} and {} more", shown.join(", "), names.len() - shown.len())
}

/// Puts codespan's styles into escape sequences, or leaves them out.
struct Styled<'a> {
    out: &'a mut Vec<u8>,
    color: bool,
}

impl Styled<'_> {
    fn set(&mut self, style: &str) -> io::Result<()> {
        if self.color { self.out.write_all(style.as_bytes()) } else { Ok(()) }
    }

    fn level(level: Level) -> &'static str {
        match level {
            Level::Bug | Level::Error => RED,
            Level::Warning => "\u{1b}[1;33m",
            Level::Note | Level::Help => "\u{1b}[1;36m",
        }
    }
}

impl Write for Styled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteStyle for Styled<'_> {
    fn set_header(&mut self, level: Level) -> io::Result<()> {
        self.set(Self::level(level))
    }
    fn set_header_message(&mut self) -> io::Result<()> {
        self.set(BOLD)
    }
    fn set_line_number(&mut self) -> io::Result<()> {
        self.set("\u{1b}[34m")
    }
    fn set_note_bullet(&mut self) -> io::Result<()> {
        self.set("\u{1b}[34m")
    }
    fn set_source_border(&mut self) -> io::Result<()> {
        self.set("\u{1b}[34m")
    }
    fn set_label(&mut self, level: Level, style: LabelStyle) -> io::Result<()> {
        self.set(match style {
            LabelStyle::Primary => Self::level(level),
            LabelStyle::Secondary => "\u{1b}[34m",
        })
    }
    fn reset(&mut self) -> io::Result<()> {
        self.set(RESET)
    }
}
