//! The `anelint` binary: nothing but the door to [`anelint::cli`].

fn main() -> std::process::ExitCode {
    anelint::cli::main()
}
