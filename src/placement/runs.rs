//! The order that keeps switches between units fewest, and what it makes of a graph of colours.
//!
//! Take all ready ops of one colour until none is left, then of the other. In that order the number
//! of the run an op falls into is the longest path to it, counted in changes of colour: one walk in
//! program order, no queue. Of both starts the one with fewer switches counts; between equals, the
//! one with fewer on-unit runs.
//!
//! To ask "what if these ops were gone" hundreds of times, the graph is first contracted: a node
//! whose every predecessor is the same node of the same colour falls into that one's run in any case.

use crate::graph::{Function, NodeId};

/// What an op is to the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// Runs on the unit.
    On,
    /// Cannot; the number is the group it would be freed with.
    Off(u32),
    /// Takes the colour of its neighbours: transparent ops, inputs, edges, unknown ops.
    Neutral,
    /// No part of the order: constants and what depends on them only, outputs.
    Absent,
}

/// Marks "in no run".
pub(super) const NO_RUN: u32 = u32::MAX;

/// The runs of a function. Even runs are on-unit if `starts_on`, else off-unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) starts_on: bool,
    /// Changes of unit in the order.
    pub(super) switches: u32,
    /// On-unit runs.
    pub(super) regions: u32,
}

/// The contracted graph. Nodes are in an order where predecessors come first.
#[derive(Debug)]
pub(super) struct Contracted {
    colours: Vec<Colour>,
    /// Predecessors: ranges of `from`.
    ranges: Vec<(u32, u32)>,
    from: Vec<u32>,
}

/// Nodes and uses, to bound work by.
impl Contracted {
    /// Contracts a function; `colours` by node id.
    pub(super) fn of(function: &Function, colours: &[Colour]) -> Contracted {
        let mut made = Contracted { colours: Vec::new(), ranges: Vec::new(), from: Vec::new() };
        // The node of the contracted graph that each node fell into.
        let mut place = vec![NO_RUN; function.len()];
        // All nodes with no predecessor, by colour: one each for on and neutral is enough.
        let mut first_on = NO_RUN;
        let mut found: Vec<u32> = Vec::new();
        for id in function.node_ids() {
            let at = id.0 as usize;
            let colour = colours[at];
            if colour == Colour::Absent {
                continue;
            }
            found.clear();
            for operand in function.operands(id) {
                let from = place[function.producer(operand.value).0 as usize];
                if from != NO_RUN && !found.contains(&from) && found.len() < 64 {
                    found.push(from);
                } else if from != NO_RUN && found.len() >= 64 {
                    // A concat of thousands: sort out repeats afterwards, not one by one.
                    found.push(from);
                }
            }
            if found.len() > 64 {
                found.sort_unstable();
                found.dedup();
            }
            place[at] = match (found.as_slice(), colour) {
                ([], Colour::Neutral) => NO_RUN,
                ([], Colour::On) => {
                    if first_on == NO_RUN {
                        first_on = made.push(colour, &[]);
                    }
                    first_on
                }
                ([one], _)
                    if colour == Colour::Neutral || made.colours[*one as usize] == colour =>
                {
                    *one
                }
                (list, _) => made.push(colour, list),
            };
        }
        made
    }

    fn push(&mut self, colour: Colour, from: &[u32]) -> u32 {
        let start = self.from.len() as u32;
        self.from.extend_from_slice(from);
        self.ranges.push((start, self.from.len() as u32));
        self.colours.push(colour);
        self.colours.len() as u32 - 1
    }

    /// Nodes and uses: what one count costs.
    pub(super) fn size(&self) -> usize {
        self.colours.len() + self.from.len()
    }

    /// The runs, with some groups of off-unit nodes gone. `scratch` is kept between calls.
    pub(super) fn count(&self, gone: &dyn Fn(u32) -> bool, scratch: &mut Vec<[u32; 2]>) -> Runs {
        scratch.clear();
        let mut tally = Tally::default();
        for (&colour, &(start, end)) in self.colours.iter().zip(&self.ranges) {
            let colour = match colour {
                Colour::Off(group) if gone(group) => Colour::Neutral,
                other => other,
            };
            let mut runs = [NO_RUN; 2];
            for &from in &self.from[start as usize..end as usize] {
                runs = later(runs, scratch[from as usize]);
            }
            scratch.push(tally.enter(colour, runs));
        }
        tally.runs()
    }
}

/// The run of every node of a function, for the better start; `NO_RUN` where it has none.
pub(super) fn assign(function: &Function, colours: &[Colour]) -> (Vec<u32>, Runs) {
    let mut tally = Tally::default();
    let mut both: Vec<[u32; 2]> = vec![[NO_RUN; 2]; function.len()];
    for id in function.node_ids() {
        let at = id.0 as usize;
        if colours[at] == Colour::Absent {
            continue;
        }
        let mut runs = [NO_RUN; 2];
        for operand in function.operands(id) {
            runs = later(runs, both[function.producer(operand.value).0 as usize]);
        }
        both[at] = tally.enter(colours[at], runs);
    }
    let runs = tally.runs();
    let side = usize::from(!runs.starts_on);
    (both.into_iter().map(|pair| pair[side]).collect(), runs)
}

/// The runs when ops are taken strictly in program order: on-unit stretches.
pub(super) fn program_order(function: &Function, colours: &[Colour]) -> u32 {
    let mut regions = 0;
    let mut on = false;
    for id in function.node_ids() {
        match colours[id.0 as usize] {
            Colour::On if !on => {
                on = true;
                regions += 1;
            }
            Colour::Off(_) => on = false,
            _ => {}
        }
    }
    regions
}

/// Whether some path leads from an on-unit op to each node, and from each node to one.
pub(super) fn on_before_and_after(
    function: &Function,
    colours: &[Colour],
) -> (Vec<bool>, Vec<bool>) {
    let on = |id: NodeId| colours[id.0 as usize] == Colour::On;
    let mut before = vec![false; function.len()];
    let mut after = vec![false; function.len()];
    for id in function.node_ids() {
        before[id.0 as usize] = function.operands(id).iter().any(|operand| {
            let from = function.producer(operand.value);
            on(from) || before[from.0 as usize]
        });
    }
    for id in function.node_ids().rev() {
        let reaches = on(id) || after[id.0 as usize];
        if reaches {
            for operand in function.operands(id) {
                after[function.producer(operand.value).0 as usize] = true;
            }
        }
    }
    (before, after)
}

/// Runs of the first `k` nodes, for a start on the unit and off it.
#[derive(Debug, Default)]
struct Tally {
    /// By start: lowest and highest run in use.
    used: [Option<(u32, u32)>; 2],
}

impl Tally {
    /// The runs that a node falls into after predecessors in `runs`.
    fn enter(&mut self, colour: Colour, runs: [u32; 2]) -> [u32; 2] {
        let is_on = match colour {
            Colour::On => true,
            Colour::Off(_) => false,
            Colour::Neutral | Colour::Absent => return runs,
        };
        let mut entered = runs;
        for (side, run) in entered.iter_mut().enumerate() {
            // With a start on the unit, even runs are on-unit; else odd ones.
            let parity = u32::from(is_on == (side == 1));
            *run = match *run {
                NO_RUN => parity,
                run if run % 2 == parity => run,
                run => run + 1,
            };
            let used = self.used[side].get_or_insert((*run, *run));
            *used = (used.0.min(*run), used.1.max(*run));
        }
        entered
    }

    fn runs(&self) -> Runs {
        let of = |side: usize| {
            let Some((low, high)) = self.used[side] else {
                return Runs { starts_on: side == 0, switches: 0, regions: 0 };
            };
            let first_on = low + u32::from(low % 2 != side as u32);
            let regions = if first_on > high { 0 } else { (high - first_on) / 2 + 1 };
            Runs { starts_on: side == 0, switches: high - low, regions }
        };
        let (on, off) = (of(0), of(1));
        if (off.switches, off.regions) < (on.switches, on.regions) { off } else { on }
    }
}

fn later(a: [u32; 2], b: [u32; 2]) -> [u32; 2] {
    let pick = |a: u32, b: u32| match (a, b) {
        (NO_RUN, b) => b,
        (a, NO_RUN) => a,
        (a, b) => a.max(b),
    };
    [pick(a[0], b[0]), pick(a[1], b[1])]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::graph::{DType, Draft, DraftNode, FunctionRole, Name, NodeKind, ShapeId};
    use proptest::prelude::*;

    /// A graph of ops and nothing else: node `n` uses the nodes before it that `edges` names.
    fn graph(nodes: &[(Colour, Vec<usize>)]) -> (Function, Vec<Colour>) {
        let mut draft = Draft::default();
        for (at, (_, from)) in nodes.iter().enumerate() {
            let mut node = DraftNode::new(NodeKind::Op, Name::EMPTY);
            node.results.push((Name::EMPTY, DType::F16, ShapeId::SCALAR, None));
            node.operands =
                from.iter().filter(|&&n| n < at).map(|&n| (Name::EMPTY, (n as u32, 0))).collect();
            draft.push(node);
        }
        let function = draft.freeze(Name::EMPTY, Name::EMPTY, FunctionRole::Entry);
        (function, nodes.iter().map(|(colour, _)| *colour).collect())
    }

    fn colour() -> impl Strategy<Value = Colour> {
        prop_oneof![
            3 => Just(Colour::On),
            1 => Just(Colour::Off(0)),
            1 => Just(Colour::Off(1)),
            1 => Just(Colour::Off(2)),
            1 => Just(Colour::Neutral),
        ]
    }

    fn graphs(most: usize) -> impl Strategy<Value = Vec<(Colour, Vec<usize>)>> {
        prop::collection::vec((colour(), prop::collection::vec(0..most, 0..3)), 1..most)
    }

    /// The fewest switches of any order at all, by trying every set of nodes done so far.
    fn fewest_switches(function: &Function, colours: &[Colour]) -> u32 {
        let n = colours.len();
        let before: Vec<usize> = function
            .node_ids()
            .map(|id| {
                function
                    .operands(id)
                    .iter()
                    .fold(0, |set, operand| set | 1 << function.producer(operand.value).0)
            })
            .collect();
        // By set of nodes done and unit of the last coloured one (0 none, 1 on, 2 off).
        let mut best = vec![[u32::MAX; 3]; 1 << n];
        best[0][0] = 0;
        for done in 0..1usize << n {
            for last in 0..3 {
                let cost = best[done][last];
                if cost == u32::MAX {
                    continue;
                }
                for next in
                    (0..n).filter(|&next| done & 1 << next == 0 && before[next] & !done == 0)
                {
                    let (unit, more) = match colours[next] {
                        Colour::On => (1, u32::from(last == 2)),
                        Colour::Off(_) => (2, u32::from(last == 1)),
                        _ => (last, 0),
                    };
                    let slot = &mut best[done | 1 << next][unit];
                    *slot = (*slot).min(cost + more);
                }
            }
        }
        best[(1 << n) - 1].iter().copied().min().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_order_has_fewer_switches(nodes in graphs(9)) {
            let (function, colours) = graph(&nodes);
            let (_, runs) = assign(&function, &colours);
            prop_assert_eq!(runs.switches, fewest_switches(&function, &colours));
        }

        #[test]
        fn contraction_changes_no_count(nodes in graphs(40), gone in 0u32..8) {
            let (function, colours) = graph(&nodes);
            let is_gone = |group: u32| gone & 1 << group != 0;
            let without: Vec<Colour> = colours
                .iter()
                .map(|&colour| match colour {
                    Colour::Off(group) if is_gone(group) => Colour::Neutral,
                    other => other,
                })
                .collect();
            let (_, runs) = assign(&function, &without);
            let contracted = Contracted::of(&function, &colours);
            prop_assert_eq!(contracted.count(&is_gone, &mut Vec::new()), runs);
        }
    }
}
