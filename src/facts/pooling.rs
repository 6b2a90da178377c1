//! Pooling windows with their parameters by axis; records `pooling`.

use super::convolution::per_axis;
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeId, Op};

fn record(view: &View<'_>, node: NodeId) -> Option<Record> {
    let kind = match view.op(node) {
        Op::MAX_POOL => "max",
        Op::AVG_POOL => "average",
        Op::SUM_POOL => "sum",
        Op::L2_POOL => "l2",
        _ => return None,
    };
    let input = view.input(node)?;
    let kernel = view.ints(node, view.words.kernel)?;
    let dims = view.dims(input)?;
    // A window is told for the spatial axes; a single number of a 2-D pool stands for both.
    let spatial = match kernel.len() {
        1 => dims.len().checked_sub(2)?.min(3),
        len => len,
    };
    let kernel = per_axis(view, node, view.words.kernel, spatial, 1)?;
    // torch: no stride given is the window's own size.
    let strides = match view.ints(node, view.words.strides).as_deref() {
        None | Some([]) => kernel.clone(),
        Some(_) => per_axis(view, node, view.words.strides, spatial, 1)?,
    };
    let extents: Vec<Option<u64>> =
        dims.iter().rev().take(spatial).rev().map(|dim| dim.value()).collect();
    let global = extents.len() == spatial
        && extents.iter().zip(&kernel).all(|(extent, k)| extent.is_some_and(|n| *k >= n));
    let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let last = |list: &[u64]| int(list.last().copied().unwrap_or(1));
    let height = |list: &[u64]| int(list.iter().rev().nth(1).copied().unwrap_or(1));
    let largest = |list: &[u64]| int(list.iter().copied().max().unwrap_or(1));
    Some(Record {
        anchor: node,
        fields: vec![
            ("kind", Field::Text(kind)),
            ("spatial", int(spatial as u64)),
            ("kernel-width", last(&kernel)),
            ("kernel-height", height(&kernel)),
            ("kernel", largest(&kernel)),
            ("stride-width", last(&strides)),
            ("stride-height", height(&strides)),
            ("stride", largest(&strides)),
            ("global", Field::Bool(global)),
            ("ceil-mode", Field::Bool(view.flag(node, view.words.ceil_mode))),
        ],
    })
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    view.function
        .node_ids()
        .filter(|&node| view.function.is_work(node))
        .filter_map(|node| record(view, node))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, ints};
    use crate::graph::DType;

    #[test]
    fn a_window_and_one_over_the_whole_map() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[1, 8, 9, 9]);
        let window = [("kernel", ints(&[3, 2])), ("strides", ints(&[]))];
        let y = g.op(Op::MAX_POOL, &[x], &window, DType::F16, &[1, 8, 3, 4]);
        let all = [("kernel", ints(&[3, 4])), ("strides", ints(&[3]))];
        let y = g.op(Op::AVG_POOL, &[y], &all, DType::F16, &[1, 8, 1, 1]);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let records = facts.records(MAIN, "pooling");
        let read =
            |name| records.iter().map(|r| r.field(name).unwrap().clone()).collect::<Vec<_>>();
        assert_eq!(read("global"), [Field::Bool(false), Field::Bool(true)]);
        assert_eq!(read("stride-width"), [Field::Int(2), Field::Int(3)]);
        assert_eq!(read("stride-height"), [Field::Int(3), Field::Int(3)]);
    }
}
