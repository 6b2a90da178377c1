//! Where a node comes from: Python frames, module path, torch op.

use std::collections::HashMap;
use std::hash::Hash;

use super::Name;

/// Index of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Index of a stack of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// Index of a [`ModulePath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// Index of a [`Provenance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProvenanceId(pub u32);

impl StackId {
    /// No frames, in every table.
    pub const EMPTY: StackId = StackId(0);
}
impl ModuleId {
    /// No module, in every table.
    pub const EMPTY: ModuleId = ModuleId(0);
}
impl ProvenanceId {
    /// Nothing known, in every table.
    pub const NONE: ProvenanceId = ProvenanceId(0);
}

/// One recorded Python frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The file as recorded (a path of the exporting machine).
    pub file: Name,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if not recorded. Counted in `text` where the format carries that (a traceback
    /// prints a line without its indentation).
    pub column: u32,
    /// Line on which the expression ends, from 1; 0 if not recorded.
    pub end_line: u32,
    /// Column behind the expression, counted as `column`; on another line than `line` from the start of
    /// that line. 0 if not recorded.
    pub end_column: u32,
    /// The function's name.
    pub function: Name,
    /// The source text that the format carries for this line, trimmed; empty if none.
    pub text: Name,
    /// Lower-case hex sha256 of the whole file when the format carries it; empty if none.
    pub sha256: Name,
}

/// The path of the module that ran an op, outermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ModulePath {
    /// Dotted path in the author's model (`layers.3.self_attn.q_proj`); empty for the root.
    pub path: Name,
    /// Class of the innermost module, as recorded (`torch.nn.modules.linear.Linear`).
    pub class: Name,
    /// `(path, class)` of every module around it, outermost first, the innermost included.
    pub stack: Vec<(Name, Name)>,
}

/// Where a node comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// Frames, outermost first.
    pub stack: StackId,
    /// Module.
    pub module: ModuleId,
    /// The torch function or method that made it, as recorded; empty if none.
    pub torch_op: Name,
}

/// The interned frames, stacks, modules and provenances of a program.
#[derive(Debug, Clone)]
pub struct Sources {
    frames: Table<Frame>,
    stacks: Table<Box<[FrameId]>>,
    modules: Table<ModulePath>,
    provenances: Table<Provenance>,
}

impl Default for Sources {
    fn default() -> Self {
        let mut sources = Sources {
            frames: Table::default(),
            stacks: Table::default(),
            modules: Table::default(),
            provenances: Table::default(),
        };
        sources.stacks.intern(Box::default());
        sources.modules.intern(ModulePath::default());
        sources.provenances.intern(Provenance {
            stack: StackId::EMPTY,
            module: ModuleId::EMPTY,
            torch_op: Name::EMPTY,
        });
        sources
    }
}

impl Sources {
    /// Interns a frame.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        FrameId(self.frames.intern(frame))
    }
    /// Interns a stack, outermost frame first.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        StackId(self.stacks.intern(frames.into()))
    }
    /// Interns a module path.
    pub fn module(&mut self, module: ModulePath) -> ModuleId {
        ModuleId(self.modules.intern(module))
    }
    /// Interns a provenance.
    pub fn provenance(&mut self, provenance: Provenance) -> ProvenanceId {
        ProvenanceId(self.provenances.intern(provenance))
    }
    /// A frame by id.
    pub fn get_frame(&self, id: FrameId) -> &Frame {
        &self.frames.items[id.0 as usize]
    }
    /// The frames of a stack, outermost first.
    pub fn frames(
        &self,
        id: StackId,
    ) -> impl DoubleEndedIterator<Item = &Frame> + ExactSizeIterator {
        self.stacks.items[id.0 as usize].iter().map(|&frame| self.get_frame(frame))
    }
    /// A module path by id.
    pub fn get_module(&self, id: ModuleId) -> &ModulePath {
        &self.modules.items[id.0 as usize]
    }
    /// A provenance by id.
    pub fn get(&self, id: ProvenanceId) -> &Provenance {
        &self.provenances.items[id.0 as usize]
    }
    /// All frames.
    pub fn all_frames(&self) -> impl Iterator<Item = &Frame> {
        self.frames.items.iter()
    }
}

/// An interning table.
#[derive(Debug, Clone)]
struct Table<T> {
    items: Vec<T>,
    lookup: HashMap<T, u32, rustc_hash::FxBuildHasher>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { items: Vec::new(), lookup: HashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn intern(&mut self, item: T) -> u32 {
        if let Some(&id) = self.lookup.get(&item) {
            return id;
        }
        let id = self.items.len() as u32;
        self.items.push(item.clone());
        self.lookup.insert(item, id);
        id
    }
}
