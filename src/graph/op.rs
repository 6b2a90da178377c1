//! Canonical ops: one vocabulary for all dialects.
//!
//! The vocabulary is data, `rules/ops.yaml`; `build.rs` turns it into the constants below
//! (`Op::SOFTMAX`), so that facts can name an op and rules are checked against the same list.

use std::fmt;

/// A canonical op. `Op::UNKNOWN` keeps the spelling it had in its dialect on the node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(u16);

/// What kind of work an op does; a rule may ask for a whole category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Arithmetic, one element at a time, with broadcasting.
    Elementwise,
    /// A non-linear function, one element at a time.
    Activation,
    /// Comparison and logic.
    Logic,
    /// Sums, means, extrema over axes.
    Reduction,
    /// conv, matmul, linear: contractions that carry most FLOPs.
    Contraction,
    /// Norms kept whole.
    Normalization,
    /// Attention kept whole.
    Attention,
    /// Pooling.
    Pooling,
    /// Moves elements without computing (transpose, concat, slice, pad, tile).
    Movement,
    /// Only changes the shape, the name or nothing: rules look through it.
    Transparent,
    /// Reads or writes by index.
    Indexing,
    /// Changes dtype or quantisation.
    Conversion,
    /// Decompresses weights.
    Compression,
    /// Reads or writes a state.
    State,
    /// Branches, loops, calls.
    Control,
    /// Makes a tensor from nothing but shapes and numbers.
    Creation,
    /// Sorts and selections.
    Sorting,
    /// Recurrent layers kept whole.
    Recurrent,
    /// Resampling of images.
    Resize,
    /// What this program has no name for.
    Unknown,
}

impl Category {
    /// The name in rules: lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Elementwise => "elementwise",
            Category::Activation => "activation",
            Category::Logic => "logic",
            Category::Reduction => "reduction",
            Category::Contraction => "contraction",
            Category::Normalization => "normalization",
            Category::Attention => "attention",
            Category::Pooling => "pooling",
            Category::Movement => "movement",
            Category::Transparent => "transparent",
            Category::Indexing => "indexing",
            Category::Conversion => "conversion",
            Category::Compression => "compression",
            Category::State => "state",
            Category::Control => "control",
            Category::Creation => "creation",
            Category::Sorting => "sorting",
            Category::Recurrent => "recurrent",
            Category::Resize => "resize",
            Category::Unknown => "unknown",
        }
    }
}

/// One line of the vocabulary.
#[derive(Debug)]
pub(crate) struct OpInfo {
    pub(crate) name: &'static str,
    pub(crate) category: Category,
    /// Canonical operand names in order; a trailing `…` element stands for "as many as there are".
    pub(crate) operands: &'static [&'static str],
    /// Canonical attribute names.
    pub(crate) attributes: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/ops.rs"));

impl Op {
    /// Every op, `UNKNOWN` first.
    pub fn all() -> impl Iterator<Item = Op> {
        (0..OPS.len() as u16).map(Op)
    }

    fn info(self) -> &'static OpInfo {
        &OPS[self.0 as usize]
    }

    /// Dense index, for tables by op.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Canonical name (`softmax`).
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// What kind of work it does.
    pub fn category(self) -> Category {
        self.info().category
    }

    /// Canonical operand names in order; the last may be followed by any number of its like if
    /// [`Op::is_variadic`].
    pub fn operands(self) -> &'static [&'static str] {
        let operands = self.info().operands;
        operands.strip_suffix(&["…"]).unwrap_or(operands)
    }

    /// Whether the last operand may be repeated (concat).
    pub fn is_variadic(self) -> bool {
        self.info().operands.last() == Some(&"…")
    }

    /// Canonical attribute names.
    pub fn attributes(self) -> &'static [&'static str] {
        self.info().attributes
    }

    /// Whether rules look through it and it counts as no work.
    pub fn is_transparent(self) -> bool {
        self.category() == Category::Transparent
    }

    /// The op of a canonical name.
    pub fn parse(name: &str) -> Option<Op> {
        OPS_BY_NAME
            .binary_search_by_key(&name, |&(known, _)| known)
            .ok()
            .map(|at| OPS_BY_NAME[at].1)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Op {
    /// Whether its result varies from run to run though no operand says so (state reads, random
    /// numbers, unknown ops without operands).
    pub(crate) fn makes_run_time_data(self) -> bool {
        matches!(self.category(), Category::State | Category::Control)
            || self == Op::RANDOM
            || self == Op::UNKNOWN
    }
}
