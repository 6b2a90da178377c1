//! A config file, read and checked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;

use super::{Date, Given, PathGlobs, Place, Requirement, Settings, Source};

/// A config file. Paths are absolute; relative ones were taken from its folder.
#[derive(Debug)]
pub struct File {
    /// Its text.
    pub source: Arc<Source>,
    /// The folder it lies in.
    pub folder: PathBuf,
    /// Versions that may be used.
    pub required_version: Option<Given<Requirement>>,
    /// Settings for all inputs.
    pub settings: Settings,
    /// Paths to leave out.
    pub exclude: PathGlobs,
    /// The patterns of `exclude`.
    pub exclude_patterns: Vec<Given<String>>,
    /// File of accepted findings.
    pub baseline: Option<Given<PathBuf>>,
    /// Report suppressions without a reason.
    pub require_reason: Option<Given<bool>>,
    /// Folders of the author's source.
    pub source_roots: Vec<Given<PathBuf>>,
    /// Recorded prefix → prefix on this machine.
    pub path_maps: Vec<Given<(String, PathBuf)>>,
    /// Models by name.
    pub models: Vec<Model>,
    /// Settings for some paths; later ones win.
    pub overrides: Vec<Override>,
    /// Findings to keep silent about.
    pub suppress: Vec<Suppress>,
}

/// `[[model]]`.
#[derive(Debug)]
pub struct Model {
    /// The table's head.
    pub place: Place,
    /// What to call it.
    pub name: String,
    /// The model file.
    pub graph: PathBuf,
    /// How to make it again.
    pub export: Option<String>,
    /// Settings of its own.
    pub settings: Settings,
}

/// `[[override]]`.
#[derive(Debug)]
pub struct Override {
    /// The table's head.
    pub place: Place,
    /// Models that it is for.
    pub paths: PathGlobs,
    /// The settings.
    pub settings: Settings,
}

/// `[[suppress]]`: a finding is kept silent if every given condition holds, each by one of its globs.
#[derive(Debug)]
pub struct Suppress {
    /// The table's head.
    pub place: Place,
    /// Selectors of rules.
    pub rules: Vec<Given<String>>,
    /// Python files.
    pub paths: Option<PathGlobs>,
    /// Module paths, dots as slashes.
    pub modules: Option<Vec<GlobMatcher>>,
    /// Node names, dots as slashes.
    pub nodes: Option<Vec<GlobMatcher>>,
    /// Model paths.
    pub models: Option<PathGlobs>,
    /// Names of models.
    pub model_names: Vec<String>,
    /// Why.
    pub reason: Option<String>,
    /// The last day on which it holds.
    pub until: Option<Date>,
}

impl File {
    /// The `[[model]]` table of a model file.
    pub fn model_of(&self, path: &Path) -> Option<&Model> {
        self.models.iter().find(|model| model.graph == path)
    }

    /// Whether a path, absolute, is left out when folders are walked.
    pub fn excludes(&self, path: &Path) -> bool {
        self.exclude.matches(path, &self.folder)
    }
}
