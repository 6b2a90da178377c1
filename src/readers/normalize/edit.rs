//! Inserting nodes into a draft at a place, without renumbering after each.

use crate::graph::{Draft, DraftNode, DraftOperand, NodeFlags};

/// A draft under edit: new nodes are appended and remembered with the place where they belong;
/// [`Editor::finish`] puts everything in order once.
#[derive(Debug)]
pub struct Editor {
    /// The draft. Indices stay valid until [`Editor::finish`].
    pub draft: Draft,
    /// For each appended node, the stored node it stands before.
    before: Vec<u32>,
    /// Number of nodes that were there at the start.
    original: usize,
}

impl Editor {
    /// Begins to edit.
    pub fn new(draft: Draft) -> Editor {
        let original = draft.nodes.len();
        Editor { draft, before: Vec::new(), original }
    }

    /// Adds a node that stands before node `at`.
    pub fn insert_before(&mut self, at: u32, node: DraftNode) -> u32 {
        let place = match (at as usize).checked_sub(self.original) {
            Some(appended) => self.before.get(appended).copied().unwrap_or(u32::MAX),
            None => at,
        };
        self.before.push(place);
        self.draft.push(node)
    }

    /// Adds a node at the end.
    pub fn push(&mut self, node: DraftNode) -> u32 {
        self.before.push(u32::MAX);
        self.draft.push(node)
    }

    /// The results of a node that a value belongs to.
    pub fn result(
        &self,
        (node, result): DraftOperand,
    ) -> Option<&(
        crate::graph::Name,
        crate::graph::DType,
        crate::graph::ShapeId,
        Option<crate::graph::ShapeId>,
    )> {
        self.draft.nodes.get(node as usize)?.results.get(result as usize)
    }

    /// The draft with every inserted node in its place.
    pub fn finish(self) -> Draft {
        let Editor { mut draft, before, original } = self;
        if before.is_empty() {
            return draft;
        }
        let mut order: Vec<u32> = (original as u32..draft.nodes.len() as u32).collect();
        // Stable: nodes inserted at one place keep the order of their insertion.
        order.sort_by_key(|&node| before[node as usize - original]);
        let mut inserted = order.into_iter().peekable();
        let mut sequence = Vec::with_capacity(draft.nodes.len());
        for at in 0..original as u32 {
            while let Some(node) = inserted.next_if(|&node| before[node as usize - original] <= at)
            {
                sequence.push(node);
            }
            sequence.push(at);
        }
        sequence.extend(inserted);
        let mut position = vec![0u32; sequence.len()];
        for (at, &node) in sequence.iter().enumerate() {
            position[node as usize] = at as u32;
        }
        for node in &mut draft.nodes {
            for (_, (producer, _)) in &mut node.operands {
                if let Some(&place) = position.get(*producer as usize) {
                    *producer = place;
                }
            }
        }
        // In place, cycle by cycle: a second list of nodes would be the peak of a whole run.
        for at in 0..draft.nodes.len() {
            while position[at] as usize != at {
                let place = position[at] as usize;
                draft.nodes.swap(at, place);
                position.swap(at, place);
            }
        }
        draft
    }
}

/// Redirects every use of each `from` to its `to`, in one walk; chains are followed.
pub fn redirect(
    draft: &mut Draft,
    moved: &std::collections::HashMap<DraftOperand, DraftOperand, rustc_hash::FxBuildHasher>,
) {
    if moved.is_empty() {
        return;
    }
    for node in draft.nodes.iter_mut().filter(|node| !node.removed) {
        for (_, operand) in &mut node.operands {
            // A chain cannot be longer than there are entries.
            for _ in 0..=moved.len() {
                let Some(&to) = moved.get(operand) else { break };
                *operand = to;
            }
        }
    }
}

/// Removes ops that nobody uses, from `candidates` on towards their producers, as long as `may_go`
/// agrees. Flags and kinds other than op are never touched.
pub fn sweep(draft: &mut Draft, candidates: Vec<u32>, may_go: impl Fn(&DraftNode) -> bool) {
    if candidates.is_empty() {
        return;
    }
    let mut counts = draft.use_counts();
    let mut waiting = candidates;
    while let Some(at) = waiting.pop() {
        let Some(node) = draft.nodes.get_mut(at as usize) else { continue };
        if node.removed
            || node.kind != crate::graph::NodeKind::Op
            || node.flags.contains(NodeFlags::MUTATION)
            || counts[at as usize] != 0
            || !may_go(node)
        {
            continue;
        }
        node.removed = true;
        for (_, (producer, _)) in &node.operands {
            counts[*producer as usize] = counts[*producer as usize].saturating_sub(1);
            waiting.push(*producer);
        }
    }
}
