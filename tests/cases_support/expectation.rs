//! The `# expect…` comments.

use std::path::Path;

use anelint::rules::{RuleSet, Severity};
use anelint::target::{Runtime, Target, Unit};

/// What a comment promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A finding whose location is on this line.
    Here,
    /// A finding that names this line as a related place.
    Related,
    /// A finding somewhere in the case.
    Somewhere,
    /// No such finding in the case.
    Not,
}

/// One comment.
#[derive(Debug, Clone)]
pub struct Line {
    pub file: String,
    pub line: u32,
    pub kind: Kind,
    /// `expect[gpu]`.
    pub target: Option<String>,
    /// `expect-unit: gpu`.
    pub unit: Option<Unit>,
    /// The default items, then the items by format.
    pub items: Vec<(Option<String>, Vec<Item>)>,
}

/// One rule of a comment.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Any of these.
    pub rules: Vec<String>,
    pub severity: Option<Severity>,
    /// Text at which the location begins.
    pub at: Option<String>,
    /// How many such findings; one or more if not said.
    pub count: Option<usize>,
    /// May be found, need not (`ANE007?`).
    pub optional: bool,
}

/// A promise for one artifact.
#[derive(Debug, Clone)]
pub struct Expected {
    pub file: String,
    pub line: u32,
    pub kind: Kind,
    pub item: Item,
}

/// The comments within the spans of a case.
pub fn of_case(testdata: &Path, spans: &[(String, u32, u32)]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (file, first, last) in spans {
        let text = std::fs::read_to_string(testdata.join(file)).unwrap();
        for (index, line) in text.lines().enumerate() {
            let number = index as u32 + 1;
            if (*first..=*last).contains(&number) {
                for parsed in of_line(file, number, line) {
                    let known = lines.iter().any(|l| {
                        l.file == parsed.file
                            && l.line == parsed.line
                            && l.kind == parsed.kind
                            && l.target == parsed.target
                    });
                    if !known {
                        lines.push(parsed);
                    }
                }
            }
        }
    }
    lines
}

fn of_line(file: &str, number: u32, line: &str) -> Vec<Line> {
    line.split('#')
        .skip(1)
        .filter_map(|comment| {
            let rest = comment.trim().strip_prefix("expect")?;
            let (head, items) = rest.split_once(':')?;
            let (kind, target) = match head.split_once('[') {
                Some((kind, target)) => (kind, Some(target.trim_end_matches(']').to_owned())),
                None => (head, None),
            };
            let mut parsed = Line {
                file: file.to_owned(),
                line: number,
                kind: match kind {
                    "" => Kind::Here,
                    "-related" => Kind::Related,
                    "-case" => Kind::Somewhere,
                    "-not" | "-unit" => Kind::Not,
                    other => panic!("{file}:{number}: expect{other}"),
                },
                target,
                unit: None,
                items: Vec::new(),
            };
            if kind == "-unit" {
                parsed.unit = Some(Unit::parse(items.trim()).unwrap());
                return Some(parsed);
            }
            for (at, part) in items.split(';').enumerate() {
                let (format, list) = match part.split_once(':') {
                    Some((format, list)) if at > 0 => (Some(format.trim().to_owned()), list),
                    _ => (None, part),
                };
                parsed.items.push((format, list_of(list)));
            }
            Some(parsed)
        })
        .collect()
}

/// `ANE005=advice `text`, ANE001|ANE003`; `-` is nothing.
fn list_of(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find([',', '`']).unwrap_or(rest.len());
        let name = rest[..end].trim();
        rest = &rest[end..];
        let mut at = None;
        if let Some(quoted) = rest.strip_prefix('`') {
            let close = quoted.find('`').unwrap();
            at = Some(quoted[..close].to_owned());
            rest = quoted[close + 1..].trim_start();
        }
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        let (name, count) = match name.rsplit_once(" x") {
            Some((name, count)) => (name.trim(), Some(count.trim().parse().unwrap())),
            None => (name, None),
        };
        let (rules, severity) = match name.split_once('=') {
            Some((rules, word)) => (
                rules,
                Some(
                    Severity::parse(word.trim()).unwrap_or_else(|| panic!("severity in `{text}`")),
                ),
            ),
            None => (name, None),
        };
        if rules != "-" && !rules.is_empty() {
            let optional = rules.contains('?');
            let rules = rules.split('|').map(|rule| rule.trim().replace('?', "")).collect();
            items.push(Item { rules, severity, at, count, optional });
        }
    }
    items
}

/// The runtime of a format that is not Core AI's.
fn other_runtime(suffix: &str) -> Runtime {
    match suffix {
        "onnx" => Runtime::OnnxRuntime,
        _ => Runtime::CoreMl,
    }
}

/// Rules about element types: silent in a function that has no f16 at all, where one ANE003 says so.
const DTYPE_RULES: &[&str] = &[
    "ANE001", "ANE003", "ANE005", "ANE037", "ANE038", "ANE039", "ANE040", "ANE041", "ANE061",
    "ANE067",
];

/// What the comments promise of one artifact. Left out are rules that do not exist yet, and in Core ML
/// packages and ONNX, where their format is not named, those that are about another runtime; a number
/// beyond f16 may there be -inf already.
pub fn for_artifact(
    lines: &[Line],
    suffix: &str,
    unit: Unit,
    runtime: Option<&str>,
    set: &RuleSet,
) -> Vec<Expected> {
    let formats: &[&str] = match suffix {
        "decomp" => &["decomp", "pt2"],
        "strict" => &["strict", "pt2"],
        "release" => &["release", "aimodel"],
        other => &[other],
    };
    let name = match runtime {
        Some(runtime) => runtime,
        None => unit.name(),
    };
    let for_whole_case = lines.iter().any(|line| line.unit == Some(unit));
    lines
        .iter()
        .filter(|line| match &line.target {
            Some(target) => {
                target == name || Unit::parse(target).is_some_and(|own| own.name() == name)
            }
            None => (unit == Unit::NeuralEngine || for_whole_case) && runtime.is_none(),
        })
        .flat_map(|line| {
            let by_format = formats.iter().find_map(|format| {
                line.items.iter().find(|(own, _)| own.as_deref() == Some(format))
            });
            let default = line.items.iter().find(|(own, _)| own.is_none());
            let mut items =
                by_format.or(default).map(|(_, items)| items.clone()).unwrap_or_default();
            if by_format.is_none() && matches!(suffix, "mlpackage" | "onnx") {
                let target = Target { unit, ..Target::default_for(other_runtime(suffix)) };
                items.retain(|item| {
                    item.rules.iter().any(|id| set.find(id).is_some_and(|r| r.holds_for(&target)))
                });
                // The ONNX exports are those of the f32 modules.
                if suffix == "onnx" {
                    items.retain(|item| {
                        !item.rules.iter().all(|id| DTYPE_RULES.contains(&id.as_str()))
                    });
                }
                // coremltools rounds a number beyond f16 to -inf, or folds the sum that is.
                for item in &mut items {
                    if item.rules.iter().any(|id| id == "ANE005" || id == "ANE067") {
                        item.rules.extend(["ANE004", "ANE005"].map(str::to_owned));
                    }
                }
            }
            items.into_iter().map(|item| Expected {
                file: line.file.clone(),
                line: line.line,
                kind: line.kind,
                item,
            })
        })
        .chain(whole_function(lines, suffix, unit, runtime))
        .filter(|expected| expected.item.rules.iter().any(|rule| set.find(rule).is_some()))
        .collect()
}

/// An ONNX export of an f32 module has one ANE003, for the whole function.
fn whole_function(
    lines: &[Line],
    suffix: &str,
    unit: Unit,
    runtime: Option<&str>,
) -> Option<Expected> {
    let first = lines.first()?;
    let item = Item {
        rules: vec!["ANE003".to_owned()],
        severity: Some(Severity::Error),
        at: None,
        count: Some(1),
        optional: false,
    };
    (suffix == "onnx" && unit == Unit::NeuralEngine && runtime.is_none()).then(|| Expected {
        file: first.file.clone(),
        line: first.line,
        kind: Kind::Somewhere,
        item,
    })
}
