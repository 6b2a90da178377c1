//! Structural patterns over Python: a snippet with holes, matched against a syntax tree.
//!
//! `$X` stands for one expression (the same one wherever it is repeated; `$_` for any), `$$$` or
//! `$$$ARGS` for any number of arguments or elements, keyword arguments too. Keyword arguments are matched by name in any
//! order. Names are compared as the file's imports spell them in full, so that `F.softmax($$$)`
//! finds `torch.nn.functional.softmax(x)`; quotes, parentheses around expressions and the spelling
//! of numbers (`1e9`, `1_000_000_000.0`) make no difference.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::Imports;
use super::dotted::{dotted_text, named_children};
use super::file::{PythonFile, parse};
use super::walk::Region;

const HOLE: &str = "anelint_hole_";
const REST: &str = "anelint_rest_";

/// Why a snippet is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern: {reason}")]
pub struct PatternError {
    /// The snippet.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// What the holes of a pattern stand for, by name without the `$`, as source text.
pub type Bindings = BTreeMap<String, String>;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    root: Part,
}

/// One part of a pattern.
#[derive(Debug, Clone)]
enum Part {
    /// `$X`; empty for `$_`.
    Hole(String),
    /// `$$$`: only in lists.
    Rest(String),
    /// A dotted name in full.
    Name(String),
    /// A number.
    Number(f64),
    /// A plain string by its content.
    Text(String),
    /// `object.name`, where the object is more than a name.
    Attribute { object: Box<Part>, name: Box<Part> },
    /// A call.
    Call { function: Box<Part>, positional: Vec<Part>, keywords: Vec<(String, Part)>, open: bool },
    /// Anything else: kind and children.
    Node { kind: &'static str, children: Vec<Part> },
    /// A token by its text (`+`, `not`).
    Token(String),
}

impl Pattern {
    /// Compiles a snippet that is one Python expression or simple statement.
    ///
    /// # Errors
    /// [`PatternError`] if the snippet is no Python, or more than one statement.
    pub fn parse(source: &str) -> Result<Pattern, PatternError> {
        let fail = |reason| PatternError { pattern: source.to_owned(), reason };
        let text = with_holes_as_names(source.trim());
        let tree = parse(&text).ok_or_else(|| fail("it cannot be parsed"))?;
        let root = tree.root_node();
        if root.has_error() {
            return Err(fail("it is no Python expression"));
        }
        let statements = named_children(root);
        let [statement] = statements.as_slice() else {
            return Err(fail("it must be one expression or statement"));
        };
        let mut node = *statement;
        if node.kind() == "expression_statement" {
            let inner = named_children(node);
            match inner.as_slice() {
                [only] => node = *only,
                _ => return Err(fail("it must be one expression or statement")),
            }
        }
        let imports = Imports::default();
        let part = compile(node, &text, &imports, 0)
            .ok_or_else(|| fail("it is nested too deeply or has a hole where none can stand"))?;
        if matches!(part, Part::Hole(_) | Part::Rest(_)) {
            return Err(fail("a hole alone matches everything"));
        }
        Ok(Pattern { source: source.to_owned(), root: part })
    }

    /// A hole alone, for one that is told by other means what it may stand for.
    ///
    /// # Errors
    /// [`PatternError`] if the snippet is no hole.
    pub fn lone_hole(source: &str) -> Result<Pattern, PatternError> {
        let name = source.trim().strip_prefix('$').filter(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        match name {
            Some(name) => {
                Ok(Pattern { source: source.to_owned(), root: Part::Hole(name.to_owned()) })
            }
            None => Err(PatternError { pattern: source.to_owned(), reason: "it is no hole" }),
        }
    }

    /// The snippet as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it is a call.
    pub fn is_call(&self) -> bool {
        matches!(self.root, Part::Call { .. })
    }

    /// Whether `node` matches.
    pub fn matches(&self, file: &PythonFile, node: Node<'_>) -> Option<Bindings> {
        let mut matcher = Matcher { file, bindings: Bindings::new() };
        matcher.part(&self.root, node).then_some(matcher.bindings)
    }

    /// All matches in a region in source order.
    pub fn find_in<'t>(&self, file: &PythonFile, region: &Region<'t>) -> Vec<(Node<'t>, Bindings)> {
        region
            .nodes()
            // `(x)` matches as `x` does: the node inside is the one to name.
            .filter(|node| node.kind() != "parenthesized_expression")
            .filter_map(|node| Some((node, self.matches(file, node)?)))
            .collect()
    }
}

/// `$X` → a name that Python can parse.
fn with_holes_as_names(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + 16);
    let mut rest = source;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let (prefix, skip) = if rest[at..].starts_with("$$$") { (REST, 3) } else { (HOLE, 1) };
        text.push_str(prefix);
        rest = &rest[at + skip..];
    }
    text.push_str(rest);
    text
}

fn compile(node: Node<'_>, text: &str, imports: &Imports, depth: u32) -> Option<Part> {
    if depth > 64 {
        return None;
    }
    let own = text.get(node.byte_range())?;
    let below = |node| compile(node, text, imports, depth + 1);
    if let Some(hole) = hole(own) {
        return Some(hole);
    }
    match node.kind() {
        "parenthesized_expression" => below(*named_children(node).first()?),
        "identifier" => Some(Part::Name(imports.canonical(own))),
        "attribute" => {
            let dotted = dotted_text(node, text).filter(|dotted| !dotted.contains(HOLE));
            match dotted {
                Some(dotted) => Some(Part::Name(imports.canonical(&dotted))),
                None => {
                    let name = node.child_by_field_name("attribute")?;
                    let name_text = text.get(name.byte_range())?;
                    Some(Part::Attribute {
                        object: Box::new(below(node.child_by_field_name("object")?)?),
                        name: Box::new(
                            hole(name_text).unwrap_or_else(|| Part::Token(name_text.to_owned())),
                        ),
                    })
                }
            }
        }
        "integer" | "float" => number(own).map(Part::Number),
        "string" => Some(match plain_string(node, text) {
            Some(content) => Part::Text(content),
            None => Part::Token(own.to_owned()),
        }),
        "call" => {
            let function = Box::new(below(node.child_by_field_name("function")?)?);
            let arguments = node.child_by_field_name("arguments")?;
            let mut positional = Vec::new();
            let mut keywords = Vec::new();
            let mut open = false;
            for argument in named_children(arguments) {
                if argument.kind() == "keyword_argument" {
                    let name = argument.child_by_field_name("name")?;
                    let value = argument.child_by_field_name("value")?;
                    keywords.push((text.get(name.byte_range())?.to_owned(), below(value)?));
                } else {
                    let part = below(argument)?;
                    open |= matches!(part, Part::Rest(_));
                    positional.push(part);
                }
            }
            Some(Part::Call { function, positional, keywords, open })
        }
        kind => {
            if node.child_count() == 0 {
                return Some(Part::Token(own.to_owned()));
            }
            let children = all_children(node).into_iter().map(below).collect::<Option<Vec<_>>>()?;
            Some(Part::Node { kind, children })
        }
    }
}

fn hole(text: &str) -> Option<Part> {
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if let Some(name) = text.strip_prefix(REST).filter(|name| is_name(name)) {
        return Some(Part::Rest(name.to_owned()));
    }
    let name = text.strip_prefix(HOLE).filter(|name| is_name(name))?;
    Some(Part::Hole(if name == "_" { String::new() } else { name.to_owned() }))
}

/// Children with tokens, comments left out.
fn all_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// The value of a number as Python reads it; `None` for complex ones.
fn number(text: &str) -> Option<f64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(|n| n as f64);
    if let Some(digits) = text.strip_prefix("0x") {
        radix(digits, 16)
    } else if let Some(digits) = text.strip_prefix("0b") {
        radix(digits, 2)
    } else if let Some(digits) = text.strip_prefix("0o") {
        radix(digits, 8)
    } else {
        text.parse().ok()
    }
}

/// The content of a string without prefix and interpolation.
fn plain_string(node: Node<'_>, text: &str) -> Option<String> {
    let mut content = String::new();
    for child in named_children(node) {
        let own = text.get(child.byte_range())?;
        match child.kind() {
            "string_start" if own.starts_with(['"', '\'']) => {}
            "string_end" => {}
            "string_content" => content.push_str(own),
            _ => return None,
        }
    }
    Some(content)
}

struct Matcher<'f> {
    file: &'f PythonFile,
    bindings: Bindings,
}

impl Matcher<'_> {
    /// Recursion is as deep as the pattern, never as the source.
    fn part(&mut self, part: &Part, node: Node<'_>) -> bool {
        let mut node = node;
        while node.kind() == "parenthesized_expression" {
            match named_children(node).first() {
                Some(inner) => node = *inner,
                None => return false,
            }
        }
        let text = self.file.text();
        match part {
            Part::Hole(name) => node.is_named() && self.bind(name, self.file.node_text(node)),
            Part::Rest(_) => false,
            Part::Name(full) => dotted_text(node, text)
                .is_some_and(|dotted| self.file.imports().canonical(&dotted) == *full),
            Part::Number(value) => {
                matches!(node.kind(), "integer" | "float")
                    && number(self.file.node_text(node)) == Some(*value)
            }
            Part::Text(content) => {
                node.kind() == "string" && plain_string(node, text).as_ref() == Some(content)
            }
            Part::Token(token) => self.file.node_text(node) == token,
            Part::Attribute { object, name } => {
                if node.kind() != "attribute" {
                    return false;
                }
                let (Some(own_object), Some(own_name)) =
                    (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
                else {
                    return false;
                };
                self.part(name, own_name) && self.part(object, own_object)
            }
            Part::Call { function, positional, keywords, open } => {
                if node.kind() != "call" {
                    return false;
                }
                let (Some(own), Some(arguments)) =
                    (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
                else {
                    return false;
                };
                if !self.part(function, own) {
                    return false;
                }
                let mut own_positional = Vec::new();
                let mut own_keywords = Vec::new();
                for argument in named_children(arguments) {
                    match (argument.kind(), argument.child_by_field_name("name")) {
                        ("keyword_argument", Some(name)) => own_keywords.push((name, argument)),
                        _ => own_positional.push(argument),
                    }
                }
                for (name, value) in keywords {
                    let found =
                        own_keywords.iter().position(|(own, _)| self.file.node_text(*own) == name);
                    let Some(at) = found else { return false };
                    let (_, argument) = own_keywords.remove(at);
                    let Some(own_value) = argument.child_by_field_name("value") else {
                        return false;
                    };
                    if !self.part(value, own_value) {
                        return false;
                    }
                }
                if !*open && !own_keywords.is_empty() {
                    return false;
                }
                self.list(positional, &own_positional)
                    && self.take_keywords(positional, &own_keywords)
            }
            Part::Node { kind, children } => {
                node.kind() == *kind && self.list(children, &all_children(node))
            }
        }
    }

    /// A list with at most a few `$$$`, each as short as possible.
    fn list(&mut self, parts: &[Part], nodes: &[Node<'_>]) -> bool {
        let Some((first, rest)) = parts.split_first() else { return nodes.is_empty() };
        if let Part::Rest(name) = first {
            let longest = if rest.iter().any(|part| matches!(part, Part::Rest(_))) {
                nodes.len()
            } else {
                // Without another `$$$` the rest has a fixed length: only one split can fit.
                match nodes.len().checked_sub(rest.len()) {
                    Some(split) => return self.split(name, rest, nodes, split),
                    None => return false,
                }
            };
            let before = self.bindings.clone();
            for split in 0..=longest {
                if self.split(name, rest, nodes, split) {
                    return true;
                }
                self.bindings.clone_from(&before);
            }
            return false;
        }
        match nodes.split_first() {
            Some((node, others)) => self.part(first, *node) && self.list(rest, others),
            None => false,
        }
    }

    fn split(&mut self, name: &str, rest: &[Part], nodes: &[Node<'_>], at: usize) -> bool {
        let (taken, others) = nodes.split_at(at);
        let text = match (taken.first(), taken.last()) {
            (Some(first), Some(last)) => {
                self.file.text().get(first.start_byte()..last.end_byte()).unwrap_or("")
            }
            _ => "",
        };
        self.bind(name, text) && self.list(rest, others)
    }

    /// A named `$$$` takes the keyword arguments that the pattern leaves too.
    fn take_keywords(&mut self, positional: &[Part], left: &[(Node<'_>, Node<'_>)]) -> bool {
        let named = positional.iter().find_map(|part| match part {
            Part::Rest(name) if !name.is_empty() => Some(name),
            _ => None,
        });
        if let Some(taken) = named.and_then(|name| self.bindings.get_mut(name)) {
            for (_, argument) in left {
                if !taken.is_empty() {
                    taken.push_str(", ");
                }
                taken.push_str(self.file.node_text(*argument));
            }
        }
        true
    }

    fn bind(&mut self, name: &str, text: &str) -> bool {
        if name.is_empty() {
            return true;
        }
        match self.bindings.get(name) {
            Some(known) => known == text,
            None => {
                self.bindings.insert(name.to_owned(), text.to_owned());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn find(pattern: &str, text: &str) -> Vec<String> {
        let pattern = Pattern::parse(pattern).unwrap();
        let file = PythonFile::new("a.py".into(), text.into());
        let region = Region::deep(file.root().unwrap());
        pattern
            .find_in(&file, &region)
            .into_iter()
            .map(|(node, _)| file.node_text(node).to_owned())
            .collect()
    }

    #[test]
    fn a_literal_is_found_whatever_its_quotes() {
        let text = "m = torch.full((s, s), float('-inf'))\nn = float(\"-inf\") + float('inf')\n";
        assert_eq!(find("float(\"-inf\")", text), ["float('-inf')", "float(\"-inf\")"]);
    }

    #[test]
    fn imports_decide_what_a_name_means() {
        assert_eq!(find("-math.inf", "from math import inf\nx = -inf\n"), ["-inf"]);
        assert_eq!(find("-math.inf", "x = -inf\n"), Vec::<String>::new());
        assert_eq!(
            find("F.softmax($$$)", "import torch\ny = torch.nn.functional.softmax(x, dim=-1)\n"),
            ["torch.nn.functional.softmax(x, dim=-1)"]
        );
    }

    #[test]
    fn keyword_arguments_match_in_any_order() {
        let text = "a = F.softmax(x, dim=-1, dtype=torch.float32)\nb = F.softmax(x, dim=-1)\n";
        assert_eq!(
            find("F.softmax($X, dtype=torch.float32, $$$)", text),
            ["F.softmax(x, dim=-1, dtype=torch.float32)"]
        );
        assert_eq!(find("F.softmax($X, dtype=torch.float32)", text), Vec::<String>::new());
    }

    #[test]
    fn a_hole_repeated_is_the_same_expression() {
        assert_eq!(find("$X * $X", "a = x * x\nb = x * y\n"), ["x * x"]);
        assert_eq!(find("$_ * $_", "a = x * x\nb = x * y\n"), ["x * x", "x * y"]);
    }

    #[test]
    fn methods_on_any_object() {
        let text = "y = (x + 1).float().softmax(-1)\nz = self.f().to(torch.float32)\n";
        assert_eq!(find("$X.float()", text), ["(x + 1).float()"]);
        assert_eq!(find("$X.to(torch.float32)", text), ["self.f().to(torch.float32)"]);
        assert_eq!(find("$X.to(torch.float32)", "y = x.to(torch.float32)\n").len(), 1);
    }

    #[test]
    fn numbers_match_by_value_and_parentheses_do_not_matter() {
        assert_eq!(find("-1e9", "x = -1_000_000_000.0\n"), ["-1_000_000_000.0"]);
        assert_eq!(find("$X + 1.0", "y = (x) + (1)\n"), ["(x) + (1)"]);
    }

    #[test]
    fn operators_are_part_of_the_pattern() {
        assert_eq!(find("$A @ $B", "y = a @ b + a * b\n"), ["a @ b"]);
    }

    #[test]
    fn bindings_carry_source_text() {
        let pattern = Pattern::parse("nn.Linear($IN, $OUT, $$$REST)").unwrap();
        let file =
            PythonFile::new("a.py".into(), "p = nn.Linear(dim, 3 * dim, bias=False)\n".into());
        let found = pattern.find_in(&file, &Region::deep(file.root().unwrap()));
        let [(_, bindings)] = found.as_slice() else { panic!("one match") };
        assert_eq!(bindings["IN"], "dim");
        assert_eq!(bindings["OUT"], "3 * dim");
    }

    #[test]
    fn a_syntax_error_elsewhere_does_not_matter() {
        let text = "def broken(:\n    pass\n\nclass A:\n    def forward(self, x):\n        return x.float()\n";
        assert_eq!(find("$X.float()", text), ["x.float()"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["f(", "$X", "$$$", "a; b", ""] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }
}
