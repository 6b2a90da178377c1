//! Prints the parsed form of Core AI programs, one JSON document a line: op by op as the file has
//! it, before normalisation. `scripts/compare_coreai.py` holds it against the vendor's library.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;

use anelint::readers::{aimodel, mlir_text};

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        let path = Path::new(&path);
        let text =
            path.extension().is_some_and(|extension| extension == "mlir" || extension == "txt");
        let parsed = if text { mlir_text::parsed_json(path) } else { aimodel::parsed_json(path) };
        match parsed {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("{}: {error} (at {:?})", path.display(), error.offset);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
