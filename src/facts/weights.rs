//! The weights that contractions and lookups read, and how each is compressed; records `weight`.
//!
//! A compressed weight is a chain of ops over constants (`lut_to_dense`, `blockwise_shift_scale`, …),
//! perhaps with a transpose behind it: the scheme, its width and its blocks follow from the shapes in
//! that chain, since no format writes them down.

use std::collections::BTreeMap;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, DType, NodeId, Op, ValueId};

/// How the numbers of one weight are stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) bits: Option<u64>,
    pub(super) granularity: &'static str,
    /// Extent of a block or group along [`Scheme::axis`].
    pub(super) block: Option<u64>,
    pub(super) axis: Option<usize>,
    /// The op that makes numbers of the stored data; none for a dense weight.
    pub(super) node: Option<NodeId>,
    data: Option<ValueId>,
    table: Option<ValueId>,
    scale: Option<ValueId>,
}

fn dense() -> Scheme {
    Scheme {
        name: "dense",
        bits: None,
        granularity: "none",
        block: None,
        axis: None,
        node: None,
        data: None,
        table: None,
        scale: None,
    }
}

fn static_dims(view: &View<'_>, value: ValueId) -> Option<Vec<u64>> {
    view.dims(value)?.iter().map(|dim| dim.value()).collect()
}

/// Reads from the shapes of scales (or tables) and data what shares one: everything, a channel, or a
/// block of `block` along `axis`.
fn granularity(data: &[u64], scale: &[u64]) -> (&'static str, Option<u64>, Option<usize>) {
    if scale.iter().product::<u64>() <= 1 {
        return ("tensor", None, None);
    }
    if scale.len() != data.len() {
        return ("unknown", None, None);
    }
    let mut channel = None;
    let mut blocked = None;
    for (axis, (&whole, &parts)) in data.iter().zip(scale).enumerate() {
        if parts == 1 || whole == 0 {
            continue;
        }
        if parts < whole {
            blocked = blocked.or(Some((axis, whole / parts)));
        } else if channel.is_some() {
            // A scale for each element of two axes: blocks of one along the second.
            blocked = blocked.or(Some((axis, 1)));
        } else {
            channel = Some(axis);
        }
    }
    match (blocked, channel) {
        (Some((axis, block)), _) => ("block", Some(block), Some(axis)),
        (None, Some(axis)) => ("channel", None, Some(axis)),
        (None, None) => ("tensor", None, None),
    }
}

/// The op behind a weight, through transposes, casts and reshapes of constants.
fn behind(view: &View<'_>, mut value: ValueId) -> (NodeId, ValueId) {
    for _ in 0..16 {
        let node = view.producer(value);
        let passes = view.is_transparent(node)
            || matches!(view.op(node), Op::CAST | Op::TRANSPOSE | Op::EXPAND);
        match view.input(node) {
            Some(input) if passes => value = input,
            _ => break,
        }
    }
    (view.producer(value), value)
}

/// How a fixed value is stored.
pub(super) fn scheme(view: &View<'_>, weight: ValueId) -> Scheme {
    let (node, _) = behind(view, weight);
    let word = |name| view.operand(node, name);
    match view.op(node) {
        Op::LUT_TO_DENSE => {
            let indices = word(view.words.indices);
            let table = word(view.words.lut);
            let data = indices.and_then(|value| static_dims(view, value));
            let shape = table.and_then(|value| static_dims(view, value));
            let entries = shape.as_ref().and_then(|dims| dims.iter().rev().nth(1).copied());
            let (mut granularity, mut block, mut axis) = ("unknown", None, None);
            if let (Some(data), Some(shape)) = (&data, &shape)
                && let Some(leading) = shape.get(..data.len())
                && shape.len() == data.len() + 2
            {
                (granularity, block, axis) = self::granularity(data, leading);
            } else if shape.as_ref().is_some_and(|shape| shape.len() <= 2) {
                granularity = "tensor";
            }
            let scaled = table
                .is_some_and(|table| view.op(behind(view, table).0) == Op::BLOCKWISE_SHIFT_SCALE);
            // A scale for each channel that is multiplied into the table makes its other axes grow.
            if scaled && axis != Some(0) {
                (granularity, block, axis) = ("tensor", None, None);
            }
            Scheme {
                name: if scaled { "palettized-scaled" } else { "palettized" },
                bits: entries.filter(|&n| n > 1).map(|n| u64::from((n - 1).ilog2()) + 1),
                granularity,
                block,
                axis,
                node: Some(node),
                data: indices,
                table,
                scale: None,
            }
        }
        Op::BLOCKWISE_SHIFT_SCALE | Op::AFFINE_DEQUANTIZE | Op::DEQUANTIZE => {
            let data = word(view.words.data).or_else(|| view.operand_at(node, 0));
            let scale = word(view.words.scale);
            // The scale of each channel may stand behind a table.
            if let Some(data) = data
                && view.op(behind(view, data).0) == Op::LUT_TO_DENSE
            {
                return Scheme { name: "palettized-scaled", scale, ..self::scheme(view, data) };
            }
            let shapes = data
                .and_then(|value| static_dims(view, value))
                .zip(scale.and_then(|value| static_dims(view, value)));
            let (granularity, block, axis) = match shapes {
                Some((data, scale)) if scale.len() == data.len() => granularity(&data, &scale),
                Some((_, scale)) if scale.iter().product::<u64>() <= 1 => ("tensor", None, None),
                Some((_, scale)) if scale.len() == 1 => ("channel", None, view.axis(node)),
                // An immediate number.
                None if data.is_some() => ("tensor", None, None),
                _ => ("unknown", None, None),
            };
            Scheme {
                name: "linear",
                bits: data.map(|value| view.dtype(value).bits()),
                granularity,
                block,
                axis,
                node: Some(node),
                data,
                table: None,
                scale,
            }
        }
        Op::SPARSE_TO_DENSE => Scheme {
            name: "sparse",
            granularity: "unknown",
            node: Some(node),
            data: word(view.words.data),
            ..dense()
        },
        Op::CAST_WEIGHT => Scheme { name: "cast", node: Some(node), ..dense() },
        _ => dense(),
    }
}

/// The weight of an op: the fixed operand that it multiplies with or looks up in, and its role.
fn weight_of(view: &View<'_>, node: NodeId) -> Option<(ValueId, &'static str)> {
    let words = view.words;
    let (weight, role) = match view.op(node) {
        Op::CONV | Op::CONV_TRANSPOSE => (view.operand(node, words.weight)?, "conv"),
        Op::LINEAR => (view.operand(node, words.weight)?, "linear"),
        Op::MATMUL | Op::ADDMM => {
            let a = view.operand(node, words.a)?;
            let b = view.operand(node, words.b)?;
            let fixed = [b, a].into_iter().find(|&value| view.is_fixed(value))?;
            (fixed, "linear")
        }
        Op::GATHER_MATMUL => (view.operand(node, words.weight)?, "experts"),
        Op::EMBEDDING => (view.operand(node, words.weight)?, "embedding"),
        Op::GATHER | Op::GATHER_ND | Op::INDEX => {
            let indices = view.operand(node, words.indices)?;
            (view.input(node).filter(|_| !view.is_fixed(indices))?, "embedding")
        }
        _ => return None,
    };
    let rank = view.rank(weight)?;
    (view.is_fixed(weight) && rank >= 2).then_some((weight, role))
}

/// Whether a convolution is depthwise: one input channel a filter.
fn is_depthwise(view: &View<'_>, node: NodeId, weight: ValueId) -> bool {
    view.op(node) == Op::CONV
        && view.extent(weight, 1) == Some(1)
        && view.int(node, view.words.groups).is_some_and(|groups| groups > 1)
}

/// Whether a value goes to outputs only, through views, casts, slices and sums with constants.
fn ends_graph(view: &View<'_>, value: ValueId) -> bool {
    let mut stack = vec![value];
    for _ in 0..16 {
        let Some(value) = stack.pop() else { return true };
        let users = view.uses.of_value(value);
        if users.is_empty() || users.len() > 8 {
            return false;
        }
        for &(user, _) in users {
            if view.function.node(user).kind == crate::graph::NodeKind::Output {
                continue;
            }
            let passes = view.is_transparent(user)
                || matches!(view.op(user), Op::CAST | Op::SLICE | Op::SELECT | Op::TRANSPOSE)
                || (view.op(user) == Op::ADD
                    && view.operands(user).any(|operand| view.is_fixed(operand)));
            match view.function.result(user) {
                Some(result) if passes => stack.push(result),
                _ => return false,
            }
        }
    }
    false
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut found = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        if !matches!(view.op(node).category(), Category::Contraction | Category::Indexing) {
            continue;
        }
        if let Some((weight, role)) = weight_of(view, node) {
            let role = match role {
                "conv" if is_depthwise(view, node, weight) => "depthwise",
                role => role,
            };
            found.push((node, weight, role, scheme(view, weight)));
        }
    }
    let compressed = found.iter().filter(|(.., scheme)| scheme.name != "dense").count();
    // The commonest block of the compressed ones, the smallest of several.
    let mut blocks: BTreeMap<u64, usize> = BTreeMap::new();
    for block in found.iter().filter_map(|(.., scheme)| scheme.block) {
        *blocks.entry(block).or_default() += 1;
    }
    let common = blocks.iter().rev().max_by_key(|&(_, count)| count).map(|(&block, _)| block);
    let last = found.len().saturating_sub(1);
    found
        .iter()
        .enumerate()
        .map(|(at, (node, weight, role, scheme))| {
            let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
            let dims = static_dims(view, *weight).unwrap_or_default();
            let elements: u64 = dims.iter().product();
            let dtype = view.dtype(*weight);
            let result = view.function.result(*node);
            let ends = result.is_some_and(|result| ends_graph(view, result));
            let place = match (at, ends) {
                (_, true) => "last",
                (0, _) => "first",
                _ if at == last => "last",
                _ => "middle",
            };
            let mut fields = vec![
                ("user", Field::Node(*node)),
                ("weight", Field::Value(*weight)),
                ("role", Field::Text(role)),
                ("scheme", Field::Text(scheme.name)),
                ("granularity", Field::Text(scheme.granularity)),
                ("place", Field::Text(place)),
                ("elements", int(elements)),
                ("siblings", int(found.len() as u64)),
                ("compressed-siblings", int(compressed as u64)),
                (
                    "width",
                    Field::Text(match dtype {
                        DType::F16 => "f16",
                        DType::F32 => "f32",
                        DType::BF16 => "bf16",
                        _ => "other",
                    }),
                ),
            ];
            fields.extend(scheme.bits.map(|bits| ("bits", int(bits))));
            fields.extend(scheme.block.map(|block| ("block", int(block))));
            fields.extend(scheme.axis.map(|axis| ("axis", int(axis as u64))));
            fields.extend(scheme.node.map(|node| ("decompression", Field::Node(node))));
            fields.extend(scheme.data.map(|data| ("data", Field::Value(data))));
            fields.extend(scheme.table.map(|table| ("table", Field::Value(table))));
            fields.extend(
                scheme
                    .table
                    .and_then(|t| view.rank(t))
                    .map(|rank| ("table-rank", int(rank as u64))),
            );
            fields.extend(scheme.scale.map(|scale| ("scale", Field::Value(scale))));
            if scheme.name == "linear" {
                fields.push(("activations", Field::Text(activations(view, *node))));
            }
            if let (Some(block), "dense") = (common, scheme.name) {
                // Blocks lie along the axis that is summed over, or along the output channels.
                let divides = |n: Option<&u64>| n.is_some_and(|n| n.is_multiple_of(block));
                fields.push(("sibling-block", int(block)));
                fields.push((
                    "block-divides",
                    Field::Bool(divides(dims.first()) && divides(dims.get(1))),
                ));
            }
            Record { anchor: *node, fields }
        })
        .collect()
}

/// Whether what is multiplied with a quantised weight is quantised too.
fn activations(view: &View<'_>, node: NodeId) -> &'static str {
    let quantized = view.operands(node).any(|value| {
        let producer = view.producer(view.plain(value));
        !view.is_fixed(value)
            && matches!(
                view.op(producer),
                Op::DEQUANTIZE | Op::FAKE_QUANTIZE | Op::AFFINE_DEQUANTIZE
            )
    });
    if quantized { "quantized" } else { "float" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN};
    use crate::graph::{ConstantOrigin, DraftOperand, Payload};

    #[test]
    fn what_shares_a_scale_follows_from_the_shapes() {
        let data = [128, 64, 1, 1];
        for (scale, expected) in [
            ([1, 1, 1, 1], ("tensor", None, None)),
            ([128, 1, 1, 1], ("channel", None, Some(0))),
            ([128, 2, 1, 1], ("block", Some(32), Some(1))),
            ([8, 1, 1, 1], ("block", Some(16), Some(0))),
        ] {
            assert_eq!(granularity(&data, &scale), expected, "{scale:?}");
        }
    }

    fn stored(g: &mut Graph, dtype: DType, dims: &[u64]) -> DraftOperand {
        g.constant(ConstantOrigin::Parameter, dtype, dims, Payload::Unknown)
    }

    #[test]
    fn a_table_of_sixteen_and_a_weight_that_no_block_divides() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[1, 3, 8, 8]);
        let stem = g.weight(DType::F16, &[64, 3, 1, 1]);
        let y = g.op(Op::CONV, &[x, stem], &[], DType::F16, &[1, 64, 8, 8]);
        let indices = stored(&mut g, DType::U8, &[64, 64, 1, 1]);
        let lut = stored(&mut g, DType::F16, &[1, 1, 1, 1, 16, 1]);
        let weight = g.op(Op::LUT_TO_DENSE, &[indices, lut], &[], DType::F16, &[64, 64, 1, 1]);
        let y = g.op(Op::CONV, &[y, weight], &[], DType::F16, &[1, 64, 8, 8]);
        let data = stored(&mut g, DType::I4, &[64, 64, 1, 1]);
        let scale = stored(&mut g, DType::F16, &[64, 2, 1, 1]);
        let weight =
            g.op(Op::BLOCKWISE_SHIFT_SCALE, &[data, scale], &[], DType::F16, &[64, 64, 1, 1]);
        let y = g.op(Op::CONV, &[y, weight], &[], DType::F16, &[1, 64, 8, 8]);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let records = facts.records(MAIN, "weight");
        let read = |name| records.iter().map(|r| r.field(name).cloned()).collect::<Vec<_>>();
        assert_eq!(
            read("scheme"),
            ["dense", "palettized", "linear"].map(|word| Some(Field::Text(word)))
        );
        assert_eq!(read("bits"), [None, Some(Field::Int(4)), Some(Field::Int(4))]);
        assert_eq!(
            read("granularity"),
            ["none", "tensor", "block"].map(|word| Some(Field::Text(word)))
        );
        assert_eq!(read("block-divides"), [Some(Field::Bool(false)), None, None]);
        assert_eq!(read("place"), ["first", "middle", "last"].map(|word| Some(Field::Text(word))));
    }
}
