//! What numbers a tensor may hold: a range of finite ones, and whether −inf, +inf, NaN are among them.

use crate::graph::{DType, ValueSummary};

/// Largest finite f16.
pub(crate) const F16_MAX: f64 = 65504.0;
/// From here on a number rounds to infinity in f16 (halfway between 65504 and the next step).
pub(crate) const F16_ROUNDS_TO_INFINITY: f64 = 65520.0;

/// What numbers may occur. No finite number at all when `min > max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Smallest finite number.
    pub min: f64,
    /// Largest finite number.
    pub max: f64,
    /// −inf may occur.
    pub neg_inf: bool,
    /// +inf may occur.
    pub pos_inf: bool,
    /// NaN may occur.
    pub nan: bool,
}

impl Range {
    /// Nothing occurs: the start of a hull.
    pub(crate) const NONE: Range = Range {
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        neg_inf: false,
        pos_inf: false,
        nan: false,
    };

    /// Finite numbers from `min` to `max`.
    pub(crate) fn new(min: f64, max: f64) -> Range {
        Range { min, max, ..Range::NONE }
    }

    /// One number, finite or not.
    pub(crate) fn of(value: f64) -> Range {
        let mut range = Range::NONE;
        range.add(value);
        range
    }

    fn add(&mut self, value: f64) {
        if value.is_nan() {
            self.nan = true;
        } else if value == f64::INFINITY {
            self.pos_inf = true;
        } else if value == f64::NEG_INFINITY {
            self.neg_inf = true;
        } else {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    /// What a summary says.
    pub(crate) fn of_summary(summary: &ValueSummary) -> Range {
        Range {
            min: summary.min.unwrap_or(f64::INFINITY),
            max: summary.max.unwrap_or(f64::NEG_INFINITY),
            neg_inf: summary.negative_infinities > 0,
            pos_inf: summary.positive_infinities > 0,
            nan: summary.nans > 0,
        }
    }

    /// Whether a finite number may occur.
    pub fn has_finite(&self) -> bool {
        self.min <= self.max
    }

    /// The one number that occurs, finite or infinite.
    pub fn point(&self) -> Option<f64> {
        match (self.has_finite(), self.neg_inf, self.pos_inf, self.nan) {
            (true, false, false, false) if self.min == self.max => Some(self.min),
            (false, true, false, false) => Some(f64::NEG_INFINITY),
            (false, false, true, false) => Some(f64::INFINITY),
            _ => None,
        }
    }

    /// Whatever occurs in either.
    pub(crate) fn hull(self, other: Range) -> Range {
        Range {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            neg_inf: self.neg_inf || other.neg_inf,
            pos_inf: self.pos_inf || other.pos_inf,
            nan: self.nan || other.nan,
        }
    }

    pub(crate) fn negate(self) -> Range {
        Range {
            min: -self.max,
            max: -self.min,
            neg_inf: self.pos_inf,
            pos_inf: self.neg_inf,
            nan: self.nan,
        }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        let mut sum = Range {
            neg_inf: self.neg_inf || other.neg_inf,
            pos_inf: self.pos_inf || other.pos_inf,
            nan: self.nan
                || other.nan
                || (self.neg_inf && other.pos_inf)
                || (self.pos_inf && other.neg_inf),
            ..Range::NONE
        };
        if self.has_finite() && other.has_finite() {
            sum.add(self.min + other.min);
            sum.add(self.max + other.max);
        }
        sum
    }

    pub(crate) fn times(self, other: Range) -> Range {
        let mut product = Range { nan: self.nan || other.nan, ..Range::NONE };
        for a in self.corners() {
            for b in other.corners() {
                product.add(a * b);
            }
        }
        // A zero inside a range meets an infinity though no corner is zero.
        let infinite = |r: Range| r.neg_inf || r.pos_inf;
        let has_zero = |r: Range| r.min <= 0.0 && r.max >= 0.0;
        product.nan |= (infinite(self) && has_zero(other)) || (infinite(other) && has_zero(self));
        product
    }

    fn corners(self) -> impl Iterator<Item = f64> {
        let finite = self.has_finite();
        [
            finite.then_some(self.min),
            finite.then_some(self.max),
            self.neg_inf.then_some(f64::NEG_INFINITY),
            self.pos_inf.then_some(f64::INFINITY),
        ]
        .into_iter()
        .flatten()
    }

    /// `1 / self`, if zero is not among its numbers.
    pub(crate) fn reciprocal(self) -> Option<Range> {
        if self.min <= 0.0 && self.max >= 0.0 {
            return None;
        }
        let mut inverse = Range { nan: self.nan, ..Range::NONE };
        self.corners().for_each(|x| inverse.add(1.0 / x));
        Some(inverse)
    }

    /// Applies a function that never falls (or never rises) to every number.
    pub(crate) fn monotone(self, f: impl Fn(f64) -> f64) -> Range {
        let mut image = Range { nan: self.nan, ..Range::NONE };
        self.corners().for_each(|x| image.add(f(x)));
        image
    }

    pub(crate) fn lower_of(self, other: Range) -> Range {
        let mut low = Range { nan: self.nan || other.nan, ..Range::NONE };
        for a in self.corners() {
            for b in other.corners() {
                low.add(a.min(b));
            }
        }
        low
    }

    /// What is left after rounding to `dtype`: f16 turns what is beyond 65504 into infinities.
    pub(crate) fn narrowed(self, dtype: DType) -> Range {
        match dtype {
            DType::F16 => {
                let mut narrow = self;
                if self.has_finite() {
                    if self.min <= -F16_ROUNDS_TO_INFINITY {
                        narrow.neg_inf = true;
                    }
                    if self.max >= F16_ROUNDS_TO_INFINITY {
                        narrow.pos_inf = true;
                    }
                    if self.max <= -F16_ROUNDS_TO_INFINITY || self.min >= F16_ROUNDS_TO_INFINITY {
                        narrow.min = f64::INFINITY;
                        narrow.max = f64::NEG_INFINITY;
                    } else {
                        narrow.min = self.min.clamp(-F16_MAX, F16_MAX);
                        narrow.max = self.max.clamp(-F16_MAX, F16_MAX);
                    }
                }
                narrow
            }
            DType::Bool => {
                let zero = self.min <= 0.0 && self.max >= 0.0;
                let only_zero = self.point() == Some(0.0);
                match (zero, only_zero) {
                    (_, true) => Range::of(0.0),
                    (true, false) => Range::new(0.0, 1.0),
                    (false, false) => Range::of(1.0),
                }
            }
            _ if dtype.is_int() => {
                Range { min: self.min.trunc(), max: self.max.trunc(), ..Range::NONE }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn two_masks_that_fit_sum_to_one_that_does_not() {
        let mask = Range::new(-40000.0, 0.0);
        let sum = mask.plus(mask).narrowed(DType::F16);
        assert!(sum.neg_inf);
        assert_eq!((sum.min, sum.max), (-65504.0, 0.0));
        assert!(!mask.narrowed(DType::F16).neg_inf);
        assert!(!mask.plus(mask).narrowed(DType::F32).neg_inf);
    }

    #[test]
    fn zero_times_infinity_is_nan() {
        let product = Range::of(f64::NEG_INFINITY).times(Range::new(0.0, 1.0));
        assert!(product.nan && product.neg_inf);
        let product = Range::of(f64::NEG_INFINITY).times(Range::new(-1.0, 1.0));
        assert!(product.nan && product.neg_inf && product.pos_inf);
    }

    #[test]
    fn the_lowest_f16_is_finite_and_the_f32_one_is_not() {
        assert_eq!(Range::of(-65504.0).narrowed(DType::F16).point(), Some(-65504.0));
        let low = Range::of(f64::from(f32::MIN)).narrowed(DType::F16);
        assert_eq!(low.point(), Some(f64::NEG_INFINITY));
    }
}
