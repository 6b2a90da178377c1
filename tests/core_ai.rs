//! Core AI programs, as bytecode and as text: what becomes of them, where ops come from, and that
//! broken bytes are an error and nothing worse.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anelint::graph::{
    ConstantOrigin, Dim, Function, FunctionRole, NodeFlags, NodeId, NodeKind, Op, Program,
};
use anelint::readers::{ReadOptions, read, read_bytes};
use anelint::report::text_dump;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn program(name: &str) -> Program {
    read(&testdata(name), ReadOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn entry<'p>(program: &'p Program, name: &str) -> &'p Function {
    let mut entries = program.functions.iter().filter(|f| f.role == FunctionRole::Entry);
    entries.find(|function| program.text(function.name) == name).expect("the entry is there")
}

fn find(function: &Function, op: Op) -> NodeId {
    function.nodes().find(|(_, node)| node.op == op).map(|(id, _)| id).expect("the op is there")
}

fn operand(program: &Program, function: &Function, node: NodeId, name: &str) -> NodeId {
    let name = program.names.find(name).expect("the name is used");
    function.producer(function.operand(node, name).expect("the operand is there"))
}

/// `file:line` of each frame, outermost first.
fn frames(program: &Program, function: &Function, node: NodeId) -> Vec<String> {
    let provenance = program.sources.get(function.node(node).provenance);
    program
        .sources
        .frames(provenance.stack)
        .map(|frame| {
            let file = program.text(frame.file).rsplit("site-packages/").next().unwrap();
            format!("{file}:{}", frame.line)
        })
        .collect()
}

#[test]
fn graphs_of_small_assets() {
    for name in [
        "linear",
        "sdpa_mask_float_scale",
        "kv_buffer_slice_assign",
        "kv_buffer_index_copy",
        "ctrl_cond",
        "ctrl_while",
        "mask_helper_neginf",
        "multi_entry",
        "dyn_seq_block",
    ] {
        let program = program(&format!("aimodel/{name}.aimodel"));
        let settings = insta::Settings::clone_current();
        let mut settings = settings;
        settings.set_snapshot_path("../snapshots/core_ai");
        settings.set_prepend_module_to_snapshot(false);
        settings.bind(|| insta::assert_snapshot!(name, text_dump(&program)));
    }
}

/// The graph without what a text may lack: payloads of large constants, and the names under which
/// the bytecode stores ops that a text prints as authored.
fn shape_of(program: &Program) -> String {
    let dump = text_dump(program);
    let mut text = String::new();
    for line in dump.lines() {
        let constant = ["= folded ", "= parameter "].iter().find_map(|mark| line.split_once(mark));
        match constant {
            Some((id, rest)) => {
                let ty = rest.rsplit_once(" : ").map_or("", |(_, ty)| ty);
                let _ = writeln!(text, "{id} = constant : {ty}");
            }
            None => {
                let (head, names) = line.split_once(" <- ").unwrap_or((line, ""));
                let names: Vec<String> = names.split(' ').map(authored).collect();
                let _ = writeln!(text, "{head} {}", names.join(" "));
            }
        }
    }
    text
}

fn authored(name: &str) -> String {
    match name.split_once('.') {
        Some(("coreai" | "composite", _)) => name.to_owned(),
        _ => anelint::readers::core_ai::ir::authored(name),
    }
}

#[test]
fn a_text_is_the_same_graph_as_the_bytecode_it_was_printed_from() {
    for name in ["kv_buffer_slice_assign", "ctrl_cond", "mask_helper_neginf", "multi_entry"] {
        let asset = program(&format!("aimodel/{name}.aimodel"));
        let text = program(&format!("aimodel/{name}.loc.mlir"));
        assert_eq!(shape_of(&asset), shape_of(&text), "{name}");
        for (one, other) in asset.functions.iter().zip(&text.functions) {
            for (id, node) in one.nodes() {
                assert_eq!(frames(&asset, one, id), frames(&text, other, id), "{name}");
                let twin = other.node(id);
                assert_eq!(asset.text(node.name), text.text(twin.name), "{name}");
                let module = |program: &Program, node: &anelint::graph::Node| {
                    let module = program.sources.get(node.provenance).module;
                    program.text(program.sources.get_module(module).path).to_owned()
                };
                assert_eq!(module(&asset, node), module(&text, twin), "{name}");
            }
        }
    }
}

/// Versions 4 (op names without a flag, properties in dictionaries of MLIR's own dialect) and 5, written
/// by the library on request.
#[test]
fn older_bytecode_is_the_same_graph() {
    for name in ["ctrl_cond", "ctrl_while", "sdpa_mask_float_scale"] {
        let newest = program(&format!("aimodel/{name}.aimodel"));
        let path = testdata(&format!("aimodel/older/{name}.v4.mlirb"));
        let version_4 = read(&path, ReadOptions::default()).unwrap();
        assert_eq!(text_dump(&version_4), text_dump(&newest), "{name}");
        // Version 5 has another version byte and is the same else.
        let mut bytes =
            std::fs::read(testdata(&format!("aimodel/{name}.aimodel/main.mlirb"))).unwrap();
        assert_eq!(bytes[4], 6 << 1 | 1);
        bytes[4] = 5 << 1 | 1;
        let version_5 =
            read_bytes(Path::new("main.mlirb"), bytes.into(), ReadOptions::default()).unwrap();
        assert_eq!(text_dump(&version_5), text_dump(&newest), "{name}");
    }
}

#[test]
fn an_op_knows_its_line_its_caller_its_module_and_the_file_s_hash() {
    let program = program("aimodel/mask_helper_neginf.aimodel");
    let main = entry(&program, "main");
    let softmax = find(main, Op::SOFTMAX);
    assert_eq!(frames(&program, main, softmax), ["cases/masks.py:63"]);
    let provenance = program.sources.get(main.node(softmax).provenance);
    assert_eq!(program.text(provenance.torch_op), "_softmax");
    let frame = program.sources.frames(provenance.stack).next().unwrap();
    // The compile unit lists the file under its whole path; the frame has a relative one.
    assert_eq!(program.text(frame.sha256).len(), 64);
    // Both projections are views swallowed by products: the calling frame is found all the same.
    let linears: Vec<NodeId> =
        main.nodes().filter(|(_, n)| n.op == Op::LINEAR).map(|(id, _)| id).collect();
    for &linear in &linears {
        let frames = frames(&program, main, linear);
        assert_eq!(frames.len(), 2, "{frames:?}");
        assert!(frames[0].starts_with("cases/masks.py:"), "{frames:?}");
        assert_eq!(frames[1], "torch/nn/modules/linear.py:134");
        let module = program.sources.get(main.node(linear).provenance).module;
        let module = program.sources.get_module(module);
        assert_eq!(program.text(module.class), "Linear");
        assert!(program.text(module.path).starts_with("Linear$"));
    }
    assert!(linears.len() >= 2);
    assert_eq!(program.metadata("source-locations"), Some("recorded"));
}

#[test]
fn an_asset_without_debug_info_says_so() {
    let program = program("aimodel/mask_helper_neginf.release.aimodel");
    assert_eq!(program.metadata("source-locations"), Some("none"));
    let main = entry(&program, "main");
    let softmax = find(main, Op::SOFTMAX);
    assert!(frames(&program, main, softmax).is_empty());
    assert!(program.text(main.node(softmax).name).starts_with('%'));
}

#[test]
fn a_mask_folded_into_a_resource_is_a_blob_with_infinities() {
    let program = program("aimodel/mask_helper_neginf.aimodel");
    let main = entry(&program, "main");
    let softmax = find(main, Op::SOFTMAX);
    let add = operand(&program, main, softmax, "input");
    let mask = operand(&program, main, add, "b");
    let NodeKind::Constant(mask) = main.node(mask).kind else { panic!("a constant") };
    let mask = program.constant(mask);
    assert_eq!(mask.origin, ConstantOrigin::Folded);
    let anelint::graph::Payload::Blob(blob) = mask.payload else { panic!("a blob") };
    let anelint::graph::BlobFile::Bytes(bytes) = &program.blob_files[blob.file as usize] else {
        panic!("bytes")
    };
    let payload = &bytes[blob.offset as usize..(blob.offset + blob.len) as usize];
    let infinities = payload.chunks_exact(2).filter(|half| half == &[0x00, 0xFC]).count();
    assert_eq!((payload.len(), infinities), (32 * 32 * 2, 496));
}

#[test]
fn composites_are_one_node_and_their_bodies_are_not_linted() {
    let program = program("aimodel/multi_entry.aimodel");
    let roles: Vec<(String, FunctionRole)> = program
        .functions
        .iter()
        .map(|f| (program.text(f.name).split('_').next().unwrap().to_owned(), f.role.clone()))
        .collect();
    for (name, role) in &roles {
        let expected = match name.as_str() {
            "extend" | "encode" => FunctionRole::Entry,
            _ => FunctionRole::Composite,
        };
        assert_eq!(*role, expected, "{name}");
    }
    assert_eq!(roles.iter().filter(|(_, role)| *role == FunctionRole::Entry).count(), 3);
    let extend = entry(&program, "extend_16");
    let norm = find(extend, Op::LAYER_NORM);
    let epsilon = extend.attribute(norm, program.names.find("epsilon").unwrap()).unwrap();
    assert!((epsilon.as_float().unwrap() - 1e-5).abs() < 1e-9);
    assert_eq!(extend.bodies(norm).len(), 1);
    let weight = operand(&program, extend, norm, "weight");
    assert!(matches!(extend.node(weight).kind, NodeKind::Constant(_)));
    // `encode` was left dynamic: its input has a symbol of its own.
    let encode = entry(&program, "encode");
    let input = encode.inputs().next().unwrap();
    let shape = encode.value(encode.result(input).unwrap()).shape;
    let dims = program.shapes.get(shape).dims().unwrap();
    assert!(dims.iter().any(|dim| matches!(dim, Dim::Symbol(_))), "{dims:?}");
}

#[test]
fn writes_of_a_state_have_their_range_and_the_line_of_the_update() {
    let program = program("aimodel/kv_buffer_slice_assign.aimodel");
    let main = entry(&program, "main");
    assert_eq!(main.states().count(), 2);
    let write = find(main, Op::STATE_WRITE);
    assert_eq!(frames(&program, main, write), ["cases/kvcache.py:102"]);
    let attribute = |name: &str| {
        let name = program.names.find(name).unwrap();
        main.attribute(write, name).and_then(anelint::graph::Attr::as_int)
    };
    assert_eq!(
        [attribute("axis"), attribute("begin"), attribute("end")],
        [Some(2), Some(0), Some(8)]
    );
    let stored: Vec<&str> =
        main.stored(write).iter().map(|(_, spelling)| program.text(*spelling)).collect();
    assert!(stored.contains(&"primitive.slice_update_v1"), "{stored:?}");
    let marked =
        main.outputs().filter(|&id| main.node(id).flags.contains(NodeFlags::MUTATION)).count();
    assert_eq!(marked, 2);
}

#[test]
fn branches_are_functions_that_take_what_they_use() {
    let program = program("aimodel/ctrl_cond.aimodel");
    let main = entry(&program, "main");
    let cond = find(main, Op::COND);
    let bodies = main.bodies(cond);
    assert_eq!(bodies.len(), 2);
    for &body in bodies {
        let body = program.function(body);
        assert!(matches!(body.role, FunctionRole::Branch { .. }));
        assert_eq!(body.inputs().count(), 1);
        assert_eq!(body.outputs().count(), 1);
        find(body, Op::LINEAR);
    }
    // The value that both branches use is an operand of the branch itself.
    assert_eq!(main.operands(cond).len(), 2);
}

#[test]
fn broken_bytes_are_an_error_and_nothing_worse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("main.mlirb");
    for name in ["kv_buffer_slice_assign", "ctrl_cond", "dyn_seq_block"] {
        let bytes = std::fs::read(testdata(&format!("aimodel/{name}.aimodel/main.mlirb"))).unwrap();
        let mut seed = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below as u64) as usize
        };
        let try_bytes = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            // Whether it is an error depends on the byte; a panic would end the test.
            let _ = read(&path, ReadOptions { no_mmap: true });
        };
        for _ in 0..60 {
            try_bytes(&bytes[..random(bytes.len())]);
        }
        for _ in 0..400 {
            let mut broken = bytes.clone();
            for _ in 0..=random(4) {
                let at = random(broken.len());
                broken[at] = random(256) as u8;
            }
            try_bytes(&broken);
        }
    }
}

#[test]
fn broken_texts_are_an_error_and_nothing_worse() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mlir");
    let text = std::fs::read(testdata("aimodel/kv_buffer_slice_assign.loc.mlir")).unwrap();
    let mut seed = 0x2545_F491_4F6C_DD1Du64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for round in 0..250 {
        let mut broken = text.clone();
        if round % 3 == 0 {
            broken.truncate(random(text.len()));
        }
        for _ in 0..=random(6) {
            let at = random(broken.len().max(1)).min(broken.len().saturating_sub(1));
            if let Some(byte) = broken.get_mut(at) {
                *byte = b"<>(){}[]%#@^\"=,:x0-> \n"[random(22)];
            }
        }
        std::fs::write(&path, &broken).unwrap();
        let _ = read(&path, ReadOptions { no_mmap: true });
    }
    // What cannot be understood is said with its place.
    std::fs::write(&path, "module {\n  coreai.graph @main(%a: tensor<2xf16>) {\n    ?\n").unwrap();
    let error = read(&path, ReadOptions::default()).unwrap_err();
    assert!(error.offset.is_some(), "{error}");
}

#[test]
fn a_pasted_piece_without_a_module_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pasted.txt");
    let text = r#"
  coreai.graph @main(%arg0: tensor<2x8xf16>) -> tensor<2x8xf16> {
    %0 = coreai.constant dense<0xFC00> : tensor<f16>
    %1 = coreai.decomposable.broadcasting_add %arg0, %0 : (tensor<2x8xf16>, tensor<f16>) -> tensor<2x8xf16>
    %2 = coreai.something_new %1 {level = 3 : i32} : tensor<2x8xf16> -> tensor<2x8xf16>
    coreai.output %2 : tensor<2x8xf16>
  }
"#;
    std::fs::write(&path, text).unwrap();
    let program = read(&path, ReadOptions::default()).unwrap();
    insta::assert_snapshot!(text_dump(&program), @r#"
    function main (entry)
      %0 = input %arg0 : f16[2×8]
      %1 = folded -inf : f16[scalar]
      %2 = add(a=%0, b=%1) : f16[2×8] <- coreai.decomposable.broadcasting_add
      %3 = unknown(input=%2) : f16[2×8] <- coreai.something_new
      %4 = output %2(%3)
    "#);
}
