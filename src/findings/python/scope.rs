//! Where things are defined: functions, classes, methods, what is assigned to a name or attribute.
//!
//! All answers are syntactic and within one file; nothing is executed, so a name bound twice gives
//! two answers and the caller decides.

use tree_sitter::Node;

use super::PythonFile;
use super::dotted::named_children;
use super::walk::{Region, descendants};

/// A function or class definition.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'t> {
    /// The `function_definition` or `class_definition` node.
    pub node: Node<'t>,
}

impl<'t> Definition<'t> {
    /// Its body.
    pub fn body(&self) -> Option<Node<'t>> {
        self.node.child_by_field_name("body")
    }

    /// Its name.
    pub fn name<'f>(&self, file: &'f PythonFile) -> &'f str {
        self.node.child_by_field_name("name").map_or("", |name| file.node_text(name))
    }
}

/// The innermost function around a node.
pub fn enclosing_function(node: Node<'_>) -> Option<Definition<'_>> {
    ancestor(node, "function_definition")
}

/// The innermost class around a node.
pub fn enclosing_class(node: Node<'_>) -> Option<Definition<'_>> {
    ancestor(node, "class_definition")
}

fn ancestor<'t>(node: Node<'t>, kind: &str) -> Option<Definition<'t>> {
    let mut at = node.parent();
    while let Some(node) = at {
        if node.kind() == kind {
            return Some(Definition { node });
        }
        at = node.parent();
    }
    None
}

/// Statements of a block or module with decorators and `if`/`try` around them taken off, one level of
/// each (`if TYPE_CHECKING:`, `try: … except ImportError:`).
fn statements(block: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    for statement in named_children(block) {
        match statement.kind() {
            "decorated_definition" => {
                found.extend(statement.child_by_field_name("definition"));
            }
            "if_statement" | "try_statement" | "with_statement" => {
                for node in descendants(statement) {
                    if matches!(node.kind(), "function_definition" | "class_definition") {
                        found.push(node);
                    }
                }
            }
            _ => found.push(statement),
        }
    }
    found
}

fn definition<'t>(
    file: &PythonFile,
    block: Node<'t>,
    kind: &str,
    name: &str,
) -> Option<Definition<'t>> {
    // The last one wins, as it does when Python runs the file.
    statements(block)
        .into_iter()
        .filter(|node| node.kind() == kind)
        .map(|node| Definition { node })
        .rfind(|definition| definition.name(file) == name)
}

/// A function of the file by name.
pub fn function_definition<'t>(file: &'t PythonFile, name: &str) -> Option<Definition<'t>> {
    definition(file, file.root()?, "function_definition", name)
}

/// A function defined inside one of the functions around a node.
pub fn local_function<'t>(file: &PythonFile, node: Node<'t>, name: &str) -> Option<Definition<'t>> {
    let mut around = enclosing_function(node);
    while let Some(function) = around {
        let found = function.body().and_then(|body| {
            descendants(body)
                .filter(|node| node.kind() == "function_definition")
                .map(|node| Definition { node })
                .find(|definition| definition.name(file) == name)
        });
        if found.is_some() {
            return found;
        }
        around = enclosing_function(function.node);
    }
    None
}

/// A class of the file by name, nested ones (`Outer.Inner`) too.
pub fn class_definition<'t>(file: &'t PythonFile, name: &str) -> Option<Definition<'t>> {
    let mut block = file.root()?;
    let mut found = None;
    for part in name.split('.') {
        let class = definition(file, block, "class_definition", part)?;
        block = class.body()?;
        found = Some(class);
    }
    found
}

/// A method of a class by name, not of its bases.
pub fn method_definition<'t>(
    file: &PythonFile,
    class: Definition<'t>,
    name: &str,
) -> Option<Definition<'t>> {
    definition(file, class.body()?, "function_definition", name)
}

/// The name of a parameter of a function.
pub fn parameter<'t>(file: &PythonFile, function: Definition<'t>, name: &str) -> Option<Node<'t>> {
    let parameters = function.node.child_by_field_name("parameters")?;
    named_children(parameters).into_iter().find_map(|parameter| {
        let own = match parameter.kind() {
            "identifier" => Some(parameter),
            // `x: Tensor = None`, `x=None`, `x: Tensor`.
            _ => parameter
                .child_by_field_name("name")
                .or_else(|| named_children(parameter).into_iter().next()),
        }?;
        (own.kind() == "identifier" && file.node_text(own) == name).then_some(own)
    })
}

/// The base classes of a class as written (`nn.Module`, `SelfAttention`).
pub fn superclasses(file: &PythonFile, class: Definition<'_>) -> Vec<String> {
    let Some(list) = class.node.child_by_field_name("superclasses") else { return Vec::new() };
    named_children(list)
        .into_iter()
        .filter_map(|node| super::dotted::dotted_text(node, file.text()))
        .collect()
}

/// The right-hand sides assigned to a plain name within a function body, before `before`; the last
/// assignment only, since that is the one in force in straight-line code, unless several stand in
/// different branches.
pub fn assignments_to<'t>(
    file: &PythonFile,
    body: Node<'t>,
    name: &str,
    before: usize,
) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    for node in Region::deep(body).nodes() {
        if node.kind() != "assignment" || node.end_byte() > before {
            continue;
        }
        let (Some(left), Some(right)) =
            (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            continue;
        };
        let binds = match left.kind() {
            "identifier" => file.node_text(left) == name,
            "pattern_list" | "tuple_pattern" => {
                named_children(left).into_iter().any(|part| file.node_text(part) == name)
            }
            _ => false,
        };
        if binds {
            // An unconditional assignment in the same block shadows what came before it.
            let straight = node
                .parent()
                .and_then(|statement| statement.parent())
                .is_some_and(|block| block.id() == body.id());
            if straight {
                found.clear();
            }
            found.push(right);
        }
    }
    found
}

/// The right-hand sides assigned to a module-level name.
pub fn top_level_assignments<'t>(file: &'t PythonFile, name: &str) -> Vec<Node<'t>> {
    let Some(root) = file.root() else { return Vec::new() };
    named_children(root)
        .into_iter()
        .filter(|statement| statement.kind() == "expression_statement")
        .flat_map(named_children)
        .filter(|node| {
            node.kind() == "assignment"
                && node.child_by_field_name("left").is_some_and(|left| file.node_text(left) == name)
        })
        .filter_map(|node| node.child_by_field_name("right"))
        .collect()
}

/// Where a class makes `self.<attribute>`: the assignments `self.x = …`, the calls
/// `self.register_buffer("x", …)` and `self.register_parameter("x", …)`, and class-level `x = …`.
/// Each is the whole assignment or call.
pub fn assignments_to_attribute<'t>(
    file: &PythonFile,
    class: Definition<'t>,
    attribute: &str,
) -> Vec<Node<'t>> {
    let Some(body) = class.body() else { return Vec::new() };
    let own = format!("self.{attribute}");
    let mut found = Vec::new();
    for node in Region::deep(body).nodes() {
        match node.kind() {
            "assignment" => {
                let Some(left) = node.child_by_field_name("left") else { continue };
                let text = file.node_text(left);
                let class_level = text == attribute
                    && node
                        .parent()
                        .and_then(|statement| statement.parent())
                        .is_some_and(|block| block.id() == body.id());
                let in_list = matches!(left.kind(), "pattern_list" | "tuple_pattern")
                    && named_children(left).into_iter().any(|part| file.node_text(part) == own);
                if (text == own || class_level || in_list)
                    && node.child_by_field_name("right").is_some()
                {
                    found.push(node);
                }
            }
            "call" => {
                let (Some(function), Some(arguments)) =
                    (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
                else {
                    continue;
                };
                let registers = matches!(
                    file.node_text(function),
                    "self.register_buffer" | "self.register_parameter" | "self.add_module"
                );
                if registers
                    && named_children(arguments).first().is_some_and(|name| {
                        file.node_text(*name).trim_matches(['"', '\'']) == attribute
                    })
                {
                    found.push(node);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    const TEXT: &str = "\
NEG = float('-inf')

@torch.no_grad()
def make(s):
    return s

class Base(nn.Module):
    pass

class A(Base, nn.Module):
    scale = 2.0

    class Inner:
        def forward(self):
            return 1

    def __init__(self):
        self.q = nn.Linear(2, 2)
        self.a, self.b = f(), g()
        self.register_buffer('mask', torch.ones(2))

    @property
    def thing(self):
        return 1

    def forward(self, x):
        m = one(x)
        if x:
            m = two(x)
        k, v = three(x)
        m = four(m)
        return m
";

    fn file() -> PythonFile {
        PythonFile::new("a.py".into(), TEXT.into())
    }

    #[test]
    fn definitions_are_found_behind_decorators_and_inside_classes() {
        let file = file();
        assert_eq!(function_definition(&file, "make").unwrap().name(&file), "make");
        let class = class_definition(&file, "A").unwrap();
        assert!(method_definition(&file, class, "thing").is_some());
        assert!(method_definition(&file, class, "nothing").is_none());
        assert_eq!(superclasses(&file, class), ["Base", "nn.Module"]);
        assert!(class_definition(&file, "A.Inner").is_some());
        assert_eq!(top_level_assignments(&file, "NEG").len(), 1);
    }

    #[test]
    fn parameters_with_types_and_defaults() {
        let text = "def f(self, x: Tensor, mask: Tensor = None, *rest, k=2, **more):\n    pass\n";
        let file = PythonFile::new("a.py".into(), text.into());
        let function = function_definition(&file, "f").unwrap();
        let at = |name| parameter(&file, function, name).map(|node| node.start_byte());
        assert_eq!(at("x"), text.find("x:"));
        assert_eq!(at("mask"), text.find("mask"));
        assert_eq!(at("k"), text.find("k=2"));
        assert_eq!(at("Tensor"), None);
    }

    #[test]
    fn attributes_are_found_however_they_are_made() {
        let file = file();
        let class = class_definition(&file, "A").unwrap();
        let text = |name: &str| -> Vec<String> {
            assignments_to_attribute(&file, class, name)
                .into_iter()
                .map(|node| file.node_text(node).to_owned())
                .collect()
        };
        assert_eq!(text("q"), ["self.q = nn.Linear(2, 2)"]);
        assert_eq!(text("mask"), ["self.register_buffer('mask', torch.ones(2))"]);
        assert_eq!(text("scale"), ["scale = 2.0"]);
        assert_eq!(text("b"), ["self.a, self.b = f(), g()"]);
    }

    #[test]
    fn the_assignment_in_force_hides_the_ones_before_it() {
        let file = file();
        let class = class_definition(&file, "A").unwrap();
        let body = method_definition(&file, class, "forward").unwrap().body().unwrap();
        let at = |name: &str, before: &str| -> Vec<String> {
            let before = file.text().find(before).unwrap();
            assignments_to(&file, body, name, before)
                .into_iter()
                .map(|node| file.node_text(node).to_owned())
                .collect()
        };
        assert_eq!(at("m", "return m"), ["four(m)"]);
        assert_eq!(at("m", "k, v ="), ["one(x)", "two(x)"]);
        assert_eq!(at("v", "return m"), ["three(x)"]);
    }

    #[test]
    fn the_function_and_class_around_a_node() {
        let file = file();
        let at = file.text().find("two(x)").unwrap();
        let node = file.root().unwrap().descendant_for_byte_range(at, at + 1).unwrap();
        assert_eq!(enclosing_function(node).unwrap().name(&file), "forward");
        assert_eq!(enclosing_class(node).unwrap().name(&file), "A");
        let inner = file.text().find("return 1").unwrap();
        let node = file.root().unwrap().descendant_for_byte_range(inner, inner + 1).unwrap();
        assert_eq!(enclosing_class(node).unwrap().name(&file), "Inner");
    }
}
