//! Calls, branches and loops: nested graphs with explicit inputs.

use super::composites;
use super::ir::{Op, Payload, ValueId};
use super::names::value;
use super::ops::Lowering;
use super::plan::Plan;
use crate::graph::{
    Attr, Draft, DraftNode, FunctionId, FunctionRole, Name, NodeKind, Op as Canonical,
};

/// Deepest nesting of regions that becomes functions; the readers' own limits lie below it.
const DEEPEST: u32 = 64;

/// A call of a graph: one node of the composite's op, or a `call`.
pub fn call<'s, 'a>(lowering: &mut Lowering<'s, '_, 'a>, op: &'s Op<'a>, plan: &Plan) {
    let mut node = lowering.node(op, plan);
    let Payload::Callee(callee) = &op.payload else {
        pass_operands(lowering, op, &mut node);
        lowering.push(op, node);
        return;
    };
    let found = lowering.shared.by_name.get(&**callee).copied();
    let graphs = &lowering.shared.module.graphs;
    match found.and_then(|at| graphs.get(at as usize)).and_then(|g| g.composite.as_ref()) {
        Some(composite) => composites::lower(lowering, op, composite, &mut node),
        None => {
            pass_operands(lowering, op, &mut node);
            let names = &mut lowering.program.names;
            let attribute = (names.intern("callee"), Attr::Text(names.intern(callee)));
            node.attributes.push(attribute);
            if found.is_none() {
                let note = format!("`{callee}` is called and not in the file");
                lowering.program.notes.push(note);
            }
        }
    }
    node.bodies.extend(found.map(FunctionId));
    lowering.push(op, node);
}

/// All operands under the name `input`.
fn pass_operands<'a>(lowering: &mut Lowering<'_, '_, 'a>, op: &Op<'a>, node: &mut DraftNode) {
    let input = lowering.program.names.intern("input");
    for &operand in op.operands.of(&lowering.graph.operands) {
        if let Some(place) = lowering.place(operand) {
            node.operands.push((input, place));
        }
    }
}

/// `if`, `while`, groups: each region is a function; outer values it uses become its inputs, and
/// operands of the node.
pub fn regions<'s, 'a>(lowering: &mut Lowering<'s, '_, 'a>, op: &'s Op<'a>, plan: &Plan) {
    let mut node = lowering.node(op, plan);
    let input = lowering.program.names.intern("input");
    for (at, &operand) in op.operands.of(&lowering.graph.operands).iter().enumerate() {
        let name = plan.position(at).map_or(input, |position| position.name);
        if let Some(place) = lowering.place(operand) {
            node.operands.push((name, place));
        }
    }
    for &region in op.regions.of(&lowering.graph.region_ids) {
        let (id, captures) = function(lowering, region, op);
        node.bodies.extend(id);
        for captured in captures {
            if let Some(place) = lowering.place(captured)
                && !node.operands.contains(&(input, place))
            {
                node.operands.push((input, place));
            }
        }
    }
    lowering.push(op, node);
}

/// Lowers a region as a function of its own; gives its id and the outer values it uses.
fn function<'s, 'a>(
    lowering: &mut Lowering<'s, '_, 'a>,
    region: u32,
    op: &Op<'a>,
) -> (Option<FunctionId>, Vec<ValueId>) {
    let graph = lowering.graph;
    let Some(body) = graph.regions.get(region as usize) else { return (None, Vec::new()) };
    let graphs = lowering.shared.module.graphs.len();
    // The id is taken before the body is lowered, since bodies nest.
    let slot = lowering.shared.nested.len();
    if slot > 1 << 20 || lowering.depth > DEEPEST {
        return (None, Vec::new());
    }
    let id = FunctionId((graphs + slot) as u32);
    let parent = lowering.id;
    let role = FunctionRole::Branch { parent };
    let name = format!(
        "{}/{}.{}",
        lowering.program.names.get(lowering.name),
        lowering.program.names.get(lowering.shared.plans.get(op.name, &op.payload).short),
        slot
    );
    let name = lowering.program.names.intern(&name);
    let placeholder = Draft::default().freeze(name, lowering.shared.opset, role.clone());
    lowering.shared.nested.push(placeholder);
    let mut inner = lowering.nested(id);
    for &argument in &body.arguments {
        let text = value(graph, inner.numbers, argument);
        let text = inner.program.names.intern(&text);
        let (dtype, shape) = inner.shared.types.get(graph.values[argument as usize].ty);
        let mut node = DraftNode::new(NodeKind::Input, text);
        node.results.push((text, dtype, shape, None));
        let at = inner.draft.push(node);
        inner.places[argument as usize] = Some((at, 0));
    }
    let results = inner.region(body);
    for result in results {
        let Some(place) = inner.place(result) else { continue };
        let name = value(graph, inner.numbers, result);
        let mut node = DraftNode::new(NodeKind::Output, inner.program.names.intern(&name));
        node.operands.push((Name::EMPTY, place));
        inner.draft.push(node);
    }
    let captures = inner.captures.take().unwrap_or_default();
    let draft = inner.draft;
    let words = lowering.shared.words;
    let draft = super::normal::normalise(draft, lowering.program, &words);
    lowering.shared.nested[slot] = draft.freeze(name, lowering.shared.opset, role);
    (Some(id), captures)
}

/// What a scatter's combiner does with the old and the new element.
pub fn scatter_mode<'a>(lowering: &mut Lowering<'_, '_, 'a>, op: &Op<'a>, node: &mut DraftNode) {
    let graph = lowering.graph;
    let mode = op.regions.of(&graph.region_ids).first().and_then(|&region| {
        let body = graph.regions.get(region as usize)?;
        let work: Vec<&Op<'_>> = body
            .ops
            .iter()
            .filter(|op| !super::program::is_terminator(lowering.shared.plans, op))
            .collect();
        match *work {
            // In place of what was there.
            [] => None,
            [op] => [
                (Canonical::ADD, "add"),
                (Canonical::SUB, "sub"),
                (Canonical::MUL, "mul"),
                (Canonical::DIV, "div"),
                (Canonical::MAXIMUM, "max"),
                (Canonical::MINIMUM, "min"),
            ]
            .into_iter()
            .find(|(canonical, _)| lowering.is_canonical(op, *canonical))
            .map(|(_, mode)| mode),
            _ => None,
        }
    });
    if let Some(mode) = mode {
        let names = &mut lowering.program.names;
        let attribute: (Name, Attr) = (names.intern("mode"), Attr::Text(names.intern(mode)));
        node.attributes.push(attribute);
    }
}
