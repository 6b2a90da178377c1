//! The rule engine: YAML rules, raw → checked, matched over a program and its facts.
//!
//! Knows nothing of reports, editors or Python: a match is a [`Hit`] at graph nodes.

mod hit;

pub use hit::{Category, Hit, Severity, Sureness};
