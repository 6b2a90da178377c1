//! Functions named as static language models name them (`extend_CONTEXT_QUERIES`), and what stands
//! beside them; records `entry-name`.

use super::record::{Field, Record};
use super::view::View;
use crate::graph::{FunctionRole, NodeKind};

/// The two numbers of `extend_512_64`.
fn numbers(name: &str) -> Option<(u64, u64)> {
    let (context, queries) = name.strip_prefix("extend_")?.split_once('_')?;
    Some((context.parse().ok()?, queries.parse().ok()?))
}

/// The record of a function, if it is named so.
pub(super) fn records(view: &View<'_>) -> Vec<Record> {
    let program = view.program();
    let Some((context, queries)) = numbers(program.text(view.function.name)) else {
        return Vec::new();
    };
    let has = |wanted: &str| {
        program.functions.iter().any(|function| {
            function.role == FunctionRole::Entry && program.text(function.name) == wanted
        })
    };
    let mut missing: Vec<String> =
        [format!("prompt_opt_{context}_{queries}"), format!("gather_embeddings_{queries}")]
            .into_iter()
            .filter(|name| !has(name))
            .collect();
    if !has("load_embeddings") && !has("embedding_table") {
        missing.push("load_embeddings".to_owned());
    }
    let Some((anchor, _)) = view.function.nodes().find(|(_, node)| node.kind == NodeKind::Input)
    else {
        return Vec::new();
    };
    let has_dim = |size: u64| {
        view.function.nodes().any(|(id, node)| {
            matches!(node.kind, NodeKind::Input | NodeKind::State)
                && view
                    .function
                    .result(id)
                    .and_then(|value| view.dims(value))
                    .is_some_and(|dims| dims.iter().any(|dim| dim.value() == Some(size)))
        })
    };
    let fields = vec![
        ("first", Field::Node(anchor)),
        ("context", Field::Int(i64::try_from(context).unwrap_or(i64::MAX))),
        ("queries", Field::Int(i64::try_from(queries).unwrap_or(i64::MAX))),
        ("missing", Field::Label(missing.join(", ").into())),
        ("complete", Field::Bool(missing.is_empty())),
        ("shapes-agree", Field::Bool(has_dim(context) && has_dim(queries))),
    ];
    vec![Record { anchor, fields }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_context_and_queries() {
        assert_eq!(numbers("extend_512_64"), Some((512, 64)));
        for name in ["extend", "extend_512", "main", "extend_a_b", "prompt_opt_512_64"] {
            assert_eq!(numbers(name), None, "{name}");
        }
    }
}
