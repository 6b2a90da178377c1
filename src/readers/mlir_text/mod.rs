//! The `coreai` dialect as text: what the library prints, pretty or generic, with or without
//! locations, whole or pasted into a bug report.
//!
//! The text becomes the same parsed form as bytecode (`core_ai::ir`), and so the same graph. Large
//! constants are often left out of a text; their values are then unknown.

mod graphs;
mod lexer;
mod locations;
mod ops;
mod values;

use std::path::Path;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use self::lexer::{Fault, Lexer, Parsed};
use self::values::{Dense, Tables, decode_hex};
use crate::graph::{BlobFile, Format, Program};
use crate::readers::core_ai::ir::{LocationId, Module, OpName, Text};
use crate::readers::{ReadError, ReadOptions, core_ai};

/// What all parts of a parse share.
struct Context<'a> {
    text: &'a str,
    tables: Tables<'a>,
    module: Module<'a>,
    locations: locations::Locations<'a>,
    op_names: FxHashMap<Text<'a>, u32>,
    /// A constant whose type has not been read yet.
    pending: Option<Dense<'a>>,
}

impl<'a> Context<'a> {
    /// `loc(…)`, if it is next.
    fn location(&mut self, lexer: &mut Lexer<'a>) -> Parsed<LocationId> {
        locations::Reader {
            text: self.text,
            tables: &self.tables,
            module: &mut self.module,
            known: &mut self.locations,
        }
        .optional(lexer)
    }

    fn op_name(&mut self, name: Text<'a>, make: impl FnOnce(Text<'a>) -> OpName<'a>) -> u32 {
        let names = &mut self.module.op_names;
        *self.op_names.entry(name.clone()).or_insert_with(|| {
            names.push(make(name));
            names.len() as u32 - 1
        })
    }
}

/// Whether bytes look like MLIR text of the `coreai` dialect.
pub fn looks_like(bytes: &[u8]) -> bool {
    const HEAD: usize = 1 << 16;
    let head = &bytes[..bytes.len().min(HEAD)];
    let starts = head.iter().find(|byte| !byte.is_ascii_whitespace());
    let word = |word: &[u8]| head.windows(word.len()).any(|window| window == word);
    matches!(starts, Some(b'#' | b'm' | b'"' | b'!' | b'c' | b'b' | b'/'))
        && (word(b"coreai.") || word(b"#debuginfo."))
        && (word(b"module") || word(b"coreai.graph") || word(b"= "))
}

/// Reads a text.
///
/// # Errors
/// [`ReadError`] with the offset where the text is not understood.
pub fn read(path: &Path, bytes: Bytes, _options: ReadOptions) -> Result<Program, ReadError> {
    let mut program = Program::new(path.to_owned(), Format::Mlir);
    with_text(path, &bytes, |module, blob| {
        program.blob_files.push(BlobFile::Bytes(Bytes::from(blob.clone())));
        core_ai::lower(module, &mut program, core_ai::Input { file: 0, bytes: blob });
    })?;
    Ok(program)
}

/// The parsed form of a text as JSON: for comparisons.
///
/// # Errors
/// As [`read`].
pub fn parsed_json(path: &Path) -> Result<serde_json::Value, ReadError> {
    let bytes = std::fs::read(path)
        .map_err(|error| ReadError::broken(path, format!("cannot read: {error}")))?;
    with_text(path, &bytes, |module, blob| {
        core_ai::json::module(module, core_ai::Input { file: 0, bytes: blob })
    })
}

/// Parses bytes and hands the module on, with the blob that its resources lie in.
fn with_text<T>(
    path: &Path,
    bytes: &[u8],
    then: impl FnOnce(&Module<'_>, &Vec<u8>) -> T,
) -> Result<T, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ReadError::broken(path, "not UTF-8 text").at(error.valid_up_to() as u64)
    })?;
    match parse(text) {
        Ok((module, blob)) => Ok(then(&module, &blob)),
        Err(fault) => Err(ReadError::broken(path, fault.message).at(fault.offset as u64)),
    }
}

/// Text → the parsed form, and the bytes of its resources.
pub(crate) fn parse(text: &str) -> Result<(Module<'_>, Vec<u8>), Fault> {
    let mut context = Context {
        text,
        tables: Tables::default(),
        module: Module::new(),
        locations: locations::Locations::default(),
        op_names: FxHashMap::default(),
        pending: None,
    };
    let mut blob = Vec::new();
    survey(text, &mut context.tables, &mut blob);
    locations::Reader {
        text,
        tables: &context.tables,
        module: &mut context.module,
        known: &mut context.locations,
    }
    .listed_files();
    let mut lexer = Lexer::new(text, 0);
    let mut started = 0;
    loop {
        match lexer.peek() {
            0 => break,
            b'"' => {
                let name = lexer.string()?;
                if name == "coreai.graph" || name == "udml.func" {
                    started = lexer.at();
                    graphs::generic(&mut context, &mut lexer)?;
                }
            }
            b'#' | b'!' => {
                // Aliases were found before; anything else with a mark is passed over.
                lexer.step();
            }
            b'{' if lexer.looking_at("{-#") => break,
            _ => match lexer.word() {
                "coreai.graph" | "udml.func" => {
                    started = lexer.at();
                    graphs::pretty(&mut context, &mut lexer)?;
                }
                "" => lexer.step(),
                _ => {}
            },
        }
    }
    if started == 0 {
        return Lexer::new(text, 0).fault("no `coreai.graph` in this text");
    }
    Ok((context.module, blob))
}

/// Finds the aliases (`#name = …` at the start of a line) and the resources at the end.
fn survey<'a>(text: &'a str, tables: &mut Tables<'a>, blob: &mut Vec<u8>) {
    let mut offset = 0;
    let mut in_resources = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if trimmed.starts_with("{-#") {
            in_resources = true;
        } else if trimmed.starts_with("#-}") {
            in_resources = false;
        } else if in_resources {
            // `key: "0x…"`: four bytes of alignment, then the data.
            if let Some((key, value)) = trimmed.split_once(": \"0x")
                && let Some((hex, _)) = value.split_once('"')
                && let Some(bytes) = decode_hex(hex)
                && let Some(data) = bytes.get(4..)
            {
                let place = (blob.len() as u64, data.len() as u64);
                blob.extend_from_slice(data);
                tables.resources.insert(key.trim_matches('"').into(), place);
            }
        } else if trimmed.starts_with(['#', '!'])
            && let Some((name, _)) = trimmed.split_once(" = ")
            && !name.contains(|c: char| c.is_whitespace() || c == '<')
        {
            tables.aliases.insert(name, offset + indent + name.len() + 3);
        }
        offset += line.len();
    }
}
