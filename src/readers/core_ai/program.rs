//! A parsed module → the program: which graph is what, and the order in which they are lowered.

use rustc_hash::FxHashMap;

use super::ir::{Graph, Module, Payload, TypeId};
use super::literal::Input;
use super::names::Numbers;
use super::normal::normalise;
use super::ops::{Lowering, Shared};
use super::origins::Origins;
use super::plan::{Action, Plans};
use super::types::Types;
use crate::graph::{Function, FunctionId, FunctionRole, Program};
use crate::readers::normalize::Words;

/// Lowers every graph of a module into `program`. `input` is where inline constants and resources
/// lie.
pub fn lower(module: &Module<'_>, program: &mut Program, input: Input<'_>) {
    let plans = Plans::of(module, &mut program.names);
    let by_name: FxHashMap<&str, u32> = module
        .graphs
        .iter()
        .enumerate()
        .rev()
        .map(|(at, graph)| (&*graph.name, at as u32))
        .collect();
    let roles = roles(module, &by_name);
    let types = Types::of(module, program);
    let words = Words::new(&mut program.names);
    let mut shared = Shared {
        module,
        plans: &plans,
        types: &types,
        origins: Origins::of(module),
        by_name: &by_name,
        input,
        nested: Vec::new(),
        words,
        opset: program.names.intern(&module.version.map_or(String::new(), |v| v.to_string())),
    };
    let mut functions: Vec<Function> = Vec::with_capacity(module.graphs.len());
    for (at, (graph, role)) in module.graphs.iter().zip(roles).enumerate() {
        let numbers = Numbers::of(module, graph);
        let lowering = Lowering::new(&mut shared, program, graph, &numbers, FunctionId(at as u32));
        let draft = normalise(lowering.graph(), program, &words);
        let name = program.names.intern(&graph.name);
        functions.push(draft.freeze(name, shared.opset, role));
    }
    functions.append(&mut shared.nested);
    program.functions = functions;
    if program.functions.is_empty() {
        program.notes.push("the file holds no graph".to_owned());
    }
    program.notes.extend(module.notes.iter().cloned());
    let located = module.debug.frames.iter().any(|frame| frame.line > 0);
    let key = program.names.intern("source-locations");
    let value = program.names.intern(if located { "recorded" } else { "none" });
    program.metadata.push((key, value));
}

/// Why each graph is in the file.
fn roles(module: &Module<'_>, by_name: &FxHashMap<&str, u32>) -> Vec<FunctionRole> {
    let graphs = &module.graphs;
    let calls: Vec<Vec<u32>> = graphs.iter().map(|graph| callees(graph, by_name)).collect();
    let mut called = vec![false; graphs.len()];
    for &callee in calls.iter().flatten() {
        called[callee as usize] = true;
    }
    let public = |at: usize| !graphs[at].private && graphs[at].composite.is_none();
    // Specialising leaves generic helpers behind that are not private: nobody calls them, they must
    // not be inlined and, unlike entry points, their results have no public name.
    let entry = |at: usize| {
        public(at)
            && !called[at]
            && !graphs[at].no_inline
            && (graphs[at].outputs.is_empty()
                || graphs[at].outputs.iter().any(|port| !port.name.is_empty()))
    };
    let mut entries: Vec<usize> = (0..graphs.len()).filter(|&at| entry(at)).collect();
    if entries.is_empty() {
        // Pasted or hand-written programs name nothing.
        entries = (0..graphs.len()).filter(|&at| public(at) && !called[at]).collect();
    }
    if entries.is_empty() {
        entries = (0..graphs.len()).filter(|&at| public(at)).collect();
    }
    let mut roles = vec![FunctionRole::Unreachable; graphs.len()];
    for &at in &entries {
        roles[at] = FunctionRole::Entry;
    }
    let mut open: Vec<usize> = entries.iter().rev().copied().collect();
    while let Some(at) = open.pop() {
        for &callee in &calls[at] {
            let callee = callee as usize;
            if roles[callee] != FunctionRole::Unreachable {
                continue;
            }
            // What a reference body calls is part of that body.
            roles[callee] =
                if graphs[callee].composite.is_some() || roles[at] == FunctionRole::Composite {
                    FunctionRole::Composite
                } else {
                    FunctionRole::Branch { parent: FunctionId(at as u32) }
                };
            open.push(callee);
        }
    }
    roles
}

/// The graphs that a graph calls, in order.
fn callees(graph: &Graph<'_>, by_name: &FxHashMap<&str, u32>) -> Vec<u32> {
    let mut callees = Vec::new();
    for op in graph.regions.iter().flat_map(|region| &region.ops) {
        if let Payload::Callee(callee) = &op.payload
            && let Some(&at) = by_name.get(&**callee)
            && !callees.contains(&at)
        {
            callees.push(at);
        }
    }
    callees
}

/// Whether a type orders state access and carries no data.
pub(super) fn is_token(module: &Module<'_>, ty: TypeId) -> bool {
    matches!(module.types.get(ty as usize), Some(super::ir::Type::Token))
}

/// Whether an op only passes a region's results on.
pub(super) fn is_terminator(plans: &Plans, op: &super::ir::Op<'_>) -> bool {
    plans.get(op.name, &op.payload).action == Action::Terminator
}
