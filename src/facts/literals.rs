//! Constants of one element beside an f16 value: what f16 makes of them, and whether they widen the
//! op; records `literal`.

use super::range::{F16_MAX, F16_ROUNDS_TO_INFINITY};
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, ConstantOrigin, DType, Format, NodeId, Op, ValueId};

/// Smallest positive f16 with all its bits.
const F16_NORMAL: f64 = 6.103_515_625e-5;
/// Half of the smallest positive f16: this and less rounds to zero.
const F16_ROUNDS_TO_ZERO: f64 = 2.980_232_238_769_531_3e-8;

/// What f16 makes of a number.
pub(super) fn fit(value: Option<f64>) -> &'static str {
    let Some(value) = value else { return "unknown" };
    let size = value.abs();
    if !value.is_finite() {
        "non-finite"
    } else if size >= F16_ROUNDS_TO_INFINITY || size > F16_MAX {
        "overflows"
    } else if size == 0.0 || size >= F16_NORMAL {
        "fits"
    } else if size <= F16_ROUNDS_TO_ZERO {
        "underflows"
    } else {
        "subnormal"
    }
}

/// Ops that combine their operands' numbers, so that dtypes meet.
pub(super) fn combines(op: Op) -> bool {
    matches!(op.category(), Category::Elementwise | Category::Logic)
        || matches!(op, Op::MATMUL | Op::ADDMM | Op::LINEAR | Op::EINSUM)
}

/// A fixed value of one element, traced to the constant that holds it: through casts, pure reshapes
/// and the `full` of `torch.ones(1)`.
pub(super) fn constant_of(view: &View<'_>, value: ValueId) -> Option<(NodeId, ConstantOrigin)> {
    let mut value = value;
    // A Python number filled into a tensor is that tensor's.
    let mut made = false;
    for _ in 0..16 {
        let node = view.producer(value);
        if let Some(origin) = view.origin(value) {
            let origin = match origin {
                ConstantOrigin::Literal if made => ConstantOrigin::Tensor,
                other => other,
            };
            return Some((node, origin));
        }
        match view.op(node) {
            Op::FULL | Op::FULL_LIKE => {
                made = true;
                value = view.operand(node, view.words.value)?;
            }
            op if op == Op::CAST || op == Op::EXPAND || op.is_transparent() => {
                value = view.input(node)?;
            }
            _ => return None,
        }
    }
    None
}

/// Whether a value is a Python number itself, which takes the dtype of what it meets. Only a torch
/// export keeps such numbers: in other formats every constant has the dtype that it computes in.
pub(super) fn is_weak(view: &View<'_>, value: ValueId) -> bool {
    view.program().format == Format::Pt2 && view.origin(value) == Some(ConstantOrigin::Literal)
}

/// Whether a value was f16 before a promotion that no line of the file wrote.
pub(super) fn was_f16(view: &View<'_>, value: ValueId) -> bool {
    let node = view.producer(value);
    view.dtype(value) == DType::F16
        || (view.op(node) == Op::CAST
            && view.has_flag(node, crate::graph::NodeFlags::IMPLICIT)
            && view.input(node).is_some_and(|input| view.dtype(input) == DType::F16))
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        if !combines(view.op(node)) {
            continue;
        }
        let operands = view.function.operands(node);
        if operands.len() < 2 {
            continue;
        }
        for operand in operands.iter().filter(|operand| operand.name != view.words.condition) {
            let value = operand.value;
            if view.elements(value) != Some(1) || !view.is_fixed(value) {
                continue;
            }
            let partner = operands
                .iter()
                .map(|other| other.value)
                .find(|&other| other != value && was_f16(view, other));
            let (Some(partner), Some((constant, origin))) = (partner, constant_of(view, value))
            else {
                continue;
            };
            let number = view.number(value);
            let dtype = view.dtype(value);
            let wide = matches!(dtype, DType::F32 | DType::F64);
            let promotes = match origin {
                // The converter folds a Python number to f16 unless a sum or product of it is
                // beyond f16: then the op runs in f32 (formats: Python literals at the edges of f16).
                ConstantOrigin::Literal
                    if is_weak(view, view.function.result(constant).unwrap_or(value)) =>
                {
                    matches!(view.op(node), Op::ADD | Op::SUB | Op::MUL)
                        && fit(number) == "overflows"
                }
                _ => wide,
            };
            let mut fields = vec![
                ("user", Field::Node(node)),
                ("constant", Field::Node(constant)),
                ("partner", Field::Value(partner)),
                ("fit", Field::Text(fit(number))),
                (
                    "origin",
                    Field::Text(match origin {
                        ConstantOrigin::Literal => "python",
                        ConstantOrigin::Tensor => "tensor",
                        ConstantOrigin::Buffer => "buffer",
                        ConstantOrigin::Parameter => "parameter",
                        ConstantOrigin::Folded => "folded",
                    }),
                ),
                (
                    "width",
                    Field::Text(match dtype {
                        DType::F16 => "f16",
                        DType::BF16 => "bf16",
                        DType::F32 => "f32",
                        DType::F64 => "f64",
                        other if other.is_int() => "int",
                        _ => "other",
                    }),
                ),
                ("promotes", Field::Bool(promotes)),
            ];
            fields.extend(number.map(|number| ("value", Field::Float(number))));
            records.push(Record { anchor: node, fields });
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_f16() {
        let cases = [
            (65504.0, "fits"),
            (65519.0, "overflows"),
            (-1e9, "overflows"),
            (1e-5, "subnormal"),
            (6.2e-5, "fits"),
            (1e-8, "underflows"),
            (0.0, "fits"),
            (f64::NEG_INFINITY, "non-finite"),
        ];
        for (value, expected) in cases {
            assert_eq!(fit(Some(value)), expected, "{value}");
        }
        assert_eq!(fit(None), "unknown");
    }
}
