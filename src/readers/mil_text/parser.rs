//! The grammar of the text form: programs, functions, blocks, operations, types and values.

use std::path::Path;

use super::lexer::{Kind, Lexer, Token, integer, number, unescape};
use crate::graph::DType;
use crate::readers::ReadError;
use crate::readers::mil::dtype;
use crate::readers::mil::ir::{Binding, Block, Data, Function, Operation, Stored, Type, Value};

/// Types in types, values in values, blocks in blocks.
const DEPTH: usize = 32;
/// More axes than any tensor has.
const RANK: usize = 64;

/// A program as text has it.
pub(super) struct Program {
    /// `buildInfo`: who compiled it.
    pub build_info: Vec<(String, String)>,
    pub functions: Vec<Function>,
}

/// A parser at a place in a text.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    path: &'a Path,
}

type Read<T> = Result<T, ReadError>;

impl<'a> Parser<'a> {
    /// A parser of `text`, which was read from `path`.
    ///
    /// # Errors
    /// [`ReadError`] if the text starts with no token.
    pub fn new(path: &'a Path, text: &'a str) -> Read<Parser<'a>> {
        let token = Token { kind: Kind::End, at: 0 };
        let mut parser = Parser { lexer: Lexer::new(text), token, path };
        parser.advance()?;
        Ok(parser)
    }

    /// The whole program.
    ///
    /// # Errors
    /// [`ReadError`] at the first token that does not fit.
    pub fn program(&mut self) -> Read<Program> {
        self.word("program")?;
        self.mark(b'(')?;
        self.advance()?;
        self.mark(b')')?;
        let mut build_info = Vec::new();
        for (name, value) in self.attributes()? {
            if let ("buildInfo", Value::Dict(entries)) = (name.as_str(), value) {
                build_info.extend(entries.iter().filter_map(|(key, value)| {
                    Some((text(key)?.to_owned(), text(value)?.to_owned()))
                }));
            }
        }
        self.mark(b'{')?;
        let mut functions = Vec::new();
        while !self.eat(b'}')? {
            functions.push(self.function()?);
        }
        if self.token.kind != Kind::End {
            return Err(self.expected("the end of the text"));
        }
        Ok(Program { build_info, functions })
    }

    fn function(&mut self) -> Read<Function> {
        self.word("func")?;
        let name = self.name()?;
        self.mark(b'<')?;
        let opset = self.name()?;
        self.mark(b'>')?;
        let inputs = self.parameters(0)?;
        self.attributes()?;
        let mut body = self.body(0)?;
        self.eat(b';')?;
        body.inputs = Vec::new();
        Ok(Function { name, opset: opset.to_ascii_lowercase(), inputs, body })
    }

    /// `(type name, …)`
    fn parameters(&mut self, depth: usize) -> Read<Vec<(String, Type)>> {
        self.mark(b'(')?;
        let mut list = Vec::new();
        while !self.eat(b')')? {
            let ty = self.ty(depth)?;
            list.push((self.name()?, ty));
            self.attributes()?;
            if !self.eat(b',')? {
                self.mark(b')')?;
                break;
            }
        }
        Ok(list)
    }

    /// `{ operations } -> (names)`
    fn body(&mut self, depth: usize) -> Read<Block> {
        if depth > DEPTH {
            return Err(self.error(format!("blocks nest deeper than {DEPTH}")));
        }
        self.mark(b'{')?;
        let mut block = Block::default();
        while !self.eat(b'}')? {
            let operation = self.operation(depth)?;
            block.operations.push(Stored::Parsed(Box::new(operation)));
        }
        if self.token.kind == Kind::Arrow {
            self.advance()?;
            self.mark(b'(')?;
            while !self.eat(b')')? {
                block.outputs.push(self.name()?);
                if !self.eat(b',')? {
                    self.mark(b')')?;
                    break;
                }
            }
        }
        Ok(block)
    }

    /// `type name, … = op(arguments) {blocks} [attributes];`, without results `op(arguments)[…];`
    fn operation(&mut self, depth: usize) -> Read<Operation> {
        let mut operation = Operation::default();
        let first = self.token;
        let Kind::Word(word) = first.kind else { return Err(self.expected("an operation")) };
        let ahead = self.lexer.clone().next().map(|token| token.kind);
        if ahead == Ok(Kind::Mark(b'(')) {
            operation.spelling = word.to_owned();
            self.advance()?;
        } else {
            loop {
                let ty = self.ty(0)?;
                operation.outputs.push((self.name()?, ty));
                if !self.eat(b',')? {
                    break;
                }
            }
            self.mark(b'=')?;
            operation.spelling = self.name()?;
        }
        self.mark(b'(')?;
        while !self.eat(b')')? {
            let name = self.name()?;
            self.mark(b'=')?;
            let bindings = self.argument()?;
            operation.inputs.push((name, bindings));
            if !self.eat(b',')? {
                self.mark(b')')?;
                break;
            }
        }
        let mut attributes = self.attributes()?;
        self.blocks(&mut operation, depth)?;
        attributes.extend(self.attributes()?);
        self.mark(b';')?;
        for (name, value) in attributes {
            match (name.as_str(), text(&value)) {
                ("name", Some(text)) => operation.name = text.to_owned(),
                _ => operation.attributes.push((name, value)),
            }
        }
        Ok(operation)
    }

    /// Nested blocks, each with a label and parameters or without.
    fn blocks(&mut self, operation: &mut Operation, depth: usize) -> Read<()> {
        loop {
            self.eat(b',')?;
            let mut inputs = Vec::new();
            if let Kind::Word(_) = self.token.kind {
                self.advance()?;
            }
            if self.token.kind == Kind::Mark(b'(') {
                inputs = self.parameters(0)?;
            }
            if self.token.kind != Kind::Mark(b'{') {
                return Ok(());
            }
            let mut block = self.body(depth + 1)?;
            block.inputs = inputs;
            operation.blocks.push(block);
        }
    }

    /// A name, a list of them in parentheses, or a value in place.
    fn argument(&mut self) -> Read<Vec<Binding>> {
        if self.eat(b'(')? {
            let mut list = Vec::new();
            while !self.eat(b')')? {
                list.push(self.binding()?);
                if !self.eat(b',')? {
                    self.mark(b')')?;
                    break;
                }
            }
            return Ok(list);
        }
        Ok(vec![self.binding()?])
    }

    fn binding(&mut self) -> Read<Binding> {
        let ahead = self.lexer.clone().next().map(|token| token.kind);
        match (self.token.kind, ahead) {
            (Kind::Word(_), Ok(Kind::Mark(b'(' | b'<'))) => Ok(Binding::Value(self.value(0)?)),
            (Kind::Word(word), _) => {
                self.advance()?;
                Ok(Binding::Name(word.to_owned()))
            }
            _ => Err(self.expected("a name or a value")),
        }
    }

    /// `[name = value, …]`, or nothing.
    fn attributes(&mut self) -> Read<Vec<(String, Value)>> {
        let mut list = Vec::new();
        if !self.eat(b'[')? {
            return Ok(list);
        }
        while !self.eat(b']')? {
            let name = self.name()?;
            self.mark(b'=')?;
            list.push((name, self.value(0)?));
            if !self.eat(b',')? {
                self.mark(b']')?;
                break;
            }
        }
        Ok(list)
    }

    fn ty(&mut self, depth: usize) -> Read<Type> {
        if depth > DEPTH {
            return Err(self.error(format!("types nest deeper than {DEPTH}")));
        }
        let Kind::Word(word) = self.token.kind else { return Err(self.expected("a type")) };
        self.advance()?;
        if let Some(dtype) = dtype(word) {
            return Ok(Type::Tensor { dtype, dims: Some(Vec::new()) });
        }
        self.mark(b'<')?;
        match word {
            "tensor" => {
                let dtype = self.dtype()?;
                self.mark(b',')?;
                let dims = self.dims()?;
                self.mark(b'>')?;
                Ok(Type::Tensor { dtype, dims })
            }
            "tensor_buffer" => {
                let dtype = self.dtype()?;
                let mut dims = None;
                while self.eat(b',')? {
                    let key = self.name()?;
                    self.mark(b'=')?;
                    let list = self.dims()?;
                    if key == "shape" {
                        dims = list;
                    }
                }
                self.mark(b'>')?;
                Ok(Type::Tensor { dtype, dims })
            }
            "state" => {
                let inner = self.ty(depth + 1)?;
                self.mark(b'>')?;
                Ok(Type::State(Box::new(inner)))
            }
            "list" => {
                let inner = self.ty(depth + 1)?;
                if self.eat(b',')? {
                    self.advance()?;
                }
                self.mark(b'>')?;
                Ok(Type::List(Box::new(inner)))
            }
            _ => {
                // Dictionaries, tuples and what is newer: skipped to the closing mark.
                let mut open = 1usize;
                while open > 0 {
                    match self.token.kind {
                        Kind::Mark(b'<') => open += 1,
                        Kind::Mark(b'>') => open -= 1,
                        Kind::End => return Err(self.expected("`>`")),
                        _ => {}
                    }
                    self.advance()?;
                }
                Ok(Type::Other)
            }
        }
    }

    fn dtype(&mut self) -> Read<DType> {
        let word = self.name()?;
        Ok(dtype(&word).unwrap_or(DType::Unknown))
    }

    /// `[1, ?, n]`; `None` if the rank is not known.
    fn dims(&mut self) -> Read<Option<Vec<Option<u64>>>> {
        self.mark(b'[')?;
        let mut dims = Vec::new();
        let mut known = true;
        while !self.eat(b']')? {
            match self.token.kind {
                Kind::Number(text) => dims.push(integer(text).and_then(|n| u64::try_from(n).ok())),
                Kind::Word(_) | Kind::Mark(b'?') => dims.push(None),
                Kind::Mark(b'*') => known = false,
                _ => return Err(self.expected("a size")),
            }
            if dims.len() > RANK {
                return Err(self.error(format!("a tensor of more than {RANK} axes")));
            }
            self.advance()?;
            if !self.eat(b',')? {
                self.mark(b']')?;
                break;
            }
        }
        Ok(known.then_some(dims))
    }

    /// `type(literal)`
    fn value(&mut self, depth: usize) -> Read<Value> {
        let ty = self.ty(depth)?;
        self.mark(b'(')?;
        let value = self.literal(ty, depth)?;
        self.mark(b')')?;
        Ok(value)
    }

    fn literal(&mut self, ty: Type, depth: usize) -> Read<Value> {
        if depth > DEPTH {
            return Err(self.error(format!("values nest deeper than {DEPTH}")));
        }
        match self.token.kind {
            Kind::Word("BLOBFILE") => self.blob(ty),
            Kind::Mark(b'{') => self.dictionary(depth),
            Kind::Mark(b')') => Ok(Value::Tensor(ty, Data::Ints(Vec::new()))),
            _ => {
                let is_list = matches!(ty, Type::List(_));
                let mut elements = Elements::default();
                self.elements(&mut elements, depth)?;
                let (dtype, _) = ty.tensor();
                let data = elements.finish(dtype);
                if is_list {
                    return Ok(match data {
                        Data::Texts(list) => Value::List(
                            list.into_iter()
                                .map(|text| Value::Tensor(Type::Other, Data::Texts(vec![text])))
                                .collect(),
                        ),
                        data => Value::Tensor(ty, data),
                    });
                }
                Ok(Value::Tensor(ty, data))
            }
        }
    }

    /// Numbers, words and strings, in however many brackets.
    fn elements(&mut self, into: &mut Elements, depth: usize) -> Read<()> {
        if depth > DEPTH {
            return Err(self.error(format!("values nest deeper than {DEPTH}")));
        }
        match self.token.kind {
            Kind::Mark(b'[') => {
                self.advance()?;
                while !self.eat(b']')? {
                    self.elements(into, depth + 1)?;
                    if !self.eat(b',')? {
                        self.mark(b']')?;
                        break;
                    }
                }
                return Ok(());
            }
            Kind::Number(text) => match integer(text) {
                Some(n) => into.numbers.push(Number::Int(n)),
                None => match number(text) {
                    Some(x) => into.numbers.push(Number::Float(x)),
                    None => return Err(self.expected("a number")),
                },
            },
            Kind::Text(text) => into.texts.push(unescape(text)),
            Kind::Word("true") => into.numbers.push(Number::Int(1)),
            Kind::Word("false") => into.numbers.push(Number::Int(0)),
            Kind::Word(word) => match number(word) {
                Some(x) => into.numbers.push(Number::Float(x)),
                // A value with its own type, inside a list.
                None => {
                    match self.value(depth + 1)? {
                        Value::Tensor(_, Data::Texts(list)) => into.texts.extend(list),
                        Value::Tensor(_, Data::Ints(list)) => {
                            into.numbers.extend(list.into_iter().map(Number::Int));
                        }
                        Value::Tensor(_, Data::Floats(list)) => {
                            into.numbers.extend(list.into_iter().map(Number::Float));
                        }
                        _ => {}
                    }
                    return Ok(());
                }
            },
            _ => return Err(self.expected("a value")),
        }
        self.advance()
    }

    /// `{{key, value}, …}`
    fn dictionary(&mut self, depth: usize) -> Read<Value> {
        self.mark(b'{')?;
        let mut entries = Vec::new();
        while !self.eat(b'}')? {
            self.mark(b'{')?;
            let key = self.literal(Type::Other, depth + 1)?;
            self.mark(b',')?;
            let value = self.literal(Type::Other, depth + 1)?;
            self.mark(b'}')?;
            entries.push((key, value));
            if !self.eat(b',')? {
                self.mark(b'}')?;
                break;
            }
        }
        Ok(Value::Dict(entries))
    }

    /// `BLOBFILE(path = string("…"), offset = uint64(64))`
    fn blob(&mut self, ty: Type) -> Read<Value> {
        self.advance()?;
        self.mark(b'(')?;
        let (mut file, mut offset) = (String::new(), 0);
        while !self.eat(b')')? {
            let name = self.name()?;
            self.mark(b'=')?;
            match (name.as_str(), self.value(0)?) {
                ("path", Value::Tensor(_, Data::Texts(list))) => {
                    file = list.into_iter().next().unwrap_or_default();
                }
                ("offset", Value::Tensor(_, Data::Ints(list))) => {
                    offset = list.first().map_or(0, |n| *n as u64);
                }
                _ => {}
            }
            if !self.eat(b',')? {
                self.mark(b')')?;
                break;
            }
        }
        Ok(Value::Blob { ty, file, offset })
    }

    fn advance(&mut self) -> Read<()> {
        self.token = self
            .lexer
            .next()
            .map_err(|(at, what)| ReadError::broken(self.path, what).at(at as u64))?;
        Ok(())
    }

    fn name(&mut self) -> Read<String> {
        let Kind::Word(word) = self.token.kind else { return Err(self.expected("a name")) };
        self.advance()?;
        Ok(word.to_owned())
    }

    fn word(&mut self, word: &str) -> Read<()> {
        if self.token.kind != Kind::Word(word) {
            return Err(self.expected(&format!("`{word}`")));
        }
        self.advance()
    }

    fn mark(&mut self, mark: u8) -> Read<()> {
        if self.token.kind != Kind::Mark(mark) {
            return Err(self.expected(&format!("`{}`", char::from(mark))));
        }
        self.advance()
    }

    /// Takes the mark if it is next.
    fn eat(&mut self, mark: u8) -> Read<bool> {
        if self.token.kind != Kind::Mark(mark) {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    fn expected(&self, what: &str) -> ReadError {
        let found = match self.token.kind {
            Kind::Word(text) | Kind::Number(text) => {
                format!("`{}`", text.chars().take(40).collect::<String>())
            }
            Kind::Text(_) => "a string".to_owned(),
            Kind::Mark(mark) => format!("`{}`", char::from(mark)),
            Kind::Arrow => "`->`".to_owned(),
            Kind::End => "the end of the text".to_owned(),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    fn error(&self, message: String) -> ReadError {
        ReadError::broken(self.path, message).at(self.token.at as u64)
    }
}

/// A number, whole if written so.
enum Number {
    Int(i64),
    Float(f64),
}

/// The elements of a literal while they are read.
#[derive(Default)]
struct Elements {
    numbers: Vec<Number>,
    texts: Vec<String>,
}

impl Elements {
    /// As the dtype asks for; without one, as they are written.
    fn finish(self, dtype: DType) -> Data {
        if !self.texts.is_empty() || dtype == DType::String {
            return Data::Texts(self.texts);
        }
        let whole = self.numbers.iter().all(|number| matches!(number, Number::Int(_)));
        if dtype.is_float() || !whole {
            let list = self.numbers.into_iter().map(|number| match number {
                Number::Int(n) => n as f64,
                Number::Float(x) => x,
            });
            return Data::Floats(list.collect());
        }
        let list = self.numbers.into_iter().map(|number| match number {
            Number::Int(n) => n,
            Number::Float(x) => x as i64,
        });
        Data::Ints(list.collect())
    }
}

/// The one text of a value.
fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Tensor(_, Data::Texts(list)) => list.first().map(String::as_str),
        _ => None,
    }
}
