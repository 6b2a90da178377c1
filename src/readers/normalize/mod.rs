//! Normalisation shared by all readers: passes over a [`Draft`] that bring every dialect's spelling of
//! one thing to the same shape, and list the stored ops they absorb on the node that stays.
//!
//! A pass never judges; it only rewrites what is the same by definition. One pass a file.

mod conv;
mod edit;
mod fills;
mod linear;
mod promote;
mod states;
mod words;

pub use conv::conv;
pub use edit::Editor;
pub use fills::fills;
pub use linear::linear;
pub use promote::promote;
pub use states::{Write, states};
pub use words::Words;

use crate::graph::{Draft, DraftNode, NodeKind, Program};

/// What a pass may look at beside the draft.
#[derive(Debug)]
pub struct Context<'p> {
    /// Names, shapes, constants.
    pub program: &'p mut Program,
    /// Canonical words.
    pub words: &'p Words,
}

/// Adds a node's own stored spelling to its list of absorbed ops, if it is not there yet.
pub fn keep_own_spelling(node: &mut DraftNode) {
    if node.stored.is_empty() && node.kind == NodeKind::Op {
        node.stored.push((node.name, node.spelling));
    }
}

/// Takes `absorbed` into `keeper`: its stored ops are listed there, and it is removed.
pub fn absorb(draft: &mut Draft, keeper: u32, absorbed: u32) {
    note_absorbed(draft, keeper, absorbed);
    if let Some(node) = draft.nodes.get_mut(absorbed as usize) {
        node.removed = true;
    }
}

/// Lists the stored ops of `absorbed` on `keeper` without removing it (somebody else still uses it).
pub fn note_absorbed(draft: &mut Draft, keeper: u32, absorbed: u32) {
    let Some(node) = draft.nodes.get(absorbed as usize) else { return };
    let mut stored = node.stored.clone();
    if stored.is_empty() && node.kind == NodeKind::Op && !node.spelling.is_empty() {
        stored.push((node.name, node.spelling));
    }
    if let Some(node) = draft.nodes.get_mut(keeper as usize) {
        keep_own_spelling(node);
        for entry in stored {
            if !node.stored.contains(&entry) {
                node.stored.push(entry);
            }
        }
    }
}
