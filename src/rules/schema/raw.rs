//! A rule as written: what serde reads from YAML, with places and no logic. `docs/rule-language.md`
//! is the reference for authors; the doc comments here are its source.

use serde::{Deserialize, Serialize};

pub use super::raw_pattern::*;
use super::words::{Applicability, Category, Effect, HoleKind, Per, Severity, Sureness};
use super::yaml::{At, Map, Names, OneOrMany, Scalar, Switch};

/// One rule file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// Fixed id, letters and digits (`ANE004`).
    pub id: At<String>,
    /// Fixed kebab-case name of the defect (`inf-mask`).
    pub name: At<String>,
    /// A line for lists.
    pub title: String,
    /// Severity unless a case says otherwise.
    pub severity: At<Severity>,
    /// What sort of trouble.
    pub category: Category,
    /// Targets that the rule is about; the Neural Engine through every runtime if left out.
    #[serde(default)]
    pub target: Target,
    /// Formats that the rule is about; all if left out.
    #[serde(default)]
    pub format: Names,
    /// What the match means for placement.
    #[serde(default)]
    pub effect: Effect,
    /// What the function must be like for the rule to look at it.
    #[serde(default)]
    pub function: Option<FunctionPattern>,
    /// What the program must be like for the rule to look at it.
    #[serde(default)]
    pub program: Option<ProgramPattern>,
    /// What is looked for.
    pub r#match: At<Pattern>,
    /// Comparisons over what is bound; all must hold.
    #[serde(default)]
    pub r#where: Vec<At<String>>,
    /// Ways between bound values that must exist, or must not.
    #[serde(default)]
    pub paths: Vec<Path>,
    /// Joins matches into one hit.
    #[serde(default)]
    pub group: Option<Group>,
    /// Which binding to report at; the anchor if left out.
    #[serde(default)]
    pub report_at: Option<At<String>>,
    /// What makes one finding.
    #[serde(default)]
    pub per: Per,
    /// Template that tells apart hits at one place.
    #[serde(default)]
    pub key: Option<At<String>>,
    /// Template of the message.
    pub message: At<String>,
    /// Template of what to do.
    #[serde(default)]
    pub help: Option<At<String>>,
    /// Severity, message and help by target, format, place and binding; the first that holds wins.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// Other things that the rule looks for; what one leaves out is as in the rule itself.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Bindings whose nodes this rule explains. By default the off-unit ones.
    #[serde(default)]
    pub claims: Option<Names>,
    /// Bindings that cannot stay on the unit (`effect: off-unit`); the anchor if left out.
    #[serde(default)]
    pub off_unit: Names,
    /// Ids of more general rules that are silent on the nodes this one claims.
    #[serde(default)]
    pub over: Names,
    /// Silent on every claimed node: the rules that only repeat the target's table.
    #[serde(default)]
    pub yields: bool,
    /// Other ends of the pattern worth showing.
    #[serde(default)]
    pub related: Vec<Related>,
    /// Which Python expression deserves the caret.
    #[serde(default)]
    pub python: Option<Python>,
    /// How to mend it.
    #[serde(default)]
    pub fix: Option<Fix>,
    /// Why it matters, in plain words.
    pub why: At<String>,
    /// What it stands on.
    pub evidence: At<Vec<Evidence>>,
    /// Code with the fault and without.
    pub example: Option<Example>,
    /// Pages worth reading.
    #[serde(default)]
    pub links: Vec<String>,
    /// The check to run next on a device.
    #[serde(default)]
    pub gate: Option<String>,
    /// Models to try the rule on, for `anelint test`.
    #[serde(default)]
    pub tests: Vec<RuleTest>,
    /// Whether it runs unless selected by id.
    #[serde(default)]
    pub default: Option<Switch>,
    /// Whether it waits behind `--preview`.
    #[serde(default)]
    pub preview: bool,
}

/// Another thing that a rule looks for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Variant {
    /// What is looked for.
    pub r#match: At<Pattern>,
    /// Formats.
    #[serde(default)]
    pub format: Option<Names>,
    /// What the function must be like.
    #[serde(default)]
    pub function: Option<FunctionPattern>,
    /// Comparisons; none are taken from the rule.
    #[serde(default)]
    pub r#where: Vec<At<String>>,
    /// Ways between bound values; none are taken from the rule.
    #[serde(default)]
    pub paths: Vec<Path>,
    /// Joins matches; not taken from the rule.
    #[serde(default)]
    pub group: Option<Group>,
    /// Which binding to report at; the anchor if left out.
    #[serde(default)]
    pub report_at: Option<At<String>>,
    /// Tells apart hits at one place.
    #[serde(default)]
    pub key: Option<At<String>>,
    /// Severity.
    #[serde(default)]
    pub severity: Option<At<Severity>>,
    /// Message.
    #[serde(default)]
    pub message: Option<At<String>>,
    /// Help.
    #[serde(default)]
    pub help: Option<At<String>>,
    /// Cases; none are taken from the rule.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// What it explains.
    #[serde(default)]
    pub claims: Option<Names>,
    /// What cannot stay on the unit; the anchor if left out.
    #[serde(default)]
    pub off_unit: Names,
    /// Other ends worth showing; none are taken from the rule.
    #[serde(default)]
    pub related: Vec<Related>,
}

/// Targets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Target {
    /// Processors.
    #[serde(default)]
    pub unit: Names,
    /// Runtimes.
    #[serde(default)]
    pub runtime: Names,
    /// Neural Engine generations.
    #[serde(default)]
    pub chip: Option<Range>,
    /// OS versions (`18`, `26.1`).
    #[serde(default)]
    pub os: Option<Range>,
}

/// From … to, both included.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Range {
    /// Smallest.
    #[serde(default)]
    pub min: Option<At<Scalar>>,
    /// Largest.
    #[serde(default)]
    pub max: Option<At<Scalar>>,
}

/// A way along the data flow between two bound values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Path {
    /// Where it starts: the earlier value.
    pub from: At<String>,
    /// Where it ends: the later value.
    pub to: At<String>,
    /// Ops it may go through; all if left out.
    #[serde(default)]
    pub through: Names,
    /// Categories it may go through.
    #[serde(default)]
    pub through_category: Names,
    /// Ops it may not go through.
    #[serde(default)]
    pub not_through: Names,
    /// Whether there must be such a way (the default) or must be none.
    #[serde(default)]
    pub exists: Option<bool>,
}

/// Joins matches into one hit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Group {
    /// Template: matches whose text is equal are of one group; a whole function if left out.
    #[serde(default)]
    pub by: Option<At<String>>,
    /// How many matches a group must have.
    #[serde(default)]
    pub count: Option<Test>,
}

/// What is different where.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// Where.
    pub when: When,
    /// Severity there.
    #[serde(default)]
    pub severity: Option<At<Severity>>,
    /// Message there.
    #[serde(default)]
    pub message: Option<At<String>>,
    /// Help there.
    #[serde(default)]
    pub help: Option<At<String>>,
    /// What the match means for placement there.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// Silent there.
    #[serde(default)]
    pub quiet: bool,
}

/// Where a case holds; every field given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct When {
    /// Processors.
    #[serde(default)]
    pub unit: Names,
    /// Runtimes.
    #[serde(default)]
    pub runtime: Names,
    /// Neural Engine generations.
    #[serde(default)]
    pub chip: Option<Range>,
    /// OS versions.
    #[serde(default)]
    pub os: Option<Range>,
    /// Formats.
    #[serde(default)]
    pub format: Names,
    /// Patterns of bound nodes and values; of several nodes bound together, the first.
    #[serde(default)]
    pub bound: Map<Pattern>,
    /// Patterns that each of several nodes bound together must fit.
    #[serde(default)]
    pub every: Map<Pattern>,
    /// What the function is like.
    #[serde(default)]
    pub function: Option<FunctionPattern>,
    /// What the program is like.
    #[serde(default)]
    pub program: Option<ProgramPattern>,
    /// Comparisons.
    #[serde(default)]
    pub r#where: Vec<At<String>>,
}

/// Another end of the pattern.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Related {
    /// Which binding.
    pub at: At<String>,
    /// Template of the words.
    pub message: At<String>,
}

/// Which Python expression deserves the caret: snippets with `$X` (one expression) and `$$$` (any
/// number) as holes. The source mapping interprets them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Python {
    /// Looked for on the line that produced the node, in this order.
    #[serde(default)]
    pub find: Vec<String>,
    /// Whether to look for them in the function called on that line too.
    #[serde(default)]
    pub helper: bool,
    /// What to do where the op is made inside a library that the line calls, and nothing of the author's
    /// sets it.
    #[serde(default)]
    pub library_help: Option<String>,
}

/// How to mend it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fix {
    /// Rewrites of the Python source; the first that holds and whose snippet is there is taken.
    pub python: OneOrMany<PythonFix>,
}

/// A rewrite of the Python source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonFix {
    /// Where it holds; everywhere if left out.
    #[serde(default)]
    pub when: Option<When>,
    /// Snippets with holes; the one that is found once in the finding's places is rewritten.
    #[serde(default)]
    pub replace: Names,
    /// What a hole may stand for; any expression if left out.
    #[serde(default)]
    pub holes: Map<At<HoleKind>>,
    /// What takes the snippet's place: holes by name, `$MATCH` for the snippet, `$BESIDE` for the
    /// operand beside it, `{int $X}` for a hole as a whole number, `{name}` for a binding, `{source
    /// name}` for the Python that makes a binding.
    #[serde(default)]
    pub with: Option<At<String>>,
    /// Keyword arguments to take out of the call that the snippet is.
    #[serde(default)]
    pub drop: Names,
    /// Keyword arguments to put into the call that the snippet is, unless the first is there already.
    #[serde(default)]
    pub add: Map<At<String>>,
    /// What takes the place of the value in the `return` of the function that the finding is in.
    #[serde(default)]
    pub returned: Option<At<String>>,
    /// How far it may be trusted.
    pub applicability: At<Applicability>,
    /// What the edit does not do, or what to know of it; for `display` the code to copy.
    #[serde(default)]
    pub note: String,
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Evidence {
    /// Id in the project's list of facts (`N-06`), if it has one.
    #[serde(default)]
    pub id: Option<String>,
    /// Document, study or issue.
    pub source: String,
    /// How sure.
    pub sureness: Sureness,
    /// Runtimes it speaks of; all if left out.
    #[serde(default)]
    pub runtime: Names,
}

/// A model and what the rule must find in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RuleTest {
    /// The model, relative to the rule file.
    pub model: String,
    /// The places (`model.py:12`) that findings must have, and no others; none at all if empty. At least
    /// one finding, wherever, if left out.
    #[serde(default)]
    pub expect: Option<Vec<String>>,
    /// Unit to check against; the rule's first if left out.
    #[serde(default)]
    pub target: Option<String>,
    /// Runtime to check for; by the format if left out.
    #[serde(default)]
    pub runtime: Option<String>,
}

/// Code with the fault and without.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Example {
    /// With.
    pub bad: String,
    /// Without.
    pub good: String,
}
