//! What if: groups of off-unit ops by reason and source line, and which to fix first.
//!
//! Greedy: the group whose going removes most regions, then the one that frees most ops, again and
//! again until one region is left. A step that alone removes nothing (two faults in one gap) is kept
//! only if a later step needs it.

use super::{Group, WhatIf};

/// Most nodes and uses looked at in one ranking: keeps a function of 100,000 ops that all differ far
/// below half a second. What is left out is counted in [`Ranking::skipped`].
pub(super) const BUDGET: usize = 8_000_000;

/// The steps, and how many groups the budget left out of the search.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    pub(super) steps: Vec<WhatIf>,
    pub(super) skipped: u32,
}

/// Counts regions with some groups gone.
pub(super) type Count<'a> = dyn FnMut(&dyn Fn(u32) -> bool) -> u32 + 'a;

/// Ranks the groups. `size` is what one count costs, in nodes and uses.
pub(super) fn rank(count: &mut Count<'_>, size: usize, groups: &[Group], now: u32) -> Ranking {
    let mut ranking = Ranking::default();
    let mut candidates: Vec<u32> =
        (0..groups.len() as u32).filter(|&g| groups[g as usize].interior > 0).collect();
    // The largest first, so that a budget that runs out leaves out the smallest.
    candidates.sort_by_key(|&g| (std::cmp::Reverse(groups[g as usize].interior), g));
    let mut left = BUDGET / size.max(1);
    // Room for a few rounds over all that are looked at.
    let most = (left / 4).max(1);
    if candidates.len() > most {
        ranking.skipped = (candidates.len() - most) as u32;
        candidates.truncate(most);
    }
    let mut gone = vec![false; groups.len()];
    let mut order: Vec<u32> = Vec::new();
    let mut regions = now;
    while regions > 1 && !candidates.is_empty() && left >= candidates.len() {
        left -= candidates.len();
        let best = candidates
            .iter()
            .enumerate()
            .map(|(at, &group)| {
                let after = count(&|g| g == group || is_gone(&gone, g));
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
    if regions >= now {
        return ranking;
    }
    // What the rest can do without goes, the last first.
    for at in (0..order.len()).rev() {
        if left == 0 {
            break;
        }
        left -= 1;
        let without: Vec<u32> =
            order.iter().copied().enumerate().filter(|(i, _)| *i != at).map(|(_, g)| g).collect();
        if count(&|g| without.contains(&g)) <= regions {
            order = without;
        }
    }
    let mut before = now;
    for end in 1..=order.len() {
        let after = count(&|g| order[..end].contains(&g));
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

/// Fills [`Group::regions_added`], within the same budget as the ranking.
pub(super) fn added(count: &mut Count<'_>, size: usize, groups: &mut [Group], now: u32) {
    let mut left = BUDGET / size.max(1);
    for (at, group) in groups.iter_mut().enumerate() {
        if group.interior == 0 || left == 0 {
            continue;
        }
        left -= 1;
        group.regions_added = now.saturating_sub(count(&|g| g as usize == at));
    }
}

fn is_gone(gone: &[bool], group: u32) -> bool {
    gone.get(group as usize).copied().unwrap_or(false)
}
