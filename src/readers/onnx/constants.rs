//! Constants: what is kept of a tensor, where an outside file's bytes lie, what a name tells of the
//! origin.
//!
//! An outside file is only looked for and measured. Its location must stay in the model's folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxBuildHasher;

use super::tensor::{Data, Tensor, pack, text};
use crate::graph::{
    Blob, BlobFile, Category, Constant, ConstantId, ConstantOrigin, DType, Op, Payload, Program,
};
use crate::readers::{ReadError, source};

/// Most integers of a packed tensor that are unpacked so that values can be looked at.
const UNPACKED: usize = 1 << 20;

/// Where payloads lie: the file itself, and the files beside it.
pub(super) struct Store {
    /// The folder that outside files must lie in.
    base: PathBuf,
    /// The whole model file, and its index in `Program::blob_files`.
    file: Bytes,
    own: Option<u32>,
    /// Outside files by location: index in `blob_files`, and size if there.
    outside: HashMap<String, (u32, Option<u64>), FxBuildHasher>,
    /// Tensors whose bytes do not fit their type and shape.
    cut: u64,
}

impl Store {
    /// Payloads of the model `file`, which lies in `base`.
    pub fn new(base: &Path, file: Bytes) -> Store {
        let base = base.to_owned();
        Store { base, file, own: None, outside: HashMap::default(), cut: 0 }
    }

    /// Adds a tensor to the program's constants.
    ///
    /// # Errors
    /// [`ReadError`] if a dim is negative, or an outside file would lie outside of the folder.
    pub fn constant(
        &mut self,
        program: &mut Program,
        tensor: &Tensor,
        origin: ConstantOrigin,
        fqn: &str,
    ) -> Result<ConstantId, ReadError> {
        let Some(sizes) = tensor.sizes() else {
            return Err(ReadError::broken(
                &program.path,
                format!("tensor `{}` has a negative dim", tensor.name),
            ));
        };
        let payload = self.payload(program, tensor)?;
        let shape = program.shapes.intern_static(&sizes);
        let fqn = program.names.intern(fqn);
        Ok(program.add_constant(Constant { dtype: tensor.dtype, shape, origin, fqn, payload }))
    }

    /// Says what was wrong with payloads, once all are seen.
    pub fn note(&self, program: &mut Program) {
        if self.cut > 0 {
            program.notes.push(format!(
                "{} tensors have fewer or more bytes than their type and shape ask for: their \
                 values are not known",
                self.cut
            ));
        }
    }

    fn payload(&mut self, program: &mut Program, tensor: &Tensor) -> Result<Payload, ReadError> {
        if tensor.outside {
            return self.external(program, tensor);
        }
        if let Data::Texts(list) = &tensor.data {
            return Ok(match list.as_slice() {
                [one] => Payload::Text(program.names.intern(&text(one))),
                _ => Payload::Unknown,
            });
        }
        if let Some(numbers) = tensor.numbers(Constant::INLINE) {
            return Ok(match numbers.as_slice() {
                [first, _, ..] if numbers.iter().all(|n| n == first) => Payload::Splat(*first),
                _ => Payload::Values(numbers.into()),
            });
        }
        let Some(count) = tensor.elements() else { return Ok(self.cut()) };
        let packed;
        let bytes = match &tensor.data {
            Data::Raw(bytes) => bytes,
            Data::Varints(run) => {
                let list = crate::readers::coreml::packed::varints(run, UNPACKED + 1);
                if list.len() > UNPACKED {
                    return Ok(Payload::Unknown);
                }
                let Some(bytes) = pack(tensor.dtype, &list) else { return Ok(Payload::Unknown) };
                packed = Bytes::from(bytes);
                &packed
            }
            Data::None | Data::Texts(_) => return Ok(self.cut()),
        };
        if tensor.dtype == DType::Unknown {
            return Ok(Payload::Unknown);
        }
        if bytes.len() as u64 != tensor.dtype.bytes(count) {
            return Ok(self.cut());
        }
        Ok(Payload::Blob(self.blob(program, bytes)))
    }

    fn cut(&mut self) -> Payload {
        self.cut += 1;
        Payload::Unknown
    }

    /// Where bytes lie: in the file if they are a slice of it, else on their own.
    fn blob(&mut self, program: &mut Program, bytes: &Bytes) -> Blob {
        let len = bytes.len() as u64;
        let start = (bytes.as_ptr() as usize).checked_sub(self.file.as_ptr() as usize);
        if let Some(offset) = start.filter(|at| at + bytes.len() <= self.file.len()) {
            let file = *self.own.get_or_insert_with(|| {
                program.blob_files.push(BlobFile::Bytes(self.file.clone()));
                program.blob_files.len() as u32 - 1
            });
            return Blob { file, offset: offset as u64, len };
        }
        program.blob_files.push(BlobFile::Bytes(bytes.clone()));
        Blob { file: program.blob_files.len() as u32 - 1, offset: 0, len }
    }

    fn external(&mut self, program: &mut Program, tensor: &Tensor) -> Result<Payload, ReadError> {
        let entry = |key: &str| {
            let found = tensor.external.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.as_str())
        };
        let location = entry("location").unwrap_or_default();
        let (file, size) = match self.outside.get(location) {
            Some(known) => *known,
            None => {
                let found = self.look(program, location, &tensor.name)?;
                self.outside.insert(location.to_owned(), found);
                found
            }
        };
        let number = |key: &str| entry(key).and_then(|text| text.trim().parse::<u64>().ok());
        let offset = number("offset").unwrap_or(0);
        let wanted = tensor.elements().map(|n| tensor.dtype.bytes(n));
        let len = number("length").or(wanted);
        let Some(len) = len.filter(|len| wanted.is_none_or(|wanted| wanted == *len)) else {
            return Ok(self.cut());
        };
        let fits = offset.checked_add(len).is_some_and(|end| size.is_none_or(|size| end <= size));
        if !fits {
            return Ok(self.cut());
        }
        Ok(Payload::Blob(Blob { file, offset, len }))
    }

    /// Looks for an outside file.
    fn look(
        &self,
        program: &mut Program,
        location: &str,
        tensor: &str,
    ) -> Result<(u32, Option<u64>), ReadError> {
        let path =
            (!location.contains('\\')).then(|| source::inside(&self.base, location)).flatten();
        let Some(path) = path else {
            return Err(ReadError::broken(
                &program.path,
                format!(
                    "the data of tensor `{tensor}` are said to lie in `{location}`, outside of the \
                     model's folder: refused"
                ),
            ));
        };
        let size = std::fs::metadata(&path).ok().filter(|m| m.is_file()).map(|m| m.len());
        let id = program.blob_files.len() as u32;
        if size.is_some() {
            program.blob_files.push(BlobFile::Path(Arc::from(path)));
        } else {
            program.blob_files.push(BlobFile::Missing(Arc::from(location)));
            program.notes.push(format!(
                "data file `{location}` is not there: values of its constants are not known"
            ));
        }
        Ok((id, size))
    }
}

/// What an initialiser's name tells: exporters keep the names of parameters and buffers, and number
/// what they folded (`val_3`, `onnx::MatMul_12`, `/layer/Constant_output_0`).
pub(super) fn origin(name: &str) -> (ConstantOrigin, &str) {
    let tail = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    let weight = ["weight", "bias", "gamma", "beta", "running_mean", "running_var"]
        .iter()
        .any(|word| tail == *word || tail.ends_with(&format!("_{word}")));
    if weight && !name.contains("::") {
        return (ConstantOrigin::Parameter, name);
    }
    if let Some(rest) = name.strip_prefix("c_lifted_tensor") {
        let numbered = rest.chars().all(|c| c.is_ascii_digit() || c == '_');
        return (ConstantOrigin::Tensor, if numbered { "" } else { name });
    }
    let numbered = name.strip_prefix("val_").is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit() || c == '_')
    });
    let made = numbered
        || name.is_empty()
        || name.contains("::")
        || name.contains('/')
        || tail.starts_with("Constant")
        || tail.starts_with("const");
    if made { (ConstantOrigin::Folded, "") } else { (ConstantOrigin::Buffer, name) }
}

/// Whether a constant in this place is a trained weight, whatever it is called.
pub(super) fn is_trained(op: Op, operand: &str) -> bool {
    match op.category() {
        Category::Compression | Category::Recurrent => true,
        Category::Contraction | Category::Normalization => {
            matches!(operand, "weight" | "bias" | "mean" | "variance")
        }
        Category::Indexing => op == Op::EMBEDDING && operand == "weight",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_origin() {
        let of = |name| origin(name).0;
        assert_eq!(of("layers.0.attn.q_proj.weight"), ConstantOrigin::Parameter);
        assert_eq!(of("norm_weight"), ConstantOrigin::Parameter);
        assert_eq!(of("mask"), ConstantOrigin::Buffer);
        assert_eq!(of("rotary.inv_freq"), ConstantOrigin::Buffer);
        assert_eq!(of("c_lifted_tensor_0"), ConstantOrigin::Tensor);
        assert_eq!(of("val_12"), ConstantOrigin::Folded);
        assert_eq!(of("onnx::MatMul_34"), ConstantOrigin::Folded);
        assert_eq!(of("/layer/Constant_output_0"), ConstantOrigin::Folded);
    }
}
