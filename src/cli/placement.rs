//! `anelint placement`: where a model's ops run, in how many regions, and what to fix first; and
//! `anelint why`: the same for one op.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{Failure, arguments, confirm, rule_files};
use crate::check::{CheckError, CheckOptions, Checker, absolute};
use crate::findings::source::{SourceMap, SourceOptions, SourceRule, Spot};
use crate::graph::{FunctionId, NodeId, NodeKind, Program};
use crate::placement::Placement;
use crate::readers::{self, ReadOptions};
use crate::report::{PlacementReport, output, placement_json, placement_text, why_text};
use crate::rules::{Limits, Selection};
use crate::target::{Generation, OsVersion, Runtime, Unit};

/// What to place on, and where the source lies.
#[derive(Debug, Args)]
pub struct TargetArguments {
    /// Units to place on: neural-engine, gpu, cpu
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = arguments::unit,
        default_value = "neural-engine",
        value_name = "UNIT"
    )]
    target: Vec<Unit>,
    /// Runtime that loads the graph: core-ai, core-ml, onnxruntime [default: by the format]
    #[arg(long, value_parser = arguments::runtime, value_name = "RUNTIME")]
    runtime: Option<Runtime>,
    /// Chip (m1…m6, a14…a19) or Neural Engine generation (h13…h18) [default: h16, as in M4]
    #[arg(long, value_parser = arguments::chip, value_name = "CHIP")]
    chip: Option<Generation>,
    /// OS version (27, 18.2, ios18, macos15) [default: 27 for core-ai, by the opset for core-ml]
    #[arg(long, value_parser = arguments::os, value_name = "VERSION")]
    os: Option<OsVersion>,
    /// Folder of your source
    #[arg(long, value_name = "FOLDER")]
    source_root: Vec<PathBuf>,
    /// Prefix of recorded paths and what it is on this machine
    #[arg(long, value_parser = arguments::path_map, value_name = "OLD=NEW")]
    path_map: Vec<(String, PathBuf)>,
    /// Read files into memory in place of mapping them
    #[arg(long)]
    no_mmap: bool,
}

/// Arguments of `placement`.
#[derive(Debug, Args)]
pub struct PlacementArguments {
    /// The model
    path: PathBuf,
    #[command(flatten)]
    target: TargetArguments,
    /// What a compile or a compute plan said: an .aimodelc, an analytics.mil, a plan as JSON; may be
    /// given several times
    #[arg(long, value_name = "FILE")]
    confirm: Vec<PathBuf>,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(short, long = "output-file", alias = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Arguments of `why`.
#[derive(Debug, Args)]
pub struct WhyArguments {
    /// The model
    path: PathBuf,
    /// The op, by its name in the file or by that of its result
    node: String,
    #[command(flatten)]
    target: TargetArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs `placement`.
pub fn run(arguments: PlacementArguments) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    with_confirmed(&arguments.path, &arguments.target, &arguments.confirm, |reports| {
        match arguments.format {
            Format::Text => {
                for report in reports {
                    text += &placement_text(report);
                }
            }
            Format::Json => {
                text = placement_json(reports).map_err(|e| Failure::new(e.to_string()))? + "\n";
            }
        }
        Ok(())
    })?;
    match &arguments.output {
        None => output::to_stdout(text.as_bytes())
            .map_err(|error| Failure::new(format!("cannot write: {error}")))?,
        Some(path) => output::to_file(path, text.as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `why`.
pub fn why(arguments: WhyArguments) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    with_reports(&arguments.path, &arguments.target, |reports| {
        for report in reports {
            let mut found = false;
            for (id, placement) in report.placements {
                for node in named(report.program, *id, &arguments.node) {
                    found = true;
                    text += &why_text(report, *id, placement, node);
                }
            }
            if !found {
                return Err(no_such_node(report.program, report.placements, &arguments.node));
            }
        }
        Ok(())
    })?;
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The nodes of a function with this name: their own, a result's, or that of a stored op that
/// normalisation absorbed.
fn named(program: &Program, function: FunctionId, name: &str) -> Vec<NodeId> {
    let function = program.function(function);
    let Some(name) = program.names.find(name) else { return Vec::new() };
    let mut found: Vec<NodeId> = function
        .nodes()
        .filter(|(id, node)| {
            node.name == name
                || function.results(*id).any(|value| function.value(value).name == name)
                || function.stored(*id).iter().any(|(stored, _)| *stored == name)
        })
        .map(|(id, _)| id)
        .collect();
    // An output is often named like the op that makes it: the op is meant.
    let is_op = |id: &NodeId| function.node(*id).kind == NodeKind::Op;
    if found.iter().any(is_op) {
        found.retain(is_op);
    }
    found
}

fn no_such_node(program: &Program, placements: &[(FunctionId, Placement)], name: &str) -> Failure {
    let mut near: Vec<&str> = placements
        .iter()
        .flat_map(|(id, _)| program.function(*id).nodes())
        .filter(|(_, node)| node.kind == NodeKind::Op)
        .map(|(_, node)| program.text(node.name))
        .filter(|known| known.contains(name) || (known.len() > 2 && name.contains(known)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(8);
    let failure = Failure::new(format!("no op is named `{name}`"));
    if near.is_empty() {
        failure.help("`anelint dump` lists them")
    } else {
        failure.help(format!("there are: {}", near.join(", ")))
    }
}

impl TargetArguments {
    /// The options that checking needs.
    pub(super) fn options(&self) -> Result<CheckOptions, Failure> {
        let working_folder = std::env::current_dir()
            .map_err(|error| Failure::new(format!("the working folder cannot be read: {error}")))?;
        let roots = self.source_root.iter().map(|root| absolute(root, &working_folder)).collect();
        Ok(CheckOptions {
            units: self.target.clone(),
            runtime: self.runtime,
            chip: self.chip,
            os: self.os,
            selection: Selection::default(),
            limits: Limits::default(),
            source: SourceOptions { roots, working_folder, path_maps: self.path_map.clone() },
            read: ReadOptions { no_mmap: self.no_mmap },
        })
    }
}

/// Reads and places a model on each unit asked for, and hands the reports on.
pub(super) fn with_reports(
    path: &Path,
    arguments: &TargetArguments,
    use_them: impl FnOnce(&[PlacementReport<'_>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with_confirmed(path, arguments, &[], use_them)
}

/// The same, held against what compilers said.
fn with_confirmed(
    path: &Path,
    arguments: &TargetArguments,
    files: &[PathBuf],
    use_them: impl FnOnce(&[PlacementReport<'_>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let options = arguments.options()?;
    let (set, prepared) = rule_files::load(&[])?;
    let (source, read) = (options.source.clone(), options.read);
    let working_folder = source.working_folder.clone();
    let checker =
        Checker::new(&set, &prepared, options).map_err(|e| Failure::new(e.to_string()))?;
    let program = readers::read(path, read).map_err(|error| {
        let offset = error.offset.map(|at| format!(" (at byte {at})")).unwrap_or_default();
        Failure::new(format!("{}: {}{offset}", path.display(), error.message))
    })?;
    let mut words = Vec::new();
    for file in files {
        words.push(confirm::read(file, read)?);
    }
    let map = SourceMap::new(&program, source);
    let rule = SourceRule::default();
    let spot = |function: FunctionId, node: NodeId| -> Option<Spot> {
        map.place(usize::MAX, &rule, function, node, &[node]).spot.clone()
    };
    let shown = path.display().to_string();
    let mut placed = Vec::new();
    for &unit in &arguments.target {
        let placements = checker.place(&program, unit).map_err(|error: CheckError| {
            Failure::new(format!("{}: {}", path.display(), error.message()))
        })?;
        let confirmed = words
            .iter()
            .map(|words| confirm::hold(words, &program, &placements))
            .collect::<Result<Vec<_>, _>>()?;
        placed.push((checker.target(unit, &program), placements, confirmed));
    }
    let reports: Vec<PlacementReport<'_>> = placed
        .iter()
        .map(|(target, placements, confirmed)| PlacementReport {
            path: &shown,
            program: &program,
            target: *target,
            placements,
            spot: &spot,
            confirmed,
            folder: &working_folder,
        })
        .collect();
    use_them(&reports)
}
