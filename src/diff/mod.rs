//! What a change did: two readings of a model side by side, findings by fingerprint, functions by name.
//! Pure comparison; reading and checking are done before.

mod contract;

use std::collections::BTreeMap;

pub use contract::{Contract, OpChange, compare};

use crate::findings::Finding;
use crate::graph::{FunctionId, Program};
use crate::placement::Placement;
use crate::rules::Severity;
use crate::stats::FunctionStats;

/// A finding on both sides with another severity.
#[derive(Debug, Clone, Copy)]
pub struct Changed<'a> {
    /// As it was.
    pub old: &'a Finding,
    /// As it is.
    pub new: &'a Finding,
}

/// Findings on one side only, and those that changed their severity.
#[derive(Debug, Default)]
pub struct FindingsDiff<'a> {
    /// New ones.
    pub gained: Vec<&'a Finding>,
    /// Those that are gone.
    pub lost: Vec<&'a Finding>,
    /// Still there, with another severity.
    pub changed: Vec<Changed<'a>>,
    /// On both sides as they were.
    pub same: usize,
}

impl FindingsDiff<'_> {
    /// How many were gained at or above a severity, those included that rose to it.
    pub fn gained_at_least(&self, severity: Severity) -> usize {
        // The greater severity is the worse.
        let at_least = |own: Severity| rank(own) >= rank(severity);
        let gained = self.gained.iter().filter(|finding| at_least(finding.severity)).count();
        let risen = self
            .changed
            .iter()
            .filter(|pair| at_least(pair.new.severity) && !at_least(pair.old.severity))
            .count();
        gained + risen
    }
}

/// Order of severities, the worst highest.
pub fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Advice => 0,
        Severity::Warning => 1,
        Severity::Error => 2,
    }
}

/// Compares findings by fingerprint.
pub fn findings<'a>(old: &'a [Finding], new: &'a [Finding]) -> FindingsDiff<'a> {
    let mut before: BTreeMap<&str, &Finding> =
        old.iter().map(|finding| (finding.fingerprint.as_str(), finding)).collect();
    let mut diff = FindingsDiff::default();
    for finding in new {
        match before.remove(finding.fingerprint.as_str()) {
            None => diff.gained.push(finding),
            Some(known) if known.severity != finding.severity => {
                diff.changed.push(Changed { old: known, new: finding });
            }
            Some(_) => diff.same += 1,
        }
    }
    diff.lost =
        old.iter().filter(|finding| before.contains_key(finding.fingerprint.as_str())).collect();
    // The worst first, else in their own order.
    for list in [&mut diff.gained, &mut diff.lost] {
        list.sort_by_key(|finding| std::cmp::Reverse(rank(finding.severity)));
    }
    diff
}

/// One function on one side.
#[derive(Debug)]
pub struct Side {
    /// Its placement.
    pub placement: Placement,
    /// Its statistics.
    pub stats: FunctionStats,
}

/// A function on either or both sides.
#[derive(Debug)]
pub struct FunctionDiff<'a> {
    /// Its name.
    pub name: &'a str,
    /// Before.
    pub old: Option<&'a Side>,
    /// After.
    pub new: Option<&'a Side>,
    /// What may be said of what it computes; `None` if it is on one side only.
    pub contract: Option<Contract>,
}

/// Compares functions by name, in the order of the old program, new ones after. If each side has one
/// function, they are compared whatever their names.
pub fn functions<'a>(
    old: (&'a Program, &'a [(FunctionId, Side)]),
    new: (&'a Program, &'a [(FunctionId, Side)]),
) -> Vec<FunctionDiff<'a>> {
    let name = |program: &'a Program, id: FunctionId| program.text(program.function(id).name);
    let alone = old.1.len() == 1 && new.1.len() == 1;
    let mut taken = vec![false; new.1.len()];
    let mut rows = Vec::new();
    for (id, side) in old.1 {
        let own = name(old.0, *id);
        let at =
            (0..new.1.len()).find(|&at| !taken[at] && (alone || name(new.0, new.1[at].0) == own));
        if let Some(at) = at {
            taken[at] = true;
        }
        let other = at.map(|at| &new.1[at]);
        rows.push(FunctionDiff {
            name: own,
            old: Some(side),
            new: other.map(|(_, side)| side),
            contract: other.map(|(other, _)| compare((old.0, *id), (new.0, *other))),
        });
    }
    for ((id, side), _) in new.1.iter().zip(&taken).filter(|(_, taken)| !**taken) {
        rows.push(FunctionDiff {
            name: name(new.0, *id),
            old: None,
            new: Some(side),
            contract: None,
        });
    }
    rows
}
