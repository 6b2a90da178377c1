//! Fixes, applied: the bad cases of `testdata/fixes` against the files in `testdata/fixes/expected`, every
//! rewrite of every rule at least once; the committed proof; convergence over all of `testdata`.
//!
//! `UPDATE=1 cargo test --test fixes` writes the expected files anew: read them before they are accepted.
//! `RULES=files` reads the rule files anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs)]
#![cfg(unix)]

#[path = "support/rule_files.rs"]
mod rule_files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anelint::check::{CheckOptions, Checker};
use anelint::findings::fix::parses;
use anelint::findings::python::PythonFile;
use anelint::findings::source::{PlaceFile, SourceOptions};
use anelint::findings::{Finding, PreparedRules};
use anelint::fixes::{Applied, FixOptions, plan, write};
use anelint::report::InputReport;
use anelint::rules::{Applicability, RuleSet};
use anelint::target::Unit;
use serde_json::Value;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// A copy of the Python of some folders of `testdata`, in a folder of its own.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new(rooms: &[&str]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        for room in rooms {
            std::fs::create_dir_all(folder.path().join(room)).unwrap();
            for file in python(&testdata().join(room)) {
                let to = folder.path().join(room).join(file.file_name().unwrap());
                std::fs::copy(&file, to).unwrap();
            }
            // Read and never written: the graphs need no copy.
            let out = testdata().join(room).join("out");
            std::os::unix::fs::symlink(out, folder.path().join(room).join("out")).unwrap();
        }
        Tree { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).unwrap()
    }
}

fn python(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .collect();
    files.sort();
    files
}

/// Checks artifacts of `testdata` against both units, their source in `tree`.
fn check(set: &RuleSet, tree: &Tree, artifacts: &[String]) -> Vec<InputReport> {
    let prepared = PreparedRules::new(set).unwrap();
    let options = CheckOptions {
        units: vec![Unit::NeuralEngine, Unit::Gpu],
        source: SourceOptions { working_folder: tree.path(), ..SourceOptions::default() },
        ..CheckOptions::default()
    };
    let checker = Checker::new(set, &prepared, options).unwrap();
    artifacts
        .iter()
        .flat_map(|artifact| match checker.check(&tree.path().join(artifact), artifact) {
            Ok(reports) => reports,
            // A format without a reader.
            Err(error) => {
                assert!(
                    error.message().contains("not a model file that anelint knows"),
                    "{artifact}: {}",
                    error.message()
                );
                Vec::new()
            }
        })
        .collect()
}

fn options(tree: &Tree, unsafe_fixes: bool) -> FixOptions {
    FixOptions { unsafe_fixes, folders: vec![tree.path()] }
}

fn findings(reports: &[InputReport]) -> Vec<&Finding> {
    reports.iter().flat_map(|report| &report.findings).collect()
}

/// The cases of an index: name → (file, artifacts).
fn cases(index: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let text = std::fs::read_to_string(testdata().join(index)).unwrap();
    let index: Value = serde_json::from_str(&text).unwrap();
    index["cases"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, case)| {
            let artifacts = case["artifacts"].as_object().unwrap().values();
            let artifacts = artifacts.map(|own| own.as_str().unwrap().to_owned()).collect();
            (name.clone(), (case["file"].as_str().unwrap().to_owned(), artifacts))
        })
        .collect()
}

fn all_artifacts(index: &str) -> Vec<String> {
    cases(index).into_values().flat_map(|(_, artifacts)| artifacts).collect()
}

#[test]
fn the_bad_cases_become_the_expected_files() {
    let set = rule_files::rules();
    let tree = Tree::new(&["fixes"]);
    let before: BTreeMap<PathBuf, String> = python(&tree.path().join("fixes"))
        .into_iter()
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    let reports = check(&set, &tree, &all_artifacts("fixes.json"));
    let all = findings(&reports);
    // Safe ones alone leave what is unsafe as it is.
    let safe = plan(&all, &options(&tree, false));
    for file in &safe.files {
        let name = file.path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            !["upcasts_unsafe", "linear", "keys"].contains(&name.as_str()),
            "{name}.py holds unsafe fixes only"
        );
    }
    let mut applied = plan(&all, &options(&tree, true));
    assert_eq!(applied.left, [], "no file is left alone");
    assert_eq!(applied.overlapping, 0);
    write(&mut applied, &all);
    let mut wrong = Vec::new();
    for (path, old) in before {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let new = std::fs::read_to_string(&path).unwrap();
        assert_ne!(old, new, "{name}: nothing was fixed");
        let expected = testdata().join("fixes/expected").join(&name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(expected.parent().unwrap()).unwrap();
            std::fs::write(&expected, &new).unwrap();
        }
        if std::fs::read_to_string(&expected).unwrap_or_default() != new {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "not as expected: {wrong:?}; UPDATE=1 writes them anew");
}

/// What each case of `testdata/fixes` has as a fix: rule, rewrite, snippet, applicability.
type Used = BTreeSet<(String, usize, usize, &'static str)>;

fn used(set: &RuleSet, tree: &Tree, artifacts: &[String]) -> Used {
    let reports = check(set, tree, artifacts);
    findings(&reports)
        .into_iter()
        .filter_map(|finding| {
            let fix = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty())?;
            let (rewrite, snippet) = fix.origin?;
            Some((finding.rule.clone(), rewrite, snippet, fix.applicability.name()))
        })
        .collect()
}

#[test]
fn every_rewrite_of_every_rule_has_a_case_and_a_proof() {
    let set = rule_files::rules();
    let tree = Tree::new(&["fixes"]);
    let cases = cases("fixes.json");
    let text = std::fs::read_to_string(testdata().join("fixes/report.json"))
        .expect("scripts/prove_fixes.py writes it");
    let report: Value = serde_json::from_str(&text).unwrap();
    let mut all: BTreeSet<(String, usize, usize)> = BTreeSet::new();
    let mut problems = Vec::new();
    for (name, (file, artifacts)) in &cases {
        let used = used(&set, &tree, artifacts);
        if used.is_empty() {
            problems.push(format!("{name}: no fix"));
        }
        let proof = &report["cases"][name];
        let digest = |file: &Path| {
            PythonFile::read(file).map(|own| own.sha256().to_owned()).unwrap_or_default()
        };
        let stem = Path::new(file).file_name().unwrap();
        let bad = digest(&testdata().join(file));
        let good = digest(&testdata().join("fixes/expected").join(stem));
        if proof["bad_sha256"] != bad || proof["fixed_sha256"] != good {
            problems
                .push(format!("{name}: the proof is of other files: run scripts/prove_fixes.py"));
            continue;
        }
        let rules: BTreeSet<&str> = used.iter().map(|(rule, ..)| rule.as_str()).collect();
        let proven: BTreeSet<&str> =
            proof["fixed"].as_object().unwrap().keys().map(String::as_str).collect();
        if rules != proven {
            problems.push(format!("{name}: fixes of {rules:?}, proof of {proven:?}"));
        }
        let safe = used.iter().all(|(.., applicability)| *applicability == "safe");
        for (precision, figure) in proof["psnr_db"].as_object().unwrap() {
            // An equal output has no finite figure.
            let enough = figure == "equal" || figure.as_f64().is_some_and(|db| db >= 70.0);
            if safe && !enough {
                problems.push(format!("{name}: {figure} dB in {precision}"));
            }
        }
        if safe && proof["psnr_db"].as_object().unwrap().is_empty() {
            problems.push(format!("{name}: a safe fix without a figure"));
        }
        if proof["gone"] != true || proof["new_errors"].as_array().is_none_or(|new| !new.is_empty())
        {
            problems.push(format!("{name}: still there, or new errors: {proof}"));
        }
        all.extend(used.into_iter().map(|(rule, rewrite, snippet, _)| (rule, rewrite, snippet)));
    }
    for rule in set.rules() {
        for (at, fix) in rule.fixes().iter().enumerate() {
            if fix.applicability.value == Applicability::Display {
                continue;
            }
            for snippet in 0..fix.replace.len().max(1) {
                if !all.contains(&(rule.id().to_owned(), at, snippet)) {
                    let text = fix.replace.get(snippet).map_or("returned", |own| own.as_str());
                    problems.push(format!("{} rewrite {at} `{text}`: no case", rule.id()));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Edits lie inside the location or a related place of their finding.
fn inside(finding: &Finding) -> bool {
    let fix = finding.fix.as_ref().unwrap();
    fix.edits.iter().all(|edit| {
        let places = finding.spot.iter().chain(finding.related.iter().map(|(spot, _)| spot));
        places.into_iter().any(|spot| {
            spot.file.key() == edit.file.key()
                && spot.span.start <= edit.span.start
                && edit.span.end <= spot.span.end
        })
    })
}

#[test]
fn fixing_ends_and_everything_still_parses() {
    const ROUNDS: usize = 5;
    let set = rule_files::rules();
    for (room, index) in [
        ("cases", "cases.json"),
        ("fixes", "fixes.json"),
        ("models", "models.json"),
        ("mutations", "mutations.json"),
    ] {
        let tree = Tree::new(&[room]);
        let artifacts = all_artifacts(index);
        let mut rounds = 0;
        loop {
            let reports = check(&set, &tree, &artifacts);
            let all = findings(&reports);
            for finding in all.iter().filter(|finding| finding.fix.is_some()) {
                assert!(inside(finding), "{} edits outside its places", finding.message);
            }
            let mut applied: Applied = plan(&all, &options(&tree, true));
            if rounds == 0 {
                assert_eq!(applied.left, [], "{room}");
            }
            let old: Vec<(PathBuf, String)> =
                applied.files.iter().map(|file| (file.path.clone(), file.old.clone())).collect();
            write(&mut applied, &all);
            for (path, old) in old {
                let file = PythonFile::read(&path).unwrap();
                assert!(parses(&file), "{} does not parse any more", path.display());
                assert_ne!(file.text(), old);
            }
            if applied.files.is_empty() {
                break;
            }
            rounds += 1;
            assert!(rounds <= ROUNDS, "{room}: still edits after {ROUNDS} rounds");
        }
        eprintln!("{room}: {rounds} rounds");
        assert!(rounds > 0 || room == "models" || room == "mutations", "{room}: nothing to fix");
    }
}

#[test]
fn a_file_that_has_changed_since_the_export_is_left_alone() {
    let set = RuleSet::builtin();
    let tree = Tree::new(&["fixes"]);
    let path = tree.path().join("fixes/masks.py");
    // A line that the graph recorded reads otherwise; the one with the fault does not.
    let text = tree
        .text("fixes/masks.py")
        .replace("return (scores + mask).softmax", "return (mask + scores).softmax");
    std::fs::write(&path, &text).unwrap();
    let reports = check(&set, &tree, &["fixes/out/fix_float_inf.pt2".to_owned()]);
    let all = findings(&reports);
    assert!(all.iter().any(|finding| finding.rule == "ANE004"));
    let mut applied = plan(&all, &options(&tree, true));
    write(&mut applied, &all);
    assert!(applied.files.is_empty());
    assert_eq!(applied.left.len(), 1);
    assert!(applied.left[0].why.contains("changed since the export"), "{}", applied.left[0].why);
    assert_eq!(tree.text("fixes/masks.py"), text);
}

#[test]
fn marks_line_ends_and_tabs_are_kept() {
    let set = RuleSet::builtin();
    let tree = Tree::new(&["fixes"]);
    let path = tree.path().join("fixes/masks.py");
    let text = tree.text("fixes/masks.py");
    let odd = format!("\u{feff}{}", text.replace("    ", "\t").replace('\n', "\r\n"));
    std::fs::write(&path, &odd).unwrap();
    let reports = check(&set, &tree, &["fixes/out/fix_float_inf.pt2".to_owned()]);
    let all = findings(&reports);
    let mut applied = plan(&all, &options(&tree, false));
    write(&mut applied, &all);
    assert_eq!(applied.fixed.len(), 1);
    let expected = odd.replacen("float(\"-inf\")", "-40000.0", 1);
    assert_eq!(std::fs::read(&path).unwrap(), expected.as_bytes());
}

#[test]
fn a_file_outside_the_folders_is_left_alone() {
    let set = RuleSet::builtin();
    let tree = Tree::new(&["fixes"]);
    let reports = check(&set, &tree, &["fixes/out/fix_float_inf.pt2".to_owned()]);
    let all = findings(&reports);
    let elsewhere = tempfile::tempdir().unwrap();
    let own = FixOptions { unsafe_fixes: true, folders: vec![elsewhere.path().to_owned()] };
    let applied = plan(&all, &own);
    assert!(applied.files.is_empty());
    assert!(applied.left[0].why.contains("--source-root"), "{}", applied.left[0].why);
}

#[test]
fn a_fix_names_files_that_are_there() {
    let set = RuleSet::builtin();
    let tree = Tree::new(&["fixes"]);
    let reports = check(&set, &tree, &["fixes/out/fix_numpy_inf.pt2".to_owned()]);
    let fix = findings(&reports).into_iter().find_map(|finding| finding.fix.as_ref()).unwrap();
    let [edit] = fix.edits.as_slice() else { panic!("one edit") };
    let PlaceFile::Found(file) = &edit.file else { panic!("a file") };
    assert_eq!(file.path(), tree.path().join("fixes/masks.py"));
    assert_eq!(edit.text, "-40000.0");
}

/// The binary in a copy of the cases; what it said on both streams, and its exit code.
fn anelint(tree: &Tree, arguments: &[&str]) -> (String, String, i32) {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_anelint"))
        .args(["--color", "never", "check"])
        .args(arguments)
        .current_dir(tree.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&done.stdout), text(&done.stderr), done.status.code().unwrap())
}

#[test]
fn a_diff_is_shown_and_nothing_written() {
    let tree = Tree::new(&["fixes"]);
    let before = tree.text("fixes/upcasts.py");
    let (out, _, code) = anelint(&tree, &["--diff", "fixes/out/fix_softmax_torch_float32.pt2"]);
    assert_eq!(code, 1);
    let expected = "\
--- fixes/upcasts.py
+++ fixes/upcasts.py
@@ -28,7 +28,6 @@
         attn = torch.softmax(
             self.scores(q, k),
             dim=-1,  # over the keys
-            dtype=torch.float32,
         )
         return attn.to(v.dtype) @ v
 
";
    let line = |text: &str| {
        text.lines()
            .filter(|l| !l.starts_with("@@"))
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(line(&out), line(expected));
    assert_eq!(tree.text("fixes/upcasts.py"), before);
    // An unsafe fix is none unless asked for.
    let (out, _, code) = anelint(&tree, &["--diff", "fixes/out/fix_linear.pt2"]);
    assert_eq!((out.as_str(), code), ("", 0));
    let (out, _, code) = anelint(&tree, &["--diff", "--unsafe-fixes", "fixes/out/fix_linear.pt2"]);
    assert!(out.contains("+        self.proj = nn.Conv2d(D, D, 1)"), "{out}");
    assert_eq!(code, 1);
}

#[test]
fn what_is_fixed_is_said_to_be_and_counts_no_more() {
    let tree = Tree::new(&["fixes"]);
    let model = "fixes/out/fix_numpy_inf.pt2";
    let (out, _, code) = anelint(&tree, &["--select", "ANE004", model]);
    assert_eq!(code, 1);
    assert!(out.contains("safe fix (--fix) at fixes/masks.py:"), "{out}");
    assert!(out.contains("1 finding can be mended with --fix"), "{out}");
    let (out, _, code) = anelint(&tree, &["--select", "ANE004", "--fix", model]);
    assert!(out.contains("fixed, re-export to verify"), "{out}");
    assert!(out.contains("fixes/masks.py: 1 edit made"), "{out}");
    assert_eq!(code, 0, "{out}");
    assert!(tree.text("fixes/masks.py").contains("torch.full((length, length), -40000.0"));
    // The graph is still the old one, and its file another.
    let (out, _, code) = anelint(&tree, &["--select", "ANE004", "--fix", model]);
    assert!(!out.contains("edit made"), "{out}");
    assert_eq!(code, 1);
}

#[test]
fn the_json_report_tells_what_was_fixed() {
    let tree = Tree::new(&["fixes"]);
    let arguments = ["--select", "ANE006", "--fix", "--format", "json", "fixes/out/fix_linear.pt2"];
    let (out, ..) = anelint(&tree, &arguments);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["fixes"]["unsafe_left"], 1);
    assert_eq!(report["summary"]["fixed"], 0);
    assert_eq!(report["findings"][0]["fix"]["applicability"], "unsafe");
    assert!(report["findings"][0]["fix"]["note"].as_str().unwrap().contains("[:, :, None, None]"));
    let mut arguments = arguments.to_vec();
    arguments.push("--unsafe-fixes");
    let report: Value = serde_json::from_str(&anelint(&tree, &arguments).0).unwrap();
    assert_eq!(report["fixes"]["edited"][0]["file"], "fixes/linear.py");
    assert_eq!(report["summary"]["fixed"], 1);
    assert_eq!(report["findings"][0]["fixed"], true);
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let tree = Tree::new(&["fixes"]);
    let (_, err, code) = anelint(&tree, &["--unsafe-fixes", "fixes/out/fix_linear.pt2"]);
    assert!(err.contains("--unsafe-fixes"), "{err}");
    assert_eq!(code, 2);
    let (_, _, code) = anelint(&tree, &["--fix", "--diff", "fixes/out/fix_linear.pt2"]);
    assert_eq!(code, 2);
}
