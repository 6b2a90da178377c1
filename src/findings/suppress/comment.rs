//! `# anelint: ignore[ANE004, inf-mask] reason`, on a line or alone above it, and `file-ignore`.

use crate::findings::python::{PythonFile, Region, Span, comments, descendants, statement_at};
use crate::rules::schema::problem::nearest;

/// A suppression comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Where it holds.
    pub scope: Scope,
    /// The rules it names, as written, each with its place.
    pub rules: Vec<(String, Span)>,
    /// Why; may be empty.
    pub reason: String,
    /// From its `#` to its end, a following comment left out.
    pub span: Span,
    /// What is wrong with it, if it cannot be read.
    pub broken: Option<String>,
    /// First byte of the outermost definition around it; `None` at the top level.
    pub definition: Option<usize>,
}

/// Where a suppression holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// On these lines, both included.
    Lines(u32, u32),
    /// In the whole file.
    File,
}

impl Directive {
    /// Whether it holds for a stretch of its file.
    pub fn covers(&self, span: Span) -> bool {
        match self.scope {
            Scope::File => true,
            Scope::Lines(from, to) => from <= span.end.line && span.start.line <= to,
        }
    }

    /// Which of its rules is called by this id or name.
    pub fn names(&self, id: &str, name: &str) -> Option<usize> {
        self.rules
            .iter()
            .position(|(rule, _)| rule.eq_ignore_ascii_case(id) || rule.eq_ignore_ascii_case(name))
    }
}

/// The parts of a comment's text that begins with `#`: kind, bytes of each rule, reason, bytes of all.
struct Parts {
    file: bool,
    rules: Vec<(usize, usize)>,
    reason: String,
    end: usize,
    broken: Option<String>,
}

/// Reads one `# anelint: …` at the start of `text`; `None` if it is another comment.
fn parts(text: &str) -> Option<Parts> {
    let words = text.trim_start_matches('#').trim_start();
    let rest = words.strip_prefix(comments::MARK)?.trim_start();
    let at = text.len() - rest.len();
    // Another comment may follow on the line.
    let end =
        rest.find('#').map_or(text.trim_end().len(), |next| at + rest[..next].trim_end().len());
    let rest = text.get(at..end).unwrap_or("");
    let word_end = rest.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(rest.len());
    let (word, after) = rest.split_at(word_end);
    let broken = |message: String| {
        Some(Parts {
            file: false,
            rules: Vec::new(),
            reason: String::new(),
            end,
            broken: Some(message),
        })
    };
    let file = match word {
        "ignore" => false,
        "file-ignore" => true,
        other => {
            let meant = nearest(other, ["ignore", "file-ignore"]);
            let meant = meant.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
            return broken(format!(
                "`{other}` is no suppression: write `ignore[RULE] reason` or `file-ignore[RULE] \
                 reason`{meant}"
            ));
        }
    };
    let Some(inside) = after.strip_prefix('[') else {
        return broken(format!("it names no rule: write `{word}[RULE] reason`"));
    };
    let Some(close) = inside.find(']') else {
        return broken("its bracket is not closed".to_owned());
    };
    let start = end - inside.len();
    let mut rules = Vec::new();
    let mut offset = 0;
    for part in inside[..close].split(',') {
        let own = part.trim();
        if !own.is_empty() {
            let from = start + offset + (part.len() - part.trim_start().len());
            rules.push((from, from + own.len()));
        }
        offset += part.len() + 1;
    }
    if rules.is_empty() {
        return broken(format!("it names no rule: write `{word}[RULE] reason`"));
    }
    let reason = inside.get(close + 1..).unwrap_or("");
    let reason = reason.trim().trim_start_matches(['-', ':', '—', '–']).trim().to_owned();
    Some(Parts { file, rules, reason, end, broken: None })
}

/// The suppression comments of a file, in order.
pub fn directives(file: &PythonFile) -> Vec<Directive> {
    if !file.text().contains(comments::MARK) {
        return Vec::new();
    }
    let Some(root) = file.root() else { return Vec::new() };
    let mut found = Vec::new();
    for comment in descendants(root).filter(|node| node.kind() == "comment") {
        let text = file.node_text(comment);
        // Several may share a line: `# noqa  # anelint: ignore[ANE004]`.
        for (at, _) in text.match_indices('#') {
            let Some(parts) = text.get(at..).and_then(parts) else { continue };
            let start = comment.start_byte() + at;
            let span = |from: usize, to: usize| file.span(start + from..start + to);
            let line = file.position(start).line;
            found.push(Directive {
                scope: if parts.file { Scope::File } else { lines(file, line) },
                rules: parts
                    .rules
                    .iter()
                    .map(|&(from, to)| {
                        (text.get(at + from..at + to).unwrap_or("").to_owned(), span(from, to))
                    })
                    .collect(),
                reason: parts.reason,
                span: span(0, parts.end),
                broken: parts.broken,
                definition: outermost_definition(file, comment.start_byte()),
            });
        }
    }
    found
}

/// The rules and the reason of a suppression at the end of a recorded line, whose file is not here.
pub fn in_recorded_line(text: &str) -> Vec<(Vec<String>, String)> {
    let Some(comment) = comments::comment_start(text).and_then(|at| text.get(at..)) else {
        return Vec::new();
    };
    comment
        .match_indices('#')
        .filter_map(|(at, _)| {
            let own = comment.get(at..)?;
            let parts = parts(own)?;
            let rules = parts.rules.iter().filter_map(|&(from, to)| own.get(from..to));
            Some((rules.map(str::to_owned).collect(), parts.reason))
        })
        .collect()
}

/// The lines that a comment on `line` holds for: those of the statement that it ends or stands above;
/// within a statement that goes over several lines its own, or the next.
fn lines(file: &PythonFile, line: u32) -> Scope {
    let text = |line: u32| file.line(line).unwrap_or("").trim();
    let alone = text(line).starts_with('#');
    let mut target = line;
    if alone {
        while text(target).starts_with('#') {
            target += 1;
        }
    }
    let (from, to) = match statement_at(file, target) {
        Some(statement) => {
            let region = Region::shallow(statement);
            let first = file.position(region.node.start_byte()).line;
            let last = header_end(file, statement);
            match target == first || (!alone && target == last) {
                true => (first, last),
                false => (target, target),
            }
        }
        None => (target, target),
    };
    // A comment put in after the export stands where the line was: its own line is meant, too.
    Scope::Lines(from.min(line), to.max(line))
}

/// The last line of a statement, its blocks left out.
fn header_end(file: &PythonFile, statement: tree_sitter::Node<'_>) -> u32 {
    let body = statement
        .child_by_field_name("body")
        .or_else(|| statement.child_by_field_name("consequence"));
    match body {
        // A header ends before its block; on one line with it, it ends there.
        Some(body) => {
            let start = file.position(statement.start_byte()).line;
            file.position(body.start_byte()).line.saturating_sub(1).max(start)
        }
        None => file.position(statement.end_byte()).line,
    }
}

/// First byte of the outermost class or function around a byte.
pub fn outermost_definition(file: &PythonFile, byte: usize) -> Option<usize> {
    let root = file.root()?;
    let mut cursor = root.walk();
    root.children(&mut cursor)
        .find(|node| {
            let holds = node.start_byte() <= byte && byte < node.end_byte();
            holds
                && matches!(
                    node.kind(),
                    "class_definition" | "function_definition" | "decorated_definition"
                )
        })
        .map(|node| node.start_byte())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn read(text: &str) -> Vec<Directive> {
        directives(&PythonFile::new("a.py".into(), text.to_owned()))
    }

    fn one(text: &str) -> Directive {
        let mut all = read(text);
        assert_eq!(all.len(), 1, "{all:?}");
        all.pop().unwrap()
    }

    fn shown(directive: &Directive) -> (Vec<&str>, &str) {
        let rules = directive.rules.iter().map(|(rule, _)| rule.as_str()).collect();
        (rules, directive.reason.as_str())
    }

    #[test]
    fn rules_and_reason_are_read() {
        let own = one("x = f(y)  # anelint: ignore[ANE004, inf-mask] measured on an M4\n");
        assert_eq!(shown(&own), (vec!["ANE004", "inf-mask"], "measured on an M4"));
        assert_eq!(own.scope, Scope::Lines(1, 1));
        assert_eq!((own.span.start.column, own.span.end.column), (11, 64));
        assert_eq!(own.rules[1].1.start.column, 37);
        assert_eq!(own.names("ANE009", "Inf-Mask"), Some(1));
        assert_eq!(own.names("ANE009", "x"), None);
    }

    #[test]
    fn alone_it_holds_for_the_statement_below() {
        let text = "\
# anelint: ignore[ANE001] why
# another comment
self.a = nn.Linear(
    3,
    4,
)
b = 1
";
        assert_eq!(one(text).scope, Scope::Lines(1, 6));
        let within = "f(\n    a,\n    # anelint: ignore[A] b\n    c,\n)\n";
        assert_eq!(one(within).scope, Scope::Lines(3, 4));
        let at_end = "f(\n    a,\n)  # anelint: ignore[A] b\n";
        assert_eq!(one(at_end).scope, Scope::Lines(1, 3));
    }

    #[test]
    fn above_a_loop_it_holds_for_the_header_alone() {
        let text = "# anelint: ignore[A] b\nfor x in f(\n    y\n):\n    g(x)\n    h(x)\n";
        assert_eq!(one(text).scope, Scope::Lines(1, 4));
        let def = "class A:\n    # anelint: ignore[A] b\n    def f(self):\n        return 1\n";
        assert_eq!(one(def).scope, Scope::Lines(2, 3));
        assert_eq!(one(def).definition, Some(0));
    }

    #[test]
    fn other_comments_on_the_line_are_left_alone() {
        let own = one("x = 1  # noqa # anelint: ignore[A] b # type: ignore\n");
        assert_eq!(shown(&own), (vec!["A"], "b"));
        assert_eq!((own.span.start.column, own.span.end.column), (15, 37));
        assert!(read("x = '# anelint: ignore[A] b'\n").is_empty());
        assert_eq!(one("# anelint: file-ignore[A] b\n").scope, Scope::File);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let broken = |text: &str| one(text).broken.unwrap();
        assert_eq!(broken("# anelint: ignore\n"), "it names no rule: write `ignore[RULE] reason`");
        assert_eq!(
            broken("# anelint: ignore[ ] x\n"),
            "it names no rule: write `ignore[RULE] reason`"
        );
        assert!(broken("# anelint: igonre[A]\n").ends_with("did you mean `ignore`?"));
        assert_eq!(broken("# anelint: ignore[A\n"), "its bracket is not closed");
    }

    #[test]
    fn a_recorded_line_keeps_its_suppression() {
        let text = "x = f('#')  # anelint: ignore[ANE004] why";
        assert_eq!(in_recorded_line(text), [(vec!["ANE004".to_owned()], "why".to_owned())]);
        assert!(in_recorded_line("x = '# anelint: ignore[A]'").is_empty());
    }
}
