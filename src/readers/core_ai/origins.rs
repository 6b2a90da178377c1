//! Debug locations → provenance: frames outermost first, the module path, the torch op.
//!
//! An op that swallowed views keeps its own place first, but may lose the frame that called it: the
//! frame is then found through another op of the same module call (`Linear$2` is one call).

use rustc_hash::FxHashMap;

use super::ir::{Location, LocationId, Module, Span};
use crate::graph::{Frame, ModuleId, ModulePath, Name, Program, Provenance, ProvenanceId};

/// What locations became, each made once.
#[derive(Debug)]
pub struct Origins {
    made: Vec<Option<ProvenanceId>>,
    /// Calling frames by call stack: those that all ops of the call agree on.
    callers: FxHashMap<u32, Span>,
    modules: Vec<Option<ModuleId>>,
    sha256: Vec<Option<Name>>,
}

impl Origins {
    /// Looks over the locations of a module.
    pub fn of(module: &Module<'_>) -> Origins {
        let mut callers: FxHashMap<u32, Span> = FxHashMap::default();
        for location in &module.locations {
            if location.call_stack == 0 || location.outer.len == 0 {
                continue;
            }
            let known = callers.entry(location.call_stack).or_insert(location.outer);
            *known = common_callers(module, *known, location.outer);
        }
        Origins {
            made: vec![None; module.locations.len()],
            callers,
            modules: vec![None; module.debug.call_stacks.len()],
            sha256: vec![None; module.debug.files.len()],
        }
    }

    /// The provenance of a location.
    pub fn get(
        &mut self,
        module: &Module<'_>,
        program: &mut Program,
        id: LocationId,
    ) -> ProvenanceId {
        match self.made.get(id as usize) {
            Some(Some(made)) => *made,
            Some(None) => {
                let made = self.make(module, program, &module.locations[id as usize]);
                self.made[id as usize] = Some(made);
                made
            }
            None => ProvenanceId::NONE,
        }
    }

    fn make(
        &mut self,
        module: &Module<'_>,
        program: &mut Program,
        location: &Location,
    ) -> ProvenanceId {
        // Without a place of its own, that of the first thing folded into it.
        let placed = if location.frame == 0 && location.torch_ops.len == 0 {
            let fused = location.fused.of(&module.debug.fused);
            fused
                .iter()
                .filter_map(|&id| module.locations.get(id as usize))
                .find(|fused| fused.frame != 0)
                .unwrap_or(location)
        } else {
            location
        };
        let mut outer = placed.outer;
        if outer.len == 0
            && let Some(callers) = self.callers.get(&placed.call_stack)
        {
            outer = *callers;
        }
        let mut frames = Vec::new();
        for &frame in outer.of(&module.debug.outer).iter().rev() {
            frames.extend(self.frame(module, program, frame));
        }
        if placed.frame != 0 {
            frames.extend(self.frame(module, program, placed.frame - 1));
        }
        let stack = program.sources.stack(&frames);
        let module_id = self.module(module, program, location.call_stack);
        let torch_op = match location.torch_ops.of(&module.debug.torch_ops).first() {
            Some(name) => program.names.intern(without_ordinal(name)),
            None => Name::EMPTY,
        };
        program.sources.provenance(Provenance { stack, module: module_id, torch_op })
    }

    fn frame(
        &mut self,
        module: &Module<'_>,
        program: &mut Program,
        index: u32,
    ) -> Option<crate::graph::FrameId> {
        let frame = module.debug.frames.get(index as usize)?;
        let file = module.debug.files.get(frame.file as usize)?;
        if made_by_pass(&file.path) {
            return None;
        }
        let sha256 = *self.sha256.get_mut(frame.file as usize)?.get_or_insert_with(|| {
            if !file.sha256.is_empty() {
                return program.names.intern(&file.sha256);
            }
            program.names.intern(listed_sha256(module, &file.path).unwrap_or(""))
        });
        let file = program.names.intern(&file.path);
        Some(program.sources.frame(Frame {
            file,
            line: frame.line,
            column: frame.column,
            end_line: 0,
            end_column: 0,
            function: Name::EMPTY,
            text: Name::EMPTY,
            sha256,
        }))
    }

    /// `["Linear$1", "Attention$1", "Model$1"]` → the path `Attention$1.Linear$1` of class `Linear`.
    fn module(&mut self, module: &Module<'_>, program: &mut Program, call_stack: u32) -> ModuleId {
        let at = call_stack as usize;
        if let Some(Some(made)) = self.modules.get(at) {
            return *made;
        }
        let Some(instances) = module.debug.call_stacks.get(at).filter(|s| !s.is_empty()) else {
            return ModuleId::EMPTY;
        };
        let mut path = String::new();
        let mut stack = Vec::with_capacity(instances.len());
        for (depth, instance) in instances.iter().rev().enumerate() {
            if depth > 0 {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(instance);
            }
            let class = instance.split_once('$').map_or(&**instance, |(class, _)| class);
            stack.push((program.names.intern(&path), program.names.intern(class)));
        }
        let (path, class) = stack.last().copied().unwrap_or_default();
        let made = program.sources.module(ModulePath { path, class, stack });
        self.modules[at] = Some(made);
        made
    }
}

/// Whether a frame is a graph pass of torch's, which records itself where it inserts an op (the size
/// checks of a dynamic export): no line of the model.
fn made_by_pass(path: &str) -> bool {
    path.contains("torch/fx/passes/") || path.contains("torch\\fx\\passes\\")
}

/// The outermost frames that two lists of calling frames (innermost first) share.
fn common_callers(module: &Module<'_>, a: Span, b: Span) -> Span {
    let frames = |span: Span| {
        span.of(&module.debug.outer).iter().rev().map(|&at| module.debug.frames.get(at as usize))
    };
    let len = frames(a).zip(frames(b)).take_while(|(a, b)| a == b).count() as u32;
    Span { start: a.start + (a.len - len.min(a.len)), len: len.min(a.len) }
}

/// The sha256 that a compile unit gives for a path, which may be recorded relative there.
fn listed_sha256<'m>(module: &'m Module<'_>, path: &str) -> Option<&'m str> {
    let mut found = module.debug.listed.iter().filter(|file| {
        file.path == path
            || file.path.strip_suffix(path).is_some_and(|directory| directory.ends_with('/'))
    });
    let first = found.next()?;
    found.all(|other| other.sha256 == first.sha256).then_some(&*first.sha256)
}

/// `mm_1` → `mm`: torch numbers the nodes of one op.
pub fn without_ordinal(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((base, digits))
            if !base.is_empty()
                && !digits.is_empty()
                && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}
