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
        }
    }
}
