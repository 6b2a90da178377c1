//! Source lines for a graph that carries none, from an exported program of the same model.
//!
//! Core ML packages name ops after the exported program's nodes where the converter keeps them apart,
//! and weights after the module's parameters. An op is matched, in this order, by the parameter it
//! computes with, by its name, by its place between two matched ops (same canonical op, same shape);
//! what is left takes the line of the nearest matched op that it feeds or is fed by.

use std::collections::{BTreeMap, HashMap};

use crate::graph::{
    Category, Function, FunctionId, FunctionRole, Name, NodeId, NodeKind, Op, Program, ProvenanceId,
};

/// How many ops got a line, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Borrowed {
    /// Ops of the graph (constant work left out).
    pub ops: usize,
    /// Matched by a parameter, a name, or their place between two that are.
    pub matched: usize,
    /// Lines of a neighbour.
    pub near: usize,
}

/// An op of the exported program.
struct Lender {
    op: Op,
    names: Vec<String>,
    shape: Option<Vec<Option<u64>>>,
    provenance: ProvenanceId,
}

/// Gives the ops of `program` the lines of `source`.
pub fn borrow_lines(program: &mut Program, source: &Program) -> Borrowed {
    let mut total = Borrowed::default();
    let Some((lender, _)) = source.linted().find(|(_, f)| f.role == FunctionRole::Entry) else {
        return total;
    };
    let lenders = lenders(source, source.function(lender));
    let parameters = parameters(source, source.function(lender), &lenders);
    let mut copied: HashMap<ProvenanceId, ProvenanceId> = HashMap::new();
    let entries: Vec<usize> = (0..program.functions.len())
        .filter(|&at| program.functions[at].role == FunctionRole::Entry)
        .collect();
    for at in entries {
        let function = &program.functions[at];
        let ops: Vec<NodeId> = function
            .nodes()
            .filter(|(_, node)| {
                node.kind == NodeKind::Op && node.op.category() != Category::Compression
            })
            .map(|(id, _)| id)
            .collect();
        let matched = matches(program, function, &ops, &lenders, &parameters);
        let near = neighbours(function, &ops, &matched);
        total.ops += ops.len();
        total.matched += matched.len();
        total.near += near.len();
        for (node, lender) in matched.iter().chain(&near) {
            let Some(lender) = lenders.get(lender) else { continue };
            let provenance = *copied
                .entry(lender.provenance)
                .or_insert_with(|| copy(program, source, lender.provenance));
            program.functions[at].set_provenance(*node, provenance);
        }
    }
    into_branches(program);
    total
}

/// The ops of the exported program that have a line, by their place.
fn lenders(source: &Program, function: &Function) -> BTreeMap<usize, Lender> {
    function
        .nodes()
        .filter(|(_, node)| node.kind == NodeKind::Op && node.provenance != ProvenanceId::NONE)
        .map(|(id, node)| {
            let mut names = vec![source.text(node.name).to_owned()];
            names.extend(function.stored(id).iter().map(|(name, _)| source.text(*name).to_owned()));
            names.dedup();
            let shape = shape(source, function, id);
            (id.0 as usize, Lender { op: node.op, names, shape, provenance: node.provenance })
        })
        .collect()
}

/// Users of each parameter, under its name with underscores.
fn parameters(
    source: &Program,
    function: &Function,
    lenders: &BTreeMap<usize, Lender>,
) -> HashMap<String, Vec<usize>> {
    let mut users: HashMap<String, Vec<usize>> = HashMap::new();
    for id in function.node_ids() {
        if !lenders.contains_key(&(id.0 as usize)) {
            continue;
        }
        for operand in function.operands(id) {
            let NodeKind::Constant(constant) = function.node(function.producer(operand.value)).kind
            else {
                continue;
            };
            let name = source.text(source.constant(constant).fqn);
            if !name.is_empty() {
                users.entry(name.replace('.', "_")).or_default().push(id.0 as usize);
            }
        }
    }
    users
}

/// Places of the matched ops in the exported program.
fn matches(
    program: &Program,
    function: &Function,
    ops: &[NodeId],
    lenders: &BTreeMap<usize, Lender>,
    parameters: &HashMap<String, Vec<usize>>,
) -> BTreeMap<NodeId, usize> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (at, lender) in lenders {
        for name in &lender.names {
            by_name.entry(name).or_insert(*at);
        }
    }
    let mut matched: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut taken: HashMap<&str, usize> = HashMap::new();
    // A parameter says which module an op is of, whatever a converter called the op.
    for &id in ops {
        let op = function.node(id).op;
        for operand in function.operands(id) {
            let value = function.value(operand.value);
            let Some((key, users)) = parameter(program, function, value.node)
                .and_then(|name| parameters.get_key_value(name.as_str()))
            else {
                continue;
            };
            // A shared weight: its users in order.
            let count = taken.entry(key.as_str()).or_default();
            let fits = |at: &&usize| lenders.get(at).is_some_and(|l| alike(l.op, op));
            let Some(&user) =
                users.iter().filter(fits).nth(*count).or_else(|| users.iter().rfind(fits))
            else {
                continue;
            };
            *count += 1;
            matched.entry(id).or_insert(user);
        }
    }
    // A name the converter kept.
    for &id in ops {
        if matched.contains_key(&id) {
            continue;
        }
        let node = function.node(id);
        let own = program.text(node.name);
        let results = function.results(id).map(|value| program.text(function.value(value).name));
        let stored = function.stored(id).iter().map(|(name, _)| program.text(*name));
        let found = std::iter::once(own).chain(results).chain(stored).map(plain).find_map(|name| {
            let at = *by_name.get(name)?;
            let lender = lenders.get(&at)?;
            let shape = shape(program, function, id);
            // Converters number ops of their own in the same way: what is counted must fit.
            let fits = alike(lender.op, node.op)
                || (same_shape(lender.shape.as_deref(), shape.as_deref())
                    && !counted(name, program, function, id));
            fits.then_some(at)
        });
        if let Some(at) = found {
            matched.insert(id, at);
        }
    }
    between(program, function, ops, lenders, &mut matched);
    matched
}

/// Matches by order: between two matched ops, the same canonical op with the same shape.
fn between(
    program: &Program,
    function: &Function,
    ops: &[NodeId],
    lenders: &BTreeMap<usize, Lender>,
    matched: &mut BTreeMap<NodeId, usize>,
) {
    let mut used: std::collections::BTreeSet<usize> = matched.values().copied().collect();
    // The next matched place after each op, for the end of its gap.
    let mut next = vec![usize::MAX; ops.len() + 1];
    for at in (0..ops.len()).rev() {
        next[at] = matched.get(&ops[at]).copied().unwrap_or(next[at + 1]);
    }
    let mut cursor = 0;
    for (at, &id) in ops.iter().enumerate() {
        if let Some(&place) = matched.get(&id) {
            cursor = cursor.max(place + 1);
            continue;
        }
        let end = next[at + 1];
        if end <= cursor {
            continue;
        }
        let op = function.node(id).op;
        let shape = shape(program, function, id);
        let found = lenders
            .range(cursor..end)
            .take(64)
            .find(|(place, lender)| {
                lender.op == op
                    && same_shape(lender.shape.as_deref(), shape.as_deref())
                    && !used.contains(place)
            })
            .map(|(place, _)| *place);
        if let Some(place) = found {
            matched.insert(id, place);
            used.insert(place);
            cursor = place + 1;
        }
    }
}

/// Lines for the rest: of the nearest matched op that the op feeds, else of one that feeds it.
fn neighbours(
    function: &Function,
    ops: &[NodeId],
    matched: &BTreeMap<NodeId, usize>,
) -> BTreeMap<NodeId, usize> {
    let mut near: BTreeMap<NodeId, usize> = BTreeMap::new();
    let known = |near: &BTreeMap<NodeId, usize>, id: &NodeId| {
        matched.get(id).or_else(|| near.get(id)).copied()
    };
    for &id in ops.iter().rev() {
        if !matched.contains_key(&id)
            && let Some(at) = function.consumers(id).iter().find_map(|user| known(&near, user))
        {
            near.insert(id, at);
        }
    }
    for &id in ops {
        if known(&near, &id).is_none() {
            let operands = function.operands(id).iter();
            let found = operands
                .map(|operand| function.producer(operand.value))
                .find_map(|producer| known(&near, &producer));
            if let Some(at) = found {
                near.insert(id, at);
            }
        }
    }
    near
}

/// Ops of branches take the line of the op that holds the branch.
fn into_branches(program: &mut Program) {
    for at in 0..program.functions.len() {
        let held: Vec<(FunctionId, ProvenanceId)> = program.functions[at]
            .nodes()
            .flat_map(|(id, node)| {
                let bodies = program.functions[at].bodies(id);
                bodies.iter().map(|body| (*body, node.provenance)).collect::<Vec<_>>()
            })
            .collect();
        for (body, provenance) in held {
            let Some(function) = program.functions.get_mut(body.0 as usize) else { continue };
            for id in function.node_ids() {
                if function.node(id).provenance == ProvenanceId::NONE {
                    function.set_provenance(id, provenance);
                }
            }
        }
    }
}

/// The parameter behind a constant or a decompressed weight, under its module's name.
fn parameter(program: &Program, function: &Function, node: NodeId) -> Option<String> {
    let producer = function.node(node);
    let weight = match producer.kind {
        NodeKind::Constant(_) => true,
        _ => producer.op.category() == Category::Compression,
    };
    let name = weight.then(|| function.result(node)).flatten()?;
    let name = plain(program.text(function.value(name).name));
    let name = ["_pcs", "_palettized", "_quantized", "_sparsified", "_to_fp16"]
        .iter()
        .fold(name, |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
    let name =
        ["p_", "b_", "c_"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}

/// A name without what the f16 pass and the converter's helpers hang on it.
fn plain(name: &str) -> &str {
    let mut name = name;
    loop {
        let cut = ["_cast_fp16", "_cast_fp32", "_cast_uint16", "_cast_int16", "_write_state"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix));
        match cut {
            Some(rest) => name = rest,
            None => return name,
        }
    }
}

/// Whether a name is the op's own spelling with a number: the converter may have counted.
fn counted(name: &str, program: &Program, function: &Function, id: NodeId) -> bool {
    let spelling = program.text(function.node(id).spelling);
    name.strip_prefix(spelling)
        .and_then(|rest| rest.strip_prefix('_'))
        .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether one op may stand for the other.
fn alike(a: Op, b: Op) -> bool {
    let norm = |op: Op| op.category() == Category::Normalization;
    let matrix = |op: Op| matches!(op, Op::LINEAR | Op::MATMUL | Op::ADDMM | Op::EINSUM);
    let rows = |op: Op| matches!(op, Op::EMBEDDING | Op::GATHER | Op::INDEX | Op::GATHER_ND);
    let convolution = |op: Op| matches!(op, Op::CONV | Op::CONV_TRANSPOSE);
    a == b
        || (norm(a) && norm(b))
        || (matrix(a) && matrix(b))
        || (rows(a) && rows(b))
        || (convolution(a) && convolution(b))
}

/// Dims of the first result, if its rank is known; `None` for a dim that is no number.
fn shape(program: &Program, function: &Function, id: NodeId) -> Option<Vec<Option<u64>>> {
    let value = function.value(function.result(id)?);
    Some(program.shapes.get(value.shape).dims()?.iter().map(|dim| dim.value()).collect())
}

/// Whether two shapes may be one: same rank, and no dim that differs where both are numbers.
fn same_shape(a: Option<&[Option<u64>]>, b: Option<&[Option<u64>]>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_none() || b.is_none() || a == b)
}

/// Takes a provenance over from another program.
fn copy(program: &mut Program, source: &Program, id: ProvenanceId) -> ProvenanceId {
    let provenance = *source.sources.get(id);
    let names = &mut program.names;
    let mut name = |id: Name| names.intern(source.text(id));
    let frames: Vec<crate::graph::Frame> = source
        .sources
        .frames(provenance.stack)
        .map(|frame| crate::graph::Frame {
            file: name(frame.file),
            function: name(frame.function),
            text: name(frame.text),
            sha256: name(frame.sha256),
            ..*frame
        })
        .collect();
    let module = source.sources.get_module(provenance.module);
    let module = crate::graph::ModulePath {
        path: name(module.path),
        class: name(module.class),
        stack: module.stack.iter().map(|(path, class)| (name(*path), name(*class))).collect(),
    };
    let torch_op = name(provenance.torch_op);
    let frames: Vec<_> = frames.into_iter().map(|frame| program.sources.frame(frame)).collect();
    let stack = program.sources.stack(&frames);
    let module = program.sources.module(module);
    program.sources.provenance(crate::graph::Provenance { stack, module, torch_op })
}
