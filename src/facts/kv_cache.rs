//! Keys and values that a function hands out for the next step, and whether they are what attention
//! reads: records `kv-cache`.
//!
//! From the keys of every attention the walk goes up through joins with the past, writes by place,
//! movement, norms and rotary embeddings to the projection, and marks each value on the way with the
//! rotation crossed so far. From every output and state write another walk goes up through movement
//! only, until it meets a mark. A cached key that lies above the rotation has not had it: that is the
//! fault, unless the rotation is of past and new keys joined.

use rustc_hash::{FxHashMap, FxHashSet};

use super::attention::Attention;
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Attr, Category, NodeFlags, NodeId, NodeKind, Op, ValueId};

/// Most values looked at above the keys (or values) of one attention.
const MOST_VALUES: usize = 256;
/// Most values looked at above one output.
const MOST_CARRIED: usize = 4096;

/// A value on the way from an attention to where its keys or values come from.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Index of the attention.
    attention: usize,
    /// The rotated value of the rotary embedding crossed on the way here.
    crossed: Option<ValueId>,
    /// The join with the past crossed between the attention and the rotation (or here).
    join: Option<NodeId>,
}

/// What the walks from all attentions of a function found, for keys or for values.
#[derive(Default)]
struct Marks {
    by_value: FxHashMap<ValueId, Mark>,
    /// Attentions with a rotary embedding above their keys.
    rotated: FxHashSet<usize>,
    /// Rotary embeddings (by rotated value) above which past and new are joined.
    of_joined: FxHashSet<ValueId>,
}

/// Whether a value is what an input or a state holds, moved or masked but not projected.
fn is_past(view: &View<'_>, mut value: ValueId) -> bool {
    for _ in 0..24 {
        let node = view.producer(value);
        match view.function.node(node).kind {
            NodeKind::Input | NodeKind::State => return view.rank(value).is_some_and(|r| r >= 3),
            NodeKind::Constant(_) | NodeKind::Output => return false,
            NodeKind::Op => {}
        }
        let op = view.op(node);
        let next = match op {
            Op::STATE_READ => match state_written(view, node) {
                Some(written) => Some(written),
                None => return true,
            },
            Op::STATE_WRITE => view.operand(node, view.words.state),
            Op::SLICE_UPDATE | Op::INDEX_PUT => view.input(node),
            Op::MUL => view.pair(node).map(|(a, b)| if view.is_fixed(a) { b } else { a }),
            Op::GATHER | Op::INDEX => view.input(node),
            _ if matches!(
                op.category(),
                Category::Transparent | Category::Movement | Category::Conversion
            ) && !matches!(op, Op::CONCAT | Op::STACK) =>
            {
                view.input(node)
            }
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return false,
        }
    }
    false
}

/// The write that a state read follows; none for the state as the run found it.
fn state_written(view: &View<'_>, read: NodeId) -> Option<ValueId> {
    let state = view.operand(read, view.words.state)?;
    (view.op(view.producer(state)) == Op::STATE_WRITE).then_some(state)
}

/// Ops that write part of a tensor by place.
fn is_write(op: Op) -> bool {
    matches!(
        op,
        Op::SLICE_UPDATE
            | Op::INDEX_PUT
            | Op::SCATTER
            | Op::SCATTER_ELEMENTS
            | Op::SCATTER_ND
            | Op::STATE_WRITE
    )
}

/// Walks up from one operand of one attention.
fn mark(view: &View<'_>, at: usize, start: ValueId, marks: &mut Marks) {
    let mut queue = std::collections::VecDeque::from([(
        start,
        Mark { attention: at, crossed: None, join: None },
    )]);
    let mut seen = FxHashSet::default();
    while let Some((value, mark)) = queue.pop_front() {
        if seen.len() >= MOST_VALUES || !seen.insert(value) || view.is_fixed(value) {
            continue;
        }
        marks.by_value.entry(value).or_insert(mark);
        let node = view.producer(value);
        if !view.is_op(node) {
            continue;
        }
        if let Some(rope) = view.facts.rope_of(view.id, value) {
            marks.rotated.insert(at);
            let crossed = mark.crossed.or(Some(value));
            queue.push_back((rope.pre, Mark { crossed, ..mark }));
            continue;
        }
        let op = view.op(node);
        let parts: Vec<ValueId> = match op {
            Op::CONCAT | Op::STACK | Op::ADD | Op::WHERE | Op::MUL => view
                .function
                .operands(node)
                .iter()
                .filter(|operand| operand.name != view.words.condition)
                .map(|operand| operand.value)
                .collect(),
            _ if is_write(op) => {
                // What a state held before is no value of this run.
                let old = (op != Op::STATE_WRITE).then(|| view.input(node)).flatten();
                [view.written(node), old].into_iter().flatten().collect()
            }
            Op::LINEAR | Op::CONV | Op::MATMUL | Op::ADDMM | Op::EINSUM => continue,
            // A read after a write of the same run reads what was written.
            Op::STATE_READ => state_written(view, node).into_iter().collect(),
            _ => match op.category() {
                Category::Transparent
                | Category::Movement
                | Category::Conversion
                | Category::Normalization => view.input(node).into_iter().collect(),
                Category::Elementwise => view.operands(node).collect(),
                _ => continue,
            },
        };
        let mut mark = mark;
        let by_place = op != Op::STATE_WRITE
            || view.attr(node, view.words.begin).is_some()
            || view.operand(node, view.words.begin).is_some();
        let joins = (is_write(op) && by_place)
            || (parts.len() > 1 && parts.iter().any(|&part| is_past(view, part)));
        if joins {
            match mark.crossed {
                Some(rope) => {
                    marks.of_joined.insert(rope);
                }
                None => mark.join = mark.join.or(Some(node)),
            }
        }
        queue.extend(parts.into_iter().map(|part| (part, mark)));
    }
}

/// A value that a sink carries.
struct Carried {
    /// The marked value.
    at: ValueId,
    mark: Mark,
    /// What to show: the marked value, or the op below it where that is a bare input.
    shown: ValueId,
    /// The write by place on the way.
    write: Option<NodeId>,
}

/// What a sink takes: the marked values that it carries. `bare` tells whether an input as it came
/// counts: written to a state it does, handed back as an output it is nothing new.
fn carried(
    view: &View<'_>,
    start: ValueId,
    bare: bool,
    marks: &Marks,
    others: &Marks,
) -> Vec<Carried> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut stack = vec![(start, None, None)];
    while let Some((value, below, write)) = stack.pop() {
        if seen.len() >= MOST_CARRIED || !seen.insert(value) {
            continue;
        }
        let node = view.producer(value);
        let op = view.op(node);
        let write = if is_write(op) { write.or(Some(node)) } else { write };
        if let Some(&mark) = marks.by_value.get(&value) {
            // What keys and values both come from (one projection for all) is neither.
            let own = view.is_op(node);
            let new = op != Op::STATE_READ && (own || bare || below.is_some());
            if new && !others.by_value.contains_key(&value) {
                let shown = if own { value } else { below.unwrap_or(value) };
                found.push(Carried { at: value, mark, shown, write });
            }
            continue;
        }
        if !view.is_op(node) {
            continue;
        }
        // An op that does some work makes a value of its own, whatever comes in.
        let below = if view.is_transparent(node) { below } else { Some(value) };
        let mut go = |next: ValueId| stack.push((next, below, write));
        match op {
            Op::CONCAT | Op::STACK => {
                // Of past and new only the new one is this run's; of bare inputs the last.
                let new = || view.operands(node).filter(|&operand| !is_past(view, operand));
                if new().next().is_some() {
                    new().for_each(go);
                } else {
                    view.operands(node).last().into_iter().for_each(go);
                }
            }
            _ if is_write(op) => view.written(node).into_iter().for_each(go),
            Op::MUL | Op::DIV => {
                if let Some((a, b)) = view.pair(node) {
                    match (view.is_scalar(a), view.is_scalar(b)) {
                        (false, true) => go(a),
                        (true, false) => go(b),
                        _ => {}
                    }
                }
            }
            _ if matches!(op.category(), Category::Transparent | Category::Movement)
                || op == Op::CAST =>
            {
                view.input(node).into_iter().for_each(go);
            }
            _ => {}
        }
    }
    found.sort_unstable_by_key(|carried| carried.at);
    found
}

/// Where the place of a write comes from.
pub(super) fn begin_of(view: &View<'_>, write: NodeId) -> &'static str {
    let words = view.words;
    let mut operands = [view.operand(write, words.begin), view.operand(write, words.indices)]
        .into_iter()
        .flatten()
        .peekable();
    if operands.peek().is_some() {
        let mut word = "constant";
        for operand in operands {
            if !view.is_fixed(operand) {
                return "run-time";
            }
            let node = view.producer(operand);
            if view.is_op(node) && !view.has_flag(node, NodeFlags::CONSTANT_WORK) {
                word = "shape-symbol";
            }
        }
        return word;
    }
    match view.attr(write, words.begin) {
        Some(Attr::Int(_)) => "constant",
        Some(Attr::Ints(list)) if list.iter().all(Option::is_some) => "constant",
        Some(Attr::Symbol(id)) => {
            let data = view.program().shapes.symbol(*id).is_some_and(|s| s.data_dependent);
            if data { "run-time" } else { "shape-symbol" }
        }
        Some(_) => "run-time",
        None => "none",
    }
}

/// Whether a cached key has had the rotation that the attention's key has had.
fn rotation(marks: &Marks, mark: &Mark) -> &'static str {
    if !marks.rotated.contains(&mark.attention) {
        return "no-rope";
    }
    match mark.crossed {
        None => "yes",
        // Rotated alone and joined after: the cache lacks it.
        Some(_) if mark.join.is_some() => "no",
        Some(rope) if marks.of_joined.contains(&rope) => "after-join",
        Some(_) => "no",
    }
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let attentions = view.facts.attentions(view.id);
    if attentions.is_empty() {
        return Vec::new();
    }
    let (mut keys, mut values) = (Marks::default(), Marks::default());
    for (at, attention) in attentions.iter().enumerate() {
        let Attention { key, value, more_keys, more_values, .. } = attention;
        for &start in std::iter::once(&key.value).chain(more_keys) {
            mark(view, at, start, &mut keys);
        }
        for &start in std::iter::once(&value.value).chain(more_values) {
            mark(view, at, start, &mut values);
        }
    }
    let mut records = Vec::new();
    for (sink, node) in view.function.nodes() {
        let start = match node.kind {
            NodeKind::Output => view.input(sink),
            NodeKind::Op if node.op == Op::STATE_WRITE => view.written(sink),
            _ => continue,
        };
        let Some(start) = start else { continue };
        // The output that hands a written state back repeats the write.
        if view.op(view.producer(start)) == Op::STATE_WRITE {
            continue;
        }
        for (role, marks) in [("key", &keys), ("value", &values)] {
            let others = if role == "key" { &values } else { &keys };
            let bare = node.kind == NodeKind::Op;
            for Carried { mark, shown, write, .. } in carried(view, start, bare, marks, others) {
                let attention = &attentions[mark.attention];
                let rotated = if role == "key" { rotation(marks, &mark) } else { "no-rope" };
                let write = match node.kind {
                    NodeKind::Op => write.or(Some(sink)),
                    _ => write,
                };
                let mut fields = vec![
                    ("role", Field::Text(role)),
                    ("cached", Field::Value(shown)),
                    ("sink", Field::Node(sink)),
                    ("attention", Field::Node(attention.softmax)),
                    ("rotated", Field::Text(rotated)),
                    ("begin", Field::Text(write.map_or("none", |write| begin_of(view, write)))),
                ];
                let rope = mark.crossed.filter(|_| role == "key");
                let rope = rope.and_then(|post| view.facts.rope_of(view.id, post));
                let optional = [
                    ("write", write.map(Field::Node)),
                    ("rope", rope.map(|rope| Field::Node(rope.anchor))),
                    ("join", mark.join.map(Field::Node)),
                ];
                fields.extend(optional.into_iter().filter_map(|(name, f)| f.map(|f| (name, f))));
                records.push(Record { anchor: sink, fields });
            }
        }
    }
    records
}
