//! Attention: softmax(q·k)·v, as one op or written out; records `attention`.
//!
//! Written-out attention is found from its softmax. Upward, through scale, mask, casts and movement,
//! the nearest product of two run-time tensors gives queries and keys; downward the nearest product
//! gives the values. Which operand of the first is the key follows from the axis that the second sums
//! over, not from names or order, so that `q @ kᵀ`, per-head einsums, their decompositions and
//! channels-first code are all one.

use rustc_hash::FxHashMap;

use super::attention_mask::{self, Mask};
use super::attention_source as source;
use super::axes;
use super::contraction::{Contraction, Side};
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, Dim, NodeId, Op, ValueId};

/// Most values looked at on either side of one softmax.
const MOST_VALUES: usize = 256;

/// One operand of an attention with the axes that matter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    pub(crate) value: ValueId,
    /// Axis that counts queries, or keys.
    pub(crate) sequence: Option<usize>,
    /// Axis that holds the channels of a head.
    pub(crate) channel: Option<usize>,
}

/// Where a scale is multiplied in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalePlace {
    None,
    Query,
    Key,
    Scores,
    Sdpa,
}

/// One attention block (or one head of it).
#[derive(Debug, Clone)]
pub(crate) struct Attention {
    /// The softmax, or the fused op.
    pub(crate) softmax: NodeId,
    /// The product with the values, or the fused op.
    pub(crate) output: NodeId,
    pub(crate) query: Operand,
    pub(crate) key: Operand,
    pub(crate) value: Operand,
    /// Further keys and values of a softmax over joined scores.
    pub(crate) more_keys: Vec<ValueId>,
    pub(crate) more_values: Vec<ValueId>,
    pub(crate) scores: Option<ValueId>,
    pub(crate) probabilities: Option<ValueId>,
    pub(crate) product: Option<NodeId>,
    pub(crate) mask: Option<Mask>,
    pub(crate) softmax_axis: Option<usize>,
    pub(crate) contracted_axis: Option<usize>,
    /// Whether the weights are divided by run-time sums between softmax and product.
    pub(crate) renormalised: bool,
    pub(crate) query_axis: Option<usize>,
    pub(crate) key_axis: Option<usize>,
    pub(crate) scale: Option<NodeId>,
    pub(crate) scale_place: ScalePlace,
    pub(crate) head_dim: Option<u64>,
}

/// A value reached from a softmax, with the step that reached it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) value: ValueId,
    /// The step before, nearer to the softmax.
    from: usize,
    /// The op between both, and the operand slot on its upper side.
    pub(super) node: NodeId,
    pub(super) slot: usize,
}

/// Every attention of a function, in program order of the softmax.
pub(crate) fn find(view: &View<'_>) -> Vec<Attention> {
    view.function
        .node_ids()
        .filter(|&node| view.function.is_work(node))
        .filter_map(|node| match view.op(node) {
            Op::SOFTMAX => written_out(view, node),
            Op::SDPA | Op::MULTI_HEAD_ATTENTION => fused(view, node),
            _ => None,
        })
        .collect()
}

fn fused(view: &View<'_>, node: NodeId) -> Option<Attention> {
    let operand = |word| -> Option<Operand> {
        let value = view.operand(node, word)?;
        let rank = view.rank(value)?;
        Some(Operand { value, sequence: rank.checked_sub(2), channel: rank.checked_sub(1) })
    };
    let query = operand(view.words.query)?;
    let key = operand(view.words.key)?;
    let value = operand(view.words.value)?;
    let rank = view.rank(query.value)?;
    let (query_axis, key_axis) = (rank.checked_sub(2), rank.checked_sub(1));
    let mask = view
        .operand(node, view.words.mask)
        .map(|mask| attention_mask::of_fused(view, node, mask, query, key));
    let has_scale = view.attr(node, view.words.scale).is_some();
    let (scale, scale_place) = match source::scale_above(view, query.value) {
        Some(scale) => (Some(scale), ScalePlace::Query),
        None => match source::scale_above(view, key.value) {
            Some(scale) => (Some(scale), ScalePlace::Key),
            None => (has_scale.then_some(node), ScalePlace::Sdpa),
        },
    };
    Some(Attention {
        softmax: node,
        output: node,
        query,
        key,
        value,
        more_keys: Vec::new(),
        more_values: Vec::new(),
        scores: None,
        probabilities: None,
        product: None,
        mask,
        softmax_axis: None,
        contracted_axis: None,
        renormalised: false,
        query_axis,
        key_axis,
        scale,
        scale_place,
        head_dim: query.channel.and_then(|axis| view.extent(query.value, axis)),
    })
}

fn written_out(view: &View<'_>, softmax: NodeId) -> Option<Attention> {
    let scores = view.input(softmax)?;
    let probabilities = view.function.result(softmax)?;
    let mut below = products_below(view, probabilities);
    // What another softmax weighs is that one's values, though it be a distribution itself.
    below.retain(|(path, product)| {
        let slot = path.last().map_or(0, |step| step.slot);
        product.sides_from(slot).is_none_or(|(_, other)| !is_softmax(view, other.value))
    });
    let (down, first) = below.first()?;
    let above = products_above(view, scores);
    let (up, product) = above.first()?;
    let softmax_axis = view.axis(softmax);

    // The axis that the second product sums over, brought back to the softmax.
    let (own, other) = first.sides_from(down.last().map_or(0, |step| step.slot))?;
    let contracted_axis = own.contracted.first().and_then(|&axis| {
        // The last step is the product itself.
        let mut axis = axis;
        for step in down.iter().rev().skip(1) {
            axis = axes::back(view, step.node, step.slot, step.value, axis)?;
        }
        Some(axis)
    });
    let place = |side: &Side| -> Option<usize> {
        let (_, axis) = side.free(view, product.result)?;
        brought_down(view, scores, up, axis)
    };
    let (at_a, at_b) = (place(&product.a), place(&product.b));
    let key_is_a = match (contracted_axis.or(softmax_axis), at_a, at_b) {
        (Some(axis), Some(a), _) if axis == a => true,
        (Some(axis), _, Some(b)) if axis == b => false,
        // Both known, neither summed over: no attention. One lost on the way: it is the key's.
        (Some(_), Some(_), Some(_)) => return None,
        (Some(_), None, Some(_)) => true,
        _ => false,
    };
    let (key_side, query_side, key_axis, query_axis) = if key_is_a {
        (&product.a, &product.b, at_a, at_b)
    } else {
        (&product.b, &product.a, at_b, at_a)
    };
    let operand = |side: &Side| Operand {
        value: side.value,
        sequence: side.free(view, product.result).map(|(own, _)| own),
        channel: side.contracted.first().copied(),
    };
    let (query, key) = (operand(query_side), operand(key_side));
    let value = Operand {
        value: other.value,
        sequence: other.contracted.first().copied(),
        channel: other.free(view, first.result).map(|(own, _)| own),
    };
    let mask = attention_mask::of_path(view, scores, up, query_axis, key_axis);
    let on_scores = up.iter().find_map(|step| {
        (matches!(view.op(step.node), Op::MUL | Op::DIV)
            && view.operands(step.node).any(|operand| source::is_scale(view, operand)))
        .then_some(step.node)
    });
    let (scale, scale_place) = match on_scores {
        Some(node) => (Some(node), ScalePlace::Scores),
        None => match source::scale_above(view, query.value) {
            Some(node) => (Some(node), ScalePlace::Query),
            None => match source::scale_above(view, key.value) {
                Some(node) => (Some(node), ScalePlace::Key),
                None => (None, ScalePlace::None),
            },
        },
    };
    let head_dim = query.channel.and_then(|axis| view.extent(query.value, axis));
    let more_keys = above[1..]
        .iter()
        .filter_map(|(_, more)| {
            // The side that is not this query.
            let (a, b) = (more.a.value, more.b.value);
            [(a, b), (b, a)].into_iter().find(|&(q, _)| view.plain(q) == view.plain(query.value))
        })
        .map(|(_, key)| key)
        .collect();
    let more_values = below[1..]
        .iter()
        .filter_map(|(path, more)| more.sides_from(path.last()?.slot))
        .map(|(_, other)| other.value)
        .collect();
    Some(Attention {
        softmax,
        output: first.node,
        query,
        key,
        value,
        more_keys,
        more_values,
        scores: Some(scores),
        probabilities: Some(probabilities),
        product: Some(product.node),
        mask,
        softmax_axis,
        contracted_axis,
        renormalised: is_renormalised(view, down),
        query_axis,
        key_axis,
        scale,
        scale_place,
        head_dim,
    })
}

/// Brings an axis of the product's result down its path to the softmax.
fn brought_down(view: &View<'_>, scores: ValueId, path: &[Step], axis: usize) -> Option<usize> {
    let mut axis = axis;
    for at in (0..path.len()).rev() {
        let result = if at == 0 { scores } else { path[at - 1].value };
        axis = axes::forward(view, path[at].node, path[at].slot, result, axis)?;
    }
    Some(axis)
}

/// The chain of steps that ends at `last`, nearest to the softmax first.
fn chain(steps: &[Step], mut last: usize) -> Vec<Step> {
    let mut path = Vec::new();
    while last != usize::MAX {
        path.push(steps[last]);
        last = steps[last].from;
    }
    path.reverse();
    path
}

/// Whether a product joins two tensors of the data path. A learned query counts if it is batched or
/// by heads: then it is no projection.
fn is_product_of_data(view: &View<'_>, contraction: &Contraction) -> bool {
    let sides = [&contraction.a, &contraction.b];
    !contraction.a.contracted.is_empty()
        && sides.iter().any(|side| !view.is_fixed(side.value))
        && sides.iter().all(|side| {
            !view.is_fixed(side.value) || view.rank(side.value).is_some_and(|rank| rank > 2)
        })
}

/// Whether a value is a softmax's result, looked at through casts, dropout and views.
fn is_softmax(view: &View<'_>, value: ValueId) -> bool {
    let mut value = value;
    for _ in 0..8 {
        let node = view.producer(value);
        match view.op(node) {
            Op::SOFTMAX => return true,
            op if matches!(op, Op::CAST | Op::DROPOUT)
                || op.category() == Category::Transparent =>
            {
                let Some(input) = view.input(node) else { return false };
                value = input;
            }
            _ => return false,
        }
    }
    false
}

/// Whether the weights are divided by something that runs on the way to the product: they then add up
/// to 1 over another axis than the softmax's, as in slot attention.
fn is_renormalised(view: &View<'_>, down: &[Step]) -> bool {
    down.iter().any(|step| {
        view.op(step.node) == Op::DIV
            && step.slot == 0
            && view.operands(step.node).nth(1).is_some_and(|divisor| !view.is_fixed(divisor))
    })
}

/// Whether scores or probabilities pass through an op in one piece.
fn passes(view: &View<'_>, node: NodeId) -> bool {
    matches!(
        view.op(node),
        Op::ADD
            | Op::SUB
            | Op::MUL
            | Op::DIV
            | Op::WHERE
            | Op::MINIMUM
            | Op::MAXIMUM
            | Op::CLAMP
            | Op::TANH
            | Op::NEG
            | Op::CAST
            | Op::DROPOUT
            | Op::TRANSPOSE
            | Op::SLICE
            | Op::SELECT
            | Op::SPLIT
            | Op::UNBIND
            | Op::EXPAND
            | Op::TILE
            | Op::CONCAT
            | Op::PAD
    ) || view.op(node).category() == Category::Transparent
}

/// Products above the softmax, nearest first, each with the path from the softmax to its result.
/// A path's step holds the value above its op.
fn products_above(view: &View<'_>, scores: ValueId) -> Vec<(Vec<Step>, Contraction)> {
    let mut found = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut queue = std::collections::VecDeque::from([(scores, usize::MAX)]);
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some((value, at)) = queue.pop_front() {
        if seen.len() >= MOST_VALUES || !seen.insert(value) || view.is_fixed(value) {
            continue;
        }
        let node = view.producer(value);
        if let Some(contraction) = Contraction::of(view, node) {
            if is_product_of_data(view, &contraction) {
                found.push((chain(&steps, at), contraction));
            }
            continue;
        }
        if !view.is_op(node) || !passes(view, node) {
            continue;
        }
        for (slot, operand) in view.function.operands(node).iter().enumerate() {
            if operand.name == view.words.condition {
                continue;
            }
            steps.push(Step { value: operand.value, from: at, node, slot });
            queue.push_back((operand.value, steps.len() - 1));
        }
    }
    found
}

/// Products below the softmax, nearest first. A path's step holds the result of its op; the last
/// step is the product itself.
fn products_below(view: &View<'_>, probabilities: ValueId) -> Vec<(Vec<Step>, Contraction)> {
    let mut found = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut queue = std::collections::VecDeque::from([(probabilities, usize::MAX)]);
    let mut seen = rustc_hash::FxHashSet::default();
    while let Some((value, at)) = queue.pop_front() {
        if seen.len() >= MOST_VALUES || !seen.insert(value) {
            continue;
        }
        for &(node, slot) in view.uses.of_value(value).iter().take(MOST_VALUES) {
            let slot = slot as usize;
            if let Some(contraction) = Contraction::of(view, node) {
                let data = contraction
                    .sides_from(slot)
                    .is_some_and(|(_, other)| !view.is_fixed(other.value));
                if data && !contraction.a.contracted.is_empty() {
                    let result = contraction.result;
                    steps.push(Step { value: result, from: at, node, slot });
                    found.push((chain(&steps, steps.len() - 1), contraction));
                }
                continue;
            }
            if !view.is_op(node) || !passes(view, node) {
                continue;
            }
            for result in view.function.results(node) {
                steps.push(Step { value: result, from: at, node, slot });
                queue.push_back((result, steps.len() - 1));
            }
        }
    }
    found
}

/// How the heads of one record are laid out.
struct Heads {
    word: &'static str,
    count: Option<u64>,
}

/// Heads in the scores: every axis that is neither batch, query nor key.
fn heads(view: &View<'_>, attention: &Attention, siblings: u64) -> Heads {
    let dims = match attention.scores {
        Some(scores) => view.dims(scores),
        None => view.dims(attention.query.value),
    };
    let inside = dims.and_then(|dims| {
        let (query, key) = (attention.query_axis, attention.key_axis);
        let rest: Vec<Dim> = (0..dims.len())
            .filter(|&axis| Some(axis) != query && Some(axis) != key)
            .map(|axis| dims[axis])
            .collect();
        match rest.as_slice() {
            [] => Some(1),
            // Batch and heads may be merged: the projection's batch tells them apart.
            [only] => {
                let projection = source::projection(view, attention.query.value)?;
                let batch = view.extent(view.function.result(projection)?, 0)?;
                let both = only.value()?;
                Some(if batch > 0 && both % batch == 0 { both / batch } else { 1 })
            }
            [_, heads @ ..] => heads.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?)),
        }
    });
    match inside {
        Some(n) if n > 1 => Heads { word: "fused", count: Some(n) },
        _ if siblings > 1 => Heads { word: "per-head", count: Some(siblings) },
        Some(_) => Heads { word: "single", count: Some(1) },
        None => Heads { word: "single", count: None },
    }
}

fn layout(view: &View<'_>, attention: &Attention) -> &'static str {
    let rank = match attention.scores {
        Some(scores) => view.rank(scores),
        None => view.rank(attention.query.value),
    };
    let (Some(rank), Some(query), Some(key)) = (rank, attention.query_axis, attention.key_axis)
    else {
        return "other";
    };
    if query + 2 == rank && key + 1 == rank && rank >= 3 {
        "bhsd"
    } else if rank == 4 && key == 1 && query == 3 {
        "bc1s"
    } else {
        "other"
    }
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let attentions = view.facts.attentions(view.id);
    let roots: Vec<Option<ValueId>> =
        attentions.iter().map(|attention| source::head_root(view, attention.query)).collect();
    let mut siblings: FxHashMap<ValueId, u64> = FxHashMap::default();
    for root in roots.iter().flatten() {
        *siblings.entry(*root).or_default() += 1;
    }
    attentions
        .iter()
        .zip(&roots)
        .map(|(attention, root)| {
            let parallel = root.and_then(|root| siblings.get(&root).copied()).unwrap_or(1);
            record(view, attention, parallel)
        })
        .collect()
}

fn record(view: &View<'_>, attention: &Attention, siblings: u64) -> Record {
    let heads = heads(view, attention, siblings);
    let (layout_word, hides) = attention_mask::verdict(view, attention);
    let mut fields = vec![
        ("softmax", Field::Node(attention.softmax)),
        ("output", Field::Node(attention.output)),
        ("query", Field::Value(attention.query.value)),
        ("key", Field::Value(attention.key.value)),
        ("value", Field::Value(attention.value.value)),
        ("kind", Field::Text(if attention.scores.is_some() { "decomposed" } else { "sdpa" })),
        ("heads", Field::Text(heads.word)),
        ("mask-layout", Field::Text(layout_word)),
        ("mask-hides", Field::Text(hides)),
        ("layout", Field::Text(layout(view, attention))),
        ("renormalised", Field::Bool(attention.renormalised)),
        (
            "scale-place",
            Field::Text(match attention.scale_place {
                ScalePlace::None => "none",
                ScalePlace::Query => "query",
                ScalePlace::Key => "key",
                ScalePlace::Scores => "scores",
                ScalePlace::Sdpa => "sdpa",
            }),
        ),
    ];
    let int = |n: Option<u64>| n.and_then(|n| i64::try_from(n).ok()).map(Field::Int);
    let axis = |n: Option<usize>| n.map(|n| Field::Int(n as i64));
    let length =
        |operand: Operand| operand.sequence.and_then(|axis| view.extent(operand.value, axis));
    let mask = attention.mask.as_ref();
    let optional = [
        ("scores", attention.scores.map(Field::Value)),
        ("probabilities", attention.probabilities.map(Field::Value)),
        ("product", attention.product.map(Field::Node)),
        ("mask", mask.map(|mask| Field::Value(mask.value))),
        ("mask-join", mask.map(|mask| Field::Node(mask.join))),
        ("head-count", int(heads.count)),
        ("head-dim", int(attention.head_dim)),
        ("softmax-axis", axis(attention.softmax_axis)),
        ("contracted-axis", axis(attention.contracted_axis)),
        ("scores-query-axis", axis(attention.query_axis)),
        ("scores-key-axis", axis(attention.key_axis)),
        ("mask-query-axis", axis(mask.and_then(|mask| mask.query_axis))),
        ("mask-key-axis", axis(mask.and_then(|mask| mask.key_axis))),
        ("query-length", int(length(attention.query))),
        ("key-length", int(length(attention.key))),
        ("scale", attention.scale.map(Field::Node)),
        ("key-repeat", source::repeat(view, attention.key.value).map(Field::Node)),
        ("value-repeat", source::repeat(view, attention.value.value).map(Field::Node)),
        ("query-projection", source::projection(view, attention.query.value).map(Field::Node)),
        ("key-projection", source::projection(view, attention.key.value).map(Field::Node)),
        ("value-projection", source::projection(view, attention.value.value).map(Field::Node)),
    ];
    fields.extend(optional.into_iter().filter_map(|(name, field)| field.map(|f| (name, f))));
    Record { anchor: attention.softmax, fields }
}
