//! Outputs of equal type that only their names tell apart, where nobody chose the names; records
//! `output-twins`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{NodeFlags, NodeId, NodeKind, Op};

/// Whether a name is the one that tracing gave an op: an op's name, with or without a number.
fn is_given(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.strip_suffix('_').unwrap_or(stem).trim_start_matches('_');
    // What torch calls ops that are named otherwise here.
    const TORCH: &[&str] = &[
        "view",
        "permute",
        "cat",
        "getitem",
        "select",
        "slice",
        "bmm",
        "mm",
        "addmm",
        "mean",
        "sum",
        "to",
        "to_copy",
        "copy",
        "convolution",
        "conv1d",
        "conv2d",
        "native_layer_norm",
        "unbind",
        "chunk",
        "split_with_sizes",
        "index",
        "alias",
        "t",
        "amax",
        "contiguous",
        "var",
        "scaled_dot_product_attention",
        "slice_scatter",
        "index_put",
    ];
    Op::parse(stem).is_some() || TORCH.contains(&stem)
}

/// The records of a function: the first two outputs of each type that several have.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let program = view.program();
    let mut outputs: Vec<(NodeId, &str)> = Vec::new();
    for (node, weight) in view.function.nodes() {
        let given = weight.kind == NodeKind::Output
            && !weight.flags.contains(NodeFlags::MUTATION)
            && is_given(program.text(weight.name));
        if given {
            outputs.push((node, program.text(weight.name)));
        }
    }
    let kind = |node: NodeId| {
        let value = view.function.value(view.input(node)?);
        let dims = program.shapes.get(value.shape).dims()?;
        (!dims.is_empty()).then_some((value.dtype, value.shape))
    };
    let mut taken = vec![false; outputs.len()];
    let mut records = Vec::new();
    for first in 0..outputs.len().min(256) {
        let Some(own) = kind(outputs[first].0).filter(|_| !taken[first]) else { continue };
        let mut names = vec![outputs[first].1];
        let mut second = None;
        for other in first + 1..outputs.len().min(256) {
            if kind(outputs[other].0) == Some(own) {
                taken[other] = true;
                names.push(outputs[other].1);
                second = second.or(Some(outputs[other].0));
            }
        }
        if let Some(second) = second {
            records.push(Record {
                anchor: outputs[first].0,
                fields: vec![
                    ("first", Field::Node(outputs[first].0)),
                    ("second", Field::Node(second)),
                    ("count", Field::Int(names.len() as i64)),
                    ("names", Field::Label(names.join(", ").into())),
                ],
            });
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ops_are_nobodys_choice() {
        for name in ["add_2", "view_7", "mul", "_to_copy_1", "getitem_3", "softmax"] {
            assert!(is_given(name), "{name}");
        }
        for name in ["logits", "new_key", "k_0", "hidden_states"] {
            assert!(!is_given(name), "{name}");
        }
    }
}
