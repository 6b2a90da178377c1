//! Norms that are written out in ops: layer, RMS and L2; records `norm`.
//!
//! Each is found from the root of its statistic: the `rsqrt`, `sqrt` or power of a half above which a
//! mean (or sum) of squares lies, and below which the normalised value is multiplied or divided by
//! it. Norms that the format keeps whole are ops of their own and no records here.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, DType, NodeId, Op, ValueId};

/// A statistic over one or more axes: where it comes from and over what.
struct Statistic {
    /// What is squared.
    of: ValueId,
    /// The reduction of the squares.
    reduction: NodeId,
    /// The op that squares; the reduction itself where that squares too.
    square: NodeId,
    axes: Vec<usize>,
    /// Whether a mean was taken off inside (a variance).
    centred: bool,
    sum: bool,
    nodes: Vec<NodeId>,
}

/// An operand of a binary op beside a given one.
fn other(view: &View<'_>, node: NodeId, value: ValueId) -> Option<ValueId> {
    let (a, b) = view.pair(node)?;
    if a == value { Some(b) } else { (b == value).then_some(a) }
}

/// What a node squares: `x·x`, `square(x)`, `pow(x, 2)`.
fn squared(view: &View<'_>, value: ValueId) -> Option<(ValueId, NodeId)> {
    let node = view.producer(view.plain(value));
    match view.op(node) {
        Op::SQUARE => Some((view.input(node)?, node)),
        Op::MUL => {
            let (a, b) = view.pair(node)?;
            (view.plain(a) == view.plain(b)).then_some((a, node))
        }
        Op::POW => {
            let (a, b) = view.pair(node)?;
            (view.number(b) == Some(2.0)).then_some((a, node))
        }
        _ => None,
    }
}

/// Reads a value as mean of squares, sum of squares, or variance.
fn statistic(view: &View<'_>, value: ValueId) -> Option<Statistic> {
    let node = view.producer(view.plain(value));
    let axes = || view.axes(node);
    match view.op(node) {
        Op::REDUCE_MEAN | Op::REDUCE_SUM => {
            let (of, square) = squared(view, view.input(node)?)?;
            Some(Statistic {
                of,
                reduction: node,
                square,
                axes: axes()?,
                centred: false,
                sum: view.op(node) == Op::REDUCE_SUM,
                nodes: vec![square, node],
            })
        }
        Op::REDUCE_SUM_SQUARE => Some(Statistic {
            of: view.input(node)?,
            reduction: node,
            square: node,
            axes: axes()?,
            centred: false,
            sum: true,
            nodes: vec![node],
        }),
        Op::REDUCE_VAR | Op::REDUCE_VAR_MEAN => Some(Statistic {
            of: view.input(node)?,
            reduction: node,
            square: node,
            axes: axes()?,
            centred: true,
            sum: false,
            nodes: vec![node],
        }),
        // E[x²] − E[x]².
        Op::SUB => {
            let (a, b) = view.pair(node)?;
            let mut inner = statistic(view, a).filter(|inner| !inner.centred)?;
            let (mean, square) = squared(view, b)?;
            let mean = view.producer(view.plain(mean));
            if view.op(mean) != Op::REDUCE_MEAN
                || view.plain(view.input(mean)?) != view.plain(inner.of)
            {
                return None;
            }
            inner.centred = true;
            inner.nodes.extend([mean, square, node]);
            Some(inner)
        }
        _ => None,
    }
}

/// `x − mean(x)`: the value, and the nodes.
fn centred(view: &View<'_>, value: ValueId) -> Option<(ValueId, NodeId, NodeId)> {
    let node = view.producer(view.plain(value));
    if view.op(node) != Op::SUB {
        return None;
    }
    let (a, b) = view.pair(node)?;
    let mean = view.producer(view.plain(b));
    let of_a = matches!(view.op(mean), Op::REDUCE_MEAN | Op::REDUCE_VAR_MEAN)
        && view.plain(view.input(mean)?) == view.plain(a);
    of_a.then_some((a, node, mean))
}

/// The root of a statistic: what is under it, whether it is the reciprocal.
fn root(view: &View<'_>, node: NodeId) -> Option<(ValueId, bool)> {
    match view.op(node) {
        Op::RSQRT => Some((view.input(node)?, true)),
        Op::SQRT => Some((view.input(node)?, false)),
        Op::POW => {
            let (a, b) = view.pair(node)?;
            match view.number(b)? {
                -0.5 => Some((a, true)),
                0.5 => Some((a, false)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Takes a constant off a sum, or a bound off a clamp: the rest, and the constant.
fn without_epsilon(view: &View<'_>, value: ValueId) -> (ValueId, Option<(ValueId, NodeId)>) {
    let plain = view.plain(value);
    let node = view.producer(plain);
    let pair = match view.op(node) {
        Op::ADD | Op::MAXIMUM => view.pair(node),
        Op::CLAMP => view.input(node).zip(view.operand(node, view.words.min)),
        _ => None,
    };
    match pair {
        Some((a, b)) if view.is_scalar(b) => (a, Some((b, node))),
        Some((a, b)) if view.is_scalar(a) => (b, Some((a, node))),
        _ => (value, None),
    }
}

/// The only run-time user of a value, seen through casts and pure reshapes.
fn only_user(view: &View<'_>, mut value: ValueId) -> Option<(NodeId, ValueId)> {
    for _ in 0..8 {
        let mut users =
            view.uses.of_value(value).iter().filter(|&&(user, _)| view.op(user) != Op::ASSERT);
        let &(user, _) = users.next()?;
        if users.next().is_some() || !view.is_op(user) {
            return None;
        }
        if view.is_transparent(user) || view.op(user) == Op::CAST {
            value = view.function.result(user)?;
        } else {
            return Some((user, value));
        }
    }
    None
}

/// Users of a value, seen through casts and pure reshapes.
fn users(view: &View<'_>, value: ValueId) -> Vec<(NodeId, ValueId)> {
    let mut found = Vec::new();
    let mut stack = vec![value];
    for _ in 0..16 {
        let Some(value) = stack.pop() else { break };
        for &(user, _) in view.uses.of_value(value).iter().take(16) {
            if view.is_transparent(user) || view.op(user) == Op::CAST {
                stack.extend(view.function.result(user));
            } else {
                found.push((user, value));
            }
        }
    }
    found
}

/// Whether a value is divided down before it is squared: by its maximum, or by a small constant.
fn is_rescaled(view: &View<'_>, value: ValueId) -> bool {
    let node = view.producer(view.plain(value));
    let Some((a, b)) = view.pair(node) else { return false };
    match view.op(node) {
        Op::DIV => {
            let by_max = {
                let (rest, _) = without_epsilon(view, b);
                view.op(view.producer(view.plain(rest))) == Op::REDUCE_MAX
            };
            by_max || view.number(b).is_some_and(|n| n.abs() > 1.0)
        }
        Op::MUL => [a, b].iter().any(|&x| {
            view.is_scalar(x) && view.number(x).is_some_and(|n| n != 0.0 && n.abs() < 1.0)
        }),
        _ => false,
    }
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    view.function
        .node_ids()
        .filter(|&node| view.function.is_work(node))
        .filter_map(|node| record(view, node))
        .collect()
}

fn record(view: &View<'_>, node: NodeId) -> Option<Record> {
    let (under, mut reciprocal) = root(view, node)?;
    let (rest, mut epsilon) = without_epsilon(view, under);
    let statistic = statistic(view, rest)?;
    let mut nodes = statistic.nodes.clone();
    nodes.push(node);
    let mut factor = view.function.result(node)?;
    // The bound of `F.normalize` and a reciprocal may stand between the root and the product.
    for _ in 0..2 {
        let Some((user, _)) = only_user(view, factor) else { break };
        if view.op(user) == Op::RECIPROCAL {
            reciprocal = !reciprocal;
        } else if matches!(view.op(user), Op::CLAMP | Op::MAXIMUM | Op::ADD) {
            let result = view.function.result(user)?;
            match without_epsilon(view, result).1 {
                Some(found) => epsilon = epsilon.or(Some(found)),
                None => break,
            }
        } else {
            break;
        }
        nodes.push(user);
        factor = view.function.result(user)?;
    }
    if let Some((_, node)) = epsilon {
        nodes.push(node);
    }
    // What is multiplied by 1/root, or divided by root.
    let wanted = if reciprocal { Op::MUL } else { Op::DIV };
    let of = view.plain(statistic.of);
    let (product, scaled) = users(view, factor).into_iter().find_map(|(user, value)| {
        (view.op(user) == wanted).then_some(())?;
        let scaled = other(view, user, value)?;
        // The difference may be taken twice, once for the variance and once for the result.
        let base = |value| centred(view, value).map(|(x, ..)| view.plain(x));
        let same = view.plain(scaled) == of
            || base(scaled).is_some_and(|x| x == of || base(of) == Some(x));
        same.then_some((user, scaled))
    })?;
    nodes.push(product);
    let (input, kind) = match centred(view, scaled) {
        Some((x, sub, mean)) => {
            nodes.extend([sub, mean]);
            (x, "layer")
        }
        None if statistic.centred => (statistic.of, "layer"),
        None if statistic.sum => (statistic.of, "l2"),
        None => (statistic.of, "rms"),
    };
    let mut output = view.function.result(product)?;
    let mut affine = Vec::new();
    for _ in 0..2 {
        let Some((user, value)) = only_user(view, output) else { break };
        let Some(constant) = other(view, user, value) else { break };
        let step = match view.op(user) {
            Op::MUL => "scale",
            Op::ADD => "shift",
            _ => break,
        };
        if !view.is_fixed(constant) || view.is_scalar(constant) || affine.contains(&step) {
            break;
        }
        affine.push(step);
        nodes.push(user);
        output = view.function.result(user)?;
    }
    let affine = match affine.as_slice() {
        ["scale"] => "scale",
        ["scale", "shift"] => "scale-shift",
        ["shift", "scale"] => "shift-scale",
        _ => "none",
    };
    nodes.retain(|&node| view.op(node).category() != Category::Transparent);
    nodes.sort_unstable();
    nodes.dedup();
    let width = view.function.result(statistic.square).map(|result| view.dtype(result));
    let mut fields = vec![
        ("input", Field::Value(view.plain(input))),
        ("output", Field::Value(output)),
        ("kind", Field::Text(kind)),
        ("affine", Field::Text(affine)),
        (
            "width",
            Field::Text(match width {
                Some(DType::F16) => "f16",
                Some(DType::F32) => "f32",
                Some(DType::BF16) => "bf16",
                _ => "other",
            }),
        ),
        ("rescaled", Field::Bool(is_rescaled(view, statistic.of))),
        ("nodes", Field::Nodes(nodes)),
    ];
    if let [axis] = statistic.axes.as_slice() {
        fields.push(("axis", Field::Int(*axis as i64)));
    }
    if let Some((value, _)) = epsilon {
        fields.extend(view.number(value).map(|number| ("epsilon", Field::Float(number))));
        let constant = super::literals::constant_of(view, value);
        let constant = constant.map_or_else(|| view.producer(value), |(node, _)| node);
        fields.push(("epsilon-node", Field::Node(constant)));
    }
    Some(Record { anchor: statistic.reduction, fields })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, ints};
    use crate::graph::{Attr, DraftOperand};

    const X: &[u64] = &[1, 64, 1, 32];
    const ONE: &[u64] = &[1, 1, 1, 32];

    fn mean(g: &mut Graph, x: DraftOperand) -> DraftOperand {
        let attributes = [("axes", ints(&[1])), ("keep_dims", Attr::Bool(true))];
        g.op(Op::REDUCE_MEAN, &[x], &attributes, DType::F16, ONE)
    }

    fn words(g: Graph) -> Vec<(Field, Field, Option<Field>)> {
        let program = g.finish();
        let facts = Facts::new(&program);
        facts
            .records(MAIN, "norm")
            .iter()
            .map(|r| {
                let field = |name| r.field(name).unwrap().clone();
                (field("kind"), field("affine"), r.field("epsilon").cloned())
            })
            .collect()
    }

    #[test]
    fn a_layer_norm_by_hand_with_its_shift_first() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, X);
        let m = mean(&mut g, x);
        let centred = g.op(Op::SUB, &[x, m], &[], DType::F16, X);
        let square = g.op(Op::MUL, &[centred, centred], &[], DType::F16, X);
        let variance = mean(&mut g, square);
        let eps = g.literal(1e-5);
        let sum = g.op(Op::ADD, &[variance, eps], &[], DType::F16, ONE);
        let root = g.op(Op::RSQRT, &[sum], &[], DType::F16, ONE);
        let y = g.op(Op::MUL, &[centred, root], &[], DType::F16, X);
        let (w, b) = (g.weight(DType::F16, &[1, 64, 1, 1]), g.weight(DType::F16, &[1, 64, 1, 1]));
        let y = g.op(Op::ADD, &[y, b], &[], DType::F16, X);
        let y = g.op(Op::MUL, &[y, w], &[], DType::F16, X);
        g.output(y);
        let expected = (Field::Text("layer"), Field::Text("shift-scale"), Some(Field::Float(1e-5)));
        assert_eq!(words(g), [expected]);
    }

    #[test]
    fn an_rms_norm_in_f16_and_a_plain_standard_deviation() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, X);
        let two = g.literal(2.0);
        let square = g.op(Op::POW, &[x, two], &[], DType::F16, X);
        let m = mean(&mut g, square);
        let root = g.op(Op::RSQRT, &[m], &[], DType::F16, ONE);
        let y = g.op(Op::MUL, &[x, root], &[], DType::F16, X);
        // A root that normalises nothing is none.
        let spread = g.op(Op::SQRT, &[m], &[], DType::F16, ONE);
        g.output(y);
        g.output(spread);
        assert_eq!(words(g), [(Field::Text("rms"), Field::Text("none"), None)]);
    }
}
