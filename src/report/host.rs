//! What reports for a host (code scanning, annotations, code quality) have in common: paths counted
//! from the repository's root, and a place for every finding, if only the model's file.

use std::borrow::Cow;
use std::path::Path;

use super::json::shown_file;
use super::model::{CheckReport, InputReport};
use crate::findings::Finding;
use crate::findings::source::{PlaceFile, Spot};

/// Where the repository lies.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// The working folder as seen from the repository's root: empty, or with a slash at its end.
    pub prefix: String,
    /// Where the repository is on the web (`https://host/owner/name`), for links to rule pages; empty if
    /// not known.
    pub repository: String,
}

impl HostOptions {
    /// For a working folder in a repository. A working folder that lies elsewhere is its own root.
    pub fn new(working_folder: &Path, root: Option<&Path>) -> HostOptions {
        let inside = root.and_then(|root| working_folder.strip_prefix(root).ok());
        let mut prefix = String::new();
        for part in inside.into_iter().flat_map(Path::components) {
            prefix.push_str(&part.as_os_str().to_string_lossy());
            prefix.push('/');
        }
        HostOptions { prefix, repository: env!("CARGO_PKG_REPOSITORY").to_owned() }
    }

    /// A path as shown, seen from the root. Absolute ones stay.
    pub fn path(&self, shown: &str) -> String {
        if is_absolute(shown) {
            return shown.to_owned();
        }
        let mut parts: Vec<&str> = self.prefix.split('/').filter(|part| !part.is_empty()).collect();
        for part in shown.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
    }

    /// The page of a rule on the web.
    pub fn rule_url(&self, page: &str) -> Option<String> {
        let repository = self.repository.trim_end_matches('/');
        (!repository.is_empty()).then(|| format!("{repository}/blob/main/{page}"))
    }
}

/// Whether a path as shown is absolute, on this system or another.
fn is_absolute(shown: &str) -> bool {
    let bytes = shown.as_bytes();
    bytes.first() == Some(&b'/') || (bytes.get(1) == Some(&b':') && bytes.get(2) == Some(&b'/'))
}

/// A place that a host can show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlace {
    /// Path from the repository's root.
    pub path: String,
    /// First and last line; none where only the model is known.
    pub lines: Option<(u32, u32)>,
    /// First column, and the column behind the last, where the expression is known.
    pub columns: Option<(u32, u32)>,
}

/// The place of a finding: its source, or the model where that is not at hand.
pub fn place(
    report: &CheckReport,
    input: &InputReport,
    finding: &Finding,
    options: &HostOptions,
) -> HostPlace {
    finding
        .spot
        .as_ref()
        .and_then(|spot| spot_place(report, spot, options))
        .unwrap_or_else(|| model_place(&input.path, options))
}

/// A model's file as a place.
pub fn model_place(path: &str, options: &HostOptions) -> HostPlace {
    HostPlace { path: options.path(path), lines: None, columns: None }
}

/// A spot as a place; none if its file is known by another machine's path only.
pub fn spot_place(report: &CheckReport, spot: &Spot, options: &HostOptions) -> Option<HostPlace> {
    let file = shown_file(&spot.file, &report.working_folder);
    if matches!(spot.file, PlaceFile::Recorded { .. }) && is_absolute(&file.replace('\\', "/")) {
        return None;
    }
    let span = &spot.span;
    Some(HostPlace {
        path: options.path(&file),
        lines: Some((span.start.line, span.end.line.max(span.start.line))),
        columns: spot.exact.then_some((span.start.column, span.end.column)),
    })
}

/// The words of a finding besides its message: what to do, how often, what it costs, where in the graph.
pub fn details(finding: &Finding) -> Vec<String> {
    let mut lines = Vec::new();
    if !finding.help.is_empty() {
        lines.push(format!("help: {}", finding.help.trim_end()));
    }
    let modules: Vec<&str> = finding.modules.iter().map(|group| group.pattern.as_str()).collect();
    let times = if finding.count > 1 { format!(" ×{}", finding.count) } else { String::new() };
    match (modules.as_slice(), finding.nodes.as_slice()) {
        ([], []) => {}
        ([], [node, rest @ ..]) => {
            let more = more(rest.len());
            lines.push(format!("in the graph: node {node}{more}{times}"));
        }
        ([module, rest @ ..], nodes) => {
            let more = more(rest.len());
            let node = nodes.first().map(|node| format!(", node {node}")).unwrap_or_default();
            lines.push(format!("in the graph: {module}{more}{times}{node}"));
        }
    }
    match finding.regions_added {
        Some(1) => lines.push("without it there would be 1 region fewer".to_owned()),
        Some(n) if n > 1 => lines.push(format!("without it there would be {n} regions fewer")),
        _ => {}
    }
    lines
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

/// Text for formats in which control characters have no place: line ends and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars().filter(|c| *c != '\r').map(|c| if bad(c) { '\u{fffd}' } else { c }).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_count_from_the_root() {
        let options = HostOptions::new(Path::new("/repo/models/a"), Some(Path::new("/repo")));
        assert_eq!(options.prefix, "models/a/");
        assert_eq!(options.path("net/m.py"), "models/a/net/m.py");
        assert_eq!(options.path("./../b/m.py"), "models/b/m.py");
        assert_eq!(options.path("/elsewhere/m.py"), "/elsewhere/m.py");
        assert_eq!(options.path("C:/m.py"), "C:/m.py");
        let elsewhere = HostOptions::new(Path::new("/tmp"), Some(Path::new("/repo")));
        assert_eq!(elsewhere.path("m.py"), "m.py");
        assert_eq!(elsewhere.path("../m.py"), "../m.py");
    }

    #[test]
    fn control_characters_do_not_get_through() {
        assert_eq!(printable("a\r\nb\u{1b}[0m\tc"), "a\nb\u{fffd}[0m\tc");
    }
}
