//! Canonical operand and attribute names, interned once per program.

use crate::graph::{Name, Names};

macro_rules! words {
    ($($field:ident $(= $text:literal)?),+ $(,)?) => {
        /// Canonical operand and attribute names as this program's [`Name`]s.
        #[derive(Debug, Clone, Copy)]
        #[allow(missing_docs, reason = "each field is its own name")]
        pub struct Words { $(pub $field: Name),+ }

        impl Words {
            /// Interns every word.
            pub fn new(names: &mut Names) -> Words {
                Words { $($field: names.intern(words!(@ $field $($text)?))),+ }
            }
        }
    };
    (@ $field:ident $text:literal) => { $text };
    (@ $field:ident) => { stringify!($field) };
}

words! {
    a, approximate, axes, axis, axis1, axis2, b, begin, bias, block, ceil_mode, condition, correction,
    data, diagonal, dilations, dtype, end, end_axis, epsilon, equation, groups, indices, input,
    is_causal, k, keep_dims, kernel, key, mask, max, mean, min, mode, offset, order, output_padding,
    output_size, pads, permutation, query, repeats, result, scale, shape, size, sizes, start,
    start_axis, state, step, strides, transpose_a, transpose_b, update, updates, value, variance,
    weight, alpha, beta, multiplier,
    kind = "kind",
}
