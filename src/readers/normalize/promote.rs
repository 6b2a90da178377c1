//! Implicit promotions made visible: an elementwise op whose operand has another dtype than it
//! computes in gets a `cast` before that operand, marked implicit.
//!
//! Python numbers are weak and never cast. A 0-d tensor that does not decide the result's dtype is
//! left as it is: the operand's own dtype shows what a converter will make of it.

use super::{Context, Editor};
use crate::graph::{
    Attr, Category, ConstantOrigin, DType, Draft, DraftNode, DraftOperand, Name, NodeFlags,
    NodeKind, Op,
};

/// Inserts the casts.
pub fn promote(draft: Draft, context: &mut Context<'_>) -> Draft {
    let w = *context.words;
    let mut editor = Editor::new(draft);
    for at in 0..editor.draft.nodes.len() as u32 {
        let node = &editor.draft.nodes[at as usize];
        if node.kind != NodeKind::Op || node.removed || node.results.is_empty() {
            continue;
        }
        let Some(dtype) = computed_in(&editor, context, node) else { continue };
        let mixed: Vec<usize> = node
            .operands
            .iter()
            .enumerate()
            .filter(|(_, (name, value))| {
                let data = !(node.op == Op::WHERE && *name == w.condition);
                data && differs(&editor, context, *value, dtype)
            })
            .map(|(slot, _)| slot)
            .collect();
        let (provenance, drop_dtype) =
            (node.provenance, matches!(node.op, Op::SOFTMAX | Op::LOG_SOFTMAX));
        for slot in mixed {
            let value = editor.draft.nodes[at as usize].operands[slot].1;
            let Some(&(_, _, shape, strides)) = editor.result(value) else { continue };
            let mut cast = DraftNode::new(NodeKind::Op, Name::EMPTY);
            cast.op = Op::CAST;
            cast.provenance = provenance;
            cast.flags.insert(NodeFlags::IMPLICIT);
            cast.operands = vec![(w.input, value)];
            cast.attributes = vec![(w.dtype, Attr::DType(dtype))];
            cast.results = vec![(Name::EMPTY, dtype, shape, strides)];
            let cast = editor.insert_before(at, cast);
            editor.draft.nodes[at as usize].operands[slot].1 = (cast, 0);
        }
        if drop_dtype {
            editor.draft.nodes[at as usize].attributes.retain(|(name, _)| *name != w.dtype);
        }
    }
    editor.finish()
}

/// The dtype that an op computes in, if it promotes its operands to one.
fn computed_in(editor: &Editor, context: &Context<'_>, node: &DraftNode) -> Option<DType> {
    let result = node.results.first()?.1;
    match node.op {
        Op::EQUAL | Op::NOT_EQUAL | Op::LESS | Op::LESS_EQUAL | Op::GREATER | Op::GREATER_EQUAL => {
            common(editor, context, node)
        }
        Op::WHERE => Some(result),
        // `softmax(dtype=f32)` computes in what it gives.
        Op::SOFTMAX | Op::LOG_SOFTMAX => {
            matches!(node.attribute(context.words.dtype), Some(Attr::DType(_))).then_some(result)
        }
        Op::REDUCE_MEAN | Op::REDUCE_SUM => {
            let float = editor.result(node.operands.first()?.1)?.1.is_float();
            (float && result.is_float()).then_some(result)
        }
        Op::BITWISE_AND | Op::BITWISE_OR | Op::BITWISE_XOR => Some(result),
        Op::ABS | Op::SIGN if !result.is_float() => None,
        op if op.category() == Category::Elementwise => {
            let known =
                result != DType::Unknown && !matches!(result, DType::Complex64 | DType::Complex128);
            known.then_some(result)
        }
        _ => None,
    }
}

/// The dtype that operands of a comparison are brought to.
fn common(editor: &Editor, context: &Context<'_>, node: &DraftNode) -> Option<DType> {
    let tensors = |with_axes: bool| {
        node.operands
            .iter()
            .filter(|(_, value)| !is_literal(editor, context, *value))
            .filter_map(|(_, value)| editor.result(*value))
            .filter(move |result| has_axes(context, result.2) == with_axes)
            .map(|result| result.1)
    };
    let strong = tensors(true).reduce(wider);
    let weak = tensors(false).reduce(wider);
    match (strong, weak) {
        (Some(strong), Some(weak)) if class(weak) > class(strong) => Some(weak),
        (Some(strong), _) => Some(strong),
        (None, weak) => weak,
    }
}

fn has_axes(context: &Context<'_>, shape: crate::graph::ShapeId) -> bool {
    context.program.shapes.get(shape).rank() != Some(0)
}

/// bool < whole < real < complex.
fn class(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_int() => 1,
        dtype if dtype.is_float() => 2,
        _ => 3,
    }
}

/// What torch promotes two tensors of equal standing to.
fn wider(a: DType, b: DType) -> DType {
    if class(a) != class(b) {
        return if class(a) > class(b) { a } else { b };
    }
    match (a, b) {
        (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
        _ if a.bits() >= b.bits() => a,
        _ => b,
    }
}

fn is_literal(editor: &Editor, context: &Context<'_>, (node, _): DraftOperand) -> bool {
    matches!(
        editor.draft.nodes.get(node as usize).map(|node| node.kind),
        Some(NodeKind::Constant(id))
            if context.program.constant(id).origin == ConstantOrigin::Literal
    )
}

fn differs(editor: &Editor, context: &Context<'_>, value: DraftOperand, dtype: DType) -> bool {
    let Some(&(_, own, shape, _)) = editor.result(value) else { return false };
    own != dtype
        && own != DType::Unknown
        && !matches!(own, DType::Complex64 | DType::Complex128)
        && !is_literal(editor, context, value)
        && has_axes(context, shape)
}
