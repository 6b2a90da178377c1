//! Layer parameters in canonical form: paddings as numbers, axes counted from the front.

use super::layer::{Layer, Param};
use crate::graph::{Attr, Dim, DraftNode, Names, Op};

/// Rewrites the attributes of one layer.
pub(super) fn canonicalise(
    names: &mut Names,
    node: &mut DraftNode,
    layer: &Layer,
    inputs: &[Option<Vec<Dim>>],
) {
    let input = inputs.first().and_then(Option::as_deref);
    let mut set = |node: &mut DraftNode, name: &str, attr: Attr| {
        let name = names.intern(name);
        node.attributes.retain(|(known, _)| *known != name);
        node.attributes.push((name, attr));
    };
    let ints = |list: Vec<i64>| Attr::Ints(list.into_iter().map(Some).collect());
    match node.op {
        Op::CONV | Op::CONV_TRANSPOSE | Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL => {
            let window = window(layer, input);
            if layer.int("globalPooling").is_some_and(|n| n != 0) {
                node.op = if node.op == Op::MAX_POOL {
                    Op::ADAPTIVE_MAX_POOL
                } else {
                    Op::ADAPTIVE_AVG_POOL
                };
                let unit = vec![1; window.strides.len()];
                set(node, "output_size", ints(unit));
                return;
            }
            set(node, "strides", ints(window.strides));
            match window.pads {
                Some(pads) => set(node, "pads", ints(pads)),
                None => set(node, "pads", Attr::Dynamic),
            }
            if matches!(node.op, Op::CONV | Op::CONV_TRANSPOSE) {
                set(node, "dilations", ints(window.dilations));
                let groups = layer.int("nGroups").filter(|n| *n > 0).unwrap_or(1);
                set(node, "groups", Attr::Int(groups));
            } else {
                set(node, "kernel", ints(window.kernel));
            }
            if node.op == Op::AVG_POOL {
                let exclude = ["avgPoolExcludePadding", "countExcludePadding"]
                    .iter()
                    .any(|name| layer.int(name).is_some_and(|n| n != 0));
                set(node, "count_include_pad", Attr::Bool(!exclude));
            }
        }
        Op::TOPK => {
            let bottom = layer.int("useBottomK").is_some_and(|n| n != 0);
            set(node, "largest", Attr::Bool(!bottom));
        }
        Op::GELU => {
            let word = match layer.word("mode") {
                Some("TANH_APPROXIMATION") => "tanh",
                Some("SIGMOID_APPROXIMATION") => "sigmoid",
                _ => "none",
            };
            let word = names.intern(word);
            let name = names.intern("approximate");
            node.attributes.retain(|(known, _)| *known != name);
            node.attributes.push((name, Attr::Text(word)));
            return;
        }
        // These kinds work on the channel axis.
        Op::SOFTMAX if layer.spelling == "softmax" => set(node, "axis", Attr::Int(1)),
        Op::CONCAT | Op::SPLIT if matches!(layer.spelling.as_str(), "concat" | "split") => {
            let sequence = layer.int("sequenceConcat").is_some_and(|n| n != 0);
            set(node, "axis", Attr::Int(if sequence { 0 } else { 1 }));
        }
        Op::SLICE if layer.spelling == "slice" => {
            let axis = match layer.word("axis") {
                Some("HEIGHT_AXIS") => 2,
                Some("WIDTH_AXIS") => 3,
                _ => 1,
            };
            set(node, "axis", Attr::Int(axis));
        }
        Op::FLATTEN => set(node, "start_axis", Attr::Int(1)),
        Op::UPSAMPLE_NEAREST | Op::UPSAMPLE_BILINEAR => {
            let scale = layer.ints("scalingFactor").map(|l| l.iter().map(|n| *n as f64).collect());
            if let Some(scale) = scale {
                set(node, "scale", Attr::Floats(scale));
            }
        }
        _ if layer.spelling.starts_with("reduce.") => {
            let axes = match layer.word("axis") {
                Some("HW") => vec![2, 3],
                Some("C") => vec![1],
                Some("H") => vec![2],
                Some("W") => vec![3],
                _ => vec![1, 2, 3],
            };
            if node.op == Op::ARGMAX {
                set(node, "axis", Attr::Int(axes.first().copied().unwrap_or(1)));
            } else {
                set(node, "axes", ints(axes));
            }
            set(node, "keep_dims", Attr::Bool(true));
        }
        Op::REDUCE_SUM
        | Op::REDUCE_MEAN
        | Op::REDUCE_MAX
        | Op::REDUCE_MIN
        | Op::REDUCE_PROD
        | Op::REDUCE_L1_NORM
        | Op::REDUCE_L2_NORM
        | Op::REDUCE_SUM_SQUARE
        | Op::REDUCE_LOG_SUM
        | Op::REDUCE_LOG_SUM_EXP
            if layer.ints("axes").is_none() =>
        {
            if let Some(dims) = input {
                set(node, "axes", ints((0..dims.len() as i64).collect()));
            }
        }
        _ => {}
    }
    if let Some(dims) = input {
        front(names, node, dims.len() as i64);
    }
}

/// Counts `axis` and `axes` from the front, and makes `axes` and `permutation` lists.
fn front(names: &mut Names, node: &mut DraftNode, rank: i64) {
    let (axis, axes) = (names.intern("axis"), names.intern("axes"));
    let (shape, permutation) = (names.intern("shape"), names.intern("permutation"));
    // A new axis counts in the result.
    let rank = if matches!(node.op, Op::UNSQUEEZE | Op::STACK) { rank + 1 } else { rank };
    let fix = |n: i64| if n < 0 { n.saturating_add(rank) } else { n };
    for (name, attr) in &mut node.attributes {
        match attr {
            Attr::Int(n) if *name == axis => *n = fix(*n),
            Attr::Int(n) if *name == axes => *attr = Attr::Ints([Some(fix(*n))].into()),
            Attr::Int(n) if *name == shape || *name == permutation => {
                *attr = Attr::Ints([Some(*n)].into());
            }
            Attr::Ints(list) if *name == axes => {
                for n in list.iter_mut().flatten() {
                    *n = fix(*n);
                }
            }
            _ => {}
        }
    }
}

/// A sliding window over two or three spatial axes.
pub(super) struct Window {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    /// Begins, then ends; `None` if it depends on a size that is not known.
    pub pads: Option<Vec<i64>>,
}

/// The window of a convolution or pooling layer.
pub(super) fn window(layer: &Layer, input: Option<&[Dim]>) -> Window {
    let three = layer.spelling.contains("3d");
    let spatial = if three { 3 } else { 2 };
    let list = |flat: &str, parts: [&str; 3]| -> Vec<i64> {
        if three {
            return parts
                .iter()
                .map(|name| layer.int(name).filter(|n| *n > 0).unwrap_or(1))
                .collect();
        }
        match layer.ints(flat) {
            Some(list) if list.len() == spatial => list.iter().map(|n| (*n).max(1)).collect(),
            _ if flat == "kernelSize" => vec![3; spatial],
            _ => vec![1; spatial],
        }
    };
    let kernel = list("kernelSize", ["kernelDepth", "kernelHeight", "kernelWidth"]);
    let strides = list("stride", ["strideDepth", "strideHeight", "strideWidth"]);
    let dilations = list("dilationFactor", ["dilationDepth", "dilationHeight", "dilationWidth"]);
    let present = |name: &str| matches!(layer.param(name), Some(Param::Present));
    let pads = if three && layer.word("paddingType").unwrap_or("CUSTOM") == "CUSTOM" {
        let side = |name: &str| layer.int(name).unwrap_or(0);
        Some(vec![
            side("customPaddingFront"),
            side("customPaddingTop"),
            side("customPaddingLeft"),
            side("customPaddingBack"),
            side("customPaddingBottom"),
            side("customPaddingRight"),
        ])
    } else if present("same") || layer.word("paddingType") == Some("SAME") {
        let top = layer.word("asymmetryMode") == Some("TOP_LEFT_HEAVY");
        same(input, &kernel, &strides, &dilations, top)
    } else if present("includeLastPixel") {
        let amounts = layer.ints("paddingAmounts").unwrap_or(&[]);
        let at = |axis: usize| amounts.get(axis).copied().unwrap_or(0);
        Some(vec![at(0), at(1), at(0), at(1)])
    } else {
        let begin = layer.ints("startEdgeSize").unwrap_or(&[]);
        let end = layer.ints("endEdgeSize").unwrap_or(&[]);
        // Zero edges are not stored: a list that is not full says nothing of which edge it means.
        match (begin.len(), end.len()) {
            (0, 0) => Some(vec![0; 2 * spatial]),
            (b, e) if b == spatial && e == spatial => Some([begin, end].concat()),
            _ => None,
        }
    };
    Window { kernel, strides, dilations, pads }
}

fn same(
    input: Option<&[Dim]>,
    kernel: &[i64],
    strides: &[i64],
    dilations: &[i64],
    top: bool,
) -> Option<Vec<i64>> {
    let spatial = kernel.len();
    let sizes = input.and_then(|dims| dims.get(dims.len().checked_sub(spatial)?..));
    let mut pads = vec![0; 2 * spatial];
    for axis in 0..spatial {
        let stride = *strides.get(axis)?;
        let reach = (kernel.get(axis)? - 1).checked_mul(*dilations.get(axis)?)?.checked_add(1)?;
        let total = if stride == 1 {
            reach - 1
        } else {
            let size = i64::try_from(sizes?.get(axis)?.value()?).ok()?;
            let out = size.checked_add(stride - 1)?.checked_div(stride)?;
            out.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?.checked_sub(size)?
        };
        let total = total.max(0);
        let less = total / 2;
        let begin = if top { total - less } else { less };
        *pads.get_mut(axis)? = begin;
        *pads.get_mut(spatial + axis)? = total - begin;
    }
    Some(pads)
}
