//! The IR section → the parsed form: graphs, regions, ops.
//!
//! Reference bodies (`broadcasting_*`, reductions, softmax …) lie in nested sections and are passed
//! over by their length; the regions that are real semantics (`if`, `while`, a scatter's combiner)
//! are read. Depth is bounded, and every index is checked where it is used.

use std::borrow::Cow;

use super::cursor::{Cursor, Decoded};
use super::debug::Locations;
use super::entries::{Attribute, RawType, attribute, raw_type};
use super::sections::Tables;
use super::settings::{Properties, layout, setting};
use crate::readers::core_ai::element_dtype;
use crate::readers::core_ai::ir::{
    Encoding, Graph, Literal, Module, Op, OpName, Payload, Port, Region, Setting, Span, Tensor,
    Type, TypeId, Value, ValueId, authored, composite,
};

/// Deepest nesting of regions; real files reach 5.
const DEEPEST: u32 = 32;

/// Marks a value id that was used before its definition.
const FORWARD: u32 = 1 << 31;

/// Reads the IR of a file.
pub fn read<'a>(tables: &Tables<'a>) -> Decoded<Module<'a>> {
    let mut module = Module::new();
    module.types = (0..tables.types.len() as u32).map(|id| read_type(tables, id)).collect();
    let names: Vec<Known> = tables.op_names.iter().map(|name| Known::of(name.name)).collect();
    module.op_names = tables
        .op_names
        .iter()
        .map(|name| OpName {
            stored: Cow::Borrowed(name.name),
            authored: Cow::Owned(match tables.dialects.get(name.dialect) {
                Some(&"aicode") | None => authored(name.name),
                Some(dialect) => format!("{dialect}.{}", name.name),
            }),
        })
        .collect();
    let mut reader = Reader { tables, names, module, locations: Locations::default() };
    let mut cursor = tables.cursor(tables.ir);
    reader.containers(&mut cursor, &[], 0)?;
    if !cursor.is_done() {
        return cursor.fault("bytes are left after the last op");
    }
    Ok(reader.module)
}

/// What the reader must know of an op name.
#[derive(Debug, Clone, Copy)]
struct Known {
    role: Role,
    layout: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Asset,
    Namespace,
    Graph,
    Constant,
    Call,
    /// Its regions mean something, also when isolated.
    Combiner,
    /// Its one property is a word.
    Word,
    Other,
}

impl Known {
    fn of(stored: &str) -> Known {
        let base = stored.rsplit_once("_v").map_or(stored, |(base, _)| base);
        let role = match base {
            "serialization.asset" => Role::Asset,
            "dataflow.namespace" => Role::Namespace,
            "dataflow.graph" | "udml.func" => Role::Graph,
            "primitive.constant" => Role::Constant,
            "dataflow.invoke" | "udml.call" => Role::Call,
            "primitive.scatter_nd"
            | "primitive.reduce"
            | "primitive.reduce_index"
            | "dataflow.isolated_group" => Role::Combiner,
            "primitive.gelu"
            | "primitive.interpolate"
            | "primitive.interpolate_coordinates"
            | "primitive.pad"
            | "primitive.scan"
            | "primitive.scatter_along_axis" => Role::Word,
            _ => Role::Other,
        };
        Known { role, layout: layout(base, stored) }
    }
}

struct Reader<'t, 'a> {
    tables: &'t Tables<'a>,
    names: Vec<Known>,
    module: Module<'a>,
    locations: Locations,
}

/// The fixed part of an op.
struct Header {
    name: u32,
    mask: u8,
    location: u32,
    properties: Properties,
}

/// The value numbers of one isolated op.
#[derive(Default)]
struct Scope {
    /// Value id by number; `u32::MAX` where not yet defined or used.
    slots: Vec<ValueId>,
    /// For each open region: its first number, the next free one, one past the last.
    regions: Vec<(usize, usize, usize)>,
}

/// A graph while it is read.
#[derive(Default)]
struct Body<'a> {
    graph: Graph<'a>,
    /// Real id by forward use.
    forward: Vec<ValueId>,
}

impl<'a> Reader<'_, 'a> {
    /// The ops of a block that holds no computation: assets, namespaces, graphs.
    fn containers(
        &mut self,
        cursor: &mut Cursor<'a>,
        path: &[Cow<'a, str>],
        depth: u32,
    ) -> Decoded<()> {
        if depth > DEEPEST {
            return cursor.fault("namespaces are nested too deep");
        }
        let (ops, has_arguments) = cursor.flagged()?;
        let ops = cursor.fits(ops, 3)?;
        if has_arguments {
            return cursor.fault("a container takes no arguments");
        }
        for _ in 0..ops {
            let header = self.header(cursor)?;
            let role = self.names[header.name as usize].role;
            if header.mask & (2 | 4 | 8 | 0x20) != 0 {
                return cursor.fault("an op outside of every graph has operands or results");
            }
            if header.mask & 0x10 == 0 {
                continue;
            }
            let (regions, isolated) = cursor.flagged()?;
            if !isolated {
                return cursor.fault("a container is not isolated");
            }
            let (id, mut section) = cursor.section()?;
            if id != 4 {
                return cursor.fault(format!("section {id} where IR was expected"));
            }
            match role {
                Role::Graph => self.graph(section, &header, path)?,
                Role::Asset | Role::Namespace => {
                    let mut inner = path.to_vec();
                    if role == Role::Namespace {
                        inner.extend(header.properties.text(self.tables, "name"));
                    } else if let Some(id) = header.properties.get("version")
                        && let Setting::Int(version) = setting(self.tables, id)
                    {
                        self.module.version = u64::try_from(version).ok();
                    }
                    self.locations.get(self.tables, &mut self.module, header.location);
                    for _ in 0..section.fits(regions, 1)? {
                        for _ in 0..self.region_header(&mut section)? {
                            self.containers(&mut section, &inner, depth + 1)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Number of blocks of a region; its value count is checked and passed over.
    fn region_header(&self, cursor: &mut Cursor<'a>) -> Decoded<usize> {
        let blocks = cursor.count(1)?;
        if blocks > 0 {
            cursor.count(1)?;
        }
        Ok(blocks)
    }

    fn graph(
        &mut self,
        mut section: Cursor<'a>,
        header: &Header,
        path: &[Cow<'a, str>],
    ) -> Decoded<()> {
        let mut body = Body::default();
        let mut scope = Scope::default();
        body.graph.location = self.locations.get(self.tables, &mut self.module, header.location);
        body.graph.regions.push(Region::default());
        let region = self.region(&mut section, &mut body, &mut scope, 1)?;
        body.graph.regions[0] = region;
        let Body { mut graph, forward } = body;
        for operand in graph.operands.iter_mut().filter(|operand| **operand & FORWARD != 0) {
            match forward.get((*operand & !FORWARD) as usize) {
                Some(&real) if real & FORWARD == 0 => *operand = real,
                _ => return section.fault("an operand names a value that is never defined"),
            }
        }
        let properties = &header.properties;
        let name = properties.text(self.tables, "name").unwrap_or_default();
        graph.name =
            if path.is_empty() { name } else { Cow::Owned(format!("{}::{name}", path.join("::"))) };
        graph.private = properties.flag(self.tables, "isPrivate");
        graph.no_inline = properties.flag(self.tables, "noInline");
        graph.composite =
            properties.get("compositeDecl").and_then(|id| composite(setting(self.tables, id)));
        let (operands, results) = match properties
            .get("functionType")
            .map(|id| attribute(self.tables, id))
        {
            Some(Attribute::Type(ty)) => match self.module.types.get(ty as usize) {
                Some(Type::Function(operands, results)) => (operands.to_vec(), results.to_vec()),
                _ => Default::default(),
            },
            _ => Default::default(),
        };
        graph.inputs = self.ports(properties, "argAttrs", &operands);
        graph.outputs = self.ports(properties, "resAttrs", &results);
        self.module.graphs.push(graph);
        Ok(())
    }

    /// Inputs or outputs: types with the attributes that stand beside them.
    fn ports(&self, properties: &Properties, attributes: &str, types: &[TypeId]) -> Vec<Port<'a>> {
        let mut settings = match properties.get(attributes).map(|id| setting(self.tables, id)) {
            Some(Setting::List(items)) => items.into_iter(),
            Some(other) => vec![other].into_iter(),
            None => Vec::new().into_iter(),
        };
        types
            .iter()
            .map(|&ty| {
                let mut port = Port { ty, ..Port::default() };
                if let Some(Setting::Map(named)) = settings.next() {
                    for (key, value) in named {
                        match value {
                            Setting::Text(name) if key == "aicode.name" => port.name = name,
                            value => port.attributes.push((key, value)),
                        }
                    }
                }
                port
            })
            .collect()
    }

    fn header(&mut self, cursor: &mut Cursor<'a>) -> Decoded<Header> {
        let name = cursor.index()?;
        let Some(&Known { layout, .. }) = self.names.get(name as usize) else {
            return cursor.fault(format!("there is no op name {name}"));
        };
        let mask = cursor.byte()?;
        if mask & 0x80 != 0 {
            return cursor.fault(format!("op mask {mask:#04x} has an unknown bit"));
        }
        let location = cursor.index()?;
        if location as usize >= self.tables.attributes.len() {
            return cursor.fault(format!("there is no attribute {location}"));
        }
        let dictionary = if mask & 1 != 0 { Some(cursor.index()?) } else { None };
        let mut properties = Properties::default();
        if mask & 0x40 != 0 {
            let index = cursor.index()?;
            let Some(&place) = self.tables.properties.get(index as usize) else {
                return cursor.fault(format!("there is no property {index}"));
            };
            if !layout.is_empty() {
                properties = Properties::read(self.tables, place, layout);
            }
        } else if let Some(id) = dictionary {
            properties = Properties::of_dictionary(self.tables, id, layout);
        }
        Ok(Header { name, mask, location, properties })
    }

    fn results(
        &self,
        cursor: &mut Cursor<'a>,
        header: &Header,
        body: &mut Body<'a>,
        scope: &mut Scope,
    ) -> Decoded<Span> {
        let start = body.graph.values.len();
        if header.mask & 2 != 0 {
            for _ in 0..cursor.count(1)? {
                let ty = cursor.index()?;
                self.define(cursor, body, scope, ty)?;
            }
        }
        Ok(Span::since(start, body.graph.values.len()))
    }

    fn operands(
        &self,
        cursor: &mut Cursor<'a>,
        header: &Header,
        body: &mut Body<'a>,
        scope: &mut Scope,
    ) -> Decoded<Span> {
        let start = body.graph.operands.len();
        if header.mask & 4 != 0 {
            for _ in 0..cursor.count(1)? {
                let number = cursor.index()? as usize;
                let Some(slot) = scope.slots.get_mut(number) else {
                    return cursor.fault(format!("there is no value {number}"));
                };
                if *slot == u32::MAX {
                    *slot = FORWARD | body.forward.len() as u32;
                    body.forward.push(u32::MAX);
                }
                body.graph.operands.push(*slot);
            }
        }
        Ok(Span::since(start, body.graph.operands.len()))
    }

    /// Successors and use-list orders: neither says anything of the program's meaning.
    fn trailing(&self, cursor: &mut Cursor<'a>, header: &Header, results: u32) -> Decoded<()> {
        if header.mask & 8 != 0 {
            for _ in 0..cursor.count(1)? {
                cursor.varint()?;
            }
        }
        if header.mask & 0x20 != 0 {
            use_list(cursor, results as usize)?;
        }
        Ok(())
    }

    /// Gives the next value number of the innermost region to a new value.
    fn define(
        &self,
        cursor: &Cursor<'a>,
        body: &mut Body<'a>,
        scope: &mut Scope,
        ty: TypeId,
    ) -> Decoded<ValueId> {
        if ty as usize >= self.module.types.len() {
            return cursor.fault(format!("there is no type {ty}"));
        }
        let id = body.graph.values.len() as u32;
        body.graph.values.push(Value { ty });
        let Some((_, next, end)) = scope.regions.last_mut() else { return Ok(id) };
        if next >= end {
            return cursor.fault("a region defines more values than it announced");
        }
        let slot = &mut scope.slots[*next];
        *next += 1;
        if *slot != u32::MAX && *slot & FORWARD != 0 {
            body.forward[(*slot & !FORWARD) as usize] = id;
        }
        *slot = id;
        Ok(id)
    }

    fn region(
        &mut self,
        cursor: &mut Cursor<'a>,
        body: &mut Body<'a>,
        scope: &mut Scope,
        depth: u32,
    ) -> Decoded<Region<'a>> {
        if depth > DEEPEST {
            return cursor.fault("regions are nested too deep");
        }
        let mut region = Region::default();
        let blocks = cursor.count(1)?;
        if blocks == 0 {
            return Ok(region);
        }
        let values = cursor.count(1)?;
        let base = scope.slots.len();
        scope.slots.resize(base + values, u32::MAX);
        scope.regions.push((base, base, base + values));
        for block in 0..blocks {
            let (ops, has_arguments) = cursor.flagged()?;
            let ops = cursor.fits(ops, 3)?;
            if has_arguments {
                let count = cursor.count(1)?;
                for _ in 0..count {
                    let (ty, located) = cursor.flagged()?;
                    let ty = u32::try_from(ty).unwrap_or(u32::MAX);
                    let argument = self.define(cursor, body, scope, ty)?;
                    if located {
                        cursor.index()?;
                    }
                    if block == 0 {
                        region.arguments.push(argument);
                    }
                }
                if cursor.byte()? != 0 {
                    use_list(cursor, count)?;
                }
            }
            region.ops.reserve(ops);
            for _ in 0..ops {
                let op = self.op(cursor, body, scope, depth)?;
                region.ops.push(op);
            }
        }
        scope.regions.pop();
        scope.slots.truncate(base);
        Ok(region)
    }

    fn op(
        &mut self,
        cursor: &mut Cursor<'a>,
        body: &mut Body<'a>,
        scope: &mut Scope,
        depth: u32,
    ) -> Decoded<Op<'a>> {
        let header = self.header(cursor)?;
        let Known { role, .. } = self.names[header.name as usize];
        let results = self.results(cursor, &header, body, scope)?;
        let operands = self.operands(cursor, &header, body, scope)?;
        self.trailing(cursor, &header, results.len)?;
        let mut regions = Span::default();
        if header.mask & 0x10 != 0 {
            let (count, isolated) = cursor.flagged()?;
            let mut inner = None;
            if isolated {
                let (id, section) = cursor.section()?;
                if id != 4 {
                    return cursor.fault(format!("section {id} where IR was expected"));
                }
                inner = Some(section);
            }
            // An isolated region of an op without region semantics is a reference body.
            if !isolated || role == Role::Combiner {
                let mut ids = Vec::new();
                let mut fresh = Scope::default();
                let count = inner.as_ref().unwrap_or(cursor).fits(count, 1)?;
                for _ in 0..count {
                    let region = match inner.as_mut() {
                        Some(section) => self.region(section, body, &mut fresh, depth + 1)?,
                        None => self.region(cursor, body, scope, depth + 1)?,
                    };
                    ids.push(body.graph.regions.len() as u32);
                    body.graph.regions.push(region);
                }
                let start = body.graph.region_ids.len();
                body.graph.region_ids.append(&mut ids);
                regions = Span::since(start, body.graph.region_ids.len());
            }
        }
        Ok(Op {
            name: header.name,
            location: self.locations.get(self.tables, &mut self.module, header.location),
            operands,
            results,
            regions,
            payload: self.payload(role, &header),
        })
    }

    fn payload(&self, role: Role, header: &Header) -> Payload<'a> {
        let tables = self.tables;
        let first = header.properties.first();
        match role {
            Role::Constant => Payload::Constant(match first.map(|id| attribute(tables, id)) {
                Some(Attribute::Dense { splat, bytes }) => {
                    Literal::Inline { splat, bytes: Cow::Borrowed(bytes) }
                }
                Some(Attribute::Resource(resource)) => {
                    Literal::Resource { name: Cow::Borrowed(resource.name), place: resource.place }
                }
                _ => Literal::Opaque,
            }),
            Role::Word => match first.map(|id| setting(tables, id)) {
                Some(Setting::Text(word)) => Payload::Word(word),
                _ => Payload::None,
            },
            Role::Call => match header.properties.text(tables, "callee") {
                Some(callee) => Payload::Callee(callee),
                None => Payload::None,
            },
            _ => {
                let settings: Vec<_> = header
                    .properties
                    .iter()
                    .map(|(name, id)| (Cow::Borrowed(name), setting(tables, id)))
                    .collect();
                if settings.is_empty() { Payload::None } else { Payload::Settings(settings) }
            }
        }
    }
}

fn use_list(cursor: &mut Cursor<'_>, values: usize) -> Decoded<()> {
    let records = if values > 1 { cursor.count(1)? } else { 1 };
    for _ in 0..records {
        if values > 1 {
            cursor.varint()?;
        }
        let (count, _pairs) = cursor.flagged()?;
        for _ in 0..cursor.fits(count, 1)? {
            cursor.varint()?;
        }
    }
    Ok(())
}

fn read_type<'a>(tables: &Tables<'a>, id: u32) -> Type<'a> {
    match raw_type(tables, id) {
        RawType::Tensor { shape, element, encoding } => {
            let element = match raw_type(tables, element) {
                RawType::Element(name) => Cow::Borrowed(name),
                RawType::Named(name) => Cow::Borrowed(name),
                _ => Cow::Borrowed("?"),
            };
            Type::Tensor(Tensor {
                dtype: element_dtype(&element),
                element,
                shape: shape.signed().map(|extent| u64::try_from(extent).ok()).collect(),
                encoding: encoding.map(|id| Box::new(read_encoding(tables, id))),
            })
        }
        RawType::Element(name) => Type::Other(Cow::Borrowed(name)),
        RawType::Function { results, operands } => {
            Type::Function(operands.ids().collect(), results.ids().collect())
        }
        RawType::Handle(inner) => Type::Handle(inner),
        RawType::Token => Type::Token,
        RawType::Image { format, height, width } => {
            let format = match attribute(tables, format) {
                Attribute::Word(word) => word,
                _ => Cow::Borrowed("?"),
            };
            Type::Image(Cow::Owned(format!("{format} {height}x{width}")))
        }
        RawType::Named(name) => Type::Other(Cow::Borrowed(name)),
        RawType::Opaque => Type::Other(Cow::Borrowed("?")),
    }
}

fn read_encoding<'a>(tables: &Tables<'a>, id: u32) -> Encoding<'a> {
    let mut encoding = Encoding::default();
    match attribute(tables, id) {
        Attribute::Constraints { alignments, interleave, backing, base } => {
            encoding.alignments = alignments.signed().collect();
            encoding.interleave = interleave.signed().collect();
            encoding.backing = match backing {
                1 => Cow::Borrowed("IOSurface"),
                2 => Cow::Borrowed("MTLBuffer"),
                3 => Cow::Borrowed("Heap"),
                other => Cow::Owned(other.to_string()),
            };
            if let Some(Attribute::Sparse(scheme)) = base.map(|id| attribute(tables, id)) {
                encoding.sparse = Some(Cow::Borrowed(scheme));
            }
        }
        Attribute::Sparse(scheme) => encoding.sparse = Some(Cow::Borrowed(scheme)),
        Attribute::Word(word) => encoding.other = Some(word),
        _ => encoding.other = Some(Cow::Borrowed("?")),
    }
    encoding
}
