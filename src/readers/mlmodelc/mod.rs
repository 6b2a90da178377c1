//! `.mlmodelc`: a compiled model. The program is text (`model.mil`); `metadata.json` has versions and
//! flexible shapes; `coremldata.bin` only tells that the folder is one.

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;

use super::mil::lower::InputShape;
use super::{ReadError, ReadErrorKind, ReadOptions, mil_text, source};
use crate::graph::{Format, Program};

/// More than any `metadata.json` needs.
const METADATA_LIMIT: usize = 16 << 20;

/// Whether a folder is a compiled model.
pub(super) fn is_folder(folder: &Path) -> bool {
    folder.join("model.mil").is_file() || folder.join("coremldata.bin").is_file()
}

/// Reads the compiled model in `folder`.
///
/// # Errors
/// [`ReadError`] if its program is broken, or it holds none that this program reads.
pub(super) fn read(folder: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let file = folder.join("model.mil");
    if !file.is_file() {
        let network = folder.join("model.espresso.net").is_file();
        return Err(ReadError {
            path: folder.to_owned(),
            message: if network {
                "a compiled neural network (Espresso) is out of scope: lint the .mlmodel it was \
                 compiled from"
            } else {
                "a compiled Core ML model without model.mil is out of scope: lint the model it was \
                 compiled from"
            }
            .to_owned(),
            offset: None,
            kind: ReadErrorKind::OutOfScope,
        });
    }
    let mut program = Program::new(folder.to_owned(), Format::MlModelC);
    let mut shapes = Vec::new();
    let described = folder.join("metadata.json");
    if described.is_file() {
        let bytes = source::open(&described, options)?;
        match serde_json::from_slice::<Vec<Metadata<'_>>>(&bytes) {
            Ok(list) if bytes.len() <= METADATA_LIMIT => {
                list.iter().for_each(|entry| entry.take(&mut program, &mut shapes));
            }
            Ok(_) => program.notes.push("metadata.json: too big, not read".to_owned()),
            Err(error) => program.notes.push(format!("metadata.json: {error}")),
        }
    }
    let bytes = source::open(&file, options)?;
    mil_text::add_text(&mut program, folder, &bytes, folder, &shapes).map_err(|mut error| {
        error.message = format!("model.mil: {}", error.message);
        error
    })?;
    Ok(program)
}

/// One entry of `metadata.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    input_schema: Vec<Feature<'a>>,
    #[serde(default)]
    specification_version: Option<u32>,
    #[serde(borrow, default)]
    user_defined_metadata: std::collections::BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// An input of `metadata.json`; ranges are a text such as `[[1, 1], [1, 512]]`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feature<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    shape_range: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    enumerated_shapes: Option<Cow<'a, str>>,
}

impl Metadata<'_> {
    fn take(&self, program: &mut Program, shapes: &mut Vec<InputShape>) {
        let mut add = |key: &str, value: &str| {
            let entry = (program.names.intern(key), program.names.intern(value));
            program.metadata.push(entry);
        };
        if let Some(version) = self.specification_version {
            add("specification-version", &version.to_string());
        }
        let mut producer = Vec::new();
        for (key, value) in &self.user_defined_metadata {
            match key.as_ref() {
                "com.github.apple.coremltools.version" => {
                    add("coremltools-version", value);
                    producer.insert(0, format!("coremltools {value}"));
                }
                "com.github.apple.coremltools.source" => {
                    add("source", value);
                    producer.push(value.replacen("==", " ", 1));
                }
                "com.github.apple.coremltools.conversion_date" => {}
                _ => add(key, value),
            }
        }
        for feature in &self.input_schema {
            let lists =
                |text: &str| serde_json::from_str::<Vec<Vec<i64>>>(text).unwrap_or_default();
            if let Some(listed) = &feature.enumerated_shapes {
                // As the description of a package has them: `1×3×64, 1×3×128`.
                let shapes: Vec<String> = lists(listed)
                    .iter()
                    .map(|shape| shape.iter().map(i64::to_string).collect::<Vec<_>>().join("×"))
                    .collect();
                add("enumerated-shapes", &format!("{}: {}", feature.name, shapes.join(", ")));
            }
            let ranges: Vec<(u64, Option<u64>)> =
                match (&feature.shape_range, &feature.enumerated_shapes) {
                    (Some(range), _) => lists(range)
                        .iter()
                        .map(|pair| {
                            let min = pair.first().copied().unwrap_or(1).max(0) as u64;
                            (min, pair.get(1).and_then(|n| u64::try_from(*n).ok()))
                        })
                        .collect(),
                    (None, Some(listed)) => span(&lists(listed)),
                    (None, None) => continue,
                };
            shapes.push(InputShape { name: feature.name.to_string(), ranges });
        }
        program.producer = producer.join(", ");
    }
}

/// Smallest and largest size by axis.
fn span(shapes: &[Vec<i64>]) -> Vec<(u64, Option<u64>)> {
    let rank = shapes.first().map_or(0, Vec::len);
    (0..rank)
        .map(|axis| {
            let sizes = shapes.iter().filter_map(|shape| shape.get(axis).copied());
            let (min, max) = sizes.fold((i64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
            (min.max(0) as u64, Some(max.max(0) as u64))
        })
        .collect()
}
