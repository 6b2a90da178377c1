//! The rule set of a run: the built-in rules and the user's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::config::{ConfigError, Given, Origin, RuleFiles};
use crate::findings::PreparedRules;
use crate::rules::{RuleFileError, RuleSet};

/// Loads the rules; `globs`, relative to the working folder, name the user's own rule files.
pub fn load(globs: &[String]) -> Result<(RuleSet, PreparedRules), Failure> {
    let given: Vec<Given<RuleFiles>> = globs.iter().map(|glob| flag(glob)).collect();
    load_from(&given, Path::new(""))
}

/// A glob of the command line.
pub fn flag(glob: &str) -> Given<RuleFiles> {
    let value = RuleFiles { pattern: glob.to_owned(), folder: PathBuf::new() };
    Given { value, origin: Origin::Flag("--rules") }
}

/// The same, where globs may come from config files, too. Files that several globs match are loaded
/// once.
pub fn load_from(
    globs: &[Given<RuleFiles>],
    working_folder: &Path,
) -> Result<(RuleSet, PreparedRules), Failure> {
    let mut set = RuleSet::builtin();
    let mut loaded = BTreeSet::new();
    for given in globs {
        let RuleFiles { pattern, folder } = &given.value;
        // Messages name files as the user would.
        let folder = folder.strip_prefix(working_folder).unwrap_or(folder);
        let fail = |message: String| match &given.origin {
            Origin::File(place) => ConfigError::at(place, message).into(),
            _ => Failure::new(format!("--rules {pattern}: {message}"))
                .help("it takes a rule file, or a glob such as 'lint/*.yaml' in quotes"),
        };
        let files = matching(&folder.join(pattern).to_string_lossy()).map_err(fail)?;
        if files.is_empty() {
            return Err(fail("no file matches".to_owned()));
        }
        for file in files {
            if loaded.insert(file.clone()) {
                set.load_file(&file).map_err(failure)?;
            }
        }
    }
    let prepared = PreparedRules::new(&set).map_err(|(rule, error)| {
        Failure::new(format!("rule {rule}: {error}"))
            .help("a pattern is one Python expression; `$X` and `$$$` are its holes")
    })?;
    Ok((set, prepared))
}

/// Files that a glob matches, sorted; a path without wildcards stands for itself.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let is_wild = |text: &str| text.contains(['*', '?', '[', '{']);
    if !is_wild(pattern) {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let fail = |error: globset::Error| error.to_string();
    let glob = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(fail)?
        .compile_matcher();
    // Only the folder before the first wildcard is walked.
    let fixed: PathBuf = Path::new(pattern)
        .components()
        .take_while(|part| !is_wild(&part.as_os_str().to_string_lossy()))
        .collect();
    let start = if fixed.as_os_str().is_empty() { Path::new(".") } else { fixed.as_path() };
    let files = walkdir::WalkDir::new(start)
        .sort_by_file_name()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix("./").unwrap_or(entry.path()).to_owned())
        .filter(|path| glob.is_match(path))
        .collect();
    Ok(files)
}

/// Every mistake of a rule file under its line.
fn failure(error: RuleFileError) -> Failure {
    if error.text.is_empty() {
        return Failure::new(error.to_string());
    }
    let text = &error.text;
    let mistakes = error.problems.iter().map(|problem| {
        let at = offset(text, problem.place.line as usize, problem.place.column as usize);
        (at..at, problem.message.clone())
    });
    Failure::in_file(&error.path, text, mistakes)
}

/// The byte of a line and column, both from 1; the last byte if there is no such place.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or("");
    let within =
        rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(byte, _)| byte);
    (start + within).min(text.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn offsets_count_characters() {
        assert_eq!(offset("ü: 1\nb: 2\n", 1, 4), 4);
        assert_eq!(offset("ü: 1\nb: 2\n", 2, 1), 6);
        assert_eq!(offset("a\n", 9, 9), 1);
        assert_eq!(offset("", 1, 1), 0);
    }

    #[test]
    fn a_glob_walks_only_below_its_fixed_part() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lint/a.yaml", "lint/b.yaml", "lint/sub/c.yaml", "lint/d.txt"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let count =
            |glob: &str| matching(&format!("{}/{glob}", dir.path().display())).unwrap().len();
        assert_eq!(count("lint/*.yaml"), 2);
        assert_eq!(count("lint/**/*.yaml"), 3);
        assert_eq!(count("none/*.yaml"), 0);
    }
}
