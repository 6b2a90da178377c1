//! The language of rule files: raw (as written), checked, compiled to patterns over op sets.
//!
//! `build.rs` includes this folder by path to check the built-in rules with the very code that loads
//! the user's: nothing here may import more than `crate::target`, `crate::graph::DType` and
//! `crate::facts::catalogue`.

pub mod check;
mod check_fix;
mod check_pattern;
mod check_words;
pub mod expr;
mod expr_parse;
pub mod fix_template;
pub mod load;
pub mod plan;
pub mod problem;
pub mod raw;
mod raw_pattern;
pub mod template;
pub mod vocabulary;
pub mod words;
pub mod yaml;
