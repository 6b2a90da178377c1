//! Element types and declared shapes.

use super::wire::proto;
use crate::graph::{DType, Dim, Program, Symbol, SymbolId};
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;

/// The element type of a number of the format's `DataType`.
pub(super) fn dtype(number: i64) -> DType {
    match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        8 => DType::String,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        14 => DType::Complex64,
        15 => DType::Complex128,
        16 => DType::BF16,
        // The variants without a negative zero (18, 20) take the same bits.
        17 | 18 => DType::F8E4M3,
        19 | 20 => DType::F8E5M2,
        21 => DType::U4,
        22 => DType::I4,
        23 => DType::F4E2M1,
        24 => DType::F8E8M0,
        25 => DType::U2,
        26 => DType::I2,
        _ => DType::Unknown,
    }
}

/// What a value is declared as.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Declared {
    pub dtype: DType,
    /// `None` if not even the rank is told.
    pub dims: Option<Vec<Dim>>,
}

/// Dims by name: equal names are one symbol.
#[derive(Default)]
pub(super) struct Symbols {
    known: HashMap<String, SymbolId, FxBuildHasher>,
}

impl Symbols {
    /// The symbol of a name.
    pub fn named(&mut self, program: &mut Program, name: &str, data_dependent: bool) -> Dim {
        if let Some(known) = self.known.get(name) {
            return Dim::Symbol(*known);
        }
        let symbols = &mut program.shapes.symbols;
        let id = SymbolId(symbols.len() as u32);
        let text = program.names.intern(name);
        symbols.push(Symbol { name: text, min: 0, max: None, data_dependent });
        self.known.insert(name.to_owned(), id);
        Dim::Symbol(id)
    }

    /// Takes the ranges that the file tells of symbols.
    pub fn limit(&self, program: &mut Program, ranges: &[(String, u64, Option<u64>)]) {
        for (name, min, max) in ranges {
            let symbol =
                self.known.get(name).and_then(|id| program.shapes.symbols.get_mut(id.0 as usize));
            if let Some(symbol) = symbol {
                (symbol.min, symbol.max) = (*min, *max);
            }
        }
    }

    /// A type as declared. `input` names the input that it is of: a size that nobody names there is a
    /// symbol of that input.
    pub fn declared(
        &mut self,
        program: &mut Program,
        ty: Option<&proto::Type>,
        input: Option<&str>,
    ) -> Declared {
        use proto::r#type::Value;
        let tensor = match ty.and_then(|ty| ty.value.as_ref()) {
            Some(Value::TensorType(tensor) | Value::SparseTensorType(tensor)) => tensor,
            // Sequences, maps and optional values are no tensors.
            Some(_) | None => return Declared::default(),
        };
        let dims = tensor.shape.as_ref().map(|shape| {
            let dims = shape.dim.iter().enumerate();
            dims.map(|(axis, dim)| self.dim(program, dim, axis, input)).collect()
        });
        Declared { dtype: dtype(i64::from(tensor.elem_type)), dims }
    }

    fn dim(
        &mut self,
        program: &mut Program,
        dim: &proto::Dim,
        axis: usize,
        input: Option<&str>,
    ) -> Dim {
        use proto::dim::Value;
        match (&dim.value, input) {
            (Some(Value::DimValue(n)), _) if *n >= 0 => Dim::Static(*n as u64),
            (Some(Value::DimParam(name)), _) if !name.is_empty() => {
                self.named(program, name, false)
            }
            (_, Some(input)) => self.named(program, &format!("{input}_{axis}"), false),
            (_, None) => Dim::Unknown,
        }
    }
}
