//! Eligibility tables as data: what a unit runs under a runtime, row by row, compiled in from
//! `rules/targets/*.yaml`. Not the judging itself: see `eligibility`.
//!
//! For each op the rows that name it are tried in the order of the file; the first whose condition
//! holds answers. An op that no row answers is `unknown`.

use crate::graph::{DType, Op};
use crate::target::{Generation, ProviderForm, Runtime, Target, Unit};

/// What a unit runs under some runtimes.
#[derive(Debug)]
pub(crate) struct Table {
    /// The file it was made from, for people.
    pub(crate) file: &'static str,
    pub(crate) unit: Unit,
    pub(crate) runtimes: &'static [Runtime],
    pub(crate) rows: &'static [Row],
    /// By [`Op::index`]: the rows that name the op, in file order.
    pub(crate) by_op: &'static [&'static [u16]],
}

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Yes, no, or `None` for "nobody has measured, or sources disagree".
    pub(crate) eligible: Option<bool>,
    pub(crate) when: Condition,
    /// May hold `{op}`, `{dtype}`, `{rank}`, `{dim}`: what made the condition hold.
    pub(crate) reason: &'static str,
    pub(crate) alternative: &'static str,
    pub(crate) evidence: &'static [&'static str],
    pub(crate) note: &'static str,
}

/// When a row holds: every given field must.
#[derive(Debug)]
pub(crate) struct Condition {
    /// A run-time operand or a result has one of these element types.
    pub(crate) dtype: &'static [DType],
    /// A result has one of these element types.
    pub(crate) result_dtype: &'static [DType],
    /// A run-time operand or a result has such a rank.
    pub(crate) rank: Option<Range>,
    /// A run-time operand or a result has such a dim.
    pub(crate) dim: Option<DimTest>,
    /// By canonical operand name.
    pub(crate) operands: &'static [(&'static str, OperandTest)],
    /// By canonical attribute name.
    pub(crate) attributes: &'static [(&'static str, AttributeTest)],
    /// First and last Neural Engine generation.
    pub(crate) chip: Option<(Generation, Generation)>,
    pub(crate) runtime: Option<Runtime>,
    /// What ONNX Runtime's provider makes.
    pub(crate) form: Option<ProviderForm>,
    /// First release of ONNX Runtime, and the first that it no longer holds for.
    pub(crate) release: Option<((u16, u16), (u16, u16))>,
    /// Version of the default opset.
    pub(crate) opset: Option<Range>,
    /// Whether the op prepares run-time indices: all it makes is whole numbers or truth values that
    /// reach an index operand through such ops only.
    pub(crate) index_preparation: Option<bool>,
    /// Whether the op is a promotion that no line of the file wrote.
    pub(crate) implicit: Option<bool>,
    /// At least one of these holds.
    pub(crate) any: &'static [Condition],
    /// None of these holds.
    pub(crate) not: &'static [Condition],
}

/// A test of a number: above, below (both exclusive), one of.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) above: Option<f64>,
    pub(crate) below: Option<f64>,
    pub(crate) is: &'static [f64],
}

impl Range {
    pub(crate) fn holds(&self, number: f64) -> bool {
        self.above.is_none_or(|limit| number > limit)
            && self.below.is_none_or(|limit| number < limit)
            && (self.is.is_empty() || self.is.contains(&number))
    }
}

/// A test of a dim: the one at `axis` (from the end if negative), or any.
#[derive(Debug)]
pub(crate) struct DimTest {
    pub(crate) axis: Option<i64>,
    pub(crate) size: Range,
}

/// A test of an operand. Absent operands fail every test but `present: false`.
#[derive(Debug)]
pub(crate) struct OperandTest {
    pub(crate) present: Option<bool>,
    /// Whether it depends on no input.
    pub(crate) constant: Option<bool>,
    pub(crate) dtype: &'static [DType],
    pub(crate) rank: Option<Range>,
    /// All of these.
    pub(crate) dims: &'static [DimTest],
    /// Whether the last two dims are equal.
    pub(crate) square: Option<bool>,
    pub(crate) bytes: Option<Range>,
    /// The value of a constant whose elements the file shows and that are all equal.
    pub(crate) value: Option<Range>,
}

/// A test of an attribute. Absent attributes fail every test but `present: false`.
#[derive(Debug)]
pub(crate) struct AttributeTest {
    pub(crate) present: Option<bool>,
    /// A word or truth value, one of these.
    pub(crate) is: &'static [&'static str],
    /// Which item of a list (from the end if negative); without it, any item.
    pub(crate) item: Option<i64>,
    pub(crate) number: Option<Range>,
    /// Whether it is only known at run time.
    pub(crate) dynamic: Option<bool>,
}

include!(concat!(env!("OUT_DIR"), "/targets.rs"));

impl Table {
    /// The table of a target. The build makes sure that each unit with each runtime has one.
    pub(crate) fn of(target: &Target) -> Option<&'static Table> {
        TABLES
            .iter()
            .find(|table| table.unit == target.unit && table.runtimes.contains(&target.runtime))
    }

    /// The rows that name an op, in file order.
    pub(crate) fn rows(&self, op: Op) -> impl Iterator<Item = &'static Row> + use<> {
        let rows = self.rows;
        self.by_op
            .get(op.index())
            .copied()
            .unwrap_or_default()
            .iter()
            .filter_map(move |&at| rows.get(at as usize))
    }
}
