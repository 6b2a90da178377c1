//! Settings in canonical form: automatic padding resolved, axes counted from the front, defaults that
//! changed between opsets filled in, words of the format turned into the vocabulary's; and ops that one
//! spelling stands for several of.

use super::types::{Declared, dtype};
use super::values::Element;
use crate::graph::{Attr, DType, Dim, DraftNode, Name, Names, Op};

/// What is around a node.
pub(super) struct Site<'a> {
    /// The op's name, with its domain if that is not the default one.
    pub spelling: &'a str,
    /// Version of the domain's opset.
    pub opset: i64,
    /// Number of results.
    pub outputs: usize,
    /// Dims of the `weight` operand.
    pub weight: Option<Vec<Dim>>,
    /// By stored position.
    pub inputs: &'a [Option<Declared>],
    /// By stored position: whether the input is a constant.
    pub constant: &'a [bool],
    /// By stored position: elements of small whole-number tensors.
    pub values: &'a [Option<Vec<Element>>],
}

impl Site<'_> {
    fn dims(&self, position: usize) -> Option<&[Dim]> {
        self.inputs.get(position)?.as_ref()?.dims.as_deref()
    }

    fn rank(&self) -> Option<i64> {
        self.dims(0).map(|dims| dims.len() as i64)
    }

    fn size(&self, axis: i64) -> Option<i64> {
        let dim = self.dims(0)?.get(usize::try_from(axis).ok()?)?;
        i64::try_from(dim.value()?).ok()
    }

    fn is_constant(&self, position: usize) -> bool {
        self.constant.get(position).copied().unwrap_or(false)
    }
}

/// A node's attributes by name.
struct Settings<'a> {
    names: &'a mut Names,
    node: &'a mut DraftNode,
}

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<&Attr> {
        self.names.find(name).and_then(|name| self.node.attribute(name))
    }

    fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.get(name)?.as_ints()
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_int()
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Attr::Text(text) => Some(self.names.get(*text)),
            _ => None,
        }
    }

    fn take(&mut self, name: &str) -> Option<Attr> {
        let name = self.names.find(name)?;
        let at = self.node.attributes.iter().position(|(known, _)| *known == name)?;
        Some(self.node.attributes.remove(at).1)
    }

    fn set(&mut self, name: &str, attr: Attr) {
        let name: Name = self.names.intern(name);
        match self.node.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = attr,
            None => self.node.attributes.push((name, attr)),
        }
    }

    fn set_ints(&mut self, name: &str, list: impl IntoIterator<Item = i64>) {
        self.set(name, Attr::Ints(list.into_iter().map(Some).collect()));
    }

    fn has_operand(&self, name: &str) -> bool {
        self.names.find(name).is_some_and(|name| self.node.operand(name).is_some())
    }

    fn rename_operand(&mut self, from: &str, to: &str) {
        let (from, to) = (self.names.intern(from), self.names.intern(to));
        for (name, _) in &mut self.node.operands {
            if *name == from {
                *name = to;
            }
        }
    }
}

/// Truth values that the format stores as numbers.
const FLAGS: &[&str] = &[
    "keep_dims",
    "ceil_mode",
    "count_include_pad",
    "is_causal",
    "transpose_a",
    "transpose_b",
    "largest",
    "sorted",
    "exclusive",
    "reverse",
    "align_corners",
    "interleaved",
    "enable_gqa",
];

/// Rewrites the attributes of one node.
pub(super) fn canonicalise(names: &mut Names, node: &mut DraftNode, site: &Site<'_>) {
    let mut settings = Settings { names, node };
    let s = &mut settings;
    for name in FLAGS {
        if let Some(Attr::Int(n)) = s.get(name) {
            let flag = *n != 0;
            s.set(name, Attr::Bool(flag));
        }
    }
    if let Some(Attr::Int(n)) = s.get("dtype") {
        let of = dtype(*n);
        if of == DType::Unknown {
            s.take("dtype");
        } else {
            s.set("dtype", Attr::DType(of));
        }
    }
    match s.node.op {
        Op::CONV | Op::CONV_TRANSPOSE => {
            let kernel = site.weight.as_ref().map(|dims| dims.iter().skip(2).copied().collect());
            let kernel = kernel.or_else(|| {
                let stored = s.ints("kernel_shape")?;
                Some(stored.iter().map(|&n| Dim::Static(n.max(0) as u64)).collect())
            });
            window(s, site, kernel);
        }
        Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL => {
            let kernel = s.ints("kernel").map(|list| {
                list.iter().map(|&n| Dim::Static(n.max(0) as u64)).collect::<Vec<Dim>>()
            });
            window(s, site, kernel);
        }
        Op::ADAPTIVE_AVG_POOL | Op::ADAPTIVE_MAX_POOL => {
            if let Some(rank) = site.rank() {
                s.set_ints("output_size", (2..rank).map(|_| 1));
            }
        }
        Op::ADDMM => gemm(s, site),
        Op::PAD => pad(s, site),
        Op::SLICE => slice(s, site),
        Op::SPLIT => split(s, site),
        Op::GATHER => gather(s, site),
        Op::TOPK => axes(s, "axis", site.rank()),
        Op::SOFTMAX | Op::LOG_SOFTMAX => {
            if s.get("axis").is_none() {
                s.set("axis", Attr::Int(if site.opset < 13 { 1 } else { -1 }));
            }
            axes(s, "axis", site.rank());
        }
        Op::LAYER_NORM | Op::RMS_NORM => norm(s, site),
        Op::L2_NORM => {
            let axis = s.take("axis").and_then(|attr| attr.as_int()).unwrap_or(-1);
            s.set_ints("axes", [axis]);
            axes(s, "axes", site.rank());
        }
        Op::CAST | Op::BITCAST | Op::QUANTIZE | Op::ARANGE | Op::FULL => {
            if s.node.op == Op::CAST
                && s.get("dtype").is_none()
                && let Some(Some(like)) = site.inputs.get(1)
            {
                let of = like.dtype;
                s.set("dtype", Attr::DType(of));
            }
            axes(s, "axis", site.rank());
        }
        Op::UNSQUEEZE => {
            let added = s.ints("axes").map(|list| list.len() as i64);
            axes(s, "axes", site.rank().zip(added).map(|(rank, added)| rank + added));
        }
        Op::SQUEEZE => {
            axes(s, "axes", site.rank());
            if s.get("axes").is_none()
                && let Some(dims) = site.dims(0)
            {
                let units: Vec<i64> = (0..)
                    .zip(dims)
                    .filter(|(_, dim)| **dim == Dim::Static(1))
                    .map(|(at, _)| at)
                    .collect();
                s.set_ints("axes", units);
            }
        }
        Op::FLATTEN => axes(s, "start_axis", site.rank()),
        Op::TRANSPOSE => {
            if s.get("permutation").is_none()
                && let Some(rank) = site.rank()
            {
                s.set_ints("permutation", (0..rank).rev());
            }
        }
        Op::TRIU => {
            let upper = s.take("upper").and_then(|attr| attr.as_int()).unwrap_or(1);
            if upper == 0 {
                s.node.op = Op::TRIL;
            }
            if s.get("diagonal").is_none() {
                s.set("diagonal", Attr::Int(0));
            }
        }
        // In training mode only: a third input that may be true, or (before opset 12) `is_test`.
        Op::DROPOUT
            if site.spelling == "Dropout" && !site.inputs.get(2).is_some_and(Option::is_some) =>
        {
            s.node.op = Op::IDENTITY;
        }
        Op::CONCAT => {
            if site.spelling == "Concat" && site.opset < 4 && s.get("axis").is_none() {
                s.set("axis", Attr::Int(1));
            }
            axes(s, "axis", site.rank());
        }
        Op::RESIZE => resize(s, site),
        Op::CUMSUM | Op::CUMPROD => {
            if let Some(Attr::Ints(list)) = s.get("axis") {
                let only = list.first().copied().flatten().unwrap_or(0);
                s.set("axis", Attr::Int(only));
            }
            axes(s, "axis", site.rank());
        }
        Op::ONE_HOT => {
            if let Some(only) = s.ints("depth").and_then(|list| list.first().copied()) {
                s.set("depth", Attr::Int(only));
            }
            axes(s, "axis", site.rank().map(|rank| rank + 1));
        }
        op => {
            if op.attributes().contains(&"keep_dims") && s.get("keep_dims").is_none() {
                s.set("keep_dims", Attr::Bool(true));
            }
            axes(s, "axis", site.rank());
            axes(s, "axes", site.rank());
            reduce(s, op, site);
        }
    }
    if s.node.op == Op::TOPK
        && let Some(k) = s.ints("k").and_then(|list| list.first().copied())
    {
        s.set("k", Attr::Int(k));
    }
}

/// Counts an axis or list of axes from the front.
fn axes(s: &mut Settings<'_>, name: &str, rank: Option<i64>) {
    let Some(rank) = rank else { return };
    let fix = |n: i64| if n < 0 { n.saturating_add(rank) } else { n };
    match s.get(name) {
        Some(Attr::Int(n)) => {
            let n = fix(*n);
            s.set(name, Attr::Int(n));
        }
        Some(Attr::Ints(list)) => {
            let list = list.iter().map(|n| n.map(fix)).collect();
            s.set(name, Attr::Ints(list));
        }
        _ => {}
    }
}

/// A reduction with no axes is over all of them, unless it says that it then does nothing.
fn reduce(s: &mut Settings<'_>, op: Op, site: &Site<'_>) {
    if !op.attributes().contains(&"axes") || op.category() != crate::graph::Category::Reduction {
        return;
    }
    let none = match s.get("axes") {
        None => true,
        Some(Attr::Ints(list)) => list.is_empty(),
        Some(_) => false,
    };
    if !none {
        return;
    }
    if s.int("noop_with_empty_axes") == Some(1) {
        s.node.op = Op::IDENTITY;
    } else if let Some(rank) = site.rank() {
        let first = if site.spelling.starts_with("Global") { 2.min(rank) } else { 0 };
        s.set_ints("axes", first..rank);
    }
}

/// The axes from one on.
fn norm(s: &mut Settings<'_>, site: &Site<'_>) {
    axes(s, "axes", site.rank());
    if s.get("axes").is_some() {
        return;
    }
    if site.spelling == "MeanVarianceNormalization" {
        s.set_ints("axes", [0, 2, 3]);
        return;
    }
    let axis = s.take("axis").and_then(|attr| attr.as_int()).unwrap_or(-1);
    let Some(rank) = site.rank() else {
        s.set_ints("axes", [axis]);
        return;
    };
    let first = if axis < 0 { axis.saturating_add(rank) } else { axis };
    s.set_ints("axes", first.clamp(0, rank)..rank);
}

/// Strides, dilations and pads of convolutions and pools; `kernel` follows the spatial axes.
fn window(s: &mut Settings<'_>, site: &Site<'_>, kernel: Option<Vec<Dim>>) {
    let spatial = site.rank().map(|rank| (rank - 2).max(0) as usize);
    let Some(spatial) = kernel.as_ref().map(Vec::len).or(spatial) else { return };
    let fill = |list: Option<Vec<i64>>| match list {
        Some(list) if list.len() == spatial => list,
        _ => vec![1; spatial],
    };
    let strides = fill(s.ints("strides"));
    let dilations = fill(s.ints("dilations"));
    s.set_ints("strides", strides.iter().copied());
    if s.node.op.attributes().contains(&"dilations") {
        s.set_ints("dilations", dilations.iter().copied());
    }
    let kind = s.text("auto_pad").unwrap_or("NOTSET").to_owned();
    let pads = match kind.as_str() {
        "SAME_UPPER" | "SAME_LOWER" => {
            let lower = kind == "SAME_LOWER";
            same(site, kernel.as_deref(), &strides, &dilations, lower, s.node.op)
        }
        "VALID" => Some(vec![0; 2 * spatial]),
        _ => match s.ints("pads") {
            Some(list) if list.len() == 2 * spatial => Some(list),
            _ => Some(vec![0; 2 * spatial]),
        },
    };
    match pads {
        Some(pads) => s.set_ints("pads", pads),
        // Padding that depends on a run-time size.
        None => s.set("pads", Attr::Dynamic),
    }
    if s.node.op == Op::CONV_TRANSPOSE {
        let extra = fill_zero(s.ints("output_padding"), spatial);
        s.set_ints("output_padding", extra);
    }
}

fn fill_zero(list: Option<Vec<i64>>, len: usize) -> Vec<i64> {
    list.filter(|list| list.len() == len).unwrap_or_else(|| vec![0; len])
}

/// `same`: output size is input size by stride, the odd element of padding at the end (`lower`: at the
/// beginning). Begins of all axes, then ends.
fn same(
    site: &Site<'_>,
    kernel: Option<&[Dim]>,
    strides: &[i64],
    dilations: &[i64],
    lower: bool,
    op: Op,
) -> Option<Vec<i64>> {
    let kernel = kernel?;
    let spatial = strides.len();
    let mut pads = vec![0; 2 * spatial];
    for (axis, stride) in strides.iter().enumerate() {
        let kernel = i64::try_from(kernel.get(axis)?.value()?).ok()?;
        let reach = kernel.checked_sub(1)?.checked_mul(*dilations.get(axis)?)?.checked_add(1)?;
        let total = if op == Op::CONV_TRANSPOSE || *stride == 1 {
            reach.checked_sub(*stride)?
        } else {
            let size = site.size(axis as i64 + 2)?;
            let out = size.checked_add(stride - 1)?.checked_div(*stride)?;
            out.checked_sub(1)?.checked_mul(*stride)?.checked_add(reach)?.checked_sub(size)?
        };
        let total = total.max(0);
        let (less, more) = (total / 2, total - total / 2);
        *pads.get_mut(axis)? = if lower { more } else { less };
        *pads.get_mut(spatial + axis)? = if lower { less } else { more };
    }
    Some(pads)
}

/// A product with a constant weight taken the other way round is `linear`; one without bias a `matmul`;
/// factors of one are nothing to tell.
fn gemm(s: &mut Settings<'_>, site: &Site<'_>) {
    for name in ["alpha", "beta"] {
        if s.get(name).and_then(Attr::as_float) == Some(1.0) {
            s.take(name);
        }
    }
    let flag = |attr: Option<Attr>| attr.and_then(|attr| attr.as_int()).unwrap_or(0) != 0;
    let (turned_a, turned_b) = (flag(s.take("transA")), flag(s.take("transB")));
    let plain = s.get("alpha").is_none() && s.get("beta").is_none() && !turned_a;
    let weight = if site.spelling == "com.microsoft.QGemm" { 3 } else { 1 };
    let out = site.dims(weight).and_then(|dims| match dims {
        [out, _] => Some(*out),
        _ => None,
    });
    let bias = site.dims(2);
    let vector = bias.is_none_or(|dims| matches!(dims, [size] if Some(*size) == out));
    if plain && turned_b && site.is_constant(weight) && out.is_some() && vector {
        s.node.op = Op::LINEAR;
        s.rename_operand("a", "input");
        s.rename_operand("b", "weight");
        let bias = s.names.intern("bias");
        // Input and weight come first, as the vocabulary orders them.
        s.node.operands.sort_by_key(|(name, _)| *name == bias);
        return;
    }
    if turned_a {
        s.set("transpose_a", Attr::Bool(true));
    }
    if turned_b {
        s.set("transpose_b", Attr::Bool(true));
    }
    if !s.has_operand("bias") && s.get("alpha").is_none() {
        s.take("beta");
        s.node.op = Op::MATMUL;
    }
}

/// Begins of all axes, then ends; `value` where it is a constant.
fn pad(s: &mut Settings<'_>, site: &Site<'_>) {
    // Opset 1 called them so.
    if let Some(old) = s.take("paddings") {
        s.set("pads", old);
    }
    if s.get("value").is_none() && !s.has_operand("value") && s.text("mode") == Some("constant") {
        s.set("value", Attr::Float(0.0));
    }
    let listed = s.take("axes");
    let (Some(list), Some(rank)) = (s.ints("pads"), site.rank()) else { return };
    let Some(listed) = listed else { return };
    // Only some of the axes are padded: pads of all, or not known.
    let mut pads = vec![0; 2 * rank.max(0) as usize];
    let count = list.len() / 2;
    for (at, axis) in listed.as_ints().unwrap_or_default().into_iter().enumerate() {
        let axis = if axis < 0 { axis + rank } else { axis };
        let Ok(axis) = usize::try_from(axis) else { continue };
        for (place, from) in [(axis, at), (axis + rank.max(0) as usize, at + count)] {
            if let (Some(slot), Some(n)) = (pads.get_mut(place), list.get(from)) {
                *slot = *n;
            }
        }
    }
    match listed {
        Attr::Dynamic => s.set("pads", Attr::Dynamic),
        _ => s.set_ints("pads", pads),
    }
}

/// Begin, end and step: of one axis by itself, or of all axes.
fn slice(s: &mut Settings<'_>, site: &Site<'_>) {
    let begin = s.ints("begin");
    let end = s.ints("end");
    let step = s.ints("step");
    let count = begin.as_ref().or(end.as_ref()).map(Vec::len);
    let listed = match s.get("axis") {
        None => count.map(|n| (0..n as i64).collect()),
        Some(attr) => attr.as_ints(),
    };
    let fix =
        |axis: i64| site.rank().map_or(axis, |rank| if axis < 0 { axis + rank } else { axis });
    let listed: Option<Vec<i64>> = listed.map(|list| list.into_iter().map(fix).collect());
    let step = step.or_else(|| match s.get("step") {
        None => listed.as_ref().map(|list| vec![1; list.len()]),
        Some(_) => None,
    });
    let one = |list: &Option<Vec<i64>>| match list.as_deref() {
        Some([only]) => Attr::Int(*only),
        _ => Attr::Dynamic,
    };
    let clip = |axis: i64, n: i64| {
        let Some(size) = site.size(axis) else { return n };
        if n < 0 { n.saturating_add(size).max(0) } else { n.min(size) }
    };
    match listed.as_deref() {
        Some([axis]) => {
            let axis = *axis;
            let (begin, end) = (
                begin.map(|list| list.iter().map(|&n| clip(axis, n)).collect()),
                end.map(|list| list.iter().map(|&n| clip(axis, n)).collect()),
            );
            s.set("axis", Attr::Int(axis));
            s.set("begin", one(&begin));
            s.set("end", one(&end));
            s.set("step", one(&step));
        }
        Some(list) => {
            let (Some(rank), Some(begin), Some(end), Some(step)) = (site.rank(), begin, end, step)
            else {
                return;
            };
            let rank = rank as usize;
            let mut begins: Vec<Option<i64>> = vec![Some(0); rank];
            let mut ends: Vec<Option<i64>> = (0..rank).map(|axis| site.size(axis as i64)).collect();
            let mut steps = vec![1; rank];
            for (at, &axis) in list.iter().enumerate() {
                let (Some(b), Some(e), Some(st)) = (begin.get(at), end.get(at), step.get(at))
                else {
                    return;
                };
                let Ok(place) = usize::try_from(axis) else { return };
                let (Some(first), Some(last), Some(by)) =
                    (begins.get_mut(place), ends.get_mut(place), steps.get_mut(place))
                else {
                    return;
                };
                (*first, *last, *by) = (Some(clip(axis, *b)), Some(clip(axis, *e)), *st);
            }
            s.take("axis");
            s.set("begin", Attr::Ints(begins.into()));
            s.set("end", Attr::Ints(ends.into()));
            s.set_ints("step", steps);
        }
        None => {}
    }
}

/// Equal parts by number → sizes.
fn split(s: &mut Settings<'_>, site: &Site<'_>) {
    axes(s, "axis", site.rank());
    s.take("num_outputs");
    if s.get("sizes").is_some() {
        return;
    }
    let size = s.int("axis").and_then(|axis| site.size(axis));
    let parts = site.outputs as i64;
    if let (Some(size), true) = (size, parts > 0) {
        // The last one is smaller where the size is no multiple; too small a size has no such parts.
        let chunk = (size + parts - 1) / parts;
        let last = size - (parts - 1) * chunk;
        if last >= 0 {
            let sizes = (0..parts).map(|at| if at == parts - 1 { last } else { chunk });
            s.set_ints("sizes", sizes.collect::<Vec<_>>());
        }
    }
}

/// Rows of a table by run-time ids are an embedding; one constant index of an axis is a select.
fn gather(s: &mut Settings<'_>, site: &Site<'_>) {
    axes(s, "axis", site.rank());
    if let (true, Some([]), Some(Some([Element::Int(index)]))) =
        (site.is_constant(1), site.dims(1), site.values.get(1).map(Option::as_deref))
    {
        s.node.op = Op::SELECT;
        let index = Attr::Int(*index);
        s.set("index", index);
        if let Some(name) = s.names.find("indices") {
            s.node.operands.retain(|(known, _)| *known != name);
        }
        return;
    }
    let rows = s.int("axis") == Some(0) && site.dims(0).is_some_and(|dims| dims.len() == 2);
    if rows && site.is_constant(0) && !site.is_constant(1) {
        s.node.op = Op::EMBEDDING;
        s.take("axis");
        s.rename_operand("input", "weight");
    }
}

/// A resize over the spatial axes by the name of its way of interpolation.
fn resize(s: &mut Settings<'_>, site: &Site<'_>) {
    let mode = s.text("mode").unwrap_or("nearest").to_owned();
    let way = s.text("coordinate_transformation_mode").map(str::to_owned);
    s.set("align_corners", Attr::Bool(way.as_deref() == Some("align_corners")));
    let Some(rank) = site.rank() else { return };
    let rank = rank as usize;
    // Opset 1 of `Upsample` had a scale a side.
    if let (Some(h), Some(w)) = (
        s.take("height_scale").and_then(|a| a.as_float()),
        s.take("width_scale").and_then(|a| a.as_float()),
    ) {
        s.set("scale", Attr::Floats([h, w].into()));
    }
    let scale = match s.get("scale") {
        Some(Attr::Floats(list)) => Some(list.to_vec()),
        Some(Attr::Float(x)) => Some(vec![*x]),
        _ => None,
    };
    let spatial = |len: usize| len == rank && rank > 2;
    let mut plain = true;
    match &scale {
        Some(list) if spatial(list.len()) => {
            plain &= list.iter().take(2).all(|x| *x == 1.0);
            s.set("scale", Attr::Floats(list.iter().skip(2).copied().collect()));
        }
        Some(list) if list.is_empty() => {
            s.take("scale");
        }
        _ => {}
    }
    if let Some(list) = s.ints("size")
        && spatial(list.len())
    {
        let same = (0..2).all(|axis| site.size(axis) == list.get(axis as usize).copied());
        plain &= same;
        s.set_ints("size", list.into_iter().skip(2));
    }
    if !plain {
        return;
    }
    s.node.op = match (mode.as_str(), rank) {
        ("nearest", 3..) => Op::UPSAMPLE_NEAREST,
        ("linear", 3) => Op::UPSAMPLE_LINEAR,
        ("linear" | "bilinear", 4) => Op::UPSAMPLE_BILINEAR,
        ("linear" | "trilinear", 5) => Op::UPSAMPLE_TRILINEAR,
        ("cubic", 4) => Op::UPSAMPLE_BICUBIC,
        _ => return,
    };
}
