//! `anelint dump`: the canonical graph as JSON (version 1), for people who write rules.

use serde_json::{Map, Value as Json, json};

use crate::graph::{
    Attr, DType, Dim, Function, FunctionId, FunctionRole, Node, NodeFlags, NodeId, NodeKind,
    Program, ShapeId, SymbolId, Value, ValueId,
};

/// What to show.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpOptions {
    /// The stored ops that normalisation absorbed into each op.
    pub stored: bool,
    /// Composite bodies and unreachable functions too.
    pub all_functions: bool,
}

/// The graph as JSON. Equal programs give equal text.
pub fn dump(program: &Program, options: DumpOptions) -> Json {
    let functions: Vec<Json> = program
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| {
            options.all_functions
                || matches!(function.role, FunctionRole::Entry | FunctionRole::Branch { .. })
        })
        .map(|(id, _)| function(program, FunctionId(id as u32), options))
        .collect();
    json!({
        "version": 1,
        "path": program.path.display().to_string(),
        "format": program.format.name(),
        "producer": program.producer,
        "functions": functions,
        "notes": program.notes,
    })
}

fn function(program: &Program, id: FunctionId, options: DumpOptions) -> Json {
    let function = program.function(id);
    let values = |ids: Vec<NodeId>| -> Vec<Json> {
        ids.into_iter()
            .map(|node| {
                let value = match function.node(node).kind {
                    NodeKind::Output => function.operands(node).first().map(|o| o.value),
                    _ => function.result(node),
                };
                let mut shown =
                    value.map_or_else(Map::new, |value| typed(program, function.value(value)));
                shown.insert("name".into(), program.text(function.node(node).name).into());
                if function.node(node).flags.contains(NodeFlags::MUTATION) {
                    shown.insert("mutation".into(), true.into());
                }
                Json::Object(shown)
            })
            .collect()
    };
    let parent = match function.role {
        FunctionRole::Branch { parent } => Json::from(program.text(program.function(parent).name)),
        _ => Json::Null,
    };
    let nodes: Vec<Json> = function
        .nodes()
        .filter(|(_, node)| matches!(node.kind, NodeKind::Op | NodeKind::Constant(_)))
        .map(|(id, shown)| match shown.kind {
            NodeKind::Constant(_) => constant(program, function, id, shown),
            _ => op(program, function, id, shown, options),
        })
        .collect();
    let (constants, ops): (Vec<Json>, Vec<Json>) =
        nodes.into_iter().partition(|node| node.get("op").is_none());
    json!({
        "name": program.text(function.name),
        "opset": program.text(function.opset),
        "parent": parent,
        "inputs": values(function.inputs().collect()),
        "outputs": values(function.outputs().collect()),
        "states": values(function.states().collect()),
        "constants": constants,
        "ops": ops,
    })
}

fn typed(program: &Program, value: &Value) -> Map<String, Json> {
    let mut shown = Map::new();
    shown.insert("dtype".into(), value.dtype.name().into());
    shown.insert("shape".into(), shape(program, value.shape));
    if let Some(strides) = value.strides {
        shown.insert("strides".into(), shape(program, strides));
    }
    shown
}

/// A shape as a list of dims; null if not even the rank is known.
fn shape(program: &Program, id: ShapeId) -> Json {
    match program.shapes.get(id).dims() {
        None => Json::Null,
        Some(dims) => dims.iter().map(|&dim| self::dim(program, dim)).collect(),
    }
}

fn dim(program: &Program, dim: Dim) -> Json {
    match dim {
        Dim::Static(n) => n.into(),
        Dim::Symbol(id) => symbol(program, id),
        Dim::Expr(_) => json!({"expression": program.shapes.dim_text(&program.names, dim)}),
        Dim::Unknown => Json::Null,
    }
}

fn symbol(program: &Program, id: SymbolId) -> Json {
    match program.shapes.symbol(id) {
        None => Json::Null,
        Some(symbol) => json!({
            "symbol": program.text(symbol.name),
            "min": symbol.min,
            "max": symbol.max,
        }),
    }
}

fn operands(program: &Program, function: &Function, id: NodeId) -> Vec<Json> {
    function
        .operands(id)
        .iter()
        .map(|operand| {
            let ValueId(_) = operand.value;
            let value = function.value(operand.value);
            json!({"name": program.text(operand.name), "from": [value.node.0, value.index]})
        })
        .collect()
}

fn op(
    program: &Program,
    function: &Function,
    id: NodeId,
    node: &Node,
    options: DumpOptions,
) -> Json {
    let results: Vec<Json> = function
        .results(id)
        .map(|value| Json::Object(typed(program, function.value(value))))
        .collect();
    let attributes: Map<String, Json> = function
        .attributes(id)
        .iter()
        .map(|(name, attr)| (program.text(*name).to_owned(), attribute(program, attr)))
        .collect();
    let provenance = program.sources.get(node.provenance);
    let module = program.sources.get_module(provenance.module);
    let mut shown = json!({
        "id": id.0,
        "node": program.text(node.name),
        "op": node.op.name(),
        "spelling": program.text(node.spelling),
        "transparent": node.flags.contains(NodeFlags::TRANSPARENT),
        "constant_work": node.flags.contains(NodeFlags::CONSTANT_WORK),
        "implicit": node.flags.contains(NodeFlags::IMPLICIT),
        "operands": operands(program, function, id),
        "results": results,
        "attributes": attributes,
        "module": program.text(module.path),
        "class": program.text(module.class),
        "location": location(program, node),
    });
    if let Some(object) = shown.as_object_mut() {
        if options.stored {
            let stored: Vec<Json> = function
                .stored(id)
                .iter()
                .map(|(name, spelling)| {
                    json!({"node": program.text(*name), "spelling": program.text(*spelling)})
                })
                .collect();
            object.insert("stored".into(), stored.into());
        }
        let bodies: Vec<Json> = function
            .bodies(id)
            .iter()
            .map(|body| program.text(program.function(*body).name).into())
            .collect();
        if !bodies.is_empty() {
            object.insert("bodies".into(), bodies.into());
        }
    }
    shown
}

fn constant(program: &Program, function: &Function, id: NodeId, node: &Node) -> Json {
    use crate::graph::{ConstantOrigin, Payload};
    let NodeKind::Constant(constant) = node.kind else { return Json::Null };
    let mut shown =
        function.result(id).map_or_else(Map::new, |value| typed(program, function.value(value)));
    let constant = program.constant(constant);
    shown.insert("id".into(), id.0.into());
    shown.insert("node".into(), program.text(node.name).into());
    shown.insert("name".into(), program.text(constant.fqn).into());
    let origin = match constant.origin {
        ConstantOrigin::Parameter => "parameter",
        ConstantOrigin::Buffer => "buffer",
        ConstantOrigin::Tensor => "tensor",
        ConstantOrigin::Literal => "literal",
        ConstantOrigin::Folded => "folded",
    };
    shown.insert("origin".into(), origin.into());
    let values = match &constant.payload {
        Payload::Values(values) => Json::Array(values.iter().map(|&x| real(x)).collect()),
        Payload::Splat(value) => real(*value),
        Payload::Text(text) => program.text(*text).into(),
        Payload::Blob(_) | Payload::Unknown => Json::Null,
    };
    if !values.is_null() {
        shown.insert("values".into(), values);
    }
    Json::Object(shown)
}

/// A number; JSON has no infinities and no NaN, so those are words.
fn real(value: f64) -> Json {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

fn attribute(program: &Program, attr: &Attr) -> Json {
    let dtype = |dtype: DType| Json::from(dtype.name());
    match attr {
        Attr::Int(n) => (*n).into(),
        Attr::Float(x) => real(*x),
        Attr::Bool(b) => (*b).into(),
        Attr::Text(text) => program.text(*text).into(),
        Attr::DType(of) => dtype(*of),
        Attr::Ints(list) => list.iter().copied().map(Json::from).collect(),
        Attr::Floats(list) => list.iter().copied().map(real).collect(),
        Attr::Texts(list) => list.iter().map(|name| Json::from(program.text(*name))).collect(),
        Attr::Symbol(id) => symbol(program, *id),
        Attr::Dynamic => Json::Null,
    }
}

/// The innermost recorded frame.
fn location(program: &Program, node: &Node) -> Json {
    let provenance = program.sources.get(node.provenance);
    match program.sources.frames(provenance.stack).next_back() {
        None => Json::Null,
        Some(frame) => json!({
            "file": program.text(frame.file),
            "line": frame.line,
            "column": (frame.column > 0).then_some(frame.column),
        }),
    }
}
