//! Types of results that the file does not declare, for the common ops. What cannot be told is left
//! unknown: a wrong size would be worse than none.

use super::types::{Declared, dtype};
use super::values::{Element, shape_range};
use crate::graph::{Attr, Category, DType, Dim, DraftNode, Names, Op};
use crate::readers::dialect;

/// What is around a node.
pub(super) struct Site<'a> {
    /// The op's name, with its domain if that is not the default one.
    pub spelling: &'a str,
    /// The node, settings in canonical form.
    pub node: &'a DraftNode,
    /// By stored position.
    pub inputs: &'a [Option<Declared>],
    /// By stored position: elements of small whole-number tensors.
    pub values: &'a [Option<Vec<Element>>],
    /// Number of results.
    pub outputs: usize,
}

/// Takes what is declared, and what is inferred where the declaration is silent.
pub(super) fn merge(told: Declared, guess: Declared) -> Declared {
    let dtype = if told.dtype == DType::Unknown { guess.dtype } else { told.dtype };
    let dims = match (told.dims, guess.dims) {
        (Some(told), Some(guess)) if told.len() == guess.len() => Some(
            told.into_iter()
                .zip(guess)
                .map(|(told, guess)| if told == Dim::Unknown { guess } else { told })
                .collect(),
        ),
        (Some(told), _) => Some(told),
        (None, guess) => guess,
    };
    Declared { dtype, dims }
}

type Dims = Vec<Dim>;

/// The types of a node's results, as far as they can be told.
pub(super) fn infer(names: &mut Names, site: &Site<'_>) -> Vec<Declared> {
    let infer = Infer { names, site };
    infer.results()
}

struct Infer<'a> {
    names: &'a Names,
    site: &'a Site<'a>,
}

impl Infer<'_> {
    fn attr(&self, word: &str) -> Option<&Attr> {
        self.names.find(word).and_then(|name| self.site.node.attribute(name))
    }

    fn int(&self, word: &str) -> Option<i64> {
        self.attr(word)?.as_int()
    }

    fn ints(&self, word: &str) -> Option<Vec<i64>> {
        self.attr(word)?.as_ints()
    }

    fn flag(&self, word: &str, default: bool) -> bool {
        self.attr(word).and_then(Attr::as_bool).unwrap_or(default)
    }

    /// The stored position of a canonical operand.
    fn position(&self, word: &str) -> Option<usize> {
        let spelling = dialect::ONNX.find(self.site.spelling)?;
        (0..self.site.inputs.len()).find(|&at| spelling.positional(at) == Some(word))
    }

    fn at(&self, position: usize) -> Option<&Declared> {
        self.site.inputs.get(position)?.as_ref()
    }

    fn dims_at(&self, position: usize) -> Option<&Dims> {
        self.at(position)?.dims.as_ref()
    }

    fn dims(&self, word: &str) -> Option<&Dims> {
        self.dims_at(self.position(word)?)
    }

    fn values(&self, word: &str) -> Option<&Vec<Element>> {
        self.site.values.get(self.position(word)?)?.as_ref()
    }

    fn dtype(&self, position: usize) -> DType {
        self.at(position).map_or(DType::Unknown, |declared| declared.dtype)
    }

    fn results(&self) -> Vec<Declared> {
        let first = self.first();
        let (dtype, dims) = first;
        let mut results = vec![Declared { dtype, dims: dims.clone() }];
        for at in 1..self.site.outputs {
            results.push(self.further(at, dtype, &dims));
        }
        results
    }

    /// Results after the first.
    fn further(&self, at: usize, dtype: DType, first: &Option<Dims>) -> Declared {
        let same = || Declared { dtype, dims: first.clone() };
        match (self.site.node.op, self.site.spelling) {
            (Op::TOPK | Op::MAX_POOL, _) => Declared { dtype: DType::I64, dims: first.clone() },
            (Op::SPLIT, _) => {
                let mut result = same();
                let (axis, sizes) = (self.int("axis"), self.ints("sizes"));
                if let (Some(dims), Some(axis)) = (&mut result.dims, axis)
                    && let Some(dim) = usize::try_from(axis).ok().and_then(|a| dims.get_mut(a))
                {
                    let size = sizes.and_then(|list| list.get(at).copied());
                    *dim =
                        size.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Static);
                }
                result
            }
            (Op::IDENTITY | Op::DROPOUT, "Dropout") => {
                Declared { dtype: DType::Bool, dims: first.clone() }
            }
            (Op::LSTM | Op::GRU | Op::RNN, _) => {
                // Y is [steps, directions, batch, hidden]; the states leave out the steps.
                let batch_first = self.int("layout") == Some(1);
                let dims = first.as_ref().and_then(|dims| match dims.as_slice() {
                    [_, directions, batch, hidden] if !batch_first => {
                        Some(vec![*directions, *batch, *hidden])
                    }
                    [batch, _, directions, hidden] => Some(vec![*batch, *directions, *hidden]),
                    _ => None,
                });
                Declared { dtype, dims }
            }
            (Op::LAYER_NORM, "LayerNormalization") => {
                // Mean and inverse deviation, one a normalised group, in the type they are computed in.
                let axes = self.ints("axes").unwrap_or_default();
                let dims = first.as_ref().map(|dims| {
                    let reduced = |at: usize| axes.contains(&(at as i64));
                    let dims = dims.iter().enumerate();
                    dims.map(|(at, dim)| if reduced(at) { Dim::Static(1) } else { *dim }).collect()
                });
                let stash = self.int("stash_type").map_or(DType::F32, super::types::dtype);
                Declared { dtype: stash, dims }
            }
            (Op::BATCH_NORM, _) => {
                Declared { dtype: self.dtype(at + 2), dims: self.dims_at(at + 2).cloned() }
            }
            (Op::DYNAMIC_QUANTIZE, "DynamicQuantizeLinear") => Declared {
                dtype: if at == 1 { DType::F32 } else { DType::U8 },
                dims: Some(Vec::new()),
            },
            _ => Declared::default(),
        }
    }

    /// The first result.
    fn first(&self) -> (DType, Option<Dims>) {
        let op = self.site.node.op;
        let own = self.dtype(0);
        let input = || self.dims_at(0).cloned();
        if self.site.spelling.contains("QLinear") || self.site.spelling.contains("QGemm") {
            return (DType::Unknown, None);
        }
        match op {
            Op::CONV | Op::CONV_TRANSPOSE => (self.conv_dtype(), self.window()),
            Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL => (own, self.window()),
            Op::ADAPTIVE_AVG_POOL | Op::ADAPTIVE_MAX_POOL => {
                let dims = input().map(|dims| {
                    let dims = dims.into_iter().enumerate();
                    dims.map(|(at, dim)| if at < 2 { dim } else { Dim::Static(1) }).collect()
                });
                (own, dims)
            }
            Op::MATMUL | Op::LINEAR | Op::ADDMM => (self.product_dtype(), self.product()),
            Op::EINSUM => (own, self.einsum()),
            Op::SHAPE => {
                let (start, end) = (self.int("start"), self.int("end"));
                let dims = input().map(|dims| {
                    let (start, end) = shape_range(dims.len(), start, end);
                    vec![Dim::Static(end.saturating_sub(start) as u64)]
                });
                (DType::I64, dims)
            }
            Op::NUMEL => match self.site.spelling {
                "OptionalHasElement" => (DType::Bool, Some(Vec::new())),
                _ => (DType::I64, Some(Vec::new())),
            },
            Op::CAST | Op::BITCAST => {
                let to = match self.attr("dtype") {
                    Some(Attr::DType(to)) => *to,
                    _ => DType::Unknown,
                };
                let same_width = op == Op::CAST || to.bits() == own.bits();
                (to, if same_width { input() } else { None })
            }
            Op::QUANTIZE => {
                let to = match (self.at(2), self.attr("dtype")) {
                    (Some(zero), _) => zero.dtype,
                    (None, Some(Attr::DType(to))) => *to,
                    (None, _) => DType::U8,
                };
                (to, input())
            }
            Op::DEQUANTIZE => {
                let to = self.int("output_dtype").map_or(DType::Unknown, dtype);
                (if to == DType::Unknown { self.dtype(1) } else { to }, input())
            }
            Op::DYNAMIC_QUANTIZE => (DType::U8, input()),
            Op::RESHAPE => (own, self.reshape()),
            Op::FLATTEN => (own, self.flatten()),
            Op::SQUEEZE => (own, self.squeeze()),
            Op::UNSQUEEZE => (own, self.unsqueeze()),
            Op::TRANSPOSE => (own, self.transpose()),
            Op::CONCAT => (own, self.concat()),
            Op::SPLIT => (own, self.split()),
            Op::SLICE => (own, self.slice()),
            Op::PAD => (own, self.pad()),
            Op::TILE => (own, self.tile()),
            Op::EXPAND => {
                let target = self.target("shape");
                let dims = input().zip(target).and_then(|(a, b)| broadcast(&a, &b));
                (own, dims)
            }
            Op::GATHER | Op::SELECT | Op::EMBEDDING => (own, self.gather()),
            Op::GATHER_ELEMENTS => (own, self.dims_at(1).cloned()),
            Op::GATHER_ND => (own, self.gather_nd()),
            Op::SCATTER_ELEMENTS | Op::SCATTER_ND | Op::SLICE_UPDATE => (own, input()),
            Op::ARGMAX if self.site.spelling == "Hardmax" => (own, input()),
            Op::ARGMAX | Op::ARGMIN => {
                let axis = self.int("axis").map(|axis| vec![axis]);
                (DType::I64, self.reduced(axis))
            }
            Op::CUMSUM | Op::CUMPROD => (own, input()),
            Op::TOPK => (own, self.topk()),
            Op::ONE_HOT => (self.dtype(2), self.one_hot()),
            Op::NON_ZERO => {
                let rank = input().map(|dims| dims.len() as u64);
                // A scalar counts as one axis.
                (DType::I64, rank.map(|rank| vec![Dim::Static(rank), Dim::Unknown]))
            }
            Op::NON_MAXIMUM_SUPPRESSION => (DType::I64, Some(vec![Dim::Unknown, Dim::Static(3)])),
            Op::FULL => {
                let to = match self.attr("dtype") {
                    Some(Attr::DType(to)) => *to,
                    _ => DType::F32,
                };
                (to, self.target("shape"))
            }
            Op::ARANGE if self.site.spelling.ends_with("Range") => (own, self.range()),
            Op::ARANGE => {
                let to = match self.attr("dtype") {
                    Some(Attr::DType(to)) => *to,
                    _ => DType::F32,
                };
                let size = self.values("end").and_then(|list| list.first().map(|e| e.dim()));
                let window = self.site.spelling.ends_with("Window");
                (to, size.filter(|_| window).map(|dim| vec![dim]))
            }
            Op::EYE => {
                let to = self.int("dtype").map(dtype).or(match self.attr("dtype") {
                    Some(Attr::DType(to)) => Some(*to),
                    _ => None,
                });
                (to.unwrap_or(own), input())
            }
            Op::RANDOM => self.random(),
            Op::LSTM | Op::GRU | Op::RNN => (own, self.recurrent()),
            Op::DEPTH_TO_SPACE | Op::SPACE_TO_DEPTH => (own, self.blocks()),
            Op::RESIZE
            | Op::UPSAMPLE_NEAREST
            | Op::UPSAMPLE_LINEAR
            | Op::UPSAMPLE_BILINEAR
            | Op::UPSAMPLE_TRILINEAR
            | Op::UPSAMPLE_BICUBIC => (own, self.resize()),
            Op::RESAMPLE => (own, self.grid_sample()),
            Op::TRIU | Op::TRIL | Op::REVERSE | Op::IDENTITY | Op::DROPOUT => (own, input()),
            Op::WHERE => {
                let parts = [0, 1, 2].map(|at| self.dims_at(at).cloned());
                (self.dtype(1), broadcast_all(parts))
            }
            Op::SDPA if self.site.spelling == "Attention" => (own, self.attention()),
            Op::ROPE if self.site.spelling == "RotaryEmbedding" => (own, input()),
            Op::MATRIX_INVERSE if self.site.spelling == "Det" => {
                let dims = input()
                    .filter(|dims| dims.len() >= 2)
                    .map(|dims| dims[..dims.len() - 2].to_vec());
                (own, dims)
            }
            Op::IS_NAN | Op::IS_INF | Op::LOGICAL_NOT => (DType::Bool, input()),
            Op::REDUCE_MEAN if self.site.spelling.contains("Loss") => (own, None),
            op if op.category() == Category::Reduction && op.attributes().contains(&"axes") => {
                (own, self.reduced(self.ints("axes")))
            }
            Op::ADD | Op::SUB | Op::MUL if self.site.spelling.contains('.') => {
                (own, self.broadcast_inputs(2))
            }
            Op::CLAMP => (own, input()),
            Op::BITWISE_NOT => (own, input()),
            op if op.category() == Category::Logic => {
                let bitwise = matches!(
                    op,
                    Op::BITWISE_AND | Op::BITWISE_OR | Op::BITWISE_XOR | Op::BITWISE_SHIFT
                );
                (if bitwise { own } else { DType::Bool }, self.broadcast_inputs(2))
            }
            Op::GLU => (own, None),
            Op::PRELU => (own, input()),
            op if op.category() == Category::Elementwise => {
                (own, self.broadcast_inputs(self.site.inputs.len()))
            }
            op if matches!(op.category(), Category::Activation | Category::Normalization) => {
                (own, input())
            }
            _ => (DType::Unknown, None),
        }
    }

    fn conv_dtype(&self) -> DType {
        if self.site.spelling == "ConvInteger" { DType::I32 } else { self.dtype(0) }
    }

    fn product_dtype(&self) -> DType {
        match self.site.spelling {
            "MatMulInteger" => DType::I32,
            "com.microsoft.MatMulInteger16" => DType::I32,
            _ => self.dtype(0),
        }
    }

    fn broadcast_inputs(&self, count: usize) -> Option<Dims> {
        broadcast_all((0..count).map(|at| self.dims_at(at).cloned()))
    }

    /// A shape that an operand or a setting tells.
    fn target(&self, word: &str) -> Option<Dims> {
        if let Some(list) = self.ints(word) {
            return list.into_iter().map(|n| u64::try_from(n).ok().map(Dim::Static)).collect();
        }
        if let Some(list) = self.values(word) {
            return Some(list.iter().map(|element| element.dim()).collect());
        }
        // Only the number of elements is known: the rank.
        match self.dims(word)?.as_slice() {
            [Dim::Static(rank)] if *rank <= 64 => Some(vec![Dim::Unknown; *rank as usize]),
            _ => None,
        }
    }

    fn reshape(&self) -> Option<Dims> {
        let input = self.dims_at(0);
        let wanted: Vec<Element> = match self.ints("shape") {
            Some(list) => list.into_iter().map(Element::Int).collect(),
            None => match self.values("shape") {
                Some(list) => list.clone(),
                None => return self.target("shape"),
            },
        };
        let allow_zero = self.int("allowzero") == Some(1);
        let mut rest = None;
        let mut dims: Dims = Vec::with_capacity(wanted.len());
        for (at, element) in wanted.iter().enumerate() {
            dims.push(match element {
                Element::Int(0) if !allow_zero => {
                    input.and_then(|dims| dims.get(at).copied()).unwrap_or(Dim::Unknown)
                }
                Element::Int(-1) => {
                    rest = Some(at);
                    Dim::Unknown
                }
                element => element.dim(),
            });
        }
        if let (Some(rest), Some(input)) = (rest, input) {
            // Dims that stand on both sides cancel; what is left must be numbers.
            let mut left: Vec<Dim> = input.clone();
            let mut right: Vec<Dim> = Vec::new();
            for (at, dim) in dims.iter().enumerate().filter(|(at, _)| *at != rest) {
                let _ = at;
                match left.iter().position(|other| other == dim && *dim != Dim::Unknown) {
                    Some(place) => {
                        left.swap_remove(place);
                    }
                    None => right.push(*dim),
                }
            }
            let product =
                |list: &[Dim]| list.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?));
            let found = match (product(&left), product(&right)) {
                (Some(all), Some(part)) if part > 0 && all % part == 0 => Dim::Static(all / part),
                (None, Some(part)) => {
                    // One symbol beside numbers that cancel.
                    let (numbers, symbols): (Vec<Dim>, Vec<Dim>) =
                        left.iter().partition(|dim| dim.value().is_some());
                    match (symbols.as_slice(), product(&numbers)) {
                        ([symbol], Some(n)) if n == part => *symbol,
                        _ => Dim::Unknown,
                    }
                }
                _ => Dim::Unknown,
            };
            if let Some(slot) = dims.get_mut(rest) {
                *slot = found;
            }
        }
        Some(dims)
    }

    fn flatten(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axis = usize::try_from(self.int("start_axis")?).ok().filter(|&at| at <= dims.len())?;
        let product = |list: &[Dim]| match list {
            [only] => *only,
            list => list
                .iter()
                .try_fold(1u64, |n, dim| n.checked_mul(dim.value()?))
                .map_or(Dim::Unknown, Dim::Static),
        };
        Some(vec![product(&dims[..axis]), product(&dims[axis..])])
    }

    fn squeeze(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axes = self.ints("axes")?;
        // With no axes given it depends on every size.
        let by_size = self.site.inputs.len() < 2 && self.site.node.attributes.len() <= 1;
        if by_size && dims.iter().any(|dim| dim.value().is_none()) && axes.is_empty() {
            return None;
        }
        let kept = dims.iter().enumerate().filter(|(at, _)| !axes.contains(&(*at as i64)));
        Some(kept.map(|(_, dim)| *dim).collect())
    }

    fn unsqueeze(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axes = self.ints("axes")?;
        let mut rest = dims.iter();
        let rank = dims.len() + axes.len();
        (0..rank)
            .map(|at| {
                if axes.contains(&(at as i64)) {
                    Some(Dim::Static(1))
                } else {
                    rest.next().copied()
                }
            })
            .collect()
    }

    fn transpose(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let order = self.ints("permutation")?;
        if order.len() != dims.len() {
            return None;
        }
        order
            .iter()
            .map(|&at| usize::try_from(at).ok().and_then(|at| dims.get(at).copied()))
            .collect()
    }

    fn concat(&self) -> Option<Dims> {
        if self.site.spelling != "Concat" {
            return None;
        }
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let mut dims = self.dims_at(0)?.clone();
        for at in 1..self.site.inputs.len() {
            let other = self.dims_at(at)?;
            if other.len() != dims.len() {
                return None;
            }
            for (place, (dim, other)) in dims.iter_mut().zip(other).enumerate() {
                *dim = if place == axis {
                    match (dim.value(), other.value()) {
                        (Some(a), Some(b)) => a.checked_add(b).map_or(Dim::Unknown, Dim::Static),
                        _ => Dim::Unknown,
                    }
                } else {
                    equal(*dim, *other)
                };
            }
        }
        (axis < dims.len()).then_some(dims)
    }

    fn split(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let size = self.ints("sizes").and_then(|list| list.first().copied());
        let size = size.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Static);
        *dims.get_mut(axis)? = size;
        Some(dims)
    }

    fn slice(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let unknown = |dims: &mut Dims| {
            dims.iter_mut().for_each(|dim| *dim = Dim::Unknown);
        };
        let size_of = |dim: Dim, begin: i64, end: i64, step: i64| -> Dim {
            let Some(size) = dim.value().and_then(|n| i64::try_from(n).ok()) else {
                return if begin == 0 && step == 1 && end >= i64::from(i32::MAX) {
                    dim
                } else {
                    Dim::Unknown
                };
            };
            let fix = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
            let (begin, end, length) = match step {
                1.. => (fix(begin).clamp(0, size), fix(end).clamp(0, size), step),
                i64::MIN..=-1 => {
                    let begin = fix(begin).clamp(-1, size - 1);
                    // Sizes below −size mean: beyond the first element.
                    (begin, fix(end).clamp(-1, size - 1), step)
                }
                0 => return Dim::Unknown,
            };
            let span = if length > 0 { end - begin } else { begin - end };
            let count = if span <= 0 { 0 } else { (span - 1) / length.abs() + 1 };
            u64::try_from(count).map_or(Dim::Unknown, Dim::Static)
        };
        if let Some(axis) = self.int("axis") {
            let (begin, end, step) = (self.int("begin"), self.int("end"), self.int("step"));
            let place = usize::try_from(axis).ok().and_then(|at| dims.get_mut(at))?;
            *place = match (begin, end, step) {
                (Some(begin), Some(end), Some(step)) => size_of(*place, begin, end, step),
                _ => Dim::Unknown,
            };
            return Some(dims);
        }
        let lists = (self.attr("begin"), self.attr("end"), self.ints("step"));
        let (Some(Attr::Ints(begin)), Some(Attr::Ints(end)), Some(step)) = lists else {
            unknown(&mut dims);
            return Some(dims);
        };
        if begin.len() != dims.len() || end.len() != dims.len() || step.len() != dims.len() {
            unknown(&mut dims);
            return Some(dims);
        }
        for (at, dim) in dims.iter_mut().enumerate() {
            *dim = match (begin.get(at), end.get(at), step.get(at)) {
                (Some(Some(b)), Some(Some(e)), Some(s)) => size_of(*dim, *b, *e, *s),
                // No end: the axis is not cut, and its size not a number.
                (Some(Some(0)), Some(None), Some(1)) => *dim,
                _ => Dim::Unknown,
            };
        }
        Some(dims)
    }

    fn pad(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let pads = self.ints("pads").filter(|list| list.len() == 2 * dims.len());
        let dims = dims.iter().enumerate();
        Some(
            dims.map(|(at, dim)| {
                let Some(pads) = &pads else { return Dim::Unknown };
                let total = pads.get(at).zip(pads.get(at + pads.len() / 2)).map(|(a, b)| a + b);
                match (dim, total) {
                    (dim, Some(0)) => *dim,
                    (Dim::Static(n), Some(more)) => i64::try_from(*n)
                        .ok()
                        .and_then(|n| u64::try_from(n.checked_add(more)?).ok())
                        .map_or(Dim::Unknown, Dim::Static),
                    _ => Dim::Unknown,
                }
            })
            .collect(),
        )
    }

    fn tile(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let repeats = match self.ints("repeats") {
            Some(list) => list.into_iter().map(Element::Int).collect(),
            None => self.values("repeats").cloned().unwrap_or_default(),
        };
        let dims = dims.iter().enumerate();
        Some(
            dims.map(|(at, dim)| match (dim, repeats.get(at)) {
                (dim, Some(Element::Int(1))) => *dim,
                (Dim::Static(n), Some(Element::Int(times))) => u64::try_from(*times)
                    .ok()
                    .and_then(|times| n.checked_mul(times))
                    .map_or(Dim::Unknown, Dim::Static),
                _ => Dim::Unknown,
            })
            .collect(),
        )
    }

    fn gather(&self) -> Option<Dims> {
        let data = self.dims_at(0)?;
        let indices = self.dims_at(1)?;
        let axis = match self.site.node.op {
            Op::EMBEDDING => 0,
            _ => usize::try_from(self.int("axis")?).ok()?,
        };
        if self.site.spelling.contains('.') || axis >= data.len() {
            return None;
        }
        let mut dims = data[..axis].to_vec();
        dims.extend(indices);
        dims.extend(&data[axis + 1..]);
        Some(dims)
    }

    fn gather_nd(&self) -> Option<Dims> {
        let (data, indices) = (self.dims_at(0)?, self.dims_at(1)?);
        let batch = usize::try_from(self.int("batch_dims").unwrap_or(0)).ok()?;
        let (last, lead) = indices.split_last()?;
        let depth = usize::try_from(last.value()?).ok()?;
        let rest = data.get(batch.checked_add(depth)?..)?;
        Some(lead.iter().chain(rest).copied().collect())
    }

    fn reduced(&self, axes: Option<Vec<i64>>) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let keep = self.flag("keep_dims", true);
        let Some(axes) = axes else {
            // Axes that only run time knows: the rank is known if it is kept.
            return keep.then(|| vec![Dim::Unknown; dims.len()]);
        };
        let reduced = |at: usize| axes.contains(&(at as i64));
        Some(
            dims.iter()
                .enumerate()
                .filter(|(at, _)| keep || !reduced(*at))
                .map(|(at, dim)| if reduced(at) { Dim::Static(1) } else { *dim })
                .collect(),
        )
    }

    fn topk(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let k = self.int("k").map(Element::Int);
        let k = k.or_else(|| self.values("k").and_then(|list| list.first().copied()));
        *dims.get_mut(axis)? = k.map_or(Dim::Unknown, Element::dim);
        Some(dims)
    }

    fn one_hot(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok().filter(|&at| at <= dims.len())?;
        let depth = self.int("depth").map(Element::Int);
        let depth = depth.or_else(|| self.values("depth").and_then(|l| l.first().copied()));
        dims.insert(axis, depth.map_or(Dim::Unknown, Element::dim));
        Some(dims)
    }

    fn range(&self) -> Option<Dims> {
        let int = |word: &str| match self.values(word)?.first()? {
            Element::Int(n) => Some(*n),
            Element::Size(_) => None,
        };
        let count = (|| {
            let (start, end, step) = (int("start")?, int("end")?, int("step")?);
            let span = end.checked_sub(start)?;
            let step = (step != 0).then_some(step)?;
            let whole = span.checked_div(step)?;
            let rest = i64::from(span % step != 0 && whole >= 0 && (span > 0) == (step > 0));
            u64::try_from((whole + rest).max(0)).ok()
        })();
        Some(vec![count.map_or(Dim::Unknown, Dim::Static)])
    }

    fn random(&self) -> (DType, Option<Dims>) {
        let to = self.int("dtype").map(dtype).filter(|to| *to != DType::Unknown);
        match self.site.spelling {
            "RandomNormal" | "RandomUniform" => (to.unwrap_or(DType::F32), self.target("shape")),
            "Multinomial" => {
                let batch = self.dims_at(0).and_then(|dims| dims.first().copied());
                let size = self.int("sample_size").unwrap_or(1);
                let size = u64::try_from(size).map_or(Dim::Unknown, Dim::Static);
                (to.unwrap_or(DType::I32), batch.map(|batch| vec![batch, size]))
            }
            _ => (to.unwrap_or_else(|| self.dtype(0)), self.dims_at(0).cloned()),
        }
    }

    fn recurrent(&self) -> Option<Dims> {
        if self.site.spelling.contains('.') {
            return None;
        }
        let dims = self.dims_at(0)?;
        let [first, second, _] = dims.as_slice() else { return None };
        let weight = self.dims_at(2)?;
        let hidden = self.int("hidden_size").and_then(|n| u64::try_from(n).ok()).map(Dim::Static);
        let hidden = hidden.or_else(|| weight.get(2).copied())?;
        let directions = *weight.first()?;
        Some(if self.int("layout") == Some(1) {
            vec![*first, *second, directions, hidden]
        } else {
            vec![*first, directions, *second, hidden]
        })
    }

    fn blocks(&self) -> Option<Dims> {
        let block = u64::try_from(self.int("block")?).ok().filter(|n| *n > 0)?;
        let [batch, channels, height, width] = self.dims_at(0)?.as_slice() else { return None };
        let (deep, wide): (fn(u64, u64) -> Option<u64>, fn(u64, u64) -> Option<u64>) =
            if self.site.node.op == Op::DEPTH_TO_SPACE {
                (|n, b| n.checked_div(b.checked_mul(b)?), u64::checked_mul)
            } else {
                (|n, b| n.checked_mul(b.checked_mul(b)?), u64::checked_div)
            };
        let map = |dim: &Dim, f: fn(u64, u64) -> Option<u64>| {
            dim.value().and_then(|n| f(n, block)).map_or(Dim::Unknown, Dim::Static)
        };
        Some(vec![*batch, map(channels, deep), map(height, wide), map(width, wide)])
    }

    fn resize(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let spread = |len: usize| dims.len().checked_sub(len);
        let stretched = self.attr("keep_aspect_ratio_policy").is_some_and(
            |attr| !matches!(attr, Attr::Text(name) if self.names.get(*name) == "stretch"),
        );
        let unknown = Some(vec![Dim::Unknown; dims.len()]);
        if stretched || self.attr("axes").is_some() {
            return unknown;
        }
        if let Some(Attr::Floats(scale)) = self.attr("scale") {
            let skip = spread(scale.len())?;
            let dims = dims.iter().enumerate();
            return Some(
                dims.map(|(at, dim)| match at.checked_sub(skip).and_then(|at| scale.get(at)) {
                    None => *dim,
                    Some(scale) => dim.value().map_or(Dim::Unknown, |n| {
                        // The scale is an f32 to the runtime: so is the product.
                        Dim::Static((n as f32 * *scale as f32).floor().max(0.0) as u64)
                    }),
                })
                .collect(),
            );
        }
        let sizes = self.ints("size").or_else(|| {
            let list = self.values("size")?;
            list.iter().map(|e| e.dim().value().and_then(|n| i64::try_from(n).ok())).collect()
        });
        match sizes {
            Some(sizes) => {
                let skip = spread(sizes.len())?;
                let mut all = dims[..skip].to_vec();
                for n in sizes {
                    all.push(u64::try_from(n).map_or(Dim::Unknown, Dim::Static));
                }
                Some(all)
            }
            None => unknown,
        }
    }

    fn grid_sample(&self) -> Option<Dims> {
        if self.site.spelling.contains('.') {
            return None;
        }
        let (dims, grid) = (self.dims_at(0)?, self.dims_at(1)?);
        let mut all: Dims = dims.get(..2)?.to_vec();
        all.extend(grid.get(1..grid.len().checked_sub(1)?)?);
        Some(all)
    }

    /// Convolutions and pools.
    fn window(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let weight = self.dims("weight");
        let op = self.site.node.op;
        let pool = matches!(op, Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL);
        let nhwc = self.site.spelling.contains("Nhwc") || self.int("channels_last") == Some(1);
        if dims.len() < 3 || nhwc || self.site.spelling == "CausalConvWithState" {
            return None;
        }
        let spatial = dims.len() - 2;
        let channels = match op {
            _ if pool => *dims.get(1)?,
            Op::CONV => *weight?.first()?,
            _ => {
                let groups = u64::try_from(self.int("groups").unwrap_or(1)).ok()?;
                let each = weight?.get(1)?.value();
                each.and_then(|n| n.checked_mul(groups)).map_or(Dim::Unknown, Dim::Static)
            }
        };
        let kernel: Vec<Option<i64>> = if pool {
            self.ints("kernel")?.into_iter().map(Some).collect()
        } else {
            let dims = weight?.iter().skip(2);
            dims.map(|dim| dim.value().and_then(|n| i64::try_from(n).ok())).collect()
        };
        let kernel: Vec<Option<i64>> = match self.ints("kernel_shape") {
            Some(list) if !pool => list.into_iter().map(Some).collect(),
            _ => kernel,
        };
        let one = |word: &str| self.ints(word).unwrap_or_else(|| vec![1; spatial]);
        let (strides, dilations) = (one("strides"), one("dilations"));
        let pads = self.ints("pads");
        let same = self.attr("auto_pad").is_some_and(
            |attr| matches!(attr, Attr::Text(name) if self.names.get(*name).starts_with("SAME")),
        );
        let ceil = self.flag("ceil_mode", false);
        let mut all = vec![*dims.first()?, channels];
        for axis in 0..spatial {
            let size = dims.get(axis + 2)?.value().and_then(|n| i64::try_from(n).ok());
            let found = (|| {
                let (size, kernel) = (size?, (*kernel.get(axis)?)?);
                let (stride, dilation) = (*strides.get(axis)?, *dilations.get(axis)?);
                if stride <= 0 {
                    return None;
                }
                let reach = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
                if op == Op::CONV_TRANSPOSE {
                    if let Some(given) = self.ints("output_shape") {
                        let skip = given.len().checked_sub(spatial)?;
                        return given.get(axis + skip).copied();
                    }
                    if same {
                        return size.checked_mul(stride);
                    }
                    let pads = pads.as_ref()?;
                    let extra = self.ints("output_padding").and_then(|l| l.get(axis).copied());
                    return size
                        .checked_sub(1)?
                        .checked_mul(stride)?
                        .checked_add(reach)?
                        .checked_add(extra.unwrap_or(0))?
                        .checked_sub(*pads.get(axis)?)?
                        .checked_sub(*pads.get(axis + spatial)?);
                }
                if same {
                    return size.checked_add(stride - 1)?.checked_div(stride);
                }
                let pads = pads.as_ref()?;
                let (begin, end) = (*pads.get(axis)?, *pads.get(axis + spatial)?);
                let room = size.checked_add(begin)?.checked_add(end)?.checked_sub(reach)?;
                if room < 0 {
                    return None;
                }
                let mut count = if ceil { (room + stride - 1) / stride } else { room / stride } + 1;
                // A window that would begin in the padding at the end is left out.
                if ceil && (count - 1) * stride >= size + begin {
                    count -= 1;
                }
                Some(count)
            })();
            all.push(found.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Static));
        }
        Some(all)
    }

    /// Products of matrices, batched or not.
    fn product(&self) -> Option<Dims> {
        if self.site.spelling.starts_with("com.microsoft.MatMulNBits")
            || self.site.spelling == "com.microsoft.MatMulBnb4"
        {
            let mut dims = self.dims_at(0)?.clone();
            let out = u64::try_from(self.int("N")?).ok()?;
            *dims.last_mut()? = Dim::Static(out);
            return Some(dims);
        }
        let plain = ["transBatchA", "transBatchB"].iter().all(|w| self.int(w).unwrap_or(0) == 0);
        let known = !self.site.spelling.contains('.')
            || matches!(
                self.site.spelling,
                "com.microsoft.FusedMatMul" | "com.microsoft.FusedGemm"
            );
        if !plain || !known {
            return None;
        }
        let a = self.dims_at(0)?;
        let b = self.dims_at(if self.site.spelling == "QLinearMatMul" { 3 } else { 1 })?;
        let turned = |word| self.flag(word, false);
        if self.site.node.op == Op::LINEAR {
            let mut dims = a.clone();
            *dims.last_mut()? = *b.first()?;
            return Some(dims);
        }
        let (mut a, mut b) = (a.clone(), b.clone());
        let (vector_a, vector_b) = (a.len() == 1, b.len() == 1);
        if vector_a {
            a.insert(0, Dim::Static(1));
        }
        if vector_b {
            b.push(Dim::Static(1));
        }
        let (ra, rb) = (a.len().checked_sub(2)?, b.len().checked_sub(2)?);
        if turned("transpose_a") && !vector_a {
            a.swap(ra, ra + 1);
        }
        if turned("transpose_b") && !vector_b {
            b.swap(rb, rb + 1);
        }
        let mut dims = broadcast(a.get(..ra)?, b.get(..rb)?)?;
        if !vector_a {
            dims.push(*a.get(ra)?);
        }
        if !vector_b {
            dims.push(*b.get(rb + 1)?);
        }
        Some(dims)
    }

    /// `bij,bjk->bik`; an ellipsis or a missing right side is left unknown.
    fn einsum(&self) -> Option<Dims> {
        let Some(Attr::Text(equation)) = self.attr("equation") else { return None };
        let equation: String =
            self.names.get(*equation).chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = equation.split_once("->")?;
        if equation.contains('.') {
            return None;
        }
        let mut sizes: Vec<(char, Dim)> = Vec::new();
        for (at, term) in left.split(',').enumerate() {
            let dims = self.dims_at(at)?;
            if dims.len() != term.chars().count() {
                return None;
            }
            for (label, dim) in term.chars().zip(dims) {
                match sizes.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, known)) if *known == Dim::Static(1) => *known = *dim,
                    Some(_) => {}
                    None => sizes.push((label, *dim)),
                }
            }
        }
        right
            .chars()
            .map(|label| sizes.iter().find(|(known, _)| *known == label).map(|(_, dim)| *dim))
            .collect()
    }

    /// Queries beside the head size of the values, in rank 3 or 4.
    fn attention(&self) -> Option<Dims> {
        let (query, value) = (self.dims_at(0)?, self.dims_at(2)?);
        match (query.as_slice(), value.as_slice()) {
            ([batch, heads, length, _], [.., size]) if value.len() == 4 => {
                Some(vec![*batch, *heads, *length, *size])
            }
            ([batch, length, _], [_, _, hidden]) => {
                let of = |word| self.int(word).and_then(|n| u64::try_from(n).ok());
                let (q, kv) = (of("q_num_heads")?, of("kv_num_heads")?);
                let size = hidden.value()?.checked_div(kv)?.checked_mul(q)?;
                Some(vec![*batch, *length, Dim::Static(size)])
            }
            _ => None,
        }
    }
}

/// Two dims that must be equal: the one that says more.
fn equal(a: Dim, b: Dim) -> Dim {
    match (a, b) {
        (Dim::Static(_), _) | (_, Dim::Unknown) => a,
        (_, Dim::Static(_)) | (Dim::Unknown, _) => b,
        _ => a,
    }
}

/// The shape that two shapes stretch to; `None` if they do not fit.
fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Dims> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Dim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or(Dim::Static(1), |at| dims[at])
    };
    (0..rank)
        .map(|axis| {
            Some(match (at(a, axis), at(b, axis)) {
                (x, y) if x == y => x,
                (Dim::Static(1), x) | (x, Dim::Static(1)) => x,
                (Dim::Static(_), Dim::Static(_)) => return None,
                (x @ Dim::Static(_), _) | (_, x @ Dim::Static(_)) => x,
                _ => Dim::Unknown,
            })
        })
        .collect()
}

fn broadcast_all(parts: impl IntoIterator<Item = Option<Dims>>) -> Option<Dims> {
    let mut all: Option<Dims> = None;
    for part in parts {
        let part = part?;
        all = Some(match all {
            None => part,
            Some(before) => broadcast(&before, &part)?,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::SymbolId;

    #[test]
    fn shapes_stretch_from_the_right() {
        let s = Dim::Symbol(SymbolId(0));
        let n = Dim::Static;
        assert_eq!(broadcast(&[n(4), n(1)], &[n(3)]), Some(vec![n(4), n(3)]));
        assert_eq!(broadcast(&[s, n(1)], &[n(1), s]), Some(vec![s, s]));
        assert_eq!(broadcast(&[s], &[n(5)]), Some(vec![n(5)]));
        assert_eq!(broadcast(&[n(2)], &[n(3)]), None);
    }
}
