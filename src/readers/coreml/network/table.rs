//! The fields of every layer kind: `proto/neural_network.proto` as a table, made by `build/proto.rs`.

/// A message.
pub(super) struct Message {
    pub name: &'static str,
    /// By number.
    pub fields: &'static [Field],
}

/// A field of a message.
pub(super) struct Field {
    pub number: u32,
    pub name: &'static str,
    pub kind: Kind,
    pub repeated: bool,
}

/// What a field holds.
pub(super) enum Kind {
    Double,
    Float,
    Signed,
    Unsigned,
    Bool,
    Text,
    Bytes,
    /// Index of the message.
    Message(usize),
    /// Numbers with their words.
    Word(&'static [(i32, &'static str)]),
}

impl Message {
    /// The message of an index.
    pub fn at(index: usize) -> Option<&'static Message> {
        MESSAGES.get(index)
    }

    /// The message of a name.
    pub fn named(name: &str) -> Option<&'static Message> {
        MESSAGES.iter().find(|message| message.name == name)
    }

    /// The field of a number.
    pub fn field(&self, number: u32) -> Option<&'static Field> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        self.fields.get(at)
    }
}

include!(concat!(env!("OUT_DIR"), "/layers.rs"));
