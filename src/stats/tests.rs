//! Statistics of graphs whose numbers are known from elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::graph::{
    Constant, ConstantOrigin, DType, Draft, DraftNode, DraftOperand, Format, FunctionRole,
    ModulePath, Name, Payload, Provenance, ProvenanceId, StackId,
};
use crate::placement::{self, Request};
use crate::target::{Runtime, Target};

/// A function while it is written down.
struct Writer {
    program: Program,
    draft: Draft,
    module: ProvenanceId,
}

impl Writer {
    fn new() -> Writer {
        Writer {
            program: Program::new("story".into(), Format::Pt2),
            draft: Draft::default(),
            module: ProvenanceId::NONE,
        }
    }

    fn inside(&mut self, path: &str) {
        let path = self.program.names.intern(path);
        let module =
            self.program.sources.module(ModulePath { path, class: Name::EMPTY, stack: Vec::new() });
        self.module = self.program.sources.provenance(Provenance {
            stack: StackId::EMPTY,
            module,
            torch_op: Name::EMPTY,
        });
    }

    fn push(&mut self, mut node: DraftNode, dtype: DType, dims: &[u64]) -> DraftOperand {
        let shape = self.program.shapes.intern_static(dims);
        node.provenance = self.module;
        node.results.push((node.name, dtype, shape, None));
        (self.draft.push(node), 0)
    }

    fn input(&mut self, dims: &[u64]) -> DraftOperand {
        self.push(DraftNode::new(NodeKind::Input, Name::EMPTY), DType::F16, dims)
    }

    fn weight(&mut self, dtype: DType, dims: &[u64]) -> DraftOperand {
        let shape = self.program.shapes.intern_static(dims);
        let constant = self.program.add_constant(Constant {
            dtype,
            shape,
            origin: ConstantOrigin::Parameter,
            fqn: Name::EMPTY,
            payload: Payload::Unknown,
        });
        self.push(DraftNode::new(NodeKind::Constant(constant), Name::EMPTY), dtype, dims)
    }

    fn op(&mut self, op: Op, operands: &[DraftOperand], dims: &[u64]) -> DraftOperand {
        let mut node = DraftNode::new(NodeKind::Op, self.program.names.intern(op.name()));
        node.op = op;
        for (slot, &operand) in operands.iter().enumerate() {
            let names = op.operands();
            let name = names.get(slot).or(names.last()).copied().unwrap_or("input");
            node.operands.push((self.program.names.intern(name), operand));
        }
        self.push(node, DType::F16, dims)
    }

    fn linear(&mut self, x: DraftOperand, tokens: u64, from: u64, to: u64) -> DraftOperand {
        let weight = self.weight(DType::F16, &[to, from]);
        self.op(Op::LINEAR, &[x, weight], &[1, tokens, to])
    }

    fn output(&mut self, value: DraftOperand) {
        let mut node = DraftNode::new(NodeKind::Output, Name::EMPTY);
        node.operands.push((self.program.names.intern("input"), value));
        self.draft.push(node);
    }

    fn finish(mut self) -> Program {
        let name = self.program.names.intern("main");
        let function = self.draft.freeze(name, Name::EMPTY, FunctionRole::Entry);
        self.program.functions.push(function);
        self.program
    }
}

/// An encoder: `gated` layers whose inner part has a gate and width `inner`, then two plain layers with
/// an inner width of four times the width. One row of 96 tokens.
fn encoder(width: u64, heads: u64, inner: u64, gated: usize) -> FunctionStats {
    const TOKENS: u64 = 96;
    let mut w = Writer::new();
    let mut x = w.input(&[1, TOKENS, width]);
    for layer in 0..gated + 2 {
        w.inside(&format!("layers.{layer}"));
        let per_head = [1, heads, TOKENS, width / heads];
        let norm = w.op(Op::LAYER_NORM, &[x], &[1, TOKENS, width]);
        let qkv = w.linear(norm, TOKENS, width, 3 * width);
        let mut heads_of = || w.op(Op::SLICE, &[qkv], &per_head);
        let (q, k, v) = (heads_of(), heads_of(), heads_of());
        let keys = w.op(Op::TRANSPOSE, &[k], &[1, heads, width / heads, TOKENS]);
        let scores = w.op(Op::MATMUL, &[q, keys], &[1, heads, TOKENS, TOKENS]);
        let probabilities = w.op(Op::SOFTMAX, &[scores], &[1, heads, TOKENS, TOKENS]);
        let mixed = w.op(Op::MATMUL, &[probabilities, v], &per_head);
        let joined = w.op(Op::RESHAPE, &[mixed], &[1, TOKENS, width]);
        let out = w.linear(joined, TOKENS, width, width);
        x = w.op(Op::ADD, &[x, out], &[1, TOKENS, width]);
        let inner_width = if layer < gated { inner } else { 4 * width };
        let hidden = if layer < gated {
            let both = w.linear(x, TOKENS, width, 2 * inner);
            let value = w.op(Op::SLICE, &[both], &[1, TOKENS, inner]);
            let gate = w.op(Op::SLICE, &[both], &[1, TOKENS, inner]);
            let gate = w.op(Op::GELU, &[gate], &[1, TOKENS, inner]);
            w.op(Op::MUL, &[value, gate], &[1, TOKENS, inner])
        } else {
            let hidden = w.linear(x, TOKENS, width, inner_width);
            w.op(Op::GELU, &[hidden], &[1, TOKENS, inner_width])
        };
        let out = w.linear(hidden, TOKENS, inner_width, width);
        x = w.op(Op::ADD, &[x, out], &[1, TOKENS, width]);
    }
    w.output(x);
    count(&w.finish(), FunctionId(0), 1)
}

#[test]
fn the_smaller_worked_encoder() {
    let stats = encoder(768, 12, 1152, 22);
    assert_eq!(stats.weights.parameters, 124_452_864);
    assert_eq!(format!("{:.3}", stats.cost.flops as f64 / 1e9), "24.574");
    assert_eq!(stats.weights.bytes, 2 * 124_452_864);
    assert_eq!(stats.modules.len(), 24, "the input belongs to no op, and each layer to its module");
    assert_eq!(stats.modules[0].parameters, 5_013_504);
    assert_eq!(stats.modules[23].parameters, 12 * 768 * 768);
}

#[test]
fn the_larger_worked_encoder() {
    let stats = encoder(1024, 16, 2624, 28);
    assert_eq!(stats.weights.parameters, 368_312_320);
    assert_eq!(format!("{:.3}", stats.cost.flops as f64 / 1e9), "71.848");
}

#[test]
fn of_a_gathered_table_the_rows_are_read_and_all_is_stored() {
    let mut w = Writer::new();
    let tokens = w.input(&[1, 64]);
    let table = w.weight(DType::F16, &[30_000, 256]);
    let x = w.op(Op::EMBEDDING, &[table, tokens], &[1, 64, 256]);
    w.output(x);
    let stats = count(&w.finish(), FunctionId(0), 1);
    assert_eq!(stats.weights.parameters, 30_000 * 256);
    assert_eq!(stats.weights.bytes, 30_000 * 256 * 2);
    assert_eq!(stats.weights.bytes_read, 64 * 256 * 2);
    assert_eq!(stats.unavoidable_bytes(), 64 * 256 * 2 + 64 * 2 + 64 * 256 * 2);
    assert_eq!(stats.intensity(), Some(0.0));
}

#[test]
fn a_table_that_also_projects_is_read_whole_and_stored_once() {
    let mut w = Writer::new();
    let tokens = w.input(&[1, 64]);
    let table = w.weight(DType::F16, &[1_000, 256]);
    let x = w.op(Op::EMBEDDING, &[table, tokens], &[1, 64, 256]);
    let x = w.op(Op::LINEAR, &[x, table], &[1, 64, 1_000]);
    w.output(x);
    let stats = count(&w.finish(), FunctionId(0), 1);
    assert_eq!(stats.weights.parameters, 256_000);
    assert_eq!((stats.weights.bytes, stats.weights.bytes_read), (512_000, 512_000));
}

#[test]
fn palettised_weights_count_their_dense_elements_and_their_stored_bytes() {
    let mut w = Writer::new();
    let x = w.input(&[1, 8, 64]);
    let indices = w.weight(DType::U4, &[128, 64]);
    let table = w.weight(DType::F16, &[1, 1, 16]);
    let dense = w.op(Op::LUT_TO_DENSE, &[indices, table], &[128, 64]);
    let y = w.op(Op::LINEAR, &[x, dense], &[1, 8, 128]);
    w.output(y);
    let stats = count(&w.finish(), FunctionId(0), 1);
    assert_eq!(stats.ops, 1, "decompression is constant work");
    assert_eq!(stats.weights.parameters, 128 * 64);
    assert_eq!(stats.weights.bytes, 128 * 64 / 2 + 32);
    let class = &stats.weights.classes[0];
    assert_eq!((class.dtype, class.compression.name()), (DType::U4, "lut_to_dense"));
    assert_eq!((class.tensors, class.elements), (1, 128 * 64));
    assert_eq!(stats.weights.bytes_read, stats.weights.bytes, "the table is read too");
}

#[test]
fn weights_that_are_only_rounded_have_gained_nothing() {
    for (op, dtype, name, bytes) in [
        (Op::FAKE_QUANTIZE, DType::F16, "fake-quantized", 2),
        (Op::DEQUANTIZE, DType::I8, "dequantize", 1),
    ] {
        let mut w = Writer::new();
        let x = w.input(&[1, 8, 64]);
        let weight = w.weight(dtype, &[128, 64]);
        let rounded = w.op(op, &[weight], &[128, 64]);
        let y = w.op(Op::LINEAR, &[x, rounded], &[1, 8, 128]);
        w.output(y);
        let stats = count(&w.finish(), FunctionId(0), 1);
        assert_eq!(stats.weights.bytes, bytes * 128 * 64);
        assert_eq!(stats.weights.classes[0].compression.name(), name);
    }
}

#[test]
fn the_peak_is_where_most_values_live() {
    let mut w = Writer::new();
    let x = w.input(&[1, 512]); // 1 KiB
    let wide = w.op(Op::TILE, &[x], &[1, 4096]); // 8 KiB
    let other = w.op(Op::RELU, &[wide], &[1, 4096]);
    let view = w.op(Op::RESHAPE, &[other], &[4096]); // shares
    let small = w.op(Op::REDUCE_SUM, &[view], &[1]);
    let y = w.op(Op::ADD, &[x, small], &[1, 512]);
    w.output(y);
    let stats = count(&w.finish(), FunctionId(0), 1);
    assert_eq!(stats.peak.bytes, 1024 + 2 * 8192);
    assert_eq!(stats.peak.values, 3);
    assert_eq!(stats.peak.node, Some(crate::graph::NodeId(2)));
}

#[test]
fn a_last_dim_of_one_wastes_thirty_two_times_the_memory() {
    let mut w = Writer::new();
    let x = w.input(&[1, 64, 64, 1]);
    let y = w.op(Op::RELU, &[x], &[1, 64, 64, 1]);
    let z = w.op(Op::TRANSPOSE, &[y], &[1, 64, 1, 64]);
    w.output(z);
    let stats = count(&w.finish(), FunctionId(0), 1);
    assert_eq!(stats.padding.values, 2);
    assert_eq!(stats.padding.bytes, 3 * 8192);
    assert_eq!(stats.padding.padded, 2 * 32 * 8192 + 8192);
    assert_eq!(stats.padding.worst[0].padded, 32 * 8192);
}

#[test]
fn the_roofline_is_the_larger_bound_and_shares_add_up() {
    let mut w = Writer::new();
    let x = w.input(&[1, 128, 256]);
    let y = w.linear(x, 128, 256, 512);
    let y = w.op(Op::CUMSUM, &[y], &[1, 128, 512]);
    let y = w.linear(y, 128, 512, 256);
    w.output(y);
    let program = w.finish();
    let stats = count(&program, FunctionId(0), 1);
    let flops = 4 * 128 * 256 * 512;
    assert_eq!(stats.cost.flops, flops);
    let machine = Machine { gigabytes: Some(100.0), gigaflops: Some(10_000.0) };
    let bound = machine.bound(&stats).unwrap();
    assert_eq!(bound.compute_ms, Some(flops as f64 / 1e10));
    assert_eq!(bound.ms, bound.compute_ms.unwrap().max(bound.memory_ms.unwrap()));
    assert_eq!(Machine::default().bound(&stats), None);
    let target = Target::default_for(Runtime::CoreAi);
    let request = Request { target, rules: &[], line_of: None };
    let placed = placement::place(&program, FunctionId(0), &request);
    for machine in [machine, Machine::default()] {
        let shares = shares(&program, program.function(FunctionId(0)), &placed, machine);
        let sum: f64 = shares.iter().map(|share| share.share).sum();
        assert!((sum - 1.0).abs() < 1e-9);
        assert_eq!(shares.iter().map(|share| share.ops).sum::<u32>(), 3);
    }
}
