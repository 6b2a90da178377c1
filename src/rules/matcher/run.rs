//! From a rule and a function to hits.

use super::datum::Datum;
use super::scope::Scope;
use super::solve::{Bound, Goal, Goals, Solver, Subject};
use crate::graph::{NodeId, NodeKind, ProvenanceId, StackId};
use crate::rules::Severity;
use crate::rules::hit::Hit;
use crate::rules::rule::Compiled;
use crate::rules::schema::expr::Slot;
use crate::rules::schema::plan::{ANCHOR, Anchor, FieldTest, Plan, TargetTest, WhenTest};
use crate::rules::schema::words::Kind;
use crate::target::Target;

/// What a whole match bound.
type Env = Vec<Option<Bound>>;

/// Runs one plan of a rule over a function; `index` is the rule's in its set. Nodes that are `untold`
/// are no anchors.
pub(in crate::rules) fn run(
    scope: &Scope<'_>,
    index: usize,
    compiled: &Compiled,
    untold: &dyn Fn(NodeId) -> bool,
) -> Vec<Hit> {
    let plan = &compiled.plan;
    if !on_target(&plan.target, &scope.around.target) {
        return Vec::new();
    }
    let mut solver = Solver::new(scope, compiled);
    solver.reset();
    if !holds_around(&mut solver, plan) {
        return Vec::new();
    }
    let mut matches: Vec<Env> = Vec::new();
    each_anchor(&mut solver, plan, untold, &mut matches);
    let hits = match &plan.group {
        None => matches
            .into_iter()
            .filter_map(|env| {
                solver.env = env;
                hit(&mut solver, index)
            })
            .collect(),
        Some(_) => grouped(&mut solver, plan, matches, index),
    };
    merged(hits)
}

/// Whether format, function and program are what the rule wants.
fn holds_around(solver: &mut Solver<'_>, plan: &Plan) -> bool {
    let format = solver.scope.around.program.format.name();
    if !plan.formats.is_empty() && !plan.formats.iter().any(|own| own == format) {
        return false;
    }
    // A rule on the program is told once: at the first function that is linted.
    let first = solver.scope.around.program.linted().next().map(|(id, _)| id);
    if matches!(plan.anchor, Anchor::Program(_)) && first != Some(solver.scope.id) {
        return false;
    }
    plan.program.as_ref().is_none_or(|test| solver.program_is(test))
        && plan.function.as_ref().is_none_or(|test| solver.function_is(test))
}

fn each_anchor(
    solver: &mut Solver<'_>,
    plan: &Plan,
    untold: &dyn Fn(NodeId) -> bool,
    matches: &mut Vec<Env>,
) {
    let scope = solver.scope;
    let function = scope.function;
    // What the function pattern bound holds for every anchor.
    let start = solver.env.clone();
    let mut try_goal =
        |solver: &mut Solver<'_>,
         subject: Subject,
         goal: &dyn Fn(&mut Solver<'_>, Option<&Goals<'_, '_>>) -> bool| {
            solver.reset();
            solver.env.clone_from(&start);
            let accept = Goals { goal: Goal::Accept, next: None };
            if solver.bind(ANCHOR, Bound::Item(subject)) && goal(solver, Some(&accept)) {
                matches.push(solver.env.clone());
            }
        };
    match &plan.anchor {
        Anchor::Node { ops, kinds, pattern } => {
            let mut nodes: Vec<NodeId> =
                ops.iter().flat_map(|op| scope.of_op(op)).copied().collect();
            if !kinds.is_empty() {
                nodes.extend(
                    function.nodes().filter(|(_, node)| wanted(node.kind, kinds)).map(|(id, _)| id),
                );
            }
            nodes.sort_unstable();
            nodes.dedup();
            nodes.retain(|&node| !untold(node));
            for node in nodes {
                let subject = solver.at_node(node);
                try_goal(solver, subject, &|solver, next| {
                    solver.attempt(&Goals { goal: Goal::Pattern(pattern, subject), next })
                });
            }
        }
        Anchor::Value(pattern) => {
            for node in function.node_ids().filter(|&node| is_data(scope, node)) {
                for value in function.results(node) {
                    let subject = Subject { node, value: Some(value), at_node: true };
                    try_goal(solver, subject, &|solver, next| {
                        solver.attempt(&Goals { goal: Goal::Pattern(pattern, subject), next })
                    });
                }
            }
        }
        Anchor::Fact { fact, fields, pattern } => {
            let fields: &[(&'static str, FieldTest)] = fields;
            for record in scope.around.facts.records(scope.id, fact) {
                let subject = solver.at_node(record.anchor);
                try_goal(solver, subject, &|solver, next| {
                    let fields = Goals { goal: Goal::Fields(fields, record), next };
                    solver.attempt(&Goals {
                        goal: Goal::Pattern(pattern, subject),
                        next: Some(&fields),
                    })
                });
            }
        }
        Anchor::Function(test) => {
            if let Some(node) = scope.first_work() {
                let subject = solver.at_node(node);
                try_goal(solver, subject, &|solver, next| {
                    solver.function_is(test) && solver.run(next)
                });
            }
        }
        Anchor::Program(test) => {
            if let Some(node) = scope.first_work() {
                let subject = solver.at_node(node);
                try_goal(solver, subject, &|solver, next| {
                    solver.program_is(test) && solver.run(next)
                });
            }
        }
    }
}

fn wanted(kind: NodeKind, kinds: &[Kind]) -> bool {
    kinds.contains(&match kind {
        NodeKind::Op => Kind::Op,
        NodeKind::Input => Kind::Input,
        NodeKind::Output => Kind::Output,
        NodeKind::State => Kind::State,
        NodeKind::Constant(_) => Kind::Constant,
    })
}

/// Whether a node makes data that varies at run time.
fn is_data(scope: &Scope<'_>, node: NodeId) -> bool {
    match scope.function.node(node).kind {
        NodeKind::Input | NodeKind::State => true,
        NodeKind::Op => !scope.is_constant_work(node),
        NodeKind::Constant(_) | NodeKind::Output => false,
    }
}

/// The hit of what the solver has bound; `None` if a case silences it.
fn hit(solver: &mut Solver<'_>, index: usize) -> Option<Hit> {
    let plan = solver.plan;
    let case = plan.cases.iter().find(|case| holds(solver, &case.when));
    if case.is_some_and(|case| case.quiet) {
        return None;
    }
    let severity: Severity = case.and_then(|case| case.severity).unwrap_or(plan.severity);
    let message = case.and_then(|case| case.message.as_ref()).unwrap_or(&plan.message);
    let help = case.and_then(|case| case.help.as_ref()).or(plan.help.as_ref());
    let place = place(solver, plan.report_at);
    let stays = case.is_some_and(|case| case.stays);
    let off_unit = if stays { Vec::new() } else { slots(solver, &plan.off_unit) };
    // Where nothing leaves the unit, nothing is explained by default either.
    let silent = stays && plan.claims == plan.off_unit;
    let claims = if silent { Vec::new() } else { slots(solver, &plan.claims) };
    let mut nodes = vec![place];
    nodes.extend(solver.subject(plan.report_at).map(|subject| subject.node));
    nodes.extend(solver.nodes(ANCHOR));
    nodes.extend(&off_unit);
    let related = plan
        .related
        .iter()
        .filter_map(|(slot, words)| {
            let node = solver.subject(*slot)?.node;
            (node != place).then(|| (node, solver.render(words)))
        })
        .collect();
    let fixes: Vec<usize> = plan
        .fixes
        .iter()
        .enumerate()
        .filter(|(_, when)| when.as_ref().is_some_and(|when| holds(solver, when)))
        .map(|(at, _)| at)
        .collect();
    let wants_bindings = !fixes.is_empty();
    Some(Hit {
        rule: index,
        function: solver.scope.id,
        place,
        whole: matches!(plan.anchor, Anchor::Function(_) | Anchor::Program(_)),
        nodes: each_once(nodes),
        related,
        severity,
        message: solver.render(message),
        help: help.map(|help| solver.render(help)).unwrap_or_default(),
        claims,
        off_unit,
        key: plan.key.as_ref().map(|key| solver.render(key)).unwrap_or_default(),
        fixes,
        bindings: if wants_bindings { solver.bindings() } else { Vec::new() },
    })
}

/// The node to report at. One without a recorded place (a constant, a state handle) gives way to the
/// user that has one and is part of the match, then to the first that has one, then to the anchor.
/// Users with a line go before those of which only the module is known: a pass may have inserted them.
/// An input stays: what uses it first is not what the match is about.
fn place(solver: &mut Solver<'_>, slot: Slot) -> NodeId {
    let function = solver.scope.function;
    let Some(subject) = solver.subject(slot).or_else(|| solver.subject(ANCHOR)) else {
        return NodeId(0);
    };
    let sources = &solver.scope.around.program.sources;
    let provenance = |node: NodeId| function.node(node).provenance;
    let lined = |node: NodeId| sources.get(provenance(node)).stack != StackId::EMPTY;
    let known = |node: NodeId| provenance(node) != ProvenanceId::NONE;
    let is_op = function.node(subject.node).kind == NodeKind::Op;
    let by_line = match is_op {
        // Of several ops, the first that is written somewhere.
        true => solver.nodes(slot).into_iter().find(|&node| lined(node)),
        false => located_user(solver, subject.node, &lined),
    };
    by_line.or_else(|| located_user(solver, subject.node, &known)).unwrap_or(subject.node)
}

/// The node itself, the first user, or the anchor, of which `located` holds.
fn located_user(
    solver: &Solver<'_>,
    node: NodeId,
    located: &dyn Fn(NodeId) -> bool,
) -> Option<NodeId> {
    let function = solver.scope.function;
    let mut at = node;
    // Constant work on the way from a constant to its first use is short; the bound is for hostile
    // graphs.
    for _ in 0..16 {
        if located(at) || function.node(at).kind == NodeKind::Input {
            return Some(at);
        }
        let users = function.consumers(at);
        // A constant that several matches share is told by the use that each is about.
        let bound = || solver.bound_nodes().find(|node| located(*node) && users.contains(node));
        let user = match users.len() {
            0 | 1 => None,
            _ => bound(),
        };
        match user.as_ref().or(users.iter().find(|&&user| located(user))).or(users.first()) {
            Some(&user) => at = user,
            None => break,
        }
    }
    let anchor = solver.subject(ANCHOR)?.node;
    located(anchor).then_some(anchor)
}

fn holds(solver: &mut Solver<'_>, when: &WhenTest) -> bool {
    let format = solver.scope.around.program.format.name();
    on_target(&when.target, &solver.scope.around.target)
        && (when.formats.is_empty() || when.formats.iter().any(|own| own == format))
        && when.function.as_ref().is_none_or(|test| solver.function_is(test))
        && when.program.as_ref().is_none_or(|test| solver.program_is(test))
        && when.bound.iter().all(|(slot, pattern)| {
            solver.subject(*slot).is_some_and(|subject| solver.fits(pattern, subject))
        })
        && when.every.iter().all(|(slot, pattern)| {
            solver.nodes(*slot).into_iter().all(|node| {
                let subject = solver.at_node(node);
                solver.fits(pattern, subject)
            })
        })
        && when.wheres.iter().all(|expr| solver.holds(expr))
}

/// Whether a target is one that a rule or case is about.
pub(in crate::rules) fn on_target(test: &TargetTest, target: &Target) -> bool {
    let os = (target.os.major, target.os.minor);
    (test.units.is_empty() || test.units.contains(&target.unit))
        && (test.runtimes.is_empty() || test.runtimes.contains(&target.runtime))
        && test.chip.0.is_none_or(|min| target.chip >= min)
        && test.chip.1.is_none_or(|max| target.chip <= max)
        && test.os.0.is_none_or(|min| os >= min)
        && test.os.1.is_none_or(|max| os <= max)
}

fn slots(solver: &Solver<'_>, slots: &[Slot]) -> Vec<NodeId> {
    each_once(slots.iter().flat_map(|&slot| solver.nodes(slot)).collect())
}

/// Each node once, in the order of first mention.
fn each_once(nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut seen = rustc_hash::FxHashSet::default();
    nodes.into_iter().filter(|node| seen.insert(*node)).collect()
}

/// One hit per group of matches.
fn grouped(solver: &mut Solver<'_>, plan: &Plan, matches: Vec<Env>, index: usize) -> Vec<Hit> {
    let Some(group) = &plan.group else { return Vec::new() };
    let mut groups: indexmap::IndexMap<String, Vec<Env>> = indexmap::IndexMap::new();
    for env in matches {
        solver.env = env;
        let key = group.by.as_ref().map(|by| solver.render(by)).unwrap_or_default();
        groups.entry(key).or_default().push(solver.env.clone());
    }
    let mut hits = Vec::new();
    for (_, members) in groups {
        let count = members.len();
        let enough = group
            .count
            .as_ref()
            .is_none_or(|test| solver.test_datum(test, &Datum::Number(count as f64)));
        if !enough {
            continue;
        }
        solver.group_count = Some(count);
        let mut whole: Option<Hit> = None;
        for env in members {
            solver.env = env;
            let Some(part) = hit(solver, index) else { continue };
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => join(whole, part),
            }
        }
        hits.extend(whole);
    }
    solver.group_count = None;
    hits
}

/// Joins hits of one place that say the same.
fn merged(hits: Vec<Hit>) -> Vec<Hit> {
    let mut list: indexmap::IndexMap<(NodeId, String, String), Hit> = indexmap::IndexMap::new();
    for hit in hits {
        match list.entry((hit.place, hit.key.clone(), hit.message.clone())) {
            indexmap::map::Entry::Occupied(mut known) => join(known.get_mut(), hit),
            indexmap::map::Entry::Vacant(free) => {
                free.insert(hit);
            }
        }
    }
    list.into_values().map(tidy).collect()
}

/// Appends what a hit has to another; [`tidy`] makes the lists unique in the end.
fn join(whole: &mut Hit, part: Hit) {
    whole.nodes.extend(part.nodes);
    whole.claims.extend(part.claims);
    whole.off_unit.extend(part.off_unit);
    whole.related.extend(part.related);
    whole.fixes.retain(|fix| part.fixes.contains(fix));
    whole.severity = whole.severity.max(part.severity);
}

fn tidy(mut hit: Hit) -> Hit {
    hit.nodes = each_once(hit.nodes);
    hit.claims = each_once(hit.claims);
    hit.off_unit = each_once(hit.off_unit);
    let mut seen = rustc_hash::FxHashSet::default();
    hit.related.retain(|related| seen.insert(related.clone()));
    hit
}
