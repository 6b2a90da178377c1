//! Compiled Core AI assets: a `.aimodelc` directory.
//!
//! What the compiler did shows in the files it left: each `*_ANE_region_*.mlir.bc` is one region of
//! the Neural Engine. Only files count; their folders match the same pattern and would double the
//! number. The program inside (`main-<arch>.mlirb`) is read like an asset's, as far as that goes.
//!
//! Regions, architectures and delegates become metadata of the program: `architecture`, `delegates`,
//! `regions` and `regions:<function>`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::graph::{Format, FunctionRole, Program};
use crate::readers::{ReadError, ReadOptions, aimodel, source};

/// Most files of a compiled asset that are looked at.
const MOST_FILES: usize = 100_000;
/// Deepest folder that is looked into.
const DEEPEST: usize = 24;
/// Most bytes of a region that are read to name its ops.
const LARGEST_REGION: u64 = 64 << 20;

/// Whether a folder is a compiled asset: a program for an architecture, or delegates of one.
pub fn is_compiled(folder: &Path) -> bool {
    let by_name = folder.extension().is_some_and(|extension| extension == "aimodelc");
    by_name || programs(folder).next().is_some()
}

/// `main-<arch>.mlirb` files: architecture and path, in order.
fn programs(folder: &Path) -> std::collections::btree_map::IntoIter<String, std::path::PathBuf> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(arch) = name.strip_prefix("main-").and_then(|rest| rest.strip_suffix(".mlirb"))
        {
            found.insert(arch.to_owned(), entry.path());
        }
    }
    found.into_iter()
}

/// What was found below a compiled asset.
#[derive(Debug, Default)]
struct Found {
    /// `main-<arch>-delegates` folders.
    architectures: BTreeSet<String>,
    /// Delegates by name (`MPSGraph`).
    delegates: BTreeSet<String>,
    /// Regions by function; `(architecture, name of the region)` each once.
    regions: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Region files, with their function.
    files: Vec<(String, std::path::PathBuf)>,
}

/// Reads a compiled asset.
///
/// # Errors
/// [`ReadError`] if the folder holds neither a program nor delegates.
pub fn read(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let mut program = Program::new(path.to_owned(), Format::AiModelC);
    aimodel::metadata(&path.join("metadata.json"), &mut program);
    let mut found = survey(path, &mut program);
    let mut read_one = false;
    for (arch, file) in programs(path).chain(
        // An asset for one architecture may keep the plain name.
        Some((String::new(), path.join(aimodel::PROGRAM))).filter(|(_, file)| file.is_file()),
    ) {
        if !arch.is_empty() {
            found.architectures.insert(arch.clone());
        }
        // The program is the same for every architecture: one reading is enough.
        if read_one {
            continue;
        }
        let bytes = source::open(&file, options)?;
        match aimodel::bytecode(path, bytes, &mut program) {
            Ok(()) => read_one = true,
            Err(error) => program.notes.push(format!("{}: {error}", file.display())),
        }
    }
    if !read_one && found.architectures.is_empty() && found.files.is_empty() {
        return Err(ReadError::broken(
            path,
            "a compiled asset without a program: no main-<architecture>.mlirb and no delegates",
        ));
    }
    record(&mut program, &found);
    Ok(program)
}

/// Looks through the folder for delegates and regions.
fn survey(path: &Path, program: &mut Program) -> Found {
    let mut found = Found::default();
    let mut looked_at = 0;
    let walk = walkdir::WalkDir::new(path).max_depth(DEEPEST).sort_by_file_name();
    for entry in walk.into_iter().flatten() {
        looked_at += 1;
        if looked_at > MOST_FILES {
            program.notes.push(format!("only the first {MOST_FILES} files were looked at"));
            break;
        }
        let relative = entry.path().strip_prefix(path).unwrap_or(entry.path());
        let parts: Vec<&str> =
            relative.components().filter_map(|part| part.as_os_str().to_str()).collect();
        let arch = parts.first().and_then(|first| {
            first.strip_prefix("main-").and_then(|rest| rest.strip_suffix("-delegates"))
        });
        if let (Some(arch), Some(delegate)) = (arch, parts.get(1))
            && entry.file_type().is_dir()
        {
            found.architectures.insert(arch.to_owned());
            found.delegates.insert((*delegate).to_owned());
        }
        if !entry.file_type().is_file() {
            continue;
        }
        let Some((function, region)) = region(&parts) else { continue };
        let key = (arch.unwrap_or("").to_owned(), region);
        if found.regions.entry(function.clone()).or_default().insert(key) {
            found.files.push((function, entry.into_path()));
        }
    }
    found
}

/// Function and region of a path that ends in a region's file:
/// `…/<function>_ANE_region_<i>_<j>.bc/<arch>/<anything>.mlir.bc`.
fn region(parts: &[&str]) -> Option<(String, String)> {
    const MARK: &str = "_ANE_region_";
    let (file, folders) = parts.split_last()?;
    let stem = file.strip_suffix(".mlir.bc")?;
    let named = std::iter::once(stem)
        .chain(folders.iter().rev().map(|folder| folder.strip_suffix(".bc").unwrap_or(folder)))
        .find_map(|name| name.split_once(MARK));
    let (function, numbers) = named?;
    Some((function.to_owned(), format!("{function}{MARK}{numbers}")))
}

/// Writes down what was found, as metadata and notes.
fn record(program: &mut Program, found: &Found) {
    let joined =
        |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let total: usize = found.regions.values().map(BTreeSet::len).sum();
    let mut pairs = vec![
        ("architecture".to_owned(), joined(&found.architectures)),
        ("delegates".to_owned(), joined(&found.delegates)),
        ("regions".to_owned(), total.to_string()),
    ];
    // Every function is named, also one without a region.
    let functions: BTreeSet<String> = program
        .functions
        .iter()
        .filter(|function| function.role == FunctionRole::Entry)
        .map(|function| program.names.get(function.name).to_owned())
        .chain(found.regions.keys().cloned())
        .collect();
    for function in functions {
        let count = found.regions.get(&function).map_or(0, BTreeSet::len);
        pairs.push((format!("regions:{function}"), count.to_string()));
    }
    for (key, value) in pairs {
        let pair = (program.names.intern(&key), program.names.intern(&value));
        program.metadata.push(pair);
    }
    for (function, file) in &found.files {
        if let Some(note) = describe(function, file) {
            program.notes.push(note);
        }
    }
}

/// What a region's bytecode holds, as far as it can be read.
fn describe(function: &str, file: &Path) -> Option<String> {
    let size = std::fs::metadata(file).ok()?.len();
    if size == 0 || size > LARGEST_REGION {
        return None;
    }
    let bytes = std::fs::read(file).ok()?;
    let name = file.file_name()?.to_string_lossy();
    Some(match aimodel::op_names(&bytes) {
        Ok(names) => format!("region of {function}: {name}: {}", names.join(" ")),
        Err(_) => format!("region of {function}: {name}: not readable as MLIR bytecode"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn file(root: &Path, name: &str, bytes: &[u8]) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    const BUNDLE: &str =
        "main-h18p-delegates/MPSGraph/0/mpsExecutable.mpsgraphpackage/binary_0.llir.bundle";

    #[test]
    fn regions_are_counted_by_file_and_grouped_by_function() {
        let root = tempfile::tempdir().unwrap();
        let root = &root.path().join("decoder.aimodelc");
        file(
            root,
            "metadata.json",
            br#"{"assetVersion": "2.0", "producer": "coreai-core 1.0.0b3"}"#,
        );
        for (function, j) in [("extend", 0), ("extend", 1), ("prompt", 0)] {
            let region = format!("{function}_ANE_region_0_{j}");
            file(root, &format!("{BUNDLE}/{region}.bc/h18p/{region}.mlir.bc"), b"");
            // A neighbour of the region is none.
            file(root, &format!("{BUNDLE}/{region}.bc/h18p/notes.txt"), b"");
        }
        assert!(is_compiled(root));
        let program = read(root, ReadOptions::default()).unwrap();
        assert_eq!(program.producer, "coreai-core 1.0.0b3");
        assert_eq!(program.metadata("architecture"), Some("h18p"));
        assert_eq!(program.metadata("delegates"), Some("MPSGraph"));
        assert_eq!(program.metadata("regions"), Some("3"));
        assert_eq!(program.metadata("regions:extend"), Some("2"));
        assert_eq!(program.metadata("regions:prompt"), Some("1"));
    }

    #[test]
    fn a_region_file_without_a_telling_name_counts_once_by_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        file(root, &format!("{BUNDLE}/main_ANE_region_0_0.bc/h18p/unit.mlir.bc"), b"ML\xefR\x0d");
        file(root, "main-h18p.mlirb", b"not bytecode");
        let program = read(root, ReadOptions::default()).unwrap();
        assert_eq!(program.metadata("regions:main"), Some("1"));
        assert_eq!(program.functions.len(), 0);
        assert!(program.notes.iter().any(|note| note.contains("main-h18p.mlirb")));
    }

    #[test]
    fn an_asset_without_a_region_says_so_for_each_function() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        std::fs::create_dir_all(root.join("main-h18p-delegates/MPSGraph")).unwrap();
        let asset = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/aimodel/linear.aimodel");
        std::fs::copy(asset.join("main.mlirb"), root.join("main-h18p.mlirb")).unwrap();
        let program = read(root, ReadOptions::default()).unwrap();
        assert_eq!(program.metadata("regions"), Some("0"));
        assert_eq!(program.metadata("regions:main"), Some("0"));
        assert_eq!(program.functions.len(), 1);
    }

    #[test]
    fn a_folder_with_nothing_in_it_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("x.aimodelc");
        std::fs::create_dir(&folder).unwrap();
        assert!(read(&folder, ReadOptions::default()).is_err());
    }
}
