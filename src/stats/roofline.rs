//! Lower bounds of time from a stated compute rate and bandwidth, and what a region can save at most.

use super::FunctionStats;
use crate::facts::cost;
use crate::graph::{Function, Program};
use crate::placement::Placement;

/// What a machine is said to do; nothing is assumed where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Machine {
    /// Bytes a second, in units of 10⁹.
    pub gigabytes: Option<f64>,
    /// Operations a second, in units of 10⁹; a multiply and an add are two.
    pub gigaflops: Option<f64>,
}

/// The shortest time that a function can take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Milliseconds of computing, where a rate was said.
    pub compute_ms: Option<f64>,
    /// Milliseconds of moving bytes that cannot be avoided, where a bandwidth was said.
    pub memory_ms: Option<f64>,
    /// The larger.
    pub ms: f64,
}

impl Machine {
    fn compute_ms(&self, flops: u64) -> Option<f64> {
        self.gigaflops.map(|rate| flops as f64 / rate / 1e6)
    }

    fn memory_ms(&self, bytes: u64) -> Option<f64> {
        self.gigabytes.map(|rate| bytes as f64 / rate / 1e6)
    }

    fn bound_of(&self, flops: u64, bytes: u64) -> Option<Bound> {
        let (compute_ms, memory_ms) = (self.compute_ms(flops), self.memory_ms(bytes));
        let ms = match (compute_ms, memory_ms) {
            (None, None) => return None,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(a), Some(b)) => a.max(b),
        };
        Some(Bound { compute_ms, memory_ms, ms })
    }

    /// max(FLOPs ÷ rate, bytes ÷ bandwidth) of a function; `None` if neither was said.
    pub fn bound(&self, stats: &FunctionStats) -> Option<Bound> {
        self.bound_of(stats.cost.flops, stats.unavoidable_bytes())
    }
}

/// How much of a function one region is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionShare {
    /// The region, an index of [`Placement::regions`]; `None` for all work outside of regions.
    pub region: Option<u32>,
    /// Ops in it.
    pub ops: u32,
    /// Its share of the work, 0 to 1.
    pub share: f64,
}

/// The share of each region, and of what is outside: op by op the larger of its compute and memory
/// time where the machine is known, else by operations. If a region took no time at all, at most its
/// share would be saved (Amdahl).
pub fn shares(
    program: &Program,
    function: &Function,
    placement: &Placement,
    machine: Machine,
) -> Vec<RegionShare> {
    let mut weight = vec![0.0f64; placement.regions.len() + 1];
    let mut ops = vec![0u32; placement.regions.len() + 1];
    for id in function.node_ids().filter(|&id| function.is_work(id)) {
        let own = cost::cost(program, function, id);
        let flops = own.flops.saturating_add(own.other);
        let of_op = machine.bound_of(flops, own.bytes()).map_or(flops as f64, |bound| bound.ms);
        let at = placement.node(id).region.map_or(placement.regions.len(), |r| r as usize);
        if let (Some(sum), Some(count)) = (weight.get_mut(at), ops.get_mut(at)) {
            *sum += of_op;
            *count += 1;
        }
    }
    let total: f64 = weight.iter().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    weight
        .iter()
        .zip(&ops)
        .enumerate()
        .filter(|(_, (_, count))| **count > 0)
        .map(|(at, (sum, count))| RegionShare {
            region: (at < placement.regions.len()).then_some(at as u32),
            ops: *count,
            share: sum / total,
        })
        .collect()
}
