//! Attributes of bytecode as plain settings, and the properties of ops by name.

use std::borrow::Cow;

use super::cursor::Decoded;
use super::entries::{Attribute, AttributeId, List, attribute};
use super::sections::{Place, Tables};
use crate::readers::core_ai::ir::{Setting, Text};

/// Deepest nesting of a setting.
const DEEPEST: u32 = 16;

/// How many attributes may be visited for one setting: shared entries expand, so a small file can
/// describe a huge tree.
const BUDGET: u32 = 1 << 16;

/// An attribute as a setting.
pub fn setting<'a>(tables: &Tables<'a>, id: AttributeId) -> Setting<'a> {
    let mut budget = BUDGET;
    convert(tables, id, DEEPEST, &mut budget)
}

fn convert<'a>(tables: &Tables<'a>, id: AttributeId, depth: u32, budget: &mut u32) -> Setting<'a> {
    if depth == 0 || *budget == 0 {
        return Setting::Unit;
    }
    *budget -= 1;
    match attribute(tables, id) {
        Attribute::String(text) => Setting::Text(Cow::Borrowed(text)),
        Attribute::Integer { width: 1, value } => Setting::Bool(value & 1 == 1),
        Attribute::Integer { value, .. } => Setting::Int(value),
        Attribute::Float(value) => Setting::Float(value),
        Attribute::Wrapped(inner) => convert(tables, inner, depth - 1, budget),
        Attribute::Word(word) => Setting::Text(word),
        Attribute::Symbol(path) => Setting::Text(path.join("::").into()),
        Attribute::Array(items) => list(tables, items, depth, budget),
        Attribute::Dictionary(items) => named(tables, items, depth, budget),
        Attribute::Named { name, parameters } => {
            Setting::Map(vec![(Cow::Borrowed(name), parameter(tables, parameters, depth, budget))])
        }
        _ => Setting::Unit,
    }
}

fn list<'a>(tables: &Tables<'a>, items: List<'a>, depth: u32, budget: &mut u32) -> Setting<'a> {
    let all_named = items.len() > 0
        && items.ids().all(|id| matches!(attribute(tables, id), Attribute::Named { .. }));
    if all_named {
        return named(tables, items, depth, budget);
    }
    Setting::List(items.ids().map(|id| convert(tables, id, depth - 1, budget)).collect())
}

fn named<'a>(tables: &Tables<'a>, items: List<'a>, depth: u32, budget: &mut u32) -> Setting<'a> {
    let mut map = Vec::new();
    for id in items.ids() {
        if let Attribute::Named { name, parameters } = attribute(tables, id) {
            map.push((Cow::Borrowed(name), parameter(tables, parameters, depth - 1, budget)));
        }
    }
    Setting::Map(map)
}

/// A named attribute has one parameter, its value; a tagged record has named ones.
fn parameter<'a>(
    tables: &Tables<'a>,
    parameters: List<'a>,
    depth: u32,
    budget: &mut u32,
) -> Setting<'a> {
    if depth == 0 {
        return Setting::Unit;
    }
    if parameters.len() == 1
        && let Some(id) = parameters.ids().next()
        && !matches!(attribute(tables, id), Attribute::Named { .. })
    {
        return convert(tables, id, depth - 1, budget);
    }
    list(tables, parameters, depth, budget)
}

/// Fields of the properties of an op kind, in order; `?` marks one that may be absent.
pub type Layout = &'static [&'static str];

/// The layout of an op's properties by its stored name without the version; empty if it has none.
pub fn layout(base: &str, stored: &str) -> Layout {
    match base {
        "primitive.constant" => &["value"],
        "primitive.gelu" => &["approximate"],
        "primitive.interpolate" | "primitive.interpolate_coordinates" => &["interpolation_mode"],
        "primitive.pad" => &["padding_mode"],
        "primitive.scan" => &["combiner"],
        "primitive.scatter_along_axis" => &["scatter_mode"],
        "dataflow.invoke" | "udml.call" => &["arg_attrs", "callee", "res_attrs"],
        "dataflow.graph" => &[
            "argAttrs",
            "?compositeDecl",
            "externalize",
            "functionType",
            "isPrivate",
            "name",
            "noInline",
            "paramDecls",
            "resAttrs",
        ],
        "udml.func" => &["argAttrs", "functionType", "name", "noInline", "paramDecls", "resAttrs"],
        "dataflow.namespace" => &["name", "paramDecls"],
        "dataflow.isolated_group" => &["arg_attrs", "delegate_id", "res_attrs"],
        "execution.delegate" if stored.ends_with("_v1") => {
            &["arg_attrs", "delegate_id", "lifecycle", "res_attrs", "resource"]
        }
        "execution.delegate" => {
            &["arg_attrs", "?delegate_attrs", "delegate_id", "lifecycle", "res_attrs", "resource"]
        }
        "execution.target_spec" => &["compilation", "spec"],
        "metal.metal4_kernel" => &["kernel_name", "kernel_source"],
        "serialization.asset" => &["?source", "?version"],
        "serialization.opaque" | "serialization.terminator" => &["opaqueAttrs", "opname"],
        _ => &[],
    }
}

/// The properties of one op: attribute ids by name.
#[derive(Debug, Default, Clone)]
pub struct Properties(Vec<(&'static str, AttributeId)>);

impl Properties {
    /// Reads a property entry. A layout that does not fit gives no properties at all: a newer
    /// revision of one op must not cost the file.
    pub fn read(tables: &Tables<'_>, place: Place, layout: Layout) -> Properties {
        Properties(decode(tables, place, layout).unwrap_or_default())
    }

    /// The same out of an attribute dictionary, as bytecode version 4 stores it.
    pub fn of_dictionary(tables: &Tables<'_>, id: AttributeId, layout: Layout) -> Properties {
        let Attribute::Pairs(items) = attribute(tables, id) else { return Properties::default() };
        let mut fields = Vec::new();
        let mut ids = items.ids();
        while let (Some(key), Some(value)) = (ids.next(), ids.next()) {
            if let Attribute::String(key) = attribute(tables, key)
                && let Some(name) = layout.iter().find(|name| name.trim_start_matches('?') == key)
            {
                fields.push((name.trim_start_matches('?'), value));
            }
        }
        Properties(fields)
    }

    /// The first attribute.
    pub fn first(&self) -> Option<AttributeId> {
        self.0.first().map(|(_, id)| *id)
    }

    /// All attributes.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, AttributeId)> {
        self.0.iter().copied()
    }

    /// An attribute by name.
    pub fn get(&self, name: &str) -> Option<AttributeId> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, id)| *id)
    }

    /// A text by name.
    pub fn text<'a>(&self, tables: &Tables<'a>, name: &str) -> Option<Text<'a>> {
        match setting(tables, self.get(name)?) {
            Setting::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A truth value by name; false if absent.
    pub fn flag(&self, tables: &Tables<'_>, name: &str) -> bool {
        let value = self.get(name).map(|id| setting(tables, id));
        matches!(value, Some(Setting::Bool(true) | Setting::Int(1)))
    }
}

fn decode(
    tables: &Tables<'_>,
    place: Place,
    layout: Layout,
) -> Decoded<Vec<(&'static str, AttributeId)>> {
    let mut cursor = tables.cursor(place);
    let mut fields = Vec::with_capacity(layout.len());
    for field in layout {
        match field.strip_prefix('?') {
            Some(name) => {
                let (id, present) = cursor.flagged()?;
                if present {
                    fields.push((name, u32::try_from(id).unwrap_or(u32::MAX)));
                }
            }
            None => fields.push((field, cursor.index()?)),
        }
    }
    if !cursor.is_done() {
        return cursor.fault("properties are longer than their layout");
    }
    Ok(fields)
}
