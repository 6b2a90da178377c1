//! The signature of an exported graph: which graph inputs are weights, which outputs are writes.

use serde::Deserialize;

/// What graph inputs and outputs mean.
#[derive(Debug, Deserialize)]
pub struct Signature {
    /// One for each graph input.
    pub input_specs: Vec<InputSpec>,
    /// One for each graph output.
    pub output_specs: Vec<OutputSpec>,
}

/// `{"name": …}`.
#[derive(Debug, Deserialize)]
pub struct NamedArg {
    /// Name of the value in the graph.
    pub name: String,
}

/// What a graph input is. Exactly one field is there.
#[derive(Debug, Default, Deserialize)]
pub struct InputSpec {
    /// A trained weight.
    #[serde(default)]
    pub parameter: Option<ParameterSpec>,
    /// A registered buffer.
    #[serde(default)]
    pub buffer: Option<BufferSpec>,
    /// A tensor made in `forward`.
    #[serde(default)]
    pub tensor_constant: Option<TensorConstantSpec>,
}

/// A trained weight.
#[derive(Debug, Deserialize)]
pub struct ParameterSpec {
    /// The graph input.
    pub arg: NamedArg,
    /// Its name in the module.
    pub parameter_name: String,
}

/// A registered buffer.
#[derive(Debug, Deserialize)]
pub struct BufferSpec {
    /// The graph input.
    pub arg: NamedArg,
    /// Its name in the module.
    pub buffer_name: String,
}

/// A tensor made in `forward`.
#[derive(Debug, Deserialize)]
pub struct TensorConstantSpec {
    /// The graph input.
    pub arg: NamedArg,
    /// Its name in the constants table.
    pub tensor_constant_name: String,
}

/// What a graph output is. Writes name their target; all else is a result.
#[derive(Debug, Default, Deserialize)]
pub struct OutputSpec {
    /// The new value of a buffer.
    #[serde(default)]
    pub buffer_mutation: Option<BufferMutationSpec>,
    /// The new value of an input.
    #[serde(default)]
    pub user_input_mutation: Option<InputMutationSpec>,
    /// The new value of a parameter.
    #[serde(default)]
    pub parameter_mutation: Option<ParameterMutationSpec>,
}

/// The new value of a buffer.
#[derive(Debug, Deserialize)]
pub struct BufferMutationSpec {
    /// The buffer's name in the module.
    pub buffer_name: String,
}

/// The new value of an input.
#[derive(Debug, Deserialize)]
pub struct InputMutationSpec {
    /// The graph input.
    pub user_input_name: String,
}

/// The new value of a parameter.
#[derive(Debug, Deserialize)]
pub struct ParameterMutationSpec {
    /// The parameter's name in the module.
    pub parameter_name: String,
}
