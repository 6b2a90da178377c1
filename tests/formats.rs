//! Every form of the report over one set of awkward findings: golden, and read back by another's parser.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;

use anelint::findings::python::{Position, PythonFile, Span};
use anelint::findings::source::{PlaceFile, Spot};
use anelint::findings::suppress::{By, Silenced, Suppression, Use};
use anelint::findings::{Edit, Finding, Fix, ModuleGroup};
use anelint::graph::{FunctionId, NodeId};
use anelint::report::{
    CheckReport, FunctionReport, HostOptions, InputError, InputReport, Note, github_summary,
    write_github, write_gitlab, write_html, write_json, write_json_lines, write_junit, write_sarif,
};
use anelint::rules::{Applicability, Category, RuleSet, Severity, Sureness};
use anelint::target::{Runtime, Target};
use serde_json::Value;

const SOURCE: &str = "\
import torch
def forward(self, x):
    σ = \"é → 漢\", x.float()  # 100 % <b>&amp;</b>
    return f(
        x,
    )
";

fn file(name: &str, text: &str) -> PlaceFile {
    PlaceFile::Found(Arc::new(PythonFile::new(PathBuf::from("/repo").join(name), text.to_owned())))
}

fn spot(file: PlaceFile, start: (u32, u32), end: (u32, u32), exact: bool) -> Spot {
    let at = |(line, column)| Position { line, column };
    Spot { file, span: Span { start: at(start), end: at(end) }, exact, stale: false }
}

fn finding(rule: &str, severity: Severity, message: &str) -> Finding {
    Finding {
        rule: rule.to_owned(),
        name: "awkward".to_owned(),
        severity,
        category: Category::Numerics,
        sureness: Sureness::Official,
        evidence: vec!["N-06".to_owned()],
        message: message.to_owned(),
        help: String::new(),
        functions: vec!["main".to_owned()],
        nodes: vec!["add_1".to_owned()],
        op: ("add".to_owned(), "aten.add.Tensor".to_owned()),
        modules: Vec::new(),
        count: 1,
        spot: None,
        related: Vec::new(),
        deeper: Vec::new(),
        through: Vec::new(),
        notes: Vec::new(),
        fix: None,
        unfixable: None,
        fixed: false,
        fingerprint: "00112233445566aa".to_owned(),
        regions_added: None,
        off_unit: Vec::new(),
        first: (FunctionId(0), NodeId(0)),
    }
}

fn silenced(at: usize, by: By, reason: &str) -> Silenced {
    let mut finding = finding("ANE004", Severity::Error, "silent");
    finding.fingerprint = format!("silent{at}");
    finding.spot = Some(spot(file("net/m b.py", SOURCE), (3, 18), (3, 27), true));
    Silenced { at, finding, suppression: Suppression { by, reason: reason.to_owned() } }
}

/// Quotes, line ends, `%`, `::`, letters of all sorts, long lines, no place, no column, several files,
/// places on other machines, equal fingerprints.
fn report() -> CheckReport {
    let long = format!("x = {}{}", "y + ".repeat(500), "z");
    let mut exact = finding(
        "ANE004",
        Severity::Error,
        "\"quotes\", 'single', 100 %, a::b, a,b\nsecond line <script>alert(1)</script> & ü → 漢 \u{1b}[31m",
    );
    exact.help = "write `-40000.0`\nand not -inf".to_owned();
    exact.spot = Some(spot(file("net/m b.py", SOURCE), (3, 18), (3, 27), true));
    exact.related =
        vec![(spot(file("net/other.py", "m = 1\n"), (1, 1), (1, 6), true), "set here".to_owned())];
    exact.fix = Some(Fix {
        applicability: Applicability::Safe,
        edits: vec![Edit {
            file: file("net/m b.py", SOURCE),
            span: Span {
                start: Position { line: 3, column: 18 },
                end: Position { line: 3, column: 27 },
            },
            text: "x".to_owned(),
        }],
        ..Fix::default()
    });
    exact.modules = vec![ModuleGroup { pattern: "layers.*.attn".to_owned(), count: 28 }];
    exact.count = 28;
    exact.regions_added = Some(12);
    let mut lines = finding("ANE004", Severity::Error, "several lines, the same fingerprint");
    lines.spot = Some(spot(file("net/m b.py", SOURCE), (4, 12), (6, 6), true));
    let mut line = finding("ANE001", Severity::Warning, "a line without a column");
    line.fingerprint = "a1".to_owned();
    line.spot = Some(spot(file("net/long.py", &long), (1, 1), (1, 2006), false));
    let mut nowhere = finding("TEAM001", Severity::Advice, "no place at all");
    nowhere.fingerprint = "a2".to_owned();
    let mut elsewhere = finding("ANE001", Severity::Warning, "a file of another machine");
    elsewhere.fingerprint = "a3".to_owned();
    let recorded = PlaceFile::Recorded { file: "/home/them/m.py".into(), text: "y = x".into() };
    elsewhere.spot = Some(spot(recorded, (7, 1), (7, 6), false));
    let mut whole = finding("ANE010", Severity::Warning, "falls into 14 regions");
    whole.fingerprint = "a4".to_owned();
    whole.nodes = Vec::new();

    let functions = vec![FunctionReport {
        name: "main".to_owned(),
        ops: 233,
        unknown_ops: 1,
        eligible: Some(194),
        eligibility_unknown: 2,
        regions: Some(14),
        regions_program_order: Some(15),
        nested: false,
    }];
    let input = |path: &str, findings: Vec<Finding>, silenced: Vec<Silenced>| InputReport {
        path: path.to_owned(),
        format: "pt2",
        producer: "torch 2.15.0".to_owned(),
        target: Target::default_for(Runtime::CoreAi),
        functions: functions.clone(),
        findings,
        silenced,
        uses: Use::default(),
        notes: vec!["a note".to_owned()],
        maps: Vec::new(),
        fail_at: Some(Severity::Error),
    };
    CheckReport {
        working_folder: PathBuf::from("/repo"),
        inputs: vec![
            input(
                "build/a|b.pt2",
                vec![exact, lines, line, nowhere, elsewhere, whole],
                vec![
                    silenced(1, By::Comment, "the \"reason\" <b>"),
                    silenced(2, By::Baseline, ""),
                    silenced(9, By::Config, "not ours"),
                ],
            ),
            input("build/clean.pt2", Vec::new(), Vec::new()),
        ],
        errors: vec![InputError {
            path: "broken%.pt2".to_owned(),
            message: "truncated:\n\"at\" byte 5".to_owned(),
            offset: Some(5),
        }],
        skipped: vec![Note { path: "big.pt2".to_owned(), message: "a Git LFS pointer".to_owned() }],
        ..CheckReport::default()
    }
}

fn options() -> HostOptions {
    HostOptions { prefix: "sub/".to_owned(), repository: String::new() }
}

/// The text of one form.
fn written(write: impl Fn(&CheckReport, &mut Vec<u8>) -> std::io::Result<()>) -> String {
    let report = report();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    write(&report, &mut one).unwrap();
    write(&report, &mut two).unwrap();
    assert_eq!(one, two);
    String::from_utf8(one).unwrap()
}

macro_rules! golden {
    ($name:literal, $text:expr) => {
        insta::with_settings!({snapshot_path => "../snapshots/formats", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!($name, $text);
        });
    };
}

fn sarif() -> String {
    let set = RuleSet::builtin();
    written(|report, out| write_sarif(report, &[&set], &options(), out))
}

#[test]
fn sarif_names_the_rule_and_the_marked_text() {
    let text = sarif();
    let document: Value = serde_json::from_str(&text).unwrap();
    let run = &document["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 9);
    let kinds: Vec<&str> =
        results.iter().filter_map(|own| own["suppressions"][0]["kind"].as_str()).collect();
    assert_eq!(kinds, ["inSource", "external", "external"]);
    let first = &run["results"][0];
    assert_eq!(first["locations"][0]["physicalLocation"]["region"]["snippet"]["text"], "x.float()");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let index = first["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(rules[index]["id"], first["ruleId"]);
}

#[test]
fn annotations_of_github_escape_what_would_end_them() {
    let text = written(|report, out| write_github(report, &options(), out));
    // Each line is one command, and reads back to its parts.
    for line in text.lines() {
        let (head, _) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
        let (level, properties) = head.split_once(' ').unwrap();
        assert!(["error", "warning", "notice"].contains(&level), "{line}");
        for property in properties.split(',') {
            let (key, _) = property.split_once('=').unwrap();
            assert!(
                ["title", "file", "line", "endLine", "col", "endColumn"].contains(&key),
                "{line}"
            );
        }
    }
    golden!("github", text);
    golden!("github-summary", github_summary(&report(), &options()));
}

#[test]
fn code_quality_of_gitlab_has_unique_fingerprints_and_a_line_each() {
    let text = written(|report, out| write_gitlab(report, &options(), out));
    let issues: Vec<Value> = serde_json::from_str(&text).unwrap();
    let prints: std::collections::BTreeSet<&str> =
        issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    assert_eq!(prints.len(), issues.len());
    for issue in &issues {
        let location = &issue["location"];
        let line = location["lines"]["begin"].as_u64();
        assert!(line.or(location["positions"]["begin"]["line"].as_u64()).unwrap() >= 1);
        assert!(!location["path"].as_str().unwrap().starts_with("./"));
        assert!(
            ["info", "minor", "major", "critical", "blocker"]
                .contains(&issue["severity"].as_str().unwrap())
        );
    }
    golden!("gitlab", text);
}

#[test]
fn junit_reads_back_and_fails_for_what_fails_the_run() {
    use quick_xml::events::Event;
    let text = written(|report, out| write_junit(report, &options(), out));
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut cases, mut failures, mut errors, mut skipped) = (0, 0, 0, 0);
    let mut messages = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => {
                let counter = match tag.name().as_ref() {
                    b"testcase" => &mut cases,
                    b"failure" => &mut failures,
                    b"error" => &mut errors,
                    b"skipped" => &mut skipped,
                    _ => continue,
                };
                *counter += 1;
                for attribute in tag.attributes() {
                    let attribute = attribute.unwrap();
                    if attribute.key.as_ref() == b"message" {
                        messages.push(
                            attribute
                                .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                                .unwrap()
                                .into_owned(),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    // Rules by file: ANE004, ANE001 (twice), TEAM001 and ANE010 of the model; the clean one; two unread.
    assert_eq!((cases, failures, errors, skipped), (8, 1, 1, 1), "{text}");
    assert!(messages[0].contains("<script>alert(1)</script> & ü → 漢"), "{messages:?}");
    golden!("junit", text);
}

#[test]
fn json_lines_are_the_report_in_pieces() {
    let text = written(write_json_lines_of);
    let whole: Value = serde_json::from_str(&written(write_json_of)).unwrap();
    let mut findings = Vec::new();
    for line in text.lines() {
        let mut own: Value = serde_json::from_str(line).unwrap();
        let kind = own.as_object_mut().unwrap().remove("kind").unwrap();
        match kind.as_str().unwrap() {
            "finding" => findings.push(own),
            "summary" => assert_eq!(own, whole["summary"]),
            "input" | "error" | "skipped" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(Value::Array(findings), whole["findings"]);
}

fn write_json_lines_of(report: &CheckReport, out: &mut Vec<u8>) -> std::io::Result<()> {
    write_json_lines(report, out)
}
fn write_json_of(report: &CheckReport, out: &mut Vec<u8>) -> std::io::Result<()> {
    write_json(report, out)
}

#[test]
fn the_page_holds_nothing_that_a_model_could_run() {
    let set = RuleSet::builtin();
    let text = written(|report, out| write_html(report, &[&set], out));
    assert!(text.starts_with("<!doctype html>"));
    assert!(!text.contains("<script>alert"));
    // Nothing is loaded from anywhere.
    for word in [" src=", "<link", "@import", "url(", "http://", "fetch("] {
        assert!(!text.contains(word), "{word}");
    }
    assert_eq!(text.matches("<article").count(), 9);
    assert_eq!(text.matches("<script").count(), 2);
}
