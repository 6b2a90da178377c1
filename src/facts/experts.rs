//! Mixtures of experts that pick weights by run-time indices; records `experts`.
//!
//! Two forms: one op that gathers and multiplies (`gather_matmul`), and a gather of a constant of rank
//! three or more along its first axis whose rows a contraction then multiplies with.

use rustc_hash::FxHashSet;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, DType, NodeId, Op, ValueId};

/// Most values that a walk from a gather to its contraction looks at.
const MOST: usize = 64;

/// Goes up to a constant of experts' weights: through the ops that only move or decompress.
fn weights(view: &View<'_>, mut value: ValueId) -> ValueId {
    for _ in 0..16 {
        let node = view.producer(value);
        let category = view.op(node).category();
        let moves = view.is_op(node)
            && view.is_fixed(value)
            && matches!(
                category,
                Category::Movement | Category::Transparent | Category::Conversion
            );
        match view.input(node).filter(|_| moves) {
            Some(input) => value = input,
            None => break,
        }
    }
    value
}

/// The contraction that reads rows gathered, through moves.
fn contraction(view: &View<'_>, gathered: ValueId) -> Option<NodeId> {
    let mut seen = FxHashSet::default();
    let mut queue = vec![gathered];
    while let Some(value) = queue.pop() {
        if seen.len() >= MOST || !seen.insert(value) {
            continue;
        }
        for &(user, _) in view.uses.of_value(value) {
            match view.op(user).category() {
                Category::Contraction => return Some(user),
                Category::Movement | Category::Transparent | Category::Conversion => {
                    queue.extend(view.function.results(user));
                }
                _ => {}
            }
        }
    }
    None
}

/// How many experts an element of the indices' last axis stands for.
fn routed(view: &View<'_>, indices: ValueId) -> Option<u64> {
    let dims = view.dims(indices)?;
    match dims {
        [] => Some(1),
        [.., last] => last.value(),
    }
}

fn record(
    view: &View<'_>,
    kind: &'static str,
    gather: NodeId,
    product: NodeId,
    weight: ValueId,
    indices: ValueId,
) -> Option<Record> {
    let dtype = view.dtype(indices);
    let mut fields = vec![
        ("kind", Field::Text(kind)),
        ("gather", Field::Node(gather)),
        ("product", Field::Node(product)),
        ("weight", Field::Value(weight)),
        ("indices", Field::Value(indices)),
        (
            "index-type",
            Field::Text(match dtype {
                DType::U16 => "u16",
                DType::I32 => "i32",
                DType::U32 => "u32",
                DType::I64 => "i64",
                _ => "other",
            }),
        ),
    ];
    let extent = view.extent(weight, 0)?;
    fields.push(("experts", Field::Int(i64::try_from(extent).ok()?)));
    if let Some(k) = routed(view, indices).and_then(|k| i64::try_from(k).ok()) {
        fields.push(("top-k", Field::Int(k)));
    }
    Some(Record { anchor: gather, fields })
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let words = view.words;
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.is_op(node)) {
        match view.op(node) {
            Op::GATHER_MATMUL => {
                let pair = view.operand(node, words.weight).zip(view.operand(node, words.indices));
                if let Some((weight, indices)) = pair {
                    let weight = weights(view, weight);
                    records.extend(record(view, "one-op", node, node, weight, indices));
                }
            }
            Op::GATHER | Op::INDEX | Op::EMBEDDING | Op::GATHER_ND => {
                let source = match view.op(node) {
                    Op::EMBEDDING => view.operand(node, words.weight),
                    _ => view.input(node),
                };
                let pair = source.zip(view.operand(node, words.indices));
                let Some((source, indices)) = pair else { continue };
                let fits = view.is_fixed(source)
                    && !view.is_fixed(indices)
                    && view.rank(source).is_some_and(|rank| rank >= 3)
                    && view.dtype(source).is_float();
                let product = view
                    .function
                    .result(node)
                    .filter(|_| fits)
                    .and_then(|gathered| contraction(view, gathered));
                if let Some(product) = product {
                    let weight = weights(view, source);
                    records.extend(record(view, "gathered", node, product, weight, indices));
                }
            }
            _ => {}
        }
    }
    records
}
