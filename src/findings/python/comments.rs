//! Comments of single lines, and the file as it was before suppression comments were put in.

use super::PythonFile;
use super::file::sha256_hex;

/// What every suppression comment holds.
pub const MARK: &str = "anelint:";

/// Where the comment of a line begins, its `#` included; quotes are heeded, strings that began on an
/// earlier line are not.
pub fn comment_start(line: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '#' => return Some(at),
            None if c == '"' || c == '\'' => quote = Some(c),
            None => {}
        }
    }
    None
}

/// A line without its comment and the blanks before that.
pub fn code_of(line: &str) -> &str {
    let code = comment_start(line).and_then(|at| line.get(..at)).unwrap_or(line);
    code.trim()
}

/// Whether two lines are the same but for blanks around them and a comment after them.
pub fn same_code(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    a == b || (!code_of(a).is_empty() && code_of(a) == code_of(b))
}

/// A file without its suppression comments.
#[derive(Debug)]
pub struct Bare {
    /// Lower-case hex sha256 of its bytes.
    pub sha256: String,
    /// For each of its lines, the line of the file, from 1.
    lines: Vec<u32>,
}

impl Bare {
    /// `None` if the file has no suppression comments.
    pub fn of(file: &PythonFile) -> Option<Bare> {
        if !file.text().contains(MARK) {
            return None;
        }
        let mut text = String::with_capacity(file.text().len());
        let mut lines = Vec::new();
        for (number, line) in file.text().split_inclusive('\n').enumerate() {
            let own = line.trim_end_matches(['\n', '\r']);
            let comment = comment_start(own).filter(|at| {
                let words = own.get(*at..).unwrap_or("").trim_start_matches('#').trim_start();
                words.starts_with(MARK)
            });
            match comment {
                Some(at) => {
                    let code = own.get(..at).unwrap_or("").trim_end();
                    if code.is_empty() {
                        continue;
                    }
                    text.push_str(code);
                    text.push_str(line.get(own.len()..).unwrap_or(""));
                }
                None => text.push_str(line),
            }
            lines.push(number as u32 + 1);
        }
        let mark = if file.has_byte_order_mark() { "\u{feff}" } else { "" };
        Some(Bare { sha256: sha256_hex(format!("{mark}{text}").as_bytes()), lines })
    }

    /// The line of the file that a line of the bare one is.
    pub fn line_of(&self, line: u32) -> Option<u32> {
        self.lines.get((line as usize).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_hash_in_a_string_begins_no_comment() {
        assert_eq!(code_of("x = '#' + \"\\\"#\"  # why"), "x = '#' + \"\\\"#\"");
        assert_eq!(comment_start("x = '#'"), None);
        assert!(same_code("  x = 1  # anelint: ignore[A] b", "x = 1"));
        assert!(!same_code("# a", "# b"));
    }

    #[test]
    fn without_its_suppressions_a_file_is_as_it_was() {
        let was = PythonFile::new("a.py".into(), "x = 1\r\ny = 2\r\n".into());
        let text = "x = 1  # anelint: ignore[A] b\r\n  # anelint: ignore[B] c\r\ny = 2\r\n";
        let now = PythonFile::new("a.py".into(), text.into());
        let bare = Bare::of(&now).unwrap();
        assert_eq!(bare.sha256, was.sha256());
        assert_eq!((bare.line_of(1), bare.line_of(2), bare.line_of(3)), (Some(1), Some(3), None));
        assert!(Bare::of(&was).is_none());
    }
}
