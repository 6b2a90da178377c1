//! Weight files of ML Programs: where each entry's payload lies. Headers are read, payloads never.
//!
//! An entry is a 64-byte header (sentinel, dtype, size in bytes, offset of the payload) that the
//! graph points at, and the payload that the header points at.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::graph::{Blob, BlobFile, Payload, Program};
use crate::readers::{ReadError, source};

const SENTINEL: u32 = 0xDEAD_BEEF;
const HEADER: u64 = 64;

/// The weight files that a program names, each opened once.
pub(crate) struct Weights {
    /// What `@model_path` stands for.
    base: PathBuf,
    files: HashMap<String, Entry, rustc_hash::FxBuildHasher>,
    /// Entries whose header does not fit the file; said once.
    cut: u64,
}

/// A weight file.
struct Entry {
    /// Index in `Program::blob_files`.
    id: u32,
    /// The file and its size, if it is there.
    open: Option<(File, u64)>,
}

impl Weights {
    /// Weight files below `base`.
    pub fn new(base: &Path) -> Weights {
        Weights { base: base.to_owned(), files: HashMap::default(), cut: 0 }
    }

    /// Where the payload of the entry at `offset` of `name` lies; `len` is what type and shape ask
    /// for, used when the file is not there to say it.
    ///
    /// # Errors
    /// [`ReadError`] if the name leads out of the bundle.
    pub fn locate(
        &mut self,
        program: &mut Program,
        name: &str,
        offset: u64,
        len: Option<u64>,
    ) -> Result<Payload, ReadError> {
        if !self.files.contains_key(name) {
            let entry = self.open(program, name)?;
            self.files.insert(name.to_owned(), entry);
        }
        let Some(entry) = self.files.get_mut(name) else { return Ok(Payload::Unknown) };
        let id = entry.id;
        let Some((file, size)) = &mut entry.open else {
            // Every writer puts the payload right after the header.
            return Ok(match (offset.checked_add(HEADER), len) {
                (Some(offset), Some(len)) => Payload::Blob(Blob { file: id, offset, len }),
                _ => Payload::Unknown,
            });
        };
        let found = header(file, offset)
            .filter(|(start, len)| start.checked_add(*len).is_some_and(|end| end <= *size));
        Ok(match found {
            Some((start, len)) => Payload::Blob(Blob { file: id, offset: start, len }),
            None => {
                self.cut += 1;
                Payload::Unknown
            }
        })
    }

    /// Says what was wrong with the files, once all constants are located.
    pub fn note(&self, program: &mut Program) {
        if self.cut > 0 {
            program.notes.push(format!(
                "{} constants point at no entry of their weight file: their values are not known",
                self.cut
            ));
        }
    }

    fn open(&self, program: &mut Program, name: &str) -> Result<Entry, ReadError> {
        let inner = name.strip_prefix("@model_path/").unwrap_or(name);
        let path = (!inner.contains('\\')).then(|| source::inside(&self.base, inner)).flatten();
        let Some(path) = path else {
            return Err(ReadError::broken(
                &program.path,
                format!("weight file `{name}` lies outside of the model: refused"),
            ));
        };
        let id = program.blob_files.len() as u32;
        let open = File::open(&path).ok().and_then(|file| {
            let data = file.metadata().ok()?;
            data.is_file().then_some((file, data.len()))
        });
        if open.is_some() {
            program.blob_files.push(BlobFile::Path(Arc::from(path)));
        } else {
            program.blob_files.push(BlobFile::Missing(Arc::from(inner)));
            program.notes.push(format!(
                "weight file `{inner}` is not there: values of its constants are not known"
            ));
        }
        Ok(Entry { id, open })
    }
}

/// Payload offset and length that the header at `offset` tells.
fn header(file: &mut File, offset: u64) -> Option<(u64, u64)> {
    let mut bytes = [0u8; 24];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    let long = |at: usize| bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    if u32::from_le_bytes(word(0)?) != SENTINEL {
        return None;
    }
    Some((u64::from_le_bytes(long(16)?), u64::from_le_bytes(long(8)?)))
}
