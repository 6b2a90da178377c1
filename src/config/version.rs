//! `required-version`: which versions of anelint may be used.

use std::fmt;

/// A version, `major.minor.patch`; what follows a hyphen does not count.
type Version = [u64; 3];

/// Comparisons that must all hold: `>=0.1, <0.2`. A bare version stands for all that begin with it:
/// `0.1` for `0.1.0` and `0.1.7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    text: String,
    comparisons: Vec<(Comparison, Version)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The first so many parts are equal.
    Prefix(usize),
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Reads a version with one to three parts; gives how many there were.
fn version(text: &str) -> Option<(Version, usize)> {
    let text = text.trim().split(['-', '+']).next()?;
    let mut version = [0; 3];
    let mut count = 0;
    for part in text.split('.') {
        *version.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    Some((version, count))
}

impl Requirement {
    /// Reads comparisons, separated by commas.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Requirement, String> {
        let mut comparisons = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let digits = part.trim_start_matches(['<', '>', '=']);
            let (own, count) = version(digits).ok_or_else(|| {
                "expected versions such as `0.1`, `==0.1.0` or `>=0.1, <0.2`".to_owned()
            })?;
            let comparison = match part.strip_suffix(digits).unwrap_or("") {
                "" | "=" | "==" => Comparison::Prefix(count),
                "<" => Comparison::Less,
                "<=" => Comparison::LessOrEqual,
                ">" => Comparison::Greater,
                ">=" => Comparison::GreaterOrEqual,
                other => return Err(format!("`{other}`: expected one of ==, <, <=, >, >=")),
            };
            comparisons.push((comparison, own));
        }
        Ok(Requirement { text: text.to_owned(), comparisons })
    }

    /// Whether a version will do.
    pub fn allows(&self, own: &str) -> bool {
        let Some((own, _)) = version(own) else { return false };
        self.comparisons.iter().all(|(comparison, other)| match comparison {
            Comparison::Prefix(count) => own.get(..*count) == other.get(..*count),
            Comparison::Less => own < *other,
            Comparison::LessOrEqual => own <= *other,
            Comparison::Greater => own > *other,
            Comparison::GreaterOrEqual => own >= *other,
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn all_comparisons_must_hold() {
        let allows = |text: &str, own: &str| Requirement::parse(text).unwrap().allows(own);
        assert!(allows("0.1", "0.1.7"));
        assert!(!allows("0.1", "0.10.0"));
        assert!(!allows("==0.1.0", "0.1.1"));
        assert!(allows(">=0.1, <0.2", "0.1.9"));
        assert!(!allows(">=0.1, <0.2", "0.2.0"));
        assert!(allows(">0.1.0, <=1", "1.0.0"));
        assert!(allows("0.1", "0.1.0-rc.1"));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for wrong in ["", "soon", ">=", "1.2.3.4", "=>1", "~1.0"] {
            assert!(Requirement::parse(wrong).is_err(), "{wrong}");
        }
    }
}
