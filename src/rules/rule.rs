//! A rule: what people read about it, and its compiled form.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use regex::Regex;

use super::matcher::on_target;
use super::schema::plan::Plan;
use super::schema::raw;
use super::{Category, Effect, Per, Severity, Sureness};
use crate::target::Target;

/// A checked rule.
#[derive(Debug)]
pub struct Rule {
    raw: raw::Rule,
    file: PathBuf,
    /// The rule itself, then its variants.
    plans: Vec<Compiled>,
}

/// A plan with what is compiled when first needed.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) plan: Plan,
    /// The plan's regular expressions; `None` for one that does not compile, which the check has
    /// ruled out.
    regexes: Vec<OnceLock<Option<Regex>>>,
}

impl Compiled {
    fn new(plan: Plan) -> Compiled {
        let regexes = std::iter::repeat_with(OnceLock::new).take(plan.regexes.len()).collect();
        Compiled { plan, regexes }
    }

    /// A regular expression of the plan.
    pub(super) fn regex(&self, id: u16) -> Option<&Regex> {
        let id = usize::from(id);
        self.regexes
            .get(id)?
            .get_or_init(|| self.plan.regexes.get(id).and_then(|source| Regex::new(source).ok()))
            .as_ref()
    }
}

impl Rule {
    pub(super) fn new(raw: raw::Rule, file: PathBuf, plans: Vec<Plan>) -> Rule {
        Rule { raw, file, plans: plans.into_iter().map(Compiled::new).collect() }
    }

    /// The compiled forms: the rule itself, then its variants.
    pub(super) fn plans(&self) -> &[Compiled] {
        &self.plans
    }

    /// Whether only placement can tell.
    pub fn needs_placement(&self) -> bool {
        self.plans.iter().any(|compiled| compiled.plan.needs_placement)
    }

    /// Whether it says anything about a target.
    pub fn holds_for(&self, target: &Target) -> bool {
        self.plans.iter().any(|compiled| on_target(&compiled.plan.target, target))
    }

    /// Whether it is silent on every node that another rule claims.
    pub fn yields(&self) -> bool {
        self.raw.yields
    }

    /// Fixed id (`ANE004`).
    pub fn id(&self) -> &str {
        &self.raw.id
    }

    /// Fixed kebab-case name of the defect (`inf-mask`).
    pub fn name(&self) -> &str {
        &self.raw.name
    }

    /// A line for lists.
    pub fn title(&self) -> &str {
        &self.raw.title
    }

    /// Severity where no case says otherwise.
    pub fn severity(&self) -> Severity {
        self.raw.severity.value
    }

    /// What sort of trouble it is about.
    pub fn category(&self) -> Category {
        self.raw.category
    }

    /// What a match means for placement.
    pub fn effect(&self) -> Effect {
        self.raw.effect
    }

    /// What makes one finding.
    pub fn per(&self) -> Per {
        self.raw.per
    }

    /// The file it was read from; relative to the repository for built-in rules.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Python snippets that tell which expression deserves the caret, best first; `$X` and `$$$` are
    /// holes.
    pub fn python_find(&self) -> &[String] {
        self.raw.python.as_ref().map_or(&[], |python| &python.find)
    }

    /// Whether those snippets are to be looked for in the function called on the line, too.
    pub fn python_helper(&self) -> bool {
        self.raw.python.as_ref().is_some_and(|python| python.helper)
    }

    /// What to do where a library makes what the rule is about; empty if that is nothing else.
    pub fn library_help(&self) -> &str {
        let python = self.raw.python.as_ref();
        python.and_then(|python| python.library_help.as_deref()).unwrap_or("")
    }

    /// The rewrites that mend it, best first.
    pub fn fixes(&self) -> &[raw::PythonFix] {
        self.raw.fix.as_ref().map_or(&[], |fix| &fix.python)
    }

    /// Why it matters.
    pub fn why(&self) -> &str {
        &self.raw.why
    }

    /// The message template, bindings in braces.
    pub fn message_template(&self) -> &str {
        &self.raw.message
    }

    /// The help template; empty if there is none.
    pub fn help_template(&self) -> &str {
        self.raw.help.as_ref().map_or("", |help| help.as_str())
    }

    /// What it stands on.
    pub fn evidence(&self) -> &[raw::Evidence] {
        &self.raw.evidence.value
    }

    /// The best of the evidence for a target.
    pub fn sureness(&self, target: &Target) -> Sureness {
        self.evidence()
            .iter()
            .filter(|evidence| {
                let runtimes = &evidence.runtime;
                runtimes.is_empty() || runtimes.iter().any(|r| r.as_str() == target.runtime.name())
            })
            .map(|evidence| evidence.sureness)
            .max()
            .unwrap_or_default()
    }

    /// Code with the fault and without.
    pub fn example(&self) -> Option<(&str, &str)> {
        self.raw.example.as_ref().map(|example| (example.bad.as_str(), example.good.as_str()))
    }

    /// Pages worth reading.
    pub fn links(&self) -> &[String] {
        &self.raw.links
    }

    /// The check to run next on a device.
    pub fn gate(&self) -> Option<&str> {
        self.raw.gate.as_deref()
    }

    /// Whether it runs without being selected by id or name.
    pub fn default_on(&self) -> bool {
        self.raw.default.is_none_or(|switch| switch.0)
    }

    /// Whether it waits behind `--preview`.
    pub fn preview(&self) -> bool {
        self.raw.preview
    }

    /// The rule as written.
    pub fn raw(&self) -> &raw::Rule {
        &self.raw
    }
}
