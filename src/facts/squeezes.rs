//! `squeeze`, and whether each of its axes has extent 1; records `squeeze`.
//!
//! A squeeze that names no axis is one of every axis: so torch decomposes it for a converter.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::Op;

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.op(node) == Op::SQUEEZE) {
        let Some(input) = view.input(node) else { continue };
        let Some(dims) = view.dims(input) else { continue };
        let axes = view.axes(node).unwrap_or_else(|| (0..dims.len()).collect());
        for axis in axes {
            let extent = dims.get(axis).and_then(|dim| dim.value());
            let mut fields = vec![
                ("node", Field::Node(node)),
                ("axis", Field::Int(axis as i64)),
                (
                    "length",
                    Field::Text(match extent {
                        Some(1) => "one",
                        Some(_) => "longer",
                        None => "unknown",
                    }),
                ),
            ];
            fields.extend(
                extent.and_then(|n| i64::try_from(n).ok()).map(|n| ("extent", Field::Int(n))),
            );
            records.push(Record { anchor: node, fields });
        }
    }
    records
}
