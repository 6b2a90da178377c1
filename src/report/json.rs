//! JSON, version 1 (`schemas/check.schema.json`): keys are added, never changed.
//!
//! Lines and columns count from 1, columns in characters (Unicode scalar values), ends exclusive.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::model::{CheckReport, InputReport};
use super::statistics::{RuleCount, statistics};
use crate::findings::source::{PlaceFile, Spot, shown_path};
use crate::findings::suppress::{By, Suppression};
use crate::findings::{Edit, Finding};

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &document(report)).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// The whole report.
pub(super) fn document(report: &CheckReport) -> Document<'_> {
    let folder = report.working_folder.as_path();
    let summary = report.summary();
    Document {
        version: 1,
        tool: Tool { name: "anelint", version: env!("CARGO_PKG_VERSION") },
        inputs: report.inputs.iter().map(input).collect(),
        findings: report.inputs.iter().flat_map(|input| all_findings(input, folder)).collect(),
        summary: Summary {
            error: summary.error,
            warning: summary.warning,
            advice: summary.advice,
            suppressed: report.silenced(By::Comment) + report.silenced(By::Config),
            baselined: report.silenced(By::Baseline),
            fixed: summary.fixed,
        },
        fixes: report.fixes.as_ref().map(|fixes| Fixes {
            edited: fixes
                .edited
                .iter()
                .map(|(file, edits)| Edited { file, edits: *edits })
                .collect(),
            left: fixes
                .left
                .iter()
                .map(|note| Skipped { path: &note.path, message: &note.message })
                .collect(),
            overlapping: fixes.overlapping,
            unsafe_left: fixes.unsafe_left,
        }),
        errors: report
            .errors
            .iter()
            .map(|error| InputError {
                path: &error.path,
                message: &error.message,
                offset: error.offset,
            })
            .collect(),
        skipped: report
            .skipped
            .iter()
            .map(|note| Skipped { path: &note.path, message: &note.message })
            .collect(),
        statistics: report.statistics.then(|| statistics(report)),
    }
}

#[derive(Serialize)]
pub(super) struct Document<'a> {
    version: u32,
    tool: Tool,
    pub(super) inputs: Vec<Input<'a>>,
    pub(super) findings: Vec<JsonFinding<'a>>,
    pub(super) summary: Summary,
    pub(super) errors: Vec<InputError<'a>>,
    pub(super) skipped: Vec<Skipped<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Vec<RuleCount>>,
    fixes: Option<Fixes<'a>>,
}

#[derive(Serialize)]
struct Fixes<'a> {
    edited: Vec<Edited<'a>>,
    left: Vec<Skipped<'a>>,
    overlapping: usize,
    unsafe_left: usize,
}

#[derive(Serialize)]
struct Edited<'a> {
    file: &'a str,
    edits: usize,
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
pub(super) struct Input<'a> {
    path: &'a str,
    format: &'static str,
    producer: Option<&'a str>,
    target: JsonTarget,
    functions: Vec<Function<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonTarget {
    unit: &'static str,
    runtime: &'static str,
    chip: &'static str,
    os: String,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    ops: usize,
    unknown_ops: usize,
    eligible: Option<usize>,
    eligibility_unknown: usize,
    regions: Option<usize>,
    regions_program_order: Option<usize>,
    nested: bool,
}

#[derive(Serialize)]
pub(super) struct JsonFinding<'a> {
    rule: &'a str,
    name: &'a str,
    severity: &'static str,
    category: &'static str,
    sureness: &'static str,
    evidence: &'a [String],
    message: &'a str,
    help: Option<&'a str>,
    url: String,
    input: &'a str,
    target: &'static str,
    functions: &'a [String],
    nodes: &'a [String],
    op: Option<&'a str>,
    spelling: Option<&'a str>,
    modules: Vec<&'a str>,
    count: usize,
    location: Option<Location>,
    related: Vec<Related<'a>>,
    frames: Vec<Frame<'a>>,
    notes: &'a [String],
    fix: Option<Fix<'a>>,
    fixed: bool,
    regions_added: Option<u32>,
    fingerprint: &'a str,
    suppressed: Option<&'static str>,
    suppression_reason: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Location {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    end_line: u32,
    end_column: Option<u32>,
    stale: bool,
    found: bool,
}

#[derive(Serialize)]
struct Related<'a> {
    location: Location,
    message: &'a str,
}

#[derive(Serialize)]
struct Frame<'a> {
    file: &'a str,
    line: u32,
    function: &'a str,
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct Fix<'a> {
    applicability: &'static str,
    note: Option<&'a str>,
    edits: Vec<JsonEdit<'a>>,
}

#[derive(Serialize)]
struct JsonEdit<'a> {
    file: String,
    start: [u32; 2],
    end: [u32; 2],
    text: &'a str,
}

#[derive(Serialize)]
pub(super) struct Summary {
    error: usize,
    warning: usize,
    advice: usize,
    suppressed: usize,
    baselined: usize,
    fixed: usize,
}

#[derive(Serialize)]
pub(super) struct InputError<'a> {
    path: &'a str,
    message: &'a str,
    offset: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Skipped<'a> {
    path: &'a str,
    message: &'a str,
}

fn input(input: &InputReport) -> Input<'_> {
    let target = &input.target;
    Input {
        path: &input.path,
        format: input.format,
        producer: some(&input.producer),
        target: JsonTarget {
            unit: target.unit.name(),
            runtime: target.runtime.name(),
            chip: target.chip.name(),
            os: super::model::os_text(target.os),
        },
        functions: input
            .functions
            .iter()
            .map(|function| Function {
                name: &function.name,
                ops: function.ops,
                unknown_ops: function.unknown_ops,
                eligible: function.eligible,
                eligibility_unknown: function.eligibility_unknown,
                regions: function.regions,
                regions_program_order: function.regions_program_order,
                nested: function.nested,
            })
            .collect(),
        notes: &input.notes,
    }
}

/// The findings of an input, reported and silent, in their order.
fn all_findings<'a>(input: &'a InputReport, folder: &Path) -> Vec<JsonFinding<'a>> {
    let mut all = Vec::with_capacity(input.findings.len() + input.silenced.len());
    let mut silent = input.silenced.iter().peekable();
    let mut heard = input.findings.iter();
    loop {
        let at = all.len();
        let (own, why) = if let Some(own) = silent.next_if(|own| own.at <= at) {
            (&own.finding, Some(&own.suppression))
        } else if let Some(own) = heard.next() {
            (own, None)
        } else if let Some(own) = silent.next() {
            (&own.finding, Some(&own.suppression))
        } else {
            return all;
        };
        all.push(finding(input, own, why, folder));
    }
}

fn finding<'a>(
    input: &'a InputReport,
    finding: &'a Finding,
    suppression: Option<&'a Suppression>,
    folder: &Path,
) -> JsonFinding<'a> {
    JsonFinding {
        rule: &finding.rule,
        name: &finding.name,
        severity: finding.severity.name(),
        category: finding.category.name(),
        sureness: finding.sureness.name(),
        evidence: &finding.evidence,
        message: &finding.message,
        help: some(&finding.help),
        url: super::model::rule_page(&finding.rule),
        input: &input.path,
        target: input.target.unit.name(),
        functions: &finding.functions,
        nodes: &finding.nodes,
        op: some(&finding.op.0),
        spelling: some(&finding.op.1),
        modules: finding.modules.iter().map(|group| group.pattern.as_str()).collect(),
        count: finding.count,
        location: finding.spot.as_ref().map(|spot| location(spot, folder)),
        related: finding
            .related
            .iter()
            .map(|(spot, message)| Related { location: location(spot, folder), message })
            .collect(),
        frames: finding
            .deeper
            .iter()
            .map(|frame| Frame {
                file: &frame.file,
                line: frame.line,
                function: &frame.function,
                text: some(&frame.text),
            })
            .collect(),
        notes: &finding.notes,
        fix: finding.fix.as_ref().map(|fix| Fix {
            applicability: fix.applicability.name(),
            note: some(&fix.note),
            edits: fix.edits.iter().map(|own| edit(own, folder)).collect(),
        }),
        fixed: finding.fixed,
        regions_added: finding.regions_added,
        fingerprint: &finding.fingerprint,
        suppressed: suppression.map(|own| own.by.name()),
        suppression_reason: suppression.and_then(|own| some(&own.reason)),
    }
}

fn edit<'a>(edit: &'a Edit, folder: &Path) -> JsonEdit<'a> {
    JsonEdit {
        file: shown_file(&edit.file, folder),
        start: [edit.span.start.line, edit.span.start.column],
        end: [edit.span.end.line, edit.span.end.column],
        text: &edit.text,
    }
}

/// The path of a place's file as reports show it.
pub(super) fn shown_file(file: &PlaceFile, folder: &Path) -> String {
    match file {
        PlaceFile::Found(file) => shown_path(file.path(), folder),
        PlaceFile::Recorded { file, .. } => file.clone(),
    }
}

pub(super) fn location(spot: &Spot, folder: &Path) -> Location {
    Location {
        file: shown_file(&spot.file, folder),
        line: spot.span.start.line,
        column: spot.exact.then_some(spot.span.start.column),
        end_line: spot.span.end.line,
        end_column: spot.exact.then_some(spot.span.end.column),
        stale: spot.stale,
        found: matches!(spot.file, PlaceFile::Found(_)),
    }
}

/// `None` for an empty text.
fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
