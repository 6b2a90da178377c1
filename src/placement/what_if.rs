//! What if: groups of off-unit ops by reason and source line, and which to fix first.
//!
//! Greedy: the group whose going removes most regions, then the one that frees most ops, again and
//! again until one region is left. A step that alone removes nothing (two faults in one gap) is kept
//! only if a later step needs it.

use super::runs::{Contracted, Runs};
use super::{Group, WhatIf};

/// Most nodes and uses looked at in one ranking: keeps a function of 100,000 ops that all differ far
/// below half a second. What is left out is counted in [`Ranking::skipped`].
pub(super) const BUDGET: usize = 40_000_000;

/// The steps, and how many groups the budget left out of the search.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    pub(super) steps: Vec<WhatIf>,
    pub(super) skipped: u32,
}

pub(super) fn rank(graph: &Contracted, groups: &[Group], now: Runs) -> Ranking {
    let mut ranking = Ranking::default();
    let mut candidates: Vec<u32> =
        (0..groups.len() as u32).filter(|&g| groups[g as usize].interior > 0).collect();
    // The largest first, so that a budget that runs out leaves out the smallest.
    candidates.sort_by_key(|&g| (std::cmp::Reverse(groups[g as usize].interior), g));
    let cost = graph.size().max(1);
    let mut left = BUDGET / cost;
    if candidates.len() > left {
        ranking.skipped = (candidates.len() - left) as u32;
        candidates.truncate(left);
    }
    let mut gone = vec![false; groups.len()];
    let mut scratch = Vec::new();
    let mut order: Vec<u32> = Vec::new();
    let mut regions = now.regions;
    while regions > 1 && !candidates.is_empty() && left >= candidates.len() {
        left -= candidates.len();
        let best = candidates
            .iter()
            .enumerate()
            .map(|(at, &group)| {
                let after = graph.count(&|g| g == group || gone[g as usize], &mut scratch).regions;
                // Fewest regions, then most ops; the first in program order between equals.
                ((after, std::cmp::Reverse(groups[group as usize].nodes.len()), group), at)
            })
            .min();
        let Some(((after, _, group), at)) = best else { break };
        gone[group as usize] = true;
        candidates.remove(at);
        order.push(group);
        regions = after;
    }
    // Steps at the end that removed nothing go, then any that the rest can do without.
    let count = |order: &[u32], scratch: &mut Vec<[u32; 2]>| {
        graph.count(&|g| order.contains(&g), scratch).regions
    };
    if regions == now.regions {
        return ranking;
    }
    for at in (0..order.len()).rev() {
        if left == 0 {
            break;
        }
        left -= 1;
        let without: Vec<u32> =
            order.iter().copied().enumerate().filter(|(i, _)| *i != at).map(|(_, g)| g).collect();
        if count(&without, &mut scratch) <= regions {
            order = without;
        }
    }
    let mut before = now.regions;
    for end in 1..=order.len() {
        let after = count(&order[..end], &mut scratch);
        let group = order[end - 1];
        ranking.steps.push(WhatIf {
            group,
            regions_before: before,
            regions_after: after,
            ops_freed: groups[group as usize].nodes.len() as u32,
        });
        before = after;
    }
    ranking
}
