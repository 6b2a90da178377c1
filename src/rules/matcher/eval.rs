//! Values of expressions. What is not known stays unknown through every operator, except where one
//! side decides (`false and …`).

use super::datum::{Datum, dim_datum, known};
use super::solve::{Bound, Solver, Subject};
use crate::graph::{NodeId, NodeKind};
use crate::rules::schema::expr::{Binary, Call, Expr, Field, Slot, Special};
use crate::rules::schema::plan::PathTest;

impl Solver<'_> {
    /// Whether `where` and paths hold of what is bound.
    pub(super) fn accept(&mut self) -> bool {
        let plan = self.plan;
        plan.wheres.iter().all(|expr| self.holds(expr))
            && plan.paths.iter().all(|path| self.path_holds(path))
    }

    /// Whether an expression is known to hold.
    pub(super) fn holds(&self, expr: &Expr) -> bool {
        truth(&self.eval(expr)) == Some(true)
    }

    fn path_holds(&mut self, path: &PathTest) -> bool {
        match (self.subject(path.from), self.subject(path.to)) {
            (Some(from), Some(to)) => self.path_exists(path, from, to) == path.exists,
            _ => false,
        }
    }

    /// The node or value in a slot.
    pub(super) fn subject(&self, slot: Slot) -> Option<Subject> {
        match self.env.get(usize::from(slot))?.as_ref()? {
            Bound::Item(subject) | Bound::Items(subject, _) => Some(*subject),
            Bound::Datum(_) => None,
        }
    }

    /// The nodes that the match has bound, in the order of their slots.
    pub(super) fn bound_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.env.iter().flatten().filter_map(|bound| match bound {
            Bound::Item(subject) | Bound::Items(subject, _) => Some(subject.node),
            Bound::Datum(_) => None,
        })
    }

    /// Every node in a slot.
    pub(super) fn nodes(&self, slot: Slot) -> Vec<NodeId> {
        match self.env.get(usize::from(slot)).and_then(Option::as_ref) {
            Some(Bound::Item(subject)) => vec![subject.node],
            Some(Bound::Items(_, nodes)) => nodes.clone(),
            Some(Bound::Datum(_)) | None => Vec::new(),
        }
    }

    /// The value of an expression.
    pub(super) fn eval(&self, expr: &Expr) -> Datum {
        match expr {
            Expr::Number(n) => Datum::Number(*n),
            Expr::Text(text) => Datum::Text(text.clone()),
            Expr::Bool(b) => Datum::Number(f64::from(u8::from(*b))),
            Expr::Slot(slot) => match self.env.get(usize::from(*slot)).and_then(Option::as_ref) {
                Some(Bound::Datum(datum)) => datum.clone(),
                Some(Bound::Item(subject) | Bound::Items(subject, _)) => {
                    Datum::Text(self.shown_name(subject.node))
                }
                None => Datum::Missing,
            },
            Expr::Field(slot, field) => {
                self.subject(*slot).map_or(Datum::Missing, |subject| self.field(subject, field))
            }
            Expr::Special(special) => self.special(*special),
            Expr::Call(call, args) => self.call(*call, args),
            Expr::Neg(inner) => {
                number(&self.eval(inner)).map_or(Datum::Unknown, |n| Datum::Number(-n))
            }
            Expr::Not(inner) => boolean(truth(&self.eval(inner)).map(|b| !b)),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::In(inner, list) => {
                let inner = self.eval(inner);
                let answers: Vec<Option<bool>> =
                    list.iter().map(|item| equal(&inner, &self.eval(item))).collect();
                if answers.contains(&Some(true)) {
                    boolean(Some(true))
                } else {
                    boolean(answers.iter().all(Option::is_some).then_some(false))
                }
            }
        }
    }

    fn binary(&self, op: Binary, a: &Expr, b: &Expr) -> Datum {
        let a = self.eval(a);
        match (op, truth(&a)) {
            (Binary::And, Some(false)) => return boolean(Some(false)),
            (Binary::Or, Some(true)) => return boolean(Some(true)),
            _ => {}
        }
        let b = self.eval(b);
        let numbers = || Some((number(&a)?, number(&b)?));
        let compare = |holds: fn(f64, f64) -> bool| boolean(numbers().map(|(a, b)| holds(a, b)));
        let reckon = |f: fn(f64, f64) -> f64| match numbers().map(|(a, b)| f(a, b)) {
            Some(n) if n.is_finite() => Datum::Number(n),
            _ => Datum::Unknown,
        };
        match op {
            Binary::And => match (truth(&a), truth(&b)) {
                (_, Some(false)) => boolean(Some(false)),
                (Some(true), b) => boolean(b),
                _ => Datum::Unknown,
            },
            Binary::Or => match (truth(&a), truth(&b)) {
                (_, Some(true)) => boolean(Some(true)),
                (Some(false), b) => boolean(b),
                _ => Datum::Unknown,
            },
            Binary::Eq => boolean(equal(&a, &b)),
            Binary::Ne => boolean(equal(&a, &b).map(|equal| !equal)),
            Binary::Lt => compare(|a, b| a < b),
            Binary::Le => compare(|a, b| a <= b),
            Binary::Gt => compare(|a, b| a > b),
            Binary::Ge => compare(|a, b| a >= b),
            Binary::Add => reckon(|a, b| a + b),
            Binary::Sub => reckon(|a, b| a - b),
            Binary::Mul => reckon(|a, b| a * b),
            Binary::Div => reckon(|a, b| a / b),
            Binary::FloorDiv => reckon(|a, b| (a / b).floor()),
            Binary::Rem => reckon(f64::rem_euclid),
        }
    }

    fn field(&self, subject: Subject, field: &Field) -> Datum {
        let node = self.scope.function.node(subject.node);
        let text = |text: &str| Datum::Text(text.to_owned());
        match field {
            Field::Op => text(match node.kind {
                NodeKind::Op => node.op.name(),
                NodeKind::Input => "input",
                NodeKind::Output => "output",
                NodeKind::State => "state",
                NodeKind::Constant(_) => "constant",
            }),
            Field::Name => Datum::Text(self.shown_name(subject.node)),
            Field::Spelling => text(self.text(node.spelling)),
            Field::Module => text(self.module(subject.node)),
            Field::Attr(name) => self.attribute(subject.node, name),
            Field::Fqn => match node.kind {
                NodeKind::Constant(id) => {
                    text(self.text(self.scope.around.program.constant(id).fqn))
                }
                _ => Datum::Missing,
            },
            Field::Rank
            | Field::Dtype
            | Field::Bytes
            | Field::Elements
            | Field::Shape
            | Field::Value => {
                let Some(value) = subject.value else { return Datum::Missing };
                match field {
                    Field::Rank => known(self.dims(value).map(|dims| dims.len() as u64)),
                    Field::Dtype => text(self.scope.function.value(value).dtype.name()),
                    Field::Bytes => known(self.bytes(value)),
                    Field::Elements => known(self.elements(value)),
                    Field::Shape => self.dims(value).map_or(Datum::Unknown, |dims| {
                        Datum::List(dims.iter().map(|dim| dim_datum(Some(*dim))).collect())
                    }),
                    _ => self
                        .scope
                        .around
                        .facts
                        .range_of(self.scope.id, self.scope.base(value))
                        .and_then(|range| range.point())
                        .map_or(Datum::Unknown, Datum::Number),
                }
            }
        }
    }

    fn special(&self, special: Special) -> Datum {
        let scope = self.scope;
        let (function, program) = (scope.function, scope.around.program);
        let count = |n: usize| Datum::Number(n as f64);
        let text = |text: &str| Datum::Text(text.to_owned());
        let target = &scope.around.target;
        match special {
            Special::FunctionName => text(self.text(function.name)),
            Special::FunctionOps => {
                count(function.node_ids().filter(|&node| function.is_work(node)).count())
            }
            Special::FunctionInputs => count(function.inputs().count()),
            Special::FunctionOutputs => count(function.outputs().count()),
            Special::FunctionStates => count(function.states().count()),
            Special::FunctionWeightBytes => known(Some(super::whole::function_weight_bytes(scope))),
            Special::FunctionRegions => {
                known(scope.around.placement.and_then(|p| p.regions(scope.id)).map(u64::from))
            }
            Special::FunctionCuts => match scope.around.placement {
                Some(placement) => match placement.cuts(scope.id) {
                    cuts if cuts.is_empty() => Datum::Unknown,
                    cuts => Datum::Text(cuts),
                },
                None => Datum::Unknown,
            },
            Special::ProgramProducer => text(&program.producer),
            Special::ProgramFormat => text(program.format.name()),
            Special::ProgramWeightBytes => known(Some(super::whole::program_weight_bytes(program))),
            Special::ProgramEntries => count(super::whole::entries(program).count()),
            Special::TargetUnit => text(target.unit.name()),
            Special::TargetRuntime => text(target.runtime.name()),
            Special::TargetChip => text(target.chip.name()),
            Special::TargetGeneration => target
                .chip
                .name()
                .trim_start_matches('h')
                .parse()
                .map_or(Datum::Unknown, Datum::Number),
            Special::TargetOs => Datum::Number(f64::from(target.os.major)),
            Special::MaxRegions => known(scope.around.limits.max_regions.map(u64::from)),
            Special::GroupCount => known(self.group_count.map(|n| n as u64)),
        }
    }

    fn call(&self, call: Call, args: &[Expr]) -> Datum {
        let subject = |at: usize| match args.get(at) {
            Some(Expr::Slot(slot)) => self.subject(*slot),
            _ => None,
        };
        let value = |at: usize| subject(at).and_then(|subject| subject.value);
        let arg = |at: usize| args.get(at).map_or(Datum::Missing, |arg| self.eval(arg));
        let argument = |at: usize| number(&arg(at));
        let computed = |n: Option<f64>| n.map_or(Datum::Unknown, Datum::Number);
        match call {
            Call::Dim => match (value(0), argument(1)) {
                (Some(value), Some(index)) => {
                    dim_datum(index_of(self.dims(value).unwrap_or(&[]), index).copied())
                }
                _ => Datum::Unknown,
            },
            Call::Rank => known(value(0).and_then(|v| self.dims(v)).map(|dims| dims.len() as u64)),
            Call::Bytes => known(value(0).and_then(|v| self.bytes(v))),
            Call::Elements => known(value(0).and_then(|v| self.elements(v))),
            Call::Itemsize => {
                known(value(0).map(|v| self.scope.function.value(v).dtype.bits().div_ceil(8)))
            }
            Call::PaddedBytes => match (value(0), argument(1)) {
                (Some(value), Some(unit)) if unit >= 1.0 => {
                    known(self.padded_bytes(value, unit as u64))
                }
                _ => Datum::Unknown,
            },
            Call::SmallestDim => {
                known(value(0).and_then(|v| self.static_dims(v)?.into_iter().min()))
            }
            Call::LargestDim => {
                known(value(0).and_then(|v| self.static_dims(v)?.into_iter().max()))
            }
            Call::Before => boolean(match (subject(0), subject(1)) {
                (Some(a), Some(b)) => Some(a.node < b.node),
                _ => None,
            }),
            Call::Same => boolean(match (subject(0), subject(1)) {
                (Some(a), Some(b)) => Some(self.same_item(a, b)),
                _ => None,
            }),
            Call::Uses => known(value(0).map(|v| self.scope.function.uses(v).len() as u64)),
            Call::Len => match args.first() {
                Some(Expr::Slot(slot)) if self.subject(*slot).is_some() => {
                    known(Some(self.nodes(*slot).len() as u64))
                }
                _ => match arg(0) {
                    Datum::List(list) => known(Some(list.len() as u64)),
                    _ => Datum::Unknown,
                },
            },
            Call::At => match (arg(0), argument(1)) {
                (Datum::List(list), Some(index)) => {
                    index_of(&list, index).cloned().unwrap_or(Datum::Missing)
                }
                _ => Datum::Unknown,
            },
            Call::Product => match arg(0) {
                Datum::List(list) => computed(
                    list.iter().try_fold(1.0, |product, item| Some(product * number(item)?)),
                ),
                _ => Datum::Unknown,
            },
            Call::Min => computed(self.fold(args, f64::min)),
            Call::Max => computed(self.fold(args, f64::max)),
            Call::Abs => computed(argument(0).map(f64::abs)),
            Call::Ceil => computed(argument(0).map(f64::ceil)),
            Call::Floor => computed(argument(0).map(f64::floor)),
            Call::Otherwise => match arg(0) {
                Datum::Missing | Datum::Unknown => arg(1),
                known => known,
            },
            Call::Known => {
                let bound = match args.first() {
                    Some(Expr::Slot(slot)) if self.subject(*slot).is_some() => true,
                    _ => !matches!(arg(0), Datum::Missing | Datum::Unknown),
                };
                boolean(Some(bound))
            }
            Call::Reason | Call::Alternative | Call::Evidence => {
                let (Some(placement), Some(subject)) = (self.scope.around.placement, subject(0))
                else {
                    return Datum::Unknown;
                };
                let verdict = placement.eligible(self.scope.id, subject.node);
                let words = match call {
                    Call::Reason => verdict.reason,
                    Call::Alternative => verdict.alternative,
                    _ => verdict.evidence,
                };
                if words.is_empty() { Datum::Missing } else { Datum::Text(words.to_owned()) }
            }
            Call::RegionsAdded => {
                let nodes = match args.first() {
                    Some(Expr::Slot(slot)) => self.nodes(*slot),
                    _ => Vec::new(),
                };
                known(
                    self.scope
                        .around
                        .placement
                        .and_then(|p| p.regions_added(self.scope.id, &nodes))
                        .map(u64::from),
                )
            }
        }
    }

    fn fold(&self, args: &[Expr], f: fn(f64, f64) -> f64) -> Option<f64> {
        args.iter().map(|arg| number(&self.eval(arg))).reduce(|a, b| Some(f(a?, b?))).flatten()
    }

    fn static_dims(&self, value: crate::graph::ValueId) -> Option<Vec<u64>> {
        self.dims(value)?.iter().map(|dim| dim.value()).collect()
    }

    /// Bytes when every row of the last dim is rounded up to a multiple of `unit` bytes.
    fn padded_bytes(&self, value: crate::graph::ValueId, unit: u64) -> Option<u64> {
        let dims = self.static_dims(value)?;
        let dtype = self.scope.function.value(value).dtype;
        let (last, outer) = dims.split_last()?;
        let row = dtype.bytes(*last).checked_next_multiple_of(unit)?;
        outer.iter().try_fold(row, |bytes, dim| bytes.checked_mul(*dim))
    }

    /// A node's name as viewers show it.
    pub(super) fn shown_name(&self, node: NodeId) -> String {
        let weight = self.scope.function.node(node);
        if weight.name.is_empty() {
            format!("{}#{}", weight.op, node.0)
        } else {
            self.text(weight.name).to_owned()
        }
    }
}

fn index_of<T>(list: &[T], index: f64) -> Option<&T> {
    let at = if index < 0.0 { list.len() as f64 + index } else { index };
    (at >= 0.0).then(|| list.get(at as usize)).flatten()
}

fn number(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Number(n) => Some(*n),
        _ => None,
    }
}

fn truth(datum: &Datum) -> Option<bool> {
    number(datum).map(|n| n != 0.0)
}

fn boolean(b: Option<bool>) -> Datum {
    b.map_or(Datum::Unknown, |b| Datum::Number(f64::from(u8::from(b))))
}

fn equal(a: &Datum, b: &Datum) -> Option<bool> {
    match (a, b) {
        (Datum::Number(a), Datum::Number(b)) => Some(a == b),
        (Datum::Text(a), Datum::Text(b)) => Some(a == b),
        (Datum::List(a), Datum::List(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            let each: Vec<Option<bool>> = a.iter().zip(b).map(|(a, b)| equal(a, b)).collect();
            if each.contains(&Some(false)) {
                Some(false)
            } else {
                each.iter().all(Option::is_some).then_some(true)
            }
        }
        (Datum::Missing | Datum::Unknown, _) | (_, Datum::Missing | Datum::Unknown) => None,
        _ => Some(false),
    }
}
