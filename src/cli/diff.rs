//! `anelint diff OLD NEW`: what a change did to findings, regions, ops, parameters and cost.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Failure;
use super::plan::Planner;
use super::target::{TargetArguments, working_folder};
use crate::check::{CheckError, Checker};
use crate::diff::{self, Side};
use crate::findings::Finding;
use crate::graph::{FunctionId, Program};
use crate::readers::{self, ReadOptions};
use crate::report::{DiffReport, diff_json, diff_markdown, diff_text, output};
use crate::rules::Severity;
use crate::stats;
use crate::target::Unit;

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The model before the change
    old: PathBuf,
    /// The model after it
    new: PathBuf,
    #[command(flatten)]
    target: TargetArguments,
    /// Lowest severity of a gained finding that makes the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Error, value_name = "SEVERITY")]
    fail_on: FailOn,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(short, long = "output-file", alias = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Advice,
    Never,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// Version 1, see schemas/diff.schema.json
    Json,
    /// For a comment on a pull request
    Markdown,
}

/// One side, checked, placed and counted on one unit.
struct Checked {
    findings: Vec<Finding>,
    functions: Vec<(FunctionId, Side)>,
}

/// Runs the subcommand.
pub fn run(arguments: DiffArguments) -> Result<ExitCode, Failure> {
    let folder = working_folder()?;
    let mut planner = Planner::new(&arguments.target, arguments.target.settings(), &folder)?;
    // One config for both sides: the change is in the model.
    let plan = planner.plan(&arguments.new)?;
    let options = plan.options.clone();
    let (read, units) = (options.read, options.units.clone());
    let (set, prepared) = planner.rules(&plan)?;
    let checker = Checker::new(set, prepared, options).map_err(|e| Failure::new(e.to_string()))?;
    let old = open(&arguments.old, read)?;
    let mut new = open(&arguments.new, read)?;
    // A fingerprint holds the file's stem: under another name it is still the same model.
    if let Some(name) = arguments.old.file_name() {
        new.path = new.path.with_file_name(name);
    }
    let shown = [&arguments.old, &arguments.new].map(|path| path.display().to_string());
    let mut sides = Vec::new();
    for &unit in &units {
        let before = check(&checker, &old, &shown[0], unit)?;
        let after = check(&checker, &new, &shown[1], unit)?;
        sides.push((unit, before, after));
    }
    let reports: Vec<DiffReport<'_>> = sides
        .iter()
        .map(|(unit, before, after)| DiffReport {
            old: &shown[0],
            new: &shown[1],
            unit: unit.name(),
            findings: diff::findings(&before.findings, &after.findings),
            functions: diff::functions((&old, &before.functions), (&new, &after.functions)),
            folder: &folder,
        })
        .collect();
    let text = match arguments.format {
        Format::Text => reports.iter().map(diff_text).collect::<Vec<_>>().join("\n"),
        Format::Markdown => reports.iter().map(diff_markdown).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            diff_json(&reports).map_err(|error| Failure::new(error.to_string()))? + "\n"
        }
    };
    match &arguments.output {
        None => output::to_stdout(text.as_bytes())
            .map_err(|error| Failure::new(format!("cannot write: {error}")))?,
        Some(path) => output::to_file(path, text.as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?,
    }
    let threshold = match arguments.fail_on {
        FailOn::Error => Some(Severity::Error),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Advice => Some(Severity::Advice),
        FailOn::Never => None,
    };
    let worse = threshold.is_some_and(|severity| {
        reports.iter().any(|report| report.findings.gained_at_least(severity) > 0)
    });
    Ok(ExitCode::from(u8::from(worse)))
}

fn open(path: &Path, options: ReadOptions) -> Result<Program, Failure> {
    readers::read(path, options).map_err(|error| {
        let offset = error.offset.map(|at| format!(" (byte {at} of the file)")).unwrap_or_default();
        Failure::new(format!("{}: {}{offset}", path.display(), error.message))
    })
}

fn check(
    checker: &Checker<'_>,
    program: &Program,
    shown: &str,
    unit: Unit,
) -> Result<Checked, Failure> {
    let failure = |error: CheckError| Failure::new(format!("{shown}: {}", error.message()));
    let findings = checker.check_program(program, shown, unit).map_err(failure)?.findings;
    let functions = checker
        .place(program, unit)
        .map_err(failure)?
        .into_iter()
        .map(|(id, placement)| (id, Side { placement, stats: stats::count(program, id, 1) }))
        .collect();
    Ok(Checked { findings, functions })
}
