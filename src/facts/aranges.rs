//! Ranges made by `arange`, and what becomes of them when bounds and step go through f16 (coreai-torch
//! does that with every one that is no integer, whatever the dtype of the result); records `arange`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{DType, NodeId, Op, ValueId};

/// A bound or the step.
struct Part {
    value: f64,
    integer: bool,
}

fn part(view: &View<'_>, node: NodeId, name: crate::graph::Name) -> Option<Part> {
    let operand: ValueId = view.operand(node, name)?;
    let value = view.number(operand)?;
    Some(Part { value, integer: view.dtype(operand).is_int() })
}

fn as_f16(value: f64) -> f64 {
    half::f16::from_f64(value).to_f64()
}

/// Elements from `start` below `end` by `step`; `None` where that is no count.
fn count(start: f64, end: f64, step: f64) -> Option<i64> {
    let count = ((end - start) / step).ceil();
    (count.is_finite() && (0.0..9e15).contains(&count)).then_some(count as i64)
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let words = view.words;
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.op(node) == Op::ARANGE) {
        let Some(result) = view.function.result(node) else { continue };
        let parts = [words.start, words.end, words.step].map(|name| part(view, node, name));
        let floats = [words.start, words.end, words.step]
            .iter()
            .filter_map(|&name| view.operand(node, name))
            .any(|operand| !view.dtype(operand).is_int() && view.dtype(operand) != DType::Bool);
        let mut fields = vec![("node", Field::Node(node))];
        let bounds = if !floats {
            "integers"
        } else if let [Some(start), Some(end), Some(step)] = &parts {
            let rounded = |part: &Part| !part.integer && as_f16(part.value) != part.value;
            if rounded(start) || rounded(end) || rounded(step) {
                let made = count(as_f16(start.value), as_f16(end.value), as_f16(step.value));
                if let Some(made) = made {
                    fields.push(("count-through-f16", Field::Int(made)));
                }
                "rounded"
            } else {
                "exact"
            }
        } else {
            "unknown"
        };
        fields.push(("bounds", Field::Text(bounds)));
        if let Some(elements) = view.elements(result).and_then(|n| i64::try_from(n).ok()) {
            fields.push(("count", Field::Int(elements)));
        }
        for (name, part) in [("start", &parts[0]), ("end", &parts[1]), ("step", &parts[2])] {
            if let Some(part) = part {
                fields.push((name, Field::Float(part.value)));
            }
        }
        records.push(Record { anchor: node, fields });
    }
    records
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_tenth_in_f16_makes_one_element_more() {
        assert_eq!(count(0.0, 1.0, 0.1), Some(10));
        assert_eq!(count(0.0, 1.0, as_f16(0.1)), Some(11));
        assert_eq!(count(0.0, as_f16(4099.0), 1.0), Some(4100));
        assert_eq!(count(0.0, 7.0, as_f16(0.7)), Some(10), "drifts, and counts right");
        assert_eq!(count(0.0, 1.0, 0.0), None);
    }
}
