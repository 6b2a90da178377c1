//! Small numbers that keep a root, a logarithm or a divisor away from 0, and what f16 makes of them;
//! records `epsilon`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, ConstantOrigin, DType, NodeId, Op, ValueId};

/// What is larger is no eps.
const LARGEST: f64 = 1e-2;
/// Half of the smallest positive f16: this and less rounds to zero.
const ROUNDS_TO_ZERO: f64 = 2.980_232_238_769_531_3e-8;
/// Below this f16 has one bit left of the number.
const ONE_BIT: f64 = 1e-7;
/// Smallest f16 with all its bits.
const NORMAL: f64 = 6.103_515_625e-5;

/// What a value is about to be put into, through casts, views and broadcasts.
fn guards(view: &View<'_>, value: ValueId) -> Option<&'static str> {
    let mut stack = vec![value];
    for _ in 0..16 {
        let value = stack.pop()?;
        for &(user, slot) in view.uses.of_value(value).iter().take(16) {
            match view.op(user) {
                Op::RSQRT | Op::SQRT => return Some("root"),
                Op::LOG | Op::LOG2 | Op::LOG10 => return Some("logarithm"),
                Op::RECIPROCAL => return Some("divisor"),
                Op::POW => {
                    let exponent = view
                        .pair(user)
                        .filter(|(a, _)| *a == value)
                        .and_then(|(_, b)| view.number(b));
                    if exponent.is_some_and(|e| e < 0.0 || e == 0.5) {
                        return Some("root");
                    }
                }
                Op::DIV if view.pair_slots(user).is_some_and(|(_, b)| b == slot as usize) => {
                    return Some("divisor");
                }
                op if matches!(op, Op::CAST | Op::EXPAND | Op::TILE)
                    || view.is_transparent(user) =>
                {
                    stack.extend(view.function.result(user));
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether a sum, mean or maximum lies close above: what a norm or a total divides by.
fn is_reduced(view: &View<'_>, value: ValueId) -> bool {
    let mut stack = vec![value];
    for _ in 0..12 {
        let Some(value) = stack.pop() else { return false };
        let node = view.producer(value);
        let op = view.op(node);
        if op.category() == Category::Reduction {
            return true;
        }
        if matches!(
            op.category(),
            Category::Elementwise | Category::Conversion | Category::Transparent
        ) || op == Op::EXPAND
        {
            stack.extend(view.operands(node).filter(|&operand| !view.is_fixed(operand)));
        }
    }
    false
}

/// The other operand and the small number of a sum or of a lower bound.
fn small(view: &View<'_>, node: NodeId) -> Option<(ValueId, ValueId)> {
    let (a, b) = match view.op(node) {
        Op::ADD | Op::MAXIMUM => view.pair(node)?,
        Op::CLAMP => (view.input(node)?, view.operand(node, view.words.min)?),
        _ => return None,
    };
    match (view.is_scalar(a), view.is_scalar(b)) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

/// What f16 makes of it.
fn fit(number: f64) -> &'static str {
    if number <= ROUNDS_TO_ZERO {
        "zero"
    } else if number < ONE_BIT {
        "one-bit"
    } else if number < NORMAL {
        "subnormal"
    } else {
        "fits"
    }
}

fn record(view: &View<'_>, node: NodeId) -> Option<Record> {
    let result = view.function.result(node)?;
    let (number, kind, constant, role) =
        if matches!(view.op(node), Op::LAYER_NORM | Op::RMS_NORM | Op::BATCH_NORM | Op::L2_NORM) {
            (view.attr(node, view.words.epsilon)?.as_float()?, "norm", None, "norm")
        } else {
            let (rest, constant) = small(view, node)?;
            let number = view.number(constant)?;
            let role = guards(view, result)?;
            let added = view.op(node) == Op::ADD;
            // An author's own bound of 0 is no lost eps; where a converter rounded, only a norm tells.
            let own = view.origin(constant) == Some(ConstantOrigin::Literal)
                && view.program().format == crate::graph::Format::Pt2;
            if !added && number == 0.0 && (own || !is_reduced(view, rest)) {
                return None;
            }
            (number, if added { "added" } else { "bound" }, Some(constant), role)
        };
    if !(0.0..LARGEST).contains(&number) {
        return None;
    }
    let mut fields = vec![
        ("user", Field::Node(node)),
        ("value", Field::Float(number)),
        ("kind", Field::Text(kind)),
        ("guards", Field::Text(role)),
        ("fit", Field::Text(fit(number))),
        (
            "width",
            Field::Text(match view.dtype(result) {
                DType::F16 => "f16",
                DType::F32 => "f32",
                DType::BF16 => "bf16",
                _ => "other",
            }),
        ),
    ];
    fields.extend(constant.map(|value| ("constant", Field::Node(view.producer(value)))));
    Some(Record { anchor: node, fields })
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    view.function
        .node_ids()
        .filter(|&node| view.function.is_work(node))
        .filter_map(|node| record(view, node))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN};

    #[test]
    fn the_edges_of_f16() {
        for (number, expected) in [
            (0.0, "zero"),
            (2.9e-8, "zero"),
            (3e-8, "one-bit"),
            (1e-6, "subnormal"),
            (6.2e-5, "fits"),
        ] {
            assert_eq!(fit(number), expected, "{number}");
        }
    }

    #[test]
    fn a_sum_under_a_root_and_a_bound_over_nothing() {
        const X: &[u64] = &[1, 8];
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, X);
        let eps = g.literal(1e-12);
        let y = g.op(Op::ADD, &[x, eps], &[], DType::F16, X);
        let y = g.op(Op::RSQRT, &[y], &[], DType::F16, X);
        let y = g.op(Op::MAXIMUM, &[y, eps], &[], DType::F16, X);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let [only] = facts.records(MAIN, "epsilon") else { panic!("one eps") };
        assert_eq!(only.field("guards"), Some(&Field::Text("root")));
        assert_eq!(only.field("fit"), Some(&Field::Text("zero")));
    }
}
