//! Whose code a recorded frame is: the author's, a library's, or nobody's file.

use std::path::{Component, Path};

/// What a recorded file name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A file of the author's.
    Author,
    /// A file of an installed package or of Python itself.
    Library,
    /// A cell of a notebook or an interactive session: no file.
    Notebook,
    /// Made at run time (`<eval_with_key>`, `<string>`): no file.
    Generated,
}

/// Folders of libraries that record their files without `site-packages` in the path.
const PACKAGES: &[&[&str]] = &[
    &["torch", "nn"],
    &["torch", "_dynamo"],
    &["torch", "_functorch"],
    &["torch", "_higher_order_ops"],
    &["torch", "_refs"],
    &["torch", "_decomp"],
    &["torch", "fx"],
    &["torch", "export"],
    &["torch", "_export"],
    &["torch", "utils"],
    &["torch", "ao"],
    &["transformers", "models"],
    &["transformers", "integrations"],
    &["torchvision", "models"],
    &["coreai_torch"],
    &["coreai_opt"],
    &["coremltools"],
];

/// Tells what a recorded file name stands for. Files under one of `roots` (the roots that the user
/// named) are the author's even inside an installed package.
pub fn frame_kind(recorded: &str, roots: &[impl AsRef<Path>]) -> FrameKind {
    if recorded.contains("ipykernel_") || recorded.starts_with("<ipython-input") {
        return FrameKind::Notebook;
    }
    if recorded == "<stdin>" {
        return FrameKind::Notebook;
    }
    if recorded.is_empty() || recorded == "-" || recorded.starts_with('<') {
        return FrameKind::Generated;
    }
    let path = Path::new(recorded);
    if roots.iter().any(|root| path.starts_with(root.as_ref())) {
        return FrameKind::Author;
    }
    let parts: Vec<&str> = recorded.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let installed = parts.iter().any(|part| matches!(*part, "site-packages" | "dist-packages"))
        || parts.windows(2).any(|pair| {
            matches!(pair[0], "lib" | "lib64" | "Lib") && pair[1].starts_with("python")
        });
    let known = PACKAGES
        .iter()
        .any(|package| parts.windows(package.len()).any(|window| window == *package));
    if installed || known { FrameKind::Library } else { FrameKind::Author }
}

/// A path for people: `site-packages/` and what is before it left off.
pub fn short_library_path(recorded: &str) -> &str {
    for marker in ["site-packages/", "dist-packages/"] {
        if let Some(at) = recorded.rfind(marker) {
            return &recorded[at + marker.len()..];
        }
    }
    recorded
}

/// The components of a recorded path that can be looked for: no drive, root, `.` or `..`; both kinds
/// of slash part.
pub fn components(recorded: &str) -> Vec<String> {
    recorded
        .split(['/', '\\'])
        .filter(|part| !part.is_empty() && *part != "." && *part != ".." && !part.ends_with(':'))
        .filter(|part| {
            // A component must be a plain name for this system too.
            let mut parts = Path::new(part).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        })
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&str] = &[];

    #[test]
    fn libraries_are_known_by_where_they_lie() {
        for file in [
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "C:\\venv\\Lib\\site-packages\\x\\y.py",
            "/usr/lib/python3.11/contextlib.py",
            "torch/nn/modules/linear.py",
            "/src/transformers/src/transformers/models/llama/modeling_llama.py",
        ] {
            assert_eq!(frame_kind(file, NONE), FrameKind::Library, "{file}");
        }
        for file in ["cases/x.py", "/home/me/torch/model.py", "transformers/mine.py", "model.py"] {
            assert_eq!(frame_kind(file, NONE), FrameKind::Author, "{file}");
        }
    }

    #[test]
    fn a_root_makes_a_library_the_authors() {
        let roots = ["/src/transformers"];
        let file = "/src/transformers/src/transformers/models/llama/modeling_llama.py";
        assert_eq!(frame_kind(file, &roots), FrameKind::Author);
    }

    #[test]
    fn what_has_no_file_is_named_as_such() {
        assert_eq!(frame_kind("<eval_with_key>.12", NONE), FrameKind::Generated);
        assert_eq!(frame_kind("-", NONE), FrameKind::Generated);
        assert_eq!(frame_kind("/tmp/ipykernel_41/2.py", NONE), FrameKind::Notebook);
        assert_eq!(frame_kind("<ipython-input-3-1>", NONE), FrameKind::Notebook);
    }

    #[test]
    fn components_leave_out_what_leads_out() {
        assert_eq!(components("C:\\a\\..\\b.py"), ["a", "b.py"]);
        assert_eq!(components("/../../etc/./x.py"), ["etc", "x.py"]);
    }
}
