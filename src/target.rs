//! What a check is against: a unit, through a runtime, on a chip, under an OS.
//!
//! Words and defaults are those of the project's semantics: rules and target tables look at the
//! Neural Engine *generation* only, never at the marketing name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The processor a graph is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Apple Neural Engine.
    NeuralEngine,
    /// The GPU.
    Gpu,
    /// The CPU.
    Cpu,
}

/// The runtime that loads the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Core AI (`.aimodel`, and `.pt2` on its way there).
    CoreAi,
    /// Core ML (`.mlpackage` and kin).
    CoreMl,
    /// ONNX Runtime with its Core ML execution provider.
    #[serde(rename = "onnxruntime")]
    OnnxRuntime,
}

/// The form of Core ML model that ONNX Runtime's provider makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderForm {
    /// An ML Program: the form to ask for.
    MlProgram,
    /// The older neural network: the provider's default.
    NeuralNetwork,
}

/// ONNX Runtime's Core ML execution provider: what it makes, and in which release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provider {
    /// What it makes.
    pub form: ProviderForm,
    /// Release of the runtime, major and minor.
    pub release: (u16, u16),
}

impl Provider {
    /// The form to ask for, and the newest release that the tables know.
    pub const DEFAULT: Provider = Provider { form: ProviderForm::MlProgram, release: (1, 32) };

    /// Reads `mlprogram`, `neuralnetwork@1.25`, `1.26`; what is left out is the default.
    pub fn parse(text: &str) -> Option<Provider> {
        let (form, release) = match text.split_once('@') {
            Some((form, release)) => (Some(form), Some(release)),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => (None, Some(text)),
            None => (Some(text), None),
        };
        let mut provider = Provider::DEFAULT;
        if let Some(form) = form {
            provider.form = ProviderForm::parse(form)?;
        }
        if let Some(release) = release {
            let mut parts = release.split('.');
            let mut number = || parts.next().and_then(|part| part.parse().ok());
            provider.release = (number()?, number()?);
        }
        Some(provider)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}.{}", self.form, self.release.0, self.release.1)
    }
}

/// A Neural Engine generation: the only thing about a chip that rules look at.
///
/// M rows follow the sources (facts §13); the phone column is by device generation and of low
/// sureness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// M1, A14.
    H13,
    /// M2, A15.
    H14,
    /// M3, A16.
    H15,
    /// M4, A17 Pro.
    H16,
    /// M5, A18.
    H17,
    /// M6, A19.
    H18,
}

/// An OS version, `major.minor`; which of iOS and macOS it is does not matter to any rule but is
/// kept as the user wrote it. macOS versions before 26 are given as their iOS twin (macOS 15 = 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OsVersion {
    /// iOS-style major version (18, 26, 27).
    pub major: u16,
    /// Minor version.
    pub minor: u16,
}

/// What a check is against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// The processor.
    pub unit: Unit,
    /// The runtime.
    pub runtime: Runtime,
    /// The chip's Neural Engine generation; `h16` unless told, the newest with measured data.
    pub chip: Generation,
    /// The OS; 27 for Core AI, the one that the package's opset needs for Core ML.
    pub os: OsVersion,
    /// With ONNX Runtime: its Core ML provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
}

macro_rules! names {
    ($type:ident { $($variant:ident = $canonical:literal $(| $alias:literal)*),+ $(,)? }) => {
        impl $type {
            /// Every value, in declaration order.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The canonical spelling, as in config, rules and JSON.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $canonical),+ }
            }

            /// Reads a canonical spelling or an alias; `None` if it is neither.
            pub fn parse(text: &str) -> Option<Self> {
                match text.to_ascii_lowercase().as_str() {
                    $($canonical $(| $alias)* => Some($type::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names!(Unit { NeuralEngine = "neural-engine" | "ane", Gpu = "gpu", Cpu = "cpu" });
names!(Runtime { CoreAi = "core-ai" | "coreai", CoreMl = "core-ml" | "coreml", OnnxRuntime = "onnxruntime" | "ort" });
names!(ProviderForm {
    MlProgram = "mlprogram" | "ml-program",
    NeuralNetwork = "neuralnetwork" | "neural-network",
});
names!(Generation {
    H13 = "h13" | "m1" | "a14",
    H14 = "h14" | "m2" | "a15",
    H15 = "h15" | "m3" | "a16",
    H16 = "h16" | "m4" | "a17" | "a17-pro" | "a17pro",
    H17 = "h17" | "m5" | "a18" | "a18-pro" | "h17s",
    H18 = "h18" | "m6" | "a19" | "a19-pro" | "h18p" | "h18g",
});

impl Target {
    /// The default target of a runtime: Neural Engine, h16, OS 27 (18 for Core ML until the reader
    /// knows what the opset needs).
    pub const fn default_for(runtime: Runtime) -> Target {
        let major = match runtime {
            Runtime::CoreAi => 27,
            Runtime::CoreMl | Runtime::OnnxRuntime => 18,
        };
        Target {
            unit: Unit::NeuralEngine,
            runtime,
            chip: Generation::H16,
            os: OsVersion { major, minor: 0 },
            provider: match runtime {
                Runtime::OnnxRuntime => Some(Provider::DEFAULT),
                Runtime::CoreAi | Runtime::CoreMl => None,
            },
        }
    }
}
