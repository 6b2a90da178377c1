//! Functions of the language → canonical functions.
//!
//! `const` is no node until something computes with it: a constant that only sets an axis or a stride
//! becomes an attribute. Values that a nested block takes from around it become inputs of the nested
//! function and operands of the op that holds it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::analysis;
use super::constants;
use super::dims;
use super::ir::{self, Binding, Data, Decode, Operation, Stored, Type, Value};
use super::settings;
use super::states;
use super::types;
use super::weights::Weights;
use crate::graph::{
    Attr, Constant, ConstantId, ConstantOrigin, DType, Dim, Draft, DraftNode, DraftOperand,
    Function, FunctionId, FunctionRole, Name, NodeFlags, NodeKind, Op, Payload, Program, ShapeId,
    Symbol, SymbolId,
};
use crate::readers::ReadError;
use crate::readers::dialect::{self, Literal, Spelling};

type Map<K, V> = HashMap<K, V, rustc_hash::FxBuildHasher>;

/// Blocks inside blocks: deeper than any converter nests, and safe for the stack.
const DEPTH: usize = 32;

/// Makes the functions of one program.
pub(crate) struct Lowering<'a> {
    program: &'a mut Program,
    decode: &'a dyn Decode,
    weights: Weights,
    constants: Vec<ConstantDef>,
    frames: Vec<Frame>,
    /// Functions by slot; a slot is taken before its nested functions take theirs.
    slots: Vec<Option<Function>>,
    /// The entry function that is read.
    function: String,
    /// Spellings with no entry in the dialect map, with how often they occur.
    unknown: BTreeMap<String, u32>,
}

/// A `const`, or a value written in place.
struct ConstantDef {
    name: Name,
    value: Value,
    /// Its id, once something computes with it.
    id: Option<ConstantId>,
}

/// A function or nested block while its operations are read.
#[derive(Default)]
struct Frame {
    slot: usize,
    draft: Draft,
    scope: Map<Name, Def>,
    /// Constant nodes of this draft, by constant.
    constant_nodes: Map<u32, u32>,
    /// The newest value of each state, by its node.
    written: BTreeMap<u32, DraftOperand>,
    /// What it takes from around it, in the order of first use.
    captured: Vec<Name>,
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Def {
    Constant(u32),
    Value(DraftOperand),
}

/// A run-time dim of an input: what the model description says of it.
pub(crate) struct InputShape {
    pub name: String,
    /// By axis: smallest and largest size; `None` as largest if unbounded.
    pub ranges: Vec<(u64, Option<u64>)>,
}

impl<'a> Lowering<'a> {
    /// Reads into `program`; weight files lie below `base`.
    pub fn new(program: &'a mut Program, decode: &'a dyn Decode, base: &Path) -> Lowering<'a> {
        let weights = Weights::new(base);
        Lowering {
            program,
            decode,
            weights,
            constants: Vec::new(),
            frames: Vec::new(),
            slots: Vec::new(),
            function: String::new(),
            unknown: BTreeMap::new(),
        }
    }

    /// Adds an entry function.
    ///
    /// # Errors
    /// [`ReadError`] if an operation cannot be decoded, uses a name that nothing defines, or blocks
    /// nest too deep.
    pub fn function(
        &mut self,
        function: ir::Function,
        shapes: &[InputShape],
    ) -> Result<(), ReadError> {
        self.constants.clear();
        self.function.clone_from(&function.name);
        self.open_frame();
        for (name, ty) in &function.inputs {
            let range = shapes.iter().find(|input| input.name == *name);
            self.input(name, ty, range);
        }
        self.block(function.body)?;
        let name = self.program.names.intern(&function.name);
        let opset = self.program.names.intern(&function.opset);
        self.close_frame(name, opset, FunctionRole::Entry);
        Ok(())
    }

    /// Puts the functions into the program, with a note on ops that have no entry.
    pub fn finish(self) {
        self.program.functions.extend(self.slots.into_iter().flatten());
        self.weights.note(self.program);
        for (spelling, count) in &self.unknown {
            self.program.notes.push(format!("op `{spelling}` is not known ({count}×)"));
        }
    }

    fn open_frame(&mut self) {
        let slot = self.slots.len();
        self.slots.push(None);
        self.frames.push(Frame { slot, ..Frame::default() });
    }

    /// Freezes the innermost frame into its slot and gives what it captured.
    fn close_frame(&mut self, name: Name, opset: Name, role: FunctionRole) -> (usize, Vec<Name>) {
        let Some(mut frame) = self.frames.pop() else { return (0, Vec::new()) };
        let input = self.program.names.intern("input");
        for (node, value) in std::mem::take(&mut frame.written) {
            let named = frame.draft.nodes.get(node as usize).map_or(Name::EMPTY, |n| n.name);
            let mut output = DraftNode::new(NodeKind::Output, named);
            output.flags.insert(NodeFlags::MUTATION);
            output.operands.push((input, value));
            frame.draft.push(output);
        }
        states::fold_updates(&mut self.program.names, &mut frame.draft);
        if let Some(slot) = self.slots.get_mut(frame.slot) {
            *slot = Some(frame.draft.freeze(name, opset, role));
        }
        (frame.slot, frame.captured)
    }

    /// The innermost frame; there always is one while operations are read.
    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.open_frame();
        }
        let at = self.frames.len() - 1;
        &mut self.frames[at]
    }

    fn input(&mut self, name: &str, ty: &Type, range: Option<&InputShape>) -> DraftOperand {
        let name_id = self.program.names.intern(name);
        let (dtype, mut shape) = types::shape(&mut self.program.shapes, ty);
        if let (Some(range), Some(dims)) = (range, ty.tensor().1) {
            let dims: Vec<Dim> = dims
                .iter()
                .enumerate()
                .map(|(axis, dim)| match (dim, range.ranges.get(axis)) {
                    (Some(n), _) => Dim::Static(*n),
                    (None, Some(&(min, max))) if max == Some(min) => Dim::Static(min),
                    (None, Some(&(min, max))) => {
                        let symbol = self.program.names.intern(&format!("{name}_{axis}"));
                        let symbols = &mut self.program.shapes.symbols;
                        symbols.push(Symbol { name: symbol, min, max, data_dependent: false });
                        Dim::Symbol(SymbolId(symbols.len() as u32 - 1))
                    }
                    (None, None) => Dim::Unknown,
                })
                .collect();
            shape = self.program.shapes.intern(&dims);
        }
        let kind = if ty.is_state() { NodeKind::State } else { NodeKind::Input };
        let mut node = DraftNode::new(kind, name_id);
        node.results.push((name_id, dtype, shape, None));
        let frame = self.frame();
        let at = frame.draft.push(node);
        frame.scope.insert(name_id, Def::Value((at, 0)));
        (at, 0)
    }

    /// Reads the operations and outputs of a block into the innermost frame.
    fn block(&mut self, block: ir::Block) -> Result<(), ReadError> {
        for stored in block.operations {
            let operation = match stored {
                Stored::Wire(bytes) => self.decode.operation(bytes)?,
                Stored::Parsed(operation) => *operation,
            };
            self.operation(operation)?;
        }
        let input = self.program.names.intern("input");
        for name in &block.outputs {
            let value = self.resolve_name(name, "the block's outputs")?;
            let value = self.operand(value)?;
            let name = self.program.names.intern(name);
            let mut node = DraftNode::new(NodeKind::Output, name);
            node.operands.push((input, value));
            self.frame().draft.push(node);
        }
        Ok(())
    }

    fn operation(&mut self, operation: Operation) -> Result<(), ReadError> {
        if operation.spelling == "const" {
            return self.constant(operation);
        }
        let names = &mut self.program.names;
        let spelling = dialect::MIL.find(&operation.spelling);
        if spelling.is_none() {
            *self.unknown.entry(operation.spelling.clone()).or_default() += 1;
        }
        let shown = if operation.name.is_empty() {
            operation.outputs.first().map_or("", |(name, _)| name.as_str())
        } else {
            &operation.name
        };
        let mut node = DraftNode::new(NodeKind::Op, names.intern(shown));
        node.op = spelling.map_or(Op::UNKNOWN, |spelling| spelling.op);
        node.spelling = names.intern(&operation.spelling);
        let shown = shown.to_owned();
        for (name, bindings) in operation.inputs {
            let mut resolved = Vec::with_capacity(bindings.len());
            for binding in bindings {
                resolved.push(match binding {
                    Binding::Name(value) => self.resolve_name(&value, &shown)?,
                    Binding::Value(value) => self.anonymous(value),
                });
            }
            self.argument(&mut node, spelling, &name, &resolved)?;
        }
        // The older `constexpr_*` keep their settings and blobs among the attributes; an analysis file
        // keeps there what the compiler said.
        let results: Vec<&str> = operation.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let (said, attributes) =
            analysis::take(operation.attributes, &shown, &operation.spelling, &results);
        if let Some(mut said) = said {
            said.function = self.function.clone();
            self.program.confirmed.push(said);
        }
        for (name, value) in attributes {
            let value = self.anonymous(value);
            self.argument(&mut node, spelling, &name, &[value])?;
        }
        self.state(&mut node);
        for (name, ty) in &operation.outputs {
            let (dtype, shape) = types::shape(&mut self.program.shapes, ty);
            let shape = self.symbolic(&node, shape);
            node.results.push((self.program.names.intern(name), dtype, shape, None));
        }
        self.nested(&mut node, operation.blocks, &shown)?;
        if let Some(spelling) = spelling {
            self.finish_arguments(&mut node, spelling, &operation.spelling);
        }
        self.push(node);
        Ok(())
    }

    /// Adds the node and the names of its results; a state's write becomes the state's newest value.
    fn push(&mut self, mut node: DraftNode) {
        let state = self.program.names.find("state");
        let written = (node.op == Op::STATE_WRITE)
            .then(|| node.operands.iter().find(|(name, _)| Some(*name) == state))
            .flatten()
            .map(|(_, value)| *value);
        let frame = self.frame();
        let results: Vec<Name> = node.results.iter().map(|(name, ..)| *name).collect();
        if let Some((handle, result)) = written {
            // The format gives a write no result; the new value is what later reads see.
            let held = frame
                .draft
                .nodes
                .get(handle as usize)
                .and_then(|node| node.results.get(result as usize));
            let (dtype, shape) =
                held.map_or((DType::Unknown, ShapeId::UNKNOWN), |held| (held.1, held.2));
            if node.results.is_empty() {
                node.results.push((Name::EMPTY, dtype, shape, None));
            }
        }
        let at = frame.draft.push(node);
        if let Some((handle, _)) = written {
            let state = frame.root_state(handle);
            frame.written.insert(state, (at, 0));
        }
        for (index, name) in results.into_iter().enumerate() {
            frame.scope.insert(name, Def::Value((at, index as u32)));
        }
    }

    /// A result's shape with its run-time dims told by the operands.
    fn symbolic(&mut self, node: &DraftNode, shape: ShapeId) -> ShapeId {
        let Program { names, shapes, .. } = &mut *self.program;
        let Some(own) = shapes.get(shape).dims().map(<[Dim]>::to_vec) else { return shape };
        if !own.contains(&Dim::Unknown) {
            return shape;
        }
        let Some(frame) = self.frames.last() else { return shape };
        let operands: Vec<Vec<Dim>> = node
            .operands
            .iter()
            .filter_map(|(_, (from, result))| {
                let result =
                    frame.draft.nodes.get(*from as usize)?.results.get(*result as usize)?;
                shapes.get(result.2).dims().map(<[Dim]>::to_vec)
            })
            .collect();
        let dims = dims::resolve(names, shapes, node.op, &operands, &own);
        shapes.intern(&dims)
    }

    /// A read or write of a state sees what was written before it.
    fn state(&mut self, node: &mut DraftNode) {
        if node.op != Op::STATE_READ && node.op != Op::STATE_WRITE {
            return;
        }
        let state = self.program.names.intern("state");
        let frame = self.frame();
        for (name, value) in &mut node.operands {
            if *name == state
                && let Some(newest) = frame.written.get(&value.0)
            {
                *value = *newest;
            }
        }
    }

    /// Blocks of `cond`, `while_loop`: functions of their own.
    fn nested(
        &mut self,
        node: &mut DraftNode,
        blocks: Vec<ir::Block>,
        shown: &str,
    ) -> Result<(), ReadError> {
        if blocks.is_empty() {
            return Ok(());
        }
        if self.frames.len() >= DEPTH {
            return Err(self.broken(format!("`{shown}`: blocks nest deeper than {DEPTH}")));
        }
        let parent = self.frame().slot;
        let first = self.program.functions.len();
        let input = self.program.names.intern("input");
        let words: &[&str] = match node.op {
            Op::COND => &["true", "false"],
            Op::WHILE => &["cond", "body"],
            _ => &[],
        };
        for (at, block) in blocks.into_iter().enumerate() {
            self.open_frame();
            for (name, ty) in &block.inputs {
                self.input(name, ty, None);
            }
            self.block(block)?;
            let name = match words.get(at) {
                Some(word) => format!("{shown}/{word}"),
                None => format!("{shown}/{at}"),
            };
            let name = self.program.names.intern(&name);
            let role = FunctionRole::Branch { parent: FunctionId((first + parent) as u32) };
            let (slot, captured) = self.close_frame(name, Name::EMPTY, role);
            node.bodies.push(FunctionId((first + slot) as u32));
            for name in captured {
                if let Some(value) = self.lookup(name) {
                    let value = self.operand(value)?;
                    if !node.operands.contains(&(input, value)) {
                        node.operands.push((input, value));
                    }
                }
            }
        }
        Ok(())
    }

    fn constant(&mut self, operation: Operation) -> Result<(), ReadError> {
        let value = operation
            .attributes
            .into_iter()
            .find(|(name, _)| name == "val")
            .map(|(_, value)| value)
            .or_else(|| {
                operation.inputs.into_iter().find(|(name, _)| name == "val").and_then(
                    |(_, bindings)| match bindings.into_iter().next() {
                        Some(Binding::Value(value)) => Some(value),
                        _ => None,
                    },
                )
            });
        let Some((name, ty)) = operation.outputs.into_iter().next() else { return Ok(()) };
        let name = self.program.names.intern(&name);
        let value = value.unwrap_or_else(|| Value::Tensor(ty, Data::Ints(Vec::new())));
        let at = self.constants.len() as u32;
        self.constants.push(ConstantDef { name, value, id: None });
        self.frame().scope.insert(name, Def::Constant(at));
        Ok(())
    }

    fn anonymous(&mut self, value: Value) -> Def {
        self.constants.push(ConstantDef { name: Name::EMPTY, value, id: None });
        Def::Constant(self.constants.len() as u32 - 1)
    }

    fn resolve_name(&mut self, name: &str, user: &str) -> Result<Def, ReadError> {
        let id = self.program.names.intern(name);
        self.lookup(id).ok_or_else(|| {
            self.broken(format!("`{user}` uses `{name}`, which nothing before it defines"))
        })
    }

    /// What a name stands for, taken into the innermost frame if an outer one defines it.
    fn lookup(&mut self, name: Name) -> Option<Def> {
        let (depth, def) = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .find_map(|(depth, frame)| frame.scope.get(&name).map(|def| (depth, *def)))?;
        let Def::Value((node, result)) = def else { return Some(def) };
        let outer = self.frames.get(depth)?.draft.nodes.get(node as usize)?;
        let (_, dtype, shape, strides) = *outer.results.get(result as usize)?;
        let kind = if outer.kind == NodeKind::State { NodeKind::State } else { NodeKind::Input };
        let mut found = def;
        for frame in self.frames.iter_mut().skip(depth + 1) {
            let mut input = DraftNode::new(kind, name);
            input.results.push((name, dtype, shape, strides));
            found = Def::Value((frame.draft.push(input), 0));
            frame.scope.insert(name, found);
            frame.captured.push(name);
        }
        Some(found)
    }

    /// The node result that a definition stands for in the innermost frame.
    fn operand(&mut self, def: Def) -> Result<DraftOperand, ReadError> {
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
    fn constant_id(&mut self, at: u32) -> Result<ConstantId, ReadError> {
        let Some(def) = self.constants.get(at as usize) else {
            return Err(self.broken("a constant is missing".to_owned()));
        };
        if let Some(id) = def.id {
            return Ok(id);
        }
        let named = def.name;
        let (ty, payload) = match &def.value {
            Value::Blob { ty, file, offset } => {
                let (dtype, _) = ty.tensor();
                let len = types::elements(ty).map(|n| dtype.bytes(n));
                let payload = self.weights.locate(self.program, file, *offset, len)?;
                (ty.clone(), payload)
            }
            Value::Tensor(ty, data) => {
                let payload = constants::immediate(self.program, &def.value, ty, data);
                (ty.clone(), payload)
            }
            Value::List(_) | Value::Dict(_) | Value::Other => (Type::Other, Payload::Unknown),
        };
        let (dtype, shape) = types::shape(&mut self.program.shapes, &ty);
        let (origin, fqn) = constants::origin(self.program.text(named));
        let fqn = fqn.to_owned();
        let fqn = self.program.names.intern(&fqn);
        let id = self.program.add_constant(Constant { dtype, shape, origin, fqn, payload });
        if let Some(def) = self.constants.get_mut(at as usize) {
            def.id = Some(id);
        }
        Ok(id)
    }

    /// Takes one stored argument: a setting as attribute, a tensor as operand.
    fn argument(
        &mut self,
        node: &mut DraftNode,
        spelling: Option<&'static Spelling>,
        stored: &str,
        values: &[Def],
    ) -> Result<(), ReadError> {
        let canonical = spelling.and_then(|s| s.canonical(stored)).unwrap_or(stored).to_owned();
        let is_operand = spelling.is_some_and(|s| s.is_operand(&canonical));
        let is_attribute =
            spelling.is_some_and(|s| s.op.attributes().contains(&canonical.as_str()));
        let name = self.program.names.intern(&canonical);
        if is_attribute || !is_operand {
            if let Some(attr) = self.setting(values) {
                node.attributes.push((name, attr));
                return Ok(());
            }
            if is_attribute && values.iter().any(|def| matches!(def, Def::Value(_))) {
                node.attributes.push((name, Attr::Dynamic));
            }
        }
        let trained = constants::is_trained(node.op, &canonical);
        for &value in values {
            if let (true, Def::Constant(at)) = (trained, value) {
                let id = self.constant_id(at)?;
                if let Some(constant) = self.program.constants.get_mut(id.0 as usize)
                    && constant.origin == ConstantOrigin::Folded
                {
                    constant.origin = ConstantOrigin::Parameter;
                }
            }
            let value = self.operand(value)?;
            node.operands.push((name, value));
        }
        Ok(())
    }

    /// The argument as an attribute, if it is all constants and small.
    fn setting(&mut self, values: &[Def]) -> Option<Attr> {
        let constant = |def: &Def| match def {
            Def::Constant(at) => self.constants.get(*at as usize),
            Def::Value(_) => None,
        };
        match values {
            [one] => types::attribute(&mut self.program.names, &constant(one)?.value),
            many => {
                let list: Option<Vec<Option<i64>>> = many
                    .iter()
                    .map(|def| match types::integers(&constant(def)?.value, 1)?.as_slice() {
                        [n] => Some(Some(*n)),
                        _ => None,
                    })
                    .collect();
                list.filter(|list| !list.is_empty()).map(|list| Attr::Ints(list.into()))
            }
        }
    }

    /// Defaults, canonical forms and the canonical order of operands.
    fn finish_arguments(
        &mut self,
        node: &mut DraftNode,
        spelling: &'static Spelling,
        stored: &str,
    ) {
        let names = &mut self.program.names;
        for (name, literal) in spelling.defaults {
            let name = names.intern(name);
            if node.attribute(name).is_none() && node.operand(name).is_none() {
                let attr = literal_attr(names, literal);
                node.attributes.push((name, attr));
            }
        }
        for (name, literal) in spelling.set {
            let name = names.intern(name);
            let attr = literal_attr(names, literal);
            node.attributes.push((name, attr));
        }
        let place = |names: &crate::graph::Names, name: Name| {
            let text = names.get(name);
            spelling.op.operands().iter().position(|known| *known == text).unwrap_or(usize::MAX)
        };
        node.operands.sort_by_key(|(name, _)| place(names, *name));
        let Some(frame) = self.frames.last() else { return };
        let dims = |value: DraftOperand| {
            let result = frame.draft.nodes.get(value.0 as usize)?.results.get(value.1 as usize)?;
            self.program.shapes.get(result.2).dims().map(<[Dim]>::to_vec)
        };
        let operand = |word: &str| {
            let name = names.find(word)?;
            node.operand(name).and_then(dims)
        };
        let site = settings::Site {
            input: node.operands.first().and_then(|(_, value)| dims(*value)),
            weight: operand("weight"),
            output: node
                .results
                .first()
                .and_then(|r| self.program.shapes.get(r.2).dims().map(<[Dim]>::to_vec)),
        };
        settings::canonicalise(names, node, stored, &site);
    }

    fn broken(&self, message: String) -> ReadError {
        ReadError::broken(&self.program.path, message)
    }
}

impl Frame {
    /// The state node behind a handle, through the writes before.
    fn root_state(&self, handle: u32) -> u32 {
        self.written
            .iter()
            .find(|(_, newest)| newest.0 == handle)
            .map_or(handle, |(state, _)| *state)
    }
}

fn literal_attr(names: &mut crate::graph::Names, literal: &Literal) -> Attr {
    match literal {
        Literal::Int(n) => Attr::Int(*n),
        Literal::Float(x) => Attr::Float(*x),
        Literal::Bool(b) => Attr::Bool(*b),
        Literal::Text(text) => Attr::Text(names.intern(text)),
        Literal::Ints(list) => Attr::Ints(list.iter().map(|&n| Some(n)).collect()),
    }
}
