//! Small expressions over what a rule has bound: `softmax-axis != contracted-axis`,
//! `dim(x, -1) * itemsize(x) % 64 != 0`.
//!
//! A name may hold hyphens (`contracted-axis`); a minus sign stands between spaces. Anything that is
//! not known (a dynamic dim, a missing attribute) makes a comparison unknown, and a rule fires only
//! on what is known to hold.

pub use super::expr_parse::parse;

/// An index into a rule's bindings.
pub type Slot = u16;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// A word in quotes.
    Text(String),
    /// `true`, `false`.
    Bool(bool),
    /// What is bound.
    Slot(Slot),
    /// A property of what is bound.
    Field(Slot, Field),
    /// A property of the surroundings.
    Special(Special),
    /// A function.
    Call(Call, Vec<Expr>),
    /// `-x`.
    Neg(Box<Expr>),
    /// `not x`.
    Not(Box<Expr>),
    /// `a + b`, `a == b`, `a and b`.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `x in [1, 2]`.
    In(Box<Expr>, Vec<Expr>),
}

/// A property of a bound node or value.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// Number of dims.
    Rank,
    /// Element type.
    Dtype,
    /// Canonical op.
    Op,
    /// The node's name as viewers show it.
    Name,
    /// The op's name as the file has it.
    Spelling,
    /// Module path.
    Module,
    /// The author's name of a constant.
    Fqn,
    /// Bytes of the tensor.
    Bytes,
    /// Number of elements.
    Elements,
    /// The dims.
    Shape,
    /// The one number of a constant.
    Value,
    /// An attribute.
    Attr(String),
}

macro_rules! table {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type { $($(#[$doc])* $variant),+ }
        impl $type {
            /// Every name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
            /// Reads a name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($name => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

table! {
    /// A property of the surroundings.
    Special {
        /// The function's name.
        FunctionName = "function.name",
        /// Ops that work at run time.
        FunctionOps = "function.ops",
        /// Inputs.
        FunctionInputs = "function.inputs",
        /// Outputs.
        FunctionOutputs = "function.outputs",
        /// States.
        FunctionStates = "function.states",
        /// Bytes of its parameters as stored.
        FunctionWeightBytes = "function.weight_bytes",
        /// Regions; from placement.
        FunctionRegions = "function.regions",
        /// The cuts between them as text; from placement.
        FunctionCuts = "function.cuts",
        /// What wrote the program.
        ProgramProducer = "program.producer",
        /// Its format.
        ProgramFormat = "program.format",
        /// Bytes of all parameters as stored.
        ProgramWeightBytes = "program.weight_bytes",
        /// Functions that callers can run.
        ProgramEntries = "program.entries",
        /// The unit checked for.
        TargetUnit = "target.unit",
        /// The runtime.
        TargetRuntime = "target.runtime",
        /// The Neural Engine generation (`h16`).
        TargetChip = "target.chip",
        /// The generation as a number (13 … 18).
        TargetGeneration = "target.generation",
        /// The OS's major version.
        TargetOs = "target.os",
        /// Most regions that the config allows; unknown if it does not say.
        MaxRegions = "limits.max_regions",
        /// Matches in the group, with `group`.
        GroupCount = "group.count",
    }
}

impl Special {
    /// Whether only placement can tell.
    pub fn needs_placement(self) -> bool {
        matches!(self, Special::FunctionRegions | Special::FunctionCuts)
    }
}

table! {
    /// A function.
    Call {
        /// `dim(x, i)`: the dim at an index, from the end if negative.
        Dim = "dim",
        /// `rank(x)`.
        Rank = "rank",
        /// `bytes(x)`.
        Bytes = "bytes",
        /// `elements(x)`.
        Elements = "elements",
        /// `itemsize(x)`: bytes of one element.
        Itemsize = "itemsize",
        /// `padded_bytes(x, n)`: bytes with the last dim's row rounded up to a multiple of n bytes.
        PaddedBytes = "padded_bytes",
        /// `smallest_dim(x)`.
        SmallestDim = "smallest_dim",
        /// `largest_dim(x)`.
        LargestDim = "largest_dim",
        /// `before(a, b)`: in program order.
        Before = "before",
        /// `same(a, b)`: the same value, transparent ops looked through.
        Same = "same",
        /// `uses(x)`: how often the value is used as it is.
        Uses = "uses",
        /// `len(list)`: elements of a list, or nodes of a binding that holds several.
        Len = "len",
        /// `at(list, i)`.
        At = "at",
        /// `product(list)`.
        Product = "product",
        /// `min(a, b, …)`.
        Min = "min",
        /// `max(a, b, …)`.
        Max = "max",
        /// `abs(x)`.
        Abs = "abs",
        /// `ceil(x)`.
        Ceil = "ceil",
        /// `floor(x)`.
        Floor = "floor",
        /// `otherwise(a, b)`: a if it is bound and known, else b.
        Otherwise = "otherwise",
        /// `known(x)`: whether x is bound and known.
        Known = "known",
        /// `reason(x)`: why the unit does not run it; from placement.
        Reason = "reason",
        /// `alternative(x)`: what to do instead; from placement.
        Alternative = "alternative",
        /// `evidence(x)`: the fact behind the reason; from placement.
        Evidence = "evidence",
        /// `regions_added(x)`: regions there are more because of it; from placement.
        RegionsAdded = "regions_added",
    }
}

impl Call {
    /// How many arguments it takes.
    pub(super) fn arity(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Call::Dim
            | Call::PaddedBytes
            | Call::Before
            | Call::Same
            | Call::At
            | Call::Otherwise => 2..=2,
            Call::Min | Call::Max => 2..=8,
            _ => 1..=1,
        }
    }

    /// Whether only placement can tell.
    pub fn needs_placement(self) -> bool {
        matches!(self, Call::Reason | Call::Alternative | Call::Evidence | Call::RegionsAdded)
    }
}

/// An operator between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum Binary {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
}

/// What an expression may refer to.
pub trait Names {
    /// The slot of a binding.
    fn slot(&self, name: &str) -> Option<Slot>;
    /// Every binding, for hints.
    fn bindings(&self) -> Vec<&str>;
    /// Whether the node bound can have this attribute.
    fn attribute(&self, slot: Slot, name: &str) -> Result<(), String>;
}

/// A mistake at a character of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExprError {
    /// Characters before it.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

impl Expr {
    /// Calls `visit` on this and every expression inside.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Call(_, args) => args.iter().for_each(|arg| arg.walk(visit)),
            Expr::Neg(inner) | Expr::Not(inner) => inner.walk(visit),
            Expr::Binary(_, a, b) => {
                a.walk(visit);
                b.walk(visit);
            }
            Expr::In(inner, list) => {
                inner.walk(visit);
                list.iter().for_each(|item| item.walk(visit));
            }
            Expr::Number(_)
            | Expr::Text(_)
            | Expr::Bool(_)
            | Expr::Slot(_)
            | Expr::Field(..)
            | Expr::Special(_) => {}
        }
    }

    /// Whether only placement can tell.
    pub fn needs_placement(&self) -> bool {
        let mut needs = false;
        self.walk(&mut |expr| match expr {
            Expr::Special(special) => needs |= special.needs_placement(),
            Expr::Call(call, _) => needs |= call.needs_placement(),
            _ => {}
        });
        needs
    }
}
