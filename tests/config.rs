//! Settings from files, the environment and the command line, as the built binary takes them.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use support::{HELPER, LINEAR, Project};

/// A project whose config file loads the tests' rules alone.
fn project(config: &str) -> Project {
    let project = Project::with(&[HELPER, LINEAR].concat());
    for rule in std::fs::read_dir(support::repository().join("tests/rules")).unwrap() {
        let rule = rule.unwrap();
        let name = rule.file_name().into_string().unwrap();
        project.write(&format!("lint/{name}"), std::fs::read(rule.path()).unwrap());
    }
    let base = "rules = \"lint/*.yaml\"\nselect = [\"TST\"]\n";
    project.write("anelint.toml", format!("{base}{config}"));
    project
}

fn found(project: &Project, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["check", "--format", "json"];
    all.extend(arguments);
    project.run(&all).found()
}

#[test]
fn the_nearest_file_speaks_for_each_input() {
    let project = project("[severity]\nTST002 = \"advice\"\n");
    assert_eq!(found(&project, &[]), ["TST002 advice", "TST001 warning"]);
    // From another folder the same file is found: paths in it are relative to it.
    let outside = tempfile::tempdir().unwrap();
    let root = project.root().to_str().unwrap().to_owned();
    let mut command = project.command(&["check", &root, "--format", "json"]);
    let ran = support::Ran::new(command.current_dir(outside.path()).output().unwrap());
    assert_eq!(ran.found(), ["TST002 advice", "TST001 warning"]);
    // A nearer one is not merged with it.
    project.copy("cases/out/linear_module_list.pt2", "other/a.pt2");
    project.write("other/anelint.toml", "select = [\"COM029\"]\n");
    assert!(found(&project, &["other"]).is_empty());
    assert_eq!(found(&project, &["other", "--config", "anelint.toml"]), ["TST002 advice"]);
    assert_eq!(project.run(&["check", "--isolated", "--select", "TST"]).code, Some(2));
}

#[test]
fn tables_for_paths_and_for_models_are_over_the_top_level() {
    let project = project(
        "severity = {TST001 = \"error\"}\n\
         [[override]]\npaths = \"cases/out/linear*\"\nignore = [\"TST002\"]\n\
         [[model]]\nname = \"masked\"\ngraph = \"cases/out/neginf_helper.pt2\"\n\
         severity = {TST001 = \"off\"}\nselect = [\"TST\"]\n",
    );
    assert!(found(&project, &["cases"]).is_empty());
    assert_eq!(found(&project, &["cases", "--severity", "TST001=advice"]), ["TST001 advice"]);
}

#[test]
fn the_environment_is_over_files_and_the_command_line_over_both() {
    let project = project("fail-on = \"never\"\nchip = \"m1\"\n");
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut all = vec!["check", "--format", "json", "cases/out/linear_module_list.pt2"];
        all.extend(arguments);
        let mut command = project.command(&all);
        command.envs(variables.iter().copied());
        let ran = support::Ran::new(command.output().unwrap());
        let chip = ran.json()["inputs"][0]["target"]["chip"].as_str().unwrap().to_owned();
        (ran.code.unwrap(), chip)
    };
    assert_eq!(run(&[], &[]), (0, "h13".to_owned()));
    let variables = [("ANELINT_FAIL_ON", "error"), ("ANELINT_CHIP", "m2")];
    assert_eq!(run(&variables, &[]), (1, "h14".to_owned()));
    assert_eq!(run(&variables, &["--chip", "m3", "--fail-on", "never"]), (0, "h15".to_owned()));
}

#[test]
fn models_that_the_file_names_are_checked_without_being_told() {
    let project = project(
        "[[model]]\nname = \"masked\"\ngraph = \"cases/out/neginf_helper.pt2\"\n\
         [[model]]\nname = \"gone\"\ngraph = \"build/gone.pt2\"\nexport = \"python export.py\"\n",
    );
    let ran = project.run(&["check", "--format", "json"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.found(), ["TST001 warning"]);
    let message = ran.json()["errors"][0]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        message,
        "no such file, though [[model]] `gone` names it; make it with: python export.py"
    );
}

#[test]
fn more_regions_than_allowed_is_an_error() {
    let project = Project::with(&["cases/regions.py", "cases/out/regions_many.pt2"]);
    let ane010 = |config: &str, arguments: &[&str]| {
        project.write("anelint.toml", config);
        let mut all = vec!["check", "--format", "json", "--select", "ANE003,ANE010"];
        all.extend(arguments);
        let found = project.run(&all).found();
        found.into_iter().find(|own| own.starts_with("ANE010")).unwrap_or_default()
    };
    assert_eq!(ane010("max-regions = 2\n", &[]), "ANE010 error");
    assert_eq!(ane010("max-regions = 2\n", &["--max-regions", "99"]), "ANE010 warning");
    let model =
        "max-regions = 99\n[[model]]\nname = \"m\"\ngraph = \"cases/out/regions_many.pt2\"\n";
    assert_eq!(ane010(&format!("{model}max-regions = 1\n"), &[]), "ANE010 error");
}

#[test]
fn what_the_file_excludes_is_not_walked_into() {
    let project = project("exclude = [\"linear*\"]\n");
    assert_eq!(found(&project, &["."]), ["TST001 warning"]);
    let named = "cases/out/linear_module_list.pt2";
    assert_eq!(found(&project, &[named]), ["TST002 error"]);
    assert!(found(&project, &[named, "--force-exclude", "--allow-empty"]).is_empty());
}

#[test]
fn findings_on_weak_evidence_can_be_left_out() {
    let project = project("");
    let weak =
        project.read("lint/softmax.yaml").replace("sureness: official", "sureness: reported");
    project.write("lint/softmax.yaml", weak);
    assert_eq!(found(&project, &["--min-sureness", "reported"]).len(), 2);
    assert_eq!(found(&project, &["--min-sureness", "measured"]), ["TST002 error"]);
    let ran = project.run(&["check", "--min-sureness", "sure"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("expected one of: official, measured"), "{}", ran.err);
}

#[test]
fn a_version_that_is_not_this_one_stops_the_run() {
    let project = project("required-version = \">=99\"\n");
    let ran = project.run(&["check"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains(">=99 is required here"), "{}", ran.err);
    assert!(ran.err.contains("anelint.toml:3:"), "{}", ran.err);
}

#[test]
fn a_rule_that_the_file_names_and_nobody_knows_is_shown_where_it_stands() {
    let project = project("ignore = [\"ANE004\", \"inf-msk\"]\n");
    let ran = project.run(&["check"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `inf-mask`?"), "{}", ran.err);
    assert!(ran.err.contains("anelint.toml:3:21"), "{}", ran.err);
}

#[test]
fn init_writes_a_file_that_knows_the_models_and_the_script_that_makes_them() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    project.write("export.py", "import torch\ntorch.export.save(program, path)\n");
    let ran = project.run(&["init"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        ran.err,
        "anelint.toml: written after a look at 2 model graphs and 1 export script\n"
    );
    let text = project.read("anelint.toml");
    for part in [
        "# Model graphs found: 2 .pt2.",
        "name = \"linear_module_list\"\ngraph = \"cases/out/linear_module_list.pt2\"\nexport = \"python export.py\"",
        "#   export.py: saves .pt2",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // What it has written is right.
    let ran = project.run(&["check", "--format", "json", "--exit-zero"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(ran.json()["inputs"].as_array().unwrap().len(), 2);
    let again = project.run(&["init"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("anelint.toml is there already"), "{}", again.err);
    assert_eq!(project.run(&["init", "--stdout"]).out, text);
}

#[test]
fn config_shows_what_is_in_force_and_who_set_it() {
    let project = project("chip = \"m1\"\nfail-on = \"never\"\nignore = [\"ANE022\"]\n");
    let mut command = project.command(&["config", "cases/out/a.pt2", "--ignore", "ANE017"]);
    let ran = support::Ran::new(command.env("ANELINT_CHIP", "m2").output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let line = |key: &str| {
        let own = ran.out.lines().find(|line| line.starts_with(&format!("{key} = ")));
        own.unwrap_or_else(|| panic!("{}", ran.out))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("chip"), "chip = \"h14\" # environment, ANELINT_CHIP");
    assert_eq!(line("fail-on"), "fail-on = \"never\" # anelint.toml:4");
    assert_eq!(
        line("ignore"),
        "ignore = [\"ANE022\",\"ANE017\"] # anelint.toml:5; command line, --ignore"
    );
    assert_eq!(line("runtime"), "runtime = \"by the format\" # default");
    let ran = project.run(&["config", "--format", "json"]);
    assert_eq!(ran.json()["file"], "anelint.toml");
}

#[test]
fn statistics_count_the_findings_of_each_rule() {
    let project = project("");
    let ran = project.run(&["check", "--statistics"]);
    assert_eq!(
        ran.out,
        "1  warning  TST001  any-softmax  1 model\n1  error    TST002  any-linear   1 model\n"
    );
    let ran = project.run(&["check", "--statistics", "--format", "json"]);
    assert_eq!(ran.json()["statistics"][1]["findings"], 1);
}
