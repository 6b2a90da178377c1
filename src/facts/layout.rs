//! Where a function keeps its channels, told by what its projections read; one record `layout` a
//! function that has any.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeId, Op, ValueId};

/// Where the channels of a projection's input lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layout {
    /// (B, C, 1, S) or tokens folded into the batch: (S, C, 1, 1).
    ChannelsFirst,
    /// (B, S, C): the channels are the last axis.
    ChannelsLast,
    /// (B, C, H, W) with an image.
    Image,
}

/// How many of all but one axis there are.
fn rows(view: &View<'_>, value: ValueId, channels: usize) -> Option<u64> {
    let dims = view.dims(value)?;
    let mut rows = 1u64;
    for (axis, dim) in dims.iter().enumerate() {
        if axis != channels {
            // A symbol is more than one.
            rows = rows.saturating_mul(dim.value().unwrap_or(2));
        }
    }
    Some(rows)
}

/// The layout that a projection asks for; `None` for what is none, or for a single row.
fn of(view: &View<'_>, node: NodeId) -> Option<Layout> {
    let words = view.words;
    match view.op(node) {
        Op::CONV => {
            let input = view.input(node)?;
            let weight = view.dims(view.operand(node, words.weight)?)?;
            let pointwise = weight.iter().skip(2).all(|dim| dim.value() == Some(1));
            let dims = view.dims(input)?;
            if !pointwise || rows(view, input, 1)? < 2 {
                // A kernel with an extent, or the squeeze of an image net.
                return (!pointwise).then_some(Layout::Image);
            }
            let spatial = dims.get(2..)?;
            let longer = spatial.iter().filter(|dim| dim.value() != Some(1)).count();
            Some(if longer <= 1 { Layout::ChannelsFirst } else { Layout::Image })
        }
        Op::LINEAR | Op::MATMUL | Op::ADDMM => {
            let weight = match view.op(node) {
                Op::LINEAR => view.operand(node, words.weight)?,
                _ => view.operand(node, words.b)?,
            };
            let input = match view.op(node) {
                Op::LINEAR => view.input(node)?,
                _ => view.operand(node, words.a)?,
            };
            if !view.is_fixed(weight) || view.is_fixed(input) {
                return None;
            }
            let dims = view.dims(input)?;
            let last = dims.len().checked_sub(1)?;
            // Pixels with their channels last, as some image nets mix them.
            let middle = dims.get(1..last).unwrap_or_default();
            if middle.iter().filter(|dim| dim.value() != Some(1)).count() > 1 {
                return Some(Layout::Image);
            }
            (rows(view, input, last)? >= 2).then_some(Layout::ChannelsLast)
        }
        _ => None,
    }
}

/// The record of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut first: [Option<NodeId>; 3] = [None; 3];
    let mut counts = [0i64; 3];
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        if let Some(layout) = of(view, node) {
            counts[layout as usize] += 1;
            first[layout as usize].get_or_insert(node);
        }
    }
    let all: i64 = counts.iter().sum();
    let most = counts.iter().copied().max().unwrap_or(0);
    let Some(at) = counts.iter().position(|&count| count == most) else { return Vec::new() };
    let Some(anchor) = first.get(at).copied().flatten() else { return Vec::new() };
    let layout = match at {
        _ if most * 2 <= all => "mixed",
        0 => "bc1s",
        1 => "bsd",
        _ => "image",
    };
    vec![Record {
        anchor,
        fields: vec![
            ("layout", Field::Text(layout)),
            ("first", Field::Node(anchor)),
            ("projections", Field::Int(all)),
            ("channels-last", Field::Int(counts[Layout::ChannelsLast as usize])),
            ("channels-first", Field::Int(counts[Layout::ChannelsFirst as usize])),
        ],
    }]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN};
    use crate::graph::DType;

    fn layout(build: impl Fn(&mut Graph)) -> Option<Field> {
        let mut g = Graph::new();
        build(&mut g);
        let program = g.finish();
        let facts = Facts::new(&program);
        facts.records(MAIN, "layout").first().map(|r| r.field("layout").unwrap().clone())
    }

    #[test]
    fn tokens_by_channels_and_the_other_way_round() {
        let tokens = layout(|g| {
            let x = g.input("x", DType::F16, &[1, 16, 8]);
            let weight = g.weight(DType::F16, &[8, 8]);
            let y = g.op(Op::LINEAR, &[x, weight], &[], DType::F16, &[1, 16, 8]);
            g.output(y);
        });
        assert_eq!(tokens, Some(Field::Text("bsd")));
        let columns = layout(|g| {
            let x = g.input("x", DType::F16, &[1, 8, 1, 16]);
            let weight = g.weight(DType::F16, &[8, 8, 1, 1]);
            let y = g.op(Op::CONV, &[x, weight], &[], DType::F16, &[1, 8, 1, 16]);
            g.output(y);
        });
        assert_eq!(columns, Some(Field::Text("bc1s")));
        // A head over one pooled row says nothing of the rest.
        let head = layout(|g| {
            let x = g.input("x", DType::F16, &[1, 8]);
            let weight = g.weight(DType::F16, &[4, 8]);
            let y = g.op(Op::LINEAR, &[x, weight], &[], DType::F16, &[1, 4]);
            g.output(y);
        });
        assert_eq!(head, None);
    }
}
