//! `rules/ops.yaml` → the constants of `graph::Op`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde::Deserialize;

const PATH: &str = "rules/ops.yaml";

/// One line of the vocabulary as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RawOp {
    pub category: String,
    #[serde(default)]
    pub operands: Vec<String>,
    #[serde(default)]
    pub attributes: Vec<String>,
}

impl RawOp {
    /// The category as written.
    pub fn category(&self) -> &str {
        &self.category
    }
}

/// The vocabulary as written, by op name.
pub fn read() -> Result<std::collections::BTreeMap<String, RawOp>, String> {
    println!("cargo::rerun-if-changed={PATH}");
    let text = std::fs::read_to_string(PATH).map_err(|e| format!("{PATH}: {e}"))?;
    serde_saphyr::from_str(&text).map_err(|e| format!("{PATH}: {e}"))
}

/// The vocabulary in the order of `graph::Op` indices: `unknown` first, then by name.
pub fn all() -> Result<Vec<(String, RawOp)>, String> {
    let unknown = RawOp {
        category: "unknown".into(),
        operands: vec!["input".into(), "…".into()],
        attributes: vec![],
    };
    Ok(std::iter::once(("unknown".to_owned(), unknown)).chain(read()?).collect())
}

/// The vocabulary as Rust source.
pub fn generate() -> Result<String, String> {
    let all = all()?;
    let mut consts = TokenStream::new();
    let mut infos = TokenStream::new();
    let mut by_name = TokenStream::new();
    for (id, (name, op)) in all.iter().enumerate() {
        if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return Err(format!("{PATH}: op name `{name}`: lower-case letters, digits and _ only"));
        }
        let id = id as u16;
        let constant = format_ident!("{}", name.to_ascii_uppercase());
        let doc = format!("`{name}`");
        consts.extend(quote! { #[doc = #doc] pub const #constant: Op = Op(#id); });
        let mut category = op.category.clone();
        if let Some(first) = category.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let category = format_ident!("{category}");
        let (operands, attributes) = (&op.operands, &op.attributes);
        infos.extend(quote! {
            OpInfo { name: #name, category: Category::#category, operands: &[#(#operands),*], attributes: &[#(#attributes),*] },
        });
    }
    let mut sorted: Vec<(&str, u16)> =
        all.iter().enumerate().map(|(id, (name, _))| (name.as_str(), id as u16)).collect();
    sorted.sort_unstable();
    for (name, id) in sorted {
        by_name.extend(quote! { (#name, Op(#id)), });
    }
    let code = quote! {
        impl Op { #consts }
        static OPS: &[OpInfo] = &[#infos];
        static OPS_BY_NAME: &[(&str, Op)] = &[#by_name];
    };
    let file = syn::parse2(code).map_err(|e| format!("{PATH}: generated code: {e}"))?;
    Ok(prettyplease::unparse(&file))
}
