//! `anelint test` and `anelint schema` as a rule's author runs them; the rule is the README's, word for
//! word.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anelint"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first YAML block of the README.
fn rule_of_the_readme() -> String {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let block = readme.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(block.contains("id: TEAM001"), "{block}");
    block.to_owned()
}

/// A folder with the README's rule and the models beside it that it names.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lint = folder.path().join("lint");
    std::fs::create_dir(&lint).unwrap();
    std::fs::write(lint.join("gelu-tanh.yaml"), rule_of_the_readme()).unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases/out");
    for (from, to) in [("coreml_gelu_tanh.pt2", "bad"), ("coreml_ok_gelu.pt2", "good")] {
        std::fs::copy(models.join(from), lint.join(format!("gelu-tanh.{to}.pt2"))).unwrap();
    }
    folder
}

#[test]
fn the_rule_of_the_readme_passes_its_cases() {
    let folder = project();
    let output = run(folder.path(), &["test", "lint"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("TEAM001 lint/gelu-tanh.bad.pt2"), "{text}");
    assert!(text.contains("TEAM001 lint/gelu-tanh.good.pt2: nothing, as promised"), "{text}");
    assert!(text.ends_with("1 rule: 2 ok\n"), "{text}");

    let check = run(
        folder.path(),
        &["check", "--rules", "lint/*.yaml", "--select", "TEAM001", "lint/gelu-tanh.bad.pt2"],
    );
    assert!(String::from_utf8_lossy(&check.stdout).contains("TEAM001"), "{check:?}");
}

#[test]
fn outcomes_have_names_and_fail() {
    let folder = project();
    let lint = folder.path().join("lint");
    let rule = rule_of_the_readme();
    // The models change places: the good one is promised to fire, and the bad one not to.
    std::fs::rename(lint.join("gelu-tanh.bad.pt2"), lint.join("one.pt2")).unwrap();
    std::fs::rename(lint.join("gelu-tanh.good.pt2"), lint.join("two.pt2")).unwrap();
    let tests = "tests:\n  - {model: one.pt2, expect: []}\n  - {model: two.pt2}\n  \
                 - {model: one.pt2, expect: ['contract.py:1']}\n";
    std::fs::write(lint.join("gelu-tanh.yaml"), rule + tests).unwrap();
    let output = run(folder.path(), &["test", "lint/gelu-tanh.yaml"]);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for outcome in ["false alarm", "missed", "moved"] {
        assert!(text.contains(outcome), "{outcome}: {text}");
    }
    assert!(text.contains("promised at contract.py:1, found at"), "{text}");
}

#[test]
fn a_folder_without_rules_and_a_model_that_is_gone_cannot_be_tested() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["test"]);
    assert_eq!(output.status.code(), Some(2));
    let rule = rule_of_the_readme() + "tests: [{model: gone.pt2}]\n";
    std::fs::write(folder.path().join("rule.yaml"), rule).unwrap();
    let output = run(folder.path(), &["test", "rule.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gone.pt2"), "{output:?}");
}

#[test]
fn the_schemas_printed_are_those_committed() {
    for name in ["rule", "check", "placement", "diff", "stats", "dump"] {
        let output = run(Path::new("."), &["schema", name]);
        let path = format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(text(&output), std::fs::read_to_string(path).unwrap(), "{name}");
    }
}
