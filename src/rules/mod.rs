//! The rule engine: YAML rules, raw → checked, matched over a program and its facts.
//!
//! Knows nothing of reports, editors or Python: a match is a [`Hit`] at graph nodes.

pub mod docs;
mod engine;
mod hit;
mod matcher;
mod rule;
pub mod schema;
mod set;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod tests;
pub mod upkeep;

pub use engine::{Engine, Limits, PlacementView, UnknownSelector, Verdict};
pub use hit::{Binding, Hit};
pub use rule::Rule;
pub use schema::words::{
    Applicability, Category, Effect, Eligible, HoleKind, Kind, Origin, Per, Position, Severity,
    Sureness,
};
pub use set::{RuleFileError, RuleSet, Selection};
