//! Small whole-number tensors whose elements are known without running anything: sizes, and what graphs
//! reckon with them to build the shape of a reshape. Exports with dynamic sizes are full of it.

use crate::graph::{Attr, ConstantId, Dim, DraftNode, DraftOperand, Name, Op, Payload, Program};

use super::types::Declared;

/// Elements that are followed.
const LONGEST: usize = 64;

/// One element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Element {
    Int(i64),
    /// A size that is no number, or not known.
    Size(Dim),
}

impl Element {
    /// A dim as an element.
    pub fn of_dim(dim: Dim) -> Element {
        match dim {
            Dim::Static(n) => i64::try_from(n).map_or(Element::Size(Dim::Unknown), Element::Int),
            dim => Element::Size(dim),
        }
    }

    /// The element as a dim; unknown for what is none.
    pub fn dim(self) -> Dim {
        match self {
            Element::Int(n) => u64::try_from(n).map_or(Dim::Unknown, Dim::Static),
            Element::Size(dim) => dim,
        }
    }
}

/// The elements of a constant.
pub(super) fn of_constant(program: &Program, id: ConstantId) -> Option<Vec<Element>> {
    let constant = program.constants.get(id.0 as usize)?;
    let shape = program.shapes.get(constant.shape);
    if !constant.dtype.is_int() || shape.rank()? > 1 {
        return None;
    }
    let count = shape.elements()?;
    if count > LONGEST as u64 {
        return None;
    }
    match &constant.payload {
        Payload::Values(list) => Some(list.iter().map(|&x| Element::Int(x as i64)).collect()),
        Payload::Splat(x) => Some(vec![Element::Int(*x as i64); count as usize]),
        _ => None,
    }
}

/// The elements of a node's first result, given those of its operands.
pub(super) fn evaluate(
    program: &Program,
    node: &DraftNode,
    operands: &[Option<Vec<Element>>],
    declared: impl Fn(DraftOperand) -> Option<Declared>,
) -> Option<Vec<Element>> {
    let attr = |word: &str| program.names.find(word).and_then(|name| node.attribute(name));
    let int = |word: &str| attr(word).and_then(Attr::as_int);
    let named = |word: &str| -> Option<&Vec<Element>> {
        let name: Name = program.names.find(word)?;
        let at = node.operands.iter().position(|(known, _)| *known == name)?;
        operands.get(at)?.as_ref()
    };
    let first = || operands.first().and_then(Option::as_ref);
    let list = match node.op {
        Op::SHAPE => {
            let dims = declared(node.operands.first()?.1)?.dims?;
            let (start, end) = shape_range(dims.len(), int("start"), int("end"));
            dims.get(start..end.max(start))?.iter().map(|&dim| Element::of_dim(dim)).collect()
        }
        Op::NUMEL => {
            let dims = declared(node.operands.first()?.1)?.dims?;
            let product = dims.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?))?;
            vec![Element::Int(i64::try_from(product).ok()?)]
        }
        Op::IDENTITY | Op::CAST | Op::SQUEEZE | Op::UNSQUEEZE | Op::RESHAPE | Op::FLATTEN => {
            let whole = node.results.first()?.1.is_int();
            first().filter(|_| whole)?.clone()
        }
        Op::CONCAT => {
            let mut all = Vec::new();
            for part in operands {
                all.extend(part.as_ref()?.iter().copied());
                if all.len() > LONGEST {
                    return None;
                }
            }
            all
        }
        Op::GATHER => {
            let (data, indices) = (named("input")?, named("indices")?);
            indices
                .iter()
                .map(|index| match index {
                    Element::Int(at) => {
                        let at = if *at < 0 { at + data.len() as i64 } else { *at };
                        usize::try_from(at).ok().and_then(|at| data.get(at).copied())
                    }
                    Element::Size(_) => None,
                })
                .collect::<Option<_>>()?
        }
        Op::SELECT => {
            let data = first()?;
            let at = int("index")?;
            let at = if at < 0 { at + data.len() as i64 } else { at };
            vec![*data.get(usize::try_from(at).ok()?)?]
        }
        Op::SLICE => {
            let data = first()?;
            let len = data.len() as i64;
            let clip = |n: i64| if n < 0 { n.saturating_add(len) } else { n }.clamp(0, len);
            let (begin, end) = (clip(int("begin")?), clip(int("end")?));
            if int("step").unwrap_or(1) != 1 {
                return None;
            }
            data.get(begin as usize..end.max(begin) as usize)?.to_vec()
        }
        Op::ADD | Op::SUB | Op::MUL | Op::DIV | Op::FLOOR_DIV => {
            let [Some(a), Some(b)] = operands else { return None };
            let size = if a.is_empty() || b.is_empty() { 0 } else { a.len().max(b.len()) };
            let one = |list: &[Element], at: usize| match list {
                [only] => Some(*only),
                list => list.get(at).copied(),
            };
            (0..size)
                .map(|at| Some(combine(node.op, one(a, at)?, one(b, at)?)))
                .collect::<Option<_>>()?
        }
        _ => return None,
    };
    (list.len() <= LONGEST).then_some(list)
}

fn combine(op: Op, a: Element, b: Element) -> Element {
    let unknown = Element::Size(Dim::Unknown);
    match (op, a, b) {
        (_, Element::Int(a), Element::Int(b)) => {
            let result = match op {
                Op::ADD => a.checked_add(b),
                Op::SUB => a.checked_sub(b),
                Op::MUL => a.checked_mul(b),
                // Towards zero, as the format divides.
                _ => a.checked_div(b),
            };
            result.map_or(unknown, Element::Int)
        }
        // What changes nothing keeps the symbol.
        (Op::MUL, x, Element::Int(1)) | (Op::MUL, Element::Int(1), x) => x,
        (Op::ADD, x, Element::Int(0)) | (Op::ADD, Element::Int(0), x) => x,
        (Op::SUB | Op::DIV, x, Element::Int(n)) if n == i64::from(op == Op::DIV) => x,
        _ => unknown,
    }
}

/// First and last axis that a `Shape` takes.
pub(super) fn shape_range(rank: usize, start: Option<i64>, end: Option<i64>) -> (usize, usize) {
    let clip = |n: i64| {
        let n = if n < 0 { n.saturating_add(rank as i64) } else { n };
        n.clamp(0, rank as i64) as usize
    };
    (clip(start.unwrap_or(0)), clip(end.unwrap_or(rank as i64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::SymbolId;

    #[test]
    fn arithmetic_on_sizes_keeps_a_symbol_only_where_nothing_changes() {
        let symbol = Element::Size(Dim::Symbol(SymbolId(0)));
        assert_eq!(combine(Op::MUL, symbol, Element::Int(1)), symbol);
        assert_eq!(combine(Op::SUB, symbol, Element::Int(0)), symbol);
        assert_eq!(combine(Op::MUL, symbol, Element::Int(2)), Element::Size(Dim::Unknown));
        assert_eq!(combine(Op::DIV, Element::Int(-7), Element::Int(2)), Element::Int(-3));
        assert_eq!(combine(Op::DIV, Element::Int(1), Element::Int(0)), Element::Size(Dim::Unknown));
    }
}
