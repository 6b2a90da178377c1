//! The rewrites of a rule: which forms go together, and whether every hole is filled.

use super::check::Checker;
use super::expr::Names as _;
use super::fix_template::{self, FixPiece, FixTemplate};
use super::plan::{Plan, WhenTest};
use super::problem::{Problem, hint, list};
use super::raw;
use super::words::Applicability;
use super::yaml::At;

impl Checker<'_> {
    /// Where each rewrite holds in this plan. One whose `when` or text names what only another plan of
    /// the rule binds holds nowhere in this one; [`nowhere`] tells of those that hold in none.
    pub(super) fn fixes(&mut self, raw: &raw::Rule) -> Vec<Option<WhenTest>> {
        let Some(fix) = &raw.fix else { return Vec::new() };
        fix.python
            .iter()
            .map(|fix| {
                if named(fix).iter().any(|(_, name)| self.slot(name).is_none()) {
                    return None;
                }
                let before = self.problems.len();
                let when = fix.when.as_ref().map(|when| {
                    let patterns = self.bound_patterns(when);
                    self.when(when, patterns)
                });
                let fine = self.problems.len() == before;
                // What is wrong with the form of a `when` is said once, of the rule's first plan.
                if !fine && self.unbound_only(before) {
                    self.problems.truncate(before);
                    return None;
                }
                Some(when.unwrap_or_default())
            })
            .collect()
    }

    /// Whether all problems since `before` are names that nothing binds.
    fn unbound_only(&self, before: usize) -> bool {
        let unbound = |problem: &Problem| problem.message.contains("nothing in `match` binds");
        self.problems.iter().skip(before).all(unbound)
    }

    /// What does not depend on the plan: the form of each rewrite.
    pub(super) fn fix_forms(&mut self, raw: &raw::Rule) {
        let Some(fix) = &raw.fix else { return };
        if fix.python.is_empty() {
            self.problem(raw.id.place(), "`fix.python` is empty: leave `fix` out");
        }
        for own in fix.python.iter() {
            self.fix_form(own);
        }
    }

    fn fix_form(&mut self, fix: &raw::PythonFix) {
        let applicability = &fix.applicability;
        let arguments = !fix.drop.is_empty() || !fix.add.is_empty();
        let forms = usize::from(fix.with.is_some())
            + usize::from(arguments)
            + usize::from(fix.returned.is_some());
        if applicability.value == Applicability::Display {
            if forms > 0 {
                self.problem(
                    applicability.place(),
                    "a fix that is only shown edits nothing: put the code to copy into `note`",
                );
            }
            if fix.note.trim().is_empty() {
                self.problem(applicability.place(), "a fix that is only shown needs a `note`");
            }
            return;
        }
        if forms != 1 {
            self.problem(
                applicability.place(),
                "a fix needs one of `with`, `returned`, or `drop` and `add`",
            );
            return;
        }
        match (&fix.returned, fix.replace.first()) {
            (Some(text), Some(_)) => {
                self.problem(text.place(), "`returned` looks for the value itself: no `replace`");
            }
            (None, None) => {
                self.problem(applicability.place(), "`replace` is missing: what is rewritten");
            }
            _ => {}
        }
        for (name, _) in fix.holes.iter() {
            let known = fix
                .replace
                .iter()
                .any(|snippet| fix_template::holes(snippet).0.contains(&name.value.as_str()));
            if !known {
                self.problem(name.place(), format!("no snippet has the hole `${}`", name.value));
            }
        }
        for text in fix.with.iter().chain(&fix.returned).chain(fix.add.iter().map(|(_, t)| t)) {
            match fix_template::parse(text) {
                Err(message) => self.problem(text.place(), message),
                Ok(template) => self.filled(fix, text, &template),
            }
        }
        for name in fix.drop.iter().chain(fix.add.iter().map(|(name, _)| name)) {
            let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !plain {
                self.problem(name.place(), format!("`{}` is no keyword argument", name.value));
            }
        }
    }

    /// Every hole of a template is one of each snippet.
    fn filled(&mut self, fix: &raw::PythonFix, text: &At<String>, template: &FixTemplate) {
        for piece in &template.0 {
            let (name, many) = match piece {
                FixPiece::Hole(name) | FixPiece::Int(name) => (name, false),
                FixPiece::Rest(name) => (name, true),
                FixPiece::Match | FixPiece::Beside if fix.returned.is_some() => {
                    self.problem(text.place(), "`returned` has no snippet to speak of");
                    continue;
                }
                _ => continue,
            };
            if fix.returned.is_some() {
                self.problem(text.place(), format!("`{name}`: `returned` has no holes"));
            }
            for snippet in fix.replace.iter() {
                let (ones, rests) = fix_template::holes(snippet);
                let known = if many { rests } else { ones };
                if !known.contains(&name.as_str()) {
                    let sign = if many { "$$$" } else { "$" };
                    let shown: Vec<String> = known.iter().map(|k| format!("{sign}{k}")).collect();
                    let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
                    let words = match shown.as_slice() {
                        [] => "it has none".to_owned(),
                        some => format!("it has {}", list(some)),
                    };
                    self.problem(
                        text.place(),
                        format!("`{}` has no hole `{sign}{name}`; {words}", snippet.value),
                    );
                }
            }
        }
    }
}

/// The bindings that a rewrite's text names, with the place of the text.
fn named(fix: &raw::PythonFix) -> Vec<(&At<String>, String)> {
    let texts = fix.with.iter().chain(&fix.returned).chain(fix.add.iter().map(|(_, text)| text));
    texts
        .filter_map(|text| Some((text, fix_template::parse(text).ok()?)))
        .flat_map(|(text, template)| {
            template.0.into_iter().filter_map(move |piece| match piece {
                FixPiece::Binding(name) | FixPiece::Source(name) => Some((text, name)),
                _ => None,
            })
        })
        .collect()
}

/// The rewrites of a rule that hold in none of its plans, because nothing binds what they name.
pub(super) fn nowhere(raw: &raw::Rule, plans: &[Plan]) -> Vec<Problem> {
    let Some(fix) = &raw.fix else { return Vec::new() };
    let mut problems = Vec::new();
    for (at, fix) in fix.python.iter().enumerate() {
        if plans.iter().any(|plan| matches!(plan.fixes.get(at), Some(Some(_)))) {
            continue;
        }
        let bound: Vec<&str> =
            plans.iter().flat_map(|plan| &plan.slots).map(String::as_str).collect();
        let unknown = named(fix).into_iter().find(|(_, name)| !bound.contains(&name.as_str()));
        problems.push(match unknown {
            Some((text, name)) => Problem {
                place: text.place(),
                message: format!("nothing in `match` binds `{name}`{}", hint(&name, &bound)),
            },
            None => Problem {
                place: fix.applicability.place(),
                message: "no `match` of this rule binds all that the `when` of this fix names"
                    .into(),
            },
        });
    }
    problems
}
