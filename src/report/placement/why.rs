//! Why one op is where it is.

use std::fmt::Write;

use super::super::escape;
use super::super::json::location;
use super::super::verdict::counted;
use super::PlacementReport;
use crate::graph::{FunctionId, NodeFlags, NodeId, NodeKind};
use crate::placement::{Placement, Reason};

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
            let _ = write!(text, "no prediction of its own: it goes with its neighbours");
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
        // One line of source often makes one op a layer: the fix frees them together.
        let group = placement.groups.iter().find(|group| group.nodes.contains(&node));
        if let Some(group) = group.filter(|group| group.nodes.len() > 1) {
            let fewer = placement.regions_added(function, &group.nodes);
            let _ = write!(
                text,
                ", without all {} of the same cause and line {} fewer",
                counted(group.nodes.len(), "op"),
                counted(fewer as usize, "region")
            );
        }
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
