//! The rule set of a test: what is compiled in, or the files read anew.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};

use anelint::rules::RuleSet;

/// The built-in rules; with `RULES=files` the same read anew, to try a change of a rule without a build.
pub fn rules() -> RuleSet {
    if std::env::var("RULES").is_err() {
        return RuleSet::builtin();
    }
    let mut set = RuleSet::default();
    let mut waiting = Vec::new();
    for room in ["neural-engine", "gpu", "common", "onnxruntime"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules").join(room);
        let mut files: Vec<PathBuf> =
            folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
        files.sort();
        waiting.extend(files);
    }
    // A rule that stands over another can be loaded when that one is there.
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|file| set.load_file(file).is_err());
        if waiting.len() == before {
            panic!("{}", set.load_file(&waiting[0]).unwrap_err());
        }
    }
    set
}
