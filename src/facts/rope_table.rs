//! Where the cosines and sines of a rotary embedding come from.

use super::rope::Rope;
use super::view::View;
use crate::graph::{Category, NodeId, NodeKind, Op, ValueId};

/// Most ops looked at above one table.
const MOST_STEPS: usize = 64;

/// The source of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// Whether it depends on a function input.
    pub(super) varies: bool,
    /// The gather of rows.
    pub(super) gather: Option<NodeId>,
    /// The rows gathered, or the slice of a constant.
    pub(super) value: Option<ValueId>,
    /// The trigonometric ops that run.
    pub(super) trig: Vec<NodeId>,
    input: bool,
    slice: bool,
    constant: bool,
}

impl Table {
    /// The word of the catalogue; the costliest source wins.
    pub(super) fn word(&self) -> &'static str {
        if !self.trig.is_empty() {
            "trig"
        } else if self.gather.is_some() {
            "gather"
        } else if self.input {
            "input"
        } else if self.slice {
            "slice"
        } else if self.constant {
            "constant"
        } else {
            "unknown"
        }
    }
}

/// Walks up from cos and sin.
pub(super) fn of(view: &View<'_>, rope: &Rope) -> Table {
    let mut table = Table::default();
    for value in [rope.cos, rope.sin].into_iter().flatten() {
        table.varies |= !view.is_fixed(value);
        climb(view, value, &mut table);
    }
    table.trig.sort_unstable();
    table.trig.dedup();
    table
}

fn climb(view: &View<'_>, start: ValueId, table: &mut Table) {
    let mut stack = vec![start];
    for _ in 0..MOST_STEPS {
        let Some(value) = stack.pop() else { return };
        let node = view.producer(value);
        let op = view.op(node);
        match view.function.node(node).kind {
            NodeKind::Input | NodeKind::State => {
                table.input = true;
                continue;
            }
            NodeKind::Constant(_) => {
                table.constant = true;
                continue;
            }
            NodeKind::Output => continue,
            NodeKind::Op => {}
        }
        let input = view.input(node);
        match op {
            Op::SIN | Op::COS => {
                if view.is_fixed(value) {
                    table.constant = true;
                } else {
                    table.trig.push(node);
                }
            }
            Op::GATHER
            | Op::GATHER_ND
            | Op::GATHER_ELEMENTS
            | Op::INDEX
            | Op::EMBEDDING
            | Op::ROPE_GATHER => {
                // Rows of a constant table by run-time positions; all else is only indexing.
                if !view.is_fixed(value) && input.is_some_and(|table| view.is_fixed(table)) {
                    table.gather.get_or_insert(node);
                    table.value.get_or_insert(value);
                } else {
                    stack.extend(input);
                }
            }
            Op::SLICE | Op::SELECT | Op::SPLIT => {
                if input.is_some_and(|table| view.is_fixed(table)) {
                    table.slice = true;
                    table.value.get_or_insert(value);
                }
                stack.extend(input);
            }
            Op::MUL | Op::DIV | Op::ADD => {
                stack.extend(view.operands(node));
            }
            _ if matches!(op.category(), Category::Transparent | Category::Movement)
                || matches!(op, Op::CAST | Op::NEG) =>
            {
                stack.extend(input);
            }
            _ => {}
        }
    }
}

/// The first node, in program order, that computes on data: what a gather must come before to stand
/// alone ahead of all layers.
pub(super) fn first_compute(view: &View<'_>) -> Option<NodeId> {
    view.function.node_ids().find(|&id| {
        let computes = matches!(
            view.op(id).category(),
            Category::Elementwise
                | Category::Activation
                | Category::Reduction
                | Category::Contraction
                | Category::Normalization
                | Category::Attention
                | Category::Pooling
        );
        let floats = || {
            view.function
                .result(id)
                .is_some_and(|value| view.function.value(value).dtype.is_float())
        };
        computes && view.function.is_work(id) && floats()
    })
}
