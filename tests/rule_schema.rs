//! `schemas/rule.schema.json` is made from the types that rule files are read into: fields, words and
//! doc comments of `src/rules/schema/`. Editors complete and check rule files with it.
//!
//! After a change of those types: `UPDATE=1 cargo test --test rule_schema`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The doc comment gathered so far, as one line.
fn words_of(doc: &[&str]) -> String {
    doc.join(" ")
}

/// The schema of a Rust type as rule files write it.
fn of_type(ty: &str) -> Value {
    let inside = |head: &str| ty.strip_prefix(head).and_then(|rest| rest.strip_suffix('>'));
    for wrapper in ["At<", "Option<", "Box<"] {
        if let Some(inner) = inside(wrapper) {
            return of_type(inner);
        }
    }
    if let Some(inner) = inside("Vec<") {
        return json!({"type": "array", "items": of_type(inner)});
    }
    if let Some(inner) = inside("OneOrMany<") {
        let one = of_type(inner);
        return json!({"anyOf": [one, {"type": "array", "items": one}]});
    }
    if let Some(inner) = inside("Map<") {
        return json!({"type": "object", "additionalProperties": of_type(inner)});
    }
    match ty {
        "String" => json!({"type": "string"}),
        "bool" => json!({"type": "boolean"}),
        "f64" => json!({"type": "number"}),
        "u32" | "u64" => json!({"type": "integer", "minimum": 0}),
        "Switch" => json!({"enum": ["on", "off", true, false]}),
        "Scalar" => json!({"type": ["string", "number", "boolean"]}),
        // `no` is a truth value to some YAML readers.
        "Names" => json!({"anyOf": [
            {"type": ["string", "boolean"]},
            {"type": "array", "items": {"type": ["string", "boolean"]}},
        ]}),
        name => json!({"$ref": format!("#/$defs/{name}")}),
    }
}

fn kebab(name: &str) -> String {
    name.trim_start_matches("r#").replace('_', "-")
}

/// The structs of a source file: name → schema.
fn structs(source: &str, defs: &mut Map<String, Value>) {
    let mut doc: Vec<&str> = Vec::new();
    let mut serde = String::new();
    let mut current: Option<(String, String, Map<String, Value>, Vec<Value>)> = None;
    for line in source.lines() {
        let line = line.trim();
        if let Some(words) = line.strip_prefix("///") {
            doc.push(words.trim());
        } else if line.starts_with("#[") {
            serde.push_str(line);
        } else if let Some(name) =
            line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {"))
        {
            current = Some((name.to_owned(), words_of(&doc), Map::new(), Vec::new()));
            doc.clear();
            serde.clear();
        } else if let (Some(field), Some((_, _, properties, required))) =
            (line.strip_prefix("pub "), &mut current)
        {
            let (name, ty) = field.trim_end_matches(',').split_once(": ").unwrap();
            let mut schema = of_type(ty);
            schema["description"] = Value::String(words_of(&doc));
            if let Some((_, alias)) = serde.split_once("alias = \"") {
                let alias = alias.split('"').next().unwrap();
                properties.insert(alias.to_owned(), schema.clone());
            } else if !serde.contains("default") && !ty.starts_with("Option<") {
                required.push(Value::String(kebab(name)));
            }
            properties.insert(kebab(name), schema);
            doc.clear();
            serde.clear();
        } else if line == "}" && current.is_some() {
            let (name, description, properties, required) = current.take().unwrap();
            let mut schema = json!({
                "type": "object",
                "properties": properties,
                "additionalProperties": false,
            });
            if !required.is_empty() {
                schema["required"] = Value::Array(required);
            }
            // The two that have a short form: a word or a list in place of a mapping.
            if matches!(name.as_str(), "Pattern" | "Test") {
                let scalar = of_type("Scalar");
                schema = json!({"anyOf": [scalar, {"type": "array", "items": scalar}, schema]});
            }
            schema["description"] = Value::String(description);
            defs.insert(name, schema);
        } else {
            doc.clear();
            serde.clear();
        }
    }
}

/// The enums of `words.rs`: name → the words.
fn enums(source: &str, defs: &mut Map<String, Value>) {
    for block in source.split("words! {").skip(1) {
        let mut name = None;
        let mut list: Vec<Value> = Vec::new();
        for line in block.lines().map(str::trim) {
            if line.starts_with("#[") || line.starts_with("///") {
                continue;
            }
            if let Some(head) = line.strip_suffix(" {") {
                name = Some(head.to_owned());
            } else if let Some((_, word)) = line.split_once(" = \"") {
                list.push(Value::String(word.trim_end_matches(['"', ',']).to_owned()));
            } else if line == "}" {
                break;
            }
        }
        defs.insert(name.unwrap(), json!({"enum": list}));
    }
}

fn schema() -> Value {
    let folder = root().join("src/rules/schema");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut defs = Map::new();
    structs(&read("raw.rs"), &mut defs);
    structs(&read("raw_pattern.rs"), &mut defs);
    enums(&read("words.rs"), &mut defs);
    // Those that rule files write as plain names, checked with better words when a rule is loaded.
    let used: BTreeSet<String> =
        serde_json::to_string(&defs).unwrap().split("#/$defs/").skip(1).map(word).collect();
    defs.retain(|name, _| used.contains(name));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A rule of anelint",
        "description": "See docs/rule-language.md. Made by tests/rule_schema.rs.",
        "$ref": "#/$defs/Rule",
        "$defs": with_root(defs, &folder),
    })
}

/// Nothing points at the rule itself; it is the root.
fn with_root(mut defs: Map<String, Value>, folder: &Path) -> Map<String, Value> {
    let mut all = Map::new();
    structs(&std::fs::read_to_string(folder.join("raw.rs")).unwrap(), &mut all);
    defs.insert("Rule".to_owned(), all["Rule"].clone());
    defs
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = root().join("schemas/rule.schema.json");
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "stale: UPDATE=1 cargo test --test rule_schema");
}

/// Whether a value fits a schema, in the keywords that the generator uses.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
        "description" | "title" | "$schema" | "$defs" => true,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            fits(root, &root["$defs"][name], value)
        }
        "type" => {
            let kinds: Vec<&str> = match rule {
                Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                kind => vec![kind.as_str().unwrap()],
            };
            kinds.iter().any(|kind| match *kind {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "number" => value.is_number(),
                "integer" => value.is_i64() || value.is_u64(),
                other => panic!("the type {other}"),
            })
        }
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => value.as_i64().is_none_or(|n| n >= rule.as_i64().unwrap()),
        "anyOf" => rule.as_array().unwrap().iter().any(|one| fits(root, one, value)),
        "items" => value.as_array().is_none_or(|list| list.iter().all(|v| fits(root, rule, v))),
        "required" => value.as_object().is_none_or(|map| {
            rule.as_array().unwrap().iter().all(|name| map.contains_key(name.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|map| {
            map.iter().all(|(key, v)| rule.get(key).is_none_or(|own| fits(root, own, v)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = |key: &str| schema.get("properties").is_some_and(|p| p.get(key).is_some());
            map.iter().filter(|(key, _)| !known(key)).all(|(_, v)| match rule {
                Value::Bool(allowed) => *allowed,
                rule => fits(root, rule, v),
            })
        }),
        other => panic!("the keyword {other}"),
    })
}

#[test]
fn the_built_in_rules_fit_the_schema_and_point_at_it() {
    let schema = schema();
    let mut seen = 0;
    for room in ["neural-engine", "gpu", "common", "onnxruntime"] {
        for entry in std::fs::read_dir(root().join("rules").join(room)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with(
                    "# yaml-language-server: $schema=../../schemas/rule.schema.json\n"
                ),
                "{}: its first line must name the schema",
                path.display()
            );
            // JSON has no infinity.
            let finite = text.replace("-.inf", "-1e300").replace(".inf", "1e300");
            let value: Value = serde_saphyr::from_str(&finite).unwrap();
            assert!(fits(&schema, &schema, &value), "{}", path.display());
            let mut broken = value.clone();
            broken["severty"] = json!("error");
            assert!(!fits(&schema, &schema, &broken), "a field that is none is refused");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} rules found");
}
