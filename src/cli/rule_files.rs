//! The rule set of a run: the built-in rules and the user's.

use super::Failure;
use crate::findings::PreparedRules;
use crate::rules::RuleSet;

/// Loads the rules; `globs` name the user's own rule files.
pub fn load(globs: &[String]) -> Result<(RuleSet, PreparedRules), Failure> {
    let set = RuleSet::builtin();
    if let Some(glob) = globs.first() {
        return Err(Failure::new(format!("rules of one's own ({glob}) cannot be loaded yet")));
    }
    let prepared = PreparedRules::new(&set).map_err(|(rule, error)| {
        Failure::new(format!("rule {rule}: {error}"))
            .help("a pattern is one Python expression; `$X` and `$$$` are its holes")
    })?;
    Ok((set, prepared))
}
