//! Bytes of a file and paths inside a bundle, until the shared module for both is there.

use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::readers::{ReadError, ReadOptions};

pub(super) fn open(path: &Path, _options: ReadOptions) -> Result<Bytes, ReadError> {
    std::fs::read(path)
        .map(Bytes::from)
        .map_err(|error| ReadError::broken(path, format!("cannot read: {error}")))
}

pub(super) fn inside(root: &Path, relative: &str) -> Option<PathBuf> {
    let path = Path::new(relative);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_)));
    (stays && !relative.is_empty()).then(|| root.join(path))
}
