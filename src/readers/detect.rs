//! Which reader takes a path: by what the file or folder holds, never by its name alone.
//!
//! One row a kind, first match wins. A row looks at the folder's entries or at the first bytes and
//! either reads, or says in one line why this program does not.

use std::path::Path;

use bytes::Bytes;

use super::{
    ReadError, ReadErrorKind, ReadOptions, aimodel, aimodelc, bundle, coreml, mil_text, mlir_text,
    mlmodelc, onnx, pt2, source,
};
use crate::graph::Program;

/// What a row does with a file that it knows.
enum Reader {
    /// Reads the bytes of a file.
    File(fn(&Path, Bytes, ReadOptions) -> Result<Program, ReadError>),
    /// Not read: kind of trouble, and the line that says so.
    Not(ReadErrorKind, &'static str),
}

/// Looks at the first bytes and the path of a file.
type FileTest = fn(&[u8], &Path) -> bool;
/// Looks at what a folder holds.
type FolderTest = fn(&Path) -> bool;
/// Reads a folder.
type FolderReader = fn(&Path, ReadOptions) -> Result<Program, ReadError>;

/// Files by content: the test sees the first bytes and the path.
const FILES: &[(FileTest, Reader)] = &[
    (
        |head, _| head.starts_with(b"version https://git-lfs"),
        Reader::Not(
            ReadErrorKind::LfsPointer,
            "a Git LFS pointer, not the model itself: run `git lfs pull`",
        ),
    ),
    (|head, _| pt2::is_zip(head), Reader::File(pt2::read)),
    (
        |head, _| head.get(4..8).is_some_and(|magic| matches!(magic, b"ET12" | b"ET13")),
        Reader::Not(
            ReadErrorKind::OutOfScope,
            "an ExecuTorch program (.pte): lint the exported program that it was made from",
        ),
    ),
    (
        |head, _| head.starts_with(b"ML\xefRStableHLO"),
        Reader::Not(ReadErrorKind::OutOfScope, "a StableHLO module: out of scope"),
    ),
    (|head, _| head.starts_with(&aimodel::MAGIC), Reader::File(aimodel::read_file)),
    (
        |head, _| head.starts_with(b"\x80\x02") || head.starts_with(b"\x80\x04"),
        Reader::Not(ReadErrorKind::OutOfScope, "a Python pickle: pickles are never opened"),
    ),
    (
        |head, path| {
            let named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("mlmodel"));
            named || coreml::is_model(head)
        },
        Reader::File(coreml::read_file),
    ),
    (onnx::is_model, Reader::File(onnx::read)),
    (|head, _| mil_text::is_text(head), Reader::File(mil_text::read_file)),
    (|head, _| mlir_text::looks_like(head), Reader::File(mlir_text::read)),
];

/// Folders by what they hold: test, then reader.
const FOLDERS: &[(FolderTest, FolderReader)] = &[
    (|folder| folder.join("Manifest.json").is_file(), coreml::read_package),
    (aimodelc::is_compiled, aimodelc::read),
    (|folder| folder.join(aimodel::PROGRAM).is_file(), aimodel::read_folder),
    (mlmodelc::is_folder, mlmodelc::read),
    (bundle::is_bundle, bundle::read),
];

/// Bytes that a row may look at.
const HEAD: usize = 4096;

/// Reads whatever lies at `path`.
pub(super) fn read(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let metadata = std::fs::metadata(path)
        .map_err(|error| ReadError::broken(path, format!("cannot read: {error}")))?;
    if metadata.is_dir() {
        if let Some((_, reader)) = FOLDERS.iter().find(|(test, _)| test(path)) {
            return reader(path, options);
        }
        let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let what = if empty { "an empty folder" } else { "a folder that is no model" };
        return Err(ReadError::broken(path, what));
    }
    read_bytes(path, source::open(path, options)?, options)
}

/// Reads a file whose bytes are at hand; `path` is what it is called.
pub(super) fn read_bytes(
    path: &Path,
    bytes: Bytes,
    options: ReadOptions,
) -> Result<Program, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::broken(path, "an empty file"));
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    match FILES.iter().find(|(test, _)| test(head, path)) {
        Some((_, Reader::File(reader))) => reader(path, bytes, options),
        Some((_, Reader::Not(kind, message))) => Err(ReadError {
            path: path.to_owned(),
            message: (*message).to_owned(),
            offset: None,
            kind: *kind,
        }),
        None => Err(ReadError::broken(path, "not a model file that anelint knows")),
    }
}
