//! YAML text → raw rule, with the place of every mistake.

use super::problem::{Problem, nearest};
use super::raw;
use super::yaml::Place;

/// Longest rule file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Reads a rule.
///
/// # Errors
/// The first mistake that keeps the text from being a rule at all.
pub fn read(text: &str) -> Result<raw::Rule, Problem> {
    if text.len() > MAX_BYTES {
        let message = format!("a rule file of more than {MAX_BYTES} bytes");
        return Err(Problem { place: Place::default(), message });
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map_or(Place::default(), |at| Place {
            line: at.line() as u32,
            column: at.column() as u32,
        });
        Problem { place, message: with_suggestion(error.without_snippet().to_string()) }
    })
}

/// Adds "did you mean" to serde's "unknown field `x`, expected one of `a`, `b`".
fn with_suggestion(message: String) -> String {
    let message = message.split(" at line ").next().unwrap_or(&message).trim().to_owned();
    // The parser's advice to programmers is none to authors of rules.
    let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(&message).to_owned();
    if (message.contains("unknown field") || message.contains("unknown variant"))
        && let Some((head, known)) = message.split_once(", expected")
        && let Some(word) = head.split('`').nth(1)
    {
        let known = known.trim_start_matches(" one of").split([',', ' ', '`']);
        if let Some(candidate) = nearest(word, known.filter(|word| !word.is_empty())) {
            return format!("{head}; did you mean `{candidate}`?");
        }
    }
    message
}
