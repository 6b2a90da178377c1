//! Types and immediate values of the language in canonical terms.

use half::{bf16, f16};

use super::ir::{Data, Type, Value};
use crate::graph::{Attr, DType, Dim, Name, Names, ShapeId, Shapes};
use crate::readers::coreml::packed::varints;

/// Interns the shape of a type; run-time dims are [`Dim::Unknown`].
pub(super) fn shape(shapes: &mut Shapes, ty: &Type) -> (DType, ShapeId) {
    let (dtype, dims) = ty.tensor();
    let Some(dims) = dims else { return (dtype, ShapeId::UNKNOWN) };
    let dims: Vec<Dim> = dims.iter().map(|dim| dim.map_or(Dim::Unknown, Dim::Static)).collect();
    (dtype, shapes.intern(&dims))
}

/// An element type by the language's name (`fp16`, `int32`).
pub(crate) fn dtype(word: &str) -> Option<DType> {
    Some(match word {
        "fp16" | "float16" => DType::F16,
        "bf16" | "bfloat16" => DType::BF16,
        "fp32" | "float32" => DType::F32,
        "fp64" | "float64" | "double" => DType::F64,
        "fp8e4m3fn" | "float8e4m3fn" => DType::F8E4M3,
        "fp8e5m2" | "float8e5m2" => DType::F8E5M2,
        "bool" => DType::Bool,
        "string" => DType::String,
        "int4" => DType::I4,
        "int8" => DType::I8,
        "int16" => DType::I16,
        "int32" => DType::I32,
        "int64" => DType::I64,
        "uint1" => DType::U1,
        "uint2" => DType::U2,
        "uint3" => DType::U3,
        "uint4" => DType::U4,
        "uint6" => DType::U6,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        _ => return None,
    })
}

/// The words of a string tensor, or of a list of them.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Tensor(_, Data::Texts(list)) => Some(list.iter().map(String::as_str).collect()),
        Value::List(list) => {
            let mut words = Vec::new();
            for item in list {
                words.extend(texts(item)?);
            }
            Some(words)
        }
        _ => None,
    }
}

/// At most `limit` elements as numbers; `None` for what holds none or more than that.
pub(super) fn numbers(value: &Value, limit: usize) -> Option<Vec<f64>> {
    let Value::Tensor(ty, data) = value else { return None };
    let (dtype, _) = ty.tensor();
    match data {
        Data::Ints(list) if list.len() <= limit => Some(list.iter().map(|&n| n as f64).collect()),
        Data::Floats(list) if list.len() <= limit => Some(list.clone()),
        Data::Varints(bytes) => {
            let list = varints(bytes, limit + 1);
            (list.len() <= limit).then(|| list.into_iter().map(|n| n as f64).collect())
        }
        Data::Raw(bytes) => raw_numbers(dtype, bytes, elements(ty), limit),
        _ => None,
    }
}

/// At most `limit` elements as whole numbers.
pub(super) fn integers(value: &Value, limit: usize) -> Option<Vec<i64>> {
    match value {
        Value::Tensor(_, Data::Ints(list)) if list.len() <= limit => Some(list.clone()),
        Value::Tensor(_, Data::Varints(bytes)) => {
            let list = varints(bytes, limit + 1);
            (list.len() <= limit).then_some(list)
        }
        Value::Tensor(ty, Data::Raw(_)) if ty.tensor().0.is_int() => {
            // Below 2^53 a double holds every integer; wider ones come as variable-length integers.
            numbers(value, limit).map(|list| list.into_iter().map(|x| x as i64).collect())
        }
        Value::List(list) if list.len() <= limit => {
            let mut all = Vec::new();
            for item in list {
                all.extend(integers(item, 1)?);
            }
            Some(all)
        }
        _ => None,
    }
}

/// Number of elements of a type whose dims are all known.
pub(super) fn elements(ty: &Type) -> Option<u64> {
    ty.tensor().1?.iter().try_fold(1u64, |n, dim| n.checked_mul((*dim)?))
}

/// Rank, if known.
pub(super) fn rank(ty: &Type) -> Option<usize> {
    ty.tensor().1.map(<[_]>::len)
}

/// Decodes little-endian elements; sub-byte ones lie low bits first.
pub(crate) fn raw_numbers(
    dtype: DType,
    bytes: &[u8],
    count: Option<u64>,
    limit: usize,
) -> Option<Vec<f64>> {
    let bits = dtype.bits() as usize;
    if bits == 0 {
        return None;
    }
    let held = bytes.len().checked_mul(8)? / bits;
    let count = count.map_or(held, |n| held.min(n.min(usize::MAX as u64) as usize));
    if count > limit {
        return None;
    }
    let mut list = Vec::with_capacity(count);
    for at in 0..count {
        list.push(if bits < 8 {
            let mut number = 0u32;
            for bit in 0..bits {
                let place = at * bits + bit;
                number |= u32::from(bytes.get(place / 8)? >> (place % 8) & 1) << bit;
            }
            let signed = matches!(dtype, DType::I1 | DType::I2 | DType::I4);
            if signed && number >> (bits - 1) & 1 == 1 {
                f64::from(number) - f64::from(1u32 << bits)
            } else {
                f64::from(number)
            }
        } else {
            let width = bits / 8;
            element(dtype, bytes.get(at * width..(at + 1) * width)?)?
        });
    }
    Some(list)
}

/// One element of a whole number of bytes.
fn element(dtype: DType, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::F16 => f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        DType::BF16 => bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        DType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        DType::Bool => f64::from(u8::from(*bytes.first()? != 0)),
        DType::U8 => f64::from(*bytes.first()?),
        DType::I8 => f64::from(*bytes.first()? as i8),
        DType::U16 => f64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
        DType::I16 => f64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
        DType::U32 => f64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
        DType::I32 => f64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        DType::U64 => u64::from_le_bytes(bytes.try_into().ok()?) as f64,
        DType::I64 => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
        _ => return None,
    })
}

/// A constant as a setting: a scalar as a number or word, a vector as a list. `None` for what is
/// too big for one.
pub(super) fn attribute(names: &mut Names, value: &Value) -> Option<Attr> {
    const MOST: usize = 64;
    if let Some(words) = texts(value) {
        let mut ids: Vec<Name> = words.iter().map(|word| names.intern(word)).collect();
        return Some(match (ids.len(), value) {
            (1, Value::Tensor(..)) => Attr::Text(ids.remove(0)),
            _ => Attr::Texts(ids.into()),
        });
    }
    let (scalar, dtype) = match value {
        Value::Tensor(ty, _) => (rank(ty) == Some(0), ty.tensor().0),
        Value::List(_) => (false, DType::I64),
        _ => return None,
    };
    if dtype.is_float() {
        let list = numbers(value, MOST)?;
        return match (scalar, list.as_slice()) {
            (true, [x, ..]) => Some(Attr::Float(*x)),
            (true, []) => None,
            (false, _) => Some(Attr::Floats(list.into())),
        };
    }
    let list = match dtype {
        DType::Bool => numbers(value, MOST)?.into_iter().map(|x| i64::from(x != 0.0)).collect(),
        _ => integers(value, MOST)?,
    };
    match (scalar, list.as_slice()) {
        (true, [n, ..]) if dtype == DType::Bool => Some(Attr::Bool(*n != 0)),
        (true, [n, ..]) => Some(Attr::Int(*n)),
        (true, []) => None,
        (false, _) => Some(Attr::Ints(list.into_iter().map(Some).collect())),
    }
}
