//! The canonical graph: what every reader makes and every fact looks at.
//!
//! A [`Program`] holds [`Function`]s; a function is a petgraph directed graph of [`Node`]s (ops,
//! constants, inputs, states, outputs) whose edges are single uses. Nothing here knows a file
//! format or a rule. Readers build a function as a [`Draft`], normalise it (`crate::graph::draft`
//! can absorb and rewire nodes), and freeze it; after that a graph never changes.
//!
//! Ids are dense `u32`; names, shapes, frames and stacks are interned, so that a million nodes fit
//! in well under 1 GiB.

mod attr;
mod confirmed;
mod constant;
mod draft;
mod dtype;
mod function;
mod names;
mod op;
mod program;
mod provenance;
mod shape;

pub use attr::Attr;
pub use confirmed::Confirmed;
pub use constant::{Blob, BlobFile, Constant, ConstantId, ConstantOrigin, Payload, ValueSummary};
pub use draft::{Draft, DraftNode, DraftOperand};
pub use dtype::DType;
pub use function::{
    Function, FunctionId, FunctionRole, Node, NodeFlags, NodeId, NodeKind, Operand, Use, Value,
    ValueId,
};
pub use names::{Name, Names};
pub use op::{Category, Op};
pub use program::{Format, Program};
pub use provenance::{
    Frame, FrameId, ModuleId, ModulePath, Provenance, ProvenanceId, Sources, StackId,
};
pub use shape::{Dim, DimExpr, Shape, ShapeId, Shapes, Symbol, SymbolId};
