//! Compiles the data under `rules/` into the binary: a broken file there fails the build with its
//! name, its line and the reason. One module a table, under `build/`.

#[path = "build/dialects.rs"]
mod dialects;
#[path = "build/ops.rs"]
mod ops;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let tables: &[(&str, fn() -> Result<String, String>)] =
        &[("ops.rs", ops::generate), ("dialects.rs", dialects::generate)];
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
