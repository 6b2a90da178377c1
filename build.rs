//! Compiles the data under `rules/` into the binary: a broken file there fails the build with its
//! name, its line and the reason. One module a table, under `build/`.

#[path = "src/facts/catalogue.rs"]
#[allow(dead_code)]
mod catalogue;
#[path = "build/dialects.rs"]
mod dialects;
// The words of the tables are the program's own: the same file serves both.
#[path = "src/graph/dtype.rs"]
#[allow(dead_code)]
mod dtype;
#[path = "build/ops.rs"]
mod ops;
#[path = "build/proto.rs"]
mod proto;
#[path = "build/rules.rs"]
mod rules;
#[path = "src/rules/schema/mod.rs"]
#[allow(dead_code)]
mod schema;
#[path = "src/target.rs"]
#[allow(dead_code, clippy::enum_variant_names)]
mod target;
#[path = "build/targets.rs"]
mod targets;

/// The paths under which the rule schema finds what it needs of the program.
mod facts {
    pub(crate) use crate::catalogue;
}
mod graph {
    pub use crate::dtype::DType;
}

/// Makes the text of one generated file.
type Generator = fn() -> Result<String, String>;

#[allow(clippy::expect_used, reason = "without OUT_DIR there is no build to fail")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/graph/dtype.rs");
    println!("cargo::rerun-if-changed=src/facts/catalogue.rs");
    println!("cargo::rerun-if-changed=src/rules/schema");
    println!("cargo::rerun-if-changed=src/target.rs");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(message) = proto::messages() {
        fail(&message);
    }
    let tables: &[(&str, Generator)] = &[
        ("ops.rs", ops::generate),
        ("dialects.rs", dialects::generate),
        ("layers.rs", proto::layers),
        ("targets.rs", targets::generate),
        ("rules.rs", rules::generate),
    ];
    for (name, generate) in tables {
        match generate() {
            Ok(code) => {
                if let Err(error) = std::fs::write(out.join(name), code) {
                    fail(&format!("cannot write {name}: {error}"));
                }
            }
            Err(message) => fail(&message),
        }
    }
}

/// Ends the build; cargo shows each line as an error.
fn fail(message: &str) -> ! {
    for line in message.lines() {
        println!("cargo::error={line}");
    }
    std::process::exit(1)
}
