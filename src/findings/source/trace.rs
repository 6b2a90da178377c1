//! From a line to where its cause is set: through the functions it calls, the names it uses and the
//! attributes it reads, within the author's tree.
//!
//! torch records frames of `forward` only, so a literal inside a helper is recorded at the line that
//! called it. The search is syntactic and bounded; it answers with every place that it found, and the
//! caller speaks only of exactly one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tree_sitter::Node;

use super::locate::Locator;
use super::modules::{ClassRef, Code};
use super::spelling::OpSpelling;
use crate::findings::python::{
    Pattern, PythonFile, Region, assignments_to, enclosing_function, local_function,
    top_level_assignments,
};

/// Calls followed into calls.
const MAX_DEPTH: u32 = 3;
/// Files opened in one search.
const MAX_FILES: usize = 50;
/// Pieces of code searched in one search.
const MAX_REGIONS: usize = 400;

/// What the search looks for.
#[derive(Debug, Clone, Copy)]
pub enum Sought<'a> {
    /// Any of these patterns.
    Patterns(&'a [Pattern]),
    /// The call of a submodule: `self.<attribute>(…)` or `self.<attribute>[…](…)`, or else a mention
    /// of it. Only calls are followed.
    Submodule(&'a str),
    /// The spelling of an op. Only calls are followed: what runs is what is called.
    Op(&'a OpSpelling),
}

impl Sought<'_> {
    /// Whether names and attributes are followed to what they hold.
    fn follows_values(self) -> bool {
        matches!(self, Sought::Patterns(_))
    }
}

/// How far names that the function of the first line binds are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To plain values only (`neg = float("-inf")`): what another line computes is no work of this
    /// one, and the graph has that line for it.
    Line,
    /// Into all that they are assigned: a folded constant has the line of its use.
    Names,
}

/// What the search found.
#[derive(Debug, Default)]
pub struct Trace {
    /// Each place once, with the bytes of the expression on the first line that led to it.
    pub found: Vec<(Code, Range<usize>)>,
    /// Every expression on the first line with what it leads to.
    leads: Vec<(Code, Range<usize>)>,
    /// A bound was reached: there may be more.
    pub cut_short: bool,
}

/// Searches from the expressions of `region`, a part of `file` in the class `class`.
pub fn trace(
    locator: &Locator,
    file: &Arc<PythonFile>,
    region: &Region<'_>,
    class: Option<&ClassRef>,
    sought: Sought<'_>,
    reach: Reach,
) -> Trace {
    let mut tracer = Tracer::new(locator, sought, reach);
    let mut trace = Trace::default();
    let lineage = class.map(|class| locator.lineage(class)).unwrap_or_default();
    for node in region.nodes() {
        // Each expression on the line starts afresh, so that it can be told which one leads where.
        tracer.seen.clear();
        tracer.found.clear();
        tracer.follow(file, node, &lineage, 0);
        for code in &tracer.found {
            trace.leads.push((code.clone(), node.byte_range()));
            let known = trace.found.iter_mut().find(|(known, _)| same(known, code));
            match known {
                None => trace.found.push((code.clone(), node.byte_range())),
                // The widest expression that leads there: `make(s)`, not `make`.
                Some((_, origin)) if node.byte_range().len() > origin.len() => {
                    *origin = node.byte_range();
                }
                Some(_) => {}
            }
        }
    }
    trace.cut_short = tracer.cut_short;
    // Two patterns may find `torch.full(…, float("-inf"))` and the literal within; `a.f().f()` are two
    // calls.
    if matches!(sought, Sought::Patterns(_)) {
        innermost(&mut trace.found);
    }
    trace
}

/// Searches a piece of code and what it leads to.
pub fn trace_within(
    locator: &Locator,
    code: &Code,
    class: Option<&ClassRef>,
    sought: Sought<'_>,
) -> Trace {
    let mut tracer = Tracer::new(locator, sought, Reach::Names);
    let lineage = class.map(|class| locator.lineage(class)).unwrap_or_default();
    tracer.visit(code, &lineage, 0);
    let found = tracer.found.into_iter().map(|found| (found, code.range.clone()));
    let mut trace =
        Trace { found: found.collect(), leads: Vec::new(), cut_short: tracer.cut_short };
    if matches!(sought, Sought::Patterns(_)) {
        innermost(&mut trace.found);
    }
    trace
}

fn same(a: &Code, b: &Code) -> bool {
    a.file.path() == b.file.path() && a.range == b.range
}

/// Drops places that enclose another.
fn innermost(found: &mut Vec<(Code, Range<usize>)>) {
    let all: Vec<Code> = found.iter().map(|(code, _)| code.clone()).collect();
    found.retain(|(code, _)| {
        !all.iter().any(|other| {
            other.file.path() == code.file.path()
                && other.range != code.range
                && code.range.start <= other.range.start
                && other.range.end <= code.range.end
        })
    });
}

struct Tracer<'l> {
    locator: &'l Locator,
    sought: Sought<'l>,
    reach: Reach,
    seen: BTreeSet<(PathBuf, usize, usize)>,
    files: BTreeSet<PathBuf>,
    found: Vec<Code>,
    cut_short: bool,
}

impl Trace {
    /// The expression on the first line that leads to these places, if it is one; of several calls that
    /// do, the one whose turn it is: each makes as many ops of a kind.
    pub fn origin(
        &self,
        found: &[(Code, Range<usize>)],
        ordinal: Option<(usize, usize)>,
    ) -> Option<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = self
            .leads
            .iter()
            .filter(|(code, _)| found.iter().any(|(own, _)| same(own, code)))
            .map(|(_, range)| range.clone())
            .collect();
        ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        // `make(s)`, not `make`.
        let mut end = 0;
        ranges.retain(|range| {
            let within = range.end <= end;
            end = end.max(range.end);
            !within
        });
        match (ranges.as_slice(), ordinal) {
            ([one], _) => Some(one.clone()),
            (several, Some((index, count))) if !several.is_empty() => {
                let each = count / several.len();
                let whole = each > 0 && each * several.len() == count;
                if whole { several.get(index / each).cloned() } else { None }
            }
            _ => None,
        }
    }
}

impl<'l> Tracer<'l> {
    fn new(locator: &'l Locator, sought: Sought<'l>, reach: Reach) -> Tracer<'l> {
        Tracer {
            locator,
            sought,
            reach,
            seen: BTreeSet::new(),
            files: BTreeSet::new(),
            found: Vec::new(),
            cut_short: false,
        }
    }

    /// Searches a piece of code and what it refers to.
    fn visit(&mut self, code: &Code, lineage: &[ClassRef], depth: u32) {
        let key = (code.file.path().to_owned(), code.range.start, code.range.end);
        if self.seen.contains(&key) {
            return;
        }
        self.files.insert(code.file.path().to_owned());
        if self.seen.len() >= MAX_REGIONS || self.files.len() > MAX_FILES || depth > MAX_DEPTH {
            self.cut_short = true;
            return;
        }
        self.seen.insert(key);
        let Some(root) = code.file.root() else { return };
        let Some(node) = root.descendant_for_byte_range(code.range.start, code.range.end) else {
            return;
        };
        let region = Region::deep(node);
        // Depth 0 is the function of the first line.
        if depth == 0 && self.reach == Reach::Line {
            let known = self.found.len();
            self.search(&code.file, &region);
            let found = self.found.split_off(known);
            self.found.extend(found.into_iter().filter(|found| {
                let at = node.descendant_for_byte_range(found.range.start, found.range.end);
                at.is_some_and(|at| is_plain(node, at))
            }));
            for own in region.nodes().filter(|own| own.kind() != "call" && is_plain(node, *own)) {
                self.follow(&code.file, own, lineage, depth);
            }
            return;
        }
        self.search(&code.file, &region);
        for node in region.nodes() {
            self.follow(&code.file, node, lineage, depth);
        }
    }

    fn search(&mut self, file: &Arc<PythonFile>, region: &Region<'_>) {
        let mut add = |node: Node<'_>| {
            let code = Code { file: Arc::clone(file), range: node.byte_range() };
            if !self.found.iter().any(|known| same(known, &code)) {
                self.found.push(code);
            }
        };
        match self.sought {
            Sought::Patterns(patterns) => {
                for pattern in patterns {
                    for (node, _) in pattern.find_in(file, region) {
                        add(node);
                    }
                }
            }
            Sought::Submodule(attribute) => {
                let own = format!("self.{attribute}");
                let mut called_somewhere = false;
                for node in region.nodes().filter(|node| node.kind() == "call") {
                    let Some(function) = node.child_by_field_name("function") else { continue };
                    let called = match function.kind() {
                        "subscript" => function.child_by_field_name("value"),
                        _ => Some(function),
                    };
                    if called.is_some_and(|called| file.node_text(called) == own) {
                        called_somewhere = true;
                        add(node);
                    }
                }
                if !called_somewhere {
                    region
                        .nodes()
                        .filter(|node| node.kind() == "attribute" && file.node_text(*node) == own)
                        .for_each(add);
                }
            }
            Sought::Op(spelling) => {
                let nodes: Vec<_> = region.nodes().collect();
                spelling.find(file, &nodes).into_iter().for_each(add);
            }
        }
    }

    /// Goes where a node refers to.
    fn follow(&mut self, file: &Arc<PythonFile>, node: Node<'_>, lineage: &[ClassRef], depth: u32) {
        match node.kind() {
            "call" => self.follow_call(file, node, lineage, depth),
            "identifier" if self.sought.follows_values() && is_use(node) => {
                self.follow_name(file, node, lineage, depth)
            }
            "attribute" if self.sought.follows_values() => {
                let object = node.child_by_field_name("object");
                let name = node.child_by_field_name("attribute");
                let (Some(object), Some(name)) = (object, name) else { return };
                let called = node.parent().is_some_and(|parent| {
                    parent.kind() == "call"
                        && parent
                            .child_by_field_name("function")
                            .is_some_and(|f| f.id() == node.id())
                });
                // What is called is a submodule or method, not a value that holds the literal.
                if file.node_text(object) == "self" && !called {
                    let name = file.node_text(name);
                    for code in self.locator.attribute(lineage, name) {
                        self.visit(&code, lineage, depth + 1);
                    }
                    if let Some(property) = self.locator.method(lineage, name) {
                        self.visit(&property, lineage, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn follow_call(
        &mut self,
        file: &Arc<PythonFile>,
        call: Node<'_>,
        lineage: &[ClassRef],
        depth: u32,
    ) {
        let Some(function) = call.child_by_field_name("function") else { return };
        let locator = self.locator;
        match function.kind() {
            "identifier" => {
                let name = file.node_text(function);
                let local = local_function(file, call, name).and_then(|own| own.body());
                if let Some(body) = local {
                    let code = Code { file: Arc::clone(file), range: body.byte_range() };
                    self.visit(&code, lineage, depth + 1);
                } else if let Some(code) = locator.function(file, name) {
                    self.visit(&code, &[], depth + 1);
                }
            }
            "attribute" => {
                let object = function.child_by_field_name("object");
                let name = function.child_by_field_name("attribute");
                let (Some(object), Some(name)) = (object, name) else { return };
                let (object_text, name) = (file.node_text(object), file.node_text(name));
                if object_text == "self" || object_text == "cls" {
                    if let Some(code) = locator.method(lineage, name) {
                        self.visit(&code, lineage, depth + 1);
                    }
                } else if object_text == "super()" {
                    let bases = lineage.get(1..).unwrap_or_default();
                    if let Some(code) = locator.method(bases, name) {
                        self.visit(&code, lineage, depth + 1);
                    }
                } else if let Some(attribute) = object_text.strip_prefix("self.") {
                    // `self.cache.update(k)` where `self.cache = Cache(…)`.
                    if let Some(class) = self.class_of_attribute(lineage, attribute) {
                        let lineage = locator.lineage(&class);
                        if let Some(code) = locator.method(&lineage, name) {
                            self.visit(&code, &lineage, depth + 1);
                        }
                    }
                } else if object.kind() == "identifier" {
                    if let Some(class) = locator.class(file, object_text) {
                        let lineage = locator.lineage(&class);
                        if let Some(code) = locator.method(&lineage, name) {
                            self.visit(&code, &lineage, depth + 1);
                        }
                    } else if let Some(other) = locator.module_named(file, object_text)
                        && let Some(code) = locator.function(&other, name)
                    {
                        self.visit(&code, &[], depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// The author's class of a submodule, if one assignment makes it.
    fn class_of_attribute(&self, lineage: &[ClassRef], attribute: &str) -> Option<ClassRef> {
        let made = self.locator.attribute(lineage, attribute);
        let [code] = made.as_slice() else { return None };
        let node = code.file.root()?.descendant_for_byte_range(code.range.start, code.range.end)?;
        let right = node.child_by_field_name("right")?;
        let function = right.child_by_field_name("function")?;
        self.locator.class(&code.file, code.file.node_text(function))
    }

    fn follow_name(
        &mut self,
        file: &Arc<PythonFile>,
        node: Node<'_>,
        lineage: &[ClassRef],
        depth: u32,
    ) {
        let name = file.node_text(node);
        let body = enclosing_function(node).and_then(|function| function.body());
        let mut statement = node;
        while let Some(parent) = statement.parent() {
            if parent.kind() == "block" || parent.kind() == "module" {
                break;
            }
            statement = parent;
        }
        let mut values: Vec<Code> = Vec::new();
        if let Some(body) = body {
            for value in assignments_to(file, body, name, statement.start_byte()) {
                values.push(Code { file: Arc::clone(file), range: value.byte_range() });
            }
        }
        if values.is_empty() {
            for value in top_level_assignments(file, name) {
                values.push(Code { file: Arc::clone(file), range: value.byte_range() });
            }
        }
        if values.is_empty()
            && let Some(import) = file.imports().get(name)
            && let (Some(member), Some(other)) =
                (&import.member, self.locator.module(file, &import.module))
        {
            for value in top_level_assignments(&other, member) {
                values.push(Code { file: Arc::clone(&other), range: value.byte_range() });
            }
        }
        for code in values {
            // A name of the same function is no step away.
            self.visit(&code, lineage, depth);
        }
    }
}

/// Whether a part of a value is no argument of a call in it.
fn is_plain(value: Node<'_>, part: Node<'_>) -> bool {
    let mut at = part;
    while at.id() != value.id() {
        let Some(parent) = at.parent() else { return true };
        if parent.kind() == "argument_list" {
            return false;
        }
        at = parent;
    }
    true
}

/// Whether an identifier is read, not bound, called or named as a keyword.
fn is_use(node: Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let field = |name: &str| parent.child_by_field_name(name).is_some_and(|f| f.id() == node.id());
    match parent.kind() {
        "attribute" => field("object"),
        "keyword_argument" => field("value"),
        "call" => !field("function"),
        "assignment" | "for_statement" | "for_in_clause" => !field("left"),
        "pattern_list"
        | "parameters"
        | "function_definition"
        | "class_definition"
        | "aliased_import"
        | "dotted_name" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::source::locate::SourceOptions;

    /// Traces `float("-inf")` from the line of `main.py` that ends in `# here`; gives
    /// `file:line:column ← expression`.
    fn from_here(files: &[(&str, &str)]) -> Vec<String> {
        reached(files, Reach::Names)
    }

    fn reached(files: &[(&str, &str)], reach: Reach) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options =
            SourceOptions { working_folder: dir.path().to_owned(), ..SourceOptions::default() };
        let locator = Locator::new(options, std::path::Path::new("a.pt2"));
        let file = locator.read(&dir.path().join("main.py")).unwrap();
        let line = file.text().lines().position(|line| line.ends_with("# here")).unwrap() + 1;
        let region = crate::findings::source::expression::regions(&file, line as u32)
            .into_iter()
            .next_back()
            .unwrap();
        let class = ClassRef::around(&file, &region.node.byte_range());
        let patterns = [Pattern::parse("float(\"-inf\")").unwrap()];
        let sought = Sought::Patterns(&patterns);
        let trace = trace(&locator, &file, &region, class.as_ref(), sought, reach);
        let mut shown: Vec<String> = trace
            .found
            .iter()
            .map(|(code, origin)| {
                let at = code.file.position(code.range.start);
                let name = code.file.path().strip_prefix(dir.path()).unwrap().display();
                let origin = file.text().get(origin.clone()).unwrap();
                format!("{name}:{}:{} ← {origin}", at.line, at.column)
            })
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_helper_of_the_file() {
        let text = "\
def make(s):
    m = torch.full((s, s), float('-inf'))
    return m.triu(1)

class A(nn.Module):
    def forward(self, x):
        m = make(x.shape[1])  # here
        return x + m
";
        assert_eq!(from_here(&[("main.py", text)]), ["main.py:2:28 ← make(x.shape[1])"]);
    }

    #[test]
    fn a_method_of_a_base_class_in_another_file() {
        let base = "\
class Base(nn.Module):
    def _mask(self, s):
        return self._value() * 2
    def _value(self):
        return float('-inf')
";
        let text = "\
from .base import Base as B

class A(B):
    def forward(self, x):
        return x + self._mask(3)  # here
";
        let files = [("main.py", text), ("base.py", base)];
        assert_eq!(from_here(&files), ["base.py:5:16 ← self._mask(3)"]);
    }

    #[test]
    fn a_name_assigned_above_and_a_constant_of_the_module() {
        let text = "\
NEG = float('-inf')

class A(nn.Module):
    def forward(self, x):
        m = torch.full((2, 2), NEG)
        m = m.triu(1)
        return x + m  # here
";
        assert_eq!(from_here(&[("main.py", text)]), ["main.py:1:7 ← m"]);
    }

    #[test]
    fn what_other_lines_compute_is_not_of_this_line() {
        let text = "\
NEG = float('-inf')

def make(s):
    return torch.full((s, s), float('-inf'))

class A(nn.Module):
    def forward(self, x):
        y = make(3)
        neg = NEG
        z = x.masked_fill(y.bool(), float('-inf')).float()
        return z.softmax(-1) + make(4) + z.masked_fill(y.bool(), neg)  # here
";
        let files = [("main.py", text)];
        assert_eq!(reached(&files, Reach::Line), ["main.py:1:7 ← neg", "main.py:4:31 ← make(4)"]);
        assert_eq!(reached(&files, Reach::Names).len(), 3);
    }

    /// `a = rope(q), rope(k)`: the second of two ops of a kind is the second call's.
    #[test]
    fn of_two_calls_of_one_helper_each_has_its_turn() {
        let text = "\
def rope(x):
    return torch.cat((x, x), -1)

q, k = rope(q), rope(k)
";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("main.py"), text).unwrap();
        let options = SourceOptions { working_folder: dir.path().into(), ..Default::default() };
        let locator = Locator::new(options, std::path::Path::new("a.pt2"));
        let file = locator.read(&dir.path().join("main.py")).unwrap();
        let region = crate::findings::source::expression::regions(&file, 4).pop().unwrap();
        let op = OpSpelling::new("", "aten.cat.default", crate::graph::Op::CONCAT);
        let trace = trace(&locator, &file, &region, None, Sought::Op(&op), Reach::Line);
        let origin = |ordinal| {
            trace.origin(&trace.found, ordinal).map(|range| file.text()[range].to_owned())
        };
        assert_eq!(origin(Some((0, 2))).as_deref(), Some("rope(q)"));
        assert_eq!(origin(Some((3, 4))).as_deref(), Some("rope(k)"));
        assert_eq!((origin(Some((0, 3))), origin(None)), (None, None));
    }

    #[test]
    fn a_registered_buffer() {
        let text = "\
class A(nn.Module):
    def __init__(self):
        self.register_buffer('mask', torch.full((2, 2), float('-inf')).triu(1))

    def forward(self, x):
        return x + self.mask[:2]  # here
";
        assert_eq!(from_here(&[("main.py", text)]), ["main.py:3:57 ← self.mask"]);
    }

    #[test]
    fn a_method_of_a_submodule_that_is_no_module_call() {
        let text = "\
class Masks:
    def causal(self):
        return float('-inf')

class A(nn.Module):
    def __init__(self):
        self.masks = Masks()

    def forward(self, x):
        return x + self.masks.causal()  # here
";
        assert_eq!(from_here(&[("main.py", text)]), ["main.py:3:16 ← self.masks.causal()"]);
    }

    #[test]
    fn functions_behind_a_module_name() {
        let masks = "def make():\n    return float('-inf')\n";
        for import in ["from pkg import masks", "import pkg.masks as masks"] {
            let text = format!(
                "{import}\n\nclass A:\n    def forward(self, x):\n        return x + masks.make()  # here\n"
            );
            let files = [("main.py", text.as_str()), ("pkg/masks.py", masks)];
            assert_eq!(from_here(&files), ["pkg/masks.py:2:12 ← masks.make()"], "{import}");
        }
    }

    #[test]
    fn a_function_within_the_function() {
        let text = "\
class A:
    def forward(self, x):
        def hide(s):
            return s + float('-inf')

        return hide(x)  # here
";
        assert_eq!(from_here(&[("main.py", text)]), ["main.py:4:24 ← hide(x)"]);
    }

    #[test]
    fn two_causes_are_two_answers() {
        let text = "\
def make(a):
    if a:
        return float('-inf')
    return float('-inf')

class A:
    def forward(self, x):
        return x + make(1)  # here
";
        assert_eq!(from_here(&[("main.py", text)]).len(), 2);
    }

    #[test]
    fn functions_that_call_each_other_end() {
        let text = "\
def a():
    return b()
def b():
    return a()
class A:
    def forward(self, x):
        return x + a()  # here
";
        assert!(from_here(&[("main.py", text)]).is_empty());
    }
}
