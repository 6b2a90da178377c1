//! Element types.

use std::fmt;

/// The element type of a value, in the spelling that rules and JSON use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[allow(missing_docs, reason = "each variant is its own name")]
pub enum DType {
    F16,
    BF16,
    F32,
    F64,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    F4E2M1,
    I1,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
    U16,
    U32,
    U64,
    Bool,
    Complex64,
    Complex128,
    String,
    /// Ordering tokens and other values that carry no data.
    Token,
    /// Not said by the file, or a type this program does not know.
    #[default]
    Unknown,
}

macro_rules! dtypes {
    ($($variant:ident = $name:literal, $bits:literal);+ $(;)?) => {
        impl DType {
            /// Every element type.
            pub const ALL: &'static [DType] = &[$(DType::$variant),+];

            /// The name in rules and JSON (`f16`, `i32`, `bool`).
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),+ }
            }

            /// Bits an element takes when packed; 0 if unknown.
            pub const fn bits(self) -> u64 {
                match self { $(DType::$variant => $bits),+ }
            }

            /// Reads a name that [`DType::name`] gives.
            pub fn parse(text: &str) -> Option<DType> {
                match text { $($name => Some(DType::$variant),)+ _ => None }
            }
        }
    };
}

dtypes! {
    F16 = "f16", 16; BF16 = "bf16", 16; F32 = "f32", 32; F64 = "f64", 64;
    F8E4M3 = "f8e4m3", 8; F8E5M2 = "f8e5m2", 8; F8E8M0 = "f8e8m0", 8; F4E2M1 = "f4e2m1", 4;
    I1 = "i1", 1; I2 = "i2", 2; I4 = "i4", 4; I8 = "i8", 8; I16 = "i16", 16; I32 = "i32", 32; I64 = "i64", 64;
    U1 = "u1", 1; U2 = "u2", 2; U3 = "u3", 3; U4 = "u4", 4; U6 = "u6", 6; U8 = "u8", 8; U16 = "u16", 16; U32 = "u32", 32; U64 = "u64", 64;
    Bool = "bool", 8; Complex64 = "complex64", 64; Complex128 = "complex128", 128;
    String = "string", 0; Token = "token", 0; Unknown = "unknown", 0;
}

impl DType {
    /// Real floating point of any width.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            DType::F16
                | DType::BF16
                | DType::F32
                | DType::F64
                | DType::F8E4M3
                | DType::F8E5M2
                | DType::F8E8M0
                | DType::F4E2M1
        )
    }

    /// Signed or unsigned integer (not bool).
    pub const fn is_int(self) -> bool {
        matches!(
            self,
            DType::I1
                | DType::I2
                | DType::I4
                | DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
                | DType::U1
                | DType::U2
                | DType::U3
                | DType::U4
                | DType::U6
                | DType::U8
                | DType::U16
                | DType::U32
                | DType::U64
        )
    }

    /// Bytes that `elements` packed elements take, rounded up; saturates.
    pub const fn bytes(self, elements: u64) -> u64 {
        let bits = self.bits() as u128 * elements as u128;
        let bytes = bits.div_ceil(8);
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
