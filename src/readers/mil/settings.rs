//! Settings in canonical form: paddings resolved to numbers, axes counted from the front, masks of
//! slices applied, words of the language turned into the vocabulary's.

use crate::graph::{Attr, Dim, DraftNode, Name, Names, Op};

/// The shapes around an op, as far as they are known.
pub(super) struct Site {
    /// Of the first operand.
    pub input: Option<Vec<Dim>>,
    /// Of the `weight` operand.
    pub weight: Option<Vec<Dim>>,
    /// Of the first result.
    pub output: Option<Vec<Dim>>,
}

impl Site {
    fn rank(&self) -> Option<i64> {
        self.input.as_ref().map(|dims| dims.len() as i64)
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

    fn float(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_float()
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

    fn set_text(&mut self, name: &str, text: &str) {
        let text = self.names.intern(text);
        self.set(name, Attr::Text(text));
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let Some(attr) = self.take(from) {
            self.set(to, attr);
        }
    }
}

/// Rewrites the attributes of one op; `spelling` is the language's name for it.
pub(super) fn canonicalise(names: &mut Names, node: &mut DraftNode, spelling: &str, site: &Site) {
    let op = node.op;
    let mut settings = Settings { names, node };
    let s = &mut settings;
    match op {
        Op::CONV | Op::CONV_TRANSPOSE => {
            let kernel = site.weight.as_ref().map(|dims| dims.iter().skip(2).copied().collect());
            window(s, site, kernel);
        }
        Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL => {
            let kernel = s
                .ints("kernel")
                .map(|list| list.iter().map(|&n| Dim::Static(n.max(0) as u64)).collect());
            window(s, site, kernel);
            if op == Op::AVG_POOL {
                let exclude = s.take("exclude_padding_from_average");
                let exclude = exclude.and_then(|attr| attr.as_bool()).unwrap_or(false);
                s.set("count_include_pad", Attr::Bool(!exclude));
            }
        }
        Op::PAD => pad(s, site),
        Op::SLICE if spelling == "slice_by_size" => slice_by_size(s, site),
        Op::SLICE | Op::SLICE_UPDATE => slice(s, site),
        Op::SPLIT => {
            axes(s, "axis", site.rank());
            split(s, site);
        }
        Op::TOPK => {
            let ascending = s.take("ascending").and_then(|attr| attr.as_bool()).unwrap_or(false);
            s.set("largest", Attr::Bool(!ascending));
            axes(s, "axis", site.rank());
        }
        Op::ARGSORT => {
            let ascending = s.take("ascending").and_then(|attr| attr.as_bool()).unwrap_or(false);
            s.set("descending", Attr::Bool(!ascending));
            axes(s, "axis", site.rank());
        }
        Op::GELU => {
            let word = match s.text("approximate") {
                Some("TANH_APPROXIMATION") => "tanh",
                Some("SIGMOID_APPROXIMATION") => "sigmoid",
                _ => "none",
            };
            s.set_text("approximate", word);
        }
        Op::CAST | Op::QUANTIZE | Op::CAST_WEIGHT => {
            let dtype = s.text("dtype").and_then(super::types::dtype);
            let dtype = dtype.or_else(|| s.node.results.first().map(|result| result.1));
            if let (Some(dtype), true) = (dtype, op != Op::CAST_WEIGHT) {
                s.set("dtype", Attr::DType(dtype));
            }
            axes(s, "axis", site.rank());
        }
        Op::UNSQUEEZE => axes(s, "axes", site.output.as_ref().map(|dims| dims.len() as i64)),
        Op::STACK => axes(s, "axis", site.rank().map(|rank| rank + 1)),
        Op::SQUEEZE if s.get("axes").is_none() => {
            let units: Option<Vec<i64>> = site.input.as_ref().map(|dims| {
                (0..).zip(dims).filter(|(_, d)| **d == Dim::Static(1)).map(|(at, _)| at).collect()
            });
            if let Some(units) = units {
                s.set_ints("axes", units);
            }
        }
        Op::L2_NORM => {
            // The op works over the last three axes.
            if let Some(rank) = site.rank() {
                s.set_ints("axes", (rank - 3).max(0)..rank);
            }
        }
        Op::FLATTEN => {
            // To rank 2: everything before the axis, everything from it on.
            let axis = s.take("axis").and_then(|attr| attr.as_int());
            if let Some(axis) = axis {
                s.set("start_axis", Attr::Int(axis));
            }
        }
        Op::UPSAMPLE_NEAREST | Op::UPSAMPLE_BILINEAR | Op::RESIZE => resize(s, spelling),
        Op::PIXEL_SHUFFLE | Op::PIXEL_UNSHUFFLE => {}
        _ => {
            if matches!(op.category(), crate::graph::Category::Reduction) || op == Op::LAYER_NORM {
                reduce(s, op, site);
            }
            axes(s, "axis", site.rank());
            axes(s, "axes", site.rank());
        }
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

/// A reduction with no axes is over all of them.
fn reduce(s: &mut Settings<'_>, op: Op, site: &Site) {
    let listed = op.attributes().contains(&"axes");
    if let (true, None, Some(rank)) = (listed, s.get("axes"), site.rank()) {
        s.set_ints("axes", 0..rank);
    }
}

/// Strides, dilations and pads of convolutions and pools; `kernel` follows the spatial axes.
fn window(s: &mut Settings<'_>, site: &Site, kernel: Option<Vec<Dim>>) {
    let spatial = site.rank().map(|rank| (rank - 2).max(0) as usize);
    let Some(spatial) = spatial.or(kernel.as_ref().map(Vec::len)) else { return };
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
    let kind = s.text("pad_type").unwrap_or("valid").to_owned();
    let stored = s.ints("pad");
    let pairs: Option<Vec<(i64, i64)>> = match kind.as_str() {
        "custom" => stored
            .filter(|list| list.len() == 2 * spatial)
            .map(|list| list.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        "same" | "same_lower" => {
            same(site, kernel.as_deref(), &strides, &dilations, kind == "same_lower", s.node.op)
        }
        _ => Some(vec![(0, 0); spatial]),
    };
    s.take("pad_type");
    s.take("pad");
    match pairs {
        Some(pairs) => {
            let begin = pairs.iter().map(|pair| pair.0);
            s.set_ints("pads", begin.chain(pairs.iter().map(|pair| pair.1)).collect::<Vec<_>>());
        }
        // Padding that depends on a run-time size.
        None => s.set("pads", Attr::Dynamic),
    }
    if s.node.op == Op::CONV_TRANSPOSE {
        s.take("output_shape");
    }
}

/// `same`: output size is input size by stride, the odd element of padding at the end (`lower`: at
/// the beginning).
fn same(
    site: &Site,
    kernel: Option<&[Dim]>,
    strides: &[i64],
    dilations: &[i64],
    lower: bool,
    op: Op,
) -> Option<Vec<(i64, i64)>> {
    let input = site.input.as_ref()?.get(2..)?;
    let kernel = kernel?;
    let mut pairs = Vec::new();
    for (axis, stride) in strides.iter().enumerate() {
        let kernel = i64::try_from(kernel.get(axis)?.value()?).ok()?;
        let reach = kernel.checked_sub(1)?.checked_mul(*dilations.get(axis)?)?.checked_add(1)?;
        let total = if op == Op::CONV_TRANSPOSE || *stride == 1 {
            // A transposed conv gives `input × stride`; with stride 1 the size does not matter.
            reach.checked_sub(*stride)?
        } else {
            let size = i64::try_from(input.get(axis)?.value()?).ok()?;
            let out = size.checked_add(stride - 1)?.checked_div(*stride)?;
            out.checked_sub(1)?.checked_mul(*stride)?.checked_add(reach)?.checked_sub(size)?
        };
        let total = total.max(0);
        let (less, more) = (total / 2, total - total / 2);
        pairs.push(if lower { (more, less) } else { (less, more) });
    }
    Some(pairs)
}

/// `[before, after]` pairs of the last axes → begins of all axes, then ends.
fn pad(s: &mut Settings<'_>, site: &Site) {
    let (Some(list), Some(rank)) = (s.ints("pads"), site.rank()) else { return };
    let (pairs, rank) = (list.len() / 2, rank as usize);
    if list.len() % 2 != 0 || pairs > rank {
        return;
    }
    let mut pads = vec![0; 2 * rank];
    for (at, pair) in list.chunks_exact(2).enumerate() {
        let axis = rank - pairs + at;
        pads[axis] = pair[0];
        pads[rank + axis] = pair[1];
    }
    s.set_ints("pads", pads);
}

/// Begin, end and step with the masks applied; one axis by itself where only one is cut.
fn slice(s: &mut Settings<'_>, site: &Site) {
    // What is sliced is the first operand for a read and for an update.
    let Some(dims) = &site.input else { return };
    let rank = dims.len();
    let mask = |attr: Option<Attr>| -> Vec<bool> {
        let list = attr.and_then(|attr| attr.as_ints()).unwrap_or_default();
        (0..rank).map(|at| list.get(at).is_some_and(|n| *n != 0)).collect()
    };
    let begin_mask = mask(s.take("begin_mask"));
    let end_mask = mask(s.take("end_mask"));
    let squeeze = mask(s.take("squeeze_mask"));
    let step = s.ints("step").filter(|list| list.len() == rank).unwrap_or_else(|| vec![1; rank]);
    let begin = s.ints("begin").filter(|list| list.len() == rank);
    let end = s.ints("end").filter(|list| list.len() == rank);
    let (begin, end) = match (begin, end) {
        (Some(begin), Some(end)) => (begin, end),
        (begin, end) => {
            // A run-time begin or end stays an operand; what is known is kept.
            if step.iter().any(|n| *n != 1) {
                s.set_ints("step", step);
            } else {
                s.take("step");
            }
            if let Some(begin) = begin {
                s.set_ints("begin", begin);
            }
            if let Some(end) = end {
                s.set_ints("end", end);
            }
            return;
        }
    };
    let size =
        |axis: usize| dims.get(axis).and_then(|d| d.value()).and_then(|n| i64::try_from(n).ok());
    let from = |axis: usize, n: i64| match (n < 0, size(axis)) {
        (true, Some(size)) => Some(n + size),
        (true, None) => None,
        (false, _) => Some(n),
    };
    let mut begins: Vec<Option<i64>> = Vec::with_capacity(rank);
    let mut ends: Vec<Option<i64>> = Vec::with_capacity(rank);
    let mut cut = Vec::new();
    for axis in 0..rank {
        let first = if begin_mask[axis] { Some(0) } else { from(axis, begin[axis]) };
        let last = if squeeze[axis] {
            first.map(|n| n + 1)
        } else if end_mask[axis] {
            size(axis)
        } else {
            from(axis, end[axis]).map(|n| size(axis).map_or(n, |size| n.min(size)))
        };
        let open_end = end_mask[axis] || (last.is_some() && last == size(axis));
        if squeeze[axis] || !(first == Some(0) && open_end && step[axis] == 1) {
            cut.push(axis);
        }
        begins.push(first);
        ends.push(last);
    }
    if let ([axis], Op::SLICE | Op::SLICE_UPDATE) = (cut.as_slice(), s.node.op) {
        let axis = *axis;
        for name in ["begin", "end", "step"] {
            s.take(name);
        }
        s.set("axis", Attr::Int(axis as i64));
        let number = |n: Option<i64>| n.map_or(Attr::Dynamic, Attr::Int);
        if squeeze[axis] && s.node.op == Op::SLICE {
            s.node.op = Op::SELECT;
            s.set("index", number(begins[axis]));
        } else {
            s.set("begin", number(begins[axis]));
            s.set("end", number(ends[axis]));
            s.set("step", Attr::Int(step[axis]));
        }
        return;
    }
    s.set("begin", Attr::Ints(begins.into()));
    s.set("end", Attr::Ints(ends.into()));
    s.set_ints("step", step);
}

/// A size of −1 reaches to the end.
fn slice_by_size(s: &mut Settings<'_>, site: &Site) {
    let Some(dims) = &site.input else { return };
    let size = s.take("size").and_then(|attr| attr.as_ints());
    if let (Some(begin), Some(size)) = (s.ints("begin"), size)
        && begin.len() == dims.len()
        && size.len() == dims.len()
    {
        let whole = |axis: usize| {
            dims.get(axis).and_then(|d| d.value()).and_then(|n| i64::try_from(n).ok())
        };
        let end = begin
            .iter()
            .zip(&size)
            .enumerate()
            .map(|(axis, (b, n))| if *n < 0 { whole(axis) } else { b.checked_add(*n) });
        let end = Attr::Ints(end.collect());
        s.set("end", end);
    }
    slice(s, site);
}

/// Equal parts by number → sizes.
fn split(s: &mut Settings<'_>, site: &Site) {
    let parts = s.take("num_splits").and_then(|attr| attr.as_int());
    if s.get("sizes").is_some() {
        return;
    }
    let (Some(parts), Some(axis), Some(dims)) = (parts, s.int("axis"), &site.input) else { return };
    let dim = usize::try_from(axis).ok().and_then(|axis| dims.get(axis)).and_then(|d| d.value());
    if let (Some(dim), Ok(parts)) = (dim, usize::try_from(parts)) {
        // As many results as parts: a count that the file does not hold is not believed.
        if parts > 0 && parts == s.node.results.len() {
            s.set_ints("sizes", vec![(dim / parts as u64) as i64; parts]);
        }
    }
}

/// Heights and widths → lists over the spatial axes.
fn resize(s: &mut Settings<'_>, spelling: &str) {
    let pair = |a: Option<f64>, b: Option<f64>| Some([a?, b?]);
    if spelling.starts_with("upsample") {
        let height = s.float("scale_factor_height").or(Some(1.0));
        let width = s.float("scale_factor_width").or(Some(1.0));
        if let Some(scale) = pair(height, width) {
            s.set("scale", Attr::Floats(scale.into()));
        }
        s.take("scale_factor_height");
        s.take("scale_factor_width");
        return;
    }
    if let (Some(height), Some(width)) = (s.int("target_size_height"), s.int("target_size_width")) {
        s.set_ints("size", [height, width]);
        s.take("target_size_height");
        s.take("target_size_width");
    }
    match s.text("sampling_mode") {
        Some("STRICT_ALIGN_CORNERS" | "ALIGN_CORNERS") => s.set("align_corners", Attr::Bool(true)),
        Some(_) => s.set("align_corners", Attr::Bool(false)),
        None => {}
    }
    s.rename("interpolation_mode", "mode");
}
