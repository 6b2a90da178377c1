//! What is wrong with a rule file, and where.

use std::fmt;

use super::yaml::Place;

/// One mistake in a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong, what was expected, and what was probably meant.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some mistakes are about the file as a whole.
        if self.place.line == 0 {
            return write!(f, " {}", self.message);
        }
        write!(f, "{}:{}: {}", self.place.line, self.place.column, self.message)
    }
}

/// The candidate nearest to `word`, if one is near enough to be a slip of the pen.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate, limit), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, candidate)| (*distance, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// `; did you mean …?`, or the candidates if they are few.
pub fn hint(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates.iter().copied()) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None if candidates.is_empty() => String::new(),
        None if candidates.len() <= 12 => format!("; expected one of {}", list(candidates)),
        None => String::new(),
    }
}

/// `` `a`, `b` ``.
pub fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Edits between two words (insert, delete, replace, swap of neighbours), cut off above `limit`.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let replace = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_told_from_another_word() {
        let ops = ["softmax", "log_softmax", "conv", "matmul"];
        assert_eq!(nearest("sofmax", ops), Some("softmax"));
        assert_eq!(nearest("softmxa", ops), Some("softmax"));
        assert_eq!(nearest("cnov", ops), Some("conv"));
        assert_eq!(nearest("gelu", ops), None);
    }
}
