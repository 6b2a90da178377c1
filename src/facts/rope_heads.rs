//! Whether a rotary embedding cuts one head in two, or all heads joined: the latter turns channels of
//! different heads against each other.
//!
//! Nothing in the cut itself tells. Evidence that the cut axis holds several heads: it is taken apart
//! into heads behind the rotation (a reshape that splits exactly this axis, or a split into equal
//! parts), or the table is tiled along it more than twice. Evidence that it is one head: it came out
//! of such a reshape or split, or a product contracts it whole.

use super::axes;
use super::rope::{Form, Rope, follow};
use super::view::View;
use crate::graph::{Dim, Op, ValueId};

/// Most values looked at on one side of a rotation.
const MOST_STEPS: usize = 96;

/// The verdict.
pub(super) struct Heads {
    /// The word of the catalogue.
    pub(super) word: &'static str,
    /// How many heads the cut axis holds.
    pub(super) count: Option<u64>,
}

/// Judges one rotation.
pub(super) fn of(view: &View<'_>, rope: &Rope) -> Heads {
    let one = Heads { word: "head", count: Some(1) };
    if rope.form == Form::Composite {
        return one;
    }
    let Some(axis) = rope.axis else { return Heads { word: "unknown", count: None } };
    let tiled = [rope.cos, rope.sin].into_iter().flatten().find_map(|v| tiles(view, v, rope, axis));
    match taken_apart(view, rope.post, axis, tiled) {
        Some(1) => return one,
        Some(heads) => return Heads { word: "concatenated-heads", count: Some(heads) },
        None => {}
    }
    if came_apart(view, rope.pre, axis) {
        return one;
    }
    match tiled {
        Some(heads) if heads > 2 => Heads { word: "concatenated-heads", count: Some(heads) },
        _ => Heads { word: "unknown", count: None },
    }
}

/// What happens to the axis behind the rotation: `Some(1)` if a product contracts it whole,
/// `Some(n)` if it is taken apart into `n` heads, whichever comes first.
fn taken_apart(view: &View<'_>, post: ValueId, axis: usize, tiled: Option<u64>) -> Option<u64> {
    let mut queue = std::collections::VecDeque::from([(post, axis)]);
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some((value, axis)) = queue.pop_front() {
        if seen.len() >= MOST_STEPS || !seen.insert(value) {
            continue;
        }
        for &(user, slot) in view.uses.of_value(value).iter().take(MOST_STEPS) {
            let slot = slot as usize;
            match view.op(user) {
                Op::RESHAPE | Op::FLATTEN | Op::UNSQUEEZE | Op::SQUEEZE => {
                    if let Some(heads) = split_by_reshape(view, value, user, axis) {
                        return Some(heads);
                    }
                }
                Op::SPLIT if view.axis(user) == Some(axis) => {
                    let count = view.function.results(user).len() as u64;
                    // In two: the parts of a further rotation, unless the table is tiled as often.
                    if count > 2 || tiled == Some(count) {
                        return Some(count);
                    }
                    continue;
                }
                Op::MATMUL | Op::EINSUM => {
                    let contraction = super::contraction::Contraction::of(view, user)?;
                    if contraction.side_of_slot(slot)?.contracted.contains(&axis) {
                        return Some(1);
                    }
                    continue;
                }
                Op::SDPA => {
                    let last = view.rank(value).and_then(|rank| rank.checked_sub(1));
                    if last == Some(axis) {
                        return Some(1);
                    }
                    continue;
                }
                Op::CONCAT if view.axis(user) == Some(axis) => continue,
                Op::LINEAR | Op::CONV | Op::SLICE_UPDATE | Op::STATE_WRITE => continue,
                _ => {}
            }
            if let Some(next) = follow(view, user, slot, axis) {
                queue.push_back(next);
            }
        }
    }
    None
}

/// How many parts a reshape takes an axis apart into, if it does so to this axis alone.
fn split_by_reshape(
    view: &View<'_>,
    value: ValueId,
    node: crate::graph::NodeId,
    axis: usize,
) -> Option<u64> {
    let result = view.function.result(node)?;
    let (from, to) = (view.dims(value)?, view.dims(result)?);
    let groups = axes::groups(from, to);
    let group = groups.iter().find(|group| group.from == [axis] && group.to.len() == 2)?;
    match to.get(*group.to.first()?)? {
        Dim::Static(heads) if *heads > 1 => Some(*heads),
        _ => None,
    }
}

/// Whether the axis came out of a reshape or split that takes heads apart.
fn came_apart(view: &View<'_>, pre: ValueId, axis: usize) -> bool {
    let (mut value, mut axis) = (pre, axis);
    for _ in 0..MOST_STEPS {
        let node = view.producer(value);
        let Some(input) = view.input(node) else { return false };
        match view.op(node) {
            Op::RESHAPE => {
                let (Some(from), Some(to)) = (view.dims(input), view.dims(value)) else {
                    return false;
                };
                let groups = axes::groups(from, to);
                if groups.iter().any(|group| {
                    group.from.len() == 1 && group.to.len() >= 2 && group.to.contains(&axis)
                }) {
                    return true;
                }
            }
            Op::SPLIT if view.axis(node) == Some(axis) => {
                return view.function.results(node).len() > 2;
            }
            Op::LINEAR | Op::CONV | Op::MATMUL | Op::EINSUM => return false,
            _ => {}
        }
        match axes::back(view, node, 0, value, axis) {
            Some(back) => (value, axis) = (input, back),
            None => return false,
        }
    }
    false
}

/// How often a table is repeated along the cut axis by a tile.
fn tiles(view: &View<'_>, table: ValueId, rope: &Rope, axis: usize) -> Option<u64> {
    // The table broadcasts against the rotated value: its axes line up from the last.
    let (rank, own) = (view.rank(rope.pre)?, view.rank(table)?);
    let (mut value, mut axis) = (table, (axis + own).checked_sub(rank)?);
    for _ in 0..MOST_STEPS {
        let node = view.producer(value);
        let input = view.input(node)?;
        if view.op(node) == Op::TILE {
            let (before, after) = (view.extent(input, axis)?, view.extent(value, axis)?);
            if before > 0 && after > before {
                return Some(after / before);
            }
        }
        axis = axes::back(view, node, 0, value, axis)?;
        value = input;
    }
    None
}
