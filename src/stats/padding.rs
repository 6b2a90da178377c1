//! What misaligned last dims waste: the Neural Engine pads each row of a tensor to 64 bytes (L-01).

use super::bytes;
use crate::facts::is_constant;
use crate::graph::{Function, NodeFlags, NodeId, NodeKind, Program};

/// Rows are padded to a multiple of this many bytes.
pub const ROW_BYTES: u64 = 64;
/// Most values listed.
const MOST: usize = 8;

/// A value with padded rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The node that makes it.
    pub node: NodeId,
    /// Bytes without padding.
    pub bytes: u64,
    /// Bytes with it.
    pub padded: u64,
}

/// The padding of a function's inputs and activations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Padding {
    /// Bytes of all inputs and results of ops.
    pub bytes: u64,
    /// The same, with rows padded.
    pub padded: u64,
    /// How many of them have padded rows.
    pub values: u64,
    /// Those that waste most, the worst first.
    pub worst: Vec<Row>,
}

impl Padding {
    /// How many times the memory; 1 where nothing is padded.
    pub fn factor(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.padded as f64 / self.bytes as f64 }
    }
}

pub(super) fn count(program: &Program, function: &Function) -> Padding {
    let mut padding = Padding::default();
    for (id, node) in function.nodes() {
        if is_constant(node)
            || node.flags.contains(NodeFlags::TRANSPARENT)
            || !matches!(node.kind, NodeKind::Input | NodeKind::Op)
        {
            continue;
        }
        for value in function.results(id) {
            let told = function.value(value);
            let shape = program.shapes.get(told.shape);
            let (Some(own), Some(last)) =
                (bytes(program, function, value), shape.dim(-1).and_then(|dim| dim.value()))
            else {
                continue;
            };
            let row = told.dtype.bytes(last);
            let padded = match own.checked_div(row) {
                Some(rows) => {
                    rows.saturating_mul(row.div_ceil(ROW_BYTES).saturating_mul(ROW_BYTES))
                }
                None => 0,
            };
            padding.bytes = padding.bytes.saturating_add(own);
            padding.padded = padding.padded.saturating_add(padded);
            if padded > own {
                padding.values += 1;
                padding.worst.push(Row { node: id, bytes: own, padded });
            }
        }
        if padding.worst.len() > 4 * MOST {
            keep_worst(&mut padding.worst);
        }
    }
    keep_worst(&mut padding.worst);
    padding
}

fn keep_worst(rows: &mut Vec<Row>) {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.padded - row.bytes), row.node));
    rows.truncate(MOST);
}
