//! A call of a composite's graph → one node of the canonical op.

use super::ir::{Composite, Op, Setting};
use super::ops::Lowering;
use super::plan::attributes;
use crate::graph::{Attr, DraftNode};
use crate::readers::dialect::CORE_AI;

/// Fills the node of a call of `composite`; one that the dialect map does not name stays unknown,
/// under its own name.
pub fn lower<'a>(
    lowering: &mut Lowering<'_, '_, 'a>,
    op: &Op<'a>,
    composite: &Composite<'_>,
    node: &mut DraftNode,
) {
    let key = format!("composite.{}", composite.name);
    let spelling = CORE_AI.find(&key);
    node.spelling = lowering.program.names.intern(&key);
    node.op = spelling.map_or(crate::graph::Op::UNKNOWN, |spelling| spelling.op);
    if let Some(spelling) = spelling {
        node.attributes = attributes(&mut lowering.program.names, spelling.set);
    }
    for (at, &operand) in op.operands.of(&lowering.graph.operands).iter().enumerate() {
        let declared = composite.inputs.get(at).map_or("", |name| name);
        let canonical = match spelling {
            Some(spelling) => spelling
                .canonical(declared)
                .or_else(|| spelling.args.is_empty().then(|| spelling.positional(at)).flatten()),
            None => None,
        };
        // An input that the op has no name for stays an operand under its own.
        let text = canonical.unwrap_or(if declared.is_empty() { "input" } else { declared });
        let settable = spelling.is_some_and(|spelling| {
            spelling.op.attributes().contains(&text) && !spelling.is_operand(text)
        });
        if settable && let Some(attr) = lowering.constant_attribute(operand, text) {
            let name = lowering.program.names.intern(text);
            node.attributes.push((name, attr));
            continue;
        }
        if let Some(place) = lowering.place(operand) {
            let name = lowering.program.names.intern(text);
            node.operands.push((name, place));
        }
    }
    for (key, setting) in &composite.settings {
        if key == "version" {
            continue;
        }
        let text = spelling.and_then(|spelling| spelling.canonical(key)).unwrap_or(key);
        if let Some(attr) = attribute(lowering, setting) {
            let name = lowering.program.names.intern(text);
            super::settings::set(node, name, attr);
        }
    }
    super::settings::finish(lowering, node);
}

fn attribute(lowering: &mut Lowering<'_, '_, '_>, setting: &Setting<'_>) -> Option<Attr> {
    Some(match setting {
        Setting::Int(n) => Attr::Int(*n),
        Setting::Float(x) => Attr::Float(*x),
        Setting::Bool(b) => Attr::Bool(*b),
        Setting::Text(text) => Attr::Text(lowering.program.names.intern(text)),
        Setting::List(items) => {
            let ints: Option<Vec<i64>> = items
                .iter()
                .map(|item| match item {
                    Setting::Int(n) => Some(*n),
                    _ => None,
                })
                .collect();
            match ints {
                Some(ints) => Attr::Ints(ints.into_iter().map(Some).collect()),
                None => {
                    let floats = items.iter().map(|item| match item {
                        Setting::Float(x) => Some(*x),
                        Setting::Int(n) => Some(*n as f64),
                        _ => None,
                    });
                    Attr::Floats(floats.collect::<Option<Box<[f64]>>>()?)
                }
            }
        }
        Setting::Map(_) | Setting::Unit => return None,
    })
}
