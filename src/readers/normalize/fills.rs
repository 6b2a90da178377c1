//! `full_like` of a static shape is `full`: it takes only the shape of its input, and that is known.
//! Cut off from the input it is constant work, as it is for every converter.

use super::{Context, keep_own_spelling};
use crate::graph::{Dim, Draft, Op};

/// Rewrites `full_like` to `full` where the result's shape is static.
pub fn fills(draft: &mut Draft, context: &mut Context<'_>) {
    let input = context.words.input;
    for node in draft.nodes.iter_mut().filter(|node| !node.removed && node.op == Op::FULL_LIKE) {
        let [(_, _, shape, _)] = node.results.as_slice() else { continue };
        let dims = context.program.shapes.get(*shape).dims();
        if dims.is_some_and(|dims| dims.iter().all(|dim| matches!(dim, Dim::Static(_)))) {
            keep_own_spelling(node);
            node.op = Op::FULL;
            node.operands.retain(|(name, _)| *name != input);
        }
    }
}
