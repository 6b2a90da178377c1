//! Whether a file of the author's may be edited on the word of a graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::author::{FrameKind, frame_kind};
use super::locate::{Check, Located, Recorded, compare};
use super::place::SourceMap;
use crate::findings::fix::CHANGED;
use crate::findings::python::PythonFile;
use crate::graph::Name;

impl SourceMap<'_> {
    /// Why a file must not be edited; `None` if it may.
    pub fn refusal(&self, file: &PythonFile) -> Option<&'static str> {
        let kind = frame_kind(&file.path().to_string_lossy(), &self.locator.options().roots);
        if kind != FrameKind::Author {
            return Some("it belongs to an installed package");
        }
        let changed = self.changed.get_or_init(|| self.changed_files());
        changed.contains(file.path()).then_some(CHANGED)
    }

    /// The files of which some line that the graph recorded, or the digest, is another one now.
    fn changed_files(&self) -> BTreeSet<PathBuf> {
        let text = |name: Name| self.program.text(name);
        let mut located: BTreeMap<Name, Option<Arc<PythonFile>>> = BTreeMap::new();
        let mut changed = BTreeSet::new();
        for frame in self.program.sources.all_frames() {
            let kind = frame_kind(text(frame.file), &self.locator.options().roots);
            if kind != FrameKind::Author {
                continue;
            }
            let recorded = Recorded {
                file: text(frame.file),
                line: frame.line,
                text: text(frame.text).trim(),
                sha256: text(frame.sha256),
            };
            let file =
                located.entry(frame.file).or_insert_with(|| match self.locator.locate(recorded) {
                    Located::File(file, _) => Some(file),
                    Located::Ambiguous(_) | Located::Missing => None,
                });
            if let Some(file) = file
                && compare(file, recorded) == Check::Differs
            {
                changed.insert(file.path().to_owned());
            }
        }
        changed
    }
}
