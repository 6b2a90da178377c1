//! What lies above the operands of an attention: scale, repeated heads, the split into heads, the
//! projection.

use super::attention::Operand;
use super::axes;
use super::view::View;
use crate::graph::{Category, NodeId, Op, ValueId};

/// Most steps upward from one operand.
const MOST_STEPS: usize = 96;

/// Whether a value is a scale: one fixed element.
pub(super) fn is_scale(view: &View<'_>, value: ValueId) -> bool {
    view.is_scalar(value)
}

/// One step up the data path: the operand that carries it, or `None` at its source (a projection,
/// an input).
fn up(view: &View<'_>, value: ValueId) -> Option<ValueId> {
    let node = view.producer(value);
    if !view.is_op(node) {
        return None;
    }
    if let Some(rope) = view.facts.rope_of(view.id, value) {
        return Some(rope.pre);
    }
    let op = view.op(node);
    match op {
        Op::CONCAT | Op::STACK => {
            // Past and new, or halves: the last one is the new one.
            view.operands(node).filter(|&operand| !view.is_fixed(operand)).last()
        }
        Op::SLICE_UPDATE
        | Op::INDEX_PUT
        | Op::SCATTER
        | Op::SCATTER_ELEMENTS
        | Op::SCATTER_ND
        | Op::STATE_WRITE => view.written(node),
        Op::LINEAR | Op::CONV | Op::MATMUL | Op::ADDMM | Op::EINSUM => None,
        Op::STATE_READ => view
            .operand(node, view.words.state)
            .filter(|&state| view.op(view.producer(state)) == Op::STATE_WRITE),
        _ => match op.category() {
            Category::Elementwise | Category::Logic => {
                view.operands(node).find(|&operand| !view.is_fixed(operand))
            }
            Category::Transparent
            | Category::Movement
            | Category::Normalization
            | Category::Conversion
            | Category::Activation => view.input(node),
            _ => None,
        },
    }
}

/// The product with a constant scale above an operand, before any projection, norm or rotation.
pub(super) fn scale_above(view: &View<'_>, value: ValueId) -> Option<NodeId> {
    let mut value = value;
    for _ in 0..24 {
        let node = view.producer(value);
        let op = view.op(node);
        if matches!(op, Op::MUL | Op::DIV) {
            let (a, b) = view.pair(node)?;
            if is_scale(view, a) || is_scale(view, b) {
                return Some(node);
            }
            return None;
        }
        if view.facts.rope_of(view.id, value).is_some()
            || op.category() == Category::Movement
            || op.category() == Category::Transparent
            || op == Op::CAST
        {
            value = up(view, value)?;
        } else {
            return None;
        }
    }
    None
}

/// The projection that an operand comes from: the nearest linear, conv or product with a constant.
pub(super) fn projection(view: &View<'_>, value: ValueId) -> Option<NodeId> {
    let mut value = value;
    for _ in 0..MOST_STEPS {
        let node = view.producer(value);
        if matches!(view.op(node), Op::LINEAR | Op::CONV) {
            return Some(node);
        }
        if matches!(view.op(node), Op::MATMUL | Op::ADDMM | Op::EINSUM) {
            return view.operands(node).any(|operand| view.is_fixed(operand)).then_some(node);
        }
        value = up(view, value)?;
    }
    None
}

/// The op that repeats heads for grouped queries.
pub(super) fn repeat(view: &View<'_>, value: ValueId) -> Option<NodeId> {
    let mut value = value;
    for _ in 0..24 {
        let node = view.producer(value);
        let input = view.input(node)?;
        let grows =
            matches!(
                (view.elements(input), view.elements(value)),
                (Some(before), Some(after)) if after > before
            ) || !view.dims(value).is_some_and(|dims| dims.iter().all(|dim| dim.value().is_some()));
        match view.op(node) {
            Op::EXPAND | Op::TILE if grows => return Some(node),
            Op::CONCAT | Op::STACK => {
                let first = view.plain(input);
                return (view.operands(node).len() > 1
                    && view.operands(node).all(|operand| view.plain(operand) == first))
                .then_some(node);
            }
            op if matches!(op.category(), Category::Transparent | Category::Movement)
                || op == Op::CAST =>
            {
                value = input;
            }
            _ => return None,
        }
    }
    None
}

/// The value whose split or slices gave one head its queries: equal for all heads of one attention.
/// A split along the sequence (chunked queries) is none.
pub(super) fn head_root(view: &View<'_>, query: Operand) -> Option<ValueId> {
    let (mut value, mut sequence) = (query.value, query.sequence);
    for _ in 0..MOST_STEPS {
        let node = view.producer(value);
        let cut = match view.op(node) {
            Op::SPLIT | Op::UNBIND | Op::SELECT => view.axis(node),
            Op::SLICE => view.cuts(node).and_then(|cuts| {
                let input = view.input(node)?;
                cuts.iter()
                    .find(|cut| {
                        let whole = view.extent(input, cut.axis).map(|n| n as i64);
                        cut.begin != Some(0) || cut.end.is_none() || cut.end != whole
                    })
                    .map(|cut| cut.axis)
            }),
            _ => None,
        };
        let next = up(view, value)?;
        if cut.is_some() && cut != sequence {
            return Some(next);
        }
        // A rotation keeps the axes; of every other op the step tells.
        if view.facts.rope_of(view.id, value).is_none() {
            let slot = view.operands(node).position(|operand| operand == next)?;
            sequence = sequence.and_then(|axis| axes::back(view, node, slot, value, axis));
        }
        value = next;
    }
    None
}
