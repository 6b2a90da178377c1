//! Partitions as an execution provider makes them: groups of nodes that it takes, in an order that
//! begins with what is ready.
//!
//! The runtime walks the graph breadth first. A node that the provider takes joins the group that is
//! open; one that it does not take and that uses a result of this group waits until the group is closed,
//! which is when nothing else is ready (`CreateSupportedPartitionNodeGroups` of ONNX Runtime). What its
//! own optimiser takes out before (constant work, identities) is no node here.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::runs::Colour;
use crate::facts::is_constant;
use crate::graph::{Function, Node, NodeFlags, NodeId, NodeKind, Op};

/// The nodes of a function as the runtime sees them, with their uses.
#[derive(Debug, Clone)]
pub(super) struct Partitions {
    nodes: Vec<NodeId>,
    colours: Vec<Colour>,
    /// Users: ranges of `to`, each user once.
    ranges: Vec<(u32, u32)>,
    to: Vec<u32>,
    /// Number of producers, each once.
    producers: Vec<u32>,
}

/// Where the walk put a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) node: NodeId,
    /// The partition, if the provider takes the node.
    pub(super) partition: Option<u32>,
    /// Of a node left behind: the last partition begun before it.
    pub(super) after: Option<u32>,
}

/// Whether the runtime sees a node at all.
pub(super) fn is_node(node: &Node) -> bool {
    let nothing = matches!(node.op, Op::IDENTITY | Op::DETACH | Op::CLONE | Op::CONTIGUOUS)
        || (node.op == Op::CAST && node.flags.contains(NodeFlags::TRANSPARENT));
    node.kind == NodeKind::Op && !is_constant(node) && !nothing
}

impl Partitions {
    /// Of a function; `colours` by node id.
    pub(super) fn of(function: &Function, colours: &[Colour]) -> Partitions {
        let nodes: Vec<NodeId> =
            function.nodes().filter(|(_, node)| is_node(node)).map(|(id, _)| id).collect();
        let mut place = vec![u32::MAX; function.len()];
        for (at, id) in nodes.iter().enumerate() {
            place[id.0 as usize] = at as u32;
        }
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        let mut producers = vec![0; nodes.len()];
        let mut found: Vec<u32> = Vec::new();
        for (at, &id) in nodes.iter().enumerate() {
            found.clear();
            for operand in function.operands(id) {
                let mut from = function.producer(operand.value);
                // Through what does nothing: each step goes to an earlier node.
                while place[from.0 as usize] == u32::MAX
                    && function.node(from).kind == NodeKind::Op
                    && !is_constant(function.node(from))
                    && let Some(first) = function.operands(from).first()
                {
                    from = function.producer(first.value);
                }
                if place[from.0 as usize] != u32::MAX {
                    found.push(place[from.0 as usize]);
                }
            }
            found.sort_unstable();
            found.dedup();
            producers[at] = found.len() as u32;
            for &from in &found {
                users[from as usize].push(at as u32);
            }
        }
        let mut ranges = Vec::with_capacity(nodes.len());
        let mut to = Vec::new();
        for list in users {
            let start = to.len() as u32;
            to.extend(list);
            ranges.push((start, to.len() as u32));
        }
        let colours = nodes.iter().map(|id| colours[id.0 as usize]).collect();
        Partitions { nodes, colours, ranges, to, producers }
    }

    /// Nodes and uses: what one count costs.
    pub(super) fn size(&self) -> usize {
        self.nodes.len() + self.to.len()
    }

    /// Number of partitions, were some groups of lost nodes taken.
    pub(super) fn count(&self, gone: &dyn Fn(u32) -> bool) -> u32 {
        let taken = |at: usize| match self.colours[at] {
            Colour::On => true,
            Colour::Off(group) => gone(group),
            Colour::Neutral | Colour::Absent => false,
        };
        self.walk(taken, |_, _, _| {})
    }

    /// The same, were some nodes taken.
    pub(super) fn without(&self, nodes: &[NodeId]) -> u32 {
        let nodes: FxHashSet<NodeId> = nodes.iter().copied().collect();
        let taken = |at: usize| self.colours[at] == Colour::On || nodes.contains(&self.nodes[at]);
        self.walk(taken, |_, _, _| {})
    }

    /// Where each node goes.
    pub(super) fn assign(&self) -> Vec<Put> {
        let mut puts = Vec::with_capacity(self.nodes.len());
        self.walk(
            |at| self.colours[at] == Colour::On,
            |at, partition, after| puts.push(Put { node: self.nodes[at], partition, after }),
        );
        puts
    }

    fn walk(
        &self,
        taken: impl Fn(usize) -> bool,
        mut put: impl FnMut(usize, Option<u32>, Option<u32>),
    ) -> u32 {
        let mut left = self.producers.clone();
        let mut ready: VecDeque<u32> =
            (0..self.nodes.len() as u32).filter(|&at| left[at as usize] == 0).collect();
        let mut next = VecDeque::new();
        // The round in which a node came to use a result of the open group.
        let mut border = vec![0u32; self.nodes.len()];
        let (mut round, mut closed, mut open) = (1u32, 0u32, false);
        loop {
            let Some(at) = ready.pop_front() else {
                if next.is_empty() {
                    break;
                }
                closed += u32::from(open);
                open = false;
                round += 1;
                ready = std::mem::take(&mut next);
                continue;
            };
            let at = at as usize;
            let (start, end) = self.ranges[at];
            let users = &self.to[start as usize..end as usize];
            if taken(at) {
                put(at, Some(closed), None);
                open = true;
                for &user in users {
                    border[user as usize] = round;
                }
            } else if border[at] == round {
                next.push_back(at as u32);
                continue;
            } else {
                put(at, None, (closed + u32::from(open)).checked_sub(1));
            }
            for &user in users {
                let count = &mut left[user as usize];
                *count -= 1;
                if *count == 0 {
                    ready.push_back(user);
                }
            }
        }
        closed + u32::from(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes in a row of uses `(from, to)`; `true` for those that the provider takes.
    fn graph(taken: &[bool], uses: &[(u32, u32)]) -> Partitions {
        let count = taken.len();
        let mut producers = vec![0; count];
        let mut ranges = Vec::new();
        let mut to = Vec::new();
        for from in 0..count as u32 {
            let start = to.len() as u32;
            for &(_, user) in uses.iter().filter(|(own, _)| *own == from) {
                to.push(user);
                producers[user as usize] += 1;
            }
            ranges.push((start, to.len() as u32));
        }
        let colours = taken.iter().map(|t| if *t { Colour::On } else { Colour::Off(0) }).collect();
        Partitions {
            nodes: (0..count as u32).map(NodeId).collect(),
            colours,
            ranges,
            to,
            producers,
        }
    }

    #[test]
    fn a_lost_node_in_a_chain_makes_two_partitions_and_taken_none_or_one() {
        let chain = graph(&[true, false, true], &[(0, 1), (1, 2)]);
        assert_eq!(chain.count(&|_| false), 2);
        assert_eq!(chain.count(&|_| true), 1);
        assert_eq!(graph(&[false, false], &[(0, 1)]).count(&|_| false), 0);
    }

    #[test]
    fn a_lost_node_beside_the_path_cuts_nothing() {
        // 0 → 1 → 3 are taken, 2 hangs off 0 and leads nowhere.
        let graph = graph(&[true, true, false, true], &[(0, 1), (0, 2), (1, 3)]);
        assert_eq!(graph.count(&|_| false), 1);
    }

    #[test]
    fn branches_that_are_ready_together_share_a_partition() {
        // Two chains with a lost node each: what comes before both is one partition, and what comes after.
        let graph =
            graph(&[true, false, true, true, false, true], &[(0, 1), (1, 2), (3, 4), (4, 5)]);
        assert_eq!(graph.count(&|_| false), 2);
    }
}
