//! One layer: decoded by the table of fields, parameters flattened under their own names.

use bytes::{Buf, Bytes};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::table::{Field, Kind, Message};
use crate::graph::DType;

/// Messages inside messages; the format's own nest four deep.
const DEPTH: usize = 8;

/// A layer.
#[derive(Default)]
pub(super) struct Layer {
    pub name: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// Shapes of the outputs where declared: `None` where only the rank or nothing is.
    pub shapes: Vec<Option<Vec<u64>>>,
    /// `convolution`, `pooling.MAX`; empty if the file is newer than the table.
    pub spelling: String,
    pub params: Vec<(&'static str, Param)>,
}

/// A parameter.
#[derive(Debug, Clone)]
pub(super) enum Param {
    Flag(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Text(String),
    Word(&'static str),
    /// A message is there; its own fields follow.
    Present,
    Weights(DType, Bytes),
    /// A nested network.
    Network(Bytes),
}

/// Kinds that hold several functions, with the parameter that tells which.
const CHOICES: &[(&str, &str)] = &[
    ("pooling", "type"),
    ("pooling3d", "type"),
    ("globalPooling3d", "type"),
    ("unary", "type"),
    ("reduce", "mode"),
    ("reorganizeData", "mode"),
    ("upsample", "mode"),
];

impl Layer {
    /// Decodes a layer.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are no message.
    pub fn decode(mut bytes: Bytes) -> Result<Layer, DecodeError> {
        let mut layer = Layer::default();
        let table = Message::named("NeuralNetworkLayer");
        let mut kind = "";
        while bytes.has_remaining() {
            let (tag, wire) = decode_key(&mut bytes)?;
            let field = table.and_then(|table| table.field(tag));
            match (field.map(|field| (field.name, &field.kind)), wire) {
                (Some(("name", _)), _) => layer.name = text(wire, &mut bytes)?,
                (Some(("input", _)), _) => layer.inputs.push(text(wire, &mut bytes)?),
                (Some(("output", _)), _) => layer.outputs.push(text(wire, &mut bytes)?),
                (Some(("outputTensor", _)), WireType::LengthDelimited) => {
                    let piece = slice(&mut bytes)?;
                    let mut params = Vec::new();
                    if let Some(tensor) = Message::named("Tensor") {
                        message(tensor, piece, DEPTH, &mut params)?;
                    }
                    layer.shapes.push(declared(&params));
                }
                (Some((name, Kind::Message(at))), WireType::LengthDelimited) if tag >= 100 => {
                    let piece = slice(&mut bytes)?;
                    kind = name;
                    if let Some(table) = Message::at(*at) {
                        message(table, piece, DEPTH, &mut layer.params)?;
                        layer.choose(kind, table);
                    }
                }
                _ => skip_field(wire, tag, &mut bytes, DecodeContext::default())?,
            }
        }
        if layer.spelling.is_empty() {
            layer.spelling = kind.to_owned();
        }
        Ok(layer)
    }

    /// The spelling of a kind that holds several functions.
    fn choose(&mut self, kind: &'static str, table: &'static Message) {
        if let Some((_, param)) = CHOICES.iter().find(|(known, _)| *known == kind) {
            // Number 0 is not stored.
            let first =
                table.fields.iter().find(|field| field.name == *param).and_then(
                    |field| match field.kind {
                        Kind::Word(words) => words.iter().find(|(n, _)| *n == 0).map(|(_, w)| *w),
                        _ => None,
                    },
                );
            let word = self.word(param).or(first).unwrap_or("");
            self.spelling = format!("{kind}.{word}");
            return;
        }
        let flag = |name: &str| self.int(name).is_some_and(|n| n != 0);
        self.spelling = match kind {
            "activation" => {
                let function =
                    self.params.iter().find(|(_, param)| matches!(param, Param::Present));
                format!("activation.{}", function.map_or("", |(name, _)| name))
            }
            "convolution" if flag("isDeconvolution") => "deconvolution".to_owned(),
            "convolution3d" if flag("isDeconvolution") => "deconvolution3d".to_owned(),
            "batchnorm" if flag("instanceNormalization") => "instancenorm".to_owned(),
            _ => kind.to_owned(),
        };
    }

    /// A parameter by name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|(known, _)| *known == name).map(|(_, param)| param)
    }

    /// Whole numbers of a parameter.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.param(name)? {
            Param::Ints(list) => Some(list),
            _ => None,
        }
    }

    /// One whole number, or a flag as one.
    pub fn int(&self, name: &str) -> Option<i64> {
        if let Some(Param::Flag(flag)) = self.param(name) {
            return Some(i64::from(*flag));
        }
        self.ints(name)?.first().copied()
    }

    /// A word.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.param(name)? {
            Param::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A declared shape, if every dim is.
fn declared(params: &[(&'static str, Param)]) -> Option<Vec<u64>> {
    let ints = |name: &str| {
        params.iter().find_map(|(known, param)| match param {
            Param::Ints(list) if *known == name => Some(list.as_slice()),
            _ => None,
        })
    };
    let dims = ints("dimValue")?;
    let rank = ints("rank").and_then(|list| list.first().copied())?;
    (dims.len() as i64 == rank && dims.iter().all(|n| *n > 0))
        .then(|| dims.iter().map(|n| *n as u64).collect())
}

/// Decodes a message, its nested ones too, into a flat list of parameters.
fn message(
    table: &'static Message,
    mut bytes: Bytes,
    depth: usize,
    params: &mut Vec<(&'static str, Param)>,
) -> Result<(), DecodeError> {
    while bytes.has_remaining() {
        let (tag, wire) = decode_key(&mut bytes)?;
        match table.field(tag) {
            Some(field) if depth > 0 => value(field, wire, &mut bytes, depth, params)?,
            _ => skip_field(wire, tag, &mut bytes, DecodeContext::default())?,
        }
    }
    Ok(())
}

fn value(
    field: &'static Field,
    wire: WireType,
    bytes: &mut Bytes,
    depth: usize,
    params: &mut Vec<(&'static str, Param)>,
) -> Result<(), DecodeError> {
    match (&field.kind, wire) {
        (Kind::Message(at), WireType::LengthDelimited) => {
            let piece = slice(bytes)?;
            match Message::at(*at) {
                Some(table) if table.name == "WeightParams" => {
                    let (dtype, payload) = weights(piece)?;
                    params.push((field.name, Param::Weights(dtype, payload)));
                }
                // Zeros are not stored, and an edge must not take another one's place.
                Some(table) if table.name == "EdgeSizes" => {
                    let mut edge = Vec::new();
                    message(table, piece, depth - 1, &mut edge)?;
                    for field in table.fields {
                        let size = edge.iter().find_map(|(name, param)| match param {
                            Param::Ints(list) if *name == field.name => list.first().copied(),
                            _ => None,
                        });
                        add_ints(field, params, [size.unwrap_or(0)]);
                    }
                }
                Some(table) => {
                    params.push((field.name, Param::Present));
                    message(table, piece, depth - 1, params)?;
                }
                None => {}
            }
        }
        (Kind::Bytes, WireType::LengthDelimited) => {
            params.push((field.name, Param::Network(slice(bytes)?)));
        }
        (Kind::Text, WireType::LengthDelimited) => {
            params.push((field.name, Param::Text(text(wire, bytes)?)));
        }
        (Kind::Float, WireType::ThirtyTwoBit) => {
            let x = f64::from(f32::from_bits(fixed(bytes, 4)? as u32));
            add_floats(field, params, [x]);
        }
        (Kind::Double, WireType::SixtyFourBit) => {
            let x = f64::from_bits(fixed(bytes, 8)?);
            add_floats(field, params, [x]);
        }
        (Kind::Float, WireType::LengthDelimited) if field.repeated => {
            let run = slice(bytes)?;
            let list = run.chunks_exact(4).filter_map(|b| b.try_into().ok());
            add_floats(field, params, list.map(|b| f64::from(f32::from_le_bytes(b))));
        }
        (Kind::Word(words), WireType::Varint) => {
            let number = decode_varint(bytes)? as i32;
            if let Some((_, word)) = words.iter().find(|(n, _)| *n == number) {
                params.push((field.name, Param::Word(word)));
            }
        }
        (Kind::Bool, WireType::Varint) if !field.repeated => {
            let flag = decode_varint(bytes)? != 0;
            params.push((field.name, Param::Flag(flag)));
        }
        (Kind::Signed | Kind::Unsigned | Kind::Bool, WireType::Varint) => {
            let number = decode_varint(bytes)? as i64;
            add_ints(field, params, [number]);
        }
        (Kind::Signed | Kind::Unsigned | Kind::Bool, WireType::LengthDelimited) => {
            let run = slice(bytes)?;
            let list = super::super::packed::varints(&run, usize::MAX);
            add_ints(field, params, list);
        }
        _ => skip_field(wire, field.number, bytes, DecodeContext::default())?,
    }
    Ok(())
}

/// Adds whole numbers: occurrences of one name gather in one list.
fn add_ints(
    field: &'static Field,
    params: &mut Vec<(&'static str, Param)>,
    numbers: impl IntoIterator<Item = i64>,
) {
    for (name, param) in params.iter_mut() {
        if let (true, Param::Ints(list)) = (*name == field.name, param) {
            list.extend(numbers);
            return;
        }
    }
    params.push((field.name, Param::Ints(numbers.into_iter().collect())));
}

/// The same for real numbers.
fn add_floats(
    field: &'static Field,
    params: &mut Vec<(&'static str, Param)>,
    numbers: impl IntoIterator<Item = f64>,
) {
    for (name, param) in params.iter_mut() {
        if let (true, Param::Floats(list)) = (*name == field.name, param) {
            list.extend(numbers);
            return;
        }
    }
    params.push((field.name, Param::Floats(numbers.into_iter().collect())));
}

/// Element type and bytes of a weight; quantised ones by their number of bits.
fn weights(mut bytes: Bytes) -> Result<(DType, Bytes), DecodeError> {
    let mut found = (DType::Unknown, Bytes::new());
    let mut bits = 0;
    while bytes.has_remaining() {
        let (tag, wire) = decode_key(&mut bytes)?;
        match (tag, wire) {
            (1, WireType::LengthDelimited) => found = (DType::F32, slice(&mut bytes)?),
            (2, WireType::LengthDelimited) => found = (DType::F16, slice(&mut bytes)?),
            (30, WireType::LengthDelimited) => found = (DType::U8, slice(&mut bytes)?),
            (31, WireType::LengthDelimited) => found = (DType::I8, slice(&mut bytes)?),
            (40, WireType::LengthDelimited) => {
                let mut quantization = slice(&mut bytes)?;
                while quantization.has_remaining() {
                    let (tag, wire) = decode_key(&mut quantization)?;
                    if (tag, wire) == (1, WireType::Varint) {
                        bits = decode_varint(&mut quantization)?;
                    } else {
                        skip_field(wire, tag, &mut quantization, DecodeContext::default())?;
                    }
                }
            }
            _ => skip_field(wire, tag, &mut bytes, DecodeContext::default())?,
        }
    }
    if found.0 == DType::U8 {
        found.0 = match bits {
            1 => DType::U1,
            2 => DType::U2,
            3 => DType::U3,
            4 => DType::U4,
            6 => DType::U6,
            8 => DType::U8,
            _ => DType::Unknown,
        };
    }
    Ok(found)
}

/// A length-delimited piece, as a slice of the file.
fn slice(bytes: &mut Bytes) -> Result<Bytes, DecodeError> {
    let mut piece = Bytes::new();
    let context = DecodeContext::default();
    prost::encoding::bytes::merge(WireType::LengthDelimited, &mut piece, bytes, context)?;
    Ok(piece)
}

fn text(wire: WireType, bytes: &mut Bytes) -> Result<String, DecodeError> {
    let mut text = String::new();
    prost::encoding::string::merge(wire, &mut text, bytes, DecodeContext::default())?;
    Ok(text)
}

/// A fixed-width number of 4 or 8 bytes, as bits.
fn fixed(bytes: &mut Bytes, width: usize) -> Result<u64, DecodeError> {
    if width == 4 {
        let mut bits = 0u32;
        let context = DecodeContext::default();
        prost::encoding::fixed32::merge(WireType::ThirtyTwoBit, &mut bits, bytes, context)?;
        return Ok(u64::from(bits));
    }
    let mut bits = 0u64;
    let context = DecodeContext::default();
    prost::encoding::fixed64::merge(WireType::SixtyFourBit, &mut bits, bytes, context)?;
    Ok(bits)
}
