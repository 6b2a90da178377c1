//! One graph or region → a draft: ops in order, constants where they are first used.

use rustc_hash::FxHashMap;

use super::ir::{Graph, Literal, Module, Op, Payload, Port, Region, Setting, Type, ValueId};
use super::literal::{Input, payload};
use super::names::{NodeNames, Numbers, value};
use super::origins::Origins;
use super::plan::{Action, Plan, Plans};
use super::types::Types;
use super::{control, settings, state};
use crate::graph::{
    Attr, Constant, ConstantOrigin, DType, Dim, Draft, DraftNode, DraftOperand, Function,
    FunctionId, Name, NodeFlags, NodeKind, Op as Canonical, Program, ProvenanceId, ShapeId, Symbol,
    SymbolId,
};
use crate::readers::normalize::Words;

/// What all graphs of a module share while they are lowered.
pub struct Shared<'m, 'a> {
    /// The parsed module.
    pub module: &'m Module<'a>,
    /// How op names are lowered.
    pub plans: &'m Plans,
    /// Dtypes and shapes by type.
    pub types: &'m Types,
    /// Provenance by location.
    pub origins: Origins,
    /// Graph index by name.
    pub by_name: &'m FxHashMap<&'m str, u32>,
    /// Where constants' bytes lie.
    pub input: Input<'m>,
    /// Functions made of regions; their ids follow those of the graphs.
    pub nested: Vec<Function>,
    /// The IR version, as an opset.
    pub opset: Name,
    /// Canonical words.
    pub words: Words,
}

/// The lowering of one graph or of one region of it.
pub struct Lowering<'s, 'm, 'a> {
    pub(super) shared: &'s mut Shared<'m, 'a>,
    pub(super) program: &'s mut Program,
    pub(super) graph: &'s Graph<'a>,
    pub(super) numbers: &'s Numbers,
    pub(super) draft: Draft,
    pub(super) names: NodeNames,
    /// This function's id.
    pub(super) id: FunctionId,
    /// Where each value of the graph is in the draft.
    pub(super) places: Vec<Option<DraftOperand>>,
    /// The constant that a value is, if it is one: `(region, op)`.
    pub(super) constants: std::rc::Rc<FxHashMap<ValueId, (u32, u32)>>,
    /// The node that last wrote each state, by handle value.
    pub(super) written: FxHashMap<ValueId, u32>,
    /// Values of the enclosing region that this one uses, in order of first use; `None` for a graph
    /// itself.
    pub(super) captures: Option<Vec<ValueId>>,
    /// How many regions enclose this one.
    pub(super) depth: u32,
    /// The graph's name.
    pub(super) name: Name,
}

impl<'s, 'm, 'a> Lowering<'s, 'm, 'a> {
    /// Prepares the lowering of a graph.
    pub fn new(
        shared: &'s mut Shared<'m, 'a>,
        program: &'s mut Program,
        graph: &'s Graph<'a>,
        numbers: &'s Numbers,
        id: FunctionId,
    ) -> Lowering<'s, 'm, 'a> {
        let name = program.names.intern(&graph.name);
        let mut constants = FxHashMap::default();
        for (at, region) in graph.regions.iter().enumerate() {
            for (index, op) in region.ops.iter().enumerate() {
                if matches!(op.payload, Payload::Constant(_)) && op.results.len == 1 {
                    constants.insert(op.results.start, (at as u32, index as u32));
                }
            }
        }
        Lowering {
            shared,
            program,
            graph,
            numbers,
            draft: Draft::default(),
            names: NodeNames::default(),
            id,
            places: vec![None; graph.values.len()],
            constants: std::rc::Rc::new(constants),
            written: FxHashMap::default(),
            captures: None,
            depth: 0,
            name,
        }
    }

    /// Lowers the whole graph.
    pub fn graph(mut self) -> Draft {
        let graph = self.graph;
        let Some(body) = graph.regions.first() else { return self.draft };
        for (at, &argument) in body.arguments.iter().enumerate() {
            let unnamed = Port::default();
            let port = graph.inputs.get(at).unwrap_or(&unnamed);
            self.input(argument, port);
        }
        let results = self.region(body);
        self.outputs(&results);
        self.draft
    }

    /// Lowers the ops of a region; gives the operands of its terminator.
    pub(super) fn region(&mut self, region: &'s Region<'a>) -> Vec<ValueId> {
        let mut results = Vec::new();
        for op in &region.ops {
            let plan = self.shared.plans.get(op.name, &op.payload);
            match plan.action {
                Action::Constant | Action::Drop => {}
                Action::Terminator => {
                    results = op.operands.of(&self.graph.operands).to_vec();
                }
                Action::ReadState => state::read(self, op, plan),
                Action::WriteState => state::write(self, op, plan),
                Action::Call => control::call(self, op, plan),
                Action::Control => control::regions(self, op, plan),
                Action::Scatter | Action::Plain => self.plain(op, plan),
            }
        }
        results
    }

    fn input(&mut self, argument: ValueId, port: &Port<'_>) {
        let ty = self.graph.values[argument as usize].ty;
        if super::program::is_token(self.shared.module, ty) {
            return;
        }
        let is_state = matches!(self.shared.module.types.get(ty as usize), Some(Type::Handle(_)));
        let name = if port.name.is_empty() {
            value(self.graph, self.numbers, argument)
        } else {
            port.name.clone().into_owned()
        };
        let name = self.program.names.intern(&name);
        let unique = self.names.unique(self.program, name);
        let kind = if is_state { NodeKind::State } else { NodeKind::Input };
        let (dtype, shape) = self.shared.types.get(ty);
        let shape = self.with_symbols(name, shape);
        let mut node = DraftNode::new(kind, unique);
        node.results.push((name, dtype, shape, None));
        node.attributes = self.layout(ty);
        for (key, setting) in &port.attributes {
            if let Setting::Text(text) = setting {
                let pair = (self.program.names.intern(key), self.program.names.intern(text));
                node.attributes.push((pair.0, Attr::Text(pair.1)));
            }
        }
        let at = self.draft.push(node);
        self.places[argument as usize] = Some((at, 0));
    }

    /// The same shape with a symbol for each size that only the caller knows. The format stores no
    /// bounds and does not say which sizes are equal.
    fn with_symbols(&mut self, name: Name, shape: ShapeId) -> ShapeId {
        let Some(dims) = self.program.shapes.get(shape).dims() else { return shape };
        if dims.iter().all(|dim| *dim != Dim::Unknown) {
            return shape;
        }
        let mut dims = dims.to_vec();
        for (axis, dim) in dims.iter_mut().enumerate().filter(|(_, dim)| **dim == Dim::Unknown) {
            let text = format!("{}.{axis}", self.program.names.get(name));
            let name = self.program.names.intern(&text);
            let known = self.program.shapes.symbols.iter().position(|symbol| symbol.name == name);
            let id = known.unwrap_or_else(|| {
                let symbol = Symbol { name, min: 0, max: None, data_dependent: false };
                self.program.shapes.symbols.push(symbol);
                self.program.shapes.symbols.len() - 1
            });
            *dim = Dim::Symbol(SymbolId(id as u32));
        }
        self.program.shapes.intern(&dims)
    }

    /// Hardware constraints of a type, as attributes of the input or output that has it.
    fn layout(&mut self, ty: u32) -> Vec<(Name, Attr)> {
        let Some(encoding) = self.shared.module.tensor(ty).and_then(|t| t.encoding.as_deref())
        else {
            return Vec::new();
        };
        let names = &mut self.program.names;
        let mut attributes = Vec::new();
        for (name, list) in
            [("alignments", &encoding.alignments), ("interleave", &encoding.interleave)]
        {
            if !list.is_empty() {
                let list = list.iter().map(|&n| Some(n)).collect();
                attributes.push((names.intern(name), Attr::Ints(list)));
            }
        }
        let words = [
            ("backing", Some(&encoding.backing)),
            ("sparse", encoding.sparse.as_ref()),
            ("encoding", encoding.other.as_ref()),
        ];
        for (name, word) in words {
            if let Some(word) = word.filter(|word| !word.is_empty()) {
                attributes.push((names.intern(name), Attr::Text(names.intern(word))));
            }
        }
        attributes
    }

    fn outputs(&mut self, results: &[ValueId]) {
        for (at, &result) in results.iter().enumerate() {
            let ty = self.graph.values[result as usize].ty;
            let port = self.graph.outputs.get(at);
            let name = port.map(|port| port.name.clone()).unwrap_or_default();
            let mut node = DraftNode::new(NodeKind::Output, Name::EMPTY);
            let place = if super::program::is_token(self.shared.module, ty) {
                // A token result says that the state of that name has been written.
                let Some(place) = self.written_state(&name) else { continue };
                node.flags.insert(NodeFlags::MUTATION);
                place
            } else {
                let Some(place) = self.place(result) else { continue };
                place
            };
            let name = if name.is_empty() {
                value(self.graph, self.numbers, result)
            } else {
                name.into_owned()
            };
            node.name = self.program.names.intern(&name);
            node.operands.push((Name::EMPTY, place));
            node.attributes = self.layout(ty);
            self.draft.push(node);
        }
    }

    /// The last write to the state of a name, if there was one.
    fn written_state(&self, name: &str) -> Option<DraftOperand> {
        let at = self.graph.inputs.iter().position(|port| port.name == name)?;
        let handle = *self.graph.regions.first()?.arguments.get(at)?;
        self.written.get(&handle).map(|&node| (node, 0))
    }

    /// Where a value is in this draft; constants and values of an enclosing region are brought in.
    pub(super) fn place(&mut self, id: ValueId) -> Option<DraftOperand> {
        if let Some(place) = self.places.get(id as usize).copied().flatten() {
            return Some(place);
        }
        let place = match self.constants.get(&id).copied() {
            Some((region, op)) => self.constant(id, region, op)?,
            None => self.capture(id)?,
        };
        self.places[id as usize] = Some(place);
        Some(place)
    }

    fn constant(&mut self, id: ValueId, region: u32, op: u32) -> Option<DraftOperand> {
        let graph = self.graph;
        let op = &graph.regions.get(region as usize)?.ops[op as usize];
        let Payload::Constant(literal) = &op.payload else { return None };
        let ty = graph.values[id as usize].ty;
        let (dtype, shape) = self.shared.types.get(ty);
        let payload = match self.shared.module.tensor(ty) {
            Some(tensor) => payload(self.program, literal, tensor, self.shared.input),
            None => crate::graph::Payload::Unknown,
        };
        let name = match literal {
            Literal::Resource { name, .. } if &**name != "__elided__" => name.clone().into_owned(),
            _ => value(graph, self.numbers, id),
        };
        let name = self.program.names.intern(&name);
        let name = self.names.unique(self.program, name);
        let constant = self.program.add_constant(Constant {
            dtype,
            shape,
            origin: ConstantOrigin::Folded,
            fqn: Name::EMPTY,
            payload,
        });
        let mut node = DraftNode::new(NodeKind::Constant(constant), name);
        node.provenance = self.provenance(op);
        node.results.push((Name::EMPTY, dtype, shape, None));
        Some((self.draft.push(node), 0))
    }

    /// A value of the enclosing region becomes an input of this one.
    fn capture(&mut self, id: ValueId) -> Option<DraftOperand> {
        let graph = self.graph;
        let ty = graph.values.get(id as usize)?.ty;
        self.captures.as_mut()?.push(id);
        let name = self.program.names.intern(&value(graph, self.numbers, id));
        let (dtype, shape) = self.shared.types.get(ty);
        let is_state = matches!(self.shared.module.types.get(ty as usize), Some(Type::Handle(_)));
        let kind = if is_state { NodeKind::State } else { NodeKind::Input };
        let mut node = DraftNode::new(kind, name);
        node.results.push((name, dtype, shape, None));
        Some((self.draft.push(node), 0))
    }

    pub(super) fn provenance(&mut self, op: &Op<'_>) -> ProvenanceId {
        self.shared.origins.get(self.shared.module, self.program, op.location)
    }

    /// A node for an op, with name, spelling, provenance and results; operands are the caller's.
    pub(super) fn node(&mut self, op: &Op<'_>, plan: &Plan) -> DraftNode {
        let name =
            self.names.op(self.shared.module, self.graph, self.numbers, self.program, op, plan);
        let mut node = DraftNode::new(NodeKind::Op, name);
        node.op = plan.op;
        node.spelling = plan.spelling;
        node.provenance = self.provenance(op);
        node.attributes.extend(plan.set.iter().cloned());
        for id in op.results.range() {
            let (dtype, shape) = self.shared.types.get(self.graph.values[id].ty);
            if dtype != DType::Token {
                node.results.push((Name::EMPTY, dtype, shape, None));
            }
        }
        node
    }

    /// Adds a node and says where the results of its op are now.
    pub(super) fn push(&mut self, op: &Op<'_>, node: DraftNode) -> u32 {
        let at = self.draft.push(node);
        let mut index = 0;
        for id in op.results.range() {
            if super::program::is_token(self.shared.module, self.graph.values[id].ty) {
                continue;
            }
            self.places[id] = Some((at, index));
            index += 1;
        }
        at
    }

    fn plain(&mut self, op: &'s Op<'a>, plan: &Plan) {
        let mut node = self.node(op, plan);
        for (at, &operand) in op.operands.of(&self.graph.operands).iter().enumerate() {
            let Some(position) = plan.position(at) else { continue };
            if position.attribute
                && let Some(attr) = self.constant_attribute(operand, position.text)
            {
                node.attributes.push((position.name, attr));
                continue;
            }
            let Some(place) = self.place(operand) else { continue };
            node.operands.push((position.name, place));
            if position.attribute && !position.operand {
                node.attributes.push((position.name, Attr::Dynamic));
            }
        }
        if plan.action == Action::Scatter {
            control::scatter_mode(self, op, &mut node);
        }
        settings::finish(self, &mut node);
        self.push(op, node);
    }

    /// The value of a constant as an attribute.
    pub(super) fn constant_attribute(&mut self, id: ValueId, name: &str) -> Option<Attr> {
        let &(region, at) = self.constants.get(&id)?;
        let op = &self.graph.regions[region as usize].ops[at as usize];
        let Payload::Constant(literal) = &op.payload else { return None };
        let tensor = self.shared.module.tensor(self.graph.values[id as usize].ty)?;
        let numbers = super::literal::numbers(literal, tensor, self.shared.input)?;
        Some(settings::attribute(name, tensor, &numbers))
    }

    /// The shape of an operand that was added to a node.
    pub(super) fn shape_of(&self, place: DraftOperand) -> ShapeId {
        let node = self.draft.nodes.get(place.0 as usize);
        let result = node.and_then(|node| node.results.get(place.1 as usize));
        result.map_or(ShapeId::UNKNOWN, |result| result.2)
    }

    /// The value that a region's terminator yields, for tests of combiners.
    pub(super) fn is_canonical(&self, op: &Op<'_>, canonical: Canonical) -> bool {
        self.shared.plans.get(op.name, &op.payload).op == canonical
    }
}

impl<'s, 'm, 'a> Lowering<'s, 'm, 'a> {
    /// The lowering of a region inside this one.
    pub(super) fn nested(&mut self, id: FunctionId) -> Lowering<'_, 'm, 'a> {
        Lowering {
            shared: &mut *self.shared,
            program: &mut *self.program,
            graph: self.graph,
            numbers: self.numbers,
            draft: Draft::default(),
            names: NodeNames::default(),
            id,
            places: vec![None; self.graph.values.len()],
            constants: self.constants.clone(),
            written: FxHashMap::default(),
            captures: Some(Vec::new()),
            depth: self.depth + 1,
            name: self.name,
        }
    }
}
