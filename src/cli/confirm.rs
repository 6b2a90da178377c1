//! `--confirm FILE`: reads what a compile or a compute plan said, whatever file tells it.

use std::path::Path;

use super::Failure;
use crate::graph::{Confirmed, Format, FunctionId, FunctionRole, Program};
use crate::placement::{Placement, confirm};
use crate::readers::{self, ReadError, ReadOptions};
use crate::report::ConfirmedBy;

/// What one file says.
pub struct Words {
    file: String,
    ops: Vec<Confirmed>,
    /// Regions by function, where the file is a compiled asset.
    regions: Vec<(String, u32)>,
}

/// Reads a compiled asset, an analysis file or a compute plan.
pub fn read(path: &Path, options: ReadOptions) -> Result<Words, Failure> {
    let failure = |error: ReadError| {
        let offset = error.offset.map(|at| format!(" (byte {at} of the file)")).unwrap_or_default();
        Failure::new(format!("--confirm {}: {}{offset}", path.display(), error.message))
    };
    let file = path.display().to_string();
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json && path.is_file() {
        let ops = readers::read_compute_plan(path, options).map_err(failure)?;
        return Ok(Words { file, ops, regions: Vec::new() });
    }
    let program = readers::read(path, options).map_err(failure)?;
    let mut regions = Vec::new();
    if program.format == Format::AiModelC {
        for (key, value) in &program.metadata {
            let function = program.text(*key).strip_prefix("regions:");
            if let (Some(function), Ok(count)) = (function, program.text(*value).parse()) {
                regions.push((function.to_owned(), count));
            }
        }
    }
    if program.confirmed.is_empty() && regions.is_empty() {
        return Err(Failure::new(format!("--confirm {file}: no compiler's words in it")).help(
            "give an .aimodelc, an analytics.mil or a compute plan as JSON, made from this model",
        ));
    }
    Ok(Words { file, ops: program.confirmed, regions })
}

/// Holds a file's words against the placements.
pub fn hold(
    words: &Words,
    program: &Program,
    placements: &[(FunctionId, Placement)],
) -> Result<ConfirmedBy, Failure> {
    let entries = program.functions.iter().filter(|f| f.role == FunctionRole::Entry).count();
    let mut functions = Vec::new();
    for (id, placement) in placements {
        let function = program.function(*id);
        let name = program.text(function.name);
        // A model with one function and a file with one need not agree on its name.
        let alone = entries == 1 && function.role == FunctionRole::Entry;
        let regions = match words.regions.as_slice() {
            [(_, count)] if alone => Some(*count),
            all => all.iter().find(|(known, _)| known == name).map(|(_, count)| *count),
        };
        let single = alone && words.ops.windows(2).all(|w| w[0].function == w[1].function);
        let said: Vec<Confirmed> = words
            .ops
            .iter()
            .filter(|op| single || op.function.is_empty() || op.function == name)
            .map(|op| Confirmed { function: name.to_owned(), ..op.clone() })
            .collect();
        if said.is_empty() && regions.is_none() {
            continue;
        }
        let confirmation = confirm(program, placement, &said, regions);
        if confirmation.named == 0 && regions.is_none() {
            continue;
        }
        functions.push((*id, confirmation));
    }
    if functions.is_empty() {
        let names: Vec<&str> = words.regions.iter().map(|(name, _)| name.as_str()).collect();
        let failure = Failure::new(format!(
            "--confirm {}: it names no function and no op of this model",
            words.file
        ));
        return Err(if names.is_empty() {
            failure.help("it must come from the same model, with the same names")
        } else {
            failure.help(format!("its functions are: {}", names.join(", ")))
        });
    }
    Ok(ConfirmedBy { file: words.file.clone(), functions })
}
