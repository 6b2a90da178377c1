//! `proto/*.proto` → Rust: message types by prost, and for the neural network's ~170 layer kinds one
//! table of fields that a single decoder walks.

use proc_macro2::TokenStream;
use quote::quote;

const DIR: &str = "proto";

/// Compiles `proto/coreml.proto` and `proto/onnx.proto` into files of those names in `OUT_DIR`.
///
/// Repeated numbers that may be weights are decoded by hand, so that they stay slices of the file.
pub fn messages() -> Result<(), String> {
    println!("cargo::rerun-if-changed={DIR}");
    let file = format!("{DIR}/onnx.proto");
    let set = protox::compile([&file], [DIR]).map_err(|e| format!("{file}: {e}"))?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]);
    config.compile_fds(set).map_err(|e| format!("{file}: {e}"))?;
    let file = format!("{DIR}/coreml.proto");
    let set = protox::compile([&file], [DIR]).map_err(|e| format!("{file}: {e}"))?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]);
    for name in ["PackedFloats", "PackedDoubles", "PackedVarints"] {
        config.extern_path(
            format!(".coreml.{name}"),
            format!("crate::readers::coreml::packed::{name}"),
        );
    }
    config.compile_fds(set).map_err(|e| format!("{file}: {e}"))
}

/// `proto/neural_network.proto` as a table: every message with its fields, messages by index.
pub fn layers() -> Result<String, String> {
    let file = format!("{DIR}/neural_network.proto");
    let set = protox::compile([&file], [DIR]).map_err(|e| format!("{file}: {e}"))?;
    let mut messages = Vec::new();
    let mut enums = Vec::new();
    for file in &set.file {
        let package = format!(".{}", file.package());
        for item in &file.enum_type {
            enums.push((format!("{package}.{}", item.name()), item));
        }
        // Nesting in this file is one level deep.
        for message in &file.message_type {
            let name = format!("{package}.{}", message.name());
            for item in &message.enum_type {
                enums.push((format!("{name}.{}", item.name()), item));
            }
            for nested in &message.nested_type {
                messages.push((format!("{name}.{}", nested.name()), nested));
            }
            messages.push((name, message));
        }
    }
    let mut code = TokenStream::new();
    for (_, message) in &messages {
        let mut fields: Vec<_> = message.field.iter().collect();
        fields.sort_by_key(|field| field.number());
        let mut rows = TokenStream::new();
        for field in fields {
            // Type numbers of descriptor.proto.
            let kind = match field.r#type.unwrap_or_default() {
                1 => quote! { Kind::Double },
                2 => quote! { Kind::Float },
                3 | 5 => quote! { Kind::Signed },
                4 | 13 => quote! { Kind::Unsigned },
                8 => quote! { Kind::Bool },
                9 => quote! { Kind::Text },
                12 => quote! { Kind::Bytes },
                11 => {
                    let at = messages
                        .iter()
                        .position(|(name, _)| name == field.type_name())
                        .ok_or_else(|| format!("{file}: no message {}", field.type_name()))?;
                    quote! { Kind::Message(#at) }
                }
                14 => {
                    let (_, item) = enums
                        .iter()
                        .find(|(name, _)| name == field.type_name())
                        .ok_or_else(|| format!("{file}: no enum {}", field.type_name()))?;
                    let values = item.value.iter().map(|value| {
                        let (number, name) = (value.number(), value.name());
                        quote! { (#number, #name) }
                    });
                    quote! { Kind::Word(&[#(#values),*]) }
                }
                other => return Err(format!("{file}: field type {other} is not foreseen")),
            };
            let (number, name) = (field.number() as u32, field.name());
            let repeated = field.label == Some(3);
            rows.extend(quote! {
                Field { number: #number, name: #name, kind: #kind, repeated: #repeated },
            });
        }
        let name = message.name();
        code.extend(quote! { Message { name: #name, fields: &[#rows] }, });
    }
    let code = quote! { static MESSAGES: &[Message] = &[#code]; };
    let file = syn::parse2(code).map_err(|e| format!("{DIR}: generated code: {e}"))?;
    Ok(prettyplease::unparse(&file))
}
