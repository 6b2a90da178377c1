//! Costs by module of the author's model.

use std::collections::HashMap;

use super::Weights;
use crate::facts::cost::{self, Cost};
use crate::graph::{Function, ModuleId, NodeId, Program};

/// What one module and those below it cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleStats {
    /// Its path, cut at the depth asked for; empty for work outside of all modules.
    pub path: String,
    /// Ops that work at run time.
    pub ops: u64,
    /// Trained elements that its ops are the first to use.
    pub parameters: u64,
    /// Bytes stored for these and other constants of it.
    pub weight_bytes: u64,
    /// What its ops cost.
    pub cost: Cost,
}

/// In the order of first appearance.
pub(super) fn count(
    program: &Program,
    function: &Function,
    depth: usize,
    weights: &Weights,
) -> Vec<ModuleStats> {
    let mut modules: Vec<ModuleStats> = Vec::new();
    let mut by_path: HashMap<&str, usize> = HashMap::new();
    let mut by_id: HashMap<ModuleId, usize> = HashMap::new();
    let mut slot = |modules: &mut Vec<ModuleStats>, node: NodeId| -> usize {
        let id = program.sources.get(function.node(node).provenance).module;
        if let Some(&at) = by_id.get(&id) {
            return at;
        }
        let path = cut(program.text(program.sources.get_module(id).path), depth);
        let at = *by_path.entry(path).or_insert_with(|| {
            modules.push(ModuleStats { path: path.to_owned(), ..ModuleStats::default() });
            modules.len() - 1
        });
        by_id.insert(id, at);
        at
    };
    for node in function.node_ids().filter(|&node| function.is_work(node)) {
        let at = slot(&mut modules, node);
        if let Some(module) = modules.get_mut(at) {
            module.ops += 1;
            module.cost.add(&cost::cost(program, function, node));
        }
    }
    for weight in &weights.all {
        let at = slot(&mut modules, weight.user);
        if let Some(module) = modules.get_mut(at) {
            module.weight_bytes = module.weight_bytes.saturating_add(weight.bytes);
            if weight.parameter {
                module.parameters = module.parameters.saturating_add(weight.elements);
            }
        }
    }
    modules
}

/// The first `depth` parts of a path; an index belongs to the name before it (`layers.0` is one part).
fn cut(path: &str, depth: usize) -> &str {
    let mut parts = 0;
    let mut start = 0usize;
    for part in path.split('.') {
        let index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !index {
            if parts == depth {
                return path.get(..start.saturating_sub(1)).unwrap_or("");
            }
            parts += 1;
        }
        start += part.len() + 1;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn an_index_belongs_to_the_name_before_it() {
        assert_eq!(cut("model.layers.0.attn.q", 0), "");
        assert_eq!(cut("model.layers.0.attn.q", 1), "model");
        assert_eq!(cut("model.layers.0.attn.q", 2), "model.layers.0");
        assert_eq!(cut("model.layers.0.attn.q", 3), "model.layers.0.attn");
        assert_eq!(cut("model.layers.0", 9), "model.layers.0");
        assert_eq!(cut("", 2), "");
    }
}
