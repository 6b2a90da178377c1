//! `--fix`, `--unsafe-fixes` and `--diff` of `anelint check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::Failure;
use crate::check::absolute;
use crate::findings::Finding;
use crate::findings::source::{SourceOptions, shown_path};
use crate::fixes::{Applied, FixOptions, plan, unified, write};
use crate::report::{CheckReport, FixReport, Note, output};

/// Whether and what to fix.
#[derive(Debug, Clone, Default, Args)]
pub struct FixArguments {
    /// Mend the Python source where that keeps what it computes
    #[arg(long, help_heading = "Fixes")]
    fix: bool,
    /// With --fix or --diff: also where structure changes or weights must be reshaped
    #[arg(long, help_heading = "Fixes")]
    unsafe_fixes: bool,
    /// Print what --fix would change, write nothing; exit code 1 if there is something
    #[arg(long, conflicts_with = "fix", help_heading = "Fixes")]
    diff: bool,
}

/// The folders whose files may be edited: the working folder, and where the settings say that source
/// lies.
pub fn folders<'s>(
    working_folder: &Path,
    sources: impl Iterator<Item = &'s SourceOptions>,
) -> Vec<PathBuf> {
    let mut folders = vec![working_folder.to_owned()];
    for source in sources {
        folders.extend(source.project.clone());
        let mapped = source.path_maps.iter().map(|(_, new)| new.clone());
        folders.extend(source.roots.iter().cloned().chain(mapped));
    }
    let mut folders: Vec<PathBuf> =
        folders.into_iter().map(|folder| absolute(&folder, working_folder)).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Mends what a report holds, or prints how; `Some` if that was all that was to do. Findings for which
/// `open` is false (suppressed ones) are left alone.
///
/// # Errors
/// If a flag makes no sense, or the diff cannot be printed.
pub fn run(
    report: &mut CheckReport,
    arguments: &FixArguments,
    folders: Vec<PathBuf>,
    open: impl Fn(&Finding) -> bool,
) -> Result<Option<ExitCode>, Failure> {
    if !arguments.fix && !arguments.diff {
        if arguments.unsafe_fixes {
            return Err(Failure::new(
                "--unsafe-fixes says what --fix and --diff may do: it goes with one of them",
            ));
        }
        return Ok(None);
    }
    let folder = report.working_folder.clone();
    let options = FixOptions { unsafe_fixes: arguments.unsafe_fixes, folders };
    let findings: Vec<&Finding> = report.findings().filter(|finding| open(finding)).collect();
    let mut applied = plan(&findings, &options);
    if arguments.diff {
        let mut text = String::new();
        for file in &applied.files {
            text.push_str(&unified(&shown_path(&file.path, &folder), &file.old, &file.new));
        }
        output::to_stdout(text.as_bytes())
            .map_err(|error| Failure::new(format!("the diff cannot be written: {error}")))?;
        for note in notes(&applied, &folder) {
            output::to_stderr(&format!("{}: {}\n", note.path, note.message));
        }
        for error in &report.errors {
            output::to_stderr(&format!("error: {}: {}\n", error.path, error.message));
        }
        return Ok(Some(ExitCode::from(
            match (report.errors.is_empty(), applied.files.is_empty()) {
                (false, _) => 2,
                (true, false) => 1,
                (true, true) => 0,
            },
        )));
    }
    write(&mut applied, &findings);
    // By address: the same finding in the report.
    let fixed: Vec<*const Finding> = applied
        .fixed
        .iter()
        .filter_map(|at| findings.get(*at))
        .map(|f| std::ptr::from_ref(*f))
        .collect();
    report.fixes = Some(FixReport {
        edited: applied
            .files
            .iter()
            .map(|file| (shown_path(&file.path, &folder), file.edits))
            .collect(),
        left: notes(&applied, &folder),
        overlapping: applied.overlapping,
        unsafe_left: applied.unsafe_left,
    });
    for finding in report.inputs.iter_mut().flat_map(|input| &mut input.findings) {
        finding.fixed = fixed.contains(&std::ptr::from_ref(&*finding));
    }
    Ok(None)
}

fn notes(applied: &Applied, folder: &Path) -> Vec<Note> {
    applied
        .left
        .iter()
        .map(|left| Note {
            path: shown_path(&left.path, folder),
            message: format!("left alone: {}", left.why),
        })
        .collect()
}
