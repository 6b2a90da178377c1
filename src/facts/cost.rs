//! What an op costs: floating-point operations and bytes moved, from shapes alone. No time: that
//! depends on a unit and is placement's.
//!
//! A multiply and an add count as two. Contractions:
//!
//! | op | operations |
//! |---|---|
//! | conv | 2 · results · (input channels ÷ groups) · kernel elements |
//! | conv_transpose | 2 · inputs · (output channels ÷ groups) · kernel elements |
//! | linear, matmul, addmm, gather_matmul | 2 · results · contracted extent |
//! | einsum | 2 · product of the extents of all indices |
//! | sdpa | 2 · queries · keys · (query width + value width), over batch and heads; no discount for causal |
//! | lstm, gru, rnn | 2 · steps · batch · elements of the weight matrices |
//! | fft | 5 · n · log2 n |
//!
//! A bias costs nothing extra, as in torch's own counter. Everything else counts one operation per
//! element of its largest operand or result, kept apart as [`Cost::other`]; movement, casts and
//! indexing count none.

use crate::graph::{
    Attr, Category, Function, NodeFlags, NodeId, NodeKind, Op, Program, Shape, ValueId,
};

/// The cost of one op; every number saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Operations of contractions (conv, matmul, attention, recurrent layers).
    pub flops: u64,
    /// Operations of all else.
    pub other: u64,
    /// Bytes of run-time operands, each value once.
    pub input_bytes: u64,
    /// Bytes of constant operands as stored; of a gathered table only the rows that are read.
    pub weight_bytes: u64,
    /// Bytes of results.
    pub output_bytes: u64,
    /// Whether a size was not static, so that the numbers are too small.
    pub partial: bool,
}

impl Cost {
    /// Bytes in, weights and out.
    pub fn bytes(&self) -> u64 {
        self.input_bytes.saturating_add(self.weight_bytes).saturating_add(self.output_bytes)
    }

    /// Adds another op's cost.
    pub fn add(&mut self, other: &Cost) {
        self.flops = self.flops.saturating_add(other.flops);
        self.other = self.other.saturating_add(other.other);
        self.input_bytes = self.input_bytes.saturating_add(other.input_bytes);
        self.weight_bytes = self.weight_bytes.saturating_add(other.weight_bytes);
        self.output_bytes = self.output_bytes.saturating_add(other.output_bytes);
        self.partial |= other.partial;
    }
}

/// The cost of a node; nothing for constants, inputs, outputs and constant work. Transparent ops move
/// their bytes.
pub fn cost(program: &Program, function: &Function, id: NodeId) -> Cost {
    let node = function.node(id);
    let mut cost = Cost::default();
    if node.kind != NodeKind::Op || node.flags.contains(NodeFlags::CONSTANT_WORK) {
        return cost;
    }
    let of = Sizes { program, function, id };
    let mut largest = 0u64;
    for value in function.results(id) {
        match of.bytes(value) {
            Some(bytes) => cost.output_bytes = cost.output_bytes.saturating_add(bytes),
            None => cost.partial = true,
        }
        largest = largest.max(of.elements(value).unwrap_or(0));
    }
    let operands = function.operands(id);
    for (slot, operand) in operands.iter().enumerate() {
        // Variadic ops have long operand lists: look back a little, not over all.
        if operands[slot.saturating_sub(8)..slot].iter().any(|o| o.value == operand.value) {
            continue;
        }
        let Some(bytes) = of.bytes(operand.value) else {
            cost.partial = true;
            continue;
        };
        let producer = function.node(function.producer(operand.value));
        if super::is_constant(producer) {
            let gathered = node.op.category() == Category::Indexing
                && matches!(program.text(operand.name), "weight" | "input");
            let read = if gathered { bytes.min(cost.output_bytes) } else { bytes };
            cost.weight_bytes = cost.weight_bytes.saturating_add(read);
        } else {
            cost.input_bytes = cost.input_bytes.saturating_add(bytes);
            largest = largest.max(of.elements(operand.value).unwrap_or(0));
        }
    }
    match contraction(&of, node.op) {
        Some(flops) => cost.flops = flops,
        None if counts_elements(node.op.category()) => cost.other = largest,
        None => {}
    }
    if matches!(
        node.op.category(),
        Category::Contraction | Category::Attention | Category::Recurrent
    ) && cost.flops == 0
    {
        cost.partial = true;
    }
    cost
}

/// The cost of all work in a function.
pub fn total(program: &Program, function: &Function) -> Cost {
    let mut sum = Cost::default();
    for id in function.node_ids().filter(|&id| function.is_work(id)) {
        sum.add(&cost(program, function, id));
    }
    sum
}

/// The name of the formula that gives [`Cost::flops`] of an op; `None` for ops that are no contraction.
pub fn formula(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::CONV => "2 · results · (input channels ÷ groups) · kernel elements",
        Op::CONV_TRANSPOSE => "2 · inputs · (output channels ÷ groups) · kernel elements",
        Op::LINEAR | Op::MATMUL | Op::ADDMM | Op::GATHER_MATMUL => {
            "2 · results · contracted extent"
        }
        Op::BILINEAR => "2 · results · width of a · (width of b + 1)",
        Op::EINSUM => "2 · product of the extents of all indices",
        Op::SDPA | Op::MULTI_HEAD_ATTENTION => {
            "2 · queries · keys · (query width + value width), over batch and heads"
        }
        Op::LSTM | Op::GRU | Op::RNN => "2 · steps · batch · elements of the weight matrices",
        Op::FFT => "5 · n · log2 n",
        _ => return None,
    })
}

fn counts_elements(category: Category) -> bool {
    matches!(
        category,
        Category::Elementwise
            | Category::Activation
            | Category::Logic
            | Category::Reduction
            | Category::Normalization
            | Category::Pooling
            | Category::Sorting
            | Category::Resize
    )
}

/// Operations of a contraction; `None` for other ops and where a size is not static.
fn contraction(of: &Sizes<'_>, op: Op) -> Option<u64> {
    let results = || of.function.result(of.id).and_then(|value| of.elements(value));
    let twice = |a: u64, b: u64| 2u64.saturating_mul(a).saturating_mul(b);
    match op {
        Op::CONV => Some(twice(results()?, of.elements_after_first("weight")?)),
        Op::CONV_TRANSPOSE => {
            Some(twice(of.elements(of.operand("input")?)?, of.elements_after_first("weight")?))
        }
        Op::LINEAR => Some(twice(results()?, of.dim("weight", -1)?)),
        Op::GATHER_MATMUL => Some(twice(results()?, of.dim("input", -1)?)),
        Op::ADDMM => Some(twice(results()?, of.dim("a", -1)?)),
        Op::MATMUL => {
            let axis = if of.flag("transpose_a") && of.rank("a")? > 1 { -2 } else { -1 };
            Some(twice(results()?, of.dim("a", axis)?))
        }
        Op::BILINEAR => Some(twice(
            results()?,
            of.dim("a", -1)?.saturating_mul(of.dim("b", -1)?.saturating_add(1)),
        )),
        Op::EINSUM => einsum(of),
        Op::SDPA | Op::MULTI_HEAD_ATTENTION => {
            let width = of.dim("query", -1)?;
            let queries = of.elements(of.operand("query")?)?.checked_div(width)?;
            let both = width.saturating_add(of.dim("value", -1)?);
            Some(twice(queries.saturating_mul(of.dim("key", -2)?), both))
        }
        Op::LSTM | Op::GRU | Op::RNN => {
            let operands = of.function.operands(of.id);
            let weights = operands
                .iter()
                .filter(|o| {
                    super::is_constant(of.function.node(of.function.producer(o.value)))
                        && of.shape(o.value).rank().is_some_and(|rank| rank >= 2)
                })
                .filter_map(|o| of.elements(o.value))
                .fold(0u64, u64::saturating_add);
            let input = of.shape(operands.first()?.value);
            let steps =
                of.elements(operands.first()?.value)?.checked_div(input.dim(-1)?.value()?)?;
            Some(twice(steps, weights))
        }
        Op::FFT => {
            let n = results()?;
            Some(n.saturating_mul(5).saturating_mul(u64::from(n.max(1).ilog2())))
        }
        _ => None,
    }
}

/// 2 · the product of all index extents; an ellipsis counts the dims it stands for in the first
/// operand that has it.
fn einsum(of: &Sizes<'_>) -> Option<u64> {
    let equation = match of.attribute("equation")? {
        Attr::Text(name) => of.program.text(*name),
        _ => return None,
    };
    let inputs = equation.split("->").next()?;
    let mut extents: Vec<(char, u64)> = Vec::new();
    let mut around: Option<u64> = None;
    let operands = of.function.operands(of.id);
    for (term, operand) in inputs.split(',').zip(operands) {
        let dims = of.shape(operand.value).dims()?;
        let letters: Vec<char> = term.chars().filter(|c| c.is_ascii_alphabetic()).collect();
        let ellipsis = dims.len().checked_sub(letters.len())?;
        let before = term.split("...").next()?.chars().filter(|c| c.is_ascii_alphabetic()).count();
        let mut covered = 1u64;
        for (at, dim) in dims.iter().enumerate() {
            let size = dim.value()?;
            if at >= before && at < before.checked_add(ellipsis)? && term.contains("...") {
                covered = covered.saturating_mul(size);
                continue;
            }
            let letter = if at < before || !term.contains("...") {
                letters.get(at)
            } else {
                letters.get(at.checked_sub(ellipsis)?)
            };
            let letter = *letter?;
            match extents.iter_mut().find(|(known, _)| *known == letter) {
                Some((_, known)) => *known = (*known).max(size),
                None => extents.push((letter, size)),
            }
        }
        around = Some(around.map_or(covered, |known| known.max(covered)));
    }
    let product = extents.iter().fold(around.unwrap_or(1), |n, (_, size)| n.saturating_mul(*size));
    Some(product.saturating_mul(2))
}

/// Sizes around one node.
struct Sizes<'p> {
    program: &'p Program,
    function: &'p Function,
    id: NodeId,
}

impl<'p> Sizes<'p> {
    fn shape(&self, value: ValueId) -> Shape<'p> {
        self.program.shapes.get(self.function.value(value).shape)
    }

    fn elements(&self, value: ValueId) -> Option<u64> {
        self.shape(value).elements()
    }

    fn bytes(&self, value: ValueId) -> Option<u64> {
        Some(self.function.value(value).dtype.bytes(self.elements(value)?))
    }

    fn operand(&self, name: &str) -> Option<ValueId> {
        self.function.operand(self.id, self.program.names.find(name)?)
    }

    fn attribute(&self, name: &str) -> Option<&'p Attr> {
        self.function.attribute(self.id, self.program.names.find(name)?)
    }

    fn flag(&self, name: &str) -> bool {
        self.attribute(name).and_then(Attr::as_bool).unwrap_or(false)
    }

    fn rank(&self, operand: &str) -> Option<usize> {
        self.shape(self.operand(operand)?).rank()
    }

    fn dim(&self, operand: &str, axis: i64) -> Option<u64> {
        self.shape(self.operand(operand)?).dim(axis)?.value()
    }

    /// Elements of one slice along the first axis.
    fn elements_after_first(&self, operand: &str) -> Option<u64> {
        let dims = self.shape(self.operand(operand)?).dims()?;
        dims.get(1..)?.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::graph::{DType, Draft, DraftNode, Format, FunctionId, FunctionRole, Name};

    /// One op over operands of these shapes: `(name, dims, is a weight)`.
    fn one(
        op: Op,
        operands: &[(&str, &[u64], bool)],
        attributes: &[(&str, Attr)],
        result: &[u64],
    ) -> Cost {
        let mut program = Program::new("one".into(), Format::Pt2);
        let mut draft = Draft::default();
        let mut node = DraftNode::new(NodeKind::Op, Name::EMPTY);
        node.op = op;
        for (name, dims, weight) in operands {
            let shape = program.shapes.intern_static(dims);
            let kind = if *weight {
                NodeKind::Constant(program.add_constant(crate::graph::Constant {
                    dtype: DType::F16,
                    shape,
                    origin: crate::graph::ConstantOrigin::Parameter,
                    fqn: Name::EMPTY,
                    payload: Default::default(),
                }))
            } else {
                NodeKind::Input
            };
            let mut source = DraftNode::new(kind, Name::EMPTY);
            source.results.push((Name::EMPTY, DType::F16, shape, None));
            let at = draft.push(source);
            node.operands.push((program.names.intern(name), (at, 0)));
        }
        for (name, attr) in attributes {
            node.attributes.push((program.names.intern(name), attr.clone()));
        }
        let shape = program.shapes.intern_static(result);
        node.results.push((Name::EMPTY, DType::F16, shape, None));
        let at = draft.push(node);
        program.functions.push(draft.freeze(Name::EMPTY, Name::EMPTY, FunctionRole::Entry));
        cost(&program, program.function(FunctionId(0)), NodeId(at))
    }

    #[test]
    fn contractions_count_a_multiply_and_an_add_as_two() {
        let conv = one(
            Op::CONV,
            &[("input", &[1, 64, 32, 32], false), ("weight", &[64, 64, 3, 3], true)],
            &[],
            &[1, 64, 32, 32],
        );
        assert_eq!(conv.flops, 2 * 37_748_736);
        assert_eq!(
            (conv.input_bytes, conv.weight_bytes, conv.output_bytes),
            (131_072, 73_728, 131_072)
        );
        let depthwise = one(
            Op::CONV,
            &[("input", &[1, 64, 32, 32], false), ("weight", &[64, 1, 3, 3], true)],
            &[],
            &[1, 64, 32, 32],
        );
        assert_eq!(depthwise.flops, 2 * 589_824);
        let linear = one(
            Op::LINEAR,
            &[("input", &[1, 128, 256], false), ("weight", &[512, 256], true)],
            &[],
            &[1, 128, 512],
        );
        assert_eq!(linear.flops, 2 * 16_777_216);
        let matmul = one(
            Op::MATMUL,
            &[("a", &[1, 256, 128], false), ("b", &[1, 256, 64], false)],
            &[("transpose_a", Attr::Bool(true))],
            &[1, 128, 64],
        );
        assert_eq!(matmul.flops, 2 * 128 * 256 * 64);
        let sdpa = one(
            Op::SDPA,
            &[
                ("query", &[1, 8, 128, 64], false),
                ("key", &[1, 8, 96, 64], false),
                ("value", &[1, 8, 96, 32], false),
            ],
            &[],
            &[1, 8, 128, 32],
        );
        assert_eq!(sdpa.flops, 2 * 8 * 128 * 96 * (64 + 32));
    }

    #[test]
    fn of_a_gathered_table_only_the_rows_read_count() {
        let gather = one(
            Op::EMBEDDING,
            &[("weight", &[30_000, 256], true), ("indices", &[1, 64], false)],
            &[],
            &[1, 64, 256],
        );
        assert_eq!((gather.flops, gather.other), (0, 0));
        assert_eq!(gather.weight_bytes, 64 * 256 * 2);
    }

    #[test]
    fn arithmetic_counts_its_elements_and_movement_none() {
        let add = one(Op::ADD, &[("a", &[1, 8, 4], false), ("b", &[8, 1], true)], &[], &[1, 8, 4]);
        assert_eq!((add.flops, add.other), (0, 32));
        let transpose = one(Op::TRANSPOSE, &[("input", &[4, 8], false)], &[], &[8, 4]);
        assert_eq!((transpose.flops, transpose.other, transpose.bytes()), (0, 0, 128));
    }
}
