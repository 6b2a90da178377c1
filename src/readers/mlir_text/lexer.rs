//! A cursor over MLIR text: words, numbers, strings, balanced brackets. No grammar here.

use std::borrow::Cow;

/// Why parsing stopped: what was wrong and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What was expected or found.
    pub message: String,
    /// Byte offset in the text.
    pub offset: usize,
}

/// A result whose error knows its place.
pub type Parsed<T> = Result<T, Fault>;

/// Deepest nesting of brackets, attributes, types and regions.
pub const DEEPEST: u32 = 64;

/// A place in a text.
#[derive(Debug, Clone, Copy)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at an offset.
    pub fn new(text: &'a str, at: usize) -> Lexer<'a> {
        Lexer { text, at: at.min(text.len()) }
    }

    /// Byte offset.
    pub fn at(&self) -> usize {
        self.at
    }

    /// An error at the present place.
    pub fn fault<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Fault { message: message.into(), offset: self.at })
    }

    /// The text from an offset to the present place.
    pub fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Skips white space and comments; true if a line ended.
    pub fn skip_space(&mut self) -> bool {
        let mut line_ended = false;
        loop {
            match self.bytes() {
                [b'\n', ..] => {
                    line_ended = true;
                    self.at += 1;
                }
                [b' ' | b'\t' | b'\r', ..] => self.at += 1,
                [b'/', b'/', ..] => {
                    self.at +=
                        self.bytes().iter().position(|&b| b == b'\n').unwrap_or(self.bytes().len());
                }
                _ => return line_ended,
            }
        }
    }

    /// The next byte that is no space; 0 at the end.
    pub fn peek(&mut self) -> u8 {
        self.skip_space();
        self.bytes().first().copied().unwrap_or(0)
    }

    /// Whether the text goes on with `token`, spaces aside.
    pub fn looking_at(&mut self, token: &str) -> bool {
        self.skip_space();
        self.bytes().starts_with(token.as_bytes())
    }

    /// Takes `token` if it is next. A word must end where `token` does.
    pub fn take(&mut self, token: &str) -> bool {
        if !self.looking_at(token) {
            return false;
        }
        let ends_in_word = token.bytes().last().is_some_and(is_word);
        if ends_in_word && self.bytes().get(token.len()).is_some_and(|&b| is_word(b)) {
            return false;
        }
        self.at += token.len();
        true
    }

    /// Takes `token` or fails.
    pub fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) {
            return Ok(());
        }
        let found: String = self.text[self.at..].chars().take(12).collect();
        self.fault(format!("expected `{token}`, found `{}`", found.escape_default()))
    }

    /// A word of letters, digits, `_`, `$` and `.`; empty if none is next.
    pub fn word(&mut self) -> &'a str {
        self.skip_space();
        let len = self.bytes().iter().take_while(|&&b| is_word(b)).count();
        let word = &self.text[self.at..self.at + len];
        self.at += len;
        word
    }

    /// The rest of a name after its mark (`%`, `@`, `#`, `!`, `^`): a word, or a string.
    pub fn name(&mut self) -> Parsed<Cow<'a, str>> {
        if self.bytes().first() == Some(&b'"') {
            return self.string();
        }
        let len = self.bytes().iter().take_while(|&&b| is_word(b) || b == b'-').count();
        if len == 0 {
            return self.fault("expected a name");
        }
        // `%5->`: an arrow ends a name.
        let name = &self.text[self.at..self.at + len];
        let name = name.strip_suffix('-').unwrap_or(name);
        self.at += name.len();
        Ok(Cow::Borrowed(name))
    }

    /// A quoted string, escapes resolved.
    pub fn string(&mut self) -> Parsed<Cow<'a, str>> {
        self.expect("\"")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.bytes() {
                [b'"', ..] => break,
                [b'\\', _, ..] => {
                    escaped = true;
                    self.at += 2;
                }
                [_, ..] => self.at += 1,
                [] => return self.fault("the string does not end"),
            }
        }
        let Some(raw) = self.text.get(start..self.at) else {
            return self.fault("the string is cut inside a character");
        };
        self.at += 1;
        Ok(if escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) })
    }

    /// A number as written, sign and exponent included; empty if none is next.
    pub fn number(&mut self) -> &'a str {
        self.skip_space();
        let bytes = self.bytes();
        let mut len = usize::from(matches!(bytes, [b'-' | b'+', ..]));
        if !bytes.get(len).is_some_and(u8::is_ascii_digit) {
            return "";
        }
        while let Some(&byte) = bytes.get(len) {
            let exponent_sign = matches!(byte, b'+' | b'-')
                && matches!(bytes[len - 1], b'e' | b'E')
                && !bytes.starts_with(b"0x");
            if byte.is_ascii_alphanumeric() || byte == b'.' || exponent_sign {
                len += 1;
            } else {
                break;
            }
        }
        let number = &self.text[self.at..self.at + len];
        self.at += len;
        number
    }

    /// Decimal digits; empty if none is next.
    pub fn digits(&mut self) -> &'a str {
        self.skip_space();
        let len = self.bytes().iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = &self.text[self.at..self.at + len];
        self.at += len;
        digits
    }

    /// The `x` between the extents of a shape.
    pub fn skip_x(&mut self) -> Parsed<()> {
        if self.bytes().first() != Some(&b'x') {
            return self.fault("expected `x` in a shape");
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a bracket and everything up to its partner; gives what lies between.
    pub fn balanced(&mut self) -> Parsed<&'a str> {
        if !matches!(self.peek(), b'(' | b'[' | b'{' | b'<') {
            return self.fault("expected a bracket");
        }
        let start = self.at;
        let mut open = Vec::new();
        loop {
            match self.bytes() {
                [b'"', ..] => {
                    self.string()?;
                    continue;
                }
                // An arrow closes nothing.
                [b'-', b'>', ..] => self.at += 1,
                [byte @ (b'(' | b'[' | b'{' | b'<'), ..] => open.push(*byte),
                [byte @ (b')' | b']' | b'}' | b'>'), ..] => {
                    let partner = match byte {
                        b')' => b'(',
                        b']' => b'[',
                        b'}' => b'{',
                        _ => b'<',
                    };
                    if open.pop() != Some(partner) {
                        return self.fault("brackets do not match");
                    }
                }
                [] => return self.fault("a bracket is not closed"),
                _ => {}
            }
            self.at += 1;
            while !self.text.is_char_boundary(self.at) {
                self.at += 1;
            }
            if open.is_empty() {
                return Ok(&self.text[start + 1..self.at - 1]);
            }
        }
    }

    /// Moves on by one character.
    pub fn step(&mut self) {
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

fn unescape(raw: &str) -> String {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let hex = |byte: &u8| (*byte as char).to_digit(16);
        match rest {
            [b'n', after @ ..] => {
                bytes.push(b'\n');
                rest = after;
            }
            [b't', after @ ..] => {
                bytes.push(b'\t');
                rest = after;
            }
            [a, b, after @ ..] if hex(a).is_some() && hex(b).is_some() => {
                bytes.push((hex(a).unwrap_or(0) * 16 + hex(b).unwrap_or(0)) as u8);
                rest = after;
            }
            [other, after @ ..] => {
                bytes.push(*other);
                rest = after;
            }
            [] => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
