//! The parsed form as JSON: op by op as the file has it, before normalisation. For comparing with
//! other readers of the format, and for looking at a file that is lowered strangely.

use serde_json::{Value, json};

use super::ir::{Graph, Literal, LocationId, Module, Op, Payload, Port, Setting, Type, TypeId};
use super::literal::{Input, numbers};
use super::names::{Numbers, value};

/// Most elements of a constant that are listed.
const LISTED: usize = 16;

/// A module as JSON; constants of up to 16 elements are spelled out.
pub fn module(module: &Module<'_>, input: Input<'_>) -> Value {
    let graphs: Vec<Value> = module
        .graphs
        .iter()
        .map(|graph| {
            let numbers = Numbers::of(module, graph);
            Printer { module, graph, numbers, input }.graph()
        })
        .collect();
    json!({"version": module.version, "graphs": graphs})
}

struct Printer<'p, 'a> {
    module: &'p Module<'a>,
    graph: &'p Graph<'a>,
    numbers: Numbers,
    input: Input<'p>,
}

impl<'a> Printer<'_, 'a> {
    fn graph(&self) -> Value {
        let graph = self.graph;
        let port = |port: &Port<'_>| {
            let settings: serde_json::Map<String, Value> =
                port.attributes.iter().map(|(k, v)| (k.clone().into_owned(), setting(v))).collect();
            json!({"name": port.name, "type": type_text(self.module, port.ty), "attributes": settings})
        };
        json!({
            "name": graph.name,
            "private": graph.private,
            "no_inline": graph.no_inline,
            "composite": graph.composite.as_ref().map(|composite| json!({
                "name": composite.name,
                "inputs": composite.inputs,
                "settings": composite.settings.iter().map(|(k, v)| (k.clone().into_owned(), setting(v)))
                    .collect::<serde_json::Map<String, Value>>(),
            })),
            "inputs": graph.inputs.iter().map(port).collect::<Vec<_>>(),
            "argument_names": graph.regions.first().map_or(Vec::new(), |body| {
                body.arguments.iter().map(|&id| value(graph, &self.numbers, id)).collect()
            }),
            "outputs": graph.outputs.iter().map(port).collect::<Vec<_>>(),
            "ops": self.region(0),
        })
    }

    fn region(&self, region: u32) -> Vec<Value> {
        let ops = self.graph.regions.get(region as usize).map(|region| &region.ops);
        ops.into_iter().flatten().map(|op| self.op(op)).collect()
    }

    fn op(&self, op: &Op<'a>) -> Value {
        let name = &self.module.op_names[op.name as usize];
        let value_name = |id: u32| value(self.graph, &self.numbers, id);
        let first = op.results.start;
        let operands: Vec<String> = op
            .operands
            .of(&self.graph.operands)
            .iter()
            .map(|&id| {
                let name = value_name(id);
                match self.result_index(id) {
                    Some(index) => format!("{name}#{index}"),
                    None => name,
                }
            })
            .collect();
        let mut out = json!({
            "op": name.authored,
            "stored": name.stored,
            "name": if op.results.len > 0 { value_name(first) } else { String::new() },
            "names": op.results.range().map(|id| value_name(id as u32)).collect::<Vec<_>>(),
            "operands": operands,
            "results": op.results.range()
                .map(|id| type_text(self.module, self.graph.values[id].ty)).collect::<Vec<_>>(),
            "location": self.location(op.location),
        });
        match &op.payload {
            Payload::None => {}
            Payload::Constant(literal) => {
                out["constant"] = self.literal(literal, self.graph.values[first as usize].ty);
            }
            Payload::Word(word) => out["word"] = json!(word),
            Payload::Callee(callee) => out["callee"] = json!(callee),
            Payload::Settings(settings) => {
                out["settings"] = settings
                    .iter()
                    .map(|(k, v)| (k.clone().into_owned(), setting(v)))
                    .collect::<serde_json::Map<String, Value>>()
                    .into();
            }
        }
        if op.regions.len > 0 {
            let ids = op.regions.of(&self.graph.region_ids);
            let arguments = |region: &u32| -> Vec<String> {
                let region = self.graph.regions.get(*region as usize);
                let arguments = region.map_or(&[][..], |region| &region.arguments);
                arguments.iter().map(|&id| value_name(id)).collect()
            };
            out["region_arguments"] = ids.iter().map(arguments).collect::<Vec<_>>().into();
            out["regions"] = ids
                .iter()
                .map(|&region| Value::from(self.region(region)))
                .collect::<Vec<_>>()
                .into();
        }
        out
    }

    /// Which result a value is, of an op whose results share one printed number.
    fn result_index(&self, id: u32) -> Option<u32> {
        let name = value(self.graph, &self.numbers, id);
        let first =
            (0..id).rev().take_while(|&before| value(self.graph, &self.numbers, before) == name);
        let before = first.count() as u32;
        let after = id + 1 < self.graph.values.len() as u32
            && value(self.graph, &self.numbers, id + 1) == name;
        (before > 0 || after).then_some(before)
    }

    fn literal(&self, literal: &Literal<'_>, ty: TypeId) -> Value {
        let Some(tensor) = self.module.tensor(ty) else { return Value::Null };
        match literal {
            Literal::Resource { name, place } => {
                json!({"resource": name, "length": place.map(|(_, len)| len)})
            }
            Literal::Opaque => json!("opaque"),
            Literal::Inline { .. } | Literal::Numbers { .. } => {
                match numbers(literal, tensor, self.input) {
                    Some(list) if list.len() <= LISTED => {
                        json!({"values": list.iter().map(|x| number(*x)).collect::<Vec<_>>()})
                    }
                    _ => json!("large"),
                }
            }
        }
    }

    fn location(&self, id: LocationId) -> Value {
        let debug = &self.module.debug;
        let Some(location) = self.module.locations.get(id as usize) else { return Value::Null };
        let frame = |at: u32| {
            let frame = debug.frames.get(at as usize)?;
            Some(json!([debug.files.get(frame.file as usize)?.path, frame.line, frame.column]))
        };
        let mut frames: Vec<Value> = Vec::new();
        if location.frame != 0 {
            frames.extend(frame(location.frame - 1));
        }
        frames.extend(location.outer.of(&debug.outer).iter().filter_map(|&at| frame(at)));
        json!({
            "frames": frames,
            "call_stack": debug.call_stacks.get(location.call_stack as usize),
            "torch": location.torch_ops.of(&debug.torch_ops),
            "fused": location.fused.len,
        })
    }
}

fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}

/// A type as the library prints it.
pub fn type_text(module: &Module<'_>, id: TypeId) -> String {
    match module.types.get(id as usize) {
        None => "?".to_owned(),
        Some(Type::Token) => "!coreai.token".to_owned(),
        Some(Type::Handle(inner)) => match module.types.get(*inner as usize) {
            Some(Type::Tensor(_)) => format!("!coreai.handle<{}>", type_text(module, *inner)),
            _ => "!coreai.handle<?>".to_owned(),
        },
        Some(Type::Image(text)) => format!("!coreai.image<{text}>"),
        Some(Type::Other(text)) => text.clone().into_owned(),
        Some(Type::Function(..)) => "function".to_owned(),
        Some(Type::Tensor(tensor)) => {
            let mut text = String::from("tensor<");
            for extent in &tensor.shape {
                match extent {
                    Some(n) => text.push_str(&n.to_string()),
                    None => text.push('?'),
                }
                text.push('x');
            }
            text.push_str(&tensor.element);
            if let Some(encoding) = &tensor.encoding {
                if !encoding.alignments.is_empty() || !encoding.interleave.is_empty() {
                    let join = |list: &[i64], by: &str| {
                        list.iter().map(i64::to_string).collect::<Vec<_>>().join(by)
                    };
                    text.push_str(&format!(
                        ", #coreaix.hw_constraints<{}, alignments: [{}], interleave: [{}]>",
                        encoding.backing,
                        join(&encoding.alignments, ", "),
                        join(&encoding.interleave, "x"),
                    ));
                }
                if let Some(scheme) = &encoding.sparse {
                    text.push_str(&format!(", sparse {scheme}"));
                }
            }
            text.push('>');
            text
        }
    }
}

fn setting(value: &Setting<'_>) -> Value {
    match value {
        Setting::Int(n) => json!(n),
        Setting::Float(x) => number(*x),
        Setting::Bool(b) => json!(b),
        Setting::Text(text) => json!(text),
        Setting::List(items) => items.iter().map(setting).collect(),
        Setting::Map(fields) => {
            let fields = fields.iter().map(|(k, v)| (k.clone().into_owned(), setting(v)));
            fields.collect::<serde_json::Map<String, Value>>().into()
        }
        Setting::Unit => Value::Null,
    }
}
