//! From a node of the graph to a place in the author's source.
//!
//! The place is the use site: the expression in the innermost recorded frame of the author's code.
//! Where the cause lies elsewhere (a helper, a constructor), it is a related place. What is not sure
//! is left out and said in a note.

mod author;
mod branch;
mod callee;
mod cause;
mod editable;
mod expression;
mod freshness;
mod locate;
mod modules;
mod place;
mod related;
mod spelling;
mod spot;
mod trace;

pub use author::{FrameKind, frame_kind, short_library_path};
pub use locate::SourceOptions;
pub use place::{SourceMap, SourceRule};
pub use spot::{FrameNote, Place, PlaceFile, Spot, shown_path};
