//! Core ML in all its containers: what the readers make of real models, and what they say of broken
//! ones.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use anelint::graph::{ConstantOrigin, NodeKind, Payload, Program};
use anelint::readers::{ReadErrorKind, ReadOptions, read};
use anelint::report::text_dump;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/coreml").join(name)
}

fn program(name: &str) -> Program {
    read(&case(name), ReadOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn snapshot(name: &str) {
    let program = program(name);
    let metadata: Vec<String> = program
        .metadata
        .iter()
        .map(|(key, value)| format!("{}: {}", program.text(*key), program.text(*value)))
        .collect();
    let text = format!(
        "{} by {:?}\n{}\n\n{}",
        program.format.name(),
        program.producer,
        metadata.join("\n"),
        text_dump(&program)
    );
    insta::with_settings!({snapshot_path => "../snapshots/coreml", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name.replace('.', "_"), text);
    });
}

#[test]
fn states_are_read_and_written_with_data_edges() {
    snapshot("stateful_const.mlpackage");
}

#[test]
fn functions_of_a_package_are_entries_each_with_its_opset() {
    snapshot("multi_function.mlpackage");
}

#[test]
fn enumerated_shapes_come_from_the_description() {
    snapshot("flex_enumerated.mlpackage");
}

#[test]
fn palettised_weights_are_seen_as_compression() {
    snapshot("cw_conv.pal4_group16_scale.mlpackage");
}

#[test]
fn blocks_become_functions_that_name_what_they_take_from_around_them() {
    snapshot("nested_blocks.mlmodel");
}

#[test]
fn paddings_masks_and_axes_are_resolved() {
    snapshot("windows.mlmodel");
}

#[test]
fn an_older_network_has_shapes_where_they_follow() {
    snapshot("cnn_classifier.mlmodel");
    snapshot("exact_shapes.mlmodel");
}

#[test]
fn a_pipeline_lints_the_stages_that_have_a_graph() {
    let program = program("pipeline.mlmodel");
    assert_eq!(program.functions.len(), 1);
    assert_eq!(program.text(program.functions[0].name), "network");
    assert!(program.notes[0].contains("`trees`"), "{:?}", program.notes);
}

#[test]
fn trees_are_named_and_out_of_scope() {
    let error = read(&case("trees.mlmodel"), ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::OutOfScope);
    assert!(error.message.contains("tree ensemble"), "{error}");
}

#[test]
fn text_of_a_compiled_model() {
    snapshot("compiled.mlmodelc");
}

#[test]
fn an_analysis_file_confirms_where_ops_went() {
    snapshot("analytics.mil");
    let program = program("analytics.mil");
    let said: Vec<_> = program
        .confirmed
        .iter()
        .map(|c| (c.node.as_str(), c.on_neural_engine(), c.neural_engine_supports()))
        .collect();
    assert_eq!(
        said,
        [
            ("conv_0", Some(true), Some(true)),
            ("add_0", Some(true), Some(true)),
            ("add_1", Some(false), Some(false)),
        ]
    );
    assert_eq!(program.confirmed[2].reasons[0].1, "Unsupported tensor data type: int32");
    assert_eq!(program.confirmed[0].estimates[0], ("ane".to_owned(), 0.015625));
}

#[test]
fn weights_are_located_and_not_read() {
    let program = program("mask_helper_neginf.mlpackage");
    let blobs = program.constants.iter().filter(|c| matches!(c.payload, Payload::Blob(_))).count();
    assert!(blobs > 0);
    let weights = program.constants.iter().filter(|c| c.origin == ConstantOrigin::Parameter);
    assert!(weights.count() > 0);
    assert!(program.notes.is_empty(), "{:?}", program.notes);
}

#[test]
fn every_package_of_the_placement_set_has_only_known_ops() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/placement");
    let mut seen = 0;
    for folder in ["models", "ctx/models"] {
        let mut packages: Vec<PathBuf> = std::fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        packages.sort();
        for package in
            packages.iter().filter(|path| path.extension().is_some_and(|e| e == "mlpackage"))
        {
            let program = read(package, ReadOptions::default())
                .unwrap_or_else(|error| panic!("{}: {error}", package.display()));
            let unknown: Vec<&str> = program
                .functions
                .iter()
                .flat_map(|function| function.nodes())
                .filter(|(_, node)| {
                    node.kind == NodeKind::Op && node.op == anelint::graph::Op::UNKNOWN
                })
                .map(|(_, node)| program.text(node.spelling))
                .collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", package.display());
            seen += 1;
        }
    }
    assert!(seen >= 230, "{seen} packages");
}

/// Every file of the cases, cut at many places and with flipped bytes: an answer each time, never a
/// panic, never a hang.
#[test]
fn broken_files_get_an_answer() {
    let mut files: Vec<PathBuf> = ["cnn.mlmodel", "exact_shapes.mlmodel", "pipeline.mlmodel"]
        .iter()
        .chain(&["nested_blocks.mlmodel", "windows.mlmodel", "analytics.mil"])
        .map(|name| case(name))
        .collect();
    files.push(case("stateful_const.mlpackage/Data/com.apple.CoreML/model.mlmodel"));
    files.push(case("compiled.mlmodelc/model.mil"));
    let dir = tempfile::tempdir().unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        let target = dir.path().join(file.file_name().unwrap());
        for _ in 0..60 {
            let cut = random() as usize % whole.len();
            std::fs::write(&target, &whole[..cut]).unwrap();
            let _ = read(&target, ReadOptions::default());
            let mut flipped = whole.clone();
            for _ in 0..4 {
                let at = random() as usize % flipped.len();
                flipped[at] ^= 1 << (random() % 8);
            }
            std::fs::write(&target, &flipped).unwrap();
            let _ = read(&target, ReadOptions::default());
        }
    }
}

fn mil(body: &str) -> Result<Program, anelint::readers::ReadError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.mil");
    let text = format!(
        "program(1.0)\n{{ func main<ios18>(tensor<fp16, [1, 8]> x) {{ {body} }} -> (y); }}"
    );
    std::fs::write(&path, text).unwrap();
    read(&path, ReadOptions::default())
}

#[test]
fn a_weight_file_outside_of_the_model_is_refused() {
    for path in ["@model_path/../secret", "/etc/passwd", "a/../../b", "..\\\\up"] {
        let error = mil(&format!(
            "tensor<fp16, [8]> w = const()[val = tensor<fp16, [8]>(BLOBFILE(path = string(\"{path}\"), offset = uint64(64)))]; \
             tensor<fp16, [1, 8]> y = add(x = x, y = w)[name = string(\"y\")];"
        ))
        .unwrap_err();
        assert!(error.message.contains("outside of the model: refused"), "{path}: {error}");
    }
}

#[test]
fn a_package_whose_manifest_leads_out_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["../../x.mlmodel", "/etc/passwd"] {
        let manifest = format!(
            r#"{{"itemInfoEntries": {{"a": {{"path": "{path}"}}}}, "rootModelIdentifier": "a"}}"#
        );
        std::fs::write(dir.path().join("Manifest.json"), manifest).unwrap();
        let error = read(dir.path(), ReadOptions::default()).unwrap_err();
        assert!(error.message.contains("outside of the package: refused"), "{error}");
    }
    std::fs::write(dir.path().join("Manifest.json"), "{").unwrap();
    assert!(
        read(dir.path(), ReadOptions::default()).unwrap_err().message.starts_with("Manifest.json")
    );
}

#[test]
fn mistakes_in_text_are_named_with_their_place() {
    for (body, message) in [
        (
            "tensor<fp16, [1, 8]> y = relu(x = nothing);",
            "`y` uses `nothing`, which nothing before it defines",
        ),
        ("tensor<fp16, [1, 8]> y = relu(x = x)", "expected `;`, found `}`"),
        ("tensor<fp16, [1, 8> y = relu(x = x);", "expected a size, found `>`"),
        ("tensor<fp16, [1, 8]> y relu(x = x);", "expected `=`, found `relu`"),
    ] {
        let error = mil(body).unwrap_err();
        assert!(error.message.contains(message) || message.starts_with("expected"), "{error}");
        assert!(
            error.message.contains(message.split(',').next().unwrap()) || error.offset.is_some(),
            "{error}"
        );
    }
    let deep = "state<".repeat(100_000);
    let error = mil(&format!("{deep} y = relu(x = x);")).unwrap_err();
    assert!(error.message.contains("types nest deeper"), "{error}");
    let deep = "[".repeat(100_000);
    let error = mil(&format!("tensor<fp16, [1]> c = const()[val = tensor<fp16, [1]>({deep})];"))
        .unwrap_err();
    assert!(error.message.contains("values nest deeper"), "{error}");
}

/// Packages carry no source lines: those beside the exported program of the same model borrow them.
#[test]
fn ops_borrow_the_lines_of_the_exported_program_beside_the_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases/out");
    let mut packages: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    packages.retain(|path| path.extension().is_some_and(|e| e == "mlpackage"));
    packages.sort();
    let (mut ops, mut placed, mut softmaxes) = (0, 0, 0);
    for package in packages.iter().filter(|path| path.with_extension("pt2").is_file()) {
        let program = read(package, ReadOptions::default()).unwrap();
        assert!(
            program.notes.iter().any(|note| note.starts_with("source lines from")),
            "{}: {:?}",
            package.display(),
            program.notes
        );
        for function in &program.functions {
            for (id, node) in function.nodes().filter(|(_, node)| node.kind == NodeKind::Op) {
                if function.node(id).op.category() == anelint::graph::Category::Compression {
                    continue;
                }
                ops += 1;
                let provenance = program.sources.get(node.provenance);
                let frames: Vec<&str> = program
                    .sources
                    .frames(provenance.stack)
                    .map(|f| program.text(f.text))
                    .collect();
                placed += usize::from(!frames.is_empty());
                if program.text(node.spelling) == "softmax" {
                    softmaxes += 1;
                    // Recorded at the call of `forward` that holds it, when a helper does.
                    let fits = frames.iter().any(|line| line.contains("softmax"))
                        || frames.iter().any(|line| line.contains("att"));
                    assert!(fits, "{}: {frames:?}", package.display());
                }
            }
        }
    }
    assert!(ops > 200 && softmaxes > 5, "{ops} ops, {softmaxes} softmaxes");
    assert!(placed * 100 >= ops * 99, "{placed} of {ops} ops have a line");
}
