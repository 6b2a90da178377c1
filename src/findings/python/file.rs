//! One Python file: text, line starts, tree, imports.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tree_sitter::{Node, Parser, Tree};

use super::Imports;
use super::comments::Bare;

/// A place in a file: line and column from 1, the column in characters (Unicode scalar values).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
}

/// A stretch of a file, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First character.
    pub start: Position,
    /// One past the last character.
    pub end: Position,
}

/// A Python file read from disk.
#[derive(Debug)]
pub struct PythonFile {
    path: PathBuf,
    text: String,
    sha256: OnceLock<String>,
    bytes_of_mark: bool,
    lossy: bool,
    line_starts: Vec<usize>,
    tree: OnceLock<Option<Tree>>,
    imports: OnceLock<Imports>,
    bare: OnceLock<Option<Bare>>,
}

impl PythonFile {
    /// Larger files are no source that a person wrote; they are not read.
    pub const MAX_BYTES: u64 = 8 << 20;

    /// Reads `path`; `None` if it is no regular file, too large or not to be read. Bytes that are no
    /// UTF-8 are replaced.
    pub fn read(path: &Path) -> Option<PythonFile> {
        let metadata = std::fs::metadata(path).ok()?;
        if !metadata.is_file() || metadata.len() > Self::MAX_BYTES {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        let sha256 = OnceLock::new();
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                // The digest is of the bytes, which the lossy text no longer has.
                let _ = sha256.set(sha256_hex(error.as_bytes()));
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        let mut file = PythonFile::new(path.to_owned(), text);
        if let Some(digest) = sha256.into_inner() {
            file.sha256 = OnceLock::from(digest);
            file.lossy = true;
        }
        Some(file)
    }

    /// A file from its text.
    pub fn new(path: PathBuf, text: String) -> PythonFile {
        // A byte order mark is no column of line 1.
        let (text, bytes_of_mark) = match text.strip_prefix('\u{feff}') {
            Some(rest) => (rest.to_owned(), true),
            None => (text, false),
        };
        let line_starts = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1))
            .collect();
        PythonFile {
            path,
            text,
            sha256: OnceLock::new(),
            bytes_of_mark,
            lossy: false,
            line_starts,
            tree: OnceLock::new(),
            imports: OnceLock::new(),
            bare: OnceLock::new(),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it begins with a byte order mark.
    pub fn has_mark(&self) -> bool {
        self.bytes_of_mark
    }

    /// Whether bytes that are no UTF-8 were replaced: the text is then not what the file holds.
    pub fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// Lower-case hex sha256 of its bytes.
    pub fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| {
            if self.bytes_of_mark {
                let mut bytes = "\u{feff}".as_bytes().to_vec();
                bytes.extend_from_slice(self.text.as_bytes());
                sha256_hex(&bytes)
            } else {
                sha256_hex(self.text.as_bytes())
            }
        })
    }

    /// Whether it begins with a byte order mark.
    pub fn has_byte_order_mark(&self) -> bool {
        self.bytes_of_mark
    }

    /// The file without its suppression comments; `None` if it has none.
    pub fn bare(&self) -> Option<&Bare> {
        self.bare.get_or_init(|| Bare::of(self)).as_ref()
    }

    /// Number of lines.
    pub fn line_count(&self) -> u32 {
        self.line_starts.len() as u32
    }

    /// The text of a line from 1, without its end; `None` past the end.
    pub fn line(&self, line: u32) -> Option<&str> {
        let range = self.line_bytes(line)?;
        self.text.get(range).map(|text| text.trim_end_matches(['\n', '\r']))
    }

    /// The bytes of a line from 1, its end included.
    pub fn line_bytes(&self, line: u32) -> Option<Range<usize>> {
        let index = (line as usize).checked_sub(1)?;
        let start = *self.line_starts.get(index)?;
        let end = self.line_starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(start..end)
    }

    /// Line and column of a byte.
    pub fn position(&self, byte: usize) -> Position {
        let index = self.line_starts.partition_point(|&start| start <= byte).saturating_sub(1);
        let start = self.line_starts.get(index).copied().unwrap_or(0);
        let before = self.text.get(start..byte.min(self.text.len())).unwrap_or("");
        Position { line: index as u32 + 1, column: before.chars().count() as u32 + 1 }
    }

    /// The span of a byte range.
    pub fn span(&self, range: Range<usize>) -> Span {
        Span { start: self.position(range.start), end: self.position(range.end) }
    }

    /// The byte of a line and column; `None` past the end of the line.
    pub fn byte_of(&self, position: Position) -> Option<usize> {
        let range = self.line_bytes(position.line)?;
        let line = self.text.get(range.clone())?;
        let column = (position.column as usize).checked_sub(1)?;
        line.char_indices()
            .map(|(at, _)| at)
            .chain(std::iter::once(line.len()))
            .nth(column)
            .map(|at| range.start + at)
    }

    /// The root of the syntax tree; `None` if the parser gave up.
    pub fn root(&self) -> Option<Node<'_>> {
        self.tree.get_or_init(|| parse(&self.text)).as_ref().map(Tree::root_node)
    }

    /// What names mean by the file's imports.
    pub fn imports(&self) -> &Imports {
        self.imports.get_or_init(|| match self.root() {
            Some(root) => Imports::of(root, &self.text),
            None => Imports::default(),
        })
    }

    /// The text of a node.
    pub fn node_text(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }
}

/// Parses Python text.
pub fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::Digest;
    use std::fmt::Write;
    let mut hex = String::with_capacity(64);
    for byte in sha2::Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn columns_count_characters_not_bytes() {
        let file = PythonFile::new("a.py".into(), "σ = 'ü' + x\r\n\ty = 2\n".into());
        let at = file.text().find('x').unwrap();
        assert_eq!(file.position(at), Position { line: 1, column: 11 });
        assert_eq!(file.byte_of(Position { line: 1, column: 11 }), Some(at));
        let y = file.text().find('y').unwrap();
        assert_eq!(file.position(y), Position { line: 2, column: 2 });
        assert_eq!(file.line(1), Some("σ = 'ü' + x"));
        assert_eq!(file.byte_of(Position { line: 2, column: 40 }), None);
    }

    #[test]
    fn a_byte_order_mark_is_no_column_but_is_part_of_the_digest() {
        let file = PythonFile::new("a.py".into(), "\u{feff}x = 1\n".into());
        assert_eq!(file.position(0), Position { line: 1, column: 1 });
        assert_eq!(file.line(1), Some("x = 1"));
        assert_eq!(file.sha256(), sha256_hex("\u{feff}x = 1\n".as_bytes()));
    }

    #[test]
    fn lines_past_the_end_are_none() {
        let file = PythonFile::new("a.py".into(), "x = 1".into());
        assert_eq!(file.line(1), Some("x = 1"));
        assert_eq!(file.line(2), None);
        assert_eq!(file.line(0), None);
    }
}
