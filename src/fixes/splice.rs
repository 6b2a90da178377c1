//! Spans of a text replaced.

use std::ops::Range;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Splice {
    /// First byte replaced.
    pub start: usize,
    /// One past the last; equal to `start` for text that is put in.
    pub end: usize,
    /// What takes their place.
    pub text: String,
}

impl Splice {
    /// The bytes replaced.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Whether both cannot be made: they share a byte, or both put text into one place, or one puts
    /// text at the edge of what the other replaces, where nothing says which comes first.
    pub fn overlaps(&self, other: &Splice) -> bool {
        if self.start == self.end || other.start == other.end {
            return self.start <= other.end && other.start <= self.end;
        }
        self.start < other.end && other.start < self.end
    }
}

/// Why replacements cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// A span ends before it starts, lies outside the text or cuts a character.
    #[error("bytes {0} to {1} are no part of the text")]
    NoSpan(usize, usize),
    /// Two overlap.
    #[error("two edits overlap at byte {0}")]
    Overlap(usize),
}

/// The text with its spans replaced; all else is as it was.
///
/// # Errors
/// [`SpliceError`]; nothing is replaced then.
pub fn splice(text: &str, edits: &[Splice]) -> Result<String, SpliceError> {
    let mut ordered: Vec<&Splice> = edits.iter().collect();
    ordered.sort();
    ordered.dedup();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut previous: Option<&Splice> = None;
    for edit in ordered {
        if edit.end < edit.start || text.get(edit.range()).is_none() {
            return Err(SpliceError::NoSpan(edit.start, edit.end));
        }
        if previous.is_some_and(|previous| previous.overlaps(edit)) {
            return Err(SpliceError::Overlap(edit.start));
        }
        out.push_str(text.get(at..edit.start).ok_or(SpliceError::Overlap(edit.start))?);
        out.push_str(&edit.text);
        at = edit.end;
        previous = Some(edit);
    }
    out.push_str(text.get(at..).ok_or(SpliceError::NoSpan(at, text.len()))?);
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proptest::prelude::*;

    use super::*;

    fn edit(start: usize, end: usize, text: &str) -> Splice {
        Splice { start, end, text: text.to_owned() }
    }

    #[test]
    fn spans_are_replaced_in_any_order() {
        let edits = [edit(8, 13, "there"), edit(0, 5, "Hi")];
        assert_eq!(splice("Hello, world\u{e9}!\r\n", &edits[..1]), Err(SpliceError::NoSpan(8, 13)));
        assert_eq!(splice("Hello, worlds!\r\n", &edits).unwrap(), "Hi, wthere!\r\n");
        assert_eq!(splice("ab", &[edit(1, 1, "-")]).unwrap(), "a-b");
        assert_eq!(splice("ab", &[]).unwrap(), "ab");
    }

    #[test]
    fn the_same_edit_twice_is_one_and_different_ones_overlap() {
        let twice = [edit(0, 1, "x"), edit(0, 1, "x")];
        assert_eq!(splice("ab", &twice).unwrap(), "xb");
        let two = [edit(0, 2, "x"), edit(1, 2, "y")];
        assert_eq!(splice("ab", &two), Err(SpliceError::Overlap(1)));
        assert!(edit(1, 1, "x").overlaps(&edit(1, 1, "y")));
        assert!(edit(1, 1, "x").overlaps(&edit(1, 2, "y")));
        assert!(!edit(0, 1, "x").overlaps(&edit(1, 2, "y")));
    }

    /// A text of one to four byte characters and all kinds of line ends, and places in it.
    fn texts() -> impl Strategy<Value = (String, Vec<(usize, usize, String)>)> {
        let text = proptest::collection::vec(
            prop_oneof![
                Just("\n"),
                Just("\r\n"),
                Just("\t"),
                Just("    "),
                Just("x"),
                Just("("),
                Just("\u{e9}"),
                Just("\u{2192}"),
                Just("\u{1f600}"),
                Just("# "),
                Just("'"),
                Just("def f(x):\n"),
            ],
            0..60,
        )
        .prop_map(|parts| parts.concat());
        let edits =
            proptest::collection::vec((0usize..200, 0usize..12, "[a-z\u{e9}\n(]{0,6}"), 0..8);
        (text, edits)
    }

    proptest! {
        #[test]
        fn all_that_is_outside_the_spans_stays((text, wanted) in texts()) {
            // Snapped to characters and thinned out until nothing overlaps.
            let snap = |at: usize| {
                let mut at = at.min(text.len());
                while !text.is_char_boundary(at) { at -= 1; }
                at
            };
            let mut edits: Vec<Splice> = Vec::new();
            for (start, length, new) in wanted {
                let own = edit(snap(start), snap(start + length), &new);
                if edits.iter().all(|other| !other.overlaps(&own)) {
                    edits.push(own);
                }
            }
            let out = splice(&text, &edits).unwrap();
            // Walk both: between edits they are equal, byte for byte.
            edits.sort();
            let (mut old, mut new) = (0, 0);
            for own in &edits {
                let kept = own.start - old;
                prop_assert_eq!(&text[old..own.start], &out[new..new + kept]);
                new += kept;
                prop_assert_eq!(&out[new..new + own.text.len()], own.text.as_str());
                new += own.text.len();
                old = own.end;
            }
            prop_assert_eq!(&text[old..], &out[new..]);
        }

        #[test]
        fn no_edits_make_a_panic(text in "\\PC{0,40}", wanted in proptest::collection::vec((0usize..60, 0usize..60, ".{0,3}"), 0..6)) {
            let edits: Vec<Splice> =
                wanted.into_iter().map(|(start, end, text)| Splice { start, end, text }).collect();
            let _ = splice(&text, &edits);
        }
    }
}
