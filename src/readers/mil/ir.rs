//! Operations, blocks, values and types as the language has them, before anything canonical.

use bytes::Bytes;

use crate::graph::DType;
use crate::readers::ReadError;

/// A function.
pub(crate) struct Function {
    pub name: String,
    /// `ios18` (`CoreML8` in the protobuf).
    pub opset: String,
    pub inputs: Vec<(String, Type)>,
    pub body: Block,
}

/// Operations in order, with the names that the block gives out.
#[derive(Default)]
pub(crate) struct Block {
    pub inputs: Vec<(String, Type)>,
    pub outputs: Vec<String>,
    pub operations: Vec<Stored>,
}

/// An operation, decoded now or when its turn comes.
pub(crate) enum Stored {
    /// Still protobuf: one operation at a time is in memory.
    Wire(Bytes),
    /// Parsed from text.
    Parsed(Box<Operation>),
}

/// What turns a stored operation into one.
pub(crate) trait Decode {
    /// # Errors
    /// [`ReadError`] with the offset if the bytes are no operation.
    fn operation(&self, bytes: Bytes) -> Result<Operation, ReadError>;
}

/// An operation.
#[derive(Default)]
pub(crate) struct Operation {
    /// `conv`, `const`, `linear`.
    pub spelling: String,
    /// The `name` attribute; falls back to the first output's.
    pub name: String,
    pub inputs: Vec<(String, Vec<Binding>)>,
    pub outputs: Vec<(String, Type)>,
    pub blocks: Vec<Block>,
    /// Attributes but `name`: `val` of a constant, settings of the older `constexpr_*`.
    pub attributes: Vec<(String, Value)>,
}

/// What an argument is bound to.
pub(crate) enum Binding {
    Name(String),
    Value(Value),
}

/// A type.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum Type {
    Tensor {
        dtype: DType,
        /// `None`: not even the rank is known. A dim of `None` is a run-time one.
        dims: Option<Vec<Option<u64>>>,
    },
    State(Box<Type>),
    List(Box<Type>),
    #[default]
    Other,
}

impl Type {
    /// The tensor type inside, a state's or list's element too.
    pub fn tensor(&self) -> (DType, Option<&[Option<u64>]>) {
        let mut inner = self;
        loop {
            match inner {
                Type::Tensor { dtype, dims } => return (*dtype, dims.as_deref()),
                Type::State(next) | Type::List(next) => inner = next,
                Type::Other => return (DType::Unknown, None),
            }
        }
    }

    /// Whether it is the handle of a state.
    pub fn is_state(&self) -> bool {
        matches!(self, Type::State(_))
    }
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Tensor(Type, Data),
    /// In a weight file: the offset is that of the entry's 64-byte header.
    Blob {
        ty: Type,
        file: String,
        offset: u64,
    },
    /// A list or tuple.
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    /// Said to be there, and empty or of a kind that nobody needs.
    Other,
}

/// The elements of an immediate tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
    /// Little-endian elements of the tensor's dtype, packed.
    Raw(Bytes),
    /// Variable-length integers of the protobuf; decoded when looked at.
    Varints(Bytes),
}
