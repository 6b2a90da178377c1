//! The report as one page: no network, no other file. Findings are plain HTML that needs no script; the
//! script draws the maps, sorts and filters.

mod map;
mod page;

pub use map::{FunctionMap, Step, map};
pub use page::write;
