//! Placement for people and for programs: the map of a function by unit, its cuts, what to fix first
//! (`text`); why one op is where it is (`why`); JSON, version 1 (`json`).

mod json;
mod text;
mod why;

use std::path::Path;

pub(in crate::report) use json::JsonTarget;
pub use json::placement_json;
pub use text::placement_text;
pub use why::why_text;

use super::confirm::ConfirmedBy;
use crate::findings::source::Spot;
use crate::graph::{FunctionId, NodeId, Program};
use crate::placement::Placement;
use crate::target::{Runtime, Target, Unit};

/// One input, placed.
pub struct PlacementReport<'a> {
    /// Path as shown.
    pub path: &'a str,
    /// The program.
    pub program: &'a Program,
    /// What it was placed on.
    pub target: Target,
    /// Its functions, in order.
    pub placements: &'a [(FunctionId, Placement)],
    /// The place of a node in the author's source.
    pub spot: &'a dyn Fn(FunctionId, NodeId) -> Option<Spot>,
    /// What compilers said, a file each.
    pub confirmed: &'a [ConfirmedBy],
    /// Paths of source files are shown relative to this folder.
    pub folder: &'a Path,
}
/// Whether the planner's costs decide, and not eligibility alone.
fn by_cost(target: Target) -> bool {
    target.unit == Unit::NeuralEngine && target.runtime == Runtime::CoreMl
}

/// `1.25 G`, `640 `, `3.1 k`: three digits and a decimal prefix.
pub(super) fn amount(number: u64) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 1000.0 {
            let digits = if prefix.is_empty() || value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            return format!("{value:.digits$} {prefix}");
        }
        value /= 1000.0;
    }
    format!("{value:.0} E")
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_have_three_digits() {
        assert_eq!(amount(0), "0 ");
        assert_eq!(amount(999), "999 ");
        assert_eq!(amount(1_250), "1.25 k");
        assert_eq!(amount(75_497_472), "75.5 M");
        assert_eq!(amount(24_574_000_000), "24.6 G");
    }
}
