//! The operand beside an expression: whose dtype and device a tensor made in source should have.
//!
//! The answer is a name, or a part of one (`x`, `self.scale`, `q[0]`), that is bound where the
//! expression stands; a longer expression would be computed twice.

use tree_sitter::Node;

use crate::findings::python::{
    PythonFile, Region, assignments_to, enclosing_function, named_children, parameter,
};

/// Functions and methods whose result has the dtype of their first tensor.
const KEEPS_DTYPE: &[&str] = &[
    "relu",
    "relu6",
    "gelu",
    "silu",
    "elu",
    "leaky_relu",
    "hardswish",
    "sigmoid",
    "tanh",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "square",
    "pow",
    "softmax",
    "log_softmax",
    "clamp",
    "clamp_min",
    "clamp_max",
    "reshape",
    "view",
    "permute",
    "transpose",
    "contiguous",
    "squeeze",
    "unsqueeze",
    "flatten",
    "unflatten",
    "expand",
    "repeat",
    "mean",
    "sum",
    "amax",
    "amin",
    "masked_fill",
    "dropout",
    "layer_norm",
    "group_norm",
    "cos",
    "sin",
    "triu",
    "tril",
];

/// How far up an expression is looked around.
const MAX_UP: usize = 12;

/// The operand beside `node`.
pub fn beside(file: &PythonFile, node: Node<'_>) -> Option<String> {
    let mut own = node;
    for _ in 0..MAX_UP {
        let parent = own.parent()?;
        let is = |field: &str| {
            parent.child_by_field_name(field).is_some_and(|child| child.id() == own.id())
        };
        match parent.kind() {
            "parenthesized_expression" | "unary_operator" => own = parent,
            // `full(…).triu(1)`: what is made of it goes on.
            "attribute" if is("object") => own = parent,
            "call" if is("function") => own = parent,
            "subscript" if is("value") => own = parent,
            "binary_operator" => {
                let left = parent.child_by_field_name("left")?;
                let right = parent.child_by_field_name("right")?;
                let other = if is("left") { right } else { left };
                match operand(file, other, 0) {
                    Operand::Name(name) => return Some(name),
                    Operand::Number => own = parent,
                    Operand::Unknown => return None,
                }
            }
            "argument_list" => {
                let call = parent.parent().filter(|call| call.kind() == "call")?;
                return named_children(parent)
                    .into_iter()
                    .filter(|argument| argument.id() != own.id())
                    .find_map(|argument| match operand(file, argument, 0) {
                        Operand::Name(name) => Some(name),
                        _ => None,
                    })
                    .filter(|_| joins(file, call));
            }
            "assignment" if is("right") => return where_used(file, parent, node),
            _ => return None,
        }
    }
    None
}

/// Whether a call joins tensors of one dtype.
fn joins(file: &PythonFile, call: Node<'_>) -> bool {
    const JOINS: &[&str] =
        &["maximum", "minimum", "add", "sub", "mul", "div", "where", "cat", "pow", "true_divide"];
    call.child_by_field_name("function").is_some_and(|function| {
        let name = file.node_text(function);
        JOINS.contains(&name.rsplit('.').next().unwrap_or(name))
    })
}

enum Operand {
    Name(String),
    Number,
    Unknown,
}

/// A name that has the dtype of an expression.
fn operand(file: &PythonFile, node: Node<'_>, depth: usize) -> Operand {
    if depth > MAX_UP {
        return Operand::Unknown;
    }
    let below = |node: Node<'_>| operand(file, node, depth + 1);
    let named = |field: &str| node.child_by_field_name(field);
    match node.kind() {
        "integer" | "float" => Operand::Number,
        "identifier" | "attribute" => {
            let text = file.node_text(node);
            let plain = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
            // `math.pi`, `torch.pi` and `self.dim` are no tensors to ask; the last cannot be told.
            let module = text.starts_with("math.") || text.starts_with("torch.");
            if plain && !module { Operand::Name(text.to_owned()) } else { Operand::Unknown }
        }
        "parenthesized_expression" => {
            named_children(node).first().map_or(Operand::Unknown, |inner| below(*inner))
        }
        "unary_operator" => named("argument").map_or(Operand::Unknown, below),
        "subscript" => named("value").map_or(Operand::Unknown, below),
        "binary_operator" => {
            let (Some(left), Some(right)) = (named("left"), named("right")) else {
                return Operand::Unknown;
            };
            match below(left) {
                Operand::Number => below(right),
                left => left,
            }
        }
        "call" => {
            let (Some(function), Some(arguments)) = (named("function"), named("arguments")) else {
                return Operand::Unknown;
            };
            let name = file.node_text(function);
            if !KEEPS_DTYPE.contains(&name.rsplit('.').next().unwrap_or(name)) {
                return Operand::Unknown;
            }
            // `softmax(x, dtype=…)` has a dtype of its own.
            let told = named_children(arguments).iter().any(|argument| {
                argument
                    .child_by_field_name("name")
                    .is_some_and(|own| file.node_text(own) == "dtype")
            });
            let object = function.child_by_field_name("object");
            let full = super::full_name(file, function);
            let of_module = full.is_some_and(|full| full.starts_with("torch."));
            match (told, of_module, object) {
                (true, ..) => Operand::Unknown,
                (_, true, _) | (_, _, None) => {
                    named_children(arguments).first().map_or(Operand::Unknown, |own| below(*own))
                }
                (_, false, Some(object)) => {
                    // `self.act.relu(x)` is a call of a submodule, `self.gain.view(1, -1)` a method.
                    let module = file.node_text(object).starts_with("self.")
                        && !named_children(arguments).iter().all(|own| {
                            matches!(own.kind(), "integer" | "float" | "unary_operator")
                        });
                    if module { Operand::Unknown } else { below(object) }
                }
            }
        }
        _ => Operand::Unknown,
    }
}

/// For a tensor that is given a name first: the operand beside the name where it is first used, if that
/// is bound before the tensor is made.
fn where_used(file: &PythonFile, assignment: Node<'_>, made: Node<'_>) -> Option<String> {
    let left = assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")?;
    let name = file.node_text(left);
    let function = enclosing_function(assignment)?;
    let body = function.body()?;
    let used = Region::deep(body).nodes().find(|node| {
        node.kind() == "identifier"
            && node.start_byte() > assignment.end_byte()
            && file.node_text(*node) == name
    })?;
    let parent = used.parent()?;
    if parent.kind() != "binary_operator" {
        return None;
    }
    let found = beside(file, used)?;
    let head = found.split('.').next().unwrap_or("");
    let bound = head == "self"
        || parameter(file, function, head).is_some()
        || !assignments_to(file, body, head, made.start_byte()).is_empty();
    // It must still be the same thing there.
    let moved = assignments_to(file, body, head, used.start_byte()).len()
        != assignments_to(file, body, head, made.start_byte()).len();
    (bound && !moved).then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::Pattern;

    fn of(text: &str) -> Option<String> {
        let file = PythonFile::new("a.py".into(), text.to_owned());
        let pattern = Pattern::parse("torch.ones($$$)").unwrap();
        let found = pattern.find_in(&file, &Region::deep(file.root().unwrap()));
        beside(&file, found[0].0)
    }

    #[test]
    fn the_other_operand_names_it() {
        let at = |text| of(text).unwrap_or_default();
        assert_eq!(at("y = x * torch.ones(1)"), "x");
        assert_eq!(at("y = torch.ones(1) - F.relu(x)"), "x");
        assert_eq!(at("y = torch.ones(1) - self.act.relu(x)"), "");
        assert_eq!(at("y = x * (torch.ones(1) + scale) + shift"), "scale");
        assert_eq!(at("y = torch.maximum(x, torch.ones(1)).to(x.dtype)"), "x");
        assert_eq!(at("y = (scores + torch.ones(2, 2).triu(1)).softmax(-1)"), "scores");
        assert_eq!(at("y = ((q * 0.25) @ k + torch.ones(1) * 2.0)"), "q");
        assert_eq!(at("y = x[:, 0] + torch.ones(1)"), "x");
        assert_eq!(at("y = x.exp() + torch.ones(1)"), "x");
        assert_eq!(at("y = self.gain + torch.ones(1)"), "self.gain");
    }

    #[test]
    fn what_cannot_be_told_is_not_said() {
        for text in [
            "y = torch.ones(1)",
            "y = f(torch.ones(1), x)",
            "y = g(x) + torch.ones(1)",
            "y = x.softmax(-1, dtype=torch.float32) + torch.ones(1)",
            "y = math.pi * torch.ones(1)",
            "self.scale = torch.ones(1)",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_tensor_with_a_name_of_its_own_is_followed_to_its_use() {
        let text = |before: &str, after: &str| {
            format!("def f(q):\n    {before}\n    m = torch.ones(2)\n    {after}\n    s = s + m\n")
        };
        assert_eq!(of(&text("s = q * 2", "pass")).as_deref(), Some("s"));
        assert_eq!(of(&text("pass", "s = q * 2")), None);
    }
}
