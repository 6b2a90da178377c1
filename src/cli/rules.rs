//! `anelint rules`: the list.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{Color, Failure, rule_files};
use crate::config::values;
use crate::report::output;
use crate::rules::{Rule, docs};
use crate::target::{Runtime, Target, Unit};

/// Arguments of `rules`.
#[derive(Debug, Args)]
pub struct RulesArguments {
    /// Only rules for these units: neural-engine, gpu, cpu
    #[arg(long, value_delimiter = ',', value_parser = values::unit, value_name = "UNIT")]
    target: Vec<Unit>,
    /// Only rules for this runtime: core-ai, core-ml, onnxruntime
    #[arg(long, value_parser = values::runtime, value_name = "RUNTIME")]
    runtime: Option<Runtime>,
    /// Output format
    #[arg(long, alias = "output-format", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The reference as Markdown, with links to the page of each rule
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// Rule files of your own
    #[arg(long, value_name = "GLOB")]
    rules: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Serialize)]
struct Listed<'a> {
    id: &'a str,
    name: &'a str,
    title: &'a str,
    severity: &'static str,
    category: &'static str,
    units: Vec<&'a str>,
    effect: &'static str,
    default: bool,
    preview: bool,
}

#[derive(Serialize)]
struct List<'a> {
    version: u32,
    rules: Vec<Listed<'a>>,
}

/// Runs the subcommand.
pub fn run(arguments: RulesArguments, color: Color) -> Result<ExitCode, Failure> {
    let (set, _) = rule_files::load(&arguments.rules)?;
    let rules: Vec<&Rule> = set
        .rules()
        .iter()
        .filter(|rule| {
            let units_asked: &[Unit] =
                if arguments.target.is_empty() { Unit::ALL } else { &arguments.target };
            let runtimes = match &arguments.runtime {
                Some(runtime) => std::slice::from_ref(runtime),
                None => Runtime::ALL,
            };
            units_asked.iter().any(|&unit| {
                runtimes.iter().any(|&runtime| {
                    rule.holds_for(&Target { unit, ..Target::default_for(runtime) })
                })
            })
        })
        .collect();
    let text = match arguments.format {
        _ if arguments.markdown => docs::reference(&rules, "rules"),
        Format::Text => text(&rules, color.on_stdout()),
        Format::Json => json(&rules)?,
    };
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The units that a rule is about: the Neural Engine unless it says otherwise.
fn units(rule: &Rule) -> Vec<&str> {
    let named: Vec<&str> = rule.raw().target.unit.iter().map(|unit| unit.as_str()).collect();
    if named.is_empty() { vec![Unit::NeuralEngine.name()] } else { named }
}

fn text(rules: &[&Rule], color: bool) -> String {
    let (bold, reset) = if color { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let width = rules.iter().map(|rule| rule.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for rule in rules {
        let mut state = Vec::new();
        if !rule.default_on() {
            state.push("off unless selected");
        }
        if rule.preview() {
            state.push("behind --preview");
        }
        let state =
            if state.is_empty() { String::new() } else { format!(" ({})", state.join(", ")) };
        text.push_str(&format!(
            "{bold}{}{reset}  {:width$}  {:7}  {:11}  {}{state}\n",
            rule.id(),
            rule.name(),
            rule.severity().name(),
            rule.category().name(),
            rule.title()
        ));
    }
    text
}

fn json(rules: &[&Rule]) -> Result<String, Failure> {
    let list = List {
        version: 1,
        rules: rules
            .iter()
            .map(|rule| Listed {
                id: rule.id(),
                name: rule.name(),
                title: rule.title(),
                severity: rule.severity().name(),
                category: rule.category().name(),
                units: units(rule),
                effect: rule.effect().name(),
                default: rule.default_on(),
                preview: rule.preview(),
            })
            .collect(),
    };
    serde_json::to_string_pretty(&list)
        .map(|text| text + "\n")
        .map_err(|error| Failure::new(error.to_string()))
}
