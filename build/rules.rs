//! `rules/{neural-engine,gpu,common,onnxruntime}/*.yaml` → the built-in rules, packed, as a Rust table.
//!
//! A rule is packed data and not a struct literal: a hundred literals of fifty fields each take the
//! compiler minutes. Unpacking one takes microseconds and no YAML.
//!
//! Every file goes through the checks that a user's rule goes through at run time, so a broken one
//! fails the build with file, line, column and reason.

use std::path::{Path, PathBuf};

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use crate::ops;
use crate::schema::vocabulary::{OpWords, Vocabulary};
use crate::schema::{check, load, raw};

const DIRS: &[&str] = &["rules/common", "rules/gpu", "rules/neural-engine", "rules/onnxruntime"];

/// All built-in rules as Rust source.
pub fn generate() -> Result<String, String> {
    let vocabulary = vocabulary()?;
    let mut problems = Vec::new();
    let mut rules = Vec::new();
    for path in files()? {
        let shown = path.display().to_string();
        println!("cargo::rerun-if-changed={shown}");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        match load::read(&text) {
            Err(problem) => problems.push(format!("{shown}:{problem}")),
            Ok(raw) => {
                if let Err(found) = check::rule(&raw, &vocabulary) {
                    problems.extend(found.iter().map(|problem| format!("{shown}:{problem}")));
                }
                let stem = format!("{}-{}", raw.id.value, raw.name.value);
                if path.file_stem().is_none_or(|own| own != stem.as_str()) {
                    problems.push(format!("{shown}: the file's name must be `{stem}.yaml`"));
                }
                rules.push((shown, raw));
            }
        }
    }
    rules.sort_by(|(_, a), (_, b)| a.id.value.cmp(&b.id.value));
    let all: Vec<&raw::Rule> = rules.iter().map(|(_, raw)| raw).collect();
    problems.extend(
        check::together(&all).into_iter().map(|(at, problem)| format!("{}:{problem}", rules[at].0)),
    );
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let mut table = TokenStream::new();
    for (shown, raw) in &rules {
        let packed = postcard::to_allocvec(raw).map_err(|e| format!("{shown}: {e}"))?;
        let packed = Literal::byte_string(&packed);
        table.extend(quote! { (#shown, #packed), });
    }
    let file = quote! {
        /// Each built-in rule, by id: its file, and its raw form packed by postcard.
        pub(super) static BUILTIN: &[(&str, &[u8])] = &[#table];
    };
    let file = syn::parse2(file).map_err(|e| format!("rules: generated code: {e}"))?;
    Ok(prettyplease::unparse(&file))
}

fn files() -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for dir in DIRS {
        println!("cargo::rerun-if-changed={dir}");
        let entries = std::fs::read_dir(Path::new(dir)).map_err(|e| format!("{dir}: {e}"))?;
        for entry in entries {
            let path = entry.map_err(|e| format!("{dir}: {e}"))?.path();
            if path.extension().is_some_and(|e| e == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn vocabulary() -> Result<Vocabulary, String> {
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let list =
        |list: &[String]| list.iter().filter(|name| *name != "…").map(|name| leak(name)).collect();
    let ops = ops::all()?
        .iter()
        .map(|(name, op)| OpWords {
            name: leak(name),
            category: leak(&op.category),
            operands: list(&op.operands),
            attributes: list(&op.attributes),
        })
        .collect();
    let regex = |text: &str| {
        regex_syntax::parse(text)
            .map(|_| ())
            .map_err(|e| e.to_string().lines().last().unwrap_or_default().to_owned())
    };
    Ok(Vocabulary { ops, regex })
}
