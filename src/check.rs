//! Checks one input: reads it, runs the rules in their two phases with placement between, and maps
//! what they hit to source.
//!
//! A panic is a bug of this program, and costs one input, never the others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::{Date, File, Level};
use crate::facts::Facts;
use crate::findings::source::{SourceOptions, short_library_path, shown_path};
use crate::findings::suppress::Decider;
use crate::findings::{Finding, Found, PreparedRules, findings};
use crate::graph::{Format, FunctionId, FunctionRole, NodeId, Op, Program};
use crate::placement::{self, Placement, Request, RuleVerdict};
use crate::readers::{self, ReadError, ReadErrorKind, ReadOptions};
use crate::report::{FunctionMap, FunctionReport, InputReport, function_map};
use crate::rules::upkeep::Upkeep;
use crate::rules::{
    Eligible, Engine, Hit, Limits, PlacementView, Position, RuleSet, Selection, Severity, Sureness,
    UnknownSelector, Verdict,
};
use crate::target::{Generation, OsVersion, Provider, Runtime, Target, Unit};

/// Nodes walked at most to tell how many regions findings add, each a walk over its function: some
/// hundred milliseconds. Findings beyond it say nothing of regions. Rules that ask have as much again.
const REGIONS_ADDED_BUDGET: usize = 10_000_000;

/// Characters in which a message tells the cuts of a function; `anelint placement` has them all.
const LONGEST_CUTS: usize = 160;

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics off the terminal: the report tells of them, with the input that they came from.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        LAST_PANIC.with(|last| *last.borrow_mut() = place);
    }));
}

/// How to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// Units to check against, each in turn.
    pub units: Vec<Unit>,
    /// The runtime; by the format if `None`.
    pub runtime: Option<Runtime>,
    /// The chip; the default if `None`.
    pub chip: Option<Generation>,
    /// ONNX Runtime's provider; the default if `None`.
    pub provider: Option<Provider>,
    /// The OS; by runtime if `None`.
    pub os: Option<OsVersion>,
    /// Which rules.
    pub selection: Selection,
    /// Severities that the user gives rules, by selector; later ones win over earlier ones that name
    /// the rule as closely.
    pub severities: Vec<(String, Level)>,
    /// Leave out findings that are less sure.
    pub min_sureness: Option<Sureness>,
    /// Limits that rules may ask for.
    pub limits: Limits,
    /// What to call the model; its file stem if `None`.
    pub model: Option<String>,
    /// Where source may be looked for.
    pub source: SourceOptions,
    /// How to read files.
    pub read: ReadOptions,
    /// The config file, for its suppressions.
    pub config: Option<Arc<File>>,
    /// Today, for suppressions that hold until a day.
    pub today: Date,
}

impl Default for CheckOptions {
    /// Against the Neural Engine, with the rules that are on.
    fn default() -> CheckOptions {
        CheckOptions {
            units: vec![Unit::NeuralEngine],
            runtime: None,
            chip: None,
            provider: None,
            os: None,
            selection: Selection::default(),
            severities: Vec::new(),
            min_sureness: None,
            limits: Limits::default(),
            model: None,
            source: SourceOptions::default(),
            read: ReadOptions::default(),
            config: None,
            today: Date::EPOCH,
        }
    }
}

/// Why an input could not be checked.
#[derive(Debug)]
pub enum CheckError {
    /// It could not be read.
    Read(ReadError),
    /// A bug of this program.
    Internal(String),
}

impl CheckError {
    /// What is wrong, in one line.
    pub fn message(&self) -> String {
        match self {
            CheckError::Read(error) => error.message.clone(),
            CheckError::Internal(message) => {
                format!("internal error, please report it: {message}")
            }
        }
    }

    /// Where in the file it shows.
    pub fn offset(&self) -> Option<u64> {
        match self {
            CheckError::Read(error) => error.offset,
            CheckError::Internal(_) => None,
        }
    }

    /// What sort of trouble it is.
    pub fn kind(&self) -> ReadErrorKind {
        match self {
            CheckError::Read(error) => error.kind,
            CheckError::Internal(_) => ReadErrorKind::Broken,
        }
    }
}

/// Rules with their Python side compiled, and the options: made once for all inputs.
#[derive(Debug)]
pub struct Checker<'r> {
    set: &'r RuleSet,
    prepared: &'r PreparedRules,
    options: CheckOptions,
    /// Whether reports have maps of the functions.
    maps: bool,
}

impl<'r> Checker<'r> {
    /// A checker.
    ///
    /// # Errors
    /// If a selector names no rule.
    pub fn new(
        set: &'r RuleSet,
        prepared: &'r PreparedRules,
        options: CheckOptions,
    ) -> Result<Checker<'r>, UnknownSelector> {
        let probe = Target::default_for(Runtime::CoreAi);
        Engine::new(set, &options.selection, probe, options.limits)?;
        Ok(Checker { set, prepared, options, maps: false })
    }

    /// Adds maps of the functions to what checks report.
    pub fn with_maps(self, maps: bool) -> Checker<'r> {
        Checker { maps, ..self }
    }

    fn maps(&self, program: &Program, placed: &Placed<'_>) -> Vec<FunctionMap> {
        if !self.maps {
            return Vec::new();
        }
        let folder = &self.options.source.working_folder;
        let shown = |path: &str| shown_path(Path::new(short_library_path(path)), folder);
        program
            .linted()
            .filter_map(|(id, _)| Some(function_map(program, id, placed.of(id)?, &shown)))
            .collect()
    }

    /// The rules.
    pub fn rules(&self) -> &'r RuleSet {
        self.set
    }

    /// The target for a unit and an input.
    pub fn target(&self, unit: Unit, program: &Program) -> Target {
        let runtime = self.options.runtime.unwrap_or_else(|| default_runtime(program.format));
        let mut target = Target { unit, ..Target::default_for(runtime) };
        if runtime == Runtime::CoreMl {
            target.os =
                os_of_opset(program).or_else(|| os_of_version(program)).unwrap_or(target.os);
        }
        if let (Some(provider), Some(own)) = (self.options.provider, &mut target.provider) {
            *own = provider;
        }
        if let Some(chip) = self.options.chip {
            target.chip = chip;
        }
        if let Some(os) = self.options.os {
            target.os = os;
        }
        target
    }

    /// Checks one input against every unit asked for.
    ///
    /// # Errors
    /// If the input cannot be read, or this program has a bug.
    pub fn check(&self, path: &Path, shown: &str) -> Result<Vec<InputReport>, CheckError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let program = readers::read(path, self.options.read).map_err(CheckError::Read)?;
            self.options
                .units
                .iter()
                .map(|unit| self.check_program(&program, shown, *unit))
                .collect::<Result<Vec<_>, _>>()
        }));
        outcome.unwrap_or_else(|panic| {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let place = LAST_PANIC.with(|last| last.borrow_mut().take());
            let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
            Err(CheckError::Internal(format!("{message}{place}")))
        })
    }

    /// Checks a program against one unit.
    ///
    /// # Errors
    /// None but a selector that names no rule, which [`Checker::new`] has ruled out.
    pub fn check_program(
        &self,
        program: &Program,
        shown: &str,
        unit: Unit,
    ) -> Result<InputReport, CheckError> {
        let target = self.target(unit, program);
        let engine = Engine::new(self.set, &self.options.selection, target, self.options.limits)
            .map_err(|error| CheckError::Internal(error.to_string()))?;
        let facts = Facts::new(program);
        let mut hits = engine.first_phase(&facts);
        let placed = Placed::new(program, target, self.set, &hits);
        hits.extend(engine.second_phase(&facts, &placed));
        let hits = engine.resolve_claims(hits);
        let model = self.options.model.as_deref();
        let source = self.options.source.clone();
        let Found { findings: mut found, files } =
            findings(program, self.set, self.prepared, &target, &hits, model, source);
        self.apply_severities(&mut found);
        let mut budget = REGIONS_ADDED_BUDGET;
        for finding in &mut found {
            let cost: usize = finding
                .off_unit
                .chunk_by(|a, b| a.0 == b.0)
                .filter_map(|group| group.first())
                .map(|(function, _)| program.function(*function).len())
                .sum();
            if let Some(left) = budget.checked_sub(cost) {
                budget = left;
                finding.regions_added = regions_added(program, &placed, &finding.off_unit);
            }
        }
        let decider = self.decider(&engine, &target, program);
        let (found, silenced, uses) = decider.decide(found, &files);
        Ok(InputReport {
            path: shown.to_owned(),
            format: program.format.name(),
            producer: program.producer.clone(),
            target,
            functions: placed.functions(program),
            findings: found,
            silenced,
            uses,
            notes: program.notes.clone(),
            maps: self.maps(program, &placed),
            fail_at: None,
        })
    }

    /// What decides which findings are silent.
    fn decider(&self, engine: &Engine<'r>, target: &Target, program: &Program) -> Decider<'_> {
        let options = &self.options;
        let stem = || program.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Decider {
            set: self.set,
            ran: self.heard(engine, target),
            config: options.config.as_deref(),
            model_path: absolute(&program.path, &options.source.working_folder),
            model: options.model.clone().unwrap_or_else(stem),
            today: options.today,
        }
    }

    /// Ids of the rules that run on a target and whose findings are heard.
    pub fn ran(&self, target: Target) -> Vec<&'r str> {
        let options = &self.options;
        let engine = Engine::new(self.set, &options.selection, target, options.limits);
        engine.map(|engine| self.heard(&engine, &target)).unwrap_or_default()
    }

    fn heard(&self, engine: &Engine<'r>, target: &Target) -> Vec<&'r str> {
        engine
            .rules()
            .filter(|rule| {
                self.options.min_sureness.is_none_or(|least| rule.sureness(target) >= least)
            })
            .map(|rule| rule.id())
            .filter(|id| self.level(id) != Some(Level::Off))
            .collect()
    }

    /// Whether findings about suppressions and baselines themselves are heard, and how bad they are.
    pub fn upkeep_severity(&self, own: &Upkeep) -> Option<Severity> {
        if !self.set.hears(&self.options.selection, own) {
            return None;
        }
        match self.level(own.id) {
            Some(Level::Off) => None,
            Some(Level::Severity(severity)) => Some(severity),
            None => Some(own.severity),
        }
    }

    /// The severity that the user gives a rule.
    pub fn level(&self, id: &str) -> Option<Level> {
        self.options
            .severities
            .iter()
            .map(|(selector, level)| (self.set.closeness(id, selector), *level))
            .filter(|(closeness, _)| *closeness > 0)
            .max_by_key(|(closeness, _)| *closeness)
            .map(|(_, level)| level)
    }

    /// Gives findings the severities that the user has set, and drops those that are off or not sure
    /// enough.
    fn apply_severities(&self, found: &mut Vec<Finding>) {
        if let Some(least) = self.options.min_sureness {
            found.retain(|finding| finding.sureness >= least);
        }
        if self.options.severities.is_empty() {
            return;
        }
        found.retain_mut(|finding| match self.level(&finding.rule) {
            Some(Level::Off) => false,
            Some(Level::Severity(severity)) => {
                finding.severity = severity;
                true
            }
            None => true,
        });
    }

    /// Where the functions of a program run on a unit, with the verdicts of the rules that need no
    /// placement counted in.
    ///
    /// # Errors
    /// None but a selector that names no rule, which [`Checker::new`] has ruled out.
    pub fn place(
        &self,
        program: &Program,
        unit: Unit,
    ) -> Result<Vec<(FunctionId, Placement)>, CheckError> {
        let target = self.target(unit, program);
        let engine = Engine::new(self.set, &self.options.selection, target, self.options.limits)
            .map_err(|error| CheckError::Internal(error.to_string()))?;
        let hits = engine.first_phase(&Facts::new(program));
        let placed = Placed::new(program, target, self.set, &hits);
        Ok(placed
            .placements
            .into_iter()
            .enumerate()
            .filter_map(|(id, placement)| Some((FunctionId(id as u32), placement?)))
            .collect())
    }
}

/// The first OS that loads the file's specification version: an older network has no opset.
fn os_of_version(program: &Program) -> Option<OsVersion> {
    let major = program.metadata("minimum-os")?.parse().ok()?;
    Some(OsVersion { major, minor: 0 })
}

/// The OS that the newest opset of a Core ML program needs (`ios18`, `CoreML8`).
fn os_of_opset(program: &Program) -> Option<OsVersion> {
    program
        .functions
        .iter()
        .filter_map(|function| {
            let opset = program.text(function.opset).to_ascii_lowercase();
            let major = match (opset.strip_prefix("ios"), opset.strip_prefix("coreml")) {
                (Some(version), _) => version.parse().ok()?,
                // Core ML 5 came with iOS 15, and so on to 8 with iOS 18.
                (_, Some(version)) => 10 + version.parse::<u16>().ok().filter(|v| *v <= 8)?,
                _ => return None,
            };
            Some(OsVersion { major, minor: 0 })
        })
        .max()
}

/// The runtime that a format is for.
pub fn default_runtime(format: Format) -> Runtime {
    match format {
        Format::Pt2 | Format::AiModel | Format::AiModelC | Format::Mlir => Runtime::CoreAi,
        Format::MlPackage | Format::MlModel | Format::MlModelC | Format::Mil => Runtime::CoreMl,
        Format::Onnx => Runtime::OnnxRuntime,
    }
}

fn regions_added(
    program: &Program,
    placed: &Placed,
    off_unit: &[(FunctionId, NodeId)],
) -> Option<u32> {
    if off_unit.is_empty() {
        return None;
    }
    let mut added = 0;
    for group in off_unit.chunk_by(|a, b| a.0 == b.0) {
        let (function, _) = group.first()?;
        let nodes: Vec<NodeId> = group.iter().map(|(_, node)| *node).collect();
        let placement = placed.of(*function)?;
        added += placement.regions_added(program.function(*function), &nodes);
    }
    Some(added)
}

/// Whether a rule speaks of what ONNX Runtime's provider takes, and not of what the unit behind it runs:
/// it then holds for no other runtime.
fn is_about_provider(rule: &crate::rules::Rule, target: Target) -> bool {
    let elsewhere = |runtime| Target { runtime, ..target };
    !rule.holds_for(&elsewhere(Runtime::CoreMl)) && !rule.holds_for(&elsewhere(Runtime::CoreAi))
}

/// Placements of all linted functions of a program, as the second phase asks for them.
struct Placed<'p> {
    program: &'p Program,
    placements: Vec<Option<Placement>>,
    /// What is left of the budget for rules that ask how many regions nodes add.
    left: AtomicUsize,
}

impl<'p> Placed<'p> {
    fn new(program: &'p Program, target: Target, set: &RuleSet, hits: &[Hit]) -> Placed<'p> {
        let mut placements: Vec<Option<Placement>> = Vec::new();
        placements.resize_with(program.functions.len(), || None);
        let mut verdicts: BTreeMap<FunctionId, Vec<RuleVerdict>> = BTreeMap::new();
        for hit in hits.iter().filter(|hit| !hit.off_unit.is_empty()) {
            let Some(rule) = set.rules().get(hit.rule) else { continue };
            if target.runtime == Runtime::OnnxRuntime && !is_about_provider(rule, target) {
                continue;
            }
            verdicts.entry(hit.function).or_default().push(RuleVerdict {
                rule: rule.id().to_owned(),
                reason: hit.message.clone(),
                alternative: hit.help.clone(),
                evidence: rule.evidence().iter().filter_map(|e| e.id.clone()).collect(),
                nodes: hit.off_unit.clone(),
                place: Some(hit.place),
            });
        }
        for (id, _) in program.linted() {
            let rules = verdicts.remove(&id).unwrap_or_default();
            let request = Request { target, rules: &rules, line_of: None };
            if let Some(slot) = placements.get_mut(id.0 as usize) {
                *slot = Some(placement::place(program, id, &request));
            }
        }
        Placed { program, placements, left: AtomicUsize::new(REGIONS_ADDED_BUDGET) }
    }

    fn of(&self, function: FunctionId) -> Option<&Placement> {
        self.placements.get(function.0 as usize)?.as_ref()
    }

    fn functions(&self, program: &Program) -> Vec<FunctionReport> {
        program
            .linted()
            .map(|(id, function)| {
                let work = || function.node_ids().filter(|node| function.is_work(*node));
                let placement = self.of(id);
                FunctionReport {
                    name: program.text(function.name).to_owned(),
                    ops: placement.map_or_else(|| work().count(), |p| p.ops as usize),
                    unknown_ops: work()
                        .filter(|node| function.node(*node).op == Op::UNKNOWN)
                        .count(),
                    eligible: placement.map(|p| p.eligible as usize),
                    eligibility_unknown: placement.map_or(0, |p| p.unknown as usize),
                    regions: placement.map(|p| p.regions.len()),
                    regions_program_order: placement.map(|p| p.regions_program_order as usize),
                    nested: matches!(function.role, FunctionRole::Branch { .. }),
                }
            })
            .collect()
    }
}

impl PlacementView for Placed<'_> {
    fn eligible(&self, function: FunctionId, node: NodeId) -> Verdict<'_> {
        let unknown = Verdict {
            eligible: Eligible::Unknown,
            reason: "",
            alternative: "",
            evidence: "",
            by_rule: false,
        };
        let Some(placement) = self.of(function) else { return unknown };
        let eligible = match placement.node(node).verdict.eligible {
            Some(true) => Eligible::Yes,
            Some(false) => Eligible::No,
            None => Eligible::Unknown,
        };
        match placement.why(node) {
            None => Verdict { eligible, ..unknown },
            Some(reason) => Verdict {
                eligible,
                reason: &reason.text,
                alternative: &reason.alternative,
                evidence: reason.evidence.first().map_or("", String::as_str),
                by_rule: reason.rule.is_some(),
            },
        }
    }

    fn position(&self, function: FunctionId, node: NodeId) -> Option<Position> {
        let node = self.of(function)?.node(node);
        if node.is_interior() {
            Some(Position::Interior)
        } else if node.is_boundary() && !node.at_edge {
            Some(Position::Boundary)
        } else {
            None
        }
    }

    fn regions(&self, function: FunctionId) -> Option<u32> {
        Some(self.of(function)?.regions.len() as u32)
    }

    fn cuts(&self, function: FunctionId) -> String {
        self.of(function)
            .map(|placement| placement.summary_of_cuts(self.program, LONGEST_CUTS))
            .unwrap_or_default()
    }

    fn regions_added(&self, function: FunctionId, nodes: &[NodeId]) -> Option<u32> {
        let placement = self.of(function)?;
        let own = self.program.function(function);
        let spend = |left: usize| left.checked_sub(own.len());
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).ok()?;
        Some(placement.regions_added(own, nodes))
    }
}

/// An absolute, lexically clean form of a path, without touching the disk.
pub fn absolute(path: &Path, working_folder: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in working_folder.join(path).components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
