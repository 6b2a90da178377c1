//! The closed vocabularies of a rule file: each an enum whose YAML words are its kebab-case names.

use serde::{Deserialize, Serialize};

/// Defines an enum with its YAML word, its list and its parser.
macro_rules! words {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $word)] $variant),+
        }

        impl $type {
            /// Every value, in declaration order.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The word in YAML, config and JSON.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $word),+ }
            }

            /// Reads a word; `None` if it is none of them.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some($type::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

words! {
    /// How bad a finding is.
    #[derive(Default)]
    Severity {
        /// Worth knowing.
        #[default]
        Advice = "advice",
        /// Costs, or less sure.
        Warning = "warning",
        /// It leaves the unit, aborts, or computes something else, on official or measured evidence.
        Error = "error",
    }
}

words! {
    /// What sort of trouble a rule is about.
    #[derive(Default)]
    Category {
        /// An op leaves the unit, or the graph is cut.
        #[default]
        Residency = "residency",
        /// Values go wrong: overflow, underflow, rounding.
        Numerics = "numerics",
        /// The program computes something else than meant.
        Correctness = "correctness",
        /// A converter refuses or changes something.
        Conversion = "conversion",
        /// Size of weights, states and activations.
        Memory = "memory",
        /// It works, and could be quicker.
        Speed = "speed",
        /// What the runtime or its callers expect of names, shapes and types.
        Contract = "contract",
        /// Suppressions and baselines that no longer serve; not for rule files.
        Upkeep = "upkeep",
    }
}

words! {
    /// How sure a piece of evidence is; the order is that of trust.
    #[derive(Default)]
    Sureness {
        /// Old or unverified.
        #[default]
        Folklore = "folklore",
        /// Reverse-engineered or by a private route.
        ReverseEngineered = "reverse-engineered",
        /// One or a few issue reports.
        Reported = "reported",
        /// Read in vendor or tool source.
        Source = "source",
        /// Measured by a named public study.
        Measured = "measured",
        /// Vendor documentation or repository.
        Official = "official",
    }
}

words! {
    /// What a match means for the node that it matched.
    #[derive(Default)]
    Effect {
        /// Nothing for placement.
        #[default]
        None = "none",
        /// The node cannot stay on the unit.
        OffUnit = "off-unit",
    }
}

words! {
    /// What makes one finding.
    #[derive(Default)]
    Per {
        /// One per place in the author's source.
        #[default]
        SourceLine = "source-line",
        /// One per node.
        Node = "node",
        /// One per function.
        Function = "function",
        /// One per program.
        Program = "program",
    }
}

words! {
    /// How far a fix may be trusted.
    #[derive(Default)]
    Applicability {
        /// Words only.
        #[default]
        Display = "display",
        /// Changes structure, or needs weights reshaped.
        Unsafe = "unsafe",
        /// Same function, checked.
        Safe = "safe",
    }
}

words! {
    /// What a hole of a rewrite may stand for.
    HoleKind {
        /// A number written out.
        Number = "number",
        /// A number written out that f16 holds without becoming infinite or 0.
        F16 = "f16",
        /// A number written out from 65504 on, the last that f16 holds.
        BeyondF16 = "beyond-f16",
        /// A number written out between 0 and 6.1e-5, the least that f16 holds with all its bits.
        BelowF16 = "below-f16",
        /// A number written out that is whole, with a fraction of zeros or none.
        Whole = "whole",
        /// A name, with or without dots.
        Name = "name",
    }
}

words! {
    /// What a node is, as rules ask for it.
    Kind {
        /// Computes at run time.
        Op = "op",
        /// A run-time input.
        Input = "input",
        /// A result of the function.
        Output = "output",
        /// The handle of a state.
        State = "state",
        /// A constant.
        Constant = "constant",
    }
}

words! {
    /// Where a constant comes from, as rules ask for it.
    Origin {
        /// A trained weight.
        Parameter = "parameter",
        /// A registered buffer.
        Buffer = "buffer",
        /// A tensor made in the author's code.
        Tensor = "tensor",
        /// A Python number in the author's code.
        Literal = "literal",
        /// Made by the converter.
        Folded = "folded",
    }
}

words! {
    /// Where an off-unit op lies.
    Position {
        /// On-unit work both before and after it on some path.
        Interior = "interior",
        /// Nothing on-unit before it, or nothing after it.
        Boundary = "boundary",
    }
}

words! {
    /// What the target's table says of an op.
    Eligible {
        /// The unit runs it.
        Yes = "yes",
        /// It does not.
        No = "no",
        /// Nobody has measured or said so.
        Unknown = "unknown",
    }
}
