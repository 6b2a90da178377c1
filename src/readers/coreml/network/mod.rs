//! The older neural network: a list of layers, nested lists in branches and loops.
//!
//! The format gives layers no element types and mostly no shapes: the unit that runs a layer chooses
//! (the Neural Engine computes in f16), so values are f16 here, and shapes follow from the inputs as
//! far as `shape` can tell.

mod layer;
mod settings;
mod shape;
mod table;

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use self::layer::{Layer, Param};
use super::wire::{Wire, proto};
use crate::graph::{
    Attr, Blob, BlobFile, Constant, ConstantId, ConstantOrigin, DType, Dim, Draft, DraftNode,
    DraftOperand, Function, FunctionId, FunctionRole, Name, NodeKind, Op, Payload, Program,
    ShapeId,
};
use crate::readers::ReadError;
use crate::readers::dialect::{self, Literal, Spelling};

/// Networks inside networks; deeper than any converter nests, and safe for the stack.
const DEPTH: usize = 32;

/// Makes the functions of one network.
pub(super) struct Network<'a, 'w> {
    program: &'a mut Program,
    wire: &'a Wire<'w>,
    frames: Vec<Frame>,
    slots: Vec<Option<Function>>,
    unknown: BTreeMap<String, u32>,
    /// Inputs of rank 1 and 3 stand for (channels) and (channels, height, width).
    rank5: bool,
}

/// A network or branch while its layers are read.
#[derive(Default)]
struct Frame {
    slot: usize,
    draft: Draft,
    /// Blobs by name; a layer may write one again.
    scope: HashMap<Name, DraftOperand, rustc_hash::FxBuildHasher>,
    /// Blobs of the networks around it, in the order of first use.
    captured: Vec<Name>,
    /// Blobs that its layers write, in order.
    written: Vec<Name>,
}

/// An input as the description declares it.
pub(super) struct Input {
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<Dim>,
    pub image: bool,
}

impl<'a, 'w> Network<'a, 'w> {
    /// Reads into `program`.
    pub fn new(program: &'a mut Program, wire: &'a Wire<'w>) -> Network<'a, 'w> {
        let unknown = BTreeMap::new();
        Network { program, wire, frames: Vec::new(), slots: Vec::new(), unknown, rank5: true }
    }

    /// Adds the network as an entry function.
    ///
    /// # Errors
    /// [`ReadError`] if a layer cannot be decoded or networks nest too deep.
    pub fn function(
        mut self,
        name: &str,
        bytes: Bytes,
        inputs: Vec<Input>,
        outputs: &[String],
    ) -> Result<(), ReadError> {
        let network: proto::NeuralNetwork = self.wire.decode(bytes, "the neural network")?;
        self.rank5 = network.array_input_shape_mapping == 0;
        let first = self.program.functions.len();
        self.open();
        for input in inputs {
            let dims = if self.rank5 || input.image { four(input.dims) } else { input.dims };
            let shape = self.program.shapes.intern(&dims);
            let name = self.program.names.intern(&input.name);
            self.source(name, input.dtype, shape);
        }
        self.layers(network.layers, first)?;
        let operand = self.program.names.intern("input");
        for output in outputs {
            let name = self.program.names.intern(output);
            // A classifier's label is no blob of the network.
            let Some(value) = self.lookup(name) else { continue };
            let mut node = DraftNode::new(NodeKind::Output, name);
            node.operands.push((operand, value));
            self.frame().draft.push(node);
        }
        let name = self.program.names.intern(name);
        self.close(name, FunctionRole::Entry);
        self.program.functions.extend(self.slots.into_iter().flatten());
        for (spelling, count) in &self.unknown {
            self.program.notes.push(format!("layer kind `{spelling}` is not known ({count}×)"));
        }
        Ok(())
    }

    fn open(&mut self) {
        let slot = self.slots.len();
        self.slots.push(None);
        self.frames.push(Frame { slot, ..Frame::default() });
    }

    fn close(&mut self, name: Name, role: FunctionRole) -> Frame {
        let mut frame = self.frames.pop().unwrap_or_default();
        let draft = std::mem::take(&mut frame.draft);
        if let Some(slot) = self.slots.get_mut(frame.slot) {
            *slot = Some(draft.freeze(name, Name::EMPTY, role));
        }
        frame
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.open();
        }
        let at = self.frames.len() - 1;
        &mut self.frames[at]
    }

    /// An input of the innermost network.
    fn source(&mut self, name: Name, dtype: DType, shape: ShapeId) -> DraftOperand {
        let mut node = DraftNode::new(NodeKind::Input, name);
        node.results.push((name, dtype, shape, None));
        let frame = self.frame();
        let at = frame.draft.push(node);
        frame.scope.insert(name, (at, 0));
        (at, 0)
    }

    fn lookup(&mut self, name: Name) -> Option<DraftOperand> {
        let (depth, found) = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .find_map(|(depth, frame)| frame.scope.get(&name).map(|value| (depth, *value)))?;
        let outer = self.frames.get(depth)?.draft.nodes.get(found.0 as usize)?;
        let (_, dtype, shape, _) = *outer.results.get(found.1 as usize)?;
        let mut value = found;
        for frame in self.frames.iter_mut().skip(depth + 1) {
            let mut input = DraftNode::new(NodeKind::Input, name);
            input.results.push((name, dtype, shape, None));
            value = (frame.draft.push(input), 0);
            frame.scope.insert(name, value);
            frame.captured.push(name);
        }
        Some(value)
    }

    fn layers(&mut self, layers: Vec<Bytes>, first: usize) -> Result<(), ReadError> {
        for bytes in layers {
            let offset = self.wire.offset(&bytes);
            let layer = Layer::decode(bytes).map_err(|error| {
                self.wire.broken(format!("a layer cannot be decoded: {error}"), offset)
            })?;
            self.layer(layer, first)?;
        }
        Ok(())
    }

    fn layer(&mut self, mut layer: Layer, first: usize) -> Result<(), ReadError> {
        let spelling = dialect::NEURAL_NETWORK.find(&layer.spelling);
        if spelling.is_none() {
            *self.unknown.entry(layer.spelling.clone()).or_default() += 1;
        }
        let names = &mut self.program.names;
        let mut node = DraftNode::new(NodeKind::Op, names.intern(&layer.name));
        node.op = spelling.map_or(Op::UNKNOWN, |spelling| spelling.op);
        node.spelling = names.intern(&layer.spelling);
        for (at, blob) in layer.inputs.iter().enumerate() {
            let operand = spelling
                .and_then(|s| s.positional(at).or_else(|| s.op.operands().last().copied()))
                .unwrap_or("input");
            let operand = self.program.names.intern(operand);
            let name = self.program.names.intern(blob);
            let value = self.lookup(name).ok_or_else(|| {
                let message = format!(
                    "layer `{}` reads `{blob}`, which nothing before it writes",
                    layer.name
                );
                self.wire.broken(message, None)
            })?;
            node.operands.push((operand, value));
        }
        self.params(&mut node, &mut layer, spelling);
        let inputs: Vec<Option<Vec<Dim>>> =
            node.operands.iter().map(|(_, value)| self.dims(*value)).collect();
        settings::canonicalise(&mut self.program.names, &mut node, &layer, &inputs);
        let written = self.nested(&mut node, &layer, first)?;
        let own = layer.outputs.len();
        for (at, name) in layer.outputs.iter().enumerate() {
            let name = self.program.names.intern(name);
            let declared = layer.shapes.get(at).and_then(Option::as_ref);
            let dims = match declared {
                Some(dims) => Some(dims.iter().map(|n| Dim::Static(*n)).collect()),
                None => shape::result(&self.program.names, &node, &layer, &inputs, self.rank5, at),
            };
            let shape =
                dims.map_or(ShapeId::UNKNOWN, |dims: Vec<Dim>| self.program.shapes.intern(&dims));
            node.results.push((name, shape::dtype(node.op), shape, None));
        }
        // What the branches write is read after them.
        for name in written {
            if !node.results.iter().any(|(known, ..)| *known == name) {
                node.results.push((name, DType::F16, ShapeId::UNKNOWN, None));
            }
        }
        let results: Vec<Name> = node.results.iter().map(|(name, ..)| *name).collect();
        debug_assert!(results.len() >= own);
        let frame = self.frame();
        let at = frame.draft.push(node);
        for (index, name) in results.into_iter().enumerate() {
            frame.scope.insert(name, (at, index as u32));
            frame.written.push(name);
        }
        Ok(())
    }

    fn dims(&self, value: DraftOperand) -> Option<Vec<Dim>> {
        let frame = self.frames.last()?;
        let result = frame.draft.nodes.get(value.0 as usize)?.results.get(value.1 as usize)?;
        self.program.shapes.get(result.2).dims().map(<[Dim]>::to_vec)
    }

    /// Parameters: weights become constant operands, numbers and words attributes.
    fn params(
        &mut self,
        node: &mut DraftNode,
        layer: &mut Layer,
        spelling: Option<&'static Spelling>,
    ) {
        let matrix = shape::weight(node.op, layer);
        for (stored, param) in &mut layer.params {
            let canonical = spelling.and_then(|s| s.canonical(stored)).unwrap_or(stored);
            let name = self.program.names.intern(canonical);
            let attr = match param {
                Param::Flag(flag) => Attr::Bool(*flag),
                Param::Weights(dtype, bytes) => {
                    let dims = (canonical == "weight").then(|| matrix.clone()).flatten();
                    let value = self.weight(*dtype, std::mem::take(bytes), node.name, dims);
                    node.operands.push((name, value));
                    continue;
                }
                Param::Ints(list) if list.len() == 1 => {
                    Attr::Int(list.first().copied().unwrap_or(0))
                }
                Param::Ints(list) if list.len() <= 64 => {
                    Attr::Ints(list.iter().map(|n| Some(*n)).collect())
                }
                Param::Floats(list) if list.len() == 1 => {
                    Attr::Float(list.first().copied().unwrap_or(0.0))
                }
                Param::Floats(list) if list.len() <= 64 => Attr::Floats(list.as_slice().into()),
                Param::Text(text) => Attr::Text(self.program.names.intern(text)),
                Param::Word(word) => Attr::Text(self.program.names.intern(word)),
                Param::Ints(_) | Param::Floats(_) | Param::Present | Param::Network(_) => continue,
            };
            node.attributes.push((name, attr));
        }
        let Some(spelling) = spelling else { return };
        for (name, literal) in spelling.defaults.iter().chain(spelling.set) {
            let name = self.program.names.intern(name);
            if node.attribute(name).is_none() {
                let attr = match literal {
                    Literal::Int(n) => Attr::Int(*n),
                    Literal::Float(x) => Attr::Float(*x),
                    Literal::Bool(b) => Attr::Bool(*b),
                    Literal::Text(text) => Attr::Text(self.program.names.intern(text)),
                    Literal::Ints(list) => Attr::Ints(list.iter().map(|n| Some(*n)).collect()),
                };
                node.attributes.push((name, attr));
            }
        }
    }

    /// A constant node for a weight, of shape `dims` if that many elements are there, else a vector.
    fn weight(
        &mut self,
        dtype: DType,
        bytes: Bytes,
        layer: Name,
        dims: Option<Vec<u64>>,
    ) -> DraftOperand {
        let count = match dtype.bits() {
            0 => 0,
            bits => (bytes.len() as u64).saturating_mul(8) / bits,
        };
        let fits = |dims: &Vec<u64>| {
            dims.iter().try_fold(1u64, |n, dim| n.checked_mul(*dim)) == Some(count)
        };
        let dims = dims.filter(fits).unwrap_or_else(|| vec![count]);
        let shape = self.program.shapes.intern_static(&dims);
        let payload = if bytes.is_empty() {
            Payload::Unknown
        } else {
            let len = bytes.len() as u64;
            self.program.blob_files.push(BlobFile::Bytes(bytes));
            Payload::Blob(Blob { file: self.program.blob_files.len() as u32 - 1, offset: 0, len })
        };
        let id: ConstantId = self.program.add_constant(Constant {
            dtype,
            shape,
            origin: ConstantOrigin::Parameter,
            fqn: layer,
            payload,
        });
        let mut node = DraftNode::new(NodeKind::Constant(id), layer);
        // Stored in f32 or fewer bits, computed with in f16 like everything else here.
        node.results.push((Name::EMPTY, DType::F16, shape, None));
        (self.frame().draft.push(node), 0)
    }

    /// Branches and loop bodies; gives the blobs that they write.
    fn nested(
        &mut self,
        node: &mut DraftNode,
        layer: &Layer,
        first: usize,
    ) -> Result<Vec<Name>, ReadError> {
        let mut written = Vec::new();
        let operand = self.program.names.intern("input");
        for (which, param) in &layer.params {
            let Param::Network(bytes) = param else { continue };
            if self.frames.len() >= DEPTH {
                let message = format!("`{}`: networks nest deeper than {DEPTH}", layer.name);
                return Err(self.wire.broken(message, None));
            }
            let parent = FunctionId((first + self.frame().slot) as u32);
            let network: proto::NeuralNetwork =
                self.wire.decode(bytes.clone(), "a nested network")?;
            self.open();
            self.layers(network.layers, first)?;
            let name = self.program.names.intern(&format!("{}/{which}", layer.name));
            self.branch_outputs(operand);
            let frame = self.close(name, FunctionRole::Branch { parent });
            node.bodies.push(FunctionId((first + frame.slot) as u32));
            for name in frame.captured {
                let Some(value) = self.lookup(name) else { continue };
                if !node.operands.iter().any(|(_, known)| *known == value) {
                    node.operands.push((operand, value));
                }
            }
            written.extend(frame.written);
        }
        written.sort_unstable_by_key(|name| name.0);
        written.dedup();
        Ok(written)
    }
}

impl Network<'_, '_> {
    /// What a branch writes and does not read itself is what it gives out.
    fn branch_outputs(&mut self, operand: Name) {
        let frame = self.frame();
        let used = frame.draft.use_counts();
        let mut written = frame.written.clone();
        written.dedup();
        for name in written {
            let Some(&value) = frame.scope.get(&name) else { continue };
            if used.get(value.0 as usize).is_some_and(|count| *count == 0) {
                let mut node = DraftNode::new(NodeKind::Output, name);
                node.operands.push((operand, value));
                frame.draft.push(node);
            }
        }
    }
}

/// (channels) and (channels, height, width) as (1, channels, height, width).
fn four(dims: Vec<Dim>) -> Vec<Dim> {
    const ONE: Dim = Dim::Static(1);
    match dims.as_slice() {
        [c] => vec![ONE, *c, ONE, ONE],
        [c, h, w] => vec![ONE, *c, *h, *w],
        _ => dims,
    }
}
