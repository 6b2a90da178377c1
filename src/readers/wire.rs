//! Decoding of protobuf pieces with the place of what is wrong.

use std::path::Path;

use bytes::Bytes;
use prost::Message;

use crate::readers::ReadError;

/// A model file: decodes pieces of it, and knows where in the file a piece lies.
#[derive(Clone)]
pub(crate) struct Wire<'a> {
    path: &'a Path,
    /// The whole file.
    file: Bytes,
}

impl<'a> Wire<'a> {
    /// Pieces of `file`, which was read from `path`.
    pub fn new(path: &'a Path, file: Bytes) -> Wire<'a> {
        Wire { path, file }
    }

    /// Decodes one message; `what` names it in the error.
    ///
    /// # Errors
    /// [`ReadError`] with the offset at which the piece starts.
    pub fn decode<M: Message + Default>(&self, piece: Bytes, what: &str) -> Result<M, ReadError> {
        let offset = self.offset(&piece);
        M::decode(piece).map_err(|error| {
            let error = error.to_string();
            let reason =
                error.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&error);
            self.broken(format!("{what} cannot be decoded: {reason}"), offset)
        })
    }

    /// An error at an offset, if it is known.
    pub fn broken(&self, message: String, offset: Option<u64>) -> ReadError {
        let error = ReadError::broken(self.path, message);
        match offset {
            Some(offset) => error.at(offset),
            None => error,
        }
    }

    /// Where a piece lies in the file, if it is a slice of it.
    pub fn offset(&self, piece: &Bytes) -> Option<u64> {
        let start = (piece.as_ptr() as usize).checked_sub(self.file.as_ptr() as usize)?;
        (start <= self.file.len()).then_some(start as u64)
    }
}
