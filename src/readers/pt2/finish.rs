//! From drafts to functions: graph inputs become constants, states and inputs, outputs are added,
//! the passes run, and everything is frozen.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::ReadError;
use super::archive::Archive;
use super::argument::{Argument, SymArgument};
use super::builder::{Builder, GraphDraft, Table};
use super::constants::Store;
use super::document::Rest;
use super::functional::{functional, write_mark};
use super::settle::settle;
use super::signature::{OutputSpec, Signature};
use crate::graph::{
    Attr, Constant, ConstantOrigin, Dim, Draft, DraftNode, FunctionId, FunctionRole, Name,
    NodeFlags, NodeKind, Op, Program,
};
use crate::readers::normalize::{self, Context, Write};

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
    store.leave_out(&builder.source_map.dropped);
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
        outputs(&mut graph, (at == 0).then_some(&signature), &builder.program).map_err(&broken)?;
        settle(&mut builder, &mut graph.draft);
        let words = builder.words;
        let mut context = Context { program: &mut builder.program, words: &words };
        functional(&mut graph, &mut context);
        let mut draft = std::mem::take(&mut graph.draft);
        graph.values = Table::default();
        let (writes, names) = take_writes(&mut draft, context.program);
        draft = normalize::states(draft, &writes, &names, &mut context);
        draft = normalize::linear(draft, &mut context);
        normalize::conv(&mut draft, &mut context);
        normalize::fills(&mut draft, &mut context);
        draft = normalize::promote(draft, &mut context);
        tidy(&mut draft, &graph.sizes);
        let role = match graph.parent {
            None => FunctionRole::Entry,
            Some(parent) => FunctionRole::Branch { parent: FunctionId(parent.0 + offset) },
        };
        for node in &mut draft.nodes {
            for body in &mut node.bodies {
                body.0 += offset;
            }
        }
        let name = if at == 0 { name } else { graph.name };
        let function = draft.freeze(name, Name::EMPTY, role);
        builder.program.functions.push(function);
    }
    Ok(builder.program)
}

/// The writes that marks carry, and the names of what they write. The marks go.
fn take_writes(draft: &mut Draft, program: &Program) -> (Vec<Write>, Vec<Name>) {
    let mut writes: Vec<Write> = Vec::new();
    for node in &mut draft.nodes {
        if node.kind == NodeKind::Output && node.flags.contains(NodeFlags::MUTATION) {
            if let [(_, (target, _)), (_, value)] = node.operands.as_slice()
                && writes.iter().all(|write| write.target != *target)
            {
                writes.push(Write { target: *target, value: *value });
            }
            node.removed = true;
            node.operands.clear();
        }
    }
    writes.sort_unstable_by_key(|write| write.target);
    let names = writes
        .iter()
        .map(|write| match draft.nodes.get(write.target as usize) {
            Some(node) => match node.kind {
                NodeKind::Constant(id) => program.constant(id).fqn,
                _ => node.name,
            },
            None => Name::EMPTY,
        })
        .collect();
    (writes, names)
}

/// Drops results that only a backward pass would use, and names the symbols that settings are.
fn tidy(draft: &mut Draft, sizes: &Table<Name, Dim>) {
    let many = |node: &DraftNode| {
        node.results.len() > 1
            && matches!(
                node.op,
                Op::LAYER_NORM
                    | Op::RMS_NORM
                    | Op::GROUP_NORM
                    | Op::BATCH_NORM
                    | Op::INSTANCE_NORM
                    | Op::SDPA
                    | Op::MAX_POOL
                    | Op::IDENTITY
                    | Op::LOG_SIGMOID
            )
    };
    if draft.nodes.iter().any(many) {
        let mut used = vec![0u32; draft.nodes.len()];
        for node in draft.nodes.iter().filter(|node| !node.removed) {
            for (_, (producer, result)) in &node.operands {
                let used = &mut used[*producer as usize];
                *used = (*used).max(*result);
            }
        }
        for (node, used) in draft.nodes.iter_mut().zip(used) {
            if many(node) {
                node.results.truncate(used as usize + 1);
            }
        }
    }
    for at in 0..draft.nodes.len() {
        for slot in 0..draft.nodes[at].attributes.len() {
            let node = &draft.nodes[at];
            let (name, Attr::Dynamic) = node.attributes[slot] else { continue };
            let symbol = node
                .operand(name)
                .and_then(|(from, result)| {
                    draft.nodes.get(from as usize)?.results.get(result as usize)
                })
                .and_then(|result| sizes.get(&result.0));
            if let Some(Dim::Symbol(symbol)) = symbol {
                draft.nodes[at].attributes[slot].1 = Attr::Symbol(*symbol);
            }
        }
    }
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
    // What a loop carries changes from round to round.
    let carried: BTreeSet<(usize, usize)> = graph
        .draft
        .nodes
        .iter()
        .filter(|node| node.op == Op::WHILE)
        .flat_map(|node| node.bodies.iter().map(|body| (body.0 as usize, node.results.len())))
        .flat_map(|(body, count)| (0..count).map(move |slot| (body, slot)))
        .collect();
    for (body, slot, kind) in handed {
        if carried.contains(&(body, slot)) {
            continue;
        }
        let nested = &mut graphs[body];
        let Some(&input) = nested.inputs.get(slot) else { continue };
        if let Some(node) = nested.draft.nodes.get_mut(input as usize) {
            node.kind = kind;
        }
    }
}

/// Adds output nodes, and marks for the writes that the signature names.
fn outputs(
    graph: &mut GraphDraft,
    signature: Option<&Signature>,
    program: &Program,
) -> Result<(), String> {
    let specs = signature.map(|signature| signature.output_specs.as_slice()).unwrap_or_default();
    for (at, output) in std::mem::take(&mut graph.outputs).into_iter().enumerate() {
        let name = match output {
            Argument::Tensor(name) | Argument::Sym(SymArgument::Name(name), _) => name,
            // A constant result: nothing of the graph.
            _ => continue,
        };
        let Some(&place) = graph.values.get(&name) else {
            return Err(format!("an output is `{}`, which nothing makes", program.names.get(name)));
        };
        let target = match (specs.get(at), signature) {
            (Some(spec), Some(signature)) => written(spec, signature)
                .and_then(|input| program.names.find(input))
                .and_then(|input| graph.values.get(&input).copied()),
            _ => None,
        };
        let is_placeholder = |at: u32| {
            graph.draft.nodes.get(at as usize).is_some_and(|node| node.kind != NodeKind::Op)
        };
        match target {
            Some((target, 0)) if is_placeholder(target) => {
                graph.draft.push(write_mark(target, place));
            }
            _ => {
                let mut node = DraftNode::new(NodeKind::Output, name);
                node.operands = vec![(Name::EMPTY, place)];
                graph.draft.push(node);
            }
        }
    }
    Ok(())
}

/// The graph input that an output is the new value of.
fn written<'s>(spec: &'s OutputSpec, signature: &'s Signature) -> Option<&'s str> {
    if let Some(mutation) = &spec.user_input_mutation {
        return Some(&mutation.user_input_name);
    }
    let inputs = signature.input_specs.iter();
    if let Some(mutation) = &spec.buffer_mutation {
        let mut buffers = inputs.filter_map(|input| input.buffer.as_ref());
        return buffers
            .find(|buffer| buffer.buffer_name == mutation.buffer_name)
            .map(|buffer| buffer.arg.name.as_str());
    }
    let mutation = spec.parameter_mutation.as_ref()?;
    let mut parameters = inputs.filter_map(|input| input.parameter.as_ref());
    parameters
        .find(|parameter| parameter.parameter_name == mutation.parameter_name)
        .map(|parameter| parameter.arg.name.as_str())
}
