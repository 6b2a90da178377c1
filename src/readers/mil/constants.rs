//! Constants: what is kept of immediate values, and what a name or a place tells of their origin.

use super::ir::{Data, Type, Value};
use super::types;
use crate::graph::{
    Blob, BlobFile, Category, Constant, ConstantOrigin, DType, Op, Payload, Program,
};

/// Most integers of an immediate tensor that are unpacked so that values can be looked at.
const UNPACKED: usize = 1 << 20;

/// The elements of an immediate tensor, as far as they are kept.
pub(super) fn immediate(program: &mut Program, value: &Value, ty: &Type, data: &Data) -> Payload {
    let count = types::elements(ty);
    if let Data::Texts(list) = data {
        return match list.as_slice() {
            [one] => Payload::Text(program.names.intern(one)),
            _ => Payload::Unknown,
        };
    }
    if let Some(list) = types::numbers(value, Constant::INLINE) {
        return match list.as_slice() {
            [] if count != Some(0) => Payload::Unknown,
            // Text writes one element for a tensor of equal ones.
            [one] if count.is_some_and(|n| n > 1) => Payload::Splat(*one),
            _ if count.is_none_or(|n| n == list.len() as u64) => Payload::Values(list.into()),
            _ => Payload::Unknown,
        };
    }
    let (dtype, _) = ty.tensor();
    let bytes = match data {
        Data::Raw(bytes) => Some(bytes.clone()),
        // A truth value is one byte in either encoding.
        Data::Varints(bytes) if dtype == DType::Bool => Some(bytes.clone()),
        Data::Floats(list) => pack(dtype, list.iter().copied()),
        _ => types::integers(value, UNPACKED)
            .and_then(|list| pack(dtype, list.into_iter().map(|n| n as f64))),
    };
    match (bytes, count) {
        (Some(bytes), Some(count)) if bytes.len() as u64 == dtype.bytes(count) => {
            let len = bytes.len() as u64;
            program.blob_files.push(BlobFile::Bytes(bytes));
            Payload::Blob(Blob { file: program.blob_files.len() as u32 - 1, offset: 0, len })
        }
        _ => Payload::Unknown,
    }
}

/// Little-endian elements, for the dtypes that immediate values of this size have.
fn pack(dtype: DType, list: impl Iterator<Item = f64>) -> Option<bytes::Bytes> {
    let mut bytes = Vec::new();
    for x in list {
        match dtype {
            DType::Bool | DType::U8 => bytes.push(x as u8),
            DType::I8 => bytes.push(x as i8 as u8),
            DType::F16 => bytes.extend(half::f16::from_f64(x).to_le_bytes()),
            DType::F32 => bytes.extend((x as f32).to_le_bytes()),
            DType::F64 => bytes.extend(x.to_le_bytes()),
            DType::I16 => bytes.extend((x as i16).to_le_bytes()),
            DType::U16 => bytes.extend((x as u16).to_le_bytes()),
            DType::I32 => bytes.extend((x as i32).to_le_bytes()),
            DType::U32 => bytes.extend((x as u32).to_le_bytes()),
            DType::I64 => bytes.extend((x as i64).to_le_bytes()),
            _ => return None,
        }
    }
    Some(bytes.into())
}

/// What the converter's naming says of a constant: exported programs prefix parameters with `p_`,
/// buffers with `b_`, tensors made in the code with `c_`; a copy in f16 gets a suffix.
pub(super) fn origin(name: &str) -> (ConstantOrigin, &str) {
    let plain = ["_to_fp16", "_palettized", "_quantized", "_sparsified"]
        .iter()
        .fold(name, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
    for (prefix, origin) in [
        ("p_", ConstantOrigin::Parameter),
        ("b_", ConstantOrigin::Buffer),
        ("c_", ConstantOrigin::Tensor),
    ] {
        if let Some(rest) = plain.strip_prefix(prefix) {
            return (origin, rest);
        }
    }
    let weight = ["weight", "bias", "gamma", "beta", "running_mean", "running_var"]
        .iter()
        .any(|word| plain.ends_with(word));
    if weight { (ConstantOrigin::Parameter, plain) } else { (ConstantOrigin::Folded, "") }
}

/// Whether a constant in this place is a trained weight, whatever it is called.
pub(super) fn is_trained(op: Op, operand: &str) -> bool {
    match op.category() {
        Category::Compression | Category::Recurrent => true,
        Category::Contraction | Category::Normalization => {
            matches!(operand, "weight" | "bias" | "mean" | "variance")
        }
        _ => false,
    }
}
