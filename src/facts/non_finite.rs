//! Constants with NaN or infinity that reach arithmetic; records `non-finite`.
//!
//! An infinity is no fault where ops compare, choose or pad with it (masks, the bounds of a clamp, the
//! border of a max pool): only where it is multiplied, contracted or normalised with.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Category, ConstantOrigin, NodeKind, Op};

/// Whether an infinite operand ruins what the op computes.
fn ruined_by_infinity(op: Op) -> bool {
    matches!(op.category(), Category::Contraction | Category::Normalization | Category::Attention)
        || matches!(op, Op::MUL | Op::EMBEDDING)
}

/// The records of a function: one a constant and user.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for (constant, weight) in view.function.nodes() {
        let NodeKind::Constant(id) = weight.kind else { continue };
        let Some(summary) = view.facts.summary(id) else { continue };
        let infinite = summary.negative_infinities + summary.positive_infinities;
        if summary.nans == 0 && infinite == 0 {
            continue;
        }
        let Some(value) = view.function.result(constant) else { continue };
        let user = view
            .uses
            .of_value(value)
            .iter()
            .map(|&(user, _)| user)
            .find(|&user| summary.nans > 0 || ruined_by_infinity(view.op(user)));
        let Some(user) = user else { continue };
        let origin = view.program().constant(id).origin;
        let (kind, count) =
            if summary.nans > 0 { ("nan", summary.nans) } else { ("inf", infinite) };
        records.push(Record {
            anchor: user,
            fields: vec![
                ("constant", Field::Node(constant)),
                ("user", Field::Node(user)),
                ("kind", Field::Text(kind)),
                ("count", Field::Int(i64::try_from(count).unwrap_or(i64::MAX))),
                (
                    "weight",
                    Field::Bool(matches!(
                        origin,
                        ConstantOrigin::Parameter | ConstantOrigin::Buffer
                    )),
                ),
            ],
        });
    }
    records
}
