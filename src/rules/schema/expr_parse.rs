//! Reads expressions: a lexer and a parser by precedence.

use super::expr::{Binary, Call, Expr, ExprError, Field, Names, Slot, Special};
use super::problem::hint;

/// Reads an expression.
///
/// # Errors
/// The first mistake, with its offset in characters.
pub fn parse(text: &str, names: &dyn Names) -> Result<Expr, ExprError> {
    let tokens = lex(text)?;
    let end = text.chars().count();
    let mut parser = Parser { tokens, at: 0, end, depth: 0, names };
    let expr = parser.or()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(parser.error(format!("nothing expected here, found {}", token.shown()))),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Symbol(&'static str),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Number(n) => format!("`{n}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Word(word) => format!("`{word}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
        }
    }
}

const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ".",
];

fn lex(text: &str) -> Result<Vec<(usize, Token)>, ExprError> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let start = at;
        let get = |at: usize| chars.get(at).copied().unwrap_or(' ');
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        let token = if c.is_ascii_digit() {
            while get(at).is_ascii_alphanumeric()
                || get(at) == '.' && get(at + 1).is_ascii_digit()
                || matches!(get(at), '-' | '+') && matches!(get(at - 1), 'e' | 'E')
            {
                at += 1;
            }
            let number: String = chars[start..at].iter().collect();
            Token::Number(number.parse().map_err(|_| ExprError {
                offset: start,
                message: format!("`{number}` is no number"),
            })?)
        } else if c.is_alphabetic() || c == '_' {
            while get(at).is_alphanumeric()
                || get(at) == '_'
                || get(at) == '-' && get(at + 1).is_alphanumeric()
            {
                at += 1;
            }
            Token::Word(chars[start..at].iter().collect())
        } else if c == '"' || c == '\'' {
            at += 1;
            while at < chars.len() && chars[at] != c {
                at += 1;
            }
            if at == chars.len() {
                return Err(ExprError {
                    offset: start,
                    message: "a quote that is not closed".into(),
                });
            }
            at += 1;
            Token::Text(chars[start + 1..at - 1].iter().collect())
        } else {
            let rest: String = chars[at..chars.len().min(at + 2)].iter().collect();
            let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) else {
                return Err(ExprError { offset: at, message: format!("`{c}` means nothing here") });
            };
            at += symbol.len();
            Token::Symbol(symbol)
        };
        tokens.push((start, token));
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    depth: u32,
    names: &'a dyn Names,
}

/// Deepest nesting of an expression: a rule file may come from a stranger.
const MAX_DEPTH: u32 = 64;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(offset, _)| *offset)
    }

    fn error(&self, message: String) -> ExprError {
        ExprError { offset: self.offset(), message }
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(s)) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ExprError> {
        if self.symbol(symbol) {
            return Ok(());
        }
        let found = self.peek().map_or("the end".to_owned(), Token::shown);
        Err(self.error(format!("expected `{symbol}`, found {found}")))
    }

    fn or(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} deep")));
        }
        let mut left = self.and()?;
        while self.word("or") {
            left = Expr::Binary(Binary::Or, Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expr::Binary(Binary::And, Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, ExprError> {
        let mut negated = false;
        while self.word("not") {
            negated = !negated;
        }
        let inner = self.comparison()?;
        Ok(if negated { Expr::Not(Box::new(inner)) } else { inner })
    }

    fn comparison(&mut self) -> Result<Expr, ExprError> {
        const OPS: &[(&str, Binary)] = &[
            ("==", Binary::Eq),
            ("!=", Binary::Ne),
            ("<=", Binary::Le),
            (">=", Binary::Ge),
            ("<", Binary::Lt),
            (">", Binary::Gt),
        ];
        let left = self.sum()?;
        for (symbol, op) in OPS {
            if self.symbol(symbol) {
                return Ok(Expr::Binary(*op, Box::new(left), Box::new(self.sum()?)));
            }
        }
        if self.word("in") {
            self.expect("[")?;
            let mut list = vec![self.sum()?];
            while self.symbol(",") {
                list.push(self.sum()?);
            }
            self.expect("]")?;
            return Ok(Expr::In(Box::new(left), list));
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.term()?;
        loop {
            let op = if self.symbol("+") {
                Binary::Add
            } else if self.symbol("-") {
                Binary::Sub
            } else {
                return Ok(left);
            };
            left = Expr::Binary(op, Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.factor()?;
        loop {
            let op = if self.symbol("*") {
                Binary::Mul
            } else if self.symbol("//") {
                Binary::FloorDiv
            } else if self.symbol("/") {
                Binary::Div
            } else if self.symbol("%") {
                Binary::Rem
            } else {
                return Ok(left);
            };
            left = Expr::Binary(op, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expr, ExprError> {
        let mut negated = false;
        while self.symbol("-") {
            negated = !negated;
        }
        let inner = self.atom()?;
        Ok(if negated { Expr::Neg(Box::new(inner)) } else { inner })
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        let Some(token) = self.peek().cloned() else {
            return Err(self.error("expected a number, a name or `(`, found the end".into()));
        };
        match token {
            Token::Number(n) => {
                self.at += 1;
                Ok(Expr::Number(n))
            }
            Token::Text(text) => {
                self.at += 1;
                Ok(Expr::Text(text))
            }
            Token::Symbol("(") => {
                self.at += 1;
                let inner = self.or()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Word(word) => self.named(&word),
            Token::Symbol(_) => {
                Err(self
                    .error(format!("expected a number, a name or `(`, found {}", token.shown())))
            }
        }
    }

    fn named(&mut self, word: &str) -> Result<Expr, ExprError> {
        let start = self.offset();
        let fail = |message: String| ExprError { offset: start, message };
        self.at += 1;
        if word == "true" || word == "false" {
            return Ok(Expr::Bool(word == "true"));
        }
        if self.symbol("(") {
            let call = Call::parse(word).ok_or_else(|| {
                fail(format!("there is no function `{word}`{}", hint(word, Call::NAMES)))
            })?;
            let mut args = Vec::new();
            if !self.symbol(")") {
                args.push(self.or()?);
                while self.symbol(",") {
                    args.push(self.or()?);
                }
                self.expect(")")?;
            }
            if !call.arity().contains(&args.len()) {
                let arity = call.arity();
                let wanted = if arity.start() == arity.end() {
                    format!("{}", arity.start())
                } else {
                    format!("{} to {}", arity.start(), arity.end())
                };
                return Err(fail(format!(
                    "`{word}` takes {wanted} arguments, found {}",
                    args.len()
                )));
            }
            return Ok(Expr::Call(call, args));
        }
        let field = if self.symbol(".") {
            match self.peek().cloned() {
                Some(Token::Word(field)) => {
                    self.at += 1;
                    Some(field)
                }
                _ => return Err(self.error("expected a property after `.`".into())),
            }
        } else {
            None
        };
        if let Some(field) = &field {
            let full = format!("{word}.{field}");
            if let Some(special) = Special::parse(&full) {
                return Ok(Expr::Special(special));
            }
            if ["function", "program", "target", "limits", "group"].contains(&word) {
                return Err(fail(format!("there is no `{full}`{}", hint(&full, Special::NAMES))));
            }
        }
        let slot = self.names.slot(word).ok_or_else(|| {
            let bindings = self.names.bindings();
            fail(format!("nothing in `match` binds `{word}`{}", hint(word, &bindings)))
        })?;
        Ok(match field.as_deref() {
            None => Expr::Slot(slot),
            Some(field) => Expr::Field(slot, self.field(slot, field).map_err(fail)?),
        })
    }

    fn field(&self, slot: Slot, field: &str) -> Result<Field, String> {
        Ok(match field {
            "rank" => Field::Rank,
            "dtype" => Field::Dtype,
            "op" => Field::Op,
            "name" => Field::Name,
            "spelling" => Field::Spelling,
            "module" => Field::Module,
            "fqn" => Field::Fqn,
            "bytes" => Field::Bytes,
            "elements" => Field::Elements,
            "shape" => Field::Shape,
            "number" => Field::Value,
            attribute => {
                self.names.attribute(slot, attribute)?;
                Field::Attr(attribute.to_owned())
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use super::*;

    struct Two;
    impl Names for Two {
        fn slot(&self, name: &str) -> Option<Slot> {
            ["x", "contracted-axis"].iter().position(|known| *known == name).map(|at| at as Slot)
        }
        fn bindings(&self) -> Vec<&str> {
            vec!["x", "contracted-axis"]
        }
        fn attribute(&self, _: Slot, name: &str) -> Result<(), String> {
            if name == "axis" { Ok(()) } else { Err(format!("no attribute `{name}`")) }
        }
    }

    fn error(text: &str) -> (usize, String) {
        let error = parse(text, &Two).unwrap_err();
        (error.offset, error.message)
    }

    #[test]
    fn names_may_hold_hyphens_and_subtraction_stands_between_spaces() {
        let expr = parse("x.axis - 1 != contracted-axis", &Two).unwrap();
        let left = Expr::Binary(
            Binary::Sub,
            Box::new(Expr::Field(0, Field::Attr("axis".into()))),
            Box::new(Expr::Number(1.0)),
        );
        assert_eq!(expr, Expr::Binary(Binary::Ne, Box::new(left), Box::new(Expr::Slot(1))));
    }

    #[test]
    fn products_bind_closer_than_comparisons_and_these_than_logic() {
        let expr = parse("dim(x, -1) * itemsize(x) % 64 != 0 and not rank(x) in [4, 5]", &Two);
        assert!(matches!(expr.unwrap(), Expr::Binary(Binary::And, left, right)
            if matches!(*left, Expr::Binary(Binary::Ne, ..)) && matches!(*right, Expr::Not(_))));
    }

    #[test]
    fn mistakes_are_told_with_their_place_and_what_was_meant() {
        assert_eq!(error("x == y"), (5, "nothing in `match` binds `y`; did you mean `x`?".into()));
        assert_eq!(
            error("dmi(x, 1)"),
            (0, "there is no function `dmi`; did you mean `dim`?".into())
        );
        assert_eq!(error("dim(x)"), (0, "`dim` takes 2 arguments, found 1".into()));
        assert_eq!(error("x.axs"), (0, "no attribute `axs`".into()));
        assert_eq!(error("1 +"), (3, "expected a number, a name or `(`, found the end".into()));
        assert_eq!(
            error("function.region > 1").1,
            "there is no `function.region`; did you mean `function.regions`?"
        );
        assert!(error(&"(".repeat(100)).1.contains("nested more than"));
    }
}
