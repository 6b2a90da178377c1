//! Locations of a text: `loc(…)` and the `#debuginfo` records that aliases name.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::lexer::{Lexer, Parsed};
use super::values::{Tables, setting};
use crate::readers::core_ai::ir::{File, Frame, Location, LocationId, Module, Setting, Span, Text};

/// Deepest nesting of fused and call-site locations.
const DEEPEST: u32 = 12;

/// Remembers what each alias became.
#[derive(Debug, Default)]
pub struct Locations<'a> {
    by_alias: FxHashMap<Text<'a>, LocationId>,
    files: FxHashMap<Text<'a>, u32>,
    call_stacks: FxHashMap<Vec<Text<'a>>, u32>,
    /// Locations that carry metadata: provenance, and not just a frame.
    described: FxHashSet<LocationId>,
}

/// What a location says before it has an id.
#[derive(Debug, Default)]
struct Draft<'a> {
    /// Frames, innermost first.
    frames: Vec<u32>,
    call_stack: Vec<Text<'a>>,
    torch_ops: Vec<Text<'a>>,
    yields: bool,
    fused: Vec<LocationId>,
    /// Whether any metadata stands here: else it is only a frame.
    described: bool,
}

/// Reads locations of one text.
pub struct Reader<'r, 'a> {
    /// The whole text.
    pub text: &'a str,
    /// Aliases.
    pub tables: &'r Tables<'a>,
    /// Where locations go.
    pub module: &'r mut Module<'a>,
    /// What was read so far.
    pub known: &'r mut Locations<'a>,
}

impl<'a> Reader<'_, 'a> {
    /// `loc(…)`, if it is next; 0 if it says nothing.
    pub fn optional(&mut self, lexer: &mut Lexer<'a>) -> Parsed<LocationId> {
        if !lexer.looking_at("loc(") {
            return Ok(0);
        }
        let draft = self.location(lexer, 0)?;
        Ok(self.intern(draft))
    }

    /// The files that `#debuginfo.file` aliases list, with their sha256.
    pub fn listed_files(&mut self) {
        let mut aliases: Vec<(&str, usize)> =
            self.tables.aliases.iter().map(|(name, at)| (*name, *at)).collect();
        aliases.sort_unstable();
        for (name, at) in aliases {
            let mut lexer = Lexer::new(self.text, at);
            if !name.starts_with("#file") || !lexer.take("#debuginfo.file") {
                continue;
            }
            let Ok(body) = lexer.balanced() else { continue };
            let field = |key: &str| -> &'a str {
                let rest = body.split_once(key).and_then(|(_, rest)| rest.split_once('"'));
                rest.and_then(|(_, rest)| rest.split_once('"')).map_or("", |(value, _)| value)
            };
            let (name, directory, sha256) =
                (field("filename"), field("directory"), field("sha256Sum"));
            if name.is_empty() || sha256.is_empty() {
                continue;
            }
            let path = if directory.is_empty() {
                Cow::Borrowed(name)
            } else {
                Cow::Owned(format!("{}/{name}", directory.trim_end_matches('/')))
            };
            self.module.debug.listed.push(File { path, sha256: Cow::Borrowed(sha256) });
        }
    }

    /// What stands in `loc(…)`, or `#alias` for one.
    fn location(&mut self, lexer: &mut Lexer<'a>, depth: u32) -> Parsed<Draft<'a>> {
        if lexer.take("loc") {
            lexer.expect("(")?;
            let draft = self.inner(lexer, depth)?;
            lexer.expect(")")?;
            return Ok(draft);
        }
        self.inner(lexer, depth)
    }

    fn inner(&mut self, lexer: &mut Lexer<'a>, depth: u32) -> Parsed<Draft<'a>> {
        if depth > DEEPEST {
            return lexer.fault("locations are nested too deep");
        }
        match lexer.peek() {
            b'#' => {
                let id = self.alias(lexer, depth)?;
                Ok(self.expand(id))
            }
            b'"' => {
                let name = lexer.string()?;
                let mut draft = Draft::default();
                if lexer.take(":") {
                    let line = lexer.digits().parse().unwrap_or(0);
                    let column =
                        if lexer.take(":") { lexer.digits().parse().unwrap_or(0) } else { 0 };
                    // A range: `"file":1:2 to 3:4`.
                    if lexer.take("to") {
                        lexer.digits();
                        lexer.take(":");
                        lexer.digits();
                    }
                    draft.frames.extend(self.frame(name, line, column));
                } else if lexer.take("(") {
                    draft = self.location(lexer, depth + 1)?;
                    lexer.expect(")")?;
                }
                Ok(draft)
            }
            _ => match lexer.word() {
                "unknown" => Ok(Draft::default()),
                "callsite" => {
                    lexer.expect("(")?;
                    let mut draft = self.location(lexer, depth + 1)?;
                    lexer.expect("at")?;
                    let outer = self.location(lexer, depth + 1)?;
                    draft.frames.extend(outer.frames);
                    lexer.expect(")")?;
                    Ok(draft)
                }
                "fused" => {
                    if lexer.looking_at("<") {
                        lexer.balanced()?;
                    }
                    let mut own = Draft::default();
                    self.fused(lexer, depth, &mut own, true)?;
                    Ok(own)
                }
                other => lexer.fault(format!("`{other}` is no location")),
            },
        }
    }

    /// `[a, b, …]` into `own`; with `first`, the first entry is the op's own location.
    fn fused(
        &mut self,
        lexer: &mut Lexer<'a>,
        depth: u32,
        own: &mut Draft<'a>,
        first: bool,
    ) -> Parsed<()> {
        lexer.expect("[")?;
        let mut at = 0;
        while !lexer.take("]") {
            let entry = self.location(lexer, depth + 1)?;
            if at == 0 && first {
                *own = entry;
            } else if entry.described {
                let id = self.intern(entry);
                if id != 0 {
                    own.fused.push(id);
                }
            } else {
                own.frames.extend(entry.frames.first());
            }
            at += 1;
            if !lexer.take(",") && lexer.peek() != b']' {
                return lexer.fault("expected `,` or `]`");
            }
        }
        Ok(())
    }

    /// `#loc12`, or a `#debuginfo.location<…>` spelled out.
    fn alias(&mut self, lexer: &mut Lexer<'a>, depth: u32) -> Parsed<LocationId> {
        lexer.expect("#")?;
        let name = lexer.name()?;
        if name == "debuginfo.location" {
            let draft = self.record(lexer, depth)?;
            return Ok(self.intern(draft));
        }
        if let Some(&known) = self.known.by_alias.get(&name) {
            return Ok(known);
        }
        let Some(&at) = self.tables.aliases.get(format!("#{name}").as_str()) else { return Ok(0) };
        // A cycle finds this entry and stops.
        self.known.by_alias.insert(name.clone(), 0);
        let mut there = Lexer::new(self.text, at);
        let draft = if there.looking_at("#debuginfo.location") {
            there.expect("#debuginfo.location")?;
            self.record(&mut there, depth + 1)?
        } else if there.looking_at("loc") {
            self.location(&mut there, depth + 1)?
        } else {
            return Ok(0);
        };
        let id = self.intern(draft);
        self.known.by_alias.insert(name, id);
        Ok(id)
    }

    /// `<#loc5 in @main fused with [#loc9] metadata = [#metadata1]>`.
    fn record(&mut self, lexer: &mut Lexer<'a>, depth: u32) -> Parsed<Draft<'a>> {
        lexer.expect("<")?;
        let mut draft = self.location(lexer, depth + 1)?;
        if lexer.take("in") {
            // The scope: a symbol, `unit`, or a record.
            match lexer.peek() {
                b'@' => {
                    setting(lexer, self.tables, self.text, 0)?;
                }
                b'#' => {
                    lexer.expect("#")?;
                    lexer.name()?;
                    if lexer.looking_at("<") {
                        lexer.balanced()?;
                    }
                    if lexer.take(":") {
                        return lexer.fault("a scope with a type is not understood here");
                    }
                }
                _ => {
                    lexer.word();
                }
            }
        }
        if lexer.take("fused") {
            lexer.expect("with")?;
            self.fused(lexer, depth, &mut draft, false)?;
        }
        if lexer.take("inlined") {
            lexer.take("at");
            let outer = self.location(lexer, depth + 1)?;
            draft.frames.extend(outer.frames);
        }
        if lexer.take("metadata") {
            lexer.expect("=")?;
            lexer.expect("[")?;
            while !lexer.take("]") {
                self.metadata(lexer, &mut draft)?;
                draft.described = true;
                if !lexer.take(",") && lexer.peek() != b']' {
                    return lexer.fault("expected `,` or `]`");
                }
            }
        }
        lexer.expect(">")?;
        Ok(draft)
    }

    /// `#metadata3` or `#debuginfo.metadata<"call_stack": […]>`.
    fn metadata(&mut self, lexer: &mut Lexer<'a>, draft: &mut Draft<'a>) -> Parsed<()> {
        lexer.expect("#")?;
        let name = lexer.name()?;
        let body = if name == "debuginfo.metadata" {
            lexer.balanced()?
        } else {
            let Some(&at) = self.tables.aliases.get(format!("#{name}").as_str()) else {
                return Ok(());
            };
            let mut there = Lexer::new(self.text, at);
            if !there.take("#debuginfo.metadata") {
                return Ok(());
            }
            there.balanced()?
        };
        let mut inside = Lexer::new(body, 0);
        let key = inside.string()?;
        inside.expect(":")?;
        match &*key {
            "call_stack" => draft.call_stack = texts(read(&mut inside)?),
            "sources" => {
                if let Setting::List(sources) = read(&mut inside)? {
                    for source in sources {
                        let Setting::Map(fields) = source else { continue };
                        for (key, value) in fields {
                            if key == "identifiers" {
                                draft.torch_ops.extend(texts(value));
                            }
                        }
                    }
                }
            }
            "output_maps" => {
                draft.yields =
                    matches!(read(&mut inside)?, Setting::List(maps) if !maps.is_empty());
            }
            _ => {}
        }
        Ok(())
    }

    /// Index of a frame; none if it has no line.
    fn frame(&mut self, file: Text<'a>, line: u32, column: u32) -> Option<u32> {
        if line == 0 || file == "-" || file.is_empty() {
            return None;
        }
        let debug = &mut self.module.debug;
        let file = *self.known.files.entry(file).or_insert_with_key(|path| {
            debug.files.push(File { path: path.clone(), sha256: Cow::Borrowed("") });
            debug.files.len() as u32 - 1
        });
        debug.frames.push(Frame { file, line, column });
        Some(debug.frames.len() as u32 - 1)
    }

    fn expand(&self, id: LocationId) -> Draft<'a> {
        let debug = &self.module.debug;
        let Some(location) = self.module.locations.get(id as usize) else {
            return Draft::default();
        };
        let mut frames = Vec::new();
        if location.frame != 0 {
            frames.push(location.frame - 1);
        }
        frames.extend(location.outer.of(&debug.outer));
        Draft {
            frames,
            call_stack: debug
                .call_stacks
                .get(location.call_stack as usize)
                .cloned()
                .unwrap_or_default(),
            torch_ops: location.torch_ops.of(&debug.torch_ops).to_vec(),
            yields: location.yields,
            fused: location.fused.of(&debug.fused).to_vec(),
            described: self.known.described.contains(&id),
        }
    }

    fn intern(&mut self, draft: Draft<'a>) -> LocationId {
        let debug = &mut self.module.debug;
        let mut location = Location { yields: draft.yields, ..Location::default() };
        if let Some((own, outer)) = draft.frames.split_first() {
            location.frame = own + 1;
            let start = debug.outer.len();
            debug.outer.extend(outer);
            location.outer = Span::since(start, debug.outer.len());
        }
        if !draft.call_stack.is_empty() {
            let next = debug.call_stacks.len() as u32;
            let id = *self.known.call_stacks.entry(draft.call_stack.clone()).or_insert(next);
            if id == next {
                debug.call_stacks.push(draft.call_stack);
            }
            location.call_stack = id;
        }
        let start = debug.torch_ops.len();
        debug.torch_ops.extend(draft.torch_ops);
        location.torch_ops = Span::since(start, debug.torch_ops.len());
        let start = debug.fused.len();
        debug.fused.extend(draft.fused);
        location.fused = Span::since(start, debug.fused.len());
        let nothing = location.frame == 0
            && location.call_stack == 0
            && location.torch_ops.len == 0
            && location.fused.len == 0;
        if nothing {
            return 0;
        }
        self.module.locations.push(location);
        let id = self.module.locations.len() as u32 - 1;
        if draft.described {
            self.known.described.insert(id);
        }
        id
    }
}

/// A setting of a text that stands alone, without aliases.
fn read<'a>(lexer: &mut Lexer<'a>) -> Parsed<Setting<'a>> {
    setting(lexer, &Tables::default(), "", 0)
}

fn texts(setting: Setting<'_>) -> Vec<Text<'_>> {
    let Setting::List(items) = setting else { return Vec::new() };
    items
        .into_iter()
        .filter_map(|item| match item {
            Setting::Text(text) => Some(text),
            _ => None,
        })
        .collect()
}
