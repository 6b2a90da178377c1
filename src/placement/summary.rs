//! What lies between the regions of a function, in a few words: for a message, not for the listing
//! that `anelint placement` prints.

use indexmap::IndexMap;

use super::Placement;
use crate::graph::{NodeId, Program};

/// Longest reason that is quoted, in characters; the rest is left to `anelint placement`.
const LONGEST_REASON: usize = 90;

impl Placement {
    /// The off-unit ops between the regions, those of one reason together, most ops first:
    /// `12 × linear (ANE006), 2 × cumsum (no such op)`. A rule stands for its reason. At least one
    /// reason and at most about `limit` characters, then how many reasons more there are; empty where
    /// no op lies between regions.
    pub fn summary_of_cuts(&self, program: &Program, limit: usize) -> String {
        let function = program.function(self.function);
        let mut by_reason: IndexMap<&str, Vec<NodeId>> = IndexMap::new();
        for &node in self.cuts.iter().flat_map(|cut| &cut.nodes) {
            let why =
                self.why(node).map_or("", |reason| reason.rule.as_deref().unwrap_or(&reason.text));
            by_reason.entry(why).or_default().push(node);
        }
        // A stable sort: reasons with as many ops stay in program order.
        by_reason.sort_by(|_, a, _, b| b.len().cmp(&a.len()));
        let mut text = String::new();
        let mut told = 0;
        for (why, nodes) in &by_reason {
            let op = |node: &NodeId| function.node(*node).op.name();
            let first = nodes.first().map_or("", op);
            let what = match nodes.len() {
                1 => first.to_owned(),
                n if nodes.iter().all(|node| op(node) == first) => format!("{n} × {first}"),
                n => format!("{n} ops"),
            };
            let part = match *why {
                "" => what,
                why => format!("{what} ({})", shortened(why)),
            };
            if told > 0 && text.chars().count() + part.chars().count() > limit {
                break;
            }
            if told > 0 {
                text.push_str(", ");
            }
            text.push_str(&part);
            told += 1;
        }
        match by_reason.len() - told {
            0 => text,
            1 => format!("{text}, and 1 reason more"),
            more => format!("{text}, and {more} reasons more"),
        }
    }
}

/// A reason cut after a word, if it is long.
fn shortened(reason: &str) -> String {
    let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) else {
        return reason.to_owned();
    };
    let head = &reason[..end];
    let head = head.rsplit_once(' ').map_or(head, |(head, _)| head);
    format!("{}…", head.trim_end_matches([',', ';', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_after_a_word() {
        assert_eq!(shortened("no such op"), "no such op");
        let long = "índice ".repeat(40);
        let short = shortened(&long);
        assert!(short.chars().count() <= LONGEST_REASON + 1, "{short}");
        assert!(short.ends_with("índice…"), "{short}");
    }
}
