//! Where an axis goes: one step through one op, forward (operand to result) or back.
//!
//! A step answers only when the axis comes through whole and alone; a reshape that merges it with
//! another axis, or splits it, ends the walk ([`groups`] tells those apart). Everything that follows
//! dims (attention, rotary embeddings, roles) takes these steps.

use crate::graph::{Dim, NodeId, Op, ValueId};

use super::contraction::Contraction;
use super::view::View;

/// A group of a reshape: the operand's axes `from` and the result's axes `to` hold the same elements
/// in the same order. Axes of extent one are in no group unless their group is `1 → 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) from: Vec<usize>,
    pub(crate) to: Vec<usize>,
}

/// Splits a reshape into its smallest groups of axes.
///
/// Extents that are symbols count as factors of their own. Axes of extent one are paired up where
/// as many stand between the same two neighbours on both sides.
pub(crate) fn groups(from: &[Dim], to: &[Dim]) -> Vec<Group> {
    let wide = |dims: &[Dim]| -> Vec<usize> {
        (0..dims.len()).filter(|&axis| dims[axis] != Dim::Static(1)).collect()
    };
    let (a, b) = (wide(from), wide(to));
    // Boundaries: pairs of prefixes (counted in wide axes) that hold equally many elements.
    let mut bounds = vec![(0, 0)];
    let (heads, tails) = (products(from, &a, 0), products(to, &b, 1));
    let (mut i, mut j) = (1, 1);
    while i < heads.len() && j < tails.len() {
        if heads[i] == tails[j] {
            bounds.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if heads[i].2 < tails[j].2 || (heads[i].2 == tails[j].2 && heads[i].0 < tails[j].0) {
            i += 1;
        } else {
            j += 1;
        }
    }
    // An expression (`4*s`) hides factors from the prefixes; equal suffixes still tell.
    let (mut i, mut j) = (a.len(), b.len());
    let mut behind = Vec::new();
    while i > 0 && j > 0 && from[a[i - 1]] == to[b[j - 1]] && from[a[i - 1]] != Dim::Unknown {
        (i, j) = (i - 1, j - 1);
        behind.push((i, j));
    }
    let last = bounds.last().copied().unwrap_or_default();
    if last != (a.len(), b.len()) {
        bounds.extend(behind.into_iter().rev().filter(|&(i, j)| i > last.0 && j > last.1));
        bounds.push((a.len(), b.len()));
    }
    let mut out: Vec<Group> = bounds
        .windows(2)
        .map(|pair| Group {
            from: a[pair[0].0..pair[1].0].to_vec(),
            to: b[pair[0].1..pair[1].1].to_vec(),
        })
        .filter(|group| !(group.from.is_empty() && group.to.is_empty()))
        .collect();
    pair_units(from, to, &mut out);
    out
}

/// Running products of extents: static part, symbols (sorted codes), and how many axes are dynamic.
/// `side` keeps unknown extents of the two shapes apart: they equal nothing.
fn products(dims: &[Dim], axes: &[usize], side: u64) -> Vec<(u128, Vec<u64>, usize)> {
    let mut list = Vec::with_capacity(axes.len() + 1);
    let (mut number, mut codes) = (1u128, Vec::new());
    list.push((number, codes.clone(), 0));
    for &axis in axes {
        let code = match dims[axis] {
            Dim::Static(n) => {
                number = number.saturating_mul(u128::from(n));
                None
            }
            Dim::Symbol(id) => Some((1 << 40) | u64::from(id.0)),
            Dim::Expr(id) => Some((2 << 40) | u64::from(id)),
            Dim::Unknown => Some(((3 + side) << 40) | axis as u64),
        };
        if let Some(code) = code {
            codes.push(code);
            codes.sort_unstable();
        }
        list.push((number, codes.clone(), codes.len()));
    }
    list
}

/// Pairs axes of extent one between the same neighbours.
fn pair_units(from: &[Dim], to: &[Dim], groups: &mut Vec<Group>) {
    let gap_of = |groups: &[Group], axis: usize, side: fn(&Group) -> &Vec<usize>| {
        groups.iter().filter(|group| side(group).last().is_some_and(|&last| last < axis)).count()
    };
    let units = |dims: &[Dim], side: fn(&Group) -> &Vec<usize>, groups: &[Group]| {
        let mut gaps = vec![Vec::new(); groups.len() + 1];
        for axis in (0..dims.len()).filter(|&axis| dims[axis] == Dim::Static(1)) {
            // Inside a merged group a unit axis has no neighbour to go by.
            let inside = groups.iter().any(|group| {
                let list = side(group);
                list.first().is_some_and(|&f| f < axis) && list.last().is_some_and(|&l| l > axis)
            });
            if !inside {
                gaps[gap_of(groups, axis, side)].push(axis);
            }
        }
        gaps
    };
    let left = units(from, |group| &group.from, groups);
    let right = units(to, |group| &group.to, groups);
    for (a, b) in left.into_iter().zip(right) {
        if a.len() == b.len() {
            groups.extend(a.into_iter().zip(b).map(|(a, b)| Group { from: vec![a], to: vec![b] }));
        }
    }
}

/// What a step does with an axis of extent one that a reshape adds or drops: nothing tells, so the
/// walk ends. `squeeze` and `unsqueeze` with axes say it exactly.
fn through_reshape(view: &View<'_>, node: NodeId, axis: usize, back: bool) -> Option<usize> {
    let (input, output) = (view.input(node)?, view.function.result(node)?);
    let (from, to) = (view.dims(input)?, view.dims(output)?);
    if let Some(axes) = view.ints(node, view.words.axes)
        && matches!(view.op(node), Op::SQUEEZE | Op::UNSQUEEZE)
    {
        let (long, shrinks) =
            if view.op(node) == Op::SQUEEZE { (from.len(), true) } else { (to.len(), false) };
        let mut dropped = vec![false; long];
        for entry in axes {
            let at = if entry < 0 { entry + long as i64 } else { entry };
            // Squeezing an axis that is not one does nothing.
            if let Some(flag) = usize::try_from(at).ok().and_then(|at| dropped.get_mut(at))
                && (!shrinks || from.get(at as usize) == Some(&Dim::Static(1)))
            {
                *flag = true;
            }
        }
        let kept: Vec<usize> = (0..long).filter(|&at| !dropped[at]).collect();
        return if shrinks != back {
            kept.iter().position(|&at| at == axis)
        } else {
            kept.get(axis).copied()
        };
    }
    if from.len() == to.len() && from == to {
        return (axis < from.len()).then_some(axis);
    }
    let groups = groups(from, to);
    groups.iter().find_map(|group| {
        let (own, other) = if back { (&group.to, &group.from) } else { (&group.from, &group.to) };
        match (own.as_slice(), other.as_slice()) {
            (&[own], &[other]) if own == axis => Some(other),
            _ => None,
        }
    })
}

/// The axis of `result` (a result of `node`) that `axis` of the operand in `slot` becomes.
pub(crate) fn forward(
    view: &View<'_>,
    node: NodeId,
    slot: usize,
    result: ValueId,
    axis: usize,
) -> Option<usize> {
    step(view, node, slot, result, axis, false)
}

/// The axis of the operand in `slot` that `axis` of `result` comes from.
pub(crate) fn back(
    view: &View<'_>,
    node: NodeId,
    slot: usize,
    result: ValueId,
    axis: usize,
) -> Option<usize> {
    step(view, node, slot, result, axis, true)
}

fn step(
    view: &View<'_>,
    node: NodeId,
    slot: usize,
    result: ValueId,
    axis: usize,
    back: bool,
) -> Option<usize> {
    use crate::graph::Category;
    let input = view.operand_at(node, slot)?;
    let (from, to) = (view.rank(input)?, view.rank(result)?);
    let op = view.op(node);
    let same = |at: usize| (at < from && at < to && from == to).then_some(at);
    match op {
        Op::RESHAPE | Op::SQUEEZE | Op::UNSQUEEZE | Op::FLATTEN => {
            through_reshape(view, node, axis, back)
        }
        Op::TRANSPOSE => {
            let permutation = view.permutation(node)?;
            if back {
                permutation.get(axis).copied()
            } else {
                permutation.iter().position(|&at| at == axis)
            }
        }
        Op::SELECT => {
            let gone = view.axis(node)?;
            if back {
                Some(if axis < gone { axis } else { axis + 1 })
            } else {
                match axis.cmp(&gone) {
                    std::cmp::Ordering::Less => Some(axis),
                    std::cmp::Ordering::Equal => None,
                    std::cmp::Ordering::Greater => Some(axis - 1),
                }
            }
        }
        Op::UNBIND => {
            let gone = view.axis(node)?;
            if back {
                Some(if axis < gone { axis } else { axis + 1 })
            } else if axis == gone {
                None
            } else {
                Some(if axis < gone { axis } else { axis - 1 })
            }
        }
        Op::STACK => {
            let new = view.axis(node)?;
            if back {
                match axis.cmp(&new) {
                    std::cmp::Ordering::Less => Some(axis),
                    std::cmp::Ordering::Equal => None,
                    std::cmp::Ordering::Greater => Some(axis - 1),
                }
            } else {
                Some(if axis < new { axis } else { axis + 1 })
            }
        }
        Op::LINEAR | Op::CONV | Op::CONV_TRANSPOSE => (slot == 0).then(|| same(axis)).flatten(),
        Op::MATMUL | Op::ADDMM | Op::EINSUM => {
            let contraction = Contraction::of(view, node)?;
            let side = contraction.side_of_slot(slot)?;
            if back {
                side.to_result.iter().position(|&to| to == Some(axis))
            } else {
                side.to_result.get(axis).copied().flatten()
            }
        }
        Op::SDPA => (slot == 0).then(|| same(axis)).flatten(),
        Op::EXPAND | Op::TILE => aligned(from, to, axis, back),
        Op::UNFOLD
        | Op::FOLD
        | Op::DEPTH_TO_SPACE
        | Op::SPACE_TO_DEPTH
        | Op::PIXEL_SHUFFLE
        | Op::PIXEL_UNSHUFFLE
        | Op::AS_STRIDED
        | Op::DIAGONAL
        | Op::LIST => None,
        Op::GLU => same(axis),
        _ => match op.category() {
            Category::Elementwise | Category::Activation | Category::Logic => {
                aligned(from, to, axis, back)
            }
            Category::Transparent
            | Category::Movement
            | Category::Normalization
            | Category::Conversion
            | Category::Pooling => same(axis),
            Category::Reduction => {
                if from == to {
                    return same(axis);
                }
                let gone = view.axes(node)?;
                let kept: Vec<usize> = (0..from).filter(|at| !gone.contains(at)).collect();
                if back { kept.get(axis).copied() } else { kept.iter().position(|&at| at == axis) }
            }
            Category::Attention if matches!(op, Op::ROPE) && slot == 0 => same(axis),
            Category::Indexing if matches!(op, Op::SLICE_UPDATE | Op::INDEX_PUT) => same(axis),
            _ => None,
        },
    }
}

/// Broadcasting lines axes up from the last.
fn aligned(from: usize, to: usize, axis: usize, back: bool) -> Option<usize> {
    let at = if back { (axis + from).checked_sub(to)? } else { (axis + to).checked_sub(from)? };
    (at < if back { from } else { to }).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(dims: &[u64]) -> Vec<Dim> {
        dims.iter().map(|&n| Dim::Static(n)).collect()
    }

    fn pairs(from: &[u64], to: &[u64]) -> Vec<(Vec<usize>, Vec<usize>)> {
        groups(&fixed(from), &fixed(to)).into_iter().map(|g| (g.from, g.to)).collect()
    }

    #[test]
    fn splitting_heads_keeps_the_sequence() {
        let found = pairs(&[2, 32, 64], &[2, 32, 4, 16]);
        assert!(found.contains(&(vec![1], vec![1])));
        assert!(found.contains(&(vec![2], vec![2, 3])));
    }

    #[test]
    fn merging_batch_and_heads_keeps_both_others() {
        let found = pairs(&[2, 4, 32, 16], &[8, 32, 16]);
        assert!(found.contains(&(vec![0, 1], vec![0])));
        assert!(found.contains(&(vec![2], vec![1])));
        assert!(found.contains(&(vec![3], vec![2])));
    }

    #[test]
    fn unit_axes_pair_up_between_equal_neighbours_only() {
        assert!(pairs(&[1, 8, 1, 16], &[8, 1, 16]).contains(&(vec![2], vec![1])));
        assert!(!pairs(&[8, 1, 1], &[8, 1]).iter().any(|(from, _)| from == &vec![1]));
    }

    #[test]
    fn a_symbolic_sequence_comes_through() {
        let mut shapes = crate::graph::Shapes::default();
        let mut names = crate::graph::Names::default();
        shapes.symbols.push(crate::graph::Symbol {
            name: names.intern("s0"),
            min: 1,
            max: None,
            data_dependent: false,
        });
        let s = Dim::Symbol(crate::graph::SymbolId(0));
        let one = Dim::Static(1);
        let found = groups(&[one, s, Dim::Static(64)], &[one, s, Dim::Static(4), Dim::Static(16)]);
        assert!(found.iter().any(|g| g.from == [1] && g.to == [1]));
        assert!(found.iter().any(|g| g.from == [2] && g.to == [2, 3]));
    }
}
