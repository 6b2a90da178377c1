//! The same module exported to `.pt2` and converted to `.aimodel` gives the same findings: rule and line.
//!
//! Where the converter folds a fault away or makes another of it, the case says so in its comment
//! (`# expect: ANE005; aimodel: ANE004`), and the rules named there may differ on that line. What a
//! comment cannot say stands in [`KNOWN`], with the reason; an entry that is not needed fails the test.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "cases_support/expectation.rs"]
#[allow(dead_code)]
mod expectation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anelint::check::{CheckOptions, Checker};
use anelint::findings::PreparedRules;
use anelint::findings::source::{PlaceFile, SourceOptions, shown_path};
use anelint::rules::RuleSet;
use anelint::target::Unit;
use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    spans: Vec<(String, u32, u32)>,
    artifacts: BTreeMap<String, String>,
}

/// Case, the rules that differ in it, and what the converter does there.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "copy_casts",
        &["ANE010"],
        "ANE042: the converter removes two casts with nothing in between, and the cut goes with them",
    ),
    ("copy_pair", &["ANE042"], "the converter removes two transposes that undo each other"),
    (
        "dynamic_two",
        &["ANE064"],
        "the converter spreads the keys over a batch that it does not know: in the asset they look repeated",
    ),
    (
        "norm_of_sound",
        &["ANE037"],
        "the norm over the axis of a 1-D convolution is seen in the asset only, where that axis is the width",
    ),
    (
        "off_lstm",
        &["ANE042"],
        "the converter writes the LSTM out, and a transpose in front of it stands at the LSTM's line",
    ),
    (
        "last_channels_last",
        &["ANE008"],
        "ANE008: an asset does not record the strides of its inputs",
    ),
    (
        "minus_1e9_times",
        &["ANE010"],
        "ANE005: the converter multiplies in f32 by a number that f16 cannot hold: an island that cuts",
    ),
    (
        "off_topk_end",
        &["ANE010", "ANE022"],
        "ANE025: the converter makes a sort, an argsort and two slices of topk; the slices lie beyond the cut",
    ),
    (
        "place_lines",
        &["ANE004"],
        "the number has become -inf, and ANE004 points at the argument where ANE005 points at the call",
    ),
    (
        "mutant_mask_bool_added",
        &["COM029"],
        "COM029: the mask is a constant, and the converter folds its cast: ones and zeros of f16 are added",
    ),
    (
        "mutant_raw_key",
        &["ANE011"],
        "the converter merges the two equal projections; in the program the returned key is a value of its own",
    ),
];

/// Rules that speak of one of the two formats, as their own `format:` or `why` says.
const BY_FORMAT: &[(&str, &str)] = &[
    ("COM018", "the converter makes every int64 input a 32-bit one"),
    (
        "COM024",
        "an exported program has one function and no name that a runtime reads: assets only",
    ),
    ("COM013", "an exported program has no producer that a runtime minds: assets only"),
    (
        "COM025",
        "an exported program has one function and no name that a runtime reads: assets only",
    ),
    ("COM028", "names of outputs are given when a program is converted: assets only"),
    ("GPU021", "an exported program is one function: a ladder of them is seen in an asset"),
];

/// A rule and the place of a finding.
type Found = (String, String, u32);

#[test]
fn an_asset_has_the_findings_of_the_program_that_it_was_made_from() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let set = RuleSet::builtin();
    let prepared = PreparedRules::new(&set).unwrap();
    let found = |artifact: &str, unit: Unit| -> BTreeSet<Found> {
        let options = CheckOptions {
            units: vec![unit],
            source: SourceOptions { working_folder: testdata.clone(), ..SourceOptions::default() },
            ..CheckOptions::default()
        };
        let checker = Checker::new(&set, &prepared, options).unwrap();
        let report = checker.check(&testdata.join(artifact), artifact).unwrap().remove(0);
        let findings = report.findings.into_iter();
        findings
            .map(|finding| match &finding.spot {
                None => (finding.rule.clone(), String::new(), 0),
                Some(spot) => {
                    let file = match &spot.file {
                        PlaceFile::Found(file) => shown_path(file.path(), &testdata),
                        PlaceFile::Recorded { file, .. } => file.clone(),
                    };
                    (finding.rule.clone(), file, spot.span.start.line)
                }
            })
            .collect()
    };
    let (mut compared, mut same) = (0, 0);
    let mut wrong = String::new();
    let mut needed: BTreeSet<(&str, &str)> = BTreeSet::new();
    for index in ["cases.json", "mutations.json"] {
        let index = std::fs::read_to_string(testdata.join(index)).unwrap();
        let index: Index = serde_json::from_str(&index).unwrap();
        for (name, case) in &index.cases {
            let (Some(program), Some(asset)) =
                (case.artifacts.get("pt2"), case.artifacts.get("aimodel"))
            else {
                continue;
            };
            compared += 1;
            let lines = expectation::of_case(&testdata, &case.spans);
            let unit = lines.iter().find_map(|line| line.unit).unwrap_or(Unit::NeuralEngine);
            let (program, asset) = (found(program, unit), found(asset, unit));
            let spoken = spoken_of(&lines);
            let known = KNOWN.iter().find(|(case, ..)| case == name);
            let mut differs = false;
            for (rule, file, line) in program.symmetric_difference(&asset) {
                if BY_FORMAT.iter().any(|(id, _)| id == rule) {
                    continue;
                }
                differs = true;
                if spoken.contains(&(rule.clone(), file.clone(), *line)) {
                    continue;
                }
                if let Some((case, rules, _)) = known
                    && let Some(rule) = rules.iter().find(|known| *known == rule)
                {
                    needed.insert((case, rule));
                    continue;
                }
                let only = if asset.contains(&(rule.clone(), file.clone(), *line)) {
                    "aimodel"
                } else {
                    "pt2"
                };
                wrong.push_str(&format!("\n  {name}: {rule} at {file}:{line} only in the {only}"));
            }
            same += usize::from(!differs);
        }
    }
    for (case, rules, _) in KNOWN {
        for rule in *rules {
            if !needed.contains(&(case, rule)) {
                wrong.push_str(&format!("\n  {case}: {rule} agrees now: take it off KNOWN"));
            }
        }
    }
    assert!(compared > 200 && same * 10 > compared * 8, "{same} of {compared} are the same");
    assert!(wrong.is_empty(), "findings differ between the formats:{wrong}");
}

/// The rules that a comment lets differ on its line: all that it names, where it names the format of one
/// of the two or leaves a choice.
fn spoken_of(lines: &[expectation::Line]) -> BTreeSet<Found> {
    let mut spoken = BTreeSet::new();
    for line in lines.iter().filter(|line| line.target.is_none()) {
        let by_format = line
            .items
            .iter()
            .any(|(format, _)| matches!(format.as_deref(), Some("aimodel" | "pt2")));
        for item in line.items.iter().flat_map(|(_, items)| items) {
            if by_format || item.rules.len() > 1 {
                for rule in &item.rules {
                    spoken.insert((rule.clone(), line.file.clone(), line.line));
                }
            }
        }
    }
    spoken
}
