//! SARIF 2.1.0, for code scanning.
//!
//! Regions lie in the Python source; the place in the graph is a logical location. Columns count Unicode
//! code points. Nothing depends on the machine: URIs are relative to `%SRCROOT%`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::host::{self, HostOptions, HostPlace};
use super::model::{self, CheckReport, InputReport, Silent};
use crate::findings::source::PlaceFile;
use crate::findings::{Edit, Finding};
use crate::rules::{Rule, RuleSet, Severity, Sureness, docs};

/// Results that code scanning takes of one run.
const MOST_RESULTS: usize = 25_000;
/// Logical locations that are listed of one result.
const MOST_NODES: usize = 100;
/// Characters of a full description that code scanning takes.
const LONGEST_DESCRIPTION: usize = 1000;
const ROOT: &str = "%SRCROOT%";
const SCHEMA: &str = "https://raw.githubusercontent.com/oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json";

/// Writes the report; `sets` are the rules that were run.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(
    report: &CheckReport,
    sets: &[&RuleSet],
    options: &HostOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut all: Vec<(&InputReport, &Finding, Option<Silent<'_>>)> = report
        .inputs
        .iter()
        .flat_map(|input| input.all().map(move |(finding, silent)| (input, finding, silent)))
        .collect();
    let left_out = all.len().saturating_sub(MOST_RESULTS);
    if left_out > 0 {
        // The worst are kept, in their order.
        all.sort_by_key(|(_, finding, silent)| (silent.is_some(), rank(finding.severity)));
        all.truncate(MOST_RESULTS);
    }
    let mut rules: BTreeMap<&str, (&Finding, &InputReport)> = BTreeMap::new();
    for (input, finding, _) in &all {
        rules.entry(&finding.rule).or_insert((*finding, *input));
    }
    let index: BTreeMap<&str, usize> = rules.keys().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let results: Vec<Json> = all
        .iter()
        .map(|(input, finding, silent)| {
            let times = seen.entry(&finding.fingerprint).or_default();
            *times += 1;
            let at = index.get(finding.rule.as_str()).copied().unwrap_or(0);
            let place = Place { report, input, options };
            place.result(finding, silent.as_ref(), at, *times)
        })
        .collect();
    let artifacts: Vec<Json> = report
        .inputs
        .iter()
        .map(|input| options.path(&input.path))
        .collect::<std::collections::BTreeSet<_>>()
        .iter()
        .map(|path| json!({"location": artifact(path), "roles": ["analysisTarget"]}))
        .collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "anelint",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules
                    .iter()
                    .map(|(id, (finding, input))| descriptor(sets, id, finding, input, options))
                    .collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
            "artifacts": artifacts,
            "invocations": [{
                "executionSuccessful": report.errors.is_empty(),
                "toolExecutionNotifications": notifications(report, options, left_out),
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Advice => 2,
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    }
}

fn precision(sureness: Sureness) -> &'static str {
    match sureness {
        Sureness::Official | Sureness::Measured => "very-high",
        Sureness::Source => "high",
        Sureness::Reported | Sureness::ReverseEngineered => "medium",
        Sureness::Folklore => "low",
    }
}

/// What the tool says of itself: inputs that could not be read, and what was left alone.
fn notifications(report: &CheckReport, options: &HostOptions, left_out: usize) -> Vec<Json> {
    let at = |path: &str| json!([{"physicalLocation": {"artifactLocation": artifact(&options.path(path))}}]);
    let mut all: Vec<Json> = report
        .errors
        .iter()
        .map(|error| {
            json!({"level": "error", "message": {"text": error.message}, "locations": at(&error.path)})
        })
        .collect();
    all.extend(report.skipped.iter().map(
        |note| json!({"level": "note", "message": {"text": note.message}, "locations": at(&note.path)}),
    ));
    if left_out > 0 {
        let text = format!("{left_out} results left out: a run takes {MOST_RESULTS}");
        all.push(json!({"level": "warning", "message": {"text": text}}));
    }
    all
}

/// A rule as code scanning shows it. A finding that comes from no rule file describes itself.
fn descriptor(
    sets: &[&RuleSet],
    id: &str,
    finding: &Finding,
    input: &InputReport,
    options: &HostOptions,
) -> Json {
    let rule: Option<&Rule> =
        sets.iter().find_map(|set| set.rules().iter().find(|rule| rule.id() == id));
    let Some(rule) = rule else {
        return json!({
            "id": id,
            "name": finding.name,
            "shortDescription": {"text": sentence(&finding.name.replace('-', " "))},
            "defaultConfiguration": {"level": level(finding.severity)},
            "properties": {"tags": [finding.category.name()]},
        });
    };
    let sureness = rule.sureness(&input.target);
    let page = docs::page(rule);
    let mut made = json!({
        "id": id,
        "name": rule.name(),
        "shortDescription": {"text": sentence(rule.title())},
        "fullDescription": {"text": clipped(rule.why().trim(), LONGEST_DESCRIPTION)},
        "help": {"text": format!("{}\n\n{}", rule.why().trim(), rule.help_template().trim()).trim_end(), "markdown": page},
        "defaultConfiguration": {"level": level(rule.severity())},
        "properties": {
            "tags": [rule.category().name(), input.target.unit.name()],
            "precision": precision(sureness),
            "problem.severity": match rule.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Advice => "recommendation",
            },
        },
    });
    if let (Some(url), Some(object)) =
        (options.rule_url(&model::rule_page(id)), made.as_object_mut())
    {
        object.insert("helpUri".into(), url.into());
    }
    made
}

fn sentence(text: &str) -> String {
    let mut text = text.trim().to_owned();
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut clipped: String = text.chars().take(most - 1).collect();
    clipped.push('…');
    clipped
}

/// Where the findings of an input lie.
struct Place<'a> {
    report: &'a CheckReport,
    input: &'a InputReport,
    options: &'a HostOptions,
}

impl Place<'_> {
    fn result(
        &self,
        finding: &Finding,
        silent: Option<&Silent<'_>>,
        rule: usize,
        times: usize,
    ) -> Json {
        let place = host::place(self.report, self.input, finding, self.options);
        let mut text = host::printable(&finding.message).into_owned();
        for line in host::details(finding) {
            text.push('\n');
            text.push_str(&host::printable(&line));
        }
        let mut location = Map::new();
        location.insert("physicalLocation".into(), physical(&place, snippet(finding)));
        let logical = self.logical(finding);
        if !logical.is_empty() {
            location.insert("logicalLocations".into(), logical.into());
        }
        let mut result = json!({
            "ruleId": finding.rule,
            "ruleIndex": rule,
            "level": level(finding.severity),
            "message": {"text": text},
            "locations": [location],
            "partialFingerprints": {
                "primaryLocationLineHash": format!("{}:{times}", finding.fingerprint),
                "anelint/v1": finding.fingerprint,
            },
            "properties": self.properties(finding),
        });
        let Some(object) = result.as_object_mut() else { return result };
        let related = self.related(finding);
        if !related.is_empty() {
            object.insert("relatedLocations".into(), related.into());
        }
        if let Some(fix) = self.fix(finding) {
            object.insert("fixes".into(), json!([fix]));
        }
        if let Some(silent) = silent {
            let mut own = json!({"kind": if silent.by == "comment" { "inSource" } else { "external" }, "status": "accepted"});
            if let (false, Some(own)) = (silent.reason.is_empty(), own.as_object_mut()) {
                own.insert("justification".into(), silent.reason.into());
            }
            object.insert("suppressions".into(), json!([own]));
            if silent.by == "baseline" {
                object.insert("baselineState".into(), "unchanged".into());
            }
        }
        result
    }

    fn properties(&self, finding: &Finding) -> Json {
        let target = &self.input.target;
        json!({
            "input": self.options.path(&self.input.path),
            "target": format!("{} {} {}", target.unit.name(), target.runtime.name(), target.chip.name()),
            "sureness": finding.sureness.name(),
            "evidence": finding.evidence,
            "functions": finding.functions,
            "modules": finding.modules.iter().map(|group| group.pattern.as_str()).collect::<Vec<_>>(),
            "count": finding.count,
            "regionsAdded": finding.regions_added,
        })
    }

    /// The nodes of the graph: `main/add_1`.
    fn logical(&self, finding: &Finding) -> Vec<Json> {
        let function = finding.functions.first().map_or("", String::as_str);
        let qualified = |name: &str| match function {
            "" => name.to_owned(),
            function => format!("{function}/{name}"),
        };
        if finding.nodes.is_empty() {
            return finding
                .functions
                .iter()
                .map(|name| json!({"name": name, "fullyQualifiedName": name, "kind": "function"}))
                .collect();
        }
        finding
            .nodes
            .iter()
            .take(MOST_NODES)
            .map(|node| json!({"name": node, "fullyQualifiedName": qualified(node), "kind": "element"}))
            .collect()
    }

    fn related(&self, finding: &Finding) -> Vec<Json> {
        let spots = finding.related.iter().filter_map(|(spot, words)| {
            Some((host::spot_place(self.report, spot, self.options)?, words.as_str()))
        });
        let model = finding
            .spot
            .is_some()
            .then(|| (host::model_place(&self.input.path, self.options), "the model's graph"));
        spots
            .chain(model)
            .enumerate()
            .map(|(id, (place, words))| {
                json!({"id": id, "message": {"text": words}, "physicalLocation": physical(&place, None)})
            })
            .collect()
    }

    /// A fix, if all its files are at hand.
    fn fix(&self, finding: &Finding) -> Option<Json> {
        let fix = finding.fix.as_ref().filter(|fix| !fix.edits.is_empty())?;
        let mut changes: BTreeMap<String, Vec<Json>> = BTreeMap::new();
        for edit in &fix.edits {
            let PlaceFile::Found(_) = edit.file else { return None };
            let file = super::json::shown_file(&edit.file, &self.report.working_folder);
            changes.entry(self.options.path(&file)).or_default().push(replacement(edit));
        }
        let words = if finding.help.is_empty() { finding.message.as_str() } else { &finding.help };
        Some(json!({
            "description": {"text": format!("{} ({})", host::printable(words), fix.applicability.name())},
            "artifactChanges": changes
                .iter()
                .map(|(path, replacements)| {
                    json!({"artifactLocation": artifact(path), "replacements": replacements})
                })
                .collect::<Vec<_>>(),
        }))
    }
}

fn replacement(edit: &Edit) -> Json {
    json!({
        "deletedRegion": {
            "startLine": edit.span.start.line,
            "startColumn": edit.span.start.column,
            "endLine": edit.span.end.line,
            "endColumn": edit.span.end.column,
        },
        "insertedContent": {"text": edit.text},
    })
}

/// The marked text, as far as it is short.
fn snippet(finding: &Finding) -> Option<String> {
    let spot = finding.spot.as_ref()?;
    let PlaceFile::Found(file) = &spot.file else { return None };
    let (start, end) = (file.byte_of(spot.span.start)?, file.byte_of(spot.span.end)?);
    let text = file.text().get(start..end)?;
    (!text.is_empty() && text.len() <= 500).then(|| text.to_owned())
}

fn physical(place: &HostPlace, snippet: Option<String>) -> Json {
    let mut made = json!({"artifactLocation": artifact(&place.path)});
    if let (Some((first, last)), Some(object)) = (place.lines, made.as_object_mut()) {
        let mut region = json!({"startLine": first, "endLine": last});
        if let Some(own) = region.as_object_mut() {
            if let Some((start, end)) = place.columns {
                own.insert("startColumn".into(), start.into());
                own.insert("endColumn".into(), end.into());
            }
            if let Some(snippet) = snippet {
                own.insert("snippet".into(), json!({"text": snippet}));
            }
        }
        object.insert("region".into(), region);
    }
    made
}

/// A file: relative to the root, or absolute.
fn artifact(path: &str) -> Json {
    match path.as_bytes() {
        [b'/', ..] => json!({"uri": format!("file://{}", encoded(path))}),
        [_, b':', b'/', ..] => json!({"uri": format!("file:///{}", encoded(path))}),
        _ => json!({"uri": encoded(path), "uriBaseId": ROOT}),
    }
}

/// A path as a URI has it: percent-encoded, but for slashes and what needs none.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_encoded_and_absolute_paths_are_files() {
        assert_eq!(artifact("a b/ü#.py"), json!({"uri": "a%20b/%C3%BC%23.py", "uriBaseId": ROOT}));
        assert_eq!(artifact("/x/a.py"), json!({"uri": "file:///x/a.py"}));
        assert_eq!(artifact("C:/x/a.py"), json!({"uri": "file:///C%3A/x/a.py"}));
    }
}
