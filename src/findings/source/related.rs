//! Places related to the one shown: where a submodule or buffer is made.

use std::ops::Range;
use std::sync::Arc;

use super::modules::{ClassRef, Code};
use super::place::SourceMap;
use super::spot::{Place, Spot};
use crate::findings::python::{PythonFile, Region, assignments_to, enclosing_function};

impl SourceMap<'_> {
    /// Adds where the one buffer that an expression reads is registered.
    pub(super) fn buffer_within(
        &self,
        place: &mut Place,
        file: &PythonFile,
        range: &Range<usize>,
        lineage: &[ClassRef],
        spot_of: &dyn Fn(&Code, bool) -> Spot,
    ) {
        let node =
            file.root().and_then(|root| root.descendant_for_byte_range(range.start, range.end));
        let Some(node) = node else { return };
        let mut names: Vec<&str> = Region::deep(node)
            .nodes()
            .filter(|node| node.kind() == "attribute")
            .filter_map(|node| file.node_text(node).strip_prefix("self."))
            .filter(|name| !name.contains('.'))
            .collect();
        names.sort_unstable();
        names.dedup();
        let registered: Vec<Code> = names
            .into_iter()
            .flat_map(|name| self.locator.attribute(lineage, name))
            .filter(|code| {
                let text = code.file.text().get(code.range.clone()).unwrap_or("");
                text.starts_with("self.register_buffer")
            })
            .collect();
        if let [code] = registered.as_slice() {
            let code = self.registered_value(code).unwrap_or_else(|| code.clone());
            place.related.push((spot_of(&code, false), "made here".to_owned()));
        }
    }

    /// The assignment of the name that a buffer is registered with, if there is one:
    /// `mask = torch.full(…)` of `self.register_buffer("mask", mask)`.
    fn registered_value(&self, code: &Code) -> Option<Code> {
        let root = code.file.root()?;
        let call = root.descendant_for_byte_range(code.range.start, code.range.end)?;
        let arguments = call.child_by_field_name("arguments")?;
        let value = arguments.named_child(1).filter(|value| value.kind() == "identifier")?;
        let body = enclosing_function(call)?.body()?;
        let name = code.file.node_text(value);
        let made = assignments_to(&code.file, body, name, call.start_byte());
        let [right] = made.as_slice() else { return None };
        let assignment = right.parent()?;
        let left = assignment.child_by_field_name("left")?;
        (left.kind() == "identifier")
            .then(|| Code { file: Arc::clone(&code.file), range: assignment.byte_range() })
    }

    /// The class of a recorded name (`models.decoders.QwenPrefill`), if it is `class` or made from it.
    pub(super) fn made_from(
        &self,
        file: &Arc<PythonFile>,
        recorded: &str,
        class: &ClassRef,
    ) -> Option<ClassRef> {
        let (module, name) = match recorded.rsplit_once('.') {
            Some((module, name)) => (module, name),
            None => ("", recorded),
        };
        if name == class.name() {
            return Some(class.clone());
        }
        let own = self.locator.class(file, name).or_else(|| {
            let other = self.locator.module(file, module)?;
            self.locator.class(&other, name)
        })?;
        let is_base =
            |base: &ClassRef| base.file.path() == class.file.path() && base.range == class.range;
        self.locator.lineage(&own).iter().any(is_base).then_some(own)
    }

    /// Adds the one assignment that makes an attribute, unless the cause already lies within it.
    pub(super) fn made_here(
        &self,
        place: &mut Place,
        lineage: &[ClassRef],
        attribute: &str,
        set_here: Option<&Code>,
        spot_of: &dyn Fn(&Code, bool) -> Spot,
    ) {
        let made = self.locator.attribute(lineage, attribute);
        let [code] = made.as_slice() else { return };
        let holds_cause = set_here.is_some_and(|cause| {
            cause.file.path() == code.file.path()
                && code.range.start <= cause.range.start
                && cause.range.end <= code.range.end
        });
        if !holds_cause {
            place.related.push((spot_of(code, false), "made here".to_owned()));
        }
    }
}
