//! Edits of text files: which of many can be made together, how they are made, and how a file gets its
//! new text whole or not at all.
//!
//! Knows of findings only that they carry edits; what is edited is any text. Nothing outside the spans
//! of the edits changes: line ends, indentation, encoding and a byte order mark stay.

mod choose;
mod diff;
mod run;
mod splice;
mod write;

pub use choose::{Choice, Proposal, choose};
pub use diff::unified;
pub use run::{Applied, EditedFile, FixOptions, LeftAlone, plan, write};
pub use splice::{Splice, SpliceError, splice};
pub use write::{WriteError, replace_file};
