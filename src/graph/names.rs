//! Interned strings.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use rustc_hash::FxHasher;

/// An interned string; compare by id, read with [`Names::get`]. `Name::EMPTY` is the empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Name(pub u32);

impl Name {
    /// The empty string, in every table.
    pub const EMPTY: Name = Name(0);

    /// Whether this is the empty string.
    pub fn is_empty(self) -> bool {
        self == Name::EMPTY
    }
}

/// A string interner: all texts lie in one buffer, so a million short names cost no allocation each.
#[derive(Debug, Clone)]
pub struct Names {
    text: String,
    /// End offset of each name in `text`; the start is the end before it.
    ends: Vec<u32>,
    lookup: HashMap<u64, Vec<u32>, BuildHasherDefault<FxHasher>>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names { text: String::new(), ends: Vec::new(), lookup: HashMap::default() };
        names.intern("");
        names
    }
}

impl Names {
    /// The id of `text`, adding it if it is new.
    pub fn intern(&mut self, text: &str) -> Name {
        let hash = hash(text);
        if let Some(ids) = self.lookup.get(&hash) {
            for &id in ids {
                if self.get(Name(id)) == text {
                    return Name(id);
                }
            }
        }
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        self.lookup.entry(hash).or_default().push(id);
        Name(id)
    }

    /// The id of `text` if it was interned before.
    pub fn find(&self, text: &str) -> Option<Name> {
        let ids = self.lookup.get(&hash(text))?;
        ids.iter().map(|&id| Name(id)).find(|&name| self.get(name) == text)
    }

    /// The text of a name; the empty string for an id of another table.
    pub fn get(&self, name: Name) -> &str {
        let id = name.0 as usize;
        let Some(&end) = self.ends.get(id) else { return "" };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start as usize..end as usize]
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no name but the empty one.
    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }
}

fn hash(text: &str) -> u64 {
    use std::hash::Hasher;
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}
