//! Compute plans as JSON: what Core ML's own plan said of every op, as public tools write it.
//!
//! The shapes read, all of which are a list of operators somewhere:
//!
//! * a list at the top, or under `operations`, `operators`, `ops` or `layers`; under `functions` as an
//!   object or list of functions that hold such a list each (`name`, `operations`);
//! * an operator has its spelling (`operator`, `operatorName`, `op`, `type`), maybe its name (`name`,
//!   `node`, `id`) and results (`outputs`, `output`), a `preferred` device (`preferredDevice`,
//!   `preferred_device`, `preferred_compute_device`, `device`, `selected`) and `supported` ones
//!   (`supportedDevices`, `supported_devices`, …), maybe a `cost`;
//! * a device is a word (`ane`, `NeuralEngine`, `CPU`) or an object with a `name` or `type`.
//!
//! Constants are listed by some tools and not by others: operators spelled `const` are left out.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{ReadError, ReadOptions, source};
use crate::graph::Confirmed;

/// A plan of 100,000 ops has some 30 MB.
const LIMIT: usize = 256 << 20;

const LISTS: &[&str] = &["operations", "operators", "ops", "layers"];
const SPELLING: &[&str] =
    &["operator", "operatorName", "operator_name", "op", "opType", "op_type", "type"];
const NAME: &[&str] = &["name", "node", "id", "output_name", "outputName"];
const RESULTS: &[&str] = &["outputs", "output"];
const PREFERRED: &[&str] = &[
    "preferred",
    "preferredDevice",
    "preferred_device",
    "preferredComputeDevice",
    "preferred_compute_device",
    "selected",
    "device",
];
const SUPPORTED: &[&str] = &[
    "supported",
    "supportedDevices",
    "supported_devices",
    "supportedComputeDevices",
    "supported_compute_devices",
];

/// Reads a plan.
///
/// # Errors
/// [`ReadError`] if the file is no JSON or holds no list of operators.
pub fn read_compute_plan(path: &Path, options: ReadOptions) -> Result<Vec<Confirmed>, ReadError> {
    let bytes = source::open(path, options)?;
    if bytes.len() > LIMIT {
        return Err(ReadError::broken(path, "too big for a compute plan"));
    }
    let json: Json = serde_json::from_slice(&bytes)
        .map_err(|error| ReadError::broken(path, format!("no compute plan: {error}")))?;
    let mut plan = Vec::new();
    collect(&json, "", &mut plan, 0);
    if plan.is_empty() {
        return Err(ReadError::broken(
            path,
            "no compute plan: no list of operators with a preferred device in it",
        ));
    }
    Ok(plan)
}

fn collect(json: &Json, function: &str, plan: &mut Vec<Confirmed>, depth: usize) {
    // serde_json bounds the nesting of what it reads; plans nest four deep.
    if depth > 8 {
        return;
    }
    match json {
        Json::Array(list) => {
            let mut place = 0;
            for item in list {
                let Json::Object(object) = item else { continue };
                if let Some(mut op) = operator(object, function) {
                    if op.spelling == "const" || op.spelling.ends_with(".const") {
                        continue;
                    }
                    if op.node.is_empty() {
                        op.node = place.to_string();
                    }
                    place += 1;
                    plan.push(op);
                } else {
                    let name = object.get("name").and_then(Json::as_str).unwrap_or(function);
                    lists(object, name, plan, depth);
                }
            }
        }
        Json::Object(object) => lists(object, function, plan, depth),
        _ => {}
    }
}

fn lists(object: &Map<String, Json>, function: &str, plan: &mut Vec<Confirmed>, depth: usize) {
    if let Some(functions) = object.get("functions") {
        match functions {
            Json::Object(named) => {
                for (name, body) in named {
                    collect(body, name, plan, depth + 1);
                }
            }
            other => collect(other, function, plan, depth + 1),
        }
    }
    for key in LISTS.iter().chain(&["program", "block", "mainFunction", "plan"]) {
        if let Some(list) = object.get(*key) {
            collect(list, function, plan, depth + 1);
        }
    }
}

/// An operator: an object with a device in it.
fn operator(object: &Map<String, Json>, function: &str) -> Option<Confirmed> {
    let field = |names: &[&str]| names.iter().find_map(|name| object.get(*name));
    let preferred = field(PREFERRED);
    let supported = field(SUPPORTED);
    if preferred.is_none() && supported.is_none() {
        return None;
    }
    let word = |names: &[&str]| field(names).and_then(Json::as_str).unwrap_or("").to_owned();
    let spelling = word(SPELLING);
    // Plans spell ops with their opset: `ios18.conv`.
    let spelling = spelling.rsplit('.').next().unwrap_or("").to_owned();
    let results = match field(RESULTS) {
        Some(Json::Array(list)) => list.iter().filter_map(device).collect(),
        Some(one) => device(one).into_iter().collect(),
        None => Vec::new(),
    };
    let mut op = Confirmed {
        function: function.to_owned(),
        node: word(NAME),
        spelling,
        results,
        selected: preferred.and_then(device),
        ..Confirmed::default()
    };
    if op.node.is_empty() {
        op.node = op.results.first().cloned().unwrap_or_default();
    }
    match supported {
        Some(Json::Array(list)) => op.supported = list.iter().filter_map(device).collect(),
        Some(one) => op.supported = device(one).into_iter().collect(),
        None => {}
    }
    Some(op)
}

/// A device, or anything else that is a word or has a name.
fn device(json: &Json) -> Option<String> {
    match json {
        Json::String(word) => Some(word.clone()),
        Json::Object(object) => ["name", "type", "kind"]
            .iter()
            .find_map(|key| object.get(*key).and_then(Json::as_str))
            .map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn plan(text: &str) -> Result<Vec<Confirmed>, ReadError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read_compute_plan(file.path(), ReadOptions::default())
    }

    #[test]
    fn a_flat_list_of_operators() {
        let plan = plan(
            r#"[{"op": "const", "preferred": null, "supported": []},
                {"op": "ios18.conv", "name": "c", "preferred": "ANE", "supported": ["ANE", "CPU"]},
                {"op": "ios18.topk", "outputs": ["t"], "preferred": "CPU", "supported": ["CPU"]}]"#,
        )
        .unwrap();
        assert_eq!(plan.len(), 2);
        assert_eq!((plan[0].node.as_str(), plan[0].on_neural_engine()), ("c", Some(true)));
        assert_eq!(plan[0].spelling, "conv");
        assert_eq!((plan[1].node.as_str(), plan[1].neural_engine_supports()), ("t", Some(false)));
    }

    #[test]
    fn functions_with_operations_and_devices_as_objects() {
        let plan = plan(
            r#"{"functions": {"main": {"operations": [
                {"operatorName": "relu", "preferredDevice": {"type": "MLNeuralEngineComputeDevice"},
                 "supportedDevices": [{"type": "MLCPUComputeDevice"}]}]}}}"#,
        )
        .unwrap();
        assert_eq!(plan[0].function, "main");
        assert_eq!(plan[0].node, "0", "no name: the place in program order");
        assert_eq!(plan[0].on_neural_engine(), Some(true));
    }

    #[test]
    fn what_is_no_plan_is_said_so() {
        for text in ["", "{}", "[1, 2]", r#"{"operations": [{"op": "relu"}]}"#] {
            assert!(plan(text).unwrap_err().message.starts_with("no compute plan"), "{text}");
        }
    }
}
