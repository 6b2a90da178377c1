//! Numbers, words and lists, and the tests of them.

use super::solve::{Bound, Solver};
use crate::graph::{Attr, Dim, NodeId, ValueId};
use crate::rules::schema::plan::Test;
use crate::rules::schema::yaml::Scalar;

/// What a test looks at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum {
    /// It is not there.
    Missing,
    /// It is there and not known before run time.
    Unknown,
    /// A number; truth values are 0 and 1.
    Number(f64),
    /// A word.
    Text(String),
    /// A list.
    List(Vec<Datum>),
}

impl Datum {
    fn is(&self, scalar: &Scalar) -> bool {
        match (self, scalar) {
            (Datum::Number(n), scalar) => scalar.number().is_some_and(|m| m == *n),
            (Datum::Text(text), Scalar::Text(word)) => text == word,
            _ => false,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Datum::Number(n) => Some(*n),
            _ => None,
        }
    }

    fn whole(&self) -> Option<u64> {
        let n = self.number()?;
        (n >= 0.0 && n.fract() == 0.0 && n < 1e18).then_some(n as u64)
    }
}

/// The prime factors of `n`, each once; none for 0 and 1. `n` beyond 2^40 gives itself: no extent of
/// a tensor is that large.
fn prime_factors(mut n: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    if n > 1 << 40 {
        return vec![n];
    }
    let mut p = 2;
    while p * p <= n {
        if n.is_multiple_of(p) {
            factors.push(p);
            while n.is_multiple_of(p) {
                n /= p;
            }
        }
        p += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

impl Solver<'_> {
    /// Whether a datum passes a test; binds it if the test says so.
    pub(super) fn test_datum(&mut self, test: &Test, datum: &Datum) -> bool {
        match (test.present, datum) {
            (Some(false), datum) => return *datum == Datum::Missing,
            (_, Datum::Missing) => return false,
            (_, Datum::Unknown) => return self.test_unknown(test),
            _ => {}
        }
        if test.is_list() && !matches!(datum, Datum::List(_)) {
            // One number given where a list is asked for stands for a list of one.
            return self.test_datum(test, &Datum::List(vec![datum.clone()]));
        }
        if !self.test_scalar(test, datum) {
            return false;
        }
        if let Datum::List(list) = datum
            && !self.test_list(test, list)
        {
            return false;
        }
        match test.bind {
            Some(slot) => self.bind(slot, Bound::Datum(datum.clone())),
            None => true,
        }
    }

    /// What is not known passes only a test that asks nothing of it.
    fn test_unknown(&mut self, test: &Test) -> bool {
        let nothing = Test { present: test.present, bind: test.bind, ..Test::default() };
        *test == nothing
            && test.bind.is_none_or(|slot| self.bind(slot, Bound::Datum(Datum::Unknown)))
    }

    fn test_scalar(&self, test: &Test, datum: &Datum) -> bool {
        if !test.one_of.is_empty() && !test.one_of.iter().any(|scalar| datum.is(scalar)) {
            return false;
        }
        if test.none_of.iter().any(|scalar| datum.is(scalar)) {
            return false;
        }
        let bounds = [
            (test.gt, (|n, m| n > m) as fn(f64, f64) -> bool),
            (test.ge, |n, m| n >= m),
            (test.lt, |n, m| n < m),
            (test.le, |n, m| n <= m),
        ];
        for (bound, holds) in bounds {
            if let Some(bound) = bound
                && !datum.number().is_some_and(|n| holds(n, bound))
            {
                return false;
            }
        }
        let whole = datum.whole();
        if let Some(n) = test.multiple_of
            && !whole.is_some_and(|whole| whole.is_multiple_of(n))
        {
            return false;
        }
        if let Some(n) = test.not_multiple_of
            && whole.is_none_or(|whole| whole.is_multiple_of(n))
        {
            return false;
        }
        if let Some(allowed) = &test.prime_factors
            && !whole.is_some_and(|n| prime_factors(n).iter().all(|p| allowed.contains(p)))
        {
            return false;
        }
        if let Some(known) = &test.prime_factor_beyond
            && !whole.is_some_and(|n| prime_factors(n).iter().any(|p| !known.contains(p)))
        {
            return false;
        }
        if let Some(regex) = &test.matches {
            let Datum::Text(text) = datum else { return false };
            return self.matches(regex, text);
        }
        true
    }

    fn test_list(&mut self, test: &Test, list: &[Datum]) -> bool {
        if let Some(wanted) = &test.list {
            let equal = wanted.len() == list.len()
                && wanted.iter().zip(list).all(|(scalar, datum)| datum.is(scalar));
            if !equal {
                return false;
            }
        }
        if let Some(len) = &test.len
            && !self.test_datum(len, &Datum::Number(list.len() as f64))
        {
            return false;
        }
        if let Some(any) = &test.any
            && !list.iter().any(|datum| self.test_datum(any, datum))
        {
            return false;
        }
        if let Some(every) = &test.every
            && !list.iter().all(|datum| self.test_datum(every, datum))
        {
            return false;
        }
        for (index, test) in &test.at {
            let at = if *index < 0 { list.len() as i64 + index } else { *index };
            let datum = usize::try_from(at).ok().and_then(|at| list.get(at));
            if !self.test_datum(test, datum.unwrap_or(&Datum::Missing)) {
                return false;
            }
        }
        true
    }

    /// An attribute as a datum.
    pub(super) fn attr_datum(&self, attr: Option<&Attr>) -> Datum {
        let names = &self.scope.around.program.names;
        match attr {
            None => Datum::Missing,
            Some(Attr::Int(n)) => Datum::Number(*n as f64),
            Some(Attr::Float(x)) => Datum::Number(*x),
            Some(Attr::Bool(b)) => Datum::Number(f64::from(u8::from(*b))),
            Some(Attr::Text(name)) => Datum::Text(names.get(*name).to_owned()),
            Some(Attr::DType(dtype)) => Datum::Text(dtype.name().to_owned()),
            Some(Attr::Ints(list)) => Datum::List(
                list.iter()
                    .map(|n| n.map_or(Datum::Unknown, |n| Datum::Number(n as f64)))
                    .collect(),
            ),
            Some(Attr::Floats(list)) => {
                Datum::List(list.iter().map(|x| Datum::Number(*x)).collect())
            }
            Some(Attr::Texts(list)) => Datum::List(
                list.iter().map(|name| Datum::Text(names.get(*name).to_owned())).collect(),
            ),
            Some(Attr::Symbol(_) | Attr::Dynamic) => Datum::Unknown,
        }
    }

    /// The dims of a value; `None` if its rank is not known.
    pub(super) fn dims(&self, value: ValueId) -> Option<&[Dim]> {
        let shape = self.scope.function.value(value).shape;
        self.scope.around.program.shapes.get(shape).dims()
    }

    /// Number of elements of a value, if static.
    pub(super) fn elements(&self, value: ValueId) -> Option<u64> {
        let shape = self.scope.function.value(value).shape;
        self.scope.around.program.shapes.get(shape).elements()
    }

    /// Bytes of a value, packed, if static.
    pub(super) fn bytes(&self, value: ValueId) -> Option<u64> {
        let dtype = self.scope.function.value(value).dtype;
        (dtype.bits() > 0).then(|| self.elements(value)).flatten().map(|n| dtype.bytes(n))
    }

    /// An attribute of a node by name.
    pub(super) fn attribute(&self, node: NodeId, name: &str) -> Datum {
        let attr = self
            .scope
            .around
            .program
            .names
            .find(name)
            .and_then(|name| self.scope.function.attribute(node, name));
        self.attr_datum(attr)
    }
}

/// A dim as a datum.
pub(super) fn dim_datum(dim: Option<Dim>) -> Datum {
    match dim {
        None => Datum::Missing,
        Some(Dim::Static(n)) => Datum::Number(n as f64),
        Some(Dim::Symbol(_) | Dim::Expr(_) | Dim::Unknown) => Datum::Unknown,
    }
}

/// A number that may not be known.
pub(super) fn known(number: Option<u64>) -> Datum {
    number.map_or(Datum::Unknown, |n| Datum::Number(n as f64))
}

#[cfg(test)]
mod tests {
    use super::prime_factors;

    #[test]
    fn prime_factors_are_listed_once_each() {
        assert_eq!(prime_factors(1), Vec::<u64>::new());
        assert_eq!(prime_factors(72), vec![2, 3]);
        assert_eq!(prime_factors(97), vec![97]);
        assert_eq!(prime_factors(10), vec![2, 5]);
    }
}
