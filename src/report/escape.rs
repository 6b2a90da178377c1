//! Text from a model or source file, made safe for a terminal.
//!
//! A hostile file must not move the cursor, set colours, hide text or turn it around.

use std::borrow::Cow;

/// Whether a character must not reach a terminal as it is.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// A name or message with control, invisible and direction characters written out (`\u{1b}`).
pub fn text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { safe.extend(c.escape_unicode()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Several lines (a help text): as [`text`], but line ends stay.
pub fn lines(text_with_lines: &str) -> String {
    text_with_lines.trim_end().split('\n').map(text).collect::<Vec<_>>().join("\n")
}

/// A line of source, one character for one so that columns hold; tabs stay.
pub fn source_line(line: &str) -> Cow<'_, str> {
    let bad = |c: char| c != '\t' && is_unsafe(c);
    if !line.contains(bad) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(line.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_do_not_get_through() {
        assert_eq!(text("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(text("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(text("plain ü ×28"), "plain ü ×28");
        assert_eq!(lines("a\nb\u{7}\n"), "a\nb\\u{7}");
    }

    #[test]
    fn source_keeps_its_columns() {
        let line = "\tx = '\u{1b}[0m'";
        let shown = source_line(line);
        assert_eq!(shown.chars().count(), line.chars().count());
        assert!(shown.starts_with('\t') && !shown.contains('\u{1b}'));
    }
}
