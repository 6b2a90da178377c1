//! The ops of a function in the order in which they run, with where each runs: what the page draws.

use std::collections::HashMap;

use serde::Serialize;

use crate::facts::cost;
use crate::findings::source::{FrameKind, frame_kind};
use crate::graph::{Function, FunctionId, ModuleId, Name, NodeId, Program, StackId};
use crate::placement::Placement;

/// The map of one function.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FunctionMap {
    /// Name.
    pub name: String,
    /// Kinds of op.
    pub kinds: Vec<String>,
    /// Module paths.
    pub modules: Vec<String>,
    /// Source lines (`model.py:32`).
    pub places: Vec<String>,
    /// Why ops are off the unit.
    pub reasons: Vec<String>,
    /// Node names, in the order drawn.
    pub nodes: Vec<String>,
    /// For each node, index of its kind.
    pub kind: Vec<u32>,
    /// For each node, index of its module.
    pub module: Vec<u32>,
    /// For each node, index of its place, or −1.
    pub place: Vec<i32>,
    /// For each node, index of its reason, or −1.
    pub reason: Vec<i32>,
    /// For each node, 1 on the unit, 0 off it, 2 where nobody knows.
    pub state: Vec<u8>,
    /// For each node, its region, or −1.
    pub region: Vec<i32>,
    /// For each node, operations.
    pub flops: Vec<u64>,
    /// For each node, bytes moved.
    pub bytes: Vec<u64>,
    /// What to mend first.
    pub steps: Vec<Step>,
    /// How many regions there are.
    pub regions: usize,
}

/// One step of the ranking.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Rule, or empty.
    pub rule: String,
    /// Why the ops are off the unit.
    pub reason: String,
    /// What to do instead, or empty.
    pub instead: String,
    /// Source line, or empty.
    pub place: String,
    /// Regions before the step.
    pub before: u32,
    /// Regions after it.
    pub after: u32,
    /// Ops that come back to the unit.
    pub freed: u32,
}

/// Interned texts.
#[derive(Default)]
struct Table {
    texts: Vec<String>,
    known: HashMap<String, u32>,
}

impl Table {
    fn index(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let index = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}

/// Maps a placed function. `shown` makes a recorded path fit for people.
pub fn map(
    program: &Program,
    id: FunctionId,
    placement: &Placement,
    shown: &dyn Fn(&str) -> String,
) -> FunctionMap {
    let function = program.function(id);
    let mut made = FunctionMap {
        name: program.text(function.name).to_owned(),
        regions: placement.regions.len(),
        ..FunctionMap::default()
    };
    let (mut kinds, mut modules, mut places, mut reasons) =
        (Table::default(), Table::default(), Table::default(), Table::default());
    let mut place_of: HashMap<StackId, i32> = HashMap::new();
    let mut module_of: HashMap<ModuleId, u32> = HashMap::new();
    let mut spot = |node: NodeId, places: &mut Table| -> i32 {
        let stack = program.sources.get(function.node(node).provenance).stack;
        *place_of.entry(stack).or_insert_with(|| match place(program, stack, shown) {
            Some(text) => places.index(&text) as i32,
            None => -1,
        })
    };
    for node in order(function, placement) {
        let own = function.node(node);
        let placed = placement.node(node);
        let provenance = program.sources.get(own.provenance);
        made.nodes.push(program.text(own.name).to_owned());
        made.kind.push(kinds.index(match own.op {
            crate::graph::Op::UNKNOWN => program.text(own.spelling),
            op => op.name(),
        }));
        made.module.push(*module_of.entry(provenance.module).or_insert_with(|| {
            modules.index(program.text(program.sources.get_module(provenance.module).path))
        }));
        made.place.push(spot(node, &mut places));
        made.state.push(match placed.predicted {
            Some(true) => 1,
            Some(false) => 0,
            None => 2,
        });
        let why = placement.why(node).filter(|_| placed.predicted != Some(true));
        made.reason.push(why.map_or(-1, |reason| {
            let text = match &reason.rule {
                Some(rule) => format!("{rule}: {}", reason.text),
                None => reason.text.clone(),
            };
            reasons.index(&text) as i32
        }));
        made.region.push(placed.region.map_or(-1, |region| region as i32));
        let cost = cost::cost(program, function, node);
        made.flops.push(cost.flops.saturating_add(cost.other));
        made.bytes.push(cost.bytes());
    }
    for step in &placement.what_if {
        let Some(group) = placement.groups.get(step.group as usize) else { continue };
        let reason = placement.reason(group.reason);
        let at = group.nodes.first().map_or(-1, |node| spot(*node, &mut places));
        let at = usize::try_from(at).ok().and_then(|at| places.texts.get(at));
        made.steps.push(Step {
            rule: reason.rule.clone().unwrap_or_default(),
            reason: reason.text.clone(),
            instead: reason.alternative.clone(),
            place: at.cloned().unwrap_or_default(),
            before: step.regions_before,
            after: step.regions_after,
            freed: step.ops_freed,
        });
    }
    made.kinds = kinds.texts;
    made.modules = modules.texts;
    made.places = places.texts;
    made.reasons = reasons.texts;
    made
}

/// The work of a function in the order that keeps switches fewest: region, the ops of its cut, the next
/// region, and so on.
fn order(function: &Function, placement: &Placement) -> Vec<NodeId> {
    let mut slot: Vec<Option<u64>> = vec![None; function.len()];
    for cut in &placement.cuts {
        for node in &cut.nodes {
            if let Some(slot) = slot.get_mut(node.0 as usize) {
                *slot = Some(u64::from(cut.after_region) * 2 + 2);
            }
        }
    }
    let mut keyed: Vec<(u64, NodeId)> = Vec::new();
    for node in function.node_ids() {
        let at = node.0 as usize;
        let placed = placement.node(node);
        let earliest = function
            .operands(node)
            .iter()
            .filter_map(|operand| *slot.get(function.producer(operand.value).0 as usize)?)
            .max()
            .unwrap_or(0);
        let known = slot.get(at).copied().flatten();
        let key = match (placed.region, known) {
            (Some(region), _) => u64::from(region) * 2 + 1,
            (None, Some(cut)) => cut,
            (None, None) => earliest,
        };
        if let Some(slot) = slot.get_mut(at) {
            *slot = Some(key);
        }
        if function.is_work(node) {
            keyed.push((key, node));
        }
    }
    keyed.sort_by_key(|(key, node)| (*key, node.0));
    keyed.into_iter().map(|(_, node)| node).collect()
}

/// The innermost line of the author's, or else of a library.
fn place(program: &Program, stack: StackId, shown: &dyn Fn(&str) -> String) -> Option<String> {
    let text = |name: Name| program.text(name);
    let frames: Vec<_> = program.sources.frames(stack).collect();
    let own = frames
        .iter()
        .rfind(|frame| frame_kind(text(frame.file), &[""; 0]) == FrameKind::Author)
        .or_else(|| frames.last())?;
    Some(format!("{}:{}", shown(text(own.file)), own.line))
}
