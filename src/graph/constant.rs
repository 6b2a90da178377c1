//! Constants as summaries: never the payload of a parameter.

use std::sync::Arc;

use super::{DType, Name, ShapeId};

/// Index of a [`Constant`] in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantId(pub u32);

/// Where a constant comes from: what may be read, and what a rule may blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstantOrigin {
    /// A trained weight: read only with `--scan-weights`.
    Parameter,
    /// A registered buffer (mask, table, running statistics).
    Buffer,
    /// A tensor made in the author's code (`torch.tensor(1.0)`).
    Tensor,
    /// A Python number in the author's code; its dtype is the weak one of the literal.
    Literal,
    /// Made by the converter (folded, or an op's own table).
    Folded,
}

/// A file whose bytes constants point into: a map, an inflated member, or an outside file that was
/// only looked for.
#[derive(Debug, Clone)]
pub enum BlobFile {
    /// Bytes at hand without reading anything ahead (a slice of a memory map).
    Bytes(bytes::Bytes),
    /// A file beside the graph, opened only when asked.
    Path(Arc<std::path::Path>),
    /// Named by the graph and not there.
    Missing(Arc<str>),
}

/// Where a constant's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blob {
    /// Index into [`super::Program::blob_files`].
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What the file tells of a constant's values.
#[derive(Debug, Clone, Default)]
pub enum Payload {
    /// All elements, row-major, as `f64` (at most [`Constant::INLINE`] of them).
    Values(Box<[f64]>),
    /// Every element is this one.
    Splat(f64),
    /// Bytes that can be looked at (little endian, row-major, packed).
    Blob(Blob),
    /// A short text.
    Text(Name),
    /// Not known.
    #[default]
    Unknown,
}

/// A constant tensor: type, shape, origin and where the bytes lie.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Element type as stored.
    pub dtype: DType,
    /// Shape.
    pub shape: ShapeId,
    /// Where it comes from.
    pub origin: ConstantOrigin,
    /// Its name in the author's module (`layers.0.mask`), or empty.
    pub fqn: Name,
    /// Its values, as far as the file shows them.
    pub payload: Payload,
}

impl Constant {
    /// Most elements kept as decoded values.
    pub const INLINE: usize = 64;
}

/// What a look at a constant's values found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueSummary {
    /// Smallest finite value.
    pub min: Option<f64>,
    /// Largest finite value.
    pub max: Option<f64>,
    /// Elements that are −inf.
    pub negative_infinities: u64,
    /// Elements that are +inf.
    pub positive_infinities: u64,
    /// Elements that are NaN.
    pub nans: u64,
    /// Elements looked at.
    pub elements: u64,
}

impl ValueSummary {
    /// Counts `value` in.
    pub fn add(&mut self, value: f64) {
        self.elements += 1;
        if value.is_nan() {
            self.nans += 1;
        } else if value == f64::INFINITY {
            self.positive_infinities += 1;
        } else if value == f64::NEG_INFINITY {
            self.negative_infinities += 1;
        } else {
            self.min = Some(self.min.map_or(value, |m| m.min(value)));
            self.max = Some(self.max.map_or(value, |m| m.max(value)));
        }
    }
}
