//! Who uses which value: one flat table a function, so that a walk along uses allocates nothing.
//!
//! [`Function::uses`] looks through all edges of a producer and sorts; a fact that walks forward from
//! thousands of values asks here instead. Besides, which nodes work on shapes and constants alone:
//! a mask made for a symbolic length runs, and yet is no data.

use crate::graph::{Function, NodeFlags, NodeId, NodeKind, Op, ValueId};

/// The uses of every value of a function, in program order.
#[derive(Debug)]
pub(crate) struct Uses {
    /// Start of each value's uses in `uses`, and one entry past the last.
    starts: Vec<u32>,
    uses: Vec<(NodeId, u32)>,
    /// For each node whether it is a constant, or made from constants and shapes only.
    fixed: Vec<bool>,
}

impl Uses {
    /// Builds the table in two passes over the operands.
    pub(crate) fn of(function: &Function) -> Uses {
        let mut starts = vec![0u32; function.value_count() + 1];
        for node in function.node_ids() {
            for operand in function.operands(node) {
                starts[operand.value.0 as usize + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut uses = vec![(NodeId(0), 0); starts.last().copied().unwrap_or(0) as usize];
        for node in function.node_ids() {
            for (slot, operand) in function.operands(node).iter().enumerate() {
                let place = &mut next[operand.value.0 as usize];
                uses[*place as usize] = (node, slot as u32);
                *place += 1;
            }
        }
        let mut fixed = vec![false; function.len()];
        for (id, node) in function.nodes() {
            fixed[id.0 as usize] = match node.kind {
                NodeKind::Constant(_) => true,
                NodeKind::Input | NodeKind::State | NodeKind::Output => false,
                NodeKind::Op => {
                    node.flags.contains(NodeFlags::CONSTANT_WORK)
                        || matches!(node.op, Op::SIZE | Op::SHAPE | Op::NUMEL)
                        || (!node.op.makes_run_time_data()
                            && !function.operands(id).is_empty()
                            && function
                                .operands(id)
                                .iter()
                                .all(|operand| fixed[function.producer(operand.value).0 as usize]))
                }
            };
        }
        Uses { starts, uses, fixed }
    }

    /// Whether a node is a constant, or made from constants and shapes only.
    pub(crate) fn is_fixed(&self, node: NodeId) -> bool {
        self.fixed[node.0 as usize]
    }

    /// `(consumer, operand slot)` of each use of `value`, in program order.
    pub(crate) fn of_value(&self, value: ValueId) -> &[(NodeId, u32)] {
        let at = value.0 as usize;
        &self.uses[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}
