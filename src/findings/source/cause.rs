//! Which of the places that a line leads to is the cause, and what to call it.

use std::ops::Range;

use super::expression::spells_number;
use super::modules::Code;
use super::spelling::{OpSpelling, called_name};
use super::trace::Trace;
use crate::graph::{Category, ConstantId, Format, Function, NodeId, NodeKind, Program};

/// A candidate with the expression on the line that led to it.
pub(super) type Candidate = (Code, Range<usize>);

/// The candidates of a search that can be the cause of an op with this number, one of several ops of
/// its kind: as many causes in one helper as ops have each its own.
pub(super) fn candidates(
    trace: &Trace,
    value: Option<f64>,
    format: Format,
    ordinal: Option<(usize, usize)>,
) -> Vec<Candidate> {
    let found = with_value(trace.found.clone(), value, format);
    match ordinal {
        Some((index, count)) if found.len() > 1 && count == found.len() => {
            let mut sorted = found.clone();
            sorted.sort_by_key(|(code, _)| code.range.end);
            let one_file = sorted.windows(2).all(|w| w[0].0.file.path() == w[1].0.file.path());
            let one_origin = sorted.windows(2).all(|w| w[0].1 == w[1].1);
            match (one_file && one_origin, sorted.get(index)) {
                (true, Some(own)) => vec![own.clone()],
                _ => found,
            }
        }
        _ => found,
    }
}

/// Without the candidates that are another number than the op's; of the rest those that spell its
/// number, if any do. Only a torch export has infinities as they were written: a converter makes one of
/// what f16 cannot hold.
fn with_value(found: Vec<Candidate>, value: Option<f64>, format: Format) -> Vec<Candidate> {
    let Some(value) = value.filter(|value| value.is_finite() || format == Format::Pt2) else {
        return found;
    };
    let text = |code: &Code| code.file.text().get(code.range.clone()).unwrap_or("").to_owned();
    let other = |code: &Code| {
        let text = text(code).replace('_', "");
        let number = text.trim_start_matches(['-', '+', ' ']);
        let plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        plain && number.parse::<f64>().is_ok_and(|own| !same(own, value))
    };
    let kept: Vec<_> = found.iter().filter(|(code, _)| !other(code)).cloned().collect();
    let found = if kept.is_empty() { found } else { kept };
    let spells = |code: &Code| {
        let node = code
            .file
            .root()
            .and_then(|r| r.descendant_for_byte_range(code.range.start, code.range.end));
        node.is_some_and(|node| spells_number(&code.file, node, value))
    };
    let spelled: Vec<_> = found.iter().filter(|(code, _)| spells(code)).cloned().collect();
    if spelled.is_empty() { found } else { spelled }
}

/// Whether two numbers are one but for the sign and the rounding of f16.
fn same(own: f64, value: f64) -> bool {
    own == value.abs() || (own - value.abs()).abs() <= 1e-3 * own.abs()
}

/// What to call a cause: the op itself is run there, a value or a dtype is set.
pub(super) fn words(code: &Code, spelling: &OpSpelling) -> &'static str {
    use Category::{Activation, Attention, Contraction, Normalization, Pooling, Reduction};
    let runs = spelling.op.is_some_and(|op| {
        let works = [Activation, Attention, Contraction, Normalization, Pooling, Reduction];
        works.contains(&op.category())
    });
    let node = code
        .file
        .root()
        .and_then(|r| r.descendant_for_byte_range(code.range.start, code.range.end));
    let named = node
        .and_then(|node| called_name(&code.file, node))
        .is_some_and(|name| spelling.names.iter().any(|own| own == name));
    if runs && named { "runs here" } else { "set here" }
}

/// The one number among the operands of an op, or the value of a constant whose elements are all the
/// same.
pub(super) fn number(program: &Program, function: &Function, node: NodeId) -> Option<f64> {
    if let NodeKind::Constant(id) = function.node(node).kind {
        return one_value(program, id);
    }
    let mut found: Option<f64> = None;
    for operand in function.operands(node) {
        let NodeKind::Constant(id) = function.node(function.producer(operand.value)).kind else {
            continue;
        };
        match (one_value(program, id), found) {
            (None, _) => {}
            (Some(own), Some(known)) if own != known => return None,
            (own, _) => found = own,
        }
    }
    found
}

fn one_value(program: &Program, id: ConstantId) -> Option<f64> {
    let summary = program.inline_summary(id)?;
    let all = |count: u64| count > 0 && count == summary.elements;
    if all(summary.negative_infinities) {
        return Some(f64::NEG_INFINITY);
    }
    if all(summary.positive_infinities) {
        return Some(f64::INFINITY);
    }
    let finite = summary.negative_infinities + summary.positive_infinities + summary.nans == 0;
    summary.min.filter(|min| finite && Some(*min) == summary.max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use std::sync::Arc;

    use super::*;
    use crate::findings::python::PythonFile;
    use crate::graph::Op;

    /// The texts kept of those given, each a candidate of its own.
    fn kept(texts: &[&str], value: f64, format: Format) -> Vec<String> {
        let file = Arc::new(PythonFile::new("a.py".into(), texts.join("\n")));
        let mut start = 0;
        let mut found = Vec::new();
        for text in texts {
            let range = start..start + text.len();
            start = range.end + 1;
            found.push((Code { file: Arc::clone(&file), range }, 0..0));
        }
        let shown = |(code, _): Candidate| file.text()[code.range].to_owned();
        with_value(found, Some(value), format).into_iter().map(shown).collect()
    }

    #[test]
    fn another_number_is_no_cause() {
        let texts = &["float('-inf')", "-1e9"];
        assert_eq!(kept(texts, f64::NEG_INFINITY, Format::Pt2), ["float('-inf')"]);
        assert_eq!(kept(texts, -1e9, Format::Pt2), ["-1e9"]);
        // A converter makes an infinity of either.
        assert_eq!(kept(texts, f64::NEG_INFINITY, Format::AiModel), *texts);
        assert_eq!(kept(&["s.masked_fill(m, BIG)", "-1e9"], -1e9, Format::Pt2), ["-1e9"]);
        assert_eq!(kept(&["s.masked_fill(m, -1e9)", "-1e9"], -1e9, Format::Pt2).len(), 2);
        assert_eq!(kept(&["-1e9"], -1e4, Format::Pt2), ["-1e9"]);
    }

    #[test]
    fn an_op_runs_and_a_value_is_set() {
        let word = |text: &str, op: Op| {
            let file = Arc::new(PythonFile::new("a.py".into(), format!("{text}\n")));
            words(&Code { file, range: 0..text.len() }, &OpSpelling::new("", "", op))
        };
        assert_eq!(word("F.softmax(s, -1)", Op::SOFTMAX), "runs here");
        assert_eq!(word("s.float()", Op::CAST), "set here");
        assert_eq!(word("float('-inf')", Op::SOFTMAX), "set here");
    }
}
