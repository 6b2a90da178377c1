//! The work of a branch of `torch.cond` or of a loop's body: torch records the line of the call, and the
//! work is written in a function that the call names.

use std::sync::Arc;

use tree_sitter::Node;

use super::callee::{Callee, called_by_class};
use super::cause::{candidates, words};
use super::modules::{ClassRef, Code};
use super::place::{PlaceKey, SourceMap, SourceRule};
use super::spelling::{OpSpelling, called_name};
use super::spot::{Place, PlaceFile, Spot};
use super::trace::{Sought, Trace, trace_within};
use crate::findings::python::{PythonFile, Region, local_function};
use crate::graph::{FunctionId, FunctionRole, Op};

/// Calls that take functions and put them into the graph: what they are called, how many arguments
/// come before the functions, and the functions' names as keywords.
const CALLS: &[(&str, usize, &[&str])] = &[
    ("cond", 1, &["true_fn", "false_fn"]),
    ("while_loop", 0, &["cond_fn", "body_fn"]),
    ("map", 0, &["f"]),
    ("scan", 0, &["combine_fn"]),
    ("associative_scan", 0, &["combine_fn"]),
];

/// Which of the functions of a call an op lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Body {
    /// In the one with this index.
    Nth(usize),
    /// In a branch within a branch: any.
    Nested,
}

/// The one call on a line that takes functions, and the functions that an op may lie in.
fn call_of<'t>(
    file: &PythonFile,
    nodes: &[Node<'t>],
    body: Body,
) -> Option<(Node<'t>, Vec<Node<'t>>)> {
    let mut calls = nodes.iter().filter_map(|node| {
        let name = called_name(file, *node)?;
        CALLS.iter().find(|(own, ..)| *own == name).map(|known| (*node, known))
    });
    let (call, (_, before, keywords)) = calls.next()?;
    if calls.next().is_some() {
        return None;
    }
    let list = call.child_by_field_name("arguments")?;
    let mut cursor = list.walk();
    let arguments: Vec<_> =
        list.named_children(&mut cursor).filter(|node| node.kind() != "comment").collect();
    let nth = |index: usize| {
        let plain = arguments.iter().filter(|node| node.kind() != "keyword_argument");
        let by_place = plain.copied().nth(before + index);
        let by_name = || {
            arguments.iter().filter(|node| node.kind() == "keyword_argument").find_map(|node| {
                let name = file.node_text(node.child_by_field_name("name")?);
                (keywords.get(index) == Some(&name)).then(|| node.child_by_field_name("value"))?
            })
        };
        by_place.or_else(by_name)
    };
    let functions = match body {
        Body::Nth(index) => nth(index).into_iter().collect(),
        Body::Nested => (0..keywords.len()).filter_map(nth).collect(),
    };
    Some((call, functions))
}

impl SourceMap<'_> {
    /// Which function of its call a branch of the graph is; `None` if it is no branch.
    pub(super) fn body(&self, function: FunctionId) -> Option<Body> {
        let FunctionRole::Branch { parent } = self.program.function(function).role else {
            return None;
        };
        let outer = self.program.function(parent);
        if matches!(outer.role, FunctionRole::Branch { .. }) {
            return Some(Body::Nested);
        }
        let bodies = outer.node_ids().map(|id| outer.bodies(id));
        let index = bodies.flat_map(|own| own.iter().position(|id| *id == function)).next()?;
        Some(Body::Nth(index))
    }

    /// The code of a function that is named or written in an argument.
    fn argument_code(
        &self,
        file: &Arc<PythonFile>,
        node: Node<'_>,
        lineage: &[ClassRef],
    ) -> Option<Code> {
        let text = file.node_text(node);
        match node.kind() {
            "lambda" => {
                let range = node.child_by_field_name("body")?.byte_range();
                Some(Code { file: Arc::clone(file), range })
            }
            "identifier" => match local_function(file, node, text).and_then(|own| own.body()) {
                Some(body) => Some(Code { file: Arc::clone(file), range: body.byte_range() }),
                None => self.locator.function(file, text),
            },
            "attribute" => self.locator.method(lineage, text.strip_prefix("self.")?),
            _ => None,
        }
    }

    /// Fills the place of an op in a branch: the call that takes the branch, and in the function that it
    /// names what the rule looks for, or else what runs the op. `false` if the line holds no such call.
    #[allow(clippy::too_many_arguments, reason = "what one line and one op are known by")]
    pub(super) fn fill_branch(
        &self,
        place: &mut Place,
        rule: &SourceRule,
        file: &Arc<PythonFile>,
        region: &Region<'_>,
        stale: bool,
        class: Option<&ClassRef>,
        key: &PlaceKey,
        body: Body,
    ) -> bool {
        let nodes: Vec<_> = region.nodes().collect();
        let Some((call, functions)) = call_of(file, &nodes, body) else { return false };
        let spot_of = |code: &Code, stale: bool| Spot {
            file: PlaceFile::Found(Arc::clone(&code.file)),
            span: code.file.span(code.range.clone()),
            exact: true,
            stale,
        };
        let code = Code { file: Arc::clone(file), range: call.byte_range() };
        place.spot = Some(spot_of(&code, stale));
        let lineage = class.map(|class| self.locator.lineage(class)).unwrap_or_default();
        let bodies: Vec<Code> = functions
            .into_iter()
            .filter_map(|node| self.argument_code(file, node, &lineage))
            .collect();
        let search = |sought: Sought<'_>| {
            let mut all = Trace::default();
            for body in &bodies {
                all.found.extend(trace_within(&self.locator, body, class, sought).found);
            }
            candidates(&all, key.value.map(f64::from_bits), self.program.format, key.ordinal)
        };
        let mut found = search(Sought::Patterns(&rule.find));
        if found.is_empty() {
            found = search(Sought::Op(&key.spelling));
        }
        if found.is_empty()
            && let Some(callee) = self.module_within(&bodies, &lineage, &key.spelling)
        {
            found = search(Sought::Submodule(&callee.attribute));
            if let [(code, _)] = found.as_slice() {
                place.related.push((spot_of(code, false), "runs here".to_owned()));
            }
            self.made_here(place, &lineage, &callee.attribute, None, &spot_of);
            return true;
        }
        match found.as_slice() {
            [] => {}
            [(code, _)] => {
                place.related.push((spot_of(code, false), words(code, &key.spelling).to_owned()));
            }
            several => place.notes.push(self.several(several)),
        }
        true
    }

    /// The one submodule called in the bodies that is of the class that runs an op: a branch records no
    /// modules.
    fn module_within(
        &self,
        bodies: &[Code],
        lineage: &[ClassRef],
        spelling: &OpSpelling,
    ) -> Option<Callee> {
        let library = match spelling.op? {
            Op::LINEAR | Op::MATMUL | Op::ADDMM => "torch/nn/modules/linear.py",
            Op::CONV | Op::CONV_TRANSPOSE => "torch/nn/modules/conv.py",
            Op::LAYER_NORM => "torch/nn/modules/normalization.py",
            Op::EMBEDDING => "torch/nn/modules/sparse.py",
            _ => return None,
        };
        let mut found = bodies.iter().flat_map(|body| {
            let (start, end) = (body.range.start, body.range.end);
            let node = body.file.root().and_then(|r| r.descendant_for_byte_range(start, end));
            let nodes: Vec<_> =
                node.into_iter().flat_map(|node| Region::deep(node).nodes()).collect();
            called_by_class(&body.file, &nodes, library, |attribute| {
                let made = self.locator.attribute(lineage, attribute);
                let texts = made.iter().filter_map(|code| code.file.text().get(code.range.clone()));
                texts.map(str::to_owned).collect()
            })
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::statement_at;

    fn functions(text: &str, body: Body) -> Vec<String> {
        let file = PythonFile::new("a.py".into(), format!("{text}\n"));
        let region = Region::shallow(statement_at(&file, 1).unwrap());
        let nodes: Vec<_> = region.nodes().collect();
        let Some((call, functions)) = call_of(&file, &nodes, body) else { return Vec::new() };
        let mut shown = vec![file.node_text(call).to_owned()];
        shown.extend(functions.into_iter().map(|node| file.node_text(node).to_owned()));
        shown
    }

    #[test]
    fn the_function_of_a_branch_is_an_argument_of_the_call() {
        let text = "y = self.c(torch.cond(flag, t, lambda x: x + 1, (self.c(x),)))";
        let call = "torch.cond(flag, t, lambda x: x + 1, (self.c(x),))";
        assert_eq!(functions(text, Body::Nth(0)), [call, "t"]);
        assert_eq!(functions(text, Body::Nth(1)), [call, "lambda x: x + 1"]);
        assert_eq!(functions(text, Body::Nested), [call, "t", "lambda x: x + 1"]);
        let text = "_, out = while_loop(keep_going, self.step, (n, x))";
        assert_eq!(functions(text, Body::Nth(1))[1], "self.step");
        let text = "y = cond(p, false_fn=f, true_fn=t, operands=(x,))";
        assert_eq!(functions(text, Body::Nth(0))[1], "t");
        assert_eq!(functions("y = x.float()", Body::Nth(0)), [""; 0]);
    }
}
