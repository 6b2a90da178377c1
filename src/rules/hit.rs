//! What a rule found, in terms of the graph.

use super::Severity;
use crate::graph::{FunctionId, NodeId};

/// One match of one rule.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Index of the rule in its rule set.
    pub rule: usize,
    /// The function matched in.
    pub function: FunctionId,
    /// The node to report at (`report-at`); its provenance gives the place.
    pub place: NodeId,
    /// The match is about the function or program as a whole: the place is only its first op.
    pub whole: bool,
    /// All nodes that belong to the match, the place first, each once.
    pub nodes: Vec<NodeId>,
    /// Other ends of the pattern worth showing: node and words.
    pub related: Vec<(NodeId, String)>,
    /// Severity for this target and place, `cases` applied.
    pub severity: Severity,
    /// Message with bindings filled in.
    pub message: String,
    /// Help with bindings filled in; empty if none.
    pub help: String,
    /// Nodes that this hit explains: table-driven rules are silent on them.
    pub claims: Vec<NodeId>,
    /// Nodes that cannot stay on the unit, by a rule with `effect: off-unit`.
    pub off_unit: Vec<NodeId>,
    /// Distinguishes hits of one rule at one source line that are different faults (a symbol's name
    /// for dynamic shapes); usually empty.
    pub key: String,
    /// Which of the rule's rewrites hold here, in the order of the rule.
    pub fixes: Vec<usize>,
    /// What is bound, for rewrites; empty if none holds.
    pub bindings: Vec<Binding>,
}

/// A binding of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Its name in the rule.
    pub name: String,
    /// The node's name, the number or the word.
    pub text: String,
    /// The node; the first if there are several.
    pub node: Option<NodeId>,
}
