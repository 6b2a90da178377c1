//! Checks of patterns: what a node, value, function or program is like.

use super::check::Checker;
use super::check_words::{anchored_kinds, names};
use super::plan::*;
use super::problem::hint;
use super::raw;
use super::vocabulary::OpSet;
use super::words::{Eligible, Kind, Origin, Position};
use super::yaml::At;

impl Checker<'_> {
    /// What a rule looks for.
    pub(super) fn anchor(&mut self, at: &At<raw::Pattern>) -> Anchor {
        let raw = &at.value;
        let kinds = [
            raw.fact.is_some(),
            raw.value.is_some(),
            raw.function.is_some(),
            raw.program.is_some(),
        ];
        if kinds.iter().filter(|kind| **kind).count() > 1 {
            self.problem(
                at.place(),
                "`match` looks for one of `fact`, `value`, `function`, `program` or nodes",
            );
        }
        // What is left beside the anchor key must hold of the anchor node.
        let rest = raw::Pattern {
            fact: None,
            value: None,
            function: None,
            program: None,
            fields: Default::default(),
            ..raw.clone()
        };
        if let Some(name) = &raw.fact {
            let Some(fact) = self.fact(name) else { return Anchor::Value(Pattern::default()) };
            let fields = self.fields(fact, &raw.fields);
            return Anchor::Fact { fact: fact.name, fields, pattern: self.pattern(&rest, None) };
        }
        if let Some((name, _)) = raw.fields.first() {
            self.problem(name.place(), "`fields` belongs to `fact`");
        }
        let alone = |checker: &mut Self, what: &str| {
            if rest != raw::Pattern::default() {
                checker
                    .problem(at.place(), format!("nothing can stand beside `{what}` in `match`"));
            }
        };
        if let Some(value) = &raw.value {
            alone(self, "value");
            return Anchor::Value(self.pattern(value, None));
        }
        if let Some(function) = &raw.function {
            alone(self, "function");
            return Anchor::Function(self.function(function));
        }
        if let Some(program) = &raw.program {
            alone(self, "program");
            return Anchor::Program(self.program(program));
        }
        let pattern = self.pattern(raw, None);
        let kinds = possible_kinds(&pattern);
        let ops = possible_ops(&pattern);
        if ops.is_none() && kinds.is_empty() {
            self.problem(
                at.place(),
                "cannot tell which ops this looks at: give `op`, `category` or a `kind` other than op (or look at \
                 each `value`, `fact`, `function`, `program`)",
            );
        }
        Anchor::Node { ops: ops.unwrap_or_default(), kinds, pattern }
    }

    /// A pattern; `ops` are those of the same node that are known from around it.
    pub(super) fn pattern(&mut self, raw: &raw::Pattern, around: Option<&OpSet>) -> Pattern {
        self.misplaced(raw);
        let mut own = self.ops(&raw.op);
        own.extend(&self.categories(&raw.category));
        let ops = (!raw.op.is_empty() || !raw.category.is_empty()).then_some(own);
        let known = match (&ops, around) {
            (Some(own), Some(around)) => {
                let mut both = own.clone();
                both.intersect(around);
                Some(both)
            }
            (Some(own), None) => Some(own.clone()),
            (None, around) => around.cloned(),
        };
        let known = known.as_ref();
        let bind = raw.bind.as_ref().map(|name| self.bind(name, known, false));
        let mut checks = Vec::new();
        self.plain_checks(raw, &mut checks);
        self.attr_checks(raw, known, &mut checks);
        self.graph_checks(raw, known, &mut checks);
        self.nested_checks(raw, known, &mut checks);
        Pattern { ops, checks, bind }
    }

    fn misplaced(&mut self, raw: &raw::Pattern) {
        let place = raw
            .fact
            .as_ref()
            .map(At::place)
            .or_else(|| raw.fields.first().map(|(name, _)| name.place()));
        if place.is_some() || raw.value.is_some() || raw.function.is_some() || raw.program.is_some()
        {
            self.problem(
                place.unwrap_or_default(),
                "`fact`, `fields`, `value`, `function` and `program` stand at the top of `match` only; a node's role \
                 in a fact is `in-fact`",
            );
        }
        if let Some(is) = &raw.is {
            let place = is.bind.as_ref().map(At::place).unwrap_or_default();
            self.problem(place, "`is`, a number or a word here: only the fields of a fact that hold one can be asked so");
        }
    }

    fn plain_checks(&mut self, raw: &raw::Pattern, checks: &mut Vec<Check>) {
        if !raw.kind.is_empty() {
            checks.push(Check::Kind(self.words(
                &raw.kind,
                Kind::parse,
                &names(Kind::ALL, Kind::name),
                "kind",
            )));
        }
        if !raw.dtype.is_empty() {
            checks.push(Check::Dtype(self.dtypes(&raw.dtype)));
        }
        let tests: [(&Option<raw::Test>, fn(Test) -> Check); 5] = [
            (&raw.rank, Check::Rank),
            (&raw.any_dim, Check::AnyDim),
            (&raw.every_dim, Check::EveryDim),
            (&raw.bytes, Check::Bytes),
            (&raw.elements, Check::Elements),
        ];
        for (test, make) in tests {
            if let Some(test) = test {
                checks.push(make(self.test(test)));
            }
        }
        for (index, test) in raw.dim.iter() {
            let test = self.test(test);
            if let Some(index) = self.index(index) {
                checks.push(Check::Dim(index, test));
            }
        }
        let flags: [(Option<bool>, fn(bool) -> Check); 6] = [
            (raw.dynamic, Check::Dynamic),
            (raw.data_dependent, Check::DataDependent),
            (raw.strided, Check::Strided),
            (raw.depends_on_input, Check::DependsOnInput),
            (raw.implicit, Check::Implicit),
            (raw.mutation, Check::Mutation),
        ];
        checks.extend(flags.into_iter().filter_map(|(flag, make)| flag.map(make)));
        let texts: [(&Option<At<String>>, fn(Regex) -> Check); 4] = [
            (&raw.spelling, Check::Spelling),
            (&raw.name, Check::Name),
            (&raw.module, Check::Module),
            (&raw.class, Check::Class),
        ];
        for (text, make) in texts {
            if let Some(text) = text {
                checks.push(make(self.regex(text)));
            }
        }
    }

    fn attr_checks(&mut self, raw: &raw::Pattern, ops: Option<&OpSet>, checks: &mut Vec<Check>) {
        for (name, test) in raw.attr.iter() {
            // Where no op is known, that has been said, and any attribute may be right.
            let known_op = ops.is_none_or(|ops| !ops.is_empty());
            if known_op && !self.vocabulary.has_attribute(ops, name) {
                let known: Vec<&str> = self
                    .vocabulary
                    .select(ops)
                    .flat_map(|op| op.attributes.iter().copied())
                    .collect();
                self.unknown_of(ops, "attribute", name, &known);
            }
            let test = self.test(test);
            checks.push(Check::Attr(self.name(name), test));
        }
        if let Some(constant) = &raw.constant {
            checks.push(Check::Constant(self.constant(constant)));
        }
        if let Some(test) = &raw.consumers {
            checks.push(Check::Consumers(self.test(test)));
        }
        if !raw.eligible.is_empty() {
            self.asks_placement();
            let words = self.words(
                &raw.eligible,
                Eligible::parse,
                &names(Eligible::ALL, Eligible::name),
                "answer",
            );
            checks.push(Check::Eligible(words));
        }
        if !raw.position.is_empty() {
            self.asks_placement();
            let words = self.words(
                &raw.position,
                Position::parse,
                &names(Position::ALL, Position::name),
                "position",
            );
            checks.push(Check::Position(words));
        }
        if let Some(role) = &raw.in_fact
            && let Some(fact) = self.fact(&role.fact)
        {
            let known: Vec<&'static str> = fact.fields.iter().map(|field| field.name).collect();
            let roles = self.words(
                &role.field,
                |name| known.iter().copied().find(|known| *known == name),
                &known,
                "field",
            );
            let fields = self.fields(fact, &role.fields);
            checks.push(Check::InFact(FactRole { fact: fact.name, roles, fields }));
        }
    }

    fn graph_checks(&mut self, raw: &raw::Pattern, ops: Option<&OpSet>, checks: &mut Vec<Check>) {
        let mut operands: Vec<(NameIndex, Pattern)> = Vec::new();
        for (name, pattern) in raw.operand.iter() {
            if !self.vocabulary.has_operand(ops, name) {
                let known: Vec<&str> = self
                    .vocabulary
                    .select(ops)
                    .flat_map(|op| op.operands.iter().copied())
                    .collect();
                self.unknown_of(ops, "operand", name, &known);
            }
            let index = self.name(name);
            if pattern.present == Some(false) {
                checks.push(Check::NoOperand(index));
                continue;
            }
            let compiled = self.pattern(pattern, None);
            if pattern.optional {
                checks.push(Check::OptionalOperand(index, compiled));
            } else {
                operands.push((index, compiled));
            }
        }
        if raw.commutative.is_empty() {
            checks
                .extend(operands.into_iter().map(|(name, pattern)| Check::Operand(name, pattern)));
        } else {
            self.commutative(raw, operands, checks);
        }
        let nested: [(&Option<Box<raw::Pattern>>, fn(Box<Pattern>) -> Check); 6] = [
            (&raw.every_operand, Check::EveryOperand),
            (&raw.every_consumer, Check::EveryConsumer),
            (&raw.result, Check::Result),
            (&raw.produced_by, Check::ProducedBy),
            (&raw.any_operand, Check::AnyOperand),
            (&raw.consumer, Check::Consumer),
        ];
        for (pattern, make) in nested {
            if let Some(pattern) = pattern {
                checks.push(make(Box::new(self.pattern(pattern, None))));
            }
        }
        if let Some(count) = &raw.count {
            let is = self.test(&count.is);
            if let Some(pattern) = &count.operands {
                checks
                    .push(Check::CountOperands(Box::new(self.pattern(pattern, None)), is.clone()));
            }
            if let Some(pattern) = &count.consumers {
                checks.push(Check::CountConsumers(Box::new(self.pattern(pattern, None)), is));
            }
        }
    }

    /// Two operands that may change places; `commutative: [a, b]`.
    fn commutative(
        &mut self,
        raw: &raw::Pattern,
        mut operands: Vec<(NameIndex, Pattern)>,
        checks: &mut Vec<Check>,
    ) {
        let place = raw.commutative[0].place();
        if raw.commutative.len() != 2 {
            self.problem(place, "`commutative` takes two operands, as in `[a, b]`");
            return;
        }
        let mut pair = Vec::new();
        for name in raw.commutative.iter() {
            let index = self.name(name);
            let pattern = match operands.iter().position(|(known, _)| *known == index) {
                Some(at) => operands.remove(at).1,
                None => Pattern::default(),
            };
            pair.push((index, pattern));
        }
        checks.extend(operands.into_iter().map(|(name, pattern)| Check::Operand(name, pattern)));
        if let Ok(pair) = <[(NameIndex, Pattern); 2]>::try_from(pair) {
            checks.push(Check::Commutative(Box::new(pair)));
        }
    }

    fn nested_checks(&mut self, raw: &raw::Pattern, ops: Option<&OpSet>, checks: &mut Vec<Check>) {
        if !raw.all.is_empty() {
            checks.push(Check::All(
                raw.all.iter().map(|pattern| self.pattern(pattern, ops)).collect(),
            ));
        }
        if let Some(pattern) = &raw.not {
            checks.push(Check::Not(Box::new(self.pattern(pattern, ops))));
        }
        if !raw.any.is_empty() {
            checks.push(Check::Any(
                raw.any.iter().map(|pattern| self.pattern(pattern, ops)).collect(),
            ));
        }
        if let Some(flow) = &raw.derives_from {
            checks.push(Check::DerivesFrom(Box::new(self.flow(flow))));
        }
        if let Some(flow) = &raw.reaches {
            checks.push(Check::Reaches(Box::new(self.flow(flow))));
        }
    }

    fn flow(&mut self, raw: &raw::Flow) -> Flow {
        let id = self.next_flow();
        let through = self.through(&raw.through, &raw.through_category);
        let not_through = self.ops(&raw.not_through);
        let mut operands = Vec::new();
        for name in raw.operands.iter() {
            if !self.vocabulary.has_operand(None, name) {
                let known: Vec<&str> = self
                    .vocabulary
                    .select(None)
                    .flat_map(|op| op.operands.iter().copied())
                    .collect();
                self.unknown_of(None, "operand", name, &known);
            }
            operands.push(self.name(name));
        }
        let before = self.binds();
        let mut source = self.pattern(&raw.source, None);
        if let Some(bind) = &raw.bind {
            let ops = source.ops.clone();
            let slot = self.bind(bind, ops.as_ref(), false);
            if source.bind.is_some_and(|bound| bound != slot) {
                self.problem(bind.place(), "the source has a `bind` of its own: give one name");
            }
            source.bind = Some(slot);
        }
        let closed = self.closed_since(&before);
        Flow {
            id,
            through,
            not_through,
            operands,
            constant_work: raw.constant_work.unwrap_or(true),
            skip_start: raw.min_steps.unwrap_or(0) > 0,
            source,
            closed,
        }
    }

    fn constant(&mut self, raw: &raw::ConstantPattern) -> ConstantTest {
        let mut optional = |test: &Option<raw::Test>| test.as_ref().map(|test| self.test(test));
        let (value, min, max, abs_max) =
            (optional(&raw.value), optional(&raw.min), optional(&raw.max), optional(&raw.abs_max));
        ConstantTest {
            contains: raw.contains.clone(),
            value,
            min,
            max,
            abs_max,
            origin: self.words(
                &raw.origin,
                Origin::parse,
                &names(Origin::ALL, Origin::name),
                "origin",
            ),
            fqn: raw.fqn.as_ref().map(|fqn| self.regex(fqn)),
        }
    }

    /// A test of a number, a word or a list.
    pub(super) fn test(&mut self, raw: &raw::Test) -> Test {
        let mut one_of = raw.r#in.clone();
        one_of.extend(raw.is.clone());
        let mut none_of = raw.not_in.clone();
        none_of.extend(raw.not.clone());
        let mut boxed =
            |test: &Option<Box<raw::Test>>| test.as_ref().map(|test| Box::new(self.test(test)));
        let (len, any, every) = (boxed(&raw.len), boxed(&raw.any), boxed(&raw.every));
        let mut at = Vec::new();
        for (index, test) in raw.at.iter() {
            let test = self.test(test);
            at.extend(self.index(index).map(|index| (index, test)));
        }
        Test {
            one_of,
            none_of,
            gt: raw.gt,
            ge: raw.ge,
            lt: raw.lt,
            le: raw.le,
            multiple_of: raw.multiple_of.filter(|n| *n != 0),
            not_multiple_of: raw.not_multiple_of.filter(|n| *n != 0),
            prime_factors: raw.prime_factors.clone(),
            prime_factor_beyond: raw.prime_factor_beyond.clone(),
            matches: raw.matches.as_ref().map(|text| self.regex(text)),
            list: raw.list.clone(),
            len,
            any,
            every,
            at,
            present: raw.present,
            bind: raw.bind.as_ref().map(|name| self.bind(name, None, true)),
        }
    }

    fn index(&mut self, text: &At<String>) -> Option<i64> {
        let index = text.parse().ok();
        if index.is_none() {
            self.problem(
                text.place(),
                format!("`{}` is no index: a whole number, from the end if negative", text.value),
            );
        }
        index
    }

    /// A function pattern.
    pub(super) fn function(&mut self, raw: &raw::FunctionPattern) -> FunctionTest {
        if raw.regions.is_some() {
            self.asks_placement();
        }
        let regex =
            |checker: &mut Self, text: &Option<At<String>>| text.as_ref().map(|t| checker.regex(t));
        let test =
            |checker: &mut Self, test: &Option<raw::Test>| test.as_ref().map(|t| checker.test(t));
        let node = |checker: &mut Self, pattern: &Option<Box<raw::Pattern>>| {
            pattern.as_ref().map(|pattern| Box::new(checker.pattern(pattern, None)))
        };
        let mut facts = Vec::new();
        for (name, count) in raw.facts.iter() {
            let count = self.test(count);
            facts.extend(self.fact(name).map(|fact| (fact.name, count)));
        }
        let count = raw
            .count
            .iter()
            .map(|count| CountTest {
                of: self.pattern(&count.of, None),
                is: test(self, &count.is),
                among: count.among.as_ref().map(|among| self.pattern(among, None)),
                share: test(self, &count.share),
            })
            .collect();
        FunctionTest {
            name: regex(self, &raw.name),
            opset: regex(self, &raw.opset),
            entry: raw.entry,
            has_dtype: self.dtypes(&raw.has_dtype),
            lacks_dtype: self.dtypes(&raw.lacks_dtype),
            ops: test(self, &raw.ops),
            inputs: test(self, &raw.inputs),
            outputs: test(self, &raw.outputs),
            states: test(self, &raw.states),
            weight_bytes: test(self, &raw.weight_bytes),
            regions: test(self, &raw.regions),
            confirmed_regions: test(self, &raw.confirmed_regions),
            contains: node(self, &raw.contains),
            lacks: node(self, &raw.lacks),
            count,
            facts,
            not: raw.not.as_ref().map(|not| Box::new(self.function(not))),
            any: raw.any.iter().map(|any| self.function(any)).collect(),
            bind: raw.bind.as_ref().map(|name| self.bind(name, None, false)),
        }
    }

    /// A program pattern.
    pub(super) fn program(&mut self, raw: &raw::ProgramPattern) -> ProgramTest {
        let metadata =
            raw.metadata.iter().map(|(key, test)| (key.value.clone(), self.test(test))).collect();
        let boxed = |checker: &mut Self, function: &Option<Box<raw::FunctionPattern>>| {
            function.as_ref().map(|function| Box::new(checker.function(function)))
        };
        ProgramTest {
            producer: raw.producer.as_ref().map(|text| self.regex(text)),
            metadata,
            entries: raw.entries.as_ref().map(|test| self.test(test)),
            weight_bytes: raw.weight_bytes.as_ref().map(|test| self.test(test)),
            any_function: raw.any_function.iter().map(|function| self.function(function)).collect(),
            no_function: boxed(self, &raw.no_function),
            every_function: boxed(self, &raw.every_function),
            has_source: raw.has_source,
            not: raw.not.as_ref().map(|not| Box::new(self.program(not))),
        }
    }

    fn unknown_of(&mut self, ops: Option<&OpSet>, what: &str, name: &At<String>, known: &[&str]) {
        let mut known = known.to_vec();
        known.sort_unstable();
        known.dedup();
        let of = match ops {
            None => "any op".to_owned(),
            Some(ops) => {
                let names: Vec<&str> =
                    self.vocabulary.select(Some(ops)).map(|op| op.name).take(4).collect();
                super::problem::list(&names)
            }
        };
        self.problem(
            name.place(),
            format!("`{}` is no {what} of {of}{}", name.value, hint(name, &known)),
        );
    }
}

/// The ops that a pattern can fit, if it says so.
fn possible_ops(pattern: &Pattern) -> Option<OpSet> {
    let mut possible = pattern.ops.clone();
    let mut narrow = |ops: OpSet| match &mut possible {
        Some(possible) => possible.intersect(&ops),
        None => possible = Some(ops),
    };
    for check in &pattern.checks {
        match check {
            Check::All(list) => list.iter().filter_map(possible_ops).for_each(&mut narrow),
            Check::Any(list) => {
                let each: Option<Vec<OpSet>> = list.iter().map(possible_ops).collect();
                if let Some(each) = each {
                    let mut union = OpSet::default();
                    each.iter().for_each(|ops| union.extend(ops));
                    narrow(union);
                }
            }
            _ => {}
        }
    }
    possible
}

/// The kinds other than op that a pattern asks for.
fn possible_kinds(pattern: &Pattern) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for check in &pattern.checks {
        match check {
            Check::Kind(own) => kinds.extend(anchored_kinds(own)),
            Check::All(list) | Check::Any(list) => {
                kinds.extend(list.iter().flat_map(possible_kinds))
            }
            _ => {}
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
