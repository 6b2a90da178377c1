//! Debug locations of bytecode → [`Location`]s of the parsed form, each attribute decoded once.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::entries::{Attribute, AttributeId, List, attribute};
use super::sections::Tables;
use crate::readers::core_ai::ir::{Debug, File, Frame, Location, LocationId, Module, Span};

/// Deepest nesting of fused locations that is followed; real files have two levels.
const DEEPEST: u32 = 12;
/// Most entries of one fused list that are kept.
const WIDEST: usize = 1024;

/// Remembers what each attribute became.
#[derive(Debug, Default)]
pub struct Locations {
    locations: FxHashMap<AttributeId, LocationId>,
    call_stacks: FxHashMap<AttributeId, u32>,
    torch_ops: FxHashMap<AttributeId, Span>,
    files: FxHashMap<AttributeId, Option<u32>>,
    units: FxHashMap<AttributeId, ()>,
}

impl Locations {
    /// The location of an attribute.
    pub fn get<'a>(
        &mut self,
        tables: &Tables<'a>,
        module: &mut Module<'a>,
        id: AttributeId,
    ) -> LocationId {
        self.at_depth(tables, module, id, 0)
    }

    fn at_depth<'a>(
        &mut self,
        tables: &Tables<'a>,
        module: &mut Module<'a>,
        id: AttributeId,
        depth: u32,
    ) -> LocationId {
        if let Some(&known) = self.locations.get(&id) {
            return known;
        }
        // A cycle finds this entry and stops.
        self.locations.insert(id, 0);
        let Attribute::Location { source, scope, inlined_at, fused, metadata } =
            attribute(tables, id)
        else {
            return 0;
        };
        let frame = source.and_then(|source| self.frame(tables, &mut module.debug, source));
        self.scope(tables, &mut module.debug, scope);
        let mut location = Location { frame: frame.unwrap_or(0), ..Location::default() };
        self.metadata(tables, &mut module.debug, metadata, &mut location);
        let mut outer = Vec::new();
        let mut folded = Vec::new();
        if depth < DEEPEST {
            for entry in fused.ids().take(WIDEST).chain(inlined_at) {
                match attribute(tables, entry) {
                    // Frames that called this one carry nothing but a place.
                    Attribute::Location { source: Some(source), metadata, .. }
                        if metadata.len() == 0 =>
                    {
                        outer.extend(self.frame(tables, &mut module.debug, source));
                    }
                    Attribute::Location { .. } => {
                        match self.at_depth(tables, module, entry, depth + 1) {
                            0 => {}
                            known => folded.push(known),
                        }
                    }
                    _ => {}
                }
            }
        }
        let start = module.debug.outer.len();
        module.debug.outer.extend(outer.iter().map(|frame| frame - 1));
        location.outer = Span::since(start, module.debug.outer.len());
        let start = module.debug.fused.len();
        module.debug.fused.append(&mut folded);
        location.fused = Span::since(start, module.debug.fused.len());
        if location == Location::default() {
            return 0;
        }
        module.locations.push(location);
        let known = module.locations.len() as u32 - 1;
        self.locations.insert(id, known);
        known
    }

    /// Index plus one of the frame of a source location; `None` if it has no line.
    fn frame<'a>(
        &mut self,
        tables: &Tables<'a>,
        debug: &mut Debug<'a>,
        id: AttributeId,
    ) -> Option<u32> {
        let Attribute::Source { file, line, column } = attribute(tables, id) else { return None };
        if line == 0 {
            return None;
        }
        let file = *self.files.entry(file).or_insert_with(|| {
            let file = read_file(tables, file)?;
            debug.files.push(file);
            Some(debug.files.len() as u32 - 1)
        });
        let narrow = |n: u64| u32::try_from(n).unwrap_or(0);
        debug.frames.push(Frame { file: file?, line: narrow(line), column: narrow(column) });
        Some(debug.frames.len() as u32)
    }

    /// A subprogram's compile unit lists the source files with their sha256.
    fn scope<'a>(&mut self, tables: &Tables<'a>, debug: &mut Debug<'a>, id: AttributeId) {
        let unit = match attribute(tables, id) {
            Attribute::Subprogram { unit, .. } => unit,
            Attribute::CompileUnit { .. } => id,
            _ => return,
        };
        if self.units.insert(unit, ()).is_some() {
            return;
        }
        if let Attribute::CompileUnit { files } = attribute(tables, unit) {
            for file in files.ids().filter_map(|file| read_file(tables, file)) {
                if !file.sha256.is_empty() && !debug.listed.contains(&file) {
                    debug.listed.push(file);
                }
            }
        }
    }

    fn metadata<'a>(
        &mut self,
        tables: &Tables<'a>,
        debug: &mut Debug<'a>,
        metadata: List<'a>,
        location: &mut Location,
    ) {
        for id in metadata.ids() {
            let Attribute::Metadata { name, data } = attribute(tables, id) else { continue };
            let Attribute::Wrapped(value) = attribute(tables, data) else { continue };
            match name {
                "call_stack" => {
                    location.call_stack = *self.call_stacks.entry(value).or_insert_with(|| {
                        let Attribute::Array(items) = attribute(tables, value) else { return 0 };
                        let stack = strings(tables, items).map(Cow::Borrowed).collect();
                        debug.call_stacks.push(stack);
                        debug.call_stacks.len() as u32 - 1
                    });
                }
                "sources" => {
                    location.torch_ops = *self.torch_ops.entry(value).or_insert_with(|| {
                        let start = debug.torch_ops.len();
                        identifiers(tables, value, &mut debug.torch_ops);
                        Span::since(start, debug.torch_ops.len())
                    });
                }
                "output_maps" => {
                    location.yields = matches!(attribute(tables, value), Attribute::Array(items) if items.len() > 0);
                }
                _ => {}
            }
        }
    }
}

fn strings<'t, 'a>(tables: &'t Tables<'a>, items: List<'a>) -> impl Iterator<Item = &'a str> + 't
where
    'a: 't,
{
    items.ids().filter_map(|id| match attribute(tables, id) {
        Attribute::String(text) => Some(text),
        _ => None,
    })
}

/// The torch nodes that a `sources` record names: `[{id, identifiers: [name, …], name: "torch"}]`.
fn identifiers<'a>(tables: &Tables<'a>, sources: AttributeId, names: &mut Vec<Cow<'a, str>>) {
    let Attribute::Array(sources) = attribute(tables, sources) else { return };
    for source in sources.ids() {
        let (Attribute::Dictionary(fields) | Attribute::Array(fields)) = attribute(tables, source)
        else {
            continue;
        };
        for field in fields.ids() {
            let Attribute::Named { name: "identifiers", parameters } = attribute(tables, field)
            else {
                continue;
            };
            for parameter in parameters.ids() {
                match attribute(tables, parameter) {
                    Attribute::Array(items) => {
                        names.extend(strings(tables, items).map(Cow::Borrowed));
                    }
                    Attribute::String(text) => names.push(Cow::Borrowed(text)),
                    _ => {}
                }
            }
        }
    }
}

fn read_file<'a>(tables: &Tables<'a>, id: AttributeId) -> Option<File<'a>> {
    let Attribute::File { name, directory, sha256 } = attribute(tables, id) else { return None };
    if name.is_empty() || name == "-" {
        return None;
    }
    let path = if directory.is_empty() {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("{}/{name}", directory.trim_end_matches('/')))
    };
    Some(File { path, sha256: Cow::Borrowed(sha256) })
}
