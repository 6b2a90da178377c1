//! The built binary, as users run it. Findings come from rules of the tests' own, so that they do not
//! change with the built-in ones.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with copies of test graphs and their source, as a user's project.
struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    /// Copies files of `testdata` under the same names.
    fn with(files: &[&str]) -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap() };
        for file in files {
            project.copy(file, file);
        }
        project
    }

    fn copy(&self, from: &str, to: &str) {
        let target = self.path(to);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(repository().join("testdata").join(from), target).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anelint"));
        command.current_dir(self.dir.path()).args(arguments).env_remove("ANELINT_FORMAT");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.command(arguments).output().unwrap())
    }

    /// `check` with the tests' rules only.
    fn check(&self, arguments: &[&str]) -> Ran {
        let rules = repository().join("tests/rules/*.yaml");
        let rules = rules.to_str().unwrap();
        let mut all = vec!["check", "--rules", rules, "--select", "TST"];
        all.extend(arguments);
        self.run(&all)
    }
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

const HELPER: &[&str] = &["cases/masks.py", "cases/out/neginf_helper.pt2"];
const LINEAR: &[&str] = &["cases/linear.py", "cases/out/linear_module_list.pt2"];

fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn a_report_for_people() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    let ran = project.check(&["."]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.err, "");
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("cli_check_text", ran.out);
    });
}

#[test]
fn the_same_for_programs_to_read() {
    let project = Project::with(LINEAR);
    let ran = project.check(&["--format", "json", "cases"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("cli_check_json", ran.out);
    });
}

#[test]
fn one_line_a_finding() {
    let project = Project::with(LINEAR);
    let ran = project.check(&["--format", "concise"]);
    assert_eq!(ran.out, "cases/linear.py:53:28: error[TST002] a linear layer\n");
}

#[test]
fn exit_codes_follow_what_was_found() {
    let project = Project::with(HELPER);
    let code = |arguments: &[&str]| project.check(arguments).code;
    assert_eq!(code(&[]), Some(0), "a warning is below the threshold");
    assert_eq!(code(&["--fail-on", "warning"]), Some(1));
    assert_eq!(code(&["--fail-on", "never"]), Some(0));
    assert_eq!(code(&["--fail-on", "warning", "--exit-zero"]), Some(0));
    assert_eq!(code(&["--ignore", "any-softmax", "--fail-on", "advice"]), Some(0));
    assert_eq!(code(&["--chip", "m9"]), Some(2));
    assert_eq!(code(&["none.pt2"]), Some(2));
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let project = Project::with(HELPER);
    project.write("cases/out/a.pt2", "PK\u{3}\u{4}not really");
    let ran = project.check(&["--exit-zero", "--format", "json"]);
    assert_eq!(ran.code, Some(2));
    let report = json(&ran);
    assert_eq!(report["errors"][0]["path"], "cases/out/a.pt2");
    assert_eq!(report["inputs"][0]["path"], "cases/out/neginf_helper.pt2");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_folder_without_models_is_said_to_be_so() {
    let project = Project::with(&["cases/masks.py"]);
    let ran = project.run(&["check"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ".: no model graph below it\n"));
    assert_eq!(project.run(&["check", "--allow-empty"]).code, Some(0));
}

#[test]
fn a_pointer_of_git_lfs_is_a_note_and_a_failure_only_when_alone() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    let project = Project::with(HELPER);
    project.write("big.pt2", pointer);
    let ran = project.check(&["."]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("big.pt2: a Git LFS pointer"), "{}", ran.out);
    assert_eq!(project.check(&["big.pt2"]).code, Some(2));
    assert_eq!(project.check(&["big.pt2", "cases/out/neginf_helper.pt2"]).code, Some(0));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let project = Project::with(&[HELPER, LINEAR].concat());
    for n in 0..6 {
        project.copy("cases/out/linear_module_list.pt2", &format!("cases/out/copy{n}.pt2"));
    }
    for format in ["text", "json"] {
        let one = project.check(&["--format", format, "--jobs", "1"]);
        let many = project.check(&["--format", format, "--jobs", "7"]);
        assert_eq!(one.out, many.out);
    }
}

#[test]
fn the_report_goes_to_a_file_whole() {
    let project = Project::with(LINEAR);
    project.write("report.json", "old");
    let ran = project.check(&["--format", "json", "-o", "report.json"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let text = std::fs::read_to_string(project.path("report.json")).unwrap();
    assert!(text.starts_with("{\n  \"version\": 1,"));
    let ran = project.check(&["-o", "no/such/folder/report.txt"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("cannot be written"), "{}", ran.err);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let project = Project::with(LINEAR);
    let rules = repository().join("tests/rules/*.yaml");
    let mut child = project
        .command(&["check", "--format", "json", "--rules", rules.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    child.wait().unwrap();
    assert_eq!(err, "");
}

#[test]
fn source_moved_to_another_folder_is_found_by_its_path_or_by_being_told() {
    let project = Project::with(&["cases/out/linear_module_list.pt2"]);
    let location = |arguments: &[&str]| {
        let mut all = vec!["--format", "json"];
        all.extend(arguments);
        json(&project.check(&all))["findings"][0]["location"].clone()
    };
    let missing = location(&[]);
    assert_eq!(missing["found"], false);
    assert_eq!((&missing["file"], &missing["line"]), (&"cases/linear.py".into(), &53.into()));
    project.copy("cases/linear.py", "src/deep/linear.py");
    assert_eq!(location(&[])["file"], "src/deep/linear.py", "found by name and text");
    project.copy("cases/linear.py", "src/other/linear.py");
    assert!(location(&[]).is_null(), "two fit: neither is named");
    assert_eq!(location(&["--source-root", "src/deep"])["file"], "src/deep/linear.py");
    assert_eq!(location(&["--path-map", "cases=src/other"])["file"], "src/other/linear.py");
}

#[test]
fn a_file_edited_since_the_export_is_said_to_be_stale() {
    let project = Project::with(&["cases/out/linear_module_list.pt2"]);
    let source = std::fs::read_to_string(repository().join("testdata/cases/linear.py")).unwrap();
    project.write("cases/linear.py", format!("# a new first line\n{source}"));
    let location = json(&project.check(&["--format", "json"]))["findings"][0]["location"].clone();
    assert_eq!(location["stale"], true);
    assert_eq!((&location["line"], &location["column"]), (&54.into(), &28.into()));
    project.write("cases/linear.py", source.replace("F.relu(layer(x))", "F.gelu(layer(x))"));
    let location = json(&project.check(&["--format", "json"]))["findings"][0]["location"].clone();
    assert_eq!((&location["stale"], &location["column"]), (&true.into(), &().into()));
    assert_eq!((&location["found"], &location["line"]), (&false.into(), &53.into()));
    let text = project.check(&[]).out;
    let recorded = "= exported from cases/linear.py:53: x = x + F.relu(layer(x))";
    assert!(text.contains(recorded) && text.contains("= the source was edited since"), "{text}");
    assert!(!text.contains('^'), "no line of the file is shown in its place: {text}");
}

#[test]
fn where_a_library_makes_it_the_help_is_about_that() {
    let project = Project::with(&["cases/out/linear_module_list.pt2", "cases/linear.py"]);
    let help = |find: &str| {
        let rule = std::fs::read_to_string(repository().join("tests/rules/linear.yaml")).unwrap();
        let python =
            format!("help: edit it\npython: {{find: ['{find}'], library-help: swap it}}\n");
        project.write("rule.yaml", rule.replace("TST002", "TST009") + &python);
        let all = ["check", "--rules", "rule.yaml", "--select", "TST009", "--format", "json"];
        json(&project.run(&all))["findings"][0]["help"].clone()
    };
    assert_eq!(help("F.linear($$$)"), "swap it", "nn.Linear calls it");
    assert_eq!(help("layer($X)"), "edit it", "the line says it");
}

#[test]
fn a_graph_without_source_names_its_node() {
    let project = Project::with(&["cases/out/fp32_softmax.release.aimodel/main.mlirb"]);
    project.copy(
        "cases/out/fp32_softmax.release.aimodel/metadata.json",
        "cases/out/fp32_softmax.release.aimodel/metadata.json",
    );
    let ran = project.check(&["--format", "json"]);
    let report = json(&ran);
    let finding = &report["findings"][0];
    assert_eq!(finding["rule"], "TST001", "{}{}", ran.out, ran.err);
    assert!(finding["location"].is_null());
    let text = project.check(&[]);
    assert!(text.out.contains("= node "), "{}", text.out);
}

#[test]
fn colours_come_when_asked_for_and_not_in_a_pipe() {
    let project = Project::with(LINEAR);
    assert!(!project.check(&[]).out.contains('\u{1b}'));
    assert!(project.check(&["--color", "always"]).out.contains("\u{1b}[1;31merror[TST002"));
}

#[test]
fn quiet_says_findings_only_and_verbose_says_more() {
    let project = Project::with(LINEAR);
    let quiet = project.check(&["-q"]).out;
    assert!(quiet.starts_with("error[TST002 any-linear]"), "{quiet}");
    assert!(!quiet.contains("eligible"), "{quiet}");
    assert!(project.check(&["-v"]).out.contains("= evidence: official"));
}

#[test]
fn mistakes_in_rule_files_and_selectors_say_where_and_what() {
    let project = Project::with(HELPER);
    project.write("lint/bad.yaml", "id: TST009\nname: bad\nseverity: loud\n");
    let ran = project.run(&["check", "--rules", "lint/*.yaml"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("bad.yaml"), "{}", ran.err);
    assert!(ran.err.contains("loud"), "{}", ran.err);
    let ran = project.run(&["check", "--rules", "none/*.yaml"]);
    assert!(ran.err.contains("no file matches"), "{}", ran.err);
    let ran = project.check(&["--select", "any-sofmax"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `any-softmax`"), "{}", ran.err);
}

#[test]
fn rules_explain_themselves() {
    let project = Project::with(&[]);
    let rules = repository().join("tests/rules/softmax.yaml");
    let rules = rules.to_str().unwrap();
    let ran = project.run(&["explain", "--rules", rules, "tst001"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("TST001 any-softmax: A softmax, for tests\n"), "{}", ran.out);
    let list = project.run(&["rules", "--rules", rules]);
    assert!(list.out.contains("TST001  any-softmax"), "{}", list.out);
    let ran = project.run(&["explain", "ANE0077"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("did you mean `ANE007`"), "{}", ran.err);
}

#[test]
fn names_from_a_hostile_file_do_not_reach_the_terminal() {
    // The same graph with an escape sequence in the recorded text of a line: what the file says is
    // shown, not obeyed.
    let project = Project::with(&[]);
    let bytes =
        std::fs::read(repository().join("testdata/cases/out/linear_module_list.pt2")).unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let mut evil = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut replaced = 0;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).unwrap();
        let name = member.name().unwrap().into_owned();
        let mut content = Vec::new();
        member.read_to_end(&mut content).unwrap();
        if name.ends_with("models/model.json") {
            let text = String::from_utf8(content).unwrap();
            replaced += text.matches("F.relu(layer(x))").count();
            content = text.replace("F.relu(layer(x))", "F.\\u001b[31m(x))").into_bytes();
        }
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        evil.start_file(name, stored).unwrap();
        evil.write_all(&content).unwrap();
    }
    assert!(replaced > 0, "the graph has no such line");
    let bytes = evil.finish().unwrap().into_inner();
    project.write("evil.pt2", bytes);
    for format in ["text", "concise"] {
        let ran = project.check(&["--format", format, "evil.pt2"]);
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        assert!(!ran.out.contains('\u{1b}'), "{}", ran.out);
    }
}
