//! One line a finding: `path:line:col: error[ANE004] message`.

use std::io::{self, Write};

use super::escape;
use super::json::shown_file;
use super::model::{CheckReport, InputReport};
use crate::findings::Finding;

/// Where a finding is, in a word.
pub(super) fn place_of(report: &CheckReport, input: &InputReport, finding: &Finding) -> String {
    match &finding.spot {
        Some(spot) => {
            let file = shown_file(&spot.file, &report.working_folder);
            match spot.exact {
                true => format!("{file}:{}:{}", spot.span.start.line, spot.span.start.column),
                false => format!("{file}:{}", spot.span.start.line),
            }
        }
        None => match finding.nodes.first() {
            Some(node) => format!("{}: {node}", input.path),
            None => input.path.clone(),
        },
    }
}

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    for input in &report.inputs {
        for finding in &input.findings {
            let place = place_of(report, input, finding);
            writeln!(
                out,
                "{}: {}[{}] {}",
                escape::text(&place),
                finding.severity,
                escape::text(&finding.rule),
                escape::text(&finding.message)
            )?;
        }
    }
    for error in &report.errors {
        writeln!(out, "{}: error: {}", escape::text(&error.path), escape::text(&error.message))?;
    }
    Ok(())
}
