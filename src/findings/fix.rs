//! Edits out of a rule's rewrite: the snippet is looked for inside the finding's own places.

use std::sync::Arc;

use super::finding::{Edit, Fix};
use super::python::{Bindings, Pattern, PythonFile, Region, Span};
use super::source::{PlaceFile, Spot};
use crate::rules::Applicability;

/// A rule's rewrite, compiled.
#[derive(Debug, Clone)]
pub struct PreparedFix {
    /// What is replaced.
    pub replace: Pattern,
    /// By what: `$X` stands for what the hole took, `{name}` for a binding of the rule.
    pub with: String,
    /// How far it may be trusted.
    pub applicability: Applicability,
}

/// The edit inside the location or one of the related places; `None` if the snippet is in none of
/// them, or more than once.
pub fn fix(
    prepared: &PreparedFix,
    spot: Option<&Spot>,
    related: &[(Spot, String)],
    bindings: &[(String, String)],
) -> Option<Fix> {
    let applicability = prepared.applicability;
    let mut edits = Vec::new();
    for spot in spot.into_iter().chain(related.iter().map(|(spot, _)| spot)) {
        // A file that has changed is not edited on the word of an old graph.
        let PlaceFile::Found(file) = &spot.file else { continue };
        if spot.stale || !spot.exact {
            continue;
        }
        for (span, holes) in matches_within(file, spot.span, &prepared.replace) {
            let text = filled(&prepared.with, &holes, bindings)?;
            edits.push(Edit { file: PlaceFile::Found(Arc::clone(file)), span, text });
        }
        if !edits.is_empty() {
            break;
        }
    }
    (edits.len() == 1).then_some(Fix { applicability, edits })
}

fn matches_within(file: &PythonFile, span: Span, pattern: &Pattern) -> Vec<(Span, Bindings)> {
    let bytes = file.byte_of(span.start).zip(file.byte_of(span.end));
    let node = bytes
        .and_then(|(start, end)| file.root().map(|root| (root, start, end)))
        .and_then(|(root, start, end)| root.descendant_for_byte_range(start, end));
    let Some(node) = node else { return Vec::new() };
    pattern
        .find_in(file, &Region::deep(node))
        .into_iter()
        .map(|(node, holes)| (file.span(node.byte_range()), holes))
        .filter(|(own, _)| span.start <= own.start && own.end <= span.end)
        .collect()
}

/// The template with its holes filled; `None` if one stays empty.
fn filled(template: &str, holes: &Bindings, bindings: &[(String, String)]) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['$', '{']) {
        text.push_str(&rest[..at]);
        let tail = &rest[at..];
        if let Some(inner) = tail.strip_prefix('{') {
            let end = inner.find('}')?;
            let name = &inner[..end];
            match bindings.iter().find(|(known, _)| known == name) {
                Some((_, value)) => text.push_str(value),
                // A brace of Python's own.
                None => text.push_str(&tail[..end + 2]),
            }
            rest = &inner[end + 1..];
        } else {
            let name_start = tail.len() - tail.trim_start_matches('$').len();
            let name: String = tail[name_start..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            text.push_str(holes.get(&name)?);
            rest = &tail[name_start + name.len()..];
        }
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::Position;

    fn prepared(replace: &str, with: &str) -> PreparedFix {
        PreparedFix {
            replace: Pattern::parse(replace).unwrap(),
            with: with.to_owned(),
            applicability: Applicability::Safe,
        }
    }

    fn spot(text: &str, from: u32, to: u32) -> Spot {
        let file = Arc::new(PythonFile::new("a.py".into(), text.to_owned()));
        let at = |column| Position { line: 1, column };
        let span = Span { start: at(from), end: at(to) };
        Spot { file: PlaceFile::Found(file), span, exact: true, stale: false }
    }

    #[test]
    fn the_snippet_inside_the_place_is_replaced() {
        let spot = spot("x = f(y.float(), z.float())\n", 7, 16);
        let fix = fix(&prepared("$X.float()", "$X"), Some(&spot), &[], &[]).unwrap();
        let [edit] = fix.edits.as_slice() else { panic!("one edit") };
        assert_eq!((edit.text.as_str(), edit.span.start.column), ("y", 7));
    }

    #[test]
    fn twice_in_the_place_or_in_a_changed_file_is_no_fix() {
        let text = "x = f(y.float(), z.float())\n";
        let whole = spot(text, 5, 28);
        assert!(fix(&prepared("$X.float()", "$X"), Some(&whole), &[], &[]).is_none());
        let stale = Spot { stale: true, ..spot(text, 7, 16) };
        assert!(fix(&prepared("$X.float()", "$X"), Some(&stale), &[], &[]).is_none());
    }

    #[test]
    fn bindings_of_the_rule_fill_braces() {
        let mut holes = Bindings::new();
        holes.insert("X".into(), "y".into());
        let bindings = [("value".to_owned(), "-1e9".to_owned())];
        assert_eq!(filled("g($X, {value})", &holes, &bindings).unwrap(), "g(y, -1e9)");
        assert_eq!(filled("{other}", &holes, &bindings).unwrap(), "{other}");
        assert!(filled("$Y", &holes, &bindings).is_none());
    }
}
