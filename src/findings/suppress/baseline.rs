//! A baseline: findings that are known and accepted for now, one line of JSON each.
//!
//! An entry is told by its fingerprint, the model and the unit; the rest of its line is for people. A
//! baseline is made once and only shrinks: no run adds an entry to one that is there. Lines are sorted
//! and stand alone, so that two branches that both shrink it merge without a conflict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::Source;
use crate::findings::Finding;

/// One accepted finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Path of the model, relative to the baseline's folder, with forward slashes.
    pub model: String,
    /// Unit it was checked against.
    pub target: String,
    /// Rule id.
    pub rule: String,
    /// Module paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Canonical op; empty if it is about none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub op: String,
    /// Stable name of the finding.
    pub fingerprint: String,
    /// What was wrong when it was accepted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    #[serde(rename = "anelint-baseline")]
    version: u32,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineError {
    /// The file.
    pub source: Arc<Source>,
    /// Line, from 1; 0 if the file could not be read.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

/// Larger files are refused: a million entries are no baseline.
const MAX_BYTES: u64 = 256 << 20;

/// A baseline and what became of its entries.
#[derive(Debug)]
pub struct Baseline {
    /// The file.
    pub source: Arc<Source>,
    entries: Vec<Slot>,
    /// Entries by fingerprint and unit.
    by_key: BTreeMap<(String, String), Vec<usize>>,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// Line of the file.
    line: u32,
    taken: bool,
    stale: bool,
}

/// An entry that no longer occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Line of the file, from 1.
    pub line: u32,
    /// Rule id.
    pub rule: String,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// The first line that is no entry.
    pub fn read(path: &Path) -> Result<Baseline, BaselineError> {
        let unreadable = |message: String| BaselineError {
            source: Arc::new(Source { path: path.to_owned(), text: String::new() }),
            line: 0,
            message,
        };
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.len() > MAX_BYTES => {
                return Err(unreadable(format!("larger than {} MiB", MAX_BYTES >> 20)));
            }
            Ok(_) => {}
            Err(error) => return Err(unreadable(error.to_string())),
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Baseline::parse(path, text)
    }

    /// The same from a text.
    ///
    /// # Errors
    /// The first line that is no entry.
    pub fn parse(path: &Path, text: String) -> Result<Baseline, BaselineError> {
        let source = Arc::new(Source { path: path.to_owned(), text });
        let fail = |line: u32, message: String| BaselineError {
            source: Arc::clone(&source),
            line,
            message,
        };
        let mut lines = (1..).zip(source.text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let head = lines.next().and_then(|(_, line)| serde_json::from_str::<Head>(line).ok());
        match head {
            Some(Head { version: 1 }) => {}
            Some(Head { version }) => {
                return Err(fail(1, format!("version {version}: this anelint knows version 1")));
            }
            None => {
                let expected = r#"expected {"anelint-baseline":1} on the first line: no baseline"#;
                return Err(fail(1, expected.to_owned()));
            }
        }
        let mut entries = Vec::new();
        let mut seen = BTreeSet::new();
        for (line, text) in lines {
            let conflict = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];
            if conflict.iter().any(|mark| text.starts_with(mark)) {
                let message = "a merge conflict: keep the lines that are on both sides";
                return Err(fail(line, message.to_owned()));
            }
            let entry: Entry = serde_json::from_str(text).map_err(|error| {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                fail(line, format!("no entry of a baseline: {message}"))
            })?;
            // A merge may have left a line twice.
            if seen.insert((entry.fingerprint.clone(), entry.model.clone(), entry.target.clone())) {
                entries.push(Slot { entry, line, taken: false, stale: false });
            }
        }
        let mut by_key: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
        for (at, slot) in entries.iter().enumerate() {
            let key = (slot.entry.fingerprint.clone(), slot.entry.target.clone());
            by_key.entry(key).or_default().push(at);
        }
        Ok(Baseline { source, entries, by_key })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn folder(&self) -> PathBuf {
        self.source.path.parent().unwrap_or(Path::new("/")).to_owned()
    }

    /// Takes the entry of a finding of the model at `model`, absolute; whether there was one.
    pub fn take(&mut self, model: &Path, target: &str, finding: &Finding) -> bool {
        let name = model_name(model, &self.folder());
        self.take_where(target, finding, |entry| entry.model == name)
    }

    /// The same where the model's file has moved: an entry of a file that is gone stands for a finding
    /// of the same name, which then is an entry of the new file.
    pub fn take_moved(&mut self, model: &Path, target: &str, finding: &Finding) -> bool {
        let folder = self.folder();
        let name = model_name(model, &folder);
        let key = (finding.fingerprint.clone(), target.to_owned());
        let free = self.by_key.get(&key).into_iter().flatten().copied().find(|at| {
            self.entries
                .get(*at)
                .is_some_and(|slot| !slot.taken && !folder.join(&slot.entry.model).exists())
        });
        let Some(slot) = free.and_then(|at| self.entries.get_mut(at)) else { return false };
        slot.taken = true;
        slot.entry = Entry { model: name, ..slot.entry.clone() };
        true
    }

    fn take_where(
        &mut self,
        target: &str,
        finding: &Finding,
        fits: impl Fn(&Entry) -> bool,
    ) -> bool {
        let key = (finding.fingerprint.clone(), target.to_owned());
        let Some(slots) = self.by_key.get(&key) else { return false };
        let free = slots
            .iter()
            .copied()
            .find(|at| self.entries.get(*at).is_some_and(|slot| !slot.taken && fits(&slot.entry)));
        let Some(slot) = free.and_then(|at| self.entries.get_mut(at)) else { return false };
        slot.taken = true;
        true
    }

    /// The entries of a model that was checked with these rules and that no finding has taken.
    pub fn stale(&mut self, model: &Path, target: &str, ran: &BTreeSet<&str>) -> Vec<Stale> {
        let name = model_name(model, &self.folder());
        let mut stale = Vec::new();
        for slot in &mut self.entries {
            let entry = &slot.entry;
            if !slot.taken
                && entry.model == name
                && entry.target == target
                && ran.contains(entry.rule.as_str())
            {
                slot.stale = true;
                stale.push(Stale { line: slot.line, rule: entry.rule.clone() });
            }
        }
        stale
    }

    /// The text without the entries that no longer occur, and how many those are.
    pub fn pruned(&self) -> (String, usize) {
        let kept = self.entries.iter().filter(|slot| !slot.stale).map(|slot| slot.entry.clone());
        let kept: Vec<Entry> = kept.collect();
        let gone = self.entries.len() - kept.len();
        (text(kept), gone)
    }
}

/// The path of a model as entries have it.
fn model_name(model: &Path, folder: &Path) -> String {
    let mut up = PathBuf::new();
    for base in folder.ancestors() {
        if let Ok(rest) = model.strip_prefix(base) {
            let own = up.join(rest).to_string_lossy().into_owned();
            return if std::path::MAIN_SEPARATOR == '\\' { own.replace('\\', "/") } else { own };
        }
        up.push("..");
    }
    model.to_string_lossy().into_owned()
}

/// The entry of a finding, in a baseline in `folder`.
pub fn entry(model: &Path, target: &str, finding: &Finding, folder: &Path) -> Entry {
    Entry {
        model: model_name(model, folder),
        target: target.to_owned(),
        rule: finding.rule.clone(),
        modules: finding.modules.iter().map(|module| module.pattern.clone()).collect(),
        op: finding.op.0.clone(),
        fingerprint: finding.fingerprint.clone(),
        message: finding.message.clone(),
    }
}

/// The text of a baseline: sorted, one entry a line.
pub fn text(mut entries: Vec<Entry>) -> String {
    entries.sort();
    entries.dedup();
    let mut text = String::from("{\"anelint-baseline\":1}\n");
    for entry in entries {
        // Texts and lists of texts: nothing that could fail.
        if let Ok(line) = serde_json::to_string(&entry) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn own(model: &str, fingerprint: &str) -> Entry {
        Entry {
            model: model.into(),
            target: "neural-engine".into(),
            rule: "ANE004".into(),
            modules: vec!["layers.*".into()],
            op: "softmax".into(),
            fingerprint: fingerprint.into(),
            message: "ü \"quoted\"\nline".into(),
        }
    }

    fn parse(text: &str) -> Result<Baseline, BaselineError> {
        Baseline::parse(Path::new("/p/b.jsonl"), text.to_owned())
    }

    #[test]
    fn what_is_written_is_read_and_sorted() {
        let written = text(vec![own("b.pt2", "2"), own("a.pt2", "1"), own("a.pt2", "1")]);
        assert_eq!(written.lines().count(), 3);
        assert!(written.lines().nth(1).unwrap().starts_with("{\"model\":\"a.pt2\""));
        let read = parse(&written).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read.pruned(), (written, 0));
    }

    #[test]
    fn a_line_left_twice_by_a_merge_counts_once_and_a_conflict_is_named() {
        let written = text(vec![own("a.pt2", "1")]);
        let line = written.lines().nth(1).unwrap();
        assert_eq!(parse(&format!("{written}{line}\n\n")).unwrap().len(), 1);
        let error = parse(&format!("{written}<<<<<<< ours\n")).unwrap_err();
        assert_eq!((error.line, error.message.contains("merge conflict")), (3, true));
    }

    #[test]
    fn what_is_no_baseline_is_refused_with_its_line() {
        let line = |text: &str| parse(text).map(|_| 0).unwrap_or_else(|error| error.line);
        assert_eq!(line(""), 1);
        assert_eq!(line("{}\n"), 1);
        assert_eq!(line("{\"anelint-baseline\":2}\n"), 1);
        assert_eq!(line("{\"anelint-baseline\":1}\n{\"rule\":\"A\"}\n"), 2);
    }

    #[test]
    fn models_are_named_from_the_baselines_folder() {
        assert_eq!(model_name(Path::new("/p/build/a.pt2"), Path::new("/p")), "build/a.pt2");
        assert_eq!(model_name(Path::new("/p/a.pt2"), Path::new("/p/lint")), "../a.pt2");
    }
}
