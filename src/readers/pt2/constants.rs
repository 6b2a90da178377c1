//! Where the values of buffers, lifted tensors and weights lie. Parameters are only pointed at;
//! small others are decoded; pickled ones stay unknown.

use std::borrow::Cow;
use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde::Deserialize;

use super::archive::Archive;
use super::argument::{Key, dtype};
use super::document::TensorMeta;
use crate::graph::{Blob, BlobFile, Constant, DType, Payload, Program};

/// Most bytes of deflated members that are not parameters which one file may make us inflate.
const INFLATE_BUDGET: u64 = 64 << 20;

/// One entry of a config.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    path_name: Option<Cow<'a, str>>,
    #[serde(default)]
    use_pickle: bool,
    #[serde(borrow, default)]
    tensor_meta: Option<TensorMeta<'a>>,
}

/// Where one tensor's bytes lie, as a config says.
#[derive(Debug, Clone)]
struct Payloads {
    member: String,
    pickled: bool,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
    dtype: DType,
}

/// The two configs of a model.
#[derive(Debug, Default)]
pub struct Store {
    entries: IndexMap<String, Payloads>,
    left_out: BTreeSet<String>,
    inflated: u64,
    missing: u64,
    pickled: u64,
}

impl Store {
    /// Reads the configs; one that is missing or broken makes a note.
    pub fn read(
        archive: &mut Archive<'_>,
        root: &str,
        stem: &str,
        notes: &mut Vec<String>,
    ) -> Store {
        let mut store = Store::default();
        for kind in ["weights", "constants"] {
            let folder = format!("{root}data/{kind}/");
            let config = format!("{folder}{stem}_{kind}_config.json");
            if !archive.has(&config) {
                notes.push(format!("{config} is missing: values of its tensors are not known"));
                continue;
            }
            let result = archive.read(&config).map_err(|error| error.message).and_then(|data| {
                store.config(&data.bytes, &folder).map_err(|error| format!("{config}: {error}"))
            });
            if let Err(message) = result {
                notes.push(message);
            }
        }
        store
    }

    fn config(&mut self, bytes: &[u8], folder: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Config<'a> {
            #[serde(borrow)]
            config: Entries<'a>,
        }
        struct Entries<'a>(Vec<(Cow<'a, str>, Entry<'a>)>);
        impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct EntriesVisitor<'a>(std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> serde::de::Visitor<'de> for EntriesVisitor<'a> {
                    type Value = Entries<'a>;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("payloads by name")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Entries<'a>, A::Error> {
                        let mut entries = Vec::new();
                        while let Some((Key(key), entry)) =
                            map.next_entry::<Key<'a>, Entry<'a>>()?
                        {
                            entries.push((key, entry));
                        }
                        Ok(Entries(entries))
                    }
                }
                deserializer.deserialize_map(EntriesVisitor(std::marker::PhantomData))
            }
        }
        let config: Config<'_> =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        for (name, entry) in config.config.0 {
            let Some(path_name) = entry.path_name else { continue };
            let ints = |list: &[super::document::SizeValue<'_>]| -> Option<Vec<i64>> {
                list.iter().map(|size| size.as_int).collect()
            };
            let meta = entry.tensor_meta.as_ref();
            self.entries.insert(
                name.into_owned(),
                Payloads {
                    member: format!("{folder}{path_name}"),
                    pickled: entry.use_pickle,
                    sizes: meta.and_then(|meta| ints(&meta.sizes)).unwrap_or_default(),
                    strides: meta.and_then(|meta| ints(&meta.strides)).unwrap_or_default(),
                    offset: meta.and_then(|meta| meta.storage_offset.as_ref()?.as_int).unwrap_or(0),
                    dtype: meta.map_or(DType::Unknown, |meta| dtype(meta.dtype)),
                },
            );
        }
        Ok(())
    }

    /// Payloads that the archive is known not to have: that is no news.
    pub fn leave_out(&mut self, names: &BTreeSet<String>) {
        self.left_out.clone_from(names);
    }

    /// The values of a tensor, as far as they can be told without reading a weight.
    pub fn payload(
        &mut self,
        archive: &mut Archive<'_>,
        program: &mut Program,
        fqn: &str,
        is_parameter: bool,
    ) -> Payload {
        if self.left_out.contains(fqn) {
            return Payload::Unknown;
        }
        let Some(entry) = self.entries.get(fqn).cloned() else {
            self.missing += 1;
            return Payload::Unknown;
        };
        if entry.pickled {
            self.pickled += 1;
            return Payload::Unknown;
        }
        let Some(size) = archive.size(&entry.member) else {
            self.missing += 1;
            return Payload::Unknown;
        };
        let elements =
            entry.sizes.iter().try_fold(1u64, |n, &size| n.checked_mul(u64::try_from(size).ok()?));
        let (Some(elements), bits @ 8..) = (elements, entry.dtype.bits()) else {
            return Payload::Unknown;
        };
        let item = bits / 8;
        let (file, start) = match archive.place(&entry.member) {
            Some((start, _)) => (0, start),
            None if is_parameter || self.inflated.saturating_add(size) > INFLATE_BUDGET => {
                return Payload::Unknown;
            }
            None => {
                let Ok(data) = archive.read(&entry.member) else {
                    self.missing += 1;
                    return Payload::Unknown;
                };
                self.inflated += size;
                program.blob_files.push(BlobFile::Bytes(data.bytes));
                (program.blob_files.len() as u32 - 1, 0)
            }
        };
        let Some(bytes) = elements.checked_mul(item) else { return Payload::Unknown };
        let Some(first) = u64::try_from(entry.offset).ok().and_then(|n| n.checked_mul(item)) else {
            return Payload::Unknown;
        };
        if first.checked_add(bytes).is_none_or(|end| end > size) && is_row_major(&entry) {
            self.missing += 1;
            return Payload::Unknown;
        }
        if !is_parameter && elements as usize <= Constant::INLINE {
            return decode_strided(program, file, start, size, &entry).unwrap_or_default();
        }
        if is_row_major(&entry) {
            return Payload::Blob(Blob { file, offset: start + first, len: bytes });
        }
        Payload::Unknown
    }

    /// Notes on payloads that could not be told.
    pub fn notes(&self, notes: &mut Vec<String>) {
        if self.missing > 0 {
            notes.push(format!("{} tensors have no payload in the archive", self.missing));
        }
        if self.pickled > 0 {
            notes.push(format!(
                "{} tensors are pickled: pickles are never opened, their values are not known",
                self.pickled
            ));
        }
    }
}

fn is_row_major(entry: &Payloads) -> bool {
    let mut expected = 1i64;
    entry.strides.len() == entry.sizes.len()
        && entry.sizes.iter().zip(&entry.strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == expected;
            expected = expected.saturating_mul(size.max(1));
            fits
        })
}

/// Decodes a small tensor by its strides.
fn decode_strided(
    program: &Program,
    file: u32,
    start: u64,
    size: u64,
    entry: &Payloads,
) -> Option<Payload> {
    let BlobFile::Bytes(bytes) = program.blob_files.get(file as usize)? else { return None };
    let member = bytes.get(usize::try_from(start).ok()?..usize::try_from(start + size).ok()?)?;
    let item = i64::try_from(entry.dtype.bits() / 8).ok()?;
    let count = entry.sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size))?;
    let mut values = Vec::with_capacity(usize::try_from(count).ok()?);
    for at in 0..count {
        let (mut rest, mut place) = (at, entry.offset);
        for (&size, &stride) in entry.sizes.iter().zip(&entry.strides).rev() {
            place = place.checked_add((rest % size.max(1)).checked_mul(stride)?)?;
            rest /= size.max(1);
        }
        let first = usize::try_from(place.checked_mul(item)?).ok()?;
        let raw = member.get(first..first.checked_add(usize::try_from(item).ok()?)?)?;
        values.push(number(entry.dtype, raw)?);
    }
    Some(Payload::Values(values.into()))
}

/// A little-endian element.
fn number(dtype: DType, raw: &[u8]) -> Option<f64> {
    Some(match dtype {
        DType::F16 => half::f16::from_le_bytes(raw.try_into().ok()?).to_f64(),
        DType::BF16 => half::bf16::from_le_bytes(raw.try_into().ok()?).to_f64(),
        DType::F32 => f64::from(f32::from_le_bytes(raw.try_into().ok()?)),
        DType::F64 => f64::from_le_bytes(raw.try_into().ok()?),
        DType::I8 => f64::from(i8::from_le_bytes(raw.try_into().ok()?)),
        DType::I16 => f64::from(i16::from_le_bytes(raw.try_into().ok()?)),
        DType::I32 => f64::from(i32::from_le_bytes(raw.try_into().ok()?)),
        DType::I64 => i64::from_le_bytes(raw.try_into().ok()?) as f64,
        DType::U8 | DType::Bool => f64::from(*raw.first()?),
        DType::U16 => f64::from(u16::from_le_bytes(raw.try_into().ok()?)),
        DType::U32 => f64::from(u32::from_le_bytes(raw.try_into().ok()?)),
        DType::U64 => u64::from_le_bytes(raw.try_into().ok()?) as f64,
        _ => return None,
    })
}
