//! Graphs built by hand, for the tests of facts.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::graph::{
    Attr, Constant, ConstantId, ConstantOrigin, DType, Draft, DraftNode, DraftOperand, Format,
    FunctionId, FunctionRole, Name, NodeId, NodeKind, Op, Payload, Program,
};

/// Builds one function, node by node. Nodes are called after their op and number (`add_3`).
pub(crate) struct Graph {
    pub(crate) program: Program,
    draft: Draft,
}

impl Graph {
    pub(crate) fn new() -> Graph {
        Graph { program: Program::new("test.pt2".into(), Format::Pt2), draft: Draft::default() }
    }

    fn node(&mut self, mut node: DraftNode, results: &[(DType, &[u64])]) -> DraftOperand {
        for &(dtype, dims) in results {
            let shape = self.program.shapes.intern_static(dims);
            node.results.push((node.name, dtype, shape, None));
        }
        (self.draft.push(node), 0)
    }

    pub(crate) fn input(&mut self, name: &str, dtype: DType, dims: &[u64]) -> DraftOperand {
        let name = self.program.names.intern(name);
        self.node(DraftNode::new(NodeKind::Input, name), &[(dtype, dims)])
    }

    pub(crate) fn constant(
        &mut self,
        origin: ConstantOrigin,
        dtype: DType,
        dims: &[u64],
        payload: Payload,
    ) -> DraftOperand {
        let shape = self.program.shapes.intern_static(dims);
        let id =
            self.program.add_constant(Constant { dtype, shape, origin, fqn: Name::EMPTY, payload });
        let name = self.program.names.intern(&format!("constant_{}", self.draft.nodes.len()));
        self.node(DraftNode::new(NodeKind::Constant(id), name), &[(dtype, dims)])
    }

    /// A Python number.
    pub(crate) fn literal(&mut self, value: f64) -> DraftOperand {
        self.constant(ConstantOrigin::Literal, DType::F64, &[], Payload::Splat(value))
    }

    /// A weight whose values nobody reads.
    pub(crate) fn weight(&mut self, dtype: DType, dims: &[u64]) -> DraftOperand {
        self.constant(ConstantOrigin::Parameter, dtype, dims, Payload::Unknown)
    }

    /// An op with operands under their canonical names.
    pub(crate) fn op(
        &mut self,
        op: Op,
        operands: &[DraftOperand],
        attributes: &[(&str, Attr)],
        dtype: DType,
        dims: &[u64],
    ) -> DraftOperand {
        self.op_many(op, operands, attributes, &[(dtype, dims)])
    }

    /// An op with several results; the operand names the first.
    pub(crate) fn op_many(
        &mut self,
        op: Op,
        operands: &[DraftOperand],
        attributes: &[(&str, Attr)],
        results: &[(DType, &[u64])],
    ) -> DraftOperand {
        let name = self.program.names.intern(&format!("{op}_{}", self.draft.nodes.len()));
        let mut node = DraftNode::new(NodeKind::Op, name);
        node.op = op;
        node.spelling = self.program.names.intern(op.name());
        for (slot, &operand) in operands.iter().enumerate() {
            let names = op.operands();
            let name = names.get(slot).or(names.last()).unwrap();
            node.operands.push((self.program.names.intern(name), operand));
        }
        for (name, attr) in attributes {
            node.attributes.push((self.program.names.intern(name), attr.clone()));
        }
        self.node(node, results)
    }

    pub(crate) fn output(&mut self, value: DraftOperand) {
        let name = self.program.names.intern("output");
        let mut node = DraftNode::new(NodeKind::Output, name);
        node.operands.push((self.program.names.intern("input"), value));
        self.draft.push(node);
    }

    /// The program with its one function.
    pub(crate) fn finish(mut self) -> Program {
        let name = self.program.names.intern("main");
        self.program.functions.push(self.draft.freeze(name, Name::EMPTY, FunctionRole::Entry));
        self.program
    }
}

/// The only function of a built program.
pub(crate) const MAIN: FunctionId = FunctionId(0);

/// The name of a node of the built program.
pub(crate) fn name_of(program: &Program, node: NodeId) -> &str {
    program.text(program.function(MAIN).node(node).name)
}

/// A list attribute.
pub(crate) fn ints(list: &[i64]) -> Attr {
    Attr::Ints(list.iter().map(|&n| Some(n)).collect())
}

/// Keeps the compiler from calling helpers unused that only some tests need.
#[allow(dead_code)]
pub(crate) fn constant_id(program: &Program, node: NodeId) -> Option<ConstantId> {
    match program.function(MAIN).node(node).kind {
        NodeKind::Constant(id) => Some(id),
        _ => None,
    }
}
