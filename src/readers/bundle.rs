//! Language-model bundles: a folder whose `metadata.json` names the assets in it (`assets.main`, and
//! others beside it), each a `.aimodel` or `.aimodelc`.
//!
//! A bundle is not a program: [`assets`] says what to read. Names that lead out of the folder, or to
//! nothing, are errors.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ReadError, ReadOptions, source};
use crate::graph::Program;

/// The manifest of a bundle.
const MANIFEST: &str = "metadata.json";
/// Most bytes of a manifest.
const LARGEST: u64 = 4 << 20;
/// Most assets of one bundle.
const MOST_ASSETS: usize = 1024;

/// Whether a folder is a bundle: a manifest with `assets`, and no program of its own.
pub fn is_bundle(folder: &Path) -> bool {
    manifest(folder).is_ok_and(|manifest| manifest.is_some_and(|m| m.get("assets").is_some()))
}

/// The assets that a bundle names: key in the manifest (`main`) and path, in order of keys with
/// `main` first. `None` if the folder is no bundle.
///
/// # Errors
/// [`ReadError`] naming the path if the manifest is broken or a name does not resolve.
pub fn assets(folder: &Path) -> Result<Option<Vec<(String, PathBuf)>>, ReadError> {
    let Some(manifest) = manifest(folder)? else { return Ok(None) };
    let Some(assets) = manifest.get("assets") else { return Ok(None) };
    let broken = |message: String| ReadError::broken(&folder.join(MANIFEST), message);
    let mut named = Vec::new();
    match assets {
        Value::Object(entries) => {
            for (key, value) in entries {
                names(key, value, &mut named);
            }
        }
        other => names("assets", other, &mut named),
    }
    if named.is_empty() {
        return Err(broken("`assets` names no asset".to_owned()));
    }
    if named.len() > MOST_ASSETS {
        return Err(broken(format!("{} assets, more than {MOST_ASSETS}", named.len())));
    }
    named.sort_by(|a, b| (a.0 != "main", &a.0).cmp(&(b.0 != "main", &b.0)));
    let mut resolved = Vec::with_capacity(named.len());
    for (key, name) in named {
        let Some(path) = source::inside(folder, &name) else {
            return Err(broken(format!("assets.{key}: `{name}` leads out of the bundle")));
        };
        if !path.exists() {
            return Err(broken(format!(
                "assets.{key}: `{name}` is not in the bundle ({} does not exist)",
                path.display()
            )));
        }
        resolved.push((key, path));
    }
    Ok(Some(resolved))
}

/// Reads the main asset of a bundle, or its only one.
///
/// # Errors
/// As [`assets`], and those of the asset's own reader.
pub fn read(folder: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let assets = assets(folder)?.unwrap_or_default();
    let Some(((key, main), others)) = assets.split_first() else {
        return Err(ReadError::broken(folder, "a bundle without assets"));
    };
    let mut program = super::read(main, options)?;
    let pair = (program.names.intern("bundle-asset"), program.names.intern(key));
    program.metadata.push(pair);
    for (key, path) in others {
        program.notes.push(format!("the bundle's asset `{key}` is {}", path.display()));
    }
    Ok(program)
}

/// Paths in a value: a name, a list of names, or an object with a `path`.
fn names(key: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(name) => found.push((key.to_owned(), name.clone())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if let Value::String(_) | Value::Object(_) = item {
                    names(&format!("{key}[{at}]"), item, found);
                }
            }
        }
        Value::Object(fields) => {
            let name = ["path", "file", "name"].iter().find_map(|key| fields.get(*key)?.as_str());
            if let Some(name) = name {
                found.push((key.to_owned(), name.to_owned()));
            }
        }
        _ => {}
    }
}

fn manifest(folder: &Path) -> Result<Option<Value>, ReadError> {
    let path = folder.join(MANIFEST);
    let Ok(metadata) = std::fs::metadata(&path) else { return Ok(None) };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Ok(None);
    }
    let text = std::fs::read(&path)
        .map_err(|error| ReadError::broken(&path, format!("cannot read: {error}")))?;
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| ReadError::broken(&path, format!("not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn bundle(manifest: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(MANIFEST), manifest).unwrap();
        let asset = folder.path().join("decoder.aimodel");
        std::fs::create_dir(&asset).unwrap();
        let linear = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/aimodel/linear.aimodel");
        std::fs::copy(linear.join("main.mlirb"), asset.join("main.mlirb")).unwrap();
        folder
    }

    #[test]
    fn the_manifest_names_the_assets() {
        let folder =
            bundle(r#"{"assets": {"draft": "decoder.aimodel", "main": "decoder.aimodel"}}"#);
        assert!(is_bundle(folder.path()));
        let assets = assets(folder.path()).unwrap().unwrap();
        assert_eq!(
            assets.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            ["main", "draft"]
        );
        let program = super::super::read(folder.path(), ReadOptions::default()).unwrap();
        assert_eq!(program.metadata("bundle-asset"), Some("main"));
        assert_eq!(program.functions.len(), 1);
    }

    #[test]
    fn a_name_that_does_not_resolve_is_an_error_with_the_path() {
        let folder = bundle(r#"{"assets": {"main": "gone.aimodel"}}"#);
        let error = assets(folder.path()).unwrap_err().to_string();
        assert!(error.contains("assets.main") && error.contains("gone.aimodel"), "{error}");
        let folder = bundle(r#"{"assets": {"main": "../decoder.aimodel"}}"#);
        assert!(assets(folder.path()).unwrap_err().to_string().contains("out of the bundle"));
        let folder = bundle(r#"{"assets": {}}"#);
        assert!(assets(folder.path()).is_err());
    }

    #[test]
    fn other_folders_are_no_bundles() {
        assert!(!is_bundle(bundle(r#"{"assetVersion": "2.0"}"#).path()));
        assert!(!is_bundle(bundle("{").path()));
    }
}
