//! Attributes in canonical form: what constants say, axes from the front, one axis of a slice.

use super::ir::Tensor;
use super::ops::Lowering;
use crate::graph::{Attr, DType, Dim, DraftNode, Name, Op as Canonical, Program, ShapeId};

/// Settings that are one value, however the constant is shaped.
const SINGLE: &[&str] = &[
    "axis",
    "groups",
    "ceil_mode",
    "descending",
    "reverse",
    "value",
    "factor",
    "count_include_pad",
];

/// The numbers of a constant as the attribute `name`.
pub fn attribute(name: &str, tensor: &Tensor<'_>, numbers: &[f64]) -> Attr {
    let single = tensor.shape.is_empty() || SINGLE.contains(&name);
    let one = |number: f64| match tensor.dtype {
        DType::Bool => Attr::Bool(number != 0.0),
        dtype if dtype.is_int() => Attr::Int(number as i64),
        _ => Attr::Float(number),
    };
    match numbers {
        [number] if single => one(*number),
        _ if tensor.dtype.is_int() => Attr::Ints(numbers.iter().map(|&n| Some(n as i64)).collect()),
        _ => Attr::Floats(numbers.into()),
    }
}

/// Puts what an op was told into canonical form.
pub fn finish(lowering: &mut Lowering<'_, '_, '_>, node: &mut DraftNode) {
    let input = node.operands.first().map(|&(_, place)| place);
    let shape = input.map_or(ShapeId::UNKNOWN, |place| lowering.shape_of(place));
    let result = node.results.first().map_or(ShapeId::UNKNOWN, |result| result.2);
    let dtype = node.results.first().map_or(DType::Unknown, |result| result.1);
    let program = &mut *lowering.program;
    let rank = program.shapes.get(shape).rank();
    count_axes_from_front(program, node, rank);
    match node.op {
        Canonical::CAST => {
            let name = program.names.intern("dtype");
            node.attributes.push((name, Attr::DType(dtype)));
        }
        Canonical::RESHAPE | Canonical::EXPAND => target_shape(program, node, result),
        Canonical::PAD => begins_then_ends(program, node),
        Canonical::CONV_TRANSPOSE | Canonical::AVG_POOL => same_on_both_sides(program, node),
        Canonical::UPSAMPLE_BILINEAR | Canonical::UPSAMPLE_NEAREST => spatial_only(program, node),
        Canonical::SLICE | Canonical::SLICE_UPDATE => slice(program, node, shape),
        Canonical::LOGICAL_NOT if dtype != DType::Bool => node.op = Canonical::BITWISE_NOT,
        Canonical::SPLIT => split(program, node, shape),
        _ => {}
    }
}

/// Negative axes count from the end.
fn count_axes_from_front(program: &mut Program, node: &mut DraftNode, rank: Option<usize>) {
    let Some(rank) = rank else { return };
    let rank = if node.op == Canonical::UNSQUEEZE {
        let added = program.names.find("axes").and_then(|axes| match node.attribute(axes)? {
            Attr::Ints(axes) => Some(axes.len()),
            _ => None,
        });
        rank + added.unwrap_or(0)
    } else {
        rank
    } as i64;
    let front = |axis: i64| if (-rank..0).contains(&axis) { axis + rank } else { axis };
    for (name, attr) in &mut node.attributes {
        match (program.names.get(*name), attr) {
            ("axis", Attr::Int(axis)) => *axis = front(*axis),
            ("axes" | "permutation", Attr::Ints(axes)) => {
                axes.iter_mut().flatten().for_each(|axis| *axis = front(*axis));
            }
            ("axes", attr @ Attr::Int(_)) => {
                let axis = attr.as_int().map(front);
                *attr = Attr::Ints([axis].into());
            }
            _ => {}
        }
    }
}

/// The shape asked for: that of the result where it is known, `-1` resolved.
fn target_shape(program: &mut Program, node: &mut DraftNode, result: ShapeId) {
    let name = program.names.intern("shape");
    let Some(dims) = program.shapes.get(result).dims() else { return };
    let dims: Box<[Option<i64>]> =
        dims.iter().map(|dim| dim.value().and_then(|n| i64::try_from(n).ok())).collect();
    if dims.iter().all(Option::is_some) || node.attribute(name).is_none() {
        set(node, name, Attr::Ints(dims));
    }
}

/// Pads stand as pairs by axis in the file.
fn begins_then_ends(program: &mut Program, node: &mut DraftNode) {
    let name = program.names.intern("pads");
    let Some(Attr::Ints(pairs)) = node.attribute(name) else { return };
    let begins = pairs.iter().step_by(2).copied();
    let ends = pairs.iter().skip(1).step_by(2).copied();
    let pads = begins.chain(ends).collect();
    set(node, name, Attr::Ints(pads));
}

/// One pad an axis is that of both its sides.
fn same_on_both_sides(program: &mut Program, node: &mut DraftNode) {
    let [pads, strides] = ["pads", "strides"].map(|name| program.names.intern(name));
    let axes = match node.attribute(strides) {
        Some(Attr::Ints(strides)) => strides.len(),
        _ => return,
    };
    if let Some(Attr::Ints(list)) = node.attribute(pads)
        && list.len() == axes
    {
        let both = list.iter().chain(list.iter()).copied().collect();
        set(node, pads, Attr::Ints(both));
    }
}

/// Sizes and scales of the spatial axes: batch and channels come first and stay as they are.
fn spatial_only(program: &mut Program, node: &mut DraftNode) {
    let [size, scale] = ["size", "scale"].map(|name| program.names.intern(name));
    for (name, attr) in &mut node.attributes {
        match attr {
            Attr::Ints(list) if *name == size && list.len() > 2 => *list = list[2..].into(),
            Attr::Floats(list) if *name == scale && list.len() > 2 => *list = list[2..].into(),
            _ => {}
        }
    }
}

/// A slice of one axis says which; a slice of everything is an identity.
fn slice(program: &mut Program, node: &mut DraftNode, input: ShapeId) {
    let [begin, end, step, axis] =
        ["begin", "end", "step", "axis"].map(|name| program.names.intern(name));
    let lists = [begin, end, step].map(|name| match node.attribute(name) {
        Some(Attr::Ints(list)) => list.iter().copied().collect::<Option<Vec<i64>>>(),
        _ => None,
    });
    let Some(dims) = program.shapes.get(input).dims() else { return };
    let [Some(mut begins), Some(mut ends), Some(steps)] = lists else { return };
    if begins.len() != dims.len() || ends.len() != dims.len() || steps.len() != dims.len() {
        return;
    }
    let mut moved = Vec::new();
    for (at, dim) in dims.iter().enumerate() {
        if let Dim::Static(extent) = dim {
            let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
            for bound in [&mut begins[at], &mut ends[at]] {
                if *bound < 0 {
                    *bound = bound.saturating_add(extent);
                }
                *bound = (*bound).clamp(0, extent);
            }
            if begins[at] != 0 || ends[at] != extent || steps[at] != 1 {
                moved.push(at);
            }
        } else if begins[at] != 0 || ends[at] < i64::from(i32::MAX) || steps[at] != 1 {
            moved.push(at);
        }
    }
    match *moved {
        [] if node.op == Canonical::SLICE => node.op = Canonical::IDENTITY,
        [at] => {
            set(node, axis, Attr::Int(at as i64));
            set(node, begin, Attr::Int(begins[at]));
            set(node, end, Attr::Int(ends[at]));
            set(node, step, Attr::Int(steps[at]));
        }
        _ => {
            set(node, begin, Attr::Ints(begins.into_iter().map(Some).collect()));
            set(node, end, Attr::Ints(ends.into_iter().map(Some).collect()));
        }
    }
}

/// The sizes of the parts, where one size for all is given.
fn split(program: &mut Program, node: &mut DraftNode, input: ShapeId) {
    let [sizes, axis] = ["sizes", "axis"].map(|name| program.names.intern(name));
    let Some(Attr::Int(size)) = node.attribute(sizes) else { return };
    let size = *size;
    let along = node.attribute(axis).and_then(Attr::as_int);
    let extent = along.and_then(|axis| program.shapes.get(input).dim(axis)).and_then(Dim::value);
    let parts = node.results.len() as i64;
    let list = (0..parts).map(|part| match extent.and_then(|n| i64::try_from(n).ok()) {
        Some(extent) => Some((extent - part * size).min(size)),
        None => Some(size),
    });
    let list = list.collect();
    set(node, sizes, Attr::Ints(list));
}

/// Sets an attribute, once.
pub fn set(node: &mut DraftNode, name: Name, attr: Attr) {
    match node.attributes.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = attr,
        None => node.attributes.push((name, attr)),
    }
}
