//! Which of many edits can be made together: each proposal whole or not at all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::splice::Splice;

/// Edits that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Files and what to replace in them.
    pub edits: Vec<(PathBuf, Splice)>,
}

/// What was chosen.
#[derive(Debug, Default)]
pub struct Choice {
    /// What to replace, by file; sorted, none twice.
    pub files: BTreeMap<PathBuf, Vec<Splice>>,
    /// For each proposal, whether it is part of that.
    pub taken: Vec<bool>,
}

/// Takes proposals in their order, unless one overlaps with what was taken before. Equal edits are no
/// overlap: several models can be made by one line.
pub fn choose(proposals: &[Proposal]) -> Choice {
    let mut choice = Choice::default();
    for proposal in proposals {
        let fits = |(file, edit): &(PathBuf, Splice)| {
            let taken = choice.files.get(file).map(Vec::as_slice).unwrap_or_default();
            let near = taken.partition_point(|other| other.end < edit.start);
            taken
                .iter()
                .skip(near)
                .take_while(|other| other.start <= edit.end)
                .all(|other| other == edit || !other.overlaps(edit))
        };
        let apart = |at: usize, (file, edit): &(PathBuf, Splice)| {
            proposal.edits.iter().skip(at + 1).all(|(other_file, other)| {
                other_file != file || other == edit || !other.overlaps(edit)
            })
        };
        let own = &proposal.edits;
        let taken = !own.is_empty()
            && own.iter().all(fits)
            && own.iter().enumerate().all(|(at, edit)| apart(at, edit));
        choice.taken.push(taken);
        if taken {
            for (file, edit) in own {
                let list = choice.files.entry(file.clone()).or_default();
                if let Err(at) = list.binary_search(edit) {
                    list.insert(at, edit.clone());
                }
            }
        }
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(edits: &[(&str, usize, usize, &str)]) -> Proposal {
        let edits = edits
            .iter()
            .map(|&(file, start, end, text)| {
                (PathBuf::from(file), Splice { start, end, text: text.to_owned() })
            })
            .collect();
        Proposal { edits }
    }

    #[test]
    fn overlapping_edits_are_never_both_taken_and_the_first_wins() {
        let choice = choose(&[
            proposal(&[("a", 5, 10, "x")]),
            proposal(&[("a", 8, 12, "y")]),
            proposal(&[("a", 10, 12, "z")]),
            proposal(&[("b", 8, 12, "y")]),
        ]);
        assert_eq!(choice.taken, [true, false, true, true]);
        assert_eq!(choice.files.values().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn the_same_edit_from_two_models_is_one() {
        let own = proposal(&[("a", 5, 10, "x")]);
        let choice = choose(&[own.clone(), own]);
        assert_eq!(choice.taken, [true, true]);
        assert_eq!(choice.files.values().map(Vec::len).sum::<usize>(), 1);
    }

    #[test]
    fn a_proposal_is_taken_whole_or_not_at_all() {
        let choice = choose(&[
            proposal(&[("a", 5, 10, "x")]),
            proposal(&[("a", 20, 22, "y"), ("a", 6, 7, "y")]),
            proposal(&[("a", 30, 32, "y"), ("a", 31, 33, "z")]),
            proposal(&[]),
        ]);
        assert_eq!(choice.taken, [true, false, false, false]);
        assert_eq!(choice.files.values().map(Vec::len).sum::<usize>(), 1);
    }

    #[test]
    fn a_long_edit_before_short_ones_is_seen() {
        let choice = choose(&[
            proposal(&[("a", 0, 100, "x")]),
            proposal(&[("a", 100, 110, "y")]),
            proposal(&[("a", 50, 51, "z")]),
        ]);
        assert_eq!(choice.taken, [true, true, false]);
    }
}
