//! What the stream of the document fills: one draft for each graph, with names resolved as soon as
//! they are known.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::argument::{Argument, SymArgument, dtype};
use super::convert::Target;
use super::document::TensorMeta;
use super::source_map::SourceMap;
use super::{sympy, trace};
use crate::graph::{
    Constant, ConstantId, ConstantOrigin, DType, Dim, DimExpr, Draft, DraftNode, DraftOperand,
    Frame, FunctionId, ModuleId, ModulePath, Name, NodeKind, Payload, Program, Provenance, ShapeId,
    StackId, Symbol, SymbolId,
};
use crate::readers::normalize::Words;

/// Most dims of a tensor: torch's own limit for `view` and for its iterators is 64 or less.
const MOST_DIMS: usize = 64;

/// A table keyed by small ids.
pub type Table<K, V> = HashMap<K, V, FxBuildHasher>;

/// Marks an operand whose producer has not been met yet; the other half is its name.
const UNRESOLVED: u32 = u32::MAX;

/// A node as parsed, before it is put into canonical terms. One buffer serves all nodes.
#[derive(Debug)]
pub struct Given {
    /// Op as stored.
    pub target: Name,
    /// Node name.
    pub name: Name,
    /// Arguments by stored name.
    pub inputs: Vec<(Name, Argument)>,
    /// Results.
    pub outputs: Vec<Argument>,
    /// Frames.
    pub stack: StackId,
    /// Module.
    pub module: ModuleId,
    /// The torch function.
    pub torch_op: Name,
}

impl Default for Given {
    fn default() -> Self {
        Given {
            target: Name::EMPTY,
            name: Name::EMPTY,
            inputs: Vec::new(),
            outputs: Vec::new(),
            stack: StackId::EMPTY,
            module: ModuleId::EMPTY,
            torch_op: Name::EMPTY,
        }
    }
}

impl Given {
    /// Makes it ready for the next node.
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.outputs.clear();
        self.target = Name::EMPTY;
        self.name = Name::EMPTY;
        self.stack = StackId::EMPTY;
        self.module = ModuleId::EMPTY;
        self.torch_op = Name::EMPTY;
    }
}

/// What the file says of a tensor.
type Meta = (DType, ShapeId, Option<ShapeId>);

/// A graph while it is read.
#[derive(Debug, Default)]
pub struct GraphDraft {
    /// Name of a nested graph.
    pub name: Name,
    /// The graph around it.
    pub parent: Option<FunctionId>,
    /// Nodes.
    pub draft: Draft,
    /// Graph inputs in order: their nodes.
    pub inputs: Vec<u32>,
    /// Graph outputs in order.
    pub outputs: Vec<Argument>,
    /// Nodes that write in place, and what they write into.
    pub in_place: Vec<(u32, Name)>,
    /// Who makes each value.
    pub values: Table<Name, DraftOperand>,
    /// Sizes that have a name.
    pub sizes: Table<Name, Dim>,
    /// Metadata of values not met yet.
    early: Table<Name, Meta>,
    /// Nodes with an operand not met yet.
    pending: Vec<u32>,
    /// A name that was given twice.
    duplicate: Option<Name>,
}

/// Fills a program from the stream of a document.
#[derive(Debug)]
pub struct Builder {
    /// The program being made.
    pub program: Program,
    /// Canonical words, interned once.
    pub words: Words,
    /// Every graph, the main one first.
    pub graphs: Vec<GraphDraft>,
    /// Frames that are known better than torch has recorded them.
    pub source_map: SourceMap,
    /// The graphs being read, innermost last.
    open: Vec<usize>,
    stacks: Table<Box<str>, StackId>,
    modules: Table<Box<str>, ModuleId>,
    sizes: Table<Box<str>, Dim>,
    symbols: Table<Name, SymbolId>,
    literals: Table<(DType, u64), ConstantId>,
    /// What is known of each op as stored.
    pub(super) targets: Table<Name, Target>,
}

impl Builder {
    /// Nothing read yet.
    pub fn new(mut program: Program) -> Builder {
        let words = Words::new(&mut program.names);
        Builder {
            program,
            words,
            graphs: Vec::new(),
            source_map: SourceMap::default(),
            open: Vec::new(),
            stacks: Table::default(),
            modules: Table::default(),
            sizes: Table::default(),
            symbols: Table::default(),
            literals: Table::default(),
            targets: Table::default(),
        }
    }

    /// Begins a graph inside the one being read.
    pub fn open_graph(&mut self) -> FunctionId {
        let id = self.graphs.len();
        let parent = self.open.last().map(|&parent| FunctionId(parent as u32));
        self.graphs.push(GraphDraft { parent, ..GraphDraft::default() });
        self.open.push(id);
        FunctionId(id as u32)
    }

    /// Ends the graph being read: everything it names must have been met.
    pub fn close_graph(&mut self) -> Result<(), String> {
        let Some(id) = self.open.pop() else { return Ok(()) };
        let GraphDraft { draft, values, early, pending, duplicate, .. } = &mut self.graphs[id];
        let names = &self.program.names;
        if let Some(name) = duplicate {
            return Err(format!("two values are named `{}`", names.get(*name)));
        }
        // What came before its value did. Order does not matter: each entry has its own place.
        #[allow(clippy::iter_over_hash_type, reason = "each entry has its own place")]
        for (name, meta) in early.drain() {
            if let Some(&place) = values.get(&name) {
                set_meta(draft, place, meta);
            }
        }
        for at in std::mem::take(pending) {
            for slot in 0..draft.nodes[at as usize].operands.len() {
                let (_, (name, marker)) = draft.nodes[at as usize].operands[slot];
                if marker != UNRESOLVED {
                    continue;
                }
                let user = names.get(draft.nodes[at as usize].name);
                let Some(&place) = values.get(&Name(name)) else {
                    let used = names.get(Name(name));
                    return Err(format!("node `{user}` uses `{used}`, which nothing makes"));
                };
                let later = draft.nodes[place.0 as usize].kind == NodeKind::Op && place.0 >= at;
                if later {
                    let used = names.get(Name(name));
                    return Err(format!("node `{user}` uses `{used}`, which is made after it"));
                }
                draft.nodes[at as usize].operands[slot].1 = place;
            }
        }
        // Without dtype and shape nothing that rules look for could be seen, and a broken file would
        // pass for a clean one.
        let undescribed = draft.nodes.iter().flat_map(|node| &node.results).find(|result| {
            !result.0.is_empty() && result.1 == DType::Unknown && result.2 == ShapeId::UNKNOWN
        });
        match undescribed {
            None => Ok(()),
            Some((name, ..)) => {
                Err(format!("tensor `{}` has no entry in `tensor_values`", names.get(*name)))
            }
        }
    }

    /// Names a nested graph.
    pub fn name_graph(&mut self, id: FunctionId, name: Name) {
        if let Some(graph) = self.graphs.get_mut(id.0 as usize) {
            graph.name = name;
        }
    }

    /// The graph being read, with what else a node needs.
    pub(super) fn current(&mut self) -> Option<(&mut GraphDraft, &mut Program)> {
        let id = *self.open.last()?;
        Some((self.graphs.get_mut(id)?, &mut self.program))
    }

    /// A graph input.
    pub fn input(&mut self, argument: Argument) {
        let Some((graph, _)) = self.current() else { return };
        let (name, result) = match argument {
            Argument::Tensor(name) => (name, (name, DType::Unknown, ShapeId::UNKNOWN, None)),
            Argument::Sym(SymArgument::Name(name), dtype) => {
                (name, (name, dtype, ShapeId::SCALAR, None))
            }
            // A Python constant baked into the call: it keeps its place and makes nothing.
            _ => (Name::EMPTY, (Name::EMPTY, DType::Unknown, ShapeId::UNKNOWN, None)),
        };
        let mut node = DraftNode::new(NodeKind::Input, name);
        node.results = vec![result];
        let at = graph.draft.push(node);
        graph.inputs.push(at);
        if !name.is_empty() {
            graph.define(name, (at, 0));
        }
    }

    /// A graph output.
    pub fn output(&mut self, argument: Argument) {
        if let Some((graph, _)) = self.current() {
            graph.outputs.push(argument);
        }
    }

    /// Metadata of a tensor.
    ///
    /// # Errors
    /// A size below zero, or more dims than a tensor has.
    pub fn tensor_meta(&mut self, name: Name, meta: &TensorMeta<'_>) -> Result<(), String> {
        if meta.sizes.len() > MOST_DIMS {
            let (name, rank) = (self.program.text(name), meta.sizes.len());
            return Err(format!(
                "tensor `{name}` has {rank} dims; torch makes {MOST_DIMS} at most"
            ));
        }
        if let Some(size) = meta.sizes.iter().filter_map(|size| size.as_int).find(|&n| n < 0) {
            return Err(format!("tensor `{}` has a size of {size}", self.program.text(name)));
        }
        let dims: Vec<Dim> = meta
            .sizes
            .iter()
            .map(|size| match (size.as_int, &size.as_expr) {
                (Some(n), _) => u64::try_from(n).map_or(Dim::Unknown, Dim::Static),
                (None, Some(expr)) => self.size(&expr.expr_str),
                (None, None) => Dim::Unknown,
            })
            .collect();
        let strides: Option<Vec<u64>> = meta
            .strides
            .iter()
            .map(|stride| stride.as_int.and_then(|n| u64::try_from(n).ok()))
            .collect();
        let shape = self.program.shapes.intern(&dims);
        let strides = strides
            .filter(|strides| strides.len() == dims.len() && !is_contiguous(&dims, strides))
            .map(|strides| self.program.shapes.intern_static(&strides));
        let meta = (dtype(meta.dtype), shape, strides);
        let Some((graph, _)) = self.current() else { return Ok(()) };
        match graph.values.get(&name) {
            Some(&place) => set_meta(&mut graph.draft, place, meta),
            None => {
                graph.early.insert(name, meta);
            }
        }
        Ok(())
    }

    /// A symbolic value of the graph.
    pub fn sym_value(&mut self, name: Name, expression: Option<&str>) {
        let Some(expression) = expression else { return };
        // Comparisons are truth values, not sizes.
        let dim = self.size(expression);
        if let Some((graph, _)) = self.current() {
            graph.sizes.insert(name, dim);
        }
    }

    /// The dim of a size expression; each text is parsed once.
    fn size(&mut self, text: &str) -> Dim {
        if let Some(&dim) = self.sizes.get(text) {
            return dim;
        }
        let dim = match sympy::parse(text) {
            None => Dim::Unknown,
            Some(size) => match size.number() {
                Some(n) => u64::try_from(n).map_or(Dim::Unknown, Dim::Static),
                None => {
                    let symbols: Vec<SymbolId> =
                        size.symbols.iter().map(|name| self.symbol(name)).collect();
                    match symbols.as_slice() {
                        [symbol] if size.is_symbol() => Dim::Symbol(*symbol),
                        _ => {
                            let text = self.program.names.intern(&size.text);
                            self.program.shapes.exprs.push(DimExpr { text, symbols });
                            Dim::Expr(self.program.shapes.exprs.len() as u32 - 1)
                        }
                    }
                }
            },
        };
        self.sizes.insert(text.into(), dim);
        dim
    }

    /// The symbol of a name; its range is set when the whole document is read.
    fn symbol(&mut self, text: &str) -> SymbolId {
        let name = self.program.names.intern(text);
        let shapes = &mut self.program.shapes;
        *self.symbols.entry(name).or_insert_with(|| {
            // torch names unbacked symbols u0, u1, … (zuf0 for floats).
            let data_dependent = text
                .trim_start_matches("zu")
                .strip_prefix('u')
                .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                || text.starts_with("zuf");
            shapes.symbols.push(Symbol { name, min: 0, max: None, data_dependent });
            SymbolId(shapes.symbols.len() as u32 - 1)
        })
    }

    /// Sets the ranges of the symbols that values use.
    pub fn ranges(&mut self, ranges: &[(String, Option<i64>, Option<i64>)]) {
        for (name, min, max) in ranges {
            let symbol = self
                .program
                .names
                .find(name)
                .and_then(|name| self.symbols.get(&name))
                .and_then(|id| self.program.shapes.symbols.get_mut(id.0 as usize));
            if let Some(symbol) = symbol {
                symbol.min = min.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                symbol.max = max.and_then(|n| u64::try_from(n).ok());
            }
        }
    }

    /// The frames of a recorded trace, given as raw JSON.
    pub fn stack(&mut self, raw: &str) -> StackId {
        if let Some(&known) = self.stacks.get(raw) {
            return known;
        }
        // A trace that is no string (or null) is none.
        let text: String = serde_json::from_str(raw).unwrap_or_default();
        let Program { names, sources, .. } = &mut self.program;
        let frames: Vec<_> = trace::frames(&text)
            .into_iter()
            .map(|frame| {
                sources.frame(Frame {
                    file: names.intern(frame.file),
                    line: frame.line,
                    column: frame.column,
                    end_line: 0,
                    end_column: 0,
                    function: names.intern(frame.function),
                    text: names.intern(frame.text),
                    sha256: Name::EMPTY,
                })
            })
            .collect();
        let stack = sources.stack(&frames);
        self.stacks.insert(raw.into(), stack);
        stack
    }

    /// The module path of a recorded module stack, given as raw JSON.
    pub fn module(&mut self, raw: &str) -> ModuleId {
        if let Some(&known) = self.modules.get(raw) {
            return known;
        }
        let text: String = serde_json::from_str(raw).unwrap_or_default();
        let Program { names, sources, .. } = &mut self.program;
        let stack: Vec<(Name, Name)> = trace::modules(&text)
            .into_iter()
            .map(|(path, class)| (names.intern(&path), names.intern(class)))
            .collect();
        let (path, class) = stack.last().copied().unwrap_or_default();
        let module = sources.module(ModulePath { path, class, stack });
        self.modules.insert(raw.into(), module);
        module
    }

    /// A node, put into canonical terms.
    pub fn node(&mut self, given: &mut Given) -> Result<(), String> {
        self.learn(given.target)?;
        // Only the nodes of the main graph are in a source map.
        if let ([_], Some(stack)) = (self.open.as_slice(), self.source_map.stack(given.name)) {
            given.stack = stack;
        }
        let provenance = self.program.sources.provenance(Provenance {
            stack: given.stack,
            module: given.module,
            torch_op: given.torch_op,
        });
        let mut node = DraftNode::new(NodeKind::Op, given.name);
        node.provenance = provenance;
        self.results(given, &mut node);
        if node.name.is_empty() {
            node.name = node.results.first().map_or(Name::EMPTY, |result| result.0);
        }
        let target = given.inputs.first().map(|(_, argument)| argument.clone());
        let in_place = self.convert(given, &mut node);
        node.operands.shrink_to_fit();
        node.attributes.shrink_to_fit();
        let Some((graph, _)) = self.current() else { return Ok(()) };
        let at = graph.draft.nodes.len() as u32;
        if node.operands.iter().any(|(_, (_, marker))| *marker == UNRESOLVED) {
            graph.pending.push(at);
        }
        for result in 0..node.results.len() {
            let name = node.results[result].0;
            if !name.is_empty() {
                if let Some((dtype, shape, strides)) = graph.early.remove(&name) {
                    let slot = &mut node.results[result];
                    (slot.1, slot.2, slot.3) = (dtype, shape, strides);
                }
                graph.define(name, (at, result as u32));
            }
        }
        if let (true, Some(Argument::Tensor(target))) = (in_place, target) {
            graph.in_place.push((at, target));
        }
        graph.draft.nodes.push(node);
        Ok(())
    }

    fn results(&mut self, given: &Given, node: &mut DraftNode) {
        let unknown = |name| (name, DType::Unknown, ShapeId::UNKNOWN, None);
        node.results = Vec::with_capacity(given.outputs.len());
        for output in &given.outputs {
            match output {
                Argument::Tensor(name) => node.results.push(unknown(*name)),
                Argument::Tensors(list) => {
                    node.results.extend(list.iter().map(|name| unknown(name.unwrap_or_default())));
                }
                Argument::Sym(SymArgument::Name(name), dtype) => {
                    node.results.push((*name, *dtype, ShapeId::SCALAR, None));
                }
                // Keeps its place, so that the results after it keep theirs.
                _ => node.results.push(unknown(Name::EMPTY)),
            }
        }
    }

    /// The operand that a name stands for.
    pub(super) fn operand(&self, name: Name) -> DraftOperand {
        self.open
            .last()
            .and_then(|&id| self.graphs[id].values.get(&name).copied())
            .unwrap_or((name.0, UNRESOLVED))
    }

    /// A constant node for a Python number.
    pub(super) fn literal(&mut self, node: &DraftNode, dtype: DType, value: f64) -> DraftOperand {
        let program = &mut self.program;
        let id = *self.literals.entry((dtype, value.to_bits())).or_insert_with(|| {
            program.add_constant(Constant {
                dtype,
                shape: ShapeId::SCALAR,
                origin: ConstantOrigin::Literal,
                fqn: Name::EMPTY,
                payload: Payload::Splat(value),
            })
        });
        let mut constant = DraftNode::new(NodeKind::Constant(id), Name::EMPTY);
        constant.provenance = node.provenance;
        constant.results = vec![(Name::EMPTY, dtype, ShapeId::SCALAR, None)];
        match self.current() {
            Some((graph, _)) => (graph.draft.push(constant), 0),
            None => (0, 0),
        }
    }
}

impl GraphDraft {
    fn define(&mut self, name: Name, place: DraftOperand) {
        if self.values.insert(name, place).is_some() {
            self.duplicate.get_or_insert(name);
        }
    }
}

fn set_meta(draft: &mut Draft, (node, result): DraftOperand, meta: Meta) {
    if let Some(slot) =
        draft.nodes.get_mut(node as usize).and_then(|node| node.results.get_mut(result as usize))
    {
        (slot.1, slot.2, slot.3) = meta;
    }
}

/// Whether strides are those of a row-major contiguous tensor (extents of one do not matter).
fn is_contiguous(dims: &[Dim], strides: &[u64]) -> bool {
    let mut expected = Some(1u64);
    for (dim, &stride) in dims.iter().zip(strides).rev() {
        // Below a symbolic extent strides are symbolic too, and then not given as numbers.
        let (Some(size), Some(want)) = (dim.value(), expected) else { return true };
        if size != 1 && stride != want {
            return size == 0;
        }
        expected = want.checked_mul(size.max(1));
    }
    true
}
