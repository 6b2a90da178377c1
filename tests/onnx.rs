//! The ONNX reader: what a model holds is what the graph has, and what a hostile one asks for is refused.
//! Held against the onnx package itself by scripts/compare_onnx.py.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use anelint::graph::{ConstantOrigin, Dim, Function, NodeKind, Op, Payload, Program};
use anelint::readers::{ReadError, ReadOptions, read, read_bytes};

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
    fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }
    fn with(self, field: u64, inner: &Message) -> Message {
        self.bytes(field, &inner.0)
    }
}

fn new() -> Message {
    Message::default()
}

/// An f32 value of some dims.
fn value(name: &str, dims: &[u64]) -> Message {
    let shape = dims.iter().fold(new(), |shape, &dim| shape.with(1, &new().number(1, dim)));
    let tensor = new().number(1, 1).with(2, &shape);
    new().text(1, name).with(2, &new().with(1, &tensor))
}

fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let node = inputs.iter().fold(new(), |node, input| node.text(1, input));
    outputs.iter().fold(node, |node, output| node.text(2, output)).text(4, op)
}

fn graph(nodes: &[Message]) -> Message {
    let graph = nodes.iter().fold(new(), |graph, node| graph.with(1, node));
    graph.text(2, "g").with(11, &value("x", &[2, 3])).with(12, &value("y", &[2, 3]))
}

fn model(graph: &Message) -> Message {
    new().number(1, 10).with(7, graph).with(8, &new().number(2, 20))
}

fn parse(model: &Message) -> Result<Program, ReadError> {
    let bytes = bytes::Bytes::from(model.0.clone());
    read_bytes(Path::new("model.onnx"), bytes, ReadOptions::default())
}

fn main_of(program: &Program) -> &Function {
    &program.functions[0]
}

fn ops(program: &Program) -> Vec<Op> {
    main_of(program)
        .nodes()
        .filter(|(_, node)| node.kind == NodeKind::Op)
        .map(|(_, node)| node.op)
        .collect()
}

fn case(name: &str) -> PathBuf {
    Path::new("testdata/cases/out").join(name)
}

#[test]
fn a_model_of_torch_says_its_lines_modules_and_buffers() {
    let program = read(&case("neginf_buffer.onnx"), ReadOptions::default()).unwrap();
    assert_eq!(program.producer, "pytorch 2.15.0+cu132");
    let function = main_of(&program);
    assert_eq!(program.text(function.opset), "opset20");
    let (_, add) = function.nodes().find(|(_, node)| node.op == Op::ADD).unwrap();
    let provenance = program.sources.get(add.provenance);
    let frame = program.sources.frames(provenance.stack).next_back().unwrap();
    assert_eq!((program.text(frame.file), frame.line), ("cases/masks.py", 95));
    assert_eq!(program.text(provenance.torch_op), "aten.add.Tensor");
    let mask = program.constants.iter().find(|c| program.text(c.fqn) == "mask").unwrap();
    assert_eq!(mask.origin, ConstantOrigin::Buffer);
    assert!(matches!(mask.payload, Payload::Blob(_)));
}

#[test]
fn nodes_in_any_order_are_read_and_undefined_names_are_not() {
    let sorted = [node("Relu", &["x"], &["a"]), node("Exp", &["a"], &["y"])];
    let turned = [sorted[1].clone(), sorted[0].clone()];
    for nodes in [&sorted, &turned] {
        let program = parse(&model(&graph(nodes))).unwrap();
        assert_eq!(ops(&program), [Op::RELU, Op::EXP]);
    }
    let error = parse(&model(&graph(&[node("Exp", &["a"], &["y"])]))).unwrap_err();
    assert!(error.message.contains("`a`, which nothing defines"), "{}", error.message);
    // Two nodes that wait for each other.
    let ring = [node("Add", &["x", "b"], &["a"]), node("Exp", &["a"], &["b"])];
    assert!(parse(&model(&graph(&ring))).is_err());
}

#[test]
fn functions_of_the_model_stand_where_they_are_called() {
    // f(p) = Exp(Relu(p)), called twice.
    let function = new()
        .text(1, "F")
        .text(4, "p")
        .text(5, "q")
        .with(7, &node("Relu", &["p"], &["t"]))
        .with(7, &node("Exp", &["t"], &["q"]))
        .with(9, &new().number(2, 20))
        .text(10, "local");
    let call = |a: &str, b: &str, name: &str| node("F", &[a], &[b]).text(7, "local").text(3, name);
    let model = model(&graph(&[call("x", "m", "one"), call("m", "y", "two")])).with(25, &function);
    let program = parse(&model).unwrap();
    assert_eq!(ops(&program), [Op::RELU, Op::EXP, Op::RELU, Op::EXP]);
    let (_, first) = main_of(&program).nodes().find(|(_, node)| node.op == Op::RELU).unwrap();
    assert_eq!(program.text(first.name), "one/t");
}

#[test]
fn functions_that_call_themselves_end() {
    let inner = |a: &str, b: &str| node("F", &[a], &[b]).text(7, "local");
    let function = new()
        .text(1, "F")
        .text(4, "p")
        .text(5, "q")
        .with(7, &inner("p", "t"))
        .with(7, &inner("t", "q"))
        .text(10, "local");
    let model = model(&graph(&[inner("x", "y")])).with(25, &function);
    let program = parse(&model).unwrap();
    assert!(
        program.notes.iter().any(|note| note.contains("not looked into")),
        "{:?}",
        program.notes
    );
}

/// `If` within `If` within …
fn nested(depth: usize) -> Message {
    let output = |name: &str| value(name, &[2, 3]);
    let leaf = new().with(1, &node("Exp", &["x"], &["o0"])).text(2, "b").with(12, &output("o0"));
    let mut branch = leaf;
    for at in 1..depth {
        let attribute = |name: &str| new().text(1, name).with(6, &branch).number(20, 5);
        let own = format!("o{at}");
        let node = node("If", &["c"], &[&own])
            .with(5, &attribute("then_branch"))
            .with(5, &attribute("else_branch"));
        branch = new().with(1, &node).text(2, "b").with(12, &output(&own));
        // Both branches the same: the file doubles with each level.
        if branch.0.len() > 1 << 22 {
            break;
        }
    }
    branch
}

#[test]
fn branches_are_functions_and_nest_to_a_limit() {
    let condition = new().text(1, "c").with(2, &new().with(1, &new().number(1, 9)));
    let outer = |branch: &Message| {
        let attribute = |name: &str| new().text(1, name).with(6, branch).number(20, 5);
        let node = node("If", &["c"], &["y"])
            .with(5, &attribute("else_branch"))
            .with(5, &attribute("then_branch"));
        model(&graph(&[node]).with(11, &condition))
    };
    let program = parse(&outer(&nested(1))).unwrap();
    let names: Vec<&str> = program.functions.iter().map(|f| program.text(f.name)).collect();
    assert_eq!(names, ["main", "y/then", "y/else"]);
    // What a branch takes from around it is an operand of the node.
    let (id, _) = main_of(&program).nodes().find(|(_, node)| node.op == Op::COND).unwrap();
    assert_eq!(main_of(&program).operands(id).len(), 2);
    // One way down is enough to be too deep.
    let mut branch = nested(1);
    for at in 0..40 {
        let own = format!("p{at}");
        let attribute = new().text(1, "then_branch").with(6, &branch).number(20, 5);
        let node = node("If", &["c"], &[&own]).with(5, &attribute);
        branch = new().with(1, &node).text(2, "b").with(12, &value(&own, &[2, 3]));
    }
    let error = parse(&outer(&branch)).unwrap_err();
    assert!(error.message.contains("nest deeper"), "{}", error.message);
}

/// An initialiser whose data lie at `location`.
fn external(location: &str) -> Message {
    let entry = |key: &str, value: &str| new().text(1, key).text(2, value);
    new()
        .number(1, 2)
        .number(1, 3)
        .number(2, 1)
        .text(8, "w")
        .with(13, &entry("location", location))
        .with(13, &entry("offset", "0"))
        .with(13, &entry("length", "24"))
        .number(14, 1)
}

fn with_external(location: &str) -> Message {
    model(&graph(&[node("Add", &["x", "w"], &["y"])]).with(5, &external(location)))
}

#[test]
fn data_outside_of_the_folder_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(dir.path().join("secret.bin"), [0u8; 24]).unwrap();
    std::fs::write(inside.join("weights.bin"), [0u8; 24]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path().join("secret.bin"), inside.join("link.bin")).unwrap();
    let at = |location: &str| {
        let path = inside.join("model.onnx");
        std::fs::write(&path, with_external(location).0).unwrap();
        read(&path, ReadOptions::default())
    };
    let good = at("weights.bin").unwrap();
    assert!(matches!(good.constants[0].payload, Payload::Blob(blob) if blob.len == 24));
    for bad in ["../secret.bin", "/etc/passwd", "a/../../secret.bin", "..\\secret.bin", ""] {
        let error = at(bad).unwrap_err();
        assert!(error.message.contains("refused"), "{bad}: {}", error.message);
    }
    #[cfg(unix)]
    assert!(at("link.bin").unwrap_err().message.contains("refused"));
    // A file that is not there, or too short, is a note.
    let missing = at("nothing.bin").unwrap();
    assert!(missing.notes.iter().any(|note| note.contains("not there")));
    std::fs::write(inside.join("weights.bin"), [0u8; 8]).unwrap();
    assert!(matches!(at("weights.bin").unwrap().constants[0].payload, Payload::Unknown));
}

#[test]
fn sizes_are_inferred_where_nothing_is_declared() {
    let perm = new().text(1, "perm").number(8, 1).number(8, 0).number(20, 7);
    let nodes = [
        node("Transpose", &["x"], &["t"]).with(5, &perm),
        node("Shape", &["t"], &["s"]),
        node("Reshape", &["x", "s"], &["r"]),
        node("Transpose", &["r"], &["y"]).with(5, &perm),
    ];
    let program = parse(&model(&graph(&nodes))).unwrap();
    let function = main_of(&program);
    let (id, _) = function.nodes().find(|(_, node)| node.op == Op::RESHAPE).unwrap();
    let shape = function.value(function.result(id).unwrap()).shape;
    assert_eq!(
        program.shapes.get(shape).dims().unwrap(),
        [Dim::Static(3), Dim::Static(2)],
        "the shape of a transposed tensor, as a value"
    );
}

#[test]
fn an_initialiser_that_is_an_input_too_is_said_to_be_overridable() {
    let weight = new().number(1, 2).number(1, 3).number(2, 1).text(8, "w").bytes(9, &[0; 24]);
    let graph =
        graph(&[node("Add", &["x", "w"], &["y"])]).with(5, &weight).with(11, &value("w", &[2, 3]));
    let program = parse(&model(&graph)).unwrap();
    assert_eq!(main_of(&program).inputs().count(), 1);
    assert_eq!(program.metadata("overridable-initializers"), Some("1"));
}

#[test]
fn unknown_ops_are_named() {
    let custom = node("Frobnicate", &["x"], &["y"]).text(7, "com.example");
    let program = parse(&model(&graph(&[custom]))).unwrap();
    assert_eq!(ops(&program), [Op::UNKNOWN]);
    assert_eq!(program.notes, ["op `com.example.Frobnicate` is not known (1×)"]);
}

#[test]
fn what_is_no_model_gets_one_line() {
    for bytes in [&b"\x08\x0a"[..], b"\x08\x0a\x3a\xff\xff\xff\xff\x0f", b"onnx", b"\x3a\x00"] {
        let bytes = bytes::Bytes::from_static(bytes);
        let error = read_bytes(Path::new("m.onnx"), bytes, ReadOptions::default()).unwrap_err();
        assert!(!error.message.is_empty() && !error.message.contains('\n'));
    }
}

/// Models cut at many places and with flipped bytes: an answer each time, never a panic, never a hang.
#[test]
fn broken_files_get_an_answer() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut wholes: Vec<Vec<u8>> =
        ["neginf_buffer.onnx", "clean_stateful.onnx", "sdpa_causal.onnx"]
            .iter()
            .map(|name| std::fs::read(case(name)).unwrap())
            .collect();
    wholes.push(with_external("w.bin").0);
    for whole in wholes {
        for _ in 0..60 {
            let cut = random() as usize % whole.len();
            let mut flipped = whole.clone();
            for _ in 0..4 {
                let at = random() as usize % flipped.len();
                flipped[at] ^= 1 << (random() % 8);
            }
            for bytes in [whole[..cut].to_vec(), flipped] {
                let path = Path::new("broken.onnx");
                let _ = read_bytes(path, bytes.into(), ReadOptions::default());
            }
        }
    }
}
