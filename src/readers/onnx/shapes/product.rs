//! Sizes of products: of matrices, by an equation, in attention and recurrent layers.

use super::broadcast::broadcast;
use super::{Dims, Infer};
use crate::graph::{Attr, Dim, Op};

impl Infer<'_> {
    /// Products of matrices, batched or not.
    pub(super) fn product(&self) -> Option<Dims> {
        if self.site.spelling.starts_with("com.microsoft.MatMulNBits")
            || self.site.spelling == "com.microsoft.MatMulBnb4"
        {
            let mut dims = self.dims_at(0)?.clone();
            let out = u64::try_from(self.int("N")?).ok()?;
            *dims.last_mut()? = Dim::Static(out);
            return Some(dims);
        }
        let plain = ["transBatchA", "transBatchB"].iter().all(|w| self.int(w).unwrap_or(0) == 0);
        let known = !self.site.spelling.contains('.')
            || matches!(
                self.site.spelling,
                "com.microsoft.FusedMatMul" | "com.microsoft.FusedGemm"
            );
        if !plain || !known {
            return None;
        }
        let a = self.dims_at(0)?;
        let b = self.dims_at(if self.site.spelling == "QLinearMatMul" { 3 } else { 1 })?;
        let turned = |word| self.flag(word, false);
        if self.site.node.op == Op::LINEAR {
            let mut dims = a.clone();
            *dims.last_mut()? = *b.first()?;
            return Some(dims);
        }
        let (mut a, mut b) = (a.clone(), b.clone());
        let (vector_a, vector_b) = (a.len() == 1, b.len() == 1);
        if vector_a {
            a.insert(0, Dim::Static(1));
        }
        if vector_b {
            b.push(Dim::Static(1));
        }
        let (ra, rb) = (a.len().checked_sub(2)?, b.len().checked_sub(2)?);
        if turned("transpose_a") && !vector_a {
            a.swap(ra, ra + 1);
        }
        if turned("transpose_b") && !vector_b {
            b.swap(rb, rb + 1);
        }
        let mut dims = broadcast(a.get(..ra)?, b.get(..rb)?)?;
        if !vector_a {
            dims.push(*a.get(ra)?);
        }
        if !vector_b {
            dims.push(*b.get(rb + 1)?);
        }
        Some(dims)
    }

    /// `bij,bjk->bik`; an ellipsis or a missing right side is left unknown.
    pub(super) fn einsum(&self) -> Option<Dims> {
        let Some(Attr::Text(equation)) = self.attr("equation") else { return None };
        let equation: String =
            self.names.get(*equation).chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = equation.split_once("->")?;
        if equation.contains('.') {
            return None;
        }
        let mut sizes: Vec<(char, Dim)> = Vec::new();
        for (at, term) in left.split(',').enumerate() {
            let dims = self.dims_at(at)?;
            if dims.len() != term.chars().count() {
                return None;
            }
            for (label, dim) in term.chars().zip(dims) {
                match sizes.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, known)) if *known == Dim::Static(1) => *known = *dim,
                    Some(_) => {}
                    None => sizes.push((label, *dim)),
                }
            }
        }
        right
            .chars()
            .map(|label| sizes.iter().find(|(known, _)| *known == label).map(|(_, dim)| *dim))
            .collect()
    }

    /// Queries beside the head size of the values, in rank 3 or 4.
    pub(super) fn attention(&self) -> Option<Dims> {
        let (query, value) = (self.dims_at(0)?, self.dims_at(2)?);
        match (query.as_slice(), value.as_slice()) {
            ([batch, heads, length, _], [.., size]) if value.len() == 4 => {
                Some(vec![*batch, *heads, *length, *size])
            }
            ([batch, length, _], [_, _, hidden]) => {
                let of = |word| self.int(word).and_then(|n| u64::try_from(n).ok());
                let (q, kv) = (of("q_num_heads")?, of("kv_num_heads")?);
                let size = hidden.value()?.checked_div(kv)?.checked_mul(q)?;
                Some(vec![*batch, *length, Dim::Static(size)])
            }
            _ => None,
        }
    }

    pub(super) fn recurrent(&self) -> Option<Dims> {
        if self.site.spelling.contains('.') {
            return None;
        }
        let dims = self.dims_at(0)?;
        let [first, second, _] = dims.as_slice() else { return None };
        let weight = self.dims_at(2)?;
        let hidden = self.int("hidden_size").and_then(|n| u64::try_from(n).ok()).map(Dim::Static);
        let hidden = hidden.or_else(|| weight.get(2).copied())?;
        let directions = *weight.first()?;
        Some(if self.int("layout") == Some(1) {
            vec![*first, *second, directions, hidden]
        } else {
            vec![*first, directions, *second, hidden]
        })
    }
}
