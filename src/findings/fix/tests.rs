//! Rewrites on one line of Python.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::findings::python::Position;

/// A rewrite as rule files have it.
fn prepared(yaml: &str) -> PreparedFix {
    let raw: raw::PythonFix = serde_saphyr::from_str(yaml).unwrap();
    PreparedFix::new(&raw).unwrap()
}

fn spot(text: &str, from: u32, to: u32) -> Spot {
    let file = Arc::new(PythonFile::new("a.py".into(), text.to_owned()));
    let at = |column| Position { line: 1, column };
    let span = Span { start: at(from), end: at(to) };
    Spot { file: PlaceFile::Found(file), span, exact: true, stale: false }
}

use super::super::python::Span;

fn run(fixes: &[&PreparedFix], spot: &Spot, causes: &[(Spot, String)]) -> Outcome {
    let list: Vec<(usize, &PreparedFix)> = fixes.iter().copied().enumerate().collect();
    let ask =
        Ask { spot: Some(spot), causes, bindings: &[], place_of: &|_| None, refuse: &|_| None };
    fix(&list, &ask)
}

/// The line after the edits of a rewrite anywhere on it.
fn fixed(yaml: &str, text: &str) -> Option<String> {
    let whole = spot(text, 1, text.trim_end().chars().count() as u32 + 1);
    let made = run(&[&prepared(yaml)], &whole, &[]).fix?;
    let mut edits: Vec<_> = made
        .edits
        .iter()
        .map(|edit| {
            let PlaceFile::Found(file) = &edit.file else { panic!("a file") };
            let at = |p| file.byte_of(p).unwrap();
            (at(edit.span.start)..at(edit.span.end), edit.text.clone())
        })
        .collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    Some(text)
}

#[test]
fn the_snippet_inside_the_place_is_replaced() {
    let float = prepared("{replace: '$X.float()', with: '$X', applicability: safe}");
    let made = run(&[&float], &spot("x = f(y.float(), z.float())\n", 7, 16), &[]).fix.unwrap();
    let [edit] = made.edits.as_slice() else { panic!("one edit") };
    assert_eq!((edit.text.as_str(), edit.span.start.column), ("y", 7));
    assert_eq!(made.origin, Some((0, 0)));
}

#[test]
fn twice_in_the_place_is_no_fix_and_a_changed_file_is_refused() {
    let text = "x = f(y.float(), z.float())\n";
    let float = prepared("{replace: '$X.float()', with: '$X', applicability: safe}");
    let whole = run(&[&float], &spot(text, 5, 28), &[]);
    assert!(whole.fix.is_none() && whole.refused.is_none());
    let stale = run(&[&float], &Spot { stale: true, ..spot(text, 7, 16) }, &[]);
    assert!(stale.fix.is_none());
    assert_eq!(stale.refused.unwrap().1, CHANGED);
}

#[test]
fn a_file_that_does_not_parse_is_refused() {
    let text = "x = f(y.float())\ndef broken(:\n";
    let float = prepared("{replace: '$X.float()', with: '$X', applicability: safe}");
    let outcome = run(&[&float], &spot(text, 7, 16), &[]);
    assert!(outcome.fix.is_none());
    assert_eq!(outcome.refused.unwrap().1, "it does not parse as Python");
}

#[test]
fn the_first_rewrite_that_can_be_made_is_taken() {
    let one = prepared("{replace: '$X.half()', with: '$X', applicability: safe}");
    let two =
        prepared("{replace: ['$X.double()', '$X.float()'], with: '$X', applicability: unsafe}");
    let made = run(&[&one, &two], &spot("x = y.float()\n", 5, 14), &[]).fix.unwrap();
    assert_eq!(made.applicability, Applicability::Unsafe);
    assert_eq!(made.origin, Some((1, 1)));
}

#[test]
fn where_the_place_has_nothing_every_cause_is_edited() {
    let inf = prepared("{replace: 'float(\"-inf\")', with: '-40000.0', applicability: safe}");
    let text = "a = float('-inf'); b = g(a); c = float('-inf')\n";
    let cause = |from, to| (spot(text, from, to), "set here".to_owned());
    let made = run(&[&inf], &spot(text, 24, 28), &[cause(1, 18), cause(34, 47)]);
    assert_eq!(made.fix.unwrap().edits.len(), 2);
    let own = run(&[&inf], &spot(text, 5, 18), &[cause(34, 47)]);
    assert_eq!(own.fix.unwrap().edits.len(), 1);
}

#[test]
fn arguments_are_dropped_and_added() {
    let softmax =
        "{replace: 'F.softmax($$$, dtype=torch.float32)', drop: dtype, applicability: safe}";
    let text = "y = F.softmax(x, dtype=torch.float32, dim=-1)\n";
    assert_eq!(fixed(softmax, text).unwrap(), "y = F.softmax(x, dim=-1)\n");
    let ones = "{replace: 'torch.ones($$$)', add: {dtype: $BESIDE.dtype, device: $BESIDE.device}, \
                applicability: safe}";
    assert_eq!(
        fixed(ones, "y = x * torch.ones(1)\n").unwrap(),
        "y = x * torch.ones(1, dtype=x.dtype, device=x.device)\n"
    );
    assert_eq!(
        fixed(ones, "y = x * torch.ones(1, device=d)\n").unwrap(),
        "y = x * torch.ones(1, device=d, dtype=x.dtype)\n"
    );
    assert_eq!(fixed(ones, "y = x * torch.ones(1, dtype=x.dtype)\n"), None);
    assert_eq!(fixed(ones, "y = torch.ones(1)\n"), None);
}

#[test]
fn holes_stand_for_what_the_rule_lets_them() {
    let tensor = "{replace: 'torch.tensor($X)', holes: {X: f16}, add: {dtype: $BESIDE.dtype}, \
                  applicability: safe}";
    assert!(fixed(tensor, "y = x * torch.tensor(1.5)\n").is_some());
    assert_eq!(fixed(tensor, "y = x * torch.tensor(70000.0)\n"), None);
    assert_eq!(fixed(tensor, "y = x * torch.tensor(n)\n"), None);
}

#[test]
fn a_number_is_found_by_its_size_alone() {
    let eps = "{replace: $N, holes: {N: below-f16}, with: '1e-4', applicability: safe}";
    assert_eq!(fixed(eps, "y = x / (x.sum(1) + 1e-12)\n").unwrap(), "y = x / (x.sum(1) + 1e-4)\n");
    assert_eq!(fixed(eps, "y = x / (x.sum(1) + 1e-3)\n"), None);
    assert_eq!(fixed(eps, "y = (x + 1e-9) / (x.sum(1) + 1e-12)\n"), None);
}

#[test]
fn a_replacement_keeps_what_it_is_part_of_whole() {
    let float = "{replace: '$X.float()', with: $X, applicability: safe}";
    assert_eq!(fixed(float, "y = 2 * (a + b).float()\n").unwrap(), "y = 2 * (a + b)\n");
    assert_eq!(fixed(float, "y = (a + b).float()\n").unwrap(), "y = a + b\n");
    assert_eq!(fixed(float, "y = (-x).float().exp()\n").unwrap(), "y = (-x).exp()\n");
}

#[test]
fn forms_that_make_no_sense_are_refused() {
    let raw: raw::PythonFix =
        serde_saphyr::from_str("{replace: '$A + $B', drop: dtype, applicability: safe}").unwrap();
    assert!(PreparedFix::new(&raw).is_err());
}
