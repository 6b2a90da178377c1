//! What a real compile said of ops, where a file tells it.

/// What a compiler or a compute plan said of one op; backends and devices in the file's own words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Confirmed {
    /// The function, or empty if the file names none.
    pub function: String,
    /// The op's name; in plans without names its place in program order, as a number.
    pub node: String,
    /// The op's spelling (`conv`), or empty.
    pub spelling: String,
    /// Names of its results, if the file gives them.
    pub results: Vec<String>,
    /// What was chosen to run it.
    pub selected: Option<String>,
    /// What could run it.
    pub supported: Vec<String>,
    /// Estimated run time by backend, in milliseconds.
    pub estimates: Vec<(String, f64)>,
    /// Why a backend cannot run it.
    pub reasons: Vec<(String, String)>,
}

impl Confirmed {
    /// Whether it runs on the Neural Engine; `None` if nothing was chosen.
    pub fn on_neural_engine(&self) -> Option<bool> {
        self.selected.as_deref().map(is_neural_engine)
    }

    /// Whether the Neural Engine could run it; `None` if the file says neither yes nor no.
    pub fn neural_engine_supports(&self) -> Option<bool> {
        if self.reasons.iter().any(|(backend, _)| is_neural_engine(backend)) {
            return Some(false);
        }
        let known = self.supported.iter().chain(self.estimates.iter().map(|(backend, _)| backend));
        let mut any = false;
        for backend in known {
            any = true;
            if is_neural_engine(backend) {
                return Some(true);
            }
        }
        any.then_some(false)
    }
}

/// Whether a backend or device is the Neural Engine: `ane`, `NeuralEngine`,
/// `MLNeuralEngineComputeDevice`, `NE`.
fn is_neural_engine(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    matches!(word.as_str(), "ane" | "ne") || word.contains("neural")
}
