//! `anelint config`: what is in force for a model, and who set it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Failure;
use super::check::RuleArguments;
use super::plan::Planner;
use super::target::{TargetArguments, working_folder};
use crate::check::absolute;
use crate::config::{Defaults, File, Given, InForce, Origin};
use crate::findings::source::shown_path;
use crate::report::{os_text, output};

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// A model, or a folder that models lie in
    #[arg(default_value = ".", value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    rules: RuleArguments,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A setting as shown.
#[derive(Debug, Serialize)]
struct Setting {
    key: String,
    value: serde_json::Value,
    from: String,
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    path: &'a str,
    file: Option<String>,
    model: Option<&'a str>,
    settings: Vec<Setting>,
}

/// Runs the subcommand.
pub fn run(arguments: ConfigArguments) -> Result<ExitCode, Failure> {
    let folder = working_folder()?;
    let path = absolute(&arguments.path, &folder);
    // A folder stands for the models in it.
    let asked = if path.is_dir() { path.join("*") } else { path };
    let flags = arguments.rules.settings(&arguments.target);
    let mut planner = Planner::new(&arguments.target, flags, &folder)?;
    let plan = planner.plan(&asked)?;
    let in_force = &plan.in_force;
    let file = in_force.file.as_ref().map(|file| shown_path(&file.source.path, &folder));
    let shown = arguments.path.display().to_string();
    let settings = Shower { folder: &folder }.all(in_force);
    let text = match arguments.format {
        Format::Text => text(&shown, file.as_deref(), in_force, &settings),
        Format::Json => {
            let document = Document {
                version: 1,
                path: &shown,
                file,
                model: in_force.model.as_deref(),
                settings,
            };
            serde_json::to_string_pretty(&document)
                .map_err(|error| Failure::new(error.to_string()))?
                + "\n"
        }
    };
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn text(path: &str, file: Option<&str>, in_force: &InForce, settings: &[Setting]) -> String {
    let mut text = match file {
        Some(file) => format!("# {path}: settings in force; the config file is {file}\n"),
        None => format!("# {path}: settings in force; there is no config file above it\n"),
    };
    if let Some(name) = &in_force.model {
        text.push_str(&format!("# the [[model]] `{name}`\n"));
    }
    let lines: Vec<(String, &str)> = settings
        .iter()
        .map(|own| (format!("{} = {}", own.key, own.value), own.from.as_str()))
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0).min(60);
    for (line, from) in lines {
        text.push_str(&format!("{line:width$}  # {from}\n"));
    }
    text
}

struct Shower<'a> {
    folder: &'a Path,
}

impl Shower<'_> {
    fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::File(place) => {
                format!("{}:{}", shown_path(&place.source.path, self.folder), place.line())
            }
            Origin::Environment(name) => format!("environment, {name}"),
            Origin::Flag(name) => format!("command line, {name}"),
        }
    }

    fn one<T>(
        &self,
        key: &str,
        given: Option<&Given<T>>,
        default: impl Into<serde_json::Value>,
        value: impl Fn(&T) -> serde_json::Value,
    ) -> Setting {
        match given {
            Some(given) => Setting {
                key: key.to_owned(),
                value: value(&given.value),
                from: self.origin(&given.origin),
            },
            None => {
                Setting { key: key.to_owned(), value: default.into(), from: "default".to_owned() }
            }
        }
    }

    /// A list whose items may come from several places.
    fn list<T>(&self, key: &str, given: &[Given<T>], value: impl Fn(&T) -> String) -> Setting {
        let mut from: Vec<String> = Vec::new();
        for own in given.iter().map(|given| self.origin(&given.origin)) {
            if !from.contains(&own) {
                from.push(own);
            }
        }
        let values: Vec<String> = given.iter().map(|given| value(&given.value)).collect();
        let from = if from.is_empty() { "default".to_owned() } else { from.join("; ") };
        Setting { key: key.to_owned(), value: values.into(), from }
    }

    fn all(&self, in_force: &InForce) -> Vec<Setting> {
        let own = &in_force.settings;
        let text = |text: &String| text.clone();
        let default_units: Vec<&str> = Defaults::TARGET.iter().map(|unit| unit.name()).collect();
        let select = match &own.select {
            Some(select) => self.list("select", select, text),
            None => Setting {
                key: "select".to_owned(),
                value: "all that are on".into(),
                from: "default".to_owned(),
            },
        };
        let mut all = vec![
            self.one("target", own.target.as_ref(), default_units, |units| {
                units.iter().map(|unit| unit.name()).collect::<Vec<_>>().into()
            }),
            self.one("runtime", own.runtime.as_ref(), "by the format", |own| own.name().into()),
            self.one("chip", own.chip.as_ref(), "h16", |own| own.name().into()),
            self.one("os", own.os.as_ref(), "by the runtime", |own| os_text(*own).into()),
            select,
            self.list("extend-select", &own.extend_select, text),
            self.list("ignore", &own.ignore, text),
            self.one("preview", own.preview.as_ref(), false, |own| (*own).into()),
            self.list("severity", &own.severity, |(rules, level)| format!("{rules}={level}")),
            self.list("rules", &own.rules, |own| {
                let folder = shown_path(&own.folder, self.folder);
                Path::new(&folder).join(&own.pattern).display().to_string()
            }),
            self.one("max-regions", own.max_regions.as_ref(), "no limit", |own| (*own).into()),
            self.one("fail-on", own.fail_on.as_ref(), Defaults::FAIL_ON.to_string(), |own| {
                own.to_string().into()
            }),
            self.one("min-sureness", own.min_sureness.as_ref(), "folklore", |own| {
                own.name().into()
            }),
        ];
        if let Some(file) = &in_force.file {
            all.extend(self.of_file(file));
        }
        all
    }

    /// What only a config file sets.
    fn of_file(&self, file: &File) -> Vec<Setting> {
        let path = |path: &PathBuf| shown_path(path, self.folder);
        vec![
            self.one("required-version", file.required_version.as_ref(), "any", |own| {
                own.to_string().into()
            }),
            self.list("exclude", &file.exclude_patterns, String::clone),
            self.one("baseline", file.baseline.as_ref(), "none", |own| path(own).into()),
            self.one("require-reason", file.require_reason.as_ref(), false, |own| (*own).into()),
            self.list("source.roots", &file.source_roots, path),
            self.list("source.path-map", &file.path_maps, |(old, new)| {
                format!("{old}={}", path(new))
            }),
        ]
    }
}
