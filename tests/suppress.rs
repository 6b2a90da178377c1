//! What users silence: by comments, by the config file, by a baseline. With the tests' rules alone.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use serde_json::Value;
use support::{HELPER, LINEAR, Project, Ran};

/// `check` with the tests' rules and what is said of suppressions.
fn check(project: &Project, arguments: &[&str]) -> Ran {
    let mut all = vec!["--select", "TST,UPK", "--format", "json"];
    all.extend(arguments);
    project.check(&all)
}

/// `RULE suppressed place`, of each finding.
fn shown(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .map(|own| {
            let location = &own["location"];
            format!(
                "{} {} {}:{}",
                text(&own["rule"]),
                text(&own["suppressed"]),
                text(&location["file"]),
                location["line"]
            )
        })
        .collect()
}

/// Puts text into a line of a file: at its end, or as a line above it.
fn comment(project: &Project, file: &str, line: usize, text: &str, above: bool) {
    let source = project.read(file);
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    match above {
        true => lines.insert(line - 1, format!("            {text}")),
        false => lines[line - 1].push_str(&format!("  {text}")),
    }
    project.write(file, lines.join("\n") + "\n");
}

#[test]
fn on_the_line_or_above_it_or_where_the_cause_is_set() {
    let silent = ["TST002 comment cases/linear.py:53"];
    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[TST002] tiny", false);
    let ran = check(&project, &[]);
    assert_eq!((ran.code, shown(&ran)), (Some(0), silent.map(str::to_owned).to_vec()));
    let finding = &ran.json()["findings"][0];
    assert_eq!(finding["suppression_reason"], "tiny");
    assert_eq!(finding["location"]["stale"], false, "a comment makes no file stale");
    assert_eq!(ran.json()["summary"]["suppressed"], 1);

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[any-linear] tiny", true);
    let ran = check(&project, &[]);
    assert_eq!(shown(&ran), ["TST002 comment cases/linear.py:54"], "{}", ran.out);
    assert_eq!(ran.json()["findings"][0]["location"]["stale"], false);

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 49, "# anelint: ignore[any-linear] tiny", false);
    assert_eq!(shown(&check(&project, &[])), silent, "where the layers are made");

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 1, "# anelint: file-ignore[TST002] all", false);
    assert_eq!(shown(&check(&project, &[])), silent);

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 52, "# anelint: ignore[TST002] the line before", false);
    let ran = check(&project, &[]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(shown(&ran), ["UPK001 - cases/linear.py:52", "TST002 - cases/linear.py:53"]);
}

#[test]
fn the_text_report_counts_what_it_does_not_show() {
    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[TST002] tiny", false);
    let ran = project.check(&[]);
    assert!(ran.out.ends_with("nothing found\nnot shown: 1 ignored by comments\n"), "{}", ran.out);
    let ran = project.check(&["-v"]);
    assert!(ran.out.ends_with("  cases/linear.py:53:28 TST002 (comment: tiny)\n"), "{}", ran.out);
    assert_eq!(project.check(&["--format", "concise"]).out, "");
}

#[test]
fn unused_comments_are_told_with_the_edit_that_takes_them_away() {
    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[TST002, TST001] tiny", false);
    let edits = |ran: &Ran| {
        let report = ran.json();
        let findings = report["findings"].as_array().unwrap();
        let own = findings.iter().find(|own| own["rule"] == "UPK001").unwrap();
        assert_eq!(own["fix"]["applicability"], "safe");
        own["fix"]["edits"][0].clone()
    };
    let edit = edits(&check(&project, &[]));
    assert_eq!((&edit["start"][1], &edit["text"]), (&92.into(), &"TST002".into()));
    // A rule that did not run is not known to be silent.
    let ran = check(&project, &["--ignore", "TST001"]);
    assert_eq!(shown(&ran), ["TST002 comment cases/linear.py:53"]);

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 52, "# anelint: ignore[TST001] no", true);
    let edit = edits(&check(&project, &[]));
    assert_eq!((&edit["start"], &edit["end"]), (&json(&[52, 1]), &json(&[53, 1])), "its line");

    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 52, "# noqa # anelint: ignore[TST001] no", false);
    let line = project.read("cases/linear.py").lines().nth(51).unwrap().to_owned();
    let kept = line.find(" # anelint").unwrap() + 1;
    let edit = edits(&check(&project, &[]));
    assert_eq!(edit["start"], json(&[52, kept as u64]));
    assert_eq!(edit["end"], json(&[52, line.chars().count() as u64 + 1]));
}

fn json(numbers: &[u64]) -> Value {
    Value::from(numbers.to_vec())
}

#[test]
fn comments_about_graphs_that_were_not_checked_are_left_alone() {
    let project = Project::with(LINEAR);
    // A class of the same file whose graph is not here.
    let line =
        project.read("cases/linear.py").lines().position(|l| l.starts_with("class ")).unwrap();
    comment(
        &project,
        "cases/linear.py",
        line + 1,
        "# anelint: ignore[TST001] another graph",
        false,
    );
    assert_eq!(shown(&check(&project, &[])), ["TST002 - cases/linear.py:53"]);
}

#[test]
fn what_names_no_rule_or_gives_no_reason_is_said() {
    let project = Project::with(LINEAR);
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[any-liner]", false);
    comment(&project, "cases/linear.py", 52, "# anelint: ignore", false);
    project.write("anelint.toml", "require-reason = true\n");
    let ran = check(&project, &[]);
    let report = ran.json();
    let messages: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "it names no rule: write `ignore[RULE] reason`",
            "a linear layer",
            "this suppression gives no reason, and the config file asks for one",
            "`any-liner` names no rule; did you mean `any-linear`?",
        ]
    );
}

#[test]
fn tables_of_the_config_file_silence_by_place_module_node_and_model() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    let silent = |table: &str| -> Vec<String> {
        project.write("anelint.toml", format!("[[suppress]]\n{table}\nreason = \"known\"\n"));
        let ran = check(&project, &["--ignore", "UPK"]);
        let found = shown(&ran);
        found.iter().filter(|own| own.contains(" config ")).map(|own| own[..6].to_owned()).collect()
    };
    let both = ["TST002", "TST001"].map(str::to_owned).to_vec();
    let linear: Vec<String> = vec!["TST002".to_owned()];
    let none: Vec<String> = Vec::new();
    assert_eq!(silent("rule = \"TST\""), both);
    assert_eq!(silent("rule = [\"any-linear\"]"), linear);
    assert_eq!(silent("rule = \"TST\"\npath = \"cases/linear.py\""), linear);
    assert_eq!(silent("rule = \"TST\"\nmodule = \"layers.*\""), linear);
    assert_eq!(silent("rule = \"TST\"\nmodule = \"layers\""), none);
    assert_eq!(silent("rule = \"TST\"\nnode = \"linear*\""), linear);
    assert_eq!(silent("rule = \"TST\"\nnode = \"linear_1\""), none, "not all of its nodes");
    assert_eq!(silent("rule = \"TST\"\nmodel = \"cases/out/linear*\""), linear);
    assert_eq!(silent("rule = \"TST\"\nuntil = 2027-01-15"), both, "the last day counts");
    assert_eq!(silent("rule = \"TST\"\nuntil = 2027-01-14"), none);
}

#[test]
fn tables_that_are_unused_expired_or_without_a_reason_are_told_at_their_heads() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    project.write(
        "anelint.toml",
        "require-reason = true\n\
         [[suppress]]\nrule = \"TST002\"\nmodule = \"head.*\"\nreason = \"once\"\n\
         [[suppress]]\nrule = \"TST001\"\n\
         [[suppress]]\nrule = \"TST002\"\nreason = \"for a while\"\nuntil = 2026-12-31\n",
    );
    let about = |ran: &Ran| -> Vec<String> {
        shown(ran).into_iter().filter(|own| own.starts_with("UPK")).collect()
    };
    assert_eq!(
        about(&check(&project, &[])),
        ["UPK001 - anelint.toml:2", "UPK003 - anelint.toml:6", "UPK004 - anelint.toml:8"]
    );
    // Whether a table is of no use shows only where all models were checked.
    assert_eq!(
        about(&check(&project, &["cases/out/linear_module_list.pt2"])),
        ["UPK003 - anelint.toml:6", "UPK004 - anelint.toml:8"]
    );
}

#[test]
fn a_baseline_is_made_once_and_only_shrinks() {
    let project = Project::with(LINEAR);
    let flags = ["--baseline", "lint/base.jsonl"];
    let run = |more: &[&str]| check(&project, &[&flags, more].concat());
    let missing = run(&[]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("make it with --update-baseline"), "{}", missing.err);
    std::fs::create_dir(project.path("lint")).unwrap();

    let made = run(&["--update-baseline"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert_eq!(made.err, "lint/base.jsonl: made with 1 entry\n");
    let text = project.read("lint/base.jsonl");
    assert!(text.contains("\"model\":\"../cases/out/linear_module_list.pt2\""), "{text}");
    let held = run(&[]);
    assert_eq!(
        (held.code, shown(&held)),
        (Some(0), vec!["TST002 baseline cases/linear.py:53".into()])
    );
    assert_eq!(held.json()["summary"]["baselined"], 1);

    // A new model: its findings are reported, and updating does not take them in.
    HELPER.iter().for_each(|file| project.copy(file, file));
    assert_eq!(shown(&run(&[]))[1], "TST001 - cases/masks.py:44");
    let updated = run(&["--update-baseline", "--fail-on", "warning"]);
    assert_eq!(updated.code, Some(1));
    assert!(updated.err.contains("1 new finding is not added: a baseline only shrinks"));
    assert_eq!(project.read("lint/base.jsonl"), text);

    // The fault is mended: here, by a comment. The entry is stale, and told until it is taken away.
    comment(&project, "cases/linear.py", 53, "# anelint: ignore[TST002] tiny", false);
    let stale = run(&[]);
    assert!(shown(&stale).contains(&"UPK005 - lint/base.jsonl:2".to_owned()), "{}", stale.out);
    let pruned = run(&["--prune-baseline"]);
    assert_eq!(pruned.err, "lint/base.jsonl: 1 entry taken away, 0 entries left\n");
    assert_eq!(project.read("lint/base.jsonl"), "{\"anelint-baseline\":1}\n");
}

#[test]
fn entries_of_models_and_rules_that_were_not_checked_are_kept() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    project.write("anelint.toml", "baseline = \"base.jsonl\"\n");
    assert_eq!(check(&project, &["--update-baseline"]).code, Some(0));
    let text = project.read("base.jsonl");
    assert_eq!(text.lines().count(), 3);
    for arguments in [
        &["cases/out/linear_module_list.pt2", "--prune-baseline"][..],
        &["--ignore", "TST001", "--prune-baseline"],
        &["--severity", "TST001=off", "--prune-baseline"],
        &["--target", "gpu", "--prune-baseline"],
    ] {
        let ran = check(&project, arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(project.read("base.jsonl"), text, "{arguments:?}");
    }
}

#[test]
fn a_model_that_moved_keeps_its_entries() {
    let project = Project::with(LINEAR);
    project.write("anelint.toml", "baseline = \"base.jsonl\"\n");
    assert_eq!(check(&project, &["--update-baseline"]).code, Some(0));
    project.copy("cases/out/linear_module_list.pt2", "other/linear_module_list.pt2");
    let both = check(&project, &[]);
    assert_eq!(both.code, Some(1), "a second model of the name is another one");
    std::fs::remove_file(project.path("cases/out/linear_module_list.pt2")).unwrap();
    assert_eq!(check(&project, &[]).code, Some(0));
    check(&project, &["--update-baseline"]);
    assert!(project.read("base.jsonl").contains("\"model\":\"other/linear_module_list.pt2\""));
}

#[test]
fn a_baseline_that_cannot_be_read_is_shown_with_its_line() {
    let project = Project::with(LINEAR);
    project.write("base.jsonl", "{\"anelint-baseline\":1}\n<<<<<<< ours\n");
    let ran = check(&project, &["--baseline", "base.jsonl"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("base.jsonl:2: a merge conflict"), "{}", ran.err);
    assert_eq!(check(&project, &["--update-baseline"]).code, Some(2));
}
