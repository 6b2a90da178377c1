//! ONNX models: any bytes under the name of one.
#![no_main]

use std::path::Path;

use anelint::readers::{ReadOptions, read_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = bytes::Bytes::copy_from_slice(data);
    if let Ok(program) = read_bytes(Path::new("fuzz.onnx"), bytes, ReadOptions::default()) {
        let _ = anelint::report::text_dump(&program);
    }
});
