//! Whether a file is as it was when the graph was exported, and where a line has gone since.

use super::locate::{Check, Recorded};
use crate::findings::python::comments::same_code;
use crate::findings::python::{PythonFile, enclosing_function, statement_at};

/// Where a recorded line is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentLine {
    /// The line to show.
    pub line: u32,
    /// The file has changed since the export.
    pub stale: bool,
    /// The line is the recorded one, so that an expression on it can be trusted.
    pub trusted: bool,
}

/// Finds a recorded line in the file as it is. A line of a changed file is taken for the recorded one
/// only if it is the one line of the same function with the same text.
pub fn current_line(
    file: &PythonFile,
    recorded: Recorded<'_>,
    function: &str,
    check: Check,
) -> CurrentLine {
    match check {
        Check::Same | Check::Unchecked => {
            CurrentLine { line: recorded.line, stale: false, trusted: true }
        }
        Check::Commented => {
            let line = file.bare().and_then(|bare| bare.line_of(recorded.line));
            let line = line.unwrap_or(recorded.line);
            CurrentLine { line, stale: false, trusted: true }
        }
        Check::Differs => match moved_to(file, recorded.text, function) {
            Some(line) => CurrentLine { line, stale: true, trusted: true },
            None => CurrentLine { line: recorded.line, stale: true, trusted: false },
        },
    }
}

fn moved_to(file: &PythonFile, text: &str, function: &str) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    let mut found = None;
    for line in 1..=file.line_count() {
        if file.line(line).is_none_or(|own| !same_code(own, text)) {
            continue;
        }
        let here = statement_at(file, line)
            .and_then(enclosing_function)
            .map_or("<module>", |definition| definition.name(file));
        if !function.is_empty() && here != function {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(line);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
class A:
    def forward(self, x):
        # a new comment
        x = x.float()
        return x

    def other(self, x):
        x = x.float()
        return x
";

    fn at(line: u32, text: &str, function: &str) -> CurrentLine {
        let file = PythonFile::new("a.py".into(), TEXT.into());
        let recorded = Recorded { file: "a.py", line, text, sha256: "" };
        current_line(&file, recorded, function, Check::Differs)
    }

    #[test]
    fn a_line_that_moved_is_found_within_its_function() {
        let expected = CurrentLine { line: 4, stale: true, trusted: true };
        assert_eq!(at(3, "x = x.float()", "forward"), expected);
    }

    #[test]
    fn a_line_that_is_gone_or_there_twice_is_not_guessed() {
        let unknown = CurrentLine { line: 3, stale: true, trusted: false };
        assert_eq!(at(3, "x = x.half()", "forward"), unknown);
        assert_eq!(at(3, "x = x.float()", ""), unknown);
        assert_eq!(at(3, "", "forward"), unknown);
    }
}
