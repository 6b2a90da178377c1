//! A state's write in one op: the language reads the state, updates a slice of what it read, and writes
//! the whole back; together that is a write of the slice.

use crate::graph::{Draft, Names, NodeKind, Op};
use crate::readers::normalize::absorb;

/// Takes each `slice_update` whose result is only written back to the state it was read from into the
/// write.
pub(super) fn fold_updates(names: &mut Names, draft: &mut Draft) {
    let writes: Vec<u32> = (0..draft.nodes.len() as u32)
        .filter(|&at| draft.nodes[at as usize].op == Op::STATE_WRITE)
        .collect();
    if writes.is_empty() {
        return;
    }
    let uses = draft.use_counts();
    let mut word = |word: &str| names.intern(word);
    let (state, input, update) = (word("state"), word("input"), word("update"));
    for at in writes {
        let Some(write) = draft.nodes.get(at as usize) else { continue };
        let (Some(handle), Some((slice, _))) = (write.operand(state), write.operand(update)) else {
            continue;
        };
        let Some(slice_node) = draft.nodes.get(slice as usize) else { continue };
        let once = uses.get(slice as usize) == Some(&1);
        let reads_back = slice_node
            .operand(input)
            .and_then(|(read, _)| draft.nodes.get(read as usize))
            .is_some_and(|read| read.op == Op::STATE_READ && read.operand(state) == Some(handle));
        let is_update = slice_node.kind == NodeKind::Op && slice_node.op == Op::SLICE_UPDATE;
        let Some(value) = slice_node.operand(update) else { continue };
        if !(once && reads_back && is_update) {
            continue;
        }
        let operands: Vec<_> = slice_node
            .operands
            .iter()
            .filter(|(name, _)| *name != input && *name != update)
            .copied()
            .collect();
        let (attributes, name) = (slice_node.attributes.clone(), slice_node.name);
        absorb(draft, at, slice);
        let Some(write) = draft.nodes.get_mut(at as usize) else { continue };
        for (known, operand) in &mut write.operands {
            if *known == update {
                *operand = value;
            }
        }
        write.operands.extend(operands);
        write.attributes.extend(attributes);
        // In the order in which they run.
        write.stored.reverse();
        // The write's own name is made up; the update's is the module's.
        write.name = name;
    }
}
