//! aten's settings in canonical terms, once shapes are known: axes from the front, padding on each
//! side, whole permutations, sizes of a chunk.

use super::builder::Builder;
use crate::graph::{Attr, DType, Dim, Draft, DraftNode, Name, NodeKind, Op, Program, ShapeId};
use crate::readers::normalize::Words;

/// End of an open slice, as torch stores it.
const OPEN_END: i64 = i64::MAX;

/// Settles every node of a draft.
pub(super) fn settle(builder: &mut Builder, draft: &mut Draft) {
    let words = builder.words;
    let program = &mut builder.program;
    for at in 0..draft.nodes.len() {
        if draft.nodes[at].kind != NodeKind::Op || draft.nodes[at].op == Op::UNKNOWN {
            continue;
        }
        let mut node =
            std::mem::replace(&mut draft.nodes[at], DraftNode::new(NodeKind::Op, Name::EMPTY));
        let mut view = View { draft, program, words: &words };
        view.node(&mut node);
        strip(&mut node, program);
        in_order(&mut node, program);
        draft.nodes[at] = node;
    }
}

/// Drops settings that have no canonical name.
fn strip(node: &mut DraftNode, program: &Program) {
    let known = node.op.attributes();
    if node.op == Op::UNKNOWN {
        return;
    }
    node.attributes.retain(|(name, _)| known.contains(&program.names.get(*name)));
}

/// Puts operands in canonical order: `masked_fill` stores the value that is kept first.
fn in_order(node: &mut DraftNode, program: &Program) {
    let order = node.op.operands();
    if order.len() > 1 && node.operands.len() > 1 {
        let place = |name: Name| {
            let text = program.names.get(name);
            order.iter().position(|known| *known == text).unwrap_or(order.len())
        };
        node.operands.sort_by_key(|(name, _)| place(*name));
    }
}

struct View<'d> {
    draft: &'d Draft,
    program: &'d mut Program,
    words: &'d Words,
}

impl View<'_> {
    fn dims_of(&self, shape: ShapeId) -> Option<Vec<Dim>> {
        self.program.shapes.get(shape).dims().map(<[Dim]>::to_vec)
    }

    fn operand(
        &self,
        node: &DraftNode,
        name: Name,
    ) -> Option<&(Name, DType, ShapeId, Option<ShapeId>)> {
        let (producer, result) = node.operand(name)?;
        self.draft.nodes.get(producer as usize)?.results.get(result as usize)
    }

    fn input_dims(&self, node: &DraftNode) -> Option<Vec<Dim>> {
        let (_, (producer, result)) = node.operands.first()?;
        let shape = self.draft.nodes.get(*producer as usize)?.results.get(*result as usize)?.2;
        self.dims_of(shape)
    }

    fn result_dims(&self, node: &DraftNode) -> Option<Vec<Dim>> {
        self.dims_of(node.results.first()?.2)
    }

    fn raw(&self, node: &DraftNode, name: &str) -> Option<Attr> {
        let name = self.program.names.find(name)?;
        node.attribute(name).cloned()
    }

    fn take_operand(&self, node: &mut DraftNode, name: &str) {
        if let Some(name) = self.program.names.find(name) {
            node.operands.retain(|(known, _)| *known != name);
        }
    }

    fn base<'a>(&self, spelling: &'a str) -> &'a str {
        spelling.split('.').nth(1).unwrap_or(spelling).trim_end_matches('_')
    }

    fn node(&mut self, node: &mut DraftNode) {
        let spelling = self.program.names.get(node.spelling).to_owned();
        let base = self.base(&spelling);
        let w = *self.words;
        let rank = self.input_dims(node).map(|dims| dims.len() as i64);
        match node.op {
            Op::ADD | Op::SUB | Op::ADDMM => {
                for name in [w.alpha, w.beta] {
                    let one = node.attribute(name).and_then(Attr::as_float) == Some(1.0);
                    if one {
                        node.attributes.retain(|(known, _)| *known != name);
                    }
                }
            }
            Op::MATMUL => {
                node.attributes.push((w.transpose_a, Attr::Bool(false)));
                node.attributes.push((w.transpose_b, Attr::Bool(false)));
            }
            Op::CAST => self.cast(node, base),
            Op::DROPOUT => {
                // Without training it hands its input on.
                if self.raw(node, "train").and_then(|train| train.as_bool()) == Some(false) {
                    node.op = Op::IDENTITY;
                }
            }
            Op::TRANSPOSE => self.transpose(node, base, rank),
            Op::RESHAPE => {
                self.take_operand(node, "other");
                self.set_shape(node);
                node.operands.truncate(node.operands.len().max(1));
            }
            Op::EXPAND => {
                self.take_operand(node, "other");
                self.set_shape(node);
                let same = self.input_dims(node) == self.result_dims(node);
                if same && self.input_dims(node).is_some() {
                    node.op = Op::IDENTITY;
                }
            }
            Op::SQUEEZE => self.squeeze(node),
            Op::UNSQUEEZE => self.axes(node, rank.map(|rank| rank + 1)),
            Op::FLATTEN => {
                self.one_axis(node, w.start_axis, rank);
                self.one_axis(node, w.end_axis, rank);
            }
            Op::CONV | Op::CONV_TRANSPOSE => self.conv(node),
            Op::MAX_POOL | Op::AVG_POOL => self.pool(node),
            Op::PAD => self.pad(node, base, rank),
            Op::SLICE | Op::SLICE_UPDATE => self.slice(node, base, rank),
            Op::SELECT => self.select(node, rank),
            Op::SPLIT => self.split(node, base, rank),
            Op::STACK => self.one_axis(node, w.axis, rank.map(|rank| rank + 1)),
            Op::LAYER_NORM | Op::RMS_NORM => {
                let count = match node.attribute(w.axes) {
                    Some(Attr::Ints(list)) => list.len() as i64,
                    _ => 1,
                };
                if let Some(rank) = rank {
                    let axes = (rank - count).max(0)..rank;
                    self.set(node, w.axes, Attr::Ints(axes.map(Some).collect()));
                }
            }
            Op::REDUCE_VAR | Op::REDUCE_STD | Op::REDUCE_VAR_MEAN => {
                if node.attribute(w.correction).is_none() {
                    let unbiased = self.raw(node, "unbiased").and_then(|b| b.as_bool());
                    let correction = i64::from(unbiased.unwrap_or(true));
                    node.attributes.push((w.correction, Attr::Int(correction)));
                }
                self.reduction(node, rank);
            }
            Op::SOFTMAX | Op::LOG_SOFTMAX => {
                self.one_axis(node, w.axis, rank);
                if self.raw(node, "half_to_float").and_then(|b| b.as_bool()) == Some(true) {
                    self.set(node, w.dtype, Attr::DType(DType::F32));
                }
            }
            Op::FULL => self.full(node),
            Op::FULL_LIKE => self.full_like(node),
            Op::UPSAMPLE_NEAREST
            | Op::UPSAMPLE_LINEAR
            | Op::UPSAMPLE_BILINEAR
            | Op::UPSAMPLE_BICUBIC
            | Op::UPSAMPLE_TRILINEAR => {
                let scales: Vec<f64> = ["scales", "scales_d", "scales_h", "scales_w"]
                    .iter()
                    .filter_map(|name| self.raw(node, name)?.as_float())
                    .collect();
                if !scales.is_empty() && node.attribute(w.scale).is_none() {
                    node.attributes.push((w.scale, Attr::Floats(scales.into())));
                }
            }
            Op::SCATTER_ELEMENTS if base == "scatter_add" => {
                let add = self.program.names.intern("add");
                self.set(node, w.mode, Attr::Text(add));
            }
            Op::SCATTER if base == "index_add" => {
                let add = self.program.names.intern("add");
                self.set(node, w.mode, Attr::Text(add));
            }
            Op::TOPK => {
                self.one_axis(node, w.axis, rank);
                if node.attribute(w.axis).is_none()
                    && let Some(rank) = rank
                {
                    node.attributes.push((w.axis, Attr::Int(rank - 1)));
                }
            }
            op if op.category() == crate::graph::Category::Reduction => self.reduction(node, rank),
            _ => {
                for name in [w.axis, w.axis1, w.axis2] {
                    self.one_axis(node, name, rank);
                }
                self.axes(node, rank);
            }
        }
    }

    fn set(&self, node: &mut DraftNode, name: Name, value: Attr) {
        match node.attributes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, attr)) => *attr = value,
            None => node.attributes.push((name, value)),
        }
    }

    fn one_axis(&self, node: &mut DraftNode, name: Name, rank: Option<i64>) {
        let Some(rank) = rank else { return };
        if let Some((_, Attr::Int(axis))) =
            node.attributes.iter_mut().find(|(known, _)| *known == name)
            && *axis < 0
        {
            *axis = (*axis).saturating_add(rank).max(0);
        }
    }

    /// A list of axes from the front; a single number becomes a list of one.
    fn axes(&self, node: &mut DraftNode, rank: Option<i64>) {
        let Some(rank) = rank else { return };
        let name = self.words.axes;
        let Some((_, attr)) = node.attributes.iter_mut().find(|(known, _)| *known == name) else {
            return;
        };
        let list: Vec<Option<i64>> = match attr {
            Attr::Int(axis) => vec![Some(*axis)],
            Attr::Ints(list) => list.to_vec(),
            _ => return,
        };
        let front = |axis: i64| if axis < 0 { axis.saturating_add(rank).max(0) } else { axis };
        *attr = Attr::Ints(list.into_iter().map(|axis| axis.map(front)).collect());
    }

    /// Axes of a reduction: all of them where none is given.
    fn reduction(&self, node: &mut DraftNode, rank: Option<i64>) {
        let w = self.words;
        self.one_axis(node, w.axis, rank);
        self.axes(node, rank);
        let takes = |name: &str| node.op.attributes().contains(&name);
        if takes("axes") {
            let all = match node.attribute(w.axes) {
                None => true,
                Some(Attr::Ints(list)) => list.is_empty(),
                Some(_) => false,
            };
            if let (true, Some(rank)) = (all, rank) {
                self.set(node, w.axes, Attr::Ints((0..rank).map(Some).collect()));
            }
        }
        if node.op.attributes().contains(&"keep_dims") && node.attribute(w.keep_dims).is_none() {
            node.attributes.push((w.keep_dims, Attr::Bool(false)));
        }
    }

    fn cast(&mut self, node: &mut DraftNode, base: &str) {
        let w = *self.words;
        if base == "copy" {
            // `copy(self, src)`: `src` in the dtype and shape of `self`.
            let source = self.operand(node, w.input).map(|result| (result.1, result.2));
            let own = node.results.first().map(|result| (result.1, result.2));
            if let (Some((from, shape)), Some((to, target))) = (source, own)
                && from == to
                && shape != target
            {
                node.op = Op::EXPAND;
                self.take_operand(node, "self");
                self.set_shape(node);
                return;
            }
        }
        for name in ["self", "other"] {
            self.take_operand(node, name);
        }
        if let Some(result) = node.results.first() {
            self.set(node, w.dtype, Attr::DType(result.1));
        }
    }

    fn transpose(&mut self, node: &mut DraftNode, base: &str, rank: Option<i64>) {
        let w = *self.words;
        let Some(rank) = rank else { return };
        let front = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis };
        let mut order: Vec<i64> = (0..rank).collect();
        let swap = |order: &mut Vec<i64>, one: i64, two: i64| {
            let (Ok(one), Ok(two)) = (usize::try_from(one), usize::try_from(two)) else { return };
            if one < order.len() && two < order.len() {
                order.swap(one, two);
            }
        };
        let int = |view: &Self, name: &str| view.raw(node, name).and_then(|attr| attr.as_int());
        match base {
            "permute" | "permute_copy" => {
                if let Some(given) = node.attribute(w.permutation).and_then(Attr::as_ints) {
                    order = given.into_iter().map(front).collect();
                }
            }
            "numpy_T" => order.reverse(),
            "t" | "t_copy" | "mT" | "mH" | "matrix_H" | "adjoint" => {
                swap(&mut order, rank - 2, rank - 1);
            }
            "movedim" | "moveaxis" => {
                let list = |view: &Self, name: &str| {
                    view.raw(node, name).and_then(|attr| attr.as_ints()).unwrap_or_default()
                };
                let from: Vec<i64> = list(self, "source").into_iter().map(front).collect();
                let to: Vec<i64> = list(self, "destination").into_iter().map(front).collect();
                let mut rest = (0..rank).filter(|axis| !from.contains(axis));
                order = (0..rank)
                    .map(|place| match to.iter().position(|&at| at == place) {
                        Some(at) => from.get(at).copied().unwrap_or(place),
                        None => rest.next().unwrap_or(place),
                    })
                    .collect();
            }
            _ => {
                let one = int(self, "dim0").or(int(self, "axis0")).unwrap_or(0);
                let two = int(self, "dim1").or(int(self, "axis1")).unwrap_or(1);
                swap(&mut order, front(one), front(two));
            }
        }
        self.set(node, w.permutation, Attr::Ints(order.into_iter().map(Some).collect()));
    }

    /// The shape attribute from the result: `-1` and symbolic entries resolved as far as known.
    fn set_shape(&mut self, node: &mut DraftNode) {
        if let Some(dims) = self.result_dims(node) {
            let shape = dims.iter().map(|dim| dim.value().and_then(|n| i64::try_from(n).ok()));
            let shape = Attr::Ints(shape.collect());
            self.set(node, self.words.shape, shape);
        }
    }

    fn squeeze(&mut self, node: &mut DraftNode) {
        let rank = self.input_dims(node).map(|dims| dims.len() as i64);
        self.axes(node, rank);
        if let Some(dims) = self.input_dims(node) {
            let unit = |axis: i64| {
                usize::try_from(axis).ok().and_then(|axis| dims.get(axis)) == Some(&Dim::Static(1))
            };
            let given = node.attribute(self.words.axes).and_then(Attr::as_ints);
            let axes: Vec<Option<i64>> = given
                .unwrap_or_else(|| (0..dims.len() as i64).collect())
                .into_iter()
                .filter(|&axis| unit(axis))
                .map(Some)
                .collect();
            self.set(node, self.words.axes, Attr::Ints(axes.into()));
        }
    }

    /// `strides`, `dilations`, `pads` (both sides) with one entry a spatial axis.
    fn conv(&mut self, node: &mut DraftNode) {
        let w = *self.words;
        if self.raw(node, "transposed").and_then(|b| b.as_bool()) == Some(true) {
            node.op = Op::CONV_TRANSPOSE;
        }
        let weight = self.operand(node, w.weight).and_then(|result| self.dims_of(result.2));
        let Some(spatial) = weight.as_ref().map(|dims| dims.len().saturating_sub(2)) else {
            return;
        };
        for (name, default) in [(w.strides, 1), (w.dilations, 1)] {
            let list = spread(node.attribute(name), spatial, default);
            self.set(node, name, Attr::Ints(list.into_iter().map(Some).collect()));
        }
        let dilations = spread(node.attribute(w.dilations), spatial, 1);
        let pads: Vec<i64> = match node.attribute(w.pads) {
            Some(Attr::Text(word)) if self.program.names.get(*word) == "same" => {
                let total: Vec<i64> = (0..spatial)
                    .map(|axis| {
                        let kernel = weight
                            .as_ref()
                            .and_then(|dims| dims.get(axis + 2)?.value())
                            .and_then(|n| i64::try_from(n).ok())
                            .unwrap_or(1);
                        dilations[axis].saturating_mul(kernel.saturating_sub(1))
                    })
                    .collect();
                // torch puts the odd one at the end.
                let begin = total.iter().map(|n| n / 2);
                let end = total.iter().map(|n| n - n / 2);
                begin.chain(end).collect()
            }
            Some(Attr::Text(_)) => vec![0; spatial * 2],
            given => {
                let one_side = spread(given, spatial, 0);
                one_side.iter().chain(&one_side).copied().collect()
            }
        };
        self.set(node, w.pads, Attr::Ints(pads.into_iter().map(Some).collect()));
        if node.op == Op::CONV_TRANSPOSE {
            let list = spread(node.attribute(w.output_padding), spatial, 0);
            self.set(node, w.output_padding, Attr::Ints(list.into_iter().map(Some).collect()));
        }
    }

    fn pool(&mut self, node: &mut DraftNode) {
        let w = *self.words;
        let spelling = self.program.names.get(node.spelling);
        let spatial = if spelling.contains("pool1d") {
            1
        } else if spelling.contains("pool3d") {
            3
        } else {
            2
        };
        let kernel = spread(node.attribute(w.kernel), spatial, 1);
        let strides = match node.attribute(w.strides).and_then(Attr::as_ints) {
            Some(list) if !list.is_empty() => spread(node.attribute(w.strides), spatial, 1),
            _ => kernel.clone(),
        };
        let side = spread(node.attribute(w.pads), spatial, 0);
        let pads = side.iter().chain(&side).map(|&n| Some(n)).collect();
        let ints = |list: &[i64]| Attr::Ints(list.iter().map(|&n| Some(n)).collect());
        self.set(node, w.kernel, ints(&kernel));
        self.set(node, w.strides, ints(&strides));
        self.set(node, w.pads, Attr::Ints(pads));
        if node.op == Op::MAX_POOL {
            let dilations = spread(node.attribute(w.dilations), spatial, 1);
            self.set(node, w.dilations, ints(&dilations));
        }
    }

    /// torch lists padding from the last axis on; here `[begin of each axis…, end of each axis…]`.
    fn pad(&mut self, node: &mut DraftNode, base: &str, rank: Option<i64>) {
        let w = *self.words;
        let mode = if base.starts_with("reflection") {
            Some("reflect")
        } else if base.starts_with("replication") {
            Some("replicate")
        } else if base == "_pad_circular" {
            Some("circular")
        } else if base == "constant_pad_nd" {
            Some("constant")
        } else {
            None
        };
        if let Some(mode) = mode {
            let mode = self.program.names.intern(mode);
            self.set(node, w.mode, Attr::Text(mode));
        }
        let Some(rank) = rank.and_then(|rank| usize::try_from(rank).ok()) else { return };
        let Some(Attr::Ints(list)) = node.attribute(w.pads) else { return };
        let mut pads = vec![Some(0i64); rank * 2];
        for (at, pair) in list.chunks_exact(2).enumerate().take(rank) {
            let axis = rank - 1 - at;
            pads[axis] = pair[0];
            pads[rank + axis] = pair[1];
        }
        self.set(node, w.pads, Attr::Ints(pads.into()));
        if node.attribute(w.value).is_none() && node.operand(w.value).is_none() {
            node.attributes.push((w.value, Attr::Float(0.0)));
        }
    }

    fn slice(&mut self, node: &mut DraftNode, base: &str, rank: Option<i64>) {
        let w = *self.words;
        self.one_axis(node, w.axis, rank);
        let axis = node.attribute(w.axis).and_then(Attr::as_int).unwrap_or(0);
        let size = self
            .input_dims(node)
            .and_then(|dims| usize::try_from(axis).ok().and_then(|axis| dims.get(axis).copied()));
        let known = size.and_then(Dim::value).and_then(|n| i64::try_from(n).ok());
        let clamp = |n: i64| match known {
            Some(size) if n < 0 => n.saturating_add(size).clamp(0, size),
            Some(size) => n.min(size),
            None => n,
        };
        if base == "select_scatter" {
            let begin = node.attribute(w.begin).and_then(Attr::as_int);
            if let Some(begin) = begin.map(clamp) {
                self.set(node, w.begin, Attr::Int(begin));
                self.set(node, w.end, Attr::Int(begin.saturating_add(1)));
            }
            self.set(node, w.step, Attr::Int(1));
            return;
        }
        if node.attribute(w.begin).is_none() && node.operand(w.begin).is_none() {
            node.attributes.push((w.begin, Attr::Int(0)));
        }
        if let Some(Attr::Int(begin)) = node.attribute(w.begin) {
            let begin = clamp(*begin);
            self.set(node, w.begin, Attr::Int(begin));
        }
        if base.starts_with("narrow") {
            let length = self.raw(node, "length").and_then(|n| n.as_int());
            let begin = node.attribute(w.begin).and_then(Attr::as_int);
            match (begin, length) {
                (Some(begin), Some(length)) => {
                    self.set(node, w.end, Attr::Int(begin.saturating_add(length)));
                }
                _ => self.set(node, w.end, Attr::Dynamic),
            }
        }
        match (node.attribute(w.end), node.operand(w.end)) {
            (None, None) => {
                let end = known.map_or(Attr::Int(OPEN_END), Attr::Int);
                node.attributes.push((w.end, end));
            }
            (Some(Attr::Int(end)), _) => {
                let end = clamp(*end);
                self.set(node, w.end, Attr::Int(end));
            }
            _ => {}
        }
        let whole = node.op == Op::SLICE
            && node.attribute(w.begin).and_then(Attr::as_int) == Some(0)
            && node.attribute(w.step).and_then(Attr::as_int).unwrap_or(1) == 1
            && node
                .attribute(w.end)
                .and_then(Attr::as_int)
                .is_some_and(|end| end == OPEN_END || known == Some(end));
        if whole {
            node.op = Op::IDENTITY;
        }
    }

    fn select(&mut self, node: &mut DraftNode, rank: Option<i64>) {
        let w = *self.words;
        self.one_axis(node, w.axis, rank);
        let Some(index) = self.program.names.find("index") else { return };
        let axis = node.attribute(w.axis).and_then(Attr::as_int);
        let size = axis.and_then(|axis| usize::try_from(axis).ok()).and_then(|axis| {
            self.input_dims(node)?.get(axis)?.value().and_then(|n| i64::try_from(n).ok())
        });
        if let (Some(Attr::Int(at)), Some(size)) = (node.attribute(index), size)
            && *at < 0
        {
            let at = at.saturating_add(size).max(0);
            self.set(node, index, Attr::Int(at));
        }
    }

    /// Sizes of the parts, read off the results.
    fn split(&mut self, node: &mut DraftNode, base: &str, rank: Option<i64>) {
        let w = *self.words;
        match base {
            "hsplit" => {
                let axis = i64::from(rank != Some(1));
                self.set(node, w.axis, Attr::Int(axis));
            }
            "vsplit" => self.set(node, w.axis, Attr::Int(0)),
            _ => self.one_axis(node, w.axis, rank),
        }
        let axis = node.attribute(w.axis).and_then(Attr::as_int).unwrap_or(0);
        let sizes: Vec<Option<i64>> = node
            .results
            .iter()
            .map(|result| {
                let dims = self.program.shapes.get(result.2);
                dims.dim(axis).and_then(Dim::value).and_then(|n| i64::try_from(n).ok())
            })
            .collect();
        self.set(node, w.sizes, Attr::Ints(sizes.into()));
    }

    fn full(&mut self, node: &mut DraftNode) {
        let w = *self.words;
        self.take_operand(node, "self");
        if let Some(result) = node.results.first() {
            self.set(node, w.dtype, Attr::DType(result.1));
        }
        self.set_shape(node);
    }

    fn full_like(&mut self, node: &mut DraftNode) {
        if let Some(result) = node.results.first() {
            self.set(node, self.words.dtype, Attr::DType(result.1));
        }
    }
}

/// A list with one entry a spatial axis, from a number, a list of one, or a whole list.
fn spread(given: Option<&Attr>, count: usize, default: i64) -> Vec<i64> {
    match given.and_then(Attr::as_ints) {
        Some(list) if list.len() == count => list,
        Some(list) => match list.as_slice() {
            [one] => vec![*one; count],
            _ => vec![default; count],
        },
        None => vec![default; count],
    }
}
