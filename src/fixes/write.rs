//! A file replaced whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It is not what was read any more.
    #[error("it changed while anelint ran")]
    Changed,
    /// Its permissions say so.
    #[error("it is read-only")]
    ReadOnly,
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Replaces `path`, which holds `old`, by `new`: written beside it, with its permissions, then renamed.
/// Behind a link the file is replaced, not the link.
///
/// # Errors
/// [`WriteError`]; the file is then as it was.
pub fn replace_file(path: &Path, old: &[u8], new: &[u8]) -> Result<(), WriteError> {
    let target = path.canonicalize()?;
    let permissions = std::fs::metadata(&target)?.permissions();
    if permissions.readonly() {
        return Err(WriteError::ReadOnly);
    }
    let beside = beside(&target)
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "it names no file"))?;
    let written = write_new(&beside, new, permissions).and_then(|()| {
        // As late as can be: what somebody saved meanwhile is not to be lost.
        if std::fs::read(&target)? != old {
            return Err(WriteError::Changed);
        }
        Ok(std::fs::rename(&beside, &target)?)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn beside(target: &Path) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name()?);
    name.push(format!(".{}.tmp", std::process::id()));
    Some(target.with_file_name(name))
}

fn write_new(
    path: &Path,
    bytes: &[u8],
    permissions: std::fs::Permissions,
) -> Result<(), WriteError> {
    // Never through a file or link that somebody put there.
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(permissions)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.py");
        std::fs::write(&path, "old").unwrap();
        replace_file(&path, b"old", b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_somebody_saved_meanwhile_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.py");
        std::fs::write(&path, "theirs").unwrap();
        assert!(matches!(replace_file(&path, b"old", b"new"), Err(WriteError::Changed)));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("m.py"), dir.path().join("l.py"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        symlink(&path, &link).unwrap();
        replace_file(&link, b"old", b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(replace_file(&path, b"new", b"x"), Err(WriteError::ReadOnly)));
    }
}
