//! Does a row's condition hold for a node? Reads the graph, decides nothing else.

use super::edge::Edges;
use super::table::{AttributeTest, Condition, DimTest, OperandTest, Range};
use crate::facts::is_constant;
use crate::graph::{
    Attr, Category, DType, Function, NodeFlags, NodeId, NodeKind, Payload, Program, ShapeId, Value,
    ValueId,
};
use crate::target::Target;

/// What made a condition hold, for the words of its reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Witness {
    pub(super) dtype: Option<DType>,
    pub(super) rank: Option<usize>,
    pub(super) dim: Option<u64>,
}

/// A function under a target, with what the conditions ask of it.
pub(super) struct Ground<'p> {
    pub(super) program: &'p Program,
    pub(super) function: &'p Function,
    pub(super) target: &'p Target,
    pub(super) edges: &'p Edges,
    pub(super) uses: &'p Uses,
}

/// Which values anything uses.
pub(super) struct Uses(Vec<bool>);

impl Uses {
    pub(super) fn of(function: &Function) -> Uses {
        let mut used = vec![false; function.value_count()];
        for id in function.node_ids() {
            for operand in function.operands(id) {
                used[operand.value.0 as usize] = true;
            }
        }
        Uses(used)
    }

    /// Whether anything uses a value; a first result always counts.
    fn has(&self, value: ValueId, function: &Function) -> bool {
        function.value(value).index == 0 || self.0.get(value.0 as usize).copied().unwrap_or(false)
    }
}

impl<'p> Ground<'p> {
    /// What made `condition` hold at `id`; `None` if it does not.
    pub(super) fn holds(&self, condition: &Condition, id: NodeId) -> Option<Witness> {
        let mut witness = Witness::default();
        let node = self.function.node(id);
        if !condition.dtype.is_empty() {
            let dtype = self
                .run_time_values(id)
                .map(|value| value.dtype)
                .find(|dtype| condition.dtype.contains(dtype))?;
            witness.dtype = Some(dtype);
        }
        if !condition.result_dtype.is_empty() {
            let dtype = self
                .function
                .results(id)
                .filter(|value| self.uses.has(*value, self.function))
                .map(|value| self.function.value(value).dtype)
                .find(|dtype| condition.result_dtype.contains(dtype))?;
            witness.dtype = Some(dtype);
        }
        if let Some(range) = &condition.rank {
            let rank = self
                .run_time_values(id)
                .filter_map(|value| self.program.shapes.get(value.shape).rank())
                .find(|&rank| range.holds(rank as f64))?;
            witness.rank = Some(rank);
        }
        if let Some(test) = &condition.dim {
            let dim =
                self.run_time_values(id).find_map(|value| self.matching_dim(value.shape, test))?;
            witness.dim = Some(dim);
        }
        if let Some((from, to)) = condition.chip
            && !(from..=to).contains(&self.target.chip)
        {
            return None;
        }
        if condition.runtime.is_some_and(|runtime| runtime != self.target.runtime)
            || condition
                .index_preparation
                .is_some_and(|wanted| wanted != self.edges.prepares_indices(id))
            || condition
                .implicit
                .is_some_and(|wanted| wanted != node.flags.contains(NodeFlags::IMPLICIT))
        {
            return None;
        }
        if condition
            .form
            .is_some_and(|form| self.target.provider.is_none_or(|provider| provider.form != form))
        {
            return None;
        }
        if let Some((from, before)) = condition.release
            && !self
                .target
                .provider
                .is_some_and(|provider| (from..before).contains(&provider.release))
        {
            return None;
        }
        if let Some(range) = &condition.opset {
            let opset = self.program.text(self.function.opset);
            let version: f64 = opset.strip_prefix("opset")?.parse().ok()?;
            if !range.holds(version) {
                return None;
            }
        }
        for (name, test) in condition.operands {
            if !self.operand_holds(id, name, test, &mut witness) {
                return None;
            }
        }
        for (name, test) in condition.attributes {
            let held = self
                .function
                .attributes(id)
                .iter()
                .find(|(known, _)| self.program.text(*known) == *name)
                .map(|(_, attr)| attr);
            if !self.attribute_holds(held, test) {
                return None;
            }
        }
        if !condition.any.is_empty() {
            let inner = condition.any.iter().find_map(|inner| self.holds(inner, id))?;
            witness = Witness {
                dtype: inner.dtype.or(witness.dtype),
                rank: inner.rank.or(witness.rank),
                dim: inner.dim.or(witness.dim),
            };
        }
        if condition.not.iter().any(|inner| self.holds(inner, id).is_some()) {
            return None;
        }
        Some(witness)
    }

    /// The results of a node and its operands that are not constant. Sizes and other numbers that
    /// are no tensor in the file (attributes) are not among them, nor are by-products that nothing
    /// uses (the statistics of a norm, the indices of a pool); the parts of a split all count.
    fn run_time_values(&self, id: NodeId) -> impl Iterator<Item = &'p Value> + use<'p> {
        let function = self.function;
        let operands = function
            .operands(id)
            .iter()
            .map(|operand| function.value(operand.value))
            .filter(move |value| !is_constant(function.node(value.node)));
        let parts = function.node(id).op.category() == Category::Movement;
        let uses = self.uses;
        function
            .results(id)
            .filter(move |value| parts || uses.has(*value, function))
            .map(move |value| function.value(value))
            .chain(operands)
    }

    fn matching_dim(&self, shape: ShapeId, test: &DimTest) -> Option<u64> {
        let shape = self.program.shapes.get(shape);
        match test.axis {
            Some(axis) => shape.dim(axis)?.value().filter(|&size| test.size.holds(size as f64)),
            None => shape
                .dims()?
                .iter()
                .filter_map(|dim| dim.value())
                .find(|&size| test.size.holds(size as f64)),
        }
    }

    fn operand_holds(
        &self,
        id: NodeId,
        name: &str,
        test: &OperandTest,
        witness: &mut Witness,
    ) -> bool {
        let operand = self
            .function
            .operands(id)
            .iter()
            .find(|operand| self.program.text(operand.name) == name);
        let Some(operand) = operand else { return test.present == Some(false) };
        let value = self.function.value(operand.value);
        let shape = self.program.shapes.get(value.shape);
        if test.present == Some(false)
            || test
                .constant
                .is_some_and(|wanted| wanted != is_constant(self.function.node(value.node)))
            || (!test.dtype.is_empty() && !test.dtype.contains(&value.dtype))
        {
            return false;
        }
        if let Some(range) = &test.rank
            && !shape.rank().is_some_and(|rank| range.holds(rank as f64))
        {
            return false;
        }
        for dim in test.dims {
            let Some(size) = self.matching_dim(value.shape, dim) else { return false };
            witness.dim = Some(size);
        }
        if let Some(wanted) = test.square {
            let sides = (shape.dim(-2), shape.dim(-1));
            let square = sides.0.is_some() && sides.0 == sides.1;
            if wanted != square {
                return false;
            }
        }
        if let Some(range) = &test.bytes {
            let bytes = shape.elements().map(|n| value.dtype.bytes(n));
            if !bytes.is_some_and(|bytes| range.holds(bytes as f64)) {
                return false;
            }
        }
        if let Some(range) = &test.value {
            return self.single_value(operand.value).is_some_and(|number| range.holds(number));
        }
        true
    }

    /// The one value of a constant, if the file shows it.
    fn single_value(&self, value: ValueId) -> Option<f64> {
        let NodeKind::Constant(constant) = self.function.node(self.function.producer(value)).kind
        else {
            return None;
        };
        match &self.program.constant(constant).payload {
            Payload::Splat(number) => Some(*number),
            Payload::Values(numbers) => {
                let first = *numbers.first()?;
                numbers.iter().all(|&number| number == first).then_some(first)
            }
            Payload::Blob(_) | Payload::Text(_) | Payload::Unknown => None,
        }
    }

    fn attribute_holds(&self, attr: Option<&Attr>, test: &AttributeTest) -> bool {
        let Some(attr) = attr else { return test.present == Some(false) };
        if test.present == Some(false) {
            return false;
        }
        if !test.is.is_empty() {
            let word = match attr {
                Attr::Text(name) => self.program.text(*name),
                Attr::Bool(true) => "true",
                Attr::Bool(false) => "false",
                Attr::DType(dtype) => dtype.name(),
                _ => return false,
            };
            if !test.is.contains(&word) {
                return false;
            }
        }
        if let Some(wanted) = test.dynamic {
            let dynamic = match attr {
                Attr::Dynamic | Attr::Symbol(_) => true,
                Attr::Ints(list) => list.iter().any(Option::is_none),
                _ => false,
            };
            if wanted != dynamic {
                return false;
            }
        }
        match &test.number {
            None => true,
            Some(range) => number_holds(attr, test.item, range),
        }
    }
}

fn number_holds(attr: &Attr, item: Option<i64>, range: &Range) -> bool {
    let one = |len: usize, item: i64| {
        let at = if item < 0 { len as i64 + item } else { item };
        usize::try_from(at).ok()
    };
    match attr {
        Attr::Ints(list) => match item {
            Some(item) => one(list.len(), item)
                .and_then(|at| list.get(at).copied().flatten())
                .is_some_and(|number| range.holds(number as f64)),
            None => list.iter().flatten().any(|&number| range.holds(number as f64)),
        },
        Attr::Floats(list) => match item {
            Some(item) => one(list.len(), item)
                .and_then(|at| list.get(at).copied())
                .is_some_and(|number| range.holds(number)),
            None => list.iter().any(|&number| range.holds(number)),
        },
        _ => attr.as_float().is_some_and(|number| range.holds(number)),
    }
}
