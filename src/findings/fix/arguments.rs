//! Keyword arguments of one call taken out and put in, its other arguments left as they stand.

use std::ops::Range;

use tree_sitter::Node;

use crate::findings::python::{PythonFile, named_children};

/// The argument list of a call; `None` for `f(x for x in y)`, which has no list.
fn list(call: Node<'_>) -> Option<Node<'_>> {
    call.child_by_field_name("arguments").filter(|list| list.kind() == "argument_list")
}

/// The keyword argument of a name.
fn keyword<'t>(file: &PythonFile, list: Node<'t>, name: &str) -> Option<Node<'t>> {
    named_children(list).into_iter().find(|argument| {
        argument.kind() == "keyword_argument"
            && argument.child_by_field_name("name").is_some_and(|own| file.node_text(own) == name)
    })
}

/// Whether a call has a keyword argument of a name.
pub fn has_keyword(file: &PythonFile, call: Node<'_>, name: &str) -> bool {
    list(call).is_some_and(|list| keyword(file, list, name).is_some())
}

/// The bytes to delete so that a keyword argument is gone; `None` if the call has none of that name.
/// Comments stay.
pub fn without(file: &PythonFile, call: Node<'_>, name: &str) -> Option<Range<usize>> {
    let list = list(call)?;
    let argument = keyword(file, list, name)?;
    let mut cursor = list.walk();
    let children: Vec<Node<'_>> = list.children(&mut cursor).collect();
    let at = children.iter().position(|child| child.id() == argument.id())?;
    let comma_after =
        children.get(at + 1..)?.iter().take_while(|c| c.kind() != ")").find(|c| c.kind() == ",");
    // The comma before it goes too, unless a comment stands between.
    let before = children.get(..at)?;
    match before.iter().rposition(|child| child.kind() != "comment") {
        Some(index) if index + 1 == at => {
            let previous = before.get(index)?;
            if previous.kind() == "," {
                return Some(previous.start_byte()..argument.end_byte());
            }
        }
        _ => {}
    }
    let own = argument.byte_range();
    let Some(comma) = comma_after else { return Some(whole_line(file.text(), own)) };
    // With the blanks behind the comma, so that the next argument takes this one's place.
    let rest = file.text().get(comma.end_byte()..)?;
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let comment_between = file.text().get(own.end..comma.start_byte())?.contains('#');
    if comment_between {
        return None;
    }
    Some(whole_line(file.text(), own.start..comma.end_byte() + blanks))
}

/// A stretch with its line and the line's end, if it is all that the line holds.
fn whole_line(text: &str, own: Range<usize>) -> Range<usize> {
    let before = text.get(..own.start).unwrap_or("");
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let blank_before = before.get(start..).is_some_and(|head| head.trim().is_empty());
    let behind = text.get(own.end..).unwrap_or("");
    let end = behind.find('\n').map(|at| at + 1);
    match end.filter(|end| behind.get(..*end).is_some_and(|tail| tail.trim().is_empty())) {
        Some(end) if blank_before => start..own.end + end,
        _ => own,
    }
}

/// Where keyword arguments are put in, and the text before the first of them.
pub fn end_of_arguments(call: Node<'_>) -> Option<(usize, &'static str)> {
    let list = list(call)?;
    match named_children(list).last() {
        Some(last) => Some((last.end_byte(), ", ")),
        None => Some((list.start_byte() + 1, "")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::findings::python::descendants;

    fn call(file: &PythonFile) -> Node<'_> {
        descendants(file.root().unwrap()).find(|node| node.kind() == "call").unwrap()
    }

    fn dropped(text: &str, name: &str) -> String {
        let file = PythonFile::new("a.py".into(), text.to_owned());
        let range = without(&file, call(&file), name).unwrap();
        format!("{}{}", &text[..range.start], &text[range.end..])
    }

    fn added(text: &str, argument: &str) -> String {
        let file = PythonFile::new("a.py".into(), text.to_owned());
        let (at, before) = end_of_arguments(call(&file)).unwrap();
        format!("{}{before}{argument}{}", &text[..at], &text[at..])
    }

    #[test]
    fn an_argument_goes_with_one_comma() {
        assert_eq!(dropped("f(x, d=1)", "d"), "f(x)");
        assert_eq!(dropped("f(d=1, k=2)", "d"), "f(k=2)");
        assert_eq!(dropped("f(d=1)", "d"), "f()");
        assert_eq!(dropped("f(x, d=1, k=2)", "d"), "f(x, k=2)");
        assert_eq!(dropped("f(x, d=1,)", "d"), "f(x,)");
        assert_eq!(dropped("f(\n    x,\n    d=1,\n    k=2,\n)", "d"), "f(\n    x,\n    k=2,\n)");
        assert_eq!(dropped("f(\r\n  x,\r\n  d=1,\r\n)", "d"), "f(\r\n  x,\r\n)");
    }

    #[test]
    fn comments_stay() {
        assert_eq!(dropped("f(\n  x,  # in\n  d=1,\n  k=2,\n)", "d"), "f(\n  x,  # in\n  k=2,\n)");
        assert_eq!(dropped("f(\n  x,  # in\n  d=1\n)", "d"), "f(\n  x,  # in\n)");
    }

    #[test]
    fn arguments_are_put_behind_the_last() {
        assert_eq!(added("f()", "d=1"), "f(d=1)");
        assert_eq!(added("f(x)", "d=1"), "f(x, d=1)");
        assert_eq!(added("f(x,)", "d=1"), "f(x, d=1,)");
        assert_eq!(added("f(\n  x,  # in\n)", "d=1"), "f(\n  x, d=1,  # in\n)");
    }

    #[test]
    fn what_is_not_there_is_not_taken_out() {
        let file = PythonFile::new("a.py".into(), "f(x, d=1)".into());
        assert!(without(&file, call(&file), "k").is_none());
        assert!(has_keyword(&file, call(&file), "d") && !has_keyword(&file, call(&file), "x"));
        let file = PythonFile::new("a.py".into(), "f(x for x in y)".into());
        assert!(end_of_arguments(call(&file)).is_none());
    }
}
