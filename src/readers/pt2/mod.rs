//! `torch.export.save` archives: a zip whose `models/*.json` holds the graph.
//!
//! Parsed as a stream from the mapped bytes (`document`), put into canonical terms node by node
//! (`convert`), then settled where shapes are needed (`settle`), made functional (`functional`) and
//! normalised (`finish`). Weights are never read and pickled members never opened.

mod archive;
mod argument;
mod builder;
mod constants;
mod convert;
mod document;
mod finish;
mod functional;
mod settle;
mod signature;
mod source_map;
mod sympy;
pub(super) mod trace;

use std::path::Path;

use bytes::Bytes;
use serde::de::DeserializeSeed;

use self::archive::{Archive, clip};
use self::builder::Builder;
use self::document::DocumentSeed;
use super::{ReadError, ReadErrorKind, ReadOptions};
use crate::graph::{BlobFile, Format, Program};

/// Whether the bytes are a zip archive.
pub(super) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

/// Reads an archive.
///
/// # Errors
/// [`ReadError`] if it is no exported program, or broken.
pub(super) fn read(path: &Path, bytes: Bytes, _options: ReadOptions) -> Result<Program, ReadError> {
    let mut archive = Archive::open(path, bytes)?;
    let models: Vec<String> = archive
        .names()
        .filter(|name| {
            name.strip_suffix(".json")
                .and_then(|stem| stem.rsplit_once('/'))
                .is_some_and(|(folder, _)| folder == "models" || folder.ends_with("/models"))
        })
        .map(str::to_owned)
        .collect();
    if models.is_empty() {
        return Err(no_model(path, &archive));
    }
    let mut program = Program::new(path.to_owned(), Format::Pt2);
    program.blob_files.push(BlobFile::Bytes(archive.file().clone()));
    for member in &models {
        program = model(path, &mut archive, member, models.len() > 1, program)?;
    }
    Ok(program)
}

/// What a zip without `models/*.json` is.
fn no_model(path: &Path, archive: &Archive<'_>) -> ReadError {
    let ends = |suffix: &str| archive.names().any(|name| name.ends_with(suffix));
    let (message, kind) = if ends("serialized_exported_program.json") {
        (
            "an exported program of torch 2.6 or older (serialized_exported_program.json): export \
             again with torch 2.8 or newer",
            ReadErrorKind::Broken,
        )
    } else if ends("constants.pkl") || ends("bytecode.pkl") || ends(".debug_pkl") {
        ("a TorchScript archive: export the model with torch.export", ReadErrorKind::OutOfScope)
    } else if ends("data.pkl") {
        ("a pickled torch checkpoint: it holds weights and no graph", ReadErrorKind::OutOfScope)
    } else if ends("archive_format") || ends("archive_version") {
        (
            "a torch.export archive without `models/*.json`: the graph was not saved",
            ReadErrorKind::Broken,
        )
    } else {
        ("a zip archive that holds no exported program", ReadErrorKind::OutOfScope)
    };
    ReadError { path: path.to_owned(), message: message.into(), offset: None, kind }
}

fn model<'p>(
    path: &'p Path,
    archive: &mut Archive<'p>,
    member: &str,
    several: bool,
    program: Program,
) -> Result<Program, ReadError> {
    let data = archive.read(member)?;
    let (root, stem) = member.rsplit_once("models/").unwrap_or(("", member));
    let mut builder = Builder::new(program);
    let map = format!("{root}extra/{}", source_map::MEMBER);
    if archive.has(&map) {
        source_map::read(archive, &map, &mut builder);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(&data.bytes);
    let document = DocumentSeed(&mut builder)
        .deserialize(&mut deserializer)
        .and_then(|rest| deserializer.end().map(|()| rest))
        .map_err(|error| {
            let at = json_offset(&data.bytes, error.line(), error.column());
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or(&message);
            let broken = ReadError::broken(
                path,
                format!("member `{}`, byte {at}: {}", clip(member), clip(message)),
            );
            match data.offset {
                Some(start) => broken.at(start + at),
                None => broken,
            }
        })?;
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    let name = if several || stem != "model" { stem } else { "main" };
    let place = finish::Place { path, archive, root, stem, name };
    finish::finish(builder, document, place)
}

/// Byte offset of a place that serde_json names by line and column.
fn json_offset(bytes: &[u8], line: usize, column: usize) -> u64 {
    let start = if line <= 1 {
        0
    } else {
        bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(line - 2)
            .map_or(0, |(at, _)| at + 1)
    };
    (start + column.saturating_sub(1)) as u64
}
