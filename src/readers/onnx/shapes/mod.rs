//! Types of results that the file does not declare, for the common ops. What cannot be told is left
//! unknown: a wrong size would be worse than none.

mod broadcast;
mod movement;
mod product;
mod window;

use self::broadcast::{broadcast, broadcast_all};
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

/// The types of what an op with graphs gives: of a choice, what both branches agree on; of a loop, the
/// element types of what its body carries on, and of what it collects with one axis more.
pub(super) fn of_bodies(op: Op, bodies: &[Vec<Declared>]) -> Vec<Declared> {
    match (op, bodies) {
        (Op::COND, [a, b]) => a
            .iter()
            .zip(b)
            .map(|(a, b)| {
                let dtype = if a.dtype == b.dtype { a.dtype } else { DType::Unknown };
                let dims = match (&a.dims, &b.dims) {
                    (Some(a), Some(b)) if a.len() == b.len() => Some(
                        a.iter()
                            .zip(b)
                            .map(|(a, b)| if a == b { *a } else { Dim::Unknown })
                            .collect(),
                    ),
                    _ => None,
                };
                Declared { dtype, dims }
            })
            .collect(),
        // The first output of a body is whether to go on.
        (Op::WHILE, [body]) => {
            body.iter().skip(1).map(|own| Declared { dtype: own.dtype, dims: None }).collect()
        }
        (Op::SCAN, [body]) => {
            body.iter().map(|own| Declared { dtype: own.dtype, dims: None }).collect()
        }
        _ => Vec::new(),
    }
}

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

    /// The element type that the node is told to make.
    fn told(&self) -> Option<DType> {
        match self.attr("dtype") {
            Some(Attr::DType(to)) => Some(*to),
            _ => None,
        }
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
                let to = self.told().unwrap_or_default();
                let same_width = op == Op::CAST || to.bits() == own.bits();
                (to, if same_width { input() } else { None })
            }
            Op::QUANTIZE => {
                let to = match self.at(2) {
                    Some(zero) => zero.dtype,
                    None => self.told().unwrap_or(DType::U8),
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
            Op::SCATTER_ND if self.site.spelling == "MaxUnpool" => (own, None),
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
                let to = self.told().unwrap_or(DType::F32);
                (to, self.target("shape"))
            }
            Op::ARANGE if self.site.spelling.ends_with("Range") => (own, self.range()),
            Op::ARANGE => {
                let to = self.told().unwrap_or(DType::F32);
                let size = self.values("end").and_then(|list| list.first().map(|e| e.dim()));
                let window = self.site.spelling.ends_with("Window");
                (to, size.filter(|_| window).map(|dim| vec![dim]))
            }
            Op::EYE => (self.told().unwrap_or(own), input()),
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

    fn random(&self) -> (DType, Option<Dims>) {
        let to = self.told();
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
}
