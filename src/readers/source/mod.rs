//! Getting at the bytes of a model: maps, copies, and paths inside a bundle. Nothing here knows a
//! format.

mod map;

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use super::{ReadError, ReadOptions};

/// The bytes of a file: a map, or a copy with [`ReadOptions::no_mmap`].
///
/// # Errors
/// [`ReadError`] if the file is missing, unreadable or no regular file.
pub fn open(path: &Path, options: ReadOptions) -> Result<Bytes, ReadError> {
    let fail = |error: std::io::Error| ReadError::broken(path, format!("cannot read: {error}"));
    let mut file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if !metadata.is_file() {
        return Err(ReadError::broken(path, "is not a regular file"));
    }
    // An empty file cannot be mapped everywhere.
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    if options.no_mmap {
        let mut copy = Vec::new();
        file.read_to_end(&mut copy).map_err(fail)?;
        return Ok(Bytes::from(copy));
    }
    map::map(&file).map_err(fail)
}

/// `relative` below `root`, if it stays there: no absolute path, no `..`, and no link that leads
/// out.
pub fn inside(root: &Path, relative: &str) -> Option<PathBuf> {
    let relative = Path::new(relative);
    let stays = relative
        .components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if !stays || relative.as_os_str().is_empty() {
        return None;
    }
    let joined = root.join(relative);
    match (joined.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(real_root)) => real.starts_with(real_root).then_some(joined),
        // Not there: nothing that could lead out.
        (Err(_), _) => Some(joined),
        (Ok(_), Err(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_path_out_of_the_bundle_is_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(inside(root.path(), "weights/a.bin").is_some());
        assert!(inside(root.path(), "./a.bin").is_some());
        for out in ["../a", "/etc/passwd", "a/../../b", ""] {
            assert!(inside(root.path(), out).is_none(), "{out}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_bundle_is_refused() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("w")).unwrap();
        assert!(inside(root.path(), "w").is_none());
    }

    #[test]
    fn a_copy_and_a_map_hold_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"abc").unwrap();
        let mapped = open(&path, ReadOptions { no_mmap: false }).unwrap();
        let copied = open(&path, ReadOptions { no_mmap: true }).unwrap();
        assert_eq!(mapped, copied);
        assert!(open(dir.path(), ReadOptions::default()).is_err());
    }
}
