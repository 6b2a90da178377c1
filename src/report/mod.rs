//! Reports: one file an output format.

mod dump;

pub use dump::{DumpOptions, dump};

mod text_dump;
pub use text_dump::text_dump;
