//! Tensors of the file: a walk over one message that copies no payload.
//!
//! Numbers come in three ways: as raw little-endian bytes, packed in a field of their kind, or, rarely,
//! with a tag before each. The first two stay slices of the file.

use bytes::{Buf, Bytes};
use prost::DecodeError;
use prost::Message;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, fixed32, fixed64, skip_field,
};

use super::wire::proto;
use crate::graph::DType;

/// A tensor as stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Tensor {
    pub name: String,
    pub dims: Vec<i64>,
    pub dtype: DType,
    pub data: Data,
    /// Whether the payload lies in a file of its own.
    pub outside: bool,
    /// Key and value of its place there.
    pub external: Vec<(String, String)>,
}

/// Where the elements are.
#[derive(Debug, Clone, Default)]
pub(super) enum Data {
    #[default]
    None,
    /// Little endian, row-major, packed.
    Raw(Bytes),
    /// Variable-length integers: values, or bit patterns of the narrow floats.
    Varints(Bytes),
    Texts(Vec<Bytes>),
}

/// Bytes of fields that are spread over several pieces.
#[derive(Default)]
struct Pieces {
    first: Option<Bytes>,
    rest: Vec<u8>,
}

impl Pieces {
    fn push(&mut self, piece: Bytes) {
        match &self.first {
            None => self.first = Some(piece),
            Some(_) => self.rest.extend_from_slice(&piece),
        }
    }

    fn take(self) -> Option<Bytes> {
        let first = self.first?;
        if self.rest.is_empty() {
            return Some(first);
        }
        let mut all = first.to_vec();
        all.extend_from_slice(&self.rest);
        Some(all.into())
    }
}

/// Reads a tensor message.
///
/// # Errors
/// [`DecodeError`] if it is no message.
pub(super) fn read(mut bytes: Bytes) -> Result<Tensor, DecodeError> {
    let context = DecodeContext::default;
    let mut tensor = Tensor::default();
    let (mut raw, mut fixed, mut varints) =
        (Pieces::default(), Pieces::default(), Pieces::default());
    let mut texts = Vec::new();
    while bytes.has_remaining() {
        let (tag, wire) = decode_key(&mut bytes)?;
        match (tag, wire) {
            (1, WireType::Varint) => tensor.dims.push(decode_varint(&mut bytes)? as i64),
            (1, WireType::LengthDelimited) => {
                let mut run = piece(&mut bytes)?;
                while run.has_remaining() {
                    tensor.dims.push(decode_varint(&mut run)? as i64);
                }
            }
            (2, WireType::Varint) => {
                tensor.dtype = super::types::dtype(decode_varint(&mut bytes)? as i64);
            }
            (4 | 10, WireType::LengthDelimited) => fixed.push(piece(&mut bytes)?),
            (4, WireType::ThirtyTwoBit) => {
                let mut number = 0u32;
                fixed32::merge(wire, &mut number, &mut bytes, context())?;
                fixed.push(Bytes::copy_from_slice(&number.to_le_bytes()));
            }
            (10, WireType::SixtyFourBit) => {
                let mut number = 0u64;
                fixed64::merge(wire, &mut number, &mut bytes, context())?;
                fixed.push(Bytes::copy_from_slice(&number.to_le_bytes()));
            }
            (5 | 7 | 11, WireType::LengthDelimited) => varints.push(piece(&mut bytes)?),
            (5 | 7 | 11, WireType::Varint) => {
                let number = decode_varint(&mut bytes)?;
                let mut again = Vec::new();
                prost::encoding::encode_varint(number, &mut again);
                varints.push(again.into());
            }
            (6, WireType::LengthDelimited) => texts.push(piece(&mut bytes)?),
            (8, WireType::LengthDelimited) => tensor.name = text(&piece(&mut bytes)?),
            (9, WireType::LengthDelimited) => raw.push(piece(&mut bytes)?),
            (13, WireType::LengthDelimited) => {
                let entry = proto::StringEntry::decode(piece(&mut bytes)?)?;
                tensor.external.push((text(&entry.key), text(&entry.value)));
            }
            (14, WireType::Varint) => {
                tensor.outside = decode_varint(&mut bytes)? == 1;
            }
            _ => skip_field(wire, tag, &mut bytes, context())?,
        }
    }
    tensor.data = if let Some(raw) = raw.take() {
        Data::Raw(raw)
    } else if let Some(fixed) = fixed.take() {
        Data::Raw(fixed)
    } else if let Some(varints) = varints.take() {
        Data::Varints(varints)
    } else if !texts.is_empty() {
        Data::Texts(texts)
    } else {
        Data::None
    };
    Ok(tensor)
}

impl Tensor {
    /// The dims as sizes; `None` if one is negative.
    pub fn sizes(&self) -> Option<Vec<u64>> {
        self.dims.iter().map(|&n| u64::try_from(n).ok()).collect()
    }

    /// Number of elements; `None` if a dim is negative or the product does not fit.
    pub fn elements(&self) -> Option<u64> {
        self.sizes()?.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim))
    }

    /// The elements as numbers, if there are at most `limit` and the file holds all of them.
    pub fn numbers(&self, limit: usize) -> Option<Vec<f64>> {
        let count = self.elements()?;
        if count > limit as u64 {
            return None;
        }
        let list = match &self.data {
            Data::Raw(bytes) => {
                crate::readers::mil::raw_numbers(self.dtype, bytes, Some(count), limit)?
            }
            Data::Varints(bytes) => {
                let list = crate::readers::coreml::packed::varints(bytes, limit);
                if self.is_bit_pattern() {
                    let packed = pack(self.dtype, &list)?;
                    crate::readers::mil::raw_numbers(self.dtype, &packed, Some(count), limit)?
                } else {
                    list.into_iter().map(|n| n as f64).collect()
                }
            }
            Data::None if count == 0 => Vec::new(),
            Data::None | Data::Texts(_) => return None,
        };
        (list.len() as u64 == count).then_some(list)
    }

    /// Whether the integers of the message are bits of narrower elements, not values.
    pub fn is_bit_pattern(&self) -> bool {
        self.dtype.is_float() || self.dtype.bits() < 8
    }
}

/// The name in a piece of text; what is no UTF-8 is replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn piece(bytes: &mut Bytes) -> Result<Bytes, DecodeError> {
    let mut piece = Bytes::new();
    let context = DecodeContext::default();
    prost::encoding::bytes::merge(WireType::LengthDelimited, &mut piece, bytes, context)?;
    Ok(piece)
}

/// Integers as little-endian elements of a type. Elements below a byte come several in one integer.
pub(super) fn pack(dtype: DType, list: &[i64]) -> Option<Vec<u8>> {
    let width = match dtype {
        DType::Bool => 1,
        dtype => dtype.bits().div_ceil(8) as usize,
    };
    if !matches!(width, 1 | 2 | 4 | 8) {
        return None;
    }
    let mut bytes = Vec::with_capacity(list.len() * width);
    for n in list {
        bytes.extend_from_slice(n.to_le_bytes().get(..width)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn packed_tagged_and_raw_numbers_read_alike() {
        // dims = [2], data_type = FLOAT, then 1.0 and 2.0 in each of the three ways.
        let head = [0x08, 2, 0x10, 1];
        let numbers = [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];
        let packed = [&head[..], &[0x22, 8], &numbers].concat();
        let raw = [&head[..], &[0x4a, 8], &numbers].concat();
        let tagged = [&head[..], &[0x25], &numbers[..4], &[0x25], &numbers[4..]].concat();
        for bytes in [packed, raw, tagged] {
            assert_eq!(read(bytes.into()).unwrap().numbers(8), Some(vec![1.0, 2.0]));
        }
    }

    #[test]
    fn narrow_floats_lie_in_integers_as_bits() {
        // dims = [1], data_type = FLOAT16, int32_data = [0xfc00] (-inf).
        let bytes = [0x08, 1, 0x10, 10, 0x2a, 3, 0x80, 0xf8, 0x03];
        let tensor = read(bytes.to_vec().into()).unwrap();
        assert_eq!(tensor.numbers(8), Some(vec![f64::NEG_INFINITY]));
    }

    #[test]
    fn a_tensor_that_promises_more_than_it_holds_has_no_numbers() {
        let bytes = [0x08, 3, 0x10, 1, 0x4a, 4, 0, 0, 0x80, 0x3f];
        assert_eq!(read(bytes.to_vec().into()).unwrap().numbers(8), None);
    }
}
