//! `schemas/config.schema.json` and the tables of `docs/configuration.md` are made from the one list of
//! keys that the reader of config files goes by. Editors complete and check config files with the schema.
//!
//! After a change of that list: `UPDATE=1 cargo test --test config_schema`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};

use anelint::config::keys::{self, Key, Kind};
use anelint::rules::{Severity, Sureness};
use anelint::target::{Generation, Runtime, Unit};
use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn or_list(item: Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item}]})
}

fn of_kind(kind: Kind) -> Value {
    let severities: Vec<&str> = Severity::ALL.iter().rev().map(|own| own.name()).collect();
    match kind {
        Kind::Text | Kind::Path | Kind::Version | Kind::Chip | Kind::Provider => {
            json!({"type": "string"})
        }
        Kind::Texts | Kind::Selectors | Kind::Globs | Kind::Paths => {
            or_list(json!({"type": "string"}))
        }
        Kind::PathMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        // Editors hand TOML's own dates over as strings.
        Kind::Date => json!({"type": "string", "format": "date"}),
        Kind::Units => {
            let units: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name()).collect();
            or_list(json!({"enum": units}))
        }
        Kind::Runtime => {
            let names: Vec<&str> = Runtime::ALL.iter().map(|runtime| runtime.name()).collect();
            json!({"enum": names})
        }
        Kind::Os => json!({"type": ["string", "number"]}),
        Kind::FailOn => {
            let all: Vec<&str> = severities.into_iter().chain(["never"]).collect();
            json!({"enum": all})
        }
        Kind::Sureness => {
            let names: Vec<&str> = Sureness::ALL.iter().rev().map(|own| own.name()).collect();
            json!({"enum": names})
        }
        Kind::Severities => {
            let all: Vec<&str> = severities.into_iter().chain(["off"]).collect();
            json!({"type": "object", "additionalProperties": {"enum": all}})
        }
        Kind::Table(keys) => table(keys),
        Kind::Tables(keys) => json!({"type": "array", "items": table(keys)}),
    }
}

fn table(keys: &[Key]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut schema = of_kind(key.kind);
        schema["description"] = Value::String(key.about.to_owned());
        properties.insert(key.name.to_owned(), schema);
    }
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn published(path: &Path, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, text).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == text, "{} is stale: UPDATE=1 cargo test --test config_schema", path.display());
}

#[test]
fn the_published_schema_is_that_of_the_keys() {
    let mut schema = table(keys::TOP);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "anelint.toml, and [tool.anelint] in pyproject.toml".into();
    schema["description"] = "See docs/configuration.md. Made by tests/config_schema.rs.".into();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    published(&root().join("schemas/config.schema.json"), &text);
}

/// The keys of a table as Markdown.
fn page(keys: &[Key]) -> String {
    let mut text = "| key | example | |\n|---|---|---|\n".to_owned();
    for key in keys.iter().filter(|key| !matches!(key.kind, Kind::Table(_) | Kind::Tables(_))) {
        let over: Vec<String> = [key.flag, key.variable]
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| format!("`{name}`"))
            .collect();
        let over = match over.is_empty() {
            true => String::new(),
            false => format!(" Also: {}.", over.join(", ")),
        };
        let required = if key.required { "**Required.** " } else { "" };
        text.push_str(&format!(
            "| `{}` | `{}` | {required}{}{over} |\n",
            key.name, key.example, key.about
        ));
    }
    text
}

#[test]
fn every_key_is_on_the_page() {
    let path = root().join("docs/configuration.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let own = |keys: &'static [Key], shared: bool| -> Vec<Key> {
        let settings = keys::OVERRIDE.iter().skip(1);
        let is_shared = |key: &Key| settings.clone().any(|other| other.name == key.name);
        keys.iter().filter(|key| is_shared(key) == shared).copied().collect()
    };
    for (name, keys) in [
        ("settings", own(keys::TOP, true)),
        ("top", own(keys::TOP, false)),
        ("source", own(keys::SOURCE, false)),
        ("model", own(keys::MODEL, false)),
        ("override", own(keys::OVERRIDE, false)),
        ("suppress", own(keys::SUPPRESS, false)),
    ] {
        let (open, close) = (format!("<!-- keys: {name} -->\n"), "<!-- end -->");
        let (before, rest) = text.split_once(&open).unwrap_or_else(|| panic!("no {open}"));
        let (_, after) = rest.split_once(close).unwrap();
        text = format!("{before}{open}{}{close}{after}", page(&keys));
    }
    published(&path, &text);
}

#[test]
fn flags_that_override_are_flags_of_check() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_anelint"))
        .args(["check", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for key in keys::TOP.iter().chain(keys::SOURCE).filter(|key| !key.flag.is_empty()) {
        let known = help.split_whitespace().any(|word| word == key.flag);
        assert!(known, "{} of `{}`", key.flag, key.name);
    }
}

/// Every example, put where it belongs, is one that the reader takes.
#[test]
fn the_examples_are_right() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    let lines = |keys: &[Key]| -> String {
        keys.iter()
            .filter(|key| !key.example.is_empty())
            .map(|key| format!("{} = {}\n", key.name, key.example))
            .collect()
    };
    let text = format!(
        "{}[source]\n{}[[model]]\n{}[[override]]\n{}[[suppress]]\n{}",
        lines(keys::TOP),
        lines(keys::SOURCE),
        lines(keys::MODEL),
        lines(keys::OVERRIDE),
        lines(keys::SUPPRESS)
    );
    let path = dir.path().join("anelint.toml");
    std::fs::write(&path, &text).unwrap();
    let finder = anelint::config::Finder::new(dir.path());
    if let Err(error) = finder.of(&path) {
        panic!("{error}");
    }
    // Chips are more than an enum of generations: the reader knows both.
    assert!(Generation::parse("a17").is_some());
}
