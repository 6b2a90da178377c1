//! The facts that rules can ask for, with their fields: plain data and no imports, since `build.rs`
//! includes this file to check the built-in rules.

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A node; can be bound, reported at, claimed.
    Node,
    /// A value; can be bound and matched by a value pattern.
    Value,
    /// Several nodes.
    Nodes,
    /// Several values.
    Values,
    /// A whole number; can be compared.
    Int,
    /// A real number; can be compared.
    Float,
    /// A truth value.
    Bool,
    /// One of these words.
    Text(&'static [&'static str]),
}

/// A field of a fact.
#[derive(Debug)]
pub struct FieldInfo {
    /// Name in YAML.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether a record may lack it.
    pub optional: bool,
    /// What it means.
    pub doc: &'static str,
}

/// A fact.
#[derive(Debug)]
pub struct FactInfo {
    /// Name in YAML.
    pub name: &'static str,
    /// What it recognises.
    pub doc: &'static str,
    /// Its fields.
    pub fields: &'static [FieldInfo],
}

/// Every fact, by name.
pub const FACTS: &[FactInfo] = &[];
