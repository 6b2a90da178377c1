//! Reports: one file an output format. How findings came to be is nobody's business here.

mod concise;
mod confirm;
mod diff;
mod dump;
mod escape;
mod json;
mod model;
pub mod output;
mod placement;
mod snippet;
mod statistics;
mod stats;
mod suggestion;
mod text;
mod text_dump;
mod verdict;

pub use concise::write as write_concise;
pub use confirm::ConfirmedBy;
pub use diff::{DiffReport, diff_json, diff_markdown, diff_text};
pub use dump::{DumpOptions, dump};
pub use escape::text as escaped;
pub use json::write as write_json;
pub use model::{
    CheckReport, FixReport, FunctionReport, InputError, InputReport, Note, Summary, os_text,
};
pub use placement::{PlacementReport, placement_json, placement_text, why_text};
pub use statistics::{RuleCount, statistics};
pub use stats::{StatsInput, StatsReport, stats_json, stats_text};
pub use text::{TextOptions, write as write_text};
pub use text_dump::text_dump;
