//! Places as data: a spot in a file, with what is related to it.

use std::path::Path;
use std::sync::Arc;

use super::freshness::CurrentLine;
use super::locate::Recorded;
use crate::findings::python::{Position, PythonFile, Region, Span, statement_at};
use crate::graph::Frame;

/// A file that a place lies in.
#[derive(Debug, Clone)]
pub enum PlaceFile {
    /// On this machine.
    Found(Arc<PythonFile>),
    /// Only known as recorded, with the recorded text of the line: the file is not on this machine, or
    /// it is and the line is not in it any more.
    Recorded {
        /// The path as recorded.
        file: String,
        /// The line's text; may be empty.
        text: String,
    },
}

impl PlaceFile {
    /// A path to tell files apart by.
    pub fn key(&self) -> String {
        match self {
            PlaceFile::Found(file) => file.path().to_string_lossy().into_owned(),
            PlaceFile::Recorded { file, .. } => file.clone(),
        }
    }
}

/// A spot in a file.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The file.
    pub file: PlaceFile,
    /// The bytes to underline, line and column; for a recorded file the line alone.
    pub span: Span,
    /// Whether the columns are those of the expression, and not of the whole statement.
    pub exact: bool,
    /// The file has changed since the export.
    pub stale: bool,
}

/// A frame shown as a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameNote {
    /// File as recorded.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Function.
    pub function: String,
    /// Text of the line, if recorded.
    pub text: String,
}

/// The place of a hit.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Where it shows.
    pub spot: Option<Spot>,
    /// Where the cause is, with words.
    pub related: Vec<(Spot, String)>,
    /// Frames inside the one shown.
    pub deeper: Vec<FrameNote>,
    /// What the rule looks for was found, on the line or where it leads to.
    pub explained: bool,
    /// Words about the place itself (a notebook, several candidates).
    pub notes: Vec<String>,
    /// Recorded file and line: the same for hits at one source line even if no file was found.
    pub recorded: Option<(String, u32)>,
}

impl Place {
    /// A place that is all there is to say.
    pub(super) fn at(spot: Spot) -> Place {
        Place {
            recorded: Some((spot.file.key(), spot.span.start.line)),
            spot: Some(spot),
            ..Place::default()
        }
    }

    /// The place without what is related to the op that stands there.
    pub(super) fn alone(&self) -> Place {
        Place { related: Vec::new(), deeper: Vec::new(), ..self.clone() }
    }
}

/// A path for people: relative to the working folder where it lies below it, with forward slashes.
pub fn shown_path(path: &Path, working_folder: &Path) -> String {
    let shown = path.strip_prefix(working_folder).unwrap_or(path);
    let text = shown.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into_owned() }
}

/// A spot in a file that is not on this machine.
pub(super) fn recorded_spot(recorded: Recorded<'_>) -> Spot {
    let line = recorded.line;
    let end = recorded.text.chars().count() as u32 + 1;
    Spot {
        file: PlaceFile::Recorded {
            file: recorded.file.to_owned(),
            text: recorded.text.to_owned(),
        },
        span: Span { start: Position { line, column: 1 }, end: Position { line, column: end } },
        exact: false,
        stale: false,
    }
}

/// The line from its first character to the end of the statement, or of the line if the statement
/// goes on: all that can be shown without knowing the expression.
pub(super) fn statement_spot(file: &Arc<PythonFile>, current: CurrentLine) -> Spot {
    let line = file.line(current.line).unwrap_or("");
    let indent = line.chars().take_while(|c| c.is_whitespace()).count() as u32;
    let code_end = statement_at(file, current.line)
        .map(Region::shallow)
        .and_then(|region| {
            let end = file.position(region.node.end_byte());
            (end.line == current.line).then_some(end.column)
        })
        .unwrap_or(line.trim_end().chars().count() as u32 + 1);
    let at = |column| Position { line: current.line, column };
    Spot {
        file: PlaceFile::Found(Arc::clone(file)),
        span: Span { start: at(indent + 1), end: at(code_end.max(indent + 1)) },
        exact: false,
        stale: current.stale,
    }
}

/// The bytes of a recorded expression in the file as it is; `None` if its ends were not recorded, or lie
/// on lines that may have changed since.
pub(super) fn recorded_range(
    file: &PythonFile,
    current: CurrentLine,
    frame: &Frame,
) -> Option<(usize, usize)> {
    let lines = frame.end_line.checked_sub(frame.line)?;
    if frame.column == 0 || frame.end_column == 0 || (current.stale && lines > 0) {
        return None;
    }
    let has_text = !frame.text.is_empty();
    let column = |recorded| file_column(file, current.line, recorded, has_text);
    let end_column = if lines == 0 { column(frame.end_column) } else { frame.end_column };
    let byte = |line, column| file.byte_of(Position { line, column });
    let start = byte(current.line, column(frame.column))?;
    let end = byte(current.line.checked_add(lines)?, end_column)?;
    (start < end).then_some((start, end))
}

/// The column in the file of a recorded one: a traceback prints a line without its indentation, and
/// counts from there.
pub(super) fn file_column(file: &PythonFile, line: u32, recorded: u32, has_text: bool) -> u32 {
    if recorded == 0 || !has_text {
        return recorded;
    }
    let indentation =
        file.line(line).map_or(0, |text| text.chars().take_while(|c| c.is_whitespace()).count());
    recorded.saturating_add(u32::try_from(indentation).unwrap_or(0))
}
