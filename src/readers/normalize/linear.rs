//! `linear` out of its spellings: a product of a value with a constant weight, the transposes and
//! reshapes around it, and the bias added after it. The weight is seen through compression.

use rustc_hash::FxBuildHasher;
use std::collections::HashMap;

use super::edit::redirect;
use super::{Context, Editor, absorb, keep_own_spelling, note_absorbed};
use crate::graph::{Attr, Category, Dim, Draft, DraftNode, DraftOperand, NodeFlags, NodeKind, Op};

/// Rewrites `addmm`, `matmul` (+ `add`) with a constant weight to `linear`, and a product over
/// merged batch axes to one over the axes themselves.
pub fn linear(mut draft: Draft, context: &mut Context<'_>) -> Draft {
    let wanted = |node: &DraftNode| {
        !node.removed && node.kind == NodeKind::Op && matches!(node.op, Op::MATMUL | Op::ADDMM)
    };
    if !draft.nodes.iter().any(wanted) {
        return draft;
    }
    let mut pass = Pass {
        counts: draft.use_counts(),
        users: single_users(&draft),
        moved: HashMap::default(),
        constant: constants(&draft),
        made: Vec::new(),
        draft: &mut draft,
        context,
    };
    for at in 0..pass.draft.nodes.len() as u32 {
        if wanted(&pass.draft.nodes[at as usize]) {
            pass.product(at);
        }
    }
    let (moved, made) = (std::mem::take(&mut pass.moved), std::mem::take(&mut pass.made));
    redirect(&mut draft, &moved);
    let mut editor = Editor::new(draft);
    for (at, node) in made {
        editor.insert_before(at, node);
    }
    editor.finish()
}

/// For each node the one op that uses it, if it is one and uses it once.
fn single_users(draft: &Draft) -> Vec<Option<u32>> {
    let mut users: Vec<Option<u32>> = vec![None; draft.nodes.len()];
    let mut several = vec![false; draft.nodes.len()];
    for (at, node) in draft.nodes.iter().enumerate().filter(|(_, node)| !node.removed) {
        if node.op == Op::ASSERT {
            continue;
        }
        for (_, (producer, _)) in &node.operands {
            let producer = *producer as usize;
            if users[producer].replace(at as u32).is_some() {
                several[producer] = true;
            }
        }
    }
    for (user, several) in users.iter_mut().zip(several) {
        if several {
            *user = None;
        }
    }
    users
}

/// Which nodes are weights: constants, and what decompression, casts and moves make of constants.
fn constants(draft: &Draft) -> Vec<bool> {
    let mut constant = vec![false; draft.nodes.len()];
    for (at, node) in draft.nodes.iter().enumerate() {
        constant[at] = match node.kind {
            NodeKind::Constant(_) => true,
            NodeKind::Op => {
                let moves = node.op.is_transparent()
                    || matches!(node.op, Op::TRANSPOSE | Op::CAST | Op::DEQUANTIZE)
                    || node.op.category() == Category::Compression;
                moves
                    && !node.operands.is_empty()
                    && node.operands.iter().all(|(_, (from, _))| constant[*from as usize])
            }
            _ => false,
        };
    }
    constant
}

struct Pass<'d, 'c, 'p> {
    draft: &'d mut Draft,
    context: &'c mut Context<'p>,
    counts: Vec<u32>,
    users: Vec<Option<u32>>,
    constant: Vec<bool>,
    moved: HashMap<DraftOperand, DraftOperand, FxBuildHasher>,
    /// Nodes to insert, each before one of the draft; the first is numbered after the draft's last.
    made: Vec<(u32, DraftNode)>,
}

impl Pass<'_, '_, '_> {
    fn dims(&self, (node, result): DraftOperand) -> Option<&[Dim]> {
        let shape = self.draft.nodes.get(node as usize)?.results.get(result as usize)?.2;
        self.context.program.shapes.get(shape).dims()
    }

    fn dtype(&self, (node, result): DraftOperand) -> Option<crate::graph::DType> {
        Some(self.draft.nodes.get(node as usize)?.results.get(result as usize)?.1)
    }

    /// Looks through ops that do nothing (a clone, a contiguous) to a node of `op`.
    fn find(&self, mut value: DraftOperand, op: Op) -> Option<u32> {
        for _ in 0..8 {
            let node = self.draft.nodes.get(value.0 as usize)?;
            if node.op == op && node.kind == NodeKind::Op {
                return Some(value.0);
            }
            let same = matches!(node.op, Op::IDENTITY | Op::DETACH | Op::CLONE | Op::CONTIGUOUS);
            if node.kind != NodeKind::Op || !same {
                return None;
            }
            value = node.operands.first()?.1;
        }
        None
    }

    fn product(&mut self, at: u32) {
        let w = *self.context.words;
        let node = &self.draft.nodes[at as usize];
        let (Some(a), Some(b)) = (node.operand(w.a), node.operand(w.b)) else { return };
        let (a, b) = (self.present(a), self.present(b));
        let turned = |name| node.attribute(name).and_then(Attr::as_bool).unwrap_or(false);
        let plain = node.attribute(w.alpha).is_none()
            && node.attribute(w.beta).is_none()
            && !turned(w.transpose_a)
            && !turned(w.transpose_b);
        let is_weight =
            self.constant[b.0 as usize] && self.dims(b).is_some_and(|dims| dims.len() == 2);
        if !is_weight || !plain {
            if self.draft.nodes[at as usize].op == Op::MATMUL {
                self.batched(at, a, b);
            }
            return;
        }
        // The weight as [out, in]: the transpose of what was multiplied with, or that itself taken
        // the other way round.
        let transposed = self.find(b, Op::TRANSPOSE).filter(|&transpose| {
            self.draft.nodes[transpose as usize].attribute(w.permutation).and_then(Attr::as_ints)
                == Some(vec![1, 0])
        });
        if transposed.is_none() && self.constant[a.0 as usize] {
            return;
        }
        let weight = match transposed {
            Some(transposed) => match self.draft.nodes[transposed as usize].operands.first() {
                Some(&(_, weight)) => weight,
                None => return,
            },
            None => self.turned(at, b),
        };
        let out = match transposed {
            Some(_) => self.dims(weight).and_then(|dims| dims.first().copied()),
            None => self.dims(b).and_then(|dims| dims.get(1).copied()),
        };
        let mut bias = None;
        if self.draft.nodes[at as usize].op == Op::ADDMM {
            bias = self.draft.nodes[at as usize].operand(w.bias);
            // A bias that is no vector over the outputs is an add of its own.
            let vector = bias.and_then(|bias| self.dims(bias)).is_some_and(|dims| match dims {
                [size] => Some(*size) == out,
                _ => false,
            });
            if !vector {
                // The transpose made for it was the last one.
                if transposed.is_none() {
                    self.made.pop();
                }
                return;
            }
        }
        // Reshapes to two axes and back.
        let mut input = a;
        let mut result = at;
        if let Some((before, from, after)) = self.flattened(at, a) {
            input = from;
            result = after;
            self.take_shape(at, after);
            self.take(at, before);
        }
        if let Some(add) = self.bias_add(result, out, bias) {
            let (node, value) = add;
            bias = Some(value);
            self.take_shape(at, node);
        }
        if let Some(transposed) = transposed {
            self.take(at, transposed);
        }
        let node = &mut self.draft.nodes[at as usize];
        keep_own_spelling(node);
        node.op = Op::LINEAR;
        node.attributes.clear();
        node.operands = vec![(w.input, input), (w.weight, weight)];
        if let Some(bias) = bias {
            node.operands.push((w.bias, bias));
        }
    }

    /// A constant `[in, out]` the other way round.
    fn turned(&mut self, at: u32, weight: DraftOperand) -> DraftOperand {
        let w = *self.context.words;
        let Some(&(name, dtype, shape, _)) =
            self.draft.nodes[weight.0 as usize].results.get(weight.1 as usize)
        else {
            return weight;
        };
        let mut dims = self.context.program.shapes.get(shape).dims().unwrap_or_default().to_vec();
        dims.reverse();
        let shape = self.context.program.shapes.intern(&dims);
        let mut node = DraftNode::new(NodeKind::Op, name);
        node.op = Op::TRANSPOSE;
        node.flags.insert(NodeFlags::IMPLICIT);
        node.provenance = self.draft.nodes[at as usize].provenance;
        node.operands = vec![(w.input, weight)];
        node.attributes = vec![(w.permutation, Attr::Ints([Some(1), Some(0)].into()))];
        node.results = vec![(name, dtype, shape, None)];
        self.made.push((at, node));
        ((self.draft.nodes.len() + self.made.len() - 1) as u32, 0)
    }

    /// What a value is by now.
    fn present(&self, mut value: DraftOperand) -> DraftOperand {
        for _ in 0..=self.moved.len() {
            let Some(&to) = self.moved.get(&value) else { break };
            value = to;
        }
        value
    }

    /// `at` works on a reshape of `[…, k]` to `[n, k]`, and its only user reshapes `[n, m]` back to
    /// `[…, m]`: the first reshape, what it reshapes, and the second.
    fn flattened(&self, at: u32, a: DraftOperand) -> Option<(u32, DraftOperand, u32)> {
        let before = self.find(a, Op::RESHAPE)?;
        let &(_, from) = self.draft.nodes[before as usize].operands.first()?;
        let from = self.present(from);
        let after = self.users[at as usize]?;
        let reshape = &self.draft.nodes[after as usize];
        if reshape.removed || reshape.op != Op::RESHAPE {
            return None;
        }
        let (outer, inner) = (self.dims(from)?, self.dims(a)?);
        let (narrow, wide) = (self.dims((at, 0))?, self.dims((after, 0))?);
        let fits = inner.len() == 2
            && narrow.len() == 2
            && outer.len() == wide.len()
            && outer.last() == inner.last()
            && wide.last() == narrow.last()
            && outer.split_last().map(|x| x.1) == wide.split_last().map(|x| x.1);
        fits.then_some((before, from, after))
    }

    /// The add of a constant vector over the outputs that is the product's only user.
    fn bias_add(
        &self,
        result: u32,
        out: Option<Dim>,
        bias: Option<DraftOperand>,
    ) -> Option<(u32, DraftOperand)> {
        if bias.is_some() {
            return None;
        }
        let w = self.context.words;
        let add = self.users[result as usize]?;
        let node = &self.draft.nodes[add as usize];
        if node.removed || node.op != Op::ADD || node.attribute(w.alpha).is_some() {
            return None;
        }
        let (a, b) = (node.operand(w.a)?, node.operand(w.b)?);
        let other = if a.0 == result { b } else { a };
        let vector = match self.dims(other)? {
            [size] => Some(*size) == out,
            _ => false,
        };
        let same = self.dtype(other) == self.dtype((result, 0))
            && node.results.first().map(|r| r.1) == self.dtype((result, 0));
        let is_constant =
            matches!(self.draft.nodes.get(other.0 as usize)?.kind, NodeKind::Constant(_));
        (vector && same && is_constant).then_some((add, other))
    }

    /// `keeper` stands for `taken` from now on: it takes its result type, and its users.
    fn take_shape(&mut self, keeper: u32, taken: u32) {
        let Some(result) = self.draft.nodes[taken as usize].results.first().copied() else {
            return;
        };
        if let Some(slot) = self.draft.nodes[keeper as usize].results.first_mut() {
            *slot = result;
        }
        self.users[keeper as usize] = self.users[taken as usize];
        absorb(self.draft, keeper, taken);
        self.moved.insert((taken, 0), (keeper, 0));
    }

    /// `keeper` does what `taken` did for it; `taken` goes if nobody else uses it.
    fn take(&mut self, keeper: u32, taken: u32) {
        let count = &mut self.counts[taken as usize];
        *count = count.saturating_sub(1);
        if *count == 0 {
            absorb(self.draft, keeper, taken);
        } else {
            note_absorbed(self.draft, keeper, taken);
        }
    }

    /// A product over one merged batch axis whose operands and result are reshapes of `[b, h, …]`:
    /// torch's decomposition of a batched matmul. The reshapes, and the expands before them that
    /// change nothing, go.
    fn batched(&mut self, at: u32, a: DraftOperand, b: DraftOperand) {
        let Some(after) = self.users[at as usize] else { return };
        let reshape = &self.draft.nodes[after as usize];
        if reshape.removed || reshape.op != Op::RESHAPE {
            return;
        }
        let Some(wide) = self.dims((after, 0)).map(<[Dim]>::to_vec) else { return };
        let Some(narrow) = self.dims((at, 0)).map(<[Dim]>::to_vec) else { return };
        let [.., rows, columns] = wide.as_slice() else { return };
        if narrow.len() != 3
            || wide.len() <= 3
            || narrow.get(1) != Some(rows)
            || narrow.get(2) != Some(columns)
        {
            return;
        }
        let lead = &wide[..wide.len() - 2];
        let mut sources = Vec::new();
        for value in [a, b] {
            let Some(before) = self.find(value, Op::RESHAPE) else { return };
            let Some(&(_, from)) = self.draft.nodes[before as usize].operands.first() else {
                return;
            };
            let mut from = self.present(from);
            let (Some(outer), Some(inner)) = (self.dims(from), self.dims(value)) else { return };
            let fits = inner.len() == 3
                && outer.len() == wide.len()
                && outer[..outer.len() - 2] == *lead
                && outer[outer.len() - 2..] == inner[1..];
            if !fits {
                return;
            }
            let mut passed = vec![before];
            // `matmul` decomposes into expands that change nothing.
            while let Some(node) = self.draft.nodes.get(from.0 as usize)
                && matches!(node.op, Op::EXPAND | Op::IDENTITY)
                && node.kind == NodeKind::Op
                && let Some(&(_, below)) = node.operands.first()
                && self.dims(below) == self.dims(from)
                && passed.len() < 8
            {
                passed.push(from.0);
                from = self.present(below);
            }
            sources.push((from, passed));
        }
        self.take_shape(at, after);
        let names = [self.context.words.a, self.context.words.b];
        for ((source, passed), name) in sources.into_iter().zip(names) {
            if let Some((_, operand)) =
                self.draft.nodes[at as usize].operands.iter_mut().find(|(known, _)| *known == name)
            {
                *operand = source;
            }
            let mut free = true;
            for taken in passed {
                if free {
                    self.take(at, taken);
                    free = self.draft.nodes[taken as usize].removed;
                }
            }
        }
    }
}
