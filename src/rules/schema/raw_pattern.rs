//! Patterns as written: what a node, a value, a function or a program is like.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::yaml::{At, Map, Names, Scalar, ShortForms, ShortVisitor};

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
    /// Canonical ops; `any` for all.
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
    /// Whether an output is the new value of a state or of an input that is written to.
    #[serde(default)]
    pub mutation: Option<bool>,
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
    /// For an operand or a field: it need not be there; if it is, it must fit.
    #[serde(default)]
    pub optional: bool,
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
    /// Regions that a compiled asset holds for the function; missing in graphs that are not compiled.
    #[serde(default)]
    pub confirmed_regions: Option<Test>,
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
    /// Name for the function's ops that work at run time; to report at, the first of them.
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
        if !deserializer.is_human_readable() {
            return Test::from_map(deserializer);
        }
        deserializer.deserialize_any(ShortVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Pattern::from_map(deserializer);
        }
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
