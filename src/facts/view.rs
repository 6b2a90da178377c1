//! A function as facts look at it: nodes, operands and attributes by fixed words, shapes resolved.

use super::Facts;
use super::uses::Uses;
use crate::graph::{
    Attr, ConstantId, ConstantOrigin, DType, Dim, Function, FunctionId, Name, NodeFlags, NodeId,
    NodeKind, Op, Program, ValueId,
};

macro_rules! words {
    ($($word:ident = $text:literal),+ $(,)?) => {
        /// The ids that operand and attribute names have in one program. A name that the program
        /// never uses gets an id that equals no other.
        #[derive(Debug)]
        pub(crate) struct Words { $(pub(crate) $word: Name),+ }

        impl Words {
            pub(crate) fn of(program: &Program) -> Words {
                let find = |text: &str| program.names.find(text).unwrap_or(Name(u32::MAX));
                Words { $($word: find($text)),+ }
            }
        }
    };
}

words! {
    a = "a", axes = "axes", axis = "axis", b = "b", begin = "begin", condition = "condition",
    cos = "cos", diagonal = "diagonal", dtype = "dtype", end = "end", equation = "equation",
    index = "index", indices = "indices", input = "input", key = "key", lower = "lower",
    mask = "mask", max = "max", min = "min", permutation = "permutation", query = "query",
    scale = "scale", sin = "sin", start = "start", state = "state", step = "step",
    transpose_a = "transpose_a", transpose_b = "transpose_b", update = "update",
    updates = "updates", upper = "upper", value = "value", weight = "weight", alpha = "alpha",
    groups = "groups", strides = "strides", dilations = "dilations", kernel = "kernel",
    ceil_mode = "ceil_mode", lut = "lut", data = "data", epsilon = "epsilon",
}

/// One part of a slice: `[begin, end)` by `step` along `axis`; `None` where only known at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) axis: usize,
    pub(crate) begin: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) step: i64,
}

/// A function of a program with what facts about it need.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) id: FunctionId,
    pub(crate) function: &'a Function,
    pub(crate) words: &'a Words,
    pub(crate) uses: &'a Uses,
}

impl<'a> View<'a> {
    pub(crate) fn program(&self) -> &'a Program {
        self.facts.program()
    }

    /// The op of a node; `UNKNOWN` for nodes that are none.
    pub(crate) fn op(&self, node: NodeId) -> Op {
        self.function.node(node).op
    }

    pub(crate) fn is_op(&self, node: NodeId) -> bool {
        self.function.node(node).kind == NodeKind::Op
    }

    /// The node that makes a value.
    pub(crate) fn producer(&self, value: ValueId) -> NodeId {
        self.function.producer(value)
    }

    pub(crate) fn dims(&self, value: ValueId) -> Option<&'a [Dim]> {
        let program = self.program();
        program.shapes.get(self.function.value(value).shape).dims()
    }

    pub(crate) fn rank(&self, value: ValueId) -> Option<usize> {
        self.dims(value).map(<[Dim]>::len)
    }

    /// The extent of an axis, if static.
    pub(crate) fn extent(&self, value: ValueId, axis: usize) -> Option<u64> {
        self.dims(value)?.get(axis)?.value()
    }

    /// Number of elements, if static.
    pub(crate) fn elements(&self, value: ValueId) -> Option<u64> {
        self.program().shapes.get(self.function.value(value).shape).elements()
    }

    pub(crate) fn dtype(&self, value: ValueId) -> DType {
        self.function.value(value).dtype
    }

    /// The operand in a slot.
    pub(crate) fn operand_at(&self, node: NodeId, slot: usize) -> Option<ValueId> {
        self.function.operands(node).get(slot).map(|operand| operand.value)
    }

    /// The operand `input`, or the first one where the op has none of that name.
    pub(crate) fn input(&self, node: NodeId) -> Option<ValueId> {
        self.operand(node, self.words.input).or_else(|| self.operand_at(node, 0))
    }

    /// The slot of a named operand.
    pub(crate) fn slot(&self, node: NodeId, word: Name) -> Option<usize> {
        self.function.operands(node).iter().position(|operand| operand.name == word)
    }

    /// The slots of the two operands of a binary op: `a` and `b`, in whatever order the file lists
    /// them, or the only two.
    pub(crate) fn pair_slots(&self, node: NodeId) -> Option<(usize, usize)> {
        match (self.slot(node, self.words.a), self.slot(node, self.words.b)) {
            (Some(a), Some(b)) => Some((a, b)),
            _ => (self.function.operands(node).len() == 2).then_some((0, 1)),
        }
    }

    pub(crate) fn operand(&self, node: NodeId, word: Name) -> Option<ValueId> {
        self.function.operand(node, word)
    }

    /// All operands, in slot order.
    pub(crate) fn operands(
        &self,
        node: NodeId,
    ) -> impl ExactSizeIterator<Item = ValueId> + use<'a> {
        self.function.operands(node).iter().map(|operand| operand.value)
    }

    /// The two operands of a binary op, `a` first.
    pub(crate) fn pair(&self, node: NodeId) -> Option<(ValueId, ValueId)> {
        let (a, b) = self.pair_slots(node)?;
        Some((self.operand_at(node, a)?, self.operand_at(node, b)?))
    }

    /// What an op writes over part of its input (`slice_update`, `index_put`, scatters, states).
    pub(crate) fn written(&self, node: NodeId) -> Option<ValueId> {
        self.operand(node, self.words.update).or_else(|| self.operand(node, self.words.updates))
    }

    pub(crate) fn attr(&self, node: NodeId, word: Name) -> Option<&'a Attr> {
        self.function.attribute(node, word)
    }

    pub(crate) fn int(&self, node: NodeId, word: Name) -> Option<i64> {
        self.attr(node, word)?.as_int()
    }

    pub(crate) fn ints(&self, node: NodeId, word: Name) -> Option<Vec<i64>> {
        self.attr(node, word)?.as_ints()
    }

    pub(crate) fn flag(&self, node: NodeId, word: Name) -> bool {
        self.attr(node, word).and_then(Attr::as_bool).unwrap_or(false)
    }

    /// The attribute `axis`, counted from the front of the first operand.
    pub(crate) fn axis(&self, node: NodeId) -> Option<usize> {
        let rank = self.rank(self.input(node)?)? as i64;
        let axis = self.int(node, self.words.axis)?;
        let extra = i64::from(self.op(node) == Op::STACK);
        let axis = if axis < 0 { axis + rank + extra } else { axis };
        usize::try_from(axis).ok().filter(|&axis| (axis as i64) < rank + extra)
    }

    /// The attribute `axes` (or `axis`), counted from the front of the first operand.
    pub(crate) fn axes(&self, node: NodeId) -> Option<Vec<usize>> {
        let rank = self.rank(self.input(node)?)? as i64;
        let axes = self.ints(node, self.words.axes).or_else(|| self.ints(node, self.words.axis))?;
        axes.into_iter()
            .map(|axis| {
                let axis = if axis < 0 { axis + rank } else { axis };
                usize::try_from(axis).ok().filter(|&axis| (axis as i64) < rank)
            })
            .collect()
    }

    /// The permutation of a transpose, non-negative; `None` unless it is one.
    pub(crate) fn permutation(&self, node: NodeId) -> Option<Vec<usize>> {
        let rank = self.rank(self.input(node)?)?;
        let list = self.ints(node, self.words.permutation)?;
        let list: Vec<usize> = list
            .into_iter()
            .map(|axis| usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok())
            .collect::<Option<_>>()?;
        let mut seen = vec![false; rank];
        for &axis in &list {
            *seen.get_mut(axis)? = true;
        }
        (list.len() == rank && seen.iter().all(|&s| s)).then_some(list)
    }

    /// What a `slice` (or the place of a `slice_update`) takes, one entry per axis it names.
    pub(crate) fn cuts(&self, node: NodeId) -> Option<Vec<Cut>> {
        let dims = self.dims(self.input(node)?)?;
        let list = |word: Name, fallback: i64, len: usize| -> Vec<Option<i64>> {
            match self.attr(node, word) {
                Some(Attr::Ints(list)) => list.to_vec(),
                Some(Attr::Int(n)) => vec![Some(*n)],
                Some(_) => vec![None; len],
                // Given as a tensor: not a number here.
                None if self.operand(node, word).is_some() => vec![None; len],
                None => vec![Some(fallback); len],
            }
        };
        let axes: Vec<usize> = match self.attr(node, self.words.axis) {
            Some(_) => vec![self.axis(node)?],
            None => (0..dims.len()).collect(),
        };
        let begin = list(self.words.begin, 0, axes.len());
        let end = list(self.words.end, i64::MAX, axes.len());
        let step = list(self.words.step, 1, axes.len());
        let cuts = axes.iter().enumerate().map(|(at, &axis)| {
            let extent = dims[axis].value().and_then(|n| i64::try_from(n).ok());
            let wrap = |place: i64| match extent {
                Some(n) if place < 0 => Some((place + n).max(0)),
                Some(n) => Some(place.min(n)),
                None if place < 0 => None,
                None => Some(place),
            };
            Cut {
                axis,
                begin: begin.get(at).copied().flatten().and_then(wrap),
                end: end.get(at).copied().flatten().and_then(wrap),
                step: step.get(at).copied().flatten().unwrap_or(1),
            }
        });
        Some(cuts.collect())
    }

    /// The constant that a value is.
    pub(crate) fn constant(&self, value: ValueId) -> Option<ConstantId> {
        match self.function.node(self.producer(value)).kind {
            NodeKind::Constant(id) => Some(id),
            _ => None,
        }
    }

    /// Where a constant value comes from.
    pub(crate) fn origin(&self, value: ValueId) -> Option<ConstantOrigin> {
        self.constant(value).map(|id| self.program().constant(id).origin)
    }

    /// Whether a value is a constant, or made from constants and shapes only.
    pub(crate) fn is_fixed(&self, value: ValueId) -> bool {
        self.uses.is_fixed(self.producer(value))
    }

    pub(crate) fn has_flag(&self, node: NodeId, flag: NodeFlags) -> bool {
        self.function.node(node).flags.contains(flag)
    }

    /// Whether an op only renames or reshapes, or casts to the same dtype.
    pub(crate) fn is_transparent(&self, node: NodeId) -> bool {
        self.has_flag(node, NodeFlags::TRANSPARENT)
    }

    /// Goes up through transparent ops and casts.
    pub(crate) fn plain(&self, mut value: ValueId) -> ValueId {
        for _ in 0..64 {
            let node = self.producer(value);
            if !(self.is_transparent(node) || self.op(node) == Op::CAST) {
                break;
            }
            match self.input(node) {
                Some(input) => value = input,
                None => break,
            }
        }
        value
    }

    /// The number that every element of a fixed value is, if it is known to be one.
    pub(crate) fn number(&self, value: ValueId) -> Option<f64> {
        self.is_fixed(value).then(|| self.facts.range_of(self.id, value)).flatten()?.point()
    }

    /// Whether a value is fixed and of one element.
    pub(crate) fn is_scalar(&self, value: ValueId) -> bool {
        self.is_fixed(value) && self.elements(value) == Some(1)
    }
}
