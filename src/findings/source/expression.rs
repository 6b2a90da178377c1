//! The exact expression on a line.
//!
//! A place that is not sure is no place: where several expressions fit and nothing tells them apart,
//! the answer is none, and the finding shows the statement without a column.

use tree_sitter::Node;

use super::callee::Callee;
use super::spelling::{OpSpelling, in_evaluation_order};
use crate::findings::python::{Pattern, PythonFile, Region, statement_at};

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The rule's own patterns, best first.
    pub patterns: &'a [Pattern],
    /// The submodule called, if one ran the op.
    pub callee: Option<&'a Callee>,
    /// How the op is spelled.
    pub op: &'a OpSpelling,
    /// An attribute of `self` that holds the constant to be named (`mask`).
    pub attribute: Option<&'a str>,
    /// Which of how many calls on this line that spell the op made it, by the order in the graph.
    pub ordinal: Option<(usize, usize)>,
    /// Column from 1 where the format recorded one; 0 if not.
    pub column: u32,
    /// Bytes of the expression that was running, where the format recorded its ends too.
    pub recorded: Option<(usize, usize)>,
    /// The one value of the constant to be named.
    pub value: Option<f64>,
}

/// An expression, and what led to it.
#[derive(Debug, Clone, Copy)]
pub struct Expression<'t> {
    /// The node.
    pub node: Node<'t>,
    /// Whether one of the rule's own patterns found it.
    pub by_pattern: bool,
}

/// The parts of a file that a line stands for: what begins on the line, then the whole statement.
pub fn regions(file: &PythonFile, line: u32) -> Vec<Region<'_>> {
    let (Some(statement), Some(bytes)) = (statement_at(file, line), file.line_bytes(line)) else {
        return Vec::new();
    };
    let whole = Region::shallow(statement);
    // What begins on the line is part of it even in a block (`def forward(self, x): return f(x)`) or
    // in the next statement (`x = f(x); y = g(x)`).
    let around = statement.parent().unwrap_or(statement);
    let on_line = Region { starts_within: Some(bytes), ..Region::deep(around) };
    vec![on_line, whole]
}

/// Finds the expression that `wanted` describes on a line; `None` if there is none, or several that
/// cannot be told apart.
pub fn find<'t>(file: &'t PythonFile, line: u32, wanted: Wanted<'_>) -> Option<Expression<'t>> {
    let recorded = wanted.recorded.and_then(|range| exactly(file, range));
    // Where it begins tells nothing between the whole expression and what a pattern finds within it.
    let wanted = Wanted { column: if recorded.is_some() { 0 } else { wanted.column }, ..wanted };
    let regions = regions(file, line);
    for region in recorded.map(Region::deep).iter().chain(&regions) {
        if let Some(node) = by_pattern(file, region, wanted) {
            return Some(Expression { node, by_pattern: true });
        }
    }
    if let Some(node) = recorded {
        let own = wanted.attribute.map(|attribute| format!("self.{attribute}"));
        let named = own.and_then(|own| {
            let mut fits = Region::deep(node)
                .nodes()
                .filter(|node| node.kind() == "attribute" && file.node_text(*node) == own);
            fits.next().filter(|_| fits.next().is_none())
        });
        return Some(Expression { node: named.unwrap_or(node), by_pattern: false });
    }
    for region in &regions {
        let nodes: Vec<_> = region.nodes().collect();
        if let Some(callee) = wanted.callee
            && let Some(node) = the_one(
                in_evaluation_order(callee.find(file, &nodes)),
                wanted.ordinal,
                wanted,
                file,
            )
        {
            return Some(Expression { node, by_pattern: false });
        }
        if let Some(attribute) = wanted.attribute {
            let own = format!("self.{attribute}");
            let found: Vec<_> = nodes
                .iter()
                .copied()
                .filter(|node| node.kind() == "attribute" && file.node_text(*node) == own)
                .collect();
            if let Some(node) = the_one(found, None, wanted, file) {
                return Some(Expression { node, by_pattern: false });
            }
        }
        // An op that a submodule ran is not spelled on this line: what looks like it is another one.
        if wanted.callee.is_none() {
            let found = wanted.op.find(file, &nodes);
            if let Some(node) = the_one(found, wanted.ordinal, wanted, file) {
                return Some(Expression { node, by_pattern: false });
            }
        }
    }
    None
}

/// The node of exactly these bytes. Where the file parses otherwise than it ran, there is none.
pub fn exactly(file: &PythonFile, (start, end): (usize, usize)) -> Option<Node<'_>> {
    let node = file.root()?.named_descendant_for_byte_range(start, end)?;
    (node.byte_range() == (start..end)).then_some(node)
}

/// What the patterns match: all matches together if they are one, or as many as the graph has ops of
/// this kind here; else the first pattern with one match. What a submodule ran is its call: an
/// expression beside or within the call that looks like the op made another one.
fn by_pattern<'t>(
    file: &'t PythonFile,
    region: &Region<'t>,
    wanted: Wanted<'_>,
) -> Option<Node<'t>> {
    let nodes: Vec<_> = region.nodes().collect();
    let calls = wanted.callee.map(|callee| callee.find(file, &nodes)).unwrap_or_default();
    let each: Vec<Vec<Node<'t>>> = wanted
        .patterns
        .iter()
        .map(|pattern| {
            pattern
                .find_in(file, region)
                .into_iter()
                .map(|(node, _)| node)
                .filter(|node| calls.is_empty() || calls.iter().any(|call| call.id() == node.id()))
                .collect()
        })
        .collect();
    let mut all: Vec<Node<'t>> = each.iter().flatten().copied().collect();
    all.sort_by_key(|node| (node.start_byte(), node.end_byte()));
    all.dedup_by_key(|node| node.id());
    let all = in_evaluation_order(all);
    if all.len() > 1 && wanted.callee.is_none() {
        let own = spelled(&all, &wanted.op.find(file, &nodes));
        if let Some(node) = the_one(own, wanted.ordinal, wanted, file) {
            return Some(node);
        }
    }
    if let Some(node) = the_one(all, wanted.ordinal, wanted, file) {
        return Some(node);
    }
    each.into_iter()
        .find_map(|found| the_one(in_evaluation_order(found), wanted.ordinal, wanted, file))
}

/// The matches that spell the op, and those within them: a literal in its call says more than the
/// call. Empty if that is none or all.
fn spelled<'t>(matches: &[Node<'t>], spellings: &[Node<'t>]) -> Vec<Node<'t>> {
    let is_own = |node: &Node<'_>| spellings.iter().any(|own| own.id() == node.id());
    let calls: Vec<_> = matches.iter().filter(|node| is_own(node)).collect();
    let own: Vec<_> = matches
        .iter()
        .filter(|node| {
            calls.iter().any(|call| {
                call.start_byte() <= node.start_byte() && node.end_byte() <= call.end_byte()
            })
        })
        .copied()
        .collect();
    if own.len() == matches.len() { Vec::new() } else { own }
}

fn the_one<'t>(
    nodes: Vec<Node<'t>>,
    ordinal: Option<(usize, usize)>,
    wanted: Wanted<'_>,
    file: &PythonFile,
) -> Option<Node<'t>> {
    match nodes.as_slice() {
        [] => None,
        [one] => Some(*one),
        several => {
            if wanted.column > 0 {
                let at_column: Vec<_> = several
                    .iter()
                    .filter(|node| file.position(node.start_byte()).column == wanted.column)
                    .collect();
                if let [one] = at_column.as_slice() {
                    return Some(**one);
                }
            }
            if let Some(value) = wanted.value {
                let with_value: Vec<_> =
                    several.iter().filter(|node| spells_number(file, **node, value)).collect();
                if let [one] = with_value.as_slice() {
                    return Some(**one);
                }
            }
            match ordinal {
                Some((index, count)) if count == several.len() => several.get(index).copied(),
                _ => None,
            }
        }
    }
}

/// Whether an expression spells a number, up to its sign and the rounding of f16.
pub(super) fn spells_number(file: &PythonFile, node: Node<'_>, value: f64) -> bool {
    Region::deep(node).nodes().filter(|node| matches!(node.kind(), "integer" | "float")).any(
        |own| {
            file.node_text(own)
                .replace('_', "")
                .parse::<f64>()
                .is_ok_and(|own| (own - value.abs()).abs() <= 1e-3 * own.abs())
        },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::graph::Op;

    struct Ask<'a> {
        patterns: &'a [&'a str],
        callee: Option<&'a str>,
        op: Op,
        ordinal: Option<(usize, usize)>,
        column: u32,
        recorded: Option<&'a str>,
        value: Option<f64>,
    }

    impl Default for Ask<'_> {
        fn default() -> Self {
            Ask {
                patterns: &[],
                callee: None,
                op: Op::UNKNOWN,
                ordinal: None,
                column: 0,
                recorded: None,
                value: None,
            }
        }
    }

    /// Where the expression is, as `line:column-line:column text`.
    fn find_in(text: &str, line: u32, ask: Ask<'_>) -> String {
        let file = PythonFile::new("a.py".into(), text.into());
        let patterns: Vec<_> = ask.patterns.iter().map(|p| Pattern::parse(p).unwrap()).collect();
        let callee = ask.callee.map(|a| Callee { attribute: a.into(), index: None, last: None });
        let op = OpSpelling::new("", "", ask.op);
        let wanted = Wanted {
            patterns: &patterns,
            callee: callee.as_ref(),
            op: &op,
            attribute: None,
            ordinal: ask.ordinal,
            column: ask.column,
            recorded: ask.recorded.and_then(|text_of| {
                let start = text.find(text_of)?;
                Some((start, start + text_of.len()))
            }),
            value: ask.value,
        };
        match find(&file, line, wanted) {
            None => "none".to_owned(),
            Some(expression) => {
                let span = file.span(expression.node.byte_range());
                format!(
                    "{}:{}-{}:{} {}",
                    span.start.line,
                    span.start.column,
                    span.end.line,
                    span.end.column,
                    file.node_text(expression.node).replace('\n', "⏎")
                )
            }
        }
    }

    #[test]
    fn the_caret_stands_under_the_literal() {
        let text =
            "class A:\n    def forward(self, x):\n        m = torch.full((2, 2), float('-inf'))\n";
        let ask = Ask { patterns: &["float(\"-inf\")"], ..Ask::default() };
        assert_eq!(find_in(text, 3, ask), "3:32-3:45 float('-inf')");
    }

    #[test]
    fn unicode_tabs_and_carriage_returns_before_it() {
        let text = "def f(x):\r\n\tσ = 'é→', x.float()\r\n";
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in(text, 2, ask), "2:12-2:21 x.float()");
    }

    #[test]
    fn a_call_of_several_lines_is_whole_and_its_argument_is_on_its_own_line() {
        let text = "\
y = F.scaled_dot_product_attention(
    q,
    k,
    attn_mask=self.mask(
        s,
    ),
)
";
        let sdpa = || Ask { op: Op::SDPA, ..Ask::default() };
        assert!(find_in(text, 1, sdpa()).starts_with("1:5-7:2 F.scaled"));
        let mask = Ask { patterns: &["self.mask($$$)"], ..Ask::default() };
        assert!(find_in(text, 4, mask).starts_with("4:15-6:6 self.mask("));
        // A pattern that lies on a later line of the statement is still found.
        let mask = Ask { patterns: &["self.mask($$$)"], ..Ask::default() };
        assert!(find_in(text, 1, mask).starts_with("4:15-6:6"));
    }

    #[test]
    fn the_submodule_decides_among_calls_that_fit() {
        let text = "q, k = self.q(x), self.k(x)\n";
        let ask = || Ask { patterns: &["$M($X)"], callee: Some("k"), ..Ask::default() };
        assert_eq!(find_in(text, 1, ask()), "1:19-1:28 self.k(x)");
    }

    #[test]
    fn what_a_submodule_ran_is_its_call_and_nothing_within_or_beside_it() {
        let ask = |callee, ordinal| Ask {
            patterns: &["F.linear($$$)", "$A @ $B"],
            callee: Some(callee),
            op: Op::LINEAR,
            ordinal,
            ..Ask::default()
        };
        let text = "return self.out(merge_heads(p @ v))\n";
        assert_eq!(
            find_in(text, 1, ask("out", Some((0, 1)))),
            "1:8-1:36 self.out(merge_heads(p @ v))"
        );
        let text = "y = self.a(x) @ self.b(x).transpose(1, 2)\n";
        assert_eq!(find_in(text, 1, ask("a", Some((0, 1)))), "1:5-1:14 self.a(x)");
        assert_eq!(find_in(text, 1, ask("b", Some((0, 1)))), "1:17-1:26 self.b(x)");
        let text = "y = self.a(self.a(x))\n";
        assert_eq!(find_in(text, 1, ask("a", Some((0, 2)))), "1:12-1:21 self.a(x)");
        assert_eq!(find_in(text, 1, ask("a", None)), "none");
    }

    #[test]
    fn of_several_matches_the_one_that_spells_the_op() {
        let text = "z = self.k(z) + z @ self.w + F.linear(z, self.w)\n";
        let ask = |op| Ask {
            patterns: &["F.linear($$$)", "$A @ $B"],
            op,
            ordinal: Some((0, 1)),
            ..Ask::default()
        };
        assert_eq!(find_in(text, 1, ask(Op::MATMUL)), "1:17-1:27 z @ self.w");
        assert_eq!(find_in(text, 1, ask(Op::LINEAR)), "1:30-1:49 F.linear(z, self.w)");
        // The number within the call of the op says more than the call.
        let text = "s = s.masked_fill(m, -1e9) + t.softmax(-1)\n";
        let patterns = &["-1e9", "$X.masked_fill($$$)", "$X.softmax($$$)"];
        let ask = Ask { patterns, op: Op::WHERE, ..Ask::default() };
        assert_eq!(find_in(text, 1, ask), "1:22-1:26 -1e9");
    }

    #[test]
    fn the_order_in_the_graph_decides_among_equals_if_the_counts_agree() {
        let text = "y = a * b + c * d\n";
        let ask = |ordinal| Ask { op: Op::MUL, ordinal, ..Ask::default() };
        assert_eq!(find_in(text, 1, ask(Some((1, 2)))), "1:13-1:18 c * d");
        assert_eq!(find_in(text, 1, ask(Some((1, 3)))), "none");
        assert_eq!(find_in(text, 1, ask(None)), "none");
    }

    #[test]
    fn different_patterns_on_one_line_are_told_apart_too() {
        let text = "a, b = s.fill(m, float('-inf')), s.fill(n, -float('inf'))\n";
        let patterns = &["float(\"-inf\")", "-float(\"inf\")"];
        let ask = |ordinal| Ask { patterns, ordinal, ..Ask::default() };
        assert_eq!(find_in(text, 1, ask(Some((0, 2)))), "1:18-1:31 float('-inf')");
        assert_eq!(find_in(text, 1, ask(Some((1, 2)))), "1:44-1:57 -float('inf')");
    }

    #[test]
    fn the_value_of_a_constant_decides() {
        let text = "a, b = x * torch.tensor(1.5), y + torch.tensor(0.25)\n";
        let ask = |value| Ask { patterns: &["torch.tensor($X)"], value, ..Ask::default() };
        assert_eq!(find_in(text, 1, ask(Some(0.25))), "1:35-1:53 torch.tensor(0.25)");
        assert_eq!(find_in(text, 1, ask(Some(2.0))), "none");
    }

    #[test]
    fn every_statement_of_the_line_is_looked_at() {
        let text = "a = 'é'; b = x.float(); c = 1\n";
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in(text, 1, ask), "1:14-1:23 x.float()");
    }

    #[test]
    fn a_recorded_column_decides() {
        let text = "y = a * b + c * d\n";
        let ask = Ask { op: Op::MUL, column: 13, ..Ask::default() };
        assert_eq!(find_in(text, 1, ask), "1:13-1:18 c * d");
    }

    #[test]
    fn a_recorded_expression_decides_and_a_pattern_within_it_is_finer() {
        let text = "y = f(a * b) + g(c * d, float('-inf'))\n";
        let ask = |recorded| Ask { op: Op::MUL, recorded: Some(recorded), ..Ask::default() };
        assert_eq!(find_in(text, 1, ask("c * d")), "1:18-1:23 c * d");
        // No node spans it: as if nothing had been recorded.
        assert_eq!(find_in(text, 1, ask("b) +")), "none");
        let fine = Ask { patterns: &["float('-inf')"], ..ask("g(c * d, float('-inf'))") };
        assert_eq!(find_in(text, 1, fine), "1:25-1:38 float('-inf')");
    }

    #[test]
    fn decorators_nested_classes_and_broken_code_elsewhere() {
        let text = "\
def broken(:
    pass

class Outer:
    class Inner(nn.Module):
        @torch.no_grad()
        @other(x.float())
        def forward(self, x):
            return x.float()
";
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in(text, 9, ask), "9:20-9:29 x.float()");
    }

    #[test]
    fn the_block_under_a_header_is_not_the_header() {
        let text = "for i in range(2):\n    x = x.float()\n";
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in(text, 1, ask), "none");
    }

    #[test]
    fn a_block_on_the_line_of_its_header_is_part_of_it() {
        let text = "class A:\n    def forward(self, x): return x.float()\n";
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in(text, 2, ask), "2:34-2:43 x.float()");
    }

    #[test]
    fn a_line_past_the_end_is_none() {
        let ask = Ask { patterns: &["$X.float()"], ..Ask::default() };
        assert_eq!(find_in("x.float()\n", 7, ask), "none");
    }
}
