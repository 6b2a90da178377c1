//! Holds findings against what was promised: missed, false alarm, moved.

use std::path::Path;

use anelint::findings::Finding;
use anelint::findings::source::{PlaceFile, Spot, shown_path};
use anelint::report::InputReport;
use anelint::rules::Severity;

use crate::expectation::{Expected, Kind};

/// Characters of the longest message: it stands on one line of a report.
const LONGEST_MESSAGE: usize = 300;

/// What is wrong, one line each.
pub fn judge(
    expected: &[Expected],
    report: &InputReport,
    suffix: &str,
    testdata: &Path,
) -> Vec<String> {
    let mut problems = Vec::new();
    let findings: Vec<&Finding> = report.findings.iter().collect();
    // Without source lines the rules count, their places do not.
    let placeless = suffix == "release";
    let complete = !matches!(suffix, "mlpackage" | "onnx");
    let mut accounted = vec![false; findings.len()];
    for promise in expected {
        let rules = promise.item.rules.join("|");
        let of_rule = |finding: &Finding| {
            promise.item.rules.contains(&finding.rule)
                && promise.item.severity.is_none_or(|severity| severity == finding.severity)
        };
        let at = |spot: &Spot| place(spot, testdata) == (promise.file.clone(), promise.line);
        let matching: Vec<usize> = (0..findings.len()).filter(|&n| of_rule(findings[n])).collect();
        let where_ = format!("{}:{}", promise.file, promise.line);
        match promise.kind {
            Kind::Not => {
                for &n in &matching {
                    problems.push(format!("forbidden    {}", shown(findings[n], testdata)));
                }
            }
            Kind::Somewhere => {
                if matching.is_empty() && promise.item.optional {
                } else if matching.is_empty() {
                    problems.push(format!("missed       {rules} anywhere in the case"));
                } else if promise.item.count.is_some_and(|count| count != matching.len()) {
                    problems.push(format!("miscounted   {rules}: {} in the case", matching.len()));
                }
                for &n in &matching {
                    accounted[n] = true;
                }
            }
            Kind::Related if placeless => {}
            Kind::Related => {
                let related = |n: &&usize| {
                    let finding = findings[**n];
                    finding.related.iter().any(|(spot, _)| at(spot))
                        // Where several may be the cause, a note names them all.
                        || finding.notes.iter().any(|note| note.contains(&format!("{where_}:")))
                        // In an export that records helpers the place itself is there.
                        || (suffix == "strict" && finding.spot.as_ref().is_some_and(at))
                };
                if matching.is_empty() {
                    problems.push(format!("missed       {rules} with related {where_}"));
                } else if !matching.iter().any(|n| related(&n)) {
                    problems.push(format!(
                        "not related  {rules} does not name {where_}: {}",
                        shown(findings[matching[0]], testdata)
                    ));
                }
                // In a strict export the finding stands on the helper's line.
                for &n in &matching {
                    if suffix == "strict" && findings[n].spot.as_ref().is_some_and(at) {
                        accounted[n] = true;
                    }
                }
            }
            Kind::Here => {
                let here: Vec<usize> = matching
                    .iter()
                    .copied()
                    .filter(|&n| placeless || findings[n].spot.as_ref().is_some_and(at))
                    .collect();
                if here.is_empty() && promise.item.optional {
                    continue;
                }
                let folded = matches!(suffix, "aimodel" | "mlpackage" | "onnx");
                if here.is_empty() && folded {
                    let used = matching.iter().copied().find(|&n| {
                        !accounted[n] && at_use_of_folded(findings[n], promise, testdata)
                    });
                    if let Some(n) = used {
                        accounted[n] = true;
                        continue;
                    }
                }
                if here.is_empty() {
                    let strict_helper = suffix == "strict"
                        && matching.iter().any(|&n| {
                            expected.iter().any(|other| {
                                other.kind == Kind::Related
                                    && findings[n].spot.as_ref().is_some_and(|spot| {
                                        place(spot, testdata) == (other.file.clone(), other.line)
                                    })
                            })
                        });
                    if strict_helper {
                        continue;
                    }
                    match matching.iter().find(|&&n| !accounted[n]) {
                        Some(&n) => {
                            accounted[n] = true;
                            problems.push(format!(
                                "moved        {rules} promised at {where_}, is {}",
                                shown(findings[n], testdata)
                            ));
                        }
                        None => {
                            let other = findings
                                .iter()
                                .find(|finding| promise.item.rules.contains(&finding.rule))
                                .map(|finding| format!(" (there is {})", shown(finding, testdata)))
                                .unwrap_or_default();
                            problems.push(format!("missed       {rules} at {where_}{other}"));
                        }
                    }
                    continue;
                }
                if promise.item.count.is_some_and(|count| count != here.len()) {
                    problems.push(format!("miscounted   {rules}: {} at {where_}", here.len()));
                }
                for &n in &here {
                    accounted[n] = true;
                }
                if let Some(text) = &promise.item.at {
                    let source = std::fs::read_to_string(testdata.join(&promise.file)).unwrap();
                    let line = source.lines().nth(promise.line as usize - 1).unwrap();
                    let code = line.split("# expect").next().unwrap();
                    let byte = code.find(text.as_str()).expect("the text is on the line");
                    let column = code[..byte].chars().count() as u32 + 1;
                    let begins = |n: &usize| {
                        findings[*n]
                            .spot
                            .as_ref()
                            .is_some_and(|spot| spot.exact && spot.span.start.column == column)
                    };
                    if !placeless && !here.iter().any(begins) {
                        problems.push(format!(
                            "column       {rules} promised at {where_}:{column} `{text}`, is {}",
                            shown(findings[here[0]], testdata)
                        ));
                    }
                }
            }
        }
    }
    for (n, finding) in findings.iter().enumerate() {
        let message = &finding.message;
        if message.chars().count() > LONGEST_MESSAGE
            || ["(s)", "``", ": ,", "?"].iter().any(|slip| message.contains(slip))
        {
            problems.push(format!("wording      {}", shown(finding, testdata)));
        }
        if complete && finding.severity == Severity::Error && !accounted[n] {
            problems.push(format!("false alarm  {}", shown(finding, testdata)));
        }
    }
    problems
}

/// Whether a mask that was made on the promised line is reported where it is used: all exporters but
/// torch's own fold what a line of constants makes, and a folded constant has no line of its own. Either the finding
/// names the promised line as a related place, or its own statement holds that line (an argument of a
/// call), or it reads the name that the promised line assigns.
fn at_use_of_folded(finding: &Finding, promise: &Expected, testdata: &Path) -> bool {
    const MASKS: [&str; 3] = ["ANE004", "ANE005", "ANE067"];
    let Some(spot) = &finding.spot else { return false };
    if !MASKS.contains(&finding.rule.as_str()) || place(spot, testdata).0 != promise.file {
        return false;
    }
    let promised = (promise.file.clone(), promise.line);
    if finding.related.iter().any(|(other, _)| place(other, testdata) == promised) {
        return true;
    }
    let (first, last) = (spot.span.start.line, spot.span.end.line);
    if (first..=last).contains(&promise.line) {
        return true;
    }
    let source = std::fs::read_to_string(testdata.join(&promise.file)).unwrap();
    let line = |number: u32| source.lines().nth(number as usize - 1).unwrap_or_default();
    // An argument of the statement that begins on the promised line.
    let mut open = 0;
    for number in promise.line..promise.line + 20 {
        open += line(number).matches(['(', '[', '{']).count() as i32;
        open -= line(number).matches([')', ']', '}']).count() as i32;
        if number == first {
            return true;
        }
        if open <= 0 {
            break;
        }
    }
    let Some((name, _)) = line(promise.line).split_once(" = ") else { return false };
    let name = name.trim();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    (promise.line + 1..promise.line + 4).contains(&first)
        && line(first).split(|c: char| !is_word(c)).any(|word| word == name)
}

fn place(spot: &Spot, testdata: &Path) -> (String, u32) {
    let file = match &spot.file {
        PlaceFile::Found(file) => shown_path(file.path(), testdata),
        PlaceFile::Recorded { file, .. } => file.clone(),
    };
    (file, spot.span.start.line)
}

fn shown(finding: &Finding, testdata: &Path) -> String {
    let at = match &finding.spot {
        None => format!("at node {}", finding.nodes.join(", ")),
        Some(spot) => {
            let (file, line) = place(spot, testdata);
            match spot.exact {
                true => format!("at {file}:{line}:{}", spot.span.start.column),
                false => format!("at {file}:{line}"),
            }
        }
    };
    format!("{} {} {at}: {}", finding.severity, finding.rule, finding.message)
}
