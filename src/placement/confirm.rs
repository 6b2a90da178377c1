//! Confirmation: what a compile or a compute plan said of ops, held against eligibility and prediction.
//!
//! Two questions, never mixed: *supported* (could the unit run it?) is held against eligible, and
//! *preferred* (was it put there?) against predicted. Where nothing was said or known, nothing is
//! compared.

use std::collections::HashMap;

use super::Placement;
use crate::graph::{Confirmed, Function, NodeFlags, NodeId, NodeKind, Program};
use crate::target::Unit;

/// What a file says of one op.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Said {
    /// What was chosen to run it, in the file's word.
    pub selected: Option<String>,
    /// Whether that is the unit.
    pub preferred: Option<bool>,
    /// Whether the unit could run it.
    pub supported: Option<bool>,
    /// Why it could not, or why not there.
    pub reason: Option<String>,
}

/// Agreement over the ops of which both sides say something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Ops of which both say something.
    pub compared: u32,
    /// Of these, the ones where both say the same.
    pub agree: u32,
    /// Ops whose prediction was a tie, left out.
    pub ties: u32,
}

/// Which question an op differs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Could the unit run it?
    Supported,
    /// Was it put there?
    Preferred,
}

/// An op of which the file says something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The op.
    pub node: NodeId,
    /// In what.
    pub question: Question,
    /// Our answer.
    pub ours: bool,
    /// Theirs.
    pub theirs: bool,
}

/// One predicted region, op by op.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionAgreement {
    /// Ops of it that were put on the unit.
    pub on: u32,
    /// Ops of it that were put elsewhere.
    pub off: u32,
}

/// What one file confirms of one function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Confirmation {
    /// By node id; `None` where the file says nothing.
    pub nodes: Vec<Option<Said>>,
    /// Ops of the function that the file speaks of.
    pub named: u32,
    /// Lines of the file for this function that fit no op here.
    pub unmatched: u32,
    /// Eligible against supported.
    pub supported: Agreement,
    /// Predicted against preferred.
    pub preferred: Agreement,
    /// Where they differ, in program order.
    pub differences: Vec<Difference>,
    /// Regions that the file counts, if it tells.
    pub regions: Option<u32>,
    /// Each predicted region; empty if the file says nothing of ops.
    pub by_region: Vec<RegionAgreement>,
}

/// Holds a file's words against a placement: those of ops, and the regions that it counts.
pub fn confirm(
    program: &Program,
    placement: &Placement,
    said: &[Confirmed],
    regions: Option<u32>,
) -> Confirmation {
    let function = program.function(placement.function);
    let unit = placement.target.unit;
    let own = program.text(function.name);
    let of_function: Vec<&Confirmed> =
        said.iter().filter(|said| said.function.is_empty() || said.function == own).collect();
    let mut confirmation = Confirmation {
        nodes: vec![None; function.len()],
        regions: regions.or_else(|| runs(&of_function, unit)),
        ..Confirmation::default()
    };
    let found = find(program, function, &of_function);
    for (line, node) in of_function.iter().zip(found) {
        match node {
            Some(node) => confirmation.nodes[node.0 as usize] = Some(words(line, unit)),
            None => confirmation.unmatched += 1,
        }
    }
    if !of_function.is_empty() {
        confirmation.by_region = vec![RegionAgreement::default(); placement.regions.len()];
    }
    for node in function.node_ids() {
        let Some(said) = &confirmation.nodes[node.0 as usize] else { continue };
        let placed = placement.node(node);
        confirmation.named += 1;
        if let (Some(ours), Some(theirs)) = (placed.verdict.eligible, said.supported) {
            confirmation.supported.compared += 1;
            if ours == theirs {
                confirmation.supported.agree += 1;
            } else {
                let question = Question::Supported;
                confirmation.differences.push(Difference { node, question, ours, theirs });
            }
        }
        let Some(theirs) = said.preferred else { continue };
        if let Some(region) = placed.region.and_then(|r| confirmation.by_region.get_mut(r as usize))
        {
            if theirs {
                region.on += 1;
            } else {
                region.off += 1;
            }
        }
        let Some(ours) = placed.predicted else { continue };
        if placed.tie {
            confirmation.preferred.ties += 1;
            continue;
        }
        confirmation.preferred.compared += 1;
        if ours == theirs {
            confirmation.preferred.agree += 1;
        } else {
            let question = Question::Preferred;
            confirmation.differences.push(Difference { node, question, ours, theirs });
        }
    }
    confirmation
}

/// The node that each line speaks of: by its name, that of a result, or that of a stored op that
/// normalisation absorbed; lines without names by their place among ops of their spelling.
fn find(program: &Program, function: &Function, said: &[&Confirmed]) -> Vec<Option<NodeId>> {
    let mut named: HashMap<&str, NodeId> = HashMap::new();
    let ops = || function.nodes().filter(|(_, node)| node.kind == NodeKind::Op);
    // What an op is called itself goes before what it absorbed.
    for (id, node) in ops() {
        named.entry(program.text(node.name)).or_insert(id);
    }
    for (id, _) in ops() {
        for value in function.results(id) {
            named.entry(program.text(function.value(value).name)).or_insert(id);
        }
    }
    for (id, _) in ops() {
        for (stored, _) in function.stored(id) {
            named.entry(program.text(*stored)).or_insert(id);
        }
    }
    named.remove("");
    let in_order: Vec<(NodeId, &str)> = ops()
        .filter(|(_, node)| !node.flags.contains(NodeFlags::CONSTANT_WORK))
        .map(|(id, node)| (id, program.text(node.spelling)))
        .collect();
    let mut next = 0;
    said.iter()
        .map(|line| {
            if let Some(id) = std::iter::once(&line.node)
                .chain(&line.results)
                .find_map(|name| named.get(name.as_str()))
            {
                return Some(*id);
            }
            // A place in program order stands for a name that the file does not give.
            line.node.parse::<usize>().ok()?;
            let rest = in_order.get(next..)?;
            let at = rest.iter().position(|(_, spelling)| *spelling == line.spelling)?;
            next += at + 1;
            rest.get(at).map(|(id, _)| *id)
        })
        .collect()
}

/// Runs of ops put on the unit, in the order of the file; `None` if it names no choice.
fn runs(said: &[&Confirmed], unit: Unit) -> Option<u32> {
    let mut count = 0;
    let mut on = false;
    let mut any = false;
    for line in said {
        let Some(selected) = &line.selected else { continue };
        any = true;
        let now = unit_of(selected) == Some(unit);
        count += u32::from(now && !on);
        on = now;
    }
    any.then_some(count)
}

fn words(line: &Confirmed, unit: Unit) -> Said {
    let is = |word: &String| unit_of(word) == Some(unit);
    let refused = line.reasons.iter().find(|(backend, _)| is(backend));
    let estimated = line.estimates.iter().map(|(backend, _)| backend);
    let mut known = line.supported.iter().chain(estimated).peekable();
    let supported = if refused.is_some() {
        Some(false)
    } else if known.peek().is_none() {
        None
    } else {
        Some(known.any(is))
    };
    Said {
        selected: line.selected.clone(),
        preferred: line.selected.as_ref().map(is),
        supported,
        reason: refused.map(|(_, reason)| reason.clone()),
    }
}

/// The unit that a backend or device is: `ane`, `MLNeuralEngineComputeDevice`; `mps_graph`, `GPU`;
/// `bnns`, `classic_cpu`, `CPU`.
pub fn unit_of(word: &str) -> Option<Unit> {
    let word = word.to_ascii_lowercase();
    if matches!(word.as_str(), "ane" | "ne") || word.contains("neural") {
        Some(Unit::NeuralEngine)
    } else if word.contains("gpu") || word.contains("mps") {
        Some(Unit::Gpu)
    } else if word.contains("cpu") || word.contains("bnns") {
        Some(Unit::Cpu)
    } else {
        None
    }
}
