//! From a path as recorded on some machine to a file on this one.
//!
//! # Threat model
//!
//! The path comes from a model file, which is untrusted: only regular files with a Python suffix are
//! opened, and only their lines that a finding names are ever shown.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::author::{FrameKind, components, frame_kind};
use crate::findings::python::PythonFile;
use crate::findings::python::comments::same_code;

/// Where source may be looked for.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// The working folder, absolute.
    pub working_folder: PathBuf,
    /// The folder of the project (that of its config file), absolute; searched like the working
    /// folder.
    pub project: Option<PathBuf>,
    /// Roots that the user named, absolute; searched first.
    pub roots: Vec<PathBuf>,
    /// Recorded prefix → prefix on this machine.
    pub path_maps: Vec<(String, PathBuf)>,
}

/// What a frame says of its file, besides the path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded<'a> {
    /// The path as recorded.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// The recorded text of the line, trimmed; empty if none.
    pub text: &'a str,
    /// Lower-case hex digest of the file; empty if none.
    pub sha256: &'a str,
}

/// A file found for a frame.
#[derive(Debug, Clone)]
pub enum Located {
    /// The file, and whether its recorded text or digest speaks for it.
    File(Arc<PythonFile>, Check),
    /// So many files fit, and nothing tells them apart.
    Ambiguous(usize),
    /// No file on this machine.
    Missing,
}

/// How a file compares with what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The digest or the line's text is the same.
    Same,
    /// So it is, but for suppression comments that came since.
    Commented,
    /// Nothing was recorded to compare with.
    Unchecked,
    /// The file is not as it was.
    Differs,
}

/// Finds files; remembers what it read.
#[derive(Debug)]
pub struct Locator {
    options: SourceOptions,
    /// Folders that recorded paths may be relative to, in order.
    bases: Vec<PathBuf>,
    files: RefCell<HashMap<PathBuf, Option<Arc<PythonFile>>, rustc_hash::FxBuildHasher>>,
    index: OnceCell<BTreeMap<String, Vec<PathBuf>>>,
}

/// Most folders and files looked at when the tree is searched by name.
const MAX_INDEXED: usize = 50_000;
/// How many folders above the model are tried.
const MAX_PARENTS: usize = 6;

impl Locator {
    /// A locator for the model at `model`.
    pub fn new(options: SourceOptions, model: &Path) -> Locator {
        let mut bases: Vec<PathBuf> = options.roots.clone();
        bases.push(options.working_folder.clone());
        bases.extend(options.project.clone());
        let model = options.working_folder.join(model);
        bases.extend(model.ancestors().skip(1).take(MAX_PARENTS).map(Path::to_owned));
        let mut seen = BTreeSet::new();
        // The root folder of the machine is nobody's project.
        bases.retain(|base| base.parent().is_some() && seen.insert(base.clone()));
        Locator { options, bases, files: RefCell::default(), index: OnceCell::new() }
    }

    /// The options it was made with.
    pub fn options(&self) -> &SourceOptions {
        &self.options
    }

    /// Reads a file once.
    pub fn read(&self, path: &Path) -> Option<Arc<PythonFile>> {
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        let python =
            path.extension().is_some_and(|suffix| matches!(suffix.to_str(), Some("py" | "pyi")));
        let file = if python { PythonFile::read(path).map(Arc::new) } else { None };
        self.files.borrow_mut().insert(path.to_owned(), file.clone());
        file
    }

    /// The file of a frame.
    pub fn locate(&self, recorded: Recorded<'_>) -> Located {
        self.locate_within(recorded, true)
    }

    /// The same without a walk over the whole tree.
    pub fn locate_near(&self, recorded: Recorded<'_>) -> Located {
        // Where the tree has been walked already, it costs nothing.
        self.locate_within(recorded, self.index.get().is_some())
    }

    fn locate_within(&self, recorded: Recorded<'_>, everywhere: bool) -> Located {
        if let Some(path) = self.mapped(recorded.file)
            && let Some(file) = self.read(&path)
        {
            let check = compare(&file, recorded);
            return Located::File(file, check);
        }
        let kind = frame_kind(recorded.file, &self.options.roots);
        if matches!(kind, FrameKind::Generated | FrameKind::Notebook) {
            return Located::Missing;
        }
        let mut candidates = Candidates::default();
        let path = Path::new(recorded.file);
        let parts = components(recorded.file);
        if path.is_absolute()
            && let Some(file) = self.read(path)
        {
            candidates.add(parts.len() + 1, file);
        }
        if kind == FrameKind::Author {
            for base in &self.bases {
                for skipped in 0..parts.len() {
                    let suffix: PathBuf = parts[skipped..].iter().collect();
                    if let Some(file) = self.read(&base.join(suffix)) {
                        candidates.add(parts.len() - skipped, file);
                        break;
                    }
                }
            }
        }
        if let Some(found) = candidates.verified(recorded) {
            return found;
        }
        if everywhere
            && kind == FrameKind::Author
            && let Some(name) = parts.last()
        {
            for path in self.index().get(name).into_iter().flatten() {
                let own = components(&path.to_string_lossy());
                let common = own.iter().rev().zip(parts.iter().rev()).take_while(|(a, b)| a == b);
                let length = common.count();
                if let Some(file) = self.read(path) {
                    candidates.add(length, file);
                }
            }
            if let Some(found) = candidates.verified(recorded) {
                return found;
            }
        }
        candidates.unverified(recorded, parts.len())
    }

    fn mapped(&self, recorded: &str) -> Option<PathBuf> {
        let boundary = |rest: &str| rest.is_empty() || rest.starts_with(['/', '\\']);
        let (_, rest, new) = self
            .options
            .path_maps
            .iter()
            .filter_map(|(old, new)| {
                let old = old.trim_end_matches(['/', '\\']);
                let rest = recorded.strip_prefix(old)?;
                (old.is_empty() || boundary(rest)).then_some((old.len(), rest, new))
            })
            .max_by_key(|(length, ..)| *length)?;
        let mut path = self.options.working_folder.join(new);
        path.extend(components(rest));
        Some(path)
    }

    /// Python files under the roots (the project's folder, or else the working folder, if none is
    /// named), by file name.
    fn index(&self) -> &BTreeMap<String, Vec<PathBuf>> {
        self.index.get_or_init(|| {
            let project = self.options.project.as_ref();
            let own = [project.unwrap_or(&self.options.working_folder).clone()];
            let roots: &[PathBuf] =
                if self.options.roots.is_empty() { &own } else { &self.options.roots };
            let mut index: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
            let mut seen = 0;
            for root in roots.iter().filter(|root| root.parent().is_some()) {
                let walk = walkdir::WalkDir::new(root)
                    .max_depth(16)
                    .sort_by_file_name()
                    .into_iter()
                    .filter_entry(|entry| entry.depth() == 0 || !is_skipped(entry));
                for entry in walk.filter_map(Result::ok) {
                    seen += 1;
                    if seen > MAX_INDEXED {
                        return index;
                    }
                    let path = entry.path();
                    if entry.file_type().is_file()
                        && path.extension().is_some_and(|suffix| suffix == "py")
                    {
                        let name = entry.file_name().to_string_lossy().into_owned();
                        index.entry(name).or_default().push(path.to_owned());
                    }
                }
            }
            index
        })
    }
}

/// Folders that hold no source of the author's.
fn is_skipped(entry: &walkdir::DirEntry) -> bool {
    entry.file_type().is_dir()
        && (matches!(
            entry.file_name().to_str(),
            Some("node_modules" | "site-packages" | "__pycache__" | "venv" | "target")
        ) || entry.file_name().to_string_lossy().starts_with('.')
            || entry.path().join("pyvenv.cfg").is_file())
}

/// Files that may be the one, with the number of path components they share with it.
#[derive(Default)]
struct Candidates {
    files: Vec<(usize, PathBuf, Arc<PythonFile>)>,
}

impl Candidates {
    fn add(&mut self, length: usize, file: Arc<PythonFile>) {
        // One file reached by two ways is one candidate.
        let own = file.path().canonicalize().unwrap_or_else(|_| file.path().to_owned());
        match self.files.iter_mut().find(|(_, known, _)| *known == own) {
            Some((known, ..)) => *known = (*known).max(length),
            None => self.files.push((length, own, file)),
        }
    }

    /// The file that the digest or the text speaks for, by longest suffix.
    fn verified(&self, recorded: Recorded<'_>) -> Option<Located> {
        let by_digest = self
            .files
            .iter()
            .filter(|(.., file)| !recorded.sha256.is_empty() && file.sha256() == recorded.sha256)
            .max_by_key(|(length, ..)| *length);
        if let Some((.., file)) = by_digest {
            return Some(Located::File(Arc::clone(file), Check::Same));
        }
        let same: Vec<_> = self
            .files
            .iter()
            .filter(|(.., file)| matches!(compare(file, recorded), Check::Same | Check::Commented))
            .collect();
        longest(&same).map(|found| match found {
            Ok(file) => {
                let check = compare(&file, recorded);
                Located::File(file, check)
            }
            Err(count) => Located::Ambiguous(count),
        })
    }

    /// The one file that fits by its path alone: two components or more, or all that were recorded.
    fn unverified(&self, recorded: Recorded<'_>, recorded_length: usize) -> Located {
        let fits: Vec<_> =
            self.files.iter().filter(|(length, ..)| *length >= 2.min(recorded_length)).collect();
        match longest(&fits) {
            None => Located::Missing,
            Some(Err(count)) => Located::Ambiguous(count),
            Some(Ok(file)) => {
                let check = compare(&file, recorded);
                Located::File(file, check)
            }
        }
    }
}

/// The file with the longest suffix, or how many there are of that length.
fn longest(files: &[&(usize, PathBuf, Arc<PythonFile>)]) -> Option<Result<Arc<PythonFile>, usize>> {
    let length = files.iter().map(|(length, ..)| *length).max()?;
    let best: Vec<_> = files.iter().filter(|(own, ..)| *own == length).collect();
    Some(match best.as_slice() {
        [(.., file)] => Ok(Arc::clone(file)),
        several => Err(several.len()),
    })
}

/// Holds a file against what was recorded of it.
pub fn compare(file: &PythonFile, recorded: Recorded<'_>) -> Check {
    if !recorded.sha256.is_empty() && file.sha256() == recorded.sha256 {
        return Check::Same;
    }
    let bare = file.bare();
    if !recorded.text.is_empty() {
        let same = |line: u32| file.line(line).is_some_and(|line| same_code(line, recorded.text));
        let moved = bare.and_then(|bare| bare.line_of(recorded.line));
        return match (same(recorded.line), moved.is_some_and(same)) {
            (true, _) => Check::Same,
            (false, true) => Check::Commented,
            (false, false) => Check::Differs,
        };
    }
    match bare {
        _ if recorded.sha256.is_empty() => Check::Unchecked,
        Some(bare) if bare.sha256 == recorded.sha256 => Check::Commented,
        _ => Check::Differs,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Tree { dir }
        }

        fn locator(&self, model: &str) -> Locator {
            let options = SourceOptions {
                working_folder: self.dir.path().to_owned(),
                ..SourceOptions::default()
            };
            Locator::new(options, Path::new(model))
        }

        fn found(&self, located: Located) -> String {
            match located {
                Located::File(file, check) => {
                    let path = file.path().strip_prefix(self.dir.path()).unwrap();
                    format!("{} {check:?}", path.display())
                }
                Located::Ambiguous(count) => format!("{count} fit"),
                Located::Missing => "missing".to_owned(),
            }
        }
    }

    fn recorded<'a>(file: &'a str, text: &'a str) -> Recorded<'a> {
        Recorded { file, line: 1, text, sha256: "" }
    }

    #[test]
    fn the_longest_suffix_wins() {
        let tree = Tree::new(&[("src/net/m.py", "x = 1\n"), ("m.py", "x = 1\n")]);
        let locator = tree.locator("out/a.pt2");
        let at = |file| tree.found(locator.locate(recorded(file, "x = 1")));
        assert_eq!(at("/home/them/project/src/net/m.py"), "src/net/m.py Same");
        assert_eq!(at("C:\\work\\src\\net\\m.py"), "src/net/m.py Same");
        assert_eq!(at("/elsewhere/m.py"), "m.py Same");
    }

    #[test]
    fn the_models_own_folder_and_those_above_it_are_tried() {
        let tree = Tree::new(&[("testdata/cases/m.py", "x = 1\n")]);
        let locator = tree.locator("testdata/cases/out/a.pt2");
        assert_eq!(
            tree.found(locator.locate(recorded("cases/m.py", "x = 1"))),
            "testdata/cases/m.py Same"
        );
    }

    #[test]
    fn two_files_that_fit_are_told_apart_by_text_or_digest_or_not_at_all() {
        let tree = Tree::new(&[("a/m.py", "x = 1\n"), ("b/m.py", "x = 2\n")]);
        let locator = tree.locator("a.pt2");
        let at = |r| tree.found(locator.locate(r));
        assert_eq!(at(recorded("/x/m.py", "x = 2")), "b/m.py Same");
        assert_eq!(at(recorded("/x/m.py", "")), "missing");
        assert_eq!(at(recorded("m.py", "")), "2 fit");
        let digest = PythonFile::new("x".into(), "x = 1\n".into()).sha256().to_owned();
        let by_digest = Recorded { file: "m.py", line: 1, text: "", sha256: &digest };
        assert_eq!(at(by_digest), "a/m.py Same");
    }

    #[test]
    fn a_changed_file_is_said_to_differ() {
        let tree = Tree::new(&[("pkg/m.py", "y = 3\n")]);
        let locator = tree.locator("a.pt2");
        assert_eq!(
            tree.found(locator.locate(recorded("/x/pkg/m.py", "x = 1"))),
            "pkg/m.py Differs"
        );
    }

    #[test]
    fn a_map_of_prefixes_goes_first() {
        let tree = Tree::new(&[("new/m.py", "x = 1\n"), ("m.py", "x = 1\n")]);
        let mut locator = tree.locator("a.pt2");
        locator.options.path_maps =
            vec![("/build".to_owned(), "old".into()), ("/build/src".to_owned(), "new".into())];
        assert_eq!(
            tree.found(locator.locate(recorded("/build/src/m.py", "x = 1"))),
            "new/m.py Same"
        );
        assert_eq!(tree.found(locator.locate(recorded("/build/srcs/m.py", "x = 1"))), "m.py Same");
    }

    #[test]
    fn only_python_files_are_opened() {
        let tree = Tree::new(&[("secret.txt", "x = 1\n")]);
        let locator = tree.locator("a.pt2");
        let path = tree.dir.path().join("secret.txt");
        let file = path.to_str().unwrap();
        assert_eq!(tree.found(locator.locate(recorded(file, "x = 1"))), "missing");
        assert_eq!(tree.found(locator.locate(recorded("<eval_with_key>.1", ""))), "missing");
    }
}
