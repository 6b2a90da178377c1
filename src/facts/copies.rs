//! Moves of the last axis, each a copy of the whole tensor, and pairs of moves or casts that undo each
//! other; records `copy`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{DType, NodeId, NodeKind, Op, ValueId};

/// Static extents other than 1, with their axes; a symbol counts as an extent of its own.
fn long_axes(view: &View<'_>, value: ValueId) -> Option<Vec<(usize, Option<u64>)>> {
    let dims = view.dims(value)?;
    Some(
        dims.iter()
            .enumerate()
            .filter(|(_, dim)| dim.value() != Some(1))
            .map(|(axis, dim)| (axis, dim.value()))
            .collect(),
    )
}

/// Whether a transpose puts another axis last; axes of extent 1 do not count.
fn moves_last(view: &View<'_>, node: NodeId) -> Option<bool> {
    let long = long_axes(view, view.input(node)?)?;
    let permutation = view.permutation(node)?;
    let before = long.last()?.0;
    let after =
        *permutation.iter().rev().find(|axis| long.iter().any(|(long, _)| long == *axis))?;
    Some(before != after)
}

/// Whether a reshape cuts or joins the last axis.
fn reshapes_last(view: &View<'_>, node: NodeId) -> Option<bool> {
    let before = long_axes(view, view.input(node)?)?;
    let after = long_axes(view, view.function.result(node)?)?;
    let ((_, before), (_, after)) = (before.last()?, after.last()?);
    Some(before.as_ref()? != after.as_ref()?)
}

/// Whether a value is used at all by something that is no view on the way to an output, and is not
/// just an input seen anew.
fn is_interior(view: &View<'_>, node: NodeId) -> bool {
    let Some(mut value) = view.input(node) else { return false };
    for _ in 0..16 {
        let producer = view.producer(value);
        match view.function.node(producer).kind {
            NodeKind::Op => {}
            _ => return false,
        }
        let passes = view.is_transparent(producer)
            || matches!(view.op(producer), Op::CAST | Op::STATE_READ | Op::TRANSPOSE);
        match view.input(producer) {
            Some(input) if passes => value = input,
            _ => break,
        }
    }
    let mut stack: Vec<ValueId> = view.function.result(node).into_iter().collect();
    for _ in 0..32 {
        let Some(value) = stack.pop() else { return false };
        for &(user, _) in view.uses.of_value(value).iter().take(16) {
            if view.function.node(user).kind == NodeKind::Output {
                continue;
            }
            let passes = view.is_transparent(user)
                || matches!(view.op(user), Op::CAST | Op::STATE_WRITE | Op::TRANSPOSE);
            match view.function.result(user) {
                Some(result) if passes => stack.push(result),
                _ => return true,
            }
        }
    }
    false
}

/// The move that this one undoes: a transpose whose permutation, or a cast whose dtype, it takes back,
/// with nothing but views of the same shape in between.
fn undoes(view: &View<'_>, node: NodeId) -> Option<NodeId> {
    let before = view.producer(view.input(node)?);
    if view.op(before) != view.op(node) || !view.is_op(before) {
        return None;
    }
    match view.op(node) {
        Op::TRANSPOSE => {
            let (first, second) = (view.permutation(before)?, view.permutation(node)?);
            let identity = second
                .iter()
                .enumerate()
                .all(|(at, &axis)| first.get(axis).is_some_and(|&from| from == at));
            identity.then_some(before)
        }
        Op::CAST => {
            let implicit = crate::graph::NodeFlags::IMPLICIT;
            if view.has_flag(before, implicit) || view.has_flag(node, implicit) {
                return None;
            }
            let first = view.dtype(view.input(before)?);
            let middle = view.dtype(view.function.result(before)?);
            let last = view.dtype(view.function.result(node)?);
            // The other way round the cast in the middle rounds, which may be meant.
            let widens = matches!(
                (first, middle),
                (DType::F16, DType::F32 | DType::F64) | (DType::BF16, DType::F32)
            );
            (widens && first == last).then_some(before)
        }
        _ => None,
    }
}

/// Moves that bring queries, keys and values into place, and the result of an attention back: up from
/// its products through views, cuts and joins, and down from the product with the values.
fn moves_around_attention(view: &View<'_>) -> Vec<NodeId> {
    let moves = |node: NodeId| view.op(node) == Op::TRANSPOSE || view.op(node) == Op::RESHAPE;
    let passes = |node: NodeId| {
        view.is_transparent(node)
            || matches!(
                view.op(node),
                Op::TRANSPOSE
                    | Op::SPLIT
                    | Op::SLICE
                    | Op::SELECT
                    | Op::UNBIND
                    | Op::CONCAT
                    | Op::STACK
                    | Op::EXPAND
                    | Op::TILE
                    | Op::CAST
                    | Op::MUL
                    | Op::STATE_READ
            )
    };
    let mut found = Vec::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for attention in view.facts.attentions(view.id) {
        let products = [attention.product, Some(attention.output)];
        let mut stack = vec![attention.key.value, attention.value.value, attention.query.value];
        stack.extend(products.into_iter().flatten().flat_map(|node| view.operands(node)));
        for _ in 0..256 {
            let Some(value) = stack.pop() else { break };
            let node = view.producer(value);
            if !view.is_op(node) || view.uses.is_fixed(node) || !passes(node) || !seen.insert(node)
            {
                continue;
            }
            if moves(node) {
                found.push(node);
            }
            stack.extend(view.operands(node));
        }
        let mut stack: Vec<ValueId> = view.function.result(attention.output).into_iter().collect();
        stack.extend(attention.product.and_then(|node| view.function.result(node)));
        for _ in 0..64 {
            let Some(value) = stack.pop() else { break };
            for &(user, _) in view.uses.of_value(value).iter().take(16) {
                if view.is_op(user) && passes(user) && view.op(user) != Op::MUL && seen.insert(user)
                {
                    if moves(user) {
                        found.push(user);
                    }
                    stack.extend(view.function.result(user));
                }
            }
        }
    }
    found
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    let mut key_moves = moves_around_attention(view);
    key_moves.sort_unstable();
    key_moves.dedup();
    for node in view.function.node_ids() {
        if !view.is_op(node) || view.uses.is_fixed(node) {
            continue;
        }
        let op = view.op(node);
        let partner = undoes(view, node);
        let kind = match op {
            Op::TRANSPOSE if partner.is_some() => "transposes-cancel",
            Op::CAST if partner.is_some() => "casts-cancel",
            Op::TRANSPOSE if moves_last(view, node) == Some(true) => "transpose",
            Op::RESHAPE | Op::FLATTEN if reshapes_last(view, node) == Some(true) => "reshape",
            _ => continue,
        };
        let Some(result) = view.function.result(node) else { continue };
        let mut fields = vec![
            ("kind", Field::Text(kind)),
            ("node", Field::Node(node)),
            ("interior", Field::Bool(is_interior(view, node))),
            (
                "for-attention",
                Field::Bool(
                    [Some(node), partner]
                        .into_iter()
                        .flatten()
                        .any(|node| key_moves.binary_search(&node).is_ok()),
                ),
            ),
        ];
        fields.extend(partner.map(|partner| ("partner", Field::Node(partner))));
        if let Some(elements) = view.elements(result) {
            let bytes = view.dtype(result).bytes(elements);
            fields.push(("bytes", Field::Int(i64::try_from(bytes).unwrap_or(i64::MAX))));
        }
        records.push(Record { anchor: node, fields });
    }
    records
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, ints};

    #[test]
    fn a_move_of_the_last_axis_and_one_that_is_taken_back() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[1, 8, 1, 16]);
        let y = g.op(Op::RELU, &[x], &[], DType::F16, &[1, 8, 1, 16]);
        // Only an axis of one moves: no copy.
        let view = [("permutation", ints(&[0, 2, 1, 3]))];
        let y = g.op(Op::TRANSPOSE, &[y], &view, DType::F16, &[1, 1, 8, 16]);
        let y = g.op(Op::RELU, &[y], &[], DType::F16, &[1, 1, 8, 16]);
        let swap = [("permutation", ints(&[0, 1, 3, 2]))];
        let y = g.op(Op::TRANSPOSE, &[y], &swap, DType::F16, &[1, 1, 16, 8]);
        let y = g.op(Op::TRANSPOSE, &[y], &swap, DType::F16, &[1, 1, 8, 16]);
        let y = g.op(Op::RELU, &[y], &[], DType::F16, &[1, 1, 8, 16]);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let records = facts.records(MAIN, "copy");
        let read =
            |name| records.iter().map(|r| r.field(name).unwrap().clone()).collect::<Vec<_>>();
        assert_eq!(read("kind"), [Field::Text("transpose"), Field::Text("transposes-cancel")]);
        assert_eq!(read("interior"), [Field::Bool(true), Field::Bool(true)]);
    }
}
