//! The map of a function for people: regions as bars in program order, what lies at each cut, the ranking.

use std::fmt::Write;

use super::super::confirm::confirmed_text;
use super::super::json::location;
use super::super::verdict::{Words, counted};
use super::super::{escape, os_text};
use super::{PlacementReport, amount, by_cost};
use crate::graph::{Function, FunctionId, NodeId};
use crate::placement::{BOUNDARY_COST, Group, Placement};

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
    let words = Words::of(&report.target);
    let _ = write!(text, "\n{name}: ");
    let Some(percent) = percent else {
        let _ = writeln!(text, "no ops");
        return;
    };
    let _ = write!(
        text,
        "{percent} % of {} {} · {}",
        counted(placement.ops as usize, "op"),
        words.eligible,
        counted(placement.regions.len(), words.region)
    );
    if placement.unknown > 0 {
        let _ = write!(text, ", {} unknown", counted(placement.unknown as usize, "op"));
    }
    if placement.regions_program_order as usize != placement.regions.len()
        && !by_cost(report.target)
        && words.region == "region"
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
        let at_least = if region.partial { "at least " } else { "" };
        let _ = writeln!(
            text,
            "  on   {} region {} · {} · {at_least}{}FLOP · {at_least}{}B",
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
        if step.regions_before == step.regions_after {
            text.truncate(text.trim_end_matches('\n').len());
            let _ = writeln!(text, " · gains only together with the next");
        }
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
    match (report.spot)(id, group.place) {
        Some(spot) => {
            let place = location(&spot, report.folder);
            let _ = write!(text, " · {}:{}", escape::text(&place.file), place.line);
        }
        None => {
            let name = report.program.text(function.node(group.place).name);
            if !name.is_empty() {
                let _ = write!(text, " · {}", escape::text(name));
            }
        }
    }
    text
}
