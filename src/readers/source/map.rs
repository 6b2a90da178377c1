//! The one place with `unsafe`: a read-only map of a file.

use std::fs::File;

use bytes::Bytes;

/// Maps `file` whole.
#[allow(unsafe_code)]
pub(super) fn map(file: &File) -> std::io::Result<Bytes> {
    // SAFETY: the map is private and read-only, and its owner lives as long as the `Bytes`. What
    // the type system cannot promise is that no other process shortens the file meanwhile: reading
    // past its end then raises SIGBUS, which is documented and which `--no-mmap` avoids.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
