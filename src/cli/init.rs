//! `anelint init`: a commented config file, made after a look at the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::target::working_folder;
use super::{Failure, walk};
use crate::config::Finder;
use crate::report::output;

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// Folder to look at and to write the file into
    #[arg(default_value = ".", value_name = "FOLDER")]
    folder: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Print the file in place of writing it
    #[arg(long)]
    stdout: bool,
}

/// What each call in a script exports.
const EXPORTS: &[(&str, &str)] = &[
    ("torch.export.save(", "saves .pt2"),
    ("torch.export.export(", "runs torch.export"),
    ("coreai_torch", "converts to Core AI"),
    ("save_asset(", "saves .aimodel"),
    ("ct.convert(", "converts to Core ML"),
    ("coremltools.convert(", "converts to Core ML"),
    ("torch.onnx.export(", "saves .onnx"),
];

/// Most models that get a table of their own.
const MAX_MODELS: usize = 12;
/// Most Python files that are looked into, and their size.
const MAX_SCRIPTS: usize = 20_000;
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

/// A script that exports.
struct Script {
    path: String,
    does: Vec<&'static str>,
    text: String,
}

/// Runs the subcommand.
pub fn run(arguments: InitArguments) -> Result<ExitCode, Failure> {
    let working_folder = working_folder()?;
    if !arguments.folder.is_dir() {
        return Err(Failure::new(format!("{}: no such folder", arguments.folder.display()))
            .help("`anelint init FOLDER` writes anelint.toml into a folder that is there"));
    }
    let path = arguments.folder.join("anelint.toml");
    let shown = path.strip_prefix(".").unwrap_or(&path).display().to_string();
    if !arguments.stdout && !arguments.force {
        if path.exists() {
            return Err(Failure::new(format!("{shown} is there already"))
                .help("--force writes over it, --stdout prints what would be written"));
        }
        let folder = crate::check::absolute(&arguments.folder, &working_folder);
        let project = folder.join("pyproject.toml");
        if project.is_file() && Finder::fixed(&folder, &project).is_ok() {
            return Err(Failure::new("pyproject.toml has a table [tool.anelint] already")
                .help("anelint.toml would hide it; --force writes it all the same"));
        }
    }
    let models = models(&arguments.folder);
    let scripts = scripts(&arguments.folder);
    let text = config(&models, &scripts);
    if arguments.stdout {
        output::to_stdout(text.as_bytes())
            .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::to_file(&path, text.as_bytes())
        .map_err(|error| Failure::new(format!("{shown} cannot be written: {error}")))?;
    let count = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    output::to_stderr(&format!(
        "{shown}: written after a look at {} and {}\n",
        count(models.len(), "model graph"),
        count(scripts.len(), "export script")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Models below a folder, relative to it.
fn models(folder: &Path) -> Vec<PathBuf> {
    let found = walk::find(&[folder.to_owned()], &|_: &Path| false, false);
    let models = found.inputs.into_iter().filter(|input| !input.doubtful);
    models
        .map(|input| input.path.strip_prefix(folder).map(Path::to_owned).unwrap_or(input.path))
        .collect()
}

/// Scripts below a folder that export models.
fn scripts(folder: &Path) -> Vec<Script> {
    let skipped = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.file_type().is_dir()
            && entry.depth() > 0
            && (name.starts_with('.')
                || matches!(
                    &*name,
                    "node_modules" | "site-packages" | "__pycache__" | "venv" | "target"
                )
                || entry.path().join("pyvenv.cfg").is_file())
    };
    let files = walkdir::WalkDir::new(folder)
        .max_depth(12)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !skipped(entry))
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| entry.path().extension().is_some_and(|suffix| suffix == "py"))
        .take(MAX_SCRIPTS);
    files
        .filter_map(|entry| {
            if entry.metadata().ok()?.len() > MAX_SCRIPT_BYTES {
                return None;
            }
            let text = std::fs::read_to_string(entry.path()).ok()?;
            let mut does: Vec<&str> = Vec::new();
            for (_, words) in EXPORTS.iter().filter(|(call, _)| text.contains(call)) {
                if !does.contains(words) {
                    does.push(*words);
                }
            }
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let path = path.to_string_lossy().replace('\\', "/");
            (!does.is_empty()).then_some(Script { path, does, text })
        })
        .collect()
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The script that makes a model: the one that names its file, or else the only one.
fn maker<'s>(model: &Path, scripts: &'s [Script]) -> Option<&'s Script> {
    let name = model.file_name()?.to_string_lossy().into_owned();
    let mut naming = scripts.iter().filter(|script| script.text.contains(&name));
    match (naming.next(), naming.next(), scripts) {
        (Some(one), None, _) | (None, _, [one]) => Some(one),
        _ => None,
    }
}

fn config(models: &[PathBuf], scripts: &[Script]) -> String {
    let mut text = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(
        text,
        "# Settings of anelint. `anelint config` shows what is in force, docs/configuration.md has every \
         key.\n# Paths are relative to this file. Environment variables and flags go over it.\n\n\
         # Which anelint, and with it which rules.\n# required-version = \">={version}\"\n\n\
         # What the models are checked against: neural-engine, gpu, cpu; one or a list.\n\
         target = \"neural-engine\"\n\
         # The chip (m1…m6, a14…a19) and the OS that they must run on; limits differ.\n\
         # chip = \"m4\"\n# os = \"27\"\n\n\
         # Lowest severity that makes the exit code 1: error, warning, advice, never.\n\
         fail-on = \"error\"\n\
         # Most Neural Engine regions that a function may fall into; ANE010 is an error above it.\n\
         # max-regions = 4\n\n\
         # Rules to leave out, by id, name, category or prefix; rules of your own.\n\
         # ignore = [\"ANE022\"]\n# rules = [\"lint/*.yaml\"]\n\
         # Severities of your own.\n# severity = {{ANE017 = \"advice\"}}\n\n\
         # Findings that are known and accepted for now: `anelint check --update-baseline` makes the \
         file.\n# baseline = \"anelint-baseline.jsonl\"\n\n\
         # Paths to leave out when folders are walked.\n# exclude = [\"build/old\"]\n"
    );
    text.push_str(
        "# Where your Python source lies, if models are linted elsewhere than exported.\n",
    );
    text.push_str("# [source]\n# roots = [\"src\"]\n# path-map = {\"/build/project\" = \".\"}\n\n");
    if !scripts.is_empty() {
        text.push_str("# Scripts here that export:\n");
        for script in scripts.iter().take(MAX_MODELS) {
            let _ = writeln!(text, "#   {}: {}", script.path, script.does.join(", "));
        }
        text.push('\n');
    }
    let mut formats: BTreeMap<String, usize> = BTreeMap::new();
    for model in models {
        let suffix = model.extension().unwrap_or_default().to_string_lossy().into_owned();
        *formats.entry(suffix).or_default() += 1;
    }
    let counts: Vec<String> =
        formats.iter().map(|(suffix, count)| format!("{count} .{suffix}")).collect();
    match models.len() {
        0 => text.push_str(
            "# No model graph was found. Name yours, and `anelint check` will say how to make it:\n\
             # [[model]]\n# name = \"decoder\"\n# graph = \"build/decoder.pt2\"\n\
             # export = \"python export.py\"\n",
        ),
        many if many > MAX_MODELS => {
            let _ = writeln!(
                text,
                "# Model graphs found: {}. Without [[model]] tables `anelint check` looks for all of \
                 them.\n# [[model]]\n# name = {}\n# graph = {}\n# max-regions = 1",
                counts.join(", "),
                quoted(&stem(models.first().map_or(Path::new(""), PathBuf::as_path))),
                quoted(&shown(models.first().map_or(Path::new(""), PathBuf::as_path))),
            );
        }
        _ => {
            let _ = writeln!(
                text,
                "# Model graphs found: {}. `anelint check` without paths checks those that are named \
                 here.",
                counts.join(", ")
            );
            text.push_str(&tables(models, scripts));
        }
    }
    text.push_str(
        "\n# Settings for some paths:\n# [[override]]\n# paths = \"build/gpu/**\"\n# target = \"gpu\"\n\n\
         # Findings to keep silent about, where a comment in the source (`# anelint: ignore[RULE] \
         reason`)\n# does not serve:\n# [[suppress]]\n# rule = \"ANE010\"\n# module = \"encoder.**\"\n\
         # reason = \"measured: 0.2 ms\"\n# until = 2027-03-31\n",
    );
    text
}

fn tables(models: &[PathBuf], scripts: &[Script]) -> String {
    let mut text = String::new();
    let mut names = BTreeSet::new();
    for model in models {
        let mut name = stem(model);
        if !names.insert(name.clone()) {
            let suffix = model.extension().unwrap_or_default().to_string_lossy();
            name = format!("{name}-{suffix}");
            let mut count = 2;
            while !names.insert(name.clone()) {
                name = format!("{}-{suffix}-{count}", stem(model));
                count += 1;
            }
        }
        let _ = writeln!(
            text,
            "[[model]]\nname = {}\ngraph = {}",
            quoted(&name),
            quoted(&shown(model))
        );
        match maker(model, scripts) {
            Some(script) => {
                let _ = writeln!(text, "export = {}", quoted(&format!("python {}", script.path)));
            }
            None => text.push_str("# export = \"python export.py\"\n"),
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}
