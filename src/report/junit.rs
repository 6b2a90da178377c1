//! JUnit XML: a suite for each input and target, a case for each rule and file.
//!
//! A case fails where a finding of it is at or above what fails the run; the other findings pass, and
//! stand in its output.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::host::{self, HostOptions};
use super::model::{CheckReport, InputReport};
use crate::findings::Finding;

/// Writes the report.
///
/// # Errors
/// Whatever writing runs into.
pub fn write(report: &CheckReport, options: &HostOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut document = Report::new("anelint");
    for input in &report.inputs {
        document.add_test_suite(suite(report, input, options));
    }
    for error in &report.errors {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(clean(&error.message)).set_type("unreadable");
        let path = options.path(&error.path);
        let mut case = TestCase::new("read", status);
        case.set_classname(clean(&path));
        let mut suite = TestSuite::new(clean(&path));
        suite.add_test_case(case);
        document.add_test_suite(suite);
    }
    for note in &report.skipped {
        let path = options.path(&note.path);
        let mut status = TestCaseStatus::skipped();
        status.set_message(clean(&note.message));
        let mut case = TestCase::new("read", status);
        case.set_classname(clean(&path));
        let mut suite = TestSuite::new(clean(&path));
        suite.add_test_case(case);
        document.add_test_suite(suite);
    }
    let text = document.to_string().map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

fn suite(report: &CheckReport, input: &InputReport, options: &HostOptions) -> TestSuite {
    let target = &input.target;
    let name =
        format!("{} ({} {})", options.path(&input.path), target.unit.name(), target.chip.name());
    let mut suite = TestSuite::new(clean(&name));
    let mut cases: BTreeMap<(String, &str), Vec<&Finding>> = BTreeMap::new();
    for finding in &input.findings {
        let path = host::place(report, input, finding, options).path;
        cases.entry((path, finding.rule.as_str())).or_default().push(finding);
    }
    for ((path, rule), findings) in &cases {
        let Some(first) = findings.first() else { continue };
        let line = |finding: &Finding| {
            let place = host::place(report, input, finding, options);
            let at = match (place.lines, place.columns) {
                (Some((line, _)), Some((column, _))) => format!("{}:{line}:{column}", place.path),
                (Some((line, _)), None) => format!("{}:{line}", place.path),
                (None, _) => place.path,
            };
            let mut text = format!("{at}: {}[{rule}] {}", finding.severity, finding.message);
            for line in host::details(finding) {
                text.push_str("\n  ");
                text.push_str(&line);
            }
            text
        };
        let fails =
            |finding: &&Finding| input.fail_at.is_some_and(|least| finding.severity >= least);
        let (failing, passing): (Vec<&Finding>, Vec<&Finding>) =
            findings.iter().copied().partition(fails);
        let join =
            |list: &[&Finding]| list.iter().map(|own| line(own)).collect::<Vec<_>>().join("\n");
        let status = match failing.first() {
            None => TestCaseStatus::success(),
            Some(worst) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status
                    .set_message(clean(&worst.message))
                    .set_type(worst.severity.name())
                    .set_description(clean(&join(&failing)));
                status
            }
        };
        let mut case = TestCase::new(clean(&format!("{rule} {}", first.name)), status);
        case.set_classname(clean(path));
        if !passing.is_empty() {
            case.set_system_out(clean(&join(&passing)));
        }
        suite.add_test_case(case);
    }
    if cases.is_empty() {
        let mut case = TestCase::new("check", TestCaseStatus::success());
        case.set_classname(clean(&options.path(&input.path)));
        suite.add_test_case(case);
    }
    suite
}

/// Characters that XML 1.0 cannot hold are written as such.
fn clean(text: &str) -> String {
    host::printable(text)
        .chars()
        .map(|c| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c })
        .collect()
}
