//! Whether two graphs compute the same, as far as a graph can tell.
//!
//! Every node gets a hash of its op, its settings and the hashes of its operands; inputs count by their
//! place, parameters by name and shape. Two functions whose outputs hash alike are the same expression
//! over the same parameters. Hashed a second time without dtypes and casts, they may differ in rounding
//! only. Anything else is another function to a graph, though algebra may say otherwise. The values of
//! parameters are not read.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::graph::{
    Attr, Category, Function, FunctionId, NodeFlags, NodeId, NodeKind, Op, Payload, Program,
    ValueId,
};

/// What may be said of two versions of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contract {
    /// The same expression over the same parameters.
    Same,
    /// The same but for dtypes and casts.
    Rounding,
    /// Another function, as far as the graph tells.
    Other {
        /// What changed in inputs and outputs; empty if nothing did.
        interface: Vec<String>,
        /// Ops whose number changed, by name.
        ops: Vec<OpChange>,
        /// Only what is computed from constants alone differs (a mask, a table): the same function if
        /// its values are, and a graph does not tell values.
        constants_only: bool,
    },
}

/// Ops of one kind that came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpChange {
    /// The op.
    pub op: Op,
    /// How many there were.
    pub old: u64,
    /// How many there are.
    pub new: u64,
}

/// Compares two functions.
pub fn compare(old: (&Program, FunctionId), new: (&Program, FunctionId)) -> Contract {
    let sides = [old, new].map(|(program, id)| (program, program.function(id)));
    let [before, after] = sides.map(|(program, function)| interface(program, function));
    let changed = changes(&before, &after);
    let equal = |eye: Eye| {
        let [before, after] = sides.map(|(program, function)| outputs(program, function, eye));
        before == after
    };
    if changed.is_empty() && equal(Eye::Strict) {
        return Contract::Same;
    }
    // An input or output in another dtype is rounding too; another shape or name is not.
    let shapes_only =
        |lines: &[Port]| lines.iter().map(|port| port.loose.clone()).collect::<Vec<_>>();
    if shapes_only(&before) == shapes_only(&after) && equal(Eye::Loose) {
        return Contract::Rounding;
    }
    Contract::Other {
        constants_only: changed.is_empty() && equal(Eye::PastConstants),
        interface: changed,
        ops: op_changes(sides[0].1, sides[1].1),
    }
}

/// How closely two functions are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eye {
    /// Everything counts.
    Strict,
    /// Dtypes, casts and how weights are stored do not.
    Loose,
    /// What is computed from constants alone counts by dtype and shape only.
    PastConstants,
}

/// An input, state or output.
#[derive(PartialEq, Eq)]
struct Port {
    what: String,
    full: String,
    loose: String,
}

fn interface(program: &Program, function: &Function) -> Vec<Port> {
    let mut ports = Vec::new();
    let mut port = |kind: &str, place: usize, node: NodeId, value: ValueId, named: bool| {
        let told = function.value(value);
        let name = if named { program.text(function.node(node).name) } else { "" };
        let shape = program.shapes.text(&program.names, told.shape);
        let what = match name {
            "" => format!("{kind} {}", place + 1),
            name => format!("{kind} `{name}`"),
        };
        ports.push(Port {
            full: format!("{shape} {}", told.dtype),
            loose: format!("{what} {shape}"),
            what,
        });
    };
    for (at, node) in function.inputs().enumerate() {
        if let Some(value) = function.result(node) {
            port("input", at, node, value, true);
        }
    }
    for (at, node) in function.states().enumerate() {
        if let Some(value) = function.result(node) {
            port("state", at, node, value, true);
        }
    }
    for (at, node) in function.outputs().enumerate() {
        if let Some(operand) = function.operands(node).first() {
            // Exporters name outputs after whatever op comes last: the place counts.
            port("output", at, node, operand.value, false);
        }
    }
    ports
}

fn changes(before: &[Port], after: &[Port]) -> Vec<String> {
    let find = |ports: &'_ [Port], what: &str| ports.iter().position(|port| port.what == what);
    let mut lines = Vec::new();
    for port in before {
        match find(after, &port.what).and_then(|at| after.get(at)) {
            None => lines.push(format!("{} is gone ({})", port.what, port.full)),
            Some(other) if other.full != port.full => {
                lines.push(format!("{}: {} → {}", port.what, port.full, other.full));
            }
            Some(_) => {}
        }
    }
    for port in after {
        if find(before, &port.what).is_none() {
            lines.push(format!("{} is new ({})", port.what, port.full));
        }
    }
    if lines.is_empty() && before != after {
        lines.push("inputs come in another order".to_owned());
    }
    lines
}

/// Ops whose number changed, work only.
fn op_changes(old: &Function, new: &Function) -> Vec<OpChange> {
    let mut counts: BTreeMap<&str, OpChange> = BTreeMap::new();
    for (function, is_new) in [(old, false), (new, true)] {
        for id in function.node_ids().filter(|&id| function.is_work(id)) {
            let op = function.node(id).op;
            let change = counts.entry(op.name()).or_insert(OpChange { op, old: 0, new: 0 });
            *(if is_new { &mut change.new } else { &mut change.old }) += 1;
        }
    }
    counts.into_values().filter(|change| change.old != change.new).collect()
}

/// A hash for each output, in order.
fn outputs(program: &Program, function: &Function, eye: Eye) -> Vec<u64> {
    let loose = eye == Eye::Loose;
    let mut hashes = vec![0u64; function.value_count()];
    let mut outputs = Vec::new();
    let (mut inputs, mut states) = (0u32, 0u32);
    for (id, node) in function.nodes() {
        let mut hasher = DefaultHasher::new();
        match node.kind {
            NodeKind::Output => {
                outputs.extend(function.operands(id).iter().map(|o| hashes[o.value.0 as usize]));
                continue;
            }
            NodeKind::Input => {
                ("input", inputs).hash(&mut hasher);
                inputs += 1;
            }
            NodeKind::State => {
                ("state", states).hash(&mut hasher);
                states += 1;
            }
            NodeKind::Op
                if eye == Eye::PastConstants && node.flags.contains(NodeFlags::CONSTANT_WORK) =>
            {
                "constant work".hash(&mut hasher);
            }
            NodeKind::Constant(constant) => {
                constant_hash(program, constant, loose, &mut hasher);
            }
            NodeKind::Op => {
                let first = function.operands(id).first().map(|o| hashes[o.value.0 as usize]);
                if let (Some(first), true) = (first, passes(function, id, loose)) {
                    for value in function.results(id) {
                        hashes[value.0 as usize] = first;
                    }
                    continue;
                }
                node.op.name().hash(&mut hasher);
                if node.op == Op::UNKNOWN {
                    program.text(node.spelling).hash(&mut hasher);
                }
                settings(program, function, id, loose, &mut hasher);
                for operand in function.operands(id) {
                    program.text(operand.name).hash(&mut hasher);
                    hashes[operand.value.0 as usize].hash(&mut hasher);
                }
            }
        }
        for (at, value) in function.results(id).enumerate() {
            let mut own = hasher.clone();
            let told = function.value(value);
            at.hash(&mut own);
            program.shapes.text(&program.names, told.shape).hash(&mut own);
            if !loose {
                told.dtype.name().hash(&mut own);
            }
            hashes[value.0 as usize] = own.finish();
        }
    }
    outputs
}

/// Whether a node gives on what it reads: copies always, and what only rounds when that is looked past.
fn passes(function: &Function, id: NodeId, loose: bool) -> bool {
    let node = function.node(id);
    let copies = matches!(node.op, Op::IDENTITY | Op::DETACH | Op::CLONE | Op::CONTIGUOUS)
        || (node.op == Op::CAST && node.flags.contains(NodeFlags::TRANSPARENT));
    let rounds = matches!(
        node.op,
        Op::CAST | Op::QUANTIZE | Op::DEQUANTIZE | Op::FAKE_QUANTIZE | Op::DYNAMIC_QUANTIZE
    );
    copies || (loose && (rounds || node.op.category() == Category::Compression))
}

fn settings(
    program: &Program,
    function: &Function,
    id: NodeId,
    loose: bool,
    hasher: &mut DefaultHasher,
) {
    let mut settings: Vec<(&str, String)> = function
        .attributes(id)
        .iter()
        .filter(|(_, attr)| !(loose && matches!(attr, Attr::DType(_))))
        .map(|(name, attr)| (program.text(*name), attribute(program, attr, loose)))
        .collect();
    settings.sort();
    settings.hash(hasher);
}

fn attribute(program: &Program, attr: &Attr, loose: bool) -> String {
    let real = |value: f64| if loose { rounded(value) } else { format!("{value:?}") };
    match attr {
        Attr::Float(value) => real(*value),
        Attr::Floats(list) => list.iter().map(|value| real(*value)).collect::<Vec<_>>().join(" "),
        Attr::Text(name) => program.text(*name).to_owned(),
        Attr::Texts(list) => {
            list.iter().map(|name| program.text(*name)).collect::<Vec<_>>().join("\u{1f}")
        }
        Attr::DType(dtype) => dtype.name().to_owned(),
        Attr::Symbol(id) => program
            .shapes
            .symbol(*id)
            .map_or_else(String::new, |symbol| program.text(symbol.name).to_owned()),
        other => format!("{other:?}"),
    }
}

/// Three digits: what f16 and f32 have in common.
fn rounded(value: f64) -> String {
    format!("{value:.2e}")
}

fn constant_hash(
    program: &Program,
    id: crate::graph::ConstantId,
    loose: bool,
    hasher: &mut DefaultHasher,
) {
    let constant = program.constant(id);
    "constant".hash(hasher);
    program.text(constant.fqn).hash(hasher);
    let mut value = |value: f64| {
        if loose { rounded(value).hash(hasher) } else { value.to_bits().hash(hasher) }
    };
    match &constant.payload {
        Payload::Values(values) => values.iter().for_each(|&own| value(own)),
        Payload::Splat(own) => value(*own),
        Payload::Text(name) => program.text(*name).hash(hasher),
        Payload::Blob(_) | Payload::Unknown => {}
    }
}
