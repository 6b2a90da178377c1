//! anelint: the linter for on-device ML model graphs.
//!
//! Data flows one way, and a module imports only from modules to its left:
//!
//! ```text
//! readers ──▶ graph ──▶ facts ──▶ placement ──▶ rules ──▶ findings ──▶ report
//! ```
//!
//! `stats` counts what the graph says, beside this line; it knows facts and placement.
//!
//! `diff` compares two readings of a model.
//!
//! `check` strings the rooms together for one input; `cli` is the terminal's door; `config` holds what
//! the user has set.

pub mod check;
pub mod cli;
pub mod config;
pub mod diff;
pub mod facts;
pub mod findings;
pub mod fixes;
pub mod graph;
pub mod placement;
pub mod readers;
pub mod report;
pub mod rules;
pub mod stats;
pub mod target;
