//! `RUSTC_BOOTSTRAP=1 cargo fuzz run mlir_text`; seeds: `testdata/aimodel`.
#![no_main]

use std::path::Path;

use anelint::readers::{ReadOptions, mlir_text};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let bytes = bytes::Bytes::copy_from_slice(data);
    let _ = mlir_text::read(Path::new("input"), bytes, ReadOptions::default());
});
