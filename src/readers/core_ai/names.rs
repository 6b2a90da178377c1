//! Names of nodes: the torch node that an op stands for, else the number that the printed form gives.

use rustc_hash::FxHashMap;

use super::ir::{Graph, Module, Op, ValueId};
use super::plan::Plan;
use crate::graph::{Name, Program};

/// Numbers of the printed form, by value.
#[derive(Debug)]
pub struct Numbers {
    /// `(number of the op, result index, number of results)`; for arguments the number is that of
    /// the argument.
    printed: Vec<Printed>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Printed {
    number: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Op,
    Argument,
    /// `%output`, `%out_token`: names that the op gives its results.
    Output,
    Token,
}

impl Numbers {
    /// Numbers a graph's values as the library prints them: first the ops of a region in order,
    /// then those of nested regions; siblings use the same numbers.
    pub fn of(module: &Module<'_>, graph: &Graph<'_>) -> Numbers {
        let mut numbers = Numbers { printed: vec![Printed::default(); graph.values.len()] };
        let (mut argument, mut conflicts) = (0, 0);
        let mut open = vec![(0u32, 0u32)];
        // Regions are a tree, so that each is visited once.
        while let Some((region, mut next)) = open.pop() {
            let Some(region) = graph.regions.get(region as usize) else { continue };
            for &value in &region.arguments {
                numbers.set(value, argument, Kind::Argument);
                argument += 1;
            }
            let mut nested = Vec::new();
            for op in &region.ops {
                nested.extend(op.regions.of(&graph.region_ids).iter().copied());
                if op.results.len == 0 {
                    continue;
                }
                let reads = module
                    .op_names
                    .get(op.name as usize)
                    .is_some_and(|name| name.authored == "coreai.read_handle");
                if reads && op.results.len == 2 {
                    for (kind, value) in
                        [Kind::Output, Kind::Token].into_iter().zip(op.results.range())
                    {
                        numbers.set(value as u32, conflicts, kind);
                        conflicts += 1;
                    }
                    continue;
                }
                for value in op.results.range() {
                    numbers.set(value as u32, next, Kind::Op);
                }
                next += 1;
            }
            open.extend(nested.into_iter().rev().map(|region| (region, next)));
        }
        numbers
    }

    fn set(&mut self, value: ValueId, number: u32, kind: Kind) {
        if let Some(slot) = self.printed.get_mut(value as usize) {
            *slot = Printed { number, kind };
        }
    }

    fn text(&self, value: ValueId) -> String {
        let Printed { number, kind } =
            self.printed.get(value as usize).copied().unwrap_or_default();
        // The first two have no suffix, later ones count on together.
        let suffix = match number {
            0 | 1 => String::new(),
            n => format!("_{}", n - 2),
        };
        match kind {
            Kind::Op => format!("%{number}"),
            Kind::Argument => format!("%arg{number}"),
            Kind::Output => format!("%output{suffix}"),
            Kind::Token => format!("%out_token{suffix}"),
        }
    }
}

/// Gives every node of a function a name of its own.
#[derive(Debug, Default)]
pub struct NodeNames {
    /// How often each name was wanted.
    wanted: FxHashMap<Name, u32>,
}

impl NodeNames {
    /// The name of an op.
    pub fn op(
        &mut self,
        module: &Module<'_>,
        graph: &Graph<'_>,
        numbers: &Numbers,
        program: &mut Program,
        op: &Op<'_>,
        plan: &Plan,
    ) -> Name {
        let location = module.locations.get(op.location as usize).copied().unwrap_or_default();
        if let Some(torch) = location.torch_ops.of(&module.debug.torch_ops).first() {
            let name = if location.yields {
                program.names.intern(torch)
            } else {
                let name = format!("{torch}.{}", program.names.get(plan.short));
                program.names.intern(&name)
            };
            return self.unique(program, name);
        }
        let name = match op.results.len {
            0 => program.names.get(plan.short).to_owned(),
            _ => value(graph, numbers, op.results.start),
        };
        let name = program.names.intern(&name);
        self.unique(program, name)
    }

    /// The name, or the name with the first number that makes it new.
    pub fn unique(&mut self, program: &mut Program, name: Name) -> Name {
        let wanted = self.wanted.entry(name).or_insert(0);
        *wanted += 1;
        if *wanted == 1 {
            return name;
        }
        let text = program.names.get(name).to_owned();
        for again in *wanted - 1.. {
            let name = program.names.intern(&format!("{text}.{again}"));
            if self.wanted.insert(name, 1).is_none() {
                return name;
            }
        }
        name
    }
}

/// The printed name of a value.
pub fn value(graph: &Graph<'_>, numbers: &Numbers, id: ValueId) -> String {
    match graph.value_names.binary_search_by_key(&id, |(known, _)| *known) {
        Ok(at) => graph.value_names[at].1.clone().into_owned(),
        Err(_) => numbers.text(id),
    }
}
