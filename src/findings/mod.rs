//! `Hit`s → findings: places in the author's source, grouping, fingerprints.
//!
//! Knows nothing of how findings are printed.

mod finding;
mod fingerprint;
pub mod fix;
mod group;
mod modules;
pub mod python;
pub mod source;
pub mod suppress;

pub use finding::{Edit, Finding, Fix};
pub use group::{Found, PreparedRules, findings, in_order, order};
pub use modules::ModuleGroup;
