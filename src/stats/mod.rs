//! Statistics of a program: ops, parameters, bytes, operations, memory, padding. Counted from the
//! graph alone; no time but the lower bounds that a stated rate and bandwidth give.
//!
//! What is read by a unit in fact (caches, fusion, recomputation) is nobody's claim here.

mod liveness;
mod modules;
mod padding;
mod roofline;
#[cfg(test)]
mod tests;
mod weights;

use std::collections::BTreeMap;

pub use liveness::{Peak, peak};
pub use modules::ModuleStats;
pub use padding::{Padding, Row};
pub use roofline::{Bound, Machine, RegionShare, shares};
pub use weights::{Compression, WeightClass, Weights};

use crate::facts::cost::{self, Cost};
use crate::graph::{Function, FunctionId, NodeKind, Op, Program, ValueId};

/// Ops of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindStats {
    /// The op.
    pub op: Op,
    /// How many.
    pub count: u64,
    /// What they cost together.
    pub cost: Cost,
}

/// The statistics of one function.
#[derive(Debug, Clone)]
pub struct FunctionStats {
    /// The function.
    pub function: FunctionId,
    /// Ops that work at run time.
    pub ops: u64,
    /// By kind, the most frequent first.
    pub kinds: Vec<KindStats>,
    /// What they cost together. `input_bytes` and `output_bytes` are summed op by op.
    pub cost: Cost,
    /// The weights that it uses.
    pub weights: Weights,
    /// Bytes of its inputs.
    pub input_bytes: u64,
    /// Bytes of its outputs.
    pub output_bytes: u64,
    /// Bytes of its states.
    pub state_bytes: u64,
    /// The most that lives at once.
    pub peak: Peak,
    /// What misaligned last dims waste.
    pub padding: Padding,
    /// By module path, cut at the depth asked for.
    pub modules: Vec<ModuleStats>,
}

impl FunctionStats {
    /// Bytes that no order of work can avoid moving: weights (of a gathered table the rows read),
    /// inputs and outputs, each once.
    pub fn unavoidable_bytes(&self) -> u64 {
        self.weights.bytes_read.saturating_add(self.input_bytes).saturating_add(self.output_bytes)
    }

    /// Operations of contractions for each byte that cannot be avoided; `None` where nothing moves.
    pub fn intensity(&self) -> Option<f64> {
        let bytes = self.unavoidable_bytes();
        (bytes > 0).then(|| self.cost.flops as f64 / bytes as f64)
    }
}

/// Counts a function; modules are cut after `depth` parts of their path.
pub fn count(program: &Program, id: FunctionId, depth: usize) -> FunctionStats {
    let function = program.function(id);
    let mut kinds: BTreeMap<usize, KindStats> = BTreeMap::new();
    let mut total = Cost::default();
    let mut ops = 0;
    for node in function.node_ids().filter(|&node| function.is_work(node)) {
        let own = cost::cost(program, function, node);
        let op = function.node(node).op;
        let kind = kinds.entry(op.index()).or_insert_with(|| KindStats {
            op,
            count: 0,
            cost: Cost::default(),
        });
        kind.count += 1;
        kind.cost.add(&own);
        total.add(&own);
        ops += 1;
    }
    let mut kinds: Vec<KindStats> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| (std::cmp::Reverse(kind.count), kind.op.name()));
    let weights = weights::count(program, function);
    let modules = modules::count(program, function, depth, &weights);
    FunctionStats {
        function: id,
        ops,
        kinds,
        cost: total,
        input_bytes: of_kind(program, function, NodeKind::Input),
        output_bytes: outputs(program, function),
        state_bytes: of_kind(program, function, NodeKind::State),
        peak: peak(program, function),
        padding: padding::count(program, function),
        modules,
        weights,
    }
}

fn of_kind(program: &Program, function: &Function, kind: NodeKind) -> u64 {
    function
        .nodes()
        .filter(|(_, node)| node.kind == kind)
        .flat_map(|(id, _)| function.results(id))
        .fold(0, |sum: u64, value| sum.saturating_add(bytes(program, function, value).unwrap_or(0)))
}

fn outputs(program: &Program, function: &Function) -> u64 {
    function.outputs().filter_map(|id| function.operands(id).first()).fold(
        0,
        |sum: u64, operand| {
            sum.saturating_add(bytes(program, function, operand.value).unwrap_or(0))
        },
    )
}

/// Bytes of a value; `None` if a size is not static.
fn bytes(program: &Program, function: &Function, value: ValueId) -> Option<u64> {
    let value = function.value(value);
    Some(value.dtype.bytes(program.shapes.get(value.shape).elements()?))
}
