//! Values of constants: the numbers that stand in the file, and payloads of the graph.

use std::borrow::Cow;

use super::ir::{Literal, Tensor};
use crate::graph::{Blob, BlobFile, Constant, DType, Payload, Program};

/// Most elements of a constant that is used as a setting (axes, shapes, strides).
const LARGEST_SETTING: u64 = 4096;

/// Where bytes of the input lie: index of its blob file, and the bytes themselves.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Index into [`Program::blob_files`].
    pub file: u32,
    /// All bytes of the input.
    pub bytes: &'a [u8],
}

/// Number of elements; `None` if not static or too many to count.
pub fn elements(tensor: &Tensor<'_>) -> Option<u64> {
    tensor.shape.iter().try_fold(1u64, |n, extent| n.checked_mul((*extent)?))
}

/// The elements of a small constant as numbers.
pub fn numbers(literal: &Literal<'_>, tensor: &Tensor<'_>, input: Input<'_>) -> Option<Vec<f64>> {
    let count = elements(tensor).filter(|&count| count <= LARGEST_SETTING)?;
    let (splat, mut values) = match literal {
        Literal::Numbers { splat, values } => (*splat, values.clone()),
        Literal::Inline { splat, bytes } => {
            let stored = if *splat { 1 } else { count };
            (*splat, decode(bytes, tensor.dtype, stored as usize)?)
        }
        Literal::Resource { place: Some((start, len)), .. } => {
            let bytes = slice(input.bytes, *start, *len)?;
            if len.checked_mul(8)? != count * tensor.dtype.bits() {
                return None;
            }
            (false, decode(bytes, tensor.dtype, count as usize)?)
        }
        Literal::Resource { .. } | Literal::Opaque => return None,
    };
    if splat {
        values.resize(count as usize, *values.first()?);
    }
    (values.len() as u64 == count).then_some(values)
}

fn slice(bytes: &[u8], start: u64, len: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?)
}

/// Decodes elements of a byte or more, and sub-byte ones that take a byte each; `ui1` is packed.
fn decode(bytes: &[u8], dtype: DType, count: usize) -> Option<Vec<f64>> {
    let bits = dtype.bits() as usize;
    if dtype == DType::U1 {
        let bit = |at: usize| Some(f64::from(bytes.get(at / 8)? >> (at % 8) & 1));
        return (0..count).map(bit).collect();
    }
    let width = bits.div_ceil(8);
    if width == 0 || bytes.len() < count.checked_mul(width)? {
        return None;
    }
    let signed = |raw: u64| {
        let unused = 64 - bits as u32;
        ((raw << unused) as i64 >> unused) as f64
    };
    let one = |chunk: &[u8]| -> Option<f64> {
        let mut raw = [0; 8];
        raw.get_mut(..width)?.copy_from_slice(chunk);
        let raw = u64::from_le_bytes(raw);
        Some(match dtype {
            DType::F16 => half::f16::from_bits(raw as u16).to_f64(),
            DType::BF16 => half::bf16::from_bits(raw as u16).to_f64(),
            DType::F32 => f64::from(f32::from_bits(raw as u32)),
            DType::F64 => f64::from_bits(raw),
            DType::Bool => f64::from(u8::from(raw & 0xFF != 0)),
            DType::I2 | DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => signed(raw),
            dtype if dtype.is_int() => (raw & (u64::MAX >> (64 - bits as u32))) as f64,
            _ => return None,
        })
    };
    bytes.chunks_exact(width).take(count).map(one).collect()
}

/// The payload of a constant in the graph.
pub fn payload(
    program: &mut Program,
    literal: &Literal<'_>,
    tensor: &Tensor<'_>,
    input: Input<'_>,
) -> Payload {
    let count = elements(tensor);
    if let Literal::Inline { splat: true, bytes } = literal {
        let value = decode(bytes, tensor.dtype, 1).and_then(|values| values.first().copied());
        return value.map_or(Payload::Unknown, Payload::Splat);
    }
    if let Literal::Numbers { splat, values } = literal {
        return match (splat, values.first()) {
            (true, Some(&value)) => Payload::Splat(value),
            _ if values.len() <= Constant::INLINE => Payload::Values(values.as_slice().into()),
            _ => Payload::Unknown,
        };
    }
    if count.is_some_and(|count| count <= Constant::INLINE as u64)
        && let Some(values) = numbers(literal, tensor, input)
    {
        return Payload::Values(values.into());
    }
    let packed = |len: u64| {
        let bits = tensor.dtype.bits();
        bits > 0 && count.is_some_and(|n| n.checked_mul(bits).is_some_and(|n| n.div_ceil(8) == len))
    };
    match literal {
        Literal::Inline { bytes, .. } if packed(bytes.len() as u64) => match bytes {
            Cow::Borrowed(bytes) => {
                // A borrowed slice lies in the input: its offset is what the addresses differ by.
                let offset = (bytes.as_ptr() as usize).wrapping_sub(input.bytes.as_ptr() as usize);
                if offset > input.bytes.len() {
                    return Payload::Unknown;
                }
                let (offset, len) = (offset as u64, bytes.len() as u64);
                Payload::Blob(Blob { file: input.file, offset, len })
            }
            Cow::Owned(bytes) => {
                program.blob_files.push(BlobFile::Bytes(bytes.clone().into()));
                let file = program.blob_files.len() as u32 - 1;
                Payload::Blob(Blob { file, offset: 0, len: bytes.len() as u64 })
            }
        },
        Literal::Resource { place: Some((offset, len)), .. } if packed(*len) => {
            Payload::Blob(Blob { file: input.file, offset: *offset, len: *len })
        }
        _ => Payload::Unknown,
    }
}
