//! A finding's fix as lines: what stands there, and what would.

use std::path::Path;

use super::escape;
use super::json::shown_file;
use crate::findings::source::PlaceFile;
use crate::findings::{Edit, Finding, Fix};
use crate::fixes::{Splice, splice};
use crate::rules::Applicability;

/// Most lines shown of one edit, old and new each.
const MAX_LINES: usize = 6;
/// Longer lines are cut off.
const MAX_COLUMNS: usize = 160;

/// The note on how a finding can be mended, or has been; `None` if nothing can be said.
pub fn note(finding: &Finding, folder: &Path) -> Option<String> {
    let fix = finding.fix.as_ref()?;
    let words = |note: &str| escape::lines(note);
    if finding.fixed {
        let rest =
            if fix.note.is_empty() { String::new() } else { format!("\n{}", words(&fix.note)) };
        return Some(format!("fixed, re-export to verify{rest}"));
    }
    let head = match fix.applicability {
        Applicability::Display => return Some(format!("fix: {}", words(&fix.note))),
        Applicability::Safe => "safe fix (--fix)",
        Applicability::Unsafe => "unsafe fix (--fix --unsafe-fixes)",
    };
    let mut text = format!("{head}{}:", place(finding, fix, folder));
    for edit in fix.edits.iter().filter(|edit| first_on_line(&fix.edits, edit)) {
        let (old, new) = lines(&fix.edits, edit)?;
        for (sign, lines) in [('-', old), ('+', new)] {
            for line in lines {
                text.push_str(&format!("\n{sign} {}", escape::text(&clipped(&line))));
            }
        }
    }
    if !fix.note.is_empty() {
        text.push('\n');
        text.push_str(&words(&fix.note));
    }
    Some(text)
}

/// ` at masks.py:26`, where the finding does not show that line itself.
fn place(finding: &Finding, fix: &Fix, folder: &Path) -> String {
    let Some(edit) = fix.edits.first() else { return String::new() };
    let own = finding.spot.as_ref().is_some_and(|spot| {
        spot.file.key() == edit.file.key() && spot.span.start.line == edit.span.start.line
    });
    if own {
        return String::new();
    }
    let file = shown_file(&edit.file, folder);
    format!(" at {}:{}", escape::text(&file), edit.span.start.line)
}

fn same_lines(a: &Edit, b: &Edit) -> bool {
    a.file.key() == b.file.key()
        && a.span.start.line <= b.span.end.line
        && b.span.start.line <= a.span.end.line
}

fn first_on_line(edits: &[Edit], edit: &Edit) -> bool {
    edits
        .iter()
        .find(|other| same_lines(other, edit))
        .is_some_and(|first| std::ptr::eq(first, edit))
}

/// The lines that an edit, and others on the same lines, change: as they are, and as they would be.
fn lines(edits: &[Edit], edit: &Edit) -> Option<(Vec<String>, Vec<String>)> {
    let PlaceFile::Found(file) = &edit.file else { return None };
    let own: Vec<&Edit> = edits.iter().filter(|other| same_lines(other, edit)).collect();
    let first = own.iter().map(|edit| edit.span.start.line).min()?;
    let last = own.iter().map(|edit| edit.span.end.line).max()?;
    let (start, end) = (file.line_bytes(first)?.start, file.line_bytes(last)?.end);
    let splices: Vec<Splice> = own
        .iter()
        .map(|edit| {
            let at = |position| file.byte_of(position).and_then(|at| at.checked_sub(start));
            Some(Splice {
                start: at(edit.span.start)?,
                end: at(edit.span.end)?,
                text: edit.text.clone(),
            })
        })
        .collect::<Option<_>>()?;
    let old = file.text().get(start..end)?;
    let new = splice(old, &splices).ok()?;
    let indent = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    let cut = indent(old);
    let shown = |text: &str| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let mut shown: Vec<String> = lines
            .iter()
            .take(MAX_LINES)
            .map(|line| line.get(cut.min(indent(line))..).unwrap_or(line).trim_end().to_owned())
            .collect();
        if lines.len() > MAX_LINES {
            shown.push("…".to_owned());
        }
        shown
    };
    let (mut old, mut new) = (shown(old), shown(&new));
    // What both begin and end with is no news.
    while old.len() > 1 && new.len() > 1 && old.first() == new.first() {
        old.remove(0);
        new.remove(0);
    }
    while old.len() > 1 && new.len() > 1 && old.last() == new.last() {
        old.pop();
        new.pop();
    }
    Some((old, new))
}

fn clipped(line: &str) -> String {
    if line.chars().count() <= MAX_COLUMNS {
        return line.to_owned();
    }
    let mut text: String = line.chars().take(MAX_COLUMNS - 1).collect();
    text.push('…');
    text
}
