//! Names across the files of the author's tree: imports to files, classes to their bases.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::author::{FrameKind, frame_kind};
use super::locate::Locator;
use crate::findings::python::{
    Definition, PythonFile, assignments_to_attribute, class_definition, function_definition,
    method_definition, superclasses,
};

/// A class of some file.
#[derive(Debug, Clone)]
pub struct ClassRef {
    /// The file.
    pub file: Arc<PythonFile>,
    /// Bytes of its definition.
    pub range: Range<usize>,
}

/// Some bytes of a file.
#[derive(Debug, Clone)]
pub struct Code {
    /// The file.
    pub file: Arc<PythonFile>,
    /// The bytes.
    pub range: Range<usize>,
}

/// Most bases looked through for one name.
const MAX_BASES: usize = 16;
/// How many folders above a file may hold the package it belongs to.
const MAX_PARENTS: usize = 8;

impl ClassRef {
    /// The class that a definition node stands for.
    pub fn new(file: &Arc<PythonFile>, definition: Definition<'_>) -> ClassRef {
        ClassRef { file: Arc::clone(file), range: definition.node.byte_range() }
    }

    /// The class around some bytes of a file.
    #[cfg(test)]
    pub fn around(file: &Arc<PythonFile>, range: &Range<usize>) -> Option<ClassRef> {
        let node = file.root()?.descendant_for_byte_range(range.start, range.end)?;
        Some(ClassRef::new(file, crate::findings::python::enclosing_class(node)?))
    }

    /// Its definition.
    pub fn definition(&self) -> Option<Definition<'_>> {
        let mut node =
            self.file.root()?.descendant_for_byte_range(self.range.start, self.range.end)?;
        while node.kind() != "class_definition" {
            node = node.parent()?;
        }
        Some(Definition { node })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.definition().map_or("", |definition| definition.name(&self.file))
    }
}

impl Locator {
    /// The file of a module as a file imports it (`.masks`, `package.masks`); only in the author's
    /// tree.
    pub fn module(&self, from: &PythonFile, module: &str) -> Option<Arc<PythonFile>> {
        let dots = module.len() - module.trim_start_matches('.').len();
        let parts: Vec<&str> =
            module.trim_start_matches('.').split('.').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| !part.chars().all(|c| c.is_alphanumeric() || c == '_')) {
            return None;
        }
        let folder = from.path().parent()?;
        let bases: Vec<PathBuf> = if dots > 0 {
            vec![folder.ancestors().nth(dots - 1)?.to_owned()]
        } else {
            folder
                .ancestors()
                .take(MAX_PARENTS)
                .map(Path::to_owned)
                .chain(self.options().roots.iter().cloned())
                .chain(std::iter::once(self.options().working_folder.clone()))
                .collect()
        };
        for base in bases {
            let path = parts.iter().fold(base, |path, part| path.join(part));
            for candidate in [path.with_extension("py"), path.join("__init__.py")] {
                let author = frame_kind(&candidate.to_string_lossy(), &self.options().roots)
                    == FrameKind::Author;
                if let Some(file) = author.then(|| self.read(&candidate)).flatten() {
                    return Some(file);
                }
            }
        }
        None
    }

    /// The file and own name behind an imported name.
    fn imported(&self, file: &PythonFile, name: &str) -> Option<(Arc<PythonFile>, String)> {
        let import = file.imports().get(name)?;
        let member = import.member.clone()?;
        Some((self.module(file, &import.module)?, member))
    }

    /// The module file that a name stands for (`import masks`, `from . import masks`).
    pub fn module_named(&self, file: &PythonFile, name: &str) -> Option<Arc<PythonFile>> {
        let import = file.imports().get(name)?;
        match &import.member {
            None => self.module(file, &import.module),
            Some(member) => {
                let dot = if import.module.ends_with('.') { "" } else { "." };
                self.module(file, &format!("{}{dot}{member}", import.module))
            }
        }
    }

    /// The body of a function by the name that a file knows it under.
    pub fn function(&self, file: &Arc<PythonFile>, name: &str) -> Option<Code> {
        self.function_at(file, name, 4)
    }

    fn function_at(&self, file: &Arc<PythonFile>, name: &str, hops: u32) -> Option<Code> {
        if let Some(definition) = function_definition(file, name) {
            return Some(Code { file: Arc::clone(file), range: definition.body()?.byte_range() });
        }
        let hops = hops.checked_sub(1)?;
        if let Some((other, member)) = self.imported(file, name) {
            return self.function_at(&other, &member, hops);
        }
        file.imports()
            .stars()
            .iter()
            .filter_map(|module| self.module(file, module))
            .find_map(|other| self.function_at(&other, name, hops))
    }

    /// A class by the name that a file knows it under.
    pub fn class(&self, file: &Arc<PythonFile>, name: &str) -> Option<ClassRef> {
        self.class_at(file, name, 4)
    }

    fn class_at(&self, file: &Arc<PythonFile>, name: &str, hops: u32) -> Option<ClassRef> {
        if let Some(definition) = class_definition(file, name) {
            return Some(ClassRef::new(file, definition));
        }
        let hops = hops.checked_sub(1)?;
        if let Some((module, own)) = name.split_once('.') {
            let other = self.module_named(file, module)?;
            return self.class_at(&other, own, hops);
        }
        let (other, member) = self.imported(file, name)?;
        self.class_at(&other, &member, hops)
    }

    /// A class and its bases in the author's tree, nearest first.
    pub fn lineage(&self, class: &ClassRef) -> Vec<ClassRef> {
        let mut lineage = vec![class.clone()];
        let mut at = 0;
        while let Some(own) = lineage.get(at).cloned() {
            at += 1;
            let Some(definition) = own.definition() else { continue };
            for base in superclasses(&own.file, definition) {
                if lineage.len() >= MAX_BASES {
                    return lineage;
                }
                if let Some(base) = self.class(&own.file, &base) {
                    let known = lineage.iter().any(|known| {
                        known.file.path() == base.file.path() && known.range == base.range
                    });
                    if !known {
                        lineage.push(base);
                    }
                }
            }
        }
        lineage
    }

    /// The body of a method, of the class itself or its nearest base.
    pub fn method(&self, lineage: &[ClassRef], name: &str) -> Option<Code> {
        lineage.iter().find_map(|class| {
            let definition = method_definition(&class.file, class.definition()?, name)?;
            Some(Code { file: Arc::clone(&class.file), range: definition.body()?.byte_range() })
        })
    }

    /// Where a class, or its nearest base that does, makes an attribute.
    pub fn attribute(&self, lineage: &[ClassRef], name: &str) -> Vec<Code> {
        for class in lineage {
            let Some(definition) = class.definition() else { continue };
            let found = assignments_to_attribute(&class.file, definition, name);
            if !found.is_empty() {
                return found
                    .into_iter()
                    .map(|node| Code { file: Arc::clone(&class.file), range: node.byte_range() })
                    .collect();
            }
        }
        Vec::new()
    }
}
