//! Derived knowledge, computed once, on demand: constant values, axis roles, attention blocks, rotary
//! embeddings, masks, caches. One fact a file; rules ask for facts by name.
//!
//! Some facts are *records* (an attention block, a rotary embedding): [`catalogue`] names them with
//! their fields, so that the rule checker can tell a typo at build time, and [`Facts::records`] gives
//! them. Others are questions about one value or node (axis roles, constant summaries).

pub mod catalogue;
pub mod cost;
mod record;

pub use record::{Field, Record};

use crate::graph::{FunctionId, Program};

/// The facts of one program. Everything is lazy; sharing between threads is fine.
#[derive(Debug)]
pub struct Facts<'p> {
    program: &'p Program,
}

impl<'p> Facts<'p> {
    /// No fact is computed until asked for.
    pub fn new(program: &'p Program) -> Facts<'p> {
        Facts { program }
    }

    /// The program these facts are of.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// The records of a fact in a function; `fact` is a name of [`catalogue::FACTS`]. Empty if
    /// there are none, or for an unknown name.
    pub fn records(&self, _function: FunctionId, _fact: &str) -> &[Record] {
        &[]
    }
}

/// Whether a node's results depend on no input.
pub(crate) fn is_constant(node: &crate::graph::Node) -> bool {
    matches!(node.kind, crate::graph::NodeKind::Constant(_))
        || node.flags.contains(crate::graph::NodeFlags::CONSTANT_WORK)
}
