//! Projections at the end of a function: how many positions they are computed for, and whether most of
//! them are then thrown away; records `head`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeId, NodeKind, Op, ValueId};

/// What becomes of a head's result.
#[derive(Default)]
struct Ways {
    select: Option<NodeId>,
    returned: bool,
    elsewhere: bool,
}

/// Follows a value to outputs; `axis` counts positions.
fn ways(view: &View<'_>, start: ValueId, channel: usize) -> Ways {
    let mut ways = Ways::default();
    let mut stack = vec![start];
    for _ in 0..32 {
        let Some(value) = stack.pop() else { break };
        for &(user, _) in view.uses.of_value(value).iter().take(16) {
            if view.function.node(user).kind == NodeKind::Output {
                ways.returned = true;
                continue;
            }
            let op = view.op(user);
            let shortens = |result: ValueId| {
                view.elements(result).zip(view.elements(value)).is_some_and(|(a, b)| a < b)
            };
            // A pick along any axis but the channels takes positions.
            let takes = match op {
                Op::SLICE => view.cuts(user).is_some_and(|cuts| {
                    let dims = view.dims(value).unwrap_or_default();
                    cuts.iter().all(|cut| {
                        cut.axis != channel
                            || (cut.begin == Some(0)
                                && cut.end.and_then(|end| u64::try_from(end).ok())
                                    == dims.get(channel).and_then(|dim| dim.value()))
                    })
                }),
                Op::SELECT | Op::GATHER => view.axis(user).is_some_and(|axis| axis != channel),
                Op::GATHER_ND | Op::INDEX => true,
                _ => false,
            };
            match view.function.result(user) {
                Some(result) if takes && shortens(result) => {
                    ways.select.get_or_insert(user);
                }
                Some(result)
                    if view.is_transparent(user)
                        || op == Op::CAST
                        || (matches!(op, Op::ADD | Op::MUL | Op::DIV | Op::TANH)
                            && view.operands(user).filter(|&o| !view.is_fixed(o)).count() == 1) =>
                {
                    // Through a view of another rank the channel axis is not followed.
                    if view.rank(result) == view.rank(start) {
                        stack.push(result);
                    } else {
                        ways.elsewhere = true;
                    }
                }
                _ => ways.elsewhere = true,
            }
        }
    }
    ways
}

/// The records of a function.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let caches = view.facts.records(view.id, "kv-cache").len() as i64;
    let mut records = Vec::new();
    for node in view.function.node_ids().filter(|&node| view.function.is_work(node)) {
        let words = view.words;
        let (input, weight) = match view.op(node) {
            Op::CONV | Op::LINEAR => (view.input(node), view.operand(node, words.weight)),
            Op::MATMUL | Op::ADDMM => (view.operand(node, words.a), view.operand(node, words.b)),
            _ => continue,
        };
        let (Some(input), Some(weight), Some(result)) = (input, weight, view.function.result(node))
        else {
            continue;
        };
        if !view.is_fixed(weight) || view.is_fixed(input) {
            continue;
        }
        let Some(rank) = view.rank(result) else { continue };
        let conv = view.op(node) == Op::CONV;
        if conv && view.dims(weight).is_none_or(|w| w.iter().skip(2).any(|d| d.value() != Some(1)))
        {
            continue;
        }
        let Some(channel) = (if conv { Some(1) } else { rank.checked_sub(1) }) else { continue };
        let (Some(out), Some(inner), Some(all)) =
            (view.extent(result, channel), view.extent(input, channel), view.elements(result))
        else {
            continue;
        };
        if out == 0 || out <= inner {
            continue;
        }
        let ways = ways(view, result, channel);
        if ways.elsewhere || !(ways.returned || ways.select.is_some()) {
            continue;
        }
        let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
        let mut fields = vec![
            ("node", Field::Node(node)),
            ("vocabulary", int(out)),
            ("positions", int(all / out)),
            ("bytes", int(view.dtype(result).bytes(all))),
            ("returned", Field::Bool(ways.returned)),
            ("caches", Field::Int(caches)),
        ];
        fields.extend(ways.select.map(|select| ("select", Field::Node(select))));
        records.push(Record { anchor: node, fields });
    }
    records
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, ints};
    use crate::graph::{Attr, DType};

    #[test]
    fn sixteen_positions_of_which_one_is_kept() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[1, 16, 8]);
        let weight = g.weight(DType::F16, &[32, 8]);
        let y = g.op(Op::LINEAR, &[x, weight], &[], DType::F16, &[1, 16, 32]);
        let last = [("axis", Attr::Int(1)), ("begin", ints(&[15])), ("end", ints(&[16]))];
        let y = g.op(Op::SLICE, &[y], &last, DType::F16, &[1, 1, 32]);
        g.output(y);
        let program = g.finish();
        let facts = Facts::new(&program);
        let [head] = facts.records(MAIN, "head") else { panic!("one head") };
        assert_eq!(head.field("positions"), Some(&Field::Int(16)));
        assert!(head.field("select").is_some());
        assert_eq!(head.field("returned"), Some(&Field::Bool(false)));
    }
}
