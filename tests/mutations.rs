//! The clean modules with one fault each: what is found beside what the clean module has must be that
//! fault, on its line, and nothing else.
//!
//! `testdata/mutate.py` plants the faults. A module that was edited in more than one place may show
//! advice about the rest of the edit: that is listed here with the reason.
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
use anelint::report::InputReport;
use anelint::rules::Severity;
use anelint::target::Unit;
use serde::Deserialize;

/// `testdata/mutations.json`.
#[derive(Deserialize)]
struct Index {
    cases: BTreeMap<String, Mutant>,
}

/// One mutant.
#[derive(Deserialize)]
struct Mutant {
    class: String,
    spans: Vec<(String, u32, u32)>,
    artifacts: BTreeMap<String, String>,
}

/// Findings that come with the edit and are not the fault: mutant, rule, why.
/// For every mutant: ANE010 tells once more, for the function, what leaves the unit.
const BESIDE: &[(&str, &str, &str)] = &[
    ("argmax", "ANE023", "the cast of the index, on the same line, cannot stay either"),
    ("conv_stride", "ANE030", "the kernel grows to 7 with the stride"),
    ("embedding_inside", "COM018", "the kinds come in as int64"),
    ("embedding_inside", "ANE042", "the rows looked up are put into columns"),
    ("last_dim", "ANE008", "input and output have the width"),
    ("linear_down", "ANE042", "nn.Linear wants its channels last"),
    ("linear_query", "ANE042", "nn.Linear wants its channels last"),
    ("rope_gather", "COM018", "the positions come in as int64"),
    ("write_position", "COM018", "the position comes in as int64"),
    ("rope_gather", "ANE042", "the rows gathered are put into columns"),
];

/// Findings of the clean module that the fault takes away: mutant, rule, why.
const GONE: &[(&str, &str, &str)] = &[
    ("norm_fp32", "ANE037", "one of the two norms is no longer one in f16"),
    ("norm_fp32", "ANE038", "the same"),
];

/// Faults that cannot be seen in a format, or are not yet: mutant, format, why.
const UNSEEN: &[(&str, &str, &str)] = &[
    (
        "mask_bool_added",
        "aimodel",
        "the converter folds the constant mask to numbers: no bool is left",
    ),
    (
        "raw_key",
        "pt2",
        "the key returned is projected a second time: no value that any attention reads",
    ),
    ("raw_key", "decomp", "the same"),
];

/// How many findings there are of each rule and severity.
fn counts(report: &InputReport) -> BTreeMap<(String, Severity), usize> {
    let mut counts = BTreeMap::new();
    for finding in &report.findings {
        *counts.entry((finding.rule.clone(), finding.severity)).or_default() += 1;
    }
    counts
}

/// Whether a mutant has this short name.
fn named(name: &str, short: &str) -> bool {
    name.strip_prefix("mutant_") == Some(short)
}

/// Whether a list names a mutant with a rule.
fn listed(list: &[(&str, &str, &str)], name: &str, rule: &str) -> bool {
    list.iter().any(|&(of, about, _)| named(name, of) && about == rule)
}

/// `CleanBlock` → `mutant_clean_block`.
fn clean_twin(class: &str) -> String {
    let mut name = String::from("mutant");
    for letter in class.chars() {
        if letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[test]
fn one_fault_gives_one_finding_more() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let index: Index =
        serde_json::from_str(&std::fs::read_to_string(testdata.join("mutations.json")).unwrap())
            .unwrap();
    let set = rule_files::rules();
    let prepared = PreparedRules::new(&set).unwrap();
    let options = CheckOptions {
        units: vec![Unit::NeuralEngine],
        source: SourceOptions {
            working_folder: PathBuf::from(&testdata),
            ..SourceOptions::default()
        },
        ..CheckOptions::default()
    };
    let checker = Checker::new(&set, &prepared, options).unwrap();
    let check = |artifact: &str| -> InputReport {
        match checker.check(&testdata.join(artifact), artifact) {
            Ok(mut reports) => reports.remove(0),
            Err(error) => panic!("{artifact}: {}", error.message()),
        }
    };
    let mut clean = BTreeMap::new();
    for (name, mutant) in &index.cases {
        if clean_twin(&mutant.class) == *name {
            for (suffix, artifact) in &mutant.artifacts {
                let report = check(artifact);
                let errors =
                    report.findings.iter().filter(|f| f.severity == Severity::Error).count();
                assert_eq!(errors, 0, "{artifact} is no clean module");
                clean.insert((name.clone(), suffix.clone()), counts(&report));
            }
        }
    }
    let mut looked_at = 0;
    let mut faults = 0;
    let mut report = String::new();
    for (name, mutant) in &index.cases {
        let twin = clean_twin(&mutant.class);
        if twin == *name {
            continue;
        }
        faults += 1;
        let lines = expectation::of_case(&testdata, &mutant.spans);
        for (suffix, artifact) in &mutant.artifacts {
            looked_at += 1;
            let found = check(artifact);
            let expected =
                expectation::for_artifact(&lines, suffix, Unit::NeuralEngine, None, &set);
            let mut problems = judge::judge(&expected, &found, suffix, &testdata);
            // What there is more, and less, than in the clean module.
            let before = &clean[&(twin.clone(), suffix.clone())];
            let after = counts(&found);
            let mut promised: Vec<_> = expected.iter().collect();
            for (key, &count) in &after {
                let more = count.saturating_sub(before.get(key).copied().unwrap_or(0));
                for _ in 0..more {
                    let due = promised.iter().position(|promise| {
                        promise.item.rules.contains(&key.0)
                            && promise.item.severity.is_none_or(|severity| severity == key.1)
                    });
                    let beside = key.0 == "ANE010" || listed(BESIDE, name, &key.0);
                    match due {
                        Some(at) => drop(promised.remove(at)),
                        None if beside => {}
                        None => problems.push(format!("one more     {} {}", key.1, key.0)),
                    }
                }
            }
            for (key, &count) in before {
                if after.get(key).copied().unwrap_or(0) < count && !listed(GONE, name, &key.0) {
                    problems.push(format!("one less     {} {}", key.1, key.0));
                }
            }
            if let Some((.., reason)) =
                UNSEEN.iter().find(|(of, format, _)| named(name, of) && format == suffix)
            {
                eprintln!("not seen: {artifact}: {reason}");
                assert!(!problems.is_empty(), "{artifact} holds now: take it off UNSEEN");
                continue;
            }
            if !problems.is_empty() {
                report.push_str(&format!("\n{name} ({artifact})\n"));
                for problem in problems {
                    report.push_str(&format!("  {problem}\n"));
                }
            }
        }
    }
    assert!(faults >= 25 && looked_at >= 3 * 25, "{faults} faults in {looked_at} artifacts");
    assert!(report.is_empty(), "of {looked_at} artifacts some differ:\n{report}");
}
