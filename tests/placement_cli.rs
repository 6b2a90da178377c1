//! `anelint placement` and `anelint why` from the outside: the map, the ranking, the reasons, the JSON.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::{Command, Output};

fn anelint(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anelint"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = anelint(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_map_of_a_model_that_leaves_the_unit_in_the_middle() {
    snapshot("placement_mod", &text(&["placement", "testdata/placement/ctx/models/mod.mlpackage"]));
}

#[test]
fn the_ranking_names_the_line_of_an_f32_softmax() {
    let text = text(&["placement", "testdata/cases/out/fp32_softmax.pt2"]);
    assert!(text.contains("57 % of 7 ops eligible · 2 regions"), "{text}");
    assert!(text.contains("fix this place: 2 regions → 1"), "{text}");
    assert!(text.contains("testdata/cases/fp32.py:16 · 3 ops"), "{text}");
}

#[test]
fn code_written_for_the_unit_is_one_region() {
    for case in ["clean_block", "clean_encoder", "clean_decoder", "clean_vision"] {
        for form in ["pt2", "decomp.pt2"] {
            let path = format!("testdata/cases/out/{case}.{form}");
            let json = text(&["placement", &path, "--format", "json"]);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            let main = &json["inputs"][0]["functions"][0];
            assert_eq!(main["regions"].as_array().unwrap().len(), 1, "{path}");
            assert_eq!(main["off_unit"], 0, "{path}");
        }
    }
}

#[test]
fn why_says_who_says_so() {
    let model = "testdata/placement/models/gather_dyn.mlpackage";
    let mut all = String::new();
    for node in ["gather_0", "select_0", "cast_0"] {
        all += &text(&["why", model, node]);
    }
    snapshot("why_gather", &all);
}

#[test]
fn a_name_that_is_not_there_is_answered_with_those_that_are() {
    let output = anelint(&["why", "testdata/placement/models/gather_dyn.mlpackage", "gather"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no op is named `gather`") && error.contains("gather_0"), "{error}");
}

#[test]
fn json_counts_what_it_lists() {
    let json = text(&[
        "placement",
        "testdata/placement/ctx/models/mod.mlpackage",
        "--format",
        "json",
        "--chip",
        "m4",
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["inputs"][0]["target"]["chip"], "h16");
    let main = &json["inputs"][0]["functions"][0];
    let ops = main["ops"].as_array().unwrap();
    let work: Vec<_> = ops.iter().filter(|op| op["transparent"] == false).collect();
    assert_eq!(main["count"].as_u64().unwrap() as usize, work.len());
    let off: Vec<_> = work.iter().filter(|op| op["eligible"] == false).collect();
    assert_eq!(off.len(), 1);
    assert_eq!(off[0]["op"], "mod");
    assert_eq!(off[0]["row"], "function");
    assert_eq!(off[0]["evidence"][0], "E-01");
    for region in main["regions"].as_array().unwrap() {
        let inside = work.iter().filter(|op| op["region"] == region["id"]).count();
        assert_eq!(region["ops"].as_u64().unwrap() as usize, inside);
    }
}

#[test]
fn several_units_make_several_inputs() {
    let json = text(&[
        "placement",
        "testdata/cases/out/fp32_softmax.pt2",
        "--target",
        "neural-engine,gpu,cpu",
        "--format",
        "json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let regions: Vec<usize> = json["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["functions"][0]["regions"].as_array().unwrap().len())
        .collect();
    assert_eq!(regions.len(), 3);
    assert_eq!((regions[1], regions[2]), (1, 1), "the GPU and the CPU run f32");
}

/// The first function of the first input.
fn placed(path: &str) -> serde_json::Value {
    let json = text(&["placement", path, "--format", "json"]);
    let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
    json["inputs"][0]["functions"][0].take()
}

#[test]
fn of_an_encoder_with_f32_in_every_layer_two_lines_are_to_blame() {
    // The softmax of each layer, then the pooling of the head; in that order.
    for form in ["pt2", "decomp.pt2", "aimodel"] {
        let many = placed(&format!("testdata/cases/out/regions_many.{form}"));
        assert_eq!(many["regions"].as_array().unwrap().len(), 14, "{form}");
        let steps: Vec<_> = many["what_if"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| {
                (
                    step["location"]["file"].as_str().unwrap(),
                    step["location"]["line"].as_u64().unwrap(),
                    step["regions_before"].as_u64().unwrap(),
                    step["regions_after"].as_u64().unwrap(),
                )
            })
            .collect();
        let file = "testdata/cases/regions.py";
        assert_eq!(steps, [(file, 32, 14, 2), (file, 57, 2, 1)], "{form}");
        let source = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR")));
        let source = source.unwrap();
        let line = |at: usize| source.lines().nth(at - 1).unwrap();
        assert!(line(32).contains("F.softmax(scores, dim=-1, dtype=torch.float32)"));
        assert!(line(57).contains("x.float()"));
        let one = placed(&format!("testdata/cases/out/regions_one.{form}"));
        assert_eq!(one["regions"].as_array().unwrap().len(), 1, "{form}");
        assert!(one["what_if"].as_array().unwrap().is_empty());
    }
}

#[test]
fn of_whole_models_only_the_work_on_token_ids_and_masks_is_off_the_unit() {
    for model in ["vit", "convnext"] {
        let own = placed(&format!("testdata/models/out/{model}.mlpackage"));
        assert_eq!(own["eligible"], own["count"], "{model}: all eligible");
    }
    for model in ["bert", "llama", "qwen3", "qwen3_decode"] {
        let own = placed(&format!("testdata/models/out/{model}.mlpackage"));
        for op in own["ops"].as_array().unwrap() {
            if op["eligible"] == false && op["transparent"] == false {
                assert_eq!(op["interior"], false, "{model}: {op}");
                let kind = op["op"].as_str().unwrap();
                let known = ["cast", "add", "gather", "greater_equal", "where"];
                assert!(known.contains(&kind), "{model}: {op}");
            }
        }
    }
}
