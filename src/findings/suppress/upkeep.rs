//! Findings about suppressions themselves: unused, unknown, without a reason, expired.
//!
//! Only what is sure is said. A comment is unused if a graph was checked that has ops from the class or
//! function around it, its rule ran on that graph, and silenced nothing in any graph of the run. A table
//! of the config file is unused if all models that it is for were checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::baseline::Stale;
use super::comment::Directive;
use super::decide::{FileUse, Use};
use crate::config::{Date, File, Place, Source};
use crate::findings::fingerprint::Identity;
use crate::findings::python::{Position, PythonFile, Span};
use crate::findings::source::{PlaceFile, Spot};
use crate::findings::{Edit, Finding, Fix};
use crate::graph::{FunctionId, NodeId};
use crate::rules::upkeep::{
    CATEGORY, EXPIRED, STALE_BASELINE, UNKNOWN, UNREASONED, UNUSED, Upkeep,
};
use crate::rules::{Applicability, RuleSet, Sureness};

/// One checked input, as far as its suppressions go.
pub struct Judged<'a> {
    /// What its suppressions did.
    pub uses: &'a Use,
    /// Its config file.
    pub config: Option<&'a Arc<File>>,
    /// Its rules.
    pub set: &'a RuleSet,
}

/// Whether all models that a config file is for were checked.
pub type Whole<'a> = &'a dyn Fn(&File) -> bool;

/// Says what is to be said of the suppressions of a run.
pub struct Judge<'a> {
    /// Every input that was checked, in order; one for each target.
    pub inputs: &'a [Judged<'a>],
    /// Today.
    pub today: Date,
    /// See [`Whole`].
    pub whole: Whole<'a>,
}

impl Judge<'_> {
    /// The findings, each with the position of the input that it is told with.
    pub fn findings(&self) -> Vec<(usize, Finding)> {
        let mut found = self.comments();
        found.extend(self.tables());
        found
    }

    fn comments(&self) -> Vec<(usize, Finding)> {
        let mut files: BTreeMap<PathBuf, Vec<(usize, &FileUse)>> = BTreeMap::new();
        for (at, input) in self.inputs.iter().enumerate() {
            for own in &input.uses.files {
                files.entry(own.file.path().to_owned()).or_default().push((at, own));
            }
        }
        let mut found = Vec::new();
        for uses in files.values() {
            let Some(&(first, own)) = uses.first() else { continue };
            let needs_reason = self.inputs.get(first).is_some_and(|input| {
                input
                    .config
                    .and_then(|file| file.require_reason.as_ref())
                    .is_some_and(|on| on.value)
            });
            for (at, directive) in own.directives.iter().enumerate() {
                found.extend(
                    self.comment(uses, at, directive, needs_reason)
                        .into_iter()
                        .map(|finding| (first, finding)),
                );
            }
        }
        found
    }

    fn comment(
        &self,
        uses: &[(usize, &FileUse)],
        at: usize,
        directive: &Directive,
        needs_reason: bool,
    ) -> Vec<Finding> {
        let Some((_, own)) = uses.first() else { return Vec::new() };
        let spot = |span: Span| Spot {
            file: PlaceFile::Found(Arc::clone(&own.file)),
            span,
            exact: true,
            stale: false,
        };
        if let Some(broken) = &directive.broken {
            return vec![finding(UNKNOWN, broken.clone(), "", spot(directive.span), None)];
        }
        let mut found = Vec::new();
        let mut unused = Vec::new();
        for (which, (word, span)) in directive.rules.iter().enumerate() {
            let key = (at, which);
            if !uses.iter().any(|(_, own)| own.known.contains(&key)) {
                let near = uses.first().and_then(|(at, _)| self.inputs.get(*at));
                let meant = near.and_then(|input| input.set.suggest(word));
                let meant =
                    meant.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
                let message = format!("`{word}` names no rule{meant}");
                let help = "rules are named by id or name: `anelint rules` lists them";
                found.push(finding(UNKNOWN, message, help, spot(*span), None));
            } else if !uses.iter().any(|(_, own)| own.used.contains(&key))
                && self.was_looked_at(uses, key, directive)
            {
                unused.push(which);
            }
        }
        if !unused.is_empty() {
            let words: Vec<&str> =
                unused.iter().filter_map(|at| Some(directive.rules.get(*at)?.0.as_str())).collect();
            let silence = if words.len() == 1 { "silences" } else { "silence" };
            let message = format!(
                "{} {silence} nothing here in the models that were checked",
                words.join(" and ")
            );
            let fix = removal(&own.file, directive, &unused);
            let help = "take it away";
            found.push(finding(UNUSED, message, help, spot(directive.span), fix));
        }
        if needs_reason && directive.reason.is_empty() {
            let message = "this suppression gives no reason, and the config file asks for one";
            let help = "write it after the bracket";
            found.push(finding(UNREASONED, message.to_owned(), help, spot(directive.span), None));
        }
        found
    }

    /// Whether graphs were checked that the comment is about, with its rule.
    fn was_looked_at(
        &self,
        uses: &[(usize, &FileUse)],
        key: (usize, usize),
        directive: &Directive,
    ) -> bool {
        let looked = uses.iter().filter(|(_, own)| own.ran.contains(&key));
        let covered: BTreeSet<usize> = looked.flat_map(|(_, own)| &own.covered).copied().collect();
        match directive.definition {
            Some(definition) => covered.contains(&definition),
            // At the top level it may be for any class that the file exports.
            None => uses.first().is_some_and(|(_, own)| {
                let exported = exported_classes(&own.file);
                !exported.is_empty() && exported.is_subset(&covered)
            }),
        }
    }

    fn tables(&self) -> Vec<(usize, Finding)> {
        let mut files: Vec<(&Arc<File>, Vec<usize>)> = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let Some(file) = input.config else { continue };
            match files.iter_mut().find(|(known, _)| Arc::ptr_eq(known, file)) {
                Some((_, inputs)) => inputs.push(at),
                None => files.push((file, vec![at])),
            }
        }
        let mut found = Vec::new();
        for (file, inputs) in files {
            let Some(&first) = inputs.first() else { continue };
            let uses = || inputs.iter().filter_map(|at| self.inputs.get(*at)).map(|own| own.uses);
            let unused: Vec<usize> = (0..file.suppress.len())
                .filter(|at| !uses().any(|own| own.tables_used.contains(at)))
                .filter(|at| uses().any(|own| own.tables_ran.contains(at)))
                .collect();
            // Asked once, and only where the answer matters: it walks the project.
            let whole = !unused.is_empty() && (self.whole)(file);
            let text = Arc::new(as_text(&file.source));
            for (at, table) in file.suppress.iter().enumerate() {
                let spot = || head(&text, &table.place);
                let mut say = |finding: Finding| found.push((first, finding));
                if let Some(until) = table.until.filter(|until| *until < self.today) {
                    let message = format!("this suppression was to hold until {until}");
                    let help = "mend what it hid, or set a new `until`";
                    say(finding(EXPIRED, message, help, spot(), None));
                } else if whole && unused.contains(&at) {
                    let message = "this table silences nothing in the models of this project";
                    say(finding(UNUSED, message.to_owned(), "take it away", spot(), None));
                }
                if file.require_reason.as_ref().is_some_and(|on| on.value) && table.reason.is_none()
                {
                    let message =
                        "this suppression gives no reason, and the config file asks for one";
                    let help = "say why: reason = \"…\"";
                    say(finding(UNREASONED, message.to_owned(), help, spot(), None));
                }
            }
        }
        found
    }
}

/// A config file or baseline as a file that places can lie in.
pub fn as_text(source: &Source) -> PythonFile {
    PythonFile::new(source.path.clone(), source.text.clone())
}

/// The head of a table.
fn head(file: &Arc<PythonFile>, place: &Place) -> Spot {
    let start = Position { line: place.line(), column: 1 };
    let width = place.line_text().trim_end().chars().count() as u32;
    let end = Position { line: start.line, column: width + 1 };
    Spot {
        file: PlaceFile::Found(Arc::clone(file)),
        span: Span { start, end },
        exact: true,
        stale: false,
    }
}

/// First bytes of the classes of a file that have a `forward`.
fn exported_classes(file: &PythonFile) -> BTreeSet<usize> {
    let Some(root) = file.root() else { return BTreeSet::new() };
    let mut cursor = root.walk();
    root.children(&mut cursor)
        .filter(|node| matches!(node.kind(), "class_definition" | "decorated_definition"))
        .filter(|node| file.node_text(*node).contains("def forward("))
        .map(|node| node.start_byte())
        .collect()
}

/// Takes rules out of a suppression comment; all of it if none is left, and its line if nothing else is
/// on that.
fn removal(file: &Arc<PythonFile>, directive: &Directive, unused: &[usize]) -> Option<Fix> {
    let edit = |span: Span, text: String| Fix {
        applicability: Applicability::Safe,
        edits: vec![Edit { file: PlaceFile::Found(Arc::clone(file)), span, text }],
        ..Fix::default()
    };
    let kept: Vec<&str> = directive
        .rules
        .iter()
        .enumerate()
        .filter(|(at, _)| !unused.contains(at))
        .map(|(_, (word, _))| word.as_str())
        .collect();
    let (first, last) = (directive.rules.first()?, directive.rules.last()?);
    if !kept.is_empty() {
        let span = Span { start: first.1.start, end: last.1.end };
        return Some(edit(span, kept.join(", ")));
    }
    let line = directive.span.start.line;
    let range = file.line_bytes(line)?;
    let own = file.byte_of(directive.span.start)?..file.byte_of(directive.span.end)?;
    let before = file.text().get(range.start..own.start)?;
    let after = file.text().get(own.end..range.end)?;
    if before.trim().is_empty() && after.trim().is_empty() {
        return Some(edit(file.span(range), String::new()));
    }
    // Between two parts that stay, the blanks before it are enough to part them.
    let start = own.start - (before.len() - before.trim_end().len());
    let end = match before.trim().is_empty() {
        true => own.end + (after.len() - after.trim_start().len()),
        false => own.end,
    };
    let start = if before.trim().is_empty() { own.start } else { start };
    Some(edit(file.span(start..end), String::new()))
}

/// Entries of a baseline that no longer occur in a model.
pub fn stale_baseline(file: &Arc<PythonFile>, stale: &[Stale]) -> Finding {
    let line = stale.first().map_or(1, |first| first.line);
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for own in stale {
        *rules.entry(own.rule.as_str()).or_default() += 1;
    }
    let rules: Vec<String> = rules
        .into_iter()
        .map(|(rule, count)| match count {
            1 => rule.to_owned(),
            count => format!("{rule} ×{count}"),
        })
        .collect();
    let message = match stale.len() {
        1 => {
            format!("an entry of the baseline no longer occurs in this model: {}", rules.join(", "))
        }
        count => format!(
            "{count} entries of the baseline no longer occur in this model: {}",
            rules.join(", ")
        ),
    };
    let width = file.line(line).map_or(0, |text| text.chars().count()) as u32;
    let at = |column| Position { line, column };
    let spot = Spot {
        file: PlaceFile::Found(Arc::clone(file)),
        span: Span { start: at(1), end: at(width + 1) },
        exact: true,
        stale: false,
    };
    let help = "`--prune-baseline` takes them away";
    Finding { count: stale.len(), ..finding(STALE_BASELINE, message, help, spot, None) }
}

/// A finding about a suppression or a baseline.
fn finding(rule: &Upkeep, message: String, help: &str, spot: Spot, fix: Option<Fix>) -> Finding {
    let name = std::path::Path::new(&spot.file.key())
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let identity = Identity {
        rule: rule.id.to_owned(),
        model: name,
        class: String::new(),
        module: String::new(),
        op: String::new(),
        key: message.clone(),
    };
    Finding {
        rule: rule.id.to_owned(),
        name: rule.name.to_owned(),
        severity: rule.severity,
        category: CATEGORY,
        sureness: Sureness::Official,
        evidence: Vec::new(),
        message,
        help: help.to_owned(),
        functions: Vec::new(),
        nodes: Vec::new(),
        op: Default::default(),
        modules: Vec::new(),
        count: 1,
        unfixable: None,
        fixed: false,
        fingerprint: identity.fingerprint(spot.span.start.line as usize),
        spot: Some(spot),
        related: Vec::new(),
        deeper: Vec::new(),
        through: Vec::new(),
        notes: Vec::new(),
        fix,
        regions_added: None,
        off_unit: Vec::new(),
        first: (FunctionId(0), NodeId(0)),
    }
}
