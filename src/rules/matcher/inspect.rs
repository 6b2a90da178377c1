//! Checks that leave no choice: what a node or value is by itself.

use super::datum::{Datum, dim_datum, known};
use super::solve::{Solver, Subject};
use crate::graph::{ConstantOrigin, Dim, NodeFlags, NodeKind, ValueId};
use crate::rules::schema::plan::{Check, ConstantTest, Test};
use crate::rules::schema::words::{Kind, Origin};

impl Solver<'_> {
    /// A check that leaves no choice.
    pub(super) fn plain(&mut self, check: &Check, subject: Subject) -> bool {
        let function = self.scope.function;
        let node = function.node(subject.node);
        match check {
            Check::Kind(kinds) => kinds.contains(&kind_of(node.kind)),
            Check::Dtype(set) => subject
                .value
                .is_some_and(|value| set.0 & (1 << (function.value(value).dtype as u32)) != 0),
            Check::Rank(_)
            | Check::Dim(..)
            | Check::AnyDim(_)
            | Check::EveryDim(_)
            | Check::Bytes(_)
            | Check::Elements(_)
            | Check::Dynamic(_)
            | Check::DataDependent(_)
            | Check::Strided(_) => {
                subject.value.is_some_and(|value| self.shape_check(check, value))
            }
            Check::DependsOnInput(wanted) => {
                subject.value.is_some_and(|value| self.scope.varies(value) == *wanted)
            }
            Check::Mutation(wanted) => node.flags.contains(NodeFlags::MUTATION) == *wanted,
            Check::Implicit(wanted) => node.flags.contains(NodeFlags::IMPLICIT) == *wanted,
            Check::Attr(name, test) => {
                let attr = self.names[usize::from(*name)]
                    .and_then(|name| function.attribute(subject.node, name));
                let datum = self.attr_datum(attr);
                self.test_datum(test, &datum)
            }
            Check::Spelling(regex) => self.matches(regex, self.text(node.spelling)),
            Check::Name(regex) => self.matches(regex, self.text(node.name)),
            Check::Module(regex) => self.matches(regex, self.module(subject.node)),
            Check::Class(regex) => self.class_matches(regex, subject.node),
            Check::Consumers(test) => {
                let users = self.users(subject, None).len() as f64;
                self.test_datum(test, &Datum::Number(users))
            }
            Check::Constant(test) => self.constant(test, subject),
            Check::Eligible(words) => self.scope.around.placement.is_some_and(|placement| {
                words.contains(&placement.eligible(self.scope.id, subject.node).eligible)
            }),
            Check::Position(words) => self.scope.around.placement.is_some_and(|placement| {
                placement
                    .position(self.scope.id, subject.node)
                    .is_some_and(|position| words.contains(&position))
            }),
            Check::NoOperand(name) => self.names[usize::from(*name)]
                .is_none_or(|name| function.operand(subject.node, name).is_none()),
            Check::Not(pattern) => !self.fits(pattern, subject),
            Check::CountOperands(pattern, test) => {
                let values: Vec<ValueId> =
                    function.operands(subject.node).iter().map(|o| o.value).collect();
                let count = values
                    .into_iter()
                    .filter(|&value| {
                        let subject = self.through_views(value, pattern.ops.as_ref());
                        self.fits(pattern, subject)
                    })
                    .count();
                self.test_datum(test, &Datum::Number(count as f64))
            }
            Check::CountConsumers(pattern, test) => {
                let users = self.users(subject, pattern.ops.as_ref());
                let count = users
                    .into_iter()
                    .filter(|&user| self.fits(pattern, self.at_node(user)))
                    .count();
                self.test_datum(test, &Datum::Number(count as f64))
            }
            Check::EveryOperand(pattern) => {
                let values: Vec<ValueId> =
                    function.operands(subject.node).iter().map(|o| o.value).collect();
                !values.is_empty()
                    && values.into_iter().all(|value| {
                        let subject = self.through_views(value, pattern.ops.as_ref());
                        self.fits(pattern, subject)
                    })
            }
            Check::EveryConsumer(pattern) => {
                let users = self.users(subject, pattern.ops.as_ref());
                !users.is_empty()
                    && users.into_iter().all(|user| self.fits(pattern, self.at_node(user)))
            }
            // Checks that leave a choice are taken apart by `checks`.
            Check::All(_)
            | Check::Result(_)
            | Check::ProducedBy(_)
            | Check::Operand(..)
            | Check::OptionalOperand(..)
            | Check::Commutative(_)
            | Check::AnyOperand(_)
            | Check::Consumer(_)
            | Check::Any(_)
            | Check::DerivesFrom(_)
            | Check::Reaches(_)
            | Check::InFact(_) => false,
        }
    }

    fn shape_check(&mut self, check: &Check, value: ValueId) -> bool {
        let dims: Option<Vec<Dim>> = self.dims(value).map(<[Dim]>::to_vec);
        match check {
            Check::Rank(test) => {
                let rank = known(dims.map(|dims| dims.len() as u64));
                self.test_datum(test, &rank)
            }
            Check::Dim(index, test) => {
                let Some(dims) = dims else { return false };
                let at = if *index < 0 { dims.len() as i64 + index } else { *index };
                let dim = usize::try_from(at).ok().and_then(|at| dims.get(at).copied());
                self.test_datum(test, &dim_datum(dim))
            }
            Check::AnyDim(test) => dims.is_some_and(|dims| {
                dims.into_iter().any(|d| self.test_datum(test, &dim_datum(Some(d))))
            }),
            Check::EveryDim(test) => dims.is_some_and(|dims| {
                dims.into_iter().all(|d| self.test_datum(test, &dim_datum(Some(d))))
            }),
            Check::Bytes(test) => {
                let bytes = known(self.bytes(value));
                self.test_datum(test, &bytes)
            }
            Check::Elements(test) => {
                let elements = known(self.elements(value));
                self.test_datum(test, &elements)
            }
            Check::Dynamic(wanted) => dims.is_some_and(|dims| {
                dims.iter().any(|dim| matches!(dim, Dim::Symbol(_) | Dim::Expr(_))) == *wanted
            }),
            Check::DataDependent(wanted) => {
                let shapes = &self.scope.around.program.shapes;
                let depends = |dim: &Dim| {
                    shapes
                        .symbols_of(*dim)
                        .into_iter()
                        .any(|id| shapes.symbol(id).is_some_and(|symbol| symbol.data_dependent))
                };
                dims.is_some_and(|dims| dims.iter().any(depends) == *wanted)
            }
            Check::Strided(wanted) => self.scope.function.value(value).strides.is_some() == *wanted,
            _ => false,
        }
    }

    fn constant(&mut self, test: &ConstantTest, subject: Subject) -> bool {
        let Some(value) = subject.value.map(|value| self.scope.base(value)) else { return false };
        let function = self.scope.function;
        let producer = function.producer(value);
        let node = function.node(producer);
        let (origin, fqn) = match node.kind {
            NodeKind::Constant(id) => {
                let constant = self.scope.around.program.constant(id);
                (origin_of(constant.origin), self.text(constant.fqn))
            }
            NodeKind::Op if self.scope.is_constant_work(producer) => (Origin::Tensor, ""),
            _ => return false,
        };
        if !test.origin.is_empty() && !test.origin.contains(&origin) {
            return false;
        }
        if let Some(regex) = &test.fqn
            && !self.matches(regex, fqn)
        {
            return false;
        }
        let numbers = ConstantTest { origin: Vec::new(), fqn: None, ..test.clone() };
        if numbers == ConstantTest::default() {
            return true;
        }
        let Some(range) = self.scope.around.facts.range_of(self.scope.id, value) else {
            return false;
        };
        let holds = |number: f64| {
            if number.is_nan() {
                range.nan
            } else if number == f64::INFINITY {
                range.pos_inf
            } else if number == f64::NEG_INFINITY {
                range.neg_inf
            } else {
                range.has_finite() && (range.min == number || range.max == number)
            }
        };
        if !test.contains.iter().any(|&number| holds(number)) && !test.contains.is_empty() {
            return false;
        }
        let finite = range.has_finite();
        let number = |number: Option<f64>| number.map_or(Datum::Missing, Datum::Number);
        let parts: [(&Option<Test>, Option<f64>); 4] = [
            (&test.value, range.point()),
            (&test.min, finite.then_some(range.min)),
            (&test.max, finite.then_some(range.max)),
            (&test.abs_max, finite.then(|| range.min.abs().max(range.max.abs()))),
        ];
        parts.into_iter().all(|(test, found)| {
            test.as_ref().is_none_or(|test| self.test_datum(test, &number(found)))
        })
    }
}

fn kind_of(kind: NodeKind) -> Kind {
    match kind {
        NodeKind::Op => Kind::Op,
        NodeKind::Input => Kind::Input,
        NodeKind::Output => Kind::Output,
        NodeKind::State => Kind::State,
        NodeKind::Constant(_) => Kind::Constant,
    }
}

fn origin_of(origin: ConstantOrigin) -> Origin {
    match origin {
        ConstantOrigin::Parameter => Origin::Parameter,
        ConstantOrigin::Buffer => Origin::Buffer,
        ConstantOrigin::Tensor => Origin::Tensor,
        ConstantOrigin::Literal => Origin::Literal,
        ConstantOrigin::Folded => Origin::Folded,
    }
}
