//! Attributes of nodes: their values in canonical terms, graphs and tensors aside.

use super::functions::Environment;
use super::tensor::text;
use super::wire::proto;
use crate::graph::{Attr, Names};

/// Numbers and words of `AttributeProto.AttributeType`.
const FLOAT: i32 = 1;
const INT: i32 = 2;
const STRING: i32 = 3;
const FLOATS: i32 = 6;
const INTS: i32 = 7;
const STRINGS: i32 = 8;

/// The attribute that holds where `stored` stands: itself, or the one of the call that it refers to by
/// name; `None` if the call gives none.
pub(super) fn resolved(
    environment: &Environment,
    stored: proto::Attribute,
) -> Option<proto::Attribute> {
    if stored.ref_attr_name.is_empty() {
        return Some(stored);
    }
    let given = environment.attributes.iter().find(|a| a.name == stored.ref_attr_name)?;
    Some(proto::Attribute { name: stored.name, ..given.clone() })
}

/// The value of an attribute that is a number, a word or a list of such.
pub(super) fn value(names: &mut Names, stored: &proto::Attribute) -> Option<Attr> {
    let word = |names: &mut Names, bytes: &[u8]| names.intern(&text(bytes));
    // Files of the first versions do not tell the type.
    let kind = match stored.r#type {
        0 if stored.f.is_some() => FLOAT,
        0 if stored.i.is_some() => INT,
        0 if stored.s.is_some() => STRING,
        0 if !stored.floats.is_empty() => FLOATS,
        0 if !stored.ints.is_empty() => INTS,
        0 if !stored.strings.is_empty() => STRINGS,
        kind => kind,
    };
    Some(match kind {
        FLOAT => Attr::Float(float(stored.f.unwrap_or(0.0))),
        INT => Attr::Int(stored.i.unwrap_or(0)),
        STRING => Attr::Text(word(names, stored.s.as_deref().unwrap_or_default())),
        FLOATS => Attr::Floats(stored.floats.iter().map(|&x| float(x)).collect()),
        INTS => Attr::Ints(stored.ints.iter().map(|&n| Some(n)).collect()),
        STRINGS => Attr::Texts(stored.strings.iter().map(|s| word(names, s)).collect()),
        _ => return None,
    })
}

/// An f32 as the number that was meant: `1e-5` is stored as 0.0000099999997.
pub(super) fn float(x: f32) -> f64 {
    x.to_string().parse().unwrap_or(f64::from(x))
}

/// Numbers of a small tensor as an attribute: one by itself where the tensor has no axis.
pub(super) fn of_numbers(numbers: &[f64], integer: bool, scalar: bool) -> Attr {
    match (numbers, integer, scalar) {
        ([n], true, true) => Attr::Int(*n as i64),
        ([n], false, true) => Attr::Float(*n),
        (list, true, _) => Attr::Ints(list.iter().map(|&n| Some(n as i64)).collect()),
        (list, false, _) => Attr::Floats(list.into()),
    }
}
