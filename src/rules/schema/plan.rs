//! A checked rule, ready to match: op sets in place of names, slots in place of bindings.

use super::expr::{Expr, Slot};
use super::template::Template;
use super::vocabulary::OpSet;
use super::words::{Eligible, Kind, Origin, Position, Severity};
use super::yaml::Scalar;
use crate::target::{Generation, Runtime, Unit};

/// An index into [`Plan::names`].
pub type NameIndex = u16;

/// A rule ready to match.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Where it holds.
    pub target: TargetTest,
    /// Formats it holds for; all if empty.
    pub formats: Vec<String>,
    /// What the function must be like.
    pub function: Option<FunctionTest>,
    /// What the program must be like.
    pub program: Option<ProgramTest>,
    /// What is looked for.
    pub anchor: Anchor,
    /// Comparisons that must hold.
    pub wheres: Vec<Expr>,
    /// Ways that must or must not be.
    pub paths: Vec<PathTest>,
    /// Joins matches.
    pub group: Option<GroupTest>,
    /// Where to report.
    pub report_at: Slot,
    /// Tells apart hits at one place.
    pub key: Option<Template>,
    /// How bad.
    pub severity: Severity,
    /// What is wrong.
    pub message: Template,
    /// What to do.
    pub help: Option<Template>,
    /// What is different where.
    pub cases: Vec<CaseTest>,
    /// Where each of the rule's rewrites holds; `None` for one that this plan cannot tell of.
    pub fixes: Vec<Option<WhenTest>>,
    /// What the rule explains.
    pub claims: Vec<Slot>,
    /// What cannot stay on the unit; empty without `effect: off-unit`.
    pub off_unit: Vec<Slot>,
    /// Other ends worth showing.
    pub related: Vec<(Slot, Template)>,
    /// Operand and attribute names that the plan uses.
    pub names: Vec<String>,
    /// Bindings by slot; slot 0 is `anchor`.
    pub slots: Vec<String>,
    /// How many flows there are.
    pub flows: u16,
    /// Every regular expression by id.
    pub regexes: Vec<String>,
    /// Whether only placement can tell.
    pub needs_placement: bool,
}

/// The slot of the anchor.
pub const ANCHOR: Slot = 0;

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Anchor {
    /// Nodes: these ops, or these kinds other than op.
    Node {
        /// Ops to look at.
        ops: OpSet,
        /// Kinds to look at other than ops.
        kinds: Vec<Kind>,
        /// What they must be like.
        pattern: Pattern,
    },
    /// Records of a fact.
    Fact {
        /// Its name.
        fact: &'static str,
        /// Patterns of its fields.
        fields: Vec<(&'static str, FieldTest)>,
        /// What the anchor node must be like.
        pattern: Pattern,
    },
    /// Values that vary at run time.
    Value(Pattern),
    /// Functions.
    Function(FunctionTest),
    /// The program.
    Program(ProgramTest),
}

/// A pattern of a field of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldTest {
    /// The field is missing.
    Absent,
    /// The field is missing, or fits.
    Optional(Box<FieldTest>),
    /// A node.
    Node(Pattern),
    /// A value.
    Value(Pattern),
    /// Several nodes or values, one of which fits; bound together.
    Some(Pattern),
    /// A number, a word or a truth value.
    Datum(Test),
}

/// What a node or value is like.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pattern {
    /// Ops, `op` and `category` together; any if `None`.
    pub ops: Option<OpSet>,
    /// What must hold, cheap things first.
    pub checks: Vec<Check>,
    /// Where to keep what fits.
    pub bind: Option<Slot>,
}

/// One thing that must hold.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as the fields of raw::Pattern")]
pub enum Check {
    Kind(Vec<Kind>),
    Dtype(DtypeSet),
    Rank(Test),
    Dim(i64, Test),
    AnyDim(Test),
    EveryDim(Test),
    Bytes(Test),
    Elements(Test),
    Dynamic(bool),
    DataDependent(bool),
    Strided(bool),
    DependsOnInput(bool),
    Implicit(bool),
    Mutation(bool),
    Attr(NameIndex, Test),
    Spelling(Regex),
    Name(Regex),
    Module(Regex),
    Class(Regex),
    Consumers(Test),
    Constant(ConstantTest),
    Eligible(Vec<Eligible>),
    Position(Vec<Position>),
    InFact(FactRole),
    NoOperand(NameIndex),
    Not(Box<Pattern>),
    CountOperands(Box<Pattern>, Test),
    CountConsumers(Box<Pattern>, Test),
    EveryOperand(Box<Pattern>),
    EveryConsumer(Box<Pattern>),
    All(Vec<Pattern>),
    Result(Box<Pattern>),
    ProducedBy(Box<Pattern>),
    Operand(NameIndex, Pattern),
    OptionalOperand(NameIndex, Pattern),
    Commutative(Box<[(NameIndex, Pattern); 2]>),
    AnyOperand(Box<Pattern>),
    Consumer(Box<Pattern>),
    Any(Vec<Pattern>),
    DerivesFrom(Box<Flow>),
    Reaches(Box<Flow>),
}

/// A search along the data flow.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Index among the rule's flows, for what is remembered.
    pub id: u16,
    /// Ops gone through; every op if `None`.
    pub through: Option<OpSet>,
    /// Ops never gone through.
    pub not_through: OpSet,
    /// Operands followed; all if empty or if the op has none of them.
    pub operands: Vec<NameIndex>,
    /// Whether constant work may be entered.
    pub constant_work: bool,
    /// Whether the start does not count.
    pub skip_start: bool,
    /// What must be met.
    pub source: Pattern,
    /// Whether the source pattern can be judged by itself: it joins nothing bound elsewhere.
    pub closed: bool,
}

/// A role in a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct FactRole {
    /// Its name.
    pub fact: &'static str,
    /// Fields that may name the node or value.
    pub roles: Vec<&'static str>,
    /// Patterns of the record's fields.
    pub fields: Vec<(&'static str, FieldTest)>,
}

/// Element types, a bit each by `DType as u32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DtypeSet(pub u32);

/// A regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regex {
    /// Index among the rule's expressions, for the compiled form.
    pub id: u16,
    /// As written.
    pub source: String,
}

/// A constant's values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConstantTest {
    /// Numbers it must hold.
    pub contains: Vec<f64>,
    /// The one number.
    pub value: Option<Test>,
    /// Smallest finite.
    pub min: Option<Test>,
    /// Largest finite.
    pub max: Option<Test>,
    /// Largest magnitude.
    pub abs_max: Option<Test>,
    /// Origins.
    pub origin: Vec<Origin>,
    /// Its name in the author's module.
    pub fqn: Option<Regex>,
}

/// A test of a number, a word or a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Test {
    /// One of these.
    pub one_of: Vec<Scalar>,
    /// None of these.
    pub none_of: Vec<Scalar>,
    /// Greater than.
    pub gt: Option<f64>,
    /// At least.
    pub ge: Option<f64>,
    /// Less than.
    pub lt: Option<f64>,
    /// At most.
    pub le: Option<f64>,
    /// A multiple of.
    pub multiple_of: Option<u64>,
    /// Not a multiple of.
    pub not_multiple_of: Option<u64>,
    /// No prime factor but these.
    pub prime_factors: Option<Vec<u64>>,
    /// Some prime factor other than these.
    pub prime_factor_beyond: Option<Vec<u64>>,
    /// A word that fits.
    pub matches: Option<Regex>,
    /// Exactly this list.
    pub list: Option<Vec<Scalar>>,
    /// Length of the list.
    pub len: Option<Box<Test>>,
    /// Some element.
    pub any: Option<Box<Test>>,
    /// Every element.
    pub every: Option<Box<Test>>,
    /// Elements by index.
    pub at: Vec<(i64, Test)>,
    /// Whether it must be there; `Some(false)`: it must not.
    pub present: Option<bool>,
    /// Where to keep it.
    pub bind: Option<Slot>,
}

impl Test {
    /// Whether it looks at a list as such.
    pub fn is_list(&self) -> bool {
        self.list.is_some()
            || self.len.is_some()
            || self.any.is_some()
            || self.every.is_some()
            || !self.at.is_empty()
    }
}

/// A way between two bound values.
#[derive(Debug, Clone, PartialEq)]
pub struct PathTest {
    /// The earlier one.
    pub from: Slot,
    /// The later one.
    pub to: Slot,
    /// Ops it may go through; every op if `None`.
    pub through: Option<OpSet>,
    /// Ops it may not go through.
    pub not_through: OpSet,
    /// Whether it must be.
    pub exists: bool,
}

/// Joins matches into one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupTest {
    /// What makes them equal.
    pub by: Option<Template>,
    /// How many there must be.
    pub count: Option<Test>,
}

/// What is different where.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseTest {
    /// Where.
    pub when: WhenTest,
    /// Severity there.
    pub severity: Option<Severity>,
    /// Message there.
    pub message: Option<Template>,
    /// Help there.
    pub help: Option<Template>,
    /// Whether the match stays on the unit there, whatever the rule's effect.
    pub stays: bool,
    /// Silent there.
    pub quiet: bool,
}

/// Where a case or a rewrite holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WhenTest {
    /// Targets.
    pub target: TargetTest,
    /// Formats; all if empty.
    pub formats: Vec<String>,
    /// Patterns of what is bound.
    pub bound: Vec<(Slot, Pattern)>,
    /// Patterns of each of several nodes that are bound together.
    pub every: Vec<(Slot, Pattern)>,
    /// What the function is like.
    pub function: Option<FunctionTest>,
    /// What the program is like.
    pub program: Option<ProgramTest>,
    /// Comparisons.
    pub wheres: Vec<Expr>,
}

/// Targets; an empty list or `None` holds for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetTest {
    /// Processors.
    pub units: Vec<Unit>,
    /// Runtimes.
    pub runtimes: Vec<Runtime>,
    /// First and last generation.
    pub chip: (Option<Generation>, Option<Generation>),
    /// First and last OS version, `(major, minor)`.
    pub os: (Option<(u16, u16)>, Option<(u16, u16)>),
}

/// What a function is like.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FunctionTest {
    /// Its name.
    pub name: Option<Regex>,
    /// Its opset.
    pub opset: Option<Regex>,
    /// Whether callers can run it.
    pub entry: Option<bool>,
    /// Types of which one is in it; any if empty.
    pub has_dtype: DtypeSet,
    /// Types of which none is in it.
    pub lacks_dtype: DtypeSet,
    /// Ops that work.
    pub ops: Option<Test>,
    /// Inputs.
    pub inputs: Option<Test>,
    /// Outputs.
    pub outputs: Option<Test>,
    /// States.
    pub states: Option<Test>,
    /// Bytes of parameters.
    pub weight_bytes: Option<Test>,
    /// Regions.
    pub regions: Option<Test>,
    /// Regions of the compiled asset.
    pub confirmed_regions: Option<Test>,
    /// A node that is in it.
    pub contains: Option<Box<Pattern>>,
    /// A node that is not.
    pub lacks: Option<Box<Pattern>>,
    /// Counts of nodes.
    pub count: Vec<CountTest>,
    /// Counts of records.
    pub facts: Vec<(&'static str, Test)>,
    /// Not this.
    pub not: Option<Box<FunctionTest>>,
    /// One of these.
    pub any: Vec<FunctionTest>,
    /// Where to keep its first op.
    pub bind: Option<Slot>,
}

/// A count of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct CountTest {
    /// What is counted.
    pub of: Pattern,
    /// How many.
    pub is: Option<Test>,
    /// Among which.
    pub among: Option<Pattern>,
    /// Which share.
    pub share: Option<Test>,
}

/// What a program is like.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramTest {
    /// What wrote it.
    pub producer: Option<Regex>,
    /// Metadata.
    pub metadata: Vec<(String, Test)>,
    /// Functions that callers can run.
    pub entries: Option<Test>,
    /// Bytes of parameters.
    pub weight_bytes: Option<Test>,
    /// Functions of which each has an entry that fits.
    pub any_function: Vec<FunctionTest>,
    /// No entry is like this.
    pub no_function: Option<Box<FunctionTest>>,
    /// Every entry is like this.
    pub every_function: Option<Box<FunctionTest>>,
    /// Whether any node has a place.
    pub has_source: Option<bool>,
    /// Not this.
    pub not: Option<Box<ProgramTest>>,
}
