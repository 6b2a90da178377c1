//! Reports hold to the published schema. The validator knows the keywords that the schema uses, and
//! fails on any other.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::process::Command;

use serde_json::Value;

/// Every way in which `value` breaks `schema`, by path.
fn broken(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wrong = |what: String| problems.push(format!("{path}: {what}"));
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        other => panic!("the validator does not know the type {other}"),
    };
    let mut nested = Vec::new();
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                nested.extend(broken(root, &root["$defs"][name], value, path));
            }
            "type" => {
                let kinds: Vec<&str> = match rule {
                    Value::String(kind) => vec![kind],
                    kinds => {
                        kinds.as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect()
                    }
                };
                if !kinds.iter().any(|kind| is(kind)) {
                    wrong(format!("{value} is not {kinds:?}"));
                }
            }
            "const" if value != rule => wrong(format!("{value} is not {rule}")),
            "const" => {}
            "enum" if !rule.as_array().unwrap().contains(value) => {
                wrong(format!("{value} is none of {rule}"));
            }
            "enum" => {}
            "minimum" => {
                if value.as_i64().is_some_and(|n| n < rule.as_i64().unwrap()) {
                    wrong(format!("{value} is below {rule}"));
                }
            }
            "minItems" | "maxItems" => {
                let limit = rule.as_u64().unwrap() as usize;
                let length = value.as_array().map_or(limit, Vec::len);
                if (keyword == "minItems" && length < limit)
                    || (keyword == "maxItems" && length > limit)
                {
                    wrong(format!("{length} items, {keyword} {limit}"));
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        wrong(format!("has no {key}"));
                    }
                }
            }
            "additionalProperties" => {
                assert_eq!(rule, false);
                for key in value.as_object().into_iter().flat_map(|object| object.keys()) {
                    if schema["properties"].get(key).is_none() {
                        wrong(format!("{key} is not in the schema"));
                    }
                }
            }
            "properties" => {
                for (key, rule) in rule.as_object().unwrap() {
                    if let Some(own) = value.get(key) {
                        nested.extend(broken(root, rule, own, &format!("{path}.{key}")));
                    }
                }
            }
            "items" => {
                for (at, own) in value.as_array().into_iter().flatten().enumerate() {
                    nested.extend(broken(root, rule, own, &format!("{path}[{at}]")));
                }
            }
            "oneOf" => {
                let fits = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|rule| broken(root, rule, value, path).is_empty())
                    .count();
                if fits != 1 {
                    wrong(format!("{value} fits {fits} of the alternatives"));
                }
            }
            other => panic!("the validator does not know {other}"),
        }
    }
    problems.extend(nested);
    problems
}

fn schema() -> Value {
    schema_of("check")
}

fn schema_of(subcommand: &str) -> Value {
    let path = format!("{}/schemas/{subcommand}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The JSON of another subcommand.
fn json_of(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_anelint"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"))
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_anelint"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"))
        .args(["check", "--format", "json", "--rules", "../tests/rules/*.yaml"])
        .args(arguments)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn reports_hold_to_the_schema() {
    let schema = schema();
    // Graphs of every format that is read, one that is not there, and the test sources themselves.
    let reports = [
        report(&["cases/out", "--target", "neural-engine,gpu"]),
        report(&["none.pt2", "cases/linear.py"]),
    ];
    let findings = reports[0]["findings"].as_array().unwrap();
    assert!(findings.len() > 20, "too few findings to prove anything");
    assert!(findings.iter().any(|finding| finding["location"].is_null()));
    assert!(findings.iter().any(|finding| finding["related"][0].is_object()));
    for report in &reports {
        assert_eq!(broken(&schema, &schema, report, "report"), Vec::<String>::new());
    }
}

#[test]
fn placement_stats_and_diff_hold_to_theirs() {
    let many = "cases/out/regions_many.pt2";
    let one = "cases/out/regions_one.pt2";
    let analysis = "coreml/analytics.mil";
    for arguments in [
        &["placement", many, "--target", "neural-engine,gpu"][..],
        &["placement", analysis, "--confirm", analysis],
        &["stats", many, "coreml/cw_conv.pal4_group16_scale.mlpackage"],
        &["stats", one, "--bandwidth", "100", "--rate", "10000"],
        &["diff", many, one],
        &["diff", one, many],
    ] {
        let schema = schema_of(arguments[0]);
        let report = json_of(arguments);
        assert_ne!(report["inputs"][0]["functions"][0]["name"], Value::Null, "{arguments:?}");
        assert_eq!(broken(&schema, &schema, &report, "report"), Vec::<String>::new());
    }
}

#[test]
fn dumps_hold_to_theirs() {
    let schema = schema_of("dump");
    for path in [
        "cases/out/off_cond.pt2",
        "cases/out/write_constant.pt2",
        "cases/out/dynamic_batch.pt2",
        "cases/out/clean_decoder.aimodel",
        "coreml/cw_conv.pal4_group16_scale.mlpackage",
    ] {
        for more in [&[][..], &["--stored", "--all-functions"]] {
            let dump = json_of(&[&["dump", path], more].concat());
            assert!(!dump["functions"][0]["ops"].as_array().unwrap().is_empty(), "{path}");
            assert_eq!(broken(&schema, &schema, &dump, path), Vec::<String>::new());
        }
    }
}

#[test]
fn the_validator_sees_what_is_wrong() {
    let schema = schema();
    let mut report = report(&["cases/out/linear_attribute.pt2"]);
    report["findings"][0]["severity"] = "loud".into();
    report["findings"][0]["count"] = 0.into();
    report["findings"][0]["location"]["line"] = "7".into();
    report["more"] = true.into();
    report.as_object_mut().unwrap().remove("errors");
    let problems = broken(&schema, &schema, &report, "report");
    assert_eq!(problems.len(), 5, "{problems:#?}");
}
