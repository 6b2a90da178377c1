//! How far the predictions for Core ML agree with what its planner really said: a published study of
//! single ops, alone and between other layers (`testdata/placement`). Prints the figures; fails below
//! the stated ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anelint::graph::{FunctionId, NodeKind, Program};
use anelint::placement::{NodePlacement, Placement, Request, place};
use anelint::readers::{self, ReadOptions};
use anelint::target::{Runtime, Target};
use serde::Deserialize;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/placement")
}

/// A table with a header line; lines that start with `#` are remarks.
fn table(name: &str) -> Vec<HashMap<String, String>> {
    let text = std::fs::read_to_string(data().join(name)).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines
        .map(|line| {
            header.iter().map(|&h| h.to_owned()).zip(line.split('\t').map(str::to_owned)).collect()
        })
        .collect()
}

/// What the planner said of one op.
#[derive(Deserialize)]
struct TrueOp {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    core: u8,
    ane: String,
    pref: String,
}

/// A package read and placed, with each stored op's node by name.
struct Placed {
    placement: Placement,
    by_name: HashMap<String, usize>,
}

impl Placed {
    fn read(path: &Path) -> Placed {
        let program: Program = readers::read(path, ReadOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let main = program
            .functions
            .iter()
            .position(|function| program.text(function.name) == "main")
            .expect("a function main");
        let id = FunctionId(main as u32);
        let target = Target::default_for(Runtime::CoreMl);
        let placement = place(&program, id, &Request { target, rules: &[], line_of: None });
        let function = program.function(id);
        let mut by_name = HashMap::new();
        for (id, node) in function.nodes().filter(|(_, node)| node.kind == NodeKind::Op) {
            by_name.insert(program.text(node.name).to_owned(), id.0 as usize);
            for (name, _) in function.stored(id) {
                by_name.entry(program.text(*name).to_owned()).or_insert(id.0 as usize);
            }
            for value in function.results(id) {
                let name = program.text(function.value(value).name).to_owned();
                by_name.entry(name).or_insert(id.0 as usize);
            }
        }
        Placed { placement, by_name }
    }

    /// An op by the name of the study: its own, or that of its first output.
    fn op(&self, name: &str) -> Option<&NodePlacement> {
        let first = name.strip_suffix("_0").unwrap_or(name);
        let at = self.by_name.get(name).or_else(|| self.by_name.get(first))?;
        Some(&self.placement.nodes[*at])
    }
}

#[derive(Default, Debug)]
struct Score {
    right: u32,
    wrong: u32,
    unknown: u32,
    true_no: u32,
    found_no: u32,
}

impl Score {
    fn rate(&self) -> f64 {
        f64::from(self.right) / f64::from(self.right + self.wrong + self.unknown)
    }
    fn recall_of_no(&self) -> f64 {
        f64::from(self.found_no) / f64::from(self.true_no)
    }
}

#[test]
fn eligibility_agrees_with_the_planner() {
    let (mut sure, mut unsure) = (Score::default(), Score::default());
    let mut differences = Vec::new();
    for row in table("eligibility.tsv") {
        let path = data().join("models").join(format!("{}.mlpackage", row["name"]));
        let placed = Placed::read(&path);
        let ops: Vec<TrueOp> = serde_json::from_str(&row["ops"]).unwrap();
        let score = if row["reliability"] == "ok" { &mut sure } else { &mut unsure };
        for op in ops {
            let truth = op.ane == "yes";
            let found = placed.op(&op.name);
            let ours = found.and_then(|node| node.verdict.eligible);
            score.true_no += u32::from(!truth);
            score.found_no += u32::from(!truth && ours == Some(false));
            match ours {
                Some(answer) if answer == truth => score.right += 1,
                Some(_) => score.wrong += 1,
                None => score.unknown += 1,
            }
            if ours != Some(truth) {
                differences.push(format!(
                    "{} ({}): {} {}: truth {truth}, ours {ours:?}, in the graph: {}",
                    row["name"],
                    row["reliability"],
                    op.kind,
                    op.name,
                    found.is_some()
                ));
            }
        }
    }
    println!("{}", differences.join("\n"));
    for (what, score) in [("reliable", &sure), ("other", &unsure)] {
        println!(
            "eligibility, {what} rows: {:.1} % of {} ops right, {} unknown; \
             recall of \"not eligible\" {:.1} % of {}",
            100.0 * score.rate(),
            score.right + score.wrong + score.unknown,
            score.unknown,
            100.0 * score.recall_of_no(),
            score.true_no
        );
    }
    assert!(sure.rate() >= 0.98, "{sure:?}");
    assert!(sure.recall_of_no() >= 0.95, "{sure:?}");
    assert_eq!(sure.unknown, 0, "nothing may be unknown that the study answers");
}

#[test]
fn the_backend_agrees_with_the_planner() {
    let (mut core_right, mut core_all, mut ties) = (0u32, 0u32, 0u32);
    let (mut outcome_right, mut whole_right, mut models) = (0u32, 0u32, 0u32);
    let (mut alone_right, mut alone_all) = (0u32, 0u32);
    let mut differences = Vec::new();
    for row in table("selection.tsv") {
        if row["reliability"] != "ok" {
            continue;
        }
        let (name, outcome) = (&row["name"], row["outcome"].as_str());
        let wrapped = row["wrapped"] == "yes";
        let folder = if wrapped { "ctx/models" } else { "models" };
        let placed = Placed::read(&data().join(folder).join(format!("{name}.mlpackage")));
        let ops: Vec<TrueOp> = serde_json::from_str(&row["ops"]).unwrap();
        let mut put = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            let node = placed.op(&op.name);
            let ours = node.and_then(|node| node.predicted);
            let truth = op.pref == "ANE";
            put.push(ours == Some(true));
            let tie = node.is_some_and(|node| node.tie) || (at + 1 == ops.len() && wrapped);
            if !wrapped {
                alone_all += 1;
                alone_right += u32::from(ours == Some(truth));
            } else if op.core == 1 && tie {
                ties += 1;
            } else if op.core == 1 {
                core_all += 1;
                core_right += u32::from(ours == Some(truth));
            }
            if ours != Some(truth) && !tie {
                let core = if op.core == 1 { "core " } else { "" };
                differences.push(format!(
                    "{name} ({outcome}): {core}{} {}: truth {truth}, ours {ours:?}",
                    op.kind, op.name
                ));
            }
        }
        if !wrapped {
            continue;
        }
        // The last op is an exact tie in the study: not scored.
        let scored = &put[..put.len() - 1];
        let class = match (scored.iter().any(|&p| p), scored.iter().all(|&p| p)) {
            (false, _) => "all-cpu",
            (_, true) => "all-ane",
            _ => "mixed",
        };
        let truth = if outcome == "ane-last-op-cpu" { "all-ane" } else { outcome };
        models += 1;
        outcome_right += u32::from(class == truth);
        let same = ops.iter().zip(scored).all(|(op, &on)| (op.pref == "ANE") == on);
        whole_right += u32::from(same);
        if class != truth {
            differences.push(format!("{name}: outcome {truth}, ours {class}"));
        }
    }
    println!("{}", differences.join("\n"));
    let rate = |right: u32, all: u32| 100.0 * f64::from(right) / f64::from(all);
    println!(
        "backend of the ops under test: {:.1} % of {core_all} right ({ties} ties left out); outcome \
         of {:.1} % of {models} models, every op right in {:.1} %; unwrapped ops {:.1} % of {alone_all}",
        rate(core_right, core_all),
        rate(outcome_right, models),
        rate(whole_right, models),
        rate(alone_right, alone_all)
    );
    assert!(rate(core_right, core_all) >= 90.0);
    assert!(rate(outcome_right, models) >= 90.0);
}
