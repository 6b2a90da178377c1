//! Core AI assets: a `.aimodel` directory, or its `main.mlirb` alone.
//!
//! Two steps: bytes → the parsed form of `core_ai` (`sections`, `entries`, `ops`, `debug`), then the
//! canonical graph (`core_ai::lower`). Weights lie in the resource section and are never touched: a
//! constant keeps name, offset and length. No MLIR library is needed.

mod cursor;
mod debug;
mod entries;
mod ops;
mod sections;
mod settings;

use std::path::Path;

use bytes::Bytes;

use crate::graph::{BlobFile, Format, Program};
use crate::readers::core_ai::{self, ir};
use crate::readers::{ReadError, ReadOptions, source};

pub use sections::MAGIC;

/// The program inside an asset.
pub const PROGRAM: &str = "main.mlirb";

/// Reads an asset directory.
///
/// # Errors
/// [`ReadError`] with the offset in `main.mlirb` where it is broken.
pub fn read_folder(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let bytes = source::open(&path.join(PROGRAM), options)?;
    let mut program = Program::new(path.to_owned(), Format::AiModel);
    metadata(&path.join("metadata.json"), &mut program);
    bytecode(path, bytes, &mut program)?;
    Ok(program)
}

/// Reads a `main.mlirb` that stands alone.
///
/// # Errors
/// As [`read_folder`].
pub fn read_file(path: &Path, bytes: Bytes, _options: ReadOptions) -> Result<Program, ReadError> {
    let mut program = Program::new(path.to_owned(), Format::AiModel);
    bytecode(path, bytes, &mut program)?;
    Ok(program)
}

/// Reads MLIR bytecode into a program, which keeps the bytes for its constants.
pub(crate) fn bytecode(path: &Path, bytes: Bytes, program: &mut Program) -> Result<(), ReadError> {
    let file = program.blob_files.len() as u32;
    program.blob_files.push(BlobFile::Bytes(bytes.clone()));
    let module = parse(&bytes).map_err(|fault| broken(path, &fault))?;
    core_ai::lower(&module, program, core_ai::Input { file, bytes: &bytes });
    Ok(())
}

/// Bytecode → the parsed form.
pub(crate) fn parse(bytes: &[u8]) -> cursor::Decoded<ir::Module<'_>> {
    let tables = sections::Tables::read(bytes)?;
    ops::read(&tables)
}

fn broken(path: &Path, fault: &cursor::Fault) -> ReadError {
    ReadError::broken(path, format!("{PROGRAM}: {}", fault.message)).at(fault.offset as u64)
}

/// Most bytes of a `metadata.json` that are read.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// Takes the producer from a manifest. Every key is optional; a broken manifest is a note, since
/// the program does not depend on it.
pub(crate) fn metadata(path: &Path, program: &mut Program) {
    let Ok(size) = std::fs::metadata(path).map(|metadata| metadata.len()) else { return };
    if size > LARGEST_MANIFEST {
        program.notes.push(format!("metadata.json holds {size} bytes and was not read"));
        return;
    }
    let text = std::fs::read(path).unwrap_or_default();
    match serde_json::from_slice::<std::collections::BTreeMap<String, serde_json::Value>>(&text) {
        Ok(manifest) => {
            if let Some(producer) = manifest.get("producer").and_then(|value| value.as_str()) {
                program.producer = producer.to_owned();
            }
            for key in ["assetVersion", "creationDate"] {
                if let Some(value) = manifest.get(key).and_then(|value| value.as_str()) {
                    let pair = (program.names.intern(key), program.names.intern(value));
                    program.metadata.push(pair);
                }
            }
        }
        Err(error) => program.notes.push(format!("metadata.json: {error}")),
    }
}

/// The parsed form of an asset or `.mlirb` as JSON, op by op as the file has it: for comparisons.
///
/// # Errors
/// As [`read_folder`].
pub fn parsed_json(path: &Path) -> Result<serde_json::Value, ReadError> {
    let file = if path.is_dir() { path.join(PROGRAM) } else { path.to_owned() };
    let bytes = source::open(&file, ReadOptions::default())?;
    let module = parse(&bytes).map_err(|fault| broken(path, &fault))?;
    Ok(core_ai::json::module(&module, core_ai::Input { file: 0, bytes: &bytes }))
}

/// The op names of any MLIR bytecode, each once, whatever its dialects.
pub(crate) fn op_names(bytes: &[u8]) -> cursor::Decoded<Vec<String>> {
    let tables = sections::Tables::read(bytes)?;
    let name = |name: &sections::RawName<'_>| {
        let dialect = tables.dialects.get(name.dialect).unwrap_or(&"?");
        format!("{dialect}.{}", name.name)
    };
    Ok(tables.op_names.iter().map(name).collect())
}
