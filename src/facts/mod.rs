//! Derived knowledge, computed once, on demand: constant values, axis roles, attention blocks, rotary
//! embeddings, masks, caches. One fact a file; rules ask for facts by name.
//!
//! Some facts are *records* (an attention block, a rotary embedding): [`catalogue`] names them with
//! their fields, so that the rule checker can tell a typo at build time, and [`Facts::records`] gives
//! them. Others are questions about one value or node (axis roles, constant summaries).

mod aranges;
mod attention;
mod attention_mask;
mod attention_source;
mod axes;
pub mod catalogue;
mod composed;
mod constant_trig;
mod constants;
mod contraction;
mod convolution;
mod copies;
pub mod cost;
mod dtype_islands;
mod dynamic;
mod entry_names;
mod epsilon;
mod experts;
mod fold;
mod head;
mod kv_cache;
mod kv_layout;
mod layout;
mod literals;
mod lowerings;
mod masks;
mod non_finite;
mod norm_axis;
mod norms;
mod output_twins;
mod pooling;
mod range;
mod record;
mod roles;
mod rope;
mod rope_heads;
mod rope_table;
mod state_writes;
#[cfg(test)]
pub(crate) mod testing;
mod uses;
mod view;
mod weights;

use std::sync::OnceLock;

pub use constants::{ConstantScan, SquareScan};
pub use fold::{Folded, Triangle};
pub use range::Range;
pub use record::{Field, Record};

use crate::graph::{ConstantId, FunctionId, Program, ValueId, ValueSummary};
use attention::Attention;
use fold::Folds;
use rope::{Rope, Ropes};
use uses::Uses;
use view::{View, Words};

/// How far facts may look.
#[derive(Debug, Clone, Copy, Default)]
pub struct FactOptions {
    /// Read the values of parameters too (`--scan-weights`).
    pub scan_weights: bool,
}

/// The facts of one program. Everything is lazy; sharing between threads is fine.
#[derive(Debug)]
pub struct Facts<'p> {
    program: &'p Program,
    options: FactOptions,
    words: Words,
    readable: OnceLock<Vec<bool>>,
    scans: Vec<OnceLock<Option<Box<ConstantScan>>>>,
    functions: Vec<FunctionFacts>,
}

/// What is known of one function so far.
#[derive(Debug, Default)]
struct FunctionFacts {
    uses: OnceLock<Uses>,
    has_f16: OnceLock<bool>,
    folds: OnceLock<Folds>,
    ropes: OnceLock<Ropes>,
    attentions: OnceLock<Vec<Attention>>,
    records: [OnceLock<Vec<Record>>; catalogue::FACTS.len()],
}

impl<'p> Facts<'p> {
    /// No fact is computed until asked for.
    pub fn new(program: &'p Program) -> Facts<'p> {
        Facts::with_options(program, FactOptions::default())
    }

    /// The same, looking as far as `options` allow.
    pub fn with_options(program: &'p Program, options: FactOptions) -> Facts<'p> {
        Facts {
            program,
            options,
            words: Words::of(program),
            readable: OnceLock::new(),
            scans: std::iter::repeat_with(OnceLock::new).take(program.constants.len()).collect(),
            functions: std::iter::repeat_with(FunctionFacts::default)
                .take(program.functions.len())
                .collect(),
        }
    }

    /// The program these facts are of.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// How far these facts look.
    pub fn options(&self) -> FactOptions {
        self.options
    }

    /// The records of a fact in a function; `fact` is a name of [`catalogue::FACTS`]. Empty if
    /// there are none, or for an unknown name.
    pub fn records(&self, function: FunctionId, fact: &str) -> &[Record] {
        let Some(at) = catalogue::FACTS.iter().position(|info| info.name == fact) else {
            return &[];
        };
        let Some(slot) = self.functions.get(function.0 as usize).and_then(|f| f.records.get(at))
        else {
            return &[];
        };
        slot.get_or_init(|| {
            let view = self.view(function);
            match fact {
                "arange" => aranges::records(&view),
                "constant-trig" => constant_trig::records(&view),
                "entry-name" => entry_names::records(&view),
                "experts" => experts::records(&view),
                "lowering" => lowerings::records(&view),
                "non-finite" => non_finite::records(&view),
                "output-twins" => output_twins::records(&view),
                "state-write" => state_writes::records(&view),
                "composed" => composed::records(&view),
                "dynamic-symbol" => dynamic::records(&view),
                "f32-island" => dtype_islands::records(&view),
                "literal" => literals::records(&view),
                "kv-cache" => kv_cache::records(&view),
                "norm" => norms::records(&view),
                "mask-source" => masks::records(&view),
                "attention" => attention::records(&view),
                "rope" => rope::records(&view),
                "convolution" => convolution::records(&view),
                "pooling" => pooling::records(&view),
                "weight" => weights::records(&view),
                "layout" => layout::records(&view),
                "copy" => copies::records(&view),
                "role" => roles::records(&view),
                "kv-layout" => kv_layout::records(&view),
                "norm-axis" => norm_axis::records(&view),
                "head" => head::records(&view),
                "epsilon" => epsilon::records(&view),
                _ => Vec::new(),
            }
        })
    }

    /// What a constant holds, if it may be read and can be: small ones always, larger ones that
    /// reach a softmax mask within a budget, parameters with [`FactOptions::scan_weights`].
    pub fn summary(&self, constant: ConstantId) -> Option<&ValueSummary> {
        self.scan(constant).map(|scan| &scan.summary)
    }

    /// The same, with what lies above, on and below the diagonal of a square constant.
    pub fn scan(&self, constant: ConstantId) -> Option<&ConstantScan> {
        let at = constant.0 as usize;
        let readable = self.readable.get_or_init(|| constants::readable(self));
        if !readable.get(at).copied().unwrap_or(false) {
            return None;
        }
        self.scans
            .get(at)?
            .get_or_init(|| constants::scan(self.program, constant).map(Box::new))
            .as_deref()
    }

    /// The elements of a small constant in row-major order, under the same policy.
    pub fn elements(&self, constant: ConstantId) -> Option<Vec<f64>> {
        self.scan(constant)?;
        constants::elements(self.program, constant)
    }

    /// What numbers a constant, or a value made from constants only, may hold.
    pub fn range_of(&self, function: FunctionId, value: ValueId) -> Option<Range> {
        let view = self.view(function);
        match view.constant(value) {
            Some(id) => self.summary(id).map(Range::of_summary),
            None => self.folds(function).get(value).map(|folded| folded.range),
        }
    }

    /// Whether a function has any f16 value. A model that nobody has cast has none; most dtype rules
    /// are silent there (semantics §2).
    pub fn has_f16(&self, function: FunctionId) -> bool {
        match self.functions.get(function.0 as usize) {
            Some(facts) => {
                *facts.has_f16.get_or_init(|| dtype_islands::has_f16(&self.view(function)))
            }
            None => false,
        }
    }

    pub(crate) fn folds(&self, function: FunctionId) -> &Folds {
        self.functions[function.0 as usize].folds.get_or_init(|| Folds::of(&self.view(function)))
    }

    pub(crate) fn ropes(&self, function: FunctionId) -> &Ropes {
        self.functions[function.0 as usize].ropes.get_or_init(|| Ropes::find(&self.view(function)))
    }

    /// The rotary embedding whose result a value is.
    pub(crate) fn rope_of(&self, function: FunctionId, value: ValueId) -> Option<&Rope> {
        self.ropes(function).of_post(value)
    }

    pub(crate) fn attentions(&self, function: FunctionId) -> &[Attention] {
        self.functions[function.0 as usize]
            .attentions
            .get_or_init(|| attention::find(&self.view(function)))
    }

    pub(crate) fn view(&self, id: FunctionId) -> View<'_> {
        let function = self.program.function(id);
        let uses = self.functions[id.0 as usize].uses.get_or_init(|| Uses::of(function));
        View { facts: self, id, function, words: &self.words, uses }
    }
}

/// Whether a node's results depend on no input.
pub(crate) fn is_constant(node: &crate::graph::Node) -> bool {
    matches!(node.kind, crate::graph::NodeKind::Constant(_))
        || node.flags.contains(crate::graph::NodeFlags::CONSTANT_WORK)
}
