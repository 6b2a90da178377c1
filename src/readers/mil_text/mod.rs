//! The text form of ML Programs: `.mil`, the `model.mil` of a compiled model, and the analysis files
//! that the compiler leaves, with what it said of every op.

mod lexer;
mod parser;

use std::path::Path;

use bytes::Bytes;

use self::parser::Parser;
use super::mil::ir::{Decode, Operation};
use super::mil::lower::{InputShape, Lowering};
use super::{ReadError, ReadOptions};
use crate::graph::{Format, Program};

/// Whether a text is an ML Program, by its first bytes.
pub(super) fn is_text(head: &[u8]) -> bool {
    head.trim_ascii_start()
        .strip_prefix(b"program")
        .is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b'('))
}

/// Reads the text at `path`.
///
/// # Errors
/// [`ReadError`] with the offset of the first token that does not fit.
pub(super) fn read_file(
    path: &Path,
    bytes: Bytes,
    _options: ReadOptions,
) -> Result<Program, ReadError> {
    let mut program = Program::new(path.to_owned(), Format::Mil);
    let base = path.parent().unwrap_or(path).to_owned();
    add_text(&mut program, path, &bytes, &base, &[])?;
    Ok(program)
}

/// Adds the functions of a text to `program`; weight files lie below `base`.
///
/// # Errors
/// [`ReadError`] with the offset of the first token that does not fit.
pub(super) fn add_text(
    program: &mut Program,
    path: &Path,
    bytes: &Bytes,
    base: &Path,
    shapes: &[InputShape],
) -> Result<(), ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ReadError::broken(path, "not UTF-8 text").at(error.valid_up_to() as u64)
    })?;
    let parsed = Parser::new(path, text)?.program()?;
    let mut producer = Vec::new();
    for (key, value) in &parsed.build_info {
        let entry = (program.names.intern(key), program.names.intern(value));
        program.metadata.push(entry);
        if let Some(name) = key.strip_suffix("-version") {
            producer.push(format!("{name} {value}"));
        }
    }
    if program.producer.is_empty() {
        program.producer = producer.join(", ");
    }
    let mut lowering = Lowering::new(program, &NoWire, base);
    for function in parsed.functions {
        lowering.function(function, shapes)?;
    }
    lowering.finish();
    Ok(())
}

/// Text is parsed whole: nothing is left in the wire's form.
struct NoWire;

impl Decode for NoWire {
    fn operation(&self, _bytes: Bytes) -> Result<Operation, ReadError> {
        Ok(Operation::default())
    }
}
