//! What the rule language takes from outside: the canonical ops with their operands and attributes.

/// One op of the vocabulary.
#[derive(Debug, Clone)]
pub struct OpWords {
    /// Canonical name.
    pub name: &'static str,
    /// Category, lower case.
    pub category: &'static str,
    /// Operand names; no `…`.
    pub operands: Vec<&'static str>,
    /// Attribute names.
    pub attributes: Vec<&'static str>,
}

/// The vocabulary that rules are checked against; an op's index is its `graph::Op` index.
#[derive(Debug)]
pub struct Vocabulary {
    /// Ops by index.
    pub ops: Vec<OpWords>,
    /// Says what is wrong with a regular expression.
    pub regex: fn(&str) -> Result<(), String>,
}

impl Vocabulary {
    /// The index of an op.
    pub fn op(&self, name: &str) -> Option<usize> {
        self.ops.iter().position(|op| op.name == name)
    }

    /// The ops of a category; empty if there is no such category.
    pub fn category(&self, category: &str) -> OpSet {
        let mut set = OpSet::default();
        for (index, op) in self.ops.iter().enumerate() {
            if op.category == category {
                set.insert(index);
            }
        }
        set
    }

    /// Every op.
    pub fn all(&self) -> OpSet {
        let mut set = OpSet::default();
        (0..self.ops.len()).for_each(|index| set.insert(index));
        set
    }

    /// Whether some op of the set (any op if `None`) has this operand.
    pub fn has_operand(&self, ops: Option<&OpSet>, name: &str) -> bool {
        self.select(ops).any(|op| op.operands.contains(&name))
    }

    /// Whether some op of the set (any op if `None`) has this attribute.
    pub fn has_attribute(&self, ops: Option<&OpSet>, name: &str) -> bool {
        self.select(ops).any(|op| op.attributes.contains(&name))
    }

    /// The ops of a set, or all.
    pub fn select(&self, ops: Option<&OpSet>) -> impl Iterator<Item = &OpWords> {
        self.ops
            .iter()
            .enumerate()
            .filter(move |(index, _)| ops.is_none_or(|ops| ops.contains(*index)))
            .map(|(_, op)| op)
    }
}

/// A set of ops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpSet(Vec<u64>);

impl OpSet {
    /// Adds an op by index.
    pub fn insert(&mut self, op: usize) {
        if self.0.len() <= op / 64 {
            self.0.resize(op / 64 + 1, 0);
        }
        self.0[op / 64] |= 1 << (op % 64);
    }

    /// Whether an op is in it.
    pub fn contains(&self, op: usize) -> bool {
        self.0.get(op / 64).is_some_and(|word| word & (1 << (op % 64)) != 0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &OpSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// Takes all of another set out.
    pub fn remove(&mut self, other: &OpSet) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    /// Keeps what is in both.
    pub fn intersect(&mut self, other: &OpSet) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= other.0.get(at).copied().unwrap_or(0);
        }
    }

    /// The indices, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at * 64 + bit)
        })
    }
}
