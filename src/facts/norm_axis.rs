//! Layer and RMS norms, whole or written out, and what they run over: channels or tokens; records
//! `norm-axis`.
//!
//! Which axis counts channels is told by the nearest projections above and below: a convolution's
//! second axis, a matrix product's last.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, NodeId, Op, ValueId};

/// Whether an op gives every element its place.
fn keeps_axes(view: &View<'_>, node: NodeId, rank: usize) -> bool {
    let op = view.op(node);
    let category = op.category();
    let same = view.function.result(node).and_then(|value| view.rank(value)) == Some(rank);
    same && (matches!(
        category,
        Category::Elementwise | Category::Activation | Category::Normalization
    ) || op == Op::CAST
        || op.is_transparent()
            && view.input(node).is_some_and(|input| {
                view.function
                    .result(node)
                    .is_some_and(|result| view.dims(input) == view.dims(result))
            }))
}

/// The channel axis that a projection gives or asks for at a value of this rank.
fn channel_axis(view: &View<'_>, node: NodeId, rank: usize) -> Option<(usize, bool)> {
    match view.op(node) {
        Op::CONV | Op::CONV_TRANSPOSE => Some((1, true)),
        Op::LINEAR => Some((rank.checked_sub(1)?, false)),
        Op::MATMUL | Op::ADDMM => {
            let b = view.operand(node, view.words.b)?;
            view.is_fixed(b).then(|| rank.checked_sub(1).map(|last| (last, false))).flatten()
        }
        _ => None,
    }
}

/// The nearest projection above a value.
fn above(view: &View<'_>, value: ValueId, rank: usize) -> Option<(usize, bool)> {
    let mut stack = vec![value];
    for _ in 0..24 {
        let value = stack.pop()?;
        if view.rank(value) != Some(rank) {
            continue;
        }
        let node = view.producer(value);
        if let Some(found) = channel_axis(view, node, rank) {
            return Some(found);
        }
        if keeps_axes(view, node, rank) {
            stack.extend(view.operands(node).filter(|&operand| !view.is_fixed(operand)));
        }
    }
    None
}

/// The nearest projection below a value.
fn below(view: &View<'_>, value: ValueId, rank: usize) -> Option<(usize, bool)> {
    let mut queue = std::collections::VecDeque::from([value]);
    for _ in 0..24 {
        let value = queue.pop_front()?;
        for &(user, slot) in view.uses.of_value(value).iter().take(16) {
            let first = slot == 0 || view.op(user) == Op::ADDMM;
            if first && let Some(found) = channel_axis(view, user, rank) {
                return Some(found);
            }
            if keeps_axes(view, user, rank) {
                queue.extend(view.function.result(user));
            }
        }
    }
    None
}

/// What a norm over `axes` of `input` runs over.
fn over(view: &View<'_>, input: ValueId, output: ValueId, axes: &[usize]) -> &'static str {
    let Some(dims) = view.dims(input) else { return "unknown" };
    let rank = dims.len();
    let found = (above(view, input, rank), below(view, output, rank));
    let (channel, conv) = match found {
        (Some(a), Some(b)) if a.0 == b.0 => a,
        (Some(a), None) => a,
        (None, Some(b)) => b,
        _ => return "unknown",
    };
    let long: Vec<usize> = axes
        .iter()
        .copied()
        .filter(|&axis| dims.get(axis).is_some_and(|dim| dim.value() != Some(1)))
        .collect();
    if long.contains(&channel) {
        return "channels";
    }
    let others = (1..rank).filter(|&axis| axis != channel && dims[axis].value() != Some(1)).count();
    match long.as_slice() {
        // Over all of an image, channel by channel: an instance norm.
        [_] if conv && (rank == 3 || others > 1) => "instance",
        [_, _, ..] if conv && long.len() == others => "instance",
        [_] => "tokens",
        _ => "unknown",
    }
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        if !matches!(view.op(node), Op::LAYER_NORM | Op::RMS_NORM) {
            continue;
        }
        let (Some(input), Some(output)) = (view.input(node), view.function.result(node)) else {
            continue;
        };
        let Some(axes) = view.axes(node) else { continue };
        records.push(Record {
            anchor: node,
            fields: vec![
                ("node", Field::Node(node)),
                ("form", Field::Text("whole")),
                ("over", Field::Text(over(view, input, output, &axes))),
            ],
        });
    }
    for norm in view.facts.records(view.id, "norm") {
        let (Some(Field::Value(input)), Some(Field::Value(output)), Some(Field::Int(axis))) =
            (norm.field("input"), norm.field("output"), norm.field("axis"))
        else {
            continue;
        };
        if norm.field("kind") == Some(&Field::Text("l2")) {
            continue;
        }
        let Ok(axis) = usize::try_from(*axis) else { continue };
        records.push(Record {
            anchor: norm.anchor,
            fields: vec![
                ("node", Field::Node(norm.anchor)),
                ("form", Field::Text("written-out")),
                ("over", Field::Text(over(view, *input, *output, &[axis]))),
            ],
        });
    }
    records.sort_by_key(|record| record.anchor);
    records
}
