//! Sizes of what only moves, picks or folds elements.

use super::broadcast::equal;
use super::{Dims, Infer};
use crate::graph::{Attr, Dim, Op};
use crate::readers::onnx::values::Element;

impl Infer<'_> {
    /// A shape that an operand or a setting tells.
    pub(super) fn target(&self, word: &str) -> Option<Dims> {
        if let Some(list) = self.ints(word) {
            return list.into_iter().map(|n| u64::try_from(n).ok().map(Dim::Static)).collect();
        }
        if let Some(list) = self.values(word) {
            return Some(list.iter().map(|element| element.dim()).collect());
        }
        // Only the number of elements is known: the rank.
        match self.dims(word)?.as_slice() {
            [Dim::Static(rank)] if *rank <= 64 => Some(vec![Dim::Unknown; *rank as usize]),
            _ => None,
        }
    }

    pub(super) fn reshape(&self) -> Option<Dims> {
        let input = self.dims_at(0);
        let wanted: Vec<Element> = match self.ints("shape") {
            Some(list) => list.into_iter().map(Element::Int).collect(),
            None => match self.values("shape") {
                Some(list) => list.clone(),
                None => return self.target("shape"),
            },
        };
        let allow_zero = self.int("allowzero") == Some(1);
        let mut rest = None;
        let mut dims: Dims = Vec::with_capacity(wanted.len());
        for (at, element) in wanted.iter().enumerate() {
            dims.push(match element {
                Element::Int(0) if !allow_zero => {
                    input.and_then(|dims| dims.get(at).copied()).unwrap_or(Dim::Unknown)
                }
                Element::Int(-1) => {
                    rest = Some(at);
                    Dim::Unknown
                }
                element => element.dim(),
            });
        }
        if let (Some(rest), Some(input)) = (rest, input) {
            // Dims that stand on both sides cancel; what is left must be numbers.
            let mut left: Vec<Dim> = input.clone();
            let mut right: Vec<Dim> = Vec::new();
            for (at, dim) in dims.iter().enumerate().filter(|(at, _)| *at != rest) {
                let _ = at;
                match left.iter().position(|other| other == dim && *dim != Dim::Unknown) {
                    Some(place) => {
                        left.swap_remove(place);
                    }
                    None => right.push(*dim),
                }
            }
            let product =
                |list: &[Dim]| list.iter().try_fold(1u64, |n, dim| n.checked_mul(dim.value()?));
            let found = match (product(&left), product(&right)) {
                (Some(all), Some(part)) if part > 0 && all % part == 0 => Dim::Static(all / part),
                (None, Some(part)) => {
                    // One symbol beside numbers that cancel.
                    let (numbers, symbols): (Vec<Dim>, Vec<Dim>) =
                        left.iter().partition(|dim| dim.value().is_some());
                    match (symbols.as_slice(), product(&numbers)) {
                        ([symbol], Some(n)) if n == part => *symbol,
                        _ => Dim::Unknown,
                    }
                }
                _ => Dim::Unknown,
            };
            if let Some(slot) = dims.get_mut(rest) {
                *slot = found;
            }
        }
        Some(dims)
    }

    pub(super) fn flatten(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axis = usize::try_from(self.int("start_axis")?).ok().filter(|&at| at <= dims.len())?;
        let product = |list: &[Dim]| match list {
            [only] => *only,
            list => list
                .iter()
                .try_fold(1u64, |n, dim| n.checked_mul(dim.value()?))
                .map_or(Dim::Unknown, Dim::Static),
        };
        Some(vec![product(&dims[..axis]), product(&dims[axis..])])
    }

    pub(super) fn squeeze(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axes = self.ints("axes")?;
        // With no axes given it depends on every size.
        let by_size = self.site.inputs.len() < 2 && self.site.node.attributes.len() <= 1;
        if by_size && dims.iter().any(|dim| dim.value().is_none()) && axes.is_empty() {
            return None;
        }
        let kept = dims.iter().enumerate().filter(|(at, _)| !axes.contains(&(*at as i64)));
        Some(kept.map(|(_, dim)| *dim).collect())
    }

    pub(super) fn unsqueeze(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let axes = self.ints("axes")?;
        let mut rest = dims.iter();
        let rank = dims.len() + axes.len();
        (0..rank)
            .map(|at| {
                if axes.contains(&(at as i64)) {
                    Some(Dim::Static(1))
                } else {
                    rest.next().copied()
                }
            })
            .collect()
    }

    pub(super) fn transpose(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let order = self.ints("permutation")?;
        if order.len() != dims.len() {
            return None;
        }
        order
            .iter()
            .map(|&at| usize::try_from(at).ok().and_then(|at| dims.get(at).copied()))
            .collect()
    }

    pub(super) fn concat(&self) -> Option<Dims> {
        if self.site.spelling != "Concat" {
            return None;
        }
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let mut dims = self.dims_at(0)?.clone();
        for at in 1..self.site.inputs.len() {
            let other = self.dims_at(at)?;
            if other.len() != dims.len() {
                return None;
            }
            for (place, (dim, other)) in dims.iter_mut().zip(other).enumerate() {
                *dim = if place == axis {
                    match (dim.value(), other.value()) {
                        (Some(a), Some(b)) => a.checked_add(b).map_or(Dim::Unknown, Dim::Static),
                        _ => Dim::Unknown,
                    }
                } else {
                    equal(*dim, *other)
                };
            }
        }
        (axis < dims.len()).then_some(dims)
    }

    pub(super) fn split(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let size = self.ints("sizes").and_then(|list| list.first().copied());
        let size = size.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Static);
        *dims.get_mut(axis)? = size;
        Some(dims)
    }

    pub(super) fn slice(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let unknown = |dims: &mut Dims| {
            dims.iter_mut().for_each(|dim| *dim = Dim::Unknown);
        };
        let size_of = |dim: Dim, begin: i64, end: i64, step: i64| -> Dim {
            let Some(size) = dim.value().and_then(|n| i64::try_from(n).ok()) else {
                return if begin == 0 && step == 1 && end >= i64::from(i32::MAX) {
                    dim
                } else {
                    Dim::Unknown
                };
            };
            let fix = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
            let (begin, end, length) = match step {
                1.. => (fix(begin).clamp(0, size), fix(end).clamp(0, size), step),
                i64::MIN..=-1 => {
                    let begin = fix(begin).clamp(-1, size - 1);
                    // Sizes below −size mean: beyond the first element.
                    (begin, fix(end).clamp(-1, size - 1), step)
                }
                0 => return Dim::Unknown,
            };
            let span = if length > 0 { end - begin } else { begin - end };
            let count = if span <= 0 { 0 } else { (span - 1) / length.abs() + 1 };
            u64::try_from(count).map_or(Dim::Unknown, Dim::Static)
        };
        if let Some(axis) = self.int("axis") {
            let (begin, end, step) = (self.int("begin"), self.int("end"), self.int("step"));
            let place = usize::try_from(axis).ok().and_then(|at| dims.get_mut(at))?;
            *place = match (begin, end, step) {
                (Some(begin), Some(end), Some(step)) => size_of(*place, begin, end, step),
                _ => Dim::Unknown,
            };
            return Some(dims);
        }
        let lists = (self.attr("begin"), self.attr("end"), self.ints("step"));
        let (Some(Attr::Ints(begin)), Some(Attr::Ints(end)), Some(step)) = lists else {
            unknown(&mut dims);
            return Some(dims);
        };
        if begin.len() != dims.len() || end.len() != dims.len() || step.len() != dims.len() {
            unknown(&mut dims);
            return Some(dims);
        }
        for (at, dim) in dims.iter_mut().enumerate() {
            *dim = match (begin.get(at), end.get(at), step.get(at)) {
                (Some(Some(b)), Some(Some(e)), Some(s)) => size_of(*dim, *b, *e, *s),
                // No end: the axis is not cut, and its size not a number.
                (Some(Some(0)), Some(None), Some(1)) => *dim,
                _ => Dim::Unknown,
            };
        }
        Some(dims)
    }

    pub(super) fn pad(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let pads = self.ints("pads").filter(|list| list.len() == 2 * dims.len());
        let dims = dims.iter().enumerate();
        Some(
            dims.map(|(at, dim)| {
                let Some(pads) = &pads else { return Dim::Unknown };
                let total = pads.get(at).zip(pads.get(at + pads.len() / 2)).map(|(a, b)| a + b);
                match (dim, total) {
                    (dim, Some(0)) => *dim,
                    (Dim::Static(n), Some(more)) => i64::try_from(*n)
                        .ok()
                        .and_then(|n| u64::try_from(n.checked_add(more)?).ok())
                        .map_or(Dim::Unknown, Dim::Static),
                    _ => Dim::Unknown,
                }
            })
            .collect(),
        )
    }

    pub(super) fn tile(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let repeats = match self.ints("repeats") {
            Some(list) => list.into_iter().map(Element::Int).collect(),
            None => self.values("repeats").cloned().unwrap_or_default(),
        };
        let dims = dims.iter().enumerate();
        Some(
            dims.map(|(at, dim)| match (dim, repeats.get(at)) {
                (dim, Some(Element::Int(1))) => *dim,
                (Dim::Static(n), Some(Element::Int(times))) => u64::try_from(*times)
                    .ok()
                    .and_then(|times| n.checked_mul(times))
                    .map_or(Dim::Unknown, Dim::Static),
                _ => Dim::Unknown,
            })
            .collect(),
        )
    }

    pub(super) fn gather(&self) -> Option<Dims> {
        let data = self.dims_at(0)?;
        let indices = self.dims_at(1)?;
        let axis = match self.site.node.op {
            Op::EMBEDDING => 0,
            _ => usize::try_from(self.int("axis")?).ok()?,
        };
        if self.site.spelling.contains('.') || axis >= data.len() {
            return None;
        }
        let mut dims = data[..axis].to_vec();
        dims.extend(indices);
        dims.extend(&data[axis + 1..]);
        Some(dims)
    }

    pub(super) fn gather_nd(&self) -> Option<Dims> {
        let (data, indices) = (self.dims_at(0)?, self.dims_at(1)?);
        let batch = usize::try_from(self.int("batch_dims").unwrap_or(0)).ok()?;
        let (last, lead) = indices.split_last()?;
        let depth = usize::try_from(last.value()?).ok()?;
        let rest = data.get(batch.checked_add(depth)?..)?;
        Some(lead.iter().chain(rest).copied().collect())
    }

    pub(super) fn reduced(&self, axes: Option<Vec<i64>>) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let keep = self.flag("keep_dims", true);
        let Some(axes) = axes else {
            // Axes that only run time knows: the rank is known if it is kept.
            return keep.then(|| vec![Dim::Unknown; dims.len()]);
        };
        let reduced = |at: usize| axes.contains(&(at as i64));
        Some(
            dims.iter()
                .enumerate()
                .filter(|(at, _)| keep || !reduced(*at))
                .map(|(at, dim)| if reduced(at) { Dim::Static(1) } else { *dim })
                .collect(),
        )
    }

    pub(super) fn topk(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok()?;
        let k = self.int("k").map(Element::Int);
        let k = k.or_else(|| self.values("k").and_then(|list| list.first().copied()));
        *dims.get_mut(axis)? = k.map_or(Dim::Unknown, Element::dim);
        Some(dims)
    }

    pub(super) fn one_hot(&self) -> Option<Dims> {
        let mut dims = self.dims_at(0)?.clone();
        let axis = usize::try_from(self.int("axis")?).ok().filter(|&at| at <= dims.len())?;
        let depth = self.int("depth").map(Element::Int);
        let depth = depth.or_else(|| self.values("depth").and_then(|l| l.first().copied()));
        dims.insert(axis, depth.map_or(Dim::Unknown, Element::dim));
        Some(dims)
    }

    pub(super) fn range(&self) -> Option<Dims> {
        let int = |word: &str| match self.values(word)?.first()? {
            Element::Int(n) => Some(*n),
            Element::Size(_) => None,
        };
        let count = (|| {
            let (start, end, step) = (int("start")?, int("end")?, int("step")?);
            let span = end.checked_sub(start)?;
            let step = (step != 0).then_some(step)?;
            let whole = span.checked_div(step)?;
            let rest = i64::from(span % step != 0 && whole >= 0 && (span > 0) == (step > 0));
            u64::try_from((whole + rest).max(0)).ok()
        })();
        Some(vec![count.map_or(Dim::Unknown, Dim::Static)])
    }
}
