//! Edits out of a rule's rewrites: the snippet is looked for inside the finding's own places.
//!
//! What is not sure is no edit: a snippet that is there twice, a file that has changed since the export,
//! a name that the file does not import. How edits get into files is the business of `fixes`.

mod arguments;
mod beside;
mod expression;
mod fill;
mod returned;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use tree_sitter::Node;

use super::finding::{Edit, Fix};
use super::python::{Bindings, Pattern, PatternError, PythonFile, Region, dotted_text};
use super::source::{PlaceFile, Spot};
use crate::rules::schema::fix_template::{self, FixTemplate};
use crate::rules::schema::raw;
use crate::rules::{Applicability, Binding, HoleKind};

pub use expression::parses;

/// A rule's rewrite, compiled.
#[derive(Debug, Clone)]
pub struct PreparedFix {
    /// What is rewritten.
    patterns: Vec<Pattern>,
    /// What holes may stand for.
    holes: Vec<(String, HoleKind)>,
    action: Action,
    applicability: Applicability,
    note: String,
}

#[derive(Debug, Clone)]
enum Action {
    /// The snippet is replaced.
    Replace(FixTemplate),
    /// Keyword arguments of the call that the snippet is are taken out and put in.
    Arguments { drop: Vec<String>, add: Vec<(String, FixTemplate)> },
    /// The value in the `return` is replaced.
    Returned(FixTemplate),
    /// Words only.
    Shown,
}

impl PreparedFix {
    /// Compiles a rewrite.
    ///
    /// # Errors
    /// The first snippet or text that is none.
    pub fn new(raw: &raw::PythonFix) -> Result<PreparedFix, PatternError> {
        let template = |text: &str| {
            fix_template::parse(text).map_err(|_| PatternError {
                pattern: text.to_owned(),
                reason: "it is no replacement",
            })
        };
        let patterns = raw
            .replace
            .iter()
            .map(|snippet| {
                let told = raw.holes.iter().any(|(name, _)| {
                    snippet.strip_prefix('$').is_some_and(|hole| hole == name.as_str())
                });
                if told { Pattern::lone_hole(snippet) } else { Pattern::parse(snippet) }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let action = if raw.applicability.value == Applicability::Display {
            Action::Shown
        } else if let Some(with) = &raw.with {
            Action::Replace(template(with)?)
        } else if let Some(returned) = &raw.returned {
            Action::Returned(template(returned)?)
        } else {
            let call = patterns.iter().find(|pattern| !pattern.is_call());
            if let Some(pattern) = call {
                return Err(PatternError {
                    pattern: pattern.source().to_owned(),
                    reason: "it is no call: only a call has arguments to drop or add",
                });
            }
            Action::Arguments {
                drop: raw.drop.iter().map(|name| name.value.clone()).collect(),
                add: raw
                    .add
                    .iter()
                    .map(|(name, text)| Ok((name.value.clone(), template(text)?)))
                    .collect::<Result<_, PatternError>>()?,
            }
        };
        Ok(PreparedFix {
            patterns,
            holes: raw.holes.iter().map(|(name, kind)| (name.value.clone(), kind.value)).collect(),
            action,
            applicability: raw.applicability.value,
            note: raw.note.trim().to_owned(),
        })
    }
}

/// What a rewrite is made for.
pub struct Ask<'a> {
    /// Where the finding shows.
    pub spot: Option<&'a Spot>,
    /// Where its cause is.
    pub causes: &'a [(Spot, String)],
    /// What the rule bound.
    pub bindings: &'a [Binding],
    /// Where the Python that makes a bound node is.
    pub place_of: &'a dyn Fn(&Binding) -> Option<Spot>,
    /// Why a file must not be edited, if it must not.
    pub refuse: &'a dyn Fn(&PythonFile) -> Option<&'static str>,
}

/// What came of the rewrites of a rule.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The fix.
    pub fix: Option<Fix>,
    /// A place that the fix edits and the finding does not name yet.
    pub related: Option<(Spot, String)>,
    /// The file that would have been edited, and why it is not.
    pub refused: Option<(Arc<PythonFile>, &'static str)>,
}

/// The first of the rewrites (with their place in the rule) that can be made.
pub fn fix(prepared: &[(usize, &PreparedFix)], ask: &Ask<'_>) -> Outcome {
    let mut refused = None;
    for (index, own) in prepared {
        let made = match &own.action {
            Action::Shown => Some(Made::default()),
            Action::Returned(template) => own.in_return(template, ask),
            _ => own.in_places(ask),
        };
        let Some(made) = made else { continue };
        if let Some(refusal) = made.refused {
            refused.get_or_insert(refusal);
            continue;
        }
        let fix = Fix {
            applicability: own.applicability,
            edits: made.edits,
            note: own.note.clone(),
            origin: Some((*index, made.snippet)),
        };
        return Outcome { fix: Some(fix), related: made.related, refused: None };
    }
    Outcome { refused, ..Outcome::default() }
}

/// The edits of one rewrite.
#[derive(Debug, Default)]
struct Made {
    edits: Vec<Edit>,
    snippet: usize,
    related: Option<(Spot, String)>,
    refused: Option<(Arc<PythonFile>, &'static str)>,
}

/// A snippet found: where, which of the rewrite's it is, what its holes took.
struct Found<'t> {
    node: Node<'t>,
    snippet: usize,
    holes: Bindings,
}

impl PreparedFix {
    /// The edits inside the location, or else inside the causes; `None` if the snippet is in none of
    /// them, or more than once in one.
    fn in_places(&self, ask: &Ask<'_>) -> Option<Made> {
        let mut made = Made::default();
        let mut seen: BTreeMap<(String, usize), ()> = BTreeMap::new();
        let causes = ask.causes.iter().map(|(spot, _)| spot);
        for (at, spot) in ask.spot.into_iter().chain(causes).enumerate() {
            let own_place = at == 0 && ask.spot.is_some();
            let PlaceFile::Found(file) = &spot.file else { continue };
            if !spot.exact {
                continue;
            }
            let found = self.find(file, spot);
            let [one] = found.as_slice() else {
                if found.is_empty() {
                    continue;
                }
                return None;
            };
            if seen.insert((spot.file.key(), one.node.start_byte()), ()).is_some() {
                continue;
            }
            if let Some(why) = refusal(file, spot, ask) {
                return Some(Made { refused: Some((Arc::clone(file), why)), ..made });
            }
            let edits = self.edits(file, one, ask)?;
            let edit = |(range, text): (Range<usize>, String)| Edit {
                file: PlaceFile::Found(Arc::clone(file)),
                span: file.span(range),
                text,
            };
            made.snippet = one.snippet;
            made.edits.extend(edits.into_iter().map(edit));
            if own_place {
                break;
            }
        }
        (!made.edits.is_empty()).then_some(made)
    }

    /// The snippets within a place, the outermost of nested ones.
    fn find<'t>(&self, file: &'t PythonFile, spot: &Spot) -> Vec<Found<'t>> {
        let bytes = file.byte_of(spot.span.start).zip(file.byte_of(spot.span.end));
        let Some((start, end)) = bytes else { return Vec::new() };
        let node = file.root().and_then(|root| root.descendant_for_byte_range(start, end));
        let Some(node) = node else { return Vec::new() };
        let mut found: Vec<Found<'t>> = Vec::new();
        for (snippet, pattern) in self.patterns.iter().enumerate() {
            for (node, holes) in pattern.find_in(file, &Region::deep(node)) {
                let range = node.byte_range();
                let known = found.iter().any(|own| own.node.byte_range() == range);
                if known || range.start < start || range.end > end || !self.allows(&holes) {
                    continue;
                }
                found.push(Found { node, snippet, holes });
            }
        }
        let ranges: Vec<Range<usize>> = found.iter().map(|own| own.node.byte_range()).collect();
        found.retain(|own| {
            let own = own.node.byte_range();
            !ranges.iter().any(|o| *o != own && o.start <= own.start && own.end <= o.end)
        });
        found.sort_by_key(|own| own.node.start_byte());
        found
    }

    fn allows(&self, holes: &Bindings) -> bool {
        self.holes
            .iter()
            .all(|(name, kind)| holes.get(name).is_none_or(|text| fill::may_be(*kind, text)))
    }

    /// The edits of one snippet: bytes of the file and what takes their place.
    fn edits(
        &self,
        file: &PythonFile,
        found: &Found<'_>,
        ask: &Ask<'_>,
    ) -> Option<Vec<(Range<usize>, String)>> {
        let node = found.node;
        let filling = fill::Filling {
            file,
            holes: &found.holes,
            matched: file.node_text(node),
            beside: beside::beside(file, node),
            bindings: ask.bindings,
            source: &|_| None,
        };
        match &self.action {
            Action::Replace(template) => {
                let text = expression::in_place_of(node, &filling.fill(template)?)?;
                Some(vec![(node.byte_range(), text)])
            }
            Action::Arguments { drop, add } => {
                let mut edits = Vec::new();
                for name in drop {
                    edits.push((arguments::without(file, node, name)?, String::new()));
                }
                let mut new = Vec::new();
                for (at, (name, template)) in add.iter().enumerate() {
                    let there = arguments::has_keyword(file, node, name) && !drop.contains(name);
                    match (there, at) {
                        // The first says whether there is anything to do.
                        (true, 0) => return None,
                        (true, _) => {}
                        (false, _) => new.push(format!("{name}={}", filling.fill(template)?)),
                    }
                }
                if !new.is_empty() {
                    let (at, before) = arguments::end_of_arguments(node)?;
                    edits.push((at..at, format!("{before}{}", new.join(", "))));
                }
                (!edits.is_empty()).then_some(edits)
            }
            Action::Returned(_) | Action::Shown => None,
        }
    }

    /// The edit of the value in the `return` of the function that the finding is in.
    fn in_return(&self, template: &FixTemplate, ask: &Ask<'_>) -> Option<Made> {
        let spot = ask.spot?;
        let PlaceFile::Found(file) = &spot.file else { return None };
        let place = bytes_of(file, spot)?;
        let element = returned::element(file, &place)?;
        let source = |binding: &Binding| {
            let other = (ask.place_of)(binding)?;
            let PlaceFile::Found(own) = &other.file else { return None };
            if own.path() != file.path() || !other.exact || other.stale {
                return None;
            }
            returned::source(file, &bytes_of(file, &other)?, element.start_byte())
        };
        let holes = Bindings::new();
        let filling = fill::Filling {
            file,
            holes: &holes,
            matched: "",
            beside: None,
            bindings: ask.bindings,
            source: &source,
        };
        let text = expression::in_place_of(element, &filling.fill(template)?)?;
        if text == file.node_text(element) {
            return None;
        }
        if let Some(why) = refusal(file, spot, ask) {
            return Some(Made { refused: Some((Arc::clone(file), why)), ..Made::default() });
        }
        let span = file.span(element.byte_range());
        let place = Spot { file: spot.file.clone(), span, exact: true, stale: false };
        let inside = spot.span.start <= span.start && span.end <= spot.span.end;
        Some(Made {
            edits: vec![Edit { file: spot.file.clone(), span, text }],
            related: (!inside).then(|| (place, "returned here".to_owned())),
            ..Made::default()
        })
    }
}

fn bytes_of(file: &PythonFile, spot: &Spot) -> Option<Range<usize>> {
    Some(file.byte_of(spot.span.start)?..file.byte_of(spot.span.end)?)
}

/// Why a file is not edited.
fn refusal(file: &PythonFile, spot: &Spot, ask: &Ask<'_>) -> Option<&'static str> {
    if spot.stale {
        return Some(CHANGED);
    }
    if file.is_lossy() {
        return Some("it is not UTF-8");
    }
    if !parses(file) {
        return Some("it does not parse as Python");
    }
    (ask.refuse)(file)
}

/// A file is not edited on the word of an old graph.
pub const CHANGED: &str = "it has changed since the export: export anew";

/// The full name of a dotted name by a file's imports; `None` if it is none.
fn full_name(file: &PythonFile, node: Node<'_>) -> Option<String> {
    dotted_text(node, file.text()).map(|dotted| file.imports().canonical(&dotted))
}

#[cfg(test)]
mod tests;
