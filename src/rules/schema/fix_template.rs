//! What a rewrite puts in place: Python with holes.
//!
//! `$X` is what a hole of the snippet took, `$$$ARGS` a list of arguments, `$MATCH` the snippet as the
//! author wrote it, `$BESIDE` the operand beside it; in braces `{name}` a binding of the rule, `{int
//! $X}` a number without its fraction, `{source name}` the Python that makes what a binding names. `{{`
//! and `}}` are braces of Python's own.

/// A rewrite's text with its holes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FixTemplate(pub Vec<FixPiece>);

/// A part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixPiece {
    /// Python as it is.
    Text(String),
    /// What a hole took: one expression.
    Hole(String),
    /// What `$$$NAME` took: arguments, maybe none.
    Rest(String),
    /// The snippet as the author wrote it.
    Match,
    /// The operand beside the snippet.
    Beside,
    /// A binding as text.
    Binding(String),
    /// A hole that is a number, as a whole number.
    Int(String),
    /// The Python that makes what a binding names.
    Source(String),
}

/// Reads a template.
///
/// # Errors
/// What is wrong, in words.
pub fn parse(source: &str) -> Result<FixTemplate, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("{{") || rest.starts_with("}}") {
            text.push(c);
            rest = &rest[2..];
            continue;
        }
        let piece = if let Some(tail) = rest.strip_prefix("$$$") {
            let (name, after) = name(tail);
            if name.is_empty() {
                return Err(
                    "`$$$` in a replacement needs the name that the snippet gives it".into()
                );
            }
            rest = after;
            FixPiece::Rest(name.to_owned())
        } else if let Some(tail) = rest.strip_prefix('$') {
            let (name, after) = name(tail);
            rest = after;
            match name {
                "" | "_" => return Err("`$` without the name of a hole".into()),
                "MATCH" => FixPiece::Match,
                "BESIDE" => FixPiece::Beside,
                name => FixPiece::Hole(name.to_owned()),
            }
        } else if let Some(tail) = rest.strip_prefix('{') {
            let (inside, after) =
                tail.split_once('}').ok_or("`{` that is not closed; write `{{` for a brace")?;
            rest = after;
            braces(inside.trim())?
        } else if c == '}' {
            return Err("`}` without `{`; write `}}` for a brace".into());
        } else {
            text.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        if !text.is_empty() {
            pieces.push(FixPiece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
    }
    if !text.is_empty() {
        pieces.push(FixPiece::Text(text));
    }
    Ok(FixTemplate(pieces))
}

fn braces(inside: &str) -> Result<FixPiece, String> {
    let is_binding = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
    };
    if let Some(binding) = inside.strip_prefix("source ").map(str::trim).filter(|b| is_binding(b)) {
        return Ok(FixPiece::Source(binding.to_owned()));
    }
    if let Some(hole) = inside.strip_prefix("int ").and_then(|hole| hole.trim().strip_prefix('$')) {
        let (name, after) = name(hole);
        if !name.is_empty() && after.is_empty() {
            return Ok(FixPiece::Int(name.to_owned()));
        }
    }
    if is_binding(inside) {
        return Ok(FixPiece::Binding(inside.to_owned()));
    }
    Err(format!(
        "`{{{inside}}}`: braces hold a binding, `int $X` or `source BINDING`; write `{{{{` for a brace"
    ))
}

/// The name at the start of a text, and what follows it.
fn name(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.split_at(end)
}

/// The holes of a snippet: names of `$X`, names of `$$$X`.
pub fn holes(snippet: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut ones, mut rests) = (Vec::new(), Vec::new());
    let mut rest = snippet;
    while let Some(at) = rest.find('$') {
        let tail = &rest[at..];
        let many = tail.starts_with("$$$");
        let (own, after) = name(tail.trim_start_matches('$'));
        if !own.is_empty() && own != "_" {
            if many { rests.push(own) } else { ones.push(own) }
        }
        rest = after;
    }
    (ones, rests)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn every_kind_of_hole_is_read() {
        use FixPiece::*;
        let template =
            parse("f($X, $$$ARGS, {int $N}, {value}, {source rope}).to($BESIDE.dtype, {{}})");
        let text = |text: &str| Text(text.to_owned());
        assert_eq!(
            template.unwrap().0,
            [
                text("f("),
                Hole("X".into()),
                text(", "),
                Rest("ARGS".into()),
                text(", "),
                Int("N".into()),
                text(", "),
                Binding("value".into()),
                text(", "),
                Source("rope".into()),
                text(").to("),
                Beside,
                text(".dtype, {})"),
            ]
        );
        assert_eq!(parse("$MATCH").unwrap().0, [Match]);
    }

    #[test]
    fn what_is_no_template_is_refused_with_words() {
        for bad in ["$", "f({x y})", "f({x)", "f(})", "$$$", "{int x}"] {
            assert!(!parse(bad).unwrap_err().is_empty(), "{bad}");
        }
    }

    #[test]
    fn the_holes_of_a_snippet() {
        assert_eq!(holes("f($X, $$$REST, k=$_, $Y, $$$)"), (vec!["X", "Y"], vec!["REST"]));
    }
}
