//! Globs of paths and of dotted names.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

/// Globs of paths, relative to a folder. A pattern without a slash is that of a file or folder name,
/// at any depth; one that matches a folder matches all below it.
#[derive(Debug, Clone, Default)]
pub struct PathGlobs {
    set: GlobSet,
}

impl PathGlobs {
    /// Compiles patterns.
    ///
    /// # Errors
    /// The position of the first pattern that is none, and why.
    pub fn new<'a>(
        patterns: impl IntoIterator<Item = &'a str>,
    ) -> Result<PathGlobs, (usize, String)> {
        let mut set = GlobSetBuilder::new();
        for (at, pattern) in patterns.into_iter().enumerate() {
            let fail = |error: globset::Error| (at, error.kind().to_string());
            let trimmed = pattern.trim_start_matches("./").trim_end_matches('/');
            let anywhere = if trimmed.contains('/') { "" } else { "**/" };
            let own = format!("{anywhere}{trimmed}");
            for text in [own.clone(), format!("{own}/**")] {
                let glob = GlobBuilder::new(&text).literal_separator(true).build().map_err(fail)?;
                set.add(glob);
            }
        }
        set.build().map(|set| PathGlobs { set }).map_err(|error| (0, error.kind().to_string()))
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Whether a path below `folder`, both absolute, matches.
    pub fn matches(&self, path: &Path, folder: &Path) -> bool {
        !self.is_empty() && self.set.is_match(path.strip_prefix(folder).unwrap_or(path))
    }
}

/// A glob of dotted names (`layers.*.norm`): `*` does not cross a dot, `**` does. The stars that
/// findings put for indices match any index.
///
/// # Errors
/// Why it is none.
pub fn name_glob(pattern: &str) -> Result<GlobMatcher, String> {
    let slashes = pattern.replace('.', "/");
    GlobBuilder::new(&slashes)
        .literal_separator(true)
        .build()
        .map(|glob: Glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_matches_at_any_depth() {
        let matches = |pattern: &str, path: &str| {
            PathGlobs::new([pattern]).unwrap().matches(&Path::new("/p").join(path), Path::new("/p"))
        };
        assert!(matches("old", "old/a.pt2"));
        assert!(matches("old", "build/old/b/a.pt2"));
        assert!(matches("*.onnx", "build/a.onnx"));
        assert!(!matches("old", "older/a.pt2"));
        assert!(matches("build/*.pt2", "build/a.pt2"));
        assert!(!matches("build/*.pt2", "build/x/a.pt2"));
        assert!(matches("build/**", "build/x/a.pt2"));
        assert!(matches("./build/", "build/a.pt2"));
    }

    #[test]
    fn a_broken_pattern_is_named() {
        assert_eq!(PathGlobs::new(["a", "[b"]).unwrap_err().0, 1);
    }

    #[test]
    fn names_part_at_dots() {
        let matches = |pattern: &str, name: &str| {
            name_glob(pattern).unwrap().is_match(name.replace('.', "/"))
        };
        assert!(matches("layers.*.norm", "layers.3.norm"));
        assert!(matches("layers.*.norm", "layers.*.norm"));
        assert!(!matches("layers.*", "layers.3.norm"));
        assert!(matches("layers.**", "layers.3.norm"));
        assert!(matches("softmax_*", "softmax_12"));
    }
}
