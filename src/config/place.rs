//! Where a setting comes from, and what is wrong with one.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text of a config file.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it lies, absolute.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
}

/// A stretch of a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: Arc<Source>,
    /// Bytes of its text.
    pub span: Range<usize>,
}

impl Place {
    /// The line, from 1.
    pub fn line(&self) -> u32 {
        let before = self.source.text.as_bytes().get(..self.span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1
    }

    /// The text of the line, without its end.
    pub fn line_text(&self) -> &str {
        self.source.text.lines().nth(self.line() as usize - 1).unwrap_or("")
    }
}

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody.
    Default,
    /// A config file.
    File(Place),
    /// An environment variable.
    Environment(&'static str),
    /// A flag of the command line.
    Flag(&'static str),
}

/// A value and who set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Who set it.
    pub origin: Origin,
}

impl<T> Given<T> {
    /// A value that nobody set.
    pub fn default(value: T) -> Given<T> {
        Given { value, origin: Origin::Default }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the file's text.
    pub span: Range<usize>,
    /// What is wrong, what was expected, what was probably meant.
    pub message: String,
}

/// A config file that cannot be used.
#[derive(Debug, Clone)]
pub struct ConfigError {
    /// The file; its text is empty if it could not be read.
    pub source: Arc<Source>,
    /// Every mistake found.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// A file that could not be read.
    pub fn unreadable(path: &Path, message: String) -> ConfigError {
        ConfigError {
            source: Arc::new(Source { path: path.to_owned(), text: String::new() }),
            problems: vec![Problem { span: 0..0, message }],
        }
    }

    /// A mistake at one place.
    pub fn at(place: &Place, message: String) -> ConfigError {
        ConfigError {
            source: Arc::clone(&place.source),
            problems: vec![Problem { span: place.span.clone(), message }],
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self
            .problems
            .iter()
            .map(|problem| {
                let place = Place { source: Arc::clone(&self.source), span: problem.span.clone() };
                format!("{}:{}: {}", self.source.path.display(), place.line(), problem.message)
            })
            .collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
