//! The states and inputs that hold keys and values of earlier steps, and which axis counts positions;
//! records `kv-layout`.
//!
//! From the keys and values of every attention the walk goes up to the join with the past, or to the
//! state; the axis that is joined (or written in part) is the sequence, and it is followed back to the
//! holder through movement that tells where it goes.

use rustc_hash::FxHashSet;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, NodeId, NodeKind, Op, ValueId};

/// Most values looked at above one key.
const MOST: usize = 128;

/// Goes up from a value whose sequence is `axis` to the input or state that it is part of; the axis
/// there, counted from the end.
fn holder(view: &View<'_>, mut value: ValueId, axis: usize) -> Option<(NodeId, ValueId, i64)> {
    let extent = view.extent(value, axis);
    for _ in 0..32 {
        let node = view.producer(value);
        match view.function.node(node).kind {
            NodeKind::Input | NodeKind::State => {
                let dims = view.dims(value)?;
                let rank = dims.len();
                // The only axis of that extent; of several the one as far from the end.
                let found: Vec<usize> = (0..rank)
                    .filter(|&at| extent.is_some() && dims[at].value() == extent)
                    .collect();
                let at = match found.as_slice() {
                    [only] => *only,
                    _ => return None,
                };
                return Some((node, value, at as i64 - rank as i64));
            }
            NodeKind::Constant(_) | NodeKind::Output => return None,
            NodeKind::Op => {}
        }
        let op = view.op(node);
        let passes = view.is_transparent(node)
            || matches!(op, Op::STATE_READ | Op::STATE_WRITE | Op::SLICE_UPDATE | Op::INDEX_PUT)
            || matches!(op.category(), Category::Movement if !matches!(op, Op::CONCAT | Op::STACK))
            || op == Op::CAST;
        if !passes {
            return None;
        }
        value = match op {
            Op::STATE_READ | Op::STATE_WRITE => {
                view.operand(node, view.words.state).or_else(|| view.input(node))?
            }
            _ => view.input(node)?,
        };
    }
    None
}

/// The join with the past above a key or value, or the read of a cache: the past, and its sequence
/// axis.
fn past(view: &View<'_>, start: ValueId, sequence: Option<usize>) -> Vec<(ValueId, usize)> {
    let mut found = Vec::new();
    let mut queue = std::collections::VecDeque::from([start]);
    let mut seen = FxHashSet::default();
    if let Some(axis) = sequence {
        found.push((start, axis));
    }
    while let Some(value) = queue.pop_front() {
        if seen.len() >= MOST || !seen.insert(value) || view.is_fixed(value) {
            continue;
        }
        let node = view.producer(value);
        if !view.is_op(node) {
            continue;
        }
        let op = view.op(node);
        if op == Op::CONCAT
            && let Some(axis) = view.axis(node)
        {
            found.extend(view.operands(node).map(|operand| (operand, axis)));
        }
        let goes_on = view.is_transparent(node)
            || matches!(op.category(), Category::Movement | Category::Conversion)
            || matches!(op, Op::MUL | Op::ADD | Op::SUB | Op::NEG)
            || matches!(op.category(), Category::State);
        if goes_on {
            queue.extend(view.operands(node));
        }
    }
    found
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    // Only a function that hands keys on has a cache.
    if view.facts.records(view.id, "kv-cache").is_empty() {
        return records;
    }
    let mut seen = FxHashSet::default();
    for attention in view.facts.attentions(view.id) {
        for (role, operand) in [("key", attention.key), ("value", attention.value)] {
            for (value, axis) in past(view, operand.value, operand.sequence) {
                let Some((node, held, from_end)) = holder(view, value, axis) else { continue };
                let rank = view.rank(held).unwrap_or(0);
                if rank < 3 || !seen.insert(node) {
                    continue;
                }
                let layout = match (rank, from_end) {
                    (_, -1) => "sequence-last",
                    (_, -2) => "sequence-before-last",
                    _ => "other",
                };
                records.push(Record {
                    anchor: node,
                    fields: vec![
                        ("holder", Field::Node(node)),
                        ("role", Field::Text(role)),
                        ("layout", Field::Text(layout)),
                        ("rank", Field::Int(rank as i64)),
                        ("sequence-axis", Field::Int(from_end + rank as i64)),
                    ],
                });
            }
        }
    }
    records.sort_by_key(|record| record.anchor);
    records
}
