//! Placement for people and for programs: the map of a function by unit, its cuts, what to fix first;
//! and why one op is where it is. JSON, version 1.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::confirm::{ConfirmedBy, JsonConfirmation, confirmed_json, confirmed_text};
use super::json::{Location, location};
use super::verdict::counted;
use super::{escape, os_text};
use crate::findings::source::Spot;
use crate::graph::{Function, FunctionId, NodeFlags, NodeId, NodeKind, Program};
use crate::placement::{BOUNDARY_COST, Group, Placement, Reason};
use crate::target::{Runtime, Target, Unit};

/// One input, placed.
pub struct PlacementReport<'a> {
    /// Path as shown.
    pub path: &'a str,
    /// The program.
    pub program: &'a Program,
    /// What it was placed on.
    pub target: Target,
    /// Its functions, in order.
    pub placements: &'a [(FunctionId, Placement)],
    /// The place of a node in the author's source.
    pub spot: &'a dyn Fn(FunctionId, NodeId) -> Option<Spot>,
    /// What compilers said, a file each.
    pub confirmed: &'a [ConfirmedBy],
    /// Paths of source files are shown relative to this folder.
    pub folder: &'a Path,
}

/// Widest bar, in characters.
const BAR: u64 = 32;
/// Most regions drawn of one function; of more the middle is left out.
const MOST_REGIONS: usize = 16;
/// Most steps of the ranking told in text.
const MOST_STEPS: usize = 10;

/// The report for people.
pub fn placement_text(report: &PlacementReport<'_>) -> String {
    let mut text = String::new();
    let target = report.target;
    let _ = writeln!(
        text,
        "{}: {} through {}, {}, OS {}",
        escape::text(report.path),
        target.unit,
        target.runtime,
        target.chip,
        os_text(target.os)
    );
    for (id, placement) in report.placements {
        function_text(&mut text, report, *id, placement);
    }
    text
}

fn function_text(
    text: &mut String,
    report: &PlacementReport<'_>,
    id: FunctionId,
    placement: &Placement,
) {
    let function = report.program.function(id);
    let name = escape::text(report.program.text(function.name)).into_owned();
    let percent = (u64::from(placement.eligible) * 100).checked_div(u64::from(placement.ops));
    let _ = write!(text, "\n{name}: ");
    let Some(percent) = percent else {
        let _ = writeln!(text, "no ops");
        return;
    };
    let _ = write!(
        text,
        "{percent} % of {} eligible · {}",
        counted(placement.ops as usize, "op"),
        counted(placement.regions.len(), "region")
    );
    if placement.unknown > 0 {
        let _ = write!(text, ", {} unknown", counted(placement.unknown as usize, "op"));
    }
    if placement.regions_program_order as usize != placement.regions.len()
        && !by_cost(report.target)
    {
        let _ = write!(text, " ({} in program order)", placement.regions_program_order);
    }
    text.push('\n');
    if placement.regions.is_empty() && placement.eligible > 0 && by_cost(report.target) {
        let _ = writeln!(
            text,
            "  all on the CPU: what the unit could run saves less than opening it costs (P-04)"
        );
    }
    map(text, report, id, placement);
    left_behind(text, report, function, placement);
    boundary(text, function, placement);
    ranking(text, report, id, placement);
    confirmed_text(text, report, id, placement);
}

/// Whether the planner's costs decide, and not eligibility alone.
fn by_cost(target: Target) -> bool {
    target.unit == Unit::NeuralEngine && target.runtime == Runtime::CoreMl
}

/// The regions as bars, with the cuts between them.
fn map(text: &mut String, report: &PlacementReport<'_>, id: FunctionId, placement: &Placement) {
    let regions = &placement.regions;
    let most = regions.iter().map(|region| u64::from(region.ops)).max().unwrap_or(1).max(1);
    let bar = |ops: u64, mark: char| -> String {
        let length = (ops * BAR / most).clamp(1, BAR) as usize;
        std::iter::repeat_n(mark, length).collect()
    };
    let hidden = regions.len().saturating_sub(MOST_REGIONS);
    let (head, tail) = if hidden > 0 {
        (MOST_REGIONS / 2, regions.len() - MOST_REGIONS / 2)
    } else {
        (regions.len(), regions.len())
    };
    for (at, region) in regions.iter().enumerate() {
        if at == head && hidden > 0 {
            let _ = writeln!(text, "  … {} more", counted(tail - head, "region"));
        }
        if at >= head && at < tail {
            continue;
        }
        let _ = writeln!(
            text,
            "  on   {} region {} · {} · {}FLOP · {}B",
            bar(u64::from(region.ops), '█'),
            at + 1,
            counted(region.ops as usize, "op"),
            amount(region.flops),
            amount(region.bytes)
        );
        let Some(cut) = placement.cuts.get(at) else { continue };
        let _ = write!(
            text,
            "  off  {} {}",
            bar(cut.nodes.len() as u64, '░'),
            counted(cut.nodes.len(), "op")
        );
        if let Some(group) = cut.groups.first().and_then(|&g| placement.groups.get(g as usize)) {
            let more = if cut.groups.len() > 1 {
                format!(" (and {} more)", cut.groups.len() - 1)
            } else {
                String::new()
            };
            let _ = write!(text, " · {}{more}", cause(report, id, placement, group));
        }
        if let Some(bytes) = cut.crossing_bytes {
            let _ = write!(text, " · {}B cross", amount(bytes));
        }
        text.push('\n');
    }
}

/// Eligible ops that the planner's costs keep off the unit.
fn left_behind(
    text: &mut String,
    report: &PlacementReport<'_>,
    function: &Function,
    placement: &Placement,
) {
    if !by_cost(report.target) || placement.regions.is_empty() {
        return;
    }
    let of = |wanted: &dyn Fn(NodeId) -> bool| {
        function.node_ids().filter(|&id| function.is_work(id) && wanted(id)).count()
    };
    let left = of(&|id| {
        let placed = placement.node(id);
        placed.verdict.eligible == Some(true) && placed.predicted == Some(false)
    });
    let ties = of(&|id| placement.node(id).tie);
    let mut cut: Vec<NodeId> =
        placement.cuts.iter().flat_map(|cut| cut.nodes.iter().copied()).collect();
    cut.sort_unstable();
    let pulling = kinds(function, &|id| {
        let placed = placement.node(id);
        placed.is_interior() && cut.binary_search(&id).is_err()
    });
    if let Some((count, kinds)) = pulling {
        let _ = writeln!(text, "  not eligible, with too little on one side: {count} ({kinds})");
    }
    if left > 0 {
        let _ = writeln!(
            text,
            "  on the CPU though eligible: {} (too little work beside ops that cannot stay)",
            counted(left, "op")
        );
    }
    if ties > 0 {
        let _ = writeln!(text, "  either side costs the same: {}", counted(ties, "op"));
    }
}

/// Off-unit ops that cut nothing.
fn boundary(text: &mut String, function: &Function, placement: &Placement) {
    let Some((count, kinds)) = kinds(function, &|id| placement.node(id).is_boundary()) else {
        return;
    };
    let _ = writeln!(
        text,
        "  off the unit at the start or the end, cutting nothing: {count} ({kinds})"
    );
    if placement.eligible > 0 {
        let _ = writeln!(text, "    the host may do these before or after the graph");
    }
}

/// How many ops are so, and of which kinds: `3 ops`, `cast ×2, gather ×1`.
fn kinds(function: &Function, wanted: &dyn Fn(NodeId) -> bool) -> Option<(String, String)> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    let mut count = 0;
    for (id, node) in function.nodes() {
        if !function.is_work(id) || !wanted(id) {
            continue;
        }
        count += 1;
        match kinds.iter_mut().find(|(known, _)| *known == node.op.name()) {
            Some((_, n)) => *n += 1,
            None => kinds.push((node.op.name(), 1)),
        }
    }
    kinds.sort_by_key(|&(name, n)| (std::cmp::Reverse(n), name));
    let shown: Vec<String> = kinds.iter().take(6).map(|(name, n)| format!("{name} ×{n}")).collect();
    let more = if kinds.len() > 6 { ", …" } else { "" };
    (count > 0).then(|| (counted(count, "op"), shown.join(", ") + more))
}

fn ranking(text: &mut String, report: &PlacementReport<'_>, id: FunctionId, placement: &Placement) {
    let Some(last) = placement.what_if.last() else { return };
    let first = placement.regions.len();
    let _ = writeln!(
        text,
        "  fix {}: {first} regions → {}",
        if placement.what_if.len() == 1 {
            "this place".to_owned()
        } else {
            format!("these {} places", placement.what_if.len())
        },
        last.regions_after
    );
    for (at, step) in placement.what_if.iter().take(MOST_STEPS).enumerate() {
        let Some(group) = placement.groups.get(step.group as usize) else { continue };
        let _ = writeln!(
            text,
            "    {}. {} → {} · {} · {}",
            at + 1,
            step.regions_before,
            step.regions_after,
            cause(report, id, placement, group),
            counted(group.nodes.len(), "op")
        );
        let alternative = &placement.reason(group.reason).alternative;
        if let Some(line) = alternative.lines().next().filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "       {}", escape::text(line));
        }
    }
    if placement.what_if.len() > MOST_STEPS {
        let _ = writeln!(text, "    … {} more", placement.what_if.len() - MOST_STEPS);
    }
    if placement.what_if_skipped > 0 {
        let _ = writeln!(text, "    {} smaller groups were not tried", placement.what_if_skipped);
    }
    let _ = writeln!(text, "  a boundary: {BOUNDARY_COST}");
}

/// `ANE003 works on f32 · model.py:12`.
fn cause(
    report: &PlacementReport<'_>,
    id: FunctionId,
    placement: &Placement,
    group: &Group,
) -> String {
    let reason = placement.reason(group.reason);
    let mut text = String::new();
    if let Some(rule) = &reason.rule {
        let _ = write!(text, "{} ", escape::text(rule));
    }
    text.push_str(&escape::text(reason.text.lines().next().unwrap_or_default()));
    let function = report.program.function(id);
    let first = group.nodes.first().copied();
    match first.and_then(|node| (report.spot)(id, node)) {
        Some(spot) => {
            let place = location(&spot, report.folder);
            let _ = write!(text, " · {}:{}", escape::text(&place.file), place.line);
        }
        None => {
            if let Some(node) = first {
                let name = report.program.text(function.node(node).name);
                let _ = write!(text, " · {}", escape::text(name));
            }
        }
    }
    text
}

/// `1.25 G`, `640 `, `3.1 k`: three digits and a decimal prefix.
pub(super) fn amount(number: u64) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 1000.0 {
            let digits = if prefix.is_empty() || value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.digits$} {prefix}");
        }
        value /= 1000.0;
    }
    format!("{value:.0} E")
}

/// Why one node is where it is.
pub fn why_text(
    report: &PlacementReport<'_>,
    id: FunctionId,
    placement: &Placement,
    node: NodeId,
) -> String {
    let program = report.program;
    let function = program.function(id);
    let own = function.node(node);
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} ({}, {}) in {}",
        escape::text(program.text(own.name)),
        own.op,
        escape::text(program.text(own.spelling)),
        escape::text(program.text(function.name))
    );
    if own.kind != NodeKind::Op {
        let _ = writeln!(text, "  no op: nothing to place");
        return text;
    }
    if own.flags.contains(NodeFlags::CONSTANT_WORK) {
        let _ = writeln!(text, "  depends on no input: folded to a constant, not placed");
        return text;
    }
    let placed = placement.node(node);
    let unit = report.target.unit;
    let runtime = report.target.runtime;
    let answer = match placed.verdict.eligible {
        Some(true) => "eligible",
        Some(false) => "not eligible",
        None => "unknown whether eligible",
    };
    let _ = write!(text, "  {answer} for the {unit} through {runtime}");
    if own.flags.contains(NodeFlags::TRANSPARENT) {
        let _ = write!(text, " (changes the shape only: no work, never a cut)");
    }
    text.push('\n');
    match placement.why(node) {
        Some(reason) => why_reason(&mut text, reason),
        None => {
            let _ = writeln!(text, "  no row of the table and no rule speaks of it");
        }
    }
    let _ = write!(text, "  ");
    match placed.predicted {
        Some(true) => {
            let _ = write!(text, "predicted on the unit");
        }
        Some(false) => {
            let _ = write!(text, "predicted off the unit");
        }
        None => {
            let _ = write!(text, "no prediction");
        }
    }
    if placed.tie {
        let _ = write!(text, " (both sides cost the same)");
    }
    if let Some(region) = placed.region {
        let _ = write!(text, ", region {} of {}", region + 1, placement.regions.len());
    }
    if placed.at_edge {
        let _ = write!(text, ", at the edge of the function: never a cut");
    } else if placed.is_interior() {
        let fewer = placement.regions_added(function, &[node]);
        let _ = write!(
            text,
            ", between ops on the unit; without it alone {} fewer",
            counted(fewer as usize, "region")
        );
    } else if placed.is_boundary() {
        let side = if placed.on_before { "after" } else { "before" };
        let _ = write!(text, ", {side} all work on the unit: cuts nothing");
    }
    text.push('\n');
    if let Some(spot) = (report.spot)(id, node) {
        let place = location(&spot, report.folder);
        let column = place.column.map(|column| format!(":{column}")).unwrap_or_default();
        let _ = writeln!(text, "  at {}:{}{column}", escape::text(&place.file), place.line);
    }
    text
}

fn why_reason(text: &mut String, reason: &Reason) {
    if !reason.text.is_empty() {
        let _ = writeln!(text, "  because: {}", escape::lines(&reason.text));
    }
    let evidence = if reason.evidence.is_empty() {
        String::new()
    } else {
        format!(" ({})", reason.evidence.join(", "))
    };
    let _ = match &reason.rule {
        Some(rule) => writeln!(text, "  says: rule {}{evidence}", escape::text(rule)),
        None => writeln!(text, "  says: {}, row {}{evidence}", reason.table, reason.row),
    };
    if !reason.alternative.is_empty() {
        let _ = writeln!(text, "  instead: {}", escape::lines(&reason.alternative));
    }
    if !reason.note.is_empty() {
        let _ = writeln!(text, "  note: {}", reason.note);
    }
}

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
pub(super) struct JsonTarget {
    unit: &'static str,
    runtime: &'static str,
    chip: &'static str,
    os: String,
}

impl JsonTarget {
    pub(super) fn of(target: Target) -> JsonTarget {
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
                    location: main.and_then(|group| group.nodes.first()).and_then(|&n| place(n)),
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
                    location: group.nodes.first().and_then(|&node| place(node)),
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

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_have_three_digits() {
        assert_eq!(amount(0), "0 ");
        assert_eq!(amount(999), "999 ");
        assert_eq!(amount(1_250), "1.25 k");
        assert_eq!(amount(75_497_472), "75.5 M");
        assert_eq!(amount(24_574_000_000), "24.6 G");
    }
}
