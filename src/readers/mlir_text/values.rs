//! Attributes, types and constants of a text.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::lexer::{DEEPEST, Lexer, Parsed};
use crate::readers::core_ai::element_dtype;
use crate::readers::core_ai::ir::{Encoding, Literal, Module, Setting, Tensor, Text, Type, TypeId};

/// Most attribute aliases that are followed in one text, outside of locations.
const MOST_ALIASES: u32 = 1 << 16;

/// Types met so far, each once, and aliases by name.
#[derive(Debug, Default)]
pub struct Tables<'a> {
    types: FxHashMap<String, TypeId>,
    /// What type aliases became; one that is being read stands for an unknown type.
    type_aliases: FxHashMap<Text<'a>, TypeId>,
    /// How many attribute aliases were followed: aliases of aliases can describe huge trees.
    followed: std::cell::Cell<u32>,
    /// Where the text after `#name =` or `!name =` starts.
    pub aliases: FxHashMap<&'a str, usize>,
    /// Places of resources in the blob made of their hex texts.
    pub resources: FxHashMap<Text<'a>, (u64, u64)>,
}

impl<'a> Tables<'a> {
    /// The id of a type.
    pub fn type_id(&mut self, module: &mut Module<'a>, ty: Type<'a>) -> TypeId {
        let key = format!("{ty:?}");
        *self.types.entry(key).or_insert_with(|| {
            module.types.push(ty);
            module.types.len() as u32 - 1
        })
    }
}

/// A type.
pub fn read_type<'a>(
    lexer: &mut Lexer<'a>,
    tables: &mut Tables<'a>,
    module: &mut Module<'a>,
    text: &'a str,
    depth: u32,
) -> Parsed<TypeId> {
    if depth > DEEPEST {
        return lexer.fault("types are nested too deep");
    }
    let read = |lexer: &mut Lexer<'a>, tables: &mut Tables<'a>, module: &mut Module<'a>| {
        read_type(lexer, tables, module, text, depth + 1)
    };
    let ty = match lexer.peek() {
        // `handle` types are abbreviated where only they can stand.
        b'<' => {
            lexer.expect("<")?;
            let inner = read(lexer, tables, module)?;
            lexer.expect(">")?;
            Type::Handle(inner)
        }
        b'(' => {
            let operands = type_list(lexer, tables, module, text, depth + 1)?;
            lexer.expect("->")?;
            let results = if lexer.peek() == b'(' {
                type_list(lexer, tables, module, text, depth + 1)?
            } else {
                vec![read(lexer, tables, module)?]
            };
            Type::Function(operands.into(), results.into())
        }
        b'!' => {
            lexer.expect("!")?;
            let start = lexer.at();
            let name = lexer.name()?;
            match &*name {
                "coreai.token" => Type::Token,
                "coreai.handle" => {
                    lexer.expect("<")?;
                    let inner = read(lexer, tables, module)?;
                    lexer.expect(">")?;
                    Type::Handle(inner)
                }
                "coreai.image" => Type::Image(Cow::Borrowed(lexer.balanced()?.trim())),
                name => {
                    if let Some(&known) = tables.type_aliases.get(name) {
                        return Ok(known);
                    }
                    if let Some(&at) = tables.aliases.get(format!("!{name}").as_str()) {
                        let name: Text<'a> = Cow::Owned(name.to_owned());
                        let unknown = tables.type_id(module, Type::Other(Cow::Borrowed("?")));
                        tables.type_aliases.insert(name.clone(), unknown);
                        let mut there = Lexer::new(text, at);
                        let known = read(&mut there, tables, module)?;
                        tables.type_aliases.insert(name, known);
                        return Ok(known);
                    }
                    if lexer.looking_at("<") {
                        lexer.balanced()?;
                    }
                    Type::Other(Cow::Borrowed(lexer.since(start)))
                }
            }
        }
        _ => {
            let start = lexer.at();
            match lexer.word() {
                "" => return lexer.fault("expected a type"),
                "tensor" => {
                    lexer.expect("<")?;
                    let tensor = read_tensor(lexer)?;
                    lexer.expect(">")?;
                    Type::Tensor(tensor)
                }
                _ => {
                    if lexer.looking_at("<") {
                        lexer.balanced()?;
                    }
                    Type::Other(Cow::Borrowed(lexer.since(start)))
                }
            }
        }
    };
    Ok(tables.type_id(module, ty))
}

/// `(a, b)`.
pub fn type_list<'a>(
    lexer: &mut Lexer<'a>,
    tables: &mut Tables<'a>,
    module: &mut Module<'a>,
    text: &'a str,
    depth: u32,
) -> Parsed<Vec<TypeId>> {
    lexer.expect("(")?;
    let mut types = Vec::new();
    while !lexer.take(")") {
        types.push(read_type(lexer, tables, module, text, depth)?);
        if !lexer.take(",") && lexer.peek() != b')' {
            return lexer.fault("expected `,` or `)` in a list of types");
        }
    }
    Ok(types)
}

/// `1x?x3xf16, encoding` of a tensor.
fn read_tensor<'a>(lexer: &mut Lexer<'a>) -> Parsed<Tensor<'a>> {
    let mut shape = Vec::new();
    loop {
        if lexer.take("?") {
            shape.push(None);
            lexer.skip_x()?;
            continue;
        }
        let digits = lexer.digits();
        if digits.is_empty() {
            break;
        }
        let Ok(extent) = digits.parse() else {
            return lexer.fault(format!("{digits} is no extent"));
        };
        shape.push(Some(extent));
        lexer.skip_x()?;
    }
    let start = lexer.at();
    if lexer.take("!") {
        lexer.name()?;
    } else if lexer.word().is_empty() {
        return lexer.fault("expected an element type");
    }
    if lexer.looking_at("<") {
        lexer.balanced()?;
    }
    let element = Cow::Borrowed(lexer.since(start));
    let mut encoding = None;
    if lexer.take(",") {
        let start = lexer.at();
        lexer.expect("#")?;
        let name = lexer.name()?;
        let body = if lexer.looking_at("<") { lexer.balanced()? } else { "" };
        encoding = Some(Box::new(match &*name {
            "coreaix.hw_constraints" => constraints(body),
            _ if body.contains("bitmask") => {
                Encoding { sparse: Some(Cow::Borrowed("bitmask")), ..Encoding::default() }
            }
            _ => Encoding {
                other: Some(Cow::Borrowed(lexer.since(start).trim())),
                ..Encoding::default()
            },
        }));
    }
    Ok(Tensor { dtype: element_dtype(&element), element, shape: shape.into(), encoding })
}

/// `IOSurface, alignments: [1, 64], interleave: [1x8]`.
fn constraints(body: &str) -> Encoding<'_> {
    let list = |key: &str| -> Vec<i64> {
        let Some((_, rest)) = body.split_once(key) else { return Vec::new() };
        let inside = rest.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let numbers = inside.map_or("", |(inside, _)| inside).split([',', 'x']);
        numbers.filter_map(|number| number.trim().parse().ok()).collect()
    };
    Encoding {
        alignments: list("alignments"),
        interleave: list("interleave"),
        backing: Cow::Borrowed(body.split(',').next().unwrap_or("").trim()),
        ..Encoding::default()
    }
}

/// An attribute, as far as a setting can hold it.
pub fn setting<'a>(
    lexer: &mut Lexer<'a>,
    tables: &Tables<'a>,
    text: &'a str,
    depth: u32,
) -> Parsed<Setting<'a>> {
    if depth > DEEPEST {
        return lexer.fault("attributes are nested too deep");
    }
    match lexer.peek() {
        b'"' => Ok(Setting::Text(lexer.string()?)),
        b'[' => {
            lexer.expect("[")?;
            let mut items = Vec::new();
            while !lexer.take("]") {
                items.push(setting(lexer, tables, text, depth + 1)?);
                if !lexer.take(",") && lexer.peek() != b']' {
                    return lexer.fault("expected `,` or `]`");
                }
            }
            Ok(Setting::List(items))
        }
        b'{' => Ok(Setting::Map(dictionary(lexer, tables, text, depth + 1)?)),
        b'@' => {
            lexer.expect("@")?;
            let mut name = lexer.name()?;
            while lexer.take("::") {
                lexer.expect("@")?;
                name = format!("{name}::{}", lexer.name()?).into();
            }
            Ok(Setting::Text(name))
        }
        b'#' => {
            lexer.expect("#")?;
            let name = lexer.name()?;
            match &*name {
                "coreai.composite_declaration" => {
                    lexer.expect("<")?;
                    let name = lexer.string()?;
                    lexer.expect("=")?;
                    let fields = dictionary(lexer, tables, text, depth + 1)?;
                    lexer.expect(">")?;
                    Ok(Setting::Map(vec![(name, Setting::Map(fields))]))
                }
                "param.constant" => {
                    lexer.expect("<")?;
                    let value = setting(lexer, tables, text, depth + 1)?;
                    lexer.expect(">")?;
                    skip_type_suffix(lexer)?;
                    Ok(value)
                }
                name if lexer.looking_at("<") => {
                    let body = lexer.balanced()?.trim();
                    skip_type_suffix(lexer)?;
                    let is_word = !body.is_empty()
                        && body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    let _ = name;
                    Ok(if is_word { Setting::Text(Cow::Borrowed(body)) } else { Setting::Unit })
                }
                name => match tables.aliases.get(format!("#{name}").as_str()) {
                    Some(&at) if tables.followed.get() < MOST_ALIASES => {
                        tables.followed.set(tables.followed.get() + 1);
                        let mut there = Lexer::new(text, at);
                        setting(&mut there, tables, text, depth + 8)
                    }
                    Some(_) => Ok(Setting::Unit),
                    None => Ok(Setting::Unit),
                },
            }
        }
        b'(' | b'!' => {
            skip_type(lexer)?;
            Ok(Setting::Unit)
        }
        b'-' | b'0'..=b'9' => {
            let number = lexer.number();
            let mut suffix = "";
            if lexer.take(":") {
                let start = lexer.at();
                skip_type(lexer)?;
                suffix = lexer.since(start).trim();
            }
            let dtype = element_dtype(suffix);
            Ok(match (number.parse::<i64>(), number.strip_prefix("0x")) {
                (Ok(n), _) if dtype.is_float() => Setting::Float(n as f64),
                (Ok(n), _) => Setting::Int(n),
                (_, Some(hex)) => {
                    let bits = u64::from_str_radix(hex, 16).unwrap_or(0);
                    from_bits(bits, dtype).map_or(Setting::Int(bits as i64), Setting::Float)
                }
                _ => number.parse().map_or(Setting::Unit, |x| Setting::Float(rounded(x, dtype))),
            })
        }
        _ => match lexer.word() {
            "true" => Ok(Setting::Bool(true)),
            "false" => Ok(Setting::Bool(false)),
            "unit" => Ok(Setting::Unit),
            "" => lexer.fault("expected an attribute"),
            _ => {
                if lexer.looking_at("<") {
                    lexer.balanced()?;
                }
                skip_type_suffix(lexer)?;
                Ok(Setting::Unit)
            }
        },
    }
}

fn skip_type_suffix(lexer: &mut Lexer<'_>) -> Parsed<()> {
    if lexer.take(":") { skip_type(lexer) } else { Ok(()) }
}

/// Skips a type without making anything of it.
fn skip_type(lexer: &mut Lexer<'_>) -> Parsed<()> {
    if lexer.peek() == b'(' {
        lexer.balanced()?;
        lexer.expect("->")?;
        if lexer.peek() == b'(' {
            lexer.balanced()?;
            return Ok(());
        }
    }
    lexer.take("!");
    if lexer.word().is_empty() {
        return lexer.fault("expected a type");
    }
    if lexer.looking_at("<") {
        lexer.balanced()?;
    }
    Ok(())
}

/// `{key = value, flag, "key" = value}`.
pub fn dictionary<'a>(
    lexer: &mut Lexer<'a>,
    tables: &Tables<'a>,
    text: &'a str,
    depth: u32,
) -> Parsed<Vec<(Text<'a>, Setting<'a>)>> {
    lexer.expect("{")?;
    let mut fields = Vec::new();
    while !lexer.take("}") {
        let key = if lexer.peek() == b'"' { lexer.string()? } else { lexer.word().into() };
        if key.is_empty() {
            return lexer.fault("expected the name of an attribute");
        }
        let value = if lexer.take("=") {
            setting(lexer, tables, text, depth)?
        } else {
            Setting::Bool(true)
        };
        fields.push((key, value));
        if !lexer.take(",") && lexer.peek() != b'}' {
            return lexer.fault("expected `,` or `}`");
        }
    }
    Ok(fields)
}

/// What stands between the brackets of `dense<…>`, before the type is known.
#[derive(Debug)]
pub enum Dense<'a> {
    /// Numbers as written; one without brackets is a splat.
    Numbers {
        /// One for all.
        splat: bool,
        /// As written.
        numbers: Vec<&'a str>,
    },
    /// Bytes in hex, without `0x`.
    Hex(&'a str),
    /// A resource by key.
    Resource(Text<'a>),
}

/// `dense<…>` or `dense_resource<…>`; `None` if neither is next.
pub fn dense<'a>(lexer: &mut Lexer<'a>) -> Parsed<Option<Dense<'a>>> {
    if lexer.take("dense_resource") {
        lexer.expect("<")?;
        lexer.skip_space();
        let name = lexer.name()?;
        lexer.expect(">")?;
        return Ok(Some(Dense::Resource(name)));
    }
    if !lexer.take("dense") {
        return Ok(None);
    }
    lexer.expect("<")?;
    let mut numbers = Vec::new();
    let mut splat = false;
    match lexer.peek() {
        b'>' => {}
        b'"' => {
            let Cow::Borrowed(text) = lexer.string()? else {
                return lexer.fault("a blob is written in hex");
            };
            let Some(hex) = text.strip_prefix("0x") else {
                return lexer.fault("a blob is written in hex");
            };
            lexer.expect(">")?;
            return Ok(Some(Dense::Hex(hex)));
        }
        first => {
            splat = !matches!(first, b'[');
            loop {
                match lexer.peek() {
                    b'>' => break,
                    b'[' | b']' | b',' | b'(' | b')' => lexer.step(),
                    _ => {
                        let number = match lexer.number() {
                            "" => lexer.word(),
                            number => number,
                        };
                        if number.is_empty() {
                            return lexer.fault("expected a number");
                        }
                        numbers.push(number);
                    }
                }
            }
        }
    }
    lexer.expect(">")?;
    Ok(Some(Dense::Numbers { splat, numbers }))
}

/// A constant of a tensor type.
pub fn literal<'a>(dense: Dense<'a>, tensor: &Tensor<'_>, tables: &Tables<'a>) -> Literal<'a> {
    match dense {
        Dense::Resource(name) => {
            let place = tables.resources.get(&name).copied();
            Literal::Resource { name, place }
        }
        Dense::Numbers { splat, numbers } => {
            let values = numbers.iter().map(|number| read_number(number, tensor)).collect();
            match values {
                Some(values) => Literal::Numbers { splat, values },
                None => Literal::Opaque,
            }
        }
        Dense::Hex(hex) => match decode_hex(hex) {
            Some(bytes) => {
                let width = tensor.dtype.bits().div_ceil(8);
                let count = crate::readers::core_ai::elements(tensor);
                let splat = bytes.len() as u64 == width && count.is_some_and(|count| count > 1);
                // A blob of booleans is packed, eight to a byte.
                let is_packed = tensor.dtype == crate::graph::DType::Bool
                    && count.is_some_and(|count| bytes.len() as u64 == count.div_ceil(8))
                    && count != Some(1);
                let bytes = if is_packed {
                    let count = count.unwrap_or(0) as usize;
                    (0..count).map(|at| bytes[at / 8] >> (at % 8) & 1).collect()
                } else {
                    bytes
                };
                Literal::Inline { splat, bytes: Cow::Owned(bytes) }
            }
            None => Literal::Opaque,
        },
    }
}

fn read_number(number: &str, tensor: &Tensor<'_>) -> Option<f64> {
    match number {
        "true" => return Some(1.0),
        "false" => return Some(0.0),
        _ => {}
    }
    if let Some(hex) = number.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).ok()?;
        return Some(from_bits(bits, tensor.dtype).unwrap_or(bits as f64));
    }
    let value: f64 = number.parse().ok()?;
    Some(rounded(value, tensor.dtype))
}

/// What is printed is short; what is stored is an element of the type.
fn rounded(value: f64, dtype: crate::graph::DType) -> f64 {
    use crate::graph::DType;
    match dtype {
        DType::F16 => half::f16::from_f64(value).to_f64(),
        DType::BF16 => half::bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

fn from_bits(bits: u64, dtype: crate::graph::DType) -> Option<f64> {
    use crate::graph::DType;
    Some(match dtype {
        DType::F16 => half::f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => half::bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F64 => f64::from_bits(bits),
        _ => return None,
    })
}

/// Bytes of a hex text.
pub fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    hex.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}
