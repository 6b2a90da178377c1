//! A program: the functions of one model file and what they share.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    BlobFile, Confirmed, Constant, ConstantId, Function, FunctionId, FunctionRole, Name, Names,
    Payload, Shapes, Sources, ValueSummary,
};

/// The formats that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each variant is its file extension")]
pub enum Format {
    Pt2,
    AiModel,
    AiModelC,
    MlPackage,
    MlModel,
    MlModelC,
    Mil,
    Mlir,
    Onnx,
}

impl Format {
    /// The name in JSON and rules: the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pt2 => "pt2",
            Format::AiModel => "aimodel",
            Format::AiModelC => "aimodelc",
            Format::MlPackage => "mlpackage",
            Format::MlModel => "mlmodel",
            Format::MlModelC => "mlmodelc",
            Format::Mil => "mil",
            Format::Mlir => "mlir",
            Format::Onnx => "onnx",
        }
    }
}

/// One model file, read.
#[derive(Debug, Clone)]
pub struct Program {
    /// The path the user named.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// What wrote it (`torch 2.15.0`, `coreai-core 1.0.0b3`), or empty.
    pub producer: String,
    /// Interned strings of everything below.
    pub names: Names,
    /// Interned shapes and symbols.
    pub shapes: Shapes,
    /// Interned frames, stacks and module paths.
    pub sources: Sources,
    /// Constants of all functions.
    pub constants: Vec<Constant>,
    /// Where their bytes lie.
    pub blob_files: Vec<BlobFile>,
    /// Functions; nested graphs too.
    pub functions: Vec<Function>,
    /// Things worth a word that are no error (a missing weight file, an op this program does not
    /// know), for `-v` and JSON.
    pub notes: Vec<String>,
    /// Facts of the file that are neither graph nor constant (`coremltools-version` → `9.0`,
    /// `decomposed` → `true`), for rules that ask for metadata.
    pub metadata: Vec<(Name, Name)>,
    /// What a real compile said of ops, where the file tells it (`analytics.mil`).
    pub confirmed: Vec<Confirmed>,
}

impl Program {
    /// An empty program.
    pub fn new(path: PathBuf, format: Format) -> Program {
        Program {
            path,
            format,
            producer: String::new(),
            names: Names::default(),
            shapes: Shapes::default(),
            sources: Sources::default(),
            constants: Vec::new(),
            blob_files: Vec::new(),
            functions: Vec::new(),
            notes: Vec::new(),
            metadata: Vec::new(),
            confirmed: Vec::new(),
        }
    }

    /// A function by id.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Functions that are linted: entries and their nested graphs.
    pub fn linted(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        self.functions
            .iter()
            .enumerate()
            .filter(|(_, function)| {
                matches!(function.role, FunctionRole::Entry | FunctionRole::Branch { .. })
            })
            .map(|(id, function)| (FunctionId(id as u32), function))
    }

    /// A constant by id.
    pub fn constant(&self, id: ConstantId) -> &Constant {
        &self.constants[id.0 as usize]
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, constant: Constant) -> ConstantId {
        self.constants.push(constant);
        ConstantId(self.constants.len() as u32 - 1)
    }

    /// A metadata value by key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let key = self.names.find(key)?;
        self.metadata
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| self.names.get(*value))
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        self.names.get(name)
    }

    /// Number of elements of a constant, if its shape is static.
    pub fn elements(&self, id: ConstantId) -> Option<u64> {
        self.shapes.get(self.constant(id).shape).elements()
    }

    /// The values of a constant that the graph itself shows (inline or splat), without touching a
    /// blob.
    pub fn inline_summary(&self, id: ConstantId) -> Option<ValueSummary> {
        let mut summary = ValueSummary::default();
        match &self.constant(id).payload {
            Payload::Values(values) => values.iter().for_each(|&value| summary.add(value)),
            Payload::Splat(value) => summary.add(*value),
            Payload::Blob(_) | Payload::Text(_) | Payload::Unknown => return None,
        }
        Some(summary)
    }
}
