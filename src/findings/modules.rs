//! Module paths of repeated layers under one pattern: `layers.0.attn`, `layers.1.attn` → `layers.*.attn`.

use std::collections::{BTreeMap, BTreeSet};

/// Module paths that differ in indices only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleGroup {
    /// The path, `*` where it differs.
    pub pattern: String,
    /// How many different paths it stands for.
    pub count: usize,
}

/// The path with every index starred: equal for all layers of a stack.
pub fn index_free(path: &str) -> String {
    path.split('.')
        .map(|part| if is_index(part) { "*" } else { part })
        .collect::<Vec<_>>()
        .join(".")
}

fn is_index(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Joins paths that differ in indices only; an index that is the same in all stays. In the order of
/// first appearance.
pub fn compress<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<ModuleGroup> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, BTreeSet<&'a str>> = BTreeMap::new();
    for path in paths.into_iter().filter(|path| !path.is_empty()) {
        let key = index_free(path);
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        groups.entry(key).or_default().insert(path);
    }
    order
        .into_iter()
        .filter_map(|key| {
            let paths = groups.get(&key)?;
            let mut pattern: Vec<&str> = paths.first()?.split('.').collect();
            for path in paths {
                for (own, other) in pattern.iter_mut().zip(path.split('.')) {
                    if *own != other {
                        *own = "*";
                    }
                }
            }
            Some(ModuleGroup { pattern: pattern.join("."), count: paths.len() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(paths: &[&str]) -> Vec<String> {
        let groups = compress(paths.iter().copied());
        groups.iter().map(|g| format!("{} ×{}", g.pattern, g.count)).collect()
    }

    #[test]
    fn layers_are_one_line() {
        let paths: Vec<String> = (0..28).map(|n| format!("model.layers.{n}.self_attn")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(shown(&paths), ["model.layers.*.self_attn ×28"]);
    }

    #[test]
    fn what_does_not_differ_stays() {
        assert_eq!(shown(&["a.0.b.1", "a.0.b.2", "a.0.b.1"]), ["a.0.b.* ×2"]);
        assert_eq!(shown(&["a.0.b"]), ["a.0.b ×1"]);
        assert_eq!(shown(&["z", "", "a"]), ["z ×1", "a ×1"]);
    }
}
