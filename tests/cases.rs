//! The Python source is the test: every artifact of `testdata/cases` is checked, and its findings must
//! lie where the `# expect:` comments of its case say (grammar in `testdata/README.md`).
//!
//! `CASE=masks cargo test --test cases` looks at cases and files whose name holds that word;
//! `RULES=files` reads the rule files anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, missing_docs)]

#[path = "cases_support/expectation.rs"]
mod expectation;
#[path = "cases_support/judge.rs"]
mod judge;
#[path = "support/rule_files.rs"]
mod rule_files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anelint::check::{CheckOptions, Checker};
use anelint::findings::PreparedRules;
use anelint::findings::source::SourceOptions;
use anelint::target::{Provider, Runtime, Unit};
use serde::Deserialize;

/// `testdata/cases.json`.
#[derive(Deserialize)]
struct Index {
    cases: BTreeMap<String, Case>,
}

/// One case.
#[derive(Deserialize)]
struct Case {
    /// `[file, first line, last line]` whose comments are this case's.
    spans: Vec<(String, u32, u32)>,
    /// Suffix → artifact.
    artifacts: BTreeMap<String, String>,
}

/// Artifacts that are known to differ, with the reason: said aloud, and taken off this list by the
/// test itself once they hold.
const KNOWN: &[(&str, &str)] = &[(
    "cases/out/neginf_finfo_buffer.onnx",
    "the buffer is finite in the f32 module that was exported: only .half() makes it -inf",
)];

#[test]
fn every_artifact_has_the_findings_that_its_source_promises() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let index: Index =
        serde_json::from_str(&std::fs::read_to_string(testdata.join("cases.json")).unwrap())
            .unwrap();
    let wanted = std::env::var("CASE").unwrap_or_default();
    let set = rule_files::rules();
    let prepared = PreparedRules::new(&set).unwrap();
    let mut looked_at = 0;
    let mut report = String::new();
    let mut wrong = 0;
    for (name, case) in &index.cases {
        let file = case.spans.first().map_or("", |(file, ..)| file);
        if !name.contains(&wanted) && !file.contains(&wanted) {
            continue;
        }
        let lines = expectation::of_case(&testdata, &case.spans);
        for (suffix, artifact) in &case.artifacts {
            let path = testdata.join(artifact);
            for (unit, runtime) in targets(&lines) {
                let checker =
                    Checker::new(&set, &prepared, options(&testdata, unit, runtime.as_deref()))
                        .unwrap();
                let outcome = match checker.check(&path, artifact) {
                    Ok(mut reports) => reports.remove(0),
                    Err(error) => panic!("{artifact}: {}", error.message()),
                };
                looked_at += 1;
                let expected =
                    expectation::for_artifact(&lines, suffix, unit, runtime.as_deref(), &set);
                let problems = judge::judge(&expected, &outcome, suffix, &testdata);
                if let Some((_, reason)) = KNOWN.iter().find(|(known, _)| known == artifact) {
                    eprintln!("known to differ: {artifact}: {reason}");
                    assert!(!problems.is_empty(), "{artifact} holds now: take it off KNOWN");
                    continue;
                }
                if !problems.is_empty() {
                    wrong += 1;
                    report.push_str(&format!("\n{name} ({artifact}, {unit})\n"));
                    for problem in problems {
                        report.push_str(&format!("  {problem}\n"));
                    }
                }
            }
        }
    }
    assert!(looked_at > 0 || !wanted.is_empty(), "no artifact was looked at");
    assert!(wrong == 0, "{wrong} of {looked_at} artifacts differ from their source:\n{report}");
}

/// The targets that the comments of a case speak of: the Neural Engine unless they name another unit
/// for the whole case; and each target of `expect[…]`, a runtime by name and with its provider
/// (`onnxruntime@1.26`).
fn targets(lines: &[expectation::Line]) -> Vec<(Unit, Option<String>)> {
    let only = lines.iter().find_map(|line| line.unit);
    let mut targets = vec![(only.unwrap_or(Unit::NeuralEngine), None)];
    for line in lines {
        let target = match line.target.as_deref() {
            None => continue,
            Some(name) => match Unit::parse(name) {
                Some(unit) => (unit, None),
                None => (Unit::NeuralEngine, Some(name.to_owned())),
            },
        };
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

fn options(testdata: &Path, unit: Unit, runtime: Option<&str>) -> CheckOptions {
    let (runtime, provider) = match runtime.map(|name| name.split_once('@').unwrap_or((name, ""))) {
        None => (None, None),
        Some((name, provider)) => (
            Some(Runtime::parse(name).unwrap_or_else(|| panic!("expect[{name}] names no target"))),
            Provider::parse(provider),
        ),
    };
    CheckOptions {
        units: vec![unit],
        runtime,
        provider,
        source: SourceOptions {
            working_folder: PathBuf::from(testdata),
            ..SourceOptions::default()
        },
        ..CheckOptions::default()
    }
}
