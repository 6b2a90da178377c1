//! The zip around an exported program: members by name, sizes checked before anything is inflated,
//! pickled members never touched.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

use super::super::ReadError;

/// Deflate cannot do better than about 1032:1, so a member that claims more is lying.
const MAX_RATIO: u64 = 1032;
/// Largest member that is inflated (a stored one is a slice of the map and has no such limit).
const MAX_INFLATED: u64 = 1 << 29;

/// An exported program starts at its first byte. Looking for a start further in goes wrong where the
/// first entry of the directory is as long as the zip64 records behind it (76 bytes, which the length
/// of the file's stem decides).
const CONFIG: Config = Config { archive_offset: ArchiveOffset::Known(0) };

/// A member's place in the archive.
#[derive(Debug, Clone, Copy)]
struct Member {
    index: usize,
    size: u64,
}

/// An opened archive.
pub struct Archive<'p> {
    path: &'p Path,
    bytes: Bytes,
    zip: ZipArchive<Cursor<Bytes>>,
    members: BTreeMap<String, Member>,
}

/// A member's bytes.
#[derive(Debug, Clone)]
pub struct Data {
    /// The bytes.
    pub bytes: Bytes,
    /// Offset in the file, for a stored member.
    pub offset: Option<u64>,
}

impl<'p> Archive<'p> {
    /// Reads the directory of the archive.
    ///
    /// # Errors
    /// [`ReadError`] if it is truncated, or holds a name that leads out of the archive.
    pub fn open(path: &'p Path, bytes: Bytes) -> Result<Archive<'p>, ReadError> {
        let mut zip = ZipArchive::with_config(CONFIG, Cursor::new(bytes.clone()))
            .map_err(|error| ReadError::broken(path, format!("broken zip archive: {error}")))?;
        let mut members = BTreeMap::new();
        for index in 0..zip.len() {
            let file = zip.by_index_raw(index).map_err(|error| {
                ReadError::broken(path, format!("broken zip archive: member {index}: {error}"))
            })?;
            let name = file.name().map_err(|error| {
                ReadError::broken(path, format!("broken zip archive: member {index}: {error}"))
            })?;
            if name.split(['/', '\\']).any(|part| part == "..") || name.starts_with('/') {
                return Err(ReadError::broken(
                    path,
                    format!("member `{}` leads out of the archive", clip(&name)),
                ));
            }
            if members
                .insert(name.clone().into_owned(), Member { index, size: file.size() })
                .is_some()
            {
                return Err(ReadError::broken(
                    path,
                    format!("two members are named `{}`", clip(&name)),
                ));
            }
        }
        Ok(Archive { path, bytes, zip, members })
    }

    /// The whole file.
    pub fn file(&self) -> &Bytes {
        &self.bytes
    }

    /// All member names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Whether a member is there.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Declared size of a member.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.members.get(name).map(|member| member.size)
    }

    /// Whether a member is stored, and so can be looked at without inflating it.
    pub fn place(&mut self, name: &str) -> Option<(u64, u64)> {
        let member = *self.members.get(name)?;
        let file = self.zip.by_index_raw(member.index).ok()?;
        if file.compression() != CompressionMethod::Stored || file.encrypted() {
            return None;
        }
        let start = file.data_start()?;
        let end = start.checked_add(file.size())?;
        (end <= self.bytes.len() as u64).then_some((start, file.size()))
    }

    /// A member's bytes: a slice of the map if stored, else inflated.
    ///
    /// # Errors
    /// [`ReadError`] if the member is missing, cut, encrypted, or larger than it can honestly be.
    pub fn read(&mut self, name: &str) -> Result<Data, ReadError> {
        let fail = |path: &Path, what: String| {
            ReadError::broken(path, format!("member `{}`: {what}", clip(name)))
        };
        let Some(member) = self.members.get(name).copied() else {
            return Err(fail(self.path, "not in the archive".into()));
        };
        if let Some((start, size)) = self.place(name) {
            let bytes = self.bytes.slice(start as usize..(start + size) as usize);
            return Ok(Data { bytes, offset: Some(start) });
        }
        let path = self.path;
        let file =
            self.zip.by_index(member.index).map_err(|error| fail(path, error.to_string()))?;
        if file.compression() == CompressionMethod::Stored {
            return Err(fail(path, "reaches beyond the end of the file".into()));
        }
        let (size, packed) = (file.size(), file.compressed_size());
        if size > MAX_INFLATED || size > packed.saturating_mul(MAX_RATIO).saturating_add(1024) {
            return Err(fail(
                path,
                format!("claims {size} bytes inflated from {packed}: refused as a zip bomb"),
            ));
        }
        let mut inflated = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 24));
        file.take(size.saturating_add(1))
            .read_to_end(&mut inflated)
            .map_err(|error| fail(path, format!("cannot inflate: {error}")))?;
        if inflated.len() as u64 != size {
            return Err(fail(path, format!("inflates to other than the {size} bytes it claims")));
        }
        Ok(Data { bytes: Bytes::from(inflated), offset: None })
    }
}

/// A name short enough for one line.
pub fn clip(text: &str) -> String {
    let mut clipped: String =
        text.chars().take(120).map(|c| if c.is_control() { '·' } else { c }).collect();
    if clipped.len() < text.len() && text.chars().count() > 120 {
        clipped.push('…');
    }
    clipped
}
