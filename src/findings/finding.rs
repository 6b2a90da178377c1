//! What a user sees of one fault.

use super::ModuleGroup;
use super::python::Span;
use super::source::{FrameNote, PlaceFile, Spot};
use crate::graph::{FunctionId, NodeId};
use crate::rules::{Applicability, Category, Severity, Sureness};

/// One rule × one place in the author's source (or one node, function or program) × one input.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Rule id.
    pub rule: String,
    /// Rule name.
    pub name: String,
    /// Severity.
    pub severity: Severity,
    /// Sort of trouble.
    pub category: Category,
    /// How sure, by the best of the rule's evidence for the target.
    pub sureness: Sureness,
    /// Ids of the evidence.
    pub evidence: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
    /// Names of the functions it is in, in the program's order.
    pub functions: Vec<String>,
    /// Names of the nodes, in program order, each once.
    pub nodes: Vec<String>,
    /// Canonical op and spelling of the first node (`softmax`, `aten.softmax.int`); empty for nodes
    /// that are no op.
    pub op: (String, String),
    /// Module paths, equal ones of repeated layers joined.
    pub modules: Vec<ModuleGroup>,
    /// How often it occurs.
    pub count: usize,
    /// Where it shows.
    pub spot: Option<Spot>,
    /// Where the cause is.
    pub related: Vec<(Spot, String)>,
    /// Frames inside the one shown, of the occurrence that speaks, innermost first.
    pub deeper: Vec<FrameNote>,
    /// The innermost telling frame of each occurrence, each once, in program order: where the author's
    /// line calls a library's model, one line holds many places.
    pub through: Vec<FrameNote>,
    /// Words about the place.
    pub notes: Vec<String>,
    /// How to mend it.
    pub fix: Option<Fix>,
    /// Files that a fix would edit and must not, with the reason.
    pub unfixable: Option<(PlaceFile, &'static str)>,
    /// The fix has been applied: an export anew will tell.
    pub fixed: bool,
    /// Stable name of the finding.
    pub fingerprint: String,
    /// Regions that there would be fewer without it, where the rule is off-unit.
    pub regions_added: Option<u32>,
    /// The nodes that cannot stay on the unit.
    pub off_unit: Vec<(FunctionId, NodeId)>,
    /// Function and node of the first occurrence, for the order.
    pub first: (FunctionId, NodeId),
}

/// A rewrite.
#[derive(Debug, Clone, Default)]
pub struct Fix {
    /// How far it may be trusted.
    pub applicability: Applicability,
    /// The edits; they lie inside the location or a related place.
    pub edits: Vec<Edit>,
    /// What the edit does not do, or what to know of it; for one that is only shown, the words.
    pub note: String,
    /// Which of the rule's rewrites it is, and which of that one's snippets; for the project's own
    /// tests. `None` for one that no rule file holds.
    pub origin: Option<(usize, usize)>,
}

/// One edit.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The file.
    pub file: PlaceFile,
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub text: String,
}
