//! Rule sets: the built-in rules and the user's, and which of them a check runs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::engine::UnknownSelector;
use super::schema::problem::{Problem, nearest};
use super::schema::vocabulary::{OpWords, Vocabulary};
use super::schema::{check, load, raw};
use super::upkeep::{ALL, CATEGORY, Upkeep};
use super::{Category, Rule};
use crate::graph::Op;

mod builtin {
    //! The built-in rules as `build/rules.rs` wrote them.

    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

/// Rules in a fixed order: built-in by id, then the user's as loaded.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

/// Which rules to run.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Ids, names, categories or id prefixes (`ANE`, `ANE00`); all rules that are on by default if
    /// empty.
    pub select: Vec<String>,
    /// The same, to run besides.
    pub extend_select: Vec<String>,
    /// The same, to leave out; wins unless `select` names the rule more closely.
    pub ignore: Vec<String>,
    /// Run rules that wait behind `--preview`.
    pub preview: bool,
}

/// A rule file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.shown())]
pub struct RuleFileError {
    /// The file.
    pub path: PathBuf,
    /// Its text, for snippets; empty if it could not be read.
    pub text: String,
    /// Every mistake found.
    pub problems: Vec<Problem>,
}

impl RuleFileError {
    fn shown(&self) -> String {
        let lines: Vec<String> = self
            .problems
            .iter()
            .map(|problem| format!("{}:{problem}", self.path.display()))
            .collect();
        lines.join("\n")
    }
}

impl RuleSet {
    /// The rules that are compiled in. Parses no YAML.
    pub fn builtin() -> RuleSet {
        let rules = builtin::BUILTIN
            .iter()
            .filter_map(|(file, packed)| {
                let raw = postcard::from_bytes::<raw::Rule>(packed);
                debug_assert!(raw.is_ok(), "{file}: {raw:?}");
                let raw = raw.ok()?;
                // The build has checked them: one that fails now is a bug that a test catches.
                let plans = check::rule(&raw, vocabulary());
                debug_assert!(plans.is_ok(), "{file}: {plans:?}");
                plans.ok().map(|plans| Rule::new(raw, PathBuf::from(file), plans))
            })
            .collect();
        RuleSet { rules }
    }

    /// Adds the rule of a file.
    ///
    /// # Errors
    /// If the file cannot be read or holds mistakes: all of them.
    pub fn load_file(&mut self, path: &Path) -> Result<&Rule, RuleFileError> {
        match std::fs::read_to_string(path) {
            Ok(text) => self.load_str(path, &text),
            Err(error) => {
                let message = match error.kind() {
                    std::io::ErrorKind::InvalidData => "this is no UTF-8 text".to_owned(),
                    _ => error.to_string(),
                };
                let problem = Problem { place: Default::default(), message };
                Err(RuleFileError {
                    path: path.to_owned(),
                    text: String::new(),
                    problems: vec![problem],
                })
            }
        }
    }

    /// Adds the rule that `text` holds; `path` is for messages.
    ///
    /// # Errors
    /// If there are mistakes: all of them.
    pub fn load_str(&mut self, path: &Path, text: &str) -> Result<&Rule, RuleFileError> {
        let fail =
            |problems| RuleFileError { path: path.to_owned(), text: text.to_owned(), problems };
        let raw = load::read(text).map_err(|problem| fail(vec![problem]))?;
        let plans = check::rule(&raw, vocabulary()).map_err(fail)?;
        let mut together: Vec<&raw::Rule> = self.rules.iter().map(Rule::raw).collect();
        together.push(&raw);
        let last = together.len() - 1;
        let problems: Vec<Problem> = check::together(&together)
            .into_iter()
            .filter(|(at, _)| *at == last)
            .map(|(_, problem)| problem)
            .collect();
        if !problems.is_empty() {
            return Err(fail(problems));
        }
        self.rules.push(Rule::new(raw, path.to_owned(), plans));
        Ok(&self.rules[last])
    }

    /// All rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// A rule by id or name, whatever the case.
    pub fn find(&self, id_or_name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| named(rule, id_or_name))
    }

    /// The id or name nearest to a word that names no rule.
    pub fn suggest(&self, word: &str) -> Option<&str> {
        let names = self.rules.iter().flat_map(|rule| [rule.id(), rule.name()]);
        let categories = Category::ALL.iter().map(|category| category.name());
        nearest(&word.to_ascii_uppercase(), self.rules.iter().map(Rule::id))
            .or_else(|| nearest(word, names.chain(categories)))
    }

    /// How closely a selector names the rule with this id: 0 not at all, more for longer id prefixes,
    /// most for the id or name itself. Later words of a category and of `all` are as close.
    pub fn closeness(&self, id: &str, selector: &str) -> usize {
        match self.find(id) {
            Some(rule) => closeness(rule, selector),
            None => Upkeep::find(id).map_or(0, |own| upkeep_closeness(own, selector)),
        }
    }

    /// Whether a selection hears of suppressions and baselines themselves.
    pub fn hears(&self, selection: &Selection, own: &Upkeep) -> bool {
        let closest = |selectors: &[String]| {
            selectors.iter().map(|selector| upkeep_closeness(own, selector)).max().unwrap_or(0)
        };
        let wanted = closest(&selection.select).max(closest(&selection.extend_select));
        let ignored = closest(&selection.ignore);
        (selection.select.is_empty() || wanted > 0) && (ignored == 0 || ignored < wanted)
    }

    /// Indices of the rules that a selection runs, ascending.
    ///
    /// # Errors
    /// If a selector names nothing.
    pub fn select(&self, selection: &Selection) -> Result<Vec<usize>, UnknownSelector> {
        let named = selection.select.iter().chain(&selection.extend_select);
        for selector in named.chain(&selection.ignore) {
            let upkeep = ALL.iter().any(|own| upkeep_closeness(own, selector) > 0);
            if !upkeep && !self.rules.iter().any(|rule| closeness(rule, selector) > 0) {
                return Err(UnknownSelector {
                    selector: selector.clone(),
                    suggestion: self.suggest(selector).map(str::to_owned),
                });
            }
        }
        let closest = |rule: &Rule, selectors: &[String]| {
            selectors.iter().map(|selector| closeness(rule, selector)).max().unwrap_or(0)
        };
        let runs = |rule: &Rule| {
            let besides = closest(rule, &selection.extend_select);
            let wanted = closest(rule, &selection.select).max(besides);
            let chosen = match selection.select.is_empty() {
                true => rule.default_on() || besides > 0,
                false => wanted > 0,
            };
            // A rule that is off, or in preview, is run by its own id or name only.
            let by_name = wanted == NAMED;
            let allowed = by_name || (rule.default_on() && (selection.preview || !rule.preview()));
            let ignored = closest(rule, &selection.ignore);
            chosen && allowed && (ignored == 0 || ignored < wanted)
        };
        Ok((0..self.rules.len()).filter(|&at| runs(&self.rules[at])).collect())
    }
}

/// How closely a selector that is a rule's id or name names it.
const NAMED: usize = usize::MAX;

/// How closely a selector names a rule: 0 not at all, more for longer id prefixes.
fn closeness(rule: &Rule, selector: &str) -> usize {
    closeness_of(rule.id(), rule.name(), rule.category(), selector)
}

fn upkeep_closeness(own: &Upkeep, selector: &str) -> usize {
    closeness_of(own.id, own.name, CATEGORY, selector)
}

fn closeness_of(id: &str, name: &str, category: Category, selector: &str) -> usize {
    if id.eq_ignore_ascii_case(selector) || name.eq_ignore_ascii_case(selector) {
        NAMED
    } else if selector.eq_ignore_ascii_case("all") || selector == category.name() {
        1
    } else if !selector.is_empty()
        && selector.bytes().all(|b| b.is_ascii_alphanumeric())
        && id.starts_with(&selector.to_ascii_uppercase())
    {
        1 + selector.len()
    } else {
        0
    }
}

fn named(rule: &Rule, word: &str) -> bool {
    rule.id().eq_ignore_ascii_case(word) || rule.name().eq_ignore_ascii_case(word)
}

/// The vocabulary of this program.
pub(super) fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| Vocabulary {
        ops: Op::all()
            .map(|op| OpWords {
                name: op.name(),
                category: op.category().name(),
                operands: op.operands().to_vec(),
                attributes: op.attributes().to_vec(),
            })
            .collect(),
        regex: |text| {
            regex::Regex::new(text)
                .map(|_| ())
                .map_err(|error| error.to_string().lines().last().unwrap_or_default().to_owned())
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use super::*;
    use crate::rules::schema::plan::Plan;

    /// The build writes rules as Rust source, the run-time loader reads YAML: one language, one
    /// result.
    #[test]
    fn built_in_rules_are_what_the_loader_makes_of_their_files() {
        // The parser goes down with every level of a rule, and a test's thread has a small stack.
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn(all_are_what_the_loader_makes).unwrap().join().unwrap();
    }

    fn all_are_what_the_loader_makes() {
        let built_in = RuleSet::builtin();
        assert!(!built_in.rules().is_empty());
        for rule in built_in.rules() {
            let mut loaded = RuleSet::default();
            let loaded = loaded.load_file_alone(rule.file());
            assert_eq!(rule.raw(), loaded.raw(), "{}", rule.id());
            let plans = |rule: &Rule| -> Vec<Plan> {
                rule.plans().iter().map(|compiled| compiled.plan.clone()).collect()
            };
            assert_eq!(plans(rule), plans(loaded), "{}", rule.id());
        }
        let files = ["neural-engine", "gpu", "common", "onnxruntime"].map(|dir| {
            let entries = std::fs::read_dir(Path::new("rules").join(dir)).unwrap();
            entries
                .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "yaml"))
                .count()
        });
        assert_eq!(built_in.rules().len(), files.iter().sum::<usize>());
    }

    impl RuleSet {
        /// Loads a file whose `over` names rules that are not here.
        fn load_file_alone(&mut self, path: &Path) -> &Rule {
            let raw = load::read(&std::fs::read_to_string(path).unwrap()).unwrap();
            let plans = check::rule(&raw, vocabulary()).unwrap();
            self.rules.push(Rule::new(raw, path.to_owned(), plans));
            self.rules.last().unwrap()
        }
    }
}
