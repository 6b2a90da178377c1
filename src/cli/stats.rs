//! `anelint stats`: ops, parameters, bytes, operations, memory and padding of a model.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Failure;
use super::placement::with_reports;
use super::target::TargetArguments;
use crate::report::{StatsInput, StatsReport, output, stats_json, stats_text};
use crate::stats::{self, Machine, RegionShare};

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArguments {
    /// The models
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArguments,
    /// Memory bandwidth for the roofline, in GB/s
    #[arg(long, value_name = "GB/S", value_parser = rate)]
    bandwidth: Option<f64>,
    /// Compute rate for the roofline, in GFLOP/s (a multiply and an add are two)
    #[arg(long, value_name = "GFLOP/S", value_parser = rate)]
    rate: Option<f64>,
    /// Parts of the module path that the breakdown goes by (an index belongs to the name before it)
    #[arg(long, value_name = "N", default_value_t = 2)]
    depth: usize,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(short, long = "output-file", alias = "output", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    /// Version 1, see schemas/stats.schema.json
    Json,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// Runs the subcommand.
pub fn run(arguments: StatsArguments) -> Result<ExitCode, Failure> {
    let machine = Machine { gigabytes: arguments.bandwidth, gigaflops: arguments.rate };
    let mut text = String::new();
    let mut inputs = Vec::new();
    for path in &arguments.paths {
        with_reports(path, &arguments.target, |reports| {
            for placed in reports {
                let program = placed.program;
                let functions = placed
                    .placements
                    .iter()
                    .map(|(id, placement)| {
                        let shares: Vec<RegionShare> =
                            stats::shares(program, program.function(*id), placement, machine);
                        (stats::count(program, *id, arguments.depth), shares)
                    })
                    .collect();
                let report = StatsReport {
                    path: placed.path,
                    program,
                    target: placed.target,
                    machine,
                    functions,
                };
                match arguments.format {
                    Format::Text => text += &stats_text(&report),
                    Format::Json => inputs.push(StatsInput::of(&report)),
                }
            }
            Ok(())
        })?;
    }
    if matches!(arguments.format, Format::Json) {
        text = stats_json(inputs).map_err(|error| Failure::new(error.to_string()))? + "\n";
    }
    match &arguments.output {
        None => output::to_stdout(text.as_bytes())
            .map_err(|error| Failure::new(format!("cannot write: {error}")))?,
        Some(path) => output::to_file(path, text.as_bytes())
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?,
    }
    Ok(ExitCode::SUCCESS)
}
