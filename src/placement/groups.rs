//! Off-unit ops in groups that one fix would free: one cause at one source line.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::eligibility::Judged;
use super::{Group, Verdict};
use crate::graph::{Function, NodeId, Op, Program, ProvenanceId};

/// Groups the off-unit ops by rule or table row and source line, in program order of their first op;
/// and each node's group, `u32::MAX` where it has none. A cast that the table rejects joins the other
/// off-unit ops of its line: it is there because of them. The line that counts is that of the place to
/// mend: one upcast may take ops on many lines off the unit.
pub(super) fn group(
    program: &Program,
    function: &Function,
    judged: &Judged,
    line_of: Option<&dyn Fn(NodeId) -> u64>,
) -> (Vec<Group>, Vec<u32>) {
    let Judged { verdicts, places, reasons } = judged;
    let mut lines: HashMap<ProvenanceId, Option<u64>, FxBuildHasher> = HashMap::default();
    let mut line = |node: NodeId| {
        let line = match line_of {
            Some(line_of) => Some(line_of(node)),
            None => {
                let provenance = function.node(node).provenance;
                *lines.entry(provenance).or_insert_with(|| recorded_line(program, provenance))
            }
        };
        // A node without a line stands for itself.
        line.unwrap_or(u64::MAX - u64::from(node.0))
    };
    let off: Vec<Off> = function
        .node_ids()
        .filter(|&node| function.is_work(node))
        .filter_map(|node| {
            let Verdict { eligible: Some(false), reason: Some(reason) } = verdicts[node.0 as usize]
            else {
                return None;
            };
            let place = places[node.0 as usize];
            let said = &reasons[reason.0 as usize];
            let joins = function.node(node).op == Op::CAST && said.rule.is_none();
            Some(Off { node, reason, place, own: line(node), line: line(place), joins })
        })
        .collect();
    // The words of a rule may differ from node to node: the rule or row is what counts.
    let mut causes: HashMap<(Option<&str>, &str), u32, FxBuildHasher> = HashMap::default();
    let cause_of: Vec<u32> = reasons
        .iter()
        .map(|reason| {
            let next = causes.len() as u32;
            *causes.entry((reason.rule.as_deref(), reason.row)).or_insert(next)
        })
        .collect();
    // What a line's casts join: a rule's group if it has one, else a row's.
    let mut leader: HashMap<u64, (bool, (u32, u64)), FxBuildHasher> = HashMap::default();
    for off in off.iter().filter(|off| !off.joins) {
        let by_rule = reasons[off.reason.0 as usize].rule.is_some();
        let key = (cause_of[off.reason.0 as usize], off.line);
        let known = leader.entry(off.own).or_insert((by_rule, key));
        if by_rule && !known.0 {
            *known = (true, key);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashMap<(u32, u64), u32, FxBuildHasher> = HashMap::default();
    let mut group_of = vec![u32::MAX; function.len()];
    for off in &off {
        let own = cause_of[off.reason.0 as usize];
        let (cause, line) = match leader.get(&off.own) {
            Some(&(_, key)) if off.joins => key,
            _ => (own, off.line),
        };
        let group = *known.entry((cause, line)).or_insert_with(|| {
            groups.push(Group {
                reason: off.reason,
                place: off.place,
                nodes: Vec::new(),
                interior: 0,
                regions_added: 0,
            });
            groups.len() as u32 - 1
        });
        let made = &mut groups[group as usize];
        if cause == own && cause_of[made.reason.0 as usize] != cause {
            made.reason = off.reason;
            made.place = off.place;
        }
        made.nodes.push(off.node);
        group_of[off.node.0 as usize] = group;
    }
    (groups, group_of)
}

struct Off {
    node: NodeId,
    reason: super::ReasonId,
    /// The node to mend, and its line.
    place: NodeId,
    line: u64,
    /// The line of the node itself.
    own: u64,
    joins: bool,
}

/// A number for the innermost recorded frame outside installed packages; `None` without frames.
fn recorded_line(program: &Program, provenance: ProvenanceId) -> Option<u64> {
    let sources = &program.sources;
    let stack = sources.get(provenance).stack;
    let own = sources.frames(stack).rev().find(|frame| {
        let file = program.text(frame.file);
        !file.contains("site-packages") && !file.contains("dist-packages")
    });
    let frame = own.or_else(|| sources.frames(stack).next_back())?;
    Some(u64::from(frame.file.0) << 32 | u64::from(frame.line))
}
