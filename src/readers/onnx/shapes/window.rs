//! Sizes of convolutions, pools and resizes.

use super::{Dims, Infer};
use crate::graph::{Attr, Dim, Op};

impl Infer<'_> {
    /// Convolutions and pools.
    pub(super) fn window(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let weight = self.dims("weight");
        let op = self.site.node.op;
        let pool = matches!(op, Op::MAX_POOL | Op::AVG_POOL | Op::L2_POOL);
        let nhwc = self.site.spelling.contains("Nhwc") || self.int("channels_last") == Some(1);
        if dims.len() < 3 || nhwc || self.site.spelling == "CausalConvWithState" {
            return None;
        }
        let spatial = dims.len() - 2;
        let channels = match op {
            _ if pool => *dims.get(1)?,
            Op::CONV => *weight?.first()?,
            _ => {
                let groups = u64::try_from(self.int("groups").unwrap_or(1)).ok()?;
                let each = weight?.get(1)?.value();
                each.and_then(|n| n.checked_mul(groups)).map_or(Dim::Unknown, Dim::Static)
            }
        };
        let kernel: Vec<Option<i64>> = if pool {
            self.ints("kernel")?.into_iter().map(Some).collect()
        } else {
            let dims = weight?.iter().skip(2);
            dims.map(|dim| dim.value().and_then(|n| i64::try_from(n).ok())).collect()
        };
        let kernel: Vec<Option<i64>> = match self.ints("kernel_shape") {
            Some(list) if !pool => list.into_iter().map(Some).collect(),
            _ => kernel,
        };
        let one = |word: &str| self.ints(word).unwrap_or_else(|| vec![1; spatial]);
        let (strides, dilations) = (one("strides"), one("dilations"));
        let pads = self.ints("pads");
        let same = self.attr("auto_pad").is_some_and(
            |attr| matches!(attr, Attr::Text(name) if self.names.get(*name).starts_with("SAME")),
        );
        let ceil = self.flag("ceil_mode", false);
        let mut all = vec![*dims.first()?, channels];
        for axis in 0..spatial {
            let size = dims.get(axis + 2)?.value().and_then(|n| i64::try_from(n).ok());
            let found = (|| {
                let (size, kernel) = (size?, (*kernel.get(axis)?)?);
                let (stride, dilation) = (*strides.get(axis)?, *dilations.get(axis)?);
                if stride <= 0 {
                    return None;
                }
                let reach = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
                if op == Op::CONV_TRANSPOSE {
                    if let Some(given) = self.ints("output_shape") {
                        let skip = given.len().checked_sub(spatial)?;
                        return given.get(axis + skip).copied();
                    }
                    if same {
                        return size.checked_mul(stride);
                    }
                    let pads = pads.as_ref()?;
                    let extra = self.ints("output_padding").and_then(|l| l.get(axis).copied());
                    return size
                        .checked_sub(1)?
                        .checked_mul(stride)?
                        .checked_add(reach)?
                        .checked_add(extra.unwrap_or(0))?
                        .checked_sub(*pads.get(axis)?)?
                        .checked_sub(*pads.get(axis + spatial)?);
                }
                if same {
                    return size.checked_add(stride - 1)?.checked_div(stride);
                }
                let pads = pads.as_ref()?;
                let (begin, end) = (*pads.get(axis)?, *pads.get(axis + spatial)?);
                let room = size.checked_add(begin)?.checked_add(end)?.checked_sub(reach)?;
                if room < 0 {
                    return None;
                }
                let mut count = if ceil { (room + stride - 1) / stride } else { room / stride } + 1;
                // A window that would begin in the padding at the end is left out.
                if ceil && (count - 1) * stride >= size + begin {
                    count -= 1;
                }
                Some(count)
            })();
            all.push(found.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Static));
        }
        Some(all)
    }

    pub(super) fn blocks(&self) -> Option<Dims> {
        let block = u64::try_from(self.int("block")?).ok().filter(|n| *n > 0)?;
        let [batch, channels, height, width] = self.dims_at(0)?.as_slice() else { return None };
        let (deep, wide): (fn(u64, u64) -> Option<u64>, fn(u64, u64) -> Option<u64>) =
            if self.site.node.op == Op::DEPTH_TO_SPACE {
                (|n, b| n.checked_div(b.checked_mul(b)?), u64::checked_mul)
            } else {
                (|n, b| n.checked_mul(b.checked_mul(b)?), u64::checked_div)
            };
        let map = |dim: &Dim, f: fn(u64, u64) -> Option<u64>| {
            dim.value().and_then(|n| f(n, block)).map_or(Dim::Unknown, Dim::Static)
        };
        Some(vec![*batch, map(channels, deep), map(height, wide), map(width, wide)])
    }

    pub(super) fn resize(&self) -> Option<Dims> {
        let dims = self.dims_at(0)?;
        let spread = |len: usize| dims.len().checked_sub(len);
        let stretched = self.attr("keep_aspect_ratio_policy").is_some_and(
            |attr| !matches!(attr, Attr::Text(name) if self.names.get(*name) == "stretch"),
        );
        let unknown = Some(vec![Dim::Unknown; dims.len()]);
        if stretched || self.attr("axes").is_some() {
            return unknown;
        }
        if let Some(Attr::Floats(scale)) = self.attr("scale") {
            let skip = spread(scale.len())?;
            let dims = dims.iter().enumerate();
            return Some(
                dims.map(|(at, dim)| match at.checked_sub(skip).and_then(|at| scale.get(at)) {
                    None => *dim,
                    Some(scale) => dim.value().map_or(Dim::Unknown, |n| {
                        // The scale is an f32 to the runtime: so is the product.
                        Dim::Static((n as f32 * *scale as f32).floor().max(0.0) as u64)
                    }),
                })
                .collect(),
            );
        }
        let sizes = self.ints("size").or_else(|| {
            let list = self.values("size")?;
            list.iter().map(|e| e.dim().value().and_then(|n| i64::try_from(n).ok())).collect()
        });
        match sizes {
            Some(sizes) => {
                let skip = spread(sizes.len())?;
                let mut all = dims[..skip].to_vec();
                for n in sizes {
                    all.push(u64::try_from(n).map_or(Dim::Unknown, Dim::Static));
                }
                Some(all)
            }
            None => unknown,
        }
    }

    pub(super) fn grid_sample(&self) -> Option<Dims> {
        if self.site.spelling.contains('.') {
            return None;
        }
        let (dims, grid) = (self.dims_at(0)?, self.dims_at(1)?);
        let mut all: Dims = dims.get(..2)?.to_vec();
        all.extend(grid.get(1..grid.len().checked_sub(1)?)?);
        Some(all)
    }
}
