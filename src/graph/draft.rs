//! A function while it is built: nodes can still be absorbed, rewired and marked.
//!
//! Readers push nodes in program order; normalisation passes edit; [`Draft::freeze`] makes the
//! immutable [`Function`]. A draft is plain vectors, so that a pass over a million nodes is one loop.

use petgraph::graph::{DiGraph, NodeIndex};

use super::function::{
    Function, FunctionRole, Node, NodeFlags, NodeId, NodeKind, Operand, Use, Value,
};
use super::{Attr, DType, FunctionId, Name, Op, ProvenanceId, ShapeId};

/// A result of a draft node: `(node, result index)`.
pub type DraftOperand = (u32, u32);

/// A node of a draft.
#[derive(Debug, Clone)]
pub struct DraftNode {
    /// What it is.
    pub kind: NodeKind,
    /// Canonical op.
    pub op: Op,
    /// Bits.
    pub flags: NodeFlags,
    /// Op name as the file has it.
    pub spelling: Name,
    /// Node name as the format has it.
    pub name: Name,
    /// Where it comes from.
    pub provenance: ProvenanceId,
    /// Operands under canonical names.
    pub operands: Vec<(Name, DraftOperand)>,
    /// Results: name, dtype, shape, strides if not contiguous.
    pub results: Vec<(Name, DType, ShapeId, Option<ShapeId>)>,
    /// Attributes under canonical names.
    pub attributes: Vec<(Name, Attr)>,
    /// Nested graphs.
    pub bodies: Vec<FunctionId>,
    /// `(name, spelling)` of stored ops absorbed so far (its own included once anything was).
    pub stored: Vec<(Name, Name)>,
    /// Absorbed or dead: left out when frozen.
    pub removed: bool,
}

impl DraftNode {
    /// A node of a kind with a name and nothing else.
    pub fn new(kind: NodeKind, name: Name) -> DraftNode {
        DraftNode {
            kind,
            op: Op::UNKNOWN,
            flags: NodeFlags::default(),
            spelling: Name::EMPTY,
            name,
            provenance: ProvenanceId::NONE,
            operands: Vec::new(),
            results: Vec::new(),
            attributes: Vec::new(),
            bodies: Vec::new(),
            stored: Vec::new(),
            removed: false,
        }
    }

    /// An operand by canonical name.
    pub fn operand(&self, name: Name) -> Option<DraftOperand> {
        self.operands.iter().find(|(known, _)| *known == name).map(|(_, operand)| *operand)
    }

    /// An attribute by canonical name.
    pub fn attribute(&self, name: Name) -> Option<&Attr> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, attr)| attr)
    }
}

/// A function while it is built.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Nodes in program order.
    pub nodes: Vec<DraftNode>,
}

impl Draft {
    /// Adds a node at the end and gives its index.
    pub fn push(&mut self, node: DraftNode) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// For every node, how often each of its results is used (removed users do not count).
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| !node.removed) {
            for (_, (producer, _)) in &node.operands {
                counts[*producer as usize] += 1;
            }
        }
        counts
    }

    /// Freezes the draft. Nodes are put in an order where every producer precedes its users, as
    /// close to program order as that allows (normalisation may append a node that earlier ones
    /// use). An operand that points at a removed node, or a cycle, drops that use; both are reader
    /// bugs, so debug builds assert.
    pub fn freeze(mut self, name: Name, opset: Name, role: FunctionRole) -> Function {
        self.mark_transparent();
        self.mark_constant_work();
        let order = self.order();
        let mut position = vec![u32::MAX; self.nodes.len()];
        for (at, &node) in order.iter().enumerate() {
            position[node as usize] = at as u32;
        }
        // Counted first: tables that grow by doubling hold twice what a large graph needs.
        let sum = |of: fn(&DraftNode) -> usize| -> usize {
            order.iter().map(|&at| of(&self.nodes[at as usize])).sum()
        };
        let uses = sum(|node| node.operands.len());
        let mut function = Function {
            name,
            opset,
            role,
            graph: DiGraph::with_capacity(order.len(), uses),
            values: Vec::with_capacity(sum(|node| node.results.len())),
            operands: Vec::with_capacity(uses),
            attributes: Vec::with_capacity(sum(|node| node.attributes.len())),
            bodies: Vec::with_capacity(sum(|node| node.bodies.len())),
            stored: Vec::with_capacity(sum(|node| node.stored.len())),
        };
        // First value id of each frozen node.
        let mut first_value = Vec::with_capacity(order.len());
        for (at, &old) in order.iter().enumerate() {
            let draft = std::mem::replace(
                &mut self.nodes[old as usize],
                DraftNode::new(NodeKind::Op, Name::EMPTY),
            );
            let values = function.values.len() as u32;
            first_value.push(values);
            for (index, &(name, dtype, shape, strides)) in draft.results.iter().enumerate() {
                function.values.push(Value {
                    node: NodeId(at as u32),
                    index: index as u32,
                    dtype,
                    shape,
                    name,
                    strides,
                });
            }
            let operands = function.operands.len() as u32;
            let mut edges = Vec::with_capacity(draft.operands.len());
            for &(name, (producer, result)) in &draft.operands {
                let from = position[producer as usize];
                debug_assert!(from < at as u32, "operand of a removed or later node");
                if from >= at as u32 {
                    continue;
                }
                let value = super::ValueId(first_value[from as usize] + result);
                if function.values.get(value.0 as usize).is_none_or(|v| v.node != NodeId(from)) {
                    debug_assert!(false, "operand names a result the producer does not have");
                    continue;
                }
                let slot = function.operands.len() as u32 - operands;
                function.operands.push(Operand { name, value });
                edges.push((from, Use { result, slot }));
            }
            let attributes = function.attributes.len() as u32;
            function.attributes.extend(draft.attributes);
            let bodies = function.bodies.len() as u32;
            function.bodies.extend(draft.bodies);
            let stored = function.stored.len() as u32;
            function.stored.extend(draft.stored);
            let index = function.graph.add_node(Node {
                kind: draft.kind,
                op: draft.op,
                flags: draft.flags,
                spelling: draft.spelling,
                name: draft.name,
                provenance: draft.provenance,
                operands: (operands, function.operands.len() as u32),
                results: (values, function.values.len() as u32),
                attributes: (attributes, function.attributes.len() as u32),
                bodies: (bodies, function.bodies.len() as u32),
                stored: (stored, function.stored.len() as u32),
            });
            for (from, used) in edges {
                function.graph.add_edge(NodeIndex::new(from as usize), index, used);
            }
        }
        function
    }

    /// Kahn's order with the smallest index first: program order wherever that is possible.
    fn order(&self) -> Vec<u32> {
        let in_order = self.nodes.iter().enumerate().all(|(at, node)| {
            node.removed || node.operands.iter().all(|(_, (from, _))| (*from as usize) < at)
        });
        if in_order {
            return (0..self.nodes.len() as u32)
                .filter(|&at| !self.nodes[at as usize].removed)
                .collect();
        }
        let mut waiting = vec![0u32; self.nodes.len()];
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| !node.removed) {
            for (_, (from, _)) in &node.operands {
                if !self.nodes[*from as usize].removed {
                    waiting[at] += 1;
                    users[*from as usize].push(at as u32);
                }
            }
        }
        let mut ready: std::collections::BinaryHeap<std::cmp::Reverse<u32>> = (0..self.nodes.len()
            as u32)
            .filter(|&at| !self.nodes[at as usize].removed && waiting[at as usize] == 0)
            .map(std::cmp::Reverse)
            .collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(std::cmp::Reverse(at)) = ready.pop() {
            order.push(at);
            for &user in &users[at as usize] {
                waiting[user as usize] -= 1;
                if waiting[user as usize] == 0 {
                    ready.push(std::cmp::Reverse(user));
                }
            }
        }
        order
    }

    fn mark_transparent(&mut self) {
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            if node.removed || node.kind != NodeKind::Op {
                continue;
            }
            let same_dtype_cast = node.op == Op::CAST
                && node.operands.first().is_some_and(|&(_, (from, result))| {
                    let source = self.nodes[from as usize].results.get(result as usize);
                    source.map(|r| r.1) == node.results.first().map(|r| r.1)
                });
            if node.op.is_transparent() || same_dtype_cast {
                self.nodes[at].flags.insert(NodeFlags::TRANSPARENT);
            }
        }
    }

    /// Marks what depends on no input and no state. A node without operands that makes something
    /// (arange, full) is constant work; a state read or an unknown source is not.
    fn mark_constant_work(&mut self) {
        let order = self.order();
        let mut varies = vec![false; self.nodes.len()];
        for at in order {
            let node = &self.nodes[at as usize];
            let own = match node.kind {
                NodeKind::Input | NodeKind::State => true,
                NodeKind::Constant(_) => false,
                NodeKind::Op => node.op.makes_run_time_data(),
                NodeKind::Output => false,
            };
            let varying = own || node.operands.iter().any(|(_, (from, _))| varies[*from as usize]);
            varies[at as usize] = varying;
            if !varying && node.kind == NodeKind::Op {
                self.nodes[at as usize].flags.insert(NodeFlags::CONSTANT_WORK);
            }
        }
    }
}
