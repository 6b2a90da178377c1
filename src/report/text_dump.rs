//! A compact text of a graph, one line a node: for snapshots and for people who debug a reader.

use std::fmt::Write;

use crate::graph::{
    Attr, ConstantOrigin, Function, FunctionRole, NodeFlags, NodeId, NodeKind, Payload, Program,
    ValueId,
};

/// One line a node, in program order.
pub fn text_dump(program: &Program) -> String {
    let mut text = String::new();
    for function in &program.functions {
        let role = match function.role {
            FunctionRole::Entry => "entry".to_owned(),
            FunctionRole::Branch { parent } => {
                format!("branch of {}", program.text(program.function(parent).name))
            }
            FunctionRole::Composite => "composite".to_owned(),
            FunctionRole::Unreachable => "unreachable".to_owned(),
        };
        let _ = writeln!(text, "function {} ({role})", program.text(function.name));
        for id in function.node_ids() {
            let _ = writeln!(text, "  {}", line(program, function, id));
        }
    }
    for note in &program.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn line(program: &Program, function: &Function, id: NodeId) -> String {
    let node = function.node(id);
    let mut text = format!("%{} = ", id.0);
    match node.kind {
        NodeKind::Input => {
            let _ = write!(text, "input {}", program.text(node.name));
        }
        NodeKind::State => {
            let _ = write!(text, "state {}", program.text(node.name));
        }
        NodeKind::Output => {
            let _ = write!(text, "output {}", program.text(node.name));
        }
        NodeKind::Constant(constant) => {
            let constant = program.constant(constant);
            let origin = match constant.origin {
                ConstantOrigin::Parameter => "parameter",
                ConstantOrigin::Buffer => "buffer",
                ConstantOrigin::Tensor => "tensor",
                ConstantOrigin::Literal => "literal",
                ConstantOrigin::Folded => "folded",
            };
            let _ = write!(text, "{origin} {}", program.text(constant.fqn));
            match &constant.payload {
                Payload::Splat(value) => {
                    let _ = write!(text, "{value}");
                }
                Payload::Values(values) => {
                    let _ = write!(text, "{:?}", &values[..values.len().min(4)]);
                }
                _ => {}
            }
        }
        NodeKind::Op => {
            let _ = write!(text, "{}", node.op);
        }
    }
    let operands: Vec<String> = function
        .operands(id)
        .iter()
        .map(|operand| {
            let value = value(function, operand.value);
            match program.text(operand.name) {
                "" => value,
                name => format!("{name}={value}"),
            }
        })
        .collect();
    if !operands.is_empty() {
        let _ = write!(text, "({})", operands.join(", "));
    }
    let attributes: Vec<String> = function
        .attributes(id)
        .iter()
        .map(|(name, attr)| format!("{}={}", program.text(*name), attribute(program, attr)))
        .collect();
    if !attributes.is_empty() {
        let _ = write!(text, " {{{}}}", attributes.join(", "));
    }
    let results: Vec<String> = function
        .results(id)
        .map(|value| {
            let value = function.value(value);
            format!("{}[{}]", value.dtype, program.shapes.text(&program.names, value.shape))
        })
        .collect();
    if !results.is_empty() {
        let _ = write!(text, " : {}", results.join(", "));
    }
    for (flag, word) in [
        (NodeFlags::IMPLICIT, "implicit"),
        (NodeFlags::CONSTANT_WORK, "constant"),
        (NodeFlags::TRANSPARENT, "transparent"),
        (NodeFlags::MUTATION, "mutation"),
    ] {
        if node.flags.contains(flag) {
            let _ = write!(text, " #{word}");
        }
    }
    if !function.stored(id).is_empty() {
        let stored: Vec<&str> =
            function.stored(id).iter().map(|(_, spelling)| program.text(*spelling)).collect();
        let _ = write!(text, " <- {}", stored.join(" "));
    } else if node.kind == NodeKind::Op {
        let _ = write!(text, " <- {}", program.text(node.spelling));
    }
    let bodies: Vec<&str> =
        function.bodies(id).iter().map(|body| program.text(program.function(*body).name)).collect();
    if !bodies.is_empty() {
        let _ = write!(text, " bodies {}", bodies.join(" "));
    }
    text
}

fn value(function: &Function, id: ValueId) -> String {
    let value = function.value(id);
    match value.index {
        0 => format!("%{}", value.node.0),
        index => format!("%{}.{index}", value.node.0),
    }
}

fn attribute(program: &Program, attr: &Attr) -> String {
    match attr {
        Attr::Int(n) => n.to_string(),
        Attr::Float(x) => format!("{x:?}"),
        Attr::Bool(b) => b.to_string(),
        Attr::Text(text) => program.text(*text).to_owned(),
        Attr::DType(dtype) => dtype.to_string(),
        Attr::Ints(list) => {
            let list: Vec<String> =
                list.iter().map(|n| n.map_or_else(|| "?".to_owned(), |n| n.to_string())).collect();
            format!("[{}]", list.join(" "))
        }
        Attr::Floats(list) => format!("{list:?}"),
        Attr::Texts(list) => {
            let list: Vec<&str> = list.iter().map(|name| program.text(*name)).collect();
            format!("[{}]", list.join(" "))
        }
        Attr::Symbol(id) => program
            .shapes
            .symbol(*id)
            .map_or_else(|| "?".to_owned(), |symbol| program.text(symbol.name).to_owned()),
        Attr::Dynamic => "?".to_owned(),
    }
}
