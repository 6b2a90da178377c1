//! How long Core ML's planner believes an op takes on the Neural Engine and on the CPU: what decides
//! between them, not what it really takes.
//!
//! The planner's own trees are not public; this is a small model fitted to the estimates that a study
//! of an M4 read out of it (P-02, P-06). Rates by kind of work; an op without a model of its own is a
//! matter of bytes. Known limit: the planner's estimates of `linear` jump with the shape by two orders
//! of magnitude (107 to 10,581 GFLOP/s); four of them are known, and the rates here pass through
//! those.

use crate::facts::cost::{self, Cost};
use crate::graph::{Function, NodeId, Op, Program};

/// Estimates of one op in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) engine: f64,
    pub(super) cpu: f64,
}

/// Operations or bytes per millisecond: `giga(1.0)` is 10⁹ a second.
const fn giga(rate: f64) -> f64 {
    rate * 1e6
}

/// Bytes of ops without a model of their own (also the floor of contractions).
const BYTES: (f64, f64) = (giga(73.0), giga(60.84));
/// relu: the same on both.
const RELU: (f64, f64) = (giga(100.0), giga(100.0));
/// add, mul and other arithmetic on two run-time tensors.
const BINARY: (f64, f64) = (giga(53.97), giga(31.68));
/// concat and its like, by bytes.
const CONCAT: (f64, f64) = (giga(200.0), giga(23.0));
/// conv with a kernel larger than 1 over more than a point; operations.
const CONV: (f64, f64) = (giga(16_152.0), giga(754.5));
/// conv with a 1×1 kernel, or over a single point.
const CONV_POINT: (f64, f64) = (giga(7_161.0), giga(388.1));
/// conv with one input channel a group.
const CONV_DEPTHWISE: (f64, f64) = (giga(471.2), giga(27.09));
/// matmul of two run-time tensors.
const MATMUL: (f64, f64) = (giga(16_152.0), giga(754.5));
/// Bilinear resizing, by elements made.
const BILINEAR: (f64, f64) = (giga(79.31), giga(0.5247));

/// The estimates of a node.
pub(super) fn estimate(program: &Program, function: &Function, id: NodeId) -> Estimate {
    let node = function.node(id);
    let cost = cost::cost(program, function, id);
    let bytes = (cost.input_bytes.saturating_add(cost.output_bytes)) as f64;
    let by = |amount: f64, rates: (f64, f64)| Estimate {
        engine: amount / rates.0,
        cpu: amount / rates.1,
    };
    let moved = by(bytes, BYTES);
    match node.op {
        Op::CONV | Op::CONV_TRANSPOSE => {
            at_least(by(cost.flops as f64, conv_rates(program, function, id)), moved)
        }
        Op::LINEAR => linear(program, function, id, &cost),
        Op::MATMUL | Op::EINSUM | Op::ADDMM => at_least(by(cost.flops as f64, MATMUL), moved),
        Op::SDPA => Estimate {
            engine: moved.engine.max(cost.flops as f64 / MATMUL.0),
            cpu: moved.cpu.max(cost.flops as f64 / MATMUL.1),
        },
        // 477 ms for 16 steps of 64 units in the one case known: the CPU's only, and dear.
        Op::LSTM | Op::GRU | Op::RNN => by(cost.flops as f64, (giga(0.0022), giga(0.0022))),
        Op::RELU => by(bytes, RELU),
        Op::UPSAMPLE_BILINEAR | Op::RESIZE => by(cost.output_bytes as f64 / 2.0, BILINEAR),
        Op::CONCAT | Op::STACK => by(bytes, CONCAT),
        Op::ADD | Op::SUB | Op::MUL | Op::DIV | Op::MAXIMUM | Op::MINIMUM => by(bytes, BINARY),
        _ => moved,
    }
}

fn at_least(work: Estimate, moved: Estimate) -> Estimate {
    Estimate { engine: work.engine.max(moved.engine), cpu: work.cpu.max(moved.cpu) }
}

fn conv_rates(program: &Program, function: &Function, id: NodeId) -> (f64, f64) {
    let dims = |name: &str| {
        let name = program.names.find(name)?;
        let value = function.value(function.operand(id, name)?);
        program.shapes.get(value.shape).dims()
    };
    let ones = |from: Option<&[crate::graph::Dim]>| {
        from.and_then(|dims| dims.get(2..))
            .is_some_and(|dims| dims.iter().all(|dim| dim.value() == Some(1)))
    };
    let weight = dims("weight");
    if weight.and_then(|dims| dims.get(1)).and_then(|dim| dim.value()) == Some(1)
        && weight.and_then(|dims| dims.first()).and_then(|dim| dim.value()).is_some_and(|n| n > 1)
    {
        CONV_DEPTHWISE
    } else if ones(weight) || ones(dims("input")) {
        CONV_POINT
    } else {
        CONV
    }
}

/// Through the four estimates that are known: 128×256→256 and narrower is dear on both; from 512
/// outputs on the rate falls with the inputs; the tiny 16×64→64 lies by itself.
fn linear(program: &Program, function: &Function, id: NodeId, cost: &Cost) -> Estimate {
    let dim = |at: i64| {
        let name = program.names.find("weight")?;
        let value = function.value(function.operand(id, name)?);
        program.shapes.get(value.shape).dim(at)?.value()
    };
    let (outputs, inputs) = (dim(0).unwrap_or(1), dim(-1).unwrap_or(1).max(1) as f64);
    let rates = if cost.flops < 1_000_000 {
        (giga(106.9), giga(68.8))
    } else if outputs < 512 {
        (giga(580.4), giga(22.54))
    } else {
        (giga(10_581.0 * 256.0 / inputs), giga(335.5 * 256.0 / inputs))
    };
    Estimate { engine: cost.flops as f64 / rates.0, cpu: cost.flops as f64 / rates.1 }
}
