//! What a compile confirmed of a placement, for people and for programs.

use std::fmt::Write;

use serde::Serialize;

use super::escape;
use super::placement::PlacementReport;
use super::verdict::counted;
use crate::graph::FunctionId;
use crate::placement::{Agreement, Confirmation, Difference, Placement, Question};

/// Most differences told in text.
const MOST: usize = 20;

/// One file with a compiler's words, held against the functions of a program.
pub struct ConfirmedBy {
    /// Path as shown.
    pub file: String,
    /// By function, those of which the file says something.
    pub functions: Vec<(FunctionId, Confirmation)>,
}

impl ConfirmedBy {
    /// What it says of a function.
    pub fn of(&self, id: FunctionId) -> Option<&Confirmation> {
        self.functions.iter().find(|(function, _)| *function == id).map(|(_, said)| said)
    }
}

/// The lines of one function.
pub(super) fn confirmed_text(
    text: &mut String,
    report: &PlacementReport<'_>,
    id: FunctionId,
    placement: &Placement,
) {
    for by in report.confirmed {
        let Some(said) = by.of(id) else { continue };
        let _ = writeln!(text, "  confirmed by {}", escape::text(&by.file));
        if let Some(regions) = said.regions {
            let _ = writeln!(
                text,
                "    regions: {} predicted, {regions} confirmed",
                placement.regions.len()
            );
        }
        if said.named > 0 {
            let _ = write!(text, "    it names {}", counted(said.named as usize, "op"));
            if said.unmatched > 0 {
                let _ = write!(text, ", and {} that are not here", said.unmatched);
            }
            text.push('\n');
        }
        agreement(text, "supported as judged eligible", said.supported);
        agreement(text, "preferred as predicted", said.preferred);
        for (at, region) in said.by_region.iter().enumerate() {
            if region.off > 0 {
                let _ = writeln!(
                    text,
                    "    region {}: {} of {} put on the unit",
                    at + 1,
                    region.on,
                    counted((region.on + region.off) as usize, "op")
                );
            }
        }
        for difference in said.differences.iter().take(MOST) {
            let words = words(report, id, placement, said, difference);
            let _ = writeln!(
                text,
                "    {}: {}; {}",
                escape::text(words.node),
                escape::text(&words.ours),
                escape::text(&words.theirs)
            );
        }
        if said.differences.len() > MOST {
            let _ = writeln!(text, "    … {} more", said.differences.len() - MOST);
        }
    }
}

fn agreement(text: &mut String, what: &str, agreement: Agreement) {
    if agreement.compared + agreement.ties == 0 {
        return;
    }
    let _ = write!(text, "    {what}: {} of {}", agreement.agree, agreement.compared);
    if agreement.compared > 0 {
        let percent = f64::from(agreement.agree) * 100.0 / f64::from(agreement.compared);
        let _ = write!(text, " ({percent:.1} %)");
    }
    if agreement.ties > 0 {
        let _ = write!(text, ", {} left out", counted(agreement.ties as usize, "tie"));
    }
    text.push('\n');
}

struct Words<'a> {
    node: &'a str,
    ours: String,
    theirs: String,
}

/// Both sides of a difference, each with its reason.
fn words<'a>(
    report: &PlacementReport<'a>,
    id: FunctionId,
    placement: &Placement,
    said: &Confirmation,
    difference: &Difference,
) -> Words<'a> {
    let program = report.program;
    let node = program.text(program.function(id).node(difference.node).name);
    let their = said.nodes.get(difference.node.0 as usize).and_then(Option::as_ref);
    let unit = report.target.unit;
    let why = placement.why(difference.node).map_or("", |reason| reason.text.as_str());
    let because = |why: &str| if why.is_empty() { String::new() } else { format!(" ({why})") };
    let reason = their.and_then(|said| said.reason.as_deref()).unwrap_or("");
    let (ours, theirs) = match difference.question {
        Question::Supported => (
            format!("we say {}eligible{}", no(difference.ours), because(why)),
            format!("the file says {}supported{}", no(difference.theirs), because(reason)),
        ),
        Question::Preferred => {
            let side = if difference.ours { "on" } else { "off" };
            let eligible = placement.node(difference.node).verdict.eligible == Some(true);
            let why = match (difference.ours, eligible) {
                (true, _) => "",
                (false, true) => "eligible, and cheaper elsewhere by the estimates",
                (false, false) => why,
            };
            let selected = their.and_then(|said| said.selected.as_deref()).unwrap_or("?");
            (
                format!("predicted {side} the {unit}{}", because(why)),
                format!("the file has it on {selected}{}", because(reason)),
            )
        }
    };
    Words { node, ours, theirs }
}

fn no(answer: bool) -> &'static str {
    if answer { "" } else { "not " }
}

/// One file's confirmation of a function in JSON.
#[derive(Serialize)]
pub(super) struct JsonConfirmation<'a> {
    file: &'a str,
    regions: Option<u32>,
    named: u32,
    unmatched: u32,
    supported: JsonAgreement,
    preferred: JsonAgreement,
    by_region: Vec<JsonRegionAgreement>,
    differences: Vec<JsonDifference<'a>>,
}

#[derive(Serialize)]
struct JsonAgreement {
    compared: u32,
    agree: u32,
    ties: u32,
}

impl JsonAgreement {
    fn of(agreement: Agreement) -> JsonAgreement {
        JsonAgreement { compared: agreement.compared, agree: agreement.agree, ties: agreement.ties }
    }
}

#[derive(Serialize)]
struct JsonRegionAgreement {
    region: u32,
    on: u32,
    off: u32,
}

#[derive(Serialize)]
struct JsonDifference<'a> {
    node: &'a str,
    question: &'static str,
    ours: String,
    theirs: String,
}

/// What every file says of a function.
pub(super) fn confirmed_json<'a>(
    report: &'a PlacementReport<'a>,
    id: FunctionId,
    placement: &Placement,
) -> Vec<JsonConfirmation<'a>> {
    report
        .confirmed
        .iter()
        .filter_map(|by| Some((by, by.of(id)?)))
        .map(|(by, said)| JsonConfirmation {
            file: &by.file,
            regions: said.regions,
            named: said.named,
            unmatched: said.unmatched,
            supported: JsonAgreement::of(said.supported),
            preferred: JsonAgreement::of(said.preferred),
            by_region: said
                .by_region
                .iter()
                .enumerate()
                .map(|(at, region)| JsonRegionAgreement {
                    region: at as u32,
                    on: region.on,
                    off: region.off,
                })
                .collect(),
            differences: said
                .differences
                .iter()
                .map(|difference| {
                    let words = words(report, id, placement, said, difference);
                    JsonDifference {
                        node: words.node,
                        question: match difference.question {
                            Question::Supported => "supported",
                            Question::Preferred => "preferred",
                        },
                        ours: words.ours,
                        theirs: words.theirs,
                    }
                })
                .collect(),
        })
        .collect()
}
