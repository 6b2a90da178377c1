//! What constant work computes, without computing it: the range of numbers a value may hold, and for
//! masks the ranges above, on and below a diagonal.
//!
//! Masks are made by `full` and `triu`, by position compares and `where`, by sums and casts; the
//! converter folds them, but the graph still holds the recipe. One pass over a function's constant
//! work (and of work on shapes alone) in program order; a value whose recipe has a step that this file does not know has no range.

use super::axes;
use super::range::Range;
use super::view::View;
use crate::graph::{Attr, DType, NodeId, NodeKind, Op, ValueId};

/// What a fixed value may hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// Every element.
    pub range: Range,
    /// By a diagonal, where the recipe tells more than `range`.
    pub triangle: Option<Triangle>,
    /// Each element is a whole number that its place tells: masks are compares of such.
    ramp: Option<Ramp>,
}

/// Ranges by the diagonal of two axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Triangle {
    /// The axis that comes first.
    pub row: usize,
    /// The axis that comes second.
    pub column: usize,
    /// Where the column index is greater.
    pub above: Range,
    /// Where both are equal.
    pub diagonal: Range,
    /// Where the row index is greater.
    pub below: Range,
}

/// `offset + Σ factor · index[axis]`, over at most two axes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ramp {
    terms: [(usize, f64); 2],
    offset: f64,
}

impl Folded {
    fn plain(range: Range) -> Folded {
        Folded { range, triangle: None, ramp: None }
    }

    /// Applies `f` to the whole and to each part.
    fn map(&self, f: impl Fn(Range) -> Range) -> Folded {
        let triangle = self.triangle.map(|t| Triangle {
            above: f(t.above),
            diagonal: f(t.diagonal),
            below: f(t.below),
            ..t
        });
        Folded { range: f(self.range), triangle, ramp: None }.tightened()
    }

    /// The whole is no wider than its parts together.
    fn tightened(mut self) -> Folded {
        if let Some(t) = self.triangle {
            self.range = t.above.hull(t.diagonal).hull(t.below);
        }
        self
    }

    /// Joins two values element by element; `shift` is what broadcasting adds to each one's axes.
    fn join(
        a: &Folded,
        b: &Folded,
        shift: (usize, usize),
        f: impl Fn(Range, Range) -> Range,
    ) -> Folded {
        let moved = |folded: &Folded, by: usize| {
            folded.triangle.map(|t| Triangle { row: t.row + by, column: t.column + by, ..t })
        };
        let (ta, tb) = (moved(a, shift.0), moved(b, shift.1));
        let frame = match (ta, tb) {
            (Some(x), Some(y)) if (x.row, x.column) != (y.row, y.column) => None,
            (x, y) => x.or(y),
        };
        let triangle = frame.map(|frame| {
            let part = |of: fn(&Triangle) -> Range| {
                f(ta.as_ref().map_or(a.range, of), tb.as_ref().map_or(b.range, of))
            };
            Triangle {
                above: part(|t| t.above),
                diagonal: part(|t| t.diagonal),
                below: part(|t| t.below),
                ..frame
            }
        });
        Folded { range: f(a.range, b.range), triangle, ramp: None }.tightened()
    }
}

/// The folded values of one function.
#[derive(Debug, Default)]
pub(crate) struct Folds {
    /// For each value an index into `items` plus one; zero for none.
    index: Vec<u32>,
    items: Vec<Folded>,
}

impl Folds {
    /// One pass over the constant work of a function.
    pub(crate) fn of(view: &View<'_>) -> Folds {
        let mut folds = Folds { index: vec![0; view.function.value_count()], items: Vec::new() };
        for (node, weight) in view.function.nodes() {
            if weight.kind != NodeKind::Op || !view.uses.is_fixed(node) {
                continue;
            }
            let Some(folded) = fold(view, &folds, node) else { continue };
            for result in view.function.results(node) {
                let narrow = folded.clone();
                let dtype = view.dtype(result);
                let narrow = if narrow.ramp.is_some() && (dtype.is_int() || dtype.is_float()) {
                    narrow
                } else {
                    narrow.map(|range| range.narrowed(dtype))
                };
                folds.items.push(narrow);
                folds.index[result.0 as usize] = folds.items.len() as u32;
            }
        }
        folds
    }

    /// What a value that some op made may hold.
    pub(crate) fn get(&self, value: ValueId) -> Option<&Folded> {
        let at = self.index.get(value.0 as usize).copied().unwrap_or(0).checked_sub(1)?;
        self.items.get(at as usize)
    }

    /// The same for constants too.
    pub(crate) fn of_value(&self, view: &View<'_>, value: ValueId) -> Option<Folded> {
        if let Some(id) = view.constant(value) {
            return constant(view, id);
        }
        self.get(value).cloned()
    }
}

/// A constant as a folded value.
fn constant(view: &View<'_>, id: crate::graph::ConstantId) -> Option<Folded> {
    let scan = view.facts.scan(id)?;
    let triangle = scan.square.as_ref().map(|square| Triangle {
        row: square.row,
        column: square.column,
        above: Range::of_summary(&square.above),
        diagonal: Range::of_summary(&square.diagonal),
        below: Range::of_summary(&square.below),
    });
    Some(Folded { range: Range::of_summary(&scan.summary), triangle, ramp: None })
}

fn fold(view: &View<'_>, folds: &Folds, node: NodeId) -> Option<Folded> {
    let result = view.function.result(node)?;
    let get = |slot: usize| folds.of_value(view, view.operand_at(node, slot)?);
    let named = |word| folds.of_value(view, view.operand(node, word)?);
    let input = || folds.of_value(view, view.input(node)?);
    let op = view.op(node);
    // Both operands of a binary op, and how far broadcasting shifts their axes.
    let both = || {
        let (a, b) = view.pair_slots(node)?;
        Some((get(a)?, get(b)?, shifts(view, node, result, a, b)?))
    };
    match op {
        Op::FULL => {
            let value = match view.operand(node, view.words.value) {
                Some(value) => folds.of_value(view, value)?.range,
                None => Range::of(view.attr(node, view.words.value)?.as_float()?),
            };
            Some(Folded::plain(value))
        }
        Op::FULL_LIKE => {
            Some(Folded::plain(folds.of_value(view, view.operand(node, view.words.value)?)?.range))
        }
        Op::ARANGE => arange(view, folds, node, result),
        Op::EYE => Some(Folded {
            range: Range::new(0.0, 1.0),
            triangle: Some(Triangle {
                row: 0,
                column: 1,
                above: Range::of(0.0),
                diagonal: Range::of(1.0),
                below: Range::of(0.0),
            }),
            ramp: None,
        }),
        Op::TRIU | Op::TRIL | Op::BAND_PART => band(view, node, result, &input()?),
        Op::EQUAL | Op::NOT_EQUAL | Op::LESS | Op::LESS_EQUAL | Op::GREATER | Op::GREATER_EQUAL => {
            let (a, b, (shift_a, shift_b)) = both()?;
            compare(op, &a, shift_a, &b, shift_b)
        }
        Op::LOGICAL_AND | Op::BITWISE_AND | Op::LOGICAL_OR | Op::BITWISE_OR => {
            if view.dtype(result) != DType::Bool {
                return None;
            }
            let all = matches!(op, Op::LOGICAL_AND | Op::BITWISE_AND);
            // Of two truths one may be unknown: a false one settles an `and`, a true one an `or`.
            let (slot_a, slot_b) = view.pair_slots(node)?;
            let (a, b) = (get(slot_a), get(slot_b));
            let unknown = Folded::plain(Range::new(0.0, 1.0));
            let shift = shifts(view, node, result, slot_a, slot_b)?;
            if a.is_none() && b.is_none() {
                return None;
            }
            let (a, b) = (a.unwrap_or(unknown.clone()), b.unwrap_or(unknown));
            Some(Folded::join(&a, &b, shift, |a, b| {
                if all {
                    Range::new(a.min.min(b.min), a.max.min(b.max))
                } else {
                    Range::new(a.min.max(b.min), a.max.max(b.max))
                }
            }))
        }
        Op::LOGICAL_NOT | Op::BITWISE_NOT if view.dtype(result) == DType::Bool => {
            Some(input()?.map(|r| Range::new(1.0 - r.max, 1.0 - r.min)))
        }
        Op::WHERE => {
            let words = view.words;
            let (condition, a, b) = (named(words.condition), named(words.a)?, named(words.b)?);
            let condition = condition.unwrap_or(Folded::plain(Range::new(0.0, 1.0)));
            let rank = view.rank(result)?;
            let shift = |word| rank.checked_sub(view.rank(view.operand(node, word)?)?);
            let (c, sa, sb) = (shift(words.condition)?, shift(words.a)?, shift(words.b)?);
            // As a truth times one branch and its negation times the other, without the arithmetic.
            let yes =
                Folded::join(
                    &condition,
                    &a,
                    (c, sa),
                    |c, a| {
                        if c.max >= 0.5 { a } else { Range::NONE }
                    },
                );
            let no =
                Folded::join(
                    &condition,
                    &b,
                    (c, sb),
                    |c, b| {
                        if c.min < 0.5 { b } else { Range::NONE }
                    },
                );
            Some(Folded::join(&yes, &no, (0, 0), Range::hull))
        }
        Op::ADD | Op::SUB => {
            let (a, b, shift) = both()?;
            let factor = view.attr(node, view.words.alpha).and_then(Attr::as_float).unwrap_or(1.0);
            let factor = if op == Op::SUB { -factor } else { factor };
            let b = if factor == 1.0 { b } else { scaled(&b, factor) };
            let ramp = ramp_of(&a, shift.0).zip(ramp_of(&b, shift.1)).and_then(|(a, b)| a.plus(b));
            Some(Folded { ramp, ..Folded::join(&a, &b, shift, Range::plus) })
        }
        Op::MUL => {
            let (a, b, shift) = both()?;
            Some(Folded::join(&a, &b, shift, Range::times))
        }
        Op::DIV => {
            let (a, b, shift) = both()?;
            let inverse = b.range.reciprocal()?;
            let rounds = view.attr(node, view.words.dtype).is_some() || view.dtype(result).is_int();
            let quotient = Folded::join(&a, &Folded::plain(inverse), shift, Range::times);
            Some(if rounds { quotient.map(|r| r.monotone(f64::floor)) } else { quotient })
        }
        Op::MINIMUM => {
            let (a, b, shift) = both()?;
            Some(Folded::join(&a, &b, shift, Range::lower_of))
        }
        Op::MAXIMUM => {
            let (a, b, shift) = both()?;
            Some(Folded::join(&a, &b, shift, |a, b| a.negate().lower_of(b.negate()).negate()))
        }
        Op::NEG => Some(scaled(&input()?, -1.0)),
        Op::EXP => Some(input()?.map(|r| r.monotone(f64::exp))),
        Op::SQRT => {
            let input = input()?;
            (input.range.min >= 0.0).then(|| input.map(|r| r.monotone(f64::sqrt)))
        }
        Op::RECIPROCAL => Some(Folded::plain(input()?.range.reciprocal()?)),
        Op::FLOOR => Some(input()?.map(|r| r.monotone(f64::floor))),
        Op::SIN | Op::COS | Op::TANH | Op::ERF => Some(Folded::plain(Range::new(-1.0, 1.0))),
        Op::SIGMOID => Some(Folded::plain(Range::new(0.0, 1.0))),
        Op::CLAMP => {
            let bound = |word, fallback: f64| match view.operand(node, word) {
                Some(value) => folds.of_value(view, value)?.range.point(),
                None => Some(fallback),
            };
            let low = bound(view.words.min, f64::NEG_INFINITY)?;
            let high = bound(view.words.max, f64::INFINITY)?;
            Some(input()?.map(|r| r.monotone(|x| x.max(low).min(high))))
        }
        Op::CAST => {
            let input = input()?;
            let dtype = view.dtype(result);
            let ramp = input.ramp.filter(|_| dtype.is_int() || dtype.is_float());
            let bool_now = dtype == DType::Bool;
            let out = input.map(|r| if bool_now { r.narrowed(DType::Bool) } else { r });
            Some(Folded { ramp, ..out })
        }
        Op::EXPAND
        | Op::TILE
        | Op::RESHAPE
        | Op::SQUEEZE
        | Op::UNSQUEEZE
        | Op::FLATTEN
        | Op::TRANSPOSE
        | Op::IDENTITY
        | Op::DETACH
        | Op::CLONE
        | Op::CONTIGUOUS
        | Op::DROPOUT
        | Op::SLICE
        | Op::SELECT
        | Op::UNBIND
        | Op::SPLIT
        | Op::REVERSE
        | Op::ROLL => Some(moved(view, node, result, &input()?)),
        Op::CONCAT | Op::STACK => {
            let mut operands = view.operands(node);
            let first = folds.of_value(view, operands.next()?)?;
            let mut range = first.range;
            for operand in operands {
                range = range.hull(folds.of_value(view, operand)?.range);
            }
            Some(Folded::plain(range))
        }
        Op::PAD => {
            let value = match view.operand(node, view.words.value) {
                Some(value) => folds.of_value(view, value)?.range,
                None => Range::of(
                    view.attr(node, view.words.value).and_then(Attr::as_float).unwrap_or(0.0),
                ),
            };
            Some(Folded::plain(input()?.range.hull(value)))
        }
        Op::SLICE_UPDATE | Op::INDEX_PUT | Op::SCATTER | Op::SCATTER_ELEMENTS | Op::SCATTER_ND => {
            let written = folds.of_value(view, view.written(node)?)?;
            Some(Folded::plain(input()?.range.hull(written.range)))
        }
        Op::GATHER | Op::GATHER_ELEMENTS | Op::GATHER_ND | Op::INDEX => {
            Some(Folded::plain(input()?.range))
        }
        Op::EMBEDDING => Some(Folded::plain(named(view.words.weight)?.range)),
        Op::REDUCE_MAX | Op::REDUCE_MIN | Op::REDUCE_MEAN => Some(Folded::plain(input()?.range)),
        Op::IS_INF | Op::IS_NAN | Op::ANY | Op::ALL => Some(Folded::plain(Range::new(0.0, 1.0))),
        _ => None,
    }
}

/// How much broadcasting shifts the axes of two operands.
fn shifts(
    view: &View<'_>,
    node: NodeId,
    result: ValueId,
    a: usize,
    b: usize,
) -> Option<(usize, usize)> {
    let rank = view.rank(result)?;
    let of = |slot| rank.checked_sub(view.rank(view.operand_at(node, slot)?)?);
    Some((of(a)?, of(b)?))
}

fn scaled(folded: &Folded, by: f64) -> Folded {
    let ramp = folded.ramp.map(|ramp| Ramp {
        terms: ramp.terms.map(|(axis, factor)| (axis, factor * by)),
        offset: ramp.offset * by,
    });
    let out = folded.map(|r| if by == -1.0 { r.negate() } else { r.times(Range::of(by)) });
    Folded { ramp, ..out }
}

impl Ramp {
    fn plus(self, other: Ramp) -> Option<Ramp> {
        let mut terms: Vec<(usize, f64)> = Vec::new();
        for (axis, factor) in self.terms.into_iter().chain(other.terms) {
            match terms.iter_mut().find(|(known, _)| *known == axis) {
                Some(term) => term.1 += factor,
                None => terms.push((axis, factor)),
            }
        }
        terms.retain(|&(_, factor)| factor != 0.0);
        let filler = (usize::MAX, 0.0);
        let mut list = [filler; 2];
        if terms.len() > 2 {
            return None;
        }
        list.iter_mut().zip(terms).for_each(|(slot, term)| *slot = term);
        Some(Ramp { terms: list, offset: self.offset + other.offset })
    }

    fn live(&self) -> impl Iterator<Item = (usize, f64)> {
        self.terms.into_iter().filter(|&(_, factor)| factor != 0.0)
    }
}

/// A value as a ramp in the result's axes: a ramp, or one number everywhere.
fn ramp_of(folded: &Folded, shift: usize) -> Option<Ramp> {
    match folded.ramp {
        Some(ramp) => Some(Ramp {
            terms: ramp.terms.map(|(axis, factor)| (axis.saturating_add(shift), factor)),
            ..ramp
        }),
        None => {
            let offset = folded.range.point().filter(|x| x.is_finite())?;
            Some(Ramp { terms: [(usize::MAX, 0.0); 2], offset })
        }
    }
}

fn arange(view: &View<'_>, folds: &Folds, node: NodeId, result: ValueId) -> Option<Folded> {
    let number = |word, fallback: f64| match view.operand(node, word) {
        Some(value) => folds.of_value(view, value)?.range.point(),
        None => Some(view.attr(node, word).and_then(Attr::as_float).unwrap_or(fallback)),
    };
    let start = number(view.words.start, 0.0)?;
    let step = number(view.words.step, 1.0)?;
    let last = match view.extent(result, 0) {
        Some(n) => start + step * n.saturating_sub(1) as f64,
        None => number(view.words.end, f64::NAN).filter(|x| x.is_finite())? - step,
    };
    let ramp = Ramp { terms: [(0, step), (usize::MAX, 0.0)], offset: start };
    Some(Folded { ramp: Some(ramp), ..Folded::plain(Range::new(start.min(last), start.max(last))) })
}

/// `triu`, `tril` and `band_part`: zero outside a band of the last two axes.
fn band(view: &View<'_>, node: NodeId, result: ValueId, input: &Folded) -> Option<Folded> {
    let rank = view.rank(result)?;
    let (row, column) = (rank.checked_sub(2)?, rank - 1);
    let extent = |axis| view.extent(result, axis).unwrap_or(u64::MAX) as f64;
    let (rows, columns) = (extent(row), extent(column));
    // Kept where low ≤ column − row ≤ high.
    let diagonal = || {
        view.int(node, view.words.diagonal).map_or_else(
            || view.operand(node, view.words.diagonal).map_or(Some(0.0), |v| view.number(v)),
            |n| Some(n as f64),
        )
    };
    let (low, high) = match view.op(node) {
        Op::TRIU => (diagonal()?, f64::INFINITY),
        Op::TRIL => (f64::NEG_INFINITY, diagonal()?),
        _ => {
            let (lower, upper) =
                (view.int(node, view.words.lower)?, view.int(node, view.words.upper)?);
            let bound = |n: i64| if n < 0 { f64::INFINITY } else { n as f64 };
            (-bound(lower), bound(upper))
        }
    };
    let source = input.triangle.filter(|t| (t.row, t.column) == (row, column));
    let part = |from: f64, to: f64, own: Range| {
        if from > to {
            return own;
        }
        let kept = low <= to && high >= from;
        let all_kept = low <= from && high >= to;
        match (kept, all_kept) {
            (_, true) => own,
            (true, false) => own.hull(Range::of(0.0)),
            (false, false) => Range::of(0.0),
        }
    };
    let of = |get: fn(&Triangle) -> Range| source.as_ref().map_or(input.range, get);
    let triangle = Triangle {
        row,
        column,
        above: part(1.0, columns - 1.0, of(|t| t.above)),
        diagonal: part(0.0, 0.0, of(|t| t.diagonal)),
        below: part(1.0 - rows, -1.0, of(|t| t.below)),
    };
    Some(Folded { range: input.range, triangle: Some(triangle), ramp: None }.tightened())
}

/// A compare as truths (0 and 1), by ranges or by places.
fn compare(op: Op, a: &Folded, shift_a: usize, b: &Folded, shift_b: usize) -> Option<Folded> {
    let truth = |difference: Range| {
        // Infinities order as numbers do.
        let low = if difference.neg_inf { f64::NEG_INFINITY } else { difference.min };
        let high = if difference.pos_inf { f64::INFINITY } else { difference.max };
        let point = low == high;
        let (always, never) = match op {
            Op::LESS => (high < 0.0, low >= 0.0),
            Op::LESS_EQUAL => (high <= 0.0, low > 0.0),
            Op::GREATER => (low > 0.0, high <= 0.0),
            Op::GREATER_EQUAL => (low >= 0.0, high < 0.0),
            Op::EQUAL => (point && low == 0.0, low > 0.0 || high < 0.0),
            _ => (low > 0.0 || high < 0.0, point && low == 0.0),
        };
        match (always && !difference.nan, never && !difference.nan) {
            (true, _) => Range::of(1.0),
            (_, true) => Range::of(0.0),
            _ => Range::new(0.0, 1.0),
        }
    };
    let places = ramp_of(a, shift_a).zip(ramp_of(b, shift_b)).and_then(|(a, b)| {
        a.plus(Ramp { terms: b.terms.map(|(axis, f)| (axis, -f)), offset: -b.offset })
    });
    if let Some(ramp) = places {
        let terms: Vec<(usize, f64)> = ramp.live().collect();
        if let [(first, f), (second, g)] = terms[..]
            && f == -g
        {
            // The difference is slope · (column − row) + offset.
            let (row, column, slope) =
                if first < second { (first, second, g) } else { (second, first, f) };
            let side =
                |steps: Range| truth(steps.times(Range::of(slope)).plus(Range::of(ramp.offset)));
            let far = f64::from(u32::MAX);
            let triangle = Triangle {
                row,
                column,
                above: side(Range::new(1.0, far)),
                diagonal: side(Range::of(0.0)),
                below: side(Range::new(-far, -1.0)),
            };
            let range = Range::new(0.0, 1.0);
            return Some(Folded { range, triangle: Some(triangle), ramp: None }.tightened());
        }
    }
    Some(Folded::join(a, b, (shift_a, shift_b), |a, b| truth(a.plus(b.negate()))))
}

/// A value moved by a shape op: its parts follow their axes, or are given up.
fn moved(view: &View<'_>, node: NodeId, result: ValueId, input: &Folded) -> Folded {
    let to = |axis: usize| axes::forward(view, node, 0, result, axis);
    let op = view.op(node);
    // A cut keeps the diagonal only if it starts both axes at the same place.
    let begin = |axis: usize| -> Option<i64> {
        match op {
            Op::SLICE => {
                let cuts = view.cuts(node)?;
                match cuts.iter().find(|cut| cut.axis == axis) {
                    Some(cut) if cut.step == 1 => cut.begin,
                    Some(_) => None,
                    None => Some(0),
                }
            }
            Op::SPLIT | Op::TILE | Op::REVERSE | Op::ROLL => None,
            _ => Some(0),
        }
    };
    let triangle = input.triangle.and_then(|t| {
        let (row, column) = (to(t.row)?, to(t.column)?);
        if begin(t.row)? != begin(t.column)? {
            return None;
        }
        Some(if row < column {
            Triangle { row, column, ..t }
        } else {
            Triangle {
                row: column,
                column: row,
                above: t.below,
                diagonal: t.diagonal,
                below: t.above,
            }
        })
    });
    let ramp = input.ramp.and_then(|ramp| {
        let mut offset = ramp.offset;
        let mut terms = ramp.terms;
        for term in terms.iter_mut().filter(|term| term.1 != 0.0) {
            offset += term.1 * begin(term.0)? as f64;
            term.0 = to(term.0)?;
        }
        Some(Ramp { terms, offset })
    });
    Folded { range: input.range, triangle, ramp }
}
