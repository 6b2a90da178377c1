//! What brings −inf, NaN or a number that f16 cannot hold into a softmax: records `mask-source`.
//!
//! From every softmax input (and every float mask of an SDPA) the walk goes up through adds, selects,
//! factors, casts and movement, and stops at products, norms and inputs: what lies there is data. At
//! each fixed value that it meets, the folded range tells whether a bad number is among its elements,
//! and a descent into its recipe finds the constant that brings it. Not for −inf elsewhere (before a
//! max pool, in a clamp): those never reach a softmax.

use rustc_hash::FxHashSet;

use super::Facts;
use super::fold::Folded;
use super::range::{F16_MAX, F16_ROUNDS_TO_INFINITY, Range};
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, ConstantOrigin, DType, FunctionId, NodeId, NodeKind, Op, ValueId};

/// Most values looked at above one softmax; real masks take a few dozen.
const MOST_VALUES: usize = 512;
/// Most steps of a descent into constant work.
const MOST_STEPS: usize = 256;
/// An additive term is a mask term from here down; biases stay far above.
const MASK_LIKE: f64 = -1000.0;

/// A fixed value met on the way up from a softmax.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// The fixed value.
    value: ValueId,
    /// The op that uses it.
    user: NodeId,
    /// Where it, or what it is a factor of, joins the data path.
    join: NodeId,
    through: Through,
    /// Whether it is subtracted.
    subtracted: bool,
    /// Whether the sum or product lands in f16 somewhere on the way.
    f16: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Add,
    Where,
    Mul,
    Sdpa,
}

impl Through {
    fn word(self) -> &'static str {
        match self {
            Through::Add => "add",
            Through::Where => "where",
            Through::Mul => "mul",
            Through::Sdpa => "sdpa",
        }
    }
}

/// The value of a softmax or SDPA that must not hold −inf.
fn guarded(view: &View<'_>, node: NodeId) -> Option<ValueId> {
    match view.op(node) {
        Op::SOFTMAX | Op::LOG_SOFTMAX => view.input(node),
        Op::SDPA | Op::MULTI_HEAD_ATTENTION => {
            view.operand(node, view.words.mask).filter(|&mask| view.dtype(mask) != DType::Bool)
        }
        _ => None,
    }
}

/// Every run-time softmax and SDPA of a function, with the value to look at.
fn guards<'v>(view: &'v View<'_>) -> impl Iterator<Item = (NodeId, ValueId)> + 'v {
    view.function
        .node_ids()
        .filter(|&node| view.function.is_work(node))
        .filter_map(|node| guarded(view, node).map(|value| (node, value)))
}

/// Walks up from one softmax; gives fixed values and bool operands of adds.
fn walk(view: &View<'_>, softmax: NodeId, root: ValueId) -> (Vec<Arrival>, Vec<(NodeId, ValueId)>) {
    let mut arrivals = Vec::new();
    let mut bools = Vec::new();
    let mut seen = FxHashSet::default();
    let is_sdpa = view.op(softmax) == Op::SDPA;
    let start = Arrival {
        value: root,
        user: softmax,
        join: softmax,
        through: if is_sdpa { Through::Sdpa } else { Through::Add },
        subtracted: false,
        f16: false,
    };
    let mut stack = vec![start];
    while let Some(mut here) = stack.pop() {
        if seen.len() >= MOST_VALUES || !seen.insert((here.value, here.f16)) {
            continue;
        }
        here.f16 |= view.dtype(here.value) == DType::F16;
        if view.is_fixed(here.value) {
            arrivals.push(here);
            continue;
        }
        let node = view.producer(here.value);
        let through =
            |from: Through| if here.through == Through::Sdpa { Through::Sdpa } else { from };
        let mut up = |value: ValueId, change: fn(&mut Arrival), kind: Option<Through>| {
            let mut next = Arrival { value, user: node, ..here };
            if let Some(kind) = kind {
                next.through = through(kind);
                next.join = if here.through == Through::Sdpa { here.join } else { node };
            }
            change(&mut next);
            stack.push(next);
        };
        let keep: fn(&mut Arrival) = |_| {};
        match view.op(node) {
            Op::ADD | Op::MINIMUM | Op::MAXIMUM | Op::MUL_ADD => {
                for operand in view.operands(node) {
                    if view.op(node) == Op::ADD && is_bool(view, operand) {
                        bools.push((node, operand));
                    }
                    up(operand, keep, Some(Through::Add));
                }
            }
            Op::SUB => {
                if let Some((a, b)) = view.pair(node) {
                    up(a, keep, Some(Through::Add));
                    up(b, |next| next.subtracted = !next.subtracted, Some(Through::Add));
                }
            }
            Op::WHERE => {
                for word in [view.words.a, view.words.b] {
                    if let Some(operand) = view.operand(node, word) {
                        up(operand, keep, Some(Through::Where));
                    }
                }
            }
            Op::MUL | Op::DIV => {
                for operand in view.operands(node) {
                    // The place where a product joins is the add above it, if any.
                    let join = here.join;
                    let mut next = Arrival { value: operand, user: node, ..here };
                    next.through = through(Through::Mul);
                    next.join = join;
                    stack.push(next);
                }
            }
            Op::FULL | Op::FULL_LIKE => {
                if let Some(value) = view.operand(node, view.words.value) {
                    up(value, keep, None);
                }
            }
            Op::CLAMP
            | Op::NEG
            | Op::DROPOUT
            | Op::CAST
            | Op::EXPAND
            | Op::TILE
            | Op::TRANSPOSE
            | Op::SLICE
            | Op::SELECT
            | Op::SPLIT
            | Op::UNBIND
            | Op::TRIU
            | Op::TRIL
            | Op::BAND_PART
            | Op::GATHER
            | Op::INDEX
            | Op::GATHER_ND
            | Op::GATHER_ELEMENTS
            | Op::EMBEDDING
            | Op::ROLL
            | Op::REVERSE => {
                if let Some(input) = view.input(node) {
                    up(input, keep, None);
                }
            }
            Op::CONCAT | Op::STACK => {
                for operand in view.operands(node) {
                    up(operand, keep, None);
                }
            }
            Op::PAD => {
                for operand in view.operands(node) {
                    up(operand, keep, None);
                }
            }
            Op::SLICE_UPDATE
            | Op::INDEX_PUT
            | Op::SCATTER
            | Op::SCATTER_ELEMENTS
            | Op::SCATTER_ND => {
                for operand in [view.input(node), view.written(node)].into_iter().flatten() {
                    up(operand, keep, None);
                }
            }
            op if op.category() == Category::Transparent => {
                if let Some(input) = view.input(node) {
                    up(input, keep, None);
                }
            }
            _ => {}
        }
    }
    (arrivals, bools)
}

/// Whether a value is a bool tensor, seen through casts and movement that add nothing.
fn is_bool(view: &View<'_>, mut value: ValueId) -> bool {
    for _ in 0..16 {
        if view.dtype(value) == DType::Bool {
            return true;
        }
        let node = view.producer(value);
        let passes = view.op(node) == Op::CAST
            || view.op(node) == Op::EXPAND
            || view.op(node).category() == Category::Transparent;
        match view.input(node).filter(|_| passes) {
            Some(input) => value = input,
            None => return false,
        }
    }
    false
}

/// Marks the constants that reach a softmax or a float mask: they may be read within the budget.
/// Looks at the graph's structure only.
pub(super) fn mark_constants(facts: &Facts<'_>, marks: &mut [bool]) {
    for at in 0..facts.program().functions.len() {
        let view = facts.view(FunctionId(at as u32));
        let mut seen = vec![false; view.function.len()];
        for (softmax, root) in guards(&view) {
            let (arrivals, _) = walk(&view, softmax, root);
            let mut stack: Vec<ValueId> = arrivals.iter().map(|arrival| arrival.value).collect();
            while let Some(value) = stack.pop() {
                let node = view.producer(value);
                if std::mem::replace(&mut seen[node.0 as usize], true) {
                    continue;
                }
                if let NodeKind::Constant(id) = view.function.node(node).kind
                    && let Some(mark) = marks.get_mut(id.0 as usize)
                {
                    *mark = true;
                }
                stack.extend(view.operands(node));
            }
        }
    }
}

/// What is wrong with a range, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    NegInf,
    Nan,
    Overflow,
    Lowest,
}

fn fault(range: Range, arrival: &Arrival) -> Option<Fault> {
    let factor = arrival.through == Through::Mul;
    let sign_free = factor || arrival.subtracted;
    if range.neg_inf || (sign_free && range.pos_inf) {
        return Some(Fault::NegInf);
    }
    if range.nan {
        return Some(Fault::Nan);
    }
    let low = match (factor, arrival.subtracted) {
        (true, _) => range.min.min(-range.max),
        (false, true) => -range.max,
        (false, false) => range.min,
    };
    if !range.has_finite() || !arrival.f16 {
        return None;
    }
    if low <= -F16_ROUNDS_TO_INFINITY {
        return Some(Fault::Overflow);
    }
    // Down to where f16 rounds to infinity, it rounds to -65504.
    (low <= -F16_MAX).then_some(Fault::Lowest)
}

/// Where the fault of a fixed value begins.
struct Cause {
    /// The constant, or the op that made the number.
    source: NodeId,
    /// The first op that uses or makes it.
    place: NodeId,
    fault: &'static str,
    value: Option<f64>,
    terms: Vec<NodeId>,
}

/// Follows a fixed value's recipe down to the constant that brings its fault.
fn descend(view: &View<'_>, arrival: &Arrival, found: Fault) -> Cause {
    let folds = view.facts.folds(view.id);
    let bad = |folded: &Folded| fault(folded.range, &Arrival { f16: true, ..*arrival });
    let (mut value, mut user) = (arrival.value, arrival.user);
    for _ in 0..MOST_STEPS {
        let node = view.producer(value);
        if !view.is_op(node) {
            break;
        }
        // Through the operand that has the fault already; −inf before NaN, both before overflow.
        let condition = view.words.condition;
        let mut next: Option<(Fault, ValueId)> = None;
        for operand in view.function.operands(node).iter().filter(|o| o.name != condition) {
            let Some(fault) = folds.of_value(view, operand.value).as_ref().and_then(bad) else {
                continue;
            };
            if next.is_none_or(|(known, _)| (fault as u8) < (known as u8)) {
                next = Some((fault, operand.value));
            }
        }
        match next {
            // A sum that overflows though a term is merely the lowest f16 is the sum's fault.
            Some((Fault::Lowest, _)) if found != Fault::Lowest => break,
            Some((_, operand)) => (value, user) = (operand, node),
            None => break,
        }
    }
    let source = view.producer(value);
    let folded = folds.of_value(view, value);
    let own = folded.as_ref().and_then(bad).unwrap_or(found);
    let mut terms = Vec::new();
    let is_sum = view.is_op(source) && matches!(view.op(source), Op::ADD | Op::SUB);
    let word = match own {
        Fault::NegInf if is_sum && found != Fault::Nan => {
            terms = view.operands(source).map(|operand| view.producer(operand)).collect();
            "sum-overflow"
        }
        Fault::NegInf => "neg-inf",
        Fault::Nan => "nan",
        Fault::Overflow if is_sum => {
            terms = view.operands(source).map(|operand| view.producer(operand)).collect();
            "sum-overflow"
        }
        Fault::Overflow => "overflow",
        Fault::Lowest => "lowest",
    };
    let number = match own {
        Fault::NegInf if word == "neg-inf" => Some(f64::NEG_INFINITY),
        Fault::NegInf => sum_of(view, source),
        Fault::Nan => None,
        Fault::Overflow | Fault::Lowest => folded.map(|f| {
            if arrival.subtracted || f.range.min > -F16_MAX { f.range.max } else { f.range.min }
        }),
    };
    let place = if view.is_op(source) { source } else { user };
    Cause { source, place, fault: word, value: number, terms }
}

/// The least sum of the two terms of an op, unrounded.
fn sum_of(view: &View<'_>, node: NodeId) -> Option<f64> {
    let folds = view.facts.folds(view.id);
    let (a, b) = view.pair(node)?;
    let (a, b) = (folds.of_value(view, a)?.range, folds.of_value(view, b)?.range);
    (a.has_finite() && b.has_finite())
        .then(|| if view.op(node) == Op::SUB { a.min - b.max } else { a.min + b.min })
}

/// The least that the mask terms above a value add up to, with the ops that bring them. Run-time
/// factors of a mask constant are taken as 0 to 1. `steps` bounds the values looked at.
fn least(
    view: &View<'_>,
    value: ValueId,
    depth: usize,
    steps: &mut usize,
    terms: &mut Vec<NodeId>,
) -> f64 {
    if depth > 48 || *steps == 0 {
        return 0.0;
    }
    *steps -= 1;
    if view.is_fixed(value) {
        let folds = view.facts.folds(view.id);
        let low = folds.of_value(view, value).map_or(0.0, |folded| folded.range.min);
        if low.is_finite() && low < MASK_LIKE {
            terms.push(view.producer(value));
            return low;
        }
        return 0.0;
    }
    let node = view.producer(value);
    match view.op(node) {
        Op::ADD => {
            view.operands(node).map(|operand| least(view, operand, depth + 1, steps, terms)).sum()
        }
        // Joined by choice, not by sum: the lower of them.
        Op::MINIMUM | Op::WHERE | Op::MAXIMUM => {
            let mut best = (0.0, Vec::new());
            for operand in view.operands(node) {
                let mut own = Vec::new();
                let low = least(view, operand, depth + 1, steps, &mut own);
                if low < best.0 {
                    best = (low, own);
                }
            }
            terms.extend(best.1);
            best.0
        }
        Op::MUL => {
            let Some((a, b)) = view.pair(node) else { return 0.0 };
            let (data, factor) = match (view.number(a), view.number(b)) {
                (Some(factor), None) => (b, factor),
                (None, Some(factor)) => (a, factor),
                _ => return 0.0,
            };
            if factor.is_finite() && factor < MASK_LIKE {
                terms.push(node);
                return factor;
            }
            if factor > 0.0 { least(view, data, depth + 1, steps, terms) * factor } else { 0.0 }
        }
        Op::CAST
        | Op::EXPAND
        | Op::TRANSPOSE
        | Op::SLICE
        | Op::TILE
        | Op::SELECT
        | Op::DROPOUT
        | Op::SUB => {
            view.input(node).map_or(0.0, |input| least(view, input, depth + 1, steps, terms))
        }
        op if op.category() == Category::Transparent => {
            view.input(node).map_or(0.0, |input| least(view, input, depth + 1, steps, terms))
        }
        _ => 0.0,
    }
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for (softmax, root) in guards(view) {
        let wide = view.dtype(root) != DType::F16;
        let (arrivals, bools) = walk(view, softmax, root);
        let first = records.len();
        let mut push = |cause: Cause, join: NodeId, through: Through| {
            let repeated = records[first..].iter().any(|known: &Record| {
                known.field("source") == Some(&Field::Node(cause.source))
                    && known.field("kind") == Some(&Field::Text(cause.fault))
            });
            if repeated {
                return;
            }
            let mut fields = vec![
                ("softmax", Field::Node(softmax)),
                ("source", Field::Node(cause.source)),
                ("place", Field::Node(cause.place)),
                ("join", Field::Node(join)),
                ("kind", Field::Text(cause.fault)),
                ("through", Field::Text(through.word())),
                ("f32", Field::Bool(wide)),
            ];
            if let Some(value) = cause.value {
                fields.push(("value", Field::Float(value)));
            }
            if !cause.terms.is_empty() {
                fields.push(("terms", Field::Nodes(cause.terms)));
            }
            records.push(Record { anchor: softmax, fields });
        };
        let folds = view.facts.folds(view.id);
        let mut summed = false;
        for arrival in &arrivals {
            let Some(folded) = folds.of_value(view, arrival.value) else { continue };
            let range = narrowed_literal(view, arrival, folded.range);
            if let Some(found) = fault(range, arrival) {
                let cause = descend(view, arrival, found);
                summed |= matches!(cause.fault, "sum-overflow" | "neg-inf" | "overflow" | "nan");
                push(cause, arrival.join, arrival.through);
            }
        }
        for (join, operand) in bools {
            let cause = Cause {
                source: view.producer(view.plain(operand)),
                place: join,
                fault: "bool-added",
                value: None,
                terms: Vec::new(),
            };
            push(cause, join, Through::Add);
        }
        // Terms that fit one by one and not together, joined at run time.
        if !summed && view.dtype(root) == DType::F16 {
            let mut terms = Vec::new();
            let low = least(view, root, 0, &mut { MOST_VALUES }, &mut terms);
            if low <= -F16_ROUNDS_TO_INFINITY && terms.len() > 1 {
                let last = *terms.iter().max().unwrap_or(&softmax);
                let cause = Cause {
                    source: last,
                    place: last,
                    fault: "sum-overflow",
                    value: Some(low),
                    terms,
                };
                let join = arrivals.first().map_or(softmax, |arrival| arrival.join);
                push(cause, join, Through::Add);
            }
        }
    }
    records
}

/// A Python number takes the dtype of what it meets: beside f16 it is f16 whatever it says.
fn narrowed_literal(view: &View<'_>, arrival: &Arrival, range: Range) -> Range {
    match view.origin(arrival.value) {
        Some(ConstantOrigin::Literal) => range,
        _ => range.narrowed(view.dtype(arrival.value)),
    }
}

#[cfg(test)]
mod tests;
