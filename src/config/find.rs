//! The nearest config file above an input.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{ConfigError, File, reader};

/// Names of config files, the first wins within a folder.
const NAMES: &[&str] = &["anelint.toml", ".anelint.toml", "pyproject.toml"];

/// What there is in a folder or the nearest one above it.
type Found = Result<Option<Arc<File>>, ConfigError>;

/// Finds config files and reads each once.
#[derive(Debug)]
pub struct Finder {
    /// The one file for all inputs.
    fixed: Option<Arc<File>>,
    /// Look for none.
    isolated: bool,
    folders: Mutex<BTreeMap<PathBuf, Found>>,
    working_folder: PathBuf,
}

impl Finder {
    /// Looks upward from each input, and from the working folder for inputs that have none above.
    pub fn new(working_folder: &Path) -> Finder {
        Finder {
            fixed: None,
            isolated: false,
            folders: Mutex::default(),
            working_folder: working_folder.to_owned(),
        }
    }

    /// Looks for none.
    pub fn isolated(working_folder: &Path) -> Finder {
        Finder { isolated: true, ..Finder::new(working_folder) }
    }

    /// One file for all inputs.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn fixed(working_folder: &Path, path: &Path) -> Result<Finder, ConfigError> {
        let path = working_folder.join(path);
        let file = reader::read(&path)?.ok_or_else(|| {
            ConfigError::unreadable(&path, "it has no table [tool.anelint]".to_owned())
        })?;
        Ok(Finder { fixed: Some(Arc::new(file)), ..Finder::new(working_folder) })
    }

    /// The config file for a path, absolute; for a folder the one that holds within it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(&self, path: &Path) -> Found {
        if self.isolated || self.fixed.is_some() {
            return Ok(self.fixed.clone());
        }
        match self.above(path)? {
            Some(file) => Ok(Some(file)),
            None => self.above(&self.working_folder),
        }
    }

    fn above(&self, path: &Path) -> Found {
        for folder in path.ancestors() {
            let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            let found = folders.entry(folder.to_owned()).or_insert_with(|| within(folder));
            if !matches!(found, Ok(None)) {
                return found.clone();
            }
        }
        Ok(None)
    }
}

/// The config file in a folder.
fn within(folder: &Path) -> Found {
    for name in NAMES {
        let path = folder.join(name);
        if path.is_file()
            && let Some(file) = reader::read(&path)?
        {
            return Ok(Some(Arc::new(file)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    fn found(finder: &Finder, dir: &Path, path: &str) -> String {
        let file = finder.of(&dir.join(path)).unwrap();
        file.map_or("none".to_owned(), |file| {
            file.source.path.strip_prefix(dir).unwrap().display().to_string()
        })
    }

    #[test]
    fn the_nearest_file_wins_and_a_project_file_counts_only_with_our_table() {
        let dir = tree(&[
            ("anelint.toml", "chip = \"m1\"\n"),
            ("a/pyproject.toml", "[tool.other]\nx = 1\n"),
            ("b/pyproject.toml", "[tool.anelint]\nchip = \"m2\"\n"),
            ("b/c/anelint.toml", ""),
            ("b/c/pyproject.toml", "[tool.anelint]\n"),
        ]);
        let finder = Finder::new(dir.path());
        let at = |path| found(&finder, dir.path(), path);
        assert_eq!(at("x.pt2"), "anelint.toml");
        assert_eq!(at("a/deep/x.pt2"), "anelint.toml");
        assert_eq!(at("b/x.pt2"), "b/pyproject.toml");
        assert_eq!(at("b/c/x.pt2"), "b/c/anelint.toml");
        assert_eq!(found(&Finder::isolated(dir.path()), dir.path(), "b/x.pt2"), "none");
        let fixed = Finder::fixed(dir.path(), Path::new("anelint.toml")).unwrap();
        assert_eq!(found(&fixed, dir.path(), "b/x.pt2"), "anelint.toml");
        assert!(Finder::fixed(dir.path(), Path::new("a/pyproject.toml")).is_err());
        assert!(Finder::fixed(dir.path(), Path::new("none.toml")).is_err());
    }

    #[test]
    fn a_broken_project_file_of_another_tool_is_no_business_of_ours() {
        let dir = tree(&[("pyproject.toml", "[tool.other\n"), ("sub/a.pt2", "")]);
        assert_eq!(found(&Finder::new(dir.path()), dir.path(), "sub/a.pt2"), "none");
        let dir = tree(&[("pyproject.toml", "[tool.anelint]\nchip = m1\n")]);
        assert!(Finder::new(dir.path()).of(&dir.path().join("a.pt2")).is_err());
    }
}
