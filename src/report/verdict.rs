//! The line that says it all of one function: `98 % of 412 ops eligible · 2 regions · 1 error`.

use super::model::{FunctionReport, Summary};
use crate::target::{Runtime, Target, Unit};

/// What a target's part of a function is called.
pub struct Words {
    /// What the ops are that it runs.
    pub eligible: &'static str,
    /// A stretch of them.
    pub region: &'static str,
}

/// Of a unit.
const UNIT: Words = Words { eligible: "eligible", region: "region" };
/// Of an execution provider of ONNX Runtime.
const PROVIDER: Words = Words { eligible: "taken by the Core ML provider", region: "partition" };

impl Words {
    /// The words for a target.
    pub fn of(target: &Target) -> &'static Words {
        let provider = target.runtime == Runtime::OnnxRuntime && target.unit == Unit::NeuralEngine;
        if provider { &PROVIDER } else { &UNIT }
    }
}

/// The verdict of a function with its findings, in the words of a target.
pub fn verdict(function: &FunctionReport, summary: Summary, words: &Words) -> String {
    let mut parts = Vec::new();
    match (function.ops, function.eligible) {
        (0, _) => parts.push("no ops".to_owned()),
        (ops, Some(eligible)) => {
            // Rounded down: 100 % means all.
            let percent = eligible * 100 / ops;
            parts.push(format!("{percent} % of {} {}", counted(ops, "op"), words.eligible));
        }
        (ops, None) => parts.push(counted(ops, "op")),
    }
    if let Some(regions) = function.regions.filter(|_| function.ops > 0) {
        let mut text = counted(regions, words.region);
        if function.eligibility_unknown > 0 {
            text.push_str(&format!(", {} unknown", counted(function.eligibility_unknown, "op")));
        }
        if let Some(other) = function
            .regions_program_order
            .filter(|other| *other != regions && words.region == UNIT.region)
        {
            text.push_str(&format!(" ({other} in program order)"));
        }
        parts.push(text);
    }
    if function.unknown_ops > 0 {
        parts.push(format!("{} not recognised", counted(function.unknown_ops, "op")));
    }
    parts.push(findings(summary));
    parts.join(" · ")
}

/// `1 error, 2 warnings, 1 fixed`, or `nothing found`.
pub fn findings(summary: Summary) -> String {
    let mut parts = Vec::new();
    if summary.error > 0 {
        parts.push(counted(summary.error, "error"));
    }
    if summary.warning > 0 {
        parts.push(counted(summary.warning, "warning"));
    }
    if summary.advice > 0 {
        parts.push(format!("{} advice", summary.advice));
    }
    if summary.fixed > 0 {
        parts.push(format!("{} fixed", summary.fixed));
    }
    if parts.is_empty() { "nothing found".to_owned() } else { parts.join(", ") }
}

/// `1 op`, `2 ops`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> FunctionReport {
        FunctionReport {
            name: "main".into(),
            ops: 412,
            unknown_ops: 0,
            eligible: Some(405),
            eligibility_unknown: 0,
            regions: Some(2),
            regions_program_order: Some(2),
            nested: false,
        }
    }

    #[test]
    fn the_verdict_reads_as_promised() {
        let summary = Summary { error: 1, ..Summary::default() };
        assert_eq!(
            verdict(&function(), summary, &UNIT),
            "98 % of 412 ops eligible · 2 regions · 1 error"
        );
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut own = function();
        own.eligibility_unknown = 3;
        own.unknown_ops = 1;
        own.regions_program_order = Some(4);
        assert_eq!(
            verdict(&own, Summary::default(), &UNIT),
            "98 % of 412 ops eligible · 2 regions, 3 ops unknown (4 in program order) · \
             1 op not recognised · nothing found"
        );
        own = FunctionReport { ops: 0, unknown_ops: 0, ..own };
        assert_eq!(verdict(&own, Summary::default(), &UNIT), "no ops · nothing found");
    }
}
