//! `docs/rules/ID.md`, where findings link to, is what the rule files say.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use anelint::rules::{RuleSet, docs};

#[test]
fn every_rule_has_its_page_and_no_page_is_stale() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules");
    let update = std::env::var_os("UPDATE").is_some();
    let set = RuleSet::builtin();
    let mut pages = Vec::new();
    for rule in set.rules() {
        let path = folder.join(format!("{}.md", rule.id()));
        let page = docs::page(rule);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &page).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == page, "{} is stale: UPDATE=1 cargo test --test rule_docs", path.display());
        pages.push(path);
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(pages.contains(&path), "{} is the page of no rule", path.display());
    }
}

/// `docs/rules.md` is what `anelint rules --markdown` prints.
#[test]
fn the_reference_is_not_stale() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    let set = RuleSet::builtin();
    let rules: Vec<_> = set.rules().iter().collect();
    let text = docs::reference(&rules, "rules");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{} is stale: UPDATE=1 cargo test --test rule_docs", path.display());
}
