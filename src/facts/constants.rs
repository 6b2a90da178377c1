//! What constants hold, within what may be read: small ones always, masks up to a budget a file,
//! parameters only when asked.
//!
//! One pass over the bytes gives the whole tensor's summary and, for a tensor whose last two extents
//! (ones left out) are equal, a summary each of what lies above, on and below the diagonal: that
//! tells which way a causal mask lies.

use std::io::{Read, Seek, SeekFrom};

use super::Facts;
use crate::graph::{
    Blob, BlobFile, ConstantId, ConstantOrigin, DType, Payload, Program, ValueSummary,
};

/// Constants of at most this many bytes are always read (semantics §3).
pub const ALWAYS_READ: u64 = 4 << 10;
/// Bytes of larger constants that reach a mask that are read, a file in all (semantics §3).
pub const MASK_BUDGET: u64 = 64 << 20;
/// Most elements given one by one.
pub const MOST_ELEMENTS: u64 = 1 << 16;

/// What one look at a constant's bytes found.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantScan {
    /// Every element.
    pub summary: ValueSummary,
    /// By the diagonal, for a square tensor.
    pub square: Option<SquareScan>,
}

/// A square tensor by its diagonal; leading axes are taken together.
#[derive(Debug, Clone, PartialEq)]
pub struct SquareScan {
    /// Axis of the rows.
    pub row: usize,
    /// Axis of the columns.
    pub column: usize,
    /// Elements whose column is greater than their row.
    pub above: ValueSummary,
    /// Elements on the diagonal.
    pub diagonal: ValueSummary,
    /// Elements whose column is less than their row.
    pub below: ValueSummary,
}

/// Reads one constant whole, whatever its size; `None` if the bytes are not there, are of a type
/// that is not decoded (packed below a byte, f8, complex), or are fewer than the shape asks.
pub(super) fn scan(program: &Program, id: ConstantId) -> Option<ConstantScan> {
    let constant = program.constant(id);
    let shape = program.shapes.get(constant.shape);
    let elements = shape.elements()?;
    let dims: Vec<u64> = shape.dims()?.iter().filter_map(|dim| dim.value()).collect();
    let mut collector = Collector::new(&dims);
    match &constant.payload {
        Payload::Splat(value) => {
            let mut one = ValueSummary::default();
            one.add(*value);
            let summary = scaled(one, elements);
            return (elements > 0).then_some(ConstantScan { summary, square: None });
        }
        Payload::Values(values) => values.iter().for_each(|&value| collector.add(value)),
        Payload::Blob(blob) => {
            for_each_element(program, *blob, constant.dtype, elements, |value| {
                collector.add(value);
            })?;
        }
        Payload::Text(_) | Payload::Unknown => return None,
    }
    Some(collector.finish())
}

/// The elements of a constant in row-major order, if there are at most [`MOST_ELEMENTS`].
pub(super) fn elements(program: &Program, id: ConstantId) -> Option<Vec<f64>> {
    let constant = program.constant(id);
    let count = program.elements(id)?;
    if count > MOST_ELEMENTS {
        return None;
    }
    match &constant.payload {
        Payload::Splat(value) => Some(vec![*value; count as usize]),
        Payload::Values(values) => Some(values.to_vec()),
        Payload::Blob(blob) => {
            let mut list = Vec::with_capacity(count as usize);
            for_each_element(program, *blob, constant.dtype, count, |value| list.push(value))?;
            Some(list)
        }
        Payload::Text(_) | Payload::Unknown => None,
    }
}

fn scaled(mut one: ValueSummary, by: u64) -> ValueSummary {
    one.negative_infinities *= by;
    one.positive_infinities *= by;
    one.nans *= by;
    one.elements *= by;
    one
}

/// Sorts elements by the diagonal as they come.
struct Collector {
    whole: ValueSummary,
    /// Row axis, column axis and extent of the square; every axis behind its rows is one or its own.
    square: Option<(usize, usize, u64)>,
    /// Below, on, above.
    parts: [ValueSummary; 3],
    at: u64,
}

impl Collector {
    fn new(dims: &[u64]) -> Collector {
        let mut wide = (0..dims.len()).rev().filter(|&axis| dims[axis] > 1);
        let square = wide.next().zip(wide.next()).and_then(|(column, row)| {
            (dims[row] == dims[column]).then_some((row, column, dims[row]))
        });
        Collector { whole: ValueSummary::default(), square, parts: Default::default(), at: 0 }
    }

    fn add(&mut self, value: f64) {
        self.whole.add(value);
        if let Some((_, _, extent)) = self.square {
            let (row, column) = ((self.at / extent) % extent, self.at % extent);
            let part = match column.cmp(&row) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Greater => 2,
            };
            self.parts[part].add(value);
            self.at += 1;
        }
    }

    fn finish(self) -> ConstantScan {
        let [below, diagonal, above] = self.parts;
        let square =
            self.square.map(|(row, column, ..)| SquareScan { row, column, above, diagonal, below });
        ConstantScan { summary: self.whole, square }
    }
}

/// Decodes `elements` little-endian elements and hands them on in order.
fn for_each_element(
    program: &Program,
    blob: Blob,
    dtype: DType,
    elements: u64,
    mut each: impl FnMut(f64),
) -> Option<()> {
    let (width, decode) = decoder(dtype)?;
    let needed = elements.checked_mul(width as u64)?;
    if needed > blob.len {
        return None;
    }
    match program.blob_files.get(blob.file as usize)? {
        BlobFile::Bytes(bytes) => {
            let start = usize::try_from(blob.offset).ok()?;
            let end = start.checked_add(usize::try_from(needed).ok()?)?;
            bytes.get(start..end)?.chunks_exact(width).for_each(|raw| each(decode(raw)));
        }
        BlobFile::Path(path) => {
            let mut file = std::fs::File::open(path).ok()?;
            file.seek(SeekFrom::Start(blob.offset)).ok()?;
            let mut left = needed;
            // A multiple of every width.
            let mut buffer = vec![0u8; 64 << 10];
            while left > 0 {
                let take = left.min(buffer.len() as u64) as usize;
                let part = buffer.get_mut(..take)?;
                file.read_exact(part).ok()?;
                part.chunks_exact(width).for_each(|raw| each(decode(raw)));
                left -= take as u64;
            }
        }
        BlobFile::Missing(_) => return None,
    }
    Some(())
}

/// Reads one little-endian element.
type Decode = fn(&[u8]) -> f64;

/// Bytes an element takes, and how to read one.
fn decoder(dtype: DType) -> Option<(usize, Decode)> {
    fn array<const N: usize>(raw: &[u8]) -> [u8; N] {
        // `chunks_exact` hands over exactly the width; zeros would only show a slip in this table.
        raw.try_into().unwrap_or([0; N])
    }
    Some(match dtype {
        DType::F16 => (2, |raw| half::f16::from_le_bytes(array(raw)).to_f64()),
        DType::BF16 => (2, |raw| half::bf16::from_le_bytes(array(raw)).to_f64()),
        DType::F32 => (4, |raw| f64::from(f32::from_le_bytes(array(raw)))),
        DType::F64 => (8, |raw| f64::from_le_bytes(array(raw))),
        DType::I8 => (1, |raw| f64::from(i8::from_le_bytes(array(raw)))),
        DType::I16 => (2, |raw| f64::from(i16::from_le_bytes(array(raw)))),
        DType::I32 => (4, |raw| f64::from(i32::from_le_bytes(array(raw)))),
        DType::I64 => (8, |raw| i64::from_le_bytes(array(raw)) as f64),
        DType::U8 => (1, |raw| f64::from(u8::from_le_bytes(array(raw)))),
        DType::Bool => (1, |raw| f64::from(u8::from(raw.first().is_some_and(|&b| b != 0)))),
        DType::U16 => (2, |raw| f64::from(u16::from_le_bytes(array(raw)))),
        DType::U32 => (4, |raw| f64::from(u32::from_le_bytes(array(raw)))),
        DType::U64 => (8, |raw| u64::from_le_bytes(array(raw)) as f64),
        _ => return None,
    })
}

/// Which constants may be read, by id. Deterministic: the mask budget is spent in id order.
pub(super) fn readable(facts: &Facts<'_>) -> Vec<bool> {
    let program = facts.program();
    let mut may = vec![false; program.constants.len()];
    let mut masks = vec![false; program.constants.len()];
    super::masks::mark_constants(facts, &mut masks);
    let mut left = MASK_BUDGET;
    for (id, constant) in program.constants.iter().enumerate() {
        let bytes = match &constant.payload {
            Payload::Splat(_) | Payload::Values(_) => 0,
            Payload::Blob(blob) => blob.len,
            Payload::Text(_) | Payload::Unknown => continue,
        };
        let parameter = constant.origin == ConstantOrigin::Parameter;
        may[id] = bytes <= ALWAYS_READ || facts.options().scan_weights;
        if !may[id] && !parameter && masks[id] && bytes <= left {
            left -= bytes;
            may[id] = true;
        }
    }
    may
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::graph::{Constant, Format, Name};

    fn program_with(dtype: DType, dims: &[u64], bytes: Vec<u8>) -> Program {
        let mut program = Program::new("mask.pt2".into(), Format::Pt2);
        let shape = program.shapes.intern_static(dims);
        let len = bytes.len() as u64;
        program.blob_files.push(BlobFile::Bytes(bytes.into()));
        program.add_constant(Constant {
            dtype,
            shape,
            origin: ConstantOrigin::Buffer,
            fqn: Name::EMPTY,
            payload: Payload::Blob(Blob { file: 0, offset: 0, len }),
        });
        program
    }

    /// A causal mask as bytes: −inf where the column is greater than the row.
    fn causal_f16(n: u16) -> Vec<u8> {
        (0..n)
            .flat_map(|row| (0..n).map(move |column| if column > row { 0xFC00u16 } else { 0 }))
            .flat_map(u16::to_le_bytes)
            .collect()
    }

    #[test]
    fn a_causal_mask_shows_its_triangle() {
        let program = program_with(DType::F16, &[1, 4, 1, 4], causal_f16(4));
        let scan = scan(&program, ConstantId(0)).unwrap();
        assert_eq!(scan.summary.negative_infinities, 6);
        assert_eq!(scan.summary.elements, 16);
        let square = scan.square.unwrap();
        assert_eq!((square.row, square.column), (1, 3));
        assert_eq!(square.above.negative_infinities, 6);
        assert_eq!(square.below.negative_infinities + square.diagonal.negative_infinities, 0);
    }

    #[test]
    fn a_truncated_payload_is_not_read() {
        let mut bytes = causal_f16(4);
        bytes.pop();
        assert_eq!(scan(&program_with(DType::F16, &[4, 4], bytes), ConstantId(0)), None);
    }

    #[test]
    fn a_mask_in_a_file_beside_the_graph_reads_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weight_0");
        std::fs::write(&path, causal_f16(16)).unwrap();
        let mut program = program_with(DType::F16, &[16, 16], causal_f16(16));
        let inside = scan(&program, ConstantId(0)).unwrap();
        program.blob_files[0] = BlobFile::Path(path.into());
        assert_eq!(scan(&program, ConstantId(0)).unwrap(), inside);
    }

    #[test]
    fn a_nan_mask_counts_its_nans() {
        let bytes = [0x7E00u16; 9].iter().flat_map(|x| x.to_le_bytes()).collect();
        let scan = scan(&program_with(DType::F16, &[3, 3], bytes), ConstantId(0)).unwrap();
        assert_eq!((scan.summary.nans, scan.summary.min), (9, None));
    }
}
