//! Searches along the data flow, backward and forward.
//!
//! For a source that can be judged by itself, each flow remembers per value whether the source can
//! be met from there: every value is judged once, and a search only follows ways that end well.

use rustc_hash::FxHashSet;

use super::solve::{Goal, Goals, Solver, Subject};
use crate::graph::{NodeId, NodeKind, ValueId};
use crate::rules::schema::plan::{Flow, PathTest};
use crate::rules::schema::vocabulary::OpSet;

/// What a flow remembers of each value; empty until first asked.
#[derive(Debug, Default)]
pub(super) struct Memo {
    states: Vec<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Unknown,
    Unreachable,
    Reachable,
}

/// Which way a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Back,
    Forth,
}

impl Solver<'_> {
    /// Meets a flow's source among the values that a subject is computed from, then the rest.
    pub fn derives_from(
        &mut self,
        flow: &Flow,
        subject: Subject,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        let Some(start) = subject.value else { return false };
        self.search(flow, &[start], flow.skip_start, Way::Back, next)
    }

    /// Meets a flow's target among the nodes that a subject's results feed, then the rest.
    pub fn reaches(&mut self, flow: &Flow, subject: Subject, next: Option<&Goals<'_, '_>>) -> bool {
        let starts: Vec<ValueId> = if subject.at_node {
            self.scope.function.results(subject.node).collect()
        } else {
            subject.value.into_iter().collect()
        };
        self.search(flow, &starts, false, Way::Forth, next)
    }

    fn search(
        &mut self,
        flow: &Flow,
        starts: &[ValueId],
        skip_start: bool,
        way: Way,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        let mut seen: FxHashSet<ValueId> = starts.iter().copied().collect();
        let mut stack: Vec<ValueId> = starts.iter().rev().copied().collect();
        while let Some(value) = stack.pop() {
            if !self.step() {
                return false;
            }
            if flow.closed && !self.reachable(flow, value, way) {
                continue;
            }
            if !(skip_start && starts.contains(&value)) {
                for subject in self.candidates(value, way) {
                    let goal = Goal::Pattern(&flow.source, subject);
                    if self.attempt(&Goals { goal, next }) {
                        return true;
                    }
                }
            }
            let mut beyond = self.beyond(flow, value, way);
            beyond.reverse();
            stack.extend(beyond.into_iter().filter(|value| seen.insert(*value)));
        }
        false
    }

    /// What the source pattern is tried on at a value: its producer, or each of its users.
    fn candidates(&self, value: ValueId, way: Way) -> Vec<Subject> {
        match way {
            Way::Back => vec![self.at_producer(value)],
            Way::Forth => self
                .scope
                .function
                .uses(value)
                .into_iter()
                .map(|(user, _)| self.at_node(user))
                .collect(),
        }
    }

    /// The values one step further.
    fn beyond(&self, flow: &Flow, value: ValueId, way: Way) -> Vec<ValueId> {
        let function = self.scope.function;
        match way {
            Way::Back => {
                let node = function.producer(value);
                if !self.passes(flow, node) {
                    return Vec::new();
                }
                let operands = function.operands(node);
                let named = |name| {
                    flow.operands.iter().any(|&own| self.names[usize::from(own)] == Some(name))
                };
                let some = operands.iter().any(|operand| named(operand.name));
                operands
                    .iter()
                    .filter(|operand| !some || named(operand.name))
                    .map(|operand| operand.value)
                    .collect()
            }
            Way::Forth => function
                .uses(value)
                .into_iter()
                .filter(|&(user, _)| self.passes(flow, user))
                .flat_map(|(user, _)| function.results(user))
                .collect(),
        }
    }

    fn passes(&self, flow: &Flow, node: NodeId) -> bool {
        if !flow.constant_work && self.scope.is_constant_work(node) {
            return false;
        }
        self.passable(node, flow.through.as_ref(), &flow.not_through)
    }

    fn passable(&self, node: NodeId, through: Option<&OpSet>, not_through: &OpSet) -> bool {
        let weight = self.scope.function.node(node);
        let op = weight.op.index();
        weight.kind == NodeKind::Op
            && !not_through.contains(op)
            && (through.is_none_or(|through| through.contains(op))
                || self.scope.is_transparent(node))
    }

    /// Whether the source of a closed flow can be met from a value.
    fn reachable(&mut self, flow: &Flow, value: ValueId, way: Way) -> bool {
        let id = usize::from(flow.id);
        if self.memos[id].states.is_empty() {
            self.memos[id].states = vec![State::Unknown; self.scope.function.value_count()];
        }
        // Depth first with the way back on an explicit stack: graphs are deep.
        let mut stack = vec![(value, false)];
        while let Some((at, expanded)) = stack.pop() {
            if self.memos[id].states[at.0 as usize] != State::Unknown {
                continue;
            }
            if !expanded {
                let meets =
                    self.candidates(at, way).into_iter().any(|subject| self.judged(flow, subject));
                if meets {
                    self.memos[id].states[at.0 as usize] = State::Reachable;
                    continue;
                }
                stack.push((at, true));
                let beyond = self.beyond(flow, at, way);
                stack.extend(beyond.into_iter().rev().map(|value| (value, false)));
            } else {
                let beyond = self.beyond(flow, at, way);
                let states = &self.memos[id].states;
                let reachable =
                    beyond.iter().any(|value| states[value.0 as usize] == State::Reachable);
                self.memos[id].states[at.0 as usize] =
                    if reachable { State::Reachable } else { State::Unreachable };
            }
        }
        self.memos[id].states[value.0 as usize] == State::Reachable
    }

    /// Whether a closed flow's source fits; costs no steps of the anchor, since it is judged once a
    /// value and not once an anchor.
    fn judged(&mut self, flow: &Flow, subject: Subject) -> bool {
        self.off_budget(|solver| solver.fits(&flow.source, subject))
    }

    /// Whether there is a way between two bound values.
    pub fn path_exists(&mut self, path: &PathTest, from: Subject, to: Subject) -> bool {
        let function = self.scope.function;
        let Some(end) = to.value else { return false };
        let wanted = |solver: &Solver<'_>, value: ValueId| match from.value {
            Some(start) => solver.scope.base(value) == solver.scope.base(start),
            None => function.producer(value) == from.node,
        };
        let mut seen = FxHashSet::default();
        let mut stack = vec![end];
        while let Some(value) = stack.pop() {
            if wanted(self, value) {
                return true;
            }
            let node = function.producer(value);
            // Program order bounds the search: nothing before the start leads to it.
            if !self.step() || node < from.node {
                continue;
            }
            if self.passable(node, path.through.as_ref(), &path.not_through) {
                stack.extend(
                    function.operands(node).iter().map(|o| o.value).filter(|v| seen.insert(*v)),
                );
            }
        }
        false
    }
}
