//! Where a node comes from, as exporters write it into `metadata_props`.
//!
//! torch's exporter keeps the Python frames, the path and class of every module around, and the fx node;
//! older ones leave nothing but scopes in the node's name (`/layers.0/attn/MatMul`).

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use rustc_hash::FxBuildHasher;

use super::wire::proto;
use crate::graph::{Frame, ModuleId, ModulePath, Name, Program, Provenance, ProvenanceId, StackId};
use crate::readers::pt2::trace;

const PREFIX: &[u8] = b"pkg.torch.onnx.";

/// Stacks and modules seen before, by their text in the file: most nodes share theirs.
#[derive(Default)]
pub(super) struct Origins {
    stacks: HashMap<Bytes, StackId, FxBuildHasher>,
    modules: HashMap<(Bytes, Bytes), ModuleId, FxBuildHasher>,
}

impl Origins {
    /// The provenance that a node's metadata tell, or its name; `ProvenanceId::NONE` if neither does.
    pub fn of_node(
        &mut self,
        program: &mut Program,
        metadata: &[Bytes],
        name: &str,
    ) -> ProvenanceId {
        let (mut trace, mut scopes, mut classes, mut fx) =
            (Bytes::new(), Bytes::new(), Bytes::new(), Bytes::new());
        for entry in metadata {
            // What is no entry tells nothing.
            let Ok(entry) = proto::StringEntry::decode(entry.clone()) else { continue };
            match entry.key.strip_prefix(PREFIX) {
                Some(b"stack_trace") => trace = entry.value,
                Some(b"name_scopes") => scopes = entry.value,
                Some(b"class_hierarchy") => classes = entry.value,
                Some(b"fx_node") => fx = entry.value,
                _ => {}
            }
        }
        let stack = if trace.is_empty() { StackId::EMPTY } else { self.stack(program, trace) };
        let module = if scopes.is_empty() {
            scope_of_name(program, name)
        } else {
            self.module(program, scopes, classes)
        };
        let torch_op = torch_op(program, &fx);
        if stack == StackId::EMPTY && module == ModuleId::EMPTY && torch_op.is_empty() {
            return ProvenanceId::NONE;
        }
        program.sources.provenance(Provenance { stack, module, torch_op })
    }

    fn stack(&mut self, program: &mut Program, trace: Bytes) -> StackId {
        if let Some(known) = self.stacks.get(&trace) {
            return *known;
        }
        let text = String::from_utf8_lossy(&trace);
        let Program { names, sources, .. } = program;
        let frames: Vec<_> = trace::frames(&text)
            .into_iter()
            .map(|frame| {
                sources.frame(Frame {
                    file: names.intern(frame.file),
                    line: frame.line,
                    column: frame.column,
                    end_line: 0,
                    end_column: 0,
                    function: names.intern(frame.function),
                    text: names.intern(frame.text),
                    sha256: Name::EMPTY,
                })
            })
            .collect();
        let stack = sources.stack(&frames);
        self.stacks.insert(trace, stack);
        stack
    }

    /// `['', 'layers.0', 'layers.0.fc', 'linear']` beside `['M', 'Layer', 'Linear', 'aten.linear']`: the
    /// last entry is the node itself.
    fn module(&mut self, program: &mut Program, scopes: Bytes, classes: Bytes) -> ModuleId {
        let key = (scopes, classes);
        if let Some(known) = self.modules.get(&key) {
            return *known;
        }
        let mut paths = python_list(&String::from_utf8_lossy(&key.0));
        let classes = python_list(&String::from_utf8_lossy(&key.1));
        paths.pop();
        let Program { names, sources, .. } = program;
        let stack: Vec<(Name, Name)> = paths
            .iter()
            .enumerate()
            .map(|(at, path)| {
                let class = classes.get(at).map_or("", String::as_str);
                (names.intern(path), names.intern(class))
            })
            .collect();
        let (path, class) = stack.last().copied().unwrap_or_default();
        let module = sources.module(ModulePath { path, class, stack });
        self.modules.insert(key, module);
        module
    }
}

/// The ranges of symbols as torch's exporter leaves them with the graph: `{s30: VR[2, 63]}`; an open end is
/// `int_oo`.
pub(super) fn ranges(metadata: &[Bytes]) -> Vec<(String, u64, Option<u64>)> {
    let text = metadata
        .iter()
        .filter_map(|entry| proto::StringEntry::decode(entry.clone()).ok())
        .find(|entry| entry.key.ends_with(b".range_constraints"))
        .map(|entry| String::from_utf8_lossy(&entry.value).into_owned())
        .unwrap_or_default();
    text.split("],")
        .filter_map(|part| {
            let (name, range) = part.split_once(": VR[")?;
            let (min, max) = range.split_once(',')?;
            let name = name.trim_matches(['{', ' ', '\'']).to_owned();
            let max = max.trim_matches([']', '}', ' ']).parse().ok();
            Some((name, min.trim().parse().ok()?, max))
        })
        .collect()
}

/// The op that an fx node calls: `… = call_function[target=torch.ops.aten.mul.Tensor](…`.
fn torch_op(program: &mut Program, fx: &[u8]) -> Name {
    let text = String::from_utf8_lossy(fx);
    let Some((_, rest)) = text.split_once("[target=") else { return Name::EMPTY };
    let target = rest.split(']').next().unwrap_or_default();
    program.names.intern(target.strip_prefix("torch.ops.").unwrap_or(target))
}

/// The scopes in a name such as `/layers.0/attn/MatMul`, which older exporters write.
fn scope_of_name(program: &mut Program, name: &str) -> ModuleId {
    let Some(rest) = name.strip_prefix('/') else { return ModuleId::EMPTY };
    let scopes: Vec<&str> = rest.split('/').collect();
    let Some((_, modules)) = scopes.split_last() else { return ModuleId::EMPTY };
    if modules.is_empty() {
        return ModuleId::EMPTY;
    }
    // `/layer/layer.0/attn`: a scope that goes on where the one before ended replaces it.
    let mut parts: Vec<&str> = Vec::new();
    for scope in modules {
        match parts.last() {
            Some(last) if scope.strip_prefix(last).is_some_and(|rest| rest.starts_with('.')) => {
                let at = parts.len() - 1;
                parts[at] = scope;
            }
            _ => parts.push(scope),
        }
    }
    let path = program.names.intern(&parts.join("."));
    let stack = vec![(path, Name::EMPTY)];
    program.sources.module(ModulePath { path, class: Name::EMPTY, stack })
}

/// The words of a printed Python list of strings.
fn python_list(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<(char, String)> = None;
    let mut escaped = false;
    for c in text.chars() {
        match &mut word {
            None => {
                if matches!(c, '\'' | '"') {
                    word = Some((c, String::new()));
                }
            }
            Some((quote, held)) => {
                if escaped {
                    held.push(c);
                    escaped = false;
                } else if c == '\\' {
                    escaped = true;
                } else if c == *quote {
                    words.push(std::mem::take(held));
                    word = None;
                } else {
                    held.push(c);
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::graph::Format;

    fn entry(key: &str, value: &str) -> Bytes {
        let entry = proto::StringEntry {
            key: Bytes::from(format!("pkg.torch.onnx.{key}")),
            value: Bytes::from(value.to_owned()),
        };
        entry.encode_to_vec().into()
    }

    #[test]
    fn torch_metadata_name_the_line_and_the_module() {
        let mut program = Program::new("x".into(), Format::Onnx);
        let metadata = [
            entry("stack_trace", "File \"m.py\", line 7, in forward\n    return self.fc(x)"),
            entry("name_scopes", "['', 'fc', 'linear']"),
            entry("class_hierarchy", "['m.M', 'torch.nn.modules.linear.Linear', 'aten.linear']"),
            entry("fx_node", "%linear = call_function[target=torch.ops.aten.linear.default](args)"),
        ];
        let id = Origins::default().of_node(&mut program, &metadata, "node_linear");
        let provenance = *program.sources.get(id);
        let frame = *program.sources.frames(provenance.stack).next_back().unwrap();
        assert_eq!((program.text(frame.file), frame.line), ("m.py", 7));
        let module = program.sources.get_module(provenance.module).clone();
        assert_eq!(program.text(module.path), "fc");
        assert_eq!(program.text(module.class), "torch.nn.modules.linear.Linear");
        assert_eq!(program.text(provenance.torch_op), "aten.linear.default");
    }

    #[test]
    fn ranges_of_symbols_are_read() {
        let entry = proto::StringEntry {
            key: Bytes::from_static(b"pkg.torch.export.ExportedProgram.range_constraints"),
            value: Bytes::from_static(b"{s30: VR[2, 63], s7: VR[0, int_oo]}"),
        };
        let found = ranges(&[entry.encode_to_vec().into()]);
        assert_eq!(found, [("s30".to_owned(), 2, Some(63)), ("s7".to_owned(), 0, None)]);
    }

    #[test]
    fn a_name_with_scopes_names_the_module() {
        let mut program = Program::new("x".into(), Format::Onnx);
        let id = Origins::default().of_node(&mut program, &[], "/layers/layers.0/attn/MatMul");
        let module = program.sources.get_module(program.sources.get(id).module).clone();
        assert_eq!(program.text(module.path), "layers.0.attn");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "\\PC{0,80}") {
            let mut program = Program::new("x".into(), Format::Onnx);
            let metadata = [entry("stack_trace", &text), entry("name_scopes", &text)];
            let _ = Origins::default().of_node(&mut program, &metadata, &text);
        }
    }
}
