//! Why a job could not be done: what, where, what was expected, what to do.

use std::fmt::Write;

use crate::report::output;

/// Ends the program with exit code 2.
#[derive(Debug)]
pub struct Failure {
    message: String,
    help: String,
    /// Rendered already, with its place in a file.
    report: Option<miette::Report>,
}

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
