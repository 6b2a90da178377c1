//! The argument union of a stored node: `{"as_tensor": {"name": "x"}}` and its forty siblings.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::builder::Builder;
use super::document::GraphSeed;
use crate::graph::{DType, FunctionId, Name, Names};

/// A size argument: a number, or the name of a symbolic value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SymArgument {
    /// A value of the graph.
    Name(Name),
    /// A number.
    Int(i64),
}

/// An argument.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Argument {
    /// Left out, or explicitly none.
    #[default]
    None,
    /// A tensor.
    Tensor(Name),
    /// Tensors; `None` where one is left out.
    Tensors(Vec<Option<Name>>),
    /// A whole number.
    Int(i64),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// A real number.
    Float(f64),
    /// Real numbers.
    Floats(Vec<f64>),
    /// A truth value.
    Bool(bool),
    /// A word.
    Text(Name),
    /// A symbolic number.
    Sym(SymArgument, DType),
    /// Numbers, some of them symbolic.
    Syms(Vec<SymArgument>),
    /// An element type.
    DType(DType),
    /// A nested graph and its name.
    Graph(FunctionId, Name),
    /// The operator that a higher-order op wraps.
    Operator(Name),
    /// A kind that means nothing to the graph (device, layout, memory format), or a new one.
    Other,
}

/// Element type by torch's number.
pub fn dtype(number: i64) -> DType {
    match number {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        10 => DType::Complex64,
        11 => DType::Complex128,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        29 | 31 => DType::F8E4M3,
        30 | 32 => DType::F8E5M2,
        34 => DType::U32,
        35 => DType::U64,
        _ => DType::Unknown,
    }
}

/// Reads a string straight into the name table.
pub struct NameSeed<'b>(pub &'b mut Names);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Name;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Name;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
        Ok(self.0.intern(text))
    }
}

/// A key of an object: its text is only looked at, so it is borrowed unless it holds escapes.
#[derive(Deserialize)]
pub struct Key<'a>(#[serde(borrow)] pub std::borrow::Cow<'a, str>);

/// A real number; torch writes infinities and NaN as strings.
pub struct Real(pub f64);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Real, D::Error> {
        struct RealVisitor;
        impl Visitor<'_> for RealVisitor {
            type Value = Real;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
            }
            fn visit_f64<E>(self, v: f64) -> Result<Real, E> {
                Ok(Real(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Real, E> {
                Ok(Real(v as f64))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Real, E> {
                Ok(Real(v as f64))
            }
            fn visit_str<E: Error>(self, v: &str) -> Result<Real, E> {
                match v {
                    "Infinity" | "inf" => Ok(Real(f64::INFINITY)),
                    "-Infinity" | "-inf" => Ok(Real(f64::NEG_INFINITY)),
                    "NaN" | "nan" => Ok(Real(f64::NAN)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(v), &self)),
                }
            }
        }
        deserializer.deserialize_any(RealVisitor)
    }
}

/// A list whose elements need the builder.
struct ListSeed<'b, F> {
    builder: &'b mut Builder,
    element: F,
}

impl<'de, T, F> DeserializeSeed<'de> for ListSeed<'_, F>
where
    F: FnMut(&mut Builder, Union<'_>) -> T,
{
    type Value = Vec<T>;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T, F> Visitor<'de> for ListSeed<'_, F>
where
    F: FnMut(&mut Builder, Union<'_>) -> T,
{
    type Value = Vec<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(64));
        while let Some(union) = seq.next_element::<Union<'_>>()? {
            list.push((self.element)(self.builder, union));
        }
        Ok(list)
    }
}

/// The small unions inside lists (`{"name": …}`, `{"as_name": …}`, `{"as_int": …}`,
/// `{"as_none": true}`, `{"as_tensor": {"name": …}}`), with every field optional.
#[derive(Deserialize, Default)]
pub struct Union<'a> {
    #[serde(borrow, default)]
    name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    as_name: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    as_int: Option<i64>,
    #[serde(borrow, default)]
    as_tensor: Option<Named<'a>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
}

impl Union<'_> {
    fn tensor(&self, names: &mut Names) -> Option<Name> {
        let text = self.name.as_deref().or(self.as_tensor.as_ref().map(|named| &*named.name))?;
        Some(names.intern(text))
    }

    fn sym(&self, names: &mut Names) -> SymArgument {
        match (&self.as_name, self.as_int) {
            (Some(name), _) => SymArgument::Name(names.intern(name)),
            (None, number) => SymArgument::Int(number.unwrap_or(0)),
        }
    }
}

/// Reads an argument.
pub struct ArgumentSeed<'b>(pub &'b mut Builder);

impl<'de> DeserializeSeed<'de> for ArgumentSeed<'_> {
    type Value = Argument;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Argument, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ArgumentSeed<'_> {
    type Value = Argument;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument object with one `as_…` key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Argument, A::Error> {
        let builder = self.0;
        let mut argument = Argument::Other;
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            argument = match &*key {
                "as_tensor" => named(map.next_value_seed(NamedSeed(builder))?),
                "as_none" => {
                    map.next_value::<IgnoredAny>()?;
                    Argument::None
                }
                "as_int" => Argument::Int(map.next_value()?),
                "as_ints" => Argument::Ints(map.next_value()?),
                "as_float" => Argument::Float(map.next_value::<Real>()?.0),
                "as_floats" => Argument::Floats(
                    map.next_value::<Vec<Real>>()?.into_iter().map(|real| real.0).collect(),
                ),
                "as_bool" => Argument::Bool(map.next_value()?),
                "as_bools" => Argument::Ints(
                    map.next_value::<Vec<bool>>()?.into_iter().map(i64::from).collect(),
                ),
                "as_string" => {
                    Argument::Text(map.next_value_seed(NameSeed(&mut builder.program.names))?)
                }
                "as_operator" => {
                    Argument::Operator(map.next_value_seed(NameSeed(&mut builder.program.names))?)
                }
                "as_scalar_type" => Argument::DType(dtype(map.next_value()?)),
                "as_tensors" | "as_optional_tensors" => {
                    Argument::Tensors(map.next_value_seed(ListSeed {
                        builder,
                        element: |builder: &mut Builder, union: Union<'_>| {
                            union.tensor(&mut builder.program.names)
                        },
                    })?)
                }
                "as_optional_tensor" => {
                    let union: Union<'_> = map.next_value()?;
                    union
                        .tensor(&mut builder.program.names)
                        .map_or(Argument::None, Argument::Tensor)
                }
                "as_nested_tensors" => {
                    let lists: Vec<Vec<Union<'_>>> = map.next_value()?;
                    let names = &mut builder.program.names;
                    Argument::Tensors(lists.iter().flatten().map(|u| u.tensor(names)).collect())
                }
                "as_sym_int" | "as_sym_bool" | "as_sym_float" => {
                    let dtype = match &*key {
                        "as_sym_int" => DType::I64,
                        "as_sym_bool" => DType::Bool,
                        _ => DType::F64,
                    };
                    scalar(map.next_value::<Scalar<'_>>()?, dtype, &mut builder.program.names)
                }
                "as_sym_ints" | "as_sym_bools" => {
                    Argument::Syms(map.next_value_seed(ListSeed {
                        builder,
                        element: |builder: &mut Builder, union: Union<'_>| {
                            union.sym(&mut builder.program.names)
                        },
                    })?)
                }
                "as_graph" => map.next_value_seed(NestedSeed(builder))?,
                "as_custom_obj" | "as_token" => named(map.next_value_seed(NamedSeed(builder))?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    Argument::Other
                }
            };
        }
        Ok(argument)
    }
}

fn named(name: Option<Name>) -> Argument {
    name.map_or(Argument::Other, Argument::Tensor)
}

/// A symbolic scalar argument.
#[derive(Deserialize)]
struct Scalar<'a> {
    #[serde(borrow, default)]
    as_name: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    as_int: Option<i64>,
    #[serde(default)]
    as_bool: Option<bool>,
    #[serde(default)]
    as_float: Option<Real>,
}

fn scalar(scalar: Scalar<'_>, dtype: DType, names: &mut Names) -> Argument {
    match scalar {
        Scalar { as_name: Some(name), .. } => {
            Argument::Sym(SymArgument::Name(names.intern(&name)), dtype)
        }
        Scalar { as_int: Some(n), .. } => Argument::Int(n),
        Scalar { as_bool: Some(b), .. } => Argument::Bool(b),
        Scalar { as_float: Some(real), .. } => Argument::Float(real.0),
        _ => Argument::Other,
    }
}

/// `{"name": "x"}` without a detour over a string.
struct NamedSeed<'b>(&'b mut Builder);

impl<'de> DeserializeSeed<'de> for NamedSeed<'_> {
    type Value = Option<Name>;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<Name>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NamedSeed<'_> {
    type Value = Option<Name>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a `name`")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Name>, A::Error> {
        let mut name = None;
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            if key == "name" {
                name = Some(map.next_value_seed(NameSeed(&mut self.0.program.names))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(name)
    }
}

/// `{"name": "true_graph_0", "graph": {…}}`.
struct NestedSeed<'b>(&'b mut Builder);

impl<'de> DeserializeSeed<'de> for NestedSeed<'_> {
    type Value = Argument;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Argument, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NestedSeed<'_> {
    type Value = Argument;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a nested graph")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Argument, A::Error> {
        let builder = self.0;
        let (mut name, mut graph) = (Name::EMPTY, None);
        while let Some(Key(key)) = map.next_key::<Key<'_>>()? {
            match &*key {
                "name" => name = map.next_value_seed(NameSeed(&mut builder.program.names))?,
                "graph" if graph.is_some() => {
                    return Err(A::Error::custom("a nested graph holds two `graph` keys"));
                }
                "graph" => {
                    let id = builder.open_graph();
                    map.next_value_seed(GraphSeed(builder))?;
                    builder.close_graph().map_err(A::Error::custom)?;
                    graph = Some(id);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let graph = graph.ok_or_else(|| A::Error::missing_field("graph"))?;
        builder.name_graph(graph, name);
        Ok(Argument::Graph(graph, name))
    }
}
