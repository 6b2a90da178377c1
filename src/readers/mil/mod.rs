//! The Core ML intermediate language, whatever it was written in: protobuf of a package and text of a
//! compiled model both become [`ir`], and [`lower`] makes canonical graphs of that.

mod analysis;
mod constants;
mod dims;
pub(super) mod ir;
pub(super) mod lower;
mod settings;
mod states;
mod types;

pub(super) use self::types::raw_numbers;
pub(super) use types::dtype;
mod weights;
