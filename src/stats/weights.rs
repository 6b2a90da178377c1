//! Weights as stored: how many parameters, in how many bytes, by dtype and compression.
//!
//! A compressed weight counts the parameters of the dense tensor and the bytes of what is stored for
//! it. A weight that is quantised and dequantised in the graph, and stored in floating point
//! ([`Compression::Fake`]), has gained nothing yet, and counts in full.

use std::collections::BTreeMap;

use super::bytes;
use crate::facts::is_constant;
use crate::graph::{
    Category, ConstantId, ConstantOrigin, DType, Function, NodeId, NodeKind, Op, Program,
};

/// How a weight is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// As it is.
    None,
    /// Stored in floating point; the graph only rounds it as quantisation would.
    Fake,
    /// By this op, the one whose result is the dense weight.
    By(Op),
}

impl Compression {
    /// The name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Fake => "fake-quantized",
            Compression::By(op) => op.name(),
        }
    }
}

/// Weights of one dtype and compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightClass {
    /// The dtype stored; of a compressed weight that of its data or indices.
    pub dtype: DType,
    /// How it is stored.
    pub compression: Compression,
    /// How many tensors.
    pub tensors: u64,
    /// Elements of the dense tensors.
    pub elements: u64,
    /// Bytes stored.
    pub bytes: u64,
}

/// One weight, in terms of the graph.
#[derive(Debug, Clone)]
pub struct Weight {
    /// The constants that store it.
    pub constants: Vec<ConstantId>,
    /// The op that uses it first.
    pub user: NodeId,
    /// Whether it was trained (else a buffer, a table, a literal of the author).
    pub parameter: bool,
    /// Elements of the dense tensor.
    pub elements: u64,
    /// Bytes stored.
    pub bytes: u64,
}

/// The weights of a function.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// Elements of trained tensors.
    pub parameters: u64,
    /// Elements of other stored tensors: buffers, tables, folded constants.
    pub other_elements: u64,
    /// Bytes stored.
    pub bytes: u64,
    /// Bytes read in one run: of a gathered table only the rows.
    pub bytes_read: u64,
    /// By dtype and compression, the most bytes first.
    pub classes: Vec<WeightClass>,
    /// One by one, in program order of their first use.
    pub all: Vec<Weight>,
}

/// What one constant node is.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    bytes: u64,
    full: bool,
}

/// Counts the weights that the run-time ops of a function use.
pub(super) fn count(program: &Program, function: &Function) -> Weights {
    let mut weights = Weights::default();
    let mut classes: BTreeMap<(DType, Compression), WeightClass> = BTreeMap::new();
    let mut seen = vec![false; function.len()];
    let mut reads: Vec<Read> = vec![Read::default(); function.len()];
    for id in function.node_ids() {
        let node = function.node(id);
        if node.kind != NodeKind::Op || is_constant(node) {
            continue;
        }
        let written: u64 = function
            .results(id)
            .filter_map(|value| bytes(program, function, value))
            .fold(0, u64::saturating_add);
        for operand in function.operands(id) {
            let source = function.producer(operand.value);
            if !is_constant(function.node(source)) {
                continue;
            }
            let rows = node.op.category() == Category::Indexing
                && matches!(program.text(operand.name), "weight" | "input");
            let found = stored(program, function, source);
            for part in &found {
                // Tables and scales beside a compressed weight are read whole.
                for &with in &part.with {
                    let size = constant_bytes(program, function, with).unwrap_or(0);
                    reads[with.0 as usize] = Read { bytes: size, full: true };
                }
                let Some(size) = constant_bytes(program, function, part.node) else { continue };
                let read = &mut reads[part.node.0 as usize];
                read.full |= !rows;
                read.bytes =
                    if read.full { size } else { read.bytes.saturating_add(written).min(size) };
            }
            for part in found {
                if std::mem::replace(&mut seen[part.node.0 as usize], true) {
                    continue;
                }
                add(program, function, id, &part, &mut seen, &mut weights, &mut classes);
            }
        }
    }
    weights.bytes_read = reads.iter().fold(0, |sum, read| sum.saturating_add(read.bytes));
    weights.classes = classes.into_values().collect();
    weights.classes.sort_by_key(|class| {
        (std::cmp::Reverse(class.bytes), class.dtype.name(), class.compression.name())
    });
    weights
}

fn add(
    program: &Program,
    function: &Function,
    user: NodeId,
    part: &Part,
    seen: &mut [bool],
    weights: &mut Weights,
    classes: &mut BTreeMap<(DType, Compression), WeightClass>,
) {
    let (Some(elements), Some(mut stored_bytes), Some(constant)) = (
        dense_elements(program, function, part),
        constant_bytes(program, function, part.node),
        constant_of(function, part.node),
    ) else {
        return;
    };
    let mut constants = vec![constant];
    for &with in &part.with {
        if let Some(slot) = seen.get_mut(with.0 as usize)
            && std::mem::replace(slot, true)
        {
            continue;
        }
        stored_bytes =
            stored_bytes.saturating_add(constant_bytes(program, function, with).unwrap_or(0));
        constants.extend(constant_of(function, with));
    }
    let told = program.constant(constant);
    // Numbers in the author's code are no weights.
    if told.origin == ConstantOrigin::Literal {
        return;
    }
    let parameter = told.origin == ConstantOrigin::Parameter;
    if parameter {
        weights.parameters = weights.parameters.saturating_add(elements);
    } else {
        weights.other_elements = weights.other_elements.saturating_add(elements);
    }
    weights.bytes = weights.bytes.saturating_add(stored_bytes);
    let class = classes.entry((told.dtype, part.compression)).or_insert(WeightClass {
        dtype: told.dtype,
        compression: part.compression,
        tensors: 0,
        elements: 0,
        bytes: 0,
    });
    class.tensors += 1;
    class.elements = class.elements.saturating_add(elements);
    class.bytes = class.bytes.saturating_add(stored_bytes);
    weights.all.push(Weight { constants, user, parameter, elements, bytes: stored_bytes });
}

/// A stored constant behind an operand.
struct Part {
    /// The constant; of several that one decompression reads the one with the data or the indices.
    node: NodeId,
    /// What else is stored for it (tables, scales, offsets).
    with: Vec<NodeId>,
    compression: Compression,
    /// The op that makes it dense.
    dense: Option<NodeId>,
}

/// The constants that a value of constant work is made of.
fn stored(program: &Program, function: &Function, from: NodeId) -> Vec<Part> {
    let mut parts = Vec::new();
    // Nodes with the decompression around them; each is walked once.
    let mut open = vec![from];
    let mut visited = std::collections::BTreeSet::new();
    while let Some(node) = open.pop() {
        if !visited.insert(node) {
            continue;
        }
        let own = function.node(node);
        if matches!(own.kind, NodeKind::Constant(_)) {
            parts.push(Part {
                node,
                with: Vec::new(),
                compression: Compression::None,
                dense: None,
            });
        } else if let Some(how) = decompression(own.op) {
            let leaves = leaves(function, node, &mut visited);
            let Some(main) = main_part(function, node).or(leaves.first().copied()) else {
                continue;
            };
            let rest: Vec<NodeId> = leaves.into_iter().filter(|&leaf| leaf != main).collect();
            let float = constant_of(function, main)
                .is_some_and(|constant| program.constant(constant).dtype.is_float());
            let compression = match how {
                How::Stored => Compression::By(own.op),
                How::InGraph if float => Compression::Fake,
                How::InGraph => Compression::By(own.op),
            };
            parts.push(Part { node: main, with: rest, compression, dense: Some(node) });
        } else {
            open.extend(function.operands(node).iter().map(|o| function.producer(o.value)));
        }
    }
    parts.sort_by_key(|part| part.node);
    parts
}

enum How {
    /// What it reads is what the file stores.
    Stored,
    /// It may only round.
    InGraph,
}

fn decompression(op: Op) -> Option<How> {
    match op {
        Op::DEQUANTIZE | Op::FAKE_QUANTIZE => Some(How::InGraph),
        _ if op.category() == Category::Compression => Some(How::Stored),
        _ => None,
    }
}

/// The constant that a decompression reads first: data or indices come before tables and scales.
fn main_part(function: &Function, from: NodeId) -> Option<NodeId> {
    let mut node = from;
    // Operands come before their users: each step goes down.
    while !matches!(function.node(node).kind, NodeKind::Constant(_)) {
        node = function.producer(function.operands(node).first()?.value);
    }
    Some(node)
}

/// The constants below a node of constant work, in program order.
fn leaves(
    function: &Function,
    from: NodeId,
    visited: &mut std::collections::BTreeSet<NodeId>,
) -> Vec<NodeId> {
    let mut leaves = Vec::new();
    let mut open: Vec<NodeId> =
        function.operands(from).iter().map(|o| function.producer(o.value)).collect();
    while let Some(node) = open.pop() {
        if !visited.insert(node) {
            continue;
        }
        if matches!(function.node(node).kind, NodeKind::Constant(_)) {
            leaves.push(node);
        } else {
            open.extend(function.operands(node).iter().map(|o| function.producer(o.value)));
        }
    }
    leaves.sort_unstable();
    leaves
}

fn constant_of(function: &Function, node: NodeId) -> Option<ConstantId> {
    match function.node(node).kind {
        NodeKind::Constant(id) => Some(id),
        _ => None,
    }
}

/// Bytes of a constant as stored.
fn constant_bytes(program: &Program, function: &Function, node: NodeId) -> Option<u64> {
    let id = constant_of(function, node)?;
    Some(program.constant(id).dtype.bytes(program.elements(id)?))
}

fn dense_elements(program: &Program, function: &Function, part: &Part) -> Option<u64> {
    match part.dense {
        None => program.elements(constant_of(function, part.node)?),
        Some(op) => {
            let value = function.result(op)?;
            program.shapes.get(function.value(value).shape).elements()
        }
    }
}
