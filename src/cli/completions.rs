//! `anelint completions SHELL` and `anelint man`: made from the arguments themselves.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Arguments, Failure};
use crate::report::output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArguments {
    /// Write a page for the program and one for each subcommand into this folder [default: the
    /// program's page to standard output]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Runs `completions`.
pub fn completions(arguments: CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "anelint", &mut script);
    output::to_stdout(&script).map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `man`.
pub fn man(arguments: ManArguments) -> Result<ExitCode, Failure> {
    let command = Arguments::command();
    match arguments.folder {
        Some(folder) => {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(command, &folder))
                .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut page)
                .map_err(|error| Failure::new(format!("the page cannot be made: {error}")))?;
            output::to_stdout(&page)
                .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
