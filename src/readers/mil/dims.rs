//! Run-time dims of results. The language gives them no names: a `?` of an op that keeps its input's
//! shape is that input's dim, any other depends on the symbols that reach the op.

use crate::graph::{Category, Dim, DimExpr, Names, Op, Shapes, SymbolId};

/// The dims of a result with every `?` told by the operands, as far as they tell.
pub(super) fn resolve(
    names: &mut Names,
    shapes: &mut Shapes,
    op: Op,
    operands: &[Vec<Dim>],
    dims: &[Dim],
) -> Vec<Dim> {
    let keeps = matches!(
        op.category(),
        Category::Elementwise | Category::Activation | Category::Logic | Category::Normalization
    ) || matches!(
        op,
        Op::CAST | Op::IDENTITY | Op::LINEAR | Op::CONCAT | Op::CUMSUM | Op::PAD
    );
    let mut symbols: Vec<SymbolId> = operands
        .iter()
        .flatten()
        .filter(|dim| !matches!(dim, Dim::Static(_) | Dim::Unknown))
        .flat_map(|dim| shapes.symbols_of(*dim))
        .collect();
    symbols.sort_unstable();
    symbols.dedup();
    if symbols.is_empty() {
        return dims.to_vec();
    }
    dims.iter()
        .enumerate()
        .map(|(axis, dim)| {
            if *dim != Dim::Unknown {
                return *dim;
            }
            // Broadcasting aligns the last axes.
            let same = operands.iter().find_map(|operand| {
                let at = (axis + operand.len()).checked_sub(dims.len())?;
                operand.get(at).filter(|dim| !matches!(dim, Dim::Static(_) | Dim::Unknown))
            });
            match same {
                Some(same) if keeps => *same,
                _ => depends(names, shapes, &symbols),
            }
        })
        .collect()
}

/// A dim that depends on symbols in a way that the file does not say.
fn depends(names: &mut Names, shapes: &mut Shapes, symbols: &[SymbolId]) -> Dim {
    let listed: Vec<&str> = symbols
        .iter()
        .filter_map(|id| shapes.symbol(*id))
        .map(|symbol| names.get(symbol.name))
        .collect();
    let text = format!("?({})", listed.join(", "));
    let expr = DimExpr { text: names.intern(&text), symbols: symbols.to_vec() };
    let at = shapes.exprs.iter().position(|known| *known == expr).unwrap_or_else(|| {
        shapes.exprs.push(expr);
        shapes.exprs.len() - 1
    });
    Dim::Expr(at as u32)
}
