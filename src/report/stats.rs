//! Statistics for people and for programs. JSON, version 1.

use std::fmt::Write;

use serde::Serialize;

use super::escape;
use super::placement::{JsonTarget, amount};
use super::verdict::counted;
use crate::facts::cost;
use crate::graph::Program;
use crate::stats::{Compression, FunctionStats, Machine, RegionShare};
use crate::target::Target;

/// Most lines of one table in text; JSON has them all.
const MOST: usize = 24;

/// The statistics of one input.
pub struct StatsReport<'a> {
    /// Path as shown.
    pub path: &'a str,
    /// The program.
    pub program: &'a Program,
    /// What its regions are told for.
    pub target: Target,
    /// What the machine is said to do.
    pub machine: Machine,
    /// Its functions, in order, with the shares of their regions.
    pub functions: Vec<(FunctionStats, Vec<RegionShare>)>,
}

/// The report for people.
pub fn stats_text(report: &StatsReport<'_>) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", escape::text(report.path));
    for (stats, shares) in &report.functions {
        function_text(&mut text, report, stats, shares);
    }
    text
}

fn function_text(
    text: &mut String,
    report: &StatsReport<'_>,
    stats: &FunctionStats,
    shares: &[RegionShare],
) {
    let program = report.program;
    let function = program.function(stats.function);
    let _ = writeln!(
        text,
        "\n{}: {} · {} parameters · {}",
        escape::text(program.text(function.name)),
        counted(stats.ops as usize, "op"),
        grouped(stats.weights.parameters),
        flops(&stats.cost)
    );
    if stats.ops == 0 {
        return;
    }
    let _ = writeln!(text, "  ops");
    for kind in stats.kinds.iter().take(MOST) {
        let _ = write!(text, "    {:>6} × {}", kind.count, kind.op);
        if let Some(formula) = cost::formula(kind.op) {
            let _ = write!(text, " · {} = {formula}", flops(&kind.cost));
        }
        text.push('\n');
    }
    more(text, stats.kinds.len());
    let _ = writeln!(text, "  weights: {}B stored", amount(stats.weights.bytes));
    for class in &stats.weights.classes {
        let how = match class.compression {
            Compression::None => String::new(),
            Compression::Fake => {
                ", rounded in the graph and stored in full: nothing is smaller yet".to_owned()
            }
            Compression::By(op) => format!(", compressed ({op})"),
        };
        let _ = writeln!(
            text,
            "    {}{how}: {} of {} elements, {}B",
            class.dtype,
            counted(class.tensors as usize, "tensor"),
            grouped(class.elements),
            amount(class.bytes)
        );
    }
    if stats.weights.bytes_read < stats.weights.bytes {
        let _ = writeln!(
            text,
            "    {}B of them read in one run: of gathered tables only the rows",
            amount(stats.weights.bytes_read)
        );
    }
    // With a size that only run time knows there may be more: then nothing is promised.
    let (before, after) = if stats.peak.partial { ("at least ", "") } else { ("", " at most") };
    let _ = write!(text, "  activations: {before}{}B alive{after}", amount(stats.peak.bytes));
    if let Some(node) = stats.peak.node {
        let _ = write!(
            text,
            ", {} at {}",
            counted(stats.peak.values as usize, "value"),
            escape::text(program.text(function.node(node).name))
        );
    }
    let _ = writeln!(text, " (program order, no reuse in place)");
    if stats.state_bytes > 0 {
        let _ = writeln!(text, "  states: {}B", amount(stats.state_bytes));
    }
    let _ = write!(
        text,
        "  moved at least: {}B = weights + {}B in + {}B out",
        amount(stats.unavoidable_bytes()),
        amount(stats.input_bytes),
        amount(stats.output_bytes)
    );
    if let Some(intensity) = stats.intensity().filter(|_| !stats.cost.partial) {
        let _ = write!(text, " · {intensity:.1} FLOP a byte");
    }
    let _ = writeln!(
        text,
        "\n  moved if every op went through memory: {}B",
        amount(stats.cost.bytes())
    );
    if let Some(bound) = report.machine.bound(stats) {
        let _ = write!(text, "  roofline: {:.3} ms at least", bound.ms);
        if let (Some(compute), Some(memory)) = (bound.compute_ms, bound.memory_ms) {
            let by = if compute >= memory { "computing" } else { "memory" };
            let _ =
                write!(text, ", bound by {by} (computing {compute:.3} ms, memory {memory:.3} ms)");
        }
        text.push('\n');
    }
    let on = shares.iter().filter(|share| share.region.is_some());
    for share in on.take(MOST) {
        let _ = writeln!(
            text,
            "  region {} ({}): making it free saves at most {:.1} %",
            share.region.unwrap_or_default() + 1,
            counted(share.ops as usize, "op"),
            share.share * 100.0
        );
    }
    if let Some(rest) = shares.iter().find(|share| share.region.is_none()) {
        let _ = writeln!(
            text,
            "  outside of regions ({}): {:.1} %",
            counted(rest.ops as usize, "op"),
            rest.share * 100.0
        );
    }
    let padding = &stats.padding;
    if padding.values > 0 {
        let _ = writeln!(
            text,
            "  padding to 64-byte rows: {}B become {}B, × {:.2} ({})",
            amount(padding.bytes),
            amount(padding.padded),
            padding.factor(),
            counted(padding.values as usize, "value")
        );
        for row in padding.worst.iter().take(3) {
            let _ = writeln!(
                text,
                "    {}: {}B become {}B, × {:.1}",
                escape::text(program.text(function.node(row.node).name)),
                amount(row.bytes),
                amount(row.padded),
                row.padded as f64 / row.bytes.max(1) as f64
            );
        }
    }
    if stats.modules.len() > 1 {
        let _ = writeln!(text, "  modules");
        for module in stats.modules.iter().take(MOST) {
            let name = if module.path.is_empty() { "(none)" } else { &module.path };
            let _ = writeln!(
                text,
                "    {}: {} · {} parameters · {}",
                escape::text(name),
                counted(module.ops as usize, "op"),
                grouped(module.parameters),
                flops(&module.cost)
            );
        }
        more(text, stats.modules.len());
    }
}

/// Operations, and what is not known of them: sizes that only run time knows are not counted.
fn flops(cost: &cost::Cost) -> String {
    match (cost.partial, cost.flops) {
        (true, 0) => "unknown FLOP".to_owned(),
        (true, flops) => format!("at least {}FLOP", amount(flops)),
        (false, flops) => format!("{}FLOP", amount(flops)),
    }
}

fn more(text: &mut String, count: usize) {
    if count > MOST {
        let _ = writeln!(text, "    … {} more", count - MOST);
    }
}

/// `124,452,864`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[derive(Serialize)]
struct Document {
    version: u32,
    inputs: Vec<StatsInput>,
}

/// The statistics of one input, ready to be written.
#[derive(Serialize)]
pub struct StatsInput {
    path: String,
    format: &'static str,
    target: JsonTarget,
    functions: Vec<JsonFunction>,
}

#[derive(Serialize)]
struct JsonFunction {
    name: String,
    ops: u64,
    partial: bool,
    flops: u64,
    other_operations: u64,
    kinds: Vec<JsonKind>,
    parameters: u64,
    weights: JsonWeights,
    activation_peak: JsonPeak,
    bytes: JsonBytes,
    intensity: Option<f64>,
    roofline: Option<JsonRoofline>,
    shares: Vec<JsonShare>,
    padding: JsonPadding,
    modules: Vec<JsonModule>,
}

#[derive(Serialize)]
struct JsonKind {
    op: &'static str,
    count: u64,
    flops: u64,
    other_operations: u64,
    formula: Option<&'static str>,
}

#[derive(Serialize)]
struct JsonWeights {
    bytes: u64,
    bytes_read: u64,
    other_elements: u64,
    classes: Vec<JsonClass>,
}

#[derive(Serialize)]
struct JsonClass {
    dtype: &'static str,
    compression: &'static str,
    tensors: u64,
    elements: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonPeak {
    bytes: u64,
    node: Option<String>,
    values: u32,
    partial: bool,
}

#[derive(Serialize)]
struct JsonBytes {
    inputs: u64,
    outputs: u64,
    states: u64,
    unavoidable: u64,
    op_by_op: u64,
}

#[derive(Serialize)]
struct JsonRoofline {
    gigabytes_per_second: Option<f64>,
    gigaflops: Option<f64>,
    compute_ms: Option<f64>,
    memory_ms: Option<f64>,
    ms: f64,
}

#[derive(Serialize)]
struct JsonShare {
    region: Option<u32>,
    ops: u32,
    share: f64,
}

#[derive(Serialize)]
struct JsonPadding {
    bytes: u64,
    padded: u64,
    factor: f64,
    values: u64,
    worst: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    node: String,
    bytes: u64,
    padded: u64,
}

#[derive(Serialize)]
struct JsonModule {
    path: String,
    ops: u64,
    parameters: u64,
    weight_bytes: u64,
    flops: u64,
    other_operations: u64,
}

/// The report for programs.
///
/// # Errors
/// None but what the serialiser has.
pub fn stats_json(inputs: Vec<StatsInput>) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Document { version: 1, inputs })
}

impl StatsInput {
    /// The statistics of one input.
    pub fn of(report: &StatsReport<'_>) -> StatsInput {
        StatsInput {
            path: report.path.to_owned(),
            format: report.program.format.name(),
            target: JsonTarget::of(report.target),
            functions: report
                .functions
                .iter()
                .map(|(stats, shares)| json_function(report, stats, shares))
                .collect(),
        }
    }
}

fn json_function(
    report: &StatsReport<'_>,
    stats: &FunctionStats,
    shares: &[RegionShare],
) -> JsonFunction {
    let program = report.program;
    let function = program.function(stats.function);
    let name = |node| program.text(function.node(node).name).to_owned();
    JsonFunction {
        name: program.text(function.name).to_owned(),
        ops: stats.ops,
        partial: stats.cost.partial,
        flops: stats.cost.flops,
        other_operations: stats.cost.other,
        kinds: stats
            .kinds
            .iter()
            .map(|kind| JsonKind {
                op: kind.op.name(),
                count: kind.count,
                flops: kind.cost.flops,
                other_operations: kind.cost.other,
                formula: cost::formula(kind.op),
            })
            .collect(),
        parameters: stats.weights.parameters,
        weights: JsonWeights {
            bytes: stats.weights.bytes,
            bytes_read: stats.weights.bytes_read,
            other_elements: stats.weights.other_elements,
            classes: stats
                .weights
                .classes
                .iter()
                .map(|class| JsonClass {
                    dtype: class.dtype.name(),
                    compression: class.compression.name(),
                    tensors: class.tensors,
                    elements: class.elements,
                    bytes: class.bytes,
                })
                .collect(),
        },
        activation_peak: JsonPeak {
            bytes: stats.peak.bytes,
            node: stats.peak.node.map(name),
            values: stats.peak.values,
            partial: stats.peak.partial,
        },
        bytes: JsonBytes {
            inputs: stats.input_bytes,
            outputs: stats.output_bytes,
            states: stats.state_bytes,
            unavoidable: stats.unavoidable_bytes(),
            op_by_op: stats.cost.bytes(),
        },
        intensity: stats.intensity(),
        roofline: report.machine.bound(stats).map(|bound| JsonRoofline {
            gigabytes_per_second: report.machine.gigabytes,
            gigaflops: report.machine.gigaflops,
            compute_ms: bound.compute_ms,
            memory_ms: bound.memory_ms,
            ms: bound.ms,
        }),
        shares: shares
            .iter()
            .map(|share| JsonShare { region: share.region, ops: share.ops, share: share.share })
            .collect(),
        padding: JsonPadding {
            bytes: stats.padding.bytes,
            padded: stats.padding.padded,
            factor: stats.padding.factor(),
            values: stats.padding.values,
            worst: stats
                .padding
                .worst
                .iter()
                .map(|row| JsonRow { node: name(row.node), bytes: row.bytes, padded: row.padded })
                .collect(),
        },
        modules: stats
            .modules
            .iter()
            .map(|module| JsonModule {
                path: module.path.clone(),
                ops: module.ops,
                parameters: module.parameters,
                weight_bytes: module.weight_bytes,
                flops: module.cost.flops,
                other_operations: module.cost.other,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(124_452_864), "124,452,864");
    }
}
