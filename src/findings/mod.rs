//! `Hit`s → findings: places in the author's source, grouping, fingerprints.
//!
//! Knows nothing of how findings are printed.

mod finding;
mod fingerprint;
mod fix;
mod group;
mod modules;
pub mod python;
pub mod source;

pub use finding::{Edit, Finding, Fix};
pub use group::{PreparedRules, findings};
pub use modules::ModuleGroup;
