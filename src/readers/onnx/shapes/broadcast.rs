//! Shapes that stretch to each other.

use super::Dims;
use crate::graph::Dim;

/// Two dims that must be equal: the one that says more.
pub(super) fn equal(a: Dim, b: Dim) -> Dim {
    match (a, b) {
        (Dim::Static(_), _) | (_, Dim::Unknown) => a,
        (_, Dim::Static(_)) | (Dim::Unknown, _) => b,
        _ => a,
    }
}

/// The shape that two shapes stretch to; `None` if they do not fit.
pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Dims> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Dim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or(Dim::Static(1), |at| dims[at])
    };
    (0..rank)
        .map(|axis| {
            Some(match (at(a, axis), at(b, axis)) {
                (x, y) if x == y => x,
                (Dim::Static(1), x) | (x, Dim::Static(1)) => x,
                (Dim::Static(_), Dim::Static(_)) => return None,
                (x @ Dim::Static(_), _) | (_, x @ Dim::Static(_)) => x,
                _ => Dim::Unknown,
            })
        })
        .collect()
}

pub(super) fn broadcast_all(parts: impl IntoIterator<Item = Option<Dims>>) -> Option<Dims> {
    let mut all: Option<Dims> = None;
    for part in parts {
        let part = part?;
        all = Some(match all {
            None => part,
            Some(before) => broadcast(&before, &part)?,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::SymbolId;

    #[test]
    fn shapes_stretch_from_the_right() {
        let s = Dim::Symbol(SymbolId(0));
        let n = Dim::Static;
        assert_eq!(broadcast(&[n(4), n(1)], &[n(3)]), Some(vec![n(4), n(3)]));
        assert_eq!(broadcast(&[s, n(1)], &[n(1), s]), Some(vec![s, s]));
        assert_eq!(broadcast(&[s], &[n(5)]), Some(vec![n(5)]));
        assert_eq!(broadcast(&[n(2)], &[n(3)]), None);
    }
}
