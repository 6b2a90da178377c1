//! A serde serializer whose output is Rust source: the expression that builds the value again.
//!
//! Structs become literals that leave out what is `None`, empty or `false`; YAML words become enum
//! variants. It serves the rule schema and knows its few conventions, no more.

use std::fmt::Display;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use serde::Serialize;
use serde::ser::{self, Impossible};

/// The expression for a value.
pub fn expression<T: Serialize>(value: &T) -> Result<TokenStream, String> {
    value.serialize(Code).map(|made| made.tokens).map_err(|error| error.0)
}

/// Types that stand behind a `Box` somewhere: `.into()` fits both places.
const BOXED: &[&str] =
    &["Pattern", "Test", "Flow", "Count", "InFact", "FunctionPattern", "ProgramPattern"];

/// An expression, and whether it is what `Default` gives.
struct Made {
    tokens: TokenStream,
    default: bool,
}

fn made(tokens: TokenStream, default: bool) -> Result<Made, CodeError> {
    Ok(Made { tokens, default })
}

#[derive(Debug)]
struct CodeError(String);

impl Display for CodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for CodeError {}
impl ser::Error for CodeError {
    fn custom<T: Display>(message: T) -> Self {
        CodeError(message.to_string())
    }
}

struct Code;

/// `off-unit` → `OffUnit`.
fn variant(word: &str) -> Ident {
    let name: String = word
        .split('-')
        .map(|part| {
            let (first, rest) = part.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    format_ident!("{name}")
}

/// `report-at` → `report_at`, `match` → `r#match`.
fn field(word: &str) -> Ident {
    let name = word.replace('-', "_");
    syn::parse_str::<Ident>(&name).unwrap_or_else(|_| Ident::new_raw(&name, Span::call_site()))
}

impl ser::Serializer for Code {
    type Ok = Made;
    type Error = CodeError;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = Impossible<Made, CodeError>;
    type SerializeTupleVariant = Impossible<Made, CodeError>;
    type SerializeMap = Impossible<Made, CodeError>;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Impossible<Made, CodeError>;

    fn serialize_bool(self, v: bool) -> Result<Made, CodeError> {
        made(quote! { #v }, !v)
    }
    fn serialize_i8(self, v: i8) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_i16(self, v: i16) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_i32(self, v: i32) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_i64(self, v: i64) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_u8(self, v: u8) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_u16(self, v: u16) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_u32(self, v: u32) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_u64(self, v: u64) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_f32(self, v: f32) -> Result<Made, CodeError> {
        self.serialize_f64(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Result<Made, CodeError> {
        let tokens = if v.is_nan() {
            quote! { f64::NAN }
        } else if v == f64::INFINITY {
            quote! { f64::INFINITY }
        } else if v == f64::NEG_INFINITY {
            quote! { f64::NEG_INFINITY }
        } else {
            let literal = Literal::f64_suffixed(v.abs());
            if v.is_sign_negative() {
                quote! { -#literal }
            } else {
                quote! { #literal }
            }
        };
        made(tokens, false)
    }
    fn serialize_char(self, v: char) -> Result<Made, CodeError> {
        made(quote! { #v }, false)
    }
    fn serialize_str(self, v: &str) -> Result<Made, CodeError> {
        made(quote! { #v.to_owned() }, v.is_empty())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<Made, CodeError> {
        Err(CodeError("bytes are not expected in a rule".into()))
    }
    fn serialize_none(self) -> Result<Made, CodeError> {
        made(quote! { None }, true)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Made, CodeError> {
        let inner = value.serialize(Code)?.tokens;
        made(quote! { Some(#inner) }, false)
    }
    fn serialize_unit(self) -> Result<Made, CodeError> {
        made(quote! { () }, true)
    }
    fn serialize_unit_struct(self, name: &'static str) -> Result<Made, CodeError> {
        let name = format_ident!("{name}");
        made(quote! { #name }, true)
    }
    fn serialize_unit_variant(
        self,
        name: &'static str,
        _: u32,
        word: &'static str,
    ) -> Result<Made, CodeError> {
        let (name, word) = (format_ident!("{name}"), variant(word));
        made(quote! { #name::#word }, false)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Made, CodeError> {
        let (name, inner) = (format_ident!("{name}"), value.serialize(Code)?);
        let tokens = inner.tokens;
        made(quote! { #name(#tokens) }, inner.default)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        word: &'static str,
        value: &T,
    ) -> Result<Made, CodeError> {
        let (name, word, inner) =
            (format_ident!("{name}"), variant(word), value.serialize(Code)?.tokens);
        made(quote! { #name::#word(#inner) }, false)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List, CodeError> {
        Ok(List { items: Vec::new(), tuple: false })
    }
    fn serialize_tuple(self, _: usize) -> Result<List, CodeError> {
        Ok(List { items: Vec::new(), tuple: true })
    }
    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, CodeError> {
        Err(CodeError(format!("`{name}`: tuple structs are not expected in a rule")))
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, CodeError> {
        Err(CodeError(format!("`{name}`: tuple variants are not expected in a rule")))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, CodeError> {
        Err(CodeError("maps are not expected in a rule".into()))
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields, CodeError> {
        Ok(Fields { name, fields: TokenStream::new(), skipped: false, any: false })
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, CodeError> {
        Err(CodeError(format!("`{name}`: struct variants are not expected in a rule")))
    }
}

struct List {
    items: Vec<TokenStream>,
    tuple: bool,
}

impl List {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CodeError> {
        self.items.push(value.serialize(Code)?.tokens);
        Ok(())
    }

    fn finish(self) -> Result<Made, CodeError> {
        let items = self.items;
        if self.tuple {
            made(quote! { (#(#items),*) }, false)
        } else {
            made(quote! { vec![#(#items),*] }, items.is_empty())
        }
    }
}

impl ser::SerializeSeq for List {
    type Ok = Made;
    type Error = CodeError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CodeError> {
        self.push(value)
    }
    fn end(self) -> Result<Made, CodeError> {
        self.finish()
    }
}

impl ser::SerializeTuple for List {
    type Ok = Made;
    type Error = CodeError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CodeError> {
        self.push(value)
    }
    fn end(self) -> Result<Made, CodeError> {
        self.finish()
    }
}

struct Fields {
    name: &'static str,
    fields: TokenStream,
    skipped: bool,
    any: bool,
}

impl ser::SerializeStruct for Fields {
    type Ok = Made;
    type Error = CodeError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        word: &'static str,
        value: &T,
    ) -> Result<(), CodeError> {
        let value = value.serialize(Code)?;
        // `At` has no field that can be left out for every `T`.
        if value.default && self.name != "At" {
            self.skipped = true;
            return Ok(());
        }
        self.any = true;
        let (word, tokens) = (field(word), value.tokens);
        self.fields.extend(quote! { #word: #tokens, });
        Ok(())
    }
    fn end(self) -> Result<Made, CodeError> {
        let (name, fields) = (format_ident!("{}", self.name), self.fields);
        let rest = self.skipped.then(|| quote! { ..Default::default() });
        let into = BOXED.contains(&self.name).then(|| quote! { .into() });
        made(quote! { #name { #fields #rest } #into }, !self.any)
    }
}
