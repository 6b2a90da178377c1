//! What all rules share while they look at one function.

use std::cell::OnceCell;
use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::facts::{Facts, Field};
use crate::graph::{
    DType, Function, FunctionId, NodeFlags, NodeId, NodeKind, Op, Program, ValueId,
};
use crate::rules::engine::{Limits, PlacementView};
use crate::target::Target;

/// What all functions of a program share.
#[derive(Clone, Copy)]
pub(in crate::rules) struct Surroundings<'a> {
    pub facts: &'a Facts<'a>,
    pub program: &'a Program,
    pub target: Target,
    pub limits: Limits,
    pub placement: Option<&'a dyn PlacementView>,
}

/// One function with what is worth computing once for all rules.
pub(in crate::rules) struct Scope<'a> {
    pub around: Surroundings<'a>,
    pub id: FunctionId,
    pub function: &'a Function,
    /// For each value, the value that it is a view of: transparent ops looked through.
    base: Vec<ValueId>,
    /// Nodes by op index, in program order; transparent ones too, constant work not.
    by_op: Vec<Vec<NodeId>>,
    /// Element types of run-time values, a bit each.
    pub dtypes: u32,
    /// Nodes and base values by the facts they play a role in.
    roles: OnceCell<Roles>,
}

/// `(fact, record, field)` of each node and each base value.
#[derive(Default)]
struct Roles {
    facts: FxHashMap<&'static str, FactRoles>,
}

#[derive(Default)]
struct FactRoles {
    nodes: FxHashMap<NodeId, Vec<(u32, &'static str)>>,
    values: FxHashMap<ValueId, Vec<(u32, &'static str)>>,
}

impl<'a> Scope<'a> {
    /// Walks the function once.
    pub fn new(around: Surroundings<'a>, id: FunctionId) -> Scope<'a> {
        let function = around.program.function(id);
        let mut base: Vec<ValueId> = (0..function.value_count() as u32).map(ValueId).collect();
        let mut by_op = vec![Vec::new(); Op::all().count()];
        let mut dtypes = 0;
        for (node_id, node) in function.nodes() {
            let work = node.kind == NodeKind::Op && !node.flags.contains(NodeFlags::CONSTANT_WORK);
            if node.kind == NodeKind::Op && node.flags.contains(NodeFlags::TRANSPARENT) {
                let source = function.operands(node_id).first().map(|operand| operand.value);
                if let (Some(source), Some(result)) = (source, function.result(node_id)) {
                    base[result.0 as usize] = base[source.0 as usize];
                }
            }
            // A cast to the dtype it has is no cast to any rule.
            let idle = node.flags.contains(NodeFlags::TRANSPARENT) && !node.op.is_transparent();
            if work && !idle {
                by_op[node.op.index()].push(node_id);
            }
            if work || matches!(node.kind, NodeKind::Input | NodeKind::State) {
                for value in function.results(node_id) {
                    let dtype = function.value(value).dtype;
                    if !matches!(dtype, DType::Token | DType::Unknown) {
                        dtypes |= 1 << (dtype as u32);
                    }
                }
            }
        }
        Scope { around, id, function, base, by_op, dtypes, roles: OnceCell::new() }
    }

    /// The value that `value` is a view of.
    pub fn base(&self, value: ValueId) -> ValueId {
        self.base.get(value.0 as usize).copied().unwrap_or(value)
    }

    /// Nodes of an op that work at run time, in program order.
    pub fn of_op(&self, op: usize) -> &[NodeId] {
        self.by_op.get(op).map_or(&[], Vec::as_slice)
    }

    /// Whether a node is an op that rules look through.
    pub fn is_transparent(&self, node: NodeId) -> bool {
        let node = self.function.node(node);
        node.kind == NodeKind::Op && node.flags.contains(NodeFlags::TRANSPARENT)
    }

    /// Whether a node is computed from constants only.
    pub fn is_constant_work(&self, node: NodeId) -> bool {
        let node = self.function.node(node);
        node.kind == NodeKind::Op && node.flags.contains(NodeFlags::CONSTANT_WORK)
    }

    /// Whether a value varies from run to run.
    pub fn varies(&self, value: ValueId) -> bool {
        let producer = self.function.producer(value);
        match self.function.node(producer).kind {
            NodeKind::Input | NodeKind::State => true,
            NodeKind::Op => !self.is_constant_work(producer),
            NodeKind::Constant(_) | NodeKind::Output => false,
        }
    }

    /// The first work op, to report what is said of the whole function at.
    pub fn first_work(&self) -> Option<NodeId> {
        let nodes = || self.function.node_ids();
        nodes().find(|&id| self.function.is_work(id)).or_else(|| nodes().next())
    }

    /// Records of a fact in which a node or value plays one of the roles (any if none are named):
    /// ascending record indices, each once.
    pub fn records_of(
        &self,
        fact: &'static str,
        roles: &[&'static str],
        node: NodeId,
        value: Option<ValueId>,
    ) -> Vec<u32> {
        let all = self.roles.get_or_init(|| self.index_facts());
        let Some(fact) = all.facts.get(fact) else { return Vec::new() };
        let by_node = fact.nodes.get(&node).into_iter().flatten();
        let by_value =
            value.and_then(|value| fact.values.get(&self.base(value))).into_iter().flatten();
        let mut records: Vec<u32> = by_node
            .chain(by_value)
            .filter(|(_, field)| roles.is_empty() || roles.contains(field))
            .map(|(record, _)| *record)
            .collect();
        records.sort_unstable();
        records.dedup();
        records
    }

    fn index_facts(&self) -> Roles {
        let mut roles = Roles::default();
        for info in crate::facts::catalogue::FACTS {
            let records = self.around.facts.records(self.id, info.name);
            let entry = roles.facts.entry(info.name).or_default();
            for (at, record) in records.iter().enumerate() {
                let at = at as u32;
                for (name, field) in &record.fields {
                    match field {
                        Field::Node(node) => push(&mut entry.nodes, *node, (at, *name)),
                        Field::Nodes(nodes) => {
                            nodes
                                .iter()
                                .for_each(|node| push(&mut entry.nodes, *node, (at, *name)));
                        }
                        Field::Value(value) => {
                            push(&mut entry.values, self.base(*value), (at, *name));
                        }
                        Field::Values(values) => values.iter().for_each(|value| {
                            push(&mut entry.values, self.base(*value), (at, *name));
                        }),
                        _ => {}
                    }
                }
            }
        }
        roles
    }
}

fn push<K: std::hash::Hash + Eq, S: std::hash::BuildHasher>(
    map: &mut HashMap<K, Vec<(u32, &'static str)>, S>,
    key: K,
    role: (u32, &'static str),
) {
    map.entry(key).or_default().push(role);
}
