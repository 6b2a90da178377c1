//! Placement as JSON, version 1: `schemas/placement.schema.json`.

use serde::Serialize;

use super::super::confirm::{JsonConfirmation, confirmed_json};
use super::super::json::{Location, location};
use super::super::os_text;
use super::{PlacementReport, by_cost};
use crate::graph::{FunctionId, NodeFlags, NodeId, NodeKind};
use crate::placement::Placement;
use crate::target::Target;

/// The report for programs.
pub fn placement_json(reports: &[PlacementReport<'_>]) -> serde_json::Result<String> {
    let document =
        Document { version: 1, inputs: reports.iter().map(|report| input(report)).collect() };
    serde_json::to_string_pretty(&document)
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    inputs: Vec<Input<'a>>,
}

#[derive(Serialize)]
struct Input<'a> {
    path: &'a str,
    format: &'static str,
    target: JsonTarget,
    functions: Vec<JsonFunction<'a>>,
}

/// A target in JSON.
#[derive(Serialize)]
pub(in crate::report) struct JsonTarget {
    unit: &'static str,
    runtime: &'static str,
    chip: &'static str,
    os: String,
}

impl JsonTarget {
    pub(in crate::report) fn of(target: Target) -> JsonTarget {
        JsonTarget {
            unit: target.unit.name(),
            runtime: target.runtime.name(),
            chip: target.chip.name(),
            os: os_text(target.os),
        }
    }
}

#[derive(Serialize)]
struct JsonFunction<'a> {
    name: &'a str,
    count: u32,
    eligible: u32,
    off_unit: u32,
    unknown: u32,
    regions_program_order: u32,
    ops: Vec<JsonOp<'a>>,
    regions: Vec<JsonRegion>,
    cuts: Vec<JsonCut<'a>>,
    what_if: Vec<JsonWhatIf<'a>>,
    what_if_skipped: u32,
    confirmations: Vec<JsonConfirmation<'a>>,
}

#[derive(Serialize)]
struct JsonOp<'a> {
    id: u32,
    node: &'a str,
    op: &'static str,
    spelling: &'a str,
    transparent: bool,
    eligible: Option<bool>,
    rule: Option<&'a str>,
    row: Option<&'a str>,
    reason: Option<&'a str>,
    evidence: &'a [String],
    alternative: Option<&'a str>,
    predicted: Option<&'static str>,
    tie: bool,
    confirmed: Option<&'a str>,
    confirmed_supported: Option<bool>,
    confirmed_reason: Option<&'a str>,
    region: Option<u32>,
    interior: bool,
    location: Option<Location>,
}

#[derive(Serialize)]
struct JsonRegion {
    id: u32,
    unit: &'static str,
    ops: u32,
    unknown: u32,
    flops: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonCut<'a> {
    after_region: u32,
    nodes: Vec<&'a str>,
    rule: Option<&'a str>,
    reason: Option<&'a str>,
    location: Option<Location>,
    crossing: Vec<&'a str>,
    crossing_bytes: Option<u64>,
}

#[derive(Serialize)]
struct JsonWhatIf<'a> {
    rule: Option<&'a str>,
    row: Option<&'a str>,
    reason: &'a str,
    location: Option<Location>,
    nodes: Vec<&'a str>,
    regions_before: u32,
    regions_after: u32,
    ops_freed: u32,
}

fn input<'a>(report: &'a PlacementReport<'a>) -> Input<'a> {
    Input {
        path: report.path,
        format: report.program.format.name(),
        target: JsonTarget::of(report.target),
        functions: report
            .placements
            .iter()
            .map(|(id, placement)| json_function(report, *id, placement))
            .collect(),
    }
}

fn json_function<'a>(
    report: &'a PlacementReport<'a>,
    id: FunctionId,
    placement: &'a Placement,
) -> JsonFunction<'a> {
    let program = report.program;
    let function = program.function(id);
    let name = |node: NodeId| program.text(function.node(node).name);
    let place = |node: NodeId| (report.spot)(id, node).map(|spot| location(&spot, report.folder));
    let off = if by_cost(report.target) { "cpu" } else { "off-unit" };
    // Of several files the first that says something of an op speaks for it.
    let said = |node: NodeId| {
        report.confirmed.iter().find_map(|by| by.of(id)?.nodes.get(node.0 as usize)?.as_ref())
    };
    let ops = function
        .nodes()
        .filter(|(_, node)| {
            node.kind == NodeKind::Op && !node.flags.contains(NodeFlags::CONSTANT_WORK)
        })
        .map(|(id, node)| {
            let placed = placement.node(id);
            let why = placement.why(id);
            JsonOp {
                id: id.0,
                node: program.text(node.name),
                op: node.op.name(),
                spelling: program.text(node.spelling),
                transparent: node.flags.contains(NodeFlags::TRANSPARENT),
                eligible: placed.verdict.eligible,
                rule: why.and_then(|reason| reason.rule.as_deref()),
                row: why.and_then(|reason| some(reason.row)),
                reason: why.and_then(|reason| some(&reason.text)),
                evidence: why.map_or(&[], |reason| reason.evidence.as_slice()),
                alternative: why.and_then(|reason| some(&reason.alternative)),
                predicted: placed
                    .predicted
                    .map(|on| if on { report.target.unit.name() } else { off }),
                tie: placed.tie,
                confirmed: said(id).and_then(|said| match said.preferred {
                    Some(true) => Some(report.target.unit.name()),
                    _ => said.selected.as_deref(),
                }),
                confirmed_supported: said(id).and_then(|said| said.supported),
                confirmed_reason: said(id).and_then(|said| said.reason.as_deref()),
                region: placed.region,
                interior: placed.is_interior(),
                location: place(id),
            }
        })
        .collect();
    let group = |index: Option<&u32>| index.and_then(|&at| placement.groups.get(at as usize));
    JsonFunction {
        name: program.text(function.name),
        count: placement.ops,
        eligible: placement.eligible,
        off_unit: placement.off_unit,
        unknown: placement.unknown,
        regions_program_order: placement.regions_program_order,
        ops,
        regions: placement
            .regions
            .iter()
            .enumerate()
            .map(|(at, region)| JsonRegion {
                id: at as u32,
                unit: report.target.unit.name(),
                ops: region.ops,
                unknown: region.unknown,
                flops: region.flops,
                bytes: region.bytes,
            })
            .collect(),
        cuts: placement
            .cuts
            .iter()
            .map(|cut| {
                let main = group(cut.groups.first());
                let reason = main.map(|group| placement.reason(group.reason));
                JsonCut {
                    after_region: cut.after_region,
                    nodes: cut.nodes.iter().map(|&node| name(node)).collect(),
                    rule: reason.and_then(|reason| reason.rule.as_deref()),
                    reason: reason.and_then(|reason| some(&reason.text)),
                    location: main.and_then(|group| place(group.place)),
                    crossing: cut
                        .crossing
                        .iter()
                        .map(|&value| program.text(function.value(value).name))
                        .collect(),
                    crossing_bytes: cut.crossing_bytes,
                }
            })
            .collect(),
        what_if: placement
            .what_if
            .iter()
            .filter_map(|step| {
                let group = group(Some(&step.group))?;
                let reason = placement.reason(group.reason);
                Some(JsonWhatIf {
                    rule: reason.rule.as_deref(),
                    row: some(reason.row),
                    reason: &reason.text,
                    location: place(group.place),
                    nodes: group.nodes.iter().map(|&node| name(node)).collect(),
                    regions_before: step.regions_before,
                    regions_after: step.regions_after,
                    ops_freed: step.ops_freed,
                })
            })
            .collect(),
        what_if_skipped: placement.what_if_skipped,
        confirmations: confirmed_json(report, id, placement),
    }
}

/// `None` for an empty text.
fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
