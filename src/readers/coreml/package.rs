//! `.mlpackage`: a folder whose `Manifest.json` says which file is the model.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::readers::{ReadError, ReadOptions, source};

/// More than any manifest needs.
const MANIFEST_LIMIT: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    #[serde(borrow)]
    item_info_entries: BTreeMap<Cow<'a, str>, Item<'a>>,
    #[serde(borrow)]
    root_model_identifier: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
}

/// The model file of the package at `folder`.
///
/// # Errors
/// [`ReadError`] if the manifest is missing, broken, names no model, or leads out of the package.
pub(super) fn model_file(folder: &Path, options: ReadOptions) -> Result<PathBuf, ReadError> {
    let fail = |message: String| ReadError::broken(folder, message);
    let bytes = source::open(&folder.join("Manifest.json"), options)
        .map_err(|error| fail(format!("Manifest.json: {}", error.message)))?;
    if bytes.len() > MANIFEST_LIMIT {
        return Err(fail("Manifest.json: too big for a manifest".to_owned()));
    }
    let manifest: Manifest<'_> =
        serde_json::from_slice(&bytes).map_err(|error| fail(format!("Manifest.json: {error}")))?;
    let item = match &manifest.root_model_identifier {
        Some(root) => manifest.item_info_entries.get(root),
        // Old packages name no root: the one model in it.
        None => manifest.item_info_entries.values().find(|item| item.path.ends_with(".mlmodel")),
    };
    let Some(item) = item else {
        return Err(fail("Manifest.json: the root model is none of its items".to_owned()));
    };
    let data = folder.join("Data");
    source::inside(&data, &item.path)
        .ok_or_else(|| fail(format!("`{}` lies outside of the package: refused", item.path)))
}
