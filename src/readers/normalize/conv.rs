//! What belongs to a convolution or pool: the bias added after it, the padding put before it.

use rustc_hash::FxBuildHasher;
use std::collections::HashMap;

use super::edit::redirect;
use super::{Context, absorb, keep_own_spelling};
use crate::graph::{Attr, Dim, Draft, DraftNode, DraftOperand, NodeKind, Op, Payload};

/// Takes bias adds into `conv` and `conv_transpose`, and pads into `conv` and pools.
pub fn conv(draft: &mut Draft, context: &mut Context<'_>) {
    let wanted = |node: &DraftNode| {
        node.kind == NodeKind::Op
            && !node.removed
            && matches!(node.op, Op::CONV | Op::CONV_TRANSPOSE | Op::MAX_POOL | Op::AVG_POOL)
    };
    if !draft.nodes.iter().any(wanted) {
        return;
    }
    let mut counts = draft.use_counts();
    let mut adds: HashMap<u32, u32, FxBuildHasher> = HashMap::default();
    for (at, node) in draft.nodes.iter().enumerate() {
        if node.op == Op::ADD && node.kind == NodeKind::Op && !node.removed {
            for (_, (from, _)) in &node.operands {
                adds.insert(*from, at as u32);
            }
        }
    }
    let mut moved: HashMap<DraftOperand, DraftOperand, FxBuildHasher> = HashMap::default();
    for at in 0..draft.nodes.len() as u32 {
        if !wanted(&draft.nodes[at as usize]) {
            continue;
        }
        take_pad(draft, context, &mut counts, at);
        if counts[at as usize] == 1
            && let Some(&add) = adds.get(&at)
            && let Some(bias) = bias(draft, context, at, add)
        {
            let result = draft.nodes[add as usize].results.first().copied();
            absorb(draft, at, add);
            let node = &mut draft.nodes[at as usize];
            node.operands.push((context.words.bias, bias));
            if let (Some(slot), Some(result)) = (node.results.first_mut(), result) {
                *slot = result;
            }
            moved.insert((add, 0), (at, 0));
        }
    }
    redirect(draft, &moved);
}

fn dims<'a>(draft: &Draft, context: &'a Context<'_>, value: DraftOperand) -> Option<&'a [Dim]> {
    let shape = draft.nodes.get(value.0 as usize)?.results.get(value.1 as usize)?.2;
    context.program.shapes.get(shape).dims()
}

/// The other operand of the add, if it is one constant a channel, with the channels themselves
/// behind any reshape.
fn bias(draft: &Draft, context: &Context<'_>, at: u32, add: u32) -> Option<DraftOperand> {
    let w = context.words;
    let node = draft.nodes.get(add as usize)?;
    let conv = draft.nodes.get(at as usize)?;
    if !matches!(conv.op, Op::CONV | Op::CONV_TRANSPOSE)
        || conv.operand(w.bias).is_some()
        || node.attribute(w.alpha).is_some()
        || node.removed
    {
        return None;
    }
    let (a, b) = (node.operand(w.a)?, node.operand(w.b)?);
    let mut other = if a.0 == at { b } else { a };
    let out = dims(draft, context, (at, 0))?;
    let given = dims(draft, context, other)?;
    // Aligned from the right; all but the channel axis must be one.
    let channel = given.len().checked_add(1)?.checked_sub(out.len())?;
    let fits = given.len() <= out.len()
        && given.iter().enumerate().all(|(axis, dim)| {
            if axis == channel { Some(dim) == out.get(1) } else { *dim == Dim::Static(1) }
        });
    if !fits || node.results.first()?.2 != conv.results.first()?.2 {
        return None;
    }
    for _ in 0..8 {
        let source = draft.nodes.get(other.0 as usize)?;
        match source.kind {
            NodeKind::Constant(_) => {
                let same = source.results.first()?.1 == conv.results.first()?.1;
                return same.then_some(other);
            }
            NodeKind::Op if source.op.is_transparent() => other = source.operands.first()?.1,
            _ => return None,
        }
    }
    None
}

/// Takes a constant pad of the spatial axes into the conv or pool that it feeds.
fn take_pad(draft: &mut Draft, context: &Context<'_>, counts: &mut [u32], at: u32) -> Option<()> {
    let w = context.words;
    let node = &draft.nodes[at as usize];
    if node.op == Op::CONV_TRANSPOSE {
        return None;
    }
    let (producer, result) = node.operand(w.input)?;
    let pad = draft.nodes.get(producer as usize)?;
    if pad.op != Op::PAD
        || pad.kind != NodeKind::Op
        || pad.removed
        || counts[producer as usize] != 1
    {
        return None;
    }
    let constant = pad.attribute(w.mode).is_none_or(
        |mode| matches!(mode, Attr::Text(word) if context.program.names.get(*word) == "constant"),
    );
    let value = match (pad.attribute(w.value), pad.operand(w.value)) {
        (Some(value), _) => value.as_float()?,
        (None, Some((at, _))) => literal(draft, context, at)?,
        (None, None) => 0.0,
    };
    let neutral = match node.op {
        Op::CONV => value == 0.0,
        Op::MAX_POOL => value == f64::NEG_INFINITY,
        _ => {
            let counted = node.attribute(w.pads).and_then(Attr::as_ints)?;
            let name = context.program.names.find("count_include_pad");
            let include = name.and_then(|name| node.attribute(name)?.as_bool()).unwrap_or(true);
            value == 0.0 && include && counted.iter().all(|&n| n == 0)
        }
    };
    if !constant || !neutral {
        return None;
    }
    let pads = pad.attribute(w.pads)?.as_ints()?;
    let own = node.attribute(w.pads)?.as_ints()?;
    let (rank, spatial) = (pads.len() / 2, own.len() / 2);
    let lead = rank.checked_sub(spatial)?;
    if pads.iter().any(|&n| n < 0)
        || (0..lead).any(|axis| pads[axis] != 0 || pads[rank + axis] != 0)
    {
        return None;
    }
    let merged: Vec<Option<i64>> = (0..spatial * 2)
        .map(|at| {
            let side = at / spatial.max(1);
            own[at].checked_add(pads[side * rank + lead + at % spatial.max(1)])
        })
        .collect();
    let &(_, source) = pad.operands.first()?;
    let _ = result;
    absorb(draft, at, producer);
    let node = &mut draft.nodes[at as usize];
    keep_own_spelling(node);
    for (name, operand) in &mut node.operands {
        if *name == w.input {
            *operand = source;
        }
    }
    for (name, attr) in &mut node.attributes {
        if *name == w.pads {
            *attr = Attr::Ints(merged.clone().into());
        }
    }
    Some(())
}

fn literal(draft: &Draft, context: &Context<'_>, at: u32) -> Option<f64> {
    match draft.nodes.get(at as usize)?.kind {
        NodeKind::Constant(id) => match &context.program.constant(id).payload {
            Payload::Splat(value) => Some(*value),
            Payload::Values(values) if values.len() == 1 => values.first().copied(),
            _ => None,
        },
        _ => None,
    }
}
