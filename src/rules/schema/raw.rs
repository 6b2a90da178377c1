//! A rule as written: what serde reads from YAML, with places and no logic. `docs/rule-language.md`
//! is the reference for authors; the doc comments here are its source.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::words::{Applicability, Category, Effect, Per, Severity, Sureness};
use super::yaml::{At, Map, Names, Scalar, ShortForms, ShortVisitor, Switch};

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
    /// Whether it runs unless selected by id.
    #[serde(default)]
    pub default: Option<Switch>,
    /// Whether it waits behind `--preview`.
    #[serde(default)]
    pub preview: bool,
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

/// What a node or a value is like; every field given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pattern {
    /// At the top of `match` only: each record of this fact.
    #[serde(default)]
    pub fact: Option<At<String>>,
    /// With `fact`: patterns of its fields. A field named here must be there, unless
    /// `{present: false}`.
    #[serde(default)]
    pub fields: Map<Pattern>,
    /// At the top of `match` only: each value of the function that varies at run time.
    #[serde(default)]
    pub value: Option<Box<Pattern>>,
    /// At the top of `match` only: each function.
    #[serde(default)]
    pub function: Option<Box<FunctionPattern>>,
    /// At the top of `match` only: the program.
    #[serde(default)]
    pub program: Option<Box<ProgramPattern>>,
    /// Canonical ops.
    #[serde(default)]
    pub op: Names,
    /// Categories of ops.
    #[serde(default)]
    pub category: Names,
    /// Regular expression over the op's name in the file.
    #[serde(default)]
    pub spelling: Option<At<String>>,
    /// Regular expression over the node's name.
    #[serde(default)]
    pub name: Option<At<String>>,
    /// Regular expression over the module path.
    #[serde(default)]
    pub module: Option<At<String>>,
    /// Regular expression over the classes of the modules around it, innermost first.
    #[serde(default)]
    pub class: Option<At<String>>,
    /// Kinds of node: op, input, output, state, constant.
    #[serde(default)]
    pub kind: Names,
    /// Element types; `float` and `int` stand for all of their kind.
    #[serde(default)]
    pub dtype: Names,
    /// Number of dims.
    #[serde(default)]
    pub rank: Option<Test>,
    /// Dims by index, from the end if negative.
    #[serde(default)]
    pub dim: Map<Test>,
    /// At least one dim.
    #[serde(default)]
    pub any_dim: Option<Test>,
    /// Every dim.
    #[serde(default)]
    pub every_dim: Option<Test>,
    /// Bytes of the tensor, packed.
    #[serde(default)]
    pub bytes: Option<Test>,
    /// Number of elements.
    #[serde(default)]
    pub elements: Option<Test>,
    /// Whether a dim is a symbol.
    #[serde(default)]
    pub dynamic: Option<bool>,
    /// Whether a dim's size depends on data.
    #[serde(default)]
    pub data_dependent: Option<bool>,
    /// Whether the strides are other than row-major contiguous.
    #[serde(default)]
    pub strided: Option<bool>,
    /// Attributes by canonical name.
    #[serde(default)]
    pub attr: Map<Test>,
    /// Operands by canonical name.
    #[serde(default)]
    pub operand: Map<Pattern>,
    /// At least one operand.
    #[serde(default)]
    pub any_operand: Option<Box<Pattern>>,
    /// Every operand.
    #[serde(default)]
    pub every_operand: Option<Box<Pattern>>,
    /// Two operands whose patterns may also fit the other way round.
    #[serde(default)]
    pub commutative: Names,
    /// Results by index.
    #[serde(default)]
    pub result: Option<Box<Pattern>>,
    /// At least one user, transparent ops looked through.
    #[serde(default)]
    pub consumer: Option<Box<Pattern>>,
    /// Every user, transparent ops looked through; at least one.
    #[serde(default)]
    pub every_consumer: Option<Box<Pattern>>,
    /// Number of users, transparent ops looked through.
    #[serde(default)]
    pub consumers: Option<Test>,
    /// The node that makes the value as it is used, transparent or not.
    #[serde(default)]
    pub produced_by: Option<Box<Pattern>>,
    /// Some value that this one is computed from.
    #[serde(default)]
    pub derives_from: Option<Box<Flow>>,
    /// Some value computed from this one.
    #[serde(default)]
    pub reaches: Option<Box<Flow>>,
    /// Whether it depends on a run-time input or state.
    #[serde(default)]
    pub depends_on_input: Option<bool>,
    /// A constant's values.
    #[serde(default)]
    pub constant: Option<ConstantPattern>,
    /// Whether a cast was made visible by the reader and written by nobody.
    #[serde(default)]
    pub implicit: Option<bool>,
    /// Role in a fact.
    #[serde(default)]
    pub in_fact: Option<Box<InFact>>,
    /// Interior or boundary of the unit's work; from placement.
    #[serde(default)]
    pub position: Names,
    /// Whether the target's table accepts it: yes, no, unknown; from placement.
    #[serde(default)]
    pub eligible: Names,
    /// All of these.
    #[serde(default)]
    pub all: Vec<Pattern>,
    /// One of these.
    #[serde(default)]
    pub any: Vec<Pattern>,
    /// Not this.
    #[serde(default)]
    pub not: Option<Box<Pattern>>,
    /// How many operands or users fit.
    #[serde(default)]
    pub count: Option<Box<Count>>,
    /// A number or a word: only for fields of facts.
    #[serde(default)]
    pub is: Option<Test>,
    /// Whether an optional operand or field is there.
    #[serde(default)]
    pub present: Option<bool>,
    /// Name for what fits; the same name twice means the same value, transparent ops looked through.
    #[serde(default)]
    pub bind: Option<At<String>>,
}

/// A search along the data flow. Transparent ops are always gone through.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Flow {
    /// Ops that are gone through; `any` for all.
    #[serde(default)]
    pub through: Names,
    /// Categories that are gone through.
    #[serde(default)]
    pub through_category: Names,
    /// Ops that are never gone through.
    #[serde(default)]
    pub not_through: Names,
    /// Operands that are followed (`derives-from`); all if left out. `ops` without such an operand
    /// are followed through every operand.
    #[serde(default)]
    pub operands: Names,
    /// Whether constant work may be entered; it may unless told otherwise.
    #[serde(default)]
    pub constant_work: Option<bool>,
    /// What must be met: a value or node on the way, the start included unless `min-steps` is 1.
    #[serde(alias = "target")]
    pub source: Pattern,
    /// Name for the value met.
    #[serde(default)]
    pub bind: Option<At<String>>,
    /// 1: the start itself does not count.
    #[serde(default)]
    pub min_steps: Option<u32>,
}

/// A count of operands or users.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Count {
    /// Count the operands that fit.
    #[serde(default)]
    pub operands: Option<Pattern>,
    /// Count the users that fit, transparent ops looked through.
    #[serde(default)]
    pub consumers: Option<Pattern>,
    /// How many there must be.
    pub is: Test,
}

/// A role in a fact: the node or value is this field of some record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InFact {
    /// The fact.
    pub fact: At<String>,
    /// Fields; any field that names nodes or values if left out.
    #[serde(default)]
    pub field: Names,
    /// Patterns of the record's other fields.
    #[serde(default)]
    pub fields: Map<Pattern>,
}

/// A constant's values, as far as the size limits let them be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConstantPattern {
    /// Holds this number (`-.inf`, `.inf`, `.nan`, or a finite extreme).
    #[serde(default)]
    pub contains: Vec<f64>,
    /// The one number of a splat or scalar.
    #[serde(default)]
    pub value: Option<Test>,
    /// Smallest finite value.
    #[serde(default)]
    pub min: Option<Test>,
    /// Largest finite value.
    #[serde(default)]
    pub max: Option<Test>,
    /// Largest magnitude of the finite values.
    #[serde(default)]
    pub abs_max: Option<Test>,
    /// Where it comes from.
    #[serde(default)]
    pub origin: Names,
    /// Regular expression over its name in the author's module.
    #[serde(default)]
    pub fqn: Option<At<String>>,
}

/// A test of a number, a word or a list of numbers. `5` is short for `{is: 5}`, a list for
/// `{in: […]}`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Test {
    /// One of these.
    #[serde(default)]
    pub r#in: Vec<Scalar>,
    /// This.
    #[serde(default)]
    pub is: Option<Scalar>,
    /// None of these.
    #[serde(default)]
    pub not_in: Vec<Scalar>,
    /// Not this.
    #[serde(default)]
    pub not: Option<Scalar>,
    /// Greater than.
    #[serde(default)]
    pub gt: Option<f64>,
    /// At least.
    #[serde(default)]
    pub ge: Option<f64>,
    /// Less than.
    #[serde(default)]
    pub lt: Option<f64>,
    /// At most.
    #[serde(default)]
    pub le: Option<f64>,
    /// A multiple of.
    #[serde(default)]
    pub multiple_of: Option<u64>,
    /// Not a multiple of.
    #[serde(default)]
    pub not_multiple_of: Option<u64>,
    /// Has no prime factor but these.
    #[serde(default)]
    pub prime_factors: Option<Vec<u64>>,
    /// Has a prime factor other than these.
    #[serde(default)]
    pub prime_factor_beyond: Option<Vec<u64>>,
    /// Regular expression over a word.
    #[serde(default)]
    pub matches: Option<At<String>>,
    /// A list: exactly these.
    #[serde(default)]
    pub list: Option<Vec<Scalar>>,
    /// A list: its length.
    #[serde(default)]
    pub len: Option<Box<Test>>,
    /// A list: some element.
    #[serde(default)]
    pub any: Option<Box<Test>>,
    /// A list: every element.
    #[serde(default)]
    pub every: Option<Box<Test>>,
    /// A list: elements by index, from the end if negative.
    #[serde(default)]
    pub at: Map<Test>,
    /// Whether it is given at all; a test of a missing thing fails otherwise.
    #[serde(default)]
    pub present: Option<bool>,
    /// Name for the number or word.
    #[serde(default)]
    pub bind: Option<At<String>>,
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

/// What a function is like; every field given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FunctionPattern {
    /// Regular expression over its name.
    #[serde(default)]
    pub name: Option<At<String>>,
    /// Regular expression over its opset or dialect version.
    #[serde(default)]
    pub opset: Option<At<String>>,
    /// Whether callers outside can run it (branches of cond and bodies of loops cannot).
    #[serde(default)]
    pub entry: Option<bool>,
    /// A run-time value of one of these types is in it.
    #[serde(default)]
    pub has_dtype: Names,
    /// No run-time value of any of these types is in it.
    #[serde(default)]
    pub lacks_dtype: Names,
    /// Ops that work at run time.
    #[serde(default)]
    pub ops: Option<Test>,
    /// Inputs.
    #[serde(default)]
    pub inputs: Option<Test>,
    /// Outputs.
    #[serde(default)]
    pub outputs: Option<Test>,
    /// States.
    #[serde(default)]
    pub states: Option<Test>,
    /// Bytes of the parameters it uses, as stored.
    #[serde(default)]
    pub weight_bytes: Option<Test>,
    /// Regions of the unit; from placement.
    #[serde(default)]
    pub regions: Option<Test>,
    /// Some node fits.
    #[serde(default)]
    pub contains: Option<Box<Pattern>>,
    /// No node fits.
    #[serde(default)]
    pub lacks: Option<Box<Pattern>>,
    /// How many nodes fit.
    #[serde(default)]
    pub count: Vec<NodeCount>,
    /// How many records of a fact there are.
    #[serde(default)]
    pub facts: Map<Test>,
    /// Not this.
    #[serde(default)]
    pub not: Option<Box<FunctionPattern>>,
    /// One of these.
    #[serde(default)]
    pub any: Vec<FunctionPattern>,
    /// Name for the function's first op, to report at.
    #[serde(default)]
    pub bind: Option<At<String>>,
}

/// A count of nodes in a function.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeCount {
    /// What is counted.
    pub of: Pattern,
    /// How many there must be.
    #[serde(default)]
    pub is: Option<Test>,
    /// Which share of the nodes that fit this…
    #[serde(default)]
    pub among: Option<Pattern>,
    /// …they must be, from 0 to 1.
    #[serde(default)]
    pub share: Option<Test>,
}

/// What a program is like; every field given must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramPattern {
    /// Regular expression over what wrote it; an empty text if the file does not say.
    #[serde(default)]
    pub producer: Option<At<String>>,
    /// Metadata by key.
    #[serde(default)]
    pub metadata: Map<Test>,
    /// Functions that callers outside can run.
    #[serde(default)]
    pub entries: Option<Test>,
    /// Bytes of all parameters, as stored, each once.
    #[serde(default)]
    pub weight_bytes: Option<Test>,
    /// Some entry fits.
    #[serde(default)]
    pub any_function: Vec<FunctionPattern>,
    /// No entry fits.
    #[serde(default)]
    pub no_function: Option<Box<FunctionPattern>>,
    /// Every entry fits.
    #[serde(default)]
    pub every_function: Option<Box<FunctionPattern>>,
    /// Whether any node has a source place.
    #[serde(default)]
    pub has_source: Option<bool>,
    /// Not this.
    #[serde(default)]
    pub not: Option<Box<ProgramPattern>>,
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
    /// Patterns of bound nodes and values.
    #[serde(default)]
    pub bound: Map<Pattern>,
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
}

/// How to mend it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fix {
    /// A rewrite of the Python source.
    pub python: PythonFix,
}

/// A rewrite of the Python source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PythonFix {
    /// Snippet with holes.
    pub replace: String,
    /// What takes its place; holes by name, bindings in braces.
    pub with: At<String>,
    /// How far it may be trusted.
    pub applicability: Applicability,
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

/// Code with the fault and without.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Example {
    /// With.
    pub bad: String,
    /// Without.
    pub good: String,
}

impl<'de> ShortForms<'de> for Test {
    const EXPECTED: &'static str = "a number or word, a list of them, or tests such as {gt: 5}";
    fn from_scalars(mut scalars: Vec<Scalar>) -> Self {
        match (scalars.len(), scalars.pop()) {
            (1, Some(scalar)) => Test { is: Some(scalar), ..Test::default() },
            (_, last) => {
                scalars.extend(last);
                Test { r#in: scalars, ..Test::default() }
            }
        }
    }
    fn from_map<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Test::deserialize(deserializer)
    }
}

impl<'de> ShortForms<'de> for Pattern {
    const EXPECTED: &'static str =
        "a pattern such as {op: softmax}; for a field of a fact also a word or number";
    fn from_scalars(scalars: Vec<Scalar>) -> Self {
        Pattern { is: Some(Test::from_scalars(scalars)), ..Pattern::default() }
    }
    fn from_map<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pattern::deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Test {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor(PhantomData))
    }
}

impl Serialize for Test {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Test::serialize(self, serializer)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Pattern::serialize(self, serializer)
    }
}
