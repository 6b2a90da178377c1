//! The small YAML shapes that rule files are made of, each keeping its place in the file.
//!
//! Hand-written visitors in place of serde's `untagged` and `flatten`: those buffer the value, which
//! loses every place inside and makes the error text useless.
//!
//! Each also reads back the plain form that its derived `Serialize` writes to a format that is not
//! for people: that is how the built-in rules lie in the binary (`build/rules.rs`).

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

/// A value with its place in the rule file; lines and columns from 1, 0 where there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A place in a rule file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column in characters, from 1; 0 if unknown.
    pub column: u32,
}

impl<T> At<T> {
    /// Where it stands.
    pub fn place(&self) -> Place {
        Place { line: self.line, column: self.column }
    }

    fn new<V>(spanned: &Spanned<V>, value: T) -> At<T> {
        let at = spanned.referenced;
        At { value, line: at.line() as u32, column: at.column() as u32 }
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            let (value, line, column) = Deserialize::deserialize(deserializer)?;
            return Ok(At { value, line, column });
        }
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        let at = spanned.referenced;
        Ok(At { value: spanned.value, line: at.line() as u32, column: at.column() as u32 })
    }
}

/// One name, or a list of names.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Names(pub Vec<At<String>>);

impl Deref for Names {
    type Target = [At<String>];
    fn deref(&self) -> &[At<String>] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        enum Inner {
            One(String),
            Many(Vec<At<String>>),
        }
        struct Names_;
        impl<'de> Visitor<'de> for Names_ {
            type Value = Inner;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or a list of names")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Inner, E> {
                Ok(Inner::One(text.to_owned()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Inner, E> {
                Ok(Inner::One(if value { "yes" } else { "no" }.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Inner, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(Inner::Many(list))
            }
        }
        impl<'de> Deserialize<'de> for Inner {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Inner, D::Error> {
                deserializer.deserialize_any(Names_)
            }
        }
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(Names);
        }
        let spanned = Spanned::<Inner>::deserialize(deserializer)?;
        let place = At::new(&spanned, ());
        Ok(Names(match spanned.value {
            Inner::One(value) => vec![At { value, line: place.line, column: place.column }],
            Inner::Many(list) => list,
        }))
    }
}

/// One mapping, or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        OneOrMany(Vec::new())
    }
}

impl<T> Deref for OneOrMany<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrManyVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrManyVisitor<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping, or a list of mappings")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(OneOrMany(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let one = T::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(OneOrMany(vec![one]))
            }
        }
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(OneOrMany);
        }
        deserializer.deserialize_any(OneOrManyVisitor(PhantomData))
    }
}

/// A mapping in the order of the file, with the place of each key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map<T>(pub Vec<(At<String>, T)>);

impl<T> Default for Map<T> {
    fn default() -> Self {
        Map(Vec::new())
    }
}

impl<T> Deref for Map<T> {
    type Target = [(At<String>, T)];
    fn deref(&self) -> &[(At<String>, T)] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
            type Value = Map<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    list.push(entry);
                }
                Ok(Map(list))
            }
        }
        if !deserializer.is_human_readable() {
            return Vec::deserialize(deserializer).map(Map);
        }
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

/// A plain YAML value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Scalar {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number; `.inf`, `-.inf`, `.nan` too.
    Float(f64),
    /// A word.
    Text(String),
}

impl Scalar {
    /// The number, if it is one (a truth value counts as 0 or 1).
    pub fn number(&self) -> Option<f64> {
        match self {
            Scalar::Bool(b) => Some(f64::from(u8::from(*b))),
            Scalar::Int(n) => Some(*n as f64),
            Scalar::Float(x) => Some(*x),
            Scalar::Text(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(n) => write!(f, "{n}"),
            Scalar::Float(x) => write!(f, "{x}"),
            Scalar::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return PlainScalar::deserialize(deserializer);
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// [`Scalar`] variant by variant.
#[derive(Deserialize)]
#[serde(remote = "Scalar")]
enum PlainScalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a truth value or a word")
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Int(value))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
        i64::try_from(value).map(Scalar::Int).map_err(|_| E::custom("a number that fits 63 bits"))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(value))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(value.to_owned()))
    }
}

/// `on` or `off`; `true` and `false` are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Switch(pub bool);

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchVisitor;
        impl Visitor<'_> for SwitchVisitor {
            type Value = Switch;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("on or off")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Switch, E> {
                Ok(Switch(value))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Switch, E> {
                match value {
                    "on" | "yes" => Ok(Switch(true)),
                    "off" | "no" => Ok(Switch(false)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
                }
            }
        }
        if !deserializer.is_human_readable() {
            return bool::deserialize(deserializer).map(Switch);
        }
        deserializer.deserialize_any(SwitchVisitor)
    }
}

/// Deserialises `T` from a scalar, a list of scalars or a mapping: the common short forms of tests
/// and patterns.
pub trait ShortForms<'de>: Sized {
    /// What to say is expected.
    const EXPECTED: &'static str;
    /// From one or several scalars.
    fn from_scalars(scalars: Vec<Scalar>) -> Self;
    /// From a mapping, field by field.
    fn from_map<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// The visitor of [`ShortForms`].
pub struct ShortVisitor<T>(pub PhantomData<T>);

impl<'de, T: ShortForms<'de>> Visitor<'de> for ShortVisitor<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<T, E> {
        Ok(T::from_scalars(vec![Scalar::Bool(value)]))
    }
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Ok(T::from_scalars(vec![Scalar::Int(value)]))
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        ScalarVisitor.visit_u64(value).map(|scalar| T::from_scalars(vec![scalar]))
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        Ok(T::from_scalars(vec![Scalar::Float(value)]))
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        Ok(T::from_scalars(vec![Scalar::Text(value.to_owned())]))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(T::from_scalars(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(de::value::MapAccessDeserializer::new(map))
    }
}
