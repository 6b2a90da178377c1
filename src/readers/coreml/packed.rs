//! Repeated numbers of the protobuf as slices of the file.
//!
//! In the usual packed encoding the payload is one length-delimited field, kept as [`Bytes`] of the
//! map: a gigabyte of weights costs a handle. The legal but rare unpacked encoding (a tag before every
//! number) and split runs are gathered as further pieces.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, skip_field};

/// Numbers of field 1, in order, as they lie in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Packed<const WIRE: u8> {
    /// Packed runs; nearly always one.
    runs: Vec<Bytes>,
    /// Numbers that came one by one since the last run, packed here.
    loose: Vec<u8>,
}

/// Little-endian `f32`.
pub type PackedFloats = Packed<4>;
/// Little-endian `f64`.
pub type PackedDoubles = Packed<8>;
/// Variable-length integers, booleans too.
pub type PackedVarints = Packed<0>;

impl<const WIRE: u8> Packed<WIRE> {
    /// All bytes in one piece: a slice of the file unless the encoding was unusual.
    pub fn bytes(&self) -> Bytes {
        match (self.runs.as_slice(), self.loose.as_slice()) {
            ([], []) => Bytes::new(),
            ([run], []) => run.clone(),
            (runs, loose) => {
                let mut all = Vec::new();
                runs.iter().for_each(|run| all.extend_from_slice(run));
                all.extend_from_slice(loose);
                all.into()
            }
        }
    }

    fn flush(&mut self) {
        if !self.loose.is_empty() {
            self.runs.push(std::mem::take(&mut self.loose).into());
        }
    }
}

impl<const WIRE: u8> prost::Message for Packed<WIRE> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        prost::encoding::bytes::encode(1, &self.bytes(), buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return skip_field(wire_type, tag, buf, ctx);
        }
        match (wire_type, WIRE) {
            (WireType::LengthDelimited, _) => {
                let mut run = Bytes::new();
                prost::encoding::bytes::merge(wire_type, &mut run, buf, ctx)?;
                self.flush();
                self.runs.push(run);
            }
            (WireType::Varint, 0) => {
                let number = prost::encoding::decode_varint(buf)?;
                prost::encoding::encode_varint(number, &mut self.loose);
            }
            (WireType::ThirtyTwoBit, 4) => {
                let mut number = 0f32;
                prost::encoding::float::merge(wire_type, &mut number, buf, ctx)?;
                self.loose.extend_from_slice(&number.to_le_bytes());
            }
            (WireType::SixtyFourBit, 8) => {
                let mut number = 0f64;
                prost::encoding::double::merge(wire_type, &mut number, buf, ctx)?;
                self.loose.extend_from_slice(&number.to_le_bytes());
            }
            _ => {
                // Let the decoder say it: this wire type cannot hold such a number.
                let mut run = Bytes::new();
                prost::encoding::bytes::merge(wire_type, &mut run, buf, ctx)?;
            }
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        prost::encoding::bytes::encoded_len(1, &self.bytes())
    }

    fn clear(&mut self) {
        self.runs.clear();
        self.loose.clear();
    }
}

/// Decodes at most `limit` packed integers; a cut last number ends the list.
pub fn varints(bytes: &[u8], limit: usize) -> Vec<i64> {
    let mut rest = bytes;
    let mut list = Vec::new();
    while !rest.is_empty() && list.len() < limit {
        match prost::encoding::decode_varint(&mut rest) {
            Ok(number) => list.push(number as i64),
            Err(_) => break,
        }
    }
    list
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use prost::Message;

    #[test]
    fn packed_and_unpacked_read_alike() {
        let packed: &[u8] = &[0x0a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];
        let loose: &[u8] = &[0x0d, 0, 0, 0x80, 0x3f, 0x0d, 0, 0, 0, 0x40];
        let split: &[u8] = &[0x0a, 4, 0, 0, 0x80, 0x3f, 0x0d, 0, 0, 0, 0x40];
        for encoded in [packed, loose, split] {
            let floats = PackedFloats::decode(encoded).unwrap();
            assert_eq!(floats.bytes()[..], packed[2..]);
        }
    }

    #[test]
    fn packed_payload_is_a_slice_of_the_file() {
        let file = Bytes::from_static(&[0x0a, 4, 0, 0, 0x80, 0x3f]);
        let payload = PackedFloats::decode(file.clone()).unwrap().bytes();
        assert_eq!(payload.as_ptr(), file[2..].as_ptr());
    }

    #[test]
    fn integers_one_by_one_and_in_a_run() {
        let loose = PackedVarints::decode(&[0x08, 0x96, 0x01, 0x08, 0x07][..]).unwrap();
        assert_eq!(varints(&loose.bytes(), 10), [150, 7]);
        assert!(PackedVarints::decode(&[0x0d, 1, 2, 3, 4][..]).is_err());
        assert_eq!(varints(&[0x05, 0x80], 10), [5], "a cut number ends the list");
    }
}
