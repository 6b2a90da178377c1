//! Words, numbers, strings and marks of the text form.

/// A token, with the offset at which it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub at: usize,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    Word(&'a str),
    /// A number as written, sign included.
    Number(&'a str),
    /// What stands between the quotes, escapes untouched.
    Text(&'a str),
    Mark(u8),
    /// `->`
    Arrow,
    End,
}

/// Reads tokens one by one.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The text from `start` to here.
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or("")
    }

    /// The next token.
    ///
    /// # Errors
    /// The offset of a string that does not end, or of a character that starts no token.
    pub fn next(&mut self) -> Result<Token<'a>, (usize, &'static str)> {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    while self.at < self.text.len() && self.byte(0) != b'\n' {
                        self.at += 1;
                    }
                }
                _ => break,
            }
        }
        let at = self.at;
        if at >= self.text.len() {
            return Ok(Token { kind: Kind::End, at });
        }
        let first = self.byte(0);
        let kind = match first {
            b'"' => {
                self.at += 1;
                let start = self.at;
                loop {
                    match self.byte(0) {
                        _ if self.at >= self.text.len() => {
                            return Err((at, "a string that does not end"));
                        }
                        b'"' => break,
                        b'\\' => self.at += 2,
                        _ => self.at += 1,
                    }
                }
                let text = self.since(start);
                self.at += 1;
                Kind::Text(text)
            }
            b'-' if self.byte(1) == b'>' => {
                self.at += 2;
                Kind::Arrow
            }
            b'0'..=b'9' => self.number(at),
            b'-' | b'+' if self.byte(1).is_ascii_alphanumeric() => {
                self.at += 1;
                self.number(at)
            }
            _ if is_word(first) => {
                while is_word(self.byte(0)) || matches!(self.byte(0), b'.' | b'$') {
                    self.at += 1;
                }
                Kind::Word(self.since(at))
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'=' | b',' | b';' | b'?'
            | b'*' | b':' => {
                self.at += 1;
                Kind::Mark(first)
            }
            _ => return Err((at, "a character that has no meaning here")),
        };
        Ok(Token { kind, at })
    }

    /// Digits, hexadecimal floats, exponents with their signs, `inf` and `nan` after a sign.
    fn number(&mut self, start: usize) -> Kind<'a> {
        let hex = self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X');
        loop {
            let byte = self.byte(0);
            let exponent =
                |b: u8| if hex { matches!(b, b'p' | b'P') } else { matches!(b, b'e' | b'E') };
            if byte.is_ascii_alphanumeric() || byte == b'.' {
                self.at += 1;
                if exponent(byte) && matches!(self.byte(0), b'+' | b'-') {
                    self.at += 1;
                }
            } else {
                break;
            }
        }
        Kind::Number(self.since(start))
    }
}

/// Bytes of names; those beyond ASCII belong to names too.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'@' | b'%') || byte >= 0x80
}

/// A number as written: decimal, hexadecimal integer or float, infinity, NaN.
pub(super) fn number(text: &str) -> Option<f64> {
    let (negative, plain) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    let value = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hex) => hexadecimal(hex)?,
        None => match plain {
            "inf" | "infinity" | "Inf" | "INF" => f64::INFINITY,
            "nan" | "NaN" | "NAN" => f64::NAN,
            _ => plain.parse().ok()?,
        },
    };
    Some(if negative { -value } else { value })
}

/// `1.8p-3`: hexadecimal digits times a power of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut mantissa = 0f64;
    for digit in whole.chars().chain(fraction.chars()) {
        mantissa = mantissa * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let scale = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    Some(mantissa * 2f64.powi(scale))
}

/// A whole number as written.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (negative, plain) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = match plain.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => plain.parse().ok()?,
    };
    if negative { 0i64.checked_sub_unsigned(value) } else { Some(value as i64) }
}

/// A string with its escapes resolved.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('0') => plain.push('\0'),
            Some('x') => {
                let code = chars.by_ref().take(2).collect::<String>();
                let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                plain.extend(code);
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_as_the_compiler_writes_them() {
        for (text, value) in [
            ("0x1p-3", 0.125),
            ("-0x1.8p+1", -3.0),
            ("0x0p+0", 0.0),
            ("0x1.fep+15", 65280.0),
            ("-0x1.388p+15", -40000.0),
            ("1.5e-2", 0.015),
            ("-inf", f64::NEG_INFINITY),
            ("0x40", 64.0),
            ("12", 12.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert!(number("nan").unwrap().is_nan());
        for bad in ["", "-", "0x", "0xp1", "1..2", "abc"] {
            assert_eq!(number(bad), None, "{bad}");
        }
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer("2147483647"), Some(2_147_483_647));
    }

    #[test]
    fn tokens_carry_their_offset() {
        let mut lexer = Lexer::new("a = -0x1p-3 -> \"b\\\"c\";");
        let mut kinds = Vec::new();
        loop {
            let token = lexer.next().unwrap();
            if token.kind == Kind::End {
                break;
            }
            kinds.push((token.at, token.kind));
        }
        assert_eq!(
            kinds,
            [
                (0, Kind::Word("a")),
                (2, Kind::Mark(b'=')),
                (4, Kind::Number("-0x1p-3")),
                (12, Kind::Arrow),
                (15, Kind::Text("b\\\"c")),
                (21, Kind::Mark(b';')),
            ]
        );
        assert_eq!(unescape("b\\\"c\\n"), "b\"c\n");
        assert_eq!(Lexer::new("  \"open").next(), Err((2, "a string that does not end")));
    }
}
