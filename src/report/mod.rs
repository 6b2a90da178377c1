//! Reports: one file an output format. How findings came to be is nobody's business here.

mod concise;
mod confirm;
mod diff;
mod dump;
mod escape;
mod github;
mod gitlab;
mod host;
mod html;
mod json;
mod json_lines;
mod junit;
mod markdown;
mod model;
pub mod output;
mod placement;
mod sarif;
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
pub use github::{summary as github_summary, write as write_github};
pub use gitlab::write as write_gitlab;
pub use host::HostOptions;
pub use html::{FunctionMap, Step as MapStep, map as function_map, write as write_html};
pub use json::write as write_json;
pub use json_lines::write as write_json_lines;
pub use junit::write as write_junit;
pub use model::{
    CheckReport, FixReport, FunctionReport, InputError, InputReport, Note, Summary, os_text,
};
pub use placement::{PlacementReport, placement_json, placement_text, why_text};
pub use sarif::write as write_sarif;
pub use statistics::{RuleCount, statistics};
pub use stats::{StatsInput, StatsReport, stats_json, stats_text};
pub use text::{TextOptions, write as write_text};
pub use text_dump::text_dump;
