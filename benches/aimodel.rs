//! Reads a Core AI asset of 1 GB with 110,000 stored ops: real op records of an exported decoder,
//! repeated in one `main.mlirb` whose resource section is a hole. Prints CPU time, peak memory and the
//! ratio over the bytes outside the resource section.
//!
//! `cargo bench --bench aimodel` runs it; `-- PATH` keeps the generated asset in the folder PATH.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anelint::readers::{ReadOptions, read};

const STORED_OPS: usize = 110_000;
const RESOURCE: u64 = 1 << 30;
const SOURCE: &str = "testdata/cases/out/clean_decoder.aimodel";

fn main() {
    let kept = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let scratch = tempfile::tempdir().unwrap();
    let folder = kept.map_or_else(|| scratch.path().join("big.aimodel"), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCE).join("main.mlirb");
    let made = generate(&std::fs::read(source).unwrap(), &folder.join("main.mlirb"));
    println!(
        "{} stored ops ({} outside reference bodies), {} bytes, {} of them outside the resources",
        made.stored, made.printed, made.bytes, made.outside
    );
    let mut times: Vec<u64> = (0..5)
        .map(|_| {
            let before = cpu();
            let program = read(&folder, ReadOptions::default()).unwrap();
            let spent = cpu() - before;
            assert!(program.functions.iter().map(|f| f.len()).sum::<usize>() > made.printed / 2);
            spent
        })
        .collect();
    times.sort_unstable();
    let bytes = std::fs::read(folder.join("main.mlirb").with_file_name("outside")).unwrap();
    let mut sums: Vec<u64> = (0..5)
        .map(|_| {
            let before = cpu();
            let sum = bytes.iter().fold(0u64, |sum, &byte| sum.rotate_left(5) ^ u64::from(byte));
            std::hint::black_box(sum);
            cpu() - before
        })
        .collect();
    sums.sort_unstable();
    println!("read: {:.1} ms CPU (median of five)", times[2] as f64 / 1e6);
    println!("one walk over the bytes outside the resources: {:.1} ms", sums[2] as f64 / 1e6);
    println!("ratio: {:.2}", times[2] as f64 / sums[2].max(1) as f64);
    println!("per byte outside the resources: {:.1} ns", times[2] as f64 / made.outside as f64);
    for line in std::fs::read_to_string("/proc/self/status").unwrap_or_default().lines() {
        if line.starts_with("VmHWM") || line.starts_with("RssAnon") {
            println!("{line}");
        }
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

struct Made {
    stored: usize,
    printed: usize,
    bytes: u64,
    outside: u64,
}

/// A reader of the primitives of MLIR bytecode.
#[derive(Clone, Copy)]
struct In<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> In<'a> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }
    fn varint(&mut self) -> u64 {
        let first = self.byte();
        let extra = (first.trailing_zeros().min(8)) as usize;
        if extra == 0 {
            return u64::from(first >> 1);
        }
        let mut value = [0; 8];
        if extra == 8 {
            value.copy_from_slice(self.take(8));
            return u64::from_le_bytes(value);
        }
        value[0] = first;
        value[1..=extra].copy_from_slice(self.take(extra));
        u64::from_le_bytes(value) >> (extra + 1)
    }
    fn take(&mut self, len: usize) -> &'a [u8] {
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }
    /// Id, alignment and payload of a section.
    fn section(&mut self) -> (u8, u64, &'a [u8]) {
        let id = self.byte();
        let len = self.varint() as usize;
        let mut alignment = 0;
        if id & 0x80 != 0 {
            alignment = self.varint();
            while !(self.at as u64).is_multiple_of(alignment) {
                self.at += 1;
            }
        }
        (id & 0x7F, alignment, self.take(len))
    }
}

fn varint(out: &mut Vec<u8>, value: u64) {
    let bits = (64 - value.leading_zeros()).max(1) as usize;
    let len = bits.div_ceil(7);
    if len > 8 {
        out.push(0);
        out.extend(value.to_le_bytes());
        return;
    }
    let coded = (value << len) | (1 << (len - 1));
    out.extend(&coded.to_le_bytes()[..len]);
}

fn section(out: &mut Vec<u8>, id: u8, payload: &[u8]) {
    out.push(id);
    varint(out, payload.len() as u64);
    out.extend(payload);
}

/// One op record, taken apart as far as repeating it needs.
struct Record<'a> {
    /// Name to location, attributes, properties and results.
    head: &'a [u8],
    mask: u8,
    results: u64,
    operands: Vec<u64>,
    /// Regions.
    tail: &'a [u8],
    /// Ops inside its regions.
    inner: usize,
}

fn record<'a>(input: &mut In<'a>) -> Record<'a> {
    let start = input.at;
    input.varint();
    let mask = input.byte();
    input.varint();
    if mask & 1 != 0 {
        input.varint();
    }
    if mask & 0x40 != 0 {
        input.varint();
    }
    let mut results = 0;
    if mask & 2 != 0 {
        results = input.varint();
        for _ in 0..results {
            input.varint();
        }
    }
    let head = &input.bytes[start..input.at];
    let mut operands = Vec::new();
    if mask & 4 != 0 {
        for _ in 0..input.varint() {
            operands.push(input.varint());
        }
    }
    assert_eq!(mask & 0x28, 0, "no successors or use lists in a saved asset");
    let tail_start = input.at;
    let mut inner = 0;
    if mask & 0x10 != 0 {
        let flagged = input.varint();
        assert_eq!(flagged & 1, 1, "regions of the source are isolated");
        let (_, _, body) = input.section();
        let mut body = In { bytes: body, at: 0 };
        for _ in 0..flagged >> 1 {
            inner += region(&mut body);
        }
    }
    Record { head, mask, results, operands, tail: &input.bytes[tail_start..input.at], inner }
}

/// Counts the ops of a region, nested ones included.
fn region(input: &mut In<'_>) -> usize {
    let mut ops = 0;
    let blocks = input.varint();
    if blocks > 0 {
        input.varint();
    }
    for _ in 0..blocks {
        let (count, _) = block(input);
        for _ in 0..count {
            ops += 1 + record(input).inner;
        }
    }
    ops
}

/// Header of a block: number of ops, and of arguments.
fn block(input: &mut In<'_>) -> (u64, u64) {
    let flagged = input.varint();
    let mut arguments = 0;
    if flagged & 1 == 1 {
        arguments = input.varint();
        for _ in 0..arguments {
            if input.varint() & 1 == 1 {
                input.varint();
            }
        }
        assert_eq!(input.byte(), 0, "no use lists in a saved asset");
    }
    (flagged >> 1, arguments)
}

fn generate(source: &[u8], path: &Path) -> Made {
    let mut input = In { bytes: source, at: 4 };
    input.varint();
    while input.byte() != 0 {}
    let mut out = source[..input.at].to_vec();
    let mut sections = Vec::new();
    while input.at < source.len() {
        sections.push(input.section());
    }
    let (mut stored, mut printed) = (0, 0);
    let mut hole = (0, 0);
    for (id, alignment, payload) in sections {
        match id {
            4 => {
                let ir = repeat(payload, &mut stored, &mut printed);
                section(&mut out, 4, &ir);
            }
            6 => {
                // One more group with one more blob, under a key that exists.
                let mut offsets = payload.to_vec();
                varint(&mut offsets, 0);
                varint(&mut offsets, 1);
                varint(&mut offsets, 0);
                varint(&mut offsets, blob_header().len() as u64 + RESOURCE);
                offsets.push(0);
                section(&mut out, 6, &offsets);
            }
            5 => {
                let header = blob_header();
                out.push(5 | 0x80);
                varint(&mut out, (payload.len() + header.len()) as u64 + RESOURCE);
                varint(&mut out, alignment);
                while !(out.len() as u64).is_multiple_of(alignment) {
                    out.push(0xCB);
                }
                let start = out.len();
                out.extend(payload);
                out.extend(header);
                hole = (out.len(), out.len() - start);
            }
            _ => section(&mut out, id, payload),
        }
    }
    assert!(hole.0 > 0, "the source has resources");
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&out[..hole.0]).unwrap();
    file.seek(SeekFrom::Current(RESOURCE as i64)).unwrap();
    file.write_all(&out[hole.0..]).unwrap();
    let mut outside = out[..hole.0 - hole.1].to_vec();
    outside.extend(&out[hole.0..]);
    std::fs::write(path.with_file_name("outside"), &outside).unwrap();
    Made { stored, printed, bytes: out.len() as u64 + RESOURCE, outside: outside.len() as u64 }
}

fn blob_header() -> Vec<u8> {
    let mut header = Vec::new();
    varint(&mut header, 1);
    varint(&mut header, RESOURCE);
    header
}

/// The IR with the ops of its largest graph repeated.
fn repeat(ir: &[u8], stored: &mut usize, printed: &mut usize) -> Vec<u8> {
    let mut input = In { bytes: ir, at: 0 };
    block(&mut input);
    let top = input.at;
    let asset_start = input.at;
    let asset = record(&mut input);
    let _ = asset_start;
    let mut tail = In { bytes: asset.tail, at: 0 };
    let regions = tail.varint();
    let (_, _, body) = tail.section();
    let mut body = In { bytes: body, at: 0 };
    let (blocks, values) = (body.varint(), body.varint());
    let (count, _) = block(&mut body);
    let mut graphs = Vec::new();
    for _ in 0..count {
        let start = body.at;
        let graph = record(&mut body);
        graphs.push((graph, &body.bytes[start..body.at]));
    }
    let largest = (0..graphs.len()).max_by_key(|&at| graphs[at].0.inner).unwrap();
    let others: usize = graphs.iter().map(|(graph, _)| graph.inner + 1).sum();
    let copies = STORED_OPS.saturating_sub(others) / graphs[largest].0.inner + 1;
    let mut inside = Vec::new();
    varint(&mut inside, blocks);
    varint(&mut inside, values);
    varint(&mut inside, count << 1);
    for (at, (graph, raw)) in graphs.iter().enumerate() {
        *stored += 1;
        if at != largest {
            inside.extend(*raw);
            *stored += graph.inner;
            continue;
        }
        inside.extend(graph.head);
        let mut tail = In { bytes: graph.tail, at: 0 };
        let flagged = tail.varint();
        let (_, _, body) = tail.section();
        varint(&mut inside, flagged);
        let body = repeat_body(body, copies, stored, printed);
        section(&mut inside, 4, &body);
    }
    let mut out = ir[..top].to_vec();
    out.extend(asset.head);
    varint(&mut out, regions);
    section(&mut out, 4, &inside);
    *stored += 1;
    out
}

fn repeat_body(body: &[u8], copies: usize, stored: &mut usize, printed: &mut usize) -> Vec<u8> {
    let mut input = In { bytes: body, at: 0 };
    let blocks = input.varint();
    assert_eq!(blocks, 1);
    input.varint();
    let header = input.at;
    let (count, arguments) = block(&mut input);
    let mut after_count = In { bytes: body, at: header };
    after_count.varint();
    let arguments_raw = &body[after_count.at..input.at];
    let records: Vec<Record<'_>> = (0..count).map(|_| record(&mut input)).collect();
    let results: u64 = records.iter().map(|record| record.results).sum();
    let (last, repeated) = records.split_last().unwrap();
    let mut out = Vec::new();
    varint(&mut out, 1);
    varint(&mut out, arguments + results * copies as u64);
    let ops = repeated.len() as u64 * copies as u64 + 1;
    varint(&mut out, ops << 1 | u64::from(arguments > 0));
    out.extend(arguments_raw);
    let mut emit = |record: &Record<'_>, copy: u64| {
        out.extend(record.head);
        if record.mask & 4 != 0 {
            varint(&mut out, record.operands.len() as u64);
            for &operand in &record.operands {
                let moved = if operand < arguments { operand } else { operand + copy * results };
                varint(&mut out, moved);
            }
        }
        out.extend(record.tail);
        *stored += 1 + record.inner;
        *printed += 1;
    };
    for copy in 0..copies as u64 {
        repeated.iter().for_each(|record| emit(record, copy));
    }
    emit(last, copies as u64 - 1);
    out
}
