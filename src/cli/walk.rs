//! Which model graphs lie below the paths that the user named.
//!
//! Ignore files are not honoured: graphs are build products, and those are what ignore files list.
//! Bundles (`.mlpackage`, `.aimodel`) are one graph each and are not walked into.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::check::absolute;

/// A model to check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Input {
    /// As shown, and as opened.
    pub path: PathBuf,
    /// The user named it; it was not come across.
    pub named: bool,
    /// It may well be something else (`.pt` is a checkpoint more often than not): if it cannot be
    /// read, that is no news.
    pub doubtful: bool,
}

/// What the paths lead to.
#[derive(Debug, Default)]
pub struct Found {
    /// Models, sorted by path.
    pub inputs: Vec<Input>,
    /// Paths that are not there, or cannot be looked into, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Named folders without a model below them.
    pub empty: Vec<PathBuf>,
}

/// Folders that are one model.
const BUNDLES: &[&str] = &["mlpackage", "mlmodelc", "aimodel", "aimodelc"];
/// Files that are a model.
const MODELS: &[&str] = &["pt2", "onnx", "mlmodel", "mlir", "mil"];
/// Files of kinds that are out of scope, to be named as such.
const FOREIGN: &[&str] = &["pte", "ptl", "stablehlo"];
/// Files that may be a model.
const DOUBTFUL: &[&str] = &["pt", "pth"];
/// Folders never walked into.
const SKIPPED: &[&str] = &[".git", ".hg", ".svn", "node_modules", "__pycache__", "site-packages"];

/// Looks below `paths`. What `exclude` says yes to is left out; a path that the user named, only if
/// `exclude_named`.
pub fn find(paths: &[PathBuf], exclude: &dyn Fn(&Path) -> bool, exclude_named: bool) -> Found {
    let mut found = Found::default();
    let mut seen = BTreeSet::new();
    let mut inputs = BTreeSet::new();
    let mut add = |path: PathBuf, named: bool, doubtful: bool| {
        if seen.insert(absolute(&path, Path::new("/"))) {
            inputs.insert(Input { path, named, doubtful });
        }
    };
    for path in paths {
        if exclude_named && exclude(path) {
            continue;
        }
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                found.unreadable.push((path.clone(), "no such file or folder".to_owned()));
                continue;
            }
            Err(error) => {
                found.unreadable.push((path.clone(), format!("cannot be opened: {error}")));
                continue;
            }
        };
        // A member of a bundle stands for the bundle: hooks hand over files.
        if let Some(bundle) = bundle_of(path) {
            add(bundle.to_owned(), true, false);
            continue;
        }
        if metadata.is_file() {
            add(path.clone(), true, false);
            continue;
        }
        if path.join("Manifest.json").is_file() || path.join("main.mlirb").is_file() {
            add(path.clone(), true, false);
            continue;
        }
        let mut any = false;
        // The assets that a language-model bundle names, whatever they are called.
        match crate::readers::bundle::assets(path) {
            Ok(Some(assets)) => {
                any = true;
                assets.into_iter().for_each(|(_, asset)| add(asset, true, false));
            }
            Ok(None) => {}
            Err(error) => found.unreadable.push((error.path, error.message)),
        }
        let mut walk = walkdir::WalkDir::new(path).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let Ok(entry) = entry else { continue };
            if entry.depth() == 0 {
                continue;
            }
            let own = clean(entry.path());
            if entry.file_type().is_dir() {
                if is_skipped(&entry) || exclude(&own) {
                    walk.skip_current_dir();
                } else if has_suffix(&own, BUNDLES) {
                    walk.skip_current_dir();
                    any = true;
                    add(own, false, false);
                }
                continue;
            }
            if exclude(&own) {
                continue;
            }
            if has_suffix(&own, MODELS) || has_suffix(&own, FOREIGN) {
                any = true;
                add(own, false, false);
            } else if has_suffix(&own, DOUBTFUL) {
                add(own, false, true);
            }
        }
        if !any {
            found.empty.push(path.clone());
        }
    }
    found.inputs = inputs.into_iter().collect();
    found
}

/// The outermost bundle that a path is or lies in.
fn bundle_of(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|folder| has_suffix(folder, BUNDLES) && folder.is_dir()).last()
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or("");
    suffixes.iter().any(|known| suffix.eq_ignore_ascii_case(known))
}

fn is_skipped(entry: &walkdir::DirEntry) -> bool {
    let name = entry.file_name().to_str().unwrap_or("");
    SKIPPED.contains(&name) || entry.path().join("pyvenv.cfg").is_file()
}

/// Without a leading `./`.
fn clean(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        dir
    }

    fn shown(dir: &Path, found: &Found) -> Vec<String> {
        let shown = |path: &Path| path.strip_prefix(dir).unwrap().display().to_string();
        found.inputs.iter().map(|input| shown(&input.path)).collect()
    }

    #[test]
    fn bundles_are_one_model_and_tool_folders_are_skipped() {
        let dir = tree(&[
            "a.pt2",
            "b.mlpackage/Manifest.json",
            "b.mlpackage/Data/x.mlmodel",
            "sub/c.onnx",
            ".git/d.onnx",
            "env/pyvenv.cfg",
            "env/e.onnx",
            ".hidden/f.pt2",
            "readme.txt",
        ]);
        let found = find(&[dir.path().to_owned()], &|_| false, false);
        assert_eq!(
            shown(dir.path(), &found),
            [".hidden/f.pt2", "a.pt2", "b.mlpackage", "sub/c.onnx"]
        );
        assert!(found.empty.is_empty());
    }

    #[test]
    fn a_member_stands_for_its_bundle_once() {
        let dir = tree(&["b.mlpackage/Manifest.json", "b.mlpackage/Data/x.mlmodel"]);
        let paths = [
            dir.path().join("b.mlpackage/Data/x.mlmodel"),
            dir.path().join("b.mlpackage/Manifest.json"),
        ];
        let found = find(&paths, &|_| false, false);
        assert_eq!(shown(dir.path(), &found), ["b.mlpackage"]);
    }

    #[test]
    fn what_is_not_there_and_what_is_empty_are_told_apart() {
        let dir = tree(&["sub/readme.txt"]);
        let paths = [dir.path().join("none.pt2"), dir.path().join("sub")];
        let found = find(&paths, &|_| false, false);
        assert_eq!(found.unreadable.len(), 1);
        assert_eq!(found.empty.len(), 1);
    }

    #[test]
    fn exclusions_spare_what_is_named_unless_forced() {
        let dir = tree(&["a.pt2", "old/b.pt2"]);
        let glob = |text: &str| {
            let globs = crate::config::PathGlobs::new([text]).unwrap();
            let folder = dir.path().to_owned();
            move |path: &Path| globs.matches(path, &folder)
        };
        let found = find(&[dir.path().to_owned()], &glob("**/old"), false);
        assert_eq!(shown(dir.path(), &found), ["a.pt2"]);
        let named = [dir.path().join("a.pt2")];
        assert_eq!(find(&named, &glob("a.*"), false).inputs.len(), 1);
        assert!(find(&named, &glob("a.*"), true).inputs.is_empty());
    }
}
