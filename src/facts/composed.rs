//! Functions that a format writes out in several ops where another has one: records `composed`.
//!
//! ONNX has no `rsqrt`, exporters write `silu` as a product with a sigmoid, torch's `softplus` comes with
//! the threshold that it guards. Only the forms that mean the same by definition; norms and attention have
//! facts of their own.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeId, Op, ValueId};

/// One form that was found: the word, what it is a function of, its ops.
struct Found {
    kind: &'static str,
    input: ValueId,
    nodes: Vec<NodeId>,
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        let Some(found) = read(view, node) else { continue };
        let Some(output) = view.function.result(node) else { continue };
        // A form within a form (the softplus of a mish) is told by the outer one.
        records.retain(|known| !found.nodes.contains(&known.anchor));
        let mut nodes = found.nodes;
        nodes.push(node);
        nodes.sort_unstable();
        nodes.dedup();
        records.push(Record {
            anchor: node,
            fields: vec![
                ("kind", Field::Text(found.kind)),
                ("input", Field::Value(found.input)),
                ("output", Field::Value(output)),
                ("nodes", Field::Nodes(nodes)),
            ],
        });
    }
    records
}

fn read(view: &View<'_>, node: NodeId) -> Option<Found> {
    match view.op(node) {
        Op::RECIPROCAL => {
            let root = producer(view, view.input(node)?);
            (view.op(root) == Op::SQRT).then_some(Found {
                kind: "rsqrt",
                input: view.input(root)?,
                nodes: vec![root],
            })
        }
        Op::DIV => {
            let (one, below) = view.pair(node)?;
            let root = producer(view, below);
            (view.number(one) == Some(1.0) && view.op(root) == Op::SQRT).then_some(Found {
                kind: "rsqrt",
                input: view.input(root)?,
                nodes: vec![root],
            })
        }
        Op::MUL => silu(view, node).or_else(|| mish(view, node)),
        Op::WHERE => softplus(view, node),
        _ => None,
    }
}

/// `x · sigmoid(x)`.
fn silu(view: &View<'_>, node: NodeId) -> Option<Found> {
    let (data, gate) = with(view, node, Op::SIGMOID)?;
    let input = view.input(gate)?;
    (view.plain(input) == view.plain(data)).then_some(Found {
        kind: "silu",
        input: data,
        nodes: vec![gate],
    })
}

/// `x · tanh(softplus(x))`.
fn mish(view: &View<'_>, node: NodeId) -> Option<Found> {
    let (data, tanh) = with(view, node, Op::TANH)?;
    let inner = producer(view, view.input(tanh)?);
    let (input, mut nodes) = if view.op(inner) == Op::SOFTPLUS {
        (view.input(inner)?, vec![inner])
    } else {
        let found = softplus(view, inner)?;
        let mut nodes = found.nodes;
        nodes.push(inner);
        (found.input, nodes)
    };
    nodes.push(tanh);
    (view.plain(input) == view.plain(data)).then_some(Found { kind: "mish", input: data, nodes })
}

/// `where(x > threshold, x, softplus(x))`, and the same with `log(1 + exp(x))` written out.
fn softplus(view: &View<'_>, node: NodeId) -> Option<Found> {
    if view.op(node) != Op::WHERE {
        return None;
    }
    let operand = |word| view.operand(node, word);
    let (condition, a, b) =
        (operand(view.words.condition)?, operand(view.words.a)?, operand(view.words.b)?);
    let test = producer(view, condition);
    if view.op(test) != Op::GREATER {
        return None;
    }
    let (tested, threshold) = view.pair(test)?;
    let (smooth, mut nodes) = smooth_plus(view, producer(view, b))?;
    let data = view.plain(a);
    let same = data == view.plain(smooth) && data == view.plain(tested);
    nodes.push(test);
    (same && view.number(threshold).is_some_and(|n| n > 0.0)).then_some(Found {
        kind: "softplus",
        input: a,
        nodes,
    })
}

/// `softplus(x)`, `log1p(exp(x))` or `log(exp(x) + 1)`: what x is, and the ops.
fn smooth_plus(view: &View<'_>, node: NodeId) -> Option<(ValueId, Vec<NodeId>)> {
    match view.op(node) {
        Op::SOFTPLUS => Some((view.input(node)?, vec![node])),
        Op::LOG1P => {
            let exp = producer(view, view.input(node)?);
            (view.op(exp) == Op::EXP).then_some((view.input(exp)?, vec![exp, node]))
        }
        Op::LOG => {
            let add = producer(view, view.input(node)?);
            let (a, b) = (view.op(add) == Op::ADD).then(|| view.pair(add)).flatten()?;
            let (exp, one) = if view.number(b).is_some() { (a, b) } else { (b, a) };
            let exp = producer(view, exp);
            (view.op(exp) == Op::EXP && view.number(one) == Some(1.0))
                .then_some((view.input(exp)?, vec![exp, add, node]))
        }
        _ => None,
    }
}

/// The two operands of a product, of which one is made by `op`: the other, and that node.
fn with(view: &View<'_>, node: NodeId, op: Op) -> Option<(ValueId, NodeId)> {
    let (a, b) = view.pair(node)?;
    let (first, second) = (producer(view, a), producer(view, b));
    if view.op(second) == op {
        return Some((a, second));
    }
    (view.op(first) == op).then_some((b, first))
}

fn producer(view: &View<'_>, value: ValueId) -> NodeId {
    view.producer(view.plain(value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::super::testing::Graph;
    use super::super::{Facts, Field};
    use crate::graph::{DType, FunctionId, Op};

    const X: &[u64] = &[1, 8];

    fn kinds(g: Graph) -> Vec<Field> {
        let program = g.finish();
        let facts = Facts::new(&program);
        let records = facts.records(FunctionId(0), "composed");
        records.iter().map(|r| r.field("kind").unwrap().clone()).collect()
    }

    #[test]
    fn a_reciprocal_of_a_root_is_rsqrt_and_one_of_anything_else_is_not() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F32, X);
        let root = g.op(Op::SQRT, &[x], &[], DType::F32, X);
        let y = g.op(Op::RECIPROCAL, &[root], &[], DType::F32, X);
        let z = g.op(Op::RECIPROCAL, &[x], &[], DType::F32, X);
        g.output(y);
        g.output(z);
        assert_eq!(kinds(g), [Field::Text("rsqrt")]);
    }

    #[test]
    fn a_product_with_its_own_sigmoid_is_silu_and_a_gate_is_not() {
        let mut g = Graph::new();
        let (x, gate) = (g.input("x", DType::F32, X), g.input("gate", DType::F32, X));
        let own = g.op(Op::SIGMOID, &[x], &[], DType::F32, X);
        let y = g.op(Op::MUL, &[own, x], &[], DType::F32, X);
        let other = g.op(Op::SIGMOID, &[gate], &[], DType::F32, X);
        let z = g.op(Op::MUL, &[x, other], &[], DType::F32, X);
        g.output(y);
        g.output(z);
        assert_eq!(kinds(g), [Field::Text("silu")]);
    }

    #[test]
    fn softplus_with_its_threshold_and_the_mish_around_it() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F32, X);
        let twenty = g.literal(20.0);
        let exp = g.op(Op::EXP, &[x], &[], DType::F32, X);
        let log = g.op(Op::LOG1P, &[exp], &[], DType::F32, X);
        let test = g.op(Op::GREATER, &[x, twenty], &[], DType::Bool, X);
        let soft = g.op(Op::WHERE, &[test, x, log], &[], DType::F32, X);
        let tanh = g.op(Op::TANH, &[soft], &[], DType::F32, X);
        let y = g.op(Op::MUL, &[x, tanh], &[], DType::F32, X);
        g.output(y);
        assert_eq!(kinds(g), [Field::Text("mish")]);
    }
}
