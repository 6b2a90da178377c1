//! Config files as users write them, right and wrong.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use super::*;
use crate::rules::Severity;
use crate::target::{Generation, Unit};

fn read(text: &str) -> File {
    reader::parse(Path::new("/p/anelint.toml"), text.to_owned()).unwrap().unwrap()
}

/// What is wrong with a text, as `line: message`.
fn problems(text: &str) -> Vec<String> {
    let error = reader::parse(Path::new("/p/anelint.toml"), text.to_owned()).unwrap_err();
    let shown = error.to_string();
    shown.lines().map(|line| line.strip_prefix("/p/anelint.toml:").unwrap().to_owned()).collect()
}

const WHOLE: &str = r#"
required-version = ">=0.1"
target = ["neural-engine", "gpu"]
chip = "a17"
os = 27
ignore = "ANE022"
severity = {ANE010 = "error", memory = "off"}
rules = "lint/*.yaml"
max-regions = 4
exclude = ["old"]
baseline = "anelint-baseline.jsonl"
require-reason = true

[source.path-map]
"/build/project" = "."

[[model]]
name = "decoder"
graph = "build/decoder.aimodel"
export = "python export.py"
max-regions = 1

[[override]]
paths = "build/gpu/**"
target = "gpu"
ignore = ["COM029"]

[[suppress]]
rule = ["ANE010", "numerics"]
module = "layers.*.norm"
reason = "measured"
until = 2027-03-31
"#;

#[test]
fn all_that_a_file_may_hold() {
    let file = std::sync::Arc::new(read(WHOLE));
    assert_eq!(file.baseline.as_ref().unwrap().value, PathBuf::from("/p/anelint-baseline.jsonl"));
    assert_eq!(file.path_maps[0].value, ("/build/project".to_owned(), PathBuf::from("/p")));
    assert!(file.excludes(Path::new("/p/x/old/a.pt2")));
    assert_eq!(file.suppress[0].until, Date::parse("2027-03-31"));
    assert_eq!(file.suppress[0].place.line(), 28);

    let at = |path: &str| {
        InForce::new(
            Some(file.clone()),
            Path::new(path),
            &Settings::default(),
            &Settings::default(),
        )
    };
    let own = at("/p/build/decoder.aimodel");
    assert_eq!(own.model.as_deref(), Some("decoder"));
    assert_eq!(own.settings.max_regions.as_ref().unwrap().value, 1);
    assert_eq!(own.settings.chip.as_ref().unwrap().value, Generation::H16);
    assert_eq!(own.units(), [Unit::NeuralEngine, Unit::Gpu]);
    let severity = &own.settings.severity[0].value;
    assert_eq!(*severity, ("ANE010".to_owned(), Level::Severity(Severity::Error)));

    let gpu = at("/p/build/gpu/x/a.pt2");
    assert_eq!(gpu.units(), [Unit::Gpu]);
    assert_eq!(gpu.selection().ignore, ["ANE022", "COM029"]);
    assert_eq!(gpu.settings.max_regions.as_ref().unwrap().value, 4);
}

#[test]
fn every_mistake_is_named_with_its_line_and_what_was_meant() {
    let text = r#"
max_regions = 2
chip = "m9"
target = ["neural-engin"]
ignored = 1
preview = "yes"
fail-on = "warn"
severity = {ANE010 = "eror"}

[[model]]
graph = "a.pt2"

[[suppress]]
rule = "ANE010"
until = "2027-02-30"
path = "["
"#;
    insta::with_settings!({snapshot_path => "../../snapshots/config", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("mistakes", problems(text).join("\n"));
    });
}

#[test]
fn what_is_no_toml_is_said_where_it_stops() {
    let found = problems("chip = \"m1\"\nos = \n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("2: "), "{found:?}");
}

#[test]
fn names_and_graphs_are_given_once() {
    let twice = "[[model]]\nname = \"a\"\ngraph = \"a.pt2\"\n[[model]]\nname = \"a\"\ngraph = \"./a.pt2\"\n";
    assert_eq!(
        problems(twice),
        ["5: `a` is another [[model]] already", "6: `./a.pt2` is another [[model]] already"]
    );
}

#[test]
fn a_number_out_of_range_and_a_table_in_the_wrong_place() {
    assert_eq!(problems("max-regions = -1\n"), ["1: expected a whole number from 0, found -1"]);
    assert_eq!(
        problems("model = {name = \"a\"}\n"),
        ["1: expected a list of tables, [[model]], found table"]
    );
    assert_eq!(
        problems("[source]\nroots = [3]\n"),
        ["2: expected a folder or a list of folders, found integer"]
    );
}

#[test]
fn the_table_of_a_project_file_is_read_alike() {
    let text = "[project]\nname = \"x\"\n\n[tool.anelint]\nchp = \"m1\"\n".to_owned();
    let error = reader::parse(Path::new("/p/pyproject.toml"), text).unwrap_err();
    assert_eq!(error.to_string(), "/p/pyproject.toml:5: unknown key `chp`; did you mean `chip`?");
}
