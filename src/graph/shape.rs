//! Shapes: interned lists of dims, each a number, a symbol or an expression over symbols.

use std::collections::HashMap;

use super::{Name, Names};

/// Index of a [`Symbol`] in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// A dynamic size with its range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The format's own name for it (`s30`, `dim_0`).
    pub name: Name,
    /// Smallest size allowed.
    pub min: u64,
    /// Largest size allowed; `None` if unbounded.
    pub max: Option<u64>,
    /// Whether the size depends on data (an unbacked symbol, a `non_zero`), not on an input's shape.
    pub data_dependent: bool,
}

/// One extent of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Static(u64),
    /// A symbol by itself.
    Symbol(SymbolId),
    /// An expression over symbols; index into [`Shapes::exprs`].
    Expr(u32),
    /// The file does not say.
    Unknown,
}

impl Dim {
    /// The number, if static.
    pub const fn value(self) -> Option<u64> {
        match self {
            Dim::Static(n) => Some(n),
            _ => None,
        }
    }
}

/// An expression over symbols, kept as text (for people) and as the symbols in it (for rules).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DimExpr {
    /// Readable text such as `128*s30`.
    pub text: Name,
    /// The symbols it mentions.
    pub symbols: Vec<SymbolId>,
}

/// An interned shape; read with [`Shapes::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

impl ShapeId {
    /// Rank unknown, in every table.
    pub const UNKNOWN: ShapeId = ShapeId(0);
    /// Rank 0, in every table.
    pub const SCALAR: ShapeId = ShapeId(1);
}

/// A shape: `dims()` is `None` when not even the rank is known.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    dims: Option<&'a [Dim]>,
}

impl<'a> Shape<'a> {
    /// The dims, outermost first; `None` if the rank is unknown.
    pub fn dims(self) -> Option<&'a [Dim]> {
        self.dims
    }

    /// Number of dims, if known.
    pub fn rank(self) -> Option<usize> {
        self.dims.map(<[Dim]>::len)
    }

    /// The dim at `index`, from the end if negative; `None` if out of range or unknown.
    pub fn dim(self, index: i64) -> Option<Dim> {
        let dims = self.dims?;
        let at = if index < 0 { dims.len() as i64 + index } else { index };
        usize::try_from(at).ok().and_then(|at| dims.get(at).copied())
    }

    /// Number of elements; `None` unless every dim is static and the product fits.
    pub fn elements(self) -> Option<u64> {
        self.dims?.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?))
    }

    /// Whether every dim is a number.
    pub fn is_static(self) -> bool {
        self.dims.is_some_and(|dims| dims.iter().all(|dim| matches!(dim, Dim::Static(_))))
    }
}

/// The shapes and symbols of a program.
#[derive(Debug, Clone)]
pub struct Shapes {
    dims: Vec<Dim>,
    /// `(start, len)` in `dims`; `u32::MAX` as length for an unknown rank.
    ranges: Vec<(u32, u32)>,
    lookup: HashMap<Box<[Dim]>, ShapeId, rustc_hash::FxBuildHasher>,
    /// Expressions that [`Dim::Expr`] points at.
    pub exprs: Vec<DimExpr>,
    /// Symbols that [`Dim::Symbol`] points at.
    pub symbols: Vec<Symbol>,
}

impl Default for Shapes {
    fn default() -> Self {
        let mut shapes = Shapes {
            dims: Vec::new(),
            ranges: vec![(0, u32::MAX)],
            lookup: HashMap::default(),
            exprs: Vec::new(),
            symbols: Vec::new(),
        };
        shapes.intern(&[]);
        shapes
    }
}

impl Shapes {
    /// The id of a shape of known rank, adding it if it is new.
    pub fn intern(&mut self, dims: &[Dim]) -> ShapeId {
        if let Some(&id) = self.lookup.get(dims) {
            return id;
        }
        let id = ShapeId(self.ranges.len() as u32);
        self.ranges.push((self.dims.len() as u32, dims.len() as u32));
        self.dims.extend_from_slice(dims);
        self.lookup.insert(dims.into(), id);
        id
    }

    /// The id of a static shape.
    pub fn intern_static(&mut self, dims: &[u64]) -> ShapeId {
        let dims: Vec<Dim> = dims.iter().map(|&n| Dim::Static(n)).collect();
        self.intern(&dims)
    }

    /// The shape of an id; of unknown rank for an id of another table.
    pub fn get(&self, id: ShapeId) -> Shape<'_> {
        match self.ranges.get(id.0 as usize) {
            Some(&(start, len)) if len != u32::MAX => {
                Shape { dims: Some(&self.dims[start as usize..(start + len) as usize]) }
            }
            _ => Shape { dims: None },
        }
    }

    /// The symbol of an id.
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id.0 as usize)
    }

    /// The symbols a dim mentions.
    pub fn symbols_of(&self, dim: Dim) -> Vec<SymbolId> {
        match dim {
            Dim::Symbol(id) => vec![id],
            Dim::Expr(expr) => {
                self.exprs.get(expr as usize).map(|e| e.symbols.clone()).unwrap_or_default()
            }
            Dim::Static(_) | Dim::Unknown => Vec::new(),
        }
    }

    /// Text of a dim for people: `128`, `s30`, `?`.
    pub fn dim_text(&self, names: &Names, dim: Dim) -> String {
        match dim {
            Dim::Static(n) => n.to_string(),
            Dim::Symbol(id) => self
                .symbol(id)
                .map_or_else(|| "?".to_owned(), |symbol| names.get(symbol.name).to_owned()),
            Dim::Expr(expr) => self
                .exprs
                .get(expr as usize)
                .map_or_else(|| "?".to_owned(), |e| names.get(e.text).to_owned()),
            Dim::Unknown => "?".to_owned(),
        }
    }

    /// Text of a shape for people: `1×64×1×32`, `scalar`, `?`.
    pub fn text(&self, names: &Names, id: ShapeId) -> String {
        match self.get(id).dims() {
            None => "?".to_owned(),
            Some([]) => "scalar".to_owned(),
            Some(dims) => {
                dims.iter().map(|&dim| self.dim_text(names, dim)).collect::<Vec<_>>().join("×")
            }
        }
    }
}
