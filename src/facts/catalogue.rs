//! The facts that rules can ask for, with their fields: plain data and no imports, since `build.rs`
//! includes this file to check the built-in rules.

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A node; can be bound, reported at, claimed.
    Node,
    /// A value; can be bound and matched by a value pattern.
    Value,
    /// Several nodes.
    Nodes,
    /// Several values.
    Values,
    /// A whole number; can be compared.
    Int,
    /// A real number; can be compared.
    Float,
    /// A truth value.
    Bool,
    /// One of these words.
    Text(&'static [&'static str]),
    /// Free text for messages and keys (a symbol's name); cannot be compared with a word.
    Label,
}

/// A field of a fact.
#[derive(Debug)]
pub struct FieldInfo {
    /// Name in YAML.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether a record may lack it.
    pub optional: bool,
    /// What it means.
    pub doc: &'static str,
}

/// A fact.
#[derive(Debug)]
pub struct FactInfo {
    /// Name in YAML.
    pub name: &'static str,
    /// What it recognises.
    pub doc: &'static str,
    /// Its fields.
    pub fields: &'static [FieldInfo],
}

const fn always(name: &'static str, kind: FieldKind, doc: &'static str) -> FieldInfo {
    FieldInfo { name, kind, optional: false, doc }
}

const fn maybe(name: &'static str, kind: FieldKind, doc: &'static str) -> FieldInfo {
    FieldInfo { name, kind, optional: true, doc }
}

use FieldKind::{Bool, Float, Int, Label, Node, Nodes, Text, Value, Values};

/// Every fact, by name.
pub const FACTS: &[FactInfo] = &[
    FactInfo {
        name: "attention",
        doc: "softmax(q·k)·v, as one op or written out; per-head code gives one record a head",
        fields: &[
            always("softmax", Node, "the softmax, or the sdpa op"),
            always("output", Node, "the product with the values, or the sdpa op"),
            always("query", Value, "queries as fed to the first product"),
            always("key", Value, "keys as fed to the first product"),
            always("value", Value, "values as fed to the second product"),
            maybe("scores", Value, "what the softmax reads, mask and scale applied; none for sdpa"),
            maybe("probabilities", Value, "what the softmax gives; none for sdpa"),
            maybe("product", Node, "the product of queries and keys; none for sdpa"),
            maybe(
                "mask",
                Value,
                "the additive mask before broadcasting, or the condition of a where",
            ),
            maybe("mask-join", Node, "the add, where or sdpa op that joins mask and scores"),
            always("kind", Text(&["sdpa", "decomposed"]), "one op, or written out"),
            always(
                "heads",
                Text(&["fused", "per-head", "single"]),
                "all heads batched in one product; one of several parallel records; or one head, no axis of heads",
            ),
            maybe("head-count", Int, "heads in this record (per-head: parallel records)"),
            maybe("head-dim", Int, "extent that q·k contracts"),
            maybe("softmax-axis", Int, "non-negative axis of the softmax in the scores"),
            maybe(
                "contracted-axis",
                Int,
                "axis of the probabilities that the product with the values contracts",
            ),
            always(
                "renormalised",
                Bool,
                "whether the weights are divided by run-time sums between softmax and product, as in slot attention",
            ),
            maybe("scores-query-axis", Int, "axis of the scores that counts queries"),
            maybe("scores-key-axis", Int, "axis of the scores that counts keys"),
            maybe(
                "mask-query-axis",
                Int,
                "axis of the mask that meets queries; none if it has none there",
            ),
            maybe(
                "mask-key-axis",
                Int,
                "axis of the mask that meets keys; none if it has none there",
            ),
            always(
                "mask-layout",
                Text(&["none", "matches", "transposed", "square", "unknown"]),
                "no mask; its extents or its triangle agree with the scores; are the other way round; \
                 square and nothing tells; not known",
            ),
            always(
                "mask-hides",
                Text(&["none", "future", "past", "unknown"]),
                "which keys a triangular mask hides from a query: later ones (causal), or earlier ones (a causal \
                 mask that is transposed); none: no triangle; unknown: values not known",
            ),
            maybe("query-length", Int, "number of queries, if static"),
            maybe("key-length", Int, "number of keys, if static"),
            always(
                "layout",
                Text(&["bhsd", "bc1s", "other"]),
                "(batch, heads, sequence, head dim); channels first with the sequence last; neither",
            ),
            always(
                "scale-place",
                Text(&["none", "query", "key", "scores", "sdpa"]),
                "where the constant scale is multiplied in",
            ),
            maybe("scale", Node, "the mul or div by the scale"),
            maybe(
                "key-repeat",
                Node,
                "the expand, tile or concat that repeats key heads (grouped queries)",
            ),
            maybe("value-repeat", Node, "the same for the values"),
            maybe(
                "query-projection",
                Node,
                "the linear, conv or matmul that the queries come from",
            ),
            maybe("key-projection", Node, "the same for the keys"),
            maybe("value-projection", Node, "the same for the values"),
        ],
    },
    FactInfo {
        name: "rope",
        doc: "a rotary embedding of one value: x·cos + rotated(x)·sin in one of its forms",
        fields: &[
            always("pre", Value, "the value before rotation"),
            always("post", Value, "the value after rotation"),
            maybe("cos", Value, "the cosine factor as multiplied in"),
            maybe("sin", Value, "the sine factor as multiplied in"),
            always(
                "form",
                Text(&["rotate-half", "interleaved", "composite", "complex"]),
                "halves, even and odd lanes, one op, or complex numbers",
            ),
            maybe("split", Node, "the split or first slice that takes the halves apart"),
            maybe("split-axis", Int, "axis that is cut in two"),
            maybe("split-axis-extent", Int, "extent of that axis before the cut"),
            always(
                "halves-of",
                Text(&["head", "concatenated-heads", "unknown"]),
                "whether the cut halves one head or all heads joined",
            ),
            maybe(
                "heads",
                Int,
                "heads that the cut axis holds, where something tells (1: one head)",
            ),
            always(
                "table",
                Text(&["gather", "trig", "slice", "input", "constant", "unknown"]),
                "where cos and sin come from: rows gathered by run-time positions, sin and cos in the graph, a \
                 table sliced, function inputs, a constant",
            ),
            maybe("gather", Node, "the gather of the cosine table"),
            maybe(
                "gather-alone",
                Bool,
                "whether the gather comes before every op that computes on data, in program order",
            ),
            maybe("table-value", Value, "the rows gathered, or the slice"),
            maybe("trig", Nodes, "the sin and cos ops in the graph"),
            always("depends-on-input", Bool, "whether cos and sin depend on a function input"),
        ],
    },
    FactInfo {
        name: "kv-cache",
        doc: "a key or value that a function returns or writes to a state, and that an attention reads",
        fields: &[
            always("role", Text(&["key", "value"]), "which of the two"),
            always("cached", Value, "the value returned or written"),
            always("sink", Node, "the output or state_write (slice_update, scatter) that takes it"),
            always("attention", Node, "the softmax or sdpa that reads it"),
            always(
                "rotated",
                Text(&["yes", "no", "after-join", "no-rope"]),
                "for keys: the cached value has had the rotary embedding; it has not, and the attention's key has; \
                 past and new keys are joined first and rotated whole; no rotary embedding at all. no-rope for values",
            ),
            always(
                "begin",
                Text(&["constant", "run-time", "shape-symbol", "none"]),
                "where the place of the write comes from; none: nothing is written by place",
            ),
            maybe("write", Node, "the op that writes by place"),
            maybe(
                "rope",
                Node,
                "anchor of the rotary embedding between the cached value and the attention",
            ),
            maybe("join", Node, "the concat that joins past and new"),
        ],
    },
    FactInfo {
        name: "mask-source",
        doc: "what brings -inf, NaN or a number below the range of f16 to the input of a softmax or to a float mask",
        fields: &[
            always("softmax", Node, "the softmax or sdpa reached"),
            always("source", Node, "the constant, or the op that made the number"),
            always(
                "place",
                Node,
                "the node to report at: the first op that uses or makes the number",
            ),
            always("join", Node, "the op where the mask joins the data path"),
            always(
                "kind",
                Text(&["neg-inf", "nan", "overflow", "sum-overflow", "lowest", "bool-added"]),
                "-inf; NaN; one finite number that f16 rounds to -inf; finite terms whose sum does; one that f16 \
                 holds as its lowest, -65504; a bool added as 1",
            ),
            always("through", Text(&["add", "where", "mul", "sdpa"]), "how it joins the data path"),
            maybe("value", Float, "the number (or the sum)"),
            maybe("terms", Nodes, "for a sum: the constants or ops that bring its terms"),
            always("f32", Bool, "whether the softmax itself reads f32"),
        ],
    },
    FactInfo {
        name: "f32-island",
        doc: "a maximal run of f32 (or wider) compute on the data path of a function that has f16; where several \
              constants of source meet f16 data in one, each has its part",
        fields: &[
            always("nodes", Nodes, "the ops that compute in f32, in program order"),
            always("first", Node, "the op or cast where f32 begins"),
            always(
                "cause",
                Text(&[
                    "literal",
                    "constructor",
                    "upcast",
                    "softmax-dtype",
                    "weights",
                    "decomposition",
                    "input",
                    "unknown",
                ]),
                "a one-element f32 tensor from source; a constructor with the default dtype; an explicit cast; a \
                 softmax told to; f32 parameters; a decomposition table; an f32 input; none seen",
            ),
            maybe("source", Node, "the constant, constructor or cast that is the cause"),
            maybe("value", Float, "the number of a literal"),
            always("entries", Nodes, "casts from f16 on the way in, implicit ones too"),
            always("exits", Nodes, "casts back on the way out"),
            always("reaches-output", Bool, "whether f32 runs to an output"),
        ],
    },
    FactInfo {
        name: "literal",
        doc: "a constant of one element that is an operand beside an f16 value",
        fields: &[
            always("user", Node, "the op"),
            always("constant", Node, "the constant"),
            always("partner", Value, "the other operand"),
            maybe("value", Float, "the number"),
            always(
                "fit",
                Text(&["fits", "overflows", "underflows", "subnormal", "non-finite", "unknown"]),
                "what f16 makes of it: held; infinite; zero; held with few bits; infinite or NaN already",
            ),
            always(
                "origin",
                Text(&["python", "tensor", "buffer", "parameter", "folded"]),
                "a Python number; a tensor made in code; a buffer; a weight; the converter's",
            ),
            always("width", Text(&["f16", "bf16", "f32", "f64", "int", "other"]), "its own dtype"),
            always("promotes", Bool, "whether the op then computes in f32"),
        ],
    },
    FactInfo {
        name: "dynamic-symbol",
        doc: "a symbolic size of an input, output or state, once a symbol",
        fields: &[
            always(
                "enters",
                Node,
                "the input or state, or the op that makes a data-dependent size",
            ),
            always("symbol", Label, "its name"),
            always("range", Label, "its range as text"),
            always("min", Int, "smallest size"),
            maybe("max", Int, "largest size; none if unbounded"),
            maybe("axis", Int, "axis of the input where it enters"),
            always("ops", Int, "ops with a result whose shape has it"),
            always("data-dependent", Bool, "whether the size depends on data"),
            always("reached", Values, "inputs, outputs and states whose shape has it"),
        ],
    },
    FactInfo {
        name: "composed",
        doc: "a function that is one op elsewhere, written out: what ONNX exporters make of rsqrt, silu, softplus, mish",
        fields: &[
            always("kind", Text(&["rsqrt", "silu", "softplus", "mish"]), "which"),
            always("input", Value, "what it is a function of"),
            always("output", Value, "the result"),
            always("nodes", Nodes, "its ops, in program order"),
        ],
    },
    FactInfo {
        name: "norm",
        doc: "a layer or RMS norm that is written out in ops",
        fields: &[
            always("nodes", Nodes, "its ops, in program order"),
            always("input", Value, "what is normalised"),
            always("output", Value, "the result, scale and shift applied"),
            always(
                "kind",
                Text(&["layer", "rms", "l2"]),
                "mean and variance; mean square; sum of squares",
            ),
            maybe("axis", Int, "the axis it runs over, if one"),
            maybe("epsilon", Float, "its eps, if known"),
            maybe("epsilon-node", Node, "the constant that is its eps"),
            always(
                "affine",
                Text(&["none", "scale", "scale-shift", "shift-scale"]),
                "what follows, and in which order",
            ),
            always(
                "width",
                Text(&["f16", "f32", "bf16", "other"]),
                "what the statistics are computed in",
            ),
            always(
                "rescaled",
                Bool,
                "whether the input is divided first, so that squares stay small",
            ),
        ],
    },
    FactInfo {
        name: "arange",
        doc: "a range made by arange, and what f16 makes of its bounds and step",
        fields: &[
            always("node", Node, "the arange"),
            always(
                "bounds",
                Text(&["integers", "exact", "rounded", "unknown"]),
                "integers; fractions that f16 holds; a bound or a step that f16 rounds; known at run time only",
            ),
            maybe("count", Int, "elements"),
            maybe("count-through-f16", Int, "elements when bounds and step go through f16"),
            maybe("start", Float, "the start"),
            maybe("end", Float, "the end"),
            maybe("step", Float, "the step"),
        ],
    },
    FactInfo {
        name: "lowering",
        doc: "an op of an exported program for which the converter (the newest version known) has no lowering",
        fields: &[
            always("node", Node, "the op"),
            always("op", Label, "its name in the file"),
            always("missing", Label, "what has no lowering: the op, or what it decomposes into"),
            always("direct", Bool, "whether that is the op itself"),
            always("version", Label, "the version of coreai-torch"),
        ],
    },
    FactInfo {
        name: "constant-trig",
        doc: "a sin, cos or tan of an argument that is known when the graph is made",
        fields: &[
            always("node", Node, "the op"),
            always("largest", Float, "the largest absolute value of the argument"),
            always(
                "computed",
                Bool,
                "whether the graph computes the argument; it is a constant if not",
            ),
        ],
    },
    FactInfo {
        name: "non-finite",
        doc: "a constant with NaN that an op reads, or one with an infinity that an op multiplies or contracts with",
        fields: &[
            always("constant", Node, "the constant"),
            always("user", Node, "the op"),
            always("kind", Text(&["nan", "inf"]), "what it holds; NaN if both"),
            always("count", Int, "how many elements"),
            always("weight", Bool, "whether it is a parameter or a buffer"),
        ],
    },
    FactInfo {
        name: "state-write",
        doc: "a write to a state",
        fields: &[
            always("write", Node, "the write"),
            always("state", Node, "the state"),
            always(
                "begin",
                Text(&["constant", "run-time", "shape-symbol", "none"]),
                "where the place comes from; none: the whole state is written",
            ),
            maybe("earlier", Node, "the write to the same state before it"),
            maybe("knows-earlier", Bool, "whether what it writes depends on that one"),
        ],
    },
    FactInfo {
        name: "output-twins",
        doc: "outputs of equal type that have the names tracing gave them; one record a type",
        fields: &[
            always("first", Node, "the first of them"),
            always("second", Node, "the second"),
            always("count", Int, "how many there are"),
            always("names", Label, "their names"),
        ],
    },
    FactInfo {
        name: "experts",
        doc: "weights of experts that run-time indices choose from",
        fields: &[
            always(
                "kind",
                Text(&["one-op", "gathered"]),
                "one op that gathers and multiplies; a gather, then a contraction",
            ),
            always("gather", Node, "the op that gathers"),
            always("product", Node, "the op that multiplies"),
            always("weight", Value, "the weights of all experts"),
            always("indices", Value, "which experts"),
            always(
                "index-type",
                Text(&["u16", "i32", "u32", "i64", "other"]),
                "type of the indices",
            ),
            always("experts", Int, "how many experts there are"),
            maybe("top-k", Int, "how many are routed to, by the last axis of the indices"),
        ],
    },
    FactInfo {
        name: "entry-name",
        doc: "a function that is named as those of static language models are: extend_CONTEXT_QUERIES",
        fields: &[
            always("first", Node, "its first input"),
            always("context", Int, "the first number"),
            always("queries", Int, "the second"),
            always("missing", Label, "functions that should stand beside it and do not"),
            always("complete", Bool, "whether none is missing"),
            always(
                "shapes-agree",
                Bool,
                "whether both numbers are extents of its inputs and states",
            ),
        ],
    },
    FactInfo {
        name: "convolution",
        doc: "a convolution with its parameters by axis; a 1-D one is a 2-D one over rows of height 1",
        fields: &[
            always("kind", Text(&["conv", "transposed"]), "which of the two"),
            always(
                "form",
                Text(&["pointwise", "depthwise", "patches", "grouped", "full"]),
                "1×1; one input channel a filter; windows that do not overlap (stride = kernel); grouped; none of these",
            ),
            always("spatial", Int, "number of spatial axes"),
            always("kernel-width", Int, "kernel along the last axis"),
            always(
                "kernel-height",
                Int,
                "kernel along the axis before it; 1 for a 1-D convolution",
            ),
            always("kernel", Int, "the largest extent of the kernel"),
            always("stride-width", Int, "stride along the last axis"),
            always(
                "stride-height",
                Int,
                "stride along the axis before it; 1 for a 1-D convolution",
            ),
            always("stride", Int, "the largest stride"),
            always("dilation", Int, "the largest dilation"),
            always("groups", Int, "groups"),
            always("in-channels", Int, "input channels"),
            always("out-channels", Int, "output channels"),
            always("weight", Value, "the weight"),
            always(
                "depth",
                Int,
                "convolutions on the longest way that ends here, through activations, norms and sums",
            ),
            maybe(
                "fed-by",
                Node,
                "the convolution whose result this one alone reads, with nothing in between",
            ),
        ],
    },
    FactInfo {
        name: "pooling",
        doc: "a pooling window with its parameters by axis",
        fields: &[
            always("kind", Text(&["max", "average", "sum", "l2"]), "what is taken of a window"),
            always("spatial", Int, "number of spatial axes"),
            always("kernel-width", Int, "window along the last axis"),
            always("kernel-height", Int, "window along the axis before it; 1 for a 1-D pool"),
            always("kernel", Int, "the largest extent of the window"),
            always("stride-width", Int, "stride along the last axis"),
            always("stride-height", Int, "stride along the axis before it; 1 for a 1-D pool"),
            always("stride", Int, "the largest stride"),
            always("global", Bool, "whether one window covers the whole map"),
            always("ceil-mode", Bool, "whether a window may hang over the edge"),
        ],
    },
    FactInfo {
        name: "weight",
        doc: "a constant that a contraction multiplies with, or a table that a lookup reads, and how it is compressed",
        fields: &[
            always("user", Node, "the op that reads it"),
            always("weight", Value, "the weight as read"),
            always(
                "role",
                Text(&["conv", "depthwise", "linear", "embedding", "experts"]),
                "what reads it",
            ),
            always(
                "scheme",
                Text(&["dense", "palettized", "palettized-scaled", "linear", "sparse", "cast"]),
                "not compressed; a table of values; a table and a scale for each channel; scaled whole numbers; \
                 zeros left out; a narrower float",
            ),
            always(
                "granularity",
                Text(&["none", "tensor", "channel", "block", "unknown"]),
                "what shares a scale or a table",
            ),
            maybe("bits", Int, "bits an element is stored in"),
            maybe("block", Int, "extent of a block, or of a group of channels"),
            maybe(
                "axis",
                Int,
                "axis of the stored weight that blocks, groups or channels lie along",
            ),
            maybe("decompression", Node, "the op that makes numbers of the stored data"),
            maybe("data", Value, "the stored data: whole numbers, or indices into the table"),
            maybe("table", Value, "the table"),
            maybe("table-rank", Int, "its rank"),
            maybe("scale", Value, "the scales"),
            maybe(
                "activations",
                Text(&["quantized", "float"]),
                "for linear: whether the other factor is quantised too",
            ),
            always(
                "place",
                Text(&["first", "middle", "last"]),
                "first or last of the function's weights, or on the way to an output alone",
            ),
            always("elements", Int, "number of elements"),
            always(
                "width",
                Text(&["f16", "f32", "bf16", "other"]),
                "element type that the op reads",
            ),
            always("siblings", Int, "weights in the function"),
            always("compressed-siblings", Int, "how many of them are compressed"),
            maybe(
                "sibling-block",
                Int,
                "for a dense one: the commonest block of the compressed ones",
            ),
            maybe(
                "block-divides",
                Bool,
                "whether that block divides its input and its output channels",
            ),
        ],
    },
    FactInfo {
        name: "layout",
        doc: "where a function keeps its channels; one record a function with projections",
        fields: &[
            always(
                "layout",
                Text(&["bc1s", "bsd", "image", "mixed"]),
                "(B, C, 1, S); (B, S, C); an image net's (B, C, H, W); no majority",
            ),
            always("first", Node, "the first projection of that layout"),
            always("projections", Int, "projections in all"),
            always("channels-last", Int, "how many read (B, S, C)"),
            always("channels-first", Int, "how many read (B, C, 1, S)"),
        ],
    },
    FactInfo {
        name: "copy",
        doc: "a transpose or reshape that moves the last axis, or a pair of moves or casts that undo each other",
        fields: &[
            always(
                "kind",
                Text(&["transpose", "reshape", "transposes-cancel", "casts-cancel"]),
                "another axis comes last; the last axis is cut or joined; two transposes that cancel; a cast that \
                 returns to the first dtype",
            ),
            always("node", Node, "the op; the second of a pair"),
            maybe("partner", Node, "the first of a pair"),
            maybe("bytes", Int, "bytes moved"),
            always("interior", Bool, "whether work lies before and behind it"),
            always(
                "for-attention",
                Bool,
                "whether it brings queries, keys, values or their result into place",
            ),
        ],
    },
    FactInfo {
        name: "role",
        doc: "what part of a model a function is; one record a function with work",
        fields: &[
            always(
                "kind",
                Text(&["prefill", "decode", "decoder", "encoder", "lookup", "other"]),
                "hands keys and values on, for several queries, for one, for a number not known; attends and hands \
                 nothing on; looks rows up only; none of these",
            ),
            always("first", Node, "the first attention, or the first op"),
            always("attentions", Int, "attentions"),
            always("caches", Int, "keys and values handed on"),
            maybe("query-length", Int, "queries, if static"),
            maybe("key-length", Int, "keys, if static"),
            always("other-prefills", Int, "other entry points that take several positions at once"),
        ],
    },
    FactInfo {
        name: "kv-layout",
        doc: "an input or state that holds the keys or values of earlier steps",
        fields: &[
            always("holder", Node, "the input or state"),
            always("role", Text(&["key", "value"]), "which of the two"),
            always(
                "layout",
                Text(&["sequence-last", "sequence-before-last", "other"]),
                "which axis counts positions",
            ),
            always("rank", Int, "its rank"),
            always("sequence-axis", Int, "the axis that counts positions"),
        ],
    },
    FactInfo {
        name: "norm-axis",
        doc: "a layer or RMS norm, whole or written out, and what it runs over",
        fields: &[
            always("node", Node, "the norm, or the reduction of one that is written out"),
            always("form", Text(&["whole", "written-out"]), "one op or several"),
            always(
                "over",
                Text(&["channels", "tokens", "instance", "unknown"]),
                "what the nearest projections say the axis counts; instance: the extent of an image or a sound, \
                 channel by channel",
            ),
        ],
    },
    FactInfo {
        name: "head",
        doc: "a projection to more channels at the end of a function",
        fields: &[
            always("node", Node, "the projection"),
            always("vocabulary", Int, "output channels"),
            always("positions", Int, "positions that it is computed for"),
            always("bytes", Int, "bytes of the result"),
            maybe("select", Node, "the slice or gather of positions behind it"),
            always("returned", Bool, "whether all positions are returned"),
            always("caches", Int, "keys and values that the function hands on"),
        ],
    },
    FactInfo {
        name: "epsilon",
        doc: "a small number that keeps a root, a logarithm or a divisor away from 0",
        fields: &[
            always("user", Node, "the sum or bound, or the norm that has it as an attribute"),
            always("value", Float, "the number"),
            maybe("constant", Node, "the constant"),
            always(
                "kind",
                Text(&["added", "bound", "norm"]),
                "added; the lower bound of a clamp or maximum; an attribute of a norm",
            ),
            always("guards", Text(&["root", "logarithm", "divisor", "norm"]), "what it protects"),
            always(
                "fit",
                Text(&["zero", "one-bit", "subnormal", "fits"]),
                "what f16 makes of it: 0; below 1e-7; below 6.1e-5, held with few bits; held",
            ),
            always("width", Text(&["f16", "f32", "bf16", "other"]), "what the op computes in"),
        ],
    },
];
