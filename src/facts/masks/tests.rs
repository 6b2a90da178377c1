//! Masks built by hand: what is found, where, and what is left alone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::facts::testing::{Graph, MAIN, name_of};
use crate::graph::{Attr, DraftOperand, Payload, Program};

const SCORES: &[u64] = &[1, 4, 32, 32];
const SQUARE: &[u64] = &[32, 32];

/// `(kind, place, value)` of each record.
fn found(program: &Program) -> Vec<(String, String, Option<f64>)> {
    let facts = Facts::new(program);
    let records = facts.records(MAIN, "mask-source");
    let text = |record: &Record, name: &str| match record.field(name) {
        Some(Field::Text(text)) => (*text).to_owned(),
        Some(Field::Node(node)) => name_of(program, *node).to_owned(),
        other => panic!("{name}: {other:?}"),
    };
    let number = |record: &Record| match record.field("value") {
        Some(Field::Float(x)) => Some(*x),
        _ => None,
    };
    records.iter().map(|r| (text(r, "kind"), text(r, "place"), number(r))).collect()
}

/// scores, then `join`, then softmax.
fn attend(join: impl FnOnce(&mut Graph, DraftOperand) -> DraftOperand) -> Program {
    let mut g = Graph::new();
    let scores = g.input("scores", DType::F16, SCORES);
    let masked = join(&mut g, scores);
    let softmax = g.op(Op::SOFTMAX, &[masked], &[("axis", Attr::Int(3))], DType::F16, SCORES);
    g.output(softmax);
    g.finish()
}

fn full(g: &mut Graph, value: f64, dtype: DType) -> DraftOperand {
    let value = g.literal(value);
    g.op(Op::FULL, &[value], &[], dtype, SQUARE)
}

fn triu(g: &mut Graph, input: DraftOperand, dtype: DType) -> DraftOperand {
    g.op(Op::TRIU, &[input], &[("diagonal", Attr::Int(1))], dtype, SQUARE)
}

fn add(g: &mut Graph, a: DraftOperand, b: DraftOperand) -> DraftOperand {
    g.op(Op::ADD, &[a, b], &[], DType::F16, SCORES)
}

fn buffer(g: &mut Graph, dims: &[u64], low: f64) -> DraftOperand {
    let values: Vec<u8> = (0..dims.iter().product::<u64>())
        .flat_map(|at| {
            let n = *dims.last().unwrap();
            let value = if at % n > at / n { low } else { 0.0 };
            half::f16::from_f64(value).to_le_bytes()
        })
        .collect();
    let len = values.len() as u64;
    let file = g.program.blob_files.len() as u32;
    g.program.blob_files.push(crate::graph::BlobFile::Bytes(values.into()));
    let blob = crate::graph::Blob { file, offset: 0, len };
    g.constant(ConstantOrigin::Buffer, DType::F16, dims, Payload::Blob(blob))
}

#[test]
fn a_full_of_minus_infinity_cut_to_a_triangle_is_found_at_the_full() {
    let program = attend(|g, scores| {
        let full = full(g, f64::NEG_INFINITY, DType::F16);
        let mask = triu(g, full, DType::F16);
        add(g, scores, mask)
    });
    let expected = ("neg-inf".into(), "full_2".into(), Some(f64::NEG_INFINITY));
    assert_eq!(found(&program), [expected]);
}

#[test]
fn minus_forty_thousand_is_quiet() {
    let program = attend(|g, scores| {
        let full = full(g, -40000.0, DType::F16);
        let mask = triu(g, full, DType::F16);
        add(g, scores, mask)
    });
    assert_eq!(found(&program), []);
}

#[test]
fn a_masked_fill_with_minus_1e9_overflows_f16() {
    let program = attend(|g, scores| {
        let mask = g.input("mask", DType::Bool, SQUARE);
        let low = g.literal(-1e9);
        g.op(Op::WHERE, &[mask, low, scores], &[], DType::F16, SCORES)
    });
    assert_eq!(found(&program), [("overflow".into(), "where_3".into(), Some(-1e9))]);
}

#[test]
fn the_same_in_f32_is_quiet() {
    let mut g = Graph::new();
    let scores = g.input("scores", DType::F32, SCORES);
    let mask = g.input("mask", DType::Bool, SQUARE);
    let low = g.literal(-1e9);
    let masked = g.op(Op::WHERE, &[mask, low, scores], &[], DType::F32, SCORES);
    let softmax = g.op(Op::SOFTMAX, &[masked], &[("axis", Attr::Int(3))], DType::F32, SCORES);
    g.output(softmax);
    assert_eq!(found(&g.finish()), []);
}

#[test]
fn a_buffer_of_infinities_is_read_and_reported_where_it_is_used() {
    let program = attend(|g, scores| {
        let mask = buffer(g, SQUARE, f64::NEG_INFINITY);
        add(g, scores, mask)
    });
    let expected = ("neg-inf".into(), "add_2".into(), Some(f64::NEG_INFINITY));
    assert_eq!(found(&program), [expected]);
}

#[test]
fn two_finite_buffers_that_overflow_together_are_a_sum() {
    let program = attend(|g, scores| {
        let causal = buffer(g, SQUARE, -40000.0);
        let padding = buffer(g, &[1, 32], -40000.0);
        let both = g.op(Op::ADD, &[causal, padding], &[], DType::F16, SQUARE);
        add(g, scores, both)
    });
    assert_eq!(found(&program), [("sum-overflow".into(), "add_3".into(), Some(-80000.0))]);
}

#[test]
fn two_masks_added_one_after_the_other_overflow_too() {
    let program = attend(|g, scores| {
        let causal = buffer(g, SQUARE, -40000.0);
        let scores = add(g, scores, causal);
        let keys = g.input("key_mask", DType::F16, &[1, 1, 1, 32]);
        let low = g.literal(-40000.0);
        let term = g.op(Op::MUL, &[keys, low], &[], DType::F16, &[1, 1, 1, 32]);
        add(g, scores, term)
    });
    assert_eq!(found(&program), [("sum-overflow".into(), "mul_5".into(), Some(-80000.0))]);
}

#[test]
fn masks_joined_by_minimum_are_quiet() {
    let program = attend(|g, scores| {
        let causal = buffer(g, SQUARE, -40000.0);
        let keys = g.input("key_mask", DType::F16, &[1, 1, 1, 32]);
        let low = g.literal(-40000.0);
        let term = g.op(Op::MUL, &[keys, low], &[], DType::F16, &[1, 1, 1, 32]);
        let mask = g.op(Op::MINIMUM, &[causal, term], &[], DType::F16, &[1, 1, 32, 32]);
        add(g, scores, mask)
    });
    assert_eq!(found(&program), []);
}

#[test]
fn a_padding_mask_times_the_lowest_f16_is_told_apart() {
    let program = attend(|g, scores| {
        let keys = g.input("key_mask", DType::F16, &[1, 1, 1, 32]);
        let one = g.literal(1.0);
        let inverted = g.op(Op::SUB, &[one, keys], &[], DType::F16, &[1, 1, 1, 32]);
        let low = g.literal(-65504.0);
        let term = g.op(Op::MUL, &[inverted, low], &[], DType::F16, &[1, 1, 1, 32]);
        add(g, scores, term)
    });
    assert_eq!(found(&program), [("lowest".into(), "mul_5".into(), Some(-65504.0))]);
}

#[test]
fn a_bool_mask_that_is_added_is_found_through_its_cast() {
    let program = attend(|g, scores| {
        let allowed = g.input("allowed", DType::Bool, SQUARE);
        let cast = g.op(Op::CAST, &[allowed], &[], DType::F16, SQUARE);
        add(g, scores, cast)
    });
    assert_eq!(found(&program), [("bool-added".into(), "add_3".into(), None)]);
}

#[test]
fn infinities_that_reach_no_softmax_are_quiet() {
    let mut g = Graph::new();
    let x = g.input("x", DType::F16, &[1, 8, 32, 32]);
    let low = g.literal(f64::NEG_INFINITY);
    let padded = g.op(Op::PAD, &[x, low], &[], DType::F16, &[1, 8, 34, 34]);
    let pooled = g.op(Op::MAX_POOL, &[padded], &[], DType::F16, &[1, 8, 17, 17]);
    let softmax =
        g.op(Op::SOFTMAX, &[pooled], &[("axis", Attr::Int(1))], DType::F16, &[1, 8, 17, 17]);
    g.output(softmax);
    assert_eq!(found(&g.finish()), []);
}

#[test]
fn a_window_made_of_position_compares_shows_its_infinity_at_the_where() {
    let program = attend(|g, scores| {
        let n = g.literal(32.0);
        let range = g.op(Op::ARANGE, &[n, n], &[("start", Attr::Int(0))], DType::I64, &[32]);
        let q = g.op(Op::UNSQUEEZE, &[range], &[("axes", Attr::Int(1))], DType::I64, &[32, 1]);
        let k = g.op(Op::UNSQUEEZE, &[range], &[("axes", Attr::Int(0))], DType::I64, &[1, 32]);
        let causal = g.op(Op::LESS_EQUAL, &[k, q], &[], DType::Bool, SQUARE);
        let (zero, low) = (g.literal(0.0), g.literal(f64::NEG_INFINITY));
        let mask = g.op(Op::WHERE, &[causal, zero, low], &[], DType::F32, SQUARE);
        let cast = g.op(Op::CAST, &[mask], &[], DType::F16, SQUARE);
        add(g, scores, cast)
    });
    let expected = ("neg-inf".into(), "where_8".into(), Some(f64::NEG_INFINITY));
    assert_eq!(found(&program), [expected]);
}
