//! Rotary embeddings: `x·cos + rotated(x)·sin` in the forms that people write; records `rope`.
//!
//! Two shapes of graph cover them. *Whole*: the sum of `x·cos` and `r·sin`, where `r` joins the
//! negated second part of `x` with its first part (`rotate_half`, `rotate_every_two`). *Parts*: a
//! concat or stack of `x1·cos − x2·sin` and `x2·cos + x1·sin`, where `x1` and `x2` are parts of `x`.
//! Halves or even and odd lanes follow from how the parts are cut. Besides: one op, and complex
//! numbers.

use rustc_hash::FxHashMap;

use super::record::{Field, Record};
use super::rope_table::{self, Table};
use super::view::View;
use super::{axes, rope_heads};
use crate::graph::{NodeId, Op, ValueId};

/// How the parts of a rotated value are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    RotateHalf,
    Interleaved,
    Composite,
    Complex,
}

/// One rotary embedding.
#[derive(Debug, Clone)]
pub(crate) struct Rope {
    /// The op whose result is the rotated value.
    pub(crate) anchor: NodeId,
    /// Before rotation.
    pub(crate) pre: ValueId,
    /// After rotation.
    pub(crate) post: ValueId,
    pub(crate) cos: Option<ValueId>,
    pub(crate) sin: Option<ValueId>,
    pub(crate) form: Form,
    /// The op that takes the parts, and the axis that it cuts.
    pub(crate) split: Option<NodeId>,
    pub(crate) axis: Option<usize>,
}

/// A part of a value: which part of two, of which value, along which axis, how cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    of: ValueId,
    axis: usize,
    second: bool,
    interleaved: bool,
    cut: NodeId,
}

/// Goes up through transparent ops, casts and expands.
fn plain(view: &View<'_>, mut value: ValueId) -> ValueId {
    for _ in 0..32 {
        let node = view.producer(value);
        let passes = view.is_transparent(node) || matches!(view.op(node), Op::CAST | Op::EXPAND);
        match view.input(node).filter(|_| passes) {
            Some(input) => value = input,
            None => break,
        }
    }
    value
}

/// Casts and ops that change nothing, not even the shape.
fn same_shape(view: &View<'_>, mut value: ValueId) -> ValueId {
    for _ in 0..32 {
        let node = view.producer(value);
        let passes = view.op(node) == Op::CAST || view.is_transparent(node);
        match view.input(node).filter(|_| passes) {
            Some(input) if view.dims(input) == view.dims(value) => value = input,
            _ => break,
        }
    }
    value
}

/// Reads a value as one half, or the even or odd lanes, of another.
fn part(view: &View<'_>, value: ValueId) -> Option<Part> {
    let mut value = same_shape(view, value);
    // `x[..., ::2]` of a reshape to pairs ends with a select, an unbind, or a slice and a squeeze.
    for _ in 0..4 {
        let node = view.producer(value);
        if matches!(
            view.op(node),
            Op::UNSQUEEZE | Op::SQUEEZE | Op::RESHAPE | Op::FLATTEN | Op::CAST
        ) && matches!(
            view.op(view.producer(view.input(node)?)),
            Op::SLICE | Op::SPLIT | Op::UNBIND | Op::SELECT | Op::UNSQUEEZE | Op::SQUEEZE
        ) {
            value = view.input(node)?;
        } else {
            break;
        }
    }
    let node = view.producer(value);
    let index = view.function.value(value).index;
    let input = view.input(node)?;
    let (axis, second, interleaved) = match view.op(node) {
        Op::SPLIT => {
            let axis = view.axis(node)?;
            let count = view.function.results(node).len();
            if count != 2 || view.extent(value, axis)? * 2 != view.extent(input, axis)? {
                return None;
            }
            (axis, index == 1, false)
        }
        Op::UNBIND => {
            let axis = view.axis(node)?;
            if view.extent(input, axis) != Some(2) {
                return None;
            }
            (axis, index == 1, true)
        }
        Op::SELECT => {
            let axis = view.axis(node)?;
            let place = view.int(node, view.words.index)?;
            if view.extent(input, axis) != Some(2) {
                return None;
            }
            (axis, place == 1 || place == -1, true)
        }
        Op::SLICE => {
            // The one axis that is really cut.
            let mut real = view.cuts(node)?.into_iter().filter(|cut| {
                let whole = view.extent(input, cut.axis).map(|n| n as i64);
                cut.step != 1 || cut.begin != Some(0) || cut.end.is_none() || cut.end != whole
            });
            let cut = real.next()?;
            if real.next().is_some() {
                return None;
            }
            let whole = view.extent(input, cut.axis)? as i64;
            let (begin, end) = (cut.begin?, cut.end?);
            match cut.step {
                2 if begin < 2 && end >= whole - 1 => (cut.axis, begin == 1, true),
                1 if begin == 0 && end * 2 == whole => (cut.axis, false, whole == 2),
                1 if begin * 2 == whole && end == whole => (cut.axis, true, whole == 2),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Part { of: same_shape(view, input), axis, second, interleaved, cut: node })
}

/// The operand that a node negates.
fn negated(view: &View<'_>, value: ValueId) -> Option<ValueId> {
    let node = view.producer(plain(view, value));
    match view.op(node) {
        Op::NEG => view.input(node),
        Op::MUL => {
            let (a, b) = view.pair(node)?;
            if view.number(b) == Some(-1.0) {
                Some(a)
            } else {
                (view.number(a) == Some(-1.0)).then_some(b)
            }
        }
        Op::SUB => {
            let (a, b) = view.pair(node)?;
            (view.number(a) == Some(0.0)).then_some(b)
        }
        _ => None,
    }
}

/// The two operands of a concat or stack of two.
fn joined(view: &View<'_>, value: ValueId) -> Option<(NodeId, ValueId, ValueId)> {
    let mut value = plain(view, value);
    for _ in 0..4 {
        let node = view.producer(value);
        if matches!(view.op(node), Op::CONCAT | Op::STACK) {
            let (a, b) = view.pair(node)?;
            return Some((node, a, b));
        }
        if !view.is_transparent(node) {
            return None;
        }
        value = view.input(node)?;
    }
    None
}

/// Whether two values are one, seen through casts and pure reshapes.
fn same(view: &View<'_>, a: ValueId, b: ValueId) -> bool {
    a == b || plain(view, a) == plain(view, b)
}

/// The factors of a product.
fn factors(view: &View<'_>, value: ValueId) -> Option<(ValueId, ValueId)> {
    let node = view.producer(plain(view, value));
    (view.op(node) == Op::MUL).then(|| view.pair(node)).flatten()
}

/// The rotary embeddings of a function, in program order.
#[derive(Debug)]
pub(crate) struct Ropes {
    pub(crate) list: Vec<Rope>,
    /// Index in `list` by rotated value.
    by_post: FxHashMap<ValueId, usize>,
}

impl Ropes {
    pub(crate) fn find(view: &View<'_>) -> Ropes {
        let list = find(view);
        let by_post = list.iter().enumerate().map(|(at, rope)| (rope.post, at)).collect();
        Ropes { list, by_post }
    }

    /// The one whose result a value is.
    pub(crate) fn of_post(&self, value: ValueId) -> Option<&Rope> {
        self.by_post.get(&value).map(|&at| &self.list[at])
    }
}

fn find(view: &View<'_>) -> Vec<Rope> {
    let mut ropes = Vec::new();
    for (node, _) in view.function.nodes().filter(|&(id, _)| view.function.is_work(id)) {
        let Some(post) = view.function.result(node) else { continue };
        let found = match view.op(node) {
            Op::ADD | Op::SUB => whole(view, node, post),
            Op::CONCAT | Op::STACK => parts(view, node, post),
            Op::ROPE => view.input(node).map(|pre| Rope {
                anchor: node,
                pre,
                post,
                cos: view.operand(node, view.words.cos),
                sin: view.operand(node, view.words.sin),
                form: Form::Composite,
                split: None,
                axis: view.rank(pre).and_then(|rank| rank.checked_sub(1)),
            }),
            Op::VIEW_AS_REAL => complex(view, node, post),
            _ => None,
        };
        ropes.extend(found);
    }
    ropes
}

/// `x·cos + r·sin`, where `r` is `x` with its parts exchanged and one of them negated.
fn whole(view: &View<'_>, node: NodeId, post: ValueId) -> Option<Rope> {
    let (left, right) = view.pair(node)?;
    for (direct, turned) in [(left, right), (right, left)] {
        let (Some((a, b)), Some((c, d))) = (factors(view, direct), factors(view, turned)) else {
            continue;
        };
        for (rotated, sin) in [(c, d), (d, c)] {
            let Some((_, first, second)) = joined(view, rotated) else { continue };
            // (−x2, x1) for a sum; (x2, −x1) where the sine is taken with the other sign.
            let (one, other, lead_negated) = match (negated(view, first), negated(view, second)) {
                (Some(inner), None) => (inner, second, true),
                (None, Some(inner)) => (first, inner, false),
                _ => continue,
            };
            let (Some(one), Some(other)) = (part(view, one), part(view, other)) else { continue };
            if one.of != other.of || !one.second || other.second || one.axis != other.axis {
                continue;
            }
            let _ = lead_negated;
            for (pre, cos) in [(a, b), (b, a)] {
                if same(view, pre, one.of) || pairs_of(view, one.of, pre) {
                    let form = if one.interleaved { Form::Interleaved } else { Form::RotateHalf };
                    return Some(Rope {
                        anchor: node,
                        pre: same_shape(view, pre),
                        post,
                        cos: Some(cos),
                        sin: Some(sin),
                        form,
                        split: Some(one.cut),
                        axis: if same_shape(view, pre) == one.of { Some(one.axis) } else { None },
                    });
                }
            }
        }
    }
    None
}

/// Whether `of` is `whole` with an axis taken apart into pairs.
fn pairs_of(view: &View<'_>, of: ValueId, whole: ValueId) -> bool {
    plain(view, of) == plain(view, whole)
}

/// A concat or stack of `x1·cos − x2·sin` and `x2·cos + x1·sin`.
fn parts(view: &View<'_>, node: NodeId, joined: ValueId) -> Option<Rope> {
    let (first, second) = view.pair(node)?;
    let difference = view.producer(plain(view, first));
    let sum = view.producer(plain(view, second));
    if view.op(difference) != Op::SUB || view.op(sum) != Op::ADD {
        return None;
    }
    let (minuend, subtrahend) = view.pair(difference)?;
    let (x1, cos) = part_times(view, minuend, false)?;
    let (x2, sin) = part_times(view, subtrahend, true)?;
    if x1.of != x2.of || x1.axis != x2.axis {
        return None;
    }
    let (a, b) = view.pair(sum)?;
    let crossed = |p: ValueId, q: ValueId| {
        let (y2, c) = part_times(view, p, true)?;
        let (y1, s) = part_times(view, q, false)?;
        (y2.of == x2.of && y1.of == x1.of && same(view, c, cos) && same(view, s, sin)).then_some(())
    };
    crossed(a, b).or_else(|| crossed(b, a))?;
    let interleaved = x1.interleaved || view.op(node) == Op::STACK;
    // Lanes are put back by a reshape behind the stack: that is the rotated value.
    let mut post = joined;
    if let [(user, _)] = view.uses.of_value(joined)
        && interleaved
        && view.is_transparent(*user)
        && let Some(result) = view.function.result(*user)
    {
        post = result;
    }
    // And taken apart by one in front.
    let mut pre = x1.of;
    let mut axis = Some(x1.axis);
    if view.extent(pre, x1.axis) == Some(2) {
        let before = view.producer(pre);
        if view.is_transparent(before)
            && let Some(input) = view.input(before)
        {
            (pre, axis) = (same_shape(view, input), None);
        }
    }
    Some(Rope {
        anchor: view.producer(post),
        pre,
        post,
        cos: Some(cos),
        sin: Some(sin),
        form: if interleaved { Form::Interleaved } else { Form::RotateHalf },
        split: Some(x1.cut),
        axis,
    })
}

/// A product of a part and something that is no part: the part and the other factor.
fn part_times(view: &View<'_>, value: ValueId, second: bool) -> Option<(Part, ValueId)> {
    let (a, b) = factors(view, value)?;
    [(a, b), (b, a)]
        .into_iter()
        .find_map(|(x, other)| part(view, x).filter(|p| p.second == second).map(|p| (p, other)))
}

/// `view_as_real(view_as_complex(x) · table)`.
fn complex(view: &View<'_>, node: NodeId, result: ValueId) -> Option<Rope> {
    let (a, b) = factors(view, view.input(node)?)?;
    let (turned, table) = [(a, b), (b, a)]
        .into_iter()
        .find(|&(x, _)| view.op(view.producer(x)) == Op::VIEW_AS_COMPLEX)?;
    let mut pre = view.input(view.producer(turned))?;
    let before = view.producer(pre);
    if view.is_transparent(before) {
        pre = view.input(before).unwrap_or(pre);
    }
    let mut post = result;
    if let [(user, _)] = view.uses.of_value(result)
        && view.is_transparent(*user)
        && let Some(next) = view.function.result(*user)
    {
        post = next;
    }
    Some(Rope {
        anchor: view.producer(post),
        pre: same_shape(view, pre),
        post,
        cos: Some(table),
        sin: None,
        form: Form::Complex,
        split: None,
        axis: None,
    })
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let first_compute = rope_table::first_compute(view);
    view.facts
        .ropes(view.id)
        .list
        .iter()
        .map(|rope| {
            let table = rope_table::of(view, rope);
            let heads = rope_heads::of(view, rope);
            let mut fields = vec![
                ("pre", Field::Value(rope.pre)),
                ("post", Field::Value(rope.post)),
                (
                    "form",
                    Field::Text(match rope.form {
                        Form::RotateHalf => "rotate-half",
                        Form::Interleaved => "interleaved",
                        Form::Composite => "composite",
                        Form::Complex => "complex",
                    }),
                ),
                ("halves-of", Field::Text(heads.word)),
                ("table", Field::Text(table.word())),
                ("depends-on-input", Field::Bool(table.varies)),
            ];
            let mut optional = |name, field: Option<Field>| {
                fields.extend(field.map(|field| (name, field)));
            };
            optional("cos", rope.cos.map(Field::Value));
            optional("sin", rope.sin.map(Field::Value));
            optional("split", rope.split.map(Field::Node));
            optional("split-axis", rope.axis.map(|axis| Field::Int(axis as i64)));
            let extent = rope.axis.and_then(|axis| view.extent(rope.pre, axis));
            optional("split-axis-extent", extent.map(|n| Field::Int(n as i64)));
            optional("heads", heads.count.map(|n| Field::Int(n as i64)));
            let Table { gather, value, trig, .. } = table;
            optional("gather", gather.map(Field::Node));
            let alone = gather.map(|gather| first_compute.is_none_or(|first| gather < first));
            optional("gather-alone", alone.map(Field::Bool));
            optional("table-value", value.map(Field::Value));
            optional("trig", (!trig.is_empty()).then_some(Field::Nodes(trig)));
            Record { anchor: rope.anchor, fields }
        })
        .collect()
}

/// Whether a walk that follows an axis may take this use: the op keeps the axis whole.
pub(super) fn follow(
    view: &View<'_>,
    node: NodeId,
    slot: usize,
    axis: usize,
) -> Option<(ValueId, usize)> {
    let result = view.function.result(node)?;
    axes::forward(view, node, slot, result, axis).map(|axis| (result, axis))
}
