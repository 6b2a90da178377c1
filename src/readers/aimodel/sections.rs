//! The sections of a `main.mlirb` and the tables in them: strings, dialects and op names, attribute
//! and type entries, resources, properties.
//!
//! Only spans are kept; entries are decoded when something asks for them (`entries`). The layout is
//! the public MLIR bytecode format, versions 4 to 6.

use super::cursor::{Cursor, Decoded};

const STRINGS: u8 = 0;
const DIALECTS: u8 = 1;
const ENTRIES: u8 = 2;
const ENTRY_OFFSETS: u8 = 3;
const IR: u8 = 4;
const RESOURCES: u8 = 5;
const RESOURCE_OFFSETS: u8 = 6;
const DIALECT_VERSIONS: u8 = 7;
const PROPERTIES: u8 = 8;

/// The magic bytes at the start of every MLIR bytecode file.
pub const MAGIC: [u8; 4] = [0x4D, 0x4C, 0xEF, 0x52];

/// A span of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// An attribute or type entry, not decoded.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its bytes.
    pub place: Place,
    /// How it is encoded.
    pub encoding: Encoding,
}

/// The dialect and form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The binary encoding of the `aicode` dialect.
    Core,
    /// The binary encoding of MLIR's own dialect.
    Builtin,
    /// Another dialect, or textual assembly.
    Unknown,
}

/// An op name of the file.
#[derive(Debug, Clone, Copy)]
pub struct RawName<'a> {
    /// Index of its dialect.
    pub dialect: usize,
    /// Name without the dialect.
    pub name: &'a str,
}

/// A resource: a named blob, not looked at.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// Its key.
    pub name: &'a str,
    /// Offset and length of the payload in the file; `None` if only declared or no blob.
    pub place: Option<(u64, u64)>,
}

/// The tables of a file.
#[derive(Debug)]
pub struct Tables<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// Strings.
    pub strings: Vec<&'a str>,
    /// Dialect names.
    pub dialects: Vec<&'a str>,
    /// Op names.
    pub op_names: Vec<RawName<'a>>,
    /// Attribute entries.
    pub attributes: Vec<Entry>,
    /// Type entries.
    pub types: Vec<Entry>,
    /// Resources of the dialects, by handle.
    pub resources: Vec<Resource<'a>>,
    /// Property entries.
    pub properties: Vec<Place>,
    /// The IR section.
    pub ir: Place,
}

impl<'a> Tables<'a> {
    /// Finds the sections and reads the tables.
    pub fn read(bytes: &'a [u8]) -> Decoded<Tables<'a>> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4).ok() != Some(&MAGIC) {
            return Cursor::new(bytes).fault("not MLIR bytecode: the magic 4D 4C EF 52 is missing");
        }
        let version = cursor.varint()?;
        if !(4..=6).contains(&version) {
            return cursor
                .fault(format!("MLIR bytecode version {version}: versions 4 to 6 are understood"));
        }
        let _producer = terminated(&mut cursor)?;
        let mut sections: [Option<Cursor<'a>>; 9] = [None; 9];
        while !cursor.is_done() {
            let at = cursor;
            let (id, payload) = cursor.section()?;
            match sections.get_mut(usize::from(id)) {
                Some(slot @ None) if id != DIALECT_VERSIONS => *slot = Some(payload),
                Some(_) => return at.fault(format!("section {id} may not stand here")),
                None => return at.fault(format!("unknown section {id}")),
            }
        }
        let section = |id: u8, name: &str| match sections[usize::from(id)] {
            Some(section) => Ok(section),
            None => cursor.fault(format!("the {name} section is missing")),
        };
        let strings = strings(section(STRINGS, "string")?)?;
        let (dialects, op_names) = dialects(section(DIALECTS, "dialect")?, &strings, version)?;
        let (attributes, types) = entries(
            section(ENTRY_OFFSETS, "attribute offset")?,
            section(ENTRIES, "attribute")?,
            &dialects,
        )?;
        let resources =
            match (sections[usize::from(RESOURCE_OFFSETS)], sections[usize::from(RESOURCES)]) {
                (Some(offsets), payloads) => resources(offsets, payloads, &strings, bytes)?,
                (None, _) => Vec::new(),
            };
        let properties = match sections[usize::from(PROPERTIES)] {
            Some(section) => properties(section)?,
            None if version >= 5 => return cursor.fault("the property section is missing"),
            None => Vec::new(),
        };
        let ir = section(IR, "IR")?;
        let ir = Place { start: ir.at(), end: ir.at() + ir.left() };
        Ok(Tables {
            bytes,
            strings,
            dialects,
            op_names,
            attributes,
            types,
            resources,
            properties,
            ir,
        })
    }

    /// A cursor over a place of the file.
    pub fn cursor(&self, place: Place) -> Cursor<'a> {
        Cursor::span(self.bytes, place.start, place.end)
    }

    /// A string by index.
    pub fn string(&self, cursor: &mut Cursor<'a>) -> Decoded<&'a str> {
        let index = cursor.index()?;
        match self.strings.get(index as usize) {
            Some(text) => Ok(text),
            None => cursor.fault(format!("there is no string {index}")),
        }
    }
}

/// Text up to the next NUL.
fn terminated<'a>(cursor: &mut Cursor<'a>) -> Decoded<&'a str> {
    let Some(len) = cursor.rest().iter().position(|&byte| byte == 0) else {
        return cursor.fault("the text is not terminated");
    };
    let bytes = cursor.take(len as u64)?;
    cursor.byte()?;
    Ok(lenient(bytes))
}

/// The bytes as text, up to the first that is no UTF-8.
fn lenient(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}

/// Sizes stand in reverse order, then the strings forward, each with its NUL.
fn strings(mut cursor: Cursor<'_>) -> Decoded<Vec<&str>> {
    let count = cursor.count(2)?;
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        let size = cursor.varint()?;
        if size == 0 {
            return cursor.fault("a string has no room for its NUL");
        }
        sizes.push(size);
    }
    let mut strings = Vec::with_capacity(count);
    for &size in sizes.iter().rev() {
        let bytes = cursor.take(size)?;
        strings.push(lenient(&bytes[..bytes.len() - 1]));
    }
    if !cursor.is_done() {
        return cursor.fault("bytes are left after the last string");
    }
    Ok(strings)
}

fn dialects<'a>(
    mut cursor: Cursor<'a>,
    strings: &[&'a str],
    version: u64,
) -> Decoded<(Vec<&'a str>, Vec<RawName<'a>>)> {
    let text = |cursor: &Cursor<'a>, index: u64| match strings.get(index as usize) {
        Some(text) => Ok(*text),
        None => cursor.fault(format!("there is no string {index}")),
    };
    let count = cursor.count(1)?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, versioned) = cursor.flagged()?;
        dialects.push(text(&cursor, name)?);
        if versioned {
            let (id, _) = cursor.section()?;
            if id != DIALECT_VERSIONS {
                return cursor.fault(format!("section {id} where a dialect version was expected"));
            }
        }
    }
    let total = cursor.count(1)?;
    let mut names = Vec::with_capacity(total);
    while !cursor.is_done() {
        let dialect = cursor.index()? as usize;
        if dialect >= dialects.len() {
            return cursor.fault(format!("there is no dialect {dialect}"));
        }
        for _ in 0..cursor.count(1)? {
            // Whether a name was registered is told from version 5 on.
            let name = if version < 5 { cursor.varint()? } else { cursor.flagged()?.0 };
            names.push(RawName { dialect, name: text(&cursor, name)? });
        }
    }
    if names.len() != total {
        return cursor.fault(format!("{total} op names announced, {} found", names.len()));
    }
    Ok((dialects, names))
}

fn entries(
    mut offsets: Cursor<'_>,
    mut data: Cursor<'_>,
    dialects: &[&str],
) -> Decoded<(Vec<Entry>, Vec<Entry>)> {
    let attributes = offsets.varint()?;
    let types = offsets.varint()?;
    let mut tables = [Vec::new(), Vec::new()];
    for (table, total) in tables.iter_mut().zip([attributes, types]) {
        table.reserve(offsets.fits(total, 1)?);
        while (table.len() as u64) < total {
            let dialect = offsets.index()? as usize;
            let Some(&name) = dialects.get(dialect) else {
                return offsets.fault(format!("there is no dialect {dialect}"));
            };
            let count = offsets.count(1)?;
            if (table.len() + count) as u64 > total {
                return offsets.fault("a group has more entries than the table");
            }
            for _ in 0..count {
                let (size, custom) = offsets.flagged()?;
                let start = data.at();
                data.take(size)?;
                let place = Place { start, end: data.at() };
                let encoding = match (custom, name) {
                    (true, "aicode") => Encoding::Core,
                    (true, "builtin") => Encoding::Builtin,
                    _ => Encoding::Unknown,
                };
                table.push(Entry { place, encoding });
            }
        }
    }
    if !data.is_done() || !offsets.is_done() {
        return data.fault("the attribute entries do not fill their section");
    }
    let [attributes, types] = tables;
    Ok((attributes, types))
}

fn resources<'a>(
    mut offsets: Cursor<'a>,
    payloads: Option<Cursor<'a>>,
    strings: &[&'a str],
    bytes: &'a [u8],
) -> Decoded<Vec<Resource<'a>>> {
    const BLOB: u8 = 0;
    let mut payloads = payloads.unwrap_or(Cursor::span(bytes, 0, 0));
    let mut resources = Vec::new();
    let mut external = offsets.varint()?;
    while external > 0 || !offsets.is_done() {
        // Both a key string (external groups) and a dialect are one index.
        offsets.index()?;
        for _ in 0..offsets.count(3)? {
            let name = offsets.index()?;
            let size = offsets.varint()?;
            let kind = offsets.byte()?;
            let Some(&name) = strings.get(name as usize) else {
                return offsets.fault(format!("there is no string {name}"));
            };
            let start = payloads.at();
            payloads.take(size)?;
            let place = if kind == BLOB && size > 0 {
                blob(Cursor::span(bytes, start, payloads.at()))?
            } else {
                None
            };
            if external == 0 {
                resources.push(Resource { name, place });
            }
        }
        external = external.saturating_sub(1);
    }
    Ok(resources)
}

/// Offset and length of the payload of a blob entry, which must end with it.
fn blob(mut entry: Cursor<'_>) -> Decoded<Option<(u64, u64)>> {
    let alignment = entry.varint()?;
    let len = entry.varint()?;
    entry.align(alignment)?;
    let start = entry.at() as u64;
    entry.take(len)?;
    if !entry.is_done() {
        return entry.fault("a resource is shorter than its entry");
    }
    Ok(Some((start, len)))
}

fn properties(mut cursor: Cursor<'_>) -> Decoded<Vec<Place>> {
    let count = cursor.count(1)?;
    let mut properties = Vec::with_capacity(count);
    for _ in 0..count {
        let size = cursor.varint()?;
        let start = cursor.at();
        cursor.take(size)?;
        properties.push(Place { start, end: cursor.at() });
    }
    if !cursor.is_done() {
        return cursor.fault("bytes are left after the last property");
    }
    Ok(properties)
}
