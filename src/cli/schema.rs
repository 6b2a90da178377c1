//! `anelint schema`: the JSON schemas of what users write and of what the tool prints.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Failure;
use crate::report::output;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Of what
    #[arg(value_enum)]
    of: Of,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// A rule file
    Rule,
    /// The config file
    Config,
    /// What `check --format json` prints
    Check,
    /// What `placement --format json` prints
    Placement,
    /// What `stats --format json` prints
    Stats,
    /// What `diff --format json` prints
    Diff,
    /// What `dump --format json` prints
    Dump,
}

/// Runs the subcommand.
pub fn run(arguments: SchemaArguments) -> Result<ExitCode, Failure> {
    let text = match arguments.of {
        Of::Rule => include_str!("../../schemas/rule.schema.json"),
        Of::Config => include_str!("../../schemas/config.schema.json"),
        Of::Check => include_str!("../../schemas/check.schema.json"),
        Of::Placement => include_str!("../../schemas/placement.schema.json"),
        Of::Stats => include_str!("../../schemas/stats.schema.json"),
        Of::Diff => include_str!("../../schemas/diff.schema.json"),
        Of::Dump => include_str!("../../schemas/dump.schema.json"),
    };
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
