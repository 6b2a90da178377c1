//! The messages of an ONNX model, and the decoder that knows where a piece lies.

pub(super) use crate::readers::wire::Wire;

/// The generated messages of `proto/onnx.proto`.
#[allow(missing_docs, clippy::all, reason = "generated")]
pub(super) mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}
