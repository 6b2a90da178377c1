//! The uniform shape in which rules see a fact.

use crate::graph::{NodeId, ValueId};

/// One occurrence of a fact in a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The node that stands for it (the softmax of an attention block).
    pub anchor: NodeId,
    /// Fields by name, as `catalogue` lists them; an optional one may be missing.
    pub fields: Vec<(&'static str, Field)>,
}

impl Record {
    /// A field by name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| field)
    }
}

/// A field of a fact.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A node.
    Node(NodeId),
    /// A value.
    Value(ValueId),
    /// Several nodes.
    Nodes(Vec<NodeId>),
    /// Several values.
    Values(Vec<ValueId>),
    /// A whole number (an axis, a count).
    Int(i64),
    /// A real number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A word out of a small set.
    Text(&'static str),
    /// Free text (a symbol's name).
    Label(Box<str>),
}
