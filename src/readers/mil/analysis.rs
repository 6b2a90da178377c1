//! What the compiler's analysis files say of an op, kept as attributes there.

use super::ir::{Data, Value};
use super::types;
use crate::graph::Confirmed;

/// Takes the compiler's words out of the attributes. `BackendSupport` has one slot a backend in an
/// order that nothing documents: only the named ones (estimates, messages) tell which is which.
pub(super) fn take(
    attributes: Vec<(String, Value)>,
    node: &str,
    spelling: &str,
    results: &[&str],
) -> (Option<Confirmed>, Vec<(String, Value)>) {
    const OWN: &[&str] =
        &["BackendSupport", "EstimatedRuntime", "SelectedBackend", "ValidationMessage", "milId"];
    if !attributes.iter().any(|(name, _)| OWN.contains(&name.as_str())) {
        return (None, attributes);
    }
    let mut said = Confirmed {
        node: node.to_owned(),
        spelling: spelling.to_owned(),
        results: results.iter().map(|name| (*name).to_owned()).collect(),
        ..Confirmed::default()
    };
    let mut rest = Vec::new();
    let mut any = false;
    for (name, value) in attributes {
        let own = OWN.contains(&name.as_str());
        match (name.as_str(), &value) {
            ("SelectedBackend", Value::Tensor(_, Data::Texts(list))) => {
                said.selected = list.first().cloned();
            }
            ("EstimatedRuntime", Value::Dict(entries)) => {
                for (key, value) in entries {
                    let time = types::numbers(value, 1).and_then(|list| list.first().copied());
                    if let (Some(backend), Some(time)) = (word(key), time) {
                        said.estimates.push((backend, time));
                    }
                }
            }
            ("ValidationMessage", Value::Dict(entries)) => {
                for (key, value) in entries {
                    if let (Some(backend), Some(reason)) = (word(key), word(value)) {
                        said.reasons.push((backend, reason));
                    }
                }
            }
            _ if own => continue,
            _ => {
                rest.push((name, value));
                continue;
            }
        }
        any = true;
    }
    said.supported = said
        .estimates
        .iter()
        .map(|(backend, _)| backend.clone())
        .filter(|backend| !said.reasons.iter().any(|(refused, _)| refused == backend))
        .collect();
    (any.then_some(said), rest)
}

fn word(value: &Value) -> Option<String> {
    types::texts(value)?.first().map(|word| (*word).to_owned())
}
