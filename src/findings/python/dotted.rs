//! Dotted names (`F.softmax`, `torch.nn.Linear`, `inf`) under one spelling, by a file's imports.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::walk::descendants;

/// The names that people give to the modules rules speak of; a pattern may use them, and a file
/// without an import that says otherwise is read by them.
const CUSTOMARY: &[(&str, &str)] = &[
    ("F", "torch.nn.functional"),
    ("nn", "torch.nn"),
    ("np", "numpy"),
    ("jnp", "jax.numpy"),
    ("tnn", "torch.nn"),
];

/// Where an imported name comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Module as written, leading dots included (`.masks`, `torch.nn`).
    pub module: String,
    /// The name taken out of it; `None` if the module itself is bound.
    pub member: Option<String>,
}

/// What names mean by a file's imports.
#[derive(Debug, Clone, Default)]
pub struct Imports {
    bound: BTreeMap<String, Import>,
    stars: Vec<String>,
}

impl Imports {
    /// The imports of a file, those inside functions too.
    pub fn of(root: Node<'_>, text: &str) -> Imports {
        let mut imports = Imports::default();
        let of = |node: Node<'_>| text.get(node.byte_range()).unwrap_or("").to_owned();
        for node in descendants(root) {
            match node.kind() {
                "import_statement" => {
                    for name in named_children(node) {
                        match name.kind() {
                            "dotted_name" => {
                                // `import a.b` binds `a`, and `a.b.c` then reads as it is.
                                let full = of(name);
                                let first = full.split('.').next().unwrap_or("").to_owned();
                                imports.bind(first.clone(), first, None);
                            }
                            "aliased_import" => {
                                if let (Some(module), Some(alias)) = (
                                    name.child_by_field_name("name"),
                                    name.child_by_field_name("alias"),
                                ) {
                                    imports.bind(of(alias), of(module), None);
                                }
                            }
                            _ => {}
                        }
                    }
                }
                "import_from_statement" => {
                    let Some(module) = node.child_by_field_name("module_name") else { continue };
                    let module_text = of(module);
                    for name in named_children(node) {
                        if name.id() == module.id() {
                            continue;
                        }
                        match name.kind() {
                            "dotted_name" => {
                                imports.bind(of(name), module_text.clone(), Some(of(name)));
                            }
                            "aliased_import" => {
                                if let (Some(member), Some(alias)) = (
                                    name.child_by_field_name("name"),
                                    name.child_by_field_name("alias"),
                                ) {
                                    imports.bind(of(alias), module_text.clone(), Some(of(member)));
                                }
                            }
                            "wildcard_import" => imports.stars.push(module_text.clone()),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        imports
    }

    fn bind(&mut self, name: String, module: String, member: Option<String>) {
        self.bound.insert(name, Import { module, member });
    }

    /// What a name was imported from.
    pub fn get(&self, name: &str) -> Option<&Import> {
        self.bound.get(name)
    }

    /// Modules of `from m import *`.
    pub fn stars(&self) -> &[String] {
        &self.stars
    }

    /// The full spelling of a dotted name: `F.softmax` → `torch.nn.functional.softmax`. Names that no
    /// import binds are read by custom.
    pub fn canonical(&self, dotted: &str) -> String {
        let (first, rest) = match dotted.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (dotted, None),
        };
        let head = match self.bound.get(first) {
            Some(Import { module, member: Some(member) }) => format!("{module}.{member}"),
            Some(Import { module, member: None }) => module.clone(),
            None => customary(first).unwrap_or(first).to_owned(),
        };
        match rest {
            Some(rest) => format!("{head}.{rest}"),
            None => head,
        }
    }
}

impl Imports {
    /// How this file spells a full name (`torch.nn.Conv2d` → `nn.Conv2d`); `None` if it imports nothing
    /// that leads there.
    pub fn spelled(&self, full: &str) -> Option<String> {
        self.bound
            .iter()
            .filter_map(|(local, import)| {
                let head = match &import.member {
                    Some(member) => format!("{}.{member}", import.module),
                    None => import.module.clone(),
                };
                let rest = full.strip_prefix(head.as_str())?;
                (rest.is_empty() || rest.starts_with('.')).then(|| format!("{local}{rest}"))
            })
            // The import that says most (`nn.Conv2d`, not `torch.nn.Conv2d`), by the name that everyone
            // uses.
            .min_by_key(|spelled| {
                let odd = Imports::default().canonical(spelled) != full;
                (spelled.matches('.').count(), odd, spelled.len(), spelled.clone())
            })
    }

    /// Whether a name is one that people give to a module that rules speak of, or such a module.
    pub fn is_customary(name: &str) -> bool {
        customary(name).is_some() || matches!(name, "torch" | "math" | "numpy")
    }
}

/// The full name behind a customary alias.
fn customary(name: &str) -> Option<&'static str> {
    CUSTOMARY.iter().find(|(alias, _)| *alias == name).map(|(_, full)| *full)
}

/// The dotted text of an identifier or a chain of attributes over one; `None` for anything else.
pub fn dotted_text(node: Node<'_>, text: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    let mut at = node;
    loop {
        match at.kind() {
            "identifier" => {
                parts.push(text.get(at.byte_range())?);
                break;
            }
            "attribute" => {
                let name = at.child_by_field_name("attribute")?;
                parts.push(text.get(name.byte_range())?);
                at = at.child_by_field_name("object")?;
            }
            _ => return None,
        }
    }
    parts.reverse();
    Some(parts.join("."))
}

/// Named children, comments left out.
pub fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::PythonFile;

    fn imports(text: &str) -> Imports {
        PythonFile::new("a.py".into(), text.into()).imports().clone()
    }

    #[test]
    fn names_are_read_by_the_imports_of_the_file() {
        let imports = imports(
            "import torch.nn.functional as F\nfrom torch import nn\nfrom math import inf as INF\n\
             import numpy\nfrom .masks import make, other as o\nfrom .x import *\n",
        );
        assert_eq!(imports.canonical("F.softmax"), "torch.nn.functional.softmax");
        assert_eq!(imports.canonical("nn.Linear"), "torch.nn.Linear");
        assert_eq!(imports.canonical("INF"), "math.inf");
        assert_eq!(imports.canonical("numpy.inf"), "numpy.inf");
        assert_eq!(imports.canonical("make"), ".masks.make");
        assert_eq!(imports.get("o").unwrap().member.as_deref(), Some("other"));
        assert_eq!(imports.stars(), [".x"]);
    }

    #[test]
    fn a_full_name_is_spelled_as_the_file_can() {
        let own =
            imports("import torch as th\nfrom torch import nn\nimport torch.nn.functional as F\n");
        assert_eq!(own.spelled("torch.nn.Conv2d").as_deref(), Some("nn.Conv2d"));
        assert_eq!(own.spelled("torch.nn.functional.relu").as_deref(), Some("F.relu"));
        assert_eq!(own.spelled("torch.div").as_deref(), Some("th.div"));
        assert_eq!(own.spelled("math.inf"), None);
        assert_eq!(imports("from torch.nn import Linear\n").spelled("torch.nn.Conv2d"), None);
    }

    #[test]
    fn customary_aliases_hold_where_nothing_is_imported() {
        assert_eq!(Imports::default().canonical("nn.Conv2d"), "torch.nn.Conv2d");
        assert_eq!(imports("import foo as nn\n").canonical("nn.Conv2d"), "foo.Conv2d");
    }
}
