//! Result shapes of layers, for the kinds where they follow from the inputs. Unknown is an answer.

use super::layer::Layer;
use crate::graph::{Attr, Category, DType, Dim, DraftNode, Names, Op};

/// Element type of an op's results.
pub(super) fn dtype(op: Op) -> DType {
    match op {
        Op::SHAPE | Op::ARGMAX | Op::ARGMIN | Op::ARGSORT | Op::NON_ZERO => DType::I32,
        _ => DType::F16,
    }
}

/// The shape of result `which`; `None` if it is not known.
pub(super) fn result(
    names: &Names,
    node: &DraftNode,
    layer: &Layer,
    inputs: &[Option<Vec<Dim>>],
    rank5: bool,
    which: usize,
) -> Option<Vec<Dim>> {
    let ints =
        |name: &str| names.find(name).and_then(|n| node.attribute(n)).and_then(Attr::as_ints);
    let int = |name: &str| names.find(name).and_then(|n| node.attribute(n)).and_then(Attr::as_int);
    let input = || inputs.first().cloned().flatten();
    let channels = || layer.int("outputChannels").and_then(|n| u64::try_from(n).ok());
    match node.op {
        Op::CONV | Op::CONV_TRANSPOSE | Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL => {
            let mut dims = input()?;
            let window = super::settings::window(layer, Some(&dims));
            let spatial = window.kernel.len();
            let first = dims.len().checked_sub(spatial)?;
            let pads = window.pads?;
            for axis in 0..spatial {
                let size = i64::try_from(dims.get(first + axis)?.value()?).ok()?;
                let stride = *window.strides.get(axis)?;
                let dilation = *window.dilations.get(axis)?;
                let reach = (window.kernel.get(axis)? - 1).checked_mul(dilation)?.checked_add(1)?;
                let pad = pads.get(axis)?.checked_add(*pads.get(spatial + axis)?)?;
                let out = if node.op == Op::CONV_TRANSPOSE {
                    size.checked_sub(1)?
                        .checked_mul(stride)?
                        .checked_add(reach)?
                        .checked_sub(pad)?
                } else {
                    size.checked_add(pad)?
                        .checked_sub(reach)?
                        .checked_div(stride)?
                        .checked_add(1)?
                };
                *dims.get_mut(first + axis)? =
                    Dim::Static(u64::try_from(out).ok().filter(|n| *n > 0)?);
            }
            if let (Some(n), Some(dim)) = (channels(), first.checked_sub(1)) {
                *dims.get_mut(dim)? = Dim::Static(n);
            }
            Some(dims)
        }
        Op::ADAPTIVE_AVG_POOL | Op::ADAPTIVE_MAX_POOL => {
            let mut dims = input()?;
            dims.iter_mut().skip(2).for_each(|dim| *dim = Dim::Static(1));
            Some(dims)
        }
        Op::LINEAR | Op::EMBEDDING => {
            let mut dims = input()?;
            let out = channels().or_else(|| layer.int("embeddingSize").map(|n| n.max(0) as u64))?;
            // Before exact shapes, the vector lies on the channel axis.
            let at = if rank5 { 1 } else { dims.len().checked_sub(1)? };
            *dims.get_mut(at)? = Dim::Static(out);
            Some(dims)
        }
        Op::MATMUL => {
            let flag = |name: &str| layer.int(name).is_some_and(|n| n != 0);
            let (mut a, mut b) = (input()?, inputs.get(1).cloned().flatten()?);
            let swap = |dims: &mut Vec<Dim>| {
                let rank = dims.len();
                (rank >= 2).then(|| dims.swap(rank - 2, rank - 1))
            };
            if flag("transposeA") {
                swap(&mut a)?;
            }
            if flag("transposeB") {
                swap(&mut b)?;
            }
            let (rows, columns) = (*a.get(a.len().checked_sub(2)?)?, *b.last()?);
            let lead = |dims: &[Dim]| Some(dims.get(..dims.len().checked_sub(2)?)?.to_vec());
            let mut dims = broadcast(&[lead(&a), lead(&b)], 2)?;
            dims.extend([rows, columns]);
            Some(dims)
        }
        Op::CONCAT => {
            let axis = usize::try_from(int("axis")?).ok()?;
            let mut dims = input()?;
            let mut sum = 0u64;
            for other in inputs {
                sum = sum.checked_add(other.as_ref()?.get(axis)?.value()?)?;
            }
            *dims.get_mut(axis)? = Dim::Static(sum);
            Some(dims)
        }
        Op::SPLIT => {
            let axis = usize::try_from(int("axis")?).ok()?;
            let mut dims = input()?;
            let size = match ints("sizes").and_then(|list| list.get(which).copied()) {
                Some(n) => u64::try_from(n).ok()?,
                None => dims.get(axis)?.value()?.checked_div(layer.outputs.len() as u64)?,
            };
            *dims.get_mut(axis)? = Dim::Static(size);
            Some(dims)
        }
        Op::TRANSPOSE => {
            let dims = input()?;
            let order = ints("permutation")?;
            if order.len() != dims.len() {
                return None;
            }
            order.iter().map(|&at| dims.get(usize::try_from(at).ok()?).copied()).collect()
        }
        Op::RESHAPE => {
            let shape = ints("shape")?;
            let dims: Option<Vec<Dim>> = shape
                .iter()
                .map(|&n| u64::try_from(n).ok().filter(|n| *n > 0).map(Dim::Static))
                .collect();
            let dims = dims?;
            Some(if rank5 { super::four(dims) } else { dims })
        }
        Op::FLATTEN if layer.spelling == "flatten" => {
            let count = input()?.iter().skip(1).try_fold(1u64, |n, d| n.checked_mul(d.value()?))?;
            Some([1, count, 1, 1].map(Dim::Static).to_vec())
        }
        Op::UPSAMPLE_NEAREST | Op::UPSAMPLE_BILINEAR => {
            let mut dims = input()?;
            let first = dims.len().checked_sub(2)?;
            let scale = layer.ints("scalingFactor");
            let size = layer.ints("targetSize");
            for axis in 0..2 {
                let dim = dims.get_mut(first + axis)?;
                let out = match (scale, size) {
                    (Some(scale), _) => {
                        dim.value()?.checked_mul(u64::try_from(*scale.get(axis)?).ok()?)?
                    }
                    (None, Some(size)) => u64::try_from(*size.get(axis)?).ok()?,
                    (None, None) => return None,
                };
                *dim = Dim::Static(out);
            }
            Some(dims)
        }
        op if layer.spelling.starts_with("reduce.") && op.category() == Category::Reduction => {
            let mut dims = input()?;
            let axes = ints("axes").or_else(|| ints("axis"))?;
            for axis in axes {
                *dims.get_mut(usize::try_from(axis).ok()?)? = Dim::Static(1);
            }
            Some(dims)
        }
        op => match op.category() {
            Category::Activation | Category::Normalization => input(),
            Category::Elementwise | Category::Logic => broadcast(inputs, layer.inputs.len()),
            _ if matches!(op, Op::IDENTITY | Op::REVERSE | Op::CUMSUM | Op::ARGSORT) => input(),
            _ => None,
        },
    }
}

/// The shape that a layer's parameters give its `weight`.
pub(super) fn weight(op: Op, layer: &Layer) -> Option<Vec<u64>> {
    let int = |name: &str| layer.int(name).and_then(|n| u64::try_from(n).ok());
    let out = int("outputChannels");
    match op {
        Op::CONV | Op::CONV_TRANSPOSE => {
            let window = super::settings::window(layer, None);
            let groups = int("nGroups").filter(|n| *n > 0).unwrap_or(1);
            let (first, second) = match (op, int("kernelChannels"), int("inputChannels")) {
                (Op::CONV, Some(inner), _) => (out?, inner),
                (Op::CONV, None, Some(input)) => (out?, input.checked_div(groups)?),
                (_, Some(input), _) | (_, None, Some(input)) => (input, out?.checked_div(groups)?),
                _ => return None,
            };
            let kernel = window.kernel.iter().map(|n| u64::try_from(*n).ok());
            let kernel: Option<Vec<u64>> = kernel.collect();
            Some([vec![first, second], kernel?].concat())
        }
        Op::LINEAR => Some(vec![out?, int("inputChannels")?]),
        Op::EMBEDDING => Some(vec![
            int("inputDim").or_else(|| int("vocabSize"))?,
            out.or_else(|| int("embeddingSize"))?,
        ]),
        _ => None,
    }
}

/// The broadcast of the run-time inputs (weights come after them).
fn broadcast(inputs: &[Option<Vec<Dim>>], count: usize) -> Option<Vec<Dim>> {
    let mut result: Vec<Dim> = inputs.first()?.clone()?;
    for other in inputs.iter().take(count).skip(1) {
        let other = other.as_ref()?;
        if other.len() > result.len() {
            let missing = other.len() - result.len();
            result.splice(0..0, std::iter::repeat_n(Dim::Static(1), missing));
        }
        let offset = result.len() - other.len();
        for (dim, more) in result.iter_mut().skip(offset).zip(other) {
            if *dim == Dim::Static(1) {
                *dim = *more;
            }
        }
    }
    Some(result)
}
