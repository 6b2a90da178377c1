//! `anelint dump PATH`: the canonical graph, for people who write rules.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::Failure;
use crate::readers::{self, ReadOptions};
use crate::report::{DumpOptions, dump, output, text_dump};

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The model
    path: PathBuf,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Show the stored ops that normalisation absorbed into each op
    #[arg(long)]
    stored: bool,
    /// Show the bodies of composites and functions that nothing reaches, too
    #[arg(long)]
    all_functions: bool,
    /// Read the file into memory in place of mapping it
    #[arg(long)]
    no_mmap: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Runs the subcommand.
pub fn run(arguments: DumpArguments) -> Result<ExitCode, Failure> {
    let read = ReadOptions { no_mmap: arguments.no_mmap };
    let program = readers::read(&arguments.path, read).map_err(|error| {
        let offset = error.offset.map(|at| format!(" (byte {at} of the file)")).unwrap_or_default();
        Failure::new(format!("{}: {}{offset}", arguments.path.display(), error.message))
    })?;
    let text = match arguments.format {
        Format::Text => text_dump(&program),
        Format::Json => {
            let options =
                DumpOptions { stored: arguments.stored, all_functions: arguments.all_functions };
            let json = dump(&program, options);
            serde_json::to_string_pretty(&json).map_err(|e| Failure::new(e.to_string()))? + "\n"
        }
    };
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
