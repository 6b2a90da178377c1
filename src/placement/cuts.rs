//! What lies between one region and the next: the off-unit ops, their groups, and what crosses.

use super::{Cut, Placement};
use crate::graph::{Function, NodeFlags, NodeId, Program, ValueId};

/// Fills [`Placement::cuts`].
pub(super) fn fill(
    program: &Program,
    function: &Function,
    gap: &[Option<u32>],
    group_of: &[u32],
    placement: &mut Placement,
) {
    let regions = placement.regions.len() as u32;
    if regions < 2 {
        return;
    }
    let mut cuts: Vec<Cut> = (0..regions - 1)
        .map(|after_region| Cut {
            after_region,
            nodes: Vec::new(),
            groups: Vec::new(),
            crossing: Vec::new(),
            crossing_bytes: Some(0),
        })
        .collect();
    for id in function.node_ids() {
        let at = id.0 as usize;
        let placed = placement.node(id);
        // What only leads out of the graph is at no cut. Eligible ops may lie in a gap too: a planner
        // pulls them off when too little work is left around them.
        if !placed.on_before || !placed.on_after {
            continue;
        }
        let Some(cut) = gap[at].and_then(|after| cuts.get_mut(after as usize)) else { continue };
        if placed.is_interior() {
            cut.nodes.push(id);
        }
        let on =
            |node: NodeId| placement.node(node).predicted == Some(true) && function.is_work(node);
        for operand in function.operands(id) {
            if source_is(function, operand.value, &on) {
                cut.crossing.push(operand.value);
            }
        }
        for value in function.results(id) {
            if used_by(function, value, &on) {
                cut.crossing.push(value);
            }
        }
    }
    for cut in &mut cuts {
        cut.crossing.sort_unstable();
        cut.crossing.dedup();
        cut.crossing_bytes = cut.crossing.iter().try_fold(0u64, |sum, &value| {
            let value = function.value(value);
            let elements = program.shapes.get(value.shape).elements()?;
            Some(sum.saturating_add(value.dtype.bytes(elements)))
        });
        let mut groups: Vec<u32> = cut.nodes.iter().map(|node| group_of[node.0 as usize]).collect();
        groups.sort_unstable();
        let mut counts: Vec<(u32, usize)> =
            groups.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect();
        counts.sort_by_key(|&(group, count)| (std::cmp::Reverse(count), group));
        cut.groups = counts.into_iter().map(|(group, _)| group).collect();
    }
    placement.cuts = cuts;
}

/// Whether a value comes from such a node, looking through transparent ops.
fn source_is(function: &Function, mut value: ValueId, wanted: &dyn Fn(NodeId) -> bool) -> bool {
    for _ in 0..64 {
        let node = function.producer(value);
        if wanted(node) {
            return true;
        }
        if !function.node(node).flags.contains(NodeFlags::TRANSPARENT) {
            return false;
        }
        match function.operands(node).first() {
            Some(operand) => value = operand.value,
            None => return false,
        }
    }
    false
}

/// Whether such a node uses a value, looking through transparent ops.
fn used_by(function: &Function, value: ValueId, wanted: &dyn Fn(NodeId) -> bool) -> bool {
    let mut open = vec![value];
    let mut looked = 0;
    while let Some(value) = open.pop() {
        for (user, _) in function.uses(value) {
            looked += 1;
            if wanted(user) {
                return true;
            }
            if looked < 64 && function.node(user).flags.contains(NodeFlags::TRANSPARENT) {
                open.extend(function.result(user));
            }
        }
    }
    false
}
