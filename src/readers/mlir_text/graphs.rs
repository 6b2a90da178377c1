//! Graphs of a text, pretty or generic: the header, then the ops of its body.

use std::borrow::Cow;

use super::Context;
use super::lexer::{Lexer, Parsed};
use super::ops::Body;
use super::values::{dictionary, read_type, setting, type_list};
use crate::readers::core_ai::ir::{Port, Region, Setting, Text, Type, TypeId, ValueId};

/// A graph in the library's own form, after its name:
/// `private noinline @f(%a: T {…}) -> (T {…}) attributes {…} { … }`.
pub fn pretty<'a>(context: &mut Context<'a>, lexer: &mut Lexer<'a>) -> Parsed<()> {
    let mut body = Body::default();
    loop {
        if lexer.peek() == b'@' {
            break;
        }
        match lexer.word() {
            "private" => body.graph.private = true,
            "noinline" => body.graph.no_inline = true,
            "" => return lexer.fault("expected the name of a graph"),
            _ => {}
        }
    }
    let Setting::Text(name) = setting(lexer, &context.tables, context.text, 0)? else {
        return lexer.fault("expected the name of a graph");
    };
    body.graph.name = name;
    lexer.expect("(")?;
    let mut arguments: Vec<(Text<'a>, TypeId)> = Vec::new();
    while !lexer.take(")") {
        lexer.expect("%")?;
        let name = lexer.name()?;
        lexer.expect(":")?;
        let port = port(context, lexer)?;
        arguments.push((name, port.ty));
        body.graph.inputs.push(port);
        if !lexer.take(",") && lexer.peek() != b')' {
            return lexer.fault("expected `,` or `)` in a list of inputs");
        }
    }
    if lexer.take("->") {
        if lexer.take("(") {
            while !lexer.take(")") {
                let port = port(context, lexer)?;
                body.graph.outputs.push(port);
                if !lexer.take(",") && lexer.peek() != b')' {
                    return lexer.fault("expected `,` or `)` in a list of outputs");
                }
            }
        } else {
            // Without brackets there are no attributes: a brace opens the body.
            let Context { tables, module, text, .. } = context;
            let ty = read_type(lexer, tables, module, text, 0)?;
            body.graph.outputs.push(Port { ty, ..Port::default() });
        }
    }
    if lexer.take("attributes") {
        for (key, value) in dictionary(lexer, &context.tables, context.text, 0)? {
            if key == "composite_decl" {
                body.graph.composite = crate::readers::core_ai::composite(value);
            }
        }
    }
    let arguments: Vec<ValueId> =
        arguments.into_iter().map(|(name, ty)| body.define(name, ty)).collect();
    lexer.expect("{")?;
    body.graph.regions.push(Region::default());
    let mut region = body.region(context, lexer, 1)?;
    // In this form the inputs stand in the header.
    if region.arguments.is_empty() {
        region.arguments = arguments;
    }
    body.graph.regions[0] = region;
    finish(context, lexer, body)
}

/// A graph in the generic form, after its quoted name:
/// `() <{sym_name = "f", function_type = …}> ({ ^bb0(%a: T): … }) : () -> ()`.
pub fn generic<'a>(context: &mut Context<'a>, lexer: &mut Lexer<'a>) -> Parsed<()> {
    let mut body = Body::default();
    lexer.expect("(")?;
    lexer.expect(")")?;
    let (mut types, mut inputs, mut outputs) = (None, Vec::new(), Vec::new());
    if lexer.take("<") {
        lexer.expect("{")?;
        while !lexer.take("}") {
            let key = if lexer.peek() == b'"' { lexer.string()? } else { lexer.word().into() };
            if !lexer.take("=") {
                match &*key {
                    "priv" => body.graph.private = true,
                    "no_inline" => body.graph.no_inline = true,
                    "" => return lexer.fault("expected the name of an attribute"),
                    _ => {}
                }
            } else if key == "function_type" {
                let Context { tables, module, text, .. } = context;
                types = Some(read_type(lexer, tables, module, text, 0)?);
            } else {
                match (&*key, setting(lexer, &context.tables, context.text, 0)?) {
                    ("sym_name", Setting::Text(name)) => body.graph.name = name,
                    ("arg_attrs", Setting::List(list)) => inputs = list,
                    ("res_attrs", Setting::List(list)) => outputs = list,
                    ("composite_decl", value) => {
                        body.graph.composite = crate::readers::core_ai::composite(value);
                    }
                    _ => {}
                }
            }
            if !lexer.take(",") && lexer.peek() != b'}' {
                return lexer.fault("expected `,` or `}`");
            }
        }
        lexer.expect(">")?;
    }
    if let Some(Type::Function(operands, results)) =
        types.and_then(|ty| context.module.types.get(ty as usize)).cloned()
    {
        body.graph.inputs = ports(&operands, inputs);
        body.graph.outputs = ports(&results, outputs);
    }
    lexer.expect("(")?;
    lexer.expect("{")?;
    body.graph.regions.push(Region::default());
    let region = body.region(context, lexer, 1)?;
    body.graph.regions[0] = region;
    lexer.expect(")")?;
    if lexer.looking_at("{") {
        lexer.balanced()?;
    }
    if lexer.take(":") {
        let Context { tables, module, text, .. } = context;
        read_type(lexer, tables, module, text, 0)?;
    }
    finish(context, lexer, body)
}

fn finish<'a>(context: &mut Context<'a>, lexer: &mut Lexer<'a>, body: Body<'a>) -> Parsed<()> {
    let location = context.location(lexer)?;
    let mut graph = body.finish(lexer)?;
    graph.location = location;
    context.module.graphs.push(graph);
    Ok(())
}

fn ports<'a>(types: &[TypeId], settings: Vec<Setting<'a>>) -> Vec<Port<'a>> {
    let mut settings = settings.into_iter();
    types
        .iter()
        .map(|&ty| {
            let mut port = Port { ty, ..Port::default() };
            if let Some(Setting::Map(fields)) = settings.next() {
                name(&mut port, fields);
            }
            port
        })
        .collect()
}

/// `T {coreai.name = "x"} loc(…)`.
fn port<'a>(context: &mut Context<'a>, lexer: &mut Lexer<'a>) -> Parsed<Port<'a>> {
    let Context { tables, module, text, .. } = context;
    let ty = read_type(lexer, tables, module, text, 0)?;
    let mut port = Port { ty, ..Port::default() };
    if lexer.looking_at("{") {
        let fields = dictionary(lexer, &context.tables, context.text, 0)?;
        name(&mut port, fields);
    }
    port.location = context.location(lexer)?;
    Ok(port)
}

fn name<'a>(port: &mut Port<'a>, fields: Vec<(Text<'a>, Setting<'a>)>) {
    for (key, value) in fields {
        match value {
            Setting::Text(name) if key == "coreai.name" => port.name = name,
            value => port.attributes.push((key, value)),
        }
    }
}

/// Types of an op: `T`, `T, T`, `(T, T) -> (T, T)`, `T to T`. Gives operands' and results' types;
/// with only one list it is the results' if the op has results.
pub fn op_types<'a>(
    context: &mut Context<'a>,
    lexer: &mut Lexer<'a>,
    has_results: bool,
) -> Parsed<Vec<TypeId>> {
    let Context { tables, module, text, .. } = context;
    let mut first = Vec::new();
    if lexer.peek() == b'(' {
        first = type_list(lexer, tables, module, text, 0)?;
    } else {
        loop {
            first.push(read_type(lexer, tables, module, text, 0)?);
            if !lexer.take(",") {
                break;
            }
        }
    }
    if !lexer.take("->") && !lexer.take("to") {
        return Ok(if has_results { first } else { Vec::new() });
    }
    if lexer.peek() == b'(' {
        return type_list(lexer, tables, module, text, 0);
    }
    let mut results = Vec::new();
    loop {
        results.push(read_type(lexer, tables, module, text, 0)?);
        if !lexer.take(",") {
            return Ok(results);
        }
    }
}

/// The word of a setting that stands for one: printed as a word, or as its number.
pub fn word<'a>(key: &str, value: &Setting<'a>) -> Option<Text<'a>> {
    let words: &[&'static str] = match key {
        "approximate" => &["none", "tanh", "sigmoid"],
        "scan_op" | "combiner" => &["sum", "product", "min", "max"],
        "mode" | "padding_mode" => &["circular", "constant", "reflect", "replicate", "symmetric"],
        "scatter_mode" => &["update", "add", "sub", "mul", "div", "max", "min"],
        "interpolation_mode" => &["linear", "nearest_neighbor"],
        _ => return None,
    };
    match value {
        Setting::Text(word) => Some(word.clone()),
        Setting::Int(n) => {
            usize::try_from(*n).ok().and_then(|n| words.get(n)).map(|word| Cow::Borrowed(*word))
        }
        _ => None,
    }
}
