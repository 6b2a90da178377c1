//! Core AI programs: what the bytecode reader (`aimodel`) and the text reader (`mlir_text`) share.
//!
//! [`ir`] is the parsed form that both fill; [`lower`] turns it into canonical graphs. Nothing here
//! knows how either is stored.

mod composites;
mod control;
pub mod ir;
pub mod json;
mod literal;
mod names;
mod normal;
mod ops;
mod origins;
mod plan;
mod program;
mod settings;
mod state;
mod types;

pub use ir::composite;
pub use literal::{Input, elements};
pub use program::lower;
pub use types::element_dtype;
