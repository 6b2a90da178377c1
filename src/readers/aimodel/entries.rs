//! Attribute and type entries of the `aicode` dialect: one code, fixed fields.
//!
//! An entry is decoded one level deep; what it refers to stays an index. Whoever follows indices
//! bounds the depth (entries may refer to each other in any order, cycles and diamonds included).
//! An unknown code, or bytes left over, make [`Attribute::Opaque`]: newer files stay readable.

use std::borrow::Cow;

use super::cursor::{Cursor, Decoded};
use super::sections::{Encoding, Entry, Resource, Tables};

/// Index of an attribute entry.
pub type AttributeId = u32;

/// A list of indices, not decoded.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    cursor: Cursor<'a>,
    len: usize,
}

impl<'a> List<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Decoded<List<'a>> {
        let len = cursor.count(1)?;
        let list = List { cursor: *cursor, len };
        for _ in 0..len {
            cursor.varint()?;
        }
        Ok(list)
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The items as unsigned numbers (indices).
    pub fn ids(self) -> impl Iterator<Item = u32> + 'a {
        let mut cursor = self.cursor;
        (0..self.len).map_while(move |_| cursor.index().ok())
    }

    /// The items as signed numbers.
    pub fn signed(self) -> impl Iterator<Item = i64> + 'a {
        let mut cursor = self.cursor;
        (0..self.len).map_while(move |_| cursor.svarint().ok())
    }
}

/// An attribute, one level deep.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each field is what its name says")]
pub enum Attribute<'a> {
    String(&'a str),
    /// The low 64 bits; a boolean has width 1.
    Integer {
        width: u64,
        value: i64,
    },
    Float(f64),
    Type(u32),
    Array(List<'a>),
    Dense {
        splat: bool,
        bytes: &'a [u8],
    },
    Resource(Resource<'a>),
    /// A named attribute or tagged record.
    Named {
        name: &'a str,
        parameters: List<'a>,
    },
    Constraints {
        alignments: List<'a>,
        interleave: List<'a>,
        backing: u64,
        base: Option<AttributeId>,
    },
    Symbol(Vec<&'a str>),
    /// A value with a type, seen through to the value.
    Wrapped(AttributeId),
    /// One word out of a set: enumerations of the dialect.
    Word(Cow<'a, str>),
    Sparse(&'static str),
    File {
        name: &'a str,
        directory: &'a str,
        sha256: &'a str,
    },
    Source {
        file: AttributeId,
        line: u64,
        column: u64,
    },
    CompileUnit {
        files: List<'a>,
    },
    Metadata {
        name: &'a str,
        data: AttributeId,
    },
    Subprogram {
        unit: AttributeId,
    },
    Location {
        source: Option<AttributeId>,
        fused: List<'a>,
        inlined_at: Option<AttributeId>,
        scope: AttributeId,
        metadata: List<'a>,
    },
    Dictionary(List<'a>),
    /// Keys and values by turns: the dictionary of MLIR's own dialect, in old bytecode versions.
    Pairs(List<'a>),
    Unit,
    Opaque,
}

/// Decodes the attribute at `id`; out of range or malformed is opaque.
pub fn attribute<'a>(tables: &Tables<'a>, id: AttributeId) -> Attribute<'a> {
    let Some(entry) = tables.attributes.get(id as usize) else { return Attribute::Opaque };
    decode_attribute(tables, *entry).unwrap_or(Attribute::Opaque)
}

fn decode_attribute<'a>(tables: &Tables<'a>, entry: Entry) -> Decoded<Attribute<'a>> {
    let cursor = &mut tables.cursor(entry.place);
    match entry.encoding {
        Encoding::Core => {}
        Encoding::Builtin => return decode_builtin(tables, cursor),
        Encoding::Unknown => return Ok(Attribute::Opaque),
    }
    let code = cursor.varint()?;
    let word = |words: &[(u64, &'static str)], value: u64| {
        let known = words.iter().find(|(number, _)| *number == value);
        Attribute::Word(known.map_or_else(|| value.to_string().into(), |(_, word)| (*word).into()))
    };
    let attribute = match code {
        1 => Attribute::String(tables.string(cursor)?),
        2 => {
            let width = cursor.varint()?;
            let unsigned = cursor.byte()? != 0;
            Attribute::Integer { width, value: integer(cursor, width, unsigned)? }
        }
        3 => {
            let width = cursor.varint()?;
            let bits = integer(cursor, width, true)? as u64;
            Attribute::Float(match width {
                16 => half::f16::from_bits(bits as u16).to_f64(),
                32 => f64::from(f32::from_bits(bits as u32)),
                64 => f64::from_bits(bits),
                _ => return Ok(Attribute::Opaque),
            })
        }
        4 => Attribute::Type(cursor.index()?),
        5 => Attribute::Array(List::read(cursor)?),
        6 => {
            let splat = cursor.byte()? != 0;
            let len = cursor.varint()?;
            Attribute::Dense { splat, bytes: cursor.take(len)? }
        }
        7 => {
            let handle = cursor.index()?;
            match tables.resources.get(handle as usize) {
                Some(resource) => Attribute::Resource(*resource),
                None => return cursor.fault(format!("there is no resource {handle}")),
            }
        }
        9 => Attribute::Named { name: tables.string(cursor)?, parameters: List::read(cursor)? },
        12 | 13 => Attribute::Constraints {
            alignments: List::read(cursor)?,
            interleave: List::read(cursor)?,
            backing: cursor.varint()?,
            base: if code == 13 { Some(cursor.index()?) } else { None },
        },
        14 => {
            let count = cursor.count(1)?;
            let mut path = Vec::with_capacity(count);
            for _ in 0..count {
                path.push(tables.string(cursor)?);
            }
            Attribute::Symbol(path)
        }
        16 => {
            let value = cursor.index()?;
            cursor.index()?;
            Attribute::Wrapped(value)
        }
        17 => word(
            &[(0, "circular"), (1, "constant"), (2, "reflect"), (3, "replicate"), (4, "symmetric")],
            cursor.varint()?,
        ),
        18 | 28 | 44 => Attribute::Word(cursor.varint()?.to_string().into()),
        19 => word(&[(0, "none"), (1, "tanh"), (2, "sigmoid")], cursor.varint()?),
        20 => word(
            &[
                (0, "update"),
                (1, "add"),
                (2, "sub"),
                (3, "mul"),
                (4, "div"),
                (5, "max"),
                (6, "min"),
            ],
            cursor.varint()?,
        ),
        21 | 23 => {
            let scheme = cursor.varint()?;
            cursor.varint()?;
            cursor.varint()?;
            if cursor.byte()? != 0 {
                cursor.varint()?;
            }
            if code == 23 {
                List::read(cursor)?;
            }
            Attribute::Sparse(
                ["bitmask", "coo", "csr", "csc", "bsr"].get(scheme as usize).unwrap_or(&"sparse"),
            )
        }
        25 => word(&[(0, "sum"), (1, "product"), (2, "min"), (3, "max")], cursor.varint()?),
        26 => {
            let backing = cursor.varint()?;
            List::read(cursor)?;
            Attribute::Word(if backing == 1 { "CVPixelBuffer" } else { "MTLTexture" }.into())
        }
        27 => word(
            &[
                (24, "RGB24"),
                (32, "ARGB32"),
                (0x4247_5241, "BGRA32"),
                (0x7934_3230, "420YpCbCr8Planar"),
            ],
            cursor.varint()?,
        ),
        30 => Attribute::File {
            name: tables.string(cursor)?,
            directory: tables.string(cursor)?,
            sha256: tables.string(cursor)?,
        },
        31 => {
            let file = cursor.index()?;
            let line = cursor.varint()?;
            let column = cursor.varint()?;
            cursor.varint()?;
            cursor.varint()?;
            Attribute::Source { file, line, column }
        }
        32 => {
            tables.string(cursor)?;
            cursor.index()?;
            tables.string(cursor)?;
            cursor.varint()?;
            tables.string(cursor)?;
            Attribute::CompileUnit { files: List::read(cursor)? }
        }
        33 => Attribute::Wrapped(cursor.index()?),
        35 => Attribute::Metadata { name: tables.string(cursor)?, data: cursor.index()? },
        36 => {
            cursor.index()?;
            let unit = cursor.index()?;
            cursor.index()?;
            tables.string(cursor)?;
            tables.string(cursor)?;
            cursor.varint()?;
            Attribute::Subprogram { unit }
        }
        40 | 41 => Attribute::Location {
            source: Some(cursor.index()?),
            scope: cursor.index()?,
            inlined_at: if code == 41 { Some(cursor.index()?) } else { None },
            fused: List::read(cursor)?,
            metadata: List::read(cursor)?,
        },
        42 => {
            let metadata = List::read(cursor)?;
            let none = List { cursor: *cursor, len: 0 };
            Attribute::Location {
                source: None,
                scope: u32::MAX,
                inlined_at: None,
                fused: none,
                metadata,
            }
        }
        43 => word(&[(0, "linear"), (1, "nearest_neighbor")], cursor.varint()?),
        45 => Attribute::Dictionary(List::read(cursor)?),
        46 => Attribute::Unit,
        _ => return Ok(Attribute::Opaque),
    };
    Ok(if cursor.is_done() { attribute } else { Attribute::Opaque })
}

/// The few attributes of MLIR's own dialect that old bytecode versions use to hold properties.
fn decode_builtin<'a>(tables: &Tables<'a>, cursor: &mut Cursor<'a>) -> Decoded<Attribute<'a>> {
    Ok(match cursor.varint()? {
        1 => {
            let pairs = cursor.count(2)?;
            let list = List { cursor: *cursor, len: pairs * 2 };
            Attribute::Pairs(list)
        }
        2 => Attribute::String(tables.string(cursor)?),
        _ => Attribute::Opaque,
    })
}

/// An integer of a width, sign-extended unless unsigned; of wide ones the low 64 bits.
fn integer(cursor: &mut Cursor<'_>, width: u64, unsigned: bool) -> Decoded<i64> {
    let raw = match width {
        0 => return cursor.fault("an integer has no width"),
        1..=8 => i64::from(cursor.byte()?),
        9..=64 => cursor.svarint()?,
        _ => {
            let words = cursor.count(1)?;
            let mut low = 0;
            for word in 0..words {
                let value = cursor.svarint()?;
                if word == 0 {
                    low = value;
                }
            }
            return Ok(low);
        }
    };
    let unused = 64 - width as u32;
    Ok(if unsigned { ((raw as u64) << unused >> unused) as i64 } else { raw << unused >> unused })
}

/// A type, one level deep.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each field is what its name says")]
pub enum RawType<'a> {
    Tensor {
        shape: List<'a>,
        element: u32,
        encoding: Option<AttributeId>,
    },
    /// An element type, as authored.
    Element(&'static str),
    Function {
        results: List<'a>,
        operands: List<'a>,
    },
    Handle(u32),
    Token,
    Image {
        format: AttributeId,
        height: u64,
        width: u64,
    },
    Named(&'a str),
    Opaque,
}

/// Decodes the type at `id`; out of range or malformed is opaque.
pub fn raw_type<'a>(tables: &Tables<'a>, id: u32) -> RawType<'a> {
    let Some(entry) = tables.types.get(id as usize) else { return RawType::Opaque };
    decode_type(tables, *entry).unwrap_or(RawType::Opaque)
}

fn decode_type<'a>(tables: &Tables<'a>, entry: Entry) -> Decoded<RawType<'a>> {
    if entry.encoding != Encoding::Core {
        return Ok(RawType::Opaque);
    }
    let cursor = &mut tables.cursor(entry.place);
    let code = cursor.varint()?;
    let decoded = match code {
        1 => {
            let name = tables.string(cursor)?;
            List::read(cursor)?;
            RawType::Named(name)
        }
        2 | 3 => RawType::Tensor {
            shape: List::read(cursor)?,
            element: cursor.index()?,
            encoding: if code == 3 { Some(cursor.index()?) } else { None },
        },
        30 => RawType::Function { results: List::read(cursor)?, operands: List::read(cursor)? },
        31 => RawType::Handle(cursor.index()?),
        32 => RawType::Token,
        39 | 40 => {
            let format = cursor.index()?;
            let (height, width) = (cursor.varint()?, cursor.varint()?);
            if code == 40 {
                cursor.index()?;
            }
            RawType::Image { format, height, width }
        }
        _ => match element(code) {
            Some(name) => RawType::Element(name),
            None => return Ok(RawType::Opaque),
        },
    };
    Ok(if cursor.is_done() { decoded } else { RawType::Opaque })
}

/// The authored spelling of an element type code.
fn element(code: u64) -> Option<&'static str> {
    Some(match code {
        4 => "i1",
        5 => "f64",
        6 => "f32",
        7 => "f16",
        8 => "bf16",
        9 => "f8E5M2",
        10 => "f8E4M3FN",
        11 => "complex<f64>",
        12 => "complex<f32>",
        13 => "complex<f16>",
        14 => "complex<bf16>",
        15 => "complex<f8E5M2>",
        16 => "complex<f8E4M3FN>",
        17 => "si64",
        18 => "si32",
        19 => "si16",
        20 => "si8",
        21 => "si4",
        22 => "si2",
        23 => "ui64",
        24 => "ui32",
        25 => "ui16",
        26 => "ui8",
        27 => "ui4",
        28 => "ui2",
        29 => "ui1",
        36 => "ui6",
        37 => "ui3",
        38 => "tf32",
        46 => "f4E2M1FN",
        47 => "f8E8M0FNU",
        _ => return None,
    })
}
