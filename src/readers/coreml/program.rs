//! ML Programs in protobuf → the language's intermediate form.

use bytes::Bytes;

use super::packed::varints;
use super::wire::{Wire, proto};
use crate::graph::DType;
use crate::readers::ReadError;
use crate::readers::mil::ir::{
    Binding, Block, Data, Decode, Function, Operation, Stored, Type, Value,
};

/// Most dims of a tensor type; the format's own limit is 5 or 6.
const RANK: usize = 64;

/// The functions of an ML Program, bodies still undecoded.
///
/// # Errors
/// [`ReadError`] if a message is broken or a function has no block for its opset.
pub(super) fn functions(wire: &Wire<'_>, bytes: Bytes) -> Result<Vec<Function>, ReadError> {
    let program: proto::Program = wire.decode(bytes, "the ML Program")?;
    let mut functions = Vec::new();
    let mut entries = program.functions;
    // The format keeps functions in a map without an order.
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    for entry in entries {
        let function: proto::Function =
            wire.decode(entry.value, &format!("function `{}`", entry.key))?;
        let chosen = function
            .block_specializations
            .iter()
            .position(|block| block.key == function.opset)
            .or(if function.block_specializations.len() == 1 { Some(0) } else { None });
        let block = chosen.and_then(|at| function.block_specializations.into_iter().nth(at));
        let Some(block) = block else {
            return Err(wire.broken(
                format!("function `{}` has no block for its opset `{}`", entry.key, function.opset),
                None,
            ));
        };
        functions.push(Function {
            body: self::block(wire, block.value)?,
            name: entry.key,
            opset: opset(&block.key),
            inputs: function.inputs.into_iter().map(named).collect(),
        });
    }
    Ok(functions)
}

/// `CoreML8` → `ios18`: the names that rules and the text form use.
fn opset(key: &str) -> String {
    let ios = match key {
        "CoreML3" => "ios13",
        "CoreML4" => "ios14",
        "CoreML5" => "ios15",
        "CoreML6" => "ios16",
        "CoreML7" => "ios17",
        "CoreML8" => "ios18",
        "CoreML9" => "ios26",
        other => other,
    };
    ios.to_owned()
}

fn block(wire: &Wire<'_>, bytes: Bytes) -> Result<Block, ReadError> {
    let block: proto::Block = wire.decode(bytes, "a block")?;
    Ok(Block {
        inputs: block.inputs.into_iter().map(named).collect(),
        outputs: block.outputs,
        operations: block.operations.into_iter().map(Stored::Wire).collect(),
    })
}

impl Decode for Wire<'_> {
    fn operation(&self, bytes: Bytes) -> Result<Operation, ReadError> {
        let operation: proto::Operation = self.decode(bytes, "an operation")?;
        let mut attributes = Vec::new();
        let mut name = String::new();
        for entry in operation.attributes {
            let value = value(entry.value.unwrap_or_default());
            match (entry.key.as_str(), value) {
                ("name", Value::Tensor(_, Data::Texts(mut list))) if list.len() == 1 => {
                    name = list.remove(0);
                }
                (_, value) => attributes.push((entry.key, value)),
            }
        }
        // Maps have no order of their own.
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        let mut inputs: Vec<(String, Vec<Binding>)> = operation
            .inputs
            .into_iter()
            .map(|entry| {
                let bindings = entry.value.unwrap_or_default().arguments;
                (entry.key, bindings.into_iter().filter_map(binding).collect())
            })
            .collect();
        inputs.sort_by(|a, b| a.0.cmp(&b.0));
        let mut blocks = Vec::new();
        for bytes in operation.blocks {
            blocks.push(block(self, bytes)?);
        }
        Ok(Operation {
            spelling: operation.r#type,
            name,
            inputs,
            outputs: operation.outputs.into_iter().map(named).collect(),
            blocks,
            attributes,
        })
    }
}

fn binding(binding: proto::Binding) -> Option<Binding> {
    Some(match binding.binding? {
        proto::binding::Binding::Name(name) => Binding::Name(name),
        proto::binding::Binding::Value(stored) => Binding::Value(value(stored)),
    })
}

fn named(named: proto::NamedValueType) -> (String, Type) {
    (named.name, named.r#type.map_or(Type::Other, ty))
}

/// A type; decoding has bounded the nesting.
fn ty(stored: proto::ValueType) -> Type {
    use proto::value_type::Type as Stored;
    match stored.r#type {
        Some(Stored::TensorType(tensor)) => {
            let unknown_rank = tensor.rank < 0 || tensor.dimensions.len() > RANK;
            let variadic = tensor.dimensions.iter().any(|dim| {
                matches!(&dim.dimension, Some(proto::dimension::Dimension::Unknown(u)) if u.variadic)
            });
            let dims = tensor.dimensions.into_iter().map(|dim| match dim.dimension {
                Some(proto::dimension::Dimension::Constant(constant)) => Some(constant.size),
                _ => None,
            });
            Type::Tensor {
                dtype: dtype(tensor.data_type),
                dims: (!unknown_rank && !variadic).then(|| dims.collect()),
            }
        }
        Some(Stored::StateType(state)) => {
            Type::State(Box::new(state.wrapped_type.map_or(Type::Other, |inner| ty(*inner))))
        }
        Some(Stored::ListType(list)) => {
            Type::List(Box::new(list.r#type.map_or(Type::Other, |inner| ty(*inner))))
        }
        Some(Stored::TupleType(_) | Stored::DictionaryType(_)) | None => Type::Other,
    }
}

/// An element type by the format's number.
fn dtype(number: i32) -> DType {
    match number {
        1 => DType::Bool,
        2 => DType::String,
        10 => DType::F16,
        11 => DType::F32,
        12 => DType::F64,
        13 => DType::BF16,
        21 => DType::I8,
        22 => DType::I16,
        23 => DType::I32,
        24 => DType::I64,
        25 => DType::I4,
        31 => DType::U8,
        32 => DType::U16,
        33 => DType::U32,
        34 => DType::U64,
        35 => DType::U4,
        36 => DType::U2,
        37 => DType::U1,
        38 => DType::U6,
        39 => DType::U3,
        40 => DType::F8E4M3,
        41 => DType::F8E5M2,
        _ => DType::Unknown,
    }
}

fn value(stored: proto::Value) -> Value {
    use proto::immediate_value::Value as Immediate;
    let ty = stored.r#type.map_or(Type::Other, ty);
    let immediate = match stored.value {
        Some(proto::value::Value::BlobFileValue(blob)) => {
            return Value::Blob { ty, file: blob.file_name, offset: blob.offset };
        }
        Some(proto::value::Value::ImmediateValue(immediate)) => immediate.value,
        None => None,
    };
    match immediate {
        Some(Immediate::Tensor(tensor)) => {
            let data = data(tensor, ty.tensor().0);
            Value::Tensor(ty, data)
        }
        Some(Immediate::List(list) | Immediate::Tuple(list)) => {
            Value::List(list.values.into_iter().map(value).collect())
        }
        Some(Immediate::Dictionary(dictionary)) => Value::Dict(
            dictionary
                .values
                .into_iter()
                .map(|entry| {
                    (value(entry.key.unwrap_or_default()), value(entry.value.unwrap_or_default()))
                })
                .collect(),
        ),
        None => Value::Other,
    }
}

/// The elements; those of a wire type other than the dtype's are converted.
fn data(tensor: proto::TensorValue, dtype: DType) -> Data {
    use proto::tensor_value::Value as Stored;
    match tensor.value {
        Some(Stored::Floats(floats)) if dtype == DType::F32 => Data::Raw(floats.bytes()),
        Some(Stored::Floats(floats)) => Data::Floats(
            floats
                .bytes()
                .chunks_exact(4)
                .filter_map(|b| b.try_into().ok())
                .map(|b| f64::from(f32::from_le_bytes(b)))
                .collect(),
        ),
        Some(Stored::Doubles(doubles)) if dtype == DType::F64 => Data::Raw(doubles.bytes()),
        Some(Stored::Doubles(doubles)) => Data::Floats(
            doubles
                .bytes()
                .chunks_exact(8)
                .filter_map(|b| b.try_into().ok())
                .map(f64::from_le_bytes)
                .collect(),
        ),
        Some(Stored::Ints(ints) | Stored::LongInts(ints)) if dtype.is_float() => {
            Data::Floats(varints(&ints.bytes(), usize::MAX).into_iter().map(|n| n as f64).collect())
        }
        Some(Stored::Ints(ints) | Stored::Bools(ints) | Stored::LongInts(ints)) => {
            Data::Varints(ints.bytes())
        }
        Some(Stored::Strings(strings)) => Data::Texts(strings.values),
        Some(Stored::Bytes(bytes)) => Data::Raw(bytes.values),
        None => Data::Ints(Vec::new()),
    }
}
