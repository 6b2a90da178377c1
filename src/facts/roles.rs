//! What part of a model a function is: prefill or decode of a decoder, an embedding lookup, an encoder;
//! one record `role` a function with work.

use std::collections::BTreeMap;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, FunctionId, FunctionRole, NodeId};

/// What is read off one function.
struct Role {
    kind: &'static str,
    first: NodeId,
    query: Option<u64>,
    key: Option<u64>,
    attentions: usize,
    caches: usize,
}

/// The commonest number, the largest of several.
fn commonest(numbers: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for number in numbers.flatten() {
        *counts.entry(number).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(number, count)| (count, number)).map(|(number, _)| number)
}

fn role(view: &View<'_>) -> Option<Role> {
    let attentions = view.facts.attentions(view.id);
    let extent = |of: Option<(crate::graph::ValueId, Option<usize>)>| {
        let (value, axis) = of?;
        view.extent(value, axis?)
    };
    let query =
        commonest(attentions.iter().map(|a| extent(Some((a.query.value, a.query.sequence)))));
    let key = commonest(attentions.iter().map(|a| extent(Some((a.key.value, a.key.sequence)))));
    let caches = view.facts.records(view.id, "kv-cache").len();
    let mut work = view.function.node_ids().filter(|&node| view.function.is_work(node));
    let first = attentions.first().map(|a| a.softmax).or_else(|| work.next())?;
    let heavy = |node: NodeId| {
        matches!(view.op(node).category(), Category::Contraction | Category::Attention)
    };
    let kind = match (attentions.is_empty(), caches, query) {
        (false, 1.., Some(1)) => "decode",
        (false, 1.., Some(_)) => "prefill",
        (false, 1.., None) => "decoder",
        (false, 0, _) => "encoder",
        _ => {
            let works = || view.function.node_ids().filter(|&n| view.function.is_work(n));
            if works().any(heavy) {
                "other"
            } else if works().any(|node| view.op(node).category() == Category::Indexing) {
                "lookup"
            } else {
                "other"
            }
        }
    };
    Some(Role { kind, first, query, key, attentions: attentions.len(), caches })
}

/// The record of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let Some(found) = role(view) else { return Vec::new() };
    // How many other entry points take several positions at once.
    let program = view.program();
    let others = (0..program.functions.len() as u32)
        .map(FunctionId)
        .filter(|&id| id != view.id && program.function(id).role == FunctionRole::Entry)
        .filter_map(|id| role(&view.facts.view(id)))
        .filter(|role| matches!(role.kind, "prefill" | "decoder"))
        .count();
    let mut fields = vec![
        ("kind", Field::Text(found.kind)),
        ("first", Field::Node(found.first)),
        ("attentions", Field::Int(found.attentions as i64)),
        ("caches", Field::Int(found.caches as i64)),
        ("other-prefills", Field::Int(others as i64)),
    ];
    let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
    fields.extend(found.query.map(|n| ("query-length", int(n))));
    fields.extend(found.key.map(|n| ("key-length", int(n))));
    vec![Record { anchor: found.first, fields }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_number_wins_and_the_larger_of_two() {
        assert_eq!(commonest([Some(1), Some(8), Some(8), None].into_iter()), Some(8));
        assert_eq!(commonest([Some(1), Some(8)].into_iter()), Some(8));
        assert_eq!(commonest([None].into_iter()), None);
    }
}
