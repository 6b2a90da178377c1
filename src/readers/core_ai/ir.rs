//! The parsed form of a Core AI program: what the bytes or the text say, before anything is made of
//! it. Both readers (bytecode and text) fill this; `lower` turns it into canonical graphs.
//!
//! It is flat: ids into vectors, ranges into pools, names borrowed from the input, so that a program
//! of a hundred thousand ops costs a few dozen bytes an op. It knows no canonical op and no rule.

use std::borrow::Cow;

use crate::graph::DType;

/// A borrowed or unescaped string.
pub type Text<'a> = Cow<'a, str>;

/// Index into [`Module::types`].
pub type TypeId = u32;
/// Index into [`Module::locations`]; 0 is "nothing known".
pub type LocationId = u32;
/// Index of a value in its graph.
pub type ValueId = u32;

/// A range of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First index.
    pub start: u32,
    /// Number of items.
    pub len: u32,
}

impl Span {
    /// The span from `start` to the present end of a pool.
    pub fn since(start: usize, end: usize) -> Span {
        Span { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    /// As a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }

    /// The items of a pool; empty for a span of another pool.
    pub fn of<T>(self, pool: &[T]) -> &[T] {
        pool.get(self.range()).unwrap_or(&[])
    }
}

/// A whole program.
#[derive(Debug, Default)]
pub struct Module<'a> {
    /// Date of the newest op needed (`20260204`), if the file says it.
    pub version: Option<u64>,
    /// Types.
    pub types: Vec<Type<'a>>,
    /// Op names in use.
    pub op_names: Vec<OpName<'a>>,
    /// Debug locations; the first is "nothing known".
    pub locations: Vec<Location>,
    /// What locations point into.
    pub debug: Debug<'a>,
    /// Graphs in file order.
    pub graphs: Vec<Graph<'a>>,
    /// Things worth a word that are no error.
    pub notes: Vec<String>,
}

/// The name of an op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpName<'a> {
    /// As stored (`broadcasting_add_v1`), or the authored name in a text.
    pub stored: Text<'a>,
    /// As authored and printed (`coreai.decomposable.broadcasting_add`).
    pub authored: Text<'a>,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type<'a> {
    /// A tensor.
    Tensor(Tensor<'a>),
    /// The handle of a state that holds this type.
    Handle(TypeId),
    /// Orders state access, holds no data.
    Token,
    /// An image: pixel format, height, width.
    Image(Text<'a>),
    /// A function: operands, results.
    Function(Box<[TypeId]>, Box<[TypeId]>),
    /// Anything else, as far as it can be named.
    Other(Text<'a>),
}

/// A tensor type.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor<'a> {
    /// Element type as authored (`si32`, `f16`, `i1`).
    pub element: Text<'a>,
    /// The same in canonical terms.
    pub dtype: DType,
    /// Extents; `None` where only known at run time.
    pub shape: Box<[Option<u64>]>,
    /// What lies between the shape and the memory.
    pub encoding: Option<Box<Encoding<'a>>>,
}

/// A tensor's encoding.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Encoding<'a> {
    /// Bytes each stride is a multiple of, and the base address last (rank + 1 entries).
    pub alignments: Vec<i64>,
    /// Interleave factor of each axis.
    pub interleave: Vec<i64>,
    /// What holds the bytes (`IOSurface`, `MTLBuffer`, `Heap`); empty if not said.
    pub backing: Text<'a>,
    /// The scheme of a sparse tensor (`bitmask`, `coo`, …).
    pub sparse: Option<Text<'a>>,
    /// An encoding that is none of these, as text.
    pub other: Option<Text<'a>>,
}

/// A graph: a function of the program.
#[derive(Debug, Default)]
pub struct Graph<'a> {
    /// Symbol name, namespaces joined with `::`.
    pub name: Text<'a>,
    /// Whether callers outside cannot run it.
    pub private: bool,
    /// Whether the author asked that calls of it stay calls.
    pub no_inline: bool,
    /// What high-level op it is the reference body of.
    pub composite: Option<Composite<'a>>,
    /// Its inputs.
    pub inputs: Vec<Port<'a>>,
    /// Its outputs.
    pub outputs: Vec<Port<'a>>,
    /// Type and name of every value; inputs come first.
    pub values: Vec<Value>,
    /// Names that a text gives to values; empty for bytecode.
    pub value_names: Vec<(ValueId, Text<'a>)>,
    /// Regions: the body first.
    pub regions: Vec<Region<'a>>,
    /// Operand pool.
    pub operands: Vec<ValueId>,
    /// Region index pool.
    pub region_ids: Vec<u32>,
    /// Location of the graph itself.
    pub location: LocationId,
}

/// A value.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// Its type.
    pub ty: TypeId,
}

/// An input or output of a graph.
#[derive(Debug, Clone, Default)]
pub struct Port<'a> {
    /// Public name; empty if none.
    pub name: Text<'a>,
    /// Its type.
    pub ty: TypeId,
    /// Other attributes that came with it.
    pub attributes: Vec<(Text<'a>, Setting<'a>)>,
    /// Debug location of an input.
    pub location: LocationId,
}

/// Ops in order, with the values that the region takes.
#[derive(Debug, Default)]
pub struct Region<'a> {
    /// Arguments of the (first) block.
    pub arguments: Vec<ValueId>,
    /// Ops of all blocks in order.
    pub ops: Vec<Op<'a>>,
}

/// An op.
#[derive(Debug)]
pub struct Op<'a> {
    /// Index into [`Module::op_names`].
    pub name: u32,
    /// Debug location.
    pub location: LocationId,
    /// Operands: a span of [`Graph::operands`].
    pub operands: Span,
    /// Results: consecutive value ids.
    pub results: Span,
    /// Regions with meaning: a span of [`Graph::region_ids`]. Reference bodies are not kept.
    pub regions: Span,
    /// What it was told besides operands.
    pub payload: Payload<'a>,
}

/// What an op was told besides its operands.
#[derive(Debug, Default)]
pub enum Payload<'a> {
    /// Nothing.
    #[default]
    None,
    /// The value of a constant.
    Constant(Literal<'a>),
    /// The one word that an op takes (`tanh`, `sum`, `reflect`).
    Word(Text<'a>),
    /// The graph called.
    Callee(Text<'a>),
    /// Named attributes.
    Settings(Vec<(Text<'a>, Setting<'a>)>),
}

/// A constant's value.
#[derive(Debug, Clone)]
pub enum Literal<'a> {
    /// Bytes in the file. Sub-byte elements take one byte each, except `ui1`, which is packed.
    Inline {
        /// One element stands for all.
        splat: bool,
        /// The elements, row-major, little endian.
        bytes: Cow<'a, [u8]>,
    },
    /// Numbers of a text.
    Numbers {
        /// One element stands for all.
        splat: bool,
        /// The elements, row-major.
        values: Vec<f64>,
    },
    /// A resource: bytes elsewhere in the file, never looked at here.
    Resource {
        /// Its key.
        name: Text<'a>,
        /// First byte and number of bytes in the file; `None` if only declared.
        place: Option<(u64, u64)>,
    },
    /// A value that is not understood.
    Opaque,
}

/// A named setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting<'a> {
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A word.
    Text(Text<'a>),
    /// Several.
    List(Vec<Setting<'a>>),
    /// Named ones.
    Map(Vec<(Text<'a>, Setting<'a>)>),
    /// Present without a value, or not understood.
    Unit,
}

/// The declaration that a graph is the body of a high-level op.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Composite<'a> {
    /// The op (`layer_norm`).
    pub name: Text<'a>,
    /// Its operands in order.
    pub inputs: Vec<Text<'a>>,
    /// Its settings.
    pub settings: Vec<(Text<'a>, Setting<'a>)>,
}

/// What is known of where an op comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// Its own frame: an index into [`Debug::frames`] plus one; 0 if none.
    pub frame: u32,
    /// Calling frames, innermost first: a span of [`Debug::outer`].
    pub outer: Span,
    /// Index into [`Debug::call_stacks`]; the first is empty.
    pub call_stack: u32,
    /// Names of torch nodes: a span of [`Debug::torch_ops`].
    pub torch_ops: Span,
    /// Whether it yields the value of that torch node (helper ops do not).
    pub yields: bool,
    /// Locations of what was folded into it: a span of [`Debug::fused`].
    pub fused: Span,
}

/// The pools of locations.
#[derive(Debug, Default)]
pub struct Debug<'a> {
    /// Frames.
    pub frames: Vec<Frame>,
    /// Frame indices.
    pub outer: Vec<u32>,
    /// Module instances (`Linear$1`), innermost first.
    pub call_stacks: Vec<Vec<Text<'a>>>,
    /// Names of torch nodes.
    pub torch_ops: Vec<Text<'a>>,
    /// Location ids.
    pub fused: Vec<LocationId>,
    /// Paths of source files, as frames name them.
    pub files: Vec<File<'a>>,
    /// Files that compile units list, with the sha256 of each.
    pub listed: Vec<File<'a>>,
}

/// A Python frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Index into [`Debug::files`].
    pub file: u32,
    /// Line from 1; 0 if not known.
    pub line: u32,
    /// Column; 0 if not known.
    pub column: u32,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<'a> {
    /// Its path, with the directory if that is given apart.
    pub path: Text<'a>,
    /// Lower-case hex sha256; empty if not given.
    pub sha256: Text<'a>,
}

impl<'a> Module<'a> {
    /// A module with the "nothing known" entries in place.
    pub fn new() -> Module<'a> {
        let mut module = Module { locations: vec![Location::default()], ..Module::default() };
        module.debug.call_stacks.push(Vec::new());
        module
    }

    /// The tensor type of an id, seen through a handle.
    pub fn tensor(&self, ty: TypeId) -> Option<&Tensor<'a>> {
        match self.types.get(ty as usize)? {
            Type::Tensor(tensor) => Some(tensor),
            Type::Handle(inner) => match self.types.get(*inner as usize)? {
                Type::Tensor(tensor) => Some(tensor),
                _ => None,
            },
            _ => None,
        }
    }
}

/// `{name: {input_names, op_attrs, output_names}}`.
pub fn composite(setting: Setting<'_>) -> Option<Composite<'_>> {
    let Setting::Map(mut declared) = setting else { return None };
    let (name, Setting::Map(fields)) = declared.pop()? else { return None };
    let mut composite = Composite { name, ..Composite::default() };
    for (key, value) in fields {
        match (&*key, value) {
            ("input_names", Setting::List(names)) => {
                composite.inputs = names
                    .into_iter()
                    .map(|name| match name {
                        Setting::Text(name) => name,
                        _ => Cow::Borrowed(""),
                    })
                    .collect();
            }
            ("op_attrs", Setting::Map(settings)) => composite.settings = settings,
            _ => {}
        }
    }
    Some(composite)
}

/// The authored name of a stored op name: the version is dropped and prefixes are those that the
/// library prints.
pub fn authored(stored: &str) -> String {
    let base = stored.rsplit_once("_v").map_or(stored, |(base, version)| {
        if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) {
            base
        } else {
            stored
        }
    });
    let (prefix, name) = match base.split_once('.') {
        Some((family @ ("udml" | "debuginfo" | "serialization"), name)) => {
            return format!("{family}.{name}");
        }
        Some(("dataflow", "namespace")) => return "udml.namespace".to_owned(),
        Some(("primitive" | "dataflow" | "controlflow" | "execution" | "metal", name)) => {
            ("coreai.", name)
        }
        Some(("ax", name)) => ("coreaix.", name),
        Some(_) => return base.to_owned(),
        None => match base.strip_prefix("broadcasting_") {
            Some(name) => ("coreai.decomposable.broadcasting_", name),
            None => ("coreai.", base),
        },
    };
    let name = match name.strip_prefix("logical_") {
        Some(short @ ("and" | "or" | "xor")) => short,
        _ => name,
    };
    format!("{prefix}{name}")
}

#[cfg(test)]
mod tests {
    use super::authored;

    #[test]
    fn authored_names() {
        for (stored, name) in [
            ("primitive.constant_v1", "coreai.constant"),
            ("broadcasting_add_v1", "coreai.decomposable.broadcasting_add"),
            ("broadcasting_logical_and_v1", "coreai.decomposable.broadcasting_and"),
            ("primitive.logical_xor_v1", "coreai.xor"),
            ("primitive.reshape_v2", "coreai.reshape"),
            ("primitive.reshape_v17", "coreai.reshape"),
            ("softmax_v1", "coreai.softmax"),
            ("ax.copy_with_constraints_v1", "coreaix.copy_with_constraints"),
            ("dataflow.namespace_v1", "udml.namespace"),
            ("metal.metal4_kernel_v1", "coreai.metal4_kernel"),
            ("primitive.max_pool_2d_v1", "coreai.max_pool_2d"),
            ("serialization.asset", "serialization.asset"),
        ] {
            assert_eq!(authored(stored), name);
        }
    }
}
