//! Recorded Python frames and module stacks, as torch writes them into a node's metadata.
//!
//! A trace lists frames outermost first. A frame has two lines (`File "…", line N, in f`, then the
//! source text), or three under `strict=True`, where a line of `^` marks the expression.

/// One frame of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceFrame<'a> {
    /// The file as recorded.
    pub file: &'a str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, of the marked expression; 0 if none is marked.
    pub column: u32,
    /// The function's name.
    pub function: &'a str,
    /// The source text, trimmed.
    pub text: &'a str,
}

/// The frames of a trace, outermost first. Lines that are no frame are passed over; frames that
/// torch invents for run-time assertions are left out, and those of code that it makes at run time
/// (the branches of `cond`): nobody can open `<eval_with_key>.3`.
pub fn frames(trace: &str) -> Vec<TraceFrame<'_>> {
    let mut found: Vec<TraceFrame<'_>> = Vec::new();
    // Indentation that the text line of the last frame had: a caret column counts from there.
    let mut indent = None;
    for line in trace.lines() {
        if let Some(frame) = header(line) {
            found.push(frame);
            indent = None;
            continue;
        }
        let Some(last) = found.last_mut() else { continue };
        let body = line.trim_start();
        let before = line.len() - body.len();
        let body = body.trim_end();
        if body.is_empty() {
            continue;
        }
        match indent {
            None => {
                last.text = body;
                indent = Some(before);
            }
            Some(start) if last.column == 0 && body.chars().all(|c| matches!(c, '^' | '~')) => {
                // The caret line is indented like the text line, which the traceback printer has
                // stripped of the source's own indentation: this is the column within `text`.
                let caret = body.find('^').unwrap_or(0);
                last.column =
                    u32::try_from((before + caret).saturating_sub(start) + 1).unwrap_or(0);
            }
            Some(_) => {}
        }
    }
    found.retain(|frame| {
        !frame.file.ends_with("torch/fx/passes/runtime_assert.py")
            && !frame.file.starts_with("<eval_with_key>")
    });
    found
}

/// `File "x.py", line 3, in forward`.
fn header(line: &str) -> Option<TraceFrame<'_>> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    // The file name may hold a quote; the last `", line ` is the separator.
    let at = rest.rfind("\", line ")?;
    let (file, rest) = (&rest[..at], &rest[at + "\", line ".len()..]);
    let (number, function) = match rest.split_once(", in ") {
        Some((number, function)) => (number, function.trim()),
        None => (rest.trim(), ""),
    };
    let line = number.trim().parse().ok()?;
    Some(TraceFrame { file, line, column: 0, function, text: "" })
}

/// What torch writes as the module of a node that it made outside any, such as the size of an input.
const NO_MODULE: &str = "_empty_nn_module_stack_from_metadata_hook";

/// The modules around a node, outermost first: `(dotted path, class)`. The text is
/// `key,path,class;key,path,class`.
pub fn modules(stack: &str) -> Vec<(String, &str)> {
    stack
        .split(';')
        .filter(|entry| !entry.contains(NO_MODULE))
        .filter_map(|entry| {
            let (_key, rest) = entry.split_once(',')?;
            let (path, class) = rest.rsplit_once(',')?;
            Some((module_path(path), class))
        })
        .collect()
}

/// A path as the author's model has it: `L['self'].layers[0].fc` and `L__self___layers` lose the
/// tracer's prefix.
fn module_path(path: &str) -> String {
    let path = path
        .strip_prefix("L['self']")
        .or_else(|| path.strip_prefix("L__self__"))
        .map_or(path, |rest| rest.trim_start_matches(['.', '_']));
    if !path.contains(['[', '\'', '"']) {
        return path.to_owned();
    }
    let mut plain = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '[' if !plain.is_empty() && !plain.ends_with('.') => plain.push('.'),
            '[' | ']' | '\'' | '"' => {}
            _ => plain.push(c),
        }
    }
    plain
}

/// The function of a `torch_fn` entry (`mul_1;method_descriptor.mul` → `method_descriptor.mul`):
/// the first half only numbers the call.
pub fn torch_function(entry: &str) -> &str {
    entry.rsplit(';').next().unwrap_or(entry)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn two_line_frames_keep_their_order_and_text() {
        let trace = "File \"/a/model.py\", line 66, in forward\n    x = x * torch.rsqrt(v + eps)\n  \
                     File \"/a/norm.py\", line 7, in forward\n    return x\n";
        let found = frames(trace);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].file, found[0].line, found[0].column), ("/a/model.py", 66, 0));
        assert_eq!(found[0].text, "x = x * torch.rsqrt(v + eps)");
        assert_eq!((found[1].function, found[1].text), ("forward", "return x"));
    }

    #[test]
    fn a_caret_line_gives_the_column() {
        let trace = "  File \"cases/masks.py\", line 53, in scores\n    q, k, v = self.qkv(x).chunk(3)\n              ^^^^^^^^^^^\n";
        let found = frames(trace);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].column, 11);
        assert_eq!(&found[0].text[10..21], "self.qkv(x)");
    }

    #[test]
    fn invented_frames_are_left_out() {
        let trace = "File \"torch/fx/passes/runtime_assert.py\", line 24, in insert\n";
        assert!(frames(trace).is_empty());
        let trace = "File \"a.py\", line 8, in forward\n    y = torch.cond(p, f, g, (x,))\n  \
                     File \"<eval_with_key>.3\", line 6, in forward\n    z = a.float();  a = None\n";
        let found = frames(trace);
        assert_eq!(found.iter().map(|frame| frame.file).collect::<Vec<_>>(), ["a.py"]);
    }

    #[test]
    fn the_module_of_no_module_is_left_out() {
        let hook = "_empty_nn_module_stack_from_metadata_hook";
        assert!(modules(&format!("{hook},{hook},{hook}")).is_empty());
    }

    #[test]
    fn module_stacks() {
        let stack = "L__self__,,__main__.W;L__self__m.model.layers.0,m.model.layers.0,models.Layer;\
                     L__self__mix@1,mix,torch.nn.modules.linear.Linear";
        let found = modules(stack);
        assert_eq!(found[0], (String::new(), "__main__.W"));
        assert_eq!(found[1], ("m.model.layers.0".into(), "models.Layer"));
        assert_eq!(found[2].0, "mix");
        assert_eq!(module_path("L['self'].layers[0].fc"), "layers.0.fc");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "\\PC{0,200}") {
            let _ = frames(&text);
            let _ = modules(&text);
        }

        #[test]
        fn whatever_is_written_is_read(file in "[a-z/.\" ]{1,20}", line in 1u32..100_000, name in "[a-z_]{1,9}", code in "[a-z(]{1,12}") {
            let trace = format!("  File \"{file}\", line {line}, in {name}\n    {code}\n");
            let found = frames(&trace);
            proptest::prop_assert_eq!(found.len(), 1);
            proptest::prop_assert_eq!((found[0].file, found[0].line, found[0].function, found[0].text), (file.as_str(), line, name.as_str(), code.as_str()));
        }
    }
}
