//! The edits of findings, over all files: what would change, then the change itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choose::{Choice, Proposal, choose};
use super::splice::{Splice, splice};
use super::write::replace_file;
use crate::findings::Finding;
use crate::findings::fix::parses;
use crate::findings::python::PythonFile;
use crate::findings::source::PlaceFile;
use crate::rules::Applicability;

/// What may be edited.
#[derive(Debug, Clone, Default)]
pub struct FixOptions {
    /// Fixes that change structure or need weights reshaped, too.
    pub unsafe_fixes: bool,
    /// Only files below these, absolute: a model names files as it likes.
    pub folders: Vec<PathBuf>,
}

/// A file with its edits.
#[derive(Debug)]
pub struct EditedFile {
    /// The file.
    pub path: PathBuf,
    /// Its text, without a byte order mark.
    pub old: String,
    /// Its text with the edits.
    pub new: String,
    /// How many edits.
    pub edits: usize,
    mark: bool,
}

/// A file that is not edited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftAlone {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What fixing comes to.
#[derive(Debug, Default)]
pub struct Applied {
    /// Files that change, by path.
    pub files: Vec<EditedFile>,
    /// Files left alone, by path.
    pub left: Vec<LeftAlone>,
    /// Findings whose edits are all made, by index.
    pub fixed: Vec<usize>,
    /// Findings whose edits overlap with others: another run, after an export, makes them.
    pub overlapping: usize,
    /// Findings whose fix is unsafe, and not asked for.
    pub unsafe_left: usize,
}

/// Works out the edits of findings, and changes nothing.
pub fn plan(findings: &[&Finding], options: &FixOptions) -> Applied {
    let mut planner = Planner { options, files: BTreeMap::new(), left: BTreeSet::new() };
    let mut applied = Applied::default();
    let mut owners: Vec<usize> = Vec::new();
    let mut proposals: Vec<Proposal> = Vec::new();
    let mut order: Vec<usize> = (0..findings.len()).collect();
    let rank = |applicability| match applicability {
        Applicability::Safe => 0,
        Applicability::Unsafe => 1,
        Applicability::Display => 2,
    };
    order.sort_by_key(|&at| {
        let own = findings[at];
        (
            own.fix.as_ref().map_or(3, |fix| rank(fix.applicability)),
            std::cmp::Reverse(own.severity),
            at,
        )
    });
    for at in order {
        let Some(finding) = findings.get(at) else { continue };
        if let Some((PlaceFile::Found(file), why)) = &finding.unfixable {
            planner.leave(file.path(), why);
        }
        let Some(fix) = &finding.fix else { continue };
        match fix.applicability {
            Applicability::Safe => {}
            Applicability::Unsafe if options.unsafe_fixes => {}
            Applicability::Unsafe => {
                applied.unsafe_left += 1;
                continue;
            }
            Applicability::Display => continue,
        }
        if let Some(proposal) = planner.proposal(finding) {
            owners.push(at);
            proposals.push(proposal);
        }
    }
    let Some((choice, files)) = planner.settle(&mut owners, &mut proposals) else { return applied };
    applied.files = files;
    for (owner, taken) in owners.iter().zip(&choice.taken) {
        if *taken { applied.fixed.push(*owner) } else { applied.overlapping += 1 }
    }
    applied.fixed.sort_unstable();
    applied.left = planner.left.into_iter().collect();
    applied
}

/// Makes the edits. A file that cannot be written is left alone, and its findings are not fixed.
pub fn write(applied: &mut Applied, findings: &[&Finding]) {
    let mut failed: BTreeSet<PathBuf> = BTreeSet::new();
    for file in &applied.files {
        let bytes = |text: &str| {
            let mark = if file.mark { "\u{feff}" } else { "" };
            format!("{mark}{text}").into_bytes()
        };
        if let Err(error) = replace_file(&file.path, &bytes(&file.old), &bytes(&file.new)) {
            failed.insert(file.path.clone());
            applied.left.push(LeftAlone { path: file.path.clone(), why: error.to_string() });
        }
    }
    if failed.is_empty() {
        return;
    }
    applied.left.sort();
    applied.files.retain(|file| !failed.contains(&file.path));
    applied.fixed.retain(|at| {
        let fix = findings.get(*at).and_then(|finding| finding.fix.as_ref());
        fix.is_some_and(|fix| {
            fix.edits.iter().all(|edit| match &edit.file {
                PlaceFile::Found(file) => !failed.contains(file.path()),
                PlaceFile::Recorded { .. } => false,
            })
        })
    });
}

struct Planner<'o> {
    options: &'o FixOptions,
    files: BTreeMap<PathBuf, Arc<PythonFile>>,
    left: BTreeSet<LeftAlone>,
}

impl Planner<'_> {
    fn leave(&mut self, path: &Path, why: &str) {
        self.left.insert(LeftAlone { path: path.to_owned(), why: why.to_owned() });
    }

    /// The edits of a finding as bytes; `None` if one lies in a file that is left alone.
    fn proposal(&mut self, finding: &Finding) -> Option<Proposal> {
        let mut edits = Vec::new();
        for edit in &finding.fix.as_ref()?.edits {
            let PlaceFile::Found(file) = &edit.file else { return None };
            if !self.may_edit(file) {
                return None;
            }
            let (start, end) = (file.byte_of(edit.span.start)?, file.byte_of(edit.span.end)?);
            edits.push((file.path().to_owned(), Splice { start, end, text: edit.text.clone() }));
        }
        Some(Proposal { edits })
    }

    fn may_edit(&mut self, file: &Arc<PythonFile>) -> bool {
        if let Some(known) = self.files.get(file.path()) {
            // Read twice, by two models, and not the same.
            if known.text() != file.text() {
                self.leave(file.path(), "it changed while anelint ran");
                return false;
            }
            return true;
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = real(file.path());
        let inside = self.options.folders.iter().any(|folder| path.starts_with(real(folder)));
        if !inside {
            self.leave(
                file.path(),
                "it lies outside the working folder: name its folder with --source-root",
            );
            return false;
        }
        if file.is_lossy() {
            self.leave(file.path(), "it is not UTF-8");
            return false;
        }
        if !parses(file) {
            self.leave(file.path(), "it does not parse as Python");
            return false;
        }
        self.files.insert(file.path().to_owned(), Arc::clone(file));
        true
    }

    /// The edits that can be made together, with the texts they make. A file whose text would not parse
    /// is left alone, and every proposal that touches it falls.
    fn settle(
        &mut self,
        owners: &mut Vec<usize>,
        proposals: &mut Vec<Proposal>,
    ) -> Option<(Choice, Vec<EditedFile>)> {
        // Each round drops at least one file.
        for _ in 0..=self.files.len() {
            let choice = choose(proposals);
            let mut edited = Vec::new();
            let mut broken: Vec<(PathBuf, String)> = Vec::new();
            for (path, edits) in &choice.files {
                let Some(file) = self.files.get(path) else { continue };
                match splice(file.text(), edits) {
                    Err(error) => broken.push((path.clone(), error.to_string())),
                    Ok(new) => {
                        if !parses(&PythonFile::new(path.clone(), new.clone())) {
                            let why = "with its edits it would not parse as Python".to_owned();
                            broken.push((path.clone(), why));
                        }
                        edited.push(EditedFile {
                            path: path.clone(),
                            old: file.text().to_owned(),
                            new,
                            edits: edits.len(),
                            mark: file.has_mark(),
                        });
                    }
                }
            }
            if broken.is_empty() {
                return Some((choice, edited));
            }
            let touches = |proposal: &Proposal| {
                proposal.edits.iter().any(|(path, _)| broken.iter().any(|(own, _)| own == path))
            };
            let keep: Vec<bool> = proposals.iter().map(|proposal| !touches(proposal)).collect();
            let mut kept = keep.iter();
            owners.retain(|_| kept.next().copied().unwrap_or(false));
            let mut kept = keep.iter();
            proposals.retain(|_| kept.next().copied().unwrap_or(false));
            for (path, why) in broken {
                self.leave(&path, &why);
            }
        }
        None
    }
}
