//! What a check has to say, before it takes any form.

use crate::findings::suppress::{By, Silenced, Suppression, Use};
use crate::findings::{Finding, order};
use crate::rules::Severity;
use crate::rules::upkeep::Upkeep;
use crate::target::Target;

/// The outcome of a check of several inputs.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Paths of source files are shown relative to this folder.
    pub working_folder: std::path::PathBuf,
    /// The findings of each rule are counted, in place of showing them.
    pub statistics: bool,
    /// Inputs that were read, each once for every target, in the order of their paths.
    pub inputs: Vec<InputReport>,
    /// Inputs that could not be read.
    pub errors: Vec<InputError>,
    /// Inputs that are left alone, and why (a Git LFS pointer, a kind that is out of scope).
    pub skipped: Vec<Note>,
    /// What fixing came to; `None` if nobody asked for it.
    pub fixes: Option<FixReport>,
}

/// What fixing came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FixReport {
    /// Source files that were edited, and how many edits each had.
    pub edited: Vec<(String, usize)>,
    /// Source files that were not, and why.
    pub left: Vec<Note>,
    /// Findings whose edits overlap with others that were made.
    pub overlapping: usize,
    /// Findings whose fix is unsafe, and was not asked for.
    pub unsafe_left: usize,
}

/// One input against one target.
#[derive(Debug)]
pub struct InputReport {
    /// Path as shown.
    pub path: String,
    /// Format name.
    pub format: &'static str,
    /// What wrote the file; may be empty.
    pub producer: String,
    /// What it was checked against.
    pub target: Target,
    /// The functions.
    pub functions: Vec<FunctionReport>,
    /// The findings, in order.
    pub findings: Vec<Finding>,
    /// The findings that are not reported: silenced by comments, the config file or the baseline.
    pub silenced: Vec<Silenced>,
    /// What the suppressions did; for what is said of them.
    pub uses: Use,
    /// Things worth a word that are no finding.
    pub notes: Vec<String>,
    /// Where each op runs, if it was asked for.
    pub maps: Vec<super::FunctionMap>,
    /// Lowest severity that fails the run; none if nothing does.
    pub fail_at: Option<Severity>,
}

/// Why a finding is not reported.
#[derive(Debug, Clone, Copy)]
pub struct Silent<'a> {
    /// Who silences it: `comment`, `config` or `baseline`.
    pub by: &'static str,
    /// Why; may be empty.
    pub reason: &'a str,
}

impl InputReport {
    /// All findings in order, each with why it is silent.
    pub fn all(&self) -> impl Iterator<Item = (&Finding, Option<Silent<'_>>)> {
        let mut silent = self.silenced.iter().peekable();
        let mut heard = self.findings.iter();
        let mut at = 0;
        std::iter::from_fn(move || {
            let next = match silent.next_if(|own| own.at <= at) {
                Some(own) => Some(own),
                None => match heard.next() {
                    Some(finding) => {
                        at += 1;
                        return Some((finding, None));
                    }
                    None => silent.next(),
                },
            };
            at += 1;
            next.map(|own| {
                let silent =
                    Silent { by: own.suppression.by.name(), reason: &own.suppression.reason };
                (&own.finding, Some(silent))
            })
        })
    }
}

impl InputReport {
    /// All findings in order, each with why it is silent; empties the lists.
    fn take_all(&mut self) -> Vec<(Finding, Option<Suppression>)> {
        let mut silent = std::mem::take(&mut self.silenced).into_iter().peekable();
        let mut heard = std::mem::take(&mut self.findings).into_iter();
        let mut all: Vec<(Finding, Option<Suppression>)> = Vec::new();
        loop {
            let at = all.len();
            if let Some(own) = silent.next_if(|own| own.at <= at) {
                all.push((own.finding, Some(own.suppression)));
            } else if let Some(finding) = heard.next() {
                all.push((finding, None));
            } else if let Some(own) = silent.next() {
                all.push((own.finding, Some(own.suppression)));
            } else {
                return all;
            }
        }
    }

    fn put_all(&mut self, all: Vec<(Finding, Option<Suppression>)>) {
        for (at, (finding, suppression)) in all.into_iter().enumerate() {
            match suppression {
                Some(suppression) => self.silenced.push(Silenced { at, finding, suppression }),
                None => self.findings.push(finding),
            }
        }
    }

    /// Silences the reported findings for which there is a reason.
    pub fn silence(&mut self, mut why: impl FnMut(&Finding) -> Option<Suppression>) {
        let mut all = self.take_all();
        for (finding, suppression) in &mut all {
            if suppression.is_none() {
                *suppression = why(finding);
            }
        }
        self.put_all(all);
    }

    /// Adds a finding in its place.
    pub fn add(&mut self, finding: Finding) {
        let mut all = self.take_all();
        all.push((finding, None));
        all.sort_by_cached_key(|(finding, _)| order(finding));
        self.put_all(all);
    }
}

/// One function of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionReport {
    /// Name.
    pub name: String,
    /// Ops that work at run time.
    pub ops: usize,
    /// Of these, ops that anelint has no name for.
    pub unknown_ops: usize,
    /// Of these, ops that the unit runs.
    pub eligible: Option<usize>,
    /// Of these, ops of which nobody knows.
    pub eligibility_unknown: usize,
    /// Runs of work on the unit.
    pub regions: Option<usize>,
    /// The same, were ops taken in program order.
    pub regions_program_order: Option<usize>,
    /// A nested graph of another function.
    pub nested: bool,
}

/// An input that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// Path as shown.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// Byte offset where it shows.
    pub offset: Option<u64>,
}

/// A word about an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Path as shown.
    pub path: String,
    /// The words.
    pub message: String,
}

/// How many findings of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each field is its own name")]
pub struct Summary {
    pub error: usize,
    pub warning: usize,
    pub advice: usize,
    /// Fixed, and in none of the other counts.
    pub fixed: usize,
}

impl Summary {
    /// Counts findings.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Summary {
        let mut summary = Summary::default();
        for finding in findings {
            if finding.fixed {
                summary.fixed += 1;
                continue;
            }
            match finding.severity {
                Severity::Error => summary.error += 1,
                Severity::Warning => summary.warning += 1,
                Severity::Advice => summary.advice += 1,
            }
        }
        summary
    }

    /// How many are at or above a severity.
    pub fn at_least(&self, severity: Severity) -> usize {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.error + self.warning,
            Severity::Advice => self.error + self.warning + self.advice,
        }
    }
}

impl CheckReport {
    /// All findings.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.inputs.iter().flat_map(|input| &input.findings)
    }

    /// How many findings are silent.
    pub fn silenced(&self, by: By) -> usize {
        let all = self.inputs.iter().flat_map(|input| &input.silenced);
        all.filter(|own| own.suppression.by == by).count()
    }

    /// How many of each severity.
    pub fn summary(&self) -> Summary {
        Summary::of(self.findings())
    }
}

/// The page of a rule, relative to the repository.
pub(super) fn rule_page(id: &str) -> String {
    if Upkeep::find(id).is_some() {
        return "docs/suppressions.md".to_owned();
    }
    format!("docs/rules/{id}.md")
}

/// `27`, `18.2`.
pub fn os_text(os: crate::target::OsVersion) -> String {
    match os.minor {
        0 => os.major.to_string(),
        minor => format!("{}.{minor}", os.major),
    }
}
