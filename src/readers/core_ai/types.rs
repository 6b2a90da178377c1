//! Types of the parsed form → dtypes and shapes of the graph.

use super::ir::{Module, Tensor, Type, TypeId};
use crate::graph::{DType, Dim, Program, ShapeId};

/// The canonical dtype of an authored element type (`si32`, `f16`, `i1`).
pub fn element_dtype(element: &str) -> DType {
    match element {
        "i1" => DType::Bool,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        "f32" | "tf32" => DType::F32,
        "f64" => DType::F64,
        "f8E4M3FN" => DType::F8E4M3,
        "f8E5M2" => DType::F8E5M2,
        "f8E8M0FNU" => DType::F8E8M0,
        "f4E2M1FN" => DType::F4E2M1,
        "complex<f32>" => DType::Complex64,
        "complex<f64>" => DType::Complex128,
        "ui1" => DType::U1,
        "ui2" => DType::U2,
        "ui3" => DType::U3,
        "ui4" => DType::U4,
        "ui6" => DType::U6,
        "ui8" => DType::U8,
        "ui16" => DType::U16,
        "ui32" => DType::U32,
        "ui64" => DType::U64,
        "si2" | "i2" => DType::I2,
        "si4" | "i4" => DType::I4,
        "si8" | "i8" => DType::I8,
        "si16" | "i16" => DType::I16,
        "si32" | "i32" => DType::I32,
        "si64" | "i64" => DType::I64,
        _ => DType::Unknown,
    }
}

/// Dtype and shape of every type of a module, made once.
#[derive(Debug, Default)]
pub struct Types {
    known: Vec<(DType, ShapeId)>,
}

impl Types {
    /// Interns the shapes of all types.
    pub fn of(module: &Module<'_>, program: &mut Program) -> Types {
        let known = (0..module.types.len() as u32).map(|id| of_type(module, program, id)).collect();
        Types { known }
    }

    /// Dtype and shape of a type: those of the tensor, also through a handle.
    pub fn get(&self, id: TypeId) -> (DType, ShapeId) {
        self.known.get(id as usize).copied().unwrap_or((DType::Unknown, ShapeId::UNKNOWN))
    }
}

fn of_type(module: &Module<'_>, program: &mut Program, id: TypeId) -> (DType, ShapeId) {
    if let Some(tensor) = module.tensor(id) {
        return (tensor.dtype, shape(program, tensor));
    }
    match module.types.get(id as usize) {
        Some(Type::Token) => (DType::Token, ShapeId::SCALAR),
        _ => (DType::Unknown, ShapeId::UNKNOWN),
    }
}

fn shape(program: &mut Program, tensor: &Tensor<'_>) -> ShapeId {
    let dims: Vec<Dim> =
        tensor.shape.iter().map(|extent| extent.map_or(Dim::Unknown, Dim::Static)).collect();
    program.shapes.intern(&dims)
}
