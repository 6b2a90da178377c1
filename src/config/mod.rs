//! Settings: `anelint.toml` and `[tool.anelint]`, and what the environment and the command line put
//! over them.
//!
//! A file is found upward from each input, the nearest wins and is not merged with others. What it
//! holds is checked as a whole: every unknown key and wrong value is a [`Problem`] with its place.
//! [`keys`] names every key once; the reader, the JSON schema, `anelint config` and
//! `docs/configuration.md` follow it.

mod date;
mod file;
mod find;
pub mod keys;
mod paths;
mod place;
mod reader;
mod settings;
#[cfg(test)]
mod tests;
pub mod values;
mod version;

pub use date::{Date, today};
pub use file::{File, Model, Override, Suppress};
pub use find::Finder;
pub use paths::{PathGlobs, name_glob};
pub use place::{ConfigError, Given, Origin, Place, Problem, Source};
pub use settings::{Defaults, InForce, RuleFiles, Settings};
pub use values::{FailOn, Level};
pub use version::Requirement;
