//! How Python spells an op: names of calls, operators, subscripts.
//!
//! The recorded torch function is the best witness, then the op's name in its dialect, then what
//! people write for the canonical op.

use tree_sitter::Node;

use crate::findings::python::PythonFile;
use crate::graph::Op;

/// What to look for on a line when no pattern of the rule says it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OpSpelling {
    /// Names of functions and methods, most telling first; each is tried before the next.
    pub names: Vec<String>,
    /// How many of the names the file itself gives; the rest is what people write for the op.
    recorded: usize,
    /// The canonical op, for operators and subscripts.
    pub op: Option<Op>,
}

/// Words that are part of a recorded torch function and no function.
const NO_NAMES: &[&str] = &["default", "OpOverload", "torch_function", "forward", "__call__"];

impl OpSpelling {
    /// What is known of an op: the torch function as recorded
    /// (`softmax_2;method_descriptor.softmax`), its dialect's name (`aten._softmax.default`) and its
    /// canonical one.
    pub fn new(torch_op: &str, spelling: &str, op: Op) -> OpSpelling {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            let name = name.trim_matches('_');
            if !name.is_empty() && !NO_NAMES.contains(&name) && !names.iter().any(|n| n == name) {
                names.push(name.to_owned());
            }
        };
        if let Some(last) = torch_op.rsplit([';', '.']).next() {
            add(last.trim_end_matches(|c: char| c.is_ascii_digit()));
        }
        add(dialect_name(spelling));
        let recorded = names.len();
        let mut add = |name: &str| {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        };
        add(op.name());
        customary(op).iter().for_each(|name| add(name));
        OpSpelling { names, recorded, op: (op != Op::UNKNOWN).then_some(op) }
    }

    /// The expressions among `nodes` that spell this op, by the most telling way that finds any, in
    /// the order in which Python evaluates them.
    pub fn find<'t>(&self, file: &PythonFile, nodes: &[Node<'t>]) -> Vec<Node<'t>> {
        // `x[:2] = y` is recorded as a copy or fill.
        let in_place = self.names.iter().any(|name| name == "copy" || name == "fill");
        let operators = |name: &str| -> Vec<Node<'t>> {
            nodes.iter().copied().filter(|n| is_operator(file, *n, name, in_place)).collect()
        };
        for (at, name) in self.names.iter().enumerate() {
            // A product recorded as `matmul` is `@` here, though the line calls `F.linear` too.
            if at == self.recorded {
                let recorded = self.names.iter().take(at).filter(|name| *name != "linear");
                if let Some(found) = recorded.map(|name| operators(name)).find(|f| !f.is_empty()) {
                    return in_evaluation_order(found);
                }
            }
            let found: Vec<_> = nodes
                .iter()
                .copied()
                .filter(|node| called_name(file, *node).is_some_and(|own| own == name))
                .collect();
            if !found.is_empty() {
                return in_evaluation_order(found);
            }
        }
        in_evaluation_order(self.op.map(|op| operators(op.name())).unwrap_or_default())
    }
}

/// The function in an op's name: `softmax` of `aten.softmax.int`, `ios18.softmax`, `softmax_v1`,
/// `coreai.softmax`; `mul` of `broadcasting_mul_v1` and `coreai.decomposable.broadcasting_mul`.
fn dialect_name(spelling: &str) -> &str {
    let mut parts = spelling.split('.');
    let name = match (parts.next(), parts.next()) {
        (Some("coreai" | "coreaix"), Some(name)) => parts.next_back().unwrap_or(name),
        (Some(_), Some(name)) | (Some(name), None) => name,
        (None, _) => "",
    };
    let name = match name.rsplit_once("_v") {
        Some((base, version)) if version.bytes().all(|digit| digit.is_ascii_digit()) => base,
        _ => name,
    };
    name.strip_prefix("broadcasting_").unwrap_or(name)
}

/// Operands before the expression that uses them, left before right.
pub fn in_evaluation_order(mut nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    nodes.sort_by_key(|node| (node.end_byte(), std::cmp::Reverse(node.start_byte())));
    nodes
}

/// The last name of what a call calls, in-place underscores left off; for `x.T` and `x.mT` the
/// attribute.
pub(super) fn called_name<'f>(file: &'f PythonFile, node: Node<'_>) -> Option<&'f str> {
    match node.kind() {
        "call" => {
            let function = node.child_by_field_name("function")?;
            let name = match function.kind() {
                "identifier" => function,
                "attribute" => function.child_by_field_name("attribute")?,
                _ => return None,
            };
            Some(file.node_text(name).trim_matches('_'))
        }
        "attribute" => {
            let name = file.node_text(node.child_by_field_name("attribute")?);
            matches!(name, "T" | "mT" | "H" | "mH").then_some(name)
        }
        _ => None,
    }
}

/// Whether an operator, subscript or assignment spells the op of this name.
fn is_operator(file: &PythonFile, node: Node<'_>, op: &str, in_place: bool) -> bool {
    let operator = |node: Node<'_>| {
        node.child_by_field_name("operator").map_or("", |operator| file.node_text(operator))
    };
    let binary: &[&str] = match op {
        "add" => &["+", "+="],
        "sub" => &["-", "-="],
        "mul" => &["*", "*="],
        "div" => &["/", "/="],
        "floor_divide" => &["//", "//="],
        "pow" | "square" => &["**", "**="],
        "matmul" | "linear" => &["@", "@="],
        "remainder" => &["%", "%="],
        "logical_and" | "bitwise_and" => &["&", "&="],
        "logical_or" | "bitwise_or" => &["|", "|="],
        "logical_xor" | "bitwise_xor" => &["^", "^="],
        "bitwise_shift" => &["<<", ">>"],
        _ => &[],
    };
    match node.kind() {
        "binary_operator" | "augmented_assignment" => binary.contains(&operator(node)),
        "unary_operator" => {
            let own = operator(node);
            (op == "neg" && own == "-")
                || (matches!(op, "logical_not" | "bitwise_not") && own == "~")
        }
        "comparison_operator" => {
            let wanted = match op {
                "equal" => "==",
                "not_equal" => "!=",
                "less" => "<",
                "less_equal" => "<=",
                "greater" => ">",
                "greater_equal" => ">=",
                _ => return false,
            };
            let mut cursor = node.walk();
            node.children(&mut cursor).any(|child| file.node_text(child) == wanted)
        }
        "subscript" => {
            let written = node.parent().is_some_and(|parent| {
                parent.kind() == "assignment"
                    && parent.child_by_field_name("left").is_some_and(|l| l.id() == node.id())
            });
            if op == "unsqueeze" {
                return file.node_text(node).contains("None");
            }
            !written
                && matches!(op, "slice" | "select" | "index" | "gather" | "gather_nd" | "embedding")
        }
        "assignment" => {
            (matches!(op, "state_write" | "slice_update" | "index_put") || in_place)
                && node.child_by_field_name("left").is_some_and(|l| l.kind() == "subscript")
        }
        _ => false,
    }
}

/// What people call in Python for a canonical op, beyond its own name.
fn customary(op: Op) -> &'static [&'static str] {
    match op.name() {
        "sdpa" => &["scaled_dot_product_attention"],
        "matmul" => &["bmm", "mm", "einsum", "baddbmm"],
        "linear" => &["addmm", "mm", "matmul"],
        "cast" => &["to", "float", "half", "type", "double", "bfloat16", "int", "long", "type_as"],
        "where" => &["masked_fill"],
        "concat" => &["cat", "concatenate", "hstack", "vstack"],
        "transpose" => &["permute", "t", "T", "mT", "swapaxes", "movedim", "rearrange"],
        "reshape" | "view" => &["view", "reshape", "flatten", "unflatten", "rearrange"],
        "expand" => &["expand_as", "broadcast_to", "repeat_interleave"],
        "tile" => &["repeat"],
        "split" => &["chunk", "tensor_split", "unbind"],
        "slice" => &["narrow"],
        "gather" => &["index_select", "take_along_dim"],
        "reduce_sum" => &["sum"],
        "reduce_mean" => &["mean"],
        "reduce_max" => &["max", "amax"],
        "reduce_min" => &["min", "amin"],
        "reduce_var" => &["var"],
        "reduce_std" => &["std"],
        "reduce_prod" => &["prod"],
        "max_with_indices" => &["max"],
        "min_with_indices" => &["min"],
        "clamp" | "clip" => &["clamp_min", "clamp_max"],
        "embedding" => &["embedding"],
        "state_write" | "slice_update" => {
            &["copy", "index_copy", "slice_scatter", "index_put", "scatter"]
        }
        "index_put" => &["index_copy", "index_fill", "scatter"],
        "conv" => &["conv1d", "conv2d", "conv3d", "convolution"],
        "non_zero" => &["nonzero"],
        "creation" | "full" => &["ones", "zeros", "full_like", "ones_like", "zeros_like", "tensor"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::{Region, statement_at};

    fn find(spelling: &OpSpelling, line: &str) -> Vec<String> {
        let file = PythonFile::new("a.py".into(), format!("{line}\n"));
        let region = Region::shallow(statement_at(&file, 1).unwrap());
        let nodes: Vec<_> = region.nodes().collect();
        let found = spelling.find(&file, &nodes);
        found.into_iter().map(|node| file.node_text(node).to_owned()).collect()
    }

    #[test]
    fn the_recorded_torch_function_is_the_best_witness() {
        let spelling = OpSpelling::new(
            "softmax_2;method_descriptor.softmax",
            "aten._softmax.default",
            Op::SOFTMAX,
        );
        assert_eq!(spelling.names, ["softmax"]);
        assert_eq!(find(&spelling, "y = F.relu(x.softmax(-1))"), ["x.softmax(-1)"]);
    }

    #[test]
    fn in_place_names_and_operators_are_spellings_too() {
        let fill = OpSpelling::new("", "aten.masked_fill_.Scalar", Op::WHERE);
        assert_eq!(find(&fill, "x.masked_fill_(m, 0)"), ["x.masked_fill_(m, 0)"]);
        let matmul = OpSpelling::new("matmul_1;function.matmul", "aten.matmul.default", Op::MATMUL);
        assert_eq!(find(&matmul, "y = (q @ k) * s"), ["q @ k"]);
        let select = OpSpelling::new("", "aten.index.Tensor", Op::INDEX);
        assert_eq!(find(&select, "y = self.table[ids] + b"), ["self.table[ids]"]);
    }

    #[test]
    fn a_recorded_product_is_its_operator_and_no_other_call() {
        let matmul = OpSpelling::new("matmul_1;function.matmul", "aten.matmul.default", Op::LINEAR);
        assert_eq!(find(&matmul, "y = z @ w + F.linear(z, w)"), ["z @ w"]);
        let linear = OpSpelling::new("linear_1;function.linear", "aten.linear.default", Op::LINEAR);
        assert_eq!(find(&linear, "y = z @ w + F.linear(z, w)"), ["F.linear(z, w)"]);
    }

    #[test]
    fn a_new_axis_is_a_subscript_with_none() {
        let unsqueeze = OpSpelling::new("", "aten.unsqueeze.default", Op::UNSQUEEZE);
        assert_eq!(find(&unsqueeze, "m = mask[:, None] + x[0]"), ["mask[:, None]"]);
    }

    #[test]
    fn several_come_in_the_order_of_evaluation() {
        let mul = OpSpelling::new("", "aten.mul.Tensor", Op::MUL);
        assert_eq!(find(&mul, "y = a * b + c * (d * e)"), ["a * b", "d * e", "c * (d * e)"]);
    }

    #[test]
    fn an_op_that_the_line_does_not_spell_is_not_found() {
        let topk = OpSpelling::new("", "aten.topk.default", Op::TOPK);
        assert!(find(&topk, "y = self.route(x)").is_empty());
    }

    #[test]
    fn the_function_in_the_name_that_a_file_gives_an_op() {
        for (spelling, name) in [
            ("aten.softmax.int", "softmax"),
            ("ios18.linear", "linear"),
            ("Gemm", "Gemm"),
            ("softmax_v1", "softmax"),
            ("primitive.reshape_v2", "reshape"),
            ("broadcasting_mul_v1", "mul"),
            ("coreai.decomposable.broadcasting_mul", "mul"),
            ("coreai.gather_nd", "gather_nd"),
            ("", ""),
        ] {
            assert_eq!(super::dialect_name(spelling), name, "{spelling}");
        }
    }
}
