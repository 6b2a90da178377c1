//! Checks of names: ops, categories, dtypes, targets, facts and their fields.

use super::check::Checker;
use super::plan::*;
use super::problem::{Problem, hint};
use super::raw;
use super::vocabulary::OpSet;
use super::words::Kind;
use super::yaml::{At, Names, Scalar};
use crate::facts::catalogue::{FACTS, FactInfo, FieldKind};
use crate::graph::DType;
use crate::target::{Generation, Runtime, Unit};

/// The formats that a rule may name.
pub const FORMATS: &[&str] =
    &["pt2", "aimodel", "aimodelc", "mlpackage", "mlmodel", "mlmodelc", "mil", "mlir", "onnx"];

impl Checker<'_> {
    /// Reads words of a closed vocabulary.
    pub(super) fn words<T>(
        &mut self,
        names: &Names,
        parse: impl Fn(&str) -> Option<T>,
        known: &[&str],
        what: &str,
    ) -> Vec<T> {
        let mut list = Vec::new();
        for name in names.iter() {
            match parse(name) {
                Some(word) => list.push(word),
                None => self.problem(
                    name.place(),
                    format!("there is no {what} `{}`{}", name.value, hint(name, known)),
                ),
            }
        }
        list
    }

    pub(super) fn formats(&mut self, names: &Names) -> Vec<String> {
        self.words(
            names,
            |name| FORMATS.contains(&name).then(|| name.to_owned()),
            FORMATS,
            "format",
        )
    }

    pub(super) fn target(
        &mut self,
        unit: &Names,
        runtime: &Names,
        chip: &Option<raw::Range>,
        os: &Option<raw::Range>,
        whole_rule: bool,
    ) -> TargetTest {
        let mut units = self.words(unit, Unit::parse, &names(Unit::ALL, |u| u.name()), "unit");
        if whole_rule && unit.is_empty() {
            units.push(Unit::NeuralEngine);
        }
        let runtimes =
            self.words(runtime, Runtime::parse, &names(Runtime::ALL, |r| r.name()), "runtime");
        let chip = self.range(
            chip,
            |scalar| Generation::parse(&scalar.to_string()),
            "chip, as in `h16` or `m4`",
        );
        let os = self.range(os, os_version, "OS version, as in `18` or `26.1`");
        TargetTest { units, runtimes, chip, os }
    }

    fn range<T>(
        &mut self,
        range: &Option<raw::Range>,
        parse: impl Fn(&Scalar) -> Option<T>,
        what: &str,
    ) -> (Option<T>, Option<T>) {
        let mut end = |scalar: &Option<At<Scalar>>| {
            let scalar = scalar.as_ref()?;
            let parsed = parse(scalar);
            if parsed.is_none() {
                self.problem(scalar.place(), format!("`{}` is no {what}", scalar.value));
            }
            parsed
        };
        match range {
            None => (None, None),
            Some(range) => (end(&range.min), end(&range.max)),
        }
    }

    /// The ops of a list of names.
    pub(super) fn ops(&mut self, names: &Names) -> OpSet {
        if names.len() == 1 && names[0].as_str() == "any" {
            // Views are no work: who means them names them.
            let mut all = self.vocabulary.all();
            all.remove(&self.vocabulary.category("transparent"));
            return all;
        }
        let mut set = OpSet::default();
        for name in names.iter() {
            match self.vocabulary.op(name) {
                Some(op) => set.insert(op),
                None => {
                    let known: Vec<&str> = self.vocabulary.ops.iter().map(|op| op.name).collect();
                    self.problem(
                        name.place(),
                        format!("there is no op `{}`{}", name.value, hint(name, &known)),
                    );
                }
            }
        }
        set
    }

    /// The ops of a list of categories.
    pub(super) fn categories(&mut self, names: &Names) -> OpSet {
        let mut set = OpSet::default();
        for name in names.iter() {
            let ops = self.vocabulary.category(name);
            if ops.is_empty() {
                let mut known: Vec<&str> =
                    self.vocabulary.ops.iter().map(|op| op.category).collect();
                known.sort_unstable();
                known.dedup();
                self.problem(
                    name.place(),
                    format!("there is no category `{}`{}", name.value, hint(name, &known)),
                );
            }
            set.extend(&ops);
        }
        set
    }

    /// The ops that a flow or path goes through; `None` for every op (`through: any`).
    pub(super) fn through(&mut self, through: &Names, categories: &Names) -> Option<OpSet> {
        if through.len() == 1 && through[0].as_str() == "any" {
            return None;
        }
        let mut set = self.ops(through);
        set.extend(&self.categories(categories));
        Some(set)
    }

    pub(super) fn dtypes(&mut self, names: &Names) -> DtypeSet {
        let mut known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        known.extend(["float", "int"]);
        let mut set = DtypeSet::default();
        for name in names.iter() {
            let mut found = false;
            for dtype in DType::ALL {
                let fits = match name.as_str() {
                    "float" => dtype.is_float(),
                    "int" => dtype.is_int(),
                    word => dtype.name() == word,
                };
                if fits {
                    set.0 |= 1 << (*dtype as u32);
                    found = true;
                }
            }
            if !found {
                self.problem(
                    name.place(),
                    format!("there is no dtype `{}`{}", name.value, hint(name, &known)),
                );
            }
        }
        set
    }

    pub(super) fn regex(&mut self, text: &At<String>) -> Regex {
        if let Err(reason) = (self.vocabulary.regex)(text) {
            self.problem(
                text.place(),
                format!("`{}` is no regular expression: {reason}", text.value),
            );
        }
        self.regexes.push(text.value.clone());
        Regex { id: (self.regexes.len() - 1) as u16, source: text.value.clone() }
    }

    pub(super) fn fact(&mut self, name: &At<String>) -> Option<&'static FactInfo> {
        let fact = FACTS.iter().find(|fact| fact.name == name.as_str());
        if fact.is_none() {
            let known: Vec<&str> = FACTS.iter().map(|fact| fact.name).collect();
            self.problem(
                name.place(),
                format!("there is no fact `{}`{}", name.value, hint(name, &known)),
            );
        }
        fact
    }

    /// Patterns of a fact's fields.
    pub(super) fn fields(
        &mut self,
        fact: &'static FactInfo,
        raw: &[(At<String>, raw::Pattern)],
    ) -> Vec<(&'static str, FieldTest)> {
        let mut list = Vec::new();
        for (name, pattern) in raw {
            let Some(field) = fact.fields.iter().find(|field| field.name == name.as_str()) else {
                let known: Vec<&str> = fact.fields.iter().map(|field| field.name).collect();
                self.problem(
                    name.place(),
                    format!(
                        "the fact `{}` has no field `{}`{}",
                        fact.name,
                        name.value,
                        hint(name, &known)
                    ),
                );
                continue;
            };
            if pattern.present == Some(false) {
                if !field.optional {
                    self.problem(name.place(), format!("`{}` is always there", field.name));
                }
                list.push((field.name, FieldTest::Absent));
                continue;
            }
            let test = match field.kind {
                FieldKind::Node => FieldTest::Node(self.item_field(name, pattern)),
                FieldKind::Value => FieldTest::Value(self.item_field(name, pattern)),
                FieldKind::Nodes | FieldKind::Values => {
                    FieldTest::Some(self.item_field(name, pattern))
                }
                kind => FieldTest::Datum(self.datum_field(name, pattern, kind)),
            };
            let test = if pattern.optional { FieldTest::Optional(Box::new(test)) } else { test };
            list.push((field.name, test));
        }
        list
    }

    fn item_field(&mut self, name: &At<String>, pattern: &raw::Pattern) -> Pattern {
        if pattern.is.is_some() {
            self.problem(name.place(), format!("`{}` is a node or value: a pattern such as {{op: …}} or {{bind: …}} is expected", name.value));
        }
        self.pattern(pattern, None)
    }

    fn datum_field(&mut self, name: &At<String>, pattern: &raw::Pattern, kind: FieldKind) -> Test {
        let only = raw::Pattern {
            is: pattern.is.clone(),
            bind: pattern.bind.clone(),
            present: pattern.present,
            optional: pattern.optional,
            ..raw::Pattern::default()
        };
        if *pattern != only {
            self.problem(name.place(), format!("`{}` is a number or a word: only `is`, `bind` and `present` can be asked of it", name.value));
        }
        let mut test = match &pattern.is {
            Some(is) => self.test(is),
            None => Test::default(),
        };
        if let FieldKind::Text(known) = kind {
            for word in test.one_of.iter().chain(&test.none_of) {
                if !known.contains(&word.to_string().as_str()) {
                    self.problems.push(Problem {
                        place: name.place(),
                        message: format!(
                            "`{}` is never `{word}`{}",
                            name.value,
                            hint(&word.to_string(), known)
                        ),
                    });
                }
            }
        }
        if let Some(bind) = &pattern.bind {
            test.bind = Some(self.bind(bind, None, true));
        }
        test
    }
}

/// The words of a closed vocabulary.
pub(super) fn names<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|&item| name(item)).collect()
}

fn os_version(scalar: &Scalar) -> Option<(u16, u16)> {
    let text = match scalar {
        Scalar::Int(n) => return u16::try_from(*n).ok().map(|major| (major, 0)),
        Scalar::Float(x) => x.to_string(),
        Scalar::Text(text) => text.clone(),
        Scalar::Bool(_) => return None,
    };
    let (major, minor) = text.split_once('.').unwrap_or((&text, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The kinds of a pattern's `kind` that are no ops.
pub(super) fn anchored_kinds(kinds: &[Kind]) -> Vec<Kind> {
    kinds.iter().copied().filter(|kind| *kind != Kind::Op).collect()
}
