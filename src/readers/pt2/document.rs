//! `models/*.json`, read as a stream: every node goes into the draft as soon as it is parsed, and
//! nothing of the document is kept. Keys may come in any order.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::argument::{Argument, ArgumentSeed, Key, NameSeed};
use super::builder::{Builder, Given};
use super::signature::Signature;

/// Parts of the document that are small and come whole.
#[derive(Debug, Default)]
pub struct Rest {
    /// What graph inputs and outputs mean.
    pub signature: Option<Signature>,
    /// `name → (min, max)` of symbols.
    pub ranges: Vec<(String, Option<i64>, Option<i64>)>,
    /// `2.15.0`.
    pub torch_version: String,
    /// `8.20`.
    pub schema_version: String,
    /// Whether decompositions were run (the verifier says `ATEN`).
    pub decomposed: bool,
    /// Whether a graph was there.
    pub has_graph: bool,
}

/// Reads the top of the document.
pub struct DocumentSeed<'b>(pub &'b mut Builder);

macro_rules! seed {
    ($seed:ident, $value:ty, $method:ident) => {
        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = $value;
            fn deserialize<D: serde::Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<$value, D::Error> {
                deserializer.$method(self)
            }
        }
    };
}

seed!(DocumentSeed, Rest, deserialize_map);

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    min_val: Option<i64>,
    #[serde(default)]
    max_val: Option<i64>,
}

#[derive(Deserialize)]
struct SchemaVersion {
    #[serde(default)]
    major: i64,
    #[serde(default)]
    minor: i64,
}

/// The schema that this reader knows.
const SCHEMA_MAJOR: i64 = 8;

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = Rest;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exported program")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rest, A::Error> {
        let mut rest = Rest::default();
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "graph_module" => {
                    map.next_value_seed(GraphModuleSeed(self.0, &mut rest))?;
                }
                "range_constraints" => {
                    let ranges: indexmap::IndexMap<Cow<'de, str>, Range> =
                        map.next_value::<Ordered<'de>>()?.0;
                    rest.ranges = ranges
                        .into_iter()
                        .map(|(name, range)| (name.into_owned(), range.min_val, range.max_val))
                        .collect();
                }
                "schema_version" => {
                    let version: SchemaVersion = map.next_value()?;
                    if version.major != SCHEMA_MAJOR {
                        return Err(A::Error::custom(format_args!(
                            "export schema {}.{}: only {SCHEMA_MAJOR}.x can be read; export again \
                             with a current torch",
                            version.major, version.minor
                        )));
                    }
                    rest.schema_version = format!("{}.{}", version.major, version.minor);
                }
                "torch_version" => rest.torch_version = map.next_value()?,
                "verifiers" => {
                    let verifiers: Vec<Cow<'de, str>> = map.next_value()?;
                    rest.decomposed = verifiers.iter().any(|verifier| verifier == "ATEN");
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(rest)
    }
}

/// A map that keeps its order.
struct Ordered<'a>(indexmap::IndexMap<Cow<'a, str>, Range>);

impl<'de> Deserialize<'de> for Ordered<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedVisitor;
        impl<'de> Visitor<'de> for OrderedVisitor {
            type Value = Ordered<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("ranges by symbol")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<'de>, A::Error> {
                let mut ranges = indexmap::IndexMap::new();
                while let Some((Key(key), range)) = map.next_entry::<Key<'de>, Range>()? {
                    ranges.insert(key, range);
                }
                Ok(Ordered(ranges))
            }
        }
        deserializer.deserialize_map(OrderedVisitor)
    }
}

struct GraphModuleSeed<'b>(&'b mut Builder, &'b mut Rest);
seed!(GraphModuleSeed, (), deserialize_map);

impl<'de> Visitor<'de> for GraphModuleSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a graph module")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let GraphModuleSeed(builder, rest) = self;
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "graph" if rest.has_graph => {
                    return Err(A::Error::custom("the document holds two `graph` keys"));
                }
                "graph" => {
                    rest.has_graph = true;
                    builder.open_graph();
                    map.next_value_seed(GraphSeed(builder))?;
                    builder.close_graph().map_err(A::Error::custom)?;
                }
                "signature" => rest.signature = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a graph into the builder's open one.
pub struct GraphSeed<'b>(pub &'b mut Builder);
seed!(GraphSeed, (), deserialize_map);

impl<'de> Visitor<'de> for GraphSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a graph")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let builder = self.0;
        let (mut has_nodes, mut has_values) = (false, false);
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "inputs" => map.next_value_seed(ArgumentsSeed(builder, Builder::input))?,
                "outputs" => map.next_value_seed(ArgumentsSeed(builder, Builder::output))?,
                "nodes" => {
                    has_nodes = true;
                    map.next_value_seed(NodesSeed(builder))?;
                }
                "tensor_values" => {
                    has_values = true;
                    map.next_value_seed(TensorValuesSeed(builder))?;
                }
                "sym_int_values" | "sym_bool_values" | "sym_float_values" => {
                    map.next_value_seed(SymValuesSeed(builder))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !has_nodes {
            return Err(A::Error::missing_field("nodes"));
        }
        if !has_values {
            return Err(A::Error::missing_field("tensor_values"));
        }
        Ok(())
    }
}

struct ArgumentsSeed<'b>(&'b mut Builder, fn(&mut Builder, Argument));
seed!(ArgumentsSeed, (), deserialize_seq);

impl<'de> Visitor<'de> for ArgumentsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of arguments")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let ArgumentsSeed(builder, push) = self;
        while let Some(argument) = seq.next_element_seed(ArgumentSeed(builder))? {
            push(builder, argument);
        }
        Ok(())
    }
}

struct NodesSeed<'b>(&'b mut Builder);
seed!(NodesSeed, (), deserialize_seq);

impl<'de> Visitor<'de> for NodesSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let builder = self.0;
        // One buffer for all nodes of this graph.
        let mut given = Given::default();
        loop {
            given.clear();
            if seq.next_element_seed(NodeSeed(builder, &mut given))?.is_none() {
                return Ok(());
            }
            builder.node(&mut given).map_err(A::Error::custom)?;
        }
    }
}

struct NodeSeed<'b>(&'b mut Builder, &'b mut Given);
seed!(NodeSeed, (), deserialize_map);

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let NodeSeed(builder, given) = self;
        let mut has_target = false;
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "target" => {
                    has_target = true;
                    given.target = map.next_value_seed(NameSeed(&mut builder.program.names))?;
                }
                "inputs" => map.next_value_seed(InputsSeed(builder, given))?,
                "outputs" => map.next_value_seed(OutputsSeed(builder, given))?,
                "metadata" => map.next_value_seed(MetadataSeed(builder, given))?,
                "name" => {
                    let name: Option<Cow<'de, str>> =
                        map.next_value::<Option<Key<'de>>>()?.map(|k| k.0);
                    if let Some(name) = name {
                        given.name = builder.program.names.intern(&name);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_target { Ok(()) } else { Err(A::Error::missing_field("target")) }
    }
}

struct InputsSeed<'b>(&'b mut Builder, &'b mut Given);
seed!(InputsSeed, (), deserialize_seq);

impl<'de> Visitor<'de> for InputsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of named arguments")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let InputsSeed(builder, given) = self;
        while seq.next_element_seed(InputSeed(builder, given))?.is_some() {}
        Ok(())
    }
}

struct InputSeed<'b>(&'b mut Builder, &'b mut Given);
seed!(InputSeed, (), deserialize_map);

impl<'de> Visitor<'de> for InputSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a named argument")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let InputSeed(builder, given) = self;
        let (mut name, mut argument) = (crate::graph::Name::EMPTY, None);
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "name" => name = map.next_value_seed(NameSeed(&mut builder.program.names))?,
                "arg" => argument = Some(map.next_value_seed(ArgumentSeed(builder))?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        given.inputs.push((name, argument.ok_or_else(|| A::Error::missing_field("arg"))?));
        Ok(())
    }
}

struct OutputsSeed<'b>(&'b mut Builder, &'b mut Given);
seed!(OutputsSeed, (), deserialize_seq);

impl<'de> Visitor<'de> for OutputsSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of arguments")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let OutputsSeed(builder, given) = self;
        while let Some(argument) = seq.next_element_seed(ArgumentSeed(builder))? {
            given.outputs.push(argument);
        }
        Ok(())
    }
}

struct MetadataSeed<'b>(&'b mut Builder, &'b mut Given);
seed!(MetadataSeed, (), deserialize_map);

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let MetadataSeed(builder, given) = self;
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            // The texts are looked up whole, escapes and all, before any of them is parsed: most
            // are repeats.
            match &*key {
                "stack_trace" => {
                    let raw: &'de RawValue = map.next_value()?;
                    given.stack = builder.stack(raw.get());
                }
                "nn_module_stack" => {
                    let raw: &'de RawValue = map.next_value()?;
                    given.module = builder.module(raw.get());
                }
                "torch_fn" => {
                    let Some(Key(entry)) = map.next_value::<Option<Key<'de>>>()? else { continue };
                    given.torch_op =
                        builder.program.names.intern(super::trace::torch_function(&entry));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// A size as tensor metadata has it.
#[derive(Deserialize)]
pub struct SizeValue<'a> {
    /// A number.
    #[serde(default)]
    pub as_int: Option<i64>,
    /// An expression.
    #[serde(borrow, default)]
    pub as_expr: Option<SizeExpr<'a>>,
}

/// A size expression.
#[derive(Deserialize)]
pub struct SizeExpr<'a> {
    /// sympy's `srepr`.
    #[serde(borrow)]
    pub expr_str: Cow<'a, str>,
}

/// What is stored of a tensor.
#[derive(Deserialize)]
pub struct TensorMeta<'a> {
    /// torch's number of the element type.
    pub dtype: i64,
    /// Extents.
    #[serde(borrow)]
    pub sizes: Vec<SizeValue<'a>>,
    /// Strides in elements.
    #[serde(borrow, default)]
    pub strides: Vec<SizeValue<'a>>,
    /// First element in the storage.
    #[serde(borrow, default)]
    pub storage_offset: Option<SizeValue<'a>>,
}

struct TensorValuesSeed<'b>(&'b mut Builder);
seed!(TensorValuesSeed, (), deserialize_map);

impl<'de> Visitor<'de> for TensorValuesSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor metadata by name")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(NameSeed(&mut self.0.program.names))? {
            let meta: TensorMeta<'de> = map.next_value()?;
            self.0.tensor_meta(name, &meta).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

struct SymValuesSeed<'b>(&'b mut Builder);
seed!(SymValuesSeed, (), deserialize_map);

impl<'de> Visitor<'de> for SymValuesSeed<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("symbolic values by name")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key_seed(NameSeed(&mut self.0.program.names))? {
            #[derive(Deserialize)]
            struct SymValue<'a> {
                #[serde(borrow, default)]
                as_expr: Option<SizeExpr<'a>>,
            }
            let value: SymValue<'de> = map.next_value()?;
            self.0.sym_value(name, value.as_expr.as_ref().map(|expr| &*expr.expr_str));
        }
        Ok(())
    }
}
