//! Walks over a syntax tree: without recursion, and confined to one statement.

use std::ops::Range;

use tree_sitter::{Node, TreeCursor};

use super::PythonFile;

/// Every node under `root`, `root` first, in source order.
pub fn descendants(root: Node<'_>) -> Descendants<'_> {
    Descendants { cursor: root.walk(), skip: None, started: false, done: false, depth: 0 }
}

/// See [`descendants`].
pub struct Descendants<'t> {
    cursor: TreeCursor<'t>,
    /// Nodes that are given, but not entered.
    skip: Option<Box<dyn Fn(Node<'t>) -> bool + 't>>,
    started: bool,
    done: bool,
    depth: u32,
}

impl<'t> Iterator for Descendants<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        if self.done {
            return None;
        }
        if !self.started {
            self.started = true;
            return Some(self.cursor.node());
        }
        let skipped = self.skip.as_ref().is_some_and(|skip| skip(self.cursor.node()));
        if !skipped && self.cursor.goto_first_child() {
            self.depth += 1;
            return Some(self.cursor.node());
        }
        loop {
            if self.depth == 0 {
                self.done = true;
                return None;
            }
            if self.cursor.goto_next_sibling() {
                return Some(self.cursor.node());
            }
            self.cursor.goto_parent();
            self.depth -= 1;
        }
    }
}

/// A part of a file that is searched: a node, with or without what it nests.
#[derive(Debug, Clone)]
pub struct Region<'t> {
    /// The node.
    pub node: Node<'t>,
    /// Whether blocks and nested definitions are part of it.
    pub deep: bool,
    /// Only nodes that begin within these bytes are given.
    pub starts_within: Option<Range<usize>>,
}

impl<'t> Region<'t> {
    /// A node with all it nests.
    pub fn deep(node: Node<'t>) -> Region<'t> {
        Region { node, deep: true, starts_within: None }
    }

    /// A statement without the blocks under it.
    pub fn shallow(node: Node<'t>) -> Region<'t> {
        Region { node, deep: false, starts_within: None }
    }

    /// The named nodes of the region in source order.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let mut walk = descendants(self.node);
        let deep = self.deep;
        let window = self.starts_within.clone();
        walk.skip = Some(Box::new(move |node: Node<'t>| {
            let nested =
                matches!(node.kind(), "block" | "function_definition" | "class_definition");
            let outside = window
                .as_ref()
                .is_some_and(|w| node.end_byte() <= w.start || node.start_byte() >= w.end);
            (!deep && nested) || outside
        }));
        let within = self.starts_within.clone();
        let root = self.node.id();
        walk.filter(move |node| {
            node.is_named()
                && (node.id() == root || node.kind() != "block")
                && within.as_ref().is_none_or(|range| range.contains(&node.start_byte()))
        })
    }
}

/// The smallest statement that covers the first non-blank character of a line; for an `if`, `for` or
/// `with` that is the statement whose header is on the line.
pub fn statement_at(file: &PythonFile, line: u32) -> Option<Node<'_>> {
    let range = file.line_bytes(line)?;
    let text = file.text().get(range.clone())?;
    let at = range.start + (text.len() - text.trim_start().len());
    if at >= range.end {
        return None;
    }
    let mut node = file.root()?.descendant_for_byte_range(at, at + 1)?;
    if node.kind() == "comment" {
        return None;
    }
    loop {
        let parent = node.parent()?;
        if matches!(parent.kind(), "block" | "module" | "ERROR") {
            return Some(node);
        }
        node = parent;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    const TEXT: &str = "\
def f(x):
    if x.any():
        y = g(
            x,
            h(2),
        )
    return y
";

    #[test]
    fn the_statement_of_an_inner_line_is_the_whole_call() {
        let file = PythonFile::new("a.py".into(), TEXT.into());
        for line in 3..=6 {
            let node = statement_at(&file, line).unwrap();
            assert_eq!(file.position(node.start_byte()).line, 3, "line {line}");
            assert!(file.node_text(node).starts_with("y = g("));
        }
    }

    #[test]
    fn a_header_is_searched_without_its_block() {
        let file = PythonFile::new("a.py".into(), TEXT.into());
        let node = statement_at(&file, 2).unwrap();
        assert_eq!(node.kind(), "if_statement");
        let texts: Vec<_> =
            Region::shallow(node).nodes().map(|n| file.node_text(n).to_owned()).collect();
        assert!(texts.iter().any(|t| t == "x.any()"));
        assert!(!texts.iter().any(|t| t == "h(2)"));
    }

    #[test]
    fn blank_lines_and_comments_are_no_statement() {
        let file = PythonFile::new("a.py".into(), "x = 1\n\n# c\n".into());
        assert!(statement_at(&file, 2).is_none());
        assert!(statement_at(&file, 3).is_none());
        assert!(statement_at(&file, 9).is_none());
    }

    #[test]
    fn a_deeply_nested_expression_costs_no_stack() {
        let text = format!("x = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
        let file = PythonFile::new("a.py".into(), text);
        assert!(descendants(file.root().unwrap()).count() > 20_000);
    }
}
