//! ONNX models: `.onnx` files with their data inside or in files beside them.
//!
//! A model is decoded piece by piece: nodes, tensors and nested graphs stay slices of the file until
//! their turn (`wire`, `tensor`). `graph` puts them into canonical terms with the help of the dialect
//! map, `settings` (attributes), `shapes` (what `value_info` does not say), `provenance` (where torch's
//! exporter says that a node comes from). Functions of the model are inlined (`functions`).
//!
//! # Threat model
//!
//! Weights are never read, outside files only measured; their locations stay in the model's folder.
//! Graphs and functions nest to a limit, and inlining stops at a number of nodes.

mod attributes;
mod constants;
mod functions;
mod graph;
mod nodes;
mod provenance;
mod settings;
mod shapes;
mod tensor;
mod types;
mod values;
mod wire;

use std::path::Path;

use bytes::Bytes;

use self::graph::Lowering;
use self::wire::{Wire, proto};
use super::{ReadError, ReadOptions};
use crate::graph::{Format, Program};

/// Whether a file may be a model: by its name, or by its first fields, which are the version of the
/// format and then the producer's name, or the graph, or the opsets. (A Core ML model starts alike;
/// what follows there is a description.)
pub(super) fn is_model(head: &[u8], path: &Path) -> bool {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx")) {
        return true;
    }
    match head {
        [0x08, 1..=0x3f, 0x12, length, first, ..] => *length > 0 && first.is_ascii_alphanumeric(),
        [0x08, 1..=0x3f, 0x3a | 0x42, ..] => true,
        _ => false,
    }
}

/// Reads the model at `path`.
///
/// # Errors
/// [`ReadError`] if a message cannot be decoded, a node uses a value that nothing defines, data are
/// said to lie outside of the folder, or graphs nest too deep.
pub(super) fn read(path: &Path, bytes: Bytes, _options: ReadOptions) -> Result<Program, ReadError> {
    let wire = Wire::new(path, bytes.clone());
    let model: proto::Model = wire.decode(bytes.clone(), "the model")?;
    if model.graph.is_empty() {
        return Err(wire.broken("the model holds no graph: not an ONNX model".to_owned(), None));
    }
    let mut program = Program::new(path.to_owned(), Format::Onnx);
    program.producer = [model.producer_name.as_str(), model.producer_version.as_str()]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    add(&mut program, "ir-version", &model.ir_version.to_string());
    for opset in &model.opset_import {
        let domain = if opset.domain.is_empty() { "ai.onnx" } else { &opset.domain };
        add(&mut program, &format!("opset:{domain}"), &opset.version.to_string());
    }
    let base = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let functions = functions::Library::read(&wire, model.functions)?;
    let opsets = functions::Opsets::new(&model.opset_import);
    let mut lowering = Lowering::new(&mut program, &wire, base, bytes, functions);
    lowering.model(model.graph, opsets, model.ir_version)?;
    lowering.finish();
    Ok(program)
}

fn add(program: &mut Program, key: &str, value: &str) {
    let entry = (program.names.intern(key), program.names.intern(value));
    program.metadata.push(entry);
}
