//! In-place ops made functional. A plain export writes into views of buffers and says nothing of it:
//! `copy_` on a slice, later reads of the buffer see the new value. Here every write becomes a new
//! value of the tensor that is viewed, in the form that torch's own decomposition has
//! (`slice_update` of the base), and every later read is pointed at it.

use super::builder::{GraphDraft, Table};
use crate::graph::{
    Attr, Dim, DraftNode, DraftOperand, Name, NodeFlags, NodeKind, Op, ProvenanceId, ShapeId,
    Shapes,
};
use crate::readers::normalize::{Context, Editor};

/// Views are taken anew after every write to their base. A file could make that quadratic: beyond
/// this many nodes for each stored one, views stay as they were.
const MAX_GROWTH: usize = 8;

/// A value's place in its base.
#[derive(Debug, Clone, Copy)]
struct View {
    /// The node that makes the view; `None` for the result of an in-place op, which is the tensor it
    /// wrote into.
    node: Option<u32>,
    /// What it looks into.
    parent: DraftOperand,
    /// What that looks into in the end.
    base: DraftOperand,
}

struct Functional<'c, 'p> {
    context: &'c mut Context<'p>,
    editor: Editor,
    views: Table<DraftOperand, View>,
    /// Newest value of a base that was written, and how often it was.
    bases: Table<DraftOperand, (DraftOperand, u32)>,
    /// Newest value of a view, and how often its base had been written then.
    fresh: Table<DraftOperand, (DraftOperand, u32)>,
    /// Most nodes the draft may come to have.
    limit: usize,
}

/// Makes the in-place ops of a graph functional; a graph input that was written is marked as
/// `finish` does for the writes of a signature.
pub(super) fn functional(graph: &mut GraphDraft, context: &mut Context<'_>) {
    if graph.in_place.is_empty() {
        return;
    }
    let targets: Table<u32, DraftOperand> =
        graph
            .in_place
            .iter()
            .filter(|(at, _)| {
                // `detach_` and `squeeze_` change what is known of a tensor, not its elements.
                graph.draft.nodes.get(*at as usize).is_some_and(|node| {
                    !(node.op.is_transparent() || matches!(node.op, Op::TRANSPOSE))
                })
            })
            .filter_map(|(at, name)| Some((*at, *graph.values.get(name)?)))
            .collect();
    let mut work = Functional {
        context,
        editor: Editor::new(std::mem::take(&mut graph.draft)),
        views: Table::default(),
        bases: Table::default(),
        fresh: Table::default(),
        limit: 0,
    };
    work.limit = work.editor.draft.nodes.len() * MAX_GROWTH + 4096;
    let count = work.editor.draft.nodes.len();
    for at in 0..count as u32 {
        // What the first operand is called before it is brought up to date: views are learnt by it.
        let viewed = work.editor.draft.nodes[at as usize].operands.first().map(|(_, value)| *value);
        for slot in 0..work.editor.draft.nodes[at as usize].operands.len() {
            let node = &work.editor.draft.nodes[at as usize];
            // A mark of a write names its target, not its value.
            if slot == 0 && node.flags.contains(NodeFlags::MUTATION) {
                continue;
            }
            let operand = node.operands[slot].1;
            let newest = work.read(operand, at);
            work.editor.draft.nodes[at as usize].operands[slot].1 = newest;
        }
        match targets.get(&at) {
            Some(&target) => work.write(target, at),
            None => work.learn_views(at, viewed),
        }
    }
    let mut writes: Vec<(u32, DraftOperand)> = work
        .bases
        .iter()
        .filter(|((node, _), _)| {
            let node = &work.editor.draft.nodes[*node as usize];
            match node.kind {
                NodeKind::Input => true,
                NodeKind::Constant(id) => matches!(
                    work.context.program.constant(id).origin,
                    crate::graph::ConstantOrigin::Parameter | crate::graph::ConstantOrigin::Buffer
                ),
                _ => false,
            }
        })
        .map(|(&(target, _), &(value, _))| (target, value))
        .collect();
    writes.sort_unstable();
    for (target, value) in writes {
        work.editor.push(write_mark(target, value));
    }
    graph.draft = work.editor.finish();
}

/// A node that carries a write through renumbering: `[target, new value]`, flagged as a mutation.
pub(super) fn write_mark(target: u32, value: DraftOperand) -> DraftNode {
    let mut mark = DraftNode::new(NodeKind::Output, Name::EMPTY);
    mark.operands = vec![(Name::EMPTY, (target, 0)), (Name::EMPTY, value)];
    mark.flags.insert(NodeFlags::MUTATION);
    mark
}

impl Functional<'_, '_> {
    fn base(&self, value: DraftOperand) -> DraftOperand {
        self.views.get(&value).map_or(value, |view| view.base)
    }

    /// The newest value of `value` for a reader at `at`.
    fn read(&mut self, value: DraftOperand, at: u32) -> DraftOperand {
        let Some(&(newest, version)) = self.bases.get(&self.base(value)) else { return value };
        if self.editor.draft.nodes.len() > self.limit {
            return value;
        }
        // From the value down to what is up to date, then up again.
        let mut stale = Vec::new();
        let mut cursor = value;
        let mut current = loop {
            if let Some(&(known, when)) = self.fresh.get(&cursor)
                && when == version
            {
                break known;
            }
            match self.views.get(&cursor) {
                Some(view) => {
                    stale.push(cursor);
                    cursor = view.parent;
                }
                None => break newest,
            }
        };
        while let Some(view) = stale.pop() {
            if let Some(node) = self.views.get(&view).and_then(|view| view.node) {
                let mut again = self.editor.draft.nodes[node as usize].clone();
                if let Some((_, operand)) = again.operands.first_mut() {
                    *operand = current;
                }
                current = (self.editor.insert_before(at, again), view.1);
            }
            self.fresh.insert(view, (current, version));
        }
        current
    }

    /// Node `at` writes into `target`: its result is the new value.
    fn write(&mut self, target: DraftOperand, at: u32) {
        let base = self.base(target);
        let mut value = (at, 0);
        let mut cursor = target;
        if self.editor.draft.nodes.len() > self.limit {
            return;
        }
        while let Some(&View { node, parent, .. }) = self.views.get(&cursor) {
            if let Some(node) = node {
                let around = self.read(parent, at);
                value = self.put_back(node, cursor.1, around, value, at);
            }
            cursor = parent;
        }
        let version = self.bases.get(&base).map_or(0, |(_, version)| *version) + 1;
        self.bases.insert(base, (value, version));
        self.fresh.insert(target, ((at, 0), version));
        self.views.insert((at, 0), View { node: None, parent: target, base });
        self.fresh.insert((at, 0), ((at, 0), version));
    }

    /// Remembers which results of a node are views of its first operand.
    fn learn_views(&mut self, at: u32, viewed: Option<DraftOperand>) {
        let node = &self.editor.draft.nodes[at as usize];
        if node.kind != NodeKind::Op || !self.is_view(node) {
            return;
        }
        let Some(parent) = viewed else { return };
        let base = self.base(parent);
        let version = self.bases.get(&base).map(|(_, version)| *version);
        for result in 0..node.results.len() as u32 {
            self.views.insert((at, result), View { node: Some(at), parent, base });
            if let Some(version) = version {
                self.fresh.insert((at, result), ((at, result), version));
            }
        }
    }

    fn is_view(&self, node: &DraftNode) -> bool {
        let spelling = self.context.program.names.get(node.spelling);
        if spelling.contains("copy") {
            return false;
        }
        let contiguous = || {
            node.operands
                .first()
                .and_then(|(_, operand)| self.editor.result(*operand))
                .is_some_and(|result| result.3.is_none())
        };
        match node.op {
            Op::IDENTITY
            | Op::DETACH
            | Op::SQUEEZE
            | Op::UNSQUEEZE
            | Op::SLICE
            | Op::SELECT
            | Op::TRANSPOSE
            | Op::EXPAND
            | Op::SPLIT
            | Op::UNBIND
            | Op::DIAGONAL
            | Op::AS_STRIDED
            | Op::VIEW_AS_REAL
            | Op::VIEW_AS_COMPLEX => true,
            Op::RESHAPE | Op::FLATTEN => !spelling.starts_with("aten.reshape") || contiguous(),
            Op::CONTIGUOUS => contiguous(),
            Op::CAST => {
                let from =
                    node.operands.first().and_then(|(_, operand)| self.editor.result(*operand));
                spelling.starts_with("aten.to.")
                    && from.map(|result| result.1) == node.results.first().map(|result| result.1)
            }
            _ => false,
        }
    }

    /// The new value of what a view looks into, when the view's own new value is `value`.
    fn put_back(
        &mut self,
        view: u32,
        result: u32,
        around: DraftOperand,
        value: DraftOperand,
        at: u32,
    ) -> DraftOperand {
        let w = *self.context.words;
        let node = self.editor.draft.nodes[view as usize].clone();
        let writer = &self.editor.draft.nodes[at as usize];
        let (provenance, spelling, name) = (writer.provenance, writer.spelling, writer.name);
        let Some(&(_, dtype, shape, strides)) = self.editor.result(around) else { return value };
        let new = |op: Op| {
            let mut made = DraftNode::new(NodeKind::Op, name);
            made.op = op;
            made.spelling = spelling;
            made.provenance = provenance;
            made.results = vec![(Name::EMPTY, dtype, shape, strides)];
            made
        };
        match node.op {
            Op::IDENTITY | Op::DETACH | Op::CONTIGUOUS | Op::CAST => value,
            Op::RESHAPE | Op::FLATTEN | Op::SQUEEZE | Op::UNSQUEEZE => {
                let mut made = new(Op::RESHAPE);
                made.operands = vec![(w.input, value)];
                made.attributes = vec![(w.shape, shape_attr(&self.context.program.shapes, shape))];
                (self.editor.insert_before(at, made), 0)
            }
            Op::TRANSPOSE => {
                let order =
                    node.attribute(w.permutation).and_then(Attr::as_ints).unwrap_or_default();
                let mut inverse = vec![Some(0i64); order.len()];
                for (to, from) in order.iter().enumerate() {
                    if let Some(slot) = usize::try_from(*from).ok().and_then(|n| inverse.get_mut(n))
                    {
                        *slot = i64::try_from(to).ok();
                    }
                }
                let mut made = new(Op::TRANSPOSE);
                made.operands = vec![(w.input, value)];
                made.attributes = vec![(w.permutation, Attr::Ints(inverse.into()))];
                (self.editor.insert_before(at, made), 0)
            }
            Op::SLICE => {
                let mut made = new(Op::SLICE_UPDATE);
                made.operands = vec![(w.input, around), (w.update, value)];
                made.operands.extend(node.operands.iter().skip(1).copied());
                made.attributes.clone_from(&node.attributes);
                (self.editor.insert_before(at, made), 0)
            }
            Op::SELECT | Op::UNBIND | Op::SPLIT => {
                let axis = node.attribute(w.axis).and_then(Attr::as_int).unwrap_or(0);
                let index = self.context.program.names.intern("index");
                let mut made = new(Op::SLICE_UPDATE);
                made.attributes = vec![(w.axis, Attr::Int(axis)), (w.step, Attr::Int(1))];
                let (begin, end) = match node.op {
                    Op::SPLIT => {
                        let sizes = match node.attribute(w.sizes) {
                            Some(Attr::Ints(list)) => list.to_vec(),
                            _ => Vec::new(),
                        };
                        let sum = |count: usize| {
                            sizes
                                .iter()
                                .take(count)
                                .try_fold(0i64, |n, size| n.checked_add((*size)?))
                        };
                        (sum(result as usize), sum(result as usize + 1))
                    }
                    Op::UNBIND => (Some(i64::from(result)), Some(i64::from(result) + 1)),
                    _ => {
                        let begin = node.attribute(index).and_then(Attr::as_int);
                        (begin, begin.and_then(|n| n.checked_add(1)))
                    }
                };
                let ints = |n: Option<i64>| n.map_or(Attr::Dynamic, Attr::Int);
                made.attributes.push((w.begin, ints(begin)));
                made.attributes.push((w.end, ints(end)));
                let update = if node.op == Op::SPLIT {
                    value
                } else {
                    self.unsqueeze(value, axis, provenance, at)
                };
                made.operands = vec![(w.input, around), (w.update, update)];
                if let Some(operand) = node.operand(index) {
                    made.operands.push((w.begin, operand));
                }
                (self.editor.insert_before(at, made), 0)
            }
            // A write through a view that has no inverse here: the new value is there, how it came
            // about is not.
            _ => {
                let mut made = new(Op::UNKNOWN);
                made.operands = vec![(w.input, around), (w.input, value)];
                (self.editor.insert_before(at, made), 0)
            }
        }
    }

    fn unsqueeze(
        &mut self,
        value: DraftOperand,
        axis: i64,
        provenance: ProvenanceId,
        at: u32,
    ) -> DraftOperand {
        let Some(&(_, dtype, shape, _)) = self.editor.result(value) else { return value };
        let mut dims = match self.context.program.shapes.get(shape).dims() {
            Some(dims) => dims.to_vec(),
            None => return value,
        };
        let place = usize::try_from(axis).unwrap_or(0).min(dims.len());
        dims.insert(place, Dim::Static(1));
        let shape = self.context.program.shapes.intern(&dims);
        let mut made = DraftNode::new(NodeKind::Op, Name::EMPTY);
        made.op = Op::UNSQUEEZE;
        made.provenance = provenance;
        made.spelling = self.context.program.names.intern("aten.unsqueeze.default");
        made.operands = vec![(self.context.words.input, value)];
        made.attributes = vec![(self.context.words.axes, Attr::Ints([Some(axis)].into()))];
        made.results = vec![(Name::EMPTY, dtype, shape, None)];
        (self.editor.insert_before(at, made), 0)
    }
}

fn shape_attr(shapes: &Shapes, shape: ShapeId) -> Attr {
    let dims = shapes.get(shape).dims().unwrap_or_default();
    Attr::Ints(dims.iter().map(|dim| dim.value().and_then(|n| i64::try_from(n).ok())).collect())
}
