//! Graphs → canonical functions: names and what they stand for, inputs, initialisers, outputs, nested
//! graphs. What becomes of one node is told in `nodes`.
//!
//! An initialiser is no node until something computes with it: one that only sets axes or a shape
//! becomes an attribute. Values that a nested graph takes from around it become inputs of the nested
//! function and operands of the op that holds it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bytes::Bytes;
use rustc_hash::FxBuildHasher;

use super::constants::{self, Store};
use super::functions::{Environment, Library, Opsets};
use super::provenance::{self, Origins};
use super::tensor::{self, Tensor};
use super::types::{Declared, Symbols};
use super::values::Element;
use super::wire::{Wire, proto};
use crate::graph::{
    ConstantId, Draft, DraftNode, DraftOperand, Function, FunctionId, FunctionRole, Name, NodeKind,
    Program, ShapeId,
};
use crate::readers::ReadError;
use crate::readers::normalize::{self, Context, Words};

pub(super) type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// Graphs inside graphs: deeper than any exporter nests, and safe for the stack.
const DEPTH: usize = 32;

/// The first version of the format in which an initialiser need not be an input, and one that is may be
/// overridden by the caller.
const OVERRIDABLE_FROM: i64 = 4;

/// Makes the functions of one model.
pub(super) struct Lowering<'a, 'w> {
    pub(super) program: &'a mut Program,
    pub(super) wire: &'a Wire<'w>,
    pub(super) library: Library,
    pub(super) store: Store,
    pub(super) symbols: Symbols,
    pub(super) origins: Origins,
    pub(super) constants: Vec<ConstantDef>,
    pub(super) frames: Vec<Frame>,
    /// Functions by slot; a slot is taken before its nested functions take theirs.
    slots: Vec<Option<Function>>,
    /// Spellings with no entry in the dialect map, with how often they occur.
    pub(super) unknown: BTreeMap<String, u32>,
    /// Nodes that inlining has made so far.
    pub(super) inlined: usize,
    /// Calls that were left as they are: too many nodes, or too deep.
    pub(super) kept_calls: usize,
    words: Words,
}

/// An initialiser, or the value of a `Constant` node.
pub(super) struct ConstantDef {
    pub name: Name,
    pub tensor: Tensor,
    /// Its id, once something computes with it.
    pub id: Option<ConstantId>,
}

/// A graph while its nodes are read.
#[derive(Default)]
pub(super) struct Frame {
    slot: usize,
    pub draft: Draft,
    pub scope: Map<Name, Def>,
    /// What values are declared as.
    pub declared: Map<Name, Declared>,
    /// Small whole-number tensors whose elements are known or are sizes.
    pub values: Map<DraftOperand, Vec<Element>>,
    /// Constant nodes of this draft, by constant.
    constant_nodes: Map<u32, u32>,
    /// What it takes from around it, in the order of first use.
    captured: Vec<Name>,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Def {
    Constant(u32),
    Value(DraftOperand),
}

impl<'a, 'w> Lowering<'a, 'w> {
    /// Reads into `program`; data files lie in `base`.
    pub fn new(
        program: &'a mut Program,
        wire: &'a Wire<'w>,
        base: &Path,
        file: Bytes,
        library: Library,
    ) -> Lowering<'a, 'w> {
        let words = Words::new(&mut program.names);
        Lowering {
            program,
            wire,
            library,
            store: Store::new(base, file),
            symbols: Symbols::default(),
            origins: Origins::default(),
            constants: Vec::new(),
            frames: Vec::new(),
            slots: Vec::new(),
            unknown: BTreeMap::new(),
            inlined: 0,
            kept_calls: 0,
            words,
        }
    }

    /// Adds the model's graph as the entry function.
    ///
    /// # Errors
    /// [`ReadError`] if a piece cannot be decoded, a node uses a value that nothing defines, or graphs
    /// nest too deep.
    pub fn model(&mut self, graph: Bytes, opsets: Opsets, version: i64) -> Result<(), ReadError> {
        let graph: proto::Graph = self.wire.decode(graph, "the graph")?;
        let opset = self.program.names.intern(&opsets.text());
        let environment = Environment::of_model(opsets);
        let ranges = provenance::ranges(&graph.metadata_props);
        let initialised = graph.initializer.len() + graph.sparse_initializer.len();
        let inputs = graph.input.len();
        self.open_frame();
        self.graph(&environment, graph)?;
        self.symbols.limit(self.program, &ranges);
        let frame = self.frame();
        let own = frame.draft.nodes.iter().filter(|n| n.kind == NodeKind::Input).count();
        let overridden = inputs.saturating_sub(own).min(initialised);
        if version >= OVERRIDABLE_FROM && overridden > 0 {
            let key = self.program.names.intern("overridable-initializers");
            let count = self.program.names.intern(&overridden.to_string());
            self.program.metadata.push((key, count));
            self.program.notes.push(format!(
                "{overridden} initialisers are inputs too: a caller may override them, so the runtime takes \
                 none of them for constant"
            ));
        }
        let name = self.program.names.intern("main");
        self.close_frame(name, opset, FunctionRole::Entry);
        Ok(())
    }

    /// Puts the functions into the program, with notes.
    pub fn finish(self) {
        self.program.functions.extend(self.slots.into_iter().flatten());
        self.store.note(self.program);
        for (spelling, count) in &self.unknown {
            self.program.notes.push(format!("op `{spelling}` is not known ({count}×)"));
        }
        if self.kept_calls > 0 {
            self.program.notes.push(format!(
                "{} calls of the model's functions are not looked into: they nest too deep or make too \
                 many nodes",
                self.kept_calls
            ));
        }
    }

    fn open_frame(&mut self) {
        let slot = self.slots.len();
        self.slots.push(None);
        self.frames.push(Frame { slot, ..Frame::default() });
    }

    /// Freezes the innermost frame into its slot and gives what it captured.
    fn close_frame(&mut self, name: Name, opset: Name, role: FunctionRole) -> (usize, Vec<Name>) {
        let Some(frame) = self.frames.pop() else { return (0, Vec::new()) };
        let words = self.words;
        let mut context = Context { program: self.program, words: &words };
        let mut draft = normalize::linear(frame.draft, &mut context);
        normalize::conv(&mut draft, &mut context);
        normalize::fills(&mut draft, &mut context);
        if let Some(slot) = self.slots.get_mut(frame.slot) {
            *slot = Some(draft.freeze(name, opset, role));
        }
        (frame.slot, frame.captured)
    }

    /// The innermost frame; there always is one while nodes are read.
    pub(super) fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.open_frame();
        }
        let at = self.frames.len() - 1;
        &mut self.frames[at]
    }

    /// Reads a graph into the innermost frame, and gives the types of its outputs.
    fn graph(
        &mut self,
        environment: &Environment,
        graph: proto::Graph,
    ) -> Result<Vec<Declared>, ReadError> {
        for bytes in graph.value_info {
            let info: proto::ValueInfo = self.wire.decode(bytes, "a value's type")?;
            self.declare(environment, &info);
        }
        for info in &graph.output {
            self.declare(environment, info);
        }
        for bytes in graph.initializer {
            let offset = self.wire.offset(&bytes);
            let tensor = tensor::read(bytes).map_err(|error| {
                self.wire.broken(format!("an initialiser cannot be decoded: {error}"), offset)
            })?;
            self.initialiser(environment, tensor);
        }
        for bytes in graph.sparse_initializer {
            let tensor = self.sparse(bytes)?;
            self.initialiser(environment, tensor);
        }
        for info in &graph.input {
            let name = self.program.names.intern(&environment.name(&info.name));
            if self.frame().scope.contains_key(&name) {
                continue;
            }
            let ty = info.ty();
            let declared = self.symbols.declared(self.program, ty, Some(&info.name));
            self.source(name, &declared);
        }
        self.nodes(environment, graph.node)?;
        let input = self.words.input;
        let mut types = Vec::with_capacity(graph.output.len());
        for info in &graph.output {
            let name = environment.name(&info.name);
            let Some(def) = self.resolve(&name) else {
                return Err(self.undefined("the graph's outputs", &name));
            };
            let value = self.operand(def)?;
            types.push(self.result(value).unwrap_or_default());
            let name = self.program.names.intern(&name);
            let mut node = DraftNode::new(NodeKind::Output, name);
            node.operands.push((input, value));
            self.frame().draft.push(node);
        }
        Ok(types)
    }

    fn declare(&mut self, environment: &Environment, info: &proto::ValueInfo) {
        let declared = self.symbols.declared(self.program, info.ty(), None);
        let name = self.program.names.intern(&environment.name(&info.name));
        self.frame().declared.insert(name, declared);
    }

    fn initialiser(&mut self, environment: &Environment, tensor: Tensor) {
        let name = self.program.names.intern(&environment.name(&tensor.name));
        self.define_constant(name, tensor);
    }

    /// A name that stands for a constant.
    pub(super) fn define_constant(&mut self, name: Name, tensor: Tensor) {
        let def = self.anonymous(name, tensor);
        self.frame().scope.insert(name, def);
    }

    /// A constant that no name stands for.
    pub(super) fn anonymous(&mut self, name: Name, tensor: Tensor) -> Def {
        self.constants.push(ConstantDef { name, tensor, id: None });
        Def::Constant(self.constants.len() as u32 - 1)
    }

    /// A sparse tensor as a dense one whose elements are not known.
    pub(super) fn sparse(&mut self, bytes: Bytes) -> Result<Tensor, ReadError> {
        let sparse: proto::SparseTensor = self.wire.decode(bytes, "a sparse tensor")?;
        let offset = self.wire.offset(&sparse.values);
        let values = tensor::read(sparse.values).map_err(|error| {
            self.wire.broken(format!("a sparse tensor cannot be decoded: {error}"), offset)
        })?;
        Ok(Tensor {
            name: values.name,
            dims: sparse.dims,
            dtype: values.dtype,
            ..Tensor::default()
        })
    }

    /// An input of the innermost graph.
    fn source(&mut self, name: Name, declared: &Declared) -> DraftOperand {
        let shape = self.shape(declared);
        let mut node = DraftNode::new(NodeKind::Input, name);
        node.results.push((name, declared.dtype, shape, None));
        let frame = self.frame();
        let at = frame.draft.push(node);
        frame.scope.insert(name, Def::Value((at, 0)));
        (at, 0)
    }

    /// The interned shape of a type.
    pub(super) fn shape(&mut self, declared: &Declared) -> ShapeId {
        match &declared.dims {
            Some(dims) => self.program.shapes.intern(dims),
            None => ShapeId::UNKNOWN,
        }
    }

    /// Graphs that a node holds: functions of their own. Gives the types of their outputs.
    ///
    /// # Errors
    /// As [`Lowering::model`].
    pub(super) fn nested(
        &mut self,
        environment: &Environment,
        node: &mut DraftNode,
        graphs: Vec<(String, Bytes)>,
        shown: &str,
    ) -> Result<Vec<Vec<Declared>>, ReadError> {
        let mut outputs = Vec::with_capacity(graphs.len());
        for (word, bytes) in graphs {
            if self.frames.len() >= DEPTH {
                let offset = self.wire.offset(&bytes);
                let message = format!("`{shown}`: graphs nest deeper than {DEPTH}");
                return Err(self.wire.broken(message, offset));
            }
            let parent = self.frame().slot;
            let first = self.program.functions.len();
            let graph: proto::Graph =
                self.wire.decode(bytes, &format!("the graph `{word}` of `{shown}`"))?;
            self.open_frame();
            outputs.push(self.graph(environment, graph)?);
            let word = word.strip_suffix("_branch").unwrap_or(&word);
            let name = self.program.names.intern(&format!("{shown}/{word}"));
            let role = FunctionRole::Branch { parent: FunctionId((first + parent) as u32) };
            let (slot, captured) = self.close_frame(name, Name::EMPTY, role);
            node.bodies.push(FunctionId((first + slot) as u32));
            let input = self.words.input;
            for name in captured {
                if let Some(def) = self.lookup(name) {
                    let value = self.operand(def)?;
                    if !node.operands.contains(&(input, value)) {
                        node.operands.push((input, value));
                    }
                }
            }
        }
        Ok(outputs)
    }

    /// What a name stands for, if anything does so far.
    pub(super) fn resolve(&mut self, name: &str) -> Option<Def> {
        let name = self.program.names.find(name)?;
        self.lookup(name)
    }

    /// The same by an interned name; taken into the innermost frame if an outer one defines it.
    pub(super) fn lookup(&mut self, name: Name) -> Option<Def> {
        let (depth, def) = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .find_map(|(depth, frame)| frame.scope.get(&name).map(|def| (depth, *def)))?;
        let Def::Value(value) = def else { return Some(def) };
        let outer = self.frames.get(depth)?;
        let (_, dtype, shape, strides) =
            *outer.draft.nodes.get(value.0 as usize)?.results.get(value.1 as usize)?;
        let known = outer.values.get(&value).cloned();
        let mut found = def;
        for frame in self.frames.iter_mut().skip(depth + 1) {
            let mut input = DraftNode::new(NodeKind::Input, name);
            input.results.push((name, dtype, shape, strides));
            let at = (frame.draft.push(input), 0);
            if let Some(known) = &known {
                frame.values.insert(at, known.clone());
            }
            found = Def::Value(at);
            frame.scope.insert(name, found);
            frame.captured.push(name);
        }
        Some(found)
    }

    /// The node result that a definition stands for in the innermost frame.
    ///
    /// # Errors
    /// [`ReadError`] if a constant's data are refused.
    pub(super) fn operand(&mut self, def: Def) -> Result<DraftOperand, ReadError> {
        let at = match def {
            Def::Value(value) => return Ok(value),
            Def::Constant(at) => at,
        };
        if let Some(&node) = self.frame().constant_nodes.get(&at) {
            return Ok((node, 0));
        }
        let id = self.constant_id(at)?;
        let constant = self.program.constant(id);
        let (dtype, shape) = (constant.dtype, constant.shape);
        let name = self.constants.get(at as usize).map_or(Name::EMPTY, |def| def.name);
        let mut node = DraftNode::new(NodeKind::Constant(id), name);
        node.results.push((name, dtype, shape, None));
        let frame = self.frame();
        let node = frame.draft.push(node);
        frame.constant_nodes.insert(at, node);
        Ok((node, 0))
    }

    /// Puts a constant into the program, once.
    ///
    /// # Errors
    /// [`ReadError`] if its data are refused.
    pub(super) fn constant_id(&mut self, at: u32) -> Result<ConstantId, ReadError> {
        let Some(def) = self.constants.get(at as usize) else {
            return Err(self.wire.broken("a constant is missing".to_owned(), None));
        };
        if let Some(id) = def.id {
            return Ok(id);
        }
        let text = self.program.text(def.name).to_owned();
        let (origin, fqn) = constants::origin(&text);
        let id = self.store.constant(self.program, &def.tensor, origin, fqn)?;
        if let Some(def) = self.constants.get_mut(at as usize) {
            def.id = Some(id);
        }
        Ok(id)
    }

    /// The stored tensor of a definition, if it is a constant.
    pub(super) fn tensor(&self, def: Def) -> Option<&Tensor> {
        match def {
            Def::Constant(at) => self.constants.get(at as usize).map(|def| &def.tensor),
            Def::Value(_) => None,
        }
    }

    /// A node uses a name that nothing defines.
    pub(super) fn undefined(&self, user: &str, name: &str) -> ReadError {
        self.wire.broken(format!("`{user}` uses `{name}`, which nothing defines"), None)
    }

    /// Canonical words.
    pub(super) fn words(&self) -> Words {
        self.words
    }
}

impl proto::ValueInfo {
    /// Its declared type.
    fn ty(&self) -> Option<&proto::Type> {
        self.r#type.as_ref()
    }
}
