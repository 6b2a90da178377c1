//! Where a function that has f16 computes in f32 (or wider), and why: records `f32-island`.
//!
//! An op computes in f32 if a float result of it is f32, or if a one-element f32 tensor meets f16
//! (then the graph may say that the result is f16 again: the promotion is in the op). Ops joined by
//! f32 values make one island; it falls into as many parts as there are f32 constants of source that
//! meet f16 data in it, since each has to be mended. Constant work is none, nor is work on shapes, nor
//! is a cast at the edge that nothing follows.

use rustc_hash::FxHashMap;

use super::literals;
use super::record::{Field, Record};
use super::view::View;
use crate::graph::{
    Attr, Category, ConstantOrigin, DType, NodeFlags, NodeId, NodeKind, Op, ValueId,
};

/// Why an island is there.
#[derive(Debug, Clone, Copy)]
struct Cause {
    word: &'static str,
    source: Option<NodeId>,
    value: Option<f64>,
    /// Ranks causes that enter one op together: a written cast explains an implicit one.
    strength: u8,
}

fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::Complex64 | DType::Complex128)
}

/// Whether any value on the data path of a function is f16, or an f16 weight is used.
pub(super) fn has_f16(view: &View<'_>) -> bool {
    view.function
        .nodes()
        .any(|(id, _)| view.function.results(id).any(|result| view.dtype(result) == DType::F16))
}

/// Whether an op compares f32 values that vary: it belongs to the island that makes them.
fn compares_wide(view: &View<'_>, node: NodeId) -> bool {
    view.function.is_work(node)
        && view.op(node).category() == Category::Logic
        && view.function.results(node).all(|result| view.dtype(result) == DType::Bool)
        && view.operands(node).any(|value| is_wide(view.dtype(value)) && !view.is_fixed(value))
}

/// Whether an op computes in f32.
fn computes_wide(view: &View<'_>, node: NodeId) -> bool {
    let op = view.op(node);
    if !view.function.is_work(node)
        || op == Op::CAST
        || op.category() == Category::Creation
        || view.uses.is_fixed(node)
    {
        return false;
    }
    let wide_result = view.function.results(node).any(|result| is_wide(view.dtype(result)));
    if wide_result || compares_wide(view, node) {
        return true;
    }
    // f16 beside an f32 tensor of no dims: the result is f16 by promotion rules, the work is not.
    let mut floats = view.operands(node).filter(|&operand| !literals::is_weak(view, operand));
    literals::combines(view.op(node))
        && view.function.result(node).is_some_and(|result| view.dtype(result) == DType::F16)
        && floats.any(|operand| is_wide(view.dtype(operand)))
}

/// The islands of a function, in program order.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    if !has_f16(view) {
        return Vec::new();
    }
    let count = view.function.len();
    let wide: Vec<bool> = view.function.node_ids().map(|node| computes_wide(view, node)).collect();
    // Union of wide ops that share a wide run-time value; casts and transparent ops carry it.
    let mut group: Vec<u32> = (0..count as u32).collect();
    let carries = |node: NodeId| {
        view.is_op(node)
            && !view.uses.is_fixed(node)
            && view.function.results(node).any(|result| is_wide(view.dtype(result)))
    };
    for node in view.function.node_ids() {
        if !(wide[node.0 as usize] || carries(node)) {
            continue;
        }
        for operand in view.operands(node) {
            let producer = view.producer(operand);
            if is_wide(view.dtype(operand)) && (wide[producer.0 as usize] || carries(producer)) {
                union(&mut group, node.0, producer.0);
            }
        }
    }
    let mut islands: Vec<Vec<NodeId>> = Vec::new();
    let mut index: FxHashMap<u32, usize> = FxHashMap::default();
    let mut carriers: Vec<Vec<NodeId>> = Vec::new();
    for node in view.function.node_ids() {
        let (is_wide_op, is_carrier) = (wide[node.0 as usize], carries(node));
        if !is_wide_op && !is_carrier {
            continue;
        }
        let root = find(&mut group, node.0);
        let at = *index.entry(root).or_insert_with(|| {
            islands.push(Vec::new());
            carriers.push(Vec::new());
            islands.len() - 1
        });
        if is_wide_op { &mut islands[at] } else { &mut carriers[at] }.push(node);
    }
    islands
        .into_iter()
        .zip(carriers)
        // A comparison alone makes no f32: what it reads does.
        .filter(|(nodes, _)| nodes.iter().any(|&node| !compares_wide(view, node)))
        .flat_map(|(nodes, carriers)| parts(view, nodes, carriers))
        .map(|part| record(view, part))
        .collect()
}

/// An island, or what one constant of source makes of it.
struct Part {
    cause: Cause,
    nodes: Vec<NodeId>,
    carriers: Vec<NodeId>,
}

/// The parts of an island: that of its first cause, then one for each other constant of source that
/// meets f16 data. What several lead to belongs to the first of them.
fn parts(view: &View<'_>, nodes: Vec<NodeId>, carriers: Vec<NodeId>) -> Vec<Part> {
    let unknown = Cause { word: "unknown", source: None, value: None, strength: 0 };
    let mut members: Vec<(NodeId, bool)> = nodes.iter().map(|&node| (node, true)).collect();
    members.extend(carriers.iter().map(|&node| (node, false)));
    members.sort_unstable();
    let mut known = false;
    let mut parts = vec![Part { cause: unknown, nodes: Vec::new(), carriers: Vec::new() }];
    let mut part_of: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (node, computes) in members {
        let cast = view.op(node) == Op::CAST;
        let found = if cast { cast_cause(view, node) } else { op_cause(view, node) };
        let begins = match (found, parts.first_mut()) {
            (Some(found), Some(first)) if !known => {
                known = true;
                first.cause = found;
                Some(0)
            }
            (Some(found), _) if is_constant(found) && (cast || meets_f16(view, node)) => {
                let same = |part: &Part| part.cause.source == found.source;
                Some(parts.iter().position(same).unwrap_or_else(|| {
                    parts.push(Part { cause: found, nodes: Vec::new(), carriers: Vec::new() });
                    parts.len() - 1
                }))
            }
            _ => None,
        };
        let inherited = || {
            let wide = view.operands(node).filter(|&operand| is_wide(view.dtype(operand)));
            wide.filter_map(|operand| part_of.get(&view.producer(operand)).copied()).min()
        };
        let at = begins.or_else(inherited).unwrap_or(0);
        part_of.insert(node, at);
        if let Some(part) = parts.get_mut(at) {
            if computes { &mut part.nodes } else { &mut part.carriers }.push(node);
        }
    }
    parts.retain(|part| part.nodes.iter().any(|&node| !compares_wide(view, node)));
    parts
}

/// Whether an island begins at a constant that source code makes.
fn is_constant(cause: Cause) -> bool {
    matches!(cause.word, "literal" | "constructor") && cause.source.is_some()
}

/// Whether data enters an op that was f16 until a constant beside it made a converter widen it.
fn meets_f16(view: &View<'_>, node: NodeId) -> bool {
    view.operands(node).filter(|&value| !view.is_fixed(value)).any(|value| {
        let cast = view.producer(value);
        literals::was_f16(view, value)
            || (view.op(cast) == Op::CAST && cast_cause(view, cast).is_some_and(is_constant))
    })
}

fn find(group: &mut [u32], mut at: u32) -> u32 {
    while group[at as usize] != at {
        group[at as usize] = group[group[at as usize] as usize];
        at = group[at as usize];
    }
    at
}

fn union(group: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(group, a), find(group, b));
    let (low, high) = (a.min(b), a.max(b));
    group[high as usize] = low;
}

fn record(view: &View<'_>, part: Part) -> Record {
    let Part { cause, nodes, carriers } = part;
    let entries: Vec<NodeId> = carriers
        .iter()
        .copied()
        .filter(|&node| {
            view.op(node) == Op::CAST
                && view.input(node).is_some_and(|input| view.dtype(input) == DType::F16)
        })
        .collect();
    let mut exits = Vec::new();
    let mut reaches_output = false;
    for &node in nodes.iter().chain(&carriers) {
        for result in view.function.results(node).filter(|&r| is_wide(view.dtype(r))) {
            for &(user, _) in view.uses.of_value(result) {
                match view.function.node(user).kind {
                    NodeKind::Output => reaches_output = true,
                    NodeKind::Op if view.op(user) == Op::CAST => {
                        let narrow = view.function.result(user);
                        if narrow.is_some_and(|r| view.dtype(r) == DType::F16) {
                            exits.push(user);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    exits.sort_unstable();
    exits.dedup();
    let first_entry = entries.first().copied();
    let first = match first_entry {
        Some(entry) if !view.has_flag(entry, NodeFlags::IMPLICIT) && entry < nodes[0] => entry,
        _ => nodes[0],
    };
    let mut fields = vec![
        ("first", Field::Node(first)),
        ("cause", Field::Text(cause.word)),
        ("entries", Field::Nodes(entries)),
        ("exits", Field::Nodes(exits)),
        ("reaches-output", Field::Bool(reaches_output)),
    ];
    fields.extend(cause.source.map(|source| ("source", Field::Node(source))));
    fields.extend(cause.value.map(|value| ("value", Field::Float(value))));
    let anchor = nodes[0];
    fields.push(("nodes", Field::Nodes(nodes)));
    Record { anchor, fields }
}

/// A cast into f32 that stands in the file.
fn cast_cause(view: &View<'_>, node: NodeId) -> Option<Cause> {
    let input = view.input(node)?;
    if is_wide(view.dtype(input)) {
        return None;
    }
    let users = || {
        let result = view.function.result(node);
        result.into_iter().flat_map(|result| view.uses.of_value(result)).map(|&(user, _)| user)
    };
    if view.has_flag(node, NodeFlags::IMPLICIT) {
        // A softmax that was told its dtype casts first; every other promotion has its cause beside it.
        let softmax = users().find(|&user| view.op(user) == Op::SOFTMAX)?;
        let word = "softmax-dtype";
        return Some(Cause { word, source: Some(softmax), value: None, strength: 3 });
    }
    // In a branch all that is recorded is the call that takes it.
    let name = match recorded(view, node) {
        "cond" | "while_loop" => "",
        name => name,
    };
    // Made visible by the converter: a constant is what widens the op behind the cast.
    let by_constant = || users().find_map(|user| op_cause(view, user)).filter(|c| c.strength > 0);
    let cast = |word| Cause { word, source: Some(node), value: None, strength: 3 };
    if is_cast_name(name) {
        return Some(cast("upcast"));
    }
    if name.is_empty() {
        // Nothing recorded: one op between two casts is a widened op, more is a block in f32.
        let alone = users().all(|user| {
            view.function.result(user).is_some_and(|result| {
                view.uses.of_value(result).iter().all(|&(next, _)| view.op(next) == Op::CAST)
            })
        });
        let found = if alone { by_constant() } else { None };
        return Some(found.unwrap_or(cast("upcast")));
    }
    if name.ends_with("softmax") && users().any(|user| view.op(user) == Op::SOFTMAX) {
        return Some(cast("softmax-dtype"));
    }
    const ARITHMETIC: &[&str] = &[
        "add",
        "radd",
        "sub",
        "rsub",
        "mul",
        "rmul",
        "multiply",
        "div",
        "truediv",
        "rtruediv",
        "true_divide",
        "pow",
        "rpow",
        "maximum",
        "minimum",
        "where",
        "masked_fill",
        "matmul",
    ];
    if ARITHMETIC.contains(&name)
        && let Some(found) = by_constant()
    {
        return Some(found);
    }
    Some(cast("decomposition"))
}

/// The torch function recorded for a node: without its kind, number and underscores.
fn recorded<'v>(view: &View<'v>, node: NodeId) -> &'v str {
    let program = view.program();
    let provenance = program.sources.get(view.function.node(node).provenance);
    let text = program.text(provenance.torch_op);
    let name = text.rsplit('.').next().unwrap_or(text);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.trim_matches('_')
}

/// Whether the author wrote a cast: what torch recorded for the node is a function that casts.
fn is_cast_name(name: &str) -> bool {
    const CASTS: &[&str] = &[
        "to", "float", "double", "type", "type_as", "to_copy", "default", "dtype", "copy",
        "getitem", "setitem", "get",
    ];
    CASTS.contains(&name) || name.contains("cast")
}

fn op_cause(view: &View<'_>, node: NodeId) -> Option<Cause> {
    // Told to.
    if let Some(Attr::DType(dtype)) = view.attr(node, view.words.dtype)
        && is_wide(*dtype)
        && matches!(view.op(node), Op::SOFTMAX | Op::LOG_SOFTMAX)
        && view.input(node).is_some_and(|input| {
            !is_wide(view.dtype(input)) || view.has_flag(view.producer(input), NodeFlags::IMPLICIT)
        })
    {
        return Some(Cause { word: "softmax-dtype", source: Some(node), value: None, strength: 3 });
    }
    let mut best: Option<Cause> = None;
    for operand in view.function.operands(node) {
        let value = operand.value;
        if operand.name == view.words.condition || !is_wide(view.dtype(value)) {
            continue;
        }
        let found = match view.function.node(view.producer(value)).kind {
            NodeKind::Input => Some(Cause {
                word: "input",
                source: Some(view.producer(value)),
                value: None,
                strength: 2,
            }),
            _ if view.is_fixed(value) => fixed_cause(view, value),
            _ => None,
        };
        if let Some(found) = found
            && best.is_none_or(|known| known.strength < found.strength)
        {
            best = Some(found);
        }
    }
    best.or_else(|| both_scalar(view, node))
}

/// `where(c, 0.0, -inf)` with two Python numbers: the default dtype.
fn both_scalar(view: &View<'_>, node: NodeId) -> Option<Cause> {
    if view.op(node) != Op::WHERE {
        return None;
    }
    let (a, b) = view.pair(node)?;
    let narrow = |value: ValueId| literals::is_weak(view, value);
    (narrow(a) && narrow(b)).then_some(Cause {
        word: "constructor",
        source: Some(node),
        value: None,
        strength: 2,
    })
}

/// An f32 operand that depends on no input.
fn fixed_cause(view: &View<'_>, value: ValueId) -> Option<Cause> {
    if literals::is_weak(view, value) {
        // A Python number widens an op only where f16 cannot hold it.
        let number = view.number(value);
        return (literals::fit(number) == "overflows").then(|| Cause {
            word: "literal",
            source: Some(view.producer(value)),
            value: number,
            strength: 1,
        });
    }
    let number = view.number(value);
    let one = view.elements(value) == Some(1);
    let source = literals::constant_of(view, value);
    let origin = source.map(|(_, origin)| origin);
    let made = view.is_op(view.producer(value));
    let word = match (one, origin) {
        (_, Some(ConstantOrigin::Parameter)) => "weights",
        (true, _) => "literal",
        // Many elements: made in code with the default dtype, folded from such, or a buffer.
        (false, Some(ConstantOrigin::Buffer)) => "weights",
        (false, Some(_)) => "constructor",
        (false, None) if made => constructor_or_weights(view, value),
        (false, None) => "weights",
    };
    let source = source.map_or_else(|| view.producer(value), |(node, _)| node);
    let source = if made && word != "weights" { first_made(view, value) } else { source };
    Some(Cause { word, source: Some(source), value: number, strength: 2 })
}

/// Whether constant work comes from a constructor, or from a buffer or parameter that is f32.
fn constructor_or_weights(view: &View<'_>, value: ValueId) -> &'static str {
    let mut stack = vec![value];
    for _ in 0..128 {
        let Some(value) = stack.pop() else { break };
        match view.origin(value) {
            Some(ConstantOrigin::Parameter | ConstantOrigin::Buffer)
                if is_wide(view.dtype(value)) =>
            {
                return "weights";
            }
            Some(_) => {}
            None => stack.extend(view.operands(view.producer(value))),
        }
    }
    "constructor"
}

/// The op that first made an f32 value of constant work: a constructor, a cast, a where.
fn first_made(view: &View<'_>, value: ValueId) -> NodeId {
    let mut value = value;
    for _ in 0..64 {
        let node = view.producer(value);
        let above = view
            .operands(node)
            .find(|&operand| is_wide(view.dtype(operand)) && view.is_op(view.producer(operand)));
        match above {
            Some(above) => value = above,
            None => return node,
        }
    }
    view.producer(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::facts::Facts;
    use crate::facts::testing::{Graph, MAIN, name_of};
    use crate::graph::{DraftOperand, Payload};

    fn number(g: &mut Graph, value: f64) -> DraftOperand {
        g.constant(ConstantOrigin::Tensor, DType::F32, &[1], Payload::Splat(value))
    }

    /// `cause: nodes` of each record.
    fn islands(g: Graph) -> Vec<String> {
        let program = g.finish();
        let facts = Facts::new(&program);
        let shown = |record: &Record| {
            let Some(Field::Nodes(nodes)) = record.field("nodes") else { panic!("no nodes") };
            let names: Vec<_> = nodes.iter().map(|&node| name_of(&program, node)).collect();
            let Some(Field::Text(cause)) = record.field("cause") else { panic!("no cause") };
            format!("{cause}: {}", names.join(" "))
        };
        facts.records(MAIN, "f32-island").iter().map(shown).collect()
    }

    /// `x * torch.ones(1) + x / torch.tensor([2.0])`: two literals, and the sum of what they made.
    #[test]
    fn each_literal_that_meets_f16_has_its_own_part() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[8]);
        let (one, two) = (number(&mut g, 1.0), number(&mut g, 2.0));
        let a = g.op(Op::MUL, &[x, one], &[], DType::F32, &[8]);
        let b = g.op(Op::DIV, &[x, two], &[], DType::F32, &[8]);
        let sum = g.op(Op::ADD, &[a, b], &[], DType::F32, &[8]);
        g.output(sum);
        assert_eq!(islands(g), ["literal: mul_3 add_5", "literal: div_4"]);
    }

    /// The same after a converter, which widens `x` once for both.
    #[test]
    fn literals_that_share_one_cast_are_told_apart() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[8]);
        let (one, two) = (number(&mut g, 1.0), number(&mut g, 2.0));
        let wide = g.op(Op::CAST, &[x], &[], DType::F32, &[8]);
        let a = g.op(Op::MUL, &[wide, one], &[], DType::F32, &[8]);
        let b = g.op(Op::DIV, &[wide, two], &[], DType::F32, &[8]);
        let narrow = [a, b].map(|value| g.op(Op::CAST, &[value], &[], DType::F16, &[8]));
        narrow.into_iter().for_each(|value| g.output(value));
        assert_eq!(islands(g), ["literal: mul_4", "literal: div_5"]);
    }

    #[test]
    fn a_literal_that_meets_f32_only_has_none() {
        let mut g = Graph::new();
        let x = g.input("x", DType::F16, &[8]);
        let (one, two) = (number(&mut g, 1.0), number(&mut g, 2.0));
        let a = g.op(Op::MUL, &[x, one], &[], DType::F32, &[8]);
        let b = g.op(Op::DIV, &[a, two], &[], DType::F32, &[8]);
        let c = g.op(Op::MUL, &[x, one], &[], DType::F32, &[8]);
        let sum = g.op(Op::ADD, &[b, c], &[], DType::F32, &[8]);
        g.output(sum);
        assert_eq!(islands(g), ["literal: mul_3 div_4 mul_5 add_6"]);
    }
}
