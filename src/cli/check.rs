//! `anelint check`: the main job.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use rayon::prelude::*;

use super::baseline::{self, Wish};
use super::formats::{Format, FormatArguments};
use super::plan::{Plan, Planner};
use super::progress::Progress;
use super::target::{TargetArguments, flag, working_folder};
use super::walk::{self, Found, Input};
use super::{Color, Failure, fix, rule_files};
use crate::check::{CheckError, Checker, absolute};
use crate::config::{FailOn, Finder, Given, Level, Origin, PathGlobs, Settings, values};
use crate::findings::Finding;
use crate::findings::suppress::{Judge, Judged};
use crate::readers::ReadErrorKind;
use crate::report::{CheckReport, InputError, InputReport, Note, TextOptions, output};
use crate::rules::upkeep::{STALE_BASELINE, Upkeep};
use crate::rules::{RuleSet, Sureness};

/// Flags that say which rules run and how bad their findings are.
#[derive(Debug, Args)]
pub struct RuleArguments {
    /// Rules to run: ids, names, categories or id prefixes [default: all that are on]
    #[arg(long, value_delimiter = ',', value_name = "RULES", help_heading = "Rules")]
    pub select: Vec<String>,
    /// Rules to run besides
    #[arg(long, value_delimiter = ',', value_name = "RULES", help_heading = "Rules")]
    pub extend_select: Vec<String>,
    /// Rules to leave out
    #[arg(long, value_delimiter = ',', value_name = "RULES", help_heading = "Rules")]
    pub ignore: Vec<String>,
    /// Run rules that are still on trial
    #[arg(long, help_heading = "Rules")]
    pub preview: bool,
    /// Rule files of your own
    #[arg(long, value_name = "GLOB", help_heading = "Rules")]
    pub rules: Vec<String>,
    /// Severity of your own for rules: error, warning, advice or off
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = values::severity_of,
        value_name = "RULES=SEVERITY",
        help_heading = "Rules"
    )]
    pub severity: Vec<(String, Level)>,
    /// Most regions that a function may fall into
    #[arg(long, value_name = "N", help_heading = "Rules")]
    pub max_regions: Option<u32>,
    /// Lowest sureness of a finding's evidence: official, measured, source, reported,
    /// reverse-engineered, folklore
    #[arg(
        long,
        value_parser = values::sureness,
        value_name = "SURENESS",
        help_heading = "Rules"
    )]
    pub min_sureness: Option<Sureness>,
    /// Lowest severity that makes the exit code 1: error, warning, advice, never [default: error]
    #[arg(long, value_parser = values::fail_on, value_name = "SEVERITY", help_heading = "Rules")]
    pub fail_on: Option<FailOn>,
}

impl RuleArguments {
    /// What the flags set, those of the target included.
    pub fn settings(&self, target: &TargetArguments) -> Settings {
        let selectors = |list: &[String], name: &'static str| -> Vec<Given<String>> {
            let own = |value: &String| Given { value: value.clone(), origin: Origin::Flag(name) };
            list.iter().map(own).collect()
        };
        Settings {
            select: (!self.select.is_empty()).then(|| selectors(&self.select, "--select")),
            extend_select: selectors(&self.extend_select, "--extend-select"),
            ignore: selectors(&self.ignore, "--ignore"),
            preview: flag(&self.preview.then_some(true), "--preview"),
            severity: self
                .severity
                .iter()
                .map(|own| Given { value: own.clone(), origin: Origin::Flag("--severity") })
                .collect(),
            rules: self.rules.iter().map(|glob| rule_files::flag(glob)).collect(),
            max_regions: flag(&self.max_regions, "--max-regions"),
            fail_on: flag(&self.fail_on, "--fail-on"),
            min_sureness: flag(&self.min_sureness, "--min-sureness"),
            ..target.settings()
        }
    }
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Model graphs, and folders to look for them in [default: the models that the config file names,
    /// or else all below the working folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    target: TargetArguments,

    #[command(flatten)]
    rules: RuleArguments,
    /// Exit with 0 in spite of findings
    #[arg(long, help_heading = "Rules")]
    exit_zero: bool,

    /// File of findings that are known and accepted for now
    #[arg(long, value_name = "FILE", help_heading = "Baseline")]
    baseline: Option<PathBuf>,
    /// Make the baseline of what is found now; take away what no longer occurs if there is one
    #[arg(long, conflicts_with = "prune_baseline", help_heading = "Baseline")]
    update_baseline: bool,
    /// Take away entries of the baseline that no longer occur
    #[arg(long, help_heading = "Baseline")]
    prune_baseline: bool,

    #[command(flatten)]
    fixes: fix::FixArguments,

    #[command(flatten)]
    formats: FormatArguments,
    /// Count the findings of each rule in place of showing them
    #[arg(long, help_heading = "Output")]
    statistics: bool,
    /// Findings only
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// More about each finding: every node, deeper frames, evidence, notes
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,

    /// Globs of paths to leave out when folders are walked
    #[arg(long, value_name = "GLOB", help_heading = "Files")]
    exclude: Vec<String>,
    /// Leave excluded paths out even if they are named
    #[arg(long, help_heading = "Files")]
    force_exclude: bool,
    /// No model below a path is no failure, nor are Git LFS pointers alone
    #[arg(long, help_heading = "Files")]
    allow_empty: bool,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Files")]
    jobs: Option<usize>,
}

/// Stack of a worker: tree-sitter and serde recurse a little, and the default of a thread is small.
const STACK_BYTES: usize = 8 << 20;
/// Most threads: each has a stack of its own.
const MOST_JOBS: usize = 256;

impl CheckArguments {
    /// The paths as given.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The same check of other paths.
    pub fn with_paths(self, paths: Vec<PathBuf>) -> CheckArguments {
        CheckArguments { paths, ..self }
    }

    /// Finds config files as the flags have it.
    ///
    /// # Errors
    /// What is wrong with the file that they name.
    pub fn finder(&self, working_folder: &Path) -> Result<Finder, Failure> {
        self.target.finder(working_folder)
    }
}

/// Runs the subcommand.
pub fn run(arguments: CheckArguments, color: Color) -> Result<ExitCode, Failure> {
    arguments.formats.check()?;
    let working_folder = working_folder()?;
    let mut planner = Planner::new(
        &arguments.target,
        arguments.rules.settings(&arguments.target),
        &working_folder,
    )?;
    let found = inputs(&arguments, &planner, &working_folder)?;
    let mut plans = Vec::new();
    for input in &found.inputs {
        plans.push(planner.plan(&input.path)?);
    }
    if plans.is_empty() {
        // Nothing to check: what is wrong with the settings is said all the same.
        planner.plan(&working_folder.join("model"))?;
    }
    let checkers = plans
        .iter()
        .map(|plan| {
            let (set, prepared) = planner.rules(plan)?;
            Checker::new(set, prepared, plan.options.clone())
                .map(|checker| checker.with_maps(arguments.formats.has(Format::Html)))
                .map_err(|error| Failure::new(error.to_string()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let outcomes = check_all(&checkers, &found.inputs, &arguments)?;

    let mut report = CheckReport {
        working_folder: working_folder.clone(),
        statistics: arguments.statistics,
        ..CheckReport::default()
    };
    let mut readable = 0;
    let mut only_pointers = true;
    // Which plan each report of an input came of.
    let mut plan_of = Vec::new();
    for (at, (input, outcome)) in found.inputs.iter().zip(outcomes).enumerate() {
        let path = shown(&input.path);
        match outcome {
            Ok(mut reports) => {
                readable += 1;
                plan_of.extend(reports.iter().map(|_| at));
                let fail_at = match plans.get(at).map(|plan| plan.in_force.fail_on()) {
                    Some(FailOn::Severity(least)) => Some(least),
                    _ => None,
                };
                reports.iter_mut().for_each(|own| own.fail_at = fail_at);
                report.inputs.extend(reports);
            }
            Err(_) if input.doubtful && !input.named => continue,
            Err(error) => match (error.kind(), input.named) {
                (ReadErrorKind::LfsPointer, _) | (ReadErrorKind::OutOfScope, false) => {
                    only_pointers &= error.kind() == ReadErrorKind::LfsPointer;
                    report.skipped.push(Note { path, message: error.message() });
                    continue;
                }
                _ => report.errors.push(InputError {
                    path,
                    message: error.message(),
                    offset: error.offset(),
                }),
            },
        }
        only_pointers = false;
    }
    let run = Run { plans: &plans, checkers: &checkers, plan_of: &plan_of, planner: &planner };
    let written = run.baselines(&mut report, &arguments)?;
    run.upkeep(&mut report);
    for (path, message) in found.unreadable {
        report.errors.push(InputError { path: shown(&path), message, offset: None });
    }
    let mut missing = false;
    for path in &found.empty {
        missing |= !arguments.allow_empty;
        report.skipped.push(Note { path: shown(path), message: "no model graph below it".into() });
    }
    report.errors.sort_by(|a, b| a.path.cmp(&b.path));

    let folders =
        fix::folders(&report.working_folder, plans.iter().map(|plan| &plan.options.source));
    if let Some(code) = fix::run(&mut report, &arguments.fixes, folders, |_| true)? {
        return Ok(code);
    }
    // By what remains: a finding that was mended is none.
    let failing = run.failing(&report);
    let text = TextOptions { color: false, quiet: arguments.quiet, verbose: arguments.verbose };
    let sets: Vec<&RuleSet> = checkers.iter().map(Checker::rules).collect();
    arguments.formats.write(&report, &sets, text, color)?;
    if !arguments.quiet {
        written.iter().for_each(|words| output::to_stderr(&format!("{words}\n")));
    }

    // A pointer to a model is a note beside other models, and a failure where it was all there was.
    let named_pointers_only = !arguments.allow_empty
        && readable == 0
        && only_pointers
        && !report.skipped.is_empty()
        && found.inputs.iter().any(|input| input.named);
    // Exit code 2 never comes without a word, not even where the format has no place for it.
    let silent = arguments.quiet || arguments.formats.has(Format::Concise);
    if silent && (missing || named_pointers_only) {
        for note in &report.skipped {
            output::to_stderr(&format!("{}: {}\n", note.path, note.message));
        }
    }
    let failed = !report.errors.is_empty() || missing || named_pointers_only;
    Ok(ExitCode::from(match (failed, failing && !arguments.exit_zero) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }))
}

/// A run whose inputs have been checked.
struct Run<'a> {
    plans: &'a [Plan],
    checkers: &'a [Checker<'a>],
    /// For each report, the position of its plan and checker.
    plan_of: &'a [usize],
    planner: &'a Planner<'a>,
}

impl Run<'_> {
    /// Holds findings against the baselines, and writes these where wished.
    fn baselines(
        &self,
        report: &mut CheckReport,
        arguments: &CheckArguments,
    ) -> Result<Vec<String>, Failure> {
        let wish = match (arguments.update_baseline, arguments.prune_baseline) {
            (true, _) => Wish::Update,
            (false, true) => Wish::Prune,
            (false, false) => Wish::Use,
        };
        let folder = report.working_folder.clone();
        let mut inputs = Vec::new();
        for (report, at) in report.inputs.iter_mut().zip(self.plan_of) {
            let (Some(plan), Some(checker)) = (self.plans.get(*at), self.checkers.get(*at)) else {
                continue;
            };
            inputs.push(baseline::Checked {
                ran: checker.ran(report.target).into_iter().collect(),
                told: checker.upkeep_severity(STALE_BASELINE).is_some(),
                in_force: &plan.in_force,
                report,
            });
        }
        baseline::apply(&mut inputs, arguments.baseline.as_deref(), wish, &folder)
    }

    /// Adds what is to be said of suppressions and baselines themselves.
    fn upkeep(&self, report: &mut CheckReport) {
        let mut judged = Vec::new();
        for (input, at) in report.inputs.iter().zip(self.plan_of) {
            let Some((plan, (set, _))) =
                self.plans.get(*at).and_then(|plan| Some((plan, self.planner.rules(plan).ok()?)))
            else {
                return;
            };
            judged.push(Judged { uses: &input.uses, config: plan.in_force.file.as_ref(), set });
        }
        let folder = report.working_folder.clone();
        let checked: BTreeSet<PathBuf> =
            report.inputs.iter().map(|input| absolute(Path::new(&input.path), &folder)).collect();
        let whole = |file: &crate::config::File| {
            let exclude = |path: &Path| file.excludes(path);
            let all = walk::find(std::slice::from_ref(&file.folder), &exclude, false);
            all.inputs.iter().all(|input| input.doubtful || checked.contains(&input.path))
        };
        let judge = Judge { inputs: &judged, today: self.planner.today(), whole: &whole };
        let found = judge.findings();
        for (at, finding) in found {
            if let Some(input) = report.inputs.get_mut(at) {
                input.add(finding);
            }
        }
        for (input, at) in report.inputs.iter_mut().zip(self.plan_of) {
            let Some(checker) = self.checkers.get(*at) else { continue };
            input.findings.retain_mut(|finding| {
                let Some(own) = Upkeep::find(&finding.rule) else { return true };
                let severity = checker.upkeep_severity(own);
                finding.severity = severity.unwrap_or(finding.severity);
                severity.is_some()
            });
        }
    }

    /// Whether a finding is as bad as the settings of its input forbid.
    fn failing(&self, report: &CheckReport) -> bool {
        report.inputs.iter().zip(self.plan_of).any(|(input, at)| {
            let fail_on = self.plans.get(*at).map(|plan| plan.in_force.fail_on());
            match fail_on {
                Some(FailOn::Severity(least)) => {
                    let open = |finding: &&Finding| !finding.fixed;
                    input.findings.iter().filter(open).any(|finding| finding.severity >= least)
                }
                Some(FailOn::Never) | None => false,
            }
        })
    }
}

/// The models to check.
fn inputs(
    arguments: &CheckArguments,
    planner: &Planner<'_>,
    working_folder: &Path,
) -> Result<Found, Failure> {
    let exclude =
        PathGlobs::new(arguments.exclude.iter().map(String::as_str)).map_err(|(at, message)| {
            let pattern = arguments.exclude.get(at).map_or("", String::as_str);
            Failure::new(format!("--exclude {pattern}: {message}"))
        })?;
    let mut paths = arguments.paths.clone();
    let mut gone = Vec::new();
    if paths.is_empty() {
        let file = planner.finder().of(&working_folder.join("model"))?;
        for model in file.iter().flat_map(|file| &file.models) {
            let path = model.graph.strip_prefix(working_folder).unwrap_or(&model.graph).to_owned();
            if path.exists() {
                paths.push(path);
                continue;
            }
            let again = match &model.export {
                Some(command) => format!("make it with: {command}"),
                None => "export it, or take the table out of the config file".to_owned(),
            };
            let message =
                format!("no such file, though [[model]] `{}` names it; {again}", model.name);
            gone.push((path, message));
        }
        if paths.is_empty() && gone.is_empty() {
            paths.push(PathBuf::from("."));
        }
    }
    let failure = RefCell::new(None);
    let mut found = walk::find(
        &paths,
        &|path| {
            let path = absolute(path, working_folder);
            if exclude.matches(&path, working_folder) {
                return true;
            }
            match planner.finder().of(path.parent().unwrap_or(&path)) {
                Ok(file) => file.is_some_and(|file| file.excludes(&path)),
                Err(error) => {
                    failure.borrow_mut().get_or_insert(error);
                    false
                }
            }
        },
        arguments.force_exclude,
    );
    match failure.into_inner() {
        Some(error) => Err(error.into()),
        None => {
            found.unreadable.extend(gone);
            Ok(found)
        }
    }
}

/// Checks inputs in parallel; the outcomes are in the order of the inputs.
fn check_all(
    checkers: &[Checker<'_>],
    inputs: &[Input],
    arguments: &CheckArguments,
) -> Result<Vec<Result<Vec<InputReport>, CheckError>>, Failure> {
    // More threads than inputs have nothing to do.
    let jobs = arguments.jobs.map_or(0, |jobs| jobs.clamp(1, inputs.len().clamp(1, MOST_JOBS)));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let progress = Progress::new(inputs.len(), !arguments.quiet);
    let counter = progress.counter();
    Ok(pool.install(|| {
        inputs
            .par_iter()
            .zip(checkers)
            .map_with(counter, |counter, (input, checker)| {
                let outcome = checker.check(&input.path, &shown(&input.path));
                counter.count();
                outcome
            })
            .collect()
    }))
}

/// A path as reports show it: forward slashes.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '\\' { text.replace('\\', "/") } else { text.into_owned() }
}
