//! Passes over a lowered graph that belong to this format: state writes with their range, gathers of
//! whole rows, and which constants are weights. The passes shared with other formats follow.

use rustc_hash::FxHashMap;

use crate::graph::{
    Attr, Category, ConstantOrigin, Dim, Draft, DraftOperand, Name, NodeKind, Op, Program,
};
use crate::readers::normalize::{self, Context, Words, absorb, keep_own_spelling};

/// Brings a draft into canonical form.
pub fn normalise(draft: Draft, program: &mut Program, words: &Words) -> Draft {
    let mut draft = draft;
    writes(&mut draft, words);
    rows(&mut draft, program, words);
    let mut context = Context { program, words };
    let mut draft = normalize::linear(draft, &mut context);
    normalize::conv(&mut draft, &mut context);
    normalize::fills(&mut draft, &mut context);
    weights(&draft, program);
    draft
}

/// `write(slice_update(read(state), update, range))` → a write of that range.
fn writes(draft: &mut Draft, w: &Words) {
    if !draft.nodes.iter().any(|node| node.op == Op::STATE_WRITE) {
        return;
    }
    let mut counts = draft.use_counts();
    for at in 0..draft.nodes.len() {
        let write = &draft.nodes[at];
        if write.op != Op::STATE_WRITE || write.removed {
            continue;
        }
        let (Some(state), Some(data)) = (write.operand(w.state), write.operand(w.update)) else {
            continue;
        };
        let update = &draft.nodes[data.0 as usize];
        let reads = |value: DraftOperand| {
            let read = &draft.nodes[value.0 as usize];
            read.op == Op::STATE_READ && read.operand(w.state) == Some(state)
        };
        let Some(base) = update.operand(w.input).filter(|&base| reads(base)) else { continue };
        if counts[data.0 as usize] != 1 || update.kind != NodeKind::Op {
            continue;
        }
        let (mut operands, mut attributes) = (vec![(w.state, state)], Vec::new());
        match update.op {
            Op::SLICE_UPDATE if steps_by_one(update.attribute(w.step)) => {
                let Some(value) = update.operand(w.update) else { continue };
                operands.push((w.update, value));
                let ranges = update.operands.iter().filter(|(name, _)| is_range(*name, w));
                operands.extend(ranges.copied());
                let range = |name: Name| is_range(name, w) || name == w.axis;
                attributes.extend(update.attributes.iter().filter(|(n, _)| range(*n)).cloned());
            }
            Op::SCATTER_ND | Op::SCATTER_ELEMENTS if replaces(draft, data, w) => {
                let (Some(value), Some(indices)) =
                    (update.operand(w.updates), update.operand(w.indices))
                else {
                    continue;
                };
                operands.extend([(w.update, value), (w.begin, indices)]);
            }
            _ => continue,
        }
        let (name, provenance) = (update.name, update.provenance);
        absorb(draft, at as u32, data.0);
        let write = &mut draft.nodes[at];
        write.operands = operands;
        write.attributes = attributes;
        write.name = name;
        write.provenance = provenance;
        counts[base.0 as usize] -= 1;
        if counts[base.0 as usize] == 0 {
            absorb(draft, at as u32, base.0);
        }
    }
}

fn is_range(name: Name, w: &Words) -> bool {
    name == w.begin || name == w.end
}

fn steps_by_one(step: Option<&Attr>) -> bool {
    step.is_none_or(|step| step.as_ints().is_some_and(|steps| steps.iter().all(|&n| n == 1)))
}

/// Whether a scatter puts its updates in place of what was there: its mode is then not named.
fn replaces(draft: &Draft, (node, _): DraftOperand, w: &Words) -> bool {
    draft.nodes[node as usize].attribute(w.mode).is_none()
}

/// `gather_nd` of whole rows by indices with a last axis of one, made by a reshape: a `gather` by the
/// indices before the reshape. Torch's name tells an embedding from an indexed tensor.
fn rows(draft: &mut Draft, program: &mut Program, w: &Words) {
    if !draft.nodes.iter().any(|node| node.op == Op::GATHER_ND) {
        return;
    }
    let mut counts = draft.use_counts();
    for at in 0..draft.nodes.len() {
        let node = &draft.nodes[at];
        if node.op != Op::GATHER_ND || node.removed {
            continue;
        }
        let (Some(input), Some(indices)) = (node.operand(w.input), node.operand(w.indices)) else {
            continue;
        };
        let reshape = &draft.nodes[indices.0 as usize];
        if !matches!(reshape.op, Op::RESHAPE | Op::UNSQUEEZE) || reshape.kind != NodeKind::Op {
            continue;
        }
        let Some(&(_, before)) = reshape.operands.first() else { continue };
        let dims = |value: DraftOperand| {
            let shape = draft.nodes[value.0 as usize].results.get(value.1 as usize)?.2;
            program.shapes.get(shape).dims()
        };
        let (Some(inner), Some(outer)) = (dims(before), dims(indices)) else { continue };
        let added_one = outer.split_last() == Some((&Dim::Static(1), inner));
        if !added_one {
            continue;
        }
        let torch = program.text(program.sources.get(node.provenance).torch_op);
        let embedding = torch == "embedding"
            && matches!(draft.nodes[input.0 as usize].kind, NodeKind::Constant(_));
        counts[indices.0 as usize] -= 1;
        if counts[indices.0 as usize] == 0 {
            absorb(draft, at as u32, indices.0);
        }
        let node = &mut draft.nodes[at];
        keep_own_spelling(node);
        if embedding {
            node.op = Op::EMBEDDING;
            node.operands = vec![(w.weight, input), (w.indices, before)];
        } else {
            node.op = Op::GATHER;
            node.operands = vec![(w.input, input), (w.indices, before)];
            node.attributes.push((w.axis, Attr::Int(0)));
        }
    }
}

/// Constants that reach a weight, through decompression and moves, are parameters: the format does
/// not say so, and they are not to be read without being asked.
fn weights(draft: &Draft, program: &mut Program) {
    let mut seen: FxHashMap<u32, ()> = FxHashMap::default();
    let mut open = Vec::new();
    for node in draft.nodes.iter().filter(|node| !node.removed && node.kind == NodeKind::Op) {
        let carries = matches!(
            node.op.category(),
            Category::Contraction | Category::Normalization | Category::Compression
        ) || node.op == Op::EMBEDDING;
        if !carries {
            continue;
        }
        for (name, (from, _)) in &node.operands {
            let name = program.text(*name);
            let is_weight = matches!(name, "weight" | "bias" | "mean" | "variance")
                || (node.op == Op::MATMUL && matches!(name, "a" | "b"))
                || node.op.category() == Category::Compression;
            if is_weight {
                open.push(*from);
            }
        }
    }
    while let Some(at) = open.pop() {
        if seen.insert(at, ()).is_some() {
            continue;
        }
        let node = &draft.nodes[at as usize];
        match node.kind {
            NodeKind::Constant(id) => {
                if let Some(constant) = program.constants.get_mut(id.0 as usize) {
                    constant.origin = ConstantOrigin::Parameter;
                }
            }
            NodeKind::Op => {
                let moves = node.op.is_transparent()
                    || matches!(node.op, Op::TRANSPOSE | Op::CAST | Op::DEQUANTIZE)
                    || node.op.category() == Category::Compression;
                if moves {
                    open.extend(node.operands.iter().map(|(_, (from, _))| *from));
                }
            }
            _ => {}
        }
    }
}
