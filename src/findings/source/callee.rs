//! Which submodule ran an op, and where a line calls it: `self.q_proj(x)`, `self.layers[i](x)`,
//! `for layer in self.layers: layer(x)`.

use tree_sitter::Node;

use crate::findings::python::PythonFile;
use crate::graph::{ModulePath, Program};

/// The submodule that a line's module called to run an op.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Callee {
    /// The attribute of `self` (`q_proj`, `layers`).
    pub attribute: String,
    /// Index or key behind it (`3`), if there is one.
    pub index: Option<String>,
    /// The last name of the path: `fc2` of `layers.3.fc2`, if it is neither of these.
    pub last: Option<String>,
}

/// The module of the stack that runs code of a class: the innermost that `is_own` says is of it or of
/// a class made from it.
pub fn own_module(
    program: &Program,
    module: &ModulePath,
    is_own: impl Fn(&str) -> bool,
) -> Option<usize> {
    module.stack.iter().rposition(|(_, recorded)| is_own(program.text(*recorded)))
}

/// The submodule called from the module at `own` in the stack around an op; `None` if that module
/// itself ran it. Where it is not known, the innermost module counts.
pub fn callee(program: &Program, module: &ModulePath, own: Option<usize>) -> Option<Callee> {
    let stack = &module.stack;
    let (outer, inner) = match own {
        Some(at) => (program.text(stack.get(at)?.0), program.text(stack.get(at + 1)?.0)),
        None => {
            let inner = program.text(stack.last()?.0);
            let outer = match stack.len() {
                0 | 1 => "",
                n => program.text(stack.get(n - 2)?.0),
            };
            (outer, inner)
        }
    };
    let relative = match inner.strip_prefix(outer) {
        Some(rest) => rest.trim_start_matches('.'),
        None => inner,
    };
    let mut parts = relative.split('.').map(str::to_owned);
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    // `Linear$1` is a name that a converter made, and no attribute.
    let attribute = parts.next().filter(|part| is_name(part))?;
    Some(Callee { attribute, index: parts.next(), last: parts.next_back() })
}

/// The calls on a line of submodules of a class, for formats that record frames and no modules:
/// `file` is where the innermost frame of the library lies (`torch/nn/modules/linear.py`), `made` tells
/// what an attribute of `self` is assigned. Each submodule once; several cannot be told apart.
pub fn called_by_class(
    file: &PythonFile,
    nodes: &[Node<'_>],
    library_file: &str,
    made: impl Fn(&str) -> Vec<String>,
) -> Vec<Callee> {
    let Some(stem) = class_stem(library_file) else { return Vec::new() };
    let mut found: Vec<Callee> = Vec::new();
    for node in nodes.iter().filter(|node| node.kind() == "call") {
        let Some(function) = node.child_by_field_name("function") else { continue };
        let function = match function.kind() {
            "subscript" => function.child_by_field_name("value").unwrap_or(function),
            _ => function,
        };
        let attribute = match function.kind() {
            "identifier" => looped_attribute(file, function, file.node_text(function)),
            _ => file.node_text(function).strip_prefix("self.").map(str::to_owned),
        };
        let Some(attribute) = attribute.filter(|name| !name.contains('.')) else { continue };
        let fits = made(&attribute).iter().any(|text| text.to_ascii_lowercase().contains(stem));
        let callee = Callee { attribute, index: None, last: None };
        if fits && !found.contains(&callee) {
            found.push(callee);
        }
    }
    found
}

/// What the classes of one of torch's module files have in their names.
fn class_stem(library_file: &str) -> Option<&str> {
    // `linear.py` holds Linear, `conv.py` Conv1d to Conv3d, `normalization.py` LayerNorm.
    let stem = match library_file.rsplit(['/', '\\']).next()?.strip_suffix(".py")? {
        "normalization" | "batchnorm" | "instancenorm" => "norm",
        "sparse" => "embedding",
        stem => stem,
    };
    library_file.contains("torch/nn/modules/").then_some(stem)
}

/// The attribute of `self` that a `for` around `node` takes `name` out of.
fn looped_attribute(file: &PythonFile, node: Node<'_>, name: &str) -> Option<String> {
    let right = loop_source(file, node, name)?;
    let text = file.node_text(right);
    let at = text.find("self.")? + "self.".len();
    let rest = text.get(at..)?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    rest.get(..end).map(str::to_owned)
}

impl Callee {
    /// The calls of it among `nodes`.
    pub fn find<'t>(&self, file: &PythonFile, nodes: &[Node<'t>]) -> Vec<Node<'t>> {
        let own = format!("self.{}", self.attribute);
        let calls = |test: &dyn Fn(Node<'t>) -> bool| -> Vec<Node<'t>> {
            nodes
                .iter()
                .copied()
                .filter(|node| {
                    node.kind() == "call" && node.child_by_field_name("function").is_some_and(test)
                })
                .collect()
        };
        let direct = calls(&|function| file.node_text(function) == own);
        if !direct.is_empty() {
            return direct;
        }
        let subscripted = calls(&|function| {
            function.kind() == "subscript"
                && function.child_by_field_name("value").is_some_and(|v| file.node_text(v) == own)
        });
        if subscripted.len() > 1 {
            let index = self.index.as_deref().unwrap_or("");
            let exact: Vec<_> = subscripted
                .iter()
                .copied()
                .filter(|call| {
                    call.child_by_field_name("function")
                        .and_then(|f| f.child_by_field_name("subscript"))
                        .is_some_and(|i| file.node_text(i).trim_matches(['"', '\'']) == index)
                })
                .collect();
            return if exact.is_empty() { subscripted } else { exact };
        }
        if !subscripted.is_empty() {
            return subscripted;
        }
        let looped = calls(&|function| {
            function.kind() == "identifier"
                && loops_over(file, function, file.node_text(function), &own)
        });
        if !looped.is_empty() {
            return looped;
        }
        // Taken out of a list by a loop: `layer["fc2"](x)`, `block.attn(x)`.
        if let Some(last) = &self.last {
            let within = calls(&|function| {
                let name = match function.kind() {
                    "subscript" => function.child_by_field_name("subscript"),
                    "attribute" => function.child_by_field_name("attribute"),
                    _ => None,
                };
                name.is_some_and(|n| file.node_text(n).trim_matches(['"', '\'']) == last)
            });
            if !within.is_empty() {
                return within;
            }
        }
        // Handed to something that calls it: `checkpoint(self.block, x)`.
        nodes
            .iter()
            .copied()
            .filter(|node| node.kind() == "attribute" && file.node_text(*node) == own)
            .collect()
    }
}

/// Whether a text mentions a dotted name.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).any(|own| own == name)
}

/// Whether `name` is what a `for` around `node` takes out of `iterated`.
fn loops_over(file: &PythonFile, node: Node<'_>, name: &str, iterated: &str) -> bool {
    loop_source(file, node, name).is_some_and(|right| mentions(file.node_text(right), iterated))
}

/// What the nearest `for` around `node` that binds `name` iterates over.
fn loop_source<'t>(file: &PythonFile, node: Node<'t>, name: &str) -> Option<Node<'t>> {
    let mut at = node.parent();
    while let Some(node) = at {
        // The clause of a comprehension is a sibling of its body.
        let mut cursor = node.walk();
        let clauses: Vec<_> =
            node.named_children(&mut cursor).filter(|c| c.kind() == "for_in_clause").collect();
        for candidate in std::iter::once(node).chain(clauses) {
            if !matches!(candidate.kind(), "for_statement" | "for_in_clause") {
                continue;
            }
            let (Some(left), Some(right)) =
                (candidate.child_by_field_name("left"), candidate.child_by_field_name("right"))
            else {
                continue;
            };
            if mentions(file.node_text(left), name) {
                return Some(right);
            }
        }
        if node.kind() == "function_definition" {
            return None;
        }
        at = node.parent();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::{Region, statement_at};
    use crate::graph::{Format, Name};

    fn find(callee: &Callee, text: &str, line: u32) -> Vec<String> {
        let file = PythonFile::new("a.py".into(), text.into());
        let region = Region::shallow(statement_at(&file, line).unwrap());
        let nodes: Vec<_> = region.nodes().collect();
        callee.find(&file, &nodes).into_iter().map(|n| file.node_text(n).to_owned()).collect()
    }

    fn of(attribute: &str, index: Option<&str>) -> Callee {
        Callee { attribute: attribute.into(), index: index.map(str::to_owned), last: None }
    }

    #[test]
    fn the_call_of_the_attribute_and_not_its_neighbour() {
        let text = "q, k = self.q_proj(x), self.k_proj(x)\n";
        assert_eq!(find(&of("k_proj", None), text, 1), ["self.k_proj(x)"]);
    }

    #[test]
    fn lists_of_modules_are_indexed_or_looped_over() {
        assert_eq!(
            find(&of("net", Some("1")), "y = self.net[0](x) + self.net[1](x)\n", 1),
            ["self.net[1](x)"]
        );
        let text = "for i, layer in enumerate(self.layers):\n    x = layer(x)\n";
        assert_eq!(find(&of("layers", Some("3")), text, 2), ["layer(x)"]);
        assert_eq!(find(&of("other", Some("3")), text, 2), Vec::<String>::new());
        let text = "y = torch.cat([h(x) for h in self.heads], 1)\n";
        assert_eq!(find(&of("heads", Some("0")), text, 1), ["h(x)"]);
    }

    #[test]
    fn modules_of_a_list_of_dictionaries() {
        let callee = Callee { last: Some("fc2".into()), ..of("layers", Some("0")) };
        let text = "x = x + layer[\"fc2\"](F.gelu(layer[\"fc1\"](x)))\n";
        assert_eq!(find(&callee, text, 1), ["layer[\"fc2\"](F.gelu(layer[\"fc1\"](x)))"]);
    }

    #[test]
    fn without_modules_the_class_of_the_library_file_decides() {
        let made = |attribute: &str| match attribute {
            "proj" | "layers" => vec!["self.x = nn.Linear(2, 2)".to_owned()],
            _ => vec!["self.x = nn.Conv2d(2, 2, 1)".to_owned()],
        };
        let ask = |text: &str, line: u32| {
            let file = PythonFile::new("a.py".into(), text.into());
            let region = Region::shallow(statement_at(&file, line).unwrap());
            let nodes: Vec<_> = region.nodes().collect();
            let library = "/x/site-packages/torch/nn/modules/linear.py";
            let found = called_by_class(&file, &nodes, library, made).into_iter();
            found.map(|callee| callee.attribute).collect::<Vec<_>>()
        };
        assert_eq!(ask("y = self.conv(self.proj(x))\n", 1), ["proj"]);
        let text = "for layer in self.layers:\n    x = F.relu(layer(x))\n";
        assert_eq!(ask(text, 2), ["layers"]);
        assert_eq!(ask("y = self.proj(x) @ self.layers[0](x)\n", 1), ["proj", "layers"]);
        assert_eq!(ask("y = self.conv(x)\n", 1), [""; 0]);
    }

    #[test]
    fn the_module_below_the_class_of_the_line_is_the_one_called() {
        let mut program = Program::new("a.pt2".into(), Format::Pt2);
        let mut n = |text: &str| -> Name { program.names.intern(text) };
        let stack = vec![
            (n(""), n("m.Model")),
            (n("layers.3"), n("m.Block")),
            (n("layers.3.attn"), n("m.Attention")),
            (n("layers.3.attn.q_proj"), n("torch.nn.modules.linear.Linear")),
        ];
        let module = ModulePath { path: stack[3].0, class: stack[3].1, stack };
        let called_from = |class: &str| {
            let is_own = |recorded: &str| recorded.rsplit('.').next() == Some(class);
            callee(&program, &module, own_module(&program, &module, is_own))
        };
        assert_eq!(called_from("Model"), Some(of("layers", Some("3"))));
        assert_eq!(called_from("Attention"), Some(of("q_proj", None)));
        assert_eq!(called_from("Base"), Some(of("q_proj", None)));
        assert_eq!(called_from("Linear"), None);
    }
}
