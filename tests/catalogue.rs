//! The built-in rules on whole models, and on targets other than the usual one.
//!
//! Every finding of the whole models in `testdata/models` is listed in `snapshots/models/`, a file a
//! model, to be read by eye when it changes. `INSTA_UPDATE=always` writes the lists anew.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anelint::check::{CheckOptions, Checker};
use anelint::findings::source::{PlaceFile, SourceOptions, shown_path};
use anelint::findings::{Finding, PreparedRules};
use anelint::report::InputReport;
use anelint::rules::{RuleSet, Selection};
use anelint::target::{Generation, OsVersion, Unit};
use serde::Deserialize;

/// `testdata/models.json`.
#[derive(Deserialize)]
struct Index {
    cases: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    artifacts: BTreeMap<String, String>,
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// What is told apart from the usual target.
#[derive(Default)]
struct Against {
    chip: Option<Generation>,
    os: Option<OsVersion>,
    select: Vec<String>,
}

fn check(artifact: &str, against: &Against) -> InputReport {
    let set = RuleSet::builtin();
    let prepared = PreparedRules::new(&set).unwrap();
    let options = CheckOptions {
        units: vec![Unit::NeuralEngine],
        chip: against.chip,
        os: against.os,
        selection: Selection { select: against.select.clone(), ..Selection::default() },
        source: SourceOptions { working_folder: testdata(), ..SourceOptions::default() },
        ..CheckOptions::default()
    };
    let checker = Checker::new(&set, &prepared, options).unwrap();
    match checker.check(&testdata().join(artifact), artifact) {
        Ok(mut reports) => reports.remove(0),
        Err(error) => panic!("{artifact}: {}", error.message()),
    }
}

/// `models/bert.py:19` or the node.
fn place(finding: &Finding) -> String {
    match &finding.spot {
        None => finding.nodes.first().cloned().unwrap_or_default(),
        Some(spot) => {
            let file = match &spot.file {
                PlaceFile::Found(file) => shown_path(file.path(), &testdata()),
                PlaceFile::Recorded { file, .. } => file.clone(),
            };
            format!("{file}:{}", spot.span.start.line)
        }
    }
}

#[test]
fn findings_of_the_whole_models() {
    let index: Index =
        serde_json::from_str(&std::fs::read_to_string(testdata().join("models.json")).unwrap())
            .unwrap();
    for (name, model) in &index.cases {
        let mut text = String::new();
        for (suffix, artifact) in &model.artifacts {
            let report = check(artifact, &Against::default());
            writeln!(text, "== {suffix}").unwrap();
            for finding in &report.findings {
                let count = match finding.count {
                    1 => String::new(),
                    count => format!(" ×{count}"),
                };
                let (severity, rule) = (finding.severity, &finding.rule);
                writeln!(
                    text,
                    "{severity} {rule}{count} {}\n    {}",
                    place(finding),
                    finding.message
                )
                .unwrap();
            }
        }
        insta::with_settings!({
            snapshot_path => "../snapshots/models",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name.as_str(), text);
        });
    }
}

/// Rules found in an artifact, those alone that are asked for.
fn rules(artifact: &str, against: Against) -> Vec<String> {
    let wanted = against.select.clone();
    let mut found: Vec<String> = check(artifact, &against)
        .findings
        .into_iter()
        .map(|finding| format!("{}={}", finding.rule, finding.severity))
        .filter(|rule| wanted.iter().any(|id| rule.starts_with(id.as_str())))
        .collect();
    found.dedup();
    found
}

fn chip(name: &str, rule: &str) -> Against {
    Against { chip: Generation::parse(name), os: None, select: vec![rule.to_owned()] }
}

#[test]
fn caps_that_move_with_the_chip() {
    // A flat kernel of 15: 13 is the widest on M1.
    for suffix in ["pt2", "aimodel", "mlpackage"] {
        let artifact = format!("cases/out/conv_1x15.{suffix}");
        assert_eq!(rules(&artifact, chip("m1", "ANE029")), ["ANE029=error"]);
        assert!(rules(&artifact, chip("m2", "ANE029")).is_empty());
    }
    // 65536 in width, and an inner dim of 32768: from M4 on.
    for suffix in ["pt2", "aimodel"] {
        let wide = format!("cases/out/dim_65536.{suffix}");
        assert_eq!(rules(&wide, chip("m3", "ANE027")), ["ANE027=error"]);
        assert!(rules(&wide, chip("m4", "ANE027")).is_empty());
        let inner = format!("cases/out/inner_32768.{suffix}");
        assert_eq!(rules(&inner, chip("m3", "ANE028")), ["ANE028=error"]);
        assert!(rules(&inner, chip("m4", "ANE028")).is_empty());
    }
}

#[test]
fn a_compression_newer_than_the_os() {
    let os = |major| Against {
        chip: None,
        os: Some(OsVersion { major, minor: 0 }),
        select: vec!["ANE045".to_owned()],
    };
    let blocks = "cases/out/package_per_block.mlpackage";
    assert_eq!(rules(blocks, os(17)), ["ANE045=error"]);
    assert!(rules(blocks, os(18)).is_empty());
    assert!(rules("cases/out/package_per_channel.mlpackage", os(17)).is_empty());
}

#[test]
fn rules_that_are_off_unless_selected() {
    let selected = |rule: &str| Against { select: vec![rule.to_owned()], ..Against::default() };
    let silu = "cases/out/clean_block.aimodel";
    assert_eq!(rules(silu, selected("ANE070")), ["ANE070=advice"]);
    assert!(rules("cases/out/copy_none.aimodel", selected("ANE070")).is_empty());
    let literal = "cases/out/table_lerp_by_hand.pt2";
    assert_eq!(rules(literal, selected("ANE002")), ["ANE002=advice"]);
    // The same scale as an f16 buffer.
    assert!(rules("cases/out/clean_block.pt2", selected("ANE002")).is_empty());
    let usual = check(silu, &Against::default());
    assert!(usual.findings.iter().all(|finding| finding.rule != "ANE070"));
}
