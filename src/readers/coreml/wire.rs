//! The messages of a Core ML model, and the decoder that knows where a piece lies.

pub(super) use crate::readers::wire::Wire;

/// The generated messages of `proto/coreml.proto`.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub(super) mod proto {
    include!(concat!(env!("OUT_DIR"), "/coreml.rs"));
}
