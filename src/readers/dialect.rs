//! Dialect maps: how each format spells the canonical ops. The data is `rules/dialects/*.yaml`,
//! compiled in by `build.rs`; an op that a dialect adds is one entry there.

use crate::graph::Op;

/// A literal in a dialect map.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum Literal {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'static str),
    Ints(&'static [i64]),
}

/// One spelling of an op.
#[derive(Debug)]
pub struct Spelling {
    /// The canonical op.
    pub op: Op,
    /// Stored argument name → canonical operand or attribute name, sorted by stored name.
    pub args: &'static [(&'static str, &'static str)],
    /// Canonical names by position, for dialects that do not name operands: `_` skips one, a last
    /// `…` repeats the one before; a name may be an attribute's, for a constant fed as an operand.
    pub operands: &'static [&'static str],
    /// What the dialect's schema fills in for an argument left out.
    pub defaults: &'static [(&'static str, Literal)],
    /// What the spelling itself says.
    pub set: &'static [(&'static str, Literal)],
}

impl Spelling {
    /// The canonical name of a stored argument name. With no entry in `args`, a stored name that is
    /// itself an operand or attribute of the op stands for itself.
    pub fn canonical<'a>(&self, stored: &'a str) -> Option<&'a str>
    where
        'static: 'a,
    {
        if let Ok(at) = self.args.binary_search_by_key(&stored, |&(known, _)| known) {
            return Some(self.args[at].1);
        }
        let own = self.op.operands().contains(&stored) || self.op.attributes().contains(&stored);
        own.then_some(stored)
    }

    /// Whether a canonical name is an operand (a tensor) of the op, and not an attribute.
    pub fn is_operand(&self, canonical: &str) -> bool {
        self.op.operands().contains(&canonical)
    }

    /// The canonical name of the operand at a position, for dialects that do not name operands;
    /// the op's own order where the entry says nothing.
    pub fn positional(&self, position: usize) -> Option<&'static str> {
        let (names, variadic) = if self.operands.is_empty() {
            (self.op.operands(), self.op.is_variadic())
        } else {
            match self.operands.strip_suffix(&["…"]) {
                Some(names) => (names, true),
                None => (self.operands, false),
            }
        };
        let name = names.get(position).or(if variadic { names.last() } else { None })?;
        (*name != "_").then_some(*name)
    }
}

/// A dialect map.
#[derive(Debug)]
pub struct Dialect {
    /// Its name (`aten`).
    pub name: &'static str,
    /// Spellings, sorted.
    pub spellings: &'static [(&'static str, Spelling)],
}

impl Dialect {
    /// The entry of a spelling.
    pub fn find(&self, spelling: &str) -> Option<&'static Spelling> {
        let at = self.spellings.binary_search_by_key(&spelling, |(known, _)| known).ok()?;
        Some(&self.spellings[at].1)
    }
}

include!(concat!(env!("OUT_DIR"), "/dialects.rs"));
