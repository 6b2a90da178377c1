//! What a whole function or program is like.

use rustc_hash::FxHashSet;

use super::datum::Datum;
use super::scope::Scope;
use super::solve::{Bound, Solver};
use crate::graph::{ConstantId, ConstantOrigin, FunctionId, FunctionRole, NodeKind, Program};
use crate::rules::schema::plan::{CountTest, FunctionTest, Pattern, ProgramTest, Test};

impl Solver<'_> {
    /// Whether this function is like a pattern.
    pub(super) fn function_is(&mut self, test: &FunctionTest) -> bool {
        let scope = self.scope;
        let function = scope.function;
        let entry = function.role == FunctionRole::Entry;
        if test.entry.is_some_and(|wanted| wanted != entry) {
            return false;
        }
        if test.name.as_ref().is_some_and(|regex| !self.matches(regex, self.text(function.name)))
            || test
                .opset
                .as_ref()
                .is_some_and(|regex| !self.matches(regex, self.text(function.opset)))
        {
            return false;
        }
        if test.has_dtype.0 != 0 && test.has_dtype.0 & scope.dtypes == 0
            || test.lacks_dtype.0 & scope.dtypes != 0
        {
            return false;
        }
        let number = |n: usize| Datum::Number(n as f64);
        let ops = || function.node_ids().filter(|&id| function.is_work(id)).count();
        if !self.optional(&test.ops, || number(ops()))
            || !self.optional(&test.inputs, || number(function.inputs().count()))
            || !self.optional(&test.outputs, || number(function.outputs().count()))
            || !self.optional(&test.states, || number(function.states().count()))
            || !self
                .optional(&test.weight_bytes, || Datum::Number(function_weight_bytes(scope) as f64))
        {
            return false;
        }
        let regions = || match scope.around.placement.and_then(|p| p.regions(scope.id)) {
            Some(regions) => Datum::Number(f64::from(regions)),
            None => Datum::Unknown,
        };
        if !self.optional(&test.regions, regions) {
            return false;
        }
        // Compiled assets tell under `regions:<function>`.
        let confirmed = || {
            let key = format!("regions:{}", scope.around.program.text(function.name));
            let count = scope.around.program.metadata(&key).and_then(|text| text.parse().ok());
            count.map_or(Datum::Missing, Datum::Number)
        };
        if !self.optional(&test.confirmed_regions, confirmed) {
            return false;
        }
        for (fact, test) in &test.facts {
            let count = number(scope.around.facts.records(scope.id, fact).len());
            if !self.test_datum(test, &count) {
                return false;
            }
        }
        if test.contains.as_ref().is_some_and(|pattern| !self.has_node(pattern))
            || test.lacks.as_ref().is_some_and(|pattern| self.has_node(pattern))
            || !test.count.iter().all(|count| self.counts(count))
            || test.not.as_ref().is_some_and(|not| self.function_is(not))
            || !test.any.is_empty() && !test.any.iter().any(|any| self.function_is(any))
        {
            return false;
        }
        match (test.bind, scope.first_work()) {
            (Some(slot), Some(node)) => {
                let work = function.node_ids().filter(|&id| function.is_work(id)).collect();
                self.bind(slot, Bound::Items(self.at_node(node), work))
            }
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Whether the program is like a pattern.
    pub(super) fn program_is(&mut self, test: &ProgramTest) -> bool {
        let program = self.scope.around.program;
        if test.producer.as_ref().is_some_and(|regex| !self.matches(regex, &program.producer)) {
            return false;
        }
        for (key, test) in &test.metadata {
            let datum =
                program.metadata(key).map_or(Datum::Missing, |text| Datum::Text(text.to_owned()));
            if !self.test_datum(test, &datum) {
                return false;
            }
        }
        if !self.optional(&test.entries, || Datum::Number(entries(program).count() as f64))
            || !self.optional(&test.weight_bytes, || {
                Datum::Number(program_weight_bytes(program) as f64)
            })
        {
            return false;
        }
        if test
            .has_source
            .is_some_and(|wanted| wanted != (program.sources.all_frames().next().is_some()))
        {
            return false;
        }
        if !test.any_function.iter().all(|test| self.any_entry(|solver| solver.function_is(test)))
            || test
                .no_function
                .as_ref()
                .is_some_and(|test| self.any_entry(|solver| solver.function_is(test)))
            || test
                .every_function
                .as_ref()
                .is_some_and(|test| self.any_entry(|solver| !solver.function_is(test)))
        {
            return false;
        }
        !test.not.as_ref().is_some_and(|not| self.program_is(not))
    }

    /// Whether something holds of some entry of the program.
    fn any_entry(&self, mut holds: impl FnMut(&mut Solver<'_>) -> bool) -> bool {
        let around = self.scope.around;
        entries(around.program).any(|id| {
            let scope = Scope::new(around, id);
            let mut solver = Solver::new(&scope, self.compiled);
            solver.reset();
            holds(&mut solver)
        })
    }

    fn optional(&mut self, test: &Option<Test>, datum: impl FnOnce() -> Datum) -> bool {
        test.as_ref().is_none_or(|test| self.test_datum(test, &datum()))
    }

    fn has_node(&mut self, pattern: &Pattern) -> bool {
        self.count_nodes(pattern, 1) > 0
    }

    /// How many nodes that vary at run time fit, counted up to `limit`.
    fn count_nodes(&mut self, pattern: &Pattern, limit: usize) -> usize {
        let scope = self.scope;
        let mut count = 0;
        for node in scope.function.node_ids() {
            let constant = matches!(scope.function.node(node).kind, NodeKind::Constant(_));
            if constant || scope.is_constant_work(node) {
                continue;
            }
            let subject = self.at_node(node);
            count += usize::from(self.off_budget(|solver| solver.fits(pattern, subject)));
            if count >= limit {
                break;
            }
        }
        count
    }

    fn counts(&mut self, test: &CountTest) -> bool {
        let found = self.count_nodes(&test.of, usize::MAX);
        if test.is.as_ref().is_some_and(|is| !self.test_datum(is, &Datum::Number(found as f64))) {
            return false;
        }
        match (&test.share, &test.among) {
            (Some(share), Some(among)) => {
                let all = self.count_nodes(among, usize::MAX);
                all > 0 && self.test_datum(share, &Datum::Number(found as f64 / all as f64))
            }
            _ => true,
        }
    }
}

/// Functions that callers outside can run.
pub(super) fn entries(program: &Program) -> impl Iterator<Item = FunctionId> + '_ {
    program.linted().filter(|(_, function)| function.role == FunctionRole::Entry).map(|(id, _)| id)
}

/// Bytes of the parameters that a function uses, as stored, each once.
pub(super) fn function_weight_bytes(scope: &Scope<'_>) -> u64 {
    let constants = scope.function.nodes().filter_map(|(_, node)| match node.kind {
        NodeKind::Constant(id) => Some(id),
        _ => None,
    });
    weight_bytes(scope.around.program, constants)
}

/// Bytes of all parameters, as stored, each once.
pub(super) fn program_weight_bytes(program: &Program) -> u64 {
    weight_bytes(program, (0..program.constants.len() as u32).map(ConstantId))
}

fn weight_bytes(program: &Program, constants: impl Iterator<Item = ConstantId>) -> u64 {
    let mut seen = FxHashSet::default();
    constants
        .filter(|id| seen.insert(*id))
        .filter(|&id| {
            !matches!(program.constant(id).origin, ConstantOrigin::Literal | ConstantOrigin::Tensor)
        })
        .filter_map(|id| Some(program.constant(id).dtype.bytes(program.elements(id)?)))
        .fold(0, u64::saturating_add)
}
