//! How fast a `.pt2` is read, as a ratio to parsing its `model.json` with borrowed serde_json
//! structs in the same process, and how much memory a node takes at the peak.
//!
//! `cargo bench --bench pt2 [NODES…]`. The graph is the record of a real decoder, repeated: each copy
//! reads what the copy before it made. A second graph, of an encoder with faults in each layer, is there
//! for what only faults cost: findings, cuts, and the ranking of what to mend first.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anelint::check::{CheckOptions, Checker};
use anelint::findings::PreparedRules;
use anelint::findings::source::SourceOptions;
use anelint::placement::{self, Request, RuleVerdict};
use anelint::readers::{ReadOptions, read};
use anelint::rules::RuleSet;
use anelint::target::Unit;
use serde::Deserialize;
use serde_json::Value;

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
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it moves, both may be live.
        grow(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The document as borrowed structs: the yardstick.
#[derive(Deserialize)]
#[allow(dead_code)]
struct Document<'a> {
    #[serde(borrow)]
    graph_module: GraphModule<'a>,
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct GraphModule<'a> {
    #[serde(borrow)]
    graph: Graph<'a>,
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct Graph<'a> {
    #[serde(borrow)]
    inputs: Vec<Argument<'a>>,
    #[serde(borrow)]
    outputs: Vec<Argument<'a>>,
    #[serde(borrow)]
    nodes: Vec<Node<'a>>,
    #[serde(borrow)]
    tensor_values: HashMap<Cow<'a, str>, TensorMeta<'a>>,
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct Node<'a> {
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(borrow)]
    inputs: Vec<Input<'a>>,
    #[serde(borrow)]
    outputs: Vec<Argument<'a>>,
    #[serde(borrow)]
    metadata: HashMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct Input<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arg: Argument<'a>,
}
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, clippy::enum_variant_names)]
enum Argument<'a> {
    #[serde(borrow)]
    AsTensor(Named<'a>),
    #[serde(borrow)]
    AsTensors(Vec<Named<'a>>),
    AsNone(bool),
    AsInt(i64),
    AsInts(Vec<i64>),
    AsFloat(serde_json::Number),
    AsFloats(Vec<f64>),
    AsBool(bool),
    #[serde(borrow)]
    AsString(Cow<'a, str>),
    AsScalarType(i64),
    AsMemoryFormat(i64),
    AsLayout(i64),
    #[serde(borrow)]
    AsDevice(Device<'a>),
    #[serde(borrow)]
    AsOptionalTensors(Vec<Optional<'a>>),
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct Device<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
enum Optional<'a> {
    #[serde(borrow)]
    AsTensor(Named<'a>),
    AsNone(bool),
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}
#[derive(Deserialize)]
#[allow(dead_code)]
struct TensorMeta<'a> {
    dtype: i64,
    #[serde(borrow)]
    sizes: Vec<Size<'a>>,
    #[serde(borrow)]
    strides: Vec<Size<'a>>,
}
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
enum Size<'a> {
    AsInt(i64),
    #[serde(borrow)]
    AsExpr(HashMap<Cow<'a, str>, Value>),
}

/// The models whose graphs are repeated: one without a fault, one that falls into a region per layer.
const SOURCES: [&str; 2] =
    ["testdata/cases/out/clean_decoder.pt2", "testdata/cases/out/regions_many.pt2"];

/// An archive whose graph has at least `nodes` nodes, and its document.
fn generate(source: &str, nodes: usize) -> (Vec<u8>, Vec<u8>, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let mut zip = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let name = zip
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .find(|name| name.ends_with("models/model.json"))
        .unwrap();
    let mut text = String::new();
    zip.by_name(&name).unwrap().read_to_string(&mut text).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let graph = &document["graph_module"]["graph"];
    let layer = graph["nodes"].as_array().unwrap().clone();
    let values = graph["tensor_values"].as_object().unwrap().clone();
    let made: Vec<String> = layer
        .iter()
        .flat_map(|node| node["outputs"].as_array().unwrap())
        .flat_map(|output| match &output["as_tensors"] {
            Value::Array(list) => list.clone(),
            _ => vec![output["as_tensor"].clone()],
        })
        .filter_map(|tensor| Some(tensor["name"].as_str()?.to_owned()))
        .collect();
    let copies = nodes.div_ceil(layer.len()).max(1);
    let signature = &document["graph_module"]["signature"];
    let name = |specs: &str, kind: &str| -> String {
        let specs = signature[specs].as_array().unwrap();
        let named = specs.iter().find_map(|spec| spec[kind]["arg"]["as_tensor"]["name"].as_str());
        named.unwrap().to_owned()
    };
    let (input, output) = (name("input_specs", "user_input"), name("output_specs", "user_output"));
    let mut all = Vec::with_capacity(copies * layer.len());
    let mut meta = serde_json::Map::new();
    for (name, value) in &values {
        if !made.contains(name) {
            meta.insert(name.clone(), value.clone());
        }
    }
    for copy in 0..copies {
        for node in &layer {
            let mut node = node.clone();
            rename(&mut node, &made, copy);
            if copy > 0 {
                for operand in node["inputs"].as_array_mut().unwrap() {
                    chain(&mut operand["arg"], &input, &format!("{output}_c{}", copy - 1));
                }
            }
            all.push(node);
        }
        for name in &made {
            if let Some(value) = values.get(name) {
                meta.insert(format!("{name}_c{copy}"), value.clone());
            }
        }
    }
    let count = all.len();
    let graph = &mut document["graph_module"]["graph"];
    graph["nodes"] = Value::Array(all);
    graph["tensor_values"] = Value::Object(meta);
    let mut outputs = graph["outputs"].clone();
    rename(&mut outputs, &made, copies - 1);
    graph["outputs"] = outputs;
    let json = serde_json::to_vec(&document).unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    zip.start_file("m/models/model.json", stored).unwrap();
    zip.write_all(&json).unwrap();
    (zip.finish().unwrap().into_inner(), json, count)
}

/// Gives every value of the layer the name it has in this copy.
fn rename(value: &mut Value, made: &[String], copy: usize) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "name" && made.contains(text) => {
                        *text = format!("{text}_c{copy}");
                    }
                    _ if key != "metadata" => rename(value, made, copy),
                    _ => {}
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, made, copy)),
        _ => {}
    }
}

/// Makes what read the input read another value.
fn chain(value: &mut Value, input: &str, instead: &str) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "name" && text == input => {
                        *text = instead.to_owned();
                    }
                    _ => chain(value, input, instead),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| chain(value, input, instead)),
        _ => {}
    }
}

/// Median of five.
fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[2]
}

fn main() {
    let given: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![20_000, 100_000] } else { given };
    let folder = tempfile::tempdir().unwrap();
    let work = sizes.iter().flat_map(|&nodes| SOURCES.map(|source| (source, nodes)));
    for (source, nodes) in work {
        let (archive, json, count) = generate(source, nodes);
        let path = folder.path().join("model.pt2");
        std::fs::write(&path, &archive).unwrap();
        drop(archive);
        let parse = median(|| {
            let document: Document<'_> = serde_json::from_slice(&json).unwrap();
            black_box(document.graph_module.graph.nodes.len());
        });
        let reading = median(|| {
            black_box(read(&path, ReadOptions::default()).unwrap());
        });
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let program = read(&path, ReadOptions::default()).unwrap();
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let kept = LIVE.load(Ordering::Relaxed) - before;
        println!(
            "{source} repeated: {count} nodes, {:.1} MB of JSON: read {:.0} ms, borrowed serde_json {:.0} ms, ratio {:.2}; \
             peak {} bytes a node, kept {}",
            json.len() as f64 / 1e6,
            reading.as_secs_f64() * 1e3,
            parse.as_secs_f64() * 1e3,
            reading.as_secs_f64() / parse.as_secs_f64(),
            peak / count,
            kept / count,
        );
        // The whole check: reading, facts, both rule phases, placement, findings.
        let set = RuleSet::builtin();
        let prepared = PreparedRules::new(&set).unwrap();
        let options = CheckOptions {
            units: vec![Unit::NeuralEngine],
            source: SourceOptions {
                working_folder: folder.path().to_owned(),
                ..SourceOptions::default()
            },
            ..CheckOptions::default()
        };
        let checker = Checker::new(&set, &prepared, options).unwrap();
        let checking = median(|| {
            assert!(checker.check(&path, "model.pt2").is_ok());
        });
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        assert!(checker.check(&path, "model.pt2").is_ok());
        let peak = PEAK.load(Ordering::Relaxed) - before;
        println!(
            "    whole check {:.0} ms, ratio {:.2}; peak {} bytes a node",
            checking.as_secs_f64() * 1e3,
            checking.as_secs_f64() / parse.as_secs_f64(),
            peak / count,
        );

        // Placement with its ranking alone, with the verdicts that the rules gave.
        let placed = checker.place(&program, Unit::NeuralEngine).unwrap();
        let (id, first) = placed.first().unwrap();
        let verdicts: Vec<RuleVerdict> = first
            .groups
            .iter()
            .filter_map(|group| {
                let reason = first.reason(group.reason);
                Some(RuleVerdict {
                    rule: reason.rule.clone()?,
                    reason: reason.text.clone(),
                    alternative: reason.alternative.clone(),
                    evidence: reason.evidence.clone(),
                    nodes: group.nodes.clone(),
                    place: Some(group.place),
                })
            })
            .collect();
        let target = checker.target(Unit::NeuralEngine, &program);
        let placing = median(|| {
            let request = Request { target, rules: &verdicts, line_of: None };
            black_box(placement::place(&program, *id, &request));
        });
        println!(
            "    placement with what-if {:.0} ms: {} ops, {} regions, {} groups, {} steps",
            placing.as_secs_f64() * 1e3,
            first.ops,
            first.regions.len(),
            first.groups.len(),
            first.what_if.len(),
        );
    }
}
