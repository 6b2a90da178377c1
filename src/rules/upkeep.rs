//! What is reported of suppressions and baselines themselves. No pattern over graphs says these things,
//! so they are no rule files; they have ids, names and severities as rules do.

use super::{Category, Severity};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upkeep {
    /// Fixed id.
    pub id: &'static str,
    /// Fixed name.
    pub name: &'static str,
    /// A line for lists.
    pub title: &'static str,
    /// Severity where the user sets none.
    pub severity: Severity,
    /// Why it matters, and what to do.
    pub why: &'static str,
}

/// A suppression that silences nothing.
pub const UNUSED: &Upkeep = &ALL[0];
/// A suppression that names no rule.
pub const UNKNOWN: &Upkeep = &ALL[1];
/// A suppression without a reason, where the config asks for one.
pub const UNREASONED: &Upkeep = &ALL[2];
/// A suppression whose last day has gone.
pub const EXPIRED: &Upkeep = &ALL[3];
/// An entry of a baseline that no longer occurs.
pub const STALE_BASELINE: &Upkeep = &ALL[4];

/// All of them.
pub const ALL: &[Upkeep] = &[
    Upkeep {
        id: "UPK001",
        name: "unused-suppression",
        title: "A suppression that silences nothing",
        severity: Severity::Warning,
        why: "The fault is mended, or was never there: what is left would silence the next one. \
              `--fix` takes comments away; tables of the config file are yours to delete.",
    },
    Upkeep {
        id: "UPK002",
        name: "unknown-suppression",
        title: "A suppression that names no rule",
        severity: Severity::Warning,
        why: "It silences nothing. Rules are named by id or name; `anelint rules` lists them. If it is \
              a rule of your own, name its file under `rules` in the config file.",
    },
    Upkeep {
        id: "UPK003",
        name: "unreasoned-suppression",
        title: "A suppression without a reason",
        severity: Severity::Error,
        why: "The config file says `require-reason = true`: write why after the bracket, or as \
              `reason` in the table.",
    },
    Upkeep {
        id: "UPK004",
        name: "expired-suppression",
        title: "A suppression whose last day has gone",
        severity: Severity::Warning,
        why: "Its findings are back. Mend them, or set a new `until`.",
    },
    Upkeep {
        id: "UPK005",
        name: "stale-baseline",
        title: "Entries of a baseline that no longer occur",
        severity: Severity::Warning,
        why: "They would hide the same faults, should they come back. `--prune-baseline` takes them \
              away.",
    },
];

/// The category of all of them.
pub const CATEGORY: Category = Category::Upkeep;

impl Upkeep {
    /// By id or name, whatever the case.
    pub fn find(word: &str) -> Option<&'static Upkeep> {
        ALL.iter()
            .find(|own| own.id.eq_ignore_ascii_case(word) || own.name.eq_ignore_ascii_case(word))
    }
}
