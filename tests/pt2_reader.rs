//! The `.pt2` reader on real archives: what plain and decomposed graphs become, and what becomes of
//! archives that somebody broke.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use anelint::graph::{Attr, NodeKind, Op, Program};
use anelint::readers::{ReadErrorKind, ReadOptions, read};
use anelint::report::text_dump;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn program(name: &str) -> Program {
    let path = testdata(name);
    read(&path, ReadOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The dump of a graph without the numbers that say where a file lies.
fn snapshot(name: &str) {
    let text = text_dump(&program(name));
    let short = Path::new(name).file_name().unwrap().to_string_lossy().replace(".pt2", "");
    insta::with_settings!({snapshot_path => "../snapshots/pt2", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(short, text);
    });
}

#[test]
fn a_linear_is_one_node_in_both_forms() {
    snapshot("cases/out/linear_no_bias.pt2");
    snapshot("cases/out/linear_no_bias.decomp.pt2");
}

/// The records behind a zip's directory are as long as a directory entry of a file with a stem of 8
/// letters: a reader that searches for the start of the archive then finds a wrong one.
#[test]
fn an_archive_with_a_stem_of_eight_letters_opens() {
    for name in ["fp32_glu", "off_cond", "off_lstm", "off_sort", "off_topk"] {
        assert_eq!(name.len(), 8);
        let program = program(&format!("cases/out/{name}.pt2"));
        assert!(!program.functions.is_empty(), "{name}");
    }
}

#[test]
fn attention_stays_whole() {
    snapshot("cases/out/sdpa_bool_mask.pt2");
    snapshot("cases/out/sdpa_bool_mask.decomp.pt2");
}

#[test]
fn a_masked_fill_is_a_where() {
    snapshot("cases/out/neginf_masked_fill.pt2");
    snapshot("cases/out/neginf_masked_fill.decomp.pt2");
}

#[test]
fn a_write_into_a_slice_of_a_buffer_is_a_state_write() {
    snapshot("cases/out/write_constant.pt2");
    snapshot("cases/out/write_constant.decomp.pt2");
}

#[test]
fn rotary_embeddings_keep_their_parts() {
    snapshot("cases/out/rope_gather.pt2");
    snapshot("cases/out/rope_gather.decomp.pt2");
}

#[test]
fn branches_are_functions() {
    snapshot("probes-pt2/ctrl_cond.pt2");
    snapshot("probes-pt2/ctrl_cond.decomp.pt2");
    snapshot("probes-pt2/ctrl_while.pt2");
}

/// A write in words: `k_cache[axis 2, 0..8]`.
fn writes(program: &Program) -> Vec<String> {
    let function = &program.functions[0];
    let mut found = Vec::new();
    for (id, node) in function.nodes() {
        if node.kind != NodeKind::Op || node.op != Op::STATE_WRITE {
            continue;
        }
        let mut state = function.operands(id)[0].value;
        while function.node(function.producer(state)).op == Op::STATE_WRITE {
            state = function.operands(function.producer(state))[0].value;
        }
        let state = function.node(function.producer(state));
        assert_eq!(state.kind, NodeKind::State);
        let attributes: Vec<String> = function
            .attributes(id)
            .iter()
            .map(|(name, attr)| {
                let attr = match attr {
                    Attr::Symbol(_) | Attr::Dynamic => "run time".to_owned(),
                    attr => format!("{attr:?}"),
                };
                format!("{}={attr}", program.text(*name))
            })
            .collect();
        let operands: Vec<&str> =
            function.operands(id).iter().map(|operand| program.text(operand.name)).collect();
        found.push(format!(
            "{} ({}) {}",
            program.text(state.name),
            operands.join(", "),
            attributes.join(", ")
        ));
    }
    found.sort();
    found
}

#[test]
fn plain_and_decomposed_graphs_agree_on_what_is_written() {
    let mut with_writes = 0;
    for (plain, decomposed) in pairs() {
        let (a, b) = (program(&plain), program(&decomposed));
        assert_eq!(writes(&a), writes(&b), "{plain}");
        with_writes += usize::from(!writes(&a).is_empty());
    }
    assert!(with_writes >= 5, "only {with_writes} graphs write a state");
}

#[test]
fn plain_and_decomposed_graphs_hold_the_same_projections_and_convolutions() {
    let count = |program: &Program, op: Op| -> usize {
        program.functions.iter().flat_map(|f| f.nodes()).filter(|(_, node)| node.op == op).count()
    };
    for (plain, decomposed) in pairs() {
        // One module that stays whole in the plain graph and is taken apart by decomposition.
        if plain.contains("attention") || plain.contains("lstm") {
            continue;
        }
        let (a, b) = (program(&plain), program(&decomposed));
        for op in [Op::LINEAR, Op::CONV, Op::SDPA, Op::SOFTMAX] {
            assert_eq!(count(&a, op), count(&b, op), "{op} in {plain}");
        }
    }
}

fn pairs() -> Vec<(String, String)> {
    archives()
        .into_iter()
        .filter(|name| name.ends_with(".decomp.pt2"))
        .map(|decomposed| (decomposed.replace(".decomp.pt2", ".pt2"), decomposed))
        .filter(|(plain, _)| testdata(plain).is_file())
        .collect()
}

/// Every committed archive, by its path below `testdata`.
fn archives() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["cases/out", "probes-pt2"] {
        for entry in std::fs::read_dir(testdata(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".pt2") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_archive_is_read_and_every_op_is_known() {
    for name in archives() {
        let program = program(&name);
        for function in &program.functions {
            for (_, node) in function.nodes() {
                // Kernels of one's own have no canonical op; ANE051 knows them by their spelling.
                let own_kernel = program.text(node.spelling).starts_with("coreai_metal_kernels.");
                assert!(
                    node.kind != NodeKind::Op || node.op != Op::UNKNOWN || own_kernel,
                    "{name}: {} is unknown",
                    program.text(node.spelling)
                );
            }
        }
    }
}

#[test]
fn a_copy_reads_like_a_map() {
    let path = testdata("cases/out/write_constant.pt2");
    let mapped = read(&path, ReadOptions { no_mmap: false }).unwrap();
    let copied = read(&path, ReadOptions { no_mmap: true }).unwrap();
    assert_eq!(text_dump(&mapped), text_dump(&copied));
}

/// Members of an archive.
fn members(path: &Path) -> Vec<(String, Vec<u8>)> {
    // Stems of some lengths make a search for the start go wrong, as the reader's own test says.
    let config = zip::read::Config { archive_offset: zip::read::ArchiveOffset::Known(0) };
    let file = std::fs::File::open(path).unwrap();
    let mut zip = zip::ZipArchive::with_config(config, file).unwrap();
    (0..zip.len())
        .map(|at| {
            let mut file = zip.by_index(at).unwrap();
            let name = file.name().unwrap().into_owned();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (name, bytes)
        })
        .collect()
}

fn pack(members: &[(String, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in members {
        zip.start_file(name.as_str(), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read_bytes(bytes: &[u8]) -> Result<Program, anelint::readers::ReadError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.pt2");
    std::fs::write(&path, bytes).unwrap();
    read(&path, ReadOptions { no_mmap: true })
}

#[test]
fn deflated_members_read_like_stored_ones() {
    for name in ["cases/out/write_constant.decomp.pt2", "cases/out/neginf_buffer.pt2"] {
        let packed = pack(&members(&testdata(name)), zip::CompressionMethod::Deflated);
        assert_eq!(text_dump(&read_bytes(&packed).unwrap()), text_dump(&program(name)), "{name}");
    }
}

/// JSON with the keys of every object turned round.
fn reversed(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .rev()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), reversed(value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(reversed).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// What a graph says, whatever its nodes are numbered: lines without numbers, sorted.
fn said(program: &Program) -> Vec<String> {
    let mut lines: Vec<String> = text_dump(program)
        .lines()
        .map(|line| line.chars().filter(|c| !c.is_ascii_digit()).collect())
        .collect();
    lines.sort();
    lines
}

#[test]
fn keys_may_come_in_any_order() {
    for name in [
        "cases/out/write_constant.pt2",
        "cases/out/dynamic_sequence.decomp.pt2",
        "cases/out/neginf_buffer_sliced.pt2",
        "probes-pt2/ctrl_cond.pt2",
        "probes-pt2/kv_buffer_item_pos.pt2",
    ] {
        let stored = program(name);
        for turn in [false, true] {
            let mut members = members(&testdata(name));
            for (member, bytes) in &mut members {
                if member.ends_with("models/model.json") {
                    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                    let text = if turn { reversed(&value) } else { value.to_string() };
                    *bytes = text.into_bytes();
                }
            }
            let other = read_bytes(&pack(&members, zip::CompressionMethod::Stored)).unwrap();
            assert_eq!(said(&other), said(&stored), "{name}, turned round: {turn}");
        }
    }
}

/// A minimal archive around a document.
fn around(document: &str) -> Result<Program, anelint::readers::ReadError> {
    let members = vec![("m/models/model.json".to_owned(), document.as_bytes().to_vec())];
    read_bytes(&pack(&members, zip::CompressionMethod::Stored))
}

fn message(result: Result<Program, anelint::readers::ReadError>) -> String {
    let message = result.expect_err("must not be read").message;
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn broken_documents_get_one_clear_line() {
    let meta = r#"{"dtype":7,"sizes":[{"as_int":2}],"strides":[{"as_int":1}]}"#;
    let values = format!(r#"{{"x":{meta},"a":{meta},"b":{meta}}}"#);
    let document = |nodes: &str, rest: &str| {
        format!(
            r#"{{"graph_module":{{"graph":{{"inputs":[{{"as_tensor":{{"name":"x"}}}}],"outputs":[],"nodes":[{nodes}],"tensor_values":{values},"sym_int_values":{{}},"sym_bool_values":{{}}}},"signature":{{"input_specs":[],"output_specs":[]}}}}{rest}}}"#
        )
    };
    let node = |name: &str, uses: &str| {
        format!(
            r#"{{"target":"torch.ops.aten.relu.default","inputs":[{{"name":"self","arg":{{"as_tensor":{{"name":"{uses}"}}}},"kind":1}}],"outputs":[{{"as_tensor":{{"name":"{name}"}}}}],"metadata":{{}},"name":"{name}"}}"#
        )
    };
    let program = around(&document(&node("a", "x"), "")).unwrap();
    assert_eq!(program.functions[0].len(), 2);
    let cases: Vec<(&str, String, &str)> = vec![
        ("cut", document(&node("a", "x"), "")[..200].to_owned(), "EOF"),
        ("wrong type", document("3", ""), "expected a node"),
        ("no target", document("{}", ""), "missing field `target`"),
        (
            "no nodes",
            r#"{"graph_module":{"graph":{},"signature":{"input_specs":[],"output_specs":[]}}}"#
                .into(),
            "missing field `nodes`",
        ),
        (
            "no graph",
            r#"{"graph_module":{"signature":{"input_specs":[],"output_specs":[]}}}"#.into(),
            "no `graph`",
        ),
        ("no signature", document("", "").replace("signature", "ignature"), "no `signature`"),
        (
            "same name twice",
            document(&format!("{},{}", node("a", "x"), node("a", "x")), ""),
            "two values are named `a`",
        ),
        ("nothing makes it", document(&node("a", "nobody"), ""), "which nothing makes"),
        (
            "made later",
            document(&format!("{},{}", node("a", "b"), node("b", "x")), ""),
            "made after it",
        ),
        ("uses itself", document(&node("a", "a"), ""), "made after it"),
        (
            "a tensor without an entry",
            document(&node("c", "x"), ""),
            "tensor `c` has no entry in `tensor_values`",
        ),
        (
            "no entries",
            document("", "").replace("tensor_values", "ensor_values"),
            "missing field `tensor_values`",
        ),
        ("a size below zero", document("", "").replace(":2}", ":-2}"), "has a size of -2"),
        ("other schema", document("", r#","schema_version":{"major":9,"minor":0}"#), "only 8.x"),
        ("text after the end", document("", "") + "x", "trailing"),
        ("deep", "[".repeat(100_000), "expected an exported program"),
        (
            "deep where nobody looks",
            document(&format!(r#"{{"target":"t","new":{}"#, "[".repeat(100_000)), ""),
            "expected `,`",
        ),
    ];
    for (what, document, expected) in cases {
        let message = message(around(&document));
        assert!(message.contains(expected), "{what}: {message}");
    }
}

#[test]
fn graphs_within_graphs_stop_at_a_limit() {
    let mut document = String::new();
    for _ in 0..2000 {
        document.push_str(r#"{"inputs":[],"outputs":[],"nodes":[{"target":"t","outputs":[],"metadata":{},"inputs":[{"name":"","arg":{"as_graph":{"name":"g","graph":"#);
    }
    let whole = format!(r#"{{"graph_module":{{"graph":{document}"#);
    assert!(message(around(&whole)).contains("recursion limit"));
}

#[test]
fn what_is_no_exported_program_is_named() {
    let zip = |names: &[&str]| {
        let members: Vec<(String, Vec<u8>)> =
            names.iter().map(|name| ((*name).to_owned(), b"x".to_vec())).collect();
        pack(&members, zip::CompressionMethod::Stored)
    };
    let kinds: Vec<(Vec<u8>, ReadErrorKind, &str)> = vec![
        (zip(&["serialized_exported_program.json"]), ReadErrorKind::Broken, "export again"),
        (zip(&["m/code/x.py", "m/constants.pkl"]), ReadErrorKind::OutOfScope, "TorchScript"),
        (zip(&["m/data.pkl"]), ReadErrorKind::OutOfScope, "checkpoint"),
        (zip(&["readme.txt"]), ReadErrorKind::OutOfScope, "no exported program"),
        (zip(&["m/archive_format"]), ReadErrorKind::Broken, "was not saved"),
        (b"\x10\0\0\0ET12....".to_vec(), ReadErrorKind::OutOfScope, "ExecuTorch"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n".to_vec(),
            ReadErrorKind::LfsPointer,
            "git lfs pull",
        ),
        (b"hello".to_vec(), ReadErrorKind::Broken, "not a model"),
        (Vec::new(), ReadErrorKind::Broken, "empty file"),
    ];
    for (bytes, kind, expected) in kinds {
        let error = read_bytes(&bytes).expect_err("no model");
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(expected), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path(), ReadOptions::default()).expect_err("empty");
    assert!(error.message.contains("empty folder"), "{error}");
    assert!(read(&folder.path().join("none.pt2"), ReadOptions::default()).is_err());
}

#[test]
fn names_that_lead_out_and_bombs_are_refused() {
    let evil = vec![("../models/model.json".to_owned(), b"{}".to_vec())];
    let message_of = message(read_bytes(&pack(&evil, zip::CompressionMethod::Stored)));
    assert!(message_of.contains("leads out"), "{message_of}");
    // A member that claims more than deflate can give.
    let members = vec![("m/models/model.json".to_owned(), vec![b' '; 1000])];
    let mut bytes = pack(&members, zip::CompressionMethod::Deflated);
    let at = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    bytes[at + 24..at + 28].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let message_of = message(read_bytes(&bytes));
    assert!(message_of.contains("bomb"), "{message_of}");
}

/// A small generator of numbers: equal in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[test]
fn no_cut_and_no_flipped_byte_makes_it_panic() {
    let mut numbers = Numbers(0x5eed);
    for name in archives() {
        let whole = std::fs::read(testdata(&name)).unwrap();
        let members = members(&testdata(&name));
        let (member, json) =
            members.iter().find(|(name, _)| name.ends_with("models/model.json")).unwrap().clone();
        // The whole file cut and changed anywhere.
        for _ in 0..2 {
            let _ = read_bytes(&whole[..numbers.below(whole.len())]);
            let mut changed = whole.clone();
            for _ in 0..1 + numbers.below(4) {
                let at = numbers.below(changed.len());
                changed[at] ^= 1 << numbers.below(8);
            }
            let _ = read_bytes(&changed);
        }
        // Its document alone, which checksums would else protect.
        for _ in 0..3 {
            let mut changed = json.clone();
            if numbers.below(4) == 0 {
                changed.truncate(numbers.below(json.len()));
            }
            for _ in 0..1 + numbers.below(3) {
                let at = numbers.below(changed.len());
                if let Some(byte) = changed.get_mut(at) {
                    *byte = b"0123456789-\"{}[],:abnt"[numbers.below(22)];
                }
            }
            let only = vec![(member.clone(), changed)];
            let _ = read_bytes(&pack(&only, zip::CompressionMethod::Stored));
        }
    }
}
