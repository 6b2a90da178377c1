//! Two texts of one file as a unified diff.

use similar::{Algorithm, TextDiff};

/// The diff, with three lines of context; empty for equal texts. Line ends are kept as they are, so
/// that `patch` and `git apply` find the lines.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(name, name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_context_and_their_own_ends() {
        let old = "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng";
        let new = "a\r\nb\r\nc\r\nX\r\ne\r\nf\r\ng";
        let text = unified("m.py", old, new);
        assert!(text.starts_with("--- m.py\n+++ m.py\n@@ -1,7 +1,7 @@\n"), "{text}");
        assert!(text.contains("-d\r\n+X\r\n"), "{text}");
        assert!(text.ends_with(" g\n\\ No newline at end of file\n"), "{text}");
        assert_eq!(unified("m.py", old, old), "");
    }
}
