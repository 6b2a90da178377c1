//! A function: a frozen petgraph of nodes, values and uses.

use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use super::{Attr, ConstantId, DType, Name, Op, ProvenanceId, ShapeId};

/// Index of a [`Function`] in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// Index of a [`Node`] in its function; ascending ids are program order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Index of a [`Value`] in its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// A run-time input.
    Input,
    /// A constant.
    Constant(ConstantId),
    /// The handle of a state (KV cache, mutable buffer).
    State,
    /// Computes at run time.
    Op,
    /// A result of the function; its one operand is the value returned.
    Output,
}

/// What is worth knowing of a node in a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NodeFlags(u8);

impl NodeFlags {
    /// A `cast` that no line of the file wrote: a promotion made visible.
    pub const IMPLICIT: NodeFlags = NodeFlags(1);
    /// Depends on no run-time input or state: not judged, placed or counted.
    pub const CONSTANT_WORK: NodeFlags = NodeFlags(2);
    /// An output that is the new value of a state or a mutated input.
    pub const MUTATION: NodeFlags = NodeFlags(4);
    /// A transparent op: rules look through it (also a `cast` to the same dtype).
    pub const TRANSPARENT: NodeFlags = NodeFlags(8);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: NodeFlags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Sets the bits of `other`.
    pub fn insert(&mut self, other: NodeFlags) {
        self.0 |= other.0;
    }
}

/// An op, constant, input, state or output.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Canonical op (`UNKNOWN` for other kinds and for ops with no entry).
    pub op: Op,
    /// Bits.
    pub flags: NodeFlags,
    /// The op's name as the file has it (`aten.linear.default`); empty for other kinds.
    pub spelling: Name,
    /// The node's name as the format has it and viewers show it.
    pub name: Name,
    /// Where it comes from.
    pub provenance: ProvenanceId,
    /// Operands: a range of [`Function::operand_table`].
    pub(super) operands: (u32, u32),
    /// Results: a range of value ids.
    pub(super) results: (u32, u32),
    /// Attributes: a range of the attribute table.
    pub(super) attributes: (u32, u32),
    /// Nested graphs (branches of cond, body of while, callee): a range of the body table.
    pub(super) bodies: (u32, u32),
    /// Stored ops that normalisation absorbed: a range of the stored table.
    pub(super) stored: (u32, u32),
}

/// A value used by a node, under its canonical operand name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Canonical operand name (`input`, `weight`).
    pub name: Name,
    /// The value used.
    pub value: ValueId,
}

/// A result of a node.
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// The node that makes it.
    pub node: NodeId,
    /// Which of the node's results it is.
    pub index: u32,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: ShapeId,
    /// Name as the format has it.
    pub name: Name,
    /// Strides in elements where the file says them and they are not row-major contiguous:
    /// an interned shape of the same rank.
    pub strides: Option<ShapeId>,
}

/// An edge: one use of a result as an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Which result of the producer.
    pub result: u32,
    /// Which operand of the consumer.
    pub slot: u32,
}

/// Why a function is in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionRole {
    /// Callers outside can run it.
    Entry,
    /// A branch or body of a node of another function.
    Branch {
        /// The function that holds the node.
        parent: FunctionId,
    },
    /// The reference decomposition of a composite: not linted as if it ran.
    Composite,
    /// In the file, and reached from no entry.
    Unreachable,
}

/// A function: nodes in program order, with the edges between them.
#[derive(Debug, Clone)]
pub struct Function {
    /// Name (`main`, `extend_256_8`).
    pub name: Name,
    /// Opset or dialect version (`ios18`), or empty.
    pub opset: Name,
    /// Why it is here.
    pub role: FunctionRole,
    pub(super) graph: DiGraph<Node, Use, u32>,
    pub(super) values: Vec<Value>,
    pub(super) operands: Vec<Operand>,
    pub(super) attributes: Vec<(Name, Attr)>,
    pub(super) bodies: Vec<FunctionId>,
    pub(super) stored: Vec<(Name, Name)>,
}

impl Function {
    /// Number of nodes of every kind.
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// Whether there is no node at all.
    pub fn is_empty(&self) -> bool {
        self.graph.node_count() == 0
    }

    /// All node ids in program order (every operand's node comes before its user).
    pub fn node_ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.graph.node_count() as u32).map(NodeId)
    }

    /// All nodes in program order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.graph
            .raw_nodes()
            .iter()
            .enumerate()
            .map(|(id, node)| (NodeId(id as u32), &node.weight))
    }

    /// A node by id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.graph[NodeIndex::new(id.0 as usize)]
    }

    /// Says where a node comes from: for graphs that carry no source lines and borrow them.
    pub(crate) fn set_provenance(&mut self, id: NodeId, provenance: ProvenanceId) {
        if let Some(node) = self.graph.node_weight_mut(NodeIndex::new(id.0 as usize)) {
            node.provenance = provenance;
        }
    }

    /// The petgraph underneath: nodes by program order, one edge per use.
    pub fn graph(&self) -> &DiGraph<Node, Use, u32> {
        &self.graph
    }

    /// A value by id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// Number of values.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The node that makes a value.
    pub fn producer(&self, id: ValueId) -> NodeId {
        self.value(id).node
    }

    /// The operands of a node, in slot order.
    pub fn operands(&self, id: NodeId) -> &[Operand] {
        let (start, end) = self.node(id).operands;
        &self.operands[start as usize..end as usize]
    }

    /// The first operand under a canonical name.
    pub fn operand(&self, id: NodeId, name: Name) -> Option<ValueId> {
        self.operands(id).iter().find(|operand| operand.name == name).map(|operand| operand.value)
    }

    /// The results of a node, in order.
    pub fn results(
        &self,
        id: NodeId,
    ) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + use<> {
        let (start, end) = self.node(id).results;
        (start..end).map(ValueId)
    }

    /// The first result of a node.
    pub fn result(&self, id: NodeId) -> Option<ValueId> {
        self.results(id).next()
    }

    /// The attributes of a node, under canonical names.
    pub fn attributes(&self, id: NodeId) -> &[(Name, Attr)] {
        let (start, end) = self.node(id).attributes;
        &self.attributes[start as usize..end as usize]
    }

    /// An attribute by canonical name.
    pub fn attribute(&self, id: NodeId, name: Name) -> Option<&Attr> {
        self.attributes(id).iter().find(|(known, _)| *known == name).map(|(_, attr)| attr)
    }

    /// The nested graphs of a node (then, else; cond, body).
    pub fn bodies(&self, id: NodeId) -> &[FunctionId] {
        let (start, end) = self.node(id).bodies;
        &self.bodies[start as usize..end as usize]
    }

    /// `(name, spelling)` of each stored op that normalisation absorbed into this node; empty if the
    /// node is just the stored op.
    pub fn stored(&self, id: NodeId) -> &[(Name, Name)] {
        let (start, end) = self.node(id).stored;
        &self.stored[start as usize..end as usize]
    }

    /// The uses of a value: `(consumer, operand slot)`, in program order.
    pub fn uses(&self, id: ValueId) -> Vec<(NodeId, u32)> {
        let value = self.value(id);
        let mut uses: Vec<(NodeId, u32)> = self
            .graph
            .edges_directed(NodeIndex::new(value.node.0 as usize), Direction::Outgoing)
            .filter(|edge| edge.weight().result == value.index)
            .map(|edge| (NodeId(edge.target().index() as u32), edge.weight().slot))
            .collect();
        // petgraph lists edges in reverse order of insertion: never rely on it.
        uses.sort_unstable();
        uses
    }

    /// Every node that uses any result of this one, in program order, each once.
    pub fn consumers(&self, id: NodeId) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self
            .graph
            .neighbors_directed(NodeIndex::new(id.0 as usize), Direction::Outgoing)
            .map(|node| NodeId(node.index() as u32))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Input nodes in order.
    pub fn inputs(&self) -> impl Iterator<Item = NodeId> {
        self.of_kind(NodeKind::Input)
    }

    /// State nodes in order.
    pub fn states(&self) -> impl Iterator<Item = NodeId> {
        self.of_kind(NodeKind::State)
    }

    /// Output nodes in order.
    pub fn outputs(&self) -> impl Iterator<Item = NodeId> {
        self.of_kind(NodeKind::Output)
    }

    fn of_kind(&self, kind: NodeKind) -> impl Iterator<Item = NodeId> {
        self.nodes().filter(move |(_, node)| node.kind == kind).map(|(id, _)| id)
    }

    /// Whether a node is an op that works at run time: not transparent, not constant work. This is
    /// what every count that users see counts.
    pub fn is_work(&self, id: NodeId) -> bool {
        let node = self.node(id);
        node.kind == NodeKind::Op
            && !node.flags.contains(NodeFlags::TRANSPARENT)
            && !node.flags.contains(NodeFlags::CONSTANT_WORK)
    }
}
