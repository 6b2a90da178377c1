//! Eligibility: may this op run on the unit, and if not, why not. From the target's table and from
//! the verdicts of rules that are handed in; a rule's "no" stands over the table.
//!
//! There is no unexplained no: each has a reason, evidence and an alternative. What nobody has
//! measured stays unknown.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::condition::{Ground, Uses, Witness};
use super::edge::Edges;
use super::table::{Row, Table};
use crate::facts::is_constant;
use crate::graph::{Function, NodeId, NodeKind, Op, Program};
use crate::target::Target;

/// What a rule with `effect: off-unit` said: these nodes cannot stay on the unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleVerdict {
    /// The rule's id (`ANE025`).
    pub rule: String,
    /// Why, in a few words.
    pub reason: String,
    /// What to do.
    pub alternative: String,
    /// Evidence ids.
    pub evidence: Vec<String>,
    /// The nodes of one function.
    pub nodes: Vec<NodeId>,
    /// The node that the finding is reported at: what to mend, however many lines the nodes span.
    /// `None`: each node is its own place.
    pub place: Option<NodeId>,
}

/// Index of a [`Reason`] in its placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReasonId(pub u32);

/// Why an op is eligible, is not, or is unknown: a table row or a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The answer it gives.
    pub eligible: Option<bool>,
    /// The rule that said so (`ANE025`); `None` for a table row.
    pub rule: Option<String>,
    /// The table row (`run-time-gather`), with [`Reason::table`]; empty for a rule.
    pub row: &'static str,
    /// The table's file; empty for a rule.
    pub table: &'static str,
    /// The reason in a few words; may be empty where the answer is yes.
    pub text: String,
    /// What to do about a "no".
    pub alternative: String,
    /// Evidence ids (`E-01`).
    pub evidence: Vec<String>,
    /// Where sources disagree, or what was not measured; may be empty.
    pub note: String,
}

/// Whether one op can run on the unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Yes, no, or `None`: unknown, or no work at all (a constant, an input, a transparent op).
    pub eligible: Option<bool>,
    /// Why; `None` where nothing is known.
    pub reason: Option<ReasonId>,
}

/// What [`judge`] finds, by node id.
pub(super) struct Judged {
    /// The verdict of every node.
    pub(super) verdicts: Vec<Verdict>,
    /// The node to mend for every node: itself, unless a rule says otherwise.
    pub(super) places: Vec<NodeId>,
    /// The reasons that the verdicts point at.
    pub(super) reasons: Vec<Reason>,
}

/// Judges every node of a function.
pub(super) fn judge(
    program: &Program,
    function: &Function,
    target: &Target,
    edges: &Edges,
    rules: &[RuleVerdict],
) -> Judged {
    let uses = Uses::of(function);
    let ground = Ground { program, function, target, edges, uses: &uses };
    let mut verdicts = vec![Verdict::default(); function.len()];
    let mut reasons: Vec<Reason> = Vec::new();
    // A row's reason, once for each text it can have.
    let mut known: HashMap<(*const Row, Op, Witness), ReasonId, FxBuildHasher> = HashMap::default();
    if let Some(table) = Table::of(target) {
        for (id, node) in function.nodes() {
            // Transparent ops are judged too: a planner sees them, though they count as no work.
            if node.kind != NodeKind::Op || is_constant(node) {
                continue;
            }
            let answer = table
                .rows(node.op)
                .find_map(|row| ground.holds(&row.when, id).map(|witness| (row, witness)));
            let Some((row, witness)) = answer else { continue };
            let key = (std::ptr::from_ref(row), node.op, witness);
            let reason = *known.entry(key).or_insert_with(|| {
                reasons.push(Reason {
                    eligible: row.eligible,
                    rule: None,
                    row: row.name,
                    table: table.file,
                    text: fill(row.reason, node.op.name(), witness),
                    alternative: row.alternative.to_owned(),
                    evidence: row.evidence.iter().map(|&id| id.to_owned()).collect(),
                    note: row.note.to_owned(),
                });
                ReasonId(reasons.len() as u32 - 1)
            });
            verdicts[id.0 as usize] = Verdict { eligible: row.eligible, reason: Some(reason) };
        }
    }
    let mut judged = vec![false; function.len()];
    let mut places: Vec<NodeId> = function.node_ids().collect();
    for rule in rules {
        let mut reason = None;
        for &node in &rule.nodes {
            let at = node.0 as usize;
            // The first rule that speaks of a node is the one that is named.
            if at >= function.len() || judged[at] || !function.is_work(node) {
                continue;
            }
            judged[at] = true;
            let reason = *reason.get_or_insert_with(|| rule_reason(&mut reasons, rule));
            verdicts[at] = Verdict { eligible: Some(false), reason: Some(reason) };
            if let Some(place) = rule.place.filter(|place| (place.0 as usize) < function.len()) {
                places[at] = place;
            }
        }
    }
    Judged { verdicts, places, reasons }
}

/// The reason of a rule; equal words share one.
fn rule_reason(reasons: &mut Vec<Reason>, rule: &RuleVerdict) -> ReasonId {
    let same = |reason: &Reason| {
        reason.rule.as_deref() == Some(rule.rule.as_str()) && reason.text == rule.reason
    };
    // Rule verdicts that share words come one after another: only the latest reason need be looked at.
    if reasons.last().is_some_and(same) {
        return ReasonId(reasons.len() as u32 - 1);
    }
    reasons.push(Reason {
        eligible: Some(false),
        rule: Some(rule.rule.clone()),
        row: "",
        table: "",
        text: rule.reason.clone(),
        alternative: rule.alternative.clone(),
        evidence: rule.evidence.clone(),
        note: String::new(),
    });
    ReasonId(reasons.len() as u32 - 1)
}

fn fill(template: &str, op: &str, witness: Witness) -> String {
    if !template.contains('{') {
        return template.to_owned();
    }
    let mut text = template.replace("{op}", op);
    if let Some(dtype) = witness.dtype {
        text = text.replace("{dtype}", dtype.name());
    }
    if let Some(rank) = witness.rank {
        text = text.replace("{rank}", &rank.to_string());
    }
    if let Some(dim) = witness.dim {
        text = text.replace("{dim}", &dim.to_string());
    }
    text
}
