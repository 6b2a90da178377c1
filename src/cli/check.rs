//! `anelint check`: the main job.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::progress::Progress;
use super::walk::{self, Input};
use super::{Color, Failure, arguments, rule_files};
use crate::check::{CheckError, CheckOptions, Checker, absolute};
use crate::findings::source::SourceOptions;
use crate::readers::{ReadErrorKind, ReadOptions};
use crate::report::{
    CheckReport, InputError, InputReport, Note, TextOptions, output, write_concise, write_json,
    write_text,
};
use crate::rules::{Limits, Selection, Severity};
use crate::target::{Generation, OsVersion, Runtime, Unit};

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Model graphs, and folders to look for them in
    #[arg(default_value = ".", value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Units to check against: neural-engine, gpu, cpu
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = arguments::unit,
        default_value = "neural-engine",
        value_name = "UNIT",
        help_heading = "Target"
    )]
    target: Vec<Unit>,
    /// Runtime that loads the graph: core-ai, core-ml, onnxruntime [default: by the format]
    #[arg(long, value_parser = arguments::runtime, value_name = "RUNTIME", help_heading = "Target")]
    runtime: Option<Runtime>,
    /// Chip (m1…m6, a14…a19) or Neural Engine generation (h13…h18) [default: h16, as in M4]
    #[arg(long, value_parser = arguments::chip, value_name = "CHIP", help_heading = "Target")]
    chip: Option<Generation>,
    /// OS version (27, 18.2, ios18, macos15) [default: 27 for core-ai, by the opset for core-ml]
    #[arg(long, value_parser = arguments::os, value_name = "VERSION", help_heading = "Target")]
    os: Option<OsVersion>,

    /// Rules to run: ids, names, categories or id prefixes [default: all that are on]
    #[arg(long, value_delimiter = ',', value_name = "RULES", help_heading = "Rules")]
    select: Vec<String>,
    /// Rules to leave out: ids, names, categories or id prefixes
    #[arg(long, value_delimiter = ',', value_name = "RULES", help_heading = "Rules")]
    ignore: Vec<String>,
    /// Run rules that are still on trial
    #[arg(long, help_heading = "Rules")]
    preview: bool,
    /// Rule files of your own
    #[arg(long, value_name = "GLOB", help_heading = "Rules")]
    rules: Vec<String>,
    /// Most regions that a function may fall into
    #[arg(long, value_name = "N", help_heading = "Rules")]
    max_regions: Option<u32>,
    /// Lowest severity that makes the exit code 1
    #[arg(
        long,
        value_enum,
        default_value_t = FailOn::Error,
        value_name = "SEVERITY",
        help_heading = "Rules"
    )]
    fail_on: FailOn,
    /// Exit with 0 in spite of findings
    #[arg(long, help_heading = "Rules")]
    exit_zero: bool,

    /// Folder of your source; files below it count as yours wherever they lie
    #[arg(long, value_name = "FOLDER", help_heading = "Source")]
    source_root: Vec<PathBuf>,
    /// Prefix of recorded paths and what it is on this machine
    #[arg(
        long,
        value_parser = arguments::path_map,
        value_name = "OLD=NEW",
        help_heading = "Source"
    )]
    path_map: Vec<(String, PathBuf)>,

    /// Output format
    #[arg(
        long,
        alias = "output-format",
        value_enum,
        default_value_t = Format::Text,
        env = "ANELINT_FORMAT",
        hide_env = true,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
    /// Write the report to a file
    #[arg(
        short,
        long = "output-file",
        alias = "output",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,
    /// Findings only
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// More about each finding: every node, deeper frames, evidence, notes
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,

    /// Globs of paths to leave out when folders are walked
    #[arg(long, value_name = "GLOB", help_heading = "Files")]
    exclude: Vec<String>,
    /// Leave excluded paths out even if they are named
    #[arg(long, help_heading = "Files")]
    force_exclude: bool,
    /// No model below a path is no failure
    #[arg(long, help_heading = "Files")]
    allow_empty: bool,
    /// Read files into memory in place of mapping them
    #[arg(long, help_heading = "Files")]
    no_mmap: bool,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Files")]
    jobs: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailOn {
    Error,
    Warning,
    Advice,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Snippets with carets, for people
    Text,
    /// One line a finding
    Concise,
    /// Version 1, see schemas/check.schema.json
    Json,
}

/// Stack of a worker: tree-sitter and serde recurse a little, and the default of a thread is small.
const STACK_BYTES: usize = 8 << 20;
/// Most threads: each has a stack of its own.
const MOST_JOBS: usize = 256;

/// Runs the subcommand.
pub fn run(arguments: CheckArguments, color: Color) -> Result<ExitCode, Failure> {
    let working_folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working folder cannot be read: {error}")))?;
    for root in &arguments.source_root {
        if !root.is_dir() {
            return Err(Failure::new(format!("--source-root {}: no such folder", root.display())));
        }
    }
    let (set, prepared) = rule_files::load(&arguments.rules)?;
    let options = CheckOptions {
        units: units(&arguments.target),
        runtime: arguments.runtime,
        chip: arguments.chip,
        os: arguments.os,
        selection: Selection {
            select: arguments.select.clone(),
            ignore: arguments.ignore.clone(),
            preview: arguments.preview,
        },
        limits: Limits { max_regions: arguments.max_regions },
        source: SourceOptions {
            working_folder: working_folder.clone(),
            roots: arguments
                .source_root
                .iter()
                .map(|root| absolute(root, &working_folder))
                .collect(),
            path_maps: arguments.path_map.clone(),
        },
        read: ReadOptions { no_mmap: arguments.no_mmap },
    };
    let checker = Checker::new(&set, &prepared, options)
        .map_err(|error| Failure::new(error.to_string()).help("`anelint rules` lists the rules"))?;

    let exclude = globs(&arguments.exclude)?;
    let found = walk::find(&arguments.paths, &exclude, arguments.force_exclude);
    let outcomes = check_all(&checker, &found.inputs, &arguments)?;

    let mut report = CheckReport { working_folder, ..CheckReport::default() };
    let mut readable = 0;
    let mut only_pointers = true;
    for (input, outcome) in found.inputs.iter().zip(outcomes) {
        let path = shown(&input.path);
        match outcome {
            Ok(reports) => {
                readable += 1;
                report.inputs.extend(reports);
            }
            Err(_) if input.doubtful && !input.named => continue,
            Err(error) => match (error.kind(), input.named) {
                (ReadErrorKind::LfsPointer, _) | (ReadErrorKind::OutOfScope, false) => {
                    only_pointers &= error.kind() == ReadErrorKind::LfsPointer;
                    report.skipped.push(Note { path, message: error.message() });
                    continue;
                }
                _ => report.errors.push(InputError {
                    path,
                    message: error.message(),
                    offset: error.offset(),
                }),
            },
        }
        only_pointers = false;
    }
    for (path, message) in found.unreadable {
        report.errors.push(InputError { path: shown(&path), message, offset: None });
    }
    let mut missing = false;
    for path in &found.empty {
        missing |= !arguments.allow_empty;
        report.skipped.push(Note { path: shown(path), message: "no model graph below it".into() });
    }
    report.errors.sort_by(|a, b| a.path.cmp(&b.path));

    write(&report, &arguments, color)?;

    // A pointer to a model is a note beside other models, and a failure where it was all there was.
    let named_pointers_only = readable == 0
        && only_pointers
        && !report.skipped.is_empty()
        && found.inputs.iter().any(|input| input.named);
    let failed = !report.errors.is_empty() || missing || named_pointers_only;
    let threshold = match arguments.fail_on {
        FailOn::Error => Some(Severity::Error),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Advice => Some(Severity::Advice),
        FailOn::Never => None,
    };
    let found = threshold.is_some_and(|severity| report.summary().at_least(severity) > 0);
    Ok(ExitCode::from(match (failed, found && !arguments.exit_zero) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }))
}

/// Checks inputs in parallel; the outcomes are in the order of the inputs.
fn check_all(
    checker: &Checker<'_>,
    inputs: &[Input],
    arguments: &CheckArguments,
) -> Result<Vec<Result<Vec<InputReport>, CheckError>>, Failure> {
    // More threads than inputs have nothing to do.
    let jobs = arguments.jobs.map_or(0, |jobs| jobs.clamp(1, inputs.len().clamp(1, MOST_JOBS)));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let progress = Progress::new(inputs.len(), !arguments.quiet);
    let counter = progress.counter();
    Ok(pool.install(|| {
        inputs
            .par_iter()
            .map_with(counter, |counter, input| {
                let outcome = checker.check(&input.path, &shown(&input.path));
                counter.count();
                outcome
            })
            .collect()
    }))
}

fn write(report: &CheckReport, arguments: &CheckArguments, color: Color) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let colored = match (&arguments.output, color) {
        (Some(_), color) => color == Color::Always,
        (None, color) => color.on_stdout(),
    };
    let text = TextOptions { color: colored, quiet: arguments.quiet, verbose: arguments.verbose };
    let made: io::Result<()> = match arguments.format {
        Format::Text => write_text(report, text, &mut bytes),
        Format::Concise => write_concise(report, &mut bytes),
        Format::Json => write_json(report, &mut bytes),
    };
    made.map_err(|error| Failure::new(format!("the report cannot be made: {error}")))?;
    match &arguments.output {
        None => output::to_stdout(&bytes)
            .map_err(|error| Failure::new(format!("the report cannot be written: {error}"))),
        Some(path) => output::to_file(path, &bytes).map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", path.display()))
        }),
    }
}

/// Each unit once, in the order given.
fn units(given: &[Unit]) -> Vec<Unit> {
    let mut units = Vec::new();
    for unit in given {
        if !units.contains(unit) {
            units.push(*unit);
        }
    }
    units
}

fn globs(patterns: &[String]) -> Result<globset::GlobSet, Failure> {
    let mut set = globset::GlobSetBuilder::new();
    for pattern in patterns {
        let glob = globset::Glob::new(pattern)
            .map_err(|error| Failure::new(format!("--exclude: {error}")))?;
        set.add(glob);
    }
    set.build().map_err(|error| Failure::new(format!("--exclude: {error}")))
}

/// A path as reports show it: forward slashes.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into_owned() }
}
