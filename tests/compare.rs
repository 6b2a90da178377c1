//! A model beside another, and beside what a compiler said of it: `diff`, `placement --confirm`,
//! `stats` from the outside.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MANY: &str = "testdata/cases/out/regions_many.pt2";
const ONE: &str = "testdata/cases/out/regions_one.pt2";
const ANALYSIS: &str = "testdata/coreml/analytics.mil";

fn anelint(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anelint"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Exit code and standard output.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = anelint(arguments);
    let code = output.status.code().unwrap();
    assert!(code < 2, "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    (code, String::from_utf8(output.stdout).unwrap())
}

fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, text) = run(&[arguments, &["--format", "json"]].concat());
    (code, serde_json::from_str(&text).unwrap())
}

fn error(arguments: &[&str]) -> String {
    let output = anelint(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn rules(findings: &Value) -> Vec<&str> {
    findings.as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

fn measure(report: &Value, name: &str) -> (u64, u64) {
    let measures = report["inputs"][0]["functions"][0]["measures"].as_array().unwrap();
    let measure = measures.iter().find(|measure| measure["name"] == name).unwrap();
    (measure["old"].as_u64().unwrap(), measure["new"].as_u64().unwrap())
}

#[test]
fn a_model_beside_itself_shows_nothing() {
    let (code, report) = json(&["diff", MANY, MANY, "--fail-on", "advice"]);
    assert_eq!(code, 0);
    let input = &report["inputs"][0];
    assert_eq!((rules(&input["gained"]).len(), rules(&input["lost"]).len()), (0, 0));
    assert!(input["same"].as_u64().unwrap() > 0);
    assert_eq!(input["functions"][0]["contract"], "same");
}

#[test]
fn dropping_the_upcasts_loses_their_findings_and_changes_rounding_only() {
    let (code, report) = json(&["diff", MANY, ONE]);
    assert_eq!(code, 0, "no error was gained");
    let input = &report["inputs"][0];
    // In f16 all the way the attention is one that could be fused: told, and no reason to fail.
    assert_eq!(rules(&input["gained"]), ["ANE017"]);
    assert!(rules(&input["lost"]).contains(&"ANE003") && rules(&input["lost"]).contains(&"ANE010"));
    assert_eq!(measure(&report, "regions"), (14, 1));
    let (old, new) = measure(&report, "parameters");
    assert_eq!(old, new);
    assert_eq!(input["functions"][0]["contract"], "rounding");
}

#[test]
fn bringing_them_back_fails_by_severity() {
    assert_eq!(run(&["diff", ONE, MANY]).0, 1);
    assert_eq!(run(&["diff", ONE, MANY, "--fail-on", "never"]).0, 0);
    let (code, text) = run(&["diff", ONE, MANY, "--format", "markdown"]);
    assert_eq!(code, 1);
    assert!(text.starts_with("### anelint: `"), "{text}");
    assert!(text.contains("| regions | 1 | 14 | +13 |"), "{text}");
    assert!(text.contains("#### Gained\n\n- **error** ANE003 "), "{text}");
    assert!(text.contains("(`testdata/cases/regions.py:32`)"), "{text}");
}

#[test]
fn another_model_is_another_function() {
    let (_, report) = json(&["diff", ONE, "testdata/cases/out/regions_edges.pt2"]);
    let function = &report["inputs"][0]["functions"][0];
    assert_eq!(function["contract"], "other");
    assert!(!function["interface"].as_array().unwrap().is_empty());
    assert!(!function["op_changes"].as_array().unwrap().is_empty());
}

#[test]
fn an_analysis_file_confirms_supported_and_preferred_apart() {
    let (_, report) = json(&["placement", ANALYSIS, "--confirm", ANALYSIS]);
    let function = &report["inputs"][0]["functions"][0];
    let said = &function["confirmations"][0];
    assert_eq!((&said["named"], &said["unmatched"]), (&3.into(), &0.into()));
    assert_eq!(said["regions"], 1, "conv and add run on the unit, one after the other");
    // Both say of all three whether the unit could run them, and agree.
    assert_eq!(
        (&said["supported"]["compared"], &said["supported"]["agree"]),
        (&3.into(), &3.into())
    );
    // By our estimates so little work stays on the CPU; the file has two ops on the unit.
    let preferred: Vec<&Value> = said["differences"].as_array().unwrap().iter().collect();
    assert!(preferred.iter().all(|difference| difference["question"] == "preferred"));
    assert_eq!(
        said["preferred"]["compared"].as_u64().unwrap()
            - said["preferred"]["agree"].as_u64().unwrap(),
        preferred.len() as u64
    );
    let ops = function["ops"].as_array().unwrap();
    let op = |name: &str| ops.iter().find(|op| op["node"] == name).unwrap();
    assert_eq!(op("conv_0")["confirmed"], "neural-engine");
    assert_eq!(op("add_1")["confirmed"], "bnns");
    assert_eq!(op("add_1")["confirmed_supported"], false);
    assert_eq!(op("add_1")["confirmed_reason"], "Unsupported tensor data type: int32");
    assert_eq!(op("both")["confirmed"], Value::Null);
}

#[test]
fn a_compute_plan_is_held_against_the_ops_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    std::fs::write(
        &plan,
        r#"[{"op": "ios18.conv", "name": "conv_0", "preferred": "CPU", "supported": ["ANE", "CPU"]},
            {"op": "ios18.add", "name": "add_1", "preferred": "ANE", "supported": ["ANE", "CPU"]},
            {"op": "ios18.add", "name": "elsewhere", "preferred": "CPU", "supported": ["CPU"]}]"#,
    )
    .unwrap();
    let plan = plan.to_str().unwrap();
    let (_, text) = run(&["placement", ANALYSIS, "--confirm", plan]);
    assert!(text.contains("it names 2 ops, and 1 that are not here"), "{text}");
    assert!(text.contains("supported as judged eligible: 1 of 2 (50.0 %)"), "{text}");
    assert!(text.contains("add_1: we say not eligible ("), "{text}");
    assert!(text.contains("; the file says supported"), "{text}");
    // Several files are told apart.
    let (_, report) = json(&["placement", ANALYSIS, "--confirm", plan, "--confirm", ANALYSIS]);
    let function = &report["inputs"][0]["functions"][0];
    assert_eq!(function["confirmations"].as_array().unwrap().len(), 2);
}

#[test]
fn a_plan_of_another_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    std::fs::write(&plan, r#"[{"op": "tan", "name": "t", "preferred": "CPU"}]"#).unwrap();
    let said = error(&["placement", ONE, "--confirm", plan.to_str().unwrap()]);
    assert!(said.contains("it names no function and no op of this model"), "{said}");
    let said = error(&["placement", ONE, "--confirm", ONE]);
    assert!(said.contains("no compiler's words in it"), "{said}");
}

/// A compiled asset with this many region files for `main`, and the program of a model if given.
fn compiled(folder: &Path, regions: usize, program: bool) -> String {
    let root = folder.join("model.aimodelc");
    let delegates = root.join("main-h16-delegates/MPSGraph");
    std::fs::create_dir_all(&delegates).unwrap();
    for at in 0..regions {
        let region = delegates.join(format!("main_ANE_region_0_{at}.bc/h16"));
        std::fs::create_dir_all(&region).unwrap();
        std::fs::write(region.join(format!("main_ANE_region_0_{at}.mlir.bc")), b"").unwrap();
    }
    if program {
        let asset =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases/out/regions_one.aimodel");
        std::fs::copy(asset.join("main.mlirb"), root.join("main-h16.mlirb")).unwrap();
    }
    root.to_str().unwrap().to_owned()
}

#[test]
fn a_compiled_asset_confirms_the_number_of_regions() {
    let folder = tempfile::tempdir().unwrap();
    let asset = compiled(folder.path(), 14, false);
    let (_, text) = run(&["placement", MANY, "--confirm", &asset]);
    assert!(text.contains("regions: 14 predicted, 14 confirmed"), "{text}");
    let (_, report) = json(&["placement", ONE, "--confirm", &asset]);
    let said = &report["inputs"][0]["functions"][0]["confirmations"][0];
    assert_eq!((&said["regions"], &said["named"]), (&14.into(), &0.into()));
}

#[test]
fn an_asset_without_regions_has_fallen_back_silently() {
    for (regions, program, fires) in [(0, true, true), (1, true, false)] {
        let folder = tempfile::tempdir().unwrap();
        let asset = compiled(folder.path(), regions, program);
        let (_, report) = json(&["check", &asset]);
        let found = rules(&report["findings"]).contains(&"ANE058");
        assert_eq!(found, fires, "{regions} regions, program: {program}");
        // An asset that was built for the GPU has none by right.
        let (_, report) = json(&["check", &asset, "--target", "gpu"]);
        assert!(!rules(&report["findings"]).contains(&"ANE058"));
    }
}

#[test]
fn little_work_stays_on_the_cpu_and_advice_says_so() {
    let (_, report) = json(&["check", "testdata/models/out/vit.mlpackage"]);
    assert!(rules(&report["findings"]).contains(&"ANE057"));
    // Enough work for the unit, and a function with an op that cannot go there.
    for other in
        ["placement/ctx/models/conv3x3_d2.mlpackage", "placement/models/gather_dyn.mlpackage"]
    {
        let (_, report) = json(&["check", &format!("testdata/{other}")]);
        let placed = &report["inputs"][0]["functions"][0];
        if placed["regions"] == 0 && placed["eligible"] == placed["ops"] {
            panic!("{other} is no example any more");
        }
        assert!(!rules(&report["findings"]).contains(&"ANE057"), "{other}");
    }
}

#[test]
fn statistics_name_their_formulas_and_bounds() {
    let (_, text) =
        run(&["stats", "testdata/models/out/vit.pt2", "--bandwidth", "100", "--rate", "10000"]);
    for part in ["= 2 · results · contracted extent", "roofline: ", "saves at most", "modules"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = error(&["stats", "testdata/models/out/vit.pt2", "--rate", "0"]);
    assert!(said.contains("expected a number above 0"), "{said}");
}

#[test]
fn of_palettised_weights_the_indices_give_the_dtype() {
    let (_, report) = json(&["stats", "testdata/coreml/cw_conv.pal4_group16_scale.mlpackage"]);
    let function = &report["inputs"][0]["functions"][0];
    let weights = &function["weights"];
    let class = &weights["classes"].as_array().unwrap()[0];
    assert_eq!((&class["dtype"], &class["compression"]), (&"u4".into(), &"lut_to_dense".into()));
    assert_eq!(weights["bytes_read"], weights["bytes"]);
}
