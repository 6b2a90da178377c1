//! `anelint test`: rule files against the models that their authors say they must and must not fire on.
//!
//! Cases stand in the rule file, under `tests`, or lie beside it: models called after the rule, with
//! `bad` or `good` in the name (`tanh-gelu.bad.pt2`, `LINT001.good.aimodel`).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{Color, Failure, rule_files};
use crate::check::{CheckOptions, Checker, absolute};
use crate::findings::source::SourceOptions;
use crate::findings::{Finding, PreparedRules};
use crate::report::output;
use crate::rules::{Rule, RuleSet, Selection};
use crate::target::{Runtime, Unit};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Rule files, and folders to look for them in
    #[arg(default_value = ".", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Outcomes that are not ok only
    #[arg(short, long)]
    quiet: bool,
}

/// What a case says must be found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Promise {
    /// Findings at these places (`FILE:LINE`), and no others.
    Places(Vec<String>),
    /// At least one finding, wherever.
    Some,
}

/// One model to try a rule on.
#[derive(Debug)]
struct Case {
    model: PathBuf,
    unit: Option<Unit>,
    runtime: Option<Runtime>,
    promise: Promise,
}

/// How a promise came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Ok,
    /// Promised, not found.
    Missed,
    /// Found, not promised.
    FalseAlarm,
    /// Found in the file that was promised, on another line.
    Moved,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Ok, Outcome::Missed, Outcome::FalseAlarm, Outcome::Moved];

    fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Missed => "missed",
            Outcome::FalseAlarm => "false alarm",
            Outcome::Moved => "moved",
        }
    }
}

/// Runs the subcommand.
pub fn run(arguments: TestArguments, color: Color) -> Result<ExitCode, Failure> {
    let files = rule_files_in(&arguments.paths)?;
    if files.is_empty() {
        return Err(Failure::new("no rule file found")
            .help("name a rule file, or a folder that holds some (*.yaml with an `id`)"));
    }
    let mut text = String::new();
    let mut tally = [0usize; 4];
    let (mut rules, mut bare) = (0, 0);
    for file in &files {
        let globs = [file.to_string_lossy().into_owned()];
        let (set, prepared) = rule_files::load(&globs)?;
        let Some(rule) = set.rules().iter().find(|rule| rule.file() == file) else { continue };
        rules += 1;
        let cases = cases(rule, file)?;
        if cases.is_empty() {
            bare += 1;
            let _ = writeln!(text, "no case      {} {}", rule.id(), file.display());
        }
        for case in cases {
            for (outcome, words) in judged(&set, &prepared, rule, &case)? {
                tally[outcome as usize] += 1;
                if !(arguments.quiet && outcome == Outcome::Ok) {
                    let (on, off) = style(outcome, color.on_stdout());
                    let name = outcome.name();
                    let model = case.model.display();
                    let _ = writeln!(text, "{on}{name:11}{off}  {} {model}{words}", rule.id());
                }
            }
        }
    }
    let parts: Vec<String> = Outcome::ALL
        .into_iter()
        .filter(|&outcome| outcome == Outcome::Ok || tally[outcome as usize] > 0)
        .map(|outcome| format!("{} {}", tally[outcome as usize], outcome.name()))
        .collect();
    let plural = if rules == 1 { "rule" } else { "rules" };
    let _ = writeln!(text, "{rules} {plural}: {}", parts.join(", "));
    output::to_stdout(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write: {error}")))?;
    let good = tally[1..].iter().all(|&count| count == 0) && bare < rules;
    Ok(ExitCode::from(u8::from(!good)))
}

fn style(outcome: Outcome, color: bool) -> (&'static str, &'static str) {
    match (color, outcome) {
        (false, _) => ("", ""),
        (true, Outcome::Ok) => ("\u{1b}[32m", "\u{1b}[0m"),
        (true, _) => ("\u{1b}[31m", "\u{1b}[0m"),
    }
}

/// Rule files: those named, and those below folders, in order of path.
fn rule_files_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_file() {
            files.push(path.clone());
            continue;
        }
        if !path.is_dir() {
            return Err(Failure::new(format!("{}: no such file or folder", path.display())));
        }
        let found = walkdir::WalkDir::new(path)
            .max_depth(16)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(|entry| {
                let name = entry.file_name().to_string_lossy();
                entry.depth() == 0 || !(name.starts_with('.') || name == "node_modules")
            })
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix("./").unwrap_or(entry.path()).to_owned())
            .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "yml"))
            .filter(|path| looks_like_a_rule(path));
        files.extend(found);
    }
    files.dedup();
    Ok(files)
}

/// Whether a YAML file has the fields that only a rule has, so that other YAML is left alone.
fn looks_like_a_rule(path: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(path) else { return false };
    let has = |field: &str| text.lines().any(|line| line.starts_with(field));
    has("id:") && has("match:") && has("message:")
}

/// The cases of a rule: those it names, then those beside it.
fn cases(rule: &Rule, file: &Path) -> Result<Vec<Case>, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut cases = Vec::new();
    for test in &rule.raw().tests {
        let model = folder.join(&test.model);
        if !model.exists() {
            return Err(Failure::new(format!("{}: no such model", model.display()))
                .help(format!("`tests` of {} names it, relative to the rule file", rule.id())));
        }
        let word = |what: &str, name: &str| {
            Failure::new(format!("{}: `{name}` is no {what}", file.display()))
        };
        let unit = test.target.as_deref().map(|name| Unit::parse(name).ok_or(word("unit", name)));
        let runtime =
            test.runtime.as_deref().map(|name| Runtime::parse(name).ok_or(word("runtime", name)));
        cases.push(Case {
            model,
            unit: unit.transpose()?,
            runtime: runtime.transpose()?,
            promise: match &test.expect {
                Some(places) => Promise::Places(places.clone()),
                None => Promise::Some,
            },
        });
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let names = [stem.unwrap_or_default(), rule.id().to_lowercase(), rule.name().to_lowercase()];
    let beside = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut found: Vec<PathBuf> = std::fs::read_dir(beside)
        .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
        .unwrap_or_default();
    found.sort();
    for model in found {
        let name = model.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let Some(rest) = name.as_deref().and_then(|name| {
            names.iter().find_map(|own| name.strip_prefix(own.as_str())?.strip_prefix('.'))
        }) else {
            continue;
        };
        let promise = if rest.starts_with("bad") {
            Promise::Some
        } else if rest.starts_with("good") {
            Promise::Places(Vec::new())
        } else {
            continue;
        };
        let model = model.strip_prefix("./").unwrap_or(&model).to_owned();
        cases.push(Case { model, unit: None, runtime: None, promise });
    }
    Ok(cases)
}

/// The outcomes of a case, each with what there is to say of it.
fn judged(
    set: &RuleSet,
    prepared: &PreparedRules,
    rule: &Rule,
    case: &Case,
) -> Result<Vec<(Outcome, String)>, Failure> {
    let working_folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working folder is gone: {error}")))?;
    let units: Vec<Unit> = match case.unit {
        Some(unit) => vec![unit],
        // The first unit that the rule is about.
        None => rule
            .raw()
            .target
            .unit
            .iter()
            .find_map(|u| Unit::parse(u.as_str()))
            .into_iter()
            .collect(),
    };
    let runtime = case.runtime.or_else(|| {
        rule.raw()
            .target
            .runtime
            .iter()
            .find_map(|name| Runtime::parse(name.as_str()))
            .filter(|_| rule.raw().target.runtime.iter().count() == 1)
    });
    let mut options = CheckOptions {
        runtime,
        selection: Selection {
            select: vec![rule.id().to_owned()],
            preview: true,
            ..Selection::default()
        },
        source: SourceOptions {
            working_folder: working_folder.clone(),
            ..SourceOptions::default()
        },
        ..CheckOptions::default()
    };
    if !units.is_empty() {
        options.units = units;
    }
    let checker =
        Checker::new(set, prepared, options).map_err(|error| Failure::new(format!("{error:?}")))?;
    let shown = case.model.to_string_lossy();
    let reports = checker
        .check(&absolute(&case.model, &working_folder), &shown)
        .map_err(|error| Failure::new(format!("{shown}: {}", error.message())))?;
    let findings: Vec<&Finding> = reports
        .iter()
        .flat_map(|report| &report.findings)
        .filter(|finding| finding.rule == rule.id())
        .collect();
    Ok(compare(&case.promise, &findings, &working_folder))
}

/// A finding's place as `FILE:LINE`, relative to the working folder; its nodes where it has none.
fn place(finding: &Finding, working_folder: &Path) -> String {
    match &finding.spot {
        Some(spot) => {
            let key = spot.file.key();
            let path = Path::new(&key);
            let path = path.strip_prefix(working_folder).unwrap_or(path);
            format!("{}:{}", path.display(), spot.span.start.line)
        }
        None => finding.nodes.first().cloned().unwrap_or_default(),
    }
}

/// Whether a place is the one promised: a promise may leave out leading folders.
fn fits(place: &str, promised: &str) -> bool {
    place == promised
        || place.strip_suffix(promised).is_some_and(|rest| rest.ends_with(['/', '\\']))
}

/// The file of a place.
fn file_of(place: &str) -> &str {
    place.rsplit_once(':').map_or(place, |(file, _)| file)
}

fn compare(
    promise: &Promise,
    findings: &[&Finding],
    working_folder: &Path,
) -> Vec<(Outcome, String)> {
    let found: Vec<(String, &str)> = findings
        .iter()
        .map(|finding| (place(finding, working_folder), finding.message.as_str()))
        .collect();
    match promise {
        Promise::Some if found.is_empty() => vec![(Outcome::Missed, ": nothing found".to_owned())],
        Promise::Some => {
            found.iter().map(|(place, _)| (Outcome::Ok, format!(": {place}"))).collect()
        }
        Promise::Places(promised) => outcomes(promised, &found),
    }
}

/// Each promised place, then what is left over.
fn outcomes(promised: &[String], found: &[(String, &str)]) -> Vec<(Outcome, String)> {
    let mut taken = vec![false; found.len()];
    let mut outcomes = Vec::new();
    let mut open = Vec::new();
    for wanted in promised {
        match found.iter().enumerate().find(|(at, (place, _))| !taken[*at] && fits(place, wanted)) {
            Some((at, _)) => {
                taken[at] = true;
                outcomes.push((Outcome::Ok, format!(": {wanted}")));
            }
            None => open.push(wanted),
        }
    }
    for wanted in open {
        let near = found.iter().enumerate().find(|(at, (place, _))| {
            !taken[*at] && place.contains(':') && fits(file_of(place), file_of(wanted))
        });
        match near {
            Some((at, (place, _))) => {
                taken[at] = true;
                outcomes
                    .push((Outcome::Moved, format!(": promised at {wanted}, found at {place}")));
            }
            None => outcomes.push((Outcome::Missed, format!(": {wanted}"))),
        }
    }
    for (at, (place, message)) in found.iter().enumerate() {
        if !taken[at] {
            outcomes.push((Outcome::FalseAlarm, format!(": {place}: {message}")));
        }
    }
    if outcomes.is_empty() {
        outcomes.push((Outcome::Ok, ": nothing, as promised".to_owned()));
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(promised: &[&str], found: &[&str]) -> Vec<&'static str> {
        let promised: Vec<String> = promised.iter().map(|&place| place.to_owned()).collect();
        let found: Vec<(String, &str)> =
            found.iter().map(|&place| (place.to_owned(), "words")).collect();
        outcomes(&promised, &found).into_iter().map(|(outcome, _)| outcome.name()).collect()
    }

    #[test]
    fn a_promise_is_kept_missed_moved_or_overdone() {
        assert_eq!(names(&["model.py:12"], &["src/model.py:12"]), ["ok"]);
        assert_eq!(names(&["model.py:12"], &[]), ["missed"]);
        assert_eq!(names(&["model.py:12"], &["src/model.py:14"]), ["moved"]);
        assert_eq!(names(&["model.py:12"], &["other_model.py:12"]), ["missed", "false alarm"]);
        assert_eq!(names(&[], &["model.py:12"]), ["false alarm"]);
        assert_eq!(names(&[], &[]), ["ok"]);
        assert_eq!(names(&["a.py:1", "a.py:2"], &["a.py:2"]), ["ok", "missed"]);
    }
}
