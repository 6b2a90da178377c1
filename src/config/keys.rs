//! Every key of a config file, once: what it may hold, what it means, and what overrides it.

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text or a list of texts.
    Texts,
    /// Ids, names, categories or id prefixes of rules; one or a list.
    Selectors,
    /// Globs; one or a list.
    Globs,
    /// A file or folder, relative to the config file.
    Path,
    /// Folders, relative to the config file; one or a list.
    Paths,
    /// Text → path.
    PathMap,
    /// `true` or `false`.
    Switch,
    /// A whole number from 0.
    Count,
    /// A day.
    Date,
    /// Comparisons of versions.
    Version,
    /// Units; one or a list.
    Units,
    /// A runtime.
    Runtime,
    /// A chip or a Neural Engine generation.
    Chip,
    /// An OS version.
    Os,
    /// A form of ONNX Runtime's provider, a release, or both.
    Provider,
    /// A severity, or `never`.
    FailOn,
    /// A sureness.
    Sureness,
    /// Selector of rules → severity or `off`.
    Severities,
    /// A table with keys of its own.
    Table(&'static [Key]),
    /// A list of such tables.
    Tables(&'static [Key]),
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// As written.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
    /// A value as an example.
    pub example: &'static str,
    /// The flag of `check` that overrides it; empty if there is none.
    pub flag: &'static str,
    /// The environment variable that overrides it; empty if there is none.
    pub variable: &'static str,
    /// It must be there.
    pub required: bool,
}

const fn key(
    name: &'static str,
    kind: Kind,
    example: &'static str,
    [flag, variable]: [&'static str; 2],
    about: &'static str,
) -> Key {
    Key { name, kind, about, example, flag, variable, required: false }
}

const fn required(key: Key) -> Key {
    Key { required: true, ..key }
}

const NONE: [&str; 2] = ["", ""];

/// `[source]`.
pub const SOURCE: &[Key] = &[
    key(
        "roots",
        Kind::Paths,
        r#"["src"]"#,
        ["--source-root", ""],
        "Folders of your source: files below them count as yours wherever they lie.",
    ),
    key(
        "path-map",
        Kind::PathMap,
        r#"{"/build/project" = "."}"#,
        ["--path-map", ""],
        "Prefixes of recorded paths, and what they are on this machine.",
    ),
];

/// `[[suppress]]`.
pub const SUPPRESS: &[Key] = &[
    required(key(
        "rule",
        Kind::Selectors,
        r#""ANE010""#,
        NONE,
        "Which rules: ids, names, categories or id prefixes.",
    )),
    key(
        "path",
        Kind::Globs,
        r#""src/legacy/**""#,
        NONE,
        "Globs of the Python files that findings point at.",
    ),
    key(
        "module",
        Kind::Globs,
        r#""layers.*.norm""#,
        NONE,
        "Globs of module paths, as findings show them; `*` does not cross a dot, `**` does.",
    ),
    key("node", Kind::Globs, r#""softmax_*""#, NONE, "Globs of node names."),
    key(
        "model",
        Kind::Globs,
        r#""build/old/*.pt2""#,
        NONE,
        "Globs of model paths, or names of `[[model]]` tables.",
    ),
    key("reason", Kind::Text, r#""runs once, at start-up""#, NONE, "Why."),
    key(
        "until",
        Kind::Date,
        "2027-03-31",
        NONE,
        "The last day on which it holds; from the next on the findings are back, and the table is \
         reported.",
    ),
];

/// What can be set for all inputs, for some paths and for one model.
macro_rules! with_settings {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            key(
                "target",
                Kind::Units,
                r#""neural-engine""#,
                ["--target", "ANELINT_TARGET"],
                "Units to check against: neural-engine, gpu, cpu; one or a list.",
            ),
            key(
                "runtime",
                Kind::Runtime,
                r#""core-ai""#,
                ["--runtime", "ANELINT_RUNTIME"],
                "Runtime that loads the graph: core-ai, core-ml, onnxruntime. By the format if not set.",
            ),
            key(
                "chip",
                Kind::Chip,
                r#""a17""#,
                ["--chip", "ANELINT_CHIP"],
                "Chip (m1…m6, a14…a19) or Neural Engine generation (h13…h18).",
            ),
            key(
                "provider",
                Kind::Provider,
                r#""mlprogram@1.26""#,
                ["--provider", "ANELINT_PROVIDER"],
                "ONNX Runtime's Core ML provider: mlprogram or neuralnetwork, a release, or both.",
            ),
            key(
                "os",
                Kind::Os,
                r#""27""#,
                ["--os", "ANELINT_OS"],
                "OS version: 27, 18.2, ios18, macos15.",
            ),
            key(
                "select",
                Kind::Selectors,
                r#"["ANE", "numerics"]"#,
                ["--select", "ANELINT_SELECT"],
                "Rules to run: ids, names, categories or id prefixes. All that are on if not set.",
            ),
            key(
                "extend-select",
                Kind::Selectors,
                r#"["COM029"]"#,
                ["--extend-select", ""],
                "Rules to run besides.",
            ),
            key(
                "ignore",
                Kind::Selectors,
                r#"["ANE022"]"#,
                ["--ignore", "ANELINT_IGNORE"],
                "Rules to leave out; added to those that wider tables leave out.",
            ),
            key(
                "preview",
                Kind::Switch,
                "true",
                ["--preview", "ANELINT_PREVIEW"],
                "Run rules that are still on trial.",
            ),
            key(
                "severity",
                Kind::Severities,
                r#"{ANE010 = "error", memory = "advice"}"#,
                ["--severity", ""],
                "Severities of your own: error, warning, advice or off. The closest selector wins: id or \
                 name, then the longest prefix, then the category.",
            ),
            key(
                "rules",
                Kind::Globs,
                r#"["lint/*.yaml"]"#,
                ["--rules", ""],
                "Rule files of your own.",
            ),
            key(
                "max-regions",
                Kind::Count,
                "1",
                ["--max-regions", "ANELINT_MAX_REGIONS"],
                "Most regions that a function may fall into; ANE010 is an error above it.",
            ),
            key(
                "fail-on",
                Kind::FailOn,
                r#""warning""#,
                ["--fail-on", "ANELINT_FAIL_ON"],
                "Lowest severity that makes the exit code 1: error, warning, advice or never.",
            ),
            key(
                "min-sureness",
                Kind::Sureness,
                r#""reported""#,
                ["--min-sureness", "ANELINT_MIN_SURENESS"],
                "Leave out findings whose evidence is less sure: official, measured, source, reported, \
                 reverse-engineered, folklore.",
            ),
        ]
    };
}

/// `[[model]]`.
pub const MODEL: &[Key] = with_settings!(
    required(key(
        "name",
        Kind::Text,
        r#""decoder""#,
        NONE,
        "What to call it: the name is part of every fingerprint, so that a renamed file keeps its \
         baseline.",
    )),
    required(key("graph", Kind::Path, r#""build/decoder.aimodel""#, NONE, "The model file.")),
    key(
        "export",
        Kind::Text,
        r#""python export.py""#,
        NONE,
        "How to make it again when its sources change. Shown, never run.",
    ),
);

/// `[[override]]`.
pub const OVERRIDE: &[Key] = with_settings!(required(key(
    "paths",
    Kind::Globs,
    r#""build/gpu/**""#,
    NONE,
    "Globs of the models that the table is for.",
)));

/// The top level.
pub const TOP: &[Key] = with_settings!(
    key(
        "required-version",
        Kind::Version,
        r#"">=0.1, <0.2""#,
        NONE,
        "Versions of anelint, and with them of the rule set, that may be used here.",
    ),
    key(
        "exclude",
        Kind::Globs,
        r#"["build/old"]"#,
        ["--exclude", ""],
        "Paths to leave out when folders are walked.",
    ),
    key(
        "baseline",
        Kind::Path,
        r#""anelint-baseline.jsonl""#,
        ["--baseline", ""],
        "File of findings that are known and accepted for now.",
    ),
    key("require-reason", Kind::Switch, "true", NONE, "Report suppressions that give no reason.",),
    key("source", Kind::Table(SOURCE), "", NONE, "Where your Python source lies."),
    key("model", Kind::Tables(MODEL), "", NONE, "A model by name, with settings of its own."),
    key("override", Kind::Tables(OVERRIDE), "", NONE, "Settings for some paths."),
    key("suppress", Kind::Tables(SUPPRESS), "", NONE, "Findings to keep silent about."),
);
