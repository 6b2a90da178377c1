//! One node: its inputs and attributes under canonical names, its results with their types, the graphs
//! in it; calls of the model's own functions are replaced by their nodes.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxBuildHasher;

use super::attributes;
use super::constants;
use super::functions::{self, Environment, Local, plain_domain};
use super::graph::{Def, Lowering};
use super::settings::{self, Site};
use super::shapes;
use super::tensor::{self, Data, Tensor};
use super::types::Declared;
use super::values::{self, Element};
use super::wire::proto;
use crate::graph::{
    Attr, ConstantOrigin, DType, Dim, DraftNode, DraftOperand, Name, NodeKind, Op, ProvenanceId,
};
use crate::readers::ReadError;
use crate::readers::dialect::{self, Literal, Spelling};

/// Elements of a constant that may set something (axes, a shape, pads).
const SETTING: usize = 64;

impl Lowering<'_, '_> {
    /// Reads nodes in order. Writers sort them; where one does not, a node waits for what it uses.
    ///
    /// # Errors
    /// [`ReadError`] if one cannot be decoded or uses what nothing defines.
    pub(super) fn nodes(
        &mut self,
        environment: &Environment,
        stored: Vec<Bytes>,
    ) -> Result<(), ReadError> {
        let mut waiting: Vec<proto::Node> = Vec::new();
        for bytes in stored {
            let node: proto::Node = self.wire.decode(bytes, "a node")?;
            if self.missing(environment, &node).is_empty() {
                self.node(environment, node)?;
            } else {
                waiting.push(node);
            }
        }
        if waiting.is_empty() { Ok(()) } else { self.waiting(environment, waiting) }
    }

    /// Names that a node uses and nothing defines yet.
    fn missing(&mut self, environment: &Environment, node: &proto::Node) -> Vec<String> {
        let mut missing = Vec::new();
        for input in &node.input {
            let name = environment.name(input);
            if !name.is_empty()
                && !self.is_absent(environment, &name)
                && self.resolve(&name).is_none()
            {
                missing.push(name);
            }
        }
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    fn is_absent(&self, environment: &Environment, name: &str) -> bool {
        !environment.absent.is_empty()
            && self.program.names.find(name).is_some_and(|name| environment.absent.contains(&name))
    }

    /// Reads nodes that come before what they use.
    fn waiting(
        &mut self,
        environment: &Environment,
        waiting: Vec<proto::Node>,
    ) -> Result<(), ReadError> {
        let mut users: HashMap<String, Vec<usize>, FxBuildHasher> = HashMap::default();
        let mut counts = Vec::with_capacity(waiting.len());
        let mut ready = VecDeque::new();
        for (at, node) in waiting.iter().enumerate() {
            let missing = self.missing(environment, node);
            counts.push(missing.len());
            if missing.is_empty() {
                ready.push_back(at);
            }
            for name in missing {
                users.entry(name).or_default().push(at);
            }
        }
        let mut waiting: Vec<Option<proto::Node>> = waiting.into_iter().map(Some).collect();
        while let Some(at) = ready.pop_front() {
            let Some(node) = waiting.get_mut(at).and_then(Option::take) else { continue };
            let outputs: Vec<String> = node.output.iter().map(|o| environment.name(o)).collect();
            self.node(environment, node)?;
            for output in outputs {
                for user in users.remove(&output).unwrap_or_default() {
                    if let Some(count) = counts.get_mut(user) {
                        *count -= 1;
                        if *count == 0 {
                            ready.push_back(user);
                        }
                    }
                }
            }
        }
        match waiting.into_iter().flatten().next() {
            None => Ok(()),
            Some(node) => {
                let missing = self.missing(environment, &node);
                let name = missing.first().map_or("", String::as_str);
                Err(self.undefined(&shown_name(&node), name))
            }
        }
    }

    fn node(&mut self, environment: &Environment, stored: proto::Node) -> Result<(), ReadError> {
        let domain = plain_domain(&stored.domain);
        if let Some(local) = self.library.find(&stored) {
            return self.call(environment, &stored, &local);
        }
        if domain.is_empty() && stored.op_type == "Constant" {
            return self.constant_node(environment, &stored);
        }
        let text = match domain {
            "" => stored.op_type.clone(),
            domain => format!("{domain}.{}", stored.op_type),
        };
        let spelling = dialect::ONNX.find(&text);
        if spelling.is_none() {
            *self.unknown.entry(text.clone()).or_default() += 1;
        }
        let shown = environment.name(&shown_name(&stored));
        let mut node = DraftNode::new(NodeKind::Op, self.program.names.intern(&shown));
        node.op = spelling.map_or(Op::UNKNOWN, |spelling| spelling.op);
        node.spelling = self.program.names.intern(&text);
        node.provenance = self.provenance(environment, &stored);
        let mut inputs = Vec::with_capacity(stored.input.len());
        for (position, input) in stored.input.iter().enumerate() {
            let name = environment.name(input);
            if name.is_empty() || self.is_absent(environment, &name) {
                inputs.push(None);
                continue;
            }
            let Some(def) = self.resolve(&name) else {
                return Err(self.undefined(&shown, &name));
            };
            inputs.push(Some(def));
            self.argument(&mut node, spelling, position, def)?;
        }
        let graphs = self.stored_attributes(environment, &mut node, spelling, stored.attribute)?;
        let bodies = self.nested(environment, &mut node, graphs, &shown)?;
        if let Some(spelling) = spelling {
            self.finish_arguments(&mut node, spelling);
        }
        let opset = environment.opsets.version(domain);
        self.settle(&mut node, &text, opset, &inputs, stored.output.len());
        self.results(environment, &mut node, &text, &inputs, &bodies, &stored.output)?;
        self.push(environment, node, &stored.output);
        Ok(())
    }

    fn provenance(&mut self, environment: &Environment, stored: &proto::Node) -> ProvenanceId {
        let found = self.origins.of_node(self.program, &stored.metadata_props, &stored.name);
        if found == ProvenanceId::NONE { environment.caller } else { found }
    }

    /// A `Constant` node is a name for a tensor.
    fn constant_node(
        &mut self,
        environment: &Environment,
        stored: &proto::Node,
    ) -> Result<(), ReadError> {
        let Some(output) = stored.output.first() else { return Ok(()) };
        let name = self.program.names.intern(&environment.name(output));
        let mut tensor = Tensor::default();
        for bytes in &stored.attribute {
            let attribute: proto::Attribute = self.wire.decode(bytes.clone(), "an attribute")?;
            let Some(attribute) = attributes::resolved(environment, attribute) else { continue };
            if let Some(bytes) = attribute.t {
                tensor = self.tensor_attribute(bytes)?;
            } else if let Some(bytes) = attribute.sparse_tensor {
                tensor = self.sparse(bytes)?;
            } else if let Some(value) = attributes::value(&mut self.program.names, &attribute) {
                tensor = self.literal(&value);
            }
        }
        self.define_constant(name, tensor);
        Ok(())
    }

    fn tensor_attribute(&mut self, bytes: Bytes) -> Result<Tensor, ReadError> {
        let offset = self.wire.offset(&bytes);
        tensor::read(bytes).map_err(|error| {
            self.wire.broken(format!("a tensor cannot be decoded: {error}"), offset)
        })
    }

    /// A number, word or list as a tensor.
    fn literal(&self, value: &Attr) -> Tensor {
        let floats = |list: &[f64]| list.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
        let (dtype, dims, data) = match value {
            Attr::Int(n) => (DType::I64, vec![], Data::Raw(n.to_le_bytes().to_vec().into())),
            Attr::Float(x) => (DType::F32, vec![], Data::Raw(floats(&[*x]))),
            Attr::Ints(list) => {
                let bytes: Vec<u8> =
                    list.iter().flat_map(|n| n.unwrap_or(0).to_le_bytes()).collect();
                (DType::I64, vec![list.len() as i64], Data::Raw(bytes.into()))
            }
            Attr::Floats(list) => (DType::F32, vec![list.len() as i64], Data::Raw(floats(list))),
            Attr::Text(word) => {
                let text = self.program.text(*word).to_owned();
                (DType::String, vec![], Data::Texts(vec![text.into()]))
            }
            Attr::Texts(list) => {
                let texts = list.iter().map(|w| self.program.text(*w).to_owned().into()).collect();
                (DType::String, vec![list.len() as i64], Data::Texts(texts))
            }
            _ => (DType::Unknown, vec![], Data::None),
        };
        Tensor { dims, dtype, data, ..Tensor::default() }
    }

    /// Takes one input: a setting as attribute, a tensor as operand.
    fn argument(
        &mut self,
        node: &mut DraftNode,
        spelling: Option<&'static Spelling>,
        position: usize,
        def: Def,
    ) -> Result<(), ReadError> {
        let canonical = match spelling {
            None => "input".to_owned(),
            Some(spelling) => match spelling.positional(position) {
                Some(name) => name.to_owned(),
                // No canonical name fits, and the data flow holds all the same.
                None => format!("operand_{position}"),
            },
        };
        let name = self.program.names.intern(&canonical);
        let is_attribute =
            spelling.is_some_and(|s| s.op.attributes().contains(&canonical.as_str()));
        if is_attribute {
            if let Some(attr) = self.setting(def) {
                node.attributes.push((name, attr));
                return Ok(());
            }
            node.attributes.push((name, Attr::Dynamic));
        }
        if let Def::Constant(at) = def
            && constants::is_trained(node.op, &canonical)
        {
            let id = self.constant_id(at)?;
            if let Some(constant) = self.program.constants.get_mut(id.0 as usize)
                && constant.origin != ConstantOrigin::Parameter
            {
                constant.origin = ConstantOrigin::Parameter;
            }
        }
        let value = self.operand(def)?;
        node.operands.push((name, value));
        Ok(())
    }

    /// A constant as an attribute, if it is small and holds numbers.
    fn setting(&self, def: Def) -> Option<Attr> {
        let tensor = self.tensor(def)?;
        let numbers = tensor.numbers(SETTING)?;
        let integer = tensor.dtype.is_int() || tensor.dtype == DType::Bool;
        Some(attributes::of_numbers(&numbers, integer, tensor.dims.is_empty()))
    }

    /// Takes the attributes, and gives the graphs among them with their names.
    fn stored_attributes(
        &mut self,
        environment: &Environment,
        node: &mut DraftNode,
        spelling: Option<&'static Spelling>,
        stored: Vec<Bytes>,
    ) -> Result<Vec<(String, Bytes)>, ReadError> {
        let mut graphs = Vec::new();
        for bytes in stored {
            let attribute: proto::Attribute = self.wire.decode(bytes, "an attribute")?;
            let Some(attribute) = attributes::resolved(environment, attribute) else { continue };
            if let Some(graph) = attribute.g {
                graphs.push((attribute.name, graph));
                continue;
            }
            for (at, graph) in attribute.graphs.iter().enumerate() {
                graphs.push((format!("{}_{at}", attribute.name), graph.clone()));
            }
            let canonical = spelling
                .and_then(|s| s.canonical(&attribute.name))
                .unwrap_or(&attribute.name)
                .to_owned();
            let name = self.program.names.intern(&canonical);
            if let Some(bytes) = attribute.t.clone() {
                let tensor = self.tensor_attribute(bytes)?;
                if let Some(numbers) = tensor.numbers(SETTING) {
                    let integer = tensor.dtype.is_int();
                    let scalar = numbers.len() == 1;
                    let attr = attributes::of_numbers(&numbers, integer, scalar);
                    node.attributes.push((name, attr));
                    if node.op == Op::FULL {
                        let dtype = self.words().dtype;
                        node.attributes.push((dtype, Attr::DType(tensor.dtype)));
                    }
                }
                continue;
            }
            let Some(attr) = attributes::value(&mut self.program.names, &attribute) else {
                continue;
            };
            // What later opsets feed as a tensor and earlier ones set: a constant operand.
            let operand = spelling.is_some_and(|s| {
                s.is_operand(&canonical) && !s.op.attributes().contains(&canonical.as_str())
            });
            if operand && matches!(attr, Attr::Float(_) | Attr::Int(_)) {
                let dtype = node.operands.first().and_then(|(_, value)| self.result(*value));
                let mut tensor = self.literal(&attr);
                if let (Some(dtype), Data::Raw(_)) = (dtype.map(|d| d.dtype), &tensor.data)
                    && dtype == DType::F16
                    && let Some(x) = attr.as_float()
                {
                    tensor.dtype = DType::F16;
                    let half = half::f16::from_f64(x).to_le_bytes();
                    tensor.data = Data::Raw(half.to_vec().into());
                }
                let def = self.anonymous(Name::EMPTY, tensor);
                let value = self.operand(def)?;
                node.operands.push((name, value));
                continue;
            }
            node.attributes.push((name, attr));
        }
        // `then` before `else`, whatever the order in the file.
        if node.op == Op::COND {
            graphs.sort_by_key(|(name, _)| name != "then_branch");
        }
        Ok(graphs)
    }

    /// What a value is: type and dims.
    pub(super) fn result(&self, value: DraftOperand) -> Option<Declared> {
        let frame = self.frames.last()?;
        let (_, dtype, shape, _) =
            *frame.draft.nodes.get(value.0 as usize)?.results.get(value.1 as usize)?;
        let dims = self.program.shapes.get(shape).dims().map(<[Dim]>::to_vec);
        Some(Declared { dtype, dims })
    }

    /// What a definition is: type and dims.
    fn declared(&self, def: Def) -> Option<Declared> {
        match def {
            Def::Value(value) => self.result(value),
            Def::Constant(_) => {
                let tensor = self.tensor(def)?;
                let dims = tensor.sizes()?.into_iter().map(Dim::Static).collect();
                Some(Declared { dtype: tensor.dtype, dims: Some(dims) })
            }
        }
    }

    /// Defaults, fixed settings, and the canonical order of operands.
    fn finish_arguments(&mut self, node: &mut DraftNode, spelling: &'static Spelling) {
        let names = &mut self.program.names;
        let literal = |names: &mut crate::graph::Names, literal: &Literal| match literal {
            Literal::Int(n) => Attr::Int(*n),
            Literal::Float(x) => Attr::Float(*x),
            Literal::Bool(b) => Attr::Bool(*b),
            Literal::Text(text) => Attr::Text(names.intern(text)),
            Literal::Ints(list) => Attr::Ints(list.iter().map(|&n| Some(n)).collect()),
        };
        for (name, value) in spelling.defaults {
            let name = names.intern(name);
            if node.attribute(name).is_none() && node.operand(name).is_none() {
                let attr = literal(names, value);
                node.attributes.push((name, attr));
            }
        }
        for (name, value) in spelling.set {
            let name = names.intern(name);
            let attr = literal(names, value);
            node.attributes.retain(|(known, _)| *known != name);
            node.attributes.push((name, attr));
        }
        let place = |name: Name| {
            let text = names.get(name);
            spelling.op.operands().iter().position(|known| *known == text).unwrap_or(usize::MAX)
        };
        node.operands.sort_by_key(|(name, _)| place(*name));
    }

    /// Brings settings into canonical form.
    fn settle(
        &mut self,
        node: &mut DraftNode,
        text: &str,
        opset: i64,
        inputs: &[Option<Def>],
        outputs: usize,
    ) {
        let described: Vec<Option<Declared>> =
            inputs.iter().map(|def| def.and_then(|def| self.declared(def))).collect();
        let constant: Vec<bool> =
            inputs.iter().map(|def| matches!(def, Some(Def::Constant(_)))).collect();
        let values: Vec<Option<Vec<Element>>> =
            inputs.iter().map(|def| def.and_then(|def| self.value(def))).collect();
        let weight = self.program.names.find("weight").and_then(|name| node.operand(name));
        let site = Site {
            spelling: text,
            opset,
            outputs,
            weight: weight.and_then(|value| self.result(value)).and_then(|weight| weight.dims),
            inputs: &described,
            constant: &constant,
            values: &values,
        };
        settings::canonicalise(&mut self.program.names, node, &site);
    }

    /// Adds the results: as declared, and where nothing is declared as inferred.
    fn results(
        &mut self,
        environment: &Environment,
        node: &mut DraftNode,
        text: &str,
        inputs: &[Option<Def>],
        bodies: &[Vec<Declared>],
        outputs: &[String],
    ) -> Result<(), ReadError> {
        let inferred = if bodies.is_empty() {
            let described: Vec<Option<Declared>> =
                inputs.iter().map(|def| def.and_then(|def| self.declared(def))).collect();
            let values: Vec<Option<Vec<Element>>> =
                inputs.iter().map(|def| def.and_then(|def| self.value(def))).collect();
            let site = shapes::Site {
                spelling: text,
                node,
                inputs: &described,
                values: &values,
                outputs: outputs.len(),
            };
            shapes::infer(&mut self.program.names, &site)
        } else {
            shapes::of_bodies(node.op, bodies)
        };
        for (at, output) in outputs.iter().enumerate() {
            let name = self.program.names.intern(&environment.name(output));
            let guess = inferred.get(at).cloned().unwrap_or_default();
            let told = self.frame().declared.get(&name).cloned().unwrap_or_default();
            let result = shapes::merge(told, guess);
            let shape = self.shape(&result);
            node.results.push((name, result.dtype, shape, None));
        }
        Ok(())
    }

    /// The elements of a small whole-number tensor, as far as they are known.
    fn value(&self, def: Def) -> Option<Vec<Element>> {
        match def {
            Def::Value(value) => self.frames.last()?.values.get(&value).cloned(),
            Def::Constant(_) => {
                let tensor = self.tensor(def)?;
                if !tensor.dtype.is_int() || tensor.dims.len() > 1 {
                    return None;
                }
                let numbers = tensor.numbers(SETTING)?;
                Some(numbers.iter().map(|n| Element::Int(*n as i64)).collect())
            }
        }
    }

    /// Adds the node and the names of its results.
    fn push(&mut self, environment: &Environment, node: DraftNode, outputs: &[String]) {
        let operands: Vec<Option<Vec<Element>>> = node
            .operands
            .iter()
            .map(|(_, value)| {
                let frame = self.frames.last()?;
                if let Some(known) = frame.values.get(value) {
                    return Some(known.clone());
                }
                match frame.draft.nodes.get(value.0 as usize)?.kind {
                    NodeKind::Constant(id) => values::of_constant(self.program, id),
                    _ => None,
                }
            })
            .collect();
        let known = values::evaluate(self.program, &node, &operands, |value| self.result(value));
        let names: Vec<Name> = outputs
            .iter()
            .map(|output| self.program.names.intern(&environment.name(output)))
            .collect();
        let frame = self.frame();
        let at = frame.draft.push(node);
        if let Some(known) = known {
            frame.values.insert((at, 0), known);
        }
        for (index, name) in names.into_iter().enumerate() {
            if !name.is_empty() {
                frame.scope.insert(name, Def::Value((at, index as u32)));
            }
        }
    }

    /// Puts a function's nodes in the place of a call.
    fn call(
        &mut self,
        environment: &Environment,
        stored: &proto::Node,
        local: &Rc<Local>,
    ) -> Result<(), ReadError> {
        let size = local.function.node.len();
        let too_much = self.inlined.saturating_add(size) > functions::INLINED;
        if environment.depth >= functions::DEPTH || too_much {
            self.kept_calls += 1;
            return self.kept_call(environment, stored);
        }
        self.inlined += size;
        let shown = environment.name(&shown_name(stored));
        let prefix = format!("{shown}/");
        let mut given: Vec<proto::Attribute> = Vec::new();
        for bytes in &stored.attribute {
            let attribute: proto::Attribute = self.wire.decode(bytes.clone(), "an attribute")?;
            given.extend(attributes::resolved(environment, attribute));
        }
        for default in &local.defaults {
            if given.iter().all(|known| known.name != default.name) {
                given.push(default.clone());
            }
        }
        let mut absent = Vec::new();
        let mut actual = Vec::new();
        for (at, formal) in local.function.input.iter().enumerate() {
            let inner = self.program.names.intern(&format!("{prefix}{formal}"));
            let name = stored.input.get(at).map(|name| environment.name(name)).unwrap_or_default();
            if name.is_empty() || self.is_absent(environment, &name) {
                absent.push(inner);
                continue;
            }
            let Some(def) = self.resolve(&name) else {
                return Err(self.undefined(&shown, &name));
            };
            actual.push((inner, def));
        }
        for (inner, def) in actual {
            self.frame().scope.insert(inner, def);
        }
        let inside = Environment {
            opsets: local.opsets.clone(),
            prefix,
            attributes: Rc::new(given),
            absent: Rc::new(absent),
            caller: self.provenance(environment, stored),
            depth: environment.depth + 1,
        };
        self.nodes(&inside, local.function.node.clone())?;
        for (formal, output) in local.function.output.iter().zip(&stored.output) {
            let inner = inside.name(formal);
            if output.is_empty() {
                continue;
            }
            let Some(def) = self.resolve(&inner) else {
                return Err(self.undefined(&shown, &inner));
            };
            let name = self.program.names.intern(&environment.name(output));
            self.frame().scope.insert(name, def);
        }
        Ok(())
    }

    /// A call that is not looked into.
    fn kept_call(
        &mut self,
        environment: &Environment,
        stored: &proto::Node,
    ) -> Result<(), ReadError> {
        let shown = environment.name(&shown_name(stored));
        let mut node = DraftNode::new(NodeKind::Op, self.program.names.intern(&shown));
        node.op = Op::CALL;
        node.spelling = self.program.names.intern(&stored.op_type);
        node.provenance = self.provenance(environment, stored);
        let input = self.words().input;
        for name in &stored.input {
            let name = environment.name(name);
            if name.is_empty() || self.is_absent(environment, &name) {
                continue;
            }
            let Some(def) = self.resolve(&name) else {
                return Err(self.undefined(&shown, &name));
            };
            let value = self.operand(def)?;
            node.operands.push((input, value));
        }
        self.results(environment, &mut node, "", &[], &[], &stored.output)?;
        self.push(environment, node, &stored.output);
        Ok(())
    }
}

/// What people call a node: its name, or its first result's.
fn shown_name(node: &proto::Node) -> String {
    if !node.name.is_empty() {
        return node.name.clone();
    }
    node.output.iter().find(|output| !output.is_empty()).cloned().unwrap_or_default()
}
