//! Rule sets: the built-in rules and the user's, and which of them a check runs.

use super::Rule;

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
    /// The same, to leave out; wins over `select` where it is at least as specific.
    pub ignore: Vec<String>,
    /// Run rules that wait behind `--preview`.
    pub preview: bool,
}

impl RuleSet {
    /// The rules that are compiled in.
    pub fn builtin() -> RuleSet {
        RuleSet::default()
    }

    /// All rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// A rule by id or name.
    pub fn find(&self, id_or_name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id() == id_or_name || rule.name() == id_or_name)
    }
}
