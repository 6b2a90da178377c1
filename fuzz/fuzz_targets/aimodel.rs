//! `RUSTC_BOOTSTRAP=1 cargo fuzz run aimodel`; seeds: `testdata/aimodel`.
#![no_main]

use std::path::Path;

use anelint::readers::{ReadOptions, aimodel};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let bytes = bytes::Bytes::copy_from_slice(data);
    let _ = aimodel::read_file(Path::new("input"), bytes, ReadOptions::default());
});
