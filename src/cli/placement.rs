//! `anelint placement`: where a model's ops run, in how many regions, and what to fix first; and
//! `anelint why`: the same for one op.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::plan::Planner;
use super::target::{TargetArguments, working_folder};
use super::{Failure, confirm};
use crate::check::{CheckError, CheckOptions, Checker};
use crate::findings::source::{SourceMap, SourceRule, Spot};
use crate::graph::{FunctionId, NodeId, NodeKind, Program};
use crate::placement::Placement;
use crate::readers;
use crate::report::{PlacementReport, output, placement_json, placement_text, why_text};
use crate::rules::Selection;

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
    let Some(name) = program.names.find(name).filter(|name| !name.is_empty()) else {
        return Vec::new();
    };
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
        .filter(|known| !known.is_empty() && !name.is_empty())
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
    let working_folder = working_folder()?;
    let mut planner = Planner::new(arguments, arguments.settings(), &working_folder)?;
    let plan = planner.plan(path)?;
    // The configured selection of rules is that of reports; where an op runs does not depend on it.
    let options = CheckOptions { selection: Selection::default(), ..plan.options.clone() };
    let (source, read) = (options.source.clone(), options.read);
    let units = options.units.clone();
    let (set, prepared) = planner.rules(&plan)?;
    let checker = Checker::new(set, prepared, options).map_err(|e| Failure::new(e.to_string()))?;
    let program = readers::read(path, read).map_err(|error| {
        let offset = error.offset.map(|at| format!(" (byte {at} of the file)")).unwrap_or_default();
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
    for &unit in &units {
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
