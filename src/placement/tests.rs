//! Stories of placement on graphs small enough to see through.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::graph::{
    Constant, ConstantOrigin, DType, Draft, DraftNode, Format, Frame, FunctionRole, Name, Op,
    Payload, Provenance,
};
use crate::target::{Runtime, Target};

/// Writes a function down as it is read: `b = softmax a : f32 1x8x4x4 @12`. `input`, `const` and
/// `out` are the other kinds of node; the type (default f16, 1x8x4x16) and the line may be left out.
fn write(text: &str) -> Program {
    let mut program = Program::new("story".into(), Format::Pt2);
    let mut draft = Draft::default();
    let mut named: Vec<(String, u32)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (line, at) = line.split_once('@').unwrap_or((line, "0"));
        let (name, rest) = line.split_once('=').unwrap();
        let (rest, kind) = rest.split_once(':').unwrap_or((rest, "f16 1x8x4x16"));
        let mut words = rest.split_whitespace();
        let op = words.next().unwrap();
        let mut types = kind.split_whitespace();
        let dtype = DType::parse(types.next().unwrap()).unwrap();
        let dims: Vec<u64> =
            types.next().unwrap_or("1x8x4x16").split('x').map(|dim| dim.parse().unwrap()).collect();
        let shape = program.shapes.intern_static(&dims);
        let node_name = program.names.intern(name.trim());
        let node_kind = match op {
            "input" => NodeKind::Input,
            "out" => NodeKind::Output,
            "const" => NodeKind::Constant(program.add_constant(Constant {
                dtype,
                shape,
                origin: ConstantOrigin::Buffer,
                fqn: Name::EMPTY,
                payload: Payload::Unknown,
            })),
            _ => NodeKind::Op,
        };
        let mut node = DraftNode::new(node_kind, node_name);
        if node_kind == NodeKind::Op {
            node.op = Op::parse(op).unwrap_or(Op::UNKNOWN);
            node.spelling = program.names.intern(op);
        }
        let file = program.names.intern("model.py");
        let frame = program.sources.frame(Frame {
            file,
            line: at.trim().parse().unwrap(),
            column: 0,
            end_line: 0,
            end_column: 0,
            function: Name::EMPTY,
            text: Name::EMPTY,
            sha256: Name::EMPTY,
        });
        if at != "0" {
            let stack = program.sources.stack(&[frame]);
            node.provenance = program.sources.provenance(Provenance {
                stack,
                module: crate::graph::ModuleId::EMPTY,
                torch_op: Name::EMPTY,
            });
        }
        for (slot, word) in words.enumerate() {
            let from = named.iter().find(|(known, _)| known == word).unwrap().1;
            let known = node.op.operands().get(slot).or(node.op.operands().last());
            let operand = program.names.intern(known.copied().unwrap_or("input"));
            node.operands.push((operand, (from, 0)));
        }
        if node_kind != NodeKind::Output {
            node.results.push((node_name, dtype, shape, None));
        }
        if op == "layer_norm" {
            // The statistics that the format lists and nothing uses.
            let empty = program.shapes.intern_static(&[0]);
            node.results.push((Name::EMPTY, DType::F32, empty, None));
        }
        let id = draft.push(node);
        named.push((name.trim().to_owned(), id));
    }
    let main = program.names.intern("main");
    let function = draft.freeze(main, Name::EMPTY, FunctionRole::Entry);
    program.functions.push(function);
    program
}

fn placed_for(program: &Program, runtime: Runtime, rules: &[RuleVerdict]) -> Placement {
    let target = Target::default_for(runtime);
    place(program, FunctionId(0), &Request { target, rules, line_of: None })
}

fn placed(text: &str) -> (Program, Placement) {
    let program = write(text);
    let placement = placed_for(&program, Runtime::CoreAi, &[]);
    (program, placement)
}

fn node(program: &Program, name: &str) -> NodeId {
    let function = program.function(FunctionId(0));
    function.nodes().find(|(_, node)| program.text(node.name) == name).unwrap().0
}

fn names(program: &Program, nodes: &[NodeId]) -> Vec<String> {
    let function = program.function(FunctionId(0));
    nodes.iter().map(|&id| program.text(function.node(id).name).to_owned()).collect()
}

#[test]
fn a_graph_in_f16_is_one_region() {
    let (program, placement) = placed(
        "x = input
         a = relu x
         b = add a x
         y = out b",
    );
    assert_eq!(placement.regions.len(), 1);
    assert_eq!((placement.ops, placement.eligible, placement.unknown), (2, 2, 0));
    assert!(placement.cuts.is_empty() && placement.what_if.is_empty());
    assert_eq!(placement.node(node(&program, "a")).region, Some(0));
    assert_eq!(placement.why(node(&program, "a")).unwrap().evidence, ["D-01", "D-02", "N-01"]);
}

#[test]
fn an_op_in_f32_between_casts_cuts_the_graph_in_two() {
    let (program, placement) = placed(
        "x = input
         a = relu x
         up = cast a : f32 @7
         s = softmax up : f32 @7
         down = cast s @7
         b = relu down
         y = out b",
    );
    assert_eq!(placement.regions.len(), 2);
    assert_eq!(placement.cuts.len(), 1);
    let cut = &placement.cuts[0];
    assert_eq!(names(&program, &cut.nodes), ["up", "s", "down"]);
    // What leaves is `a`, what comes back is `down`: two f16 tensors of 512 elements.
    assert_eq!(cut.crossing_bytes, Some(2 * 2 * 512));
    assert_eq!(placement.groups.len(), 1, "one reason at one line");
    assert_eq!(
        placement.what_if,
        [WhatIf { group: 0, regions_before: 2, regions_after: 1, ops_freed: 3 }]
    );
    assert!(placement.node(node(&program, "s")).is_interior());
    assert_eq!(
        placement.why(node(&program, "s")).unwrap().text,
        "works on f32; the unit computes in f16, i8 and i16"
    );
}

#[test]
fn the_order_gathers_off_unit_ops_of_parallel_branches_into_one_gap() {
    // In program order the unit is left twice; taken together, the two sorts need one gap.
    let (_, placement) = placed(
        "x = input
         a = relu x
         s = sort a
         b = add s x
         c = relu x
         t = sort c
         d = add t b
         y = out d",
    );
    assert_eq!(placement.regions.len(), 2);
    assert_eq!(placement.regions_program_order, 3);
}

#[test]
fn a_diamond_with_one_branch_off_the_unit_is_two_regions() {
    let (program, placement) = placed(
        "x = input
         a = relu x
         left = sort a
         right = tanh a
         join = add left right
         y = out join",
    );
    assert_eq!(placement.regions.len(), 2);
    // The branch that stays runs before the gap, with all that is ready.
    assert_eq!(placement.node(node(&program, "right")).region, Some(0));
    assert_eq!(placement.node(node(&program, "join")).region, Some(1));
}

#[test]
fn off_unit_ops_at_the_start_or_the_end_cut_nothing() {
    let (program, placement) = placed(
        "x = input
         first = sort x
         a = relu first
         last = topk a
         y = out last",
    );
    assert_eq!(placement.regions.len(), 1);
    for name in ["first", "last"] {
        let at = placement.node(node(&program, name));
        assert!(at.is_boundary() && !at.is_interior(), "{name}");
    }
    assert!(placement.what_if.is_empty(), "nothing to gain");
    assert_eq!(placement.off_unit, 2);
}

#[test]
fn an_early_output_off_the_unit_is_no_gap() {
    let (program, placement) = placed(
        "x = input
         a = relu x
         side = topk a
         b = relu a
         y = out b
         z = out side",
    );
    assert_eq!(placement.regions.len(), 1);
    assert_eq!(placement.regions_program_order, 2);
    assert!(placement.node(node(&program, "side")).is_boundary());
}

#[test]
fn what_nobody_measured_does_not_cut() {
    let (program, placement) = placed(
        "x = input
         a = relu x
         u = sinh a
         b = relu u
         y = out b",
    );
    assert_eq!((placement.regions.len(), placement.unknown), (1, 1));
    let unknown = placement.node(node(&program, "u"));
    assert_eq!(unknown.verdict.eligible, None);
    assert_eq!(unknown.predicted, None);
    assert_eq!(placement.regions[0].unknown, 1);
}

#[test]
fn transparent_ops_and_constants_are_neither_counted_nor_cut() {
    let (_, placement) = placed(
        "x = input
         w = const : f32 8x8
         h = cast w
         a = mul x h
         r = reshape a : f16 1x32x16
         b = relu r : f16 1x32x16
         y = out b",
    );
    assert_eq!((placement.ops, placement.regions.len()), (2, 1));
}

#[test]
fn by_products_that_nothing_uses_are_not_held_against_an_op() {
    let (_, placement) = placed("x = input\nn = layer_norm x\na = relu n\ny = out a");
    assert_eq!((placement.eligible, placement.regions.len()), (2, 1));
}

#[test]
fn casts_at_the_edge_take_the_colour_of_their_neighbour() {
    let (program, placement) = placed(
        "x = input : f32
         in = cast x
         a = relu in
         back = cast a : f32
         y = out back",
    );
    assert_eq!(placement.regions.len(), 1);
    for name in ["in", "back"] {
        let at = placement.node(node(&program, name));
        assert!(at.at_edge && !at.is_interior(), "{name}");
    }
    assert_eq!(placement.regions[0].ops, 1);
}

#[test]
fn a_rule_stands_over_the_table_and_is_named() {
    let program = write(
        "x = input
         a = relu x
         p = conv a @3
         b = relu p
         y = out b",
    );
    let rule = RuleVerdict {
        rule: "ANE006".to_owned(),
        reason: "a linear".to_owned(),
        alternative: "a conv".to_owned(),
        evidence: vec!["C-14".to_owned()],
        nodes: vec![node(&program, "p")],
        place: None,
    };
    let placement = placed_for(&program, Runtime::CoreAi, &[rule]);
    assert_eq!(placement.regions.len(), 2);
    assert_eq!(placement.why(node(&program, "p")).unwrap().rule.as_deref(), Some("ANE006"));
    let function = program.function(FunctionId(0));
    assert_eq!(placement.regions_added(function, &[node(&program, "p")]), 1);
}

#[test]
fn the_casts_around_an_op_go_with_the_rule_that_names_it() {
    let program = write(
        "x = input
         a = relu x
         up = cast a : f32 @7
         s = softmax up : f32 @7
         down = cast s @7
         b = relu down
         y = out b",
    );
    let rule = RuleVerdict {
        rule: "ANE003".to_owned(),
        reason: "f32".to_owned(),
        nodes: vec![node(&program, "s")],
        ..RuleVerdict::default()
    };
    let placement = placed_for(&program, Runtime::CoreAi, &[rule]);
    assert_eq!(placement.groups.len(), 1);
    let group = &placement.groups[0];
    assert_eq!(placement.reason(group.reason).rule.as_deref(), Some("ANE003"));
    assert_eq!(names(&program, &group.nodes), ["up", "s", "down"]);
    assert_eq!((group.interior, group.regions_added), (3, 1));
    assert_eq!(placement.what_if.len(), 1);
}

#[test]
fn ops_on_several_lines_are_one_place_to_mend_where_a_rule_says_so() {
    let program = write(
        "x = input
         a = relu x
         up = cast a : f32 @14
         s = softmax up : f32 @15
         down = cast s @16
         b = relu down
         y = out b",
    );
    let rule = RuleVerdict {
        rule: "ANE003".to_owned(),
        reason: "f32".to_owned(),
        nodes: vec![node(&program, "s"), node(&program, "up"), node(&program, "down")],
        place: Some(node(&program, "up")),
        ..RuleVerdict::default()
    };
    let placement = placed_for(&program, Runtime::CoreAi, &[rule]);
    assert_eq!(placement.groups.len(), 1);
    assert_eq!(names(&program, &placement.groups[0].nodes), ["up", "s", "down"]);
    assert_eq!(placement.groups[0].place, node(&program, "up"));
    assert_eq!((placement.what_if[0].regions_before, placement.what_if[0].regions_after), (2, 1));
}

#[test]
fn what_if_names_the_line_that_cuts_most_first() {
    // Three layers with the same two lines in f32, and one line at the end that cuts once.
    let mut text = String::from("h0 = input\n");
    for layer in 0..3 {
        let next = layer + 1;
        text += &format!(
            "a{layer} = relu h{layer}\nu{layer} = cast a{layer} : f32 @12\n\
             s{layer} = softmax u{layer} : f32 @12\nd{layer} = cast s{layer} @12\n\
             h{next} = add d{layer} a{layer}\n"
        );
    }
    text +=
        "p = cast h3 : f32 @30\nm = reduce_mean p : f32 @30\nq = cast m @30\nr = tanh q\ny = out r";
    let (program, placement) = placed(&text);
    assert_eq!(placement.regions.len(), 5);
    let places: Vec<Vec<String>> = placement
        .what_if
        .iter()
        .map(|step| names(&program, &placement.groups[step.group as usize].nodes[..1]))
        .collect();
    assert_eq!(places, [["u0"], ["p"]]);
    let counts: Vec<(u32, u32)> =
        placement.what_if.iter().map(|s| (s.regions_before, s.regions_after)).collect();
    assert_eq!(counts, [(5, 2), (2, 1)]);
}

#[test]
fn two_faults_in_one_gap_are_both_named() {
    let (_, placement) = placed(
        "x = input
         a = relu x
         s = sort a @4
         t = topk s @5
         b = relu t
         y = out b",
    );
    assert_eq!(placement.regions.len(), 2);
    let steps: Vec<(u32, u32)> =
        placement.what_if.iter().map(|s| (s.regions_before, s.regions_after)).collect();
    assert_eq!(steps, [(2, 2), (2, 1)]);
}

#[test]
fn core_ml_sends_index_preparation_and_the_gather_to_the_cpu() {
    let program = write(
        "ids = input : i32 1x64
         table = const : f16 1000x64
         zero = const : i32 1
         rows = const : i32 1
         neg = greater_equal ids zero : bool 1x64
         up = add ids rows : i32 1x64
         sel = where neg ids up : i32 1x64
         short = cast sel : i16 1x64
         e = gather table short : f16 1x64x64
         a = relu e : f16 1x64x64
         y = out a",
    );
    let placement = placed_for(&program, Runtime::CoreMl, &[]);
    for name in ["neg", "up", "sel", "short", "e"] {
        assert_eq!(
            placement.node(node(&program, name)).verdict.eligible,
            Some(false),
            "{name}: {:?}",
            placement.why(node(&program, name))
        );
    }
    assert_eq!(placement.node(node(&program, "a")).verdict.eligible, Some(true));
}

/// `n` 3×3 convs 64→64 over 32×32, one after the other.
fn convs(n: usize) -> String {
    let mut text = "w = const : f16 64x64x3x3\nh0 = input : f16 1x64x32x32\n".to_owned();
    for at in 0..n {
        text += &format!("h{} = conv h{at} w : f16 1x64x32x32\n", at + 1);
    }
    text
}

#[test]
fn core_ml_keeps_one_small_conv_on_the_cpu_and_sends_four_to_the_unit() {
    // P-04: the whole must save a quarter of a millisecond by the planner's estimates.
    for (n, regions) in [(1, 0), (4, 1)] {
        let program = write(&format!("{}y = out h{n}", convs(n)));
        let placement = placed_for(&program, Runtime::CoreMl, &[]);
        assert_eq!(placement.regions.len(), regions, "{n} convs");
        assert_eq!(placement.eligible, n as u32);
        let conv = placement.node(node(&program, "h1"));
        assert_eq!(conv.predicted, Some(regions == 1));
    }
}

#[test]
fn core_ml_pulls_a_short_tail_off_with_the_op_that_cannot_stay() {
    // Before the tan there is enough to open a stretch, behind it there is not.
    let program = write(&format!(
        "{}t = tan h6 : f16 1x64x32x32 @9\nr = relu t : f16 1x64x32x32\ny = out r",
        convs(6)
    ));
    let placement = placed_for(&program, Runtime::CoreMl, &[]);
    assert_eq!(placement.regions.len(), 1);
    assert_eq!(placement.node(node(&program, "r")).predicted, Some(false));
    assert_eq!(placement.node(node(&program, "r")).verdict.eligible, Some(true));
}

#[test]
fn core_ml_counts_what_a_fix_would_join() {
    let mut text = convs(8);
    text += "t = tan h8 : f16 1x64x32x32 @9\ng0 = relu t : f16 1x64x32x32\n";
    for at in 0..8 {
        text += &format!("g{} = conv g{at} w : f16 1x64x32x32\n", at + 1);
    }
    let program = write(&format!("{text}y = out g8"));
    let placement = placed_for(&program, Runtime::CoreMl, &[]);
    assert_eq!(placement.regions.len(), 2);
    assert_eq!(names(&program, &placement.cuts[0].nodes), ["t"]);
    assert_eq!(placement.cuts[0].crossing_bytes, Some(2 * 131_072));
    let steps: Vec<(u32, u32)> =
        placement.what_if.iter().map(|s| (s.regions_before, s.regions_after)).collect();
    assert_eq!(steps, [(2, 1)]);
    let function = program.function(FunctionId(0));
    assert_eq!(placement.regions_added(function, &[node(&program, "t")]), 1);
}

#[test]
fn a_last_op_that_costs_the_same_on_both_sides_is_a_tie() {
    let program = write(&format!("{}r = relu h4 : f16 1x64x32x32\ny = out r", convs(4)));
    let placement = placed_for(&program, Runtime::CoreMl, &[]);
    assert!(placement.node(node(&program, "r")).tie);
    assert!(!placement.node(node(&program, "h2")).tie);
}

#[test]
fn the_dim_cap_depends_on_the_chip() {
    let program = write("x = input : f16 1x8x1x20000\na = relu x : f16 1x8x1x20000\ny = out a");
    let mut target = Target::default_for(Runtime::CoreMl);
    let mut verdict = |chip: &str| {
        target.chip = crate::target::Generation::parse(chip).unwrap();
        let request = Request { target, rules: &[], line_of: None };
        place(&program, FunctionId(0), &request).node(node(&program, "a")).verdict.eligible
    };
    assert_eq!(verdict("m3"), Some(false));
    assert_eq!(verdict("m4"), Some(true));
}

#[test]
fn every_no_of_every_table_is_explained() {
    for table in table::TABLES {
        for row in table.rows.iter().filter(|row| row.eligible == Some(false)) {
            assert!(!row.reason.is_empty() && !row.alternative.is_empty(), "{}", row.name);
            assert!(!row.evidence.is_empty(), "{}: {}", table.file, row.name);
        }
        assert!(table.by_op.len() == Op::all().count(), "{}", table.file);
    }
}

/// A measurement, not a check: `cargo test --release --lib -- --ignored --nocapture placement_takes`.
#[test]
#[ignore = "prints a time"]
#[allow(clippy::print_stdout)]
fn placement_takes_little_time_on_100_000_ops() {
    for (lines, runtime) in [
        (3, Runtime::CoreAi),
        (2_000, Runtime::CoreAi),
        (3, Runtime::CoreMl),
        (2_000, Runtime::CoreMl),
    ] {
        let mut program = Program::new("big".into(), Format::Pt2);
        let mut draft = Draft::default();
        let shape = program.shapes.intern_static(&[1, 64, 1, 64]);
        let input = program.names.intern("input");
        let push = |draft: &mut Draft, program: &mut Program, op: Op, from: &[u32], dtype, line| {
            let mut node = DraftNode::new(NodeKind::Op, Name::EMPTY);
            node.op = op;
            node.operands = from.iter().map(|&at| (input, (at, 0))).collect();
            node.results.push((Name::EMPTY, dtype, shape, None));
            let frame = program.sources.frame(Frame {
                file: input,
                line,
                column: 0,
                end_line: 0,
                end_column: 0,
                function: Name::EMPTY,
                text: Name::EMPTY,
                sha256: Name::EMPTY,
            });
            let stack = program.sources.stack(&[frame]);
            node.provenance = program.sources.provenance(Provenance {
                stack,
                module: crate::graph::ModuleId::EMPTY,
                torch_op: Name::EMPTY,
            });
            draft.push(node)
        };
        let mut source = DraftNode::new(NodeKind::Input, Name::EMPTY);
        source.results.push((Name::EMPTY, DType::F16, shape, None));
        let mut last = draft.push(source);
        for at in 0..12_500u32 {
            let line = at % lines * 10;
            let a = push(&mut draft, &mut program, Op::TANH, &[last], DType::F16, line);
            let b = push(&mut draft, &mut program, Op::MUL, &[a, last], DType::F16, line + 1);
            let c = push(&mut draft, &mut program, Op::CAST, &[b], DType::F32, line + 2);
            let d = push(&mut draft, &mut program, Op::SOFTMAX, &[c], DType::F32, line + 2);
            let e = push(&mut draft, &mut program, Op::CAST, &[d], DType::F16, line + 2);
            let f = push(&mut draft, &mut program, Op::TAN, &[e], DType::F16, line + 3);
            let g = push(&mut draft, &mut program, Op::RELU, &[f], DType::F16, line + 4);
            last = push(&mut draft, &mut program, Op::ADD, &[g, b], DType::F16, line + 5);
        }
        program.functions.push(draft.freeze(Name::EMPTY, Name::EMPTY, FunctionRole::Entry));
        let start = std::time::Instant::now();
        let placement = placed_for(&program, runtime, &[]);
        println!(
            "{runtime}: {} ops, {} groups, {} regions, {} steps, {} skipped: {:?}",
            placement.ops,
            placement.groups.len(),
            placement.regions.len(),
            placement.what_if.len(),
            placement.what_if_skipped,
            start.elapsed()
        );
    }
}
