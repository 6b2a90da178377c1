//! What the rule language can say, each in a rule of a few lines over a graph of a few nodes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use super::{Engine, Hit, Limits, RuleSet, Selection};
use crate::facts::Facts;
use crate::facts::testing::{Graph, MAIN, ints};
use crate::graph::{Attr, ConstantOrigin, DType, Format, Op, Payload, Program};
use crate::target::{Runtime, Target};

const F16: DType = DType::F16;

/// A rule with this body, under id `T001`.
fn rule_text(body: &str) -> String {
    let head = "id: T001\nname: test-rule\ntitle: t\nseverity: error\ncategory: residency\nwhy: because\n\
                evidence: [{source: s, sureness: official}]\nexample: {bad: a, good: b}\n";
    let message = if body.contains("\nmessage:") { "" } else { "message: m\n" };
    format!("{head}{body}\n{message}")
}

fn hits(program: &Program, body: &str) -> Vec<Hit> {
    let mut set = RuleSet::default();
    set.load_str(Path::new("rule.yaml"), &rule_text(body)).unwrap();
    let target = Target::default_for(Runtime::CoreAi);
    let engine = Engine::new(&set, &Selection::default(), target, Limits::default()).unwrap();
    engine.first_phase(&Facts::new(program))
}

/// The names of the places reported.
fn places(program: &Program, body: &str) -> Vec<String> {
    let function = program.function(MAIN);
    hits(program, body)
        .iter()
        .map(|hit| program.text(function.node(hit.place).name).to_owned())
        .collect()
}

/// The mistakes of a rule, as `line:column: message`.
fn mistakes(body: &str) -> Vec<String> {
    let mut set = RuleSet::default();
    let error = set.load_str(Path::new("rule.yaml"), &rule_text(body)).unwrap_err();
    error.problems.iter().map(ToString::to_string).collect()
}

/// conv → view → softmax(axis 1); a mask constant is added on the way.
fn attention_like() -> Program {
    let mut g = Graph::new();
    let x = g.input("x", F16, &[1, 64, 8, 4]);
    let w = g.weight(F16, &[64, 64, 1, 1]);
    let conv = g.op(Op::CONV, &[x, w], &[("strides", ints(&[1, 5]))], F16, &[1, 64, 8, 4]);
    let view = g.op(Op::RESHAPE, &[conv], &[], F16, &[1, 64, 1, 32]);
    let mask = g.constant(ConstantOrigin::Buffer, F16, &[], Payload::Splat(f64::NEG_INFINITY));
    let add = g.op(Op::ADD, &[mask, view], &[], F16, &[1, 64, 1, 32]);
    let soft = g.op(Op::SOFTMAX, &[add], &[("axis", Attr::Int(1))], F16, &[1, 64, 1, 32]);
    g.output(soft);
    g.finish()
}

#[test]
fn operands_are_looked_at_through_views() {
    let program = attention_like();
    let body = "match: {op: add, operand: {b: {op: conv, rank: 4, dim: {-1: 32}}}}";
    assert_eq!(places(&program, body), ["add_5"]);
    let named = "match: {op: add, operand: {b: {op: reshape}}}";
    assert_eq!(
        places(&program, named),
        ["add_5"],
        "a view that is named is no longer looked through"
    );
    let other = "match: {op: add, operand: {b: {op: matmul}}}";
    assert!(places(&program, other).is_empty());
}

#[test]
fn commutative_operands_fit_either_way_round() {
    let program = attention_like();
    let body =
        "match: {op: add, commutative: [a, b], operand: {a: {op: conv}, b: {kind: constant}}}";
    assert_eq!(places(&program, body), ["add_5"]);
    let strict = "match: {op: add, operand: {a: {op: conv}, b: {kind: constant}}}";
    assert!(places(&program, strict).is_empty());
}

#[test]
fn attributes_dims_and_lists_are_tested_by_number() {
    let program = attention_like();
    for (test, fits) in [
        ("{any: 5}", true),
        ("{every: {lt: 5}}", false),
        ("{at: {-1: {prime-factor-beyond: [2, 3]}}}", true),
        ("{list: [1, 5]}", true),
        ("{len: 3}", false),
    ] {
        let body = format!("match: {{op: conv, attr: {{strides: {test}}}}}");
        assert_eq!(!places(&program, &body).is_empty(), fits, "{test}");
    }
    let body = "match: {op: softmax, attr: {axis: {bind: axis}}, bind: s}\nwhere: [\"dim(s, axis) * itemsize(s) % 64 == 0\"]";
    assert_eq!(places(&program, body), ["softmax_6"]);
}

#[test]
fn a_flow_finds_a_constant_above_a_softmax_and_reports_there() {
    let program = attention_like();
    let body = "match:\n  op: softmax\n  operand:\n    input:\n      derives-from:\n        through: [add]\n        source: {constant: {contains: [-.inf]}, bind: mask}\nreport-at: mask";
    // The constant has no place of its own, nor have its users here: the anchor stands in.
    assert_eq!(places(&program, body), ["constant_4"]);
    let stopped = body.replace("through: [add]", "through: [mul]");
    assert!(places(&program, &stopped).is_empty());
    let forward = "match: {op: conv, reaches: {through: [add, softmax], target: {kind: output}}}";
    assert_eq!(places(&program, forward), ["conv_2"]);
}

#[test]
fn a_binding_used_twice_is_the_same_value() {
    let mut g = Graph::new();
    let x = g.input("x", F16, &[4, 8]);
    let y = g.input("y", F16, &[4, 8]);
    let view = g.op(Op::RESHAPE, &[x], &[], F16, &[4, 8]);
    let square = g.op(Op::MUL, &[x, view], &[], F16, &[4, 8]);
    let product = g.op(Op::MUL, &[x, y], &[], F16, &[4, 8]);
    g.output(square);
    g.output(product);
    let program = g.finish();
    let body = "match: {op: mul, operand: {a: {bind: v}, b: {bind: v}}}";
    assert_eq!(places(&program, body), ["mul_3"]);
}

#[test]
fn a_choice_is_taken_back_when_what_follows_does_not_hold() {
    // Two masks reach the softmax; only the second is large.
    let mut g = Graph::new();
    let x = g.input("x", F16, &[4, 8]);
    let small = g.constant(ConstantOrigin::Buffer, F16, &[], Payload::Splat(-1.0));
    let large = g.constant(ConstantOrigin::Buffer, F16, &[4, 8], Payload::Splat(-9.0));
    let one = g.op(Op::ADD, &[x, small], &[], F16, &[4, 8]);
    let two = g.op(Op::ADD, &[one, large], &[], F16, &[4, 8]);
    let soft = g.op(Op::SOFTMAX, &[two], &[("axis", Attr::Int(1))], F16, &[4, 8]);
    g.output(soft);
    let program = g.finish();
    let body = "match:\n  op: softmax\n  operand:\n    input: {derives-from: {through: [add], source: {kind: constant, bind: c}}}\nwhere: [\"c.elements == 1\"]\nreport-at: c\nmessage: \"{c.number} of {c.shape}\"";
    let found = hits(&program, body);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "-1 of scalar");
}

#[test]
fn users_counts_and_negation() {
    let program = attention_like();
    assert_eq!(
        places(&program, "match: {op: softmax, every-consumer: {kind: output}}"),
        ["softmax_6"]
    );
    assert_eq!(
        places(&program, "match: {op: conv, consumer: {op: add}, consumers: 1}"),
        ["conv_2"]
    );
    assert!(places(&program, "match: {op: conv, not: {consumer: {op: add}}}").is_empty());
    let count = "match: {op: add, count: {operands: {depends-on-input: true}, is: 1}}";
    assert_eq!(places(&program, count), ["add_5"]);
}

#[test]
fn whole_functions_are_told_once_with_a_case_for_the_target() {
    let program = attention_like();
    let body = "match: {function: {has-dtype: f16, lacks-dtype: f32, ops: 3}}\nper: function\nmessage: \"{function.name}: {function.ops}\"\ncases:\n  - {when: {runtime: core-ai}, severity: advice, message: \"{function.name} on {target.chip}\"}";
    let found = hits(&program, body);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "main on h16");
    assert_eq!(found[0].severity, super::Severity::Advice);
    assert!(hits(&program, "match: {function: {lacks-dtype: f16}}").is_empty());
    let quiet = "match: {op: softmax}\ncases:\n  - {when: {format: pt2}, quiet: true}";
    assert!(hits(&program, quiet).is_empty());
}

#[test]
fn matches_of_a_group_make_one_hit() {
    let mut g = Graph::new();
    let x = g.input("x", F16, &[4, 8]);
    let w = [(); 3].map(|()| g.weight(F16, &[8, 8]));
    for weight in w {
        let y = g.op(Op::LINEAR, &[x, weight], &[], F16, &[4, 8]);
        g.output(y);
    }
    let program = g.finish();
    let body = "match: {op: linear, operand: {input: {bind: x}}}\ngroup: {by: \"{x.name}\", count: {ge: 3}}\nmessage: \"{group.count} of {x.name}\"";
    let found = hits(&program, body);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "3 of x");
    assert_eq!(found[0].nodes.len(), 3);
}

#[test]
fn constant_work_is_no_anchor_and_what_is_unknown_never_fires() {
    let mut g = Graph::new();
    let c = g.constant(ConstantOrigin::Buffer, F16, &[4], Payload::Splat(1.0));
    let table = g.op(Op::EXP, &[c], &[], F16, &[4]);
    let x = g.input("x", F16, &[4]);
    let y = g.op(Op::EXP, &[x], &[], F16, &[4]);
    let z = g.op(Op::MUL, &[y, table], &[], F16, &[4]);
    g.output(z);
    let program = g.finish();
    assert_eq!(places(&program, "match: {op: exp}"), ["exp_3"]);
    let unknown = "match: {op: mul, bind: m}\nwhere: [\"dim(m, 7) > 0\"]";
    assert!(places(&program, unknown).is_empty());
    let not_unknown = "match: {op: mul, bind: m}\nwhere: [\"not dim(m, 7) > 0\"]";
    assert!(places(&program, not_unknown).is_empty());
}

/// A chain that every softmax of a long graph could walk to its start: remembered, not walked again.
#[test]
fn no_flow_is_quadratic() {
    let mut g = Graph::new();
    let mut at = g.input("x", F16, &[8]);
    let one = g.literal(1.0);
    for _ in 0..20_000 {
        at = g.op(Op::ADD, &[at, one], &[], F16, &[8]);
        let soft = g.op(Op::SOFTMAX, &[at], &[("axis", Attr::Int(0))], F16, &[8]);
        g.output(soft);
    }
    let program = g.finish();
    let body = "match: {op: softmax, operand: {input: {derives-from: {through: [add], source: {op: matmul}}}}}";
    let start = std::time::Instant::now();
    assert!(places(&program, body).is_empty());
    // Walked anew from each softmax it would be 200 million steps.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn mistakes_are_told_with_line_column_and_what_was_meant() {
    assert_eq!(
        mistakes("match: {op: sofmax}"),
        ["9:13: there is no op `sofmax`; did you mean `softmax`?"]
    );
    assert_eq!(
        mistakes("match: {op: softmax, attr: {axs: 1}}"),
        ["9:29: `axs` is no attribute of `softmax`; did you mean `axis`?"]
    );
    assert_eq!(
        mistakes("match: {op: conv, operand: {wieght: {rank: 4}}}"),
        ["9:29: `wieght` is no operand of `conv`; did you mean `weight`?"]
    );
    assert_eq!(
        mistakes("match: {op: conv, operand: {weight: {bind: w}}}\nreport-at: v"),
        ["10:12: nothing in `match` binds `v`; did you mean `w`?"]
    );
    assert_eq!(
        mistakes("match: {fact: atention}"),
        ["9:15: there is no fact `atention`; did you mean `attention`?"]
    );
    assert_eq!(
        mistakes("match: {fact: attention, fields: {kind: decompose}}"),
        ["9:35: `kind` is never `decompose`; did you mean `decomposed`?"]
    );
    assert_eq!(
        mistakes("match: {op: conv}\nmessage: \"{anchor.stride}\""),
        [
            "10:10: character 2: `anchor` has no property or attribute `stride`; did you mean `strides`?"
        ]
    );
    assert!(
        mistakes("match: {rank: 4}")[0].starts_with("9:8: cannot tell which ops this looks at")
    );
    assert_eq!(
        mistakes("match: {op: conv}\nrepotr-at: x"),
        ["10:1: unknown field `repotr-at`; did you mean `report-at`?"]
    );
}

#[test]
fn a_rule_needs_evidence_and_folklore_is_no_error() {
    let mut set = RuleSet::default();
    let text = rule_text("match: {op: conv}");
    let none = text.replace("evidence: [{source: s, sureness: official}]", "evidence: []");
    let error = set.load_str(Path::new("r.yaml"), &none).unwrap_err();
    assert!(error.to_string().contains("r.yaml:7:11: `evidence` is empty"), "{error}");
    let folklore = text.replace("sureness: official", "sureness: folklore");
    let error = set.load_str(Path::new("r.yaml"), &folklore).unwrap_err();
    assert!(
        error.to_string().contains("r.yaml:4:11: severity `error` on folklore alone"),
        "{error}"
    );
    let no_example = text.replace("example: {bad: a, good: b}\n", "");
    let error = set.load_str(Path::new("r.yaml"), &no_example).unwrap_err();
    assert!(error.to_string().contains("`example` is missing"), "{error}");
    assert!(set.load_str(Path::new("r.yaml"), &text).is_ok());
    let error = set.load_str(Path::new("again.yaml"), &text).unwrap_err();
    assert!(error.to_string().contains("the id `T001` is taken"), "{error}");
}

#[test]
fn selectors_name_rules_by_id_name_category_and_prefix() {
    let set = RuleSet::builtin();
    let run = |select: &[&str], ignore: &[&str]| {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let selection =
            Selection { select: list(select), ignore: list(ignore), ..Selection::default() };
        set.select(&selection).map(|rules| {
            rules.into_iter().map(|at| set.rules()[at].id().to_owned()).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(&["inf-mask"], &[]).unwrap(), ["ANE004"]);
    assert_eq!(run(&["ane004", "ANE00"], &["ANE00"]).unwrap(), ["ANE004"]);
    assert!(!run(&["numerics"], &[]).unwrap().contains(&"ANE006".to_owned()));
    assert!(!run(&[], &["ANE"]).unwrap().iter().any(|id| id.starts_with("ANE")));
    let error = run(&["inf-msk"], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`inf-msk` names no rule, category or id prefix; did you mean `inf-mask`?"
    );
}

#[test]
fn a_special_rule_silences_the_general_one_on_the_nodes_it_claims() {
    let mut set = RuleSet::default();
    let general = rule_text("match: {op: [conv, softmax]}\neffect: off-unit");
    let special = rule_text("match: {op: softmax}\nclaims: anchor\nover: [T001]")
        .replace("T001\nname: test-rule", "T002\nname: special");
    set.load_str(Path::new("general.yaml"), &general).unwrap();
    set.load_str(Path::new("special.yaml"), &special).unwrap();
    let target = Target::default_for(Runtime::CoreAi);
    let engine = Engine::new(&set, &Selection::default(), target, Limits::default()).unwrap();
    let program = attention_like();
    let hits = engine.resolve_claims(engine.first_phase(&Facts::new(&program)));
    let told: Vec<(usize, &str)> = hits
        .iter()
        .map(|hit| (hit.rule, program.text(program.function(MAIN).node(hit.place).name)))
        .collect();
    assert_eq!(told, [(0, "conv_2"), (1, "softmax_6")]);
}

/// What one built-in rule says of a Core AI asset.
fn said(mut program: Program, rule: &str) -> Vec<String> {
    program.format = Format::AiModel;
    let set = RuleSet::builtin();
    let selection = Selection { select: vec![rule.to_owned()], ..Selection::default() };
    let target = Target::default_for(Runtime::CoreAi);
    let engine = Engine::new(&set, &selection, target, Limits::default()).unwrap();
    let hits = engine.resolve_claims(engine.first_phase(&Facts::new(&program)));
    hits.into_iter().map(|hit| hit.message).collect()
}

#[test]
fn a_weight_palettised_in_groups_has_a_table_of_rank_6() {
    let palettised = |groups: u64| {
        let mut g = Graph::new();
        let x = g.input("x", F16, &[1, 64, 8, 8]);
        let indices = g.weight(DType::U8, &[64, 64, 1, 1]);
        let lut = g.weight(F16, &[groups, 1, 1, 1, 16, 1]);
        let weight = g.op(Op::LUT_TO_DENSE, &[indices, lut], &[], F16, &[64, 64, 1, 1]);
        let conv = g.op(Op::CONV, &[x, weight], &[("strides", ints(&[1, 1]))], F16, &[1, 64, 8, 8]);
        g.output(conv);
        g.finish()
    };
    let found = said(palettised(4), "ANE007");
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("rank 6 (4×1×1×1×16×1)"), "{}", found[0]);
    assert!(said(palettised(1), "ANE007").is_empty(), "one table for the whole weight is fine");
}

#[test]
fn a_count_is_told_in_singular_and_plural() {
    let program = attention_like();
    let body = "match: {op: add, bind: x}\nmessage: \"{x.rank | plural: dim, dims}, {at(x.shape, 0) | plural: row, rows}\"";
    assert_eq!(hits(&program, body)[0].message, "4 dims, 1 row");
    for (format, mistake) in [
        ("plural", "`plural` takes the singular and the plural"),
        ("plural: dim", "`plural` takes the singular and the plural"),
        ("plurals: a, b", "there is no format `plurals`; did you mean `plural`?"),
        ("bytes: a", "the format `bytes` takes nothing after it"),
    ] {
        let body = format!("match: {{op: add, bind: x}}\nmessage: \"{{x.rank | {format}}}\"");
        let found = mistakes(&body).join("\n");
        assert!(found.contains(mistake), "{found}");
    }
}
