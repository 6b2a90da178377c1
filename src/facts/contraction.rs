//! Products of two tensors in one form: which axes of each operand go where in the result, and which
//! are summed over, for `matmul`, `addmm` and two-operand `einsum`.

use crate::graph::{NodeId, Op, ValueId};

use super::view::View;

/// One operand of a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Side {
    /// The operand's slot.
    pub(crate) slot: usize,
    pub(crate) value: ValueId,
    /// For each axis of the operand, the axis of the result; `None` for one that is summed over.
    pub(crate) to_result: Vec<Option<usize>>,
    /// Axes of the result that come from this operand alone.
    pub(crate) own: Vec<usize>,
    /// The axes summed over, in the same order on both sides.
    pub(crate) contracted: Vec<usize>,
}

/// A product of two tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contraction {
    pub(crate) node: NodeId,
    pub(crate) result: ValueId,
    pub(crate) a: Side,
    pub(crate) b: Side,
}

impl Side {
    /// The axis of this operand that the product keeps from it alone, and where it is in the result;
    /// of several the one that is wider than one.
    pub(crate) fn free(&self, view: &View<'_>, result: ValueId) -> Option<(usize, usize)> {
        let wide = |&&axis: &&usize| view.extent(result, axis) != Some(1);
        let &to = self.own.iter().find(wide).or(self.own.first())?;
        let own = self.to_result.iter().position(|&axis| axis == Some(to))?;
        Some((own, to))
    }
}

impl Contraction {
    /// Reads a node as a product of two tensors; `None` if it is none or its ranks are not known.
    pub(crate) fn of(view: &View<'_>, node: NodeId) -> Option<Contraction> {
        let result = view.function.result(node)?;
        match view.op(node) {
            Op::MATMUL => {
                let ta = view.flag(node, view.words.transpose_a);
                let tb = view.flag(node, view.words.transpose_b);
                let (a, b) = view.pair_slots(node)?;
                matmul(view, node, result, (a, ta), (b, tb))
            }
            Op::ADDMM => {
                let (a, b) = view.pair_slots(node)?;
                matmul(view, node, result, (a, false), (b, false))
            }
            Op::EINSUM => einsum(view, node, result),
            _ => None,
        }
    }

    pub(crate) fn side_of_slot(&self, slot: usize) -> Option<&Side> {
        [&self.a, &self.b].into_iter().find(|side| side.slot == slot)
    }

    /// The side in `slot` first, the other second.
    pub(crate) fn sides_from(&self, slot: usize) -> Option<(&Side, &Side)> {
        if self.a.slot == slot {
            Some((&self.a, &self.b))
        } else {
            (self.b.slot == slot).then_some((&self.b, &self.a))
        }
    }
}

fn matmul(
    view: &View<'_>,
    node: NodeId,
    result: ValueId,
    (slot_a, transpose_a): (usize, bool),
    (slot_b, transpose_b): (usize, bool),
) -> Option<Contraction> {
    let (a, b) = (view.operand_at(node, slot_a)?, view.operand_at(node, slot_b)?);
    let (rank_a, rank_b, rank) = (view.rank(a)?, view.rank(b)?, view.rank(result)?);
    if rank_a < 1 || rank_b < 1 {
        return None;
    }
    // Vectors: the only axis is summed over, and the result lacks theirs.
    let rows = usize::from(rank_a > 1);
    let columns = usize::from(rank_b > 1);
    if rank < rows + columns {
        return None;
    }
    let batch = rank - rows - columns;
    let side = |slot, value, own_rank: usize, free: Option<usize>, summed: usize, place: usize| {
        let leading = own_rank.saturating_sub(2);
        let mut to_result = vec![None; own_rank];
        for (axis, to) in to_result.iter_mut().enumerate().take(leading) {
            *to = (axis + batch).checked_sub(leading);
        }
        let mut own = Vec::new();
        if let Some(free) = free {
            to_result[free] = Some(place);
            own.push(place);
        }
        Side { slot, value, to_result, own, contracted: vec![summed] }
    };
    let (free_a, sum_a) = match (rank_a, transpose_a) {
        (1, _) => (None, 0),
        (n, false) => (Some(n - 2), n - 1),
        (n, true) => (Some(n - 1), n - 2),
    };
    let (free_b, sum_b) = match (rank_b, transpose_b) {
        (1, _) => (None, 0),
        (n, false) => (Some(n - 1), n - 2),
        (n, true) => (Some(n - 2), n - 1),
    };
    let mut left = side(slot_a, a, rank_a, free_a, sum_a, batch);
    let mut right = side(slot_b, b, rank_b, free_b, sum_b, batch + rows);
    // A batch axis that the other side broadcasts along is this side's own: converters move keys
    // there when a head has one row.
    let extents = |side: &Side| -> Vec<Option<u64>> {
        let at = |axis| side.to_result.iter().position(|to| *to == Some(axis));
        (0..batch).map(|axis| at(axis).map_or(Some(1), |at| view.extent(side.value, at))).collect()
    };
    let (in_a, in_b) = (extents(&left), extents(&right));
    for axis in 0..batch {
        match (in_a[axis], in_b[axis]) {
            (a, Some(1)) if a != Some(1) => left.own.push(axis),
            (Some(1), b) if b != Some(1) => right.own.push(axis),
            _ => {}
        }
    }
    Some(Contraction { node, result, a: left, b: right })
}

fn einsum(view: &View<'_>, node: NodeId, result: ValueId) -> Option<Contraction> {
    let (a, b) = view.pair(node)?;
    let crate::graph::Attr::Text(equation) = view.attr(node, view.words.equation)? else {
        return None;
    };
    let equation = view.program().text(*equation);
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = equation.split_once("->")?;
    let (left, right) = inputs.split_once(',')?;
    let expand = |labels: &str, rank: usize| -> Option<Vec<char>> {
        let Some((before, after)) = labels.split_once("...") else {
            let list: Vec<char> = labels.chars().collect();
            return (list.len() == rank).then_some(list);
        };
        let named = before.chars().count() + after.chars().count();
        let hidden = rank.checked_sub(named)?;
        // Axes of an ellipsis line up from the last: private labels counted from the end.
        let ellipsis = (0..hidden)
            .map(|at| char::from_u32(0xE000 + (hidden - at) as u32).unwrap_or('\u{E000}'));
        Some(before.chars().chain(ellipsis).chain(after.chars()).collect())
    };
    let left = expand(left, view.rank(a)?)?;
    let right = expand(right, view.rank(b)?)?;
    let output = expand(output, view.rank(result)?)?;
    let shared: Vec<char> = left
        .iter()
        .copied()
        .filter(|label| right.contains(label) && !output.contains(label))
        .collect();
    let side = |slot: usize, value, labels: &[char], other: &[char]| {
        let to_result: Vec<Option<usize>> =
            labels.iter().map(|label| output.iter().position(|o| o == label)).collect();
        let own = (0..output.len())
            .filter(|&at| labels.contains(&output[at]) && !other.contains(&output[at]))
            .collect();
        let contracted =
            shared.iter().filter_map(|label| labels.iter().position(|l| l == label)).collect();
        Side { slot, value, to_result, own, contracted }
    };
    let left_side = side(0, a, &left, &right);
    let right_side = side(1, b, &right, &left);
    Some(Contraction { node, result, a: left_side, b: right_side })
}
