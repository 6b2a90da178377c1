//! The source map that `anelint.export` adds to an archive (`docs/source-map.md`): the frames of the
//! author's helpers too, and columns, where torch records the lines of `forward` only.
//!
//! A map that is broken makes a note, and torch's own record is used.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::archive::Archive;
use super::builder::{Builder, Table};
use crate::graph::{Frame, Name, StackId};

/// Name of the member, below `extra/`.
pub const MEMBER: &str = "anelint-source-map.json";
const VERSION: u32 = 1;
/// Largest map that is read.
const MAX_BYTES: u64 = 256 << 20;

/// The stacks of the main graph's nodes.
#[derive(Debug, Default)]
pub struct SourceMap {
    nodes: Table<Name, StackId>,
    /// Names of tensors that were left out of the archive on purpose.
    pub dropped: BTreeSet<String>,
}

impl SourceMap {
    /// The frames of a node, if the map has them.
    pub fn stack(&self, node: Name) -> Option<StackId> {
        self.nodes.get(&node).copied()
    }
}

#[derive(Deserialize)]
struct Document {
    version: u32,
    files: Vec<File>,
    functions: Vec<String>,
    texts: Vec<String>,
    /// File, function, text, line, column, end line, end column.
    frames: Vec<[u32; 7]>,
    stacks: Vec<Vec<u32>>,
    nodes: BTreeMap<String, u32>,
    #[serde(default)]
    dropped: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    #[serde(default)]
    sha256: String,
}

/// Reads the map at `member` into the builder.
pub fn read(archive: &mut Archive<'_>, member: &str, builder: &mut Builder) {
    if archive.size(member).is_some_and(|size| size > MAX_BYTES) {
        builder.program.notes.push(format!("{member} is too large: not read"));
        return;
    }
    let result = archive
        .read(member)
        .map_err(|error| error.message)
        .and_then(|data| parse(&data.bytes, builder).map_err(|what| format!("{member}: {what}")));
    match result {
        Ok(map) => builder.source_map = map,
        Err(message) => builder.program.notes.push(message),
    }
}

fn parse(bytes: &[u8], builder: &mut Builder) -> Result<SourceMap, String> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if document.version != VERSION {
        return Err(format!("version {} is not known: not read", document.version));
    }
    let names = &mut builder.program.names;
    let files: Vec<(Name, Name)> = document
        .files
        .iter()
        .map(|file| (names.intern(&file.path), names.intern(&file.sha256)))
        .collect();
    let functions: Vec<Name> = document.functions.iter().map(|own| names.intern(own)).collect();
    // A recorded text is trimmed, and columns count from its first character.
    let texts: Vec<(Name, u32)> = document
        .texts
        .iter()
        .map(|own| {
            let indent = own.chars().take_while(|c| c.is_whitespace()).count();
            (names.intern(own.trim()), u32::try_from(indent).unwrap_or(0))
        })
        .collect();
    let absent = || "a number that leads nowhere".to_owned();
    let mut frames = Vec::with_capacity(document.frames.len());
    for [file, function, text, line, column, end_line, end_column] in document.frames {
        let (file, sha256) = *files.get(file as usize).ok_or_else(absent)?;
        let (text, indent) = *texts.get(text as usize).ok_or_else(absent)?;
        let here =
            |column: u32| if text.is_empty() { column } else { column.saturating_sub(indent) };
        frames.push(builder.program.sources.frame(Frame {
            file,
            line,
            column: here(column),
            end_line,
            end_column: if end_line == line { here(end_column) } else { end_column },
            function: *functions.get(function as usize).ok_or_else(absent)?,
            text,
            sha256,
        }));
    }
    let mut stacks = Vec::with_capacity(document.stacks.len());
    for stack in &document.stacks {
        let stack: Vec<_> = stack
            .iter()
            .map(|frame| frames.get(*frame as usize).copied().ok_or_else(absent))
            .collect::<Result<_, _>>()?;
        stacks.push(builder.program.sources.stack(&stack));
    }
    let mut nodes = Table::default();
    for (node, stack) in &document.nodes {
        let stack = *stacks.get(*stack as usize).ok_or_else(absent)?;
        nodes.insert(builder.program.names.intern(node), stack);
    }
    Ok(SourceMap { nodes, dropped: document.dropped.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use std::path::PathBuf;

    use super::*;
    use crate::graph::{Format, Program};

    const MAP: &str = r#"{"version":1,
        "files":[{"path":"net/m.py","sha256":"ab"}],
        "functions":["forward","helper"],
        "texts":["    y = helper(x)","  return x * 2"],
        "frames":[[0,0,0,9,9,9,18],[0,1,1,3,10,3,15]],
        "stacks":[[0,1]],
        "nodes":{"mul":0},
        "dropped":["fc.weight"]}"#;

    fn builder() -> Builder {
        Builder::new(Program::new(PathBuf::from("a.pt2"), Format::Pt2))
    }

    #[test]
    fn frames_of_helpers_come_with_their_columns() {
        let mut builder = builder();
        let map = parse(MAP.as_bytes(), &mut builder).unwrap();
        let mul = builder.program.names.find("mul").unwrap();
        let stack = map.stack(mul).unwrap();
        let frames: Vec<_> = builder.program.sources.frames(stack).copied().collect();
        let text = |name| builder.program.text(name);
        assert_eq!((text(frames[1].function), text(frames[1].text)), ("helper", "return x * 2"));
        // Columns count in the trimmed text: `x * 2` begins at its eighth character.
        assert_eq!((frames[1].line, frames[1].column, frames[1].end_column), (3, 8, 13));
        assert_eq!(text(frames[0].sha256), "ab");
        assert!(map.dropped.contains("fc.weight"));
    }

    #[test]
    fn a_number_that_leads_nowhere_or_a_later_version_is_refused() {
        for (from, to) in [
            ("\"mul\":0", "\"mul\":1"),
            ("\"stacks\":[[0,1]]", "\"stacks\":[[0,7]]"),
            ("[0,1,1,3,", "[0,1,9,3,"),
            ("\"version\":1", "\"version\":2"),
            ("9,9,9,18", "9,9,9,-1"),
        ] {
            let broken = MAP.replacen(from, to, 1);
            assert!(parse(broken.as_bytes(), &mut builder()).is_err(), "{to}");
        }
    }
}
