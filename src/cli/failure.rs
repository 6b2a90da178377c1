//! Why a job could not be done: what, where, what was expected, what to do.

use std::fmt::Write;

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::config::ConfigError;
use crate::report::output;

/// Ends the program with exit code 2.
#[derive(Debug)]
pub struct Failure {
    message: String,
    help: String,
    /// Rendered already, with its place in a file.
    report: Option<miette::Report>,
}

/// Longest line of a file that is shown, in bytes.
const LONGEST_LINE: usize = 1000;

impl Failure {
    /// A failure in one line.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), help: String::new(), report: None }
    }

    /// The same, with what to do.
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = help.into();
        self
    }

    /// A failure that knows its place in a file.
    pub fn report(report: miette::Report) -> Failure {
        Failure { message: String::new(), help: String::new(), report: Some(report) }
    }

    /// Mistakes in a file, each under its line: bytes and what is wrong.
    pub fn in_file(
        path: &std::path::Path,
        text: &str,
        mistakes: impl IntoIterator<Item = (std::ops::Range<usize>, String)>,
    ) -> Failure {
        let last = text.len().saturating_sub(1);
        let mistakes: Vec<_> = mistakes.into_iter().collect();
        // A line that fills the screen explains nothing: then the place and the words alone.
        if text.lines().any(|line| line.len() > LONGEST_LINE) {
            let lines: Vec<String> = mistakes
                .iter()
                .map(|(span, message)| {
                    let before = text.get(..span.start.min(last)).unwrap_or_default();
                    let line = before.matches('\n').count() + 1;
                    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
                    format!("{}:{line}:{column}: {message}", shown_path(path))
                })
                .collect();
            return Failure::new(lines.join("\n"));
        }
        let labels: Vec<LabeledSpan> = mistakes
            .into_iter()
            .map(|(span, message)| {
                let start = span.start.min(last);
                let length = span.end.min(text.len()).saturating_sub(start);
                LabeledSpan::new(Some(message), start, length)
            })
            .collect();
        let what = match labels.len() {
            1 => "a mistake".to_owned(),
            count => format!("{count} mistakes"),
        };
        let shown = shown_path(path);
        let diagnostic = MietteDiagnostic::new(format!("{what} in {shown}")).with_labels(labels);
        let source = NamedSource::new(shown, text.to_owned());
        Failure::report(Report::new(diagnostic).with_source_code(source))
    }

    /// Prints it to standard error.
    pub fn print(&self) {
        let mut text = String::new();
        match &self.report {
            Some(report) => {
                let _ = writeln!(text, "{report:?}");
            }
            None => {
                let bold = "\u{1b}[1;31m";
                let _ = writeln!(
                    text,
                    "{bold}error\u{1b}[0m: {}",
                    crate::report::escaped(&self.message)
                );
                if !self.help.is_empty() {
                    let _ = writeln!(text, "  help: {}", crate::report::escaped(&self.help));
                }
            }
        }
        // Standard error drops the styles where they are not wanted.
        output::to_stderr(&text);
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        let source = &error.source;
        if source.text.is_empty() {
            let words: Vec<&str> =
                error.problems.iter().map(|problem| problem.message.as_str()).collect();
            let words = words.join("; ");
            return Failure::new(format!("config file {}: {words}", shown_path(&source.path)))
                .help("`anelint init` writes one");
        }
        let mistakes = error.problems.into_iter().map(|problem| (problem.span, problem.message));
        Failure::in_file(&source.path, &source.text, mistakes)
    }
}

/// A path relative to the working folder where it lies below it.
fn shown_path(path: &std::path::Path) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    crate::findings::source::shown_path(path, &folder)
}
