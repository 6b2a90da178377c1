//! Which findings of one input are silent, and which suppressions had a say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::comment::{self, Directive};
use super::{By, Silenced, Suppression};
use crate::config::{Date, File, Suppress};
use crate::findings::Finding;
use crate::findings::python::PythonFile;
use crate::findings::source::{PlaceFile, Spot};
use crate::rules::RuleSet;

/// A source file with suppression comments, as one input sees it.
#[derive(Debug, Clone)]
pub struct FileUse {
    /// The file.
    pub file: Arc<PythonFile>,
    /// Its comments.
    pub directives: Arc<Vec<Directive>>,
    /// Comment and rule of it, by position, that silenced something.
    pub used: BTreeSet<(usize, usize)>,
    /// Comment and rule of it whose rule ran.
    pub ran: BTreeSet<(usize, usize)>,
    /// Comment and rule of it that the rule set knows.
    pub known: BTreeSet<(usize, usize)>,
    /// First bytes of the outermost definitions that ops of the graph were recorded in.
    pub covered: BTreeSet<usize>,
}

/// The suppressions of one input.
#[derive(Debug, Clone, Default)]
pub struct Use {
    /// Source files with suppression comments, by path.
    pub files: Vec<FileUse>,
    /// Tables of the config file that silenced something.
    pub tables_used: BTreeSet<usize>,
    /// Tables one of whose rules ran.
    pub tables_ran: BTreeSet<usize>,
}

/// What decides for one input.
pub struct Decider<'a> {
    /// The rules.
    pub set: &'a RuleSet,
    /// Ids of the rules that ran and whose findings are heard.
    pub ran: Vec<&'a str>,
    /// The config file.
    pub config: Option<&'a File>,
    /// Where the model lies, absolute.
    pub model_path: PathBuf,
    /// What it is called.
    pub model: String,
    /// Today.
    pub today: Date,
}

impl Decider<'_> {
    /// Splits findings into those that are reported and those that are silent. `files` are the source
    /// files that ops were recorded in, each with the lines.
    pub fn decide(
        &self,
        found: Vec<Finding>,
        files: &[(Arc<PythonFile>, Vec<u32>)],
    ) -> (Vec<Finding>, Vec<Silenced>, Use) {
        let mut uses: BTreeMap<PathBuf, FileUse> = BTreeMap::new();
        for (file, lines) in files {
            if let Some(own) = self.file_use(&mut uses, file) {
                let starts = lines.iter().filter_map(|line| own.file.line_bytes(*line));
                let definitions = starts
                    .filter_map(|range| comment::outermost_definition(&own.file, range.start));
                let covered: BTreeSet<usize> = definitions.collect();
                own.covered.extend(covered);
            }
        }
        let mut tables = Use { tables_ran: self.tables_ran(), ..Use::default() };
        let mut heard = Vec::new();
        let mut silent = Vec::new();
        for (at, finding) in found.into_iter().enumerate() {
            let by_comment = self.by_comment(&mut uses, &finding);
            let by_table = self.by_table(&mut tables.tables_used, &finding);
            match by_comment.or(by_table) {
                Some(suppression) => silent.push(Silenced { at, finding, suppression }),
                None => heard.push(finding),
            }
        }
        (heard, silent, Use { files: uses.into_values().collect(), ..tables })
    }

    fn runs(&self, id: &str) -> bool {
        self.ran.contains(&id)
    }

    /// The record of a file; `None` if it has no suppression comments.
    fn file_use<'u>(
        &self,
        uses: &'u mut BTreeMap<PathBuf, FileUse>,
        file: &Arc<PythonFile>,
    ) -> Option<&'u mut FileUse> {
        if !uses.contains_key(file.path()) {
            let directives = comment::directives(file);
            if directives.is_empty() {
                return None;
            }
            let (mut ran, mut known) = (BTreeSet::new(), BTreeSet::new());
            for (at, directive) in directives.iter().enumerate() {
                for (which, (word, _)) in directive.rules.iter().enumerate() {
                    let Some(rule) = self.set.find(word) else { continue };
                    known.insert((at, which));
                    if self.runs(rule.id()) {
                        ran.insert((at, which));
                    }
                }
            }
            let own = FileUse {
                file: Arc::clone(file),
                directives: Arc::new(directives),
                used: BTreeSet::new(),
                ran,
                known,
                covered: BTreeSet::new(),
            };
            uses.insert(file.path().to_owned(), own);
        }
        uses.get_mut(file.path())
    }

    /// The first comment that silences a finding, at its place or at a related one. All that would are
    /// marked as used.
    fn by_comment(
        &self,
        uses: &mut BTreeMap<PathBuf, FileUse>,
        finding: &Finding,
    ) -> Option<Suppression> {
        let mut first = None;
        for spot in spots(finding) {
            match &spot.file {
                PlaceFile::Found(file) => {
                    let Some(own) = self.file_use(uses, file) else { continue };
                    for (at, directive) in own.directives.iter().enumerate() {
                        if let Some(rule) = directive.names(&finding.rule, &finding.name)
                            && directive.covers(spot.span)
                        {
                            own.used.insert((at, rule));
                            first.get_or_insert_with(|| directive.reason.clone());
                        }
                    }
                }
                PlaceFile::Recorded { text, .. } => {
                    for (rules, reason) in comment::in_recorded_line(text) {
                        let named = |rule: &String| {
                            rule.eq_ignore_ascii_case(&finding.rule)
                                || rule.eq_ignore_ascii_case(&finding.name)
                        };
                        if rules.iter().any(named) {
                            first.get_or_insert(reason);
                        }
                    }
                }
            }
        }
        first.map(|reason| Suppression { by: By::Comment, reason })
    }

    fn tables(&self) -> impl Iterator<Item = (usize, &Suppress)> {
        self.config.into_iter().flat_map(|file| file.suppress.iter().enumerate())
    }

    fn tables_ran(&self) -> BTreeSet<usize> {
        self.tables()
            .filter(|(_, table)| self.is_for_model(table))
            .filter(|(_, table)| {
                self.ran.iter().any(|id| {
                    table.rules.iter().any(|rule| self.set.closeness(id, &rule.value) > 0)
                })
            })
            .map(|(at, _)| at)
            .collect()
    }

    /// Whether a table is for this model.
    fn is_for_model(&self, table: &Suppress) -> bool {
        let Some(globs) = &table.models else { return true };
        let folder = self.config.map(|file| file.folder.as_path()).unwrap_or(&self.model_path);
        table.model_names.contains(&self.model) || globs.matches(&self.model_path, folder)
    }

    /// The first table that silences a finding; all that would are marked as used.
    fn by_table(&self, used: &mut BTreeSet<usize>, finding: &Finding) -> Option<Suppression> {
        let mut first = None;
        for (at, table) in self.tables() {
            let holds = table.until.is_none_or(|until| self.today <= until);
            if holds && self.is_for_model(table) && self.matches(table, finding) {
                used.insert(at);
                first.get_or_insert_with(|| table.reason.clone().unwrap_or_default());
            }
        }
        first.map(|reason| Suppression { by: By::Config, reason })
    }

    /// Whether every condition of a table holds for all that a finding is about.
    fn matches(&self, table: &Suppress, finding: &Finding) -> bool {
        let named = |globs: &[globset::GlobMatcher], name: &str| {
            let name = name.replace('.', "/");
            globs.iter().any(|glob| glob.is_match(&name))
        };
        let rule =
            || table.rules.iter().any(|rule| self.set.closeness(&finding.rule, &rule.value) > 0);
        let path = || {
            table.paths.as_ref().is_none_or(|globs| {
                let folder = self.config.map(|file| file.folder.clone()).unwrap_or_default();
                spots(finding)
                    .any(|spot| globs.matches(std::path::Path::new(&spot.file.key()), &folder))
            })
        };
        let module = || {
            table.modules.as_ref().is_none_or(|globs| {
                !finding.modules.is_empty()
                    && finding.modules.iter().all(|module| named(globs, &module.pattern))
            })
        };
        let node = || {
            table.nodes.as_ref().is_none_or(|globs| {
                !finding.nodes.is_empty() && finding.nodes.iter().all(|node| named(globs, node))
            })
        };
        rule() && path() && module() && node()
    }
}

/// The place of a finding and those related to it.
fn spots(finding: &Finding) -> impl Iterator<Item = &Spot> {
    finding.spot.iter().chain(finding.related.iter().map(|(spot, _)| spot))
}
