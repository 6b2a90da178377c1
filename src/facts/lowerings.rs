//! Ops of an exported program for which the converter has no lowering; records `lowering`.
//!
//! What the converter knows is data: `rules/converters/`, made by `scripts/converter_knowledge.py` from
//! the installed package. An exported program does not say which version will convert it: the newest
//! one that is known here is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Format, NodeId, NodeKind};

/// The newest version's file.
const KNOWLEDGE: &str = include_str!("../../rules/converters/coreai-torch-0.4.3.yaml");

/// What a version of the converter does with aten ops.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Knowledge {
    /// The version.
    version: String,
    /// Ops with a lowering.
    lowered: BTreeSet<String>,
    /// Ops left whole, because they have one.
    kept: BTreeSet<String>,
    /// Ops taken out before.
    stripped: BTreeSet<String>,
    /// Ops that nothing decomposes and nothing lowers.
    no_lowering: BTreeSet<String>,
    /// Ops that decompose into one without a lowering.
    ends_without_lowering: BTreeMap<String, Vec<String>>,
}

fn knowledge() -> &'static Knowledge {
    static READ: OnceLock<Knowledge> = OnceLock::new();
    READ.get_or_init(|| serde_saphyr::from_str(KNOWLEDGE).unwrap_or_default())
}

/// An op as the functional form of the program names it (`add_.Tensor` → `add.Tensor`).
fn functional(spelling: &str) -> String {
    spelling.replacen("_.", ".", 1)
}

/// What an op ends in that has no lowering; `None` if it has one, or nobody knows.
fn missing(knowledge: &Knowledge, spelling: &str) -> Option<String> {
    let fine = |name: &str| {
        knowledge.lowered.contains(name)
            || knowledge.kept.contains(name)
            || knowledge.stripped.contains(name)
    };
    if fine(spelling) {
        return None;
    }
    let plain = functional(spelling);
    if fine(&plain) {
        return None;
    }
    [spelling, plain.as_str()].into_iter().find_map(|name| {
        if knowledge.no_lowering.contains(name) {
            return Some(name.to_owned());
        }
        let ends = knowledge.ends_without_lowering.get(name)?;
        Some(ends.join(", "))
    })
}

fn spellings<'a>(view: &View<'a>, node: NodeId) -> Vec<&'a str> {
    let program = view.program();
    let stored = view.function.stored(node);
    if stored.is_empty() {
        return vec![program.text(view.function.node(node).spelling)];
    }
    stored.iter().map(|&(_, spelling)| program.text(spelling)).collect()
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    if view.program().format != Format::Pt2 {
        return Vec::new();
    }
    let knowledge = knowledge();
    let mut records = Vec::new();
    for (node, weight) in view.function.nodes() {
        if weight.kind != NodeKind::Op {
            continue;
        }
        let Some((spelling, missing)) = spellings(view, node)
            .into_iter()
            .filter(|spelling| spelling.starts_with("aten."))
            .find_map(|spelling| Some((spelling, missing(knowledge, spelling)?)))
        else {
            continue;
        };
        let fields = vec![
            ("node", Field::Node(node)),
            ("direct", Field::Bool(missing == spelling || missing == functional(spelling))),
            ("op", Field::Label(spelling.into())),
            ("missing", Field::Label(missing.into())),
            ("version", Field::Label(knowledge.version.as_str().into())),
        ];
        records.push(Record { anchor: node, fields });
    }
    records
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_data_file_reads_and_answers() {
        let knowledge: Knowledge = serde_saphyr::from_str(KNOWLEDGE).unwrap();
        assert!(knowledge.lowered.len() > 100, "{}", knowledge.lowered.len());
        assert_eq!(missing(&knowledge, "aten.relu.default"), None);
        assert_eq!(missing(&knowledge, "aten.relu_.default"), None, "in place, made functional");
        assert_eq!(missing(&knowledge, "aten.silu.default"), None, "kept whole");
        assert_eq!(
            missing(&knowledge, "aten.var.dim").as_deref(),
            Some("aten.var.correction"),
            "decomposes into one without a lowering"
        );
        assert!(missing(&knowledge, "aten.remainder.Scalar").is_some());
        assert_eq!(missing(&knowledge, "aten.op_of_tomorrow.default"), None, "nobody knows");
    }
}
