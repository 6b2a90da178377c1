//! How fast an ML Program is read, how much memory an op takes at the peak, and that the size of the
//! weights does not matter: the same program beside 2 MB and beside 2 GB of them.
//!
//! `cargo bench --bench coreml [OPS…]`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anelint::readers::{ReadOptions, read};

/// Counts live bytes and their peak.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

#[allow(unsafe_code)]
// SAFETY: every call is handed to the system allocator unchanged; the counters do not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A message under construction.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    fn number(mut self, field: u64, n: u64) -> Message {
        self.varint(field << 3);
        self.varint(n);
        self
    }
    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
    fn with(self, field: u64, inner: Message) -> Message {
        self.bytes(field, &inner.0)
    }
}

fn new() -> Message {
    Message::default()
}

/// f16 tensor type.
fn tensor(dims: &[u64]) -> Message {
    let tensor = new().number(1, 10).number(2, dims.len() as u64);
    let tensor = dims
        .iter()
        .fold(tensor, |tensor, &dim| tensor.with(3, new().with(1, new().number(1, dim))));
    new().with(1, tensor)
}

fn entry(key: &str, value: Message) -> Message {
    new().bytes(1, key.as_bytes()).with(2, value)
}

fn text(text: &str) -> Message {
    let ty = new().with(1, new().number(1, 2));
    let strings = new().with(4, new().bytes(1, text.as_bytes()));
    new().with(2, ty).with(3, new().with(1, strings))
}

const WIDTH: u64 = 64;
const WEIGHT: u64 = WIDTH * WIDTH * 2;

/// A chain of `linear` and `relu`: half of the ops with a weight of their own in the weight file.
fn model(ops: u64) -> Vec<u8> {
    let ty = tensor(&[1, 16, WIDTH]);
    let mut block = new();
    let mut last = "x".to_owned();
    let named = |name: &str| new().with(1, new().bytes(1, name.as_bytes()));
    for at in 0..ops / 2 {
        let (weight, linear, relu) = (
            format!("p_layers_{at}_fc_weight_to_fp16"),
            format!("linear_{at}_cast_fp16"),
            format!("relu_{at}_cast_fp16"),
        );
        let matrix = tensor(&[WIDTH, WIDTH]);
        let file =
            new().bytes(1, b"@model_path/weights/weight.bin").number(2, at % 1000 * (WEIGHT + 64));
        let constant = new()
            .bytes(1, b"const")
            .with(3, new().bytes(1, weight.as_bytes()).with(2, matrix.clone()))
            .with(5, entry("name", text(&weight)))
            .with(5, entry("val", new().with(2, matrix).with(5, file)));
        let product = new()
            .bytes(1, b"linear")
            .with(2, entry("x", named(&last)))
            .with(2, entry("weight", named(&weight)))
            .with(3, new().bytes(1, linear.as_bytes()).with(2, ty.clone()))
            .with(5, entry("name", text(&linear)));
        let activation = new()
            .bytes(1, b"relu")
            .with(2, entry("x", named(&linear)))
            .with(3, new().bytes(1, relu.as_bytes()).with(2, ty.clone()))
            .with(5, entry("name", text(&relu)));
        block = block.with(3, constant).with(3, product).with(3, activation);
        last = relu;
    }
    block = block.bytes(2, last.as_bytes());
    let input = new().bytes(1, b"x").with(2, ty);
    let function = new().with(1, input).bytes(2, b"CoreML8").with(3, entry("CoreML8", block));
    let program = new().number(1, 1).with(2, entry("main", function));
    new().number(1, 9).with(2, new()).with(502, program).0
}

/// A package of the model, its weight file `size` bytes long (holes take no room on the disk).
fn package(folder: &Path, model: &[u8], size: u64) {
    let data = folder.join("Data/com.apple.CoreML");
    std::fs::create_dir_all(data.join("weights")).unwrap();
    std::fs::write(
        folder.join("Manifest.json"),
        r#"{"itemInfoEntries": {"m": {"path": "com.apple.CoreML/model.mlmodel"}}, "rootModelIdentifier": "m"}"#,
    )
    .unwrap();
    std::fs::write(data.join("model.mlmodel"), model).unwrap();
    let mut weights = std::fs::File::create(data.join("weights/weight.bin")).unwrap();
    weights.set_len(size).unwrap();
    for at in (0..1000 * (WEIGHT + 64)).step_by((WEIGHT + 64) as usize) {
        let mut header = [0u8; 64];
        header[..4].copy_from_slice(&0xDEAD_BEEFu32.to_le_bytes());
        header[4..8].copy_from_slice(&1u32.to_le_bytes());
        header[8..16].copy_from_slice(&WEIGHT.to_le_bytes());
        header[16..24].copy_from_slice(&(at + 64).to_le_bytes());
        weights.seek(SeekFrom::Start(at)).unwrap();
        weights.write_all(&header).unwrap();
    }
}

/// Median of five, and the peak of live memory above what was live before.
fn measure(path: &Path) -> (Duration, usize) {
    let mut times = Vec::new();
    let mut peak = 0;
    for _ in 0..5 {
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let start = Instant::now();
        let program = black_box(read(path, ReadOptions::default()).unwrap());
        times.push(start.elapsed());
        assert!(program.notes.is_empty(), "{:?}", program.notes);
        peak = PEAK.load(Ordering::Relaxed) - before;
    }
    times.sort();
    (times[2], peak)
}

fn main() {
    let asked: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![1_000, 20_000, 100_000] } else { asked };
    println!(
        "{:>8} {:>10} {:>10} {:>8} {:>10} {:>9}",
        "ops", "model", "read", "µs/op", "peak", "bytes/op"
    );
    for ops in sizes {
        let dir = tempfile::tempdir().unwrap();
        let model = model(ops);
        let (small, big) = (dir.path().join("small.mlpackage"), dir.path().join("big.mlpackage"));
        package(&small, &model, 1001 * (WEIGHT + 64));
        package(&big, &model, 2 << 30);
        let (time, peak) = measure(&small);
        println!(
            "{ops:>8} {:>7.1} MB {:>7.1} ms {:>8.2} {:>7.1} MB {:>9}",
            model.len() as f64 / 1e6,
            time.as_secs_f64() * 1e3,
            time.as_secs_f64() * 1e6 / ops as f64,
            peak as f64 / 1e6,
            peak as u64 / ops
        );
        let (with_big, _) = measure(&big);
        println!(
            "         2 GB of weights in place of {} MB: × {:.2}",
            (1001 * (WEIGHT + 64)) >> 20,
            with_big.as_secs_f64() / time.as_secs_f64()
        );
    }
}
