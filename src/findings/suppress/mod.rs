//! What the user has chosen not to hear of: comments in the source, tables of the config file, the
//! baseline. And what is to be said of those themselves.

mod baseline;
mod comment;
mod decide;
mod upkeep;

pub use baseline::{
    Baseline, BaselineError, Entry, Stale, entry as baseline_entry, text as baseline_text,
};
pub use comment::{Directive, Scope, directives};
pub use decide::{Decider, FileUse, Use};
pub use upkeep::{Judge, Judged, Whole, as_text, stale_baseline};

use super::Finding;

/// Who silences a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// A comment in the source.
    Comment,
    /// A table of the config file.
    Config,
    /// The baseline.
    Baseline,
}

impl By {
    /// The word in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            By::Comment => "comment",
            By::Config => "config",
            By::Baseline => "baseline",
        }
    }
}

/// Why a finding is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// Who silences it.
    pub by: By,
    /// Why; may be empty.
    pub reason: String,
}

/// A finding that is not reported.
#[derive(Debug, Clone)]
pub struct Silenced {
    /// Its place among all findings of the input, these and the reported ones.
    pub at: usize,
    /// The finding.
    pub finding: Finding,
    /// Why it is silent.
    pub suppression: Suppression,
}
