//! The one place that writes: to stdout, or to a file that is written beside and renamed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes to standard output. A reader that has gone away is no error.
///
/// # Errors
/// Whatever else writing runs into.
pub fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let result = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes to standard error; what cannot be written there is lost.
pub fn to_stderr(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

/// Writes a file whole or not at all: beside it first, then renamed. A path that is there and no
/// regular file (`/dev/null`, a pipe) is written to as it is.
///
/// # Errors
/// Whatever writing runs into; the old file is then as it was.
pub fn to_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Through a link, the file behind it is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match std::fs::metadata(&target) {
        Ok(metadata) if !metadata.is_file() => return std::fs::write(&target, bytes),
        _ => {}
    }
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let mut beside_name = std::ffi::OsString::from(".");
    beside_name.push(name);
    beside_name.push(format!(".{}.tmp", std::process::id()));
    let beside: PathBuf = target.with_file_name(beside_name);
    let result = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, &target));
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result
}

/// Appends to a file, which need not be there.
///
/// # Errors
/// Whatever writing runs into.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        to_file(&path, b"old").unwrap();
        to_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(to_file(&dir.path().join("none/report.json"), b"x").is_err());
    }
}
