//! Writes to states: where their place comes from, and whether a later one knows of an earlier one;
//! records `state-write`.

use rustc_hash::FxHashSet;

use super::kv_cache;
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeId, NodeKind, Op, ValueId};

/// The state that a handle leads to, through earlier writes.
fn root(view: &View<'_>, write: NodeId) -> Option<NodeId> {
    let mut value = view.operand(write, view.words.state).or_else(|| view.operand_at(write, 0))?;
    for _ in 0..4096 {
        let node = view.producer(value);
        if view.function.node(node).kind == NodeKind::State {
            return Some(node);
        }
        value = view.operand(node, view.words.state).or_else(|| view.input(node))?;
    }
    None
}

/// Whether `from` is among what a node is computed from.
fn depends_on(view: &View<'_>, node: NodeId, from: NodeId) -> bool {
    let mut seen = FxHashSet::default();
    let mut stack: Vec<ValueId> = view.operands(node).collect();
    while let Some(value) = stack.pop() {
        let maker = view.producer(value);
        if maker == from {
            return true;
        }
        // Ids ascend in program order: nothing before `from` can lead to it.
        if maker.0 > from.0 && seen.insert(maker) {
            stack.extend(view.operands(maker));
        }
    }
    false
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut last: Vec<(NodeId, NodeId)> = Vec::new();
    let mut records = Vec::new();
    for write in view.function.node_ids().filter(|&node| view.op(node) == Op::STATE_WRITE) {
        let Some(state) = root(view, write) else { continue };
        let mut fields = vec![
            ("write", Field::Node(write)),
            ("state", Field::Node(state)),
            ("begin", Field::Text(kv_cache::begin_of(view, write))),
        ];
        match last.iter_mut().find(|(known, _)| *known == state) {
            Some((_, earlier)) => {
                fields.push(("earlier", Field::Node(*earlier)));
                fields.push(("knows-earlier", Field::Bool(depends_on(view, write, *earlier))));
                *earlier = write;
            }
            None => last.push((state, write)),
        }
        records.push(Record { anchor: write, fields });
    }
    records
}
