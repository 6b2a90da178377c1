//! `--statistics`: how many findings of each rule, in place of the findings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::model::CheckReport;
use crate::rules::{Applicability, Severity};

/// The findings of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// Rule id.
    pub rule: String,
    /// Rule name.
    pub name: String,
    /// The worst severity among them.
    pub severity: &'static str,
    /// Findings that are reported.
    pub findings: usize,
    /// Models that have one.
    pub models: usize,
    /// Of the findings, those with a safe fix.
    pub fixable: usize,
    /// Findings that are not reported: ignored or in the baseline.
    pub silenced: usize,
}

/// Counts findings by rule: most first, then by id.
pub fn statistics(report: &CheckReport) -> Vec<RuleCount> {
    let mut counts: BTreeMap<&str, (RuleCount, Severity, BTreeSet<&str>)> = BTreeMap::new();
    for input in &report.inputs {
        let heard = input.findings.iter().map(|finding| (finding, true));
        let silent = input.silenced.iter().map(|own| (&own.finding, false));
        for (finding, is_heard) in heard.chain(silent) {
            let (count, worst, models) = counts.entry(&finding.rule).or_insert_with(|| {
                let count = RuleCount {
                    rule: finding.rule.clone(),
                    name: finding.name.clone(),
                    severity: finding.severity.name(),
                    findings: 0,
                    models: 0,
                    fixable: 0,
                    silenced: 0,
                };
                (count, Severity::Advice, BTreeSet::new())
            });
            if !is_heard {
                count.silenced += 1;
                continue;
            }
            let safe =
                finding.fix.as_ref().map(|fix| fix.applicability) == Some(Applicability::Safe);
            count.findings += 1;
            count.fixable += usize::from(safe);
            *worst = finding.severity.max(*worst);
            count.severity = worst.name();
            models.insert(&input.path);
            count.models = models.len();
        }
    }
    let mut counts: Vec<RuleCount> = counts.into_values().map(|(count, ..)| count).collect();
    counts.sort_by(|a, b| (b.findings, &a.rule).cmp(&(a.findings, &b.rule)));
    counts
}

/// The same as a table for people.
pub fn statistics_text(report: &CheckReport) -> String {
    let counts = statistics(report);
    let digits = counts.iter().map(|own| own.findings.to_string().len()).max().unwrap_or(1);
    let names = counts.iter().map(|own| own.name.chars().count()).max().unwrap_or(0);
    let ids = counts.iter().map(|own| own.rule.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for own in &counts {
        let mut about = vec![match own.models {
            1 => "1 model".to_owned(),
            models => format!("{models} models"),
        }];
        if own.fixable > 0 {
            about.push(format!("{} with a safe fix", own.fixable));
        }
        if own.silenced > 0 {
            about.push(format!("{} not shown", own.silenced));
        }
        text.push_str(&format!(
            "{:>digits$}  {:7}  {:ids$}  {:names$}  {}\n",
            own.findings,
            own.severity,
            super::escaped(&own.rule),
            super::escaped(&own.name),
            about.join(", ")
        ));
    }
    if counts.is_empty() {
        text.push_str("nothing found\n");
    }
    text
}
