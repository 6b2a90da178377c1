//! Core ML packages and model files: `.mlpackage`, `.mlmodel`, with an ML Program or the older
//! neural network inside; pipelines of them; other kinds are named and left alone.
//!
//! # Threat model
//!
//! Messages are decoded one operation at a time from a map; weights are never read (headers of a
//! weight file's entries are); no path leads out of the package; blocks, pipelines and messages nest
//! to a limit.

mod description;
mod file;
mod package;
pub(super) mod packed;
mod program;
mod wire;

use std::path::Path;

use bytes::Bytes;

use self::file as source;
use self::wire::{Wire, proto};
use super::mil::lower::Lowering;
use super::{ReadError, ReadErrorKind, ReadOptions};
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
pub(super) fn read_file(path: &Path, options: ReadOptions) -> Result<Program, ReadError> {
    let bytes = source::open(path, options)?;
    let base = path.parent().unwrap_or(path).to_owned();
    read_model(path, Format::MlModel, bytes, &base)
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
    add_model(&mut program, &wire, model, base)?;
    Ok(program)
}

/// Adds the functions of one model.
fn add_model(
    program: &mut Program,
    wire: &Wire<'_>,
    model: proto::Model,
    base: &Path,
) -> Result<(), ReadError> {
    use proto::model::Kind;
    let description = model.description.unwrap_or_default();
    match model.kind {
        Some(Kind::MlProgram(bytes)) => {
            let functions = program::functions(wire, bytes)?;
            let features: Vec<description::Features> = functions
                .iter()
                .map(|function| description::features(&description, &function.name))
                .collect();
            let mut enumerated: Vec<String> = features
                .iter()
                .flat_map(|features| &features.enumerated)
                .map(|(name, shapes)| format!("{name}: {}", shapes.join(", ")))
                .collect();
            enumerated.sort();
            enumerated.dedup();
            if !enumerated.is_empty() {
                description::add(program, "enumerated-shapes", &enumerated.join("; "));
            }
            let mut lowering = Lowering::new(program, wire, base);
            for (function, features) in functions.into_iter().zip(&features) {
                lowering.function(function, &features.shapes)?;
            }
            lowering.finish();
            Ok(())
        }
        Some(other) => Err(out_of_scope(wire, kind_name(&other))),
        None => {
            Err(wire.broken("the model holds no network, program or pipeline".to_owned(), None))
        }
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
