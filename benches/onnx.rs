//! How fast an ONNX model is read, how much memory a node takes at the peak, and that the size of the
//! weights does not matter: the same model beside 2 MB and beside 2 GB of outside data.
//!
//! `cargo bench --bench onnx [NODES…]`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anelint::readers::{ReadOptions, read};

/// Counts live bytes and their peak.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)]
// SAFETY: every call is handed to the system allocator unchanged; the counters do not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
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
    fn text(mut self, field: u64, text: &str) -> Message {
        self.varint(field << 3 | 2);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }
    fn with(mut self, field: u64, inner: &Message) -> Message {
        self.varint(field << 3 | 2);
        self.varint(inner.0.len() as u64);
        self.0.extend_from_slice(&inner.0);
        self
    }
}

fn new() -> Message {
    Message::default()
}

const WIDTH: u64 = 1024;
const WEIGHT: u64 = WIDTH * WIDTH * 4;

/// A chain of products and activations, half of the nodes with a weight of their own in `file`, which has
/// room for `weights` of them; traces as torch writes them.
fn model(nodes: u64, file: &str, weights: u64) -> Vec<u8> {
    let shape = new().with(1, &new().number(1, 16)).with(1, &new().number(1, WIDTH));
    let ty = new().with(1, &new().number(1, 1).with(2, &shape));
    let value = |name: &str| new().text(1, name).with(2, &ty);
    let entry = |key: &str, value: &str| new().text(1, key).text(2, value);
    let mut graph = new();
    let mut last = "x".to_owned();
    for at in 0..nodes / 2 {
        let (weight, product, relu) =
            (format!("layers.{at}.fc.weight"), format!("matmul_{at}"), format!("relu_{at}"));
        let trace = format!(
            "File \"model.py\", line {}, in forward\n    x = F.relu(self.layers[{at}](x))",
            at % 500 + 1
        );
        let metadata = entry("pkg.torch.onnx.stack_trace", &trace);
        let tensor = new()
            .number(1, WIDTH)
            .number(1, WIDTH)
            .number(2, 1)
            .text(8, &weight)
            .with(13, &entry("location", file))
            .with(13, &entry("offset", &(at % weights * WEIGHT).to_string()))
            .with(13, &entry("length", &WEIGHT.to_string()))
            .number(14, 1);
        let node = |op: &str, inputs: &[&str], output: &str| {
            let node = inputs.iter().fold(new(), |node, input| node.text(1, input));
            node.text(2, output).text(3, &format!("node_{output}")).text(4, op).with(9, &metadata)
        };
        graph = graph
            .with(1, &node("MatMul", &[&last, &weight], &product))
            .with(1, &node("Relu", &[&product], &relu))
            .with(5, &tensor)
            .with(13, &value(&product))
            .with(13, &value(&relu));
        last = relu;
    }
    graph = graph.text(2, "main_graph").with(11, &value("x")).with(12, &value(&last));
    new().number(1, 10).with(7, &graph).with(8, &new().number(2, 20)).0
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
        "{:>8} {:>10} {:>10} {:>8} {:>10} {:>10}",
        "nodes", "model", "read", "µs/node", "peak", "bytes/node"
    );
    for nodes in sizes {
        let dir = tempfile::tempdir().unwrap();
        let mut medians = Vec::new();
        // Holes take no room on the disk.
        for (name, weights) in [("small", 1u64), ("big", 512)] {
            let data = format!("{name}.data");
            let file = std::fs::File::create(dir.path().join(&data)).unwrap();
            file.set_len(weights * WEIGHT).unwrap();
            let bytes = model(nodes, &data, weights);
            let path = dir.path().join(format!("{name}.onnx"));
            std::fs::write(&path, &bytes).unwrap();
            let (time, peak) = measure(&path);
            println!(
                "{nodes:>8} {:>7.1} MB {:>7.1} ms {:>8.2} {:>7.1} MB {:>10}   {} MB of data",
                bytes.len() as f64 / 1e6,
                time.as_secs_f64() * 1e3,
                time.as_secs_f64() * 1e6 / nodes as f64,
                peak as f64 / 1e6,
                peak as u64 / nodes,
                (weights * WEIGHT) >> 20
            );
            medians.push(time.as_secs_f64());
        }
        println!("         2 GB in place of 4 MB: × {:.2}", medians[1] / medians[0]);
    }
}
