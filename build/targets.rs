//! `rules/targets/*.yaml` → the static eligibility tables of `placement`.
//!
//! Every op, category, operand, attribute, element type and chip that a row names is checked here,
//! so that a typo in a table fails the build and not a verdict. The meaning of each field is told at
//! `src/placement/table.rs`.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde::Deserialize;

use crate::dtype::DType;
use crate::ops::{self, RawOp};
use crate::target::{Generation, Provider, ProviderForm, Runtime, Unit};

const DIR: &str = "rules/targets";

/// A table as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawTable {
    unit: Unit,
    /// The runtimes it holds for.
    runtimes: Vec<Runtime>,
    rows: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRow {
    /// Unique in its table; what `anelint why` prints.
    row: String,
    /// Canonical ops, or `any`.
    ops: RawOps,
    #[serde(default)]
    when: RawCondition,
    eligible: RawAnswer,
    #[serde(default)]
    reason: String,
    /// What to do about a "no".
    #[serde(default)]
    alternative: String,
    #[serde(default)]
    evidence: Vec<String>,
    /// Where sources disagree, or what was not measured.
    #[serde(default)]
    note: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawOps {
    #[serde(default)]
    any: bool,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    named: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum RawAnswer {
    Yes,
    No,
    Unknown,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawCondition {
    #[serde(default)]
    dtype: Vec<String>,
    #[serde(default)]
    result_dtype: Vec<String>,
    rank: Option<RawRange>,
    dim: Option<RawDim>,
    #[serde(default)]
    operands: BTreeMap<String, RawOperand>,
    #[serde(default)]
    attributes: BTreeMap<String, RawAttribute>,
    chip: Option<RawChips>,
    runtime: Option<Runtime>,
    form: Option<ProviderForm>,
    release: Option<RawReleases>,
    opset: Option<RawRange>,
    index_preparation: Option<bool>,
    implicit: Option<bool>,
    #[serde(default)]
    any: Vec<RawCondition>,
    #[serde(default)]
    not: Vec<RawCondition>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRange {
    above: Option<f64>,
    below: Option<f64>,
    #[serde(default)]
    is: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawDim {
    axis: Option<i64>,
    above: Option<f64>,
    below: Option<f64>,
    #[serde(default)]
    is: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawOperand {
    present: Option<bool>,
    constant: Option<bool>,
    #[serde(default)]
    dtype: Vec<String>,
    rank: Option<RawRange>,
    #[serde(default)]
    dims: Vec<RawDim>,
    square: Option<bool>,
    bytes: Option<RawRange>,
    value: Option<RawRange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawAttribute {
    present: Option<bool>,
    #[serde(default)]
    is: Vec<String>,
    item: Option<i64>,
    number: Option<RawRange>,
    dynamic: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawChips {
    from: Option<String>,
    to: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawReleases {
    /// The first.
    from: Option<String>,
    /// The first that is too new.
    before: Option<String>,
}

/// All tables as Rust source.
pub fn generate() -> Result<String, String> {
    println!("cargo::rerun-if-changed={DIR}");
    let vocabulary = ops::read()?;
    let mut paths: Vec<_> = std::fs::read_dir(DIR)
        .map_err(|e| format!("{DIR}: {e}"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    paths.sort();
    let mut tables = TokenStream::new();
    let mut seen: Vec<(Unit, Runtime, String)> = Vec::new();
    for path in paths {
        let shown = path.display().to_string();
        println!("cargo::rerun-if-changed={shown}");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{shown}: {e}"))?;
        let raw: RawTable = serde_saphyr::from_str(&text).map_err(|e| format!("{shown}: {e}"))?;
        for &runtime in &raw.runtimes {
            if let Some((.., other)) = seen.iter().find(|s| s.0 == raw.unit && s.1 == runtime) {
                return Err(format!(
                    "{shown}: {} with {runtime} has a table already, {other}",
                    raw.unit
                ));
            }
            seen.push((raw.unit, runtime, shown.clone()));
        }
        tables.extend(table(&shown, &raw, &vocabulary).map_err(|(row, reason)| {
            let line = text
                .lines()
                .position(|line| {
                    line.trim_start().strip_prefix("- row:").is_some_and(|name| name.trim() == row)
                })
                .map_or(0, |at| at + 1);
            format!("{shown}:{line}: row `{row}`: {reason}")
        })?);
    }
    for &unit in Unit::ALL {
        for &runtime in Runtime::ALL {
            if !seen.iter().any(|s| s.0 == unit && s.1 == runtime) {
                return Err(format!("{DIR}: no table for {unit} with {runtime}"));
            }
        }
    }
    let code = quote! {
        /// Every table.
        pub(crate) static TABLES: &[Table] = &[#tables];
    };
    let file = syn::parse2(code).map_err(|e| format!("{DIR}: generated code: {e}"))?;
    Ok(prettyplease::unparse(&file))
}

type Failure = (String, String);

fn table(
    file: &str,
    raw: &RawTable,
    vocabulary: &BTreeMap<String, RawOp>,
) -> Result<TokenStream, Failure> {
    // The order of `ops::generate`: `unknown` first, then by name.
    let names: Vec<&str> =
        std::iter::once("unknown").chain(vocabulary.keys().map(String::as_str)).collect();
    let mut by_op: Vec<Vec<u16>> = vec![Vec::new(); names.len()];
    let mut rows = TokenStream::new();
    for (at, row) in raw.rows.iter().enumerate() {
        let fail = |reason: String| (row.row.clone(), reason);
        if raw.rows[..at].iter().any(|other| other.row == row.row) {
            return Err(fail("a row of this name stands above".to_owned()));
        }
        if row.eligible == RawAnswer::No
            && (row.reason.is_empty() || row.alternative.is_empty() || row.evidence.is_empty())
        {
            return Err(fail("a \"no\" needs `reason`, `alternative` and `evidence`".to_owned()));
        }
        for id in &row.evidence {
            let form = id.split_once('-').is_some_and(|(letter, number)| {
                letter.len() == 1
                    && letter.chars().all(|c| c.is_ascii_uppercase())
                    && number.len() == 2
                    && number.chars().all(|c| c.is_ascii_digit())
            });
            let section = id
                .strip_prefix('§')
                .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
            if !form && !section {
                return Err(fail(format!("evidence `{id}` is not of the form `E-01` or `§14`")));
            }
        }
        let chosen = chosen_ops(&row.ops, &names, vocabulary).map_err(&fail)?;
        let ops: Vec<&RawOp> =
            chosen.iter().filter_map(|&op| vocabulary.get(names[op as usize])).collect();
        for &op in &chosen {
            by_op[op as usize].push(at as u16);
        }
        let when = condition(&row.when, &ops, 0).map_err(&fail)?;
        let answer = match row.eligible {
            RawAnswer::Yes => quote! { Some(true) },
            RawAnswer::No => quote! { Some(false) },
            RawAnswer::Unknown => quote! { None },
        };
        let (name, reason, alternative, note) =
            (&row.row, &row.reason, &row.alternative, &row.note);
        let evidence = &row.evidence;
        rows.extend(quote! {
            Row { name: #name, eligible: #answer, when: #when, reason: #reason,
                  alternative: #alternative, evidence: &[#(#evidence),*], note: #note },
        });
    }
    let by_op = by_op.iter().map(|list| quote! { &[#(#list),*] });
    let unit = variant(&raw.unit);
    let runtimes = raw.runtimes.iter().map(|runtime| {
        let runtime = variant(&runtime);
        quote! { Runtime::#runtime }
    });
    Ok(quote! {
        Table { file: #file, unit: Unit::#unit, runtimes: &[#(#runtimes),*], rows: &[#rows],
                by_op: &[#(#by_op),*] },
    })
}

fn chosen_ops(
    ops: &RawOps,
    names: &[&str],
    vocabulary: &BTreeMap<String, RawOp>,
) -> Result<Vec<u16>, String> {
    let categories: Vec<&str> =
        vocabulary.values().map(RawOp::category).chain(["unknown"]).collect();
    for category in &ops.categories {
        if !categories.contains(&category.as_str()) {
            return Err(format!("`{category}` is no category of rules/ops.yaml"));
        }
    }
    for name in ops.named.iter().chain(&ops.except) {
        if !names.contains(&name.as_str()) {
            return Err(format!("`{name}` is no op of rules/ops.yaml"));
        }
    }
    let chosen: Vec<u16> = names
        .iter()
        .enumerate()
        .filter(|(_, name)| {
            let category = vocabulary.get(**name).map_or("unknown", RawOp::category);
            (ops.any
                || ops.named.iter().any(|n| n == *name)
                || ops.categories.iter().any(|c| c == category))
                && !ops.except.iter().any(|n| n == *name)
        })
        .map(|(at, _)| at as u16)
        .collect();
    if chosen.is_empty() {
        return Err("names no op: give `any: true`, `categories` or `named`".to_owned());
    }
    Ok(chosen)
}

fn condition(raw: &RawCondition, ops: &[&RawOp], depth: u32) -> Result<TokenStream, String> {
    if depth > 8 {
        return Err("`any` and `not` lie too deep".to_owned());
    }
    let dtype = dtypes(&raw.dtype)?;
    let result_dtype = dtypes(&raw.result_dtype)?;
    let rank = optional(raw.rank.as_ref().map(range).transpose()?);
    let dim = optional(raw.dim.as_ref().map(dim).transpose()?);
    let mut operands = TokenStream::new();
    for (name, test) in &raw.operands {
        if !ops.iter().any(|op| op.operands.iter().any(|o| o == name)) {
            return Err(format!("no op of this row has an operand `{name}`"));
        }
        let test = operand(test)?;
        operands.extend(quote! { (#name, #test), });
    }
    let mut attributes = TokenStream::new();
    for (name, test) in &raw.attributes {
        if !ops.iter().any(|op| op.attributes.iter().any(|a| a == name)) {
            return Err(format!("no op of this row has an attribute `{name}`"));
        }
        let test = attribute(test)?;
        attributes.extend(quote! { (#name, #test), });
    }
    let chip = match &raw.chip {
        None => quote! { None },
        Some(chips) => {
            let end = |text: &Option<String>, default: Generation| match text {
                None => Ok(default),
                Some(text) => {
                    Generation::parse(text).ok_or_else(|| format!("`{text}` is no chip generation"))
                }
            };
            let from = variant(&end(&chips.from, Generation::H13)?);
            let to = variant(&end(&chips.to, Generation::H18)?);
            quote! { Some((Generation::#from, Generation::#to)) }
        }
    };
    let runtime = optional(raw.runtime.map(|runtime| {
        let runtime = variant(&runtime);
        quote! { Runtime::#runtime }
    }));
    let form = optional(raw.form.map(|form| {
        let form = variant(&form);
        quote! { ProviderForm::#form }
    }));
    let release = match &raw.release {
        None => quote! { None },
        Some(releases) => {
            let end = |text: &Option<String>, default: (u16, u16)| match text {
                None => Ok(default),
                Some(text) => Provider::parse(text)
                    .map(|provider| provider.release)
                    .ok_or_else(|| format!("`{text}` is no release such as 1.26")),
            };
            let (from, before) =
                (end(&releases.from, (0, 0))?, end(&releases.before, (u16::MAX, 0))?);
            let (a, b, c, d) = (from.0, from.1, before.0, before.1);
            quote! { Some(((#a, #b), (#c, #d))) }
        }
    };
    let opset = optional(raw.opset.as_ref().map(range).transpose()?);
    let index_preparation = flag(raw.index_preparation);
    let implicit = flag(raw.implicit);
    let any: Vec<_> =
        raw.any.iter().map(|c| condition(c, ops, depth + 1)).collect::<Result<_, _>>()?;
    let not: Vec<_> =
        raw.not.iter().map(|c| condition(c, ops, depth + 1)).collect::<Result<_, _>>()?;
    Ok(quote! {
        Condition { dtype: #dtype, result_dtype: #result_dtype, rank: #rank, dim: #dim,
            operands: &[#operands], attributes: &[#attributes], chip: #chip, runtime: #runtime,
            form: #form, release: #release, opset: #opset,
            index_preparation: #index_preparation, implicit: #implicit,
            any: &[#(#any),*], not: &[#(#not),*] }
    })
}

fn operand(raw: &RawOperand) -> Result<TokenStream, String> {
    let (present, constant, square) = (flag(raw.present), flag(raw.constant), flag(raw.square));
    let dtype = dtypes(&raw.dtype)?;
    let rank = optional(raw.rank.as_ref().map(range).transpose()?);
    let dims: Vec<_> = raw.dims.iter().map(dim).collect::<Result<_, _>>()?;
    let bytes = optional(raw.bytes.as_ref().map(range).transpose()?);
    let value = optional(raw.value.as_ref().map(range).transpose()?);
    Ok(quote! {
        OperandTest { present: #present, constant: #constant, dtype: #dtype, rank: #rank,
            dims: &[#(#dims),*], square: #square, bytes: #bytes, value: #value }
    })
}

fn attribute(raw: &RawAttribute) -> Result<TokenStream, String> {
    let (present, dynamic) = (flag(raw.present), flag(raw.dynamic));
    let words = &raw.is;
    let item = optional(raw.item.map(|item| quote! { #item }));
    let number = optional(raw.number.as_ref().map(range).transpose()?);
    Ok(quote! {
        AttributeTest { present: #present, is: &[#(#words),*], item: #item, number: #number,
            dynamic: #dynamic }
    })
}

fn dim(raw: &RawDim) -> Result<TokenStream, String> {
    let range = range(&RawRange { above: raw.above, below: raw.below, is: raw.is.clone() })?;
    let axis = optional(raw.axis.map(|axis| quote! { #axis }));
    Ok(quote! { DimTest { axis: #axis, size: #range } })
}

fn range(raw: &RawRange) -> Result<TokenStream, String> {
    if raw.above.is_none() && raw.below.is_none() && raw.is.is_empty() {
        return Err("a number test needs `above`, `below` or `is`".to_owned());
    }
    let above = optional(raw.above.map(|n| quote! { #n }));
    let below = optional(raw.below.map(|n| quote! { #n }));
    let is = &raw.is;
    Ok(quote! { Range { above: #above, below: #below, is: &[#(#is),*] } })
}

fn dtypes(names: &[String]) -> Result<TokenStream, String> {
    let mut list = TokenStream::new();
    for name in names {
        let dtype = DType::parse(name).ok_or_else(|| format!("`{name}` is no element type"))?;
        let dtype = variant(&dtype);
        list.extend(quote! { DType::#dtype, });
    }
    Ok(quote! { &[#list] })
}

fn flag(value: Option<bool>) -> TokenStream {
    optional(value.map(|b| quote! { #b }))
}

fn optional(tokens: Option<TokenStream>) -> TokenStream {
    match tokens {
        Some(tokens) => quote! { Some(#tokens) },
        None => quote! { None },
    }
}

/// The name of an enum's variant.
fn variant(value: &dyn std::fmt::Debug) -> proc_macro2::Ident {
    let name = format!("{value:?}");
    format_ident!("{name}")
}
