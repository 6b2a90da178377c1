//! Runs the selected rules over a program, in two phases.
//!
//! First the rules that need no placement: what they put off the unit feeds placement. Then those
//! that ask for regions, positions or the target's table.

use rustc_hash::{FxHashMap, FxHashSet};

use super::matcher::{Scope, Surroundings, run};
use super::rule::Compiled;
use super::{Hit, Rule, RuleSet, Selection};
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
    /// What lies between the regions, in a few words; empty if nothing does.
    fn cuts(&self, function: FunctionId) -> String;
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
    /// Of these, the ones whose hits are told.
    told: Vec<usize>,
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
    /// Picks the rules that are selected and hold for the target. Rules that are on by default run even
    /// if they are not selected, untold: where an op can run, and who speaks of it, does not depend on
    /// which findings are wanted.
    ///
    /// # Errors
    /// If a selector names nothing.
    pub fn new(
        set: &'r RuleSet,
        selection: &Selection,
        target: Target,
        limits: Limits,
    ) -> Result<Engine<'r>, UnknownSelector> {
        let mut told = set.select(selection)?;
        told.retain(|&at| set.rules()[at].holds_for(&target));
        let by_default = Selection { preview: selection.preview, ..Selection::default() };
        let mut rules = set.select(&by_default)?;
        rules.retain(|&at| set.rules()[at].holds_for(&target));
        rules.extend(&told);
        rules.sort_unstable();
        rules.dedup();
        Ok(Engine { set, rules, told, target, limits })
    }

    /// The rule set that [`Hit::rule`] indexes.
    pub fn set(&self) -> &'r RuleSet {
        self.set
    }

    /// The rules whose hits are told.
    pub fn rules(&self) -> impl Iterator<Item = &'r Rule> + '_ {
        self.told.iter().map(|&at| &self.set.rules()[at])
    }

    /// Hits of the rules that need no placement, ordered by function, place and rule.
    pub fn first_phase(&self, facts: &Facts) -> Vec<Hit> {
        self.phase(facts, None)
    }

    /// Hits of the rules that ask for placement, in the same order.
    pub fn second_phase(&self, facts: &Facts, placement: &dyn PlacementView) -> Vec<Hit> {
        self.phase(facts, Some(placement))
    }

    fn phase<'a>(
        &self,
        facts: &'a Facts<'a>,
        placement: Option<&'a dyn PlacementView>,
    ) -> Vec<Hit> {
        let program = facts.program();
        let around =
            Surroundings { facts, program, target: self.target, limits: self.limits, placement };
        let plans: Vec<(usize, &Compiled)> = self
            .rules
            .iter()
            .map(|&at| (at, &self.set.rules()[at]))
            .flat_map(|(at, rule)| rule.plans().iter().map(move |compiled| (at, compiled)))
            .filter(|(_, compiled)| compiled.plan.needs_placement == placement.is_some())
            .collect();
        let mut hits = Vec::new();
        if plans.is_empty() {
            return hits;
        }
        for (id, function) in program.linted() {
            if function.is_empty() {
                continue;
            }
            let scope = Scope::new(around, id);
            for (at, compiled) in &plans {
                // What a special rule put off the unit is that rule's to tell.
                let untold = |node| {
                    self.set.rules()[*at].yields()
                        && placement.is_some_and(|placement| placement.eligible(id, node).by_rule)
                };
                hits.extend(run(&scope, *at, compiled, &untold));
            }
        }
        in_order(&mut hits);
        hits
    }

    /// Drops hits of general rules on nodes that a more special rule claims, and hits of rules that are
    /// not told, and gives the rest in the order of function, place and rule.
    ///
    /// A rule that only repeats the target's table (`yields`) is silent on every claimed node; a rule
    /// that a special one names in `over` is silent on the nodes that the special one claims.
    pub fn resolve_claims(&self, mut hits: Vec<Hit>) -> Vec<Hit> {
        let rules = self.set.rules();
        let mut claimed: FxHashSet<(FunctionId, NodeId)> = FxHashSet::default();
        let mut over: FxHashMap<&str, FxHashSet<(FunctionId, NodeId)>> = FxHashMap::default();
        for hit in &hits {
            let Some(rule) = rules.get(hit.rule) else { continue };
            // Without claims of its own, a rule that stands over another speaks for its place.
            let own = if hit.claims.is_empty() { &hit.nodes } else { &hit.claims };
            for general in rule.raw().over.iter() {
                let nodes = own.iter().map(|&node| (hit.function, node));
                over.entry(general.as_str()).or_default().extend(nodes);
            }
            if !rule.yields() {
                claimed.extend(hit.claims.iter().map(|&node| (hit.function, node)));
            }
        }
        hits.retain(|hit| {
            if self.told.binary_search(&hit.rule).is_err() {
                return false;
            }
            let Some(rule) = rules.get(hit.rule) else { return true };
            let taken = |nodes: &FxHashSet<(FunctionId, NodeId)>| {
                let own = if hit.claims.is_empty() {
                    std::slice::from_ref(&hit.place)
                } else {
                    &hit.claims
                };
                own.iter().all(|&node| nodes.contains(&(hit.function, node)))
            };
            !(over.get(rule.id()).is_some_and(taken) || rule.yields() && taken(&claimed))
        });
        in_order(&mut hits);
        hits
    }
}

fn in_order(hits: &mut [Hit]) {
    hits.sort_by(|a, b| {
        (a.function, a.place, a.rule, &a.key, &a.message)
            .cmp(&(b.function, b.place, b.rule, &b.key, &b.message))
    });
}
