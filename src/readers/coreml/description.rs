//! The model description: which sizes an input may take, and the metadata.

use super::network::Input;
use super::wire::proto;
use crate::graph::{DType, Dim, Program, Symbol, SymbolId};
use crate::readers::mil::lower::InputShape;

/// What the description says of the inputs (and states) of one function.
#[derive(Default)]
pub(super) struct Features {
    /// Sizes of inputs that have no fixed shape.
    pub shapes: Vec<InputShape>,
    /// Inputs whose shape is one of a list: name and the shapes, as text.
    pub enumerated: Vec<(String, Vec<String>)>,
}

/// The features of the function `name`; a model with one function describes it at the top.
pub(super) fn features(description: &proto::ModelDescription, name: &str) -> Features {
    let own = description.functions.iter().find(|function| function.name == name);
    let inputs = match own {
        Some(function) if !function.input.is_empty() => &function.input,
        _ => &description.input,
    };
    let mut features = Features::default();
    for feature in inputs {
        let kind = feature.r#type.as_ref().and_then(|ty| ty.kind.as_ref());
        match kind {
            Some(proto::feature_type::Kind::MultiArrayType(array)) => {
                features.array(&feature.name, array);
            }
            Some(proto::feature_type::Kind::ImageType(image)) => {
                features.image(&feature.name, image);
            }
            _ => {}
        }
    }
    features
}

/// The inputs of a neural network and the names of its outputs. The format gives its tensors no
/// element type but for whole numbers: what is not one is what the unit computes in.
pub(super) fn network_features(
    program: &mut Program,
    description: &proto::ModelDescription,
) -> (Vec<Input>, Vec<String>) {
    let features = features(description, "");
    let mut inputs = Vec::new();
    for feature in &description.input {
        let kind = feature.r#type.as_ref().and_then(|ty| ty.kind.as_ref());
        let dtype = match kind {
            Some(proto::feature_type::Kind::MultiArrayType(array)) if array.data_type == INT32 => {
                DType::I32
            }
            Some(proto::feature_type::Kind::Int64Type(_)) => DType::I32,
            _ => DType::F16,
        };
        let ranges = features.shapes.iter().find(|shape| shape.name == feature.name);
        let ranges = ranges.map(|shape| shape.ranges.as_slice()).unwrap_or(&[(1, Some(1))]);
        let mut dims = Vec::with_capacity(ranges.len());
        for (axis, &(min, max)) in ranges.iter().enumerate() {
            dims.push(if max == Some(min) {
                Dim::Static(min)
            } else {
                let name = program.names.intern(&format!("{}_{axis}", feature.name));
                let symbols = &mut program.shapes.symbols;
                symbols.push(Symbol { name, min, max, data_dependent: false });
                Dim::Symbol(SymbolId(symbols.len() as u32 - 1))
            });
        }
        let image = matches!(kind, Some(proto::feature_type::Kind::ImageType(_)));
        inputs.push(Input { name: feature.name.clone(), dtype, dims, image });
    }
    let outputs = description.output.iter().map(|feature| feature.name.clone()).collect();
    (inputs, outputs)
}

/// The format's number for an array of `int32`.
const INT32: i32 = 131_104;

impl Features {
    fn array(&mut self, name: &str, array: &proto::ArrayType) {
        let fixed = |n: i64| (n.max(0) as u64, Some(n.max(0) as u64));
        let ranges = match &array.flexibility {
            Some(proto::array_type::Flexibility::ShapeRange(range)) => {
                range.size_ranges.iter().map(bounds).collect()
            }
            Some(proto::array_type::Flexibility::EnumeratedShapes(listed)) => {
                let shapes: Vec<&[i64]> =
                    listed.shapes.iter().map(|shape| shape.shape.as_slice()).collect();
                self.enumerated.push((name.to_owned(), shapes.iter().map(|s| text(s)).collect()));
                let rank = array.shape.len();
                (0..rank)
                    .map(|axis| {
                        let sizes = shapes.iter().filter_map(|shape| shape.get(axis).copied());
                        let sizes = sizes.chain(array.shape.get(axis).copied());
                        let (min, max) =
                            sizes.fold((i64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
                        (min.max(0) as u64, Some(max.max(0) as u64))
                    })
                    .collect()
            }
            None => array.shape.iter().map(|&n| fixed(n)).collect(),
        };
        self.shapes.push(InputShape { name: name.to_owned(), ranges });
    }

    /// Images are (batch, channels, height, width) tensors of the program.
    fn image(&mut self, name: &str, image: &proto::ImageType) {
        let unit = |n: i64| (n.max(1) as u64, Some(n.max(1) as u64));
        let (height, width) = match &image.flexibility {
            Some(proto::image_type::Flexibility::ImageSizeRange(range)) => (
                range.height_range.as_ref().map_or((1, None), bounds),
                range.width_range.as_ref().map_or((1, None), bounds),
            ),
            Some(proto::image_type::Flexibility::EnumeratedSizes(listed)) => {
                let span = |size: fn(&proto::ImageSize) -> u64, first: i64| {
                    let sizes = listed.sizes.iter().map(size).chain([first.max(1) as u64]);
                    let (min, max) = sizes.fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
                    (min, Some(max))
                };
                let sizes =
                    listed.sizes.iter().map(|size| format!("{}×{}", size.height, size.width));
                self.enumerated.push((name.to_owned(), sizes.collect()));
                (span(|size| size.height, image.height), span(|size| size.width, image.width))
            }
            None => (unit(image.height), unit(image.width)),
        };
        let channels = if matches!(image.color_space, 20 | 30) { unit(3) } else { unit(1) };
        self.shapes.push(InputShape {
            name: name.to_owned(),
            ranges: vec![unit(1), channels, height, width],
        });
    }
}

fn bounds(range: &proto::SizeRange) -> (u64, Option<u64>) {
    (range.lower_bound, u64::try_from(range.upper_bound).ok())
}

fn text(shape: &[i64]) -> String {
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("×")
}

/// Takes over versions and the converter's own entries, and names the producer.
pub(super) fn metadata(program: &mut Program, model: &proto::Model) {
    let version = model.specification_version;
    add(program, "specification-version", &version.to_string());
    if let Some(os) = minimum_os(version) {
        add(program, "minimum-os", &os.to_string());
    }
    let mut entries: Vec<(&str, &str)> = model
        .description
        .iter()
        .flat_map(|description| &description.metadata)
        .flat_map(|metadata| &metadata.user_defined)
        .map(|entry| (entry.key.as_str(), entry.value.as_str()))
        .collect();
    entries.sort_unstable();
    let mut producer = Vec::new();
    for (key, value) in entries {
        match key {
            "com.github.apple.coremltools.version" => {
                add(program, "coremltools-version", value);
                producer.insert(0, format!("coremltools {value}"));
            }
            "com.github.apple.coremltools.source" => {
                add(program, "source", value);
                producer.push(value.replacen("==", " ", 1));
            }
            "com.github.apple.coremltools.source_dialect" => {
                add(program, "source-dialect", value);
            }
            // The day of the conversion would make equal models unequal.
            "com.github.apple.coremltools.conversion_date" => {}
            _ => add(program, key, value),
        }
    }
    program.producer = producer.join(", ");
}

/// Adds a metadata entry.
pub(super) fn add(program: &mut Program, key: &str, value: &str) {
    let entry = (program.names.intern(key), program.names.intern(value));
    program.metadata.push(entry);
}

/// The first iOS that loads a specification version.
fn minimum_os(specification: i32) -> Option<u16> {
    Some(match specification {
        1 => 11,
        2 | 3 => 12,
        4 => 13,
        5 => 14,
        6 => 15,
        7 => 16,
        8 => 17,
        9 => 18,
        10 => 26,
        _ => return None,
    })
}
