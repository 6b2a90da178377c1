//! MIL text: any text after the words that make a file one.
#![no_main]

use std::path::Path;

use anelint::readers::{ReadOptions, read_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut text = Vec::from(&b""[..]);
    if !data.starts_with(b"program(") {
        text.extend_from_slice(b"program(1.0) { func main<ios18>(tensor<fp16, [1, 4]> x) { ");
    }
    text.extend_from_slice(data);
    if let Ok(program) = read_bytes(Path::new("fuzz.mil"), text.into(), ReadOptions::default()) {
        let _ = anelint::report::text_dump(&program);
    }
});
