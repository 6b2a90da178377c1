//! Core ML packages and model files: `.mlpackage`, `.mlmodel`, with an ML Program or the older
//! neural network inside; pipelines of them; other kinds are named and left alone.
//!
//! # Threat model
//!
//! Messages are decoded one operation at a time from a map; weights are never read (headers of a
//! weight file's entries are); no path leads out of the package; blocks, pipelines and messages nest
//! to a limit.

mod description;
mod network;
mod package;
pub(super) mod packed;
mod program;
mod wire;

use std::path::Path;

use bytes::Bytes;

use self::wire::{Wire, proto};
use super::mil::lower::Lowering;
use super::{ReadError, ReadErrorKind, ReadOptions, source};
use crate::graph::{Format, Program};

/// Reads the package folder at `path`.
///
/// # Errors
/// [`ReadError`] if the manifest or the model is broken or of a kind that is out of scope.
pub(super) fn read_package(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let file = package::model_file(path, options)?;
    let bytes = source::open(&file, options)?;
    let base = file.parent().unwrap_or(path).to_owned();
    read_model(path, Format::MlPackage, bytes, &base)
}

/// Reads the model file at `path`.
///
/// # Errors
/// [`ReadError`] if the model is broken or of a kind that is out of scope.
pub(super) fn read_file(
    path: &Path,
    bytes: Bytes,
    _options: ReadOptions,
) -> Result<Program, ReadError> {
    let base = path.parent().unwrap_or(path).to_owned();
    read_model(path, Format::MlModel, bytes, &base)
}

/// Whether a file may be a model by its first bytes: the specification version, then a description
/// that starts with an input, its functions or its metadata. (An ONNX model starts alike; what follows
/// there is a producer's name.)
pub(super) fn is_model(head: &[u8]) -> bool {
    let [0x08, 1..=0x7f, 0x12, rest @ ..] = head else { return false };
    let length = rest.iter().position(|byte| byte & 0x80 == 0);
    matches!(length.and_then(|at| rest.get(at + 1)), Some(0x0a | 0xa2))
}

fn read_model(
    path: &Path,
    format: Format,
    bytes: Bytes,
    base: &Path,
) -> Result<Program, ReadError> {
    let wire = Wire::new(path, bytes.clone());
    let model: proto::Model = wire.decode(bytes, "the model")?;
    let mut program = Program::new(path.to_owned(), format);
    description::metadata(&mut program, &model);
    add_model(&mut program, &wire, model, base, "", 0)?;
    Ok(program)
}

/// Pipelines inside pipelines.
const DEPTH: usize = 8;

/// Adds the functions of one model; `stage` is its place in a pipeline, or empty.
fn add_model(
    program: &mut Program,
    wire: &Wire<'_>,
    model: proto::Model,
    base: &Path,
    stage: &str,
    depth: usize,
) -> Result<(), ReadError> {
    use proto::model::Kind;
    let description = model.description.unwrap_or_default();
    match model.kind {
        Some(Kind::MlProgram(bytes)) => ml_program(program, wire, &description, bytes, base, stage),
        Some(
            Kind::NeuralNetwork(bytes)
            | Kind::NeuralNetworkClassifier(bytes)
            | Kind::NeuralNetworkRegressor(bytes),
        ) => {
            let kind = program.names.intern("model-kind");
            if !program.metadata.iter().any(|(known, _)| *known == kind) {
                description::add(program, "model-kind", "neural-network");
            }
            let (inputs, outputs) = description::network_features(program, &description);
            let name = if stage.is_empty() { "main" } else { stage };
            network::Network::new(program, wire).function(name, bytes, inputs, &outputs)
        }
        Some(Kind::Pipeline(bytes)) => {
            let pipeline = wire.decode(bytes, "the pipeline")?;
            add_pipeline(program, wire, pipeline, base, stage, depth)
        }
        Some(Kind::PipelineClassifier(bytes) | Kind::PipelineRegressor(bytes)) => {
            let wrapped: proto::WrappedPipeline = wire.decode(bytes, "the pipeline")?;
            let pipeline = wrapped.pipeline.unwrap_or_default();
            add_pipeline(program, wire, pipeline, base, stage, depth)
        }
        Some(other) => Err(out_of_scope(wire, kind_name(&other))),
        None => {
            Err(wire.broken("the model holds no network, program or pipeline".to_owned(), None))
        }
    }
}

fn ml_program(
    program: &mut Program,
    wire: &Wire<'_>,
    description: &proto::ModelDescription,
    bytes: Bytes,
    base: &Path,
    stage: &str,
) -> Result<(), ReadError> {
    let mut functions = program::functions(wire, bytes)?;
    let mut enumerated = Vec::new();
    let mut shapes = Vec::with_capacity(functions.len());
    for function in &mut functions {
        let features = description::features(description, &function.name);
        let listed = features.enumerated.iter();
        enumerated.extend(listed.map(|(name, shapes)| format!("{name}: {}", shapes.join(", "))));
        shapes.push(features.shapes);
        if !stage.is_empty() {
            function.name = format!("{stage}/{}", function.name);
        }
    }
    enumerated.sort();
    enumerated.dedup();
    if !enumerated.is_empty() {
        description::add(program, "enumerated-shapes", &enumerated.join("; "));
    }
    let mut lowering = Lowering::new(program, wire, base);
    for (function, shapes) in functions.into_iter().zip(&shapes) {
        lowering.function(function, shapes)?;
    }
    lowering.finish();
    Ok(())
}

/// Adds every stage that has a graph; the others are noted.
fn add_pipeline(
    program: &mut Program,
    wire: &Wire<'_>,
    pipeline: proto::Pipeline,
    base: &Path,
    stage: &str,
    depth: usize,
) -> Result<(), ReadError> {
    if depth >= DEPTH {
        return Err(wire.broken(format!("pipelines nest deeper than {DEPTH}"), None));
    }
    let mut last = None;
    let mut any = false;
    for (at, bytes) in pipeline.models.into_iter().enumerate() {
        let own = match pipeline.names.get(at) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => format!("stage_{at}"),
        };
        let name = if stage.is_empty() { own } else { format!("{stage}/{own}") };
        let model: proto::Model = wire.decode(bytes, &format!("pipeline stage `{name}`"))?;
        match add_model(program, wire, model, base, &name, depth + 1) {
            Ok(()) => any = true,
            Err(error) if error.kind == ReadErrorKind::OutOfScope => {
                program.notes.push(format!("pipeline stage `{name}`: {}", error.message));
                last = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match (any, last) {
        (false, Some(error)) => Err(error),
        (false, None) => Err(wire.broken("the pipeline is empty".to_owned(), None)),
        (true, _) => Ok(()),
    }
}

fn out_of_scope(wire: &Wire<'_>, kind: &str) -> ReadError {
    let mut error = wire.broken(
        format!("a Core ML {kind} is out of scope: it has no graph of tensor ops to lint"),
        None,
    );
    error.kind = ReadErrorKind::OutOfScope;
    error
}

/// What people call a kind of model.
fn kind_name(kind: &proto::model::Kind) -> &'static str {
    use proto::model::Kind;
    match kind {
        Kind::GlmRegressor(_) | Kind::GlmClassifier(_) => "generalized linear model",
        Kind::SupportVectorRegressor(_) | Kind::SupportVectorClassifier(_) => {
            "support vector machine"
        }
        Kind::TreeEnsembleRegressor(_) | Kind::TreeEnsembleClassifier(_) => "tree ensemble",
        Kind::BayesianProbitRegressor(_) => "Bayesian probit regressor",
        Kind::KNearestNeighborsClassifier(_) => "nearest-neighbours classifier",
        Kind::ItemSimilarityRecommender(_) => "item recommender",
        Kind::CustomModel(_) => "custom model",
        Kind::LinkedModel(_) => "linked model",
        Kind::ClassConfidenceThresholding(_) => "class confidence thresholding model",
        Kind::OneHotEncoder(_) => "one-hot encoder",
        Kind::Imputer(_) => "imputer",
        Kind::FeatureVectorizer(_) => "feature vectorizer",
        Kind::DictVectorizer(_) => "dictionary vectorizer",
        Kind::Scaler(_) => "scaler",
        Kind::CategoricalMapping(_) => "categorical mapping",
        Kind::Normalizer(_) => "normalizer",
        Kind::ArrayFeatureExtractor(_) => "array feature extractor",
        Kind::NonMaximumSuppression(_) => "non-maximum suppression stage",
        Kind::Identity(_) => "identity stage",
        Kind::TextClassifier(_) => "text classifier",
        Kind::WordTagger(_) => "word tagger",
        Kind::VisionFeaturePrint(_) => "vision feature print",
        Kind::SoundAnalysisPreprocessing(_) => "sound analysis stage",
        Kind::Gazetteer(_) => "gazetteer",
        Kind::WordEmbedding(_) => "word embedding",
        Kind::AudioFeaturePrint(_) => "audio feature print",
        Kind::SerializedModel(_) => "serialized model",
        Kind::PipelineClassifier(_) | Kind::PipelineRegressor(_) | Kind::Pipeline(_) => "pipeline",
        Kind::NeuralNetwork(_)
        | Kind::NeuralNetworkClassifier(_)
        | Kind::NeuralNetworkRegressor(_) => "neural network",
        Kind::MlProgram(_) => "ML Program",
    }
}
