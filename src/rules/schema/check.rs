//! raw → checked: one pass that resolves every name and collects every mistake.

use super::check_words::names;
use super::expr::{self, Names as _, Slot};
use super::plan::*;
use super::problem::{Problem, hint};
use super::raw;
use super::template::{self, Template};
use super::vocabulary::{OpSet, Vocabulary};
use super::words::{Effect, Severity, Sureness};
use super::yaml::{At, Names, Place};
use crate::target::Runtime;

/// Checks a rule and makes its plans: one for the rule itself, one for each variant.
///
/// # Errors
/// Every mistake found, in the order of the file.
pub fn rule(raw: &raw::Rule, vocabulary: &Vocabulary) -> Result<Vec<Plan>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut plans = Vec::new();
    let variants = raw.variants.iter().map(|variant| with_variant(raw, variant));
    for (at, raw) in std::iter::once(raw.clone()).chain(variants).enumerate() {
        let mut checker = Checker::new(vocabulary);
        if at == 0 {
            checker.header(&raw);
            checker.fix_forms(&raw);
        }
        plans.push(checker.rule(&raw));
        problems.extend(checker.problems);
    }
    problems.extend(super::check_fix::nowhere(raw, &plans));
    if problems.is_empty() {
        return Ok(plans);
    }
    problems.sort_by_key(|problem| (problem.place.line, problem.place.column));
    problems.dedup();
    Err(problems)
}

/// The rule with a variant in place of its own match.
fn with_variant(raw: &raw::Rule, variant: &raw::Variant) -> raw::Rule {
    let variant = variant.clone();
    raw::Rule {
        variants: Vec::new(),
        r#match: variant.r#match,
        format: variant.format.unwrap_or_else(|| raw.format.clone()),
        function: variant.function.or_else(|| raw.function.clone()),
        r#where: variant.r#where,
        paths: variant.paths,
        group: variant.group,
        report_at: variant.report_at,
        key: variant.key.or_else(|| raw.key.clone()),
        severity: variant.severity.unwrap_or_else(|| raw.severity.clone()),
        message: variant.message.unwrap_or_else(|| raw.message.clone()),
        help: variant.help.or_else(|| raw.help.clone()),
        cases: variant.cases,
        claims: variant.claims,
        off_unit: variant.off_unit,
        related: variant.related,
        ..raw.clone()
    }
}

/// Checks what only shows when rules stand together: ids and names are unique, and the rules that
/// `over` names are there. Gives the index of the rule with each mistake.
pub fn together(rules: &[&raw::Rule]) -> Vec<(usize, Problem)> {
    let mut problems = Vec::new();
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    for (at, rule) in rules.iter().enumerate() {
        for (what, word) in [("id", &rule.id), ("name", &rule.name)] {
            let taken = rules[..at].iter().any(|other| {
                other.id.as_str() == word.as_str() || other.name.as_str() == word.as_str()
            });
            if taken {
                let message = format!("the {what} `{}` is taken by another rule", word.value);
                problems.push((at, Problem { place: word.place(), message }));
            }
        }
        for over in rule.over.iter().filter(|over| !ids.contains(&over.as_str())) {
            let message = format!("there is no rule `{}`{}", over.value, hint(over, &ids));
            problems.push((at, Problem { place: over.place(), message }));
        }
    }
    problems
}

/// What a slot holds, as far as the rule tells.
#[derive(Debug, Clone)]
struct SlotInfo {
    name: String,
    /// Ops that a bound node can be; any if `None`.
    ops: Option<OpSet>,
    /// A number or a word, and no node or value.
    datum: bool,
}

/// Patterns of bound nodes, and of each of several bound together.
pub(super) type BoundPatterns = (Vec<(Slot, Pattern)>, Vec<(Slot, Pattern)>);

pub(super) struct Checker<'v> {
    pub(super) vocabulary: &'v Vocabulary,
    pub(super) problems: Vec<Problem>,
    slots: Vec<SlotInfo>,
    names: Vec<String>,
    flows: u16,
    pub(super) regexes: Vec<String>,
    needs_placement: bool,
    /// How often each slot has been bound so far: tells closed flows.
    bound: Vec<u32>,
}

impl expr::Names for Checker<'_> {
    fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.iter().position(|slot| slot.name == name).map(|at| at as Slot)
    }

    fn bindings(&self) -> Vec<&str> {
        self.slots.iter().map(|slot| slot.name.as_str()).collect()
    }

    fn attribute(&self, slot: Slot, name: &str) -> Result<(), String> {
        let info = &self.slots[slot as usize];
        if info.datum {
            return Err(format!("`{}` is a number or a word and has no `{name}`", info.name));
        }
        if self.vocabulary.has_attribute(info.ops.as_ref(), name) {
            return Ok(());
        }
        const OWN: &[&str] = &[
            "rank", "dtype", "op", "name", "spelling", "module", "fqn", "bytes", "elements",
            "shape", "number",
        ];
        let mut known: Vec<&str> = OWN.to_vec();
        known.extend(self.vocabulary.select(info.ops.as_ref()).flat_map(|op| &op.attributes));
        known.sort_unstable();
        known.dedup();
        Err(format!("`{}` has no property or attribute `{name}`{}", info.name, hint(name, &known)))
    }
}

impl<'v> Checker<'v> {
    fn new(vocabulary: &'v Vocabulary) -> Checker<'v> {
        Checker {
            vocabulary,
            problems: Vec::new(),
            slots: vec![SlotInfo { name: "anchor".to_owned(), ops: None, datum: false }],
            names: Vec::new(),
            flows: 0,
            regexes: Vec::new(),
            needs_placement: false,
            bound: vec![1],
        }
    }

    pub(super) fn problem(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem { place, message: message.into() });
    }

    /// The index of an operand or attribute name.
    pub(super) fn name(&mut self, name: &str) -> NameIndex {
        let at = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        at as NameIndex
    }

    pub(super) fn next_flow(&mut self) -> u16 {
        self.flows += 1;
        self.flows - 1
    }

    pub(super) fn asks_placement(&mut self) {
        self.needs_placement = true;
    }

    /// How often every slot has been bound so far.
    pub(super) fn binds(&self) -> Vec<u32> {
        self.bound.clone()
    }

    /// Whether a part of the rule, which began when the counts were `before`, binds nothing that was
    /// bound before it.
    pub(super) fn closed_since(&self, before: &[u32]) -> bool {
        before.iter().zip(&self.bound).all(|(before, now)| *before == 0 || before == now)
    }

    /// Binds a name to a node or value of these ops, or to a datum.
    pub(super) fn bind(&mut self, name: &At<String>, ops: Option<&OpSet>, datum: bool) -> Slot {
        let fine = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
        const RESERVED: &[&str] = &[
            "anchor", "function", "program", "target", "limits", "group", "and", "or", "not", "in",
            "true", "false",
        ];
        if !fine || RESERVED.contains(&name.as_str()) {
            self.problem(
                name.place(),
                format!(
                    "`{}` cannot be a binding: lower-case letters, digits and hyphens, and none of {}",
                    name.value,
                    super::problem::list(RESERVED)
                ),
            );
        }
        if let Some(slot) = self.slot(name) {
            let info = &mut self.slots[slot as usize];
            if info.datum != datum {
                let message =
                    format!("`{}` is bound to a number and to a node or value", name.value);
                self.problem(name.place(), message);
            } else {
                match (&mut info.ops, ops) {
                    (Some(known), Some(ops)) => known.extend(ops),
                    (known, _) => *known = None,
                }
            }
            self.bound[slot as usize] += 1;
            return slot;
        }
        self.slots.push(SlotInfo { name: name.value.clone(), ops: ops.cloned(), datum });
        self.bound.push(1);
        (self.slots.len() - 1) as Slot
    }

    fn rule(&mut self, raw: &raw::Rule) -> Plan {
        let target = self.target(
            &raw.target.unit,
            &raw.target.runtime,
            &raw.target.chip,
            &raw.target.os,
            true,
        );
        let formats = self.formats(&raw.format);
        let function = raw.function.as_ref().map(|function| self.function(function));
        let program = raw.program.as_ref().map(|program| self.program(program));
        let anchor = self.anchor(&raw.r#match);
        if let Anchor::Node { ops, kinds, .. } = &anchor {
            self.slots[0].ops = kinds.is_empty().then(|| ops.clone());
        }
        // Patterns of cases are compiled with those of the match: they number their flows alike.
        let bound: Vec<_> = raw.cases.iter().map(|case| self.bound_patterns(&case.when)).collect();
        let fixes = self.fixes(raw);
        let wheres = self.exprs(&raw.r#where);
        let paths = raw.paths.iter().filter_map(|path| self.path(path)).collect();
        let group = raw.group.as_ref().map(|group| GroupTest {
            by: group.by.as_ref().map(|by| self.template(by)),
            count: group.count.as_ref().map(|count| self.test(count)),
        });
        let report_at =
            raw.report_at.as_ref().and_then(|name| self.item_slot(name)).unwrap_or(ANCHOR);
        let key = raw.key.as_ref().map(|key| self.template(key));
        if raw.message.value.trim().is_empty() {
            self.problem(raw.message.place(), "an empty message; say what is wrong in a line");
        }
        let message = self.template(&raw.message);
        let help = raw.help.as_ref().map(|help| self.template(help));
        let cases =
            raw.cases.iter().zip(bound).map(|(case, bound)| self.case(case, bound)).collect();
        let off_unit = self.off_unit(raw);
        let claims = match &raw.claims {
            Some(names) => self.item_slots(names),
            None => off_unit.clone(),
        };
        let related = raw
            .related
            .iter()
            .filter_map(|related| {
                let words = self.template(&related.message);
                self.item_slot(&related.at).map(|slot| (slot, words))
            })
            .collect();
        Plan {
            target,
            formats,
            function,
            program,
            anchor,
            wheres,
            paths,
            group,
            report_at,
            key,
            severity: raw.severity.value,
            message,
            help,
            cases,
            fixes,
            claims,
            off_unit,
            related,
            names: std::mem::take(&mut self.names),
            slots: self.slots.iter().map(|slot| slot.name.clone()).collect(),
            flows: self.flows,
            regexes: std::mem::take(&mut self.regexes),
            needs_placement: self.needs_placement,
        }
    }

    /// What people read: id, name, evidence, example, severity.
    fn header(&mut self, raw: &raw::Rule) {
        let id = &raw.id;
        let digits = id.trim_start_matches(|c: char| c.is_ascii_uppercase());
        if digits.len() == id.len()
            || digits.is_empty()
            || !digits.chars().all(|c| c.is_ascii_digit())
        {
            self.problem(
                id.place(),
                format!("`{}`: an id is capital letters, then digits, as in `ANE004`", id.value),
            );
        }
        let name = &raw.name;
        let kebab = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !kebab {
            self.problem(
                name.place(),
                format!("`{}`: a name is kebab-case, as in `inf-mask`", name.value),
            );
        }
        if raw.why.trim().is_empty() {
            self.problem(raw.why.place(), "`why` is empty: say in plain words why it matters");
        }
        let evidence = &raw.evidence;
        if evidence.value.is_empty() {
            self.problem(
                evidence.place(),
                "`evidence` is empty: a rule stands on at least one source",
            );
        }
        let folklore = evidence.value.iter().all(|e| e.sureness == Sureness::Folklore);
        let errors = std::iter::once(&raw.severity)
            .chain(raw.cases.iter().filter_map(|case| case.severity.as_ref()))
            .chain(raw.variants.iter().filter_map(|variant| variant.severity.as_ref()));
        if folklore && !evidence.value.is_empty() {
            for severity in errors.filter(|severity| severity.value == Severity::Error) {
                self.problem(severity.place(), "severity `error` on folklore alone: a rule with no better evidence is a warning at most");
            }
        }
        for evidence in &evidence.value {
            self.words(
                &evidence.runtime,
                Runtime::parse,
                &names(Runtime::ALL, |r| r.name()),
                "runtime",
            );
        }
        match &raw.example {
            None => self.problem(
                raw.id.place(),
                "`example` is missing: show code with the fault (`bad`) and without (`good`)",
            ),
            Some(example) if example.bad.trim().is_empty() || example.good.trim().is_empty() => {
                self.problem(raw.id.place(), "`example` needs both `bad` and `good`");
            }
            Some(_) => {}
        }
    }

    fn off_unit(&mut self, raw: &raw::Rule) -> Vec<Slot> {
        if raw.effect != Effect::OffUnit {
            if let Some(name) = raw.off_unit.first() {
                self.problem(
                    name.place(),
                    "`off-unit` says what leaves the unit: it needs `effect: off-unit`",
                );
            }
            return Vec::new();
        }
        if raw.off_unit.is_empty() { vec![ANCHOR] } else { self.item_slots(&raw.off_unit) }
    }

    fn path(&mut self, raw: &raw::Path) -> Option<PathTest> {
        let through = self.through(&raw.through, &raw.through_category);
        let not_through = self.ops(&raw.not_through);
        let (from, to) = (self.item_slot(&raw.from), self.item_slot(&raw.to));
        // Nothing said: every op may be gone through.
        let through =
            if raw.through.is_empty() && raw.through_category.is_empty() { None } else { through };
        Some(PathTest {
            from: from?,
            to: to?,
            through,
            not_through,
            exists: raw.exists.unwrap_or(true),
        })
    }

    /// The patterns of a `when`: of what is bound, and of each of what is bound together.
    pub(super) fn bound_patterns(&mut self, when: &raw::When) -> BoundPatterns {
        let mut compiled = |patterns: &super::yaml::Map<raw::Pattern>| {
            let mut list = Vec::new();
            for (name, pattern) in patterns.iter() {
                let pattern = self.pattern(pattern, None);
                if let Some(slot) = self.item_slot(name) {
                    list.push((slot, pattern));
                }
            }
            list
        };
        (compiled(&when.bound), compiled(&when.every))
    }

    pub(super) fn when(&mut self, when: &raw::When, patterns: BoundPatterns) -> WhenTest {
        let (bound, every) = patterns;
        WhenTest {
            target: self.target(&when.unit, &when.runtime, &when.chip, &when.os, false),
            formats: self.formats(&when.format),
            bound,
            every,
            function: when.function.as_ref().map(|function| self.function(function)),
            program: when.program.as_ref().map(|program| self.program(program)),
            wheres: self.exprs(&when.r#where),
        }
    }

    fn case(&mut self, raw: &raw::Case, patterns: BoundPatterns) -> CaseTest {
        CaseTest {
            when: self.when(&raw.when, patterns),
            severity: raw.severity.as_ref().map(|severity| severity.value),
            message: raw.message.as_ref().map(|message| self.template(message)),
            help: raw.help.as_ref().map(|help| self.template(help)),
            stays: raw.effect == Some(Effect::None),
            quiet: raw.quiet,
        }
    }

    /// The slot of a name that must be a node or value bound in `match`.
    pub(super) fn item_slot(&mut self, name: &At<String>) -> Option<Slot> {
        match self.slot(name) {
            None => {
                let hint = hint(name, &self.bindings());
                self.problem(
                    name.place(),
                    format!("nothing in `match` binds `{}`{hint}", name.value),
                );
                None
            }
            Some(slot) if self.slots[slot as usize].datum => {
                self.problem(
                    name.place(),
                    format!(
                        "`{}` is a number or a word: a node or value is needed here",
                        name.value
                    ),
                );
                None
            }
            Some(slot) => Some(slot),
        }
    }

    fn item_slots(&mut self, names: &Names) -> Vec<Slot> {
        names.iter().filter_map(|name| self.item_slot(name)).collect()
    }

    fn exprs(&mut self, texts: &[At<String>]) -> Vec<expr::Expr> {
        let mut list = Vec::new();
        for text in texts {
            match expr::parse(text, self) {
                Ok(parsed) => {
                    self.needs_placement |= parsed.needs_placement();
                    list.push(parsed);
                }
                Err(error) => self.problem(
                    text.place(),
                    format!("`{}`, character {}: {}", text.value, error.offset + 1, error.message),
                ),
            }
        }
        list
    }

    fn template(&mut self, text: &At<String>) -> Template {
        match template::parse(text, self) {
            Ok(template) => {
                self.needs_placement |= template.needs_placement();
                template
            }
            Err(error) => {
                self.problem(
                    text.place(),
                    format!("character {}: {}", error.offset + 1, error.message),
                );
                Template::default()
            }
        }
    }
}
