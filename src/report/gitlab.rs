//! GitLab's code quality report.
//!
//! The host does not show `check_name`, so the rule stands in the description. Fingerprints must be unique
//! within a report and stable across edits: equal ones are numbered.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::host::{self, HostOptions, HostPlace};
use super::model::CheckReport;
use crate::rules::Severity;

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, options: &HostOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut unique = |fingerprint: String| {
        let times = seen.entry(fingerprint.clone()).or_default();
        *times += 1;
        if *times == 1 { fingerprint } else { format!("{fingerprint}-{times}") }
    };
    let mut issues: Vec<Json> = Vec::new();
    for error in &report.errors {
        let place = host::model_place(&error.path, options);
        issues.push(json!({
            "description": format!("anelint: {}", host::printable(&error.message)),
            "check_name": "anelint",
            "fingerprint": unique(hash(&["unreadable", &place.path])),
            "severity": "critical",
            "location": location(&place),
        }));
    }
    for input in &report.inputs {
        for finding in &input.findings {
            let place = host::place(report, input, finding, options);
            let help = match finding.help.as_str() {
                "" => String::new(),
                help => format!("; {help}"),
            };
            let description =
                format!("{} {}: {}{help}", finding.rule, finding.name, finding.message);
            issues.push(json!({
                "description": host::printable(&description).replace('\n', " "),
                "check_name": finding.rule,
                "fingerprint": unique(hash(&[
                    &finding.fingerprint,
                    &options.path(&input.path),
                    input.target.unit.name(),
                ])),
                "severity": match finding.severity {
                    Severity::Error => "major",
                    Severity::Warning => "minor",
                    Severity::Advice => "info",
                },
                "location": location(&place),
            }));
        }
    }
    serde_json::to_writer_pretty(&mut *out, &issues).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

fn location(place: &HostPlace) -> Json {
    match (place.lines, place.columns) {
        (Some((first, last)), Some((start, end))) => json!({
            "path": place.path,
            "positions": {
                "begin": {"line": first, "column": start},
                "end": {"line": last, "column": end},
            },
        }),
        (Some((first, last)), None) => {
            json!({"path": place.path, "lines": {"begin": first, "end": last}})
        }
        // A line is asked for; a model has none.
        (None, _) => json!({"path": place.path, "lines": {"begin": 1}}),
    }
}

fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
