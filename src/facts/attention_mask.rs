//! The mask of an attention: which value, how its axes meet those of the scores, which keys it hides.

use super::attention::{Attention, Operand, Step};
use super::axes;
use super::fold::Folded;
use super::range::Range;
use super::view::View;
use crate::graph::{DType, Dim, NodeId, Op, ValueId};

/// From here down a number hides a key; position biases stay far above.
const HIDES: f64 = -1000.0;

/// The mask of one attention.
#[derive(Debug, Clone)]
pub(crate) struct Mask {
    /// The additive mask, or the condition of a where.
    pub(crate) value: ValueId,
    /// The op that joins it with the scores.
    pub(crate) join: NodeId,
    /// For a condition or a bool mask: whether a true element hides its key.
    hides_true: Option<bool>,
    /// Axes of the mask that meet queries and keys.
    pub(crate) query_axis: Option<usize>,
    pub(crate) key_axis: Option<usize>,
    /// What the scores have there.
    queries: Option<Dim>,
    keys: Option<Dim>,
    /// The mask's own extents there, seen in front of an expand; one where it has no such axis.
    own_queries: Option<Dim>,
    own_keys: Option<Dim>,
}

/// The mask operand of a fused op; its last two axes are query and key.
pub(super) fn of_fused(
    view: &View<'_>,
    node: NodeId,
    value: ValueId,
    query: Operand,
    key: Operand,
) -> Mask {
    let rank = view.rank(value);
    let at = |operand: Operand| {
        operand.sequence.and_then(|axis| view.dims(operand.value)?.get(axis).copied())
    };
    let is_bool = view.dtype(value) == DType::Bool;
    let mut mask = Mask {
        value,
        join: node,
        hides_true: is_bool.then_some(false),
        query_axis: rank.and_then(|rank| rank.checked_sub(2)),
        key_axis: rank.and_then(|rank| rank.checked_sub(1)),
        queries: at(query),
        keys: at(key),
        own_queries: None,
        own_keys: None,
    };
    mask.measure(view);
    mask
}

/// The mask on the path from a softmax up to its product.
pub(super) fn of_path(
    view: &View<'_>,
    scores: ValueId,
    path: &[Step],
    query_axis: Option<usize>,
    key_axis: Option<usize>,
) -> Option<Mask> {
    let mut best: Option<(u8, Mask)> = None;
    let (mut query, mut key) = (query_axis, key_axis);
    for (at, step) in path.iter().enumerate() {
        let result = if at == 0 { scores } else { path[at - 1].value };
        for (slot, operand) in view.function.operands(step.node).iter().enumerate() {
            let candidate = match view.op(step.node) {
                Op::ADD | Op::SUB | Op::MINIMUM if slot != step.slot => {
                    plausible(view, operand.value).map(|rank| (rank, None))
                }
                Op::WHERE if operand.name == view.words.condition => {
                    // The branch that is not the data must hide.
                    let a = view.operand(step.node, view.words.a);
                    let data_is_a = a == view.operand_at(step.node, step.slot);
                    let other = if data_is_a { view.operand(step.node, view.words.b) } else { a };
                    other.filter(|&other| hides(view, other)).map(|_| (3, Some(!data_is_a)))
                }
                _ => None,
            };
            let Some((rank, hides_true)) = candidate else { continue };
            if best.as_ref().is_some_and(|(known, _)| *known >= rank) {
                continue;
            }
            // Broadcasting lines the mask's axes up with the result's from the last.
            let shift = view.rank(result).zip(view.rank(operand.value));
            let own_axis = |axis: Option<usize>| {
                let (to, own) = shift?;
                (axis? + own).checked_sub(to)
            };
            let above = |axis: Option<usize>| {
                let data = step.value;
                let axis = axes::back(view, step.node, step.slot, result, axis?)?;
                view.dims(data)?.get(axis).copied()
            };
            let mut mask = Mask {
                value: operand.value,
                join: step.node,
                hides_true,
                query_axis: own_axis(query),
                key_axis: own_axis(key),
                queries: above(query),
                keys: above(key),
                own_queries: None,
                own_keys: None,
            };
            mask.measure(view);
            best = Some((rank, mask));
        }
        let back = |axis: Option<usize>| axes::back(view, step.node, step.slot, result, axis?);
        (query, key) = (back(query), back(key));
    }
    best.map(|(_, mask)| mask)
}

/// How likely an additive operand is the mask: 3 for one that hides keys, 1 for one not known; none
/// for what never hides (a position bias) and for a single number.
fn plausible(view: &View<'_>, value: ValueId) -> Option<u8> {
    if view.elements(value) == Some(1) {
        return None;
    }
    if view.dtype(value) == DType::Bool {
        return Some(1);
    }
    if !view.is_fixed(value) {
        return Some(2);
    }
    let folds = view.facts.folds(view.id);
    match folds.of_value(view, value) {
        Some(folded) => {
            let range = folded.range;
            (range.neg_inf || range.nan || range.min < HIDES).then_some(3)
        }
        None => Some(1),
    }
}

fn hides(view: &View<'_>, value: ValueId) -> bool {
    let folds = view.facts.folds(view.id);
    view.is_fixed(value) && folds.of_value(view, value).is_some_and(|folded| is_low(folded.range))
}

/// Whether every number hides.
fn is_low(range: Range) -> bool {
    !range.nan && !range.pos_inf && (range.neg_inf || range.has_finite()) && range.max < HIDES
}

/// Whether no number hides.
fn is_open(range: Range) -> bool {
    !range.nan && !range.neg_inf && range.has_finite() && range.min > HIDES
}

impl Mask {
    /// Reads the mask's own extents, in front of an expand: there broadcasting still shows.
    fn measure(&mut self, view: &View<'_>) {
        let mut value = self.value;
        let (mut query, mut key) = (self.query_axis, self.key_axis);
        for _ in 0..8 {
            let node = view.producer(value);
            if view.op(node) != Op::EXPAND {
                break;
            }
            let Some(input) = view.input(node) else { break };
            let back = |axis: Option<usize>| axes::back(view, node, 0, value, axis?);
            (query, key) = (back(query), back(key));
            value = input;
        }
        let extent = |axis: Option<usize>| match axis {
            Some(axis) => view.dims(value).and_then(|dims| dims.get(axis).copied()),
            None => Some(Dim::Static(1)),
        };
        self.own_queries = extent(query);
        self.own_keys = extent(key);
    }

    /// Which keys a triangle of the mask hides.
    fn triangle(&self, view: &View<'_>) -> &'static str {
        let folds = view.facts.folds(view.id);
        let Some(folded) = folds.of_value(view, self.value) else { return "unknown" };
        let (Some(query), Some(key)) = (self.query_axis, self.key_axis) else { return "unknown" };
        let Folded { triangle: Some(triangle), .. } = folded else { return "none" };
        let frame = (triangle.row, triangle.column);
        if frame != (query.min(key), query.max(key)) {
            return "none";
        }
        let (later, earlier) = if key == triangle.column {
            (triangle.above, triangle.below)
        } else {
            (triangle.below, triangle.above)
        };
        let hidden = |range: Range| match self.hides_true {
            Some(true) => range.min >= 0.5,
            Some(false) => range.max < 0.5,
            None => is_low(range),
        };
        let all_open = |range: Range| match self.hides_true {
            Some(true) => range.max < 0.5,
            Some(false) => range.min >= 0.5,
            None => is_open(range),
        };
        // The other side must not be hidden whole, nor may the diagonal be.
        match (hidden(later), hidden(earlier)) {
            (true, false) => "future",
            (false, true) => "past",
            _ if all_open(later) && all_open(earlier) => "none",
            _ => "unknown",
        }
    }
}

/// `(mask-layout, mask-hides)` of an attention.
pub(super) fn verdict(view: &View<'_>, attention: &Attention) -> (&'static str, &'static str) {
    let Some(mask) = &attention.mask else { return ("none", "none") };
    let hides = mask.triangle(view);
    let (Some(queries), Some(keys), Some(own_queries), Some(own_keys)) =
        (mask.queries, mask.keys, mask.own_queries, mask.own_keys)
    else {
        return ("unknown", hides);
    };
    let one = Dim::Static(1);
    if [queries, keys, own_queries, own_keys].contains(&Dim::Unknown) {
        return ("unknown", hides);
    }
    if queries != keys {
        let fits = |own: Dim, there: Dim| own == one || own == there;
        let layout = if fits(own_queries, queries) && fits(own_keys, keys) {
            "matches"
        } else if fits(own_queries, keys) && fits(own_keys, queries) {
            // Broadcasting blows the scores up, or the program does not run at all.
            "transposed"
        } else {
            "unknown"
        };
        return (layout, hides);
    }
    let layout = match hides {
        "future" => "matches",
        "past" => "transposed",
        _ if own_queries == one && own_keys == keys => "matches",
        _ if own_queries == queries && own_keys == keys => "square",
        _ => "unknown",
    };
    (layout, hides)
}
