//! Python expressions as text: what kind they are, and where parentheses are needed.

use tree_sitter::Node;

use crate::findings::python::{PythonFile, named_children, parse};

/// What an expression is, as far as putting it somewhere else goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Holds together by itself: a name, a call, a number, something in brackets.
    Atom,
    /// A minus before a number: holds together but before `**`, a dot or a bracket.
    NegativeNumber,
    /// Anything else that is one expression.
    Loose,
}

/// The shape of a text; `None` if it is no single expression.
pub fn shape(text: &str) -> Option<Shape> {
    let tree = parse(&format!("({text}\n)"))?;
    let root = tree.root_node();
    if root.has_error() {
        return None;
    }
    let [statement] = named_children(root).as_slice().try_into().ok()?;
    let statement: Node<'_> = statement;
    let [outer] = named_children(statement).as_slice().try_into().ok()?;
    let outer: Node<'_> = outer;
    // `(a, b)` is a tuple, `()` too.
    if outer.kind() != "parenthesized_expression" {
        return None;
    }
    let [inner] = named_children(outer).as_slice().try_into().ok()?;
    let inner: Node<'_> = inner;
    Some(match inner.kind() {
        "identifier"
        | "attribute"
        | "call"
        | "subscript"
        | "integer"
        | "float"
        | "string"
        | "parenthesized_expression"
        | "list"
        | "tuple"
        | "dictionary"
        | "set"
        | "true"
        | "false"
        | "none"
        | "list_comprehension"
        | "ellipsis" => Shape::Atom,
        "unary_operator"
            if inner
                .child_by_field_name("argument")
                .is_some_and(|own| matches!(own.kind(), "integer" | "float")) =>
        {
            Shape::NegativeNumber
        }
        "list_splat" | "dictionary_splat" | "yield" => return None,
        _ => Shape::Loose,
    })
}

/// `text` as it can stand in the place of `node`: in parentheses where the code around would take it
/// apart. `None` if it is no single expression.
pub fn in_place_of(node: Node<'_>, text: &str) -> Option<String> {
    let shape = shape(text)?;
    let parent = node.parent();
    let role = |field: &str| {
        parent.and_then(|parent| parent.child_by_field_name(field)).map(|n| n.id())
            == Some(node.id())
    };
    let kind = parent.map_or("", |parent| parent.kind());
    let delimited = match kind {
        "argument_list"
        | "parenthesized_expression"
        | "return_statement"
        | "expression_statement"
        | "list"
        | "tuple"
        | "set"
        | "expression_list"
        | "pair" => true,
        "keyword_argument" | "default_parameter" | "typed_default_parameter" => role("value"),
        "assignment" | "augmented_assignment" => role("right"),
        "subscript" => !role("value"),
        _ => false,
    };
    let fits = match shape {
        Shape::Atom => true,
        Shape::NegativeNumber => {
            let bound_closely = match kind {
                "attribute" | "call" | "await" => true,
                "subscript" => role("value"),
                "binary_operator" => {
                    role("left")
                        && parent
                            .and_then(|parent| parent.child_by_field_name("operator"))
                            .is_some_and(|operator| operator.kind() == "**")
                }
                _ => false,
            };
            !bound_closely
        }
        Shape::Loose => delimited && (!text.contains('\n') || in_brackets(node)),
    };
    Some(if fits { text.to_owned() } else { format!("({text})") })
}

/// Whether a line may end anywhere around a node.
fn in_brackets(node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(node) = at {
        match node.kind() {
            "argument_list"
            | "parenthesized_expression"
            | "list"
            | "tuple"
            | "set"
            | "dictionary"
            | "subscript"
            | "list_comprehension"
            | "generator_expression" => {
                return true;
            }
            "block" | "module" => return false,
            _ => at = node.parent(),
        }
    }
    false
}

/// Whether a file is Python without a mistake.
pub fn parses(file: &PythonFile) -> bool {
    file.root().is_some_and(|root| !root.has_error())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::{Pattern, Region};

    #[test]
    fn shapes_of_expressions() {
        for atom in ["x", "a.b", "f(x)", "x[0]", "1.0", "(a + b)", "[1]", "f(\n  x\n)"] {
            assert_eq!(shape(atom), Some(Shape::Atom), "{atom}");
        }
        for loose in ["a + b", "not x", "a if b else c", "lambda: 1", "-x", "a\n + b"] {
            assert_eq!(shape(loose), Some(Shape::Loose), "{loose}");
        }
        assert_eq!(shape("-40000.0"), Some(Shape::NegativeNumber));
        for none in ["", "*x", "a, b", "x = 1", "f(", "a) + (b", "x for x in y"] {
            assert_eq!(shape(none), None, "{none}");
        }
    }

    fn replaced(text: &str, pattern: &str, with: &str) -> String {
        let file = PythonFile::new("a.py".into(), text.to_owned());
        let pattern = Pattern::parse(pattern).unwrap();
        let found = pattern.find_in(&file, &Region::deep(file.root().unwrap()));
        let (node, _) = found[0];
        let new = in_place_of(node, with).unwrap();
        format!("{}{new}{}", &text[..node.start_byte()], &text[node.end_byte()..])
    }

    #[test]
    fn parentheses_are_put_where_they_are_needed_and_nowhere_else() {
        assert_eq!(replaced("y = m()", "m()", "a + b"), "y = a + b");
        assert_eq!(replaced("y = 2 * m()", "m()", "a + b"), "y = 2 * (a + b)");
        assert_eq!(replaced("y = m().t()", "m()", "a + b"), "y = (a + b).t()");
        assert_eq!(replaced("y = f(m(), k=m())", "m()", "a + b"), "y = f(a + b, k=m())");
        assert_eq!(replaced("y = x + m()", "m()", "-4.0"), "y = x + -4.0");
        assert_eq!(replaced("y = m() ** 2", "m()", "-4.0"), "y = (-4.0) ** 2");
        assert_eq!(replaced("y = m().t()", "m()", "-4.0"), "y = (-4.0).t()");
        assert_eq!(replaced("y = m()[0]", "m()", "a + b"), "y = (a + b)[0]");
        assert_eq!(replaced("y = x[m()]", "m()", "a + b"), "y = x[a + b]");
        assert_eq!(replaced("y = m()", "m()", "a\n + b"), "y = (a\n + b)");
    }
}
