//! Attributes: what an op was told that is no tensor.

use super::{DType, Name, SymbolId};

/// An attribute value under its canonical name (`axis`, `strides`, `epsilon`).
#[derive(Debug, Clone, PartialEq)]
pub enum Attr {
    /// A whole number.
    Int(i64),
    /// A real number; infinities and NaN as such.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A word (`tanh`, `same`).
    Text(Name),
    /// An element type.
    DType(DType),
    /// Whole numbers; `None` where one is only known at run time.
    Ints(Box<[Option<i64>]>),
    /// Real numbers.
    Floats(Box<[f64]>),
    /// Words.
    Texts(Box<[Name]>),
    /// A size that is a symbol.
    Symbol(SymbolId),
    /// Given, but only known at run time.
    Dynamic,
}

impl Attr {
    /// The number, if this is a whole one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(n) => Some(*n),
            Attr::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    /// The number, whole or real.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Attr::Float(x) => Some(*x),
            _ => self.as_int().map(|n| n as f64),
        }
    }

    /// The whole numbers, if all are known; a single one counts as a list of one.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        match self {
            Attr::Ints(list) => list.iter().copied().collect(),
            _ => self.as_int().map(|n| vec![n]),
        }
    }

    /// The truth value (0 and 1 count).
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Attr::Bool(b) => Some(*b),
            Attr::Int(n @ (0 | 1)) => Some(*n == 1),
            _ => None,
        }
    }
}
