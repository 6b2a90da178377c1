//! Convolutions with their parameters by axis, whatever the rank; records `convolution`.
//!
//! A 1-D convolution runs as a 2-D one over rows of height 1, so that its kernel and stride are widths.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, NodeId, Op, ValueId};

/// Parameters of one convolution, an entry per spatial axis (depth, height, width; width last).
pub(super) struct Parameters {
    pub(super) kernel: Vec<u64>,
    pub(super) strides: Vec<u64>,
    dilations: Vec<u64>,
    groups: u64,
    in_channels: u64,
    out_channels: u64,
    weight: ValueId,
}

/// A list attribute, stretched over all spatial axes; `fallback` where there is none.
pub(super) fn per_axis(
    view: &View<'_>,
    node: NodeId,
    name: crate::graph::Name,
    spatial: usize,
    fallback: u64,
) -> Option<Vec<u64>> {
    let Some(list) = view.ints(node, name) else { return Some(vec![fallback; spatial]) };
    let list: Vec<u64> = list.into_iter().map(|n| u64::try_from(n).ok()).collect::<Option<_>>()?;
    match list.as_slice() {
        [one] => Some(vec![*one; spatial]),
        _ if list.len() == spatial => Some(list),
        _ => None,
    }
}

fn parameters(view: &View<'_>, node: NodeId) -> Option<Parameters> {
    let weight = view.operand(node, view.words.weight)?;
    let dims: Vec<u64> = view.dims(weight)?.iter().map(|dim| dim.value()).collect::<Option<_>>()?;
    let (&[first, second], kernel) = dims.split_at_checked(2)? else { return None };
    if kernel.is_empty() {
        return None;
    }
    let spatial = kernel.len();
    let groups = view.int(node, view.words.groups).map_or(Some(1), |n| u64::try_from(n).ok())?;
    // (out, in / groups, …) for a convolution, (in, out / groups, …) for a transposed one.
    let (out_channels, in_channels) = match view.op(node) {
        Op::CONV => (first, second.checked_mul(groups)?),
        _ => (second.checked_mul(groups)?, first),
    };
    Some(Parameters {
        kernel: kernel.to_vec(),
        strides: per_axis(view, node, view.words.strides, spatial, 1)?,
        dilations: per_axis(view, node, view.words.dilations, spatial, 1)?,
        groups,
        in_channels,
        out_channels,
        weight,
    })
}

impl Parameters {
    fn form(&self) -> &'static str {
        let whole = |list: &[u64]| list.iter().all(|&n| n == 1);
        if whole(&self.kernel) {
            "pointwise"
        } else if self.groups > 1 && self.groups == self.in_channels {
            "depthwise"
        } else if self.kernel == self.strides && whole(&self.dilations) {
            "patches"
        } else if self.groups > 1 {
            "grouped"
        } else {
            "full"
        }
    }
}

/// The convolution whose result, seen through pure reshapes alone, is this one's input and nothing
/// else's.
fn fed_by(view: &View<'_>, node: NodeId) -> Option<NodeId> {
    let mut value = view.input(node)?;
    for _ in 0..8 {
        let &[(only, _)] = view.uses.of_value(value) else { return None };
        let producer = view.producer(value);
        if view.op(producer) == Op::CONV {
            return (only != producer).then_some(producer);
        }
        if !view.is_transparent(producer) {
            return None;
        }
        value = view.input(producer)?;
    }
    None
}

/// For every node how many convolutions lie on the longest way to it through convolutions,
/// activations, norms and element-wise ops.
fn depths(view: &View<'_>) -> Vec<u32> {
    let mut depths = vec![0u32; view.function.len()];
    for node in view.function.node_ids() {
        let op = view.op(node);
        let passes = matches!(
            op.category(),
            Category::Elementwise
                | Category::Activation
                | Category::Normalization
                | Category::Transparent
                | Category::Conversion
        );
        if op != Op::CONV && !passes {
            continue;
        }
        let longest =
            view.operands(node).map(|value| depths[view.producer(value).0 as usize]).max();
        depths[node.0 as usize] = longest.unwrap_or(0) + u32::from(op == Op::CONV);
    }
    depths
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let is_conv = |node: NodeId| matches!(view.op(node), Op::CONV | Op::CONV_TRANSPOSE);
    if !view.function.node_ids().any(is_conv) {
        return Vec::new();
    }
    let depths = depths(view);
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&n| is_conv(n) && view.function.is_work(n)) {
        let Some(found) = parameters(view, node) else { continue };
        let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let last = |list: &[u64]| int(list.last().copied().unwrap_or(1));
        let largest = |list: &[u64]| int(list.iter().copied().max().unwrap_or(1));
        // The height of a 1-D convolution is 1.
        let height = |list: &[u64]| int(list.iter().rev().nth(1).copied().unwrap_or(1));
        let mut fields = vec![
            ("kind", Field::Text(if view.op(node) == Op::CONV { "conv" } else { "transposed" })),
            ("form", Field::Text(found.form())),
            ("spatial", int(found.kernel.len() as u64)),
            ("kernel-width", last(&found.kernel)),
            ("kernel-height", height(&found.kernel)),
            ("kernel", largest(&found.kernel)),
            ("stride-width", last(&found.strides)),
            ("stride-height", height(&found.strides)),
            ("stride", largest(&found.strides)),
            ("dilation", largest(&found.dilations)),
            ("groups", int(found.groups)),
            ("in-channels", int(found.in_channels)),
            ("out-channels", int(found.out_channels)),
            ("weight", Field::Value(found.weight)),
            ("depth", int(u64::from(depths[node.0 as usize]))),
        ];
        if view.op(node) == Op::CONV {
            fields.extend(fed_by(view, node).map(|before| ("fed-by", Field::Node(before))));
        }
        records.push(Record { anchor: node, fields });
    }
    records
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, ints};
    use crate::graph::{Attr, DType};

    #[test]
    fn two_in_a_row_and_one_behind_an_activation() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[1, 8, 32]);
        let conv = |g: &mut Graph, x, weight: &[u64], stride: i64, groups: i64| {
            let weight = g.weight(DType::F16, weight);
            let attributes = [("strides", ints(&[stride])), ("groups", Attr::Int(groups))];
            g.op(Op::CONV, &[x, weight], &attributes, DType::F16, &[1, 8, 32])
        };
        let y = conv(&mut g, x, &[8, 8, 5], 5, 1);
        let y = conv(&mut g, y, &[8, 1, 3], 1, 8);
        let y = g.op(Op::RELU, &[y], &[], DType::F16, &[1, 8, 32]);
        let y = conv(&mut g, y, &[8, 8, 1], 1, 1);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let records = facts.records(MAIN, "convolution");
        let read = |name| records.iter().map(|r| r.field(name).cloned()).collect::<Vec<_>>();
        let words = |list: &[&'static str]| {
            list.iter().map(|&word| Some(Field::Text(word))).collect::<Vec<_>>()
        };
        assert_eq!(read("form"), words(&["patches", "depthwise", "pointwise"]));
        assert_eq!(read("depth"), [1, 2, 3].map(|n| Some(Field::Int(n))));
        assert_eq!(read("kernel-height")[0], Some(Field::Int(1)));
        assert_eq!(
            read("fed-by"),
            [None, Some(Field::Node(records[0].anchor)), None],
            "an activation parts the last two"
        );
    }
}
