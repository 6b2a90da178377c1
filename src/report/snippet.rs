//! The lines of source around a finding as codespan-reporting wants them.
//!
//! codespan prints whole lines and looks at whole files; a generated file of one line of megabytes
//! must not come out in full. So it is given windows: the lines that carry a label, clipped around the
//! label, with their true numbers.

use std::ops::Range;

use codespan_reporting::files::{Error, Files};

use super::escape;
use crate::findings::python::{Position, Span};
use crate::findings::source::PlaceFile;

/// Lines longer than this are clipped around the label.
const MAX_COLUMNS: usize = 200;
/// Characters kept before and after the label's start in a clipped line.
const CONTEXT: usize = 60;
/// Lines of a label that are shown: its first ones.
const MAX_LINES: u32 = 12;

/// A window on one file.
#[derive(Debug, Default)]
pub struct Window {
    name: String,
    text: String,
    lines: Vec<WindowLine>,
}

#[derive(Debug)]
struct WindowLine {
    /// Bytes in `text`, line end included.
    range: Range<usize>,
    /// Number in the real file.
    number: u32,
    /// Characters of the real line cut off before the window; the window's own leading `…` counts
    /// as one of them.
    cut: usize,
}

/// The windows of one diagnostic.
#[derive(Debug, Default)]
pub struct Windows {
    windows: Vec<Window>,
}

impl Windows {
    /// Shows the spans of one file; gives the file's id and, for each span, the bytes to label.
    pub fn add(
        &mut self,
        name: &str,
        file: &PlaceFile,
        spans: &[Span],
    ) -> (usize, Vec<Range<usize>>) {
        let mut window = Window { name: escape::text(name).into_owned(), ..Window::default() };
        let mut wanted: Vec<u32> = spans
            .iter()
            .flat_map(|span| {
                span.start.line..=span.end.line.min(span.start.line.saturating_add(MAX_LINES))
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut previous = None;
        for line in wanted {
            match previous {
                Some(before) if line == before + 2 => window.push(file, line - 1, spans),
                // Two lines that are not shown make codespan draw a break.
                Some(before) if line > before + 2 => {
                    window.push_blank(before + 1);
                    window.push_blank(before + 2);
                }
                _ => {}
            }
            window.push(file, line, spans);
            previous = Some(line);
        }
        let ranges = spans
            .iter()
            .map(|span| {
                let start = window.byte(span.start);
                let last = window.lines.last().map_or(0, |line| line.range.end.saturating_sub(1));
                let end = match window.find(span.end.line) {
                    Some(_) => window.byte(span.end),
                    None => last,
                };
                start..end.max(start)
            })
            .collect();
        self.windows.push(window);
        (self.windows.len() - 1, ranges)
    }
}

impl Window {
    fn push(&mut self, file: &PlaceFile, number: u32, spans: &[Span]) {
        let own = match file {
            PlaceFile::Found(file) => file.line(number).unwrap_or(""),
            PlaceFile::Recorded { text, .. } => text.as_str(),
        };
        let line = escape::source_line(own);
        let length = line.chars().count();
        let start = self.text.len();
        let mut cut = 0;
        if length > MAX_COLUMNS {
            let column = spans
                .iter()
                .filter(|span| span.start.line == number)
                .map(|span| span.start.column as usize)
                .min()
                .unwrap_or(1);
            let from = column.saturating_sub(CONTEXT + 1).min(length);
            let shown: String = line.chars().skip(from).take(MAX_COLUMNS - 2).collect();
            if from > 0 {
                self.text.push('…');
                cut = from - 1;
            }
            self.text.push_str(&shown);
            if from + shown.chars().count() < length {
                self.text.push('…');
            }
        } else {
            self.text.push_str(&line);
        }
        self.text.push('\n');
        self.lines.push(WindowLine { range: start..self.text.len(), number, cut });
    }

    fn push_blank(&mut self, number: u32) {
        let start = self.text.len();
        self.text.push('\n');
        self.lines.push(WindowLine { range: start..self.text.len(), number, cut: 0 });
    }

    fn find(&self, number: u32) -> Option<&WindowLine> {
        self.lines.iter().find(|line| line.number == number)
    }

    /// The byte of a place of the real file; the end of its line if it was cut off.
    fn byte(&self, at: Position) -> usize {
        let Some(line) = self.find(at.line) else { return 0 };
        let text = self.text.get(line.range.clone()).unwrap_or("");
        let skipped = (at.column as usize).saturating_sub(1).saturating_sub(line.cut);
        let within =
            text.char_indices().nth(skipped).map_or(text.len().saturating_sub(1), |(byte, _)| byte);
        line.range.start + within
    }
}

impl<'a> Files<'a> for Windows {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: usize) -> Result<&'a str, Error> {
        self.windows.get(id).map(|window| window.name.as_str()).ok_or(Error::FileMissing)
    }

    fn source(&'a self, id: usize) -> Result<&'a str, Error> {
        self.windows.get(id).map(|window| window.text.as_str()).ok_or(Error::FileMissing)
    }

    fn line_index(&'a self, id: usize, byte: usize) -> Result<usize, Error> {
        let window = self.windows.get(id).ok_or(Error::FileMissing)?;
        let after = window.lines.partition_point(|line| line.range.start <= byte);
        Ok(after.saturating_sub(1))
    }

    fn line_number(&'a self, id: usize, index: usize) -> Result<usize, Error> {
        let window = self.windows.get(id).ok_or(Error::FileMissing)?;
        Ok(window.lines.get(index).map_or(index + 1, |line| line.number as usize))
    }

    fn column_number(&'a self, id: usize, index: usize, byte: usize) -> Result<usize, Error> {
        let window = self.windows.get(id).ok_or(Error::FileMissing)?;
        let Some(line) = window.lines.get(index) else { return Ok(1) };
        let before = window.text.get(line.range.start..byte).unwrap_or("");
        Ok(before.chars().count() + line.cut + 1)
    }

    fn line_range(&'a self, id: usize, index: usize) -> Result<Range<usize>, Error> {
        let window = self.windows.get(id).ok_or(Error::FileMissing)?;
        window
            .lines
            .get(index)
            .map(|line| line.range.clone())
            .ok_or(Error::LineTooLarge { given: index, max: window.lines.len().saturating_sub(1) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::findings::python::PythonFile;

    fn found(text: &str) -> PlaceFile {
        PlaceFile::Found(Arc::new(PythonFile::new("a.py".into(), text.to_owned())))
    }

    fn span(line: u32, from: u32, to: u32) -> Span {
        Span { start: Position { line, column: from }, end: Position { line, column: to } }
    }

    #[test]
    fn a_long_line_is_clipped_around_the_label() -> Result<(), Error> {
        let long = format!("{}needle{}", "x".repeat(1_000_000), "y".repeat(1_000_000));
        let mut windows = Windows::default();
        let (id, ranges) = windows.add("a.py", &found(&long), &[span(1, 1_000_001, 1_000_007)]);
        let text = windows.source(id)?;
        assert!(text.chars().count() <= MAX_COLUMNS + 2);
        let range = ranges.first().cloned().unwrap_or_default();
        assert_eq!(text.get(range.clone()), Some("needle"));
        assert_eq!(windows.location(id, range.start)?.column_number, 1_000_001);
        Ok(())
    }

    #[test]
    fn lines_keep_their_numbers_and_columns() -> Result<(), Error> {
        let text = "a = 1\nb = 2\nc = 'ü' + d\n";
        let mut windows = Windows::default();
        let (id, ranges) = windows.add("a.py", &found(text), &[span(3, 11, 12), span(1, 1, 2)]);
        let texts: Vec<_> =
            ranges.iter().map(|range| windows.windows[id].text.get(range.clone())).collect();
        assert_eq!(texts, [Some("d"), Some("a")]);
        let at = windows.location(id, ranges[0].start)?;
        assert_eq!((at.line_number, at.column_number), (3, 11));
        Ok(())
    }
}
