//! `anelint explain RULE`: what a rule file says, for people.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;

use super::{Color, Failure, rule_files};
use crate::report::output;
use crate::rules::upkeep::{CATEGORY, Upkeep};
use crate::rules::{Effect, Rule};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Id or name of a rule
    rule: String,
    /// Rule files of your own
    #[arg(long, value_name = "GLOB")]
    rules: Vec<String>,
}

/// Runs the subcommand.
pub fn run(arguments: ExplainArguments, color: Color) -> Result<ExitCode, Failure> {
    let (set, _) = rule_files::load(&arguments.rules)?;
    let wanted = arguments.rule.trim();
    let by_id = wanted.to_ascii_uppercase();
    let by_name = wanted.to_ascii_lowercase();
    let Some(rule) = set.find(wanted).or_else(|| set.find(&by_id)).or_else(|| set.find(&by_name))
    else {
        if let Some(own) = Upkeep::find(wanted) {
            output::to_stdout(upkeep(own).as_bytes())
                .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
            return Ok(ExitCode::SUCCESS);
        }
        let nearest = set.suggest(wanted);
        let failure = Failure::new(format!("no rule is called `{wanted}`"));
        return Err(match nearest {
            Some(name) => failure.help(format!("did you mean `{name}`?")),
            None => failure.help("`anelint rules` lists the rules"),
        });
    };
    output::to_stdout(explanation(rule, color.on_stdout()).as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The text of what is said of suppressions and baselines themselves.
fn upkeep(own: &Upkeep) -> String {
    format!(
        "{} {}: {}\n\n{}, {}\n\n{}\n\ndocs/suppressions.md\n",
        own.id, own.name, own.title, own.severity, CATEGORY, own.why
    )
}

/// The text of a rule.
fn explanation(rule: &Rule, color: bool) -> String {
    let (bold, reset) = if color { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(&format!("{bold}{} {}{reset}: {}", rule.id(), rule.name(), rule.title()));
    line("");
    let off = match rule.effect() {
        Effect::OffUnit => ", takes the op off the unit",
        Effect::None => "",
    };
    let mut state = String::new();
    if !rule.default_on() {
        let _ = write!(state, ", off unless selected");
    }
    if rule.preview() {
        let _ = write!(state, ", behind --preview");
    }
    line(&format!("{} ({}){off}{state}", rule.severity(), rule.category()));
    let section = |name: &str| format!("{bold}{name}{reset}");
    line("");
    line(&section("Why"));
    indented(rule.why(), &mut line);
    if !rule.help_template().is_empty() {
        line("");
        line(&section("What to do"));
        indented(rule.help_template(), &mut line);
    }
    if let Some((bad, good)) = rule.example() {
        line("");
        line(&section("Instead of"));
        indented(bad, &mut line);
        line("");
        line(&section("write"));
        indented(good, &mut line);
    }
    if let Some(gate) = rule.gate() {
        line("");
        line(&section("Then, on a device"));
        indented(gate, &mut line);
    }
    line("");
    line(&section("Evidence"));
    for evidence in rule.evidence() {
        let id = evidence.id.as_deref().map(|id| format!("{id}: ")).unwrap_or_default();
        let only = match evidence.runtime.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<&str> = evidence.runtime.iter().map(|name| name.as_str()).collect();
                format!(", for {}", names.join(", "))
            }
        };
        line(&format!("  {id}{} ({}{only})", evidence.source.trim(), evidence.sureness));
    }
    if !rule.links().is_empty() {
        line("");
        line(&section("See"));
        for link in rule.links() {
            line(&format!("  {link}"));
        }
    }
    text
}

fn indented(text: &str, line: &mut impl FnMut(&str)) {
    for own in text.trim_end().lines() {
        line(&format!("  {own}"));
    }
}
