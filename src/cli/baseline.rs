//! Baselines of a run: which findings they hold, which of their entries are stale, and writing them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Failure;
use crate::check::absolute;
use crate::config::{InForce, Origin};
use crate::findings::suppress::{
    Baseline, BaselineError, By, Suppression, baseline_entry, baseline_text, stale_baseline,
};
use crate::report::{InputReport, output};

/// What the flags ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Hold findings against it.
    Use,
    /// Make it, or bring it up to date if it is there.
    Update,
    /// Take entries away that no longer occur.
    Prune,
}

/// One checked input.
pub struct Checked<'a> {
    /// What came of it; findings of the baseline are moved to the silent ones.
    pub report: &'a mut InputReport,
    /// What was in force.
    pub in_force: &'a InForce,
    /// Ids of the rules that ran.
    pub ran: BTreeSet<&'a str>,
    /// Whether stale entries are to be told.
    pub told: bool,
}

/// Applies, and where wished writes, the baselines of all inputs. Gives words on what was written.
pub fn apply(
    inputs: &mut [Checked<'_>],
    flag: Option<&Path>,
    wish: Wish,
    working_folder: &Path,
) -> Result<Vec<String>, Failure> {
    let mut groups: BTreeMap<PathBuf, (Origin, Vec<usize>)> = BTreeMap::new();
    for (at, input) in inputs.iter().enumerate() {
        let given = match (flag, &input.in_force.file) {
            (Some(path), _) => Some((absolute(path, working_folder), Origin::Flag("--baseline"))),
            (None, Some(file)) => {
                file.baseline.as_ref().map(|given| (given.value.clone(), given.origin.clone()))
            }
            (None, None) => None,
        };
        if let Some((path, origin)) = given {
            groups.entry(path).or_insert((origin, Vec::new())).1.push(at);
        }
    }
    if groups.is_empty() && wish != Wish::Use && !inputs.is_empty() {
        let flag = if wish == Wish::Update { "--update-baseline" } else { "--prune-baseline" };
        return Err(Failure::new(format!("{flag}: no baseline is named"))
            .help("name it with --baseline FILE, or as `baseline` in the config file"));
    }
    let mut words = Vec::new();
    for (path, (origin, members)) in groups {
        words.extend(one(inputs, &path, &origin, &members, wish, working_folder)?);
    }
    Ok(words)
}

fn one(
    inputs: &mut [Checked<'_>],
    path: &Path,
    origin: &Origin,
    members: &[usize],
    wish: Wish,
    working_folder: &Path,
) -> Result<Option<String>, Failure> {
    let shown = crate::findings::source::shown_path(path, working_folder);
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let model = |input: &Checked<'_>| absolute(Path::new(&input.report.path), working_folder);
    let silent = || Suppression { by: By::Baseline, reason: String::new() };
    if !path.exists() {
        if wish != Wish::Update {
            let by = match origin {
                Origin::File(place) => {
                    let file =
                        crate::findings::source::shown_path(&place.source.path, working_folder);
                    format!("{file}:{}", place.line())
                }
                _ => "--baseline".to_owned(),
            };
            return Err(Failure::new(format!("{by}: there is no baseline {shown}"))
                .help("make it with --update-baseline"));
        }
        let mut entries = Vec::new();
        for at in members {
            let Some(input) = inputs.get_mut(*at) else { continue };
            let (path, target) = (model(input), input.report.target.unit.name());
            for finding in &input.report.findings {
                entries.push(baseline_entry(&path, target, finding, &folder));
            }
            input.report.silence(|_| Some(silent()));
        }
        let count = entries.len();
        write(path, &baseline_text(entries), &shown)?;
        return Ok(Some(format!("{shown}: made with {}", counted(count))));
    }
    let mut baseline = Baseline::read(path).map_err(|error| failure(error, working_folder))?;
    for moved in [false, true] {
        for at in members {
            let Some(input) = inputs.get_mut(*at) else { continue };
            let (path, target) = (model(input), input.report.target.unit.name());
            input.report.silence(|finding| {
                let taken = match moved {
                    false => baseline.take(&path, target, finding),
                    true => baseline.take_moved(&path, target, finding),
                };
                taken.then(silent)
            });
        }
    }
    let text = Arc::new(crate::findings::suppress::as_text(&baseline.source));
    for at in members {
        let Some(input) = inputs.get_mut(*at) else { continue };
        let (path, target) = (model(input), input.report.target.unit.name());
        let stale = baseline.stale(&path, target, &input.ran);
        if wish == Wish::Use && input.told && !stale.is_empty() {
            input.report.add(stale_baseline(&text, &stale));
        }
    }
    if wish == Wish::Use {
        return Ok(None);
    }
    let (text, gone) = baseline.pruned();
    if text != baseline.source.text {
        write(path, &text, &shown)?;
    }
    let left = counted(baseline.len() - gone);
    let mut words = match gone {
        0 => format!("{shown}: nothing to take away, {left}"),
        gone => format!("{shown}: {} taken away, {left} left", counted(gone)),
    };
    let new: usize =
        members.iter().filter_map(|at| inputs.get(*at)).map(|own| own.report.findings.len()).sum();
    if wish == Wish::Update && new > 0 {
        let are = if new == 1 { "finding is" } else { "findings are" };
        words.push_str(&format!(
            "; {new} new {are} not added: a baseline only shrinks. Mend them, suppress them with a \
             reason, or delete the file to begin anew"
        ));
    }
    Ok(Some(words))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn write(path: &Path, text: &str, shown: &str) -> Result<(), Failure> {
    output::to_file(path, text.as_bytes())
        .map_err(|error| Failure::new(format!("{shown} cannot be written: {error}")))
}

fn failure(error: BaselineError, working_folder: &Path) -> Failure {
    let shown = crate::findings::source::shown_path(&error.source.path, working_folder);
    let place = if error.line == 0 { shown } else { format!("{shown}:{}", error.line) };
    Failure::new(format!("{place}: {}", error.message))
        .help("it is made by --update-baseline; delete it to begin anew")
}
