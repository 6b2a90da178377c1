//! The built-in rules on models too large to keep as files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{Engine, Limits, RuleSet, Selection, Severity};
use crate::facts::Facts;
use crate::facts::testing::Graph;
use crate::graph::{DType, Op, Program};
use crate::target::{Runtime, Target};

/// `(rule, severity)` of every hit of one rule.
fn hits(program: &Program, rule: &str) -> Vec<Severity> {
    let set = RuleSet::builtin();
    let selection = Selection { select: vec![rule.to_owned()], ..Selection::default() };
    let target = Target::default_for(Runtime::CoreAi);
    let engine = Engine::new(&set, &selection, target, Limits::default()).unwrap();
    let hits = engine.resolve_claims(engine.first_phase(&Facts::new(program)));
    hits.iter().map(|hit| hit.severity).collect()
}

/// One projection with a weight of this many bytes.
fn sized(bytes: u64) -> Program {
    let mut g = Graph::new();
    let x = g.input("x", DType::F16, &[1, 1, 1, 32]);
    let weight = g.weight(DType::F16, &[bytes / 2, 1, 1, 1]);
    let y = g.op(Op::CONV, &[x, weight], &[], DType::F16, &[1, bytes / 2, 1, 32]);
    g.output(y);
    g.finish()
}

#[test]
fn one_and_two_gigabytes_are_edges() {
    assert!(hits(&sized(999_999_998), "ANE047").is_empty());
    assert_eq!(hits(&sized(1_000_000_000), "ANE047"), [Severity::Warning]);
    assert_eq!(hits(&sized(1_999_999_998), "ANE047"), [Severity::Warning]);
    assert_eq!(hits(&sized(2_000_000_000), "ANE047"), [Severity::Error]);
}

/// So many ops one behind the other.
fn long(ops: usize) -> Program {
    let mut g = Graph::new();
    let mut x = g.input("x", DType::F16, &[1, 8]);
    for _ in 0..ops {
        x = g.op(Op::RELU, &[x], &[], DType::F16, &[1, 8]);
    }
    g.output(x);
    g.finish()
}

#[test]
fn fifteen_thousand_ops_are_an_edge() {
    assert!(hits(&long(15_000), "ANE049").is_empty());
    assert_eq!(hits(&long(15_001), "ANE049"), [Severity::Warning]);
}
