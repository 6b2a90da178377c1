//! The value in a `return` that a finding speaks of.

use std::ops::Range;

use tree_sitter::Node;

use crate::findings::python::{
    PythonFile, Region, assignments_to, descendants, enclosing_function, named_children,
};

/// The element of the one `return` of the function around `place` that gives it: the expression itself,
/// or the name that it is assigned to.
pub fn element<'t>(file: &'t PythonFile, place: &Range<usize>) -> Option<Node<'t>> {
    let node = file.root()?.descendant_for_byte_range(place.start, place.end)?;
    let function = enclosing_function(node)?;
    let body = function.body()?;
    let mut returns =
        descendants(body).filter(|node| node.kind() == "return_statement").filter(|node| {
            enclosing_function(*node).is_some_and(|f| f.node.id() == function.node.id())
        });
    let only = returns.next()?;
    if returns.next().is_some() {
        return None;
    }
    let value = *named_children(only).first()?;
    let elements = match value.kind() {
        "expression_list" | "tuple" => named_children(value),
        _ => vec![value],
    };
    let holds = |node: &Node<'_>| node.start_byte() <= place.start && place.end <= node.end_byte();
    if let Some(element) = elements.iter().find(|element| holds(element)) {
        return Some(*element);
    }
    // `new_key = self.k_proj(x)` … `return out, new_key`.
    let mut at = node;
    let assignment = loop {
        if at.kind() == "assignment" {
            break at;
        }
        at = at.parent().filter(|parent| parent.kind() != "block")?;
    };
    let left = assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")?;
    let name = file.node_text(left);
    // A name that is bound anew on the way is another value.
    let made = assignments_to(file, body, name, only.start_byte());
    let [made] = made.as_slice() else { return None };
    if made.parent().map(|parent| parent.id()) != Some(assignment.id()) {
        return None;
    }
    let mut named = elements
        .into_iter()
        .filter(|element| element.kind() == "identifier" && file.node_text(*element) == name);
    let element = named.next()?;
    named.next().is_none().then_some(element)
}

/// The Python that gives the value of an expression further down in the same function: the name that
/// it is assigned to, or the expression itself, if every name in it still means the same at `until`.
pub fn source(file: &PythonFile, place: &Range<usize>, until: usize) -> Option<String> {
    let root = file.root()?;
    let node = root.descendant_for_byte_range(place.start, place.end)?;
    let body = enclosing_function(node)?.body()?;
    if !(body.start_byte() <= until && until <= body.end_byte() && place.end <= until) {
        return None;
    }
    let same_until = |name: &str, from: usize| {
        Region::deep(body).nodes().all(|own| {
            let (Some(left), true) = (own.child_by_field_name("left"), is_binding(own)) else {
                return true;
            };
            let binds =
                descendants(left).any(|n| n.kind() == "identifier" && file.node_text(n) == name);
            !(binds && own.end_byte() > from && own.start_byte() < until)
        })
    };
    if let Some(parent) = node.parent()
        && parent.kind() == "assignment"
        && parent.child_by_field_name("right").is_some_and(|right| right.id() == node.id())
        && let Some(left) = parent.child_by_field_name("left")
        && left.kind() == "identifier"
    {
        let name = file.node_text(left);
        return same_until(name, parent.end_byte()).then(|| name.to_owned());
    }
    let mut names = descendants(node).filter(|n| n.kind() == "identifier");
    names
        .all(|n| same_until(file.node_text(n), node.start_byte()))
        .then(|| file.node_text(node).to_owned())
}

fn is_binding(node: Node<'_>) -> bool {
    matches!(node.kind(), "assignment" | "augmented_assignment" | "for_statement")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn file(body: &str) -> PythonFile {
        PythonFile::new("a.py".into(), format!("def f(self, k, v):\n{body}"))
    }

    fn range(file: &PythonFile, text: &str) -> Range<usize> {
        let at = file.text().find(text).unwrap();
        at..at + text.len()
    }

    fn element_of(body: &str, place: &str) -> Option<(usize, String)> {
        let file = file(body);
        let place = range(&file, place);
        let node = element(&file, &place)?;
        Some((node.start_byte(), file.node_text(node).to_owned()))
    }

    #[test]
    fn the_expression_in_the_return_or_its_name() {
        let found = element_of("    return out, k * 1.0, v\n", "k * 1.0").unwrap();
        assert_eq!(found.1, "k * 1.0");
        let text = "    new_key = self.k(k)\n    return out, new_key, v\n";
        let found = element_of(text, "self.k(k)").unwrap();
        assert_eq!(found.1, "new_key");
        assert!(found.0 > text.find("return").unwrap());
    }

    #[test]
    fn several_returns_or_a_name_bound_anew_are_no_answer() {
        let two = "    n = g(k)\n    if v:\n        return n\n    return n\n";
        assert_eq!(element_of(two, "g(k)"), None);
        let anew = "    n = g(k)\n    n = h(n)\n    return n\n";
        assert_eq!(element_of(anew, "g(k)"), None);
        let twice = "    n = g(k)\n    return n, n\n";
        assert_eq!(element_of(twice, "g(k)"), None);
    }

    #[test]
    fn the_source_is_a_name_where_there_is_one() {
        let named = file("    r = rope(k)\n    keys = cat(r)\n    return keys, k\n");
        let until = range(&named, "return").start;
        assert_eq!(source(&named, &range(&named, "rope(k)"), until).as_deref(), Some("r"));
        let inline = file("    keys = cat(rope(k))\n    return keys, k\n");
        let until = range(&inline, "return").start;
        assert_eq!(source(&inline, &range(&inline, "rope(k)"), until).as_deref(), Some("rope(k)"));
        let moved = file("    keys = cat(rope(k))\n    k = k + 1\n    return keys, k\n");
        let until = range(&moved, "return").start;
        assert_eq!(source(&moved, &range(&moved, "rope(k)"), until), None);
    }
}
