//! Writes to buffers and inputs as `state_write`, reads as `state_read`, whatever way the format
//! spells them: the graph input becomes a state, the chain of updates that leads from it to its new
//! value becomes writes, and the new value goes to an output marked as a mutation.

use super::edit::{Editor, sweep};
use super::{Context, note_absorbed};
use crate::graph::{
    Attr, Dim, Draft, DraftNode, DraftOperand, Name, NodeFlags, NodeKind, Op, Payload, ShapeId,
};

/// Most ops that hand their input on unchanged which are looked through at one place.
const MAX_HANDED_ON: usize = 32;

/// A graph input that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// The graph input's node.
    pub target: u32,
    /// The value it has at the end.
    pub value: DraftOperand,
}

/// Where a write goes: ranges over the state's axes, and the value that lands there.
struct Region {
    /// `(begin, end)` for each axis of the state; `None` where only known at run time.
    ranges: Vec<Option<(i64, i64)>>,
    /// Axes that are written in part, in order.
    axes: Vec<usize>,
    /// Run-time begins.
    begins: Vec<DraftOperand>,
    /// Run-time ends.
    ends: Vec<DraftOperand>,
    /// What is written.
    update: DraftOperand,
    /// Axes of the state that the update lacks (a `select`).
    missing: Vec<usize>,
    /// Stored nodes that say all this.
    absorbed: Vec<u32>,
}

/// Turns written inputs into states. `writes` are in the order of their outputs; `names` the states'
/// names for people, in the same order. A state's marked output takes the place of an output that is
/// already there for it, else it is added.
pub fn states(draft: Draft, writes: &[Write], names: &[Name], context: &mut Context<'_>) -> Draft {
    if writes.is_empty() {
        return draft;
    }
    let mut work = States { editor: Editor::new(draft), context };
    let mut outputs = Vec::new();
    for (write, &name) in writes.iter().zip(names) {
        if let Some(value) = work.write(*write) {
            let mut output = DraftNode::new(NodeKind::Output, name);
            output.operands = vec![(Name::EMPTY, value)];
            output.flags.insert(NodeFlags::MUTATION);
            outputs.push(output);
        }
        if let Some(node) = work.editor.draft.nodes.get_mut(write.target as usize) {
            node.kind = NodeKind::State;
            node.name = name;
        }
    }
    let first_output = work
        .editor
        .draft
        .nodes
        .iter()
        .position(|node| node.kind == NodeKind::Output)
        .unwrap_or(work.editor.draft.nodes.len());
    for output in outputs {
        work.editor.insert_before(first_output as u32, output);
    }
    work.reads(writes);
    let mut draft = work.editor.finish();
    let views: Vec<u32> = (0..draft.nodes.len() as u32).collect();
    let copy = |node: &DraftNode| {
        matches!(node.op, Op::SLICE | Op::SELECT | Op::STATE_READ | Op::ARANGE | Op::EQUAL)
            || (node.op.is_transparent() && node.op != Op::ASSERT)
            || (node.op == Op::CAST && !node.spelling.is_empty())
    };
    sweep(&mut draft, views, copy);
    draft
}

struct States<'c, 'p> {
    editor: Editor,
    context: &'c mut Context<'p>,
}

impl States<'_, '_> {
    fn node(&self, at: u32) -> Option<&DraftNode> {
        self.editor.draft.nodes.get(at as usize)
    }

    fn shape(&self, value: DraftOperand) -> Option<Vec<Dim>> {
        let shape = self.editor.result(value)?.2;
        self.context.program.shapes.get(shape).dims().map(<[Dim]>::to_vec)
    }

    /// Looks through nodes that hand their first operand on unchanged.
    fn through(&self, mut value: DraftOperand, absorbed: &mut Vec<u32>) -> DraftOperand {
        for _ in 0..MAX_HANDED_ON {
            let Some(node) = self.node(value.0) else { return value };
            let same = node.kind == NodeKind::Op
                && value.1 == 0
                && node.operands.first().is_some_and(|(_, from)| {
                    let (Some(from), Some(to)) = (self.editor.result(*from), node.results.first())
                    else {
                        return false;
                    };
                    match node.op {
                        Op::IDENTITY | Op::DETACH | Op::CLONE | Op::CONTIGUOUS => true,
                        Op::CAST => from.1 == to.1 && from.2 == to.2,
                        _ => false,
                    }
                });
            let Some(&(_, from)) = node.operands.first().filter(|_| same) else { return value };
            absorbed.push(value.0);
            value = from;
        }
        value
    }

    /// Makes the writes that lead from a state to its new value; gives the last one's result.
    fn write(&mut self, Write { target, value }: Write) -> Option<DraftOperand> {
        let state = (target, 0);
        let mut chain = Vec::new();
        let mut cursor = self.through(value, &mut Vec::new());
        for _ in 0..self.editor.draft.nodes.len() {
            if cursor == state {
                break;
            }
            if let Some(update) = self.select_scatter(cursor.0)
                && let Some(slot) = self.editor.draft.nodes.get_mut(cursor.0 as usize)
            {
                *slot = update;
            }
            let node = self.node(cursor.0)?;
            if cursor.1 != 0 || !self.is_update(node) {
                return self.write_whole(target, value);
            }
            chain.push(cursor.0);
            let &(_, from) = node.operands.first()?;
            cursor = self.through(from, &mut Vec::new());
        }
        if cursor != state {
            return self.write_whole(target, value);
        }
        // Nobody wrote after all.
        chain.first()?;
        let mut before = state;
        for &at in chain.iter().rev() {
            self.convert(at, before);
            before = (at, 0);
        }
        Some(before)
    }

    /// A `where(arange == index, unsqueeze(update), input)` as the update of one place that it is:
    /// torch's decomposition of `select_scatter`.
    fn select_scatter(&self, at: u32) -> Option<DraftNode> {
        let w = self.context.words;
        let node = self.node(at).filter(|node| node.op == Op::WHERE)?;
        let (condition, update, input) =
            (node.operand(w.condition)?, node.operand(w.a)?, node.operand(w.b)?);
        let spread = |op: Op| matches!(op, Op::IDENTITY | Op::EXPAND);
        let update = self.down(update, spread)?;
        let unsqueeze = self.node(update.0).filter(|node| node.op == Op::UNSQUEEZE)?;
        let &[axis] = unsqueeze.attribute(w.axes)?.as_ints()?.as_slice() else { return None };
        let place = usize::try_from(axis).ok()?;
        // The condition runs along that axis alone, aligned from the right.
        let (given, whole) = (self.shape(condition)?, self.shape(input)?);
        let lead = whole.len().checked_sub(given.len())?;
        let along = place.checked_sub(lead)?;
        let alone = given.iter().enumerate().all(|(axis, dim)| {
            if axis == along { Some(dim) == whole.get(place) } else { *dim == Dim::Static(1) }
        });
        let compare = self.down(condition, Op::is_transparent)?;
        let compare = self.node(compare.0).filter(|node| node.op == Op::EQUAL)?;
        let numbers = self.down(compare.operand(w.a)?, Op::is_transparent)?;
        let numbers = self.node(numbers.0).filter(|node| node.op == Op::ARANGE)?;
        let counts = self.number(numbers.operand(w.start)?) == Some(0)
            && self.number(numbers.operand(w.step)?) == Some(1);
        let index = self.number(compare.operand(w.b)?)?;
        if !alone || !counts || index < 0 {
            return None;
        }
        let mut made = node.clone();
        made.op = Op::SLICE_UPDATE;
        made.operands = vec![(w.input, input), (w.update, update)];
        made.attributes = vec![
            (w.axis, Attr::Int(axis)),
            (w.begin, Attr::Int(index)),
            (w.end, Attr::Int(index.checked_add(1)?)),
            (w.step, Attr::Int(1)),
        ];
        Some(made)
    }

    /// Down through ops that `pass` lets by.
    fn down(&self, mut value: DraftOperand, pass: impl Fn(Op) -> bool) -> Option<DraftOperand> {
        for _ in 0..MAX_HANDED_ON {
            let node = self.node(value.0)?;
            if node.kind != NodeKind::Op || !pass(node.op) {
                return Some(value);
            }
            value = node.operands.first()?.1;
        }
        None
    }

    /// The whole number that a constant is.
    fn number(&self, (node, _): DraftOperand) -> Option<i64> {
        let NodeKind::Constant(id) = self.node(node)?.kind else { return None };
        let value = match &self.context.program.constant(id).payload {
            Payload::Splat(value) => *value,
            Payload::Values(values) if values.len() == 1 => *values.first()?,
            _ => return None,
        };
        (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
    }

    fn is_update(&self, node: &DraftNode) -> bool {
        let w = self.context.words;
        match node.op {
            Op::SLICE_UPDATE => {
                node.attribute(w.step).and_then(Attr::as_int).unwrap_or(1) == 1
                    && node.operand(w.update).is_some()
            }
            Op::SCATTER => {
                node.attribute(w.mode).is_none()
                    && node.operand(w.updates).is_some()
                    && node.operand(w.indices).is_some()
                    && node.attribute(w.axis).is_some()
            }
            Op::INDEX_PUT => {
                let indices = node.operands.iter().filter(|(name, _)| *name == w.indices).count();
                let accumulate = self
                    .context
                    .program
                    .names
                    .find("accumulate")
                    .and_then(|name| node.attribute(name)?.as_bool());
                indices == 1 && accumulate != Some(true) && node.operand(w.updates).is_some()
            }
            _ => false,
        }
    }

    /// A write of the whole state.
    fn write_whole(&mut self, target: u32, value: DraftOperand) -> Option<DraftOperand> {
        if value == (target, 0) {
            return None;
        }
        let w = *self.context.words;
        let producer = self.node(value.0)?;
        let mut write = DraftNode::new(NodeKind::Op, producer.name);
        write.op = Op::STATE_WRITE;
        write.provenance = producer.provenance;
        write.spelling = producer.spelling;
        write.operands = vec![(w.state, (target, 0)), (w.update, value)];
        let &(_, dtype, shape, _) = self.editor.result((target, 0))?;
        write.results = vec![(Name::EMPTY, dtype, shape, None)];
        let at = self.editor.insert_before(value.0.saturating_add(1), write);
        Some((at, 0))
    }

    /// Turns one update into a write.
    fn convert(&mut self, at: u32, state: DraftOperand) {
        let w = *self.context.words;
        let Some(node) = self.node(at).cloned() else { return };
        if node.op != Op::SLICE_UPDATE {
            let (Some(update), Some(index)) = (node.operand(w.updates), node.operand(w.indices))
            else {
                return;
            };
            let axis = match (node.attribute(w.axis), node.attribute(w.axes)) {
                (Some(axis), _) => axis.as_int(),
                (None, Some(Attr::Ints(axes))) => axes.first().copied().flatten(),
                _ => None,
            };
            let mut absorbed = Vec::new();
            let update = self.through(update, &mut absorbed);
            if let Some(node) = self.editor.draft.nodes.get_mut(at as usize) {
                node.op = Op::STATE_WRITE;
                node.operands = vec![(w.state, state), (w.update, update), (w.begin, index)];
                node.attributes = axis.map(|axis| (w.axis, Attr::Int(axis))).into_iter().collect();
            }
            for absorbed in absorbed {
                note_absorbed(&mut self.editor.draft, at, absorbed);
            }
            return;
        }
        let Some(region) = self.region(at) else { return };
        let update = self.fit(&region, at);
        let Some(node) = self.editor.draft.nodes.get_mut(at as usize) else { return };
        node.op = Op::STATE_WRITE;
        node.operands = vec![(w.state, state), (w.update, update)];
        node.operands.extend(region.begins.iter().map(|&value| (w.begin, value)));
        node.operands.extend(region.ends.iter().map(|&value| (w.end, value)));
        node.attributes = match region.axes.as_slice() {
            [axis] => {
                let range = region.ranges.get(*axis).copied().flatten();
                let bound = |n: Option<i64>| n.map_or(Attr::Dynamic, Attr::Int);
                vec![
                    (w.axis, Attr::Int(*axis as i64)),
                    (w.begin, bound(range.map(|range| range.0))),
                    (w.end, bound(range.map(|range| range.1))),
                ]
            }
            // Several axes: lists over all of them.
            _ => {
                let side = |pick: fn((i64, i64)) -> i64| {
                    Attr::Ints(region.ranges.iter().map(|range| range.map(pick)).collect())
                };
                vec![(w.begin, side(|range| range.0)), (w.end, side(|range| range.1))]
            }
        };
        for absorbed in region.absorbed {
            note_absorbed(&mut self.editor.draft, at, absorbed);
        }
    }

    /// The region that an update writes, nested updates taken together.
    fn region(&self, at: u32) -> Option<Region> {
        let w = self.context.words;
        let outer = self.node(at)?;
        let dims = self.shape(*outer.operands.first().map(|(_, value)| value)?)?;
        let mut region = Region {
            ranges: dims
                .iter()
                .map(|dim| dim.value().and_then(|n| i64::try_from(n).ok()).map(|n| (0, n)))
                .collect(),
            axes: Vec::new(),
            begins: Vec::new(),
            ends: Vec::new(),
            update: outer.operand(w.update)?,
            missing: Vec::new(),
            absorbed: Vec::new(),
        };
        // Axes of the state that the axes of the present view stand for.
        let mut open: Vec<usize> = (0..dims.len()).collect();
        let mut current = at;
        for depth in 0..=dims.len() * 2 {
            let node = self.node(current)?;
            let local = usize::try_from(node.attribute(w.axis)?.as_int()?).ok()?;
            let &axis = open.get(local)?;
            let update = node.operand(w.update)?;
            let begin = node.attribute(w.begin).and_then(Attr::as_int);
            let end = node.attribute(w.end).and_then(Attr::as_int);
            let partial = region.axes.contains(&axis);
            let run_time = node.operand(w.begin).is_some() || node.operand(w.end).is_some();
            if depth > 0 && partial && (run_time || region.ranges.get(axis)?.is_none()) {
                // A run-time range within a range: left nested.
                break;
            }
            let slot = region.ranges.get_mut(axis)?;
            let offset = if partial { slot.map_or(0, |range| range.0) } else { 0 };
            *slot = match (begin, end) {
                (Some(begin), Some(end)) => {
                    Some((begin.checked_add(offset)?, end.checked_add(offset)?))
                }
                _ => None,
            };
            if !partial {
                region.axes.push(axis);
            }
            let named = |name: Name| {
                node.operands
                    .iter()
                    .filter(move |(known, _)| *known == name)
                    .map(|(_, value)| *value)
            };
            region.begins.extend(named(w.begin));
            region.ends.extend(named(w.end));
            let mut passed = Vec::new();
            let mut update = self.through(update, &mut passed);
            // A select: the update has an axis less, put back by an unsqueeze or left to us.
            let whole_rank = self.shape(update)?.len();
            let squeezed = self.node(update.0).filter(|node| {
                node.op == Op::UNSQUEEZE
                    && node.attribute(w.axes).and_then(Attr::as_ints) == Some(vec![local as i64])
            });
            let mut dropped = false;
            if whole_rank + 1 == open.len() {
                dropped = true;
            } else if let Some(node) = squeezed
                && let Some(&(_, from)) = node.operands.first()
                && self.selects(from, current)
            {
                passed.push(update.0);
                update = self.through(from, &mut passed);
                dropped = true;
            }
            if dropped {
                open.remove(local);
                region.missing.push(axis);
            }
            region.update = update;
            region.absorbed.extend(passed);
            // Does the update itself update a view of the same place?
            let nested = self.node(update.0).filter(|inner| {
                inner.op == Op::SLICE_UPDATE
                    && update.1 == 0
                    && inner.attribute(w.step).and_then(Attr::as_int).unwrap_or(1) == 1
                    && inner.operands.first().is_some_and(|(_, view)| self.looks_at(*view, current))
            });
            if nested.is_none() {
                break;
            }
            region.absorbed.push(update.0);
            current = update.0;
        }
        region.axes.sort_unstable();
        region.missing.sort_unstable();
        Some(region)
    }

    /// Whether the value put back through an unsqueeze came from a select of the place that `update`
    /// writes.
    fn selects(&self, value: DraftOperand, update: u32) -> bool {
        let value = self.through(value, &mut Vec::new());
        self.node(value.0).is_some_and(|node| {
            node.op == Op::SLICE_UPDATE
                && node.operands.first().is_some_and(|(_, view)| self.looks_at(*view, update))
        })
    }

    /// Whether `view` is the slice or select of the tensor and place that `update` writes.
    fn looks_at(&self, view: DraftOperand, update: u32) -> bool {
        let w = self.context.words;
        let view = self.through(view, &mut Vec::new());
        let (Some(view), Some(update)) = (self.node(view.0), self.node(update)) else {
            return false;
        };
        if view.attribute(w.axis) != update.attribute(w.axis) {
            return false;
        }
        let whole = |node: &DraftNode| {
            node.operands.first().map(|(_, value)| self.through(*value, &mut Vec::new()))
        };
        if whole(view) != whole(update) {
            return false;
        }
        match view.op {
            Op::SLICE => {
                view.attribute(w.begin) == update.attribute(w.begin)
                    && view.attribute(w.end) == update.attribute(w.end)
                    && view.operand(w.begin) == update.operand(w.begin)
                    && view.operand(w.end) == update.operand(w.end)
            }
            Op::SELECT => {
                let index = self.context.program.names.find("index");
                let at = index.and_then(|index| view.attribute(index)).and_then(Attr::as_int);
                at.is_some() && at == update.attribute(w.begin).and_then(Attr::as_int)
            }
            _ => false,
        }
    }

    /// The update with every axis of the state.
    fn fit(&mut self, region: &Region, at: u32) -> DraftOperand {
        let w = *self.context.words;
        if region.missing.is_empty() {
            return region.update;
        }
        let Some(&(_, dtype, shape, _)) = self.editor.result(region.update) else {
            return region.update;
        };
        let Some(mut dims) = self.context.program.shapes.get(shape).dims().map(<[Dim]>::to_vec)
        else {
            return region.update;
        };
        for &axis in &region.missing {
            dims.insert(axis.min(dims.len()), Dim::Static(1));
        }
        let shape: ShapeId = self.context.program.shapes.intern(&dims);
        let mut made = DraftNode::new(NodeKind::Op, Name::EMPTY);
        made.op = Op::UNSQUEEZE;
        made.provenance = self.node(at).map_or(crate::graph::ProvenanceId::NONE, |n| n.provenance);
        made.operands = vec![(w.input, region.update)];
        let axes = region.missing.iter().map(|&axis| i64::try_from(axis).ok()).collect();
        made.attributes = vec![(w.axes, Attr::Ints(axes))];
        made.results = vec![(Name::EMPTY, dtype, shape, None)];
        (self.editor.insert_before(at, made), 0)
    }

    /// Every remaining use of a state's value reads it first.
    fn reads(&mut self, writes: &[Write]) {
        let w = *self.context.words;
        let mut read: std::collections::BTreeMap<u32, Option<u32>> =
            writes.iter().map(|write| (write.target, None)).collect();
        for at in 0..self.editor.draft.nodes.len() as u32 {
            for slot in 0..self.editor.draft.nodes[at as usize].operands.len() {
                let user = &self.editor.draft.nodes[at as usize];
                let (name, (producer, result)) = user.operands[slot];
                let handle = user.op == Op::STATE_WRITE && name == w.state && slot == 0;
                if user.removed || result != 0 || handle || user.op == Op::STATE_READ {
                    continue;
                }
                let Some(made) = read.get(&producer).copied() else { continue };
                let reader = match made {
                    Some(reader) => reader,
                    None => {
                        let mut node = DraftNode::new(NodeKind::Op, Name::EMPTY);
                        node.op = Op::STATE_READ;
                        node.provenance = user.provenance;
                        node.operands = vec![(w.state, (producer, 0))];
                        if let Some(&result) = self.editor.result((producer, 0)) {
                            node.results = vec![result];
                        }
                        let reader = self.editor.insert_before(at, node);
                        read.insert(producer, Some(reader));
                        reader
                    }
                };
                self.editor.draft.nodes[at as usize].operands[slot].1 = (reader, 0);
            }
        }
    }
}
