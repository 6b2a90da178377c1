//! Placement: which ops a unit can run (eligible), where the compiler would put them (predicted),
//! and how many regions that makes. Target knowledge is data in `rules/targets/`.
//!
//! Imports nothing of `rules`: the verdicts of rules with `effect: off-unit` are handed in.
//!
//! ```text
//! table + rules ──▶ eligible ──▶ colours ──▶ order ──▶ regions, cuts, interior, what-if
//! ```

mod condition;
mod confirm;
mod cuts;
mod edge;
mod eligibility;
mod estimate;
mod groups;
mod partitions;
mod runs;
mod segmenter;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod what_if;

pub use confirm::{
    Agreement, Confirmation, Difference, Question, RegionAgreement, Said, confirm, unit_of,
};
pub use eligibility::{Reason, ReasonId, RuleVerdict, Verdict};

use crate::facts::{cost, is_constant};
use crate::graph::{Function, FunctionId, NodeId, NodeKind, Program, ValueId};
use crate::target::{Runtime, Target, Unit};
use edge::Edges;
use partitions::Partitions;
use runs::{Colour, NO_RUN};
use segmenter::Path;

/// Milliseconds a region boundary cost in a measured case, with where that was: shown beside
/// counts, never added up to a promise.
pub const BOUNDARY_COST: &str =
    "0.72 ms a boundary measured on an M4, 1.1 ms median gap on an iPhone 17 Pro (P-13)";

/// What a placement is asked with.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Unit, runtime, chip, OS.
    pub target: Target,
    /// The `off-unit` verdicts of the rules that need no placement, for the function asked about.
    pub rules: &'a [RuleVerdict],
    /// A number that is equal for nodes of one source line; `None` uses the innermost recorded frame.
    pub line_of: Option<&'a dyn Fn(NodeId) -> u64>,
}

/// Where one node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePlacement {
    /// Eligible or not, and why.
    pub verdict: Verdict,
    /// Where the compiler would put it: on the unit or not; `None` if unknown or no work.
    pub predicted: Option<bool>,
    /// Both sides cost the same by the estimates: the prediction may as well be the other.
    pub tie: bool,
    /// The region it falls into, an index of [`Placement::regions`].
    pub region: Option<u32>,
    /// On-unit work lies before it on some path.
    pub on_before: bool,
    /// On-unit work lies after it on some path.
    pub on_after: bool,
    /// A cast or index preparation right at an input, or a cast right at an output: takes the colour
    /// of its neighbour and never cuts.
    pub at_edge: bool,
}

impl NodePlacement {
    /// An op that the unit cannot run, between ops that it runs.
    pub fn is_interior(&self) -> bool {
        self.verdict.eligible == Some(false) && !self.at_edge && self.on_before && self.on_after
    }

    /// An op that the unit cannot run, with nothing on-unit before it or nothing after it.
    pub fn is_boundary(&self) -> bool {
        self.verdict.eligible == Some(false) && !self.is_interior()
    }
}

/// A maximal stretch of work on the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Ops in it that count as work.
    pub ops: u32,
    /// Of these, ops of which nobody knows whether the unit runs them.
    pub unknown: u32,
    /// Its first op in program order.
    pub first: NodeId,
    /// Its last op in program order.
    pub last: NodeId,
    /// Operations of its ops (a multiply and an add count as two); static sizes only.
    pub flops: u64,
    /// Bytes that its ops read and write, weights included; static sizes only.
    pub bytes: u64,
    /// A size is known at run time only: there may be more operations and bytes.
    pub partial: bool,
}

impl Region {
    fn starting_at(node: NodeId) -> Region {
        Region { ops: 0, unknown: 0, first: node, last: node, flops: 0, bytes: 0, partial: false }
    }
}

/// What lies between one region and the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The region before it; the next one follows.
    pub after_region: u32,
    /// The off-unit ops between, in program order.
    pub nodes: Vec<NodeId>,
    /// Their groups, the one with most ops here first.
    pub groups: Vec<u32>,
    /// The values that leave the unit for these ops, and those that come back.
    pub crossing: Vec<ValueId>,
    /// Their size; `None` if one has a size that only run time knows.
    pub crossing_bytes: Option<u64>,
}

/// Off-unit ops that one fix would free: one reason at one source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Why they are off the unit.
    pub reason: ReasonId,
    /// What to mend: the node that the rule reports at, or the first of the ops.
    pub place: NodeId,
    /// The ops, in program order.
    pub nodes: Vec<NodeId>,
    /// How many of them lie between on-unit ops.
    pub interior: u32,
    /// How many regions there would be fewer without the group.
    pub regions_added: u32,
}

/// One step of the ranking: with this group gone too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhatIf {
    /// Index of [`Placement::groups`].
    pub group: u32,
    /// Regions before this step.
    pub regions_before: u32,
    /// Regions after it.
    pub regions_after: u32,
    /// Ops that it brings back to the unit.
    pub ops_freed: u32,
}

/// The placement of one function.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The function.
    pub function: FunctionId,
    /// What it was asked for.
    pub target: Target,
    /// By node id.
    pub nodes: Vec<NodePlacement>,
    /// What the verdicts point at.
    pub reasons: Vec<Reason>,
    /// On-unit stretches, in the order that keeps switches fewest.
    pub regions: Vec<Region>,
    /// On-unit stretches when ops are taken in program order.
    pub regions_program_order: u32,
    /// What lies between the regions.
    pub cuts: Vec<Cut>,
    /// All off-unit ops, grouped.
    pub groups: Vec<Group>,
    /// Which groups to fix first.
    pub what_if: Vec<WhatIf>,
    /// Groups that the ranking had no time for (see the budget there); usually 0.
    pub what_if_skipped: u32,
    /// Ops that count as work.
    pub ops: u32,
    /// Of these, eligible.
    pub eligible: u32,
    /// Of these, not eligible.
    pub off_unit: u32,
    /// Of these, unknown.
    pub unknown: u32,
    colours: Vec<Colour>,
    path: Option<Path>,
    partitions: Option<Partitions>,
}

impl Placement {
    /// Where a node stands.
    pub fn node(&self, id: NodeId) -> &NodePlacement {
        &self.nodes[id.0 as usize]
    }

    /// A reason by id.
    pub fn reason(&self, id: ReasonId) -> &Reason {
        &self.reasons[id.0 as usize]
    }

    /// Why a node is what it is, if anything is known.
    pub fn why(&self, id: NodeId) -> Option<&Reason> {
        self.node(id).verdict.reason.map(|reason| self.reason(reason))
    }

    /// How many regions there would be fewer if these nodes were gone. One walk over the function.
    pub fn regions_added(&self, function: &Function, nodes: &[NodeId]) -> u32 {
        let now = self.regions.len() as u32;
        if let Some(path) = &self.path {
            return now.saturating_sub(path.without(nodes).count(&|_| false));
        }
        if let Some(partitions) = &self.partitions {
            return now.saturating_sub(partitions.without(nodes));
        }
        let mut colours = self.colours.clone();
        for node in nodes {
            if let Some(colour @ Colour::Off(_)) = colours.get_mut(node.0 as usize) {
                *colour = Colour::Neutral;
            }
        }
        let (_, without) = runs::assign(function, &colours);
        now.saturating_sub(without.regions)
    }
}

/// Places a function on a target.
pub fn place(program: &Program, id: FunctionId, request: &Request<'_>) -> Placement {
    let function = program.function(id);
    let edges = Edges::of(program, function);
    let judged = eligibility::judge(program, function, &request.target, &edges, request.rules);
    let (mut groups, group_of) = groups::group(program, function, &judged, request.line_of);
    let eligibility::Judged { verdicts, reasons, .. } = judged;
    let by_provider = is_by_provider(&request.target);
    let works = |id: NodeId| {
        if by_provider { partitions::is_node(function.node(id)) } else { function.is_work(id) }
    };
    let colours: Vec<Colour> = function
        .nodes()
        .map(|(id, node)| {
            let at = id.0 as usize;
            match verdicts[at].eligible {
                _ if is_constant(node) || node.kind == NodeKind::Output => Colour::Absent,
                _ if (edges.at_edge(id) && !by_provider) || !works(id) => Colour::Neutral,
                Some(true) => Colour::On,
                Some(false) => Colour::Off(group_of[at]),
                None => Colour::Neutral,
            }
        })
        .collect();
    let (before, after) = runs::on_before_and_after(function, &colours);
    let layout =
        if request.target.unit == Unit::NeuralEngine && request.target.runtime == Runtime::CoreMl {
            Layout::by_path(program, function, &verdicts, &group_of)
        } else if by_provider {
            Layout::by_partition(function, &verdicts, &colours)
        } else {
            Layout::by_order(function, &verdicts, &colours)
        };
    let mut placement = Placement {
        function: id,
        target: request.target,
        nodes: Vec::with_capacity(function.len()),
        reasons,
        regions: Vec::new(),
        regions_program_order: runs::program_order(function, &colours),
        cuts: Vec::new(),
        groups: Vec::new(),
        what_if: Vec::new(),
        what_if_skipped: 0,
        ops: 0,
        eligible: 0,
        off_unit: 0,
        unknown: 0,
        colours,
        path: None,
        partitions: None,
    };
    for node in function.node_ids() {
        let at = node.0 as usize;
        let verdict = verdicts[at];
        let work = works(node);
        let region = layout.region[at];
        placement.nodes.push(NodePlacement {
            verdict,
            predicted: layout.predicted[at],
            tie: layout.tie[at],
            region,
            on_before: before[at],
            on_after: after[at],
            at_edge: edges.at_edge(node) && !by_provider,
        });
        if work {
            placement.ops += 1;
            match verdict.eligible {
                Some(true) => placement.eligible += 1,
                Some(false) => placement.off_unit += 1,
                None => placement.unknown += 1,
            }
        }
        if let Some(region) = region {
            // Regions come up in any order when the order is not the program's.
            while placement.regions.len() <= region as usize {
                placement.regions.push(Region::starting_at(node));
            }
            let cost = cost::cost(program, function, node);
            let region = &mut placement.regions[region as usize];
            if region.ops == 0 {
                region.first = node;
            }
            if work {
                region.ops += 1;
                region.unknown += u32::from(verdict.eligible.is_none());
            }
            region.flops = region.flops.saturating_add(cost.flops).saturating_add(cost.other);
            region.bytes = region.bytes.saturating_add(cost.bytes());
            region.partial |= cost.partial;
            region.last = node;
        }
    }
    for group in &mut groups {
        group.interior =
            group.nodes.iter().filter(|node| placement.node(**node).is_interior()).count() as u32;
    }
    cuts::fill(program, function, &layout.gap, &group_of, &mut placement);
    let regions = placement.regions.len() as u32;
    let ranking = match (&layout.path, &layout.partitions) {
        (None, Some(partitions)) => {
            let mut count = |gone: &dyn Fn(u32) -> bool| partitions.count(gone);
            what_if::added(&mut count, partitions.size(), &mut groups, regions);
            what_if::rank(&mut count, partitions.size(), &groups, regions)
        }
        (Some(path), _) => {
            let mut count = |gone: &dyn Fn(u32) -> bool| path.count(gone);
            what_if::added(&mut count, path.len(), &mut groups, regions);
            what_if::rank(&mut count, path.len(), &groups, regions)
        }
        (None, None) => {
            let contracted = runs::Contracted::of(function, &placement.colours);
            let mut scratch = Vec::new();
            let mut count =
                |gone: &dyn Fn(u32) -> bool| contracted.count(gone, &mut scratch).regions;
            what_if::added(&mut count, contracted.size(), &mut groups, regions);
            what_if::rank(&mut count, contracted.size(), &groups, regions)
        }
    };
    placement.what_if = ranking.steps;
    placement.what_if_skipped = ranking.skipped;
    placement.groups = groups;
    placement.path = layout.path;
    placement.partitions = layout.partitions;
    placement
}

/// Whether an execution provider of ONNX Runtime decides what runs where.
fn is_by_provider(target: &Target) -> bool {
    target.unit == Unit::NeuralEngine && target.runtime == Runtime::OnnxRuntime
}

/// Where a way of choosing put the nodes, by node id.
struct Layout {
    predicted: Vec<Option<bool>>,
    tie: Vec<bool>,
    region: Vec<Option<u32>>,
    /// The region that the gap an op lies in follows.
    gap: Vec<Option<u32>>,
    path: Option<Path>,
    partitions: Option<Partitions>,
}

impl Layout {
    fn empty(len: usize) -> Layout {
        Layout {
            predicted: vec![None; len],
            tie: vec![false; len],
            region: vec![None; len],
            gap: vec![None; len],
            path: None,
            partitions: None,
        }
    }

    /// By the order that keeps switches fewest.
    fn by_order(function: &Function, verdicts: &[Verdict], colours: &[Colour]) -> Layout {
        let (mut run, runs) = runs::assign(function, colours);
        lead_in(function, colours, &mut run);
        let first_on = u32::from(!runs.starts_on);
        let lowest = colours
            .iter()
            .zip(&run)
            .filter(|(colour, _)| **colour == Colour::On)
            .map(|(_, run)| *run)
            .min();
        let mut layout = Layout::empty(function.len());
        for id in function.node_ids().filter(|&id| function.is_work(id)) {
            let at = id.0 as usize;
            let eligible = verdicts[at].eligible;
            layout.predicted[at] = eligible;
            let Some(lowest) = lowest.filter(|&low| run[at] != NO_RUN && run[at] >= low) else {
                continue;
            };
            let nearest = (run[at] - lowest) / 2;
            if eligible != Some(false) && run[at] % 2 == first_on {
                layout.region[at] = Some(nearest);
            } else if run[at] % 2 != first_on {
                layout.gap[at] = Some(nearest);
            }
        }
        layout
    }

    /// As ONNX Runtime partitions for a provider.
    fn by_partition(function: &Function, verdicts: &[Verdict], colours: &[Colour]) -> Layout {
        let partitions = Partitions::of(function, colours);
        let mut layout = Layout::empty(function.len());
        for put in partitions.assign() {
            let at = put.node.0 as usize;
            layout.predicted[at] = verdicts[at].eligible;
            layout.region[at] = put.partition;
            layout.gap[at] = put.after;
        }
        layout.partitions = Some(partitions);
        layout
    }

    /// By the cheapest path in program order.
    fn by_path(
        program: &Program,
        function: &Function,
        verdicts: &[Verdict],
        group_of: &[u32],
    ) -> Layout {
        // Here every op counts, at the edge or transparent: each is an op to the planner.
        let colours: Vec<Colour> = function
            .nodes()
            .map(|(id, node)| match verdicts[id.0 as usize].eligible {
                _ if is_constant(node) || node.kind != NodeKind::Op => Colour::Absent,
                Some(false) => Colour::Off(group_of[id.0 as usize]),
                _ => Colour::On,
            })
            .collect();
        let path = Path::of(program, function, &colours);
        let mut layout = Layout::empty(function.len());
        let mut regions = 0u32;
        let mut before = false;
        for put in path.choose() {
            let at = put.node.0 as usize;
            if put.on_engine {
                regions += u32::from(!before);
                layout.region[at] = Some(regions - 1);
            } else {
                layout.gap[at] = regions.checked_sub(1);
            }
            before = put.on_engine;
            layout.tie[at] = put.tie;
            layout.predicted[at] = verdicts[at].eligible.map(|_| put.on_engine);
        }
        layout.path = Some(path);
        layout
    }
}

/// Gives the neutral ops before all colour the run of the first op that uses them.
fn lead_in(function: &Function, colours: &[Colour], run: &mut [u32]) {
    for id in function.node_ids().rev() {
        let own = run[id.0 as usize];
        if own == NO_RUN {
            continue;
        }
        for operand in function.operands(id) {
            let from = function.producer(operand.value).0 as usize;
            if colours[from] == Colour::Neutral
                && function.node(NodeId(from as u32)).kind == NodeKind::Op
                && run[from] == NO_RUN
            {
                run[from] = own;
            }
        }
    }
}
