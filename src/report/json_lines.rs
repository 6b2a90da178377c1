//! JSON, an object a line: `{"kind": "input" | "finding" | "error" | "skipped" | "summary", …}`, with the
//! keys that the whole report has (`schemas/check.schema.json`).

use std::io::{self, Write};

use serde::Serialize;

use super::json::document;
use super::model::CheckReport;

#[derive(Serialize)]
struct Line<'a, T> {
    kind: &'static str,
    #[serde(flatten)]
    own: &'a T,
}

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, out: &mut dyn Write) -> io::Result<()> {
    let whole = document(report);
    lines("input", &whole.inputs, out)?;
    lines("finding", &whole.findings, out)?;
    lines("error", &whole.errors, out)?;
    lines("skipped", &whole.skipped, out)?;
    lines("summary", std::slice::from_ref(&whole.summary), out)
}

fn lines<T: Serialize>(kind: &'static str, list: &[T], out: &mut dyn Write) -> io::Result<()> {
    for own in list {
        serde_json::to_writer(&mut *out, &Line { kind, own }).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
