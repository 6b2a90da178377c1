//! Message templates: `"a {x.shape} tensor takes {padded_bytes(x, 64) | bytes}"`.
//!
//! A brace holds an expression, and after `|` how to print it. `{{` and `}}` are braces.

use super::expr::{self, Expr, ExprError, Names};
use super::problem::hint;

/// A text with holes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Template(pub Vec<Piece>);

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A hole.
    Hole(Expr, Format),
}

/// How to print a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Plain,
    /// A number of bytes: `1.5 MiB`.
    Bytes,
    /// A share of 1: `25 %`.
    Percent,
    /// A count and its noun, in the singular and in the plural (`plural: op, ops`): `1 op`, `3 ops`.
    Plural(String, String),
}

/// Reads a template.
///
/// # Errors
/// The first mistake, with its offset in characters.
pub fn parse(text: &str, names: &dyn Names) -> Result<Template, ExprError> {
    let chars: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    let mut words = String::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1);
        if (c == '{' || c == '}') && next == Some(&c) {
            words.push(c);
            at += 2;
        } else if c == '}' {
            return Err(ExprError {
                offset: at,
                message: "`}` without `{`; write `}}` for a brace".into(),
            });
        } else if c == '{' {
            let Some(len) = chars[at..].iter().position(|&c| c == '}') else {
                return Err(ExprError { offset: at, message: "`{` that is not closed".into() });
            };
            let inside: String = chars[at + 1..at + len].iter().collect();
            let (source, format) = match inside.split_once('|') {
                None => (inside.as_str(), Format::Plain),
                Some((source, format)) => (
                    source,
                    read_format(format.trim()).map_err(|message| ExprError {
                        offset: at + 1 + source.chars().count(),
                        message,
                    })?,
                ),
            };
            let expr = expr::parse(source, names).map_err(|error| ExprError {
                offset: at + 1 + error.offset,
                message: error.message,
            })?;
            if !words.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut words)));
            }
            pieces.push(Piece::Hole(expr, format));
            at += len + 1;
        } else {
            words.push(c);
            at += 1;
        }
    }
    if !words.is_empty() {
        pieces.push(Piece::Text(words));
    }
    Ok(Template(pieces))
}

fn read_format(text: &str) -> Result<Format, String> {
    let (word, rest) = match text.split_once(':') {
        None => (text, None),
        Some((word, rest)) => (word.trim_end(), Some(rest)),
    };
    match (word, rest) {
        ("bytes", None) => Ok(Format::Bytes),
        ("percent", None) => Ok(Format::Percent),
        ("bytes" | "percent", Some(_)) => {
            Err(format!("the format `{word}` takes nothing after it"))
        }
        ("plural", _) => {
            let forms: Vec<&str> = rest.unwrap_or_default().split(',').map(str::trim).collect();
            match forms.as_slice() {
                [one, many] if !one.is_empty() && !many.is_empty() => {
                    Ok(Format::Plural((*one).to_owned(), (*many).to_owned()))
                }
                _ => {
                    Err("`plural` takes the singular and the plural: `{n | plural: op, ops}`"
                        .into())
                }
            }
        }
        _ => Err(format!(
            "there is no format `{word}`{}",
            hint(word, &["bytes", "percent", "plural"])
        )),
    }
}

impl Template {
    /// Whether a hole asks for placement.
    pub fn needs_placement(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Hole(expr, _) if expr.needs_placement()))
    }
}
