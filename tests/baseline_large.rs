//! A repository of 200 models with thousands of findings: after a baseline it is clean, and stays so when
//! nodes are renumbered and lines move; one new fault is told, and it alone.
//!
//! The models are made from one small export: its graph, with new node names and line numbers.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::io::{Cursor, Read, Write};

use regex::Regex;
use support::{Project, repository};

const MODELS: usize = 200;
/// Rules that each find the linear and the add of all three layers.
const RULES: usize = 5;
const FINDINGS: usize = MODELS * RULES * 6;

/// The members of the export.
fn members() -> Vec<(String, Vec<u8>)> {
    let path = repository().join("testdata/cases/out/linear_module_list.pt2");
    let mut zip = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    (0..zip.len())
        .map(|at| {
            let mut file = zip.by_index(at).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (file.name().unwrap().to_string(), bytes)
        })
        .collect()
}

/// The export with its graph changed.
fn model(members: &[(String, Vec<u8>)], change: impl Fn(String) -> String) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in members {
        zip.start_file(name.as_str(), options).unwrap();
        if name.ends_with("models/model.json") {
            let text = String::from_utf8(bytes.clone()).unwrap();
            zip.write_all(change(text).as_bytes()).unwrap();
        } else {
            zip.write_all(bytes).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

/// New names for all ops, and lines that lie further down.
fn renumbered(text: String, by: usize) -> String {
    let nodes = Regex::new(r#""(linear|relu|add)(?:_(\d+))?""#).unwrap();
    let text = nodes.replace_all(&text, |found: &regex::Captures<'_>| {
        let number: usize = found.get(2).map_or(0, |own| own.as_str().parse().unwrap());
        format!("\"{}_{}\"", &found[1], number + by)
    });
    let lines = Regex::new(r#"(cases/linear\.py\\", line )(\d+)"#).unwrap();
    let text = lines.replace_all(&text, |found: &regex::Captures<'_>| {
        format!("{}{}", &found[1], found[2].parse::<usize>().unwrap() + by)
    });
    text.into_owned()
}

fn project() -> Project {
    let project = Project::with(&["cases/linear.py"]);
    for rule in 0..RULES {
        project.write(
            &format!("lint/rule{rule}.yaml"),
            format!(
                "id: BIG00{rule}\nname: big-{rule}\ntitle: For a large test\nseverity: error\n\
                 category: speed\nper: node\nmatch: {{op: [linear, add], bind: node}}\n\
                 message: \"`{{node.name}}`\"\nwhy: \"It is found often.\"\n\
                 evidence: [{{source: \"these tests\", sureness: official}}]\n\
                 example: {{bad: \"a\", good: \"b\"}}\n"
            ),
        );
    }
    let planted = "id: BIG100\nname: big-new\ntitle: The new fault\nseverity: error\n\
         category: speed\nmatch: {op: gelu}\nmessage: \"new\"\nwhy: \"It is planted.\"\n\
         evidence: [{source: \"these tests\", sureness: official}]\nexample: {bad: \"a\", good: \"b\"}\n";
    project.write("lint/planted.yaml", planted);
    project.write(
        "anelint.toml",
        "rules = \"lint/*.yaml\"\nselect = [\"BIG\", \"UPK\"]\nbaseline = \"known.jsonl\"\nfail-on = \"advice\"\n",
    );
    project
}

#[test]
fn a_new_fault_alone_is_told_whatever_was_renumbered_and_moved() {
    let members = members();
    let project = project();
    let path = |number: usize| format!("build/m{number:03}.pt2");
    let plain = model(&members, |text| text);
    (0..MODELS).for_each(|number| project.write(&path(number), &plain));

    let first = project.run(&["check", "--update-baseline", "--statistics"]);
    assert_eq!(first.code, Some(0), "{}{}", first.out, first.err);
    assert_eq!(first.err, format!("known.jsonl: made with {FINDINGS} entries\n"));
    const { assert!(FINDINGS >= 5_000) };
    let baseline = project.read("known.jsonl");
    let clean = project.run(&["check", "-q"]);
    assert_eq!((clean.code, clean.out.as_str()), (Some(0), ""), "{}", clean.err);

    // One fault in one model: a relu becomes a gelu.
    let plant = |text: String| text.replacen("aten.relu.default", "aten.gelu.default", 1);
    project.write(&path(117), model(&members, plant));
    let told = |ran: &support::Ran| -> Vec<(String, String)> {
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        findings
            .filter(|own| own["suppressed"].is_null())
            .map(|own| (text(&own["rule"]), text(&own["input"])))
            .collect()
    };
    let one = vec![("BIG100".to_owned(), path(117))];
    let planted = project.run(&["check", "--format", "json"]);
    assert_eq!((planted.code, told(&planted)), (Some(1), one.clone()));

    // Every node gets another name, every line another number.
    let source = project.read("cases/linear.py");
    project.write("cases/linear.py", format!("{}{source}", "#\n".repeat(40)));
    let moved = model(&members, |text| renumbered(text, 40));
    assert_ne!(moved, plain);
    (0..MODELS).for_each(|number| project.write(&path(number), &moved));
    project.write(&path(117), model(&members, |text| plant(renumbered(text, 40))));
    let after = project.run(&["check", "--format", "json"]);
    assert_eq!((after.code, told(&after)), (Some(1), one));
    let report = after.json();
    assert_eq!(report["summary"]["baselined"], FINDINGS);
    let node = report["findings"][0]["nodes"][0].as_str().unwrap().to_owned();
    assert!(node.ends_with("_40") || node.ends_with("_41") || node.ends_with("_42"), "{node}");
    assert_eq!(project.read("known.jsonl"), baseline, "a check writes nothing");
}
