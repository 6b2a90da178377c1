//! Readers: bytes to a [`Program`]. One folder a format; [`read`] picks one by looking at the path
//! and the first bytes.
//!
//! # Threat model
//!
//! A model file is untrusted. A reader never runs or unpickles anything, bounds every length, count
//! and depth by what the file holds, touches no weights, follows no path out of the bundle, and
//! returns a [`ReadError`] with the offset where it stopped; it never panics.

use std::path::{Path, PathBuf};

use crate::graph::{Format, Program};

pub mod aimodel;
pub mod aimodelc;
mod borrow;
pub mod bundle;
mod compute_plan;
pub mod core_ai;
mod coreml;
mod detect;
pub mod dialect;
mod mil;
mod mil_text;
pub mod mlir_text;
mod mlmodelc;
pub mod normalize;
mod onnx;
mod pt2;
pub mod source;
mod wire;

pub use borrow::{Borrowed, borrow_lines};
pub use compute_plan::read_compute_plan;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    /// The file that is wrong (a member of a bundle is named in the message).
    pub path: PathBuf,
    /// What is wrong and what was expected, in one line.
    pub message: String,
    /// Byte offset in the file where it shows.
    pub offset: Option<u64>,
    /// Whether the file is just not for this program.
    pub kind: ReadErrorKind,
}

/// What sort of trouble a [`ReadError`] is: the exit code depends on it (semantics §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// Broken, truncated, hostile, unreadable.
    Broken,
    /// A Git LFS pointer in place of a model: a note.
    LfsPointer,
    /// A kind of model that is out of scope (trees, TorchScript, `.pte`): named, no error in a walk.
    OutOfScope,
}

impl ReadError {
    /// A broken file.
    pub fn broken(path: &Path, message: impl Into<String>) -> ReadError {
        ReadError {
            path: path.to_owned(),
            message: message.into(),
            offset: None,
            kind: ReadErrorKind::Broken,
        }
    }

    /// The same, with the byte offset where it shows.
    pub fn at(mut self, offset: u64) -> ReadError {
        self.offset = Some(offset);
        self
    }
}

/// How to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// Copy files into memory in place of mapping them (a map of a file that shrinks kills the
    /// process).
    pub no_mmap: bool,
}

/// Reads the model at `path`, whatever its format.
///
/// # Errors
/// [`ReadError`] if the path is no model that this program knows, or the file is broken.
pub fn read(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let mut program = detect::read(path, options)?;
    if path.parent().is_some_and(bundle::is_bundle) {
        let pair = (program.names.intern("bundle"), program.names.intern("true"));
        program.metadata.push(pair);
    }
    if let Some(beside) = exported_beside(path, program.format) {
        match detect::read(&beside, options) {
            Ok(source) => lend(&mut program, &source),
            Err(error) => program.notes.push(format!(
                "no source lines from `{}`: {error}",
                beside.file_name().unwrap_or_default().to_string_lossy()
            )),
        }
    }
    Ok(program)
}

/// Reads a model file whose bytes are at hand; `path` is what it is called and where files beside it
/// would lie.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(
    path: &Path,
    bytes: bytes::Bytes,
    options: ReadOptions,
) -> Result<Program, ReadError> {
    detect::read_bytes(path, bytes, options)
}

/// The exported program of the same model beside a Core ML model, which carries no source lines.
fn exported_beside(path: &Path, format: Format) -> Option<PathBuf> {
    if !matches!(format, Format::MlPackage | Format::MlModel | Format::MlModelC | Format::Mil) {
        return None;
    }
    let name = path.file_name()?.to_str()?;
    // `model.mlpackage`, or `model.fp16.mlpackage` beside `model.pt2`.
    let mut stem = name;
    while let Some((shorter, _)) = stem.rsplit_once('.') {
        stem = shorter;
        let beside = path.with_file_name(format!("{stem}.pt2"));
        if beside.is_file() {
            return Some(beside);
        }
    }
    None
}

/// Gives the program the lines of an exported program, and notes how many ops got one.
pub fn lend(program: &mut Program, source: &Program) {
    let borrowed = borrow_lines(program, source);
    let name = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    program.notes.push(format!(
        "source lines from `{name}`: {} of {} ops matched, {} more by their neighbours",
        borrowed.matched, borrowed.ops, borrowed.near
    ));
}
