//! The solver: goals one after the other, with a way back at every choice.

use super::datum::Datum;
use super::flow::Memo;
use super::scope::Scope;
use crate::facts::{Field, Record};
use crate::graph::{Name, NodeId, NodeKind, ValueId};
use crate::rules::rule::Compiled;
use crate::rules::schema::expr::Slot;
use crate::rules::schema::plan::{Check, FactRole, FieldTest, NameIndex, Pattern, Plan, Regex};
use crate::rules::schema::vocabulary::OpSet;

/// A node, and the value that it is looked at through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject {
    pub node: NodeId,
    pub value: Option<ValueId>,
    /// Looked at as a node, and not through the value of an operand.
    pub at_node: bool,
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// A node or value.
    Item(Subject),
    /// Several nodes of one field of a fact; the first is the one that fitted.
    Items(Subject, Vec<NodeId>),
    /// A number, a word or a list.
    Datum(Datum),
}

/// What is still to be shown.
#[derive(Clone, Copy)]
pub(super) enum Goal<'p> {
    Pattern(&'p Pattern, Subject),
    Checks(&'p [Check], Subject),
    All(&'p [Pattern], Subject),
    Operand(NameIndex, &'p Pattern, NodeId),
    Fields(&'p [(&'static str, FieldTest)], &'p Record),
    /// The end of a whole match: `where` and paths.
    Accept,
}

/// A list of goals on the stack.
#[derive(Clone, Copy)]
pub(super) struct Goals<'p, 'f> {
    pub goal: Goal<'p>,
    pub next: Option<&'f Goals<'p, 'f>>,
}

/// Steps that one anchor may take: far beyond what any sane graph needs.
const STEPS_PER_ANCHOR: u32 = 100_000;

/// One rule over one function.
pub(super) struct Solver<'s> {
    pub scope: &'s Scope<'s>,
    pub compiled: &'s Compiled,
    pub plan: &'s Plan,
    /// The program's ids of the plan's names.
    pub names: Vec<Option<Name>>,
    pub env: Vec<Option<Bound>>,
    trail: Vec<Slot>,
    pub memos: Vec<Memo>,
    steps: u32,
    /// Steps left for the whole function.
    total: u64,
    /// Matches in the group, while it is told.
    pub group_count: Option<usize>,
}

impl<'s> Solver<'s> {
    pub fn new(scope: &'s Scope<'s>, compiled: &'s Compiled) -> Solver<'s> {
        let names = &scope.around.program.names;
        let plan = &compiled.plan;
        Solver {
            scope,
            compiled,
            plan,
            names: plan.names.iter().map(|name| names.find(name)).collect(),
            env: vec![None; plan.slots.len()],
            trail: Vec::new(),
            memos: std::iter::repeat_with(Memo::default).take(usize::from(plan.flows)).collect(),
            steps: 0,
            total: 4_000_000 + 64 * scope.function.len() as u64,
            group_count: None,
        }
    }

    /// Forgets all bindings and starts a new anchor.
    pub fn reset(&mut self) {
        self.env.iter_mut().for_each(|slot| *slot = None);
        self.trail.clear();
        self.steps = STEPS_PER_ANCHOR;
    }

    /// Takes a step; `false` when the budget is spent, which ends the search without a match.
    pub fn step(&mut self) -> bool {
        if self.steps == 0 || self.total == 0 {
            return false;
        }
        self.steps -= 1;
        self.total -= 1;
        true
    }

    /// Runs something that is done once for all anchors, at the expense of the function's budget only.
    pub fn off_budget<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let steps = std::mem::replace(&mut self.steps, STEPS_PER_ANCHOR);
        let result = f(self);
        self.steps = steps;
        result
    }

    /// Binds a slot, or joins: what is bound twice must be the same.
    pub fn bind(&mut self, slot: Slot, bound: Bound) -> bool {
        match &self.env[usize::from(slot)] {
            Some(known) => self.same(known, &bound),
            None => {
                self.env[usize::from(slot)] = Some(bound);
                self.trail.push(slot);
                true
            }
        }
    }

    fn same(&self, a: &Bound, b: &Bound) -> bool {
        match (a, b) {
            (Bound::Datum(a), Bound::Datum(b)) => a == b,
            (Bound::Item(a) | Bound::Items(a, _), Bound::Item(b) | Bound::Items(b, _)) => {
                self.same_item(*a, *b)
            }
            _ => false,
        }
    }

    /// Whether two subjects are the same value, transparent ops looked through, or the same node.
    pub fn same_item(&self, a: Subject, b: Subject) -> bool {
        match (a.value, b.value) {
            (Some(a), Some(b)) => self.scope.base(a) == self.scope.base(b),
            _ => a.node == b.node,
        }
    }

    fn mark(&self) -> usize {
        self.trail.len()
    }

    fn rollback(&mut self, mark: usize) {
        for slot in self.trail.drain(mark..) {
            self.env[usize::from(slot)] = None;
        }
    }

    /// Whether a pattern fits, leaving no binding behind.
    pub fn fits(&mut self, pattern: &Pattern, subject: Subject) -> bool {
        let mark = self.mark();
        let fits = self.run(Some(&Goals { goal: Goal::Pattern(pattern, subject), next: None }));
        self.rollback(mark);
        fits
    }

    /// Tries goals; on failure no binding of theirs is left.
    pub fn attempt(&mut self, goals: &Goals<'_, '_>) -> bool {
        let mark = self.mark();
        let done = self.run(Some(goals));
        if !done {
            self.rollback(mark);
        }
        done
    }

    /// Shows all goals, or fails.
    pub fn run(&mut self, goals: Option<&Goals<'_, '_>>) -> bool {
        let Some(goals) = goals else { return true };
        if !self.step() {
            return false;
        }
        match goals.goal {
            Goal::Accept => self.accept(),
            Goal::Pattern(pattern, subject) => self.pattern(pattern, subject, goals.next),
            Goal::Checks(checks, subject) => self.checks(checks, subject, goals.next),
            Goal::All(list, subject) => self.all(list, subject, goals.next),
            Goal::Operand(name, pattern, node) => self.operand(name, pattern, node, goals.next),
            Goal::Fields(fields, record) => self.fields(fields, record, goals.next),
        }
    }

    fn pattern(
        &mut self,
        pattern: &Pattern,
        subject: Subject,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        if let Some(ops) = &pattern.ops {
            let node = self.scope.function.node(subject.node);
            if node.kind != NodeKind::Op || !ops.contains(node.op.index()) {
                return false;
            }
        }
        if let Some(slot) = pattern.bind
            && !self.bind(slot, Bound::Item(subject))
        {
            return false;
        }
        self.checks(&pattern.checks, subject, next)
    }

    fn checks(&mut self, checks: &[Check], subject: Subject, next: Option<&Goals<'_, '_>>) -> bool {
        for (at, check) in checks.iter().enumerate() {
            let rest = Goals { goal: Goal::Checks(&checks[at + 1..], subject), next };
            let rest = if at + 1 == checks.len() { next } else { Some(&rest) };
            let node = subject.node;
            match check {
                Check::Operand(name, pattern) => {
                    return self.operand(*name, pattern, node, rest);
                }
                Check::OptionalOperand(name, pattern) => {
                    let there = self.names[usize::from(*name)]
                        .is_some_and(|name| self.scope.function.operand(node, name).is_some());
                    return if there {
                        self.operand(*name, pattern, node, rest)
                    } else {
                        self.run(rest)
                    };
                }
                Check::Commutative(pair) => {
                    let [(a, first), (b, second)] = &**pair;
                    return [(a, b), (b, a)].into_iter().any(|(a, b)| {
                        let then = Goals { goal: Goal::Operand(*b, second, node), next: rest };
                        self.attempt(&Goals {
                            goal: Goal::Operand(*a, first, node),
                            next: Some(&then),
                        })
                    });
                }
                Check::AnyOperand(pattern) => {
                    let values: Vec<ValueId> =
                        self.scope.function.operands(node).iter().map(|o| o.value).collect();
                    return self.any_value(&values, pattern, rest);
                }
                Check::Consumer(pattern) => {
                    let users = self.users(subject, pattern.ops.as_ref());
                    return users.into_iter().any(|user| {
                        let goal = Goal::Pattern(pattern, self.at_node(user));
                        self.attempt(&Goals { goal, next: rest })
                    });
                }
                Check::Any(list) => {
                    return list.iter().any(|pattern| {
                        self.attempt(&Goals { goal: Goal::Pattern(pattern, subject), next: rest })
                    });
                }
                Check::All(list) => return self.all(list, subject, rest),
                Check::Result(pattern) => {
                    let value = self.scope.function.result(node);
                    let subject = Subject { node, value, at_node: true };
                    return self
                        .run(Some(&Goals { goal: Goal::Pattern(pattern, subject), next: rest }));
                }
                Check::ProducedBy(pattern) => {
                    let Some(value) = subject.value else { return false };
                    let goal = Goal::Pattern(pattern, self.at_producer(value));
                    return self.run(Some(&Goals { goal, next: rest }));
                }
                Check::DerivesFrom(flow) => return self.derives_from(flow, subject, rest),
                Check::Reaches(flow) => return self.reaches(flow, subject, rest),
                Check::InFact(role) => return self.in_fact(role, subject, rest),
                plain => {
                    if !self.plain(plain, subject) {
                        return false;
                    }
                }
            }
        }
        self.run(next)
    }

    /// All of several patterns on one subject.
    fn all(&mut self, list: &[Pattern], subject: Subject, next: Option<&Goals<'_, '_>>) -> bool {
        let Some((first, rest)) = list.split_first() else { return self.run(next) };
        let rest = Goals { goal: Goal::All(rest, subject), next };
        self.pattern(first, subject, Some(&rest))
    }

    fn operand(
        &mut self,
        name: NameIndex,
        pattern: &Pattern,
        node: NodeId,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        let Some(name) = self.names[usize::from(name)] else { return false };
        let operands = self.scope.function.operands(node);
        let values: Vec<ValueId> =
            operands.iter().filter(|operand| operand.name == name).map(|o| o.value).collect();
        self.any_value(&values, pattern, next)
    }

    fn any_value(
        &mut self,
        values: &[ValueId],
        pattern: &Pattern,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        values.iter().any(|&value| {
            let goal = Goal::Pattern(pattern, self.through_views(value, pattern.ops.as_ref()));
            self.attempt(&Goals { goal, next })
        })
    }

    fn in_fact(&mut self, role: &FactRole, subject: Subject, next: Option<&Goals<'_, '_>>) -> bool {
        let scope = self.scope;
        let found = scope.records_of(role.fact, &role.roles, subject.node, subject.value);
        let records = scope.around.facts.records(scope.id, role.fact);
        found
            .into_iter()
            .filter_map(|at| records.get(at as usize))
            .any(|record| self.attempt(&Goals { goal: Goal::Fields(&role.fields, record), next }))
    }

    fn fields(
        &mut self,
        fields: &[(&'static str, FieldTest)],
        record: &Record,
        next: Option<&Goals<'_, '_>>,
    ) -> bool {
        let Some(((name, test), rest)) = fields.split_first() else { return self.run(next) };
        let rest = Goals { goal: Goal::Fields(rest, record), next };
        // A list with nothing in it is as good as missing.
        let field = record.field(name).filter(|field| match field {
            Field::Nodes(nodes) => !nodes.is_empty(),
            Field::Values(values) => !values.is_empty(),
            _ => true,
        });
        let test = match test {
            FieldTest::Optional(_) if field.is_none() => return self.run(Some(&rest)),
            FieldTest::Optional(test) => test,
            test => test,
        };
        match (test, field) {
            (FieldTest::Absent, field) => field.is_none() && self.run(Some(&rest)),
            (_, None) => false,
            (FieldTest::Node(pattern), Some(Field::Node(node))) => {
                let goal = Goal::Pattern(pattern, self.at_node(*node));
                self.run(Some(&Goals { goal, next: Some(&rest) }))
            }
            (FieldTest::Value(pattern), Some(Field::Value(value))) => {
                let goal = Goal::Pattern(pattern, self.through_views(*value, pattern.ops.as_ref()));
                self.run(Some(&Goals { goal, next: Some(&rest) }))
            }
            (FieldTest::Some(pattern), Some(Field::Nodes(nodes))) => {
                let subjects: Vec<Subject> = nodes.iter().map(|&node| self.at_node(node)).collect();
                self.some_of(pattern, &subjects, nodes, &rest)
            }
            (FieldTest::Some(pattern), Some(Field::Values(values))) => {
                let subjects: Vec<Subject> = values
                    .iter()
                    .map(|&value| self.through_views(value, pattern.ops.as_ref()))
                    .collect();
                let nodes: Vec<NodeId> = subjects.iter().map(|subject| subject.node).collect();
                self.some_of(pattern, &subjects, &nodes, &rest)
            }
            (FieldTest::Datum(test), Some(field)) => {
                self.test_datum(test, &field_datum(field)) && self.run(Some(&rest))
            }
            _ => false,
        }
    }

    /// One of several nodes or values fits; the slot keeps them all.
    fn some_of(
        &mut self,
        pattern: &Pattern,
        subjects: &[Subject],
        nodes: &[NodeId],
        next: &Goals<'_, '_>,
    ) -> bool {
        subjects.iter().any(|&subject| {
            let mark = self.mark();
            let done = self.run(Some(&Goals { goal: Goal::Pattern(pattern, subject), next: None }))
                && {
                    if let Some(slot) = pattern.bind {
                        self.env[usize::from(slot)] = Some(Bound::Items(subject, nodes.to_vec()));
                    }
                    self.run(Some(next))
                };
            if !done {
                self.rollback(mark);
            }
            done
        })
    }

    /// A node looked at as such: through its first result, or an output through what it returns.
    pub fn at_node(&self, node: NodeId) -> Subject {
        let function = self.scope.function;
        let value = function
            .result(node)
            .or_else(|| function.operands(node).first().map(|operand| operand.value));
        Subject { node, value, at_node: true }
    }

    /// A value with the node that makes it.
    pub fn at_producer(&self, value: ValueId) -> Subject {
        Subject { node: self.scope.function.producer(value), value: Some(value), at_node: false }
    }

    /// A value with the node that makes it, views looked through unless the pattern names them.
    pub fn through_views(&self, value: ValueId, ops: Option<&OpSet>) -> Subject {
        let function = self.scope.function;
        let mut at = value;
        loop {
            let node = function.producer(at);
            let named = ops.is_some_and(|ops| ops.contains(function.node(node).op.index()));
            let source = function.operands(node).first();
            match source {
                Some(source) if !named && self.scope.is_transparent(node) => at = source.value,
                _ => return Subject { node, value: Some(value), at_node: false },
            }
        }
    }

    /// The users of what a subject makes, views looked through unless `ops` names them; in program
    /// order, each once.
    pub fn users(&mut self, subject: Subject, ops: Option<&OpSet>) -> Vec<NodeId> {
        let function = self.scope.function;
        let mut stack: Vec<ValueId> = if subject.at_node {
            function.results(subject.node).collect()
        } else {
            subject.value.into_iter().collect()
        };
        let mut users = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(value) = stack.pop() {
            for (user, _) in function.uses(value) {
                if !self.step() {
                    break;
                }
                let named = ops.is_some_and(|ops| ops.contains(function.node(user).op.index()));
                if !seen.insert(user) {
                    continue;
                }
                if self.scope.is_transparent(user) && !named {
                    stack.extend(function.results(user));
                } else {
                    users.push(user);
                }
            }
        }
        users.sort_unstable();
        users
    }

    pub fn text(&self, name: Name) -> &'s str {
        self.scope.around.program.names.get(name)
    }

    /// The module path of a node.
    pub fn module(&self, node: NodeId) -> &'s str {
        let sources = &self.scope.around.program.sources;
        let provenance = sources.get(self.scope.function.node(node).provenance);
        self.text(sources.get_module(provenance.module).path)
    }

    pub fn class_matches(&self, regex: &Regex, node: NodeId) -> bool {
        let sources = &self.scope.around.program.sources;
        let provenance = sources.get(self.scope.function.node(node).provenance);
        let module = sources.get_module(provenance.module);
        module.stack.iter().any(|(_, class)| self.matches(regex, self.text(*class)))
            || self.matches(regex, self.text(module.class))
    }

    pub fn matches(&self, regex: &Regex, text: &str) -> bool {
        self.compiled.regex(regex.id).is_some_and(|regex| regex.is_match(text))
    }
}

/// A number or word of a fact.
pub(super) fn field_datum(field: &Field) -> Datum {
    match field {
        Field::Int(n) => Datum::Number(*n as f64),
        Field::Float(x) => Datum::Number(*x),
        Field::Bool(b) => Datum::Number(f64::from(u8::from(*b))),
        Field::Text(text) => Datum::Text((*text).to_owned()),
        Field::Label(text) => Datum::Text(text.to_string()),
        Field::Node(_) | Field::Value(_) | Field::Nodes(_) | Field::Values(_) => Datum::Unknown,
    }
}
