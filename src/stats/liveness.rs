//! The most activation memory that lives at once: ops in program order, every result in memory of its
//! own from the op that makes it to the last that uses it. Shape changes share the memory of what they
//! read; constants and states are not counted; nothing is reused in place.

use super::bytes;
use crate::facts::is_constant;
use crate::graph::{Category, Function, NodeFlags, NodeId, NodeKind, Program, ValueId};

/// The peak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes alive.
    pub bytes: u64,
    /// The first op at which so much is alive.
    pub node: Option<NodeId>,
    /// How many values are alive there.
    pub values: u32,
    /// A size was not static: there may be more.
    pub partial: bool,
}

/// The peak of a function.
pub fn peak(program: &Program, function: &Function) -> Peak {
    let mut peak = Peak::default();
    // The value whose memory another one shares; itself for most.
    let mut root: Vec<u32> = (0..function.value_count() as u32).collect();
    let mut last_use: Vec<Option<NodeId>> = vec![None; function.value_count()];
    let mut counted = vec![false; function.value_count()];
    for id in function.node_ids() {
        let node = function.node(id);
        for operand in function.operands(id) {
            last_use[root[operand.value.0 as usize] as usize] = Some(id);
        }
        for value in function.results(id) {
            let shares = node.kind == NodeKind::Op
                && (node.flags.contains(NodeFlags::TRANSPARENT)
                    || node.op.category() == Category::State);
            let source = function.operands(id).first().filter(|_| shares);
            match source {
                Some(source) => root[value.0 as usize] = root[source.value.0 as usize],
                None => {
                    counted[value.0 as usize] =
                        !is_constant(node) && matches!(node.kind, NodeKind::Op | NodeKind::Input);
                }
            }
        }
    }
    // Inputs are there from the start, wherever the file lists them.
    let mut alive = 0u64;
    let mut values = 0u32;
    let size = |value: ValueId| bytes(program, function, value);
    for value in function.inputs().flat_map(|id| function.results(id)) {
        let own = size(value);
        peak.partial |= own.is_none();
        alive = alive.saturating_add(own.unwrap_or(0));
        values += 1;
    }
    let mut ending: Vec<Vec<ValueId>> = vec![Vec::new(); function.len()];
    for (at, last) in last_use.iter().enumerate() {
        if let (Some(last), true) = (last, counted[at]) {
            ending[last.0 as usize].push(ValueId(at as u32));
        }
    }
    for id in function.node_ids() {
        let node = function.node(id);
        if node.kind == NodeKind::Op {
            for value in function.results(id).filter(|value| counted[value.0 as usize]) {
                let own = size(value);
                peak.partial |= own.is_none();
                alive = alive.saturating_add(own.unwrap_or(0));
                values += 1;
            }
            if alive > peak.bytes {
                peak = Peak { bytes: alive, node: Some(id), values, ..peak };
            }
            for value in function
                .results(id)
                .filter(|value| counted[value.0 as usize] && last_use[value.0 as usize].is_none())
            {
                alive = alive.saturating_sub(size(value).unwrap_or(0));
                values = values.saturating_sub(1);
            }
        }
        // What the caller gets stays.
        if node.kind == NodeKind::Output {
            continue;
        }
        for &value in &ending[id.0 as usize] {
            alive = alive.saturating_sub(size(value).unwrap_or(0));
            values = values.saturating_sub(1);
        }
    }
    peak
}
