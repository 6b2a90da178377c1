//! Prints the canonical graph of each model named on the command line: one line an op, or JSON.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, clippy::expect_used)]

use anelint::graph::{NodeKind, Op};
use anelint::readers::{ReadOptions, read};

fn main() {
    let mut mode = "short".to_owned();
    for path in std::env::args().skip(1) {
        if let Some(flag) = path.strip_prefix("--") {
            mode = flag.to_owned();
            continue;
        }
        match read(path.as_ref(), ReadOptions::default()) {
            Err(error) => println!("{path}: ERROR {error} {:?}", error.offset),
            Ok(program) if mode == "json" => {
                let options = anelint::report::DumpOptions { stored: true, all_functions: true };
                println!("{:#}", anelint::report::dump(&program, options));
            }
            Ok(program) if mode == "unknown" => {
                for function in &program.functions {
                    for (_, node) in function.nodes() {
                        if node.kind == NodeKind::Op && node.op == Op::UNKNOWN {
                            println!("{path}: {}", program.text(node.spelling));
                        }
                    }
                }
                for note in &program.notes {
                    println!("{path}: note: {note}");
                }
            }
            Ok(program) => print!("{}", anelint::report::text_dump(&program)),
        }
    }
}
