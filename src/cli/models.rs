//! `anelint models`: checks the models that the config file names and a change touches, for hooks.
//!
//! A change touches a model if it is in the model's file, in a source file that the graph has recorded,
//! or in the config file itself. What made the graph is asked of the graph: nobody has to keep a list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use super::check::{self, CheckArguments};
use super::{Color, Failure};
use crate::check::absolute;
use crate::config::{File, Finder, Model};
use crate::readers::{self, ReadOptions};
use crate::report::{escaped, output};

/// Arguments of `models`.
#[derive(Debug, Args)]
pub struct ModelsArguments {
    /// Make graphs whose sources have changed again, with the `export` command of the config file
    #[arg(long, help_heading = "Models")]
    export: bool,
    /// As for `anelint check`, but PATHs are files that have changed [default: check all models]
    #[command(flatten)]
    check: CheckArguments,
}

/// Why a model is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    /// Its own file has changed, or the settings, or everything is asked for.
    Itself,
    /// Source that it was made from has changed.
    Source,
}

/// Runs the subcommand.
pub fn run(arguments: ModelsArguments, color: Color) -> Result<ExitCode, Failure> {
    let working_folder = super::target::working_folder()?;
    let finder = arguments.check.finder(&working_folder)?;
    let changed: Vec<PathBuf> =
        arguments.check.paths().iter().map(|path| absolute(path, &working_folder)).collect();
    let files = config_files(&finder, &changed, &working_folder)?;
    if files.iter().all(|file| file.models.is_empty()) {
        return Err(Failure::new("no config file names a model")
            .help("add [[model]] tables to anelint.toml: name, graph, export"));
    }
    let mut paths = BTreeSet::new();
    for file in &files {
        for model in &file.models {
            let Some(touched) = touched(file, model, &changed) else { continue };
            if touched == Touched::Source || !model.graph.exists() {
                remake(file, model, arguments.export, &working_folder)?;
            }
            let shown = model.graph.strip_prefix(&working_folder).unwrap_or(&model.graph);
            paths.insert(shown.to_owned());
        }
    }
    if paths.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    check::run(arguments.check.with_paths(paths.into_iter().collect()), color)
}

/// The config files that hold for what has changed, and the one of the working folder.
fn config_files(
    finder: &Finder,
    changed: &[PathBuf],
    working_folder: &Path,
) -> Result<Vec<std::sync::Arc<File>>, Failure> {
    let mut found: Vec<std::sync::Arc<File>> = Vec::new();
    let own = working_folder.join("model");
    for path in std::iter::once(&own).chain(changed) {
        if let Some(file) = finder.of(path.parent().unwrap_or(path))?
            && found.iter().all(|known| known.source.path != file.source.path)
        {
            found.push(file);
        }
    }
    Ok(found)
}

/// Whether, and how, a change touches a model.
fn touched(file: &File, model: &Model, changed: &[PathBuf]) -> Option<Touched> {
    if changed.is_empty()
        || changed.iter().any(|path| path.starts_with(&model.graph) || *path == file.source.path)
    {
        return Some(Touched::Itself);
    }
    let python: Vec<&PathBuf> =
        changed.iter().filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    if python.is_empty() {
        return None;
    }
    // A graph that cannot be read is checked: that is where the mistake is told.
    let Ok(program) = readers::read(&model.graph, ReadOptions::default()) else {
        return Some(Touched::Source);
    };
    let recorded: BTreeSet<&str> =
        program.sources.all_frames().map(|frame| program.text(frame.file)).collect();
    let made_from = recorded.iter().any(|recorded| python.iter().any(|path| fits(recorded, path)));
    made_from.then_some(Touched::Source)
}

/// Whether a recorded path may be that of a file: one ends in the other, in whole components.
fn fits(recorded: &str, path: &Path) -> bool {
    let recorded: Vec<&str> =
        recorded.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    let path = path.to_string_lossy();
    let own: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let common = recorded.iter().rev().zip(own.iter().rev()).take_while(|(a, b)| a == b).count();
    // The file's name alone says little: its folder must fit too, where one is recorded.
    common >= 2.min(recorded.len()) && common > 0
}

/// Makes a graph again if asked to; else says how.
fn remake(file: &File, model: &Model, asked: bool, working_folder: &Path) -> Result<(), Failure> {
    let shown = model.graph.strip_prefix(working_folder).unwrap_or(&model.graph);
    let name = escaped(&model.name).into_owned();
    let Some(command) = &model.export else {
        output::to_stderr(&format!(
            "{name}: its source has changed since {} was exported\n",
            shown.display()
        ));
        return Ok(());
    };
    if !asked {
        output::to_stderr(&format!(
            "{name}: its source has changed since {} was exported; make it again with `{}`, or \
             with --export\n",
            shown.display(),
            escaped(command)
        ));
        return Ok(());
    }
    output::to_stderr(&format!("{name}: {}\n", escaped(command)));
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let status = Command::new(shell)
        .arg(flag)
        .arg(command)
        .current_dir(&file.folder)
        // The report owns standard output.
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| Failure::new(format!("{name}: `{command}` cannot be run: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("{name}: `{command}` failed ({status})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_path_fits_a_file_by_its_last_parts() {
        let path = Path::new("/repo/net/attention.py");
        assert!(fits("net/attention.py", path));
        assert!(fits("/home/them/project/net/attention.py", path));
        assert!(fits("C:\\project\\net\\attention.py", path));
        assert!(fits("attention.py", path));
        assert!(!fits("other/attention.py", path));
        assert!(!fits("net/mask.py", path));
        assert!(!fits("", path));
    }
}
