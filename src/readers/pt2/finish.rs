//! From drafts to functions: graph inputs become constants, states and inputs, outputs are added,
//! the passes run, and everything is frozen.

use std::path::Path;

use super::super::ReadError;
use super::archive::Archive;
use super::argument::{Argument, SymArgument};
use super::builder::{Builder, GraphDraft, Table};
use super::constants::Store;
use super::document::Rest;
use super::settle::settle;
use super::signature::Signature;
use crate::graph::{
    Constant, ConstantOrigin, DraftNode, DraftOperand, FunctionId, FunctionRole, Name, NodeKind,
    Program,
};

/// Where a document lies.
pub struct Place<'r, 'p> {
    /// The archive's file.
    pub path: &'p Path,
    /// The archive.
    pub archive: &'r mut Archive<'p>,
    /// The folder above `models/`.
    pub root: &'r str,
    /// Stem of the document.
    pub stem: &'r str,
    /// Name of its function.
    pub name: &'r str,
}

/// Finishes the program that `builder` holds.
///
/// # Errors
/// [`ReadError`] if the signature does not fit the graph.
pub fn finish(
    mut builder: Builder,
    rest: Rest,
    place: Place<'_, '_>,
) -> Result<Program, ReadError> {
    let broken = |what: String| ReadError::broken(place.path, what);
    let Some(signature) = rest.signature else {
        return Err(broken("the document has no `signature`".into()));
    };
    if builder.graphs.is_empty() {
        return Err(broken("the document has no `graph`".into()));
    }
    builder.ranges(&rest.ranges);
    describe(&mut builder.program, &rest.torch_version, &rest.schema_version, rest.decomposed);
    let mut notes = Vec::new();
    let mut store = Store::read(place.archive, place.root, place.stem, &mut notes);
    let mut graphs = std::mem::take(&mut builder.graphs);
    constants(&mut builder, &mut graphs[0], &signature, &mut store, place.archive);
    store.notes(&mut notes);
    builder.program.notes.append(&mut notes);
    let offset = builder.program.functions.len() as u32;
    let name = builder.program.names.intern(place.name);
    // Nested graphs have higher numbers than the graph around them, so what a graph passes on is
    // settled before its branches look at it.
    for at in 0..graphs.len() {
        pass_on_constants(&mut graphs, at);
        let mut graph = std::mem::take(&mut graphs[at]);
        let writes = outputs(&mut graph, (at == 0).then_some(&signature)).map_err(&broken)?;
        settle(&mut builder, &mut graph.draft);
        let role = match graph.parent {
            None => FunctionRole::Entry,
            Some(parent) => FunctionRole::Branch { parent: FunctionId(parent.0 + offset) },
        };
        let _ = writes;
        for node in &mut graph.draft.nodes {
            for body in &mut node.bodies {
                body.0 += offset;
            }
        }
        let name = if at == 0 { name } else { graph.name };
        let function = graph.draft.freeze(name, Name::EMPTY, role);
        builder.program.functions.push(function);
    }
    Ok(builder.program)
}

fn describe(program: &mut Program, torch: &str, schema: &str, decomposed: bool) {
    if !torch.is_empty() {
        program.producer = format!("torch {torch}");
    }
    let decomposed = if decomposed { "true" } else { "false" };
    for (key, value) in
        [("torch-version", torch), ("schema-version", schema), ("decomposed", decomposed)]
    {
        if !value.is_empty() {
            let entry = (program.names.intern(key), program.names.intern(value));
            program.metadata.push(entry);
        }
    }
}

/// Turns the graph inputs that the signature says are weights into constants.
fn constants(
    builder: &mut Builder,
    graph: &mut GraphDraft,
    signature: &Signature,
    store: &mut Store,
    archive: &mut Archive<'_>,
) {
    let program = &mut builder.program;
    for spec in &signature.input_specs {
        let (arg, fqn, origin) = if let Some(spec) = &spec.parameter {
            (&spec.arg.name, &spec.parameter_name, ConstantOrigin::Parameter)
        } else if let Some(spec) = &spec.buffer {
            (&spec.arg.name, &spec.buffer_name, ConstantOrigin::Buffer)
        } else if let Some(spec) = &spec.tensor_constant {
            (&spec.arg.name, &spec.tensor_constant_name, ConstantOrigin::Tensor)
        } else {
            continue;
        };
        let Some(&(at, 0)) = program.names.find(arg).and_then(|name| graph.values.get(&name))
        else {
            continue;
        };
        let Some(node) = graph.draft.nodes.get_mut(at as usize) else { continue };
        if node.kind != NodeKind::Input {
            continue;
        }
        let Some(&(_, dtype, shape, _)) = node.results.first() else { continue };
        let parameter = origin == ConstantOrigin::Parameter;
        let payload = store.payload(archive, program, fqn, parameter);
        let fqn = program.names.intern(fqn);
        let id = program.add_constant(Constant { dtype, shape, origin, fqn, payload });
        node.kind = NodeKind::Constant(id);
    }
}

/// Gives the branches of a graph the constants that the graph hands them: a weight stays a weight.
fn pass_on_constants(graphs: &mut [GraphDraft], at: usize) {
    let mut handed: Vec<(usize, usize, NodeKind)> = Vec::new();
    let graph = &graphs[at];
    for node in graph.draft.nodes.iter().filter(|node| !node.bodies.is_empty()) {
        for body in &node.bodies {
            let Some(nested) = graphs.get(body.0 as usize) else { continue };
            let count = nested.inputs.len();
            // The last operands are the graph's inputs (a condition may come before them).
            let skip = node.operands.len().saturating_sub(count);
            for (slot, (_, (producer, _))) in node.operands.iter().skip(skip).enumerate() {
                let kind = graph.draft.nodes.get(*producer as usize).map(|node| node.kind);
                if let Some(kind @ NodeKind::Constant(_)) = kind {
                    handed.push((body.0 as usize, slot, kind));
                }
            }
        }
    }
    let loops: Vec<usize> = graph
        .draft
        .nodes
        .iter()
        .filter(|node| node.op == crate::graph::Op::WHILE)
        .flat_map(|node| {
            // What a loop carries changes from round to round.
            let carried = node.results.len();
            node.bodies.iter().map(move |body| (body.0 as usize, carried))
        })
        .flat_map(|(body, carried)| (0..carried).map(move |slot| body * 1_000_003 + slot))
        .collect();
    for (body, slot, kind) in handed {
        if loops.contains(&(body * 1_000_003 + slot)) {
            continue;
        }
        let nested = &mut graphs[body];
        let Some(&input) = nested.inputs.get(slot) else { continue };
        if let Some(node) = nested.draft.nodes.get_mut(input as usize) {
            node.kind = kind;
        }
    }
}

/// Adds output nodes; gives the writes that the signature names: `(target input, new value)`.
fn outputs(
    graph: &mut GraphDraft,
    signature: Option<&Signature>,
) -> Result<Vec<(u32, DraftOperand)>, String> {
    let mut writes = Vec::new();
    let _ = signature;
    let no_names = Table::<Name, ()>::default();
    let _ = no_names;
    for output in std::mem::take(&mut graph.outputs) {
        let name = match output {
            Argument::Tensor(name) | Argument::Sym(SymArgument::Name(name), _) => name,
            // A constant result: nothing of the graph.
            _ => continue,
        };
        let Some(&place) = graph.values.get(&name) else {
            return Err("an output names a value that nothing makes".into());
        };
        let mut node = DraftNode::new(NodeKind::Output, name);
        node.operands = vec![(Name::EMPTY, place)];
        graph.draft.push(node);
    }
    writes.clear();
    Ok(writes)
}
