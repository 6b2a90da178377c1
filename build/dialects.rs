//! `rules/dialects/*.yaml` → static lookup tables, one a dialect.
//!
//! Every canonical op, operand and attribute name is checked against `rules/ops.yaml` here, so that
//! a typo in a dialect map fails the build and not a rule.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde::Deserialize;

use crate::ops::{self, RawOp};

const DIR: &str = "rules/dialects";

/// A dialect file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawDialect {
    /// Its name (`aten`, `mil`); the file has the same stem.
    dialect: String,
    ops: BTreeMap<String, RawEntry>,
}

/// One spelling as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawEntry {
    op: String,
    /// Stored argument name → canonical operand or attribute name; for dialects that name arguments.
    #[serde(default)]
    args: BTreeMap<String, String>,
    /// Canonical names by position; for dialects that do not name operands. `_` skips one. A
    /// position may name an attribute: a constant fed as an operand becomes that attribute.
    #[serde(default)]
    operands: Vec<String>,
    /// What the dialect's schema fills in when an argument is left out, by canonical name.
    #[serde(default)]
    defaults: BTreeMap<String, RawValue>,
    /// What the spelling itself says (`rounding_mode: floor`), by canonical name.
    #[serde(default)]
    set: BTreeMap<String, RawValue>,
}

/// A literal in a dialect file.
enum RawValue {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Ints(Vec<i64>),
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RawValue;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number, a truth value, a word or a list of whole numbers")
            }
            fn visit_bool<E>(self, v: bool) -> Result<RawValue, E> {
                Ok(RawValue::Bool(v))
            }
            fn visit_i64<E>(self, v: i64) -> Result<RawValue, E> {
                Ok(RawValue::Int(v))
            }
            fn visit_u64<E>(self, v: u64) -> Result<RawValue, E> {
                Ok(RawValue::Int(v as i64))
            }
            fn visit_f64<E>(self, v: f64) -> Result<RawValue, E> {
                Ok(RawValue::Float(v))
            }
            fn visit_str<E>(self, v: &str) -> Result<RawValue, E> {
                Ok(RawValue::Text(v.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<RawValue, A::Error> {
                let mut list = Vec::new();
                while let Some(n) = seq.next_element()? {
                    list.push(n);
                }
                Ok(RawValue::Ints(list))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl RawValue {
    fn tokens(&self) -> TokenStream {
        match self {
            RawValue::Int(n) => quote! { Literal::Int(#n) },
            RawValue::Float(x) => quote! { Literal::Float(#x) },
            RawValue::Bool(b) => quote! { Literal::Bool(#b) },
            RawValue::Text(t) => quote! { Literal::Text(#t) },
            RawValue::Ints(list) => quote! { Literal::Ints(&[#(#list),*]) },
        }
    }
}

/// All dialects as Rust source.
pub fn generate() -> Result<String, String> {
    println!("cargo::rerun-if-changed={DIR}");
    let vocabulary = ops::read()?;
    let mut paths: Vec<_> = std::fs::read_dir(DIR)
        .map_err(|e| format!("{DIR}: {e}"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    paths.sort();
    let mut code = TokenStream::new();
    for path in paths {
        let shown = path.display().to_string();
        println!("cargo::rerun-if-changed={shown}");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        let raw: RawDialect = serde_saphyr::from_str(&text).map_err(|e| format!("{shown}: {e}"))?;
        if path.file_stem().is_none_or(|stem| stem != raw.dialect.as_str()) {
            return Err(format!(
                "{shown}: says dialect `{}`: the file's stem must be the same",
                raw.dialect
            ));
        }
        code.extend(dialect(&raw, &vocabulary).map_err(|(spelling, reason)| {
            let line = text
                .lines()
                .position(|line| line.trim_start().starts_with(&spelling))
                .map_or(0, |at| at + 1);
            format!("{shown}:{line}: `{spelling}`: {reason}")
        })?);
    }
    let file = syn::parse2(code).map_err(|e| format!("{DIR}: generated code: {e}"))?;
    Ok(prettyplease::unparse(&file))
}

fn dialect(
    raw: &RawDialect,
    vocabulary: &BTreeMap<String, RawOp>,
) -> Result<TokenStream, (String, String)> {
    let mut entries = TokenStream::new();
    for (spelling, entry) in &raw.ops {
        let fail = |reason: String| (spelling.clone(), reason);
        let Some(op) = vocabulary.get(&entry.op) else {
            return Err(fail(format!("`{}` is no op of rules/ops.yaml", entry.op)));
        };
        let known = |name: &str| {
            op.operands.iter().any(|o| o == name) || op.attributes.iter().any(|a| a == name)
        };
        for name in
            entry.args.values().chain(entry.operands.iter().filter(|n| *n != "_" && *n != "…"))
        {
            if !known(name) {
                return Err(fail(format!(
                    "`{name}` is no operand or attribute of `{}` in rules/ops.yaml",
                    entry.op
                )));
            }
        }
        for name in entry.defaults.keys().chain(entry.set.keys()) {
            if !known(name) {
                return Err(fail(format!(
                    "`{name}` is no operand or attribute of `{}` in rules/ops.yaml",
                    entry.op
                )));
            }
        }
        let constant = format_ident!("{}", entry.op.to_ascii_uppercase());
        let args = entry.args.iter().map(|(stored, canonical)| quote! { (#stored, #canonical) });
        let operands = &entry.operands;
        let defaults = entry.defaults.iter().map(|(name, value)| {
            let value = value.tokens();
            quote! { (#name, #value) }
        });
        let set = entry.set.iter().map(|(name, value)| {
            let value = value.tokens();
            quote! { (#name, #value) }
        });
        entries.extend(quote! {
            (#spelling, Spelling {
                op: Op::#constant, args: &[#(#args),*], operands: &[#(#operands),*],
                defaults: &[#(#defaults),*], set: &[#(#set),*],
            }),
        });
    }
    let name = &raw.dialect;
    let constant = format_ident!("{}", name.to_ascii_uppercase().replace('-', "_"));
    let doc = format!("`rules/dialects/{name}.yaml`");
    Ok(quote! {
        #[doc = #doc]
        pub static #constant: Dialect = Dialect { name: #name, spellings: &[#entries] };
    })
}
