//! The edges of a function: casts and index preparation right behind its inputs or right before its
//! outputs, which have no colour of their own; and what prepares run-time indices anywhere.

use crate::facts::is_constant;
use crate::graph::{Category, Function, NodeFlags, NodeId, NodeKind, Op, Program};

const AT_INPUT: u8 = 1;
const AT_OUTPUT: u8 = 2;
const INDICES: u8 = 4;

/// What lies at the edges of a function, by node.
#[derive(Debug)]
pub(super) struct Edges(Vec<u8>);

impl Edges {
    /// One walk forward and one back; linear in nodes and uses.
    pub(super) fn of(program: &Program, function: &Function) -> Edges {
        let mut bits = vec![0u8; function.len()];
        for (id, node) in function.nodes() {
            let from_input = function.operands(id).iter().all(|operand| {
                let from = function.producer(operand.value);
                let producer = function.node(from);
                producer.kind == NodeKind::Input
                    || is_constant(producer)
                    || bits[from.0 as usize] & AT_INPUT != 0
            });
            let carries = match node.kind {
                NodeKind::Op => {
                    node.flags.contains(NodeFlags::TRANSPARENT)
                        || node.op == Op::CAST
                        || (makes_whole_numbers(function, id) && prepares(node.op))
                }
                _ => false,
            };
            if carries && from_input && !is_constant(node) {
                bits[id.0 as usize] |= AT_INPUT;
            }
        }
        // Backwards: what every use of a node says about it.
        let mut only_outputs = vec![true; function.len()];
        let mut only_indices = vec![true; function.len()];
        let mut used = vec![false; function.len()];
        for (id, node) in function.nodes().rev() {
            let at = id.0 as usize;
            let transparent = node.flags.contains(NodeFlags::TRANSPARENT);
            let whole = makes_whole_numbers(function, id);
            if node.kind == NodeKind::Op && used[at] && !is_constant(node) {
                if only_outputs[at] && (transparent || node.op == Op::CAST) {
                    bits[at] |= AT_OUTPUT;
                }
                if only_indices[at] && whole && (transparent || prepares(node.op)) {
                    bits[at] |= INDICES;
                }
            }
            let is_output = node.kind == NodeKind::Output || bits[at] & AT_OUTPUT != 0;
            for operand in function.operands(id) {
                let from = function.producer(operand.value).0 as usize;
                used[from] = true;
                only_outputs[from] &= is_output;
                only_indices[from] &= bits[at] & INDICES != 0
                    || (node.op.category() == Category::Indexing
                        && program.text(operand.name) == "indices");
            }
        }
        Edges(bits)
    }

    /// A cast or index preparation with nothing but inputs before it, or a cast with nothing but
    /// outputs after it.
    pub(super) fn at_edge(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize).is_some_and(|bits| bits & (AT_INPUT | AT_OUTPUT) != 0)
    }

    /// An op on whole numbers all of whose uses end at an index operand.
    pub(super) fn prepares_indices(&self, id: NodeId) -> bool {
        self.0.get(id.0 as usize).is_some_and(|bits| bits & INDICES != 0)
    }
}

/// The kinds of op that turn one index into another.
fn prepares(op: Op) -> bool {
    matches!(
        op.category(),
        Category::Elementwise
            | Category::Logic
            | Category::Movement
            | Category::Conversion
            | Category::Creation
    )
}

fn makes_whole_numbers(function: &Function, id: NodeId) -> bool {
    let mut results = function.results(id).peekable();
    results.peek().is_some()
        && results.all(|value| {
            let dtype = function.value(value).dtype;
            dtype.is_int() || dtype == crate::graph::DType::Bool
        })
}
