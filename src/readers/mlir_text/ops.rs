//! Regions and ops of a text, pretty or generic.
//!
//! The pretty forms are read by their common shape: operands in order (a `with … at …` puts the
//! update last, as it is stored), words after `=`, regions, types after `:`. An op that nobody knows
//! is read like any other.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::Context;
use super::graphs::{op_types, word};
use super::lexer::{DEEPEST, Lexer, Parsed};
use super::values::{dense, dictionary, literal, read_type, setting};
use crate::readers::core_ai::ir::{
    Graph, Literal, Op, OpName, Payload, Region, Setting, Span, Text, TypeId, Value, ValueId,
};

/// Marks a value id that was used before its definition.
const FORWARD: u32 = 1 << 31;

/// A graph while it is read.
#[derive(Debug, Default)]
pub struct Body<'a> {
    /// What is read so far.
    pub graph: Graph<'a>,
    /// First value and number of values by name.
    names: FxHashMap<Text<'a>, (ValueId, u32)>,
    /// Names that regions hid: restored when they end.
    hidden: Vec<(Text<'a>, Option<(ValueId, u32)>)>,
    /// Names used before they are defined.
    forward: Vec<(Text<'a>, u32)>,
}

/// An op while it is read.
#[derive(Default)]
struct Draft<'a> {
    operands: Vec<ValueId>,
    /// Operands after `with` and after `at`.
    with: Vec<ValueId>,
    at: Vec<ValueId>,
    regions: Vec<u32>,
    payload: Payload<'a>,
    settings: Vec<(Text<'a>, Setting<'a>)>,
    types: Vec<TypeId>,
}

impl<'a> Body<'a> {
    /// A new value of a name.
    pub fn define(&mut self, name: Text<'a>, ty: TypeId) -> ValueId {
        self.define_all(name, &[ty])
    }

    fn define_all(&mut self, name: Text<'a>, types: &[TypeId]) -> ValueId {
        let first = self.graph.values.len() as u32;
        for (at, &ty) in types.iter().enumerate() {
            self.graph.values.push(Value { ty });
            let printed = Cow::Owned(format!("%{name}"));
            self.graph.value_names.push((first + at as u32, printed));
        }
        let before = self.names.insert(name.clone(), (first, types.len() as u32));
        self.hidden.push((name, before));
        first
    }

    /// The graph, with forward uses resolved.
    pub fn finish(mut self, lexer: &Lexer<'a>) -> Parsed<Graph<'a>> {
        for operand in self.graph.operands.iter_mut().filter(|operand| **operand & FORWARD != 0) {
            let (name, index) = &self.forward[(*operand & !FORWARD) as usize];
            match self.names.get(name) {
                Some((first, count)) if index < count => *operand = first + index,
                _ => return lexer.fault(format!("%{name} is never defined")),
            }
        }
        Ok(self.graph)
    }

    /// `%name`, `%name#1`.
    fn operand(&mut self, lexer: &mut Lexer<'a>) -> Parsed<ValueId> {
        lexer.expect("%")?;
        let name = lexer.name()?;
        let index: u32 = if lexer.take("#") { lexer.digits().parse().unwrap_or(0) } else { 0 };
        match self.names.get(&name) {
            Some((first, count)) if index < *count => Ok(first + index),
            Some((_, count)) => lexer.fault(format!("%{name} has {count} results")),
            None => {
                self.forward.push((name, index));
                Ok(FORWARD | (self.forward.len() as u32 - 1))
            }
        }
    }

    /// The inside of `{ … }`, after the brace, up to and with the closing one.
    pub fn region(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        depth: u32,
    ) -> Parsed<Region<'a>> {
        if depth > DEEPEST {
            return lexer.fault("regions are nested too deep");
        }
        let mark = self.hidden.len();
        let mut region = Region::default();
        let mut blocks = 0;
        while !lexer.take("}") {
            if lexer.take("^") {
                lexer.name()?;
                if lexer.take("(") {
                    while !lexer.take(")") {
                        lexer.expect("%")?;
                        let name = lexer.name()?;
                        lexer.expect(":")?;
                        let Context { tables, module, text, .. } = context;
                        let ty = read_type(lexer, tables, module, text, 0)?;
                        context.location(lexer)?;
                        let argument = self.define(name, ty);
                        if blocks == 0 {
                            region.arguments.push(argument);
                        }
                        if !lexer.take(",") && lexer.peek() != b')' {
                            return lexer.fault("expected `,` or `)` in block arguments");
                        }
                    }
                }
                lexer.expect(":")?;
                blocks += 1;
                continue;
            }
            let op = self.op(context, lexer, depth)?;
            region.ops.push(op);
        }
        if depth > 1 {
            while self.hidden.len() > mark {
                match self.hidden.pop() {
                    Some((name, Some(before))) => {
                        self.names.insert(name, before);
                    }
                    Some((name, None)) => {
                        self.names.remove(&name);
                    }
                    None => {}
                }
            }
        }
        Ok(region)
    }

    fn op(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        depth: u32,
    ) -> Parsed<Op<'a>> {
        let mut names: Vec<(Text<'a>, Option<u32>)> = Vec::new();
        while lexer.take("%") {
            let name = lexer.name()?;
            let count =
                if lexer.take(":") { Some(lexer.digits().parse().unwrap_or(1)) } else { None };
            names.push((name, count));
            if !lexer.take(",") {
                lexer.expect("=")?;
                break;
            }
        }
        let mut draft = Draft::default();
        let name: Text<'a> = if lexer.peek() == b'"' {
            let name = lexer.string()?;
            self.generic(context, lexer, depth, &mut draft)?;
            name
        } else {
            let name = lexer.word();
            if name.is_empty() {
                return lexer.fault("expected an op");
            }
            self.pretty(context, lexer, depth, !names.is_empty(), &mut draft)?;
            name.into()
        };
        let location = context.location(lexer)?;
        let types = std::mem::take(&mut draft.types);
        if let Payload::Constant(Literal::Opaque) = draft.payload
            && let Some(pending) = context.pending.take()
        {
            let tensor = types.first().and_then(|&ty| context.module.tensor(ty));
            draft.payload = Payload::Constant(match tensor {
                Some(tensor) => literal(pending, tensor, &context.tables),
                None => Literal::Opaque,
            });
        }
        let start = self.graph.operands.len();
        self.graph.operands.append(&mut draft.operands);
        self.graph.operands.append(&mut draft.at);
        self.graph.operands.append(&mut draft.with);
        let operands = Span::since(start, self.graph.operands.len());
        let start = self.graph.values.len();
        let mut left = types.as_slice();
        for (name, count) in names {
            let count = count.unwrap_or(1).min(left.len() as u32) as usize;
            let (mine, rest) = left.split_at(count);
            left = rest;
            self.define_all(name, mine);
        }
        let results = Span::since(start, self.graph.values.len());
        let start = self.graph.region_ids.len();
        self.graph.region_ids.append(&mut draft.regions);
        let regions = Span::since(start, self.graph.region_ids.len());
        if let Payload::None = draft.payload {
            let word = draft.settings.iter().find_map(|(key, value)| word(key, value));
            draft.payload = match word {
                Some(word) => Payload::Word(word),
                // What the printed form leaves out because it is the default.
                None if name == "coreai.gelu" => Payload::Word("none".into()),
                None if name == "coreai.scatter_along_axis" => Payload::Word("update".into()),
                None if draft.settings.is_empty() => Payload::None,
                None => Payload::Settings(draft.settings),
            };
        }
        let name = context.op_name(name, |name| OpName { stored: name.clone(), authored: name });
        Ok(Op { name, location, operands, results, regions, payload: draft.payload })
    }

    fn nested(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        depth: u32,
        draft: &mut Draft<'a>,
    ) -> Parsed<()> {
        let region = self.region(context, lexer, depth + 1)?;
        draft.regions.push(self.graph.regions.len() as u32);
        self.graph.regions.push(region);
        Ok(())
    }

    /// `(%a, %b#1) <{key = value}> ({ … }, { … }) {…} : (T) -> T`, after the name.
    fn generic(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        depth: u32,
        draft: &mut Draft<'a>,
    ) -> Parsed<()> {
        lexer.expect("(")?;
        while !lexer.take(")") {
            let operand = self.operand(lexer)?;
            draft.operands.push(operand);
            if !lexer.take(",") && lexer.peek() != b')' {
                return lexer.fault("expected `,` or `)` in a list of operands");
            }
        }
        if lexer.take("<") {
            lexer.expect("{")?;
            while !lexer.take("}") {
                let key = lexer.word();
                if key.is_empty() {
                    return lexer.fault("expected the name of an attribute");
                }
                if lexer.take("=") {
                    self.property(context, lexer, key, draft)?;
                }
                if !lexer.take(",") && lexer.peek() != b'}' {
                    return lexer.fault("expected `,` or `}`");
                }
            }
            lexer.expect(">")?;
        }
        if lexer.looking_at("(") {
            lexer.expect("(")?;
            while !lexer.take(")") {
                lexer.expect("{")?;
                self.nested(context, lexer, depth, draft)?;
                lexer.take(",");
            }
        }
        if lexer.looking_at("{") {
            draft.settings.extend(dictionary(lexer, &context.tables, context.text, 0)?);
        }
        lexer.expect(":")?;
        draft.types = op_types(context, lexer, true)?;
        Ok(())
    }

    /// The value of one property.
    fn property(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        key: &'a str,
        draft: &mut Draft<'a>,
    ) -> Parsed<()> {
        if let Some(found) = dense(lexer)? {
            lexer.expect(":")?;
            let Context { tables, module, text, .. } = context;
            read_type(lexer, tables, module, text, 0)?;
            context.pending = Some(found);
            draft.payload = Payload::Constant(Literal::Opaque);
            return Ok(());
        }
        let value = setting(lexer, &context.tables, context.text, 0)?;
        match value {
            Setting::Text(callee) if key == "callee" => draft.payload = Payload::Callee(callee),
            value => draft.settings.push((Cow::Borrowed(key), value)),
        }
        Ok(())
    }

    /// The library's own form, after the name.
    fn pretty(
        &mut self,
        context: &mut Context<'a>,
        lexer: &mut Lexer<'a>,
        depth: u32,
        has_results: bool,
        draft: &mut Draft<'a>,
    ) -> Parsed<()> {
        #[derive(Clone, Copy, PartialEq)]
        enum Place {
            Operands,
            With,
            At,
        }
        let mut place = Place::Operands;
        let mut after_region = false;
        let mut last_word = "";
        loop {
            let new_line = lexer.skip_space();
            let next = lexer.peek();
            // An op ends with its line, but for what follows a region's closing brace.
            if next == 0 || (new_line && !after_region && next != b':') {
                return Ok(());
            }
            if new_line && after_region && matches!(next, b'%' | b'}' | b'^' | b'"') {
                return Ok(());
            }
            match next {
                b':' => {
                    lexer.expect(":")?;
                    draft.types = op_types(context, lexer, has_results)?;
                    return Ok(());
                }
                b'%' => {
                    let operand = self.operand(lexer)?;
                    match place {
                        Place::Operands => draft.operands.push(operand),
                        Place::With => draft.with.push(operand),
                        Place::At => draft.at.push(operand),
                    }
                }
                b'@' => match setting(lexer, &context.tables, context.text, 0)? {
                    Setting::Text(callee) => draft.payload = Payload::Callee(callee),
                    _ => return lexer.fault("expected the name of a graph"),
                },
                b'=' => {
                    lexer.expect("=")?;
                    if lexer.take("<") {
                        let value = Setting::Text(lexer.word().into());
                        lexer.expect(">")?;
                        draft.settings.push((last_word.into(), value));
                    } else {
                        let value = setting(lexer, &context.tables, context.text, 0)?;
                        draft.settings.push((last_word.into(), value));
                    }
                }
                b'{' => {
                    let mut ahead = *lexer;
                    ahead.expect("{")?;
                    let first = ahead.peek();
                    let key = ahead.word();
                    let is_dictionary = first == b'}'
                        || (!key.is_empty() && matches!(ahead.peek(), b'=' | b',' | b'}'));
                    if is_dictionary {
                        let fields = dictionary(lexer, &context.tables, context.text, 0)?;
                        draft.settings.extend(fields);
                    } else {
                        lexer.expect("{")?;
                        self.nested(context, lexer, depth, draft)?;
                        after_region = true;
                    }
                }
                b'(' | b')' | b',' | b'[' | b']' => lexer.step(),
                b'l' if lexer.looking_at("loc(") => return Ok(()),
                b'd' if lexer.looking_at("dense") => match dense(lexer)? {
                    Some(found) => {
                        context.pending = Some(found);
                        draft.payload = Payload::Constant(Literal::Opaque);
                    }
                    None => last_word = lexer.word(),
                },
                b'#' => {
                    let value = setting(lexer, &context.tables, context.text, 0)?;
                    draft.settings.push((last_word.into(), value));
                }
                b'"' => {
                    let value = Setting::Text(lexer.string()?);
                    draft.settings.push((last_word.into(), value));
                }
                b'-' | b'0'..=b'9' => {
                    if lexer.number().is_empty() {
                        lexer.step();
                    }
                }
                _ => match lexer.word() {
                    "with" => place = Place::With,
                    "at" => place = Place::At,
                    "" => return lexer.fault("an op is not understood from here on"),
                    word => last_word = word,
                },
            }
        }
    }
}
