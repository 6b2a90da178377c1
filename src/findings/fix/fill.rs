//! A rewrite's template with its holes filled.

use super::expression::{Shape, shape};
use crate::findings::python::{Bindings, Imports, PythonFile};
use crate::rules::schema::fix_template::{FixPiece, FixTemplate};
use crate::rules::{Binding, HoleKind};

/// What the holes of a template are filled with.
pub struct Filling<'a> {
    /// The file that the text goes into.
    pub file: &'a PythonFile,
    /// What the snippet's holes took.
    pub holes: &'a Bindings,
    /// The snippet as written; empty for a rewrite without one.
    pub matched: &'a str,
    /// The operand beside the snippet.
    pub beside: Option<String>,
    /// What the rule bound.
    pub bindings: &'a [Binding],
    /// The Python that makes what a binding names.
    pub source: &'a dyn Fn(&Binding) -> Option<String>,
}

impl Filling<'_> {
    /// The text; `None` if something that it needs is not known, or is no expression.
    pub fn fill(&self, template: &FixTemplate) -> Option<String> {
        let mut text = String::new();
        let mut skip_comma = false;
        for (at, piece) in template.0.iter().enumerate() {
            let own = match piece {
                FixPiece::Text(own) => {
                    let own = if skip_comma { own.trim_start_matches([',', ' ']) } else { own };
                    text.push_str(&respelled(own, text.chars().last(), self.file.imports())?);
                    skip_comma = false;
                    continue;
                }
                FixPiece::Rest(name) => {
                    let own = self.holes.get(name)?;
                    if own.is_empty() {
                        // No argument: a comma beside it goes too.
                        let kept = text.trim_end_matches([' ', ',']).len();
                        match text.get(..kept).is_some_and(|kept| kept.ends_with('(')) {
                            true => skip_comma = true,
                            false => text.truncate(kept),
                        }
                    }
                    text.push_str(own);
                    continue;
                }
                FixPiece::Hole(name) => self.holes.get(name)?.clone(),
                FixPiece::Match => self.matched.to_owned(),
                FixPiece::Beside => self.beside.clone()?,
                FixPiece::Binding(name) => self.binding(name)?.text.clone(),
                FixPiece::Source(name) => (self.source)(self.binding(name)?)?,
                FixPiece::Int(name) => whole(self.holes.get(name)?)?,
            };
            let next = match template.0.get(at + 1) {
                Some(FixPiece::Text(next)) => next.trim_start().chars().next(),
                Some(_) => Some(' '),
                None => None,
            };
            text.push_str(&among(&own, &text, next)?);
        }
        Some(text)
    }

    fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.name == name)
    }
}

/// An expression between what stands before and behind it, in parentheses if it would come apart.
fn among(own: &str, before: &str, next: Option<char>) -> Option<String> {
    let mut back = before.trim_end().chars().rev();
    let opens = match (back.next(), back.next()) {
        (None, _) => true,
        (Some('='), second) => !second.is_some_and(|c| "=!<>".contains(c)),
        (Some(c), _) => "([{,".contains(c),
    };
    let closes = next.is_none_or(|c| ")]},".contains(c));
    let loose = match shape(own)? {
        Shape::Atom => false,
        Shape::NegativeNumber => next == Some('.') || next == Some('[') || next == Some('*'),
        Shape::Loose => !(opens && closes),
    };
    Some(if loose { format!("({own})") } else { own.to_owned() })
}

/// The text of a template with the names of modules as the file spells them; `None` if it imports
/// nothing that leads there.
fn respelled(text: &str, before: Option<char>, imports: &Imports) -> Option<String> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut previous = before;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let starts = (c.is_alphabetic() || c == '_')
            && !previous.is_some_and(|p| part_of_name(p) || p == '.' || p == '"' || p == '\'');
        if starts {
            let end = rest.find(|c: char| !(part_of_name(c) || c == '.')).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let head = name.split('.').next().unwrap_or("");
            if name.contains('.') && Imports::is_customary(head) {
                out.push_str(&imports.spelled(&Imports::default().canonical(name))?);
            } else {
                out.push_str(name);
            }
            previous = name.chars().last();
            rest = after;
        } else {
            out.push(c);
            previous = Some(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(out)
}

/// The value of a number written out, with its sign.
fn number(text: &str) -> Option<f64> {
    let text = text.replace(['_', ' '], "");
    let plain = text.trim_start_matches(['-', '+']);
    // Rust reads `inf` and `nan` too; Python names are no numbers.
    if !plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse::<f64>().ok().filter(|n| n.is_finite() || !plain.contains('n'))
}

fn whole(text: &str) -> Option<String> {
    match number(text) {
        Some(n) if n.fract() == 0.0 && n.abs() < 1e15 => Some(format!("{n:.0}")),
        Some(_) => None,
        // A name or expression stays as it is.
        None => Some(text.to_owned()),
    }
}

/// Whether what a hole took is what it may stand for.
pub fn may_be(kind: HoleKind, text: &str) -> bool {
    const LARGEST: f64 = 65504.0;
    // Half of the smallest number of f16 rounds to 0.
    const SMALLEST: f64 = 2.980_232_238_769_531e-8;
    const LEAST_NORMAL: f64 = 6.103_515_625e-5;
    let value = number(text);
    match kind {
        HoleKind::Number => value.is_some(),
        HoleKind::F16 => {
            value.is_some_and(|n| n == 0.0 || (n.abs() <= LARGEST && n.abs() > SMALLEST))
        }
        HoleKind::BeyondF16 => value.is_some_and(|n| n.abs() >= LARGEST),
        HoleKind::BelowF16 => value.is_some_and(|n| n > 0.0 && n < LEAST_NORMAL),
        HoleKind::Whole => value.is_some_and(|n| n.fract() == 0.0 && n.abs() < 1e15),
        HoleKind::Name => {
            !text.is_empty()
                && text.split('.').all(|part| {
                    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
                        && part.chars().all(|c| c.is_alphanumeric() || c == '_')
                })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::rules::schema::fix_template::parse;

    fn filled(template: &str, holes: &[(&str, &str)], imports: &str) -> Option<String> {
        let file = PythonFile::new("a.py".into(), imports.to_owned());
        let holes: Bindings =
            holes.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
        let bindings = [Binding { name: "value".into(), text: "-1e9".into(), node: None }];
        let filling = Filling {
            file: &file,
            holes: &holes,
            matched: "f(x)",
            beside: Some("scores".into()),
            bindings: &bindings,
            source: &|_| None,
        };
        filling.fill(&parse(template).unwrap())
    }

    #[test]
    fn holes_bindings_and_the_operand_beside() {
        let fill = |template, holes: &[_]| filled(template, holes, "").unwrap();
        assert_eq!(fill("g($X, {value})", &[("X", "y")]), "g(y, -1e9)");
        assert_eq!(fill("$MATCH.to($BESIDE.dtype)", &[]), "f(x).to(scores.dtype)");
        assert!(filled("$Y", &[], "").is_none());
        assert!(filled("{other}", &[], "").is_none());
    }

    #[test]
    fn what_would_come_apart_is_put_in_parentheses() {
        let fill = |template, x| filled(template, &[("X", x)], "").unwrap();
        assert_eq!(fill("$X.exp()", "a + b"), "(a + b).exp()");
        assert_eq!(fill("g($X)", "a + b"), "g(a + b)");
        assert_eq!(fill("g(k=$X)", "a + b"), "g(k=a + b)");
        assert_eq!(fill("2 * $X", "a + b"), "2 * (a + b)");
        assert_eq!(fill("g(-$X)", "a + b"), "g(-(a + b))");
        assert_eq!(fill("$X", "a + b"), "a + b");
        assert_eq!(fill("$X.exp()", "-2.0"), "(-2.0).exp()");
        assert!(filled("g($X)", &[("X", "*xs")], "").is_none());
    }

    #[test]
    fn an_empty_list_takes_its_comma_along() {
        let fill = |template, rest| filled(template, &[("R", rest)], "").unwrap();
        assert_eq!(fill("g(a, $$$R)", "b, k=1"), "g(a, b, k=1)");
        assert_eq!(fill("g(a, $$$R)", ""), "g(a)");
        assert_eq!(fill("g($$$R, a)", ""), "g(a)");
        assert_eq!(fill("g(a, $$$R, b)", ""), "g(a, b)");
    }

    #[test]
    fn names_of_modules_are_spelled_as_the_file_does() {
        let own = "import torch as th\nfrom torch import nn as layers\n";
        let fill = |template| filled(template, &[("X", "x")], own);
        assert_eq!(fill("torch.div(2 * $X, 2)").unwrap(), "th.div(2 * x, 2)");
        assert_eq!(fill("nn.Conv2d(1, 1, 1)").unwrap(), "layers.Conv2d(1, 1, 1)");
        assert_eq!(fill("$X.torch.relu()").unwrap(), "x.torch.relu()");
        assert_eq!(fill("math.inf"), None);
    }

    #[test]
    fn what_holes_may_stand_for() {
        assert!(may_be(HoleKind::F16, "-40000.0") && may_be(HoleKind::F16, "0"));
        assert!(!may_be(HoleKind::F16, "1e-9") && !may_be(HoleKind::F16, "70000"));
        assert!(may_be(HoleKind::BeyondF16, "-1e9") && may_be(HoleKind::BeyondF16, "1_000_000"));
        assert!(!may_be(HoleKind::BeyondF16, "2") && !may_be(HoleKind::Number, "inf"));
        assert!(may_be(HoleKind::BelowF16, "1e-12") && !may_be(HoleKind::BelowF16, "0"));
        assert!(may_be(HoleKind::Whole, "16.0") && !may_be(HoleKind::Whole, "0.5"));
        assert!(may_be(HoleKind::Name, "self.x") && !may_be(HoleKind::Name, "f(x)"));
        assert_eq!(whole("16.0").unwrap(), "16");
        assert_eq!(whole("-3.").unwrap(), "-3");
        assert_eq!(whole("n").unwrap(), "n");
    }
}
