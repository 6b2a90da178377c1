//! sin and cos of arguments that are known when the graph is made; records `constant-trig`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeFlags, Op};

/// The records of a function. An argument whose numbers are not known gives none.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for node in view.function.node_ids() {
        if !matches!(view.op(node), Op::SIN | Op::COS | Op::TAN) {
            continue;
        }
        let Some(input) = view.input(node).filter(|&input| view.is_fixed(input)) else { continue };
        let Some(range) = view.facts.range_of(view.id, input) else { continue };
        let largest = range.min.abs().max(range.max.abs());
        if !largest.is_finite() {
            continue;
        }
        let from = view.producer(view.plain(input));
        let made = view.is_op(from) && view.has_flag(from, NodeFlags::CONSTANT_WORK);
        records.push(Record {
            anchor: node,
            fields: vec![
                ("node", Field::Node(node)),
                ("largest", Field::Float(largest)),
                ("computed", Field::Bool(made)),
            ],
        });
    }
    records
}
