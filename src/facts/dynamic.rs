//! Symbolic sizes: which enter a function, with what range, and how far they reach; records
//! `dynamic-symbol`.
//!
//! A symbol that no value of the function carries is none (a re-traced graph lists such).

use rustc_hash::FxHashMap;

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{Dim, NodeId, NodeKind, ShapeId, SymbolId, ValueId};

/// What is known of one symbol in one function.
#[derive(Default)]
struct Reach {
    /// First input or state that has it, with the axis.
    enters: Option<(NodeId, usize)>,
    /// First op that makes a value with it, for sizes that depend on data.
    made: Option<NodeId>,
    ops: u64,
    /// Inputs, states and returned values that have it.
    boundary: Vec<ValueId>,
}

/// The records of a function, by symbol.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let shapes = &view.program().shapes;
    if shapes.symbols.is_empty() {
        return Vec::new();
    }
    let mut of_shape: FxHashMap<ShapeId, Box<[(SymbolId, usize)]>> = FxHashMap::default();
    let mut reach: Vec<Reach> = Vec::new();
    reach.resize_with(shapes.symbols.len(), Reach::default);
    let mut symbols_of = |shape: ShapeId| -> Box<[(SymbolId, usize)]> {
        of_shape
            .entry(shape)
            .or_insert_with(|| {
                let mut list: Vec<(SymbolId, usize, bool)> = Vec::new();
                for (axis, &dim) in shapes.get(shape).dims().unwrap_or_default().iter().enumerate()
                {
                    // A symbol by itself first: it is where a size is named.
                    let plain = matches!(dim, Dim::Symbol(_));
                    for symbol in shapes.symbols_of(dim) {
                        match list.iter_mut().find(|(known, _, _)| *known == symbol) {
                            Some(entry) if plain && !entry.2 => *entry = (symbol, axis, true),
                            Some(_) => {}
                            None => list.push((symbol, axis, plain)),
                        }
                    }
                }
                list.into_iter().map(|(symbol, axis, _)| (symbol, axis)).collect()
            })
            .clone()
    };
    for (id, node) in view.function.nodes() {
        let values: Vec<ValueId> = match node.kind {
            NodeKind::Output => view.operands(id).collect(),
            _ => view.function.results(id).collect(),
        };
        let mut counted: Vec<SymbolId> = Vec::new();
        for value in values {
            for &(symbol, axis) in &symbols_of(view.function.value(value).shape) {
                let Some(entry) = reach.get_mut(symbol.0 as usize) else { continue };
                match node.kind {
                    NodeKind::Input | NodeKind::State => {
                        entry.enters.get_or_insert((id, axis));
                        entry.boundary.push(value);
                    }
                    NodeKind::Output => entry.boundary.push(value),
                    NodeKind::Op if view.function.is_work(id) => {
                        entry.made.get_or_insert(id);
                        if !counted.contains(&symbol) {
                            counted.push(symbol);
                            entry.ops += 1;
                        }
                    }
                    _ => {
                        entry.made.get_or_insert(id);
                    }
                }
            }
        }
    }
    reach
        .into_iter()
        .enumerate()
        .filter_map(|(at, mut reach)| {
            reach.boundary.sort_unstable();
            reach.boundary.dedup();
            let symbol = shapes.symbols.get(at)?;
            let (anchor, axis) = match (reach.enters, reach.made) {
                (Some((node, axis)), _) => (node, Some(axis)),
                (None, Some(node)) => (node, None),
                (None, None) => return None,
            };
            let name = view.program().text(symbol.name);
            let range = match symbol.max {
                Some(max) => format!("{}..{max}", symbol.min),
                None => format!("{}..", symbol.min),
            };
            let int = |n: u64| Field::Int(i64::try_from(n).unwrap_or(i64::MAX));
            let mut fields = vec![
                ("enters", Field::Node(anchor)),
                ("symbol", Field::Label(name.into())),
                ("range", Field::Label(range.into())),
                ("min", int(symbol.min)),
                ("ops", int(reach.ops)),
                // A size that no input has comes from data, whatever the file calls it.
                ("data-dependent", Field::Bool(symbol.data_dependent || reach.enters.is_none())),
                ("reached", Field::Values(reach.boundary)),
            ];
            fields.extend(symbol.max.map(|max| ("max", int(max))));
            fields.extend(axis.map(|axis| ("axis", Field::Int(axis as i64))));
            Some(Record { anchor, fields })
        })
        .collect()
}
