//! Sizes written as sympy's `srepr`: `Mul(Integer(128), Symbol('s30', positive=True, integer=True))`
//! becomes the text `128*s30` and the symbols it mentions.

/// A size expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Readable text.
    pub text: String,
    /// Names of the symbols, each once, in order.
    pub symbols: Vec<String>,
    /// How tightly the text binds, for parentheses.
    precedence: u8,
}

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 64;
/// Longest text that is kept.
const MAX_TEXT: usize = 512;

impl Size {
    /// The number, if the expression is just one.
    pub fn number(&self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// Whether the expression is one symbol by itself.
    pub fn is_symbol(&self) -> bool {
        self.symbols.len() == 1 && self.symbols.first() == Some(&self.text)
    }
}

/// Reads an expression; `None` if it is none.
pub fn parse(text: &str) -> Option<Size> {
    let mut parser = Parser { rest: text.trim() };
    let size = parser.expression(0)?;
    (parser.rest.trim().is_empty() && size.text.len() <= MAX_TEXT).then_some(size)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        self.skip();
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn quoted(&mut self) -> Option<&'a str> {
        self.skip();
        let quote = self.rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let body = &self.rest[1..];
        let end = body.find(quote)?;
        self.rest = &body[end + 1..];
        Some(&body[..end])
    }

    fn integer(&mut self) -> Option<Size> {
        self.skip();
        let negative = self.eat('-');
        let digits = self.word();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        let precedence = if negative { 1 } else { 9 };
        Some(Size { text, symbols: Vec::new(), precedence })
    }

    fn expression(&mut self, depth: usize) -> Option<Size> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.skip();
        if self.rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return self.integer();
        }
        let head = self.word();
        if head.is_empty() {
            return None;
        }
        if !self.eat('(') {
            // A bare name: an older writer's `s0`, or `true`, `oo`.
            let symbols = if head.starts_with(|c: char| c.is_ascii_lowercase()) && head != "oo" {
                vec![head.to_owned()]
            } else {
                Vec::new()
            };
            return Some(Size { text: head.to_owned(), symbols, precedence: 9 });
        }
        match head {
            "Symbol" | "Dummy" | "Wild" => {
                let name = self.quoted()?.to_owned();
                self.close()?;
                (!name.is_empty()).then(|| Size {
                    text: name.clone(),
                    symbols: vec![name],
                    precedence: 9,
                })
            }
            "Integer" => {
                let number = self.integer()?;
                self.close()?;
                Some(number)
            }
            _ => {
                let mut args = Vec::new();
                if !self.eat(')') {
                    loop {
                        args.push(self.expression(depth + 1)?);
                        if args.iter().map(|a| a.text.len()).sum::<usize>() > 4 * MAX_TEXT {
                            return None;
                        }
                        if self.eat(')') {
                            break;
                        }
                        if !self.eat(',') {
                            return None;
                        }
                    }
                }
                Some(call(head, args))
            }
        }
    }

    /// Skips the assumptions after a symbol's name, to the closing parenthesis.
    fn close(&mut self) -> Option<()> {
        let end = self.rest.find(')')?;
        if self.rest[..end].contains('(') {
            return None;
        }
        self.rest = &self.rest[end + 1..];
        Some(())
    }
}

fn call(head: &str, args: Vec<Size>) -> Size {
    let (separator, precedence) = match head {
        "Add" => (" + ", 2),
        "Mul" => ("*", 3),
        "Pow" if args.len() == 2 => ("**", 5),
        "FloorDiv" | "CleanDiv" if args.len() == 2 => ("//", 4),
        "Mod" | "PythonMod" if args.len() == 2 => (" % ", 4),
        "Rational" if args.len() == 2 => ("/", 4),
        "Equality" | "Eq" => (" == ", 0),
        "Unequality" | "Ne" => (" != ", 0),
        "StrictLessThan" | "Lt" => (" < ", 0),
        "LessThan" | "Le" => (" <= ", 0),
        "StrictGreaterThan" | "Gt" => (" > ", 0),
        "GreaterThan" | "Ge" => (" >= ", 0),
        _ => ("", 9),
    };
    let mut symbols: Vec<String> = Vec::new();
    for symbol in args.iter().flat_map(|arg| &arg.symbols) {
        if !symbols.contains(symbol) {
            symbols.push(symbol.clone());
        }
    }
    let text = if separator.is_empty() {
        let list: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        format!("{head}({})", list.join(", "))
    } else {
        let list: Vec<String> = args
            .iter()
            .enumerate()
            .map(|(at, arg)| {
                let tight = precedence >= 4 && at > 0;
                if arg.precedence < precedence || (tight && arg.precedence == precedence) {
                    if arg.precedence == 1 && precedence <= 3 && at == 0 {
                        arg.text.clone()
                    } else {
                        format!("({})", arg.text)
                    }
                } else {
                    arg.text.clone()
                }
            })
            .collect();
        // `a + (-1)` is `a - 1` to people.
        if head == "Add" { minus(&list) } else { list.join(separator) }
    };
    Size { text, symbols, precedence }
}

/// A sum whose negative numbers are subtracted.
fn minus(terms: &[String]) -> String {
    let mut text = String::new();
    for (at, term) in terms.iter().enumerate() {
        let negative = term
            .strip_prefix("(-")
            .and_then(|rest| rest.strip_suffix(')'))
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        match (at, negative) {
            (0, _) => text.push_str(term),
            (_, Some(digits)) => {
                text.push_str(" - ");
                text.push_str(digits);
            }
            (_, None) => {
                text.push_str(" + ");
                text.push_str(term);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn what_torch_writes() {
        let symbol = parse("Symbol('s30', positive=True, integer=True)").unwrap();
        assert!(symbol.is_symbol());
        assert_eq!(symbol.text, "s30");
        let product =
            parse("Mul(Integer(128), Symbol('s30', positive=True, integer=True))").unwrap();
        assert_eq!(
            (product.text.as_str(), product.symbols.as_slice()),
            ("128*s30", &["s30".to_owned()][..])
        );
        assert!(!product.is_symbol());
        let sum = parse("Mul(Add(Symbol('u0', integer=True), Integer(-1)), Integer(2))").unwrap();
        assert_eq!(sum.text, "(u0 - 1)*2");
        assert_eq!(
            parse("FloorDiv(Symbol('s0', integer=True), Integer(2))").unwrap().text,
            "s0//2"
        );
        assert_eq!(parse("Integer(7)").unwrap().number(), Some(7));
    }

    #[test]
    fn nonsense_and_deep_nesting_are_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("Mul(Integer(1)"), None);
        assert_eq!(parse("Symbol('')"), None);
        assert_eq!(parse(&"Add(".repeat(100_000)), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "[A-Za-z0-9_(), ='-]{0,120}") {
            let _ = parse(&text);
        }
    }
}
