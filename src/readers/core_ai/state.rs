//! State handles and tokens → `state_read` and `state_write` with data edges.
//!
//! Tokens only order the accesses; the edges that replace them are: a read takes the state, or the
//! last write to it; a write takes the same. Neither has a source line of its own, so that a write
//! takes the place of what made its data.

use super::ir::Op;
use super::ops::Lowering;
use super::plan::Plan;
use crate::graph::{ProvenanceId, ShapeId, StackId};

/// `read_handle(handle, token) → (tensor, token)`.
pub fn read<'a>(lowering: &mut Lowering<'_, '_, 'a>, op: &Op<'a>, plan: &Plan) {
    let mut node = lowering.node(op, plan);
    if let Some(&handle) = op.operands.of(&lowering.graph.operands).first() {
        let state = lowering.program.names.intern("state");
        if let Some(place) = current(lowering, handle) {
            node.operands.push((state, place));
        }
    }
    lowering.push(op, node);
}

/// `write_handle(handle, data, token) → token`.
pub fn write<'a>(lowering: &mut Lowering<'_, '_, 'a>, op: &Op<'a>, plan: &Plan) {
    let mut node = lowering.node(op, plan);
    let &[handle, data, ..] = op.operands.of(&lowering.graph.operands) else { return };
    let [state, update] = ["state", "update"].map(|name| lowering.program.names.intern(name));
    if let Some(place) = current(lowering, handle) {
        node.operands.push((state, place));
    }
    let mut made_by = ProvenanceId::NONE;
    if let Some(place) = lowering.place(data) {
        node.operands.push((update, place));
        made_by = lowering.draft.nodes[place.0 as usize].provenance;
    }
    if lowering.program.sources.get(node.provenance).stack == StackId::EMPTY {
        node.provenance = made_by;
    }
    let (dtype, shape) = match lowering.graph.values.get(handle as usize) {
        Some(value) => lowering.shared.types.get(value.ty),
        None => (crate::graph::DType::Unknown, ShapeId::UNKNOWN),
    };
    node.results = vec![(crate::graph::Name::EMPTY, dtype, shape, None)];
    let at = lowering.draft.push(node);
    lowering.written.insert(handle, at);
}

/// The state as it is now: the last write to it, or the handle.
fn current(lowering: &mut Lowering<'_, '_, '_>, handle: u32) -> Option<(u32, u32)> {
    match lowering.written.get(&handle) {
        Some(&node) => Some((node, 0)),
        None => lowering.place(handle),
    }
}
