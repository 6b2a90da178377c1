//! The choice between Neural Engine and CPU that Core ML makes: the cheapest path over the ops in
//! program order (P-02, P-03). Opening a Neural Engine stretch costs 0.125 ms, a change of backend
//! 0.125 ms, an output of the function that lies on the Neural Engine 0.125 ms; inputs are free.
//!
//! Equal costs are frequent (a last op moved to the CPU saves the output's price and pays the
//! change's): an op that may lie on either side is told apart as a tie.

use super::estimate::{Estimate, estimate};
use super::runs::Colour;
use crate::graph::{Function, NodeId, NodeKind, Program};

const OPEN_MS: f64 = 0.125;
const SWITCH_MS: f64 = 0.125;
const OUTPUT_MS: f64 = 0.125;
/// Costs nearer than this are equal (in ms).
const TIE_MS: f64 = 1e-6;

/// One op on the path.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: NodeId,
    colour: Colour,
    estimate: Estimate,
    outputs: u32,
}

/// The ops of a function with their estimates.
#[derive(Debug, Clone)]
pub(super) struct Path {
    steps: Vec<Step>,
}

/// Where an op was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) node: NodeId,
    pub(super) on_engine: bool,
    pub(super) tie: bool,
}

impl Path {
    /// All ops of the function in program order, transparent ones too: each is an op to Core ML.
    pub(super) fn of(program: &Program, function: &Function, colours: &[Colour]) -> Path {
        let mut outputs = vec![0u32; function.len()];
        for (id, node) in function.nodes() {
            if node.kind == NodeKind::Output {
                for operand in function.operands(id) {
                    outputs[function.producer(operand.value).0 as usize] += 1;
                }
            }
        }
        let steps = function
            .nodes()
            .filter(|(id, node)| {
                node.kind == NodeKind::Op && colours[id.0 as usize] != Colour::Absent
            })
            .map(|(id, _)| Step {
                node: id,
                colour: colours[id.0 as usize],
                estimate: estimate(program, function, id),
                outputs: outputs[id.0 as usize],
            })
            .collect();
        Path { steps }
    }

    /// Ops on the path: what one walk costs.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The same path with some off-unit ops become eligible.
    pub(super) fn without(&self, nodes: &[NodeId]) -> Path {
        let mut steps = self.steps.clone();
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        for step in &mut steps {
            if nodes.binary_search(&step.node).is_ok() {
                step.colour = Colour::On;
            }
        }
        Path { steps }
    }

    /// Where each op goes, in program order.
    pub(super) fn choose(&self) -> Vec<Put> {
        let ahead = self.ahead(&|_| false);
        // The cheapest way to have placed everything before, ending on either side.
        let mut behind: Option<[f64; 2]> = None;
        let mut puts = Vec::with_capacity(self.steps.len());
        self.walk(&|_| false, &mut |at, step, on_engine| {
            let own = own_cost(step, &|_| false);
            let reach = match behind {
                None => [OPEN_MS, 0.0],
                Some([engine, cpu]) => {
                    [engine.min(cpu + SWITCH_MS + OPEN_MS), cpu.min(engine + SWITCH_MS)]
                }
            };
            let [engine, cpu] = [reach[0] + own[0], reach[1] + own[1]];
            let tie = ((engine + ahead[at][0]) - (cpu + ahead[at][1])).abs() <= TIE_MS;
            puts.push(Put { node: step.node, on_engine, tie });
            behind = Some([engine, cpu]);
        });
        puts
    }

    /// Neural Engine stretches with some groups of off-unit ops become eligible.
    pub(super) fn count(&self, gone: &dyn Fn(u32) -> bool) -> u32 {
        let mut regions = 0;
        let mut before = false;
        self.walk(gone, &mut |_, _, on_engine| {
            regions += u32::from(on_engine && !before);
            before = on_engine;
        });
        regions
    }

    /// Follows one cheapest path; between equals it stays where it is.
    fn walk(&self, gone: &dyn Fn(u32) -> bool, visit: &mut dyn FnMut(usize, &Step, bool)) {
        let ahead = self.ahead(gone);
        let mut on: Option<bool> = None;
        for (at, step) in self.steps.iter().enumerate() {
            let own = own_cost(step, gone);
            let [engine, cpu] = match on {
                None => [OPEN_MS, 0.0],
                Some(true) => [0.0, SWITCH_MS],
                Some(false) => [SWITCH_MS + OPEN_MS, 0.0],
            };
            let through = [engine + own[0] + ahead[at][0], cpu + own[1] + ahead[at][1]];
            let tie = (through[0] - through[1]).abs() <= TIE_MS;
            let now = if tie { on.unwrap_or(true) } else { through[0] < through[1] };
            visit(at, step, now);
            on = Some(now);
        }
    }

    /// For each op the cheapest cost of all that comes after it, if it lies on the Neural Engine or
    /// on the CPU.
    fn ahead(&self, gone: &dyn Fn(u32) -> bool) -> Vec<[f64; 2]> {
        let mut ahead = vec![[0.0; 2]; self.steps.len()];
        let mut next: Option<[f64; 2]> = None;
        for (at, step) in self.steps.iter().enumerate().rev() {
            if let Some([engine, cpu]) = next {
                ahead[at] = [engine.min(cpu + SWITCH_MS), cpu.min(engine + SWITCH_MS + OPEN_MS)];
            }
            let own = own_cost(step, gone);
            next = Some([ahead[at][0] + own[0], ahead[at][1] + own[1]]);
        }
        ahead
    }
}

/// The cost of the op itself on each side.
fn own_cost(step: &Step, gone: &dyn Fn(u32) -> bool) -> [f64; 2] {
    let closed = match step.colour {
        Colour::Off(group) => !gone(group),
        _ => false,
    };
    let engine = if closed {
        f64::INFINITY
    } else {
        step.estimate.engine + f64::from(step.outputs) * OUTPUT_MS
    };
    [engine, step.estimate.cpu]
}
