//! The terminal's door: arguments in, exit code out. One file a subcommand.
//!
//! Exit codes: 0 nothing at or above `--fail-on`, 1 findings, 2 the job could not be done.

mod baseline;
mod check;
mod completions;
mod confirm;
mod diff;
mod dump;
mod environment;
mod explain;
mod failure;
mod fix;
mod formats;
mod init;
mod models;
mod placement;
mod plan;
mod progress;
mod rule_files;
mod rule_test;
mod rules;
mod schema;
mod settings;
mod stats;
mod target;
mod walk;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

pub use failure::Failure;

/// Version of the program, and the day its rule set is of.
const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (rules of ", include_str!("../../rules/DATE"), ")");

/// The linter for on-device ML model graphs: what leaves the Neural Engine, and which line of Python
/// is to blame.
#[derive(Debug, Parser)]
#[command(name = "anelint", version = VERSION, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit code: 0 nothing at or above --fail-on, 1 findings, 2 the job could \
                        not be done.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Colours: on a terminal, always or never
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check model graphs and point at the lines of Python that made them
    Check(check::CheckArguments),
    /// Check the models of the config file that a change touches, for hooks
    Models(models::ModelsArguments),
    /// Say what a rule is about, why it matters and what to do
    #[command(alias = "rule")]
    Explain(explain::ExplainArguments),
    /// List the rules
    Rules(rules::RulesArguments),
    /// Try rule files on the models that they must and must not fire on
    Test(rule_test::TestArguments),
    /// Print a JSON schema: of rule files, of the config file, or of a report
    Schema(schema::SchemaArguments),
    /// Show where a model's ops run, in how many regions, and what to fix first
    Placement(placement::PlacementArguments),
    /// Say why one op is on the unit or off it
    Why(placement::WhyArguments),
    /// Compare two versions of a model: findings, regions, ops, parameters, cost, contract
    Diff(diff::DiffArguments),
    /// Count ops, parameters, bytes, operations and memory
    Stats(stats::StatsArguments),
    /// Print a model's canonical graph
    Dump(dump::DumpArguments),
    /// Write a commented config file after a look at the repository
    Init(init::InitArguments),
    /// Show the settings in force for a model, and who set them
    Config(settings::ConfigArguments),
    /// Print a script that completes the arguments in a shell
    Completions(completions::CompletionsArguments),
    /// Print the manual page
    Man(completions::ManArguments),
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether what goes to standard output is coloured.
    fn on_stdout(self) -> bool {
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
            }
        }
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; clap knows where each goes. A reader that has gone away
            // is none either.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match arguments.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    crate::check::install_panic_hook();
    let color = arguments.color;
    let outcome = match arguments.command {
        Command::Check(own) => check::run(own, color),
        Command::Explain(own) => explain::run(own, color),
        Command::Rules(own) => rules::run(own, color),
        Command::Test(own) => rule_test::run(own, color),
        Command::Schema(own) => schema::run(own),
        Command::Placement(own) => placement::run(own),
        Command::Why(own) => placement::why(own),
        Command::Diff(own) => diff::run(own),
        Command::Stats(own) => stats::run(own),
        Command::Dump(own) => dump::run(own),
        Command::Init(own) => init::run(own),
        Command::Config(own) => settings::run(own),
        Command::Models(own) => models::run(own, color),
        Command::Completions(own) => completions::completions(own),
        Command::Man(own) => completions::man(own),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            failure.print();
            ExitCode::from(2)
        }
    }
}
