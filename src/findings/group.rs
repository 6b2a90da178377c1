//! Hits → findings: one for each rule and place.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use super::finding::Finding;
use super::fingerprint::Identity;
use super::fix::{self, PreparedFix};
use super::modules::{compress, index_free};
use super::python::{Pattern, PatternError, PythonFile};
use super::source::{
    FrameNote, Place, PlaceFile, SourceMap, SourceOptions, SourceRule, short_library_path,
};
use crate::graph::{FunctionId, NodeId, NodeKind, Program};
use crate::rules::{Binding, Hit, Per, RuleSet};
use crate::target::Target;

/// The Python side of a rule set, compiled once.
#[derive(Debug, Default)]
pub struct PreparedRules {
    rules: Vec<(SourceRule, Vec<PreparedFix>)>,
}

impl PreparedRules {
    /// Compiles the patterns of every rule.
    ///
    /// # Errors
    /// The rule's id and what is wrong with the first pattern that is none.
    pub fn new(set: &RuleSet) -> Result<PreparedRules, (String, PatternError)> {
        let mut rules = Vec::with_capacity(set.rules().len());
        for rule in set.rules() {
            let fail = |error| (rule.id().to_owned(), error);
            let find = rule
                .python_find()
                .iter()
                .map(|source| Pattern::parse(source))
                .collect::<Result<_, _>>()
                .map_err(fail)?;
            let fixes = rule
                .fixes()
                .iter()
                .map(PreparedFix::new)
                .collect::<Result<_, _>>()
                .map_err(fail)?;
            rules.push((SourceRule { find, helper: rule.python_helper() }, fixes));
        }
        Ok(PreparedRules { rules })
    }
}

/// A hit with its place.
type PlacedHit<'h> = (&'h Hit, Arc<Place>);

/// What makes hits one finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum GroupKey {
    /// File, line and columns.
    Source { file: String, from: (u32, u32), to: (u32, u32) },
    /// Recorded file and line, where no file was found.
    Line(String, u32),
    /// Module without indices and op, where no source is recorded.
    Module { path: String, op: String },
    /// One node.
    Node(FunctionId, NodeId),
    /// One state, input or output of each layer of a stack: where they show, and the message without
    /// indices.
    Layers { file: String, from: (u32, u32), message: String },
    /// One function.
    Function(FunctionId),
    /// The whole program.
    Program,
}

/// Findings, and where suppressions of them may stand.
#[derive(Debug, Default)]
pub struct Found {
    /// The findings, in order.
    pub findings: Vec<Finding>,
    /// Source files with suppression comments that ops were recorded in, and the lines.
    pub files: Vec<(Arc<PythonFile>, Vec<u32>)>,
}

/// Makes findings of hits. Order: by place (findings without one last), then rule, then program
/// order; equal for equal input. `model` is what to call the program in fingerprints, its file stem if
/// `None`.
pub fn findings(
    program: &Program,
    set: &RuleSet,
    prepared: &PreparedRules,
    target: &Target,
    hits: &[Hit],
    model: Option<&str>,
    options: SourceOptions,
) -> Found {
    let stem = || program.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let model = model.map_or_else(stem, str::to_owned);
    let map = SourceMap::new(program, options);
    let none = (SourceRule::default(), Vec::new());
    let mut groups: IndexMap<(usize, GroupKey, String), Vec<PlacedHit<'_>>> = IndexMap::new();
    for hit in hits {
        let Some(rule) = set.rules().get(hit.rule) else { continue };
        let (source_rule, _) = prepared.rules.get(hit.rule).unwrap_or(&none);
        // The other ends tell apart hits that share a constant.
        let nodes: Vec<NodeId> = hit
            .nodes
            .iter()
            .chain(hit.related.iter().map(|(node, _)| node))
            .copied()
            .filter(|node| *node != hit.place)
            .collect();
        let place = match hit.whole {
            true => map.whole(hit.rule, hit.function, hit.place),
            false => map.place(hit.rule, source_rule, hit.function, hit.place, &nodes),
        };
        let group = group_key(program, hit, rule.per(), &place);
        let key = match (&group, layered(program, hit)) {
            (GroupKey::Layers { .. }, Some((name, pattern))) => hit.key.replace(name, &pattern),
            _ => hit.key.clone(),
        };
        groups.entry((hit.rule, group, key)).or_default().push((hit, place));
    }
    let mut found: Vec<(Finding, Identity)> = groups
        .into_iter()
        .filter_map(|((rule, _, key), hits)| {
            let rule_data = set.rules().get(rule)?;
            let (_, fixes) = prepared.rules.get(rule).unwrap_or(&none);
            let mut found = finding(program, &map, rule_data, fixes, target, &key, hits)?;
            found.1.model.clone_from(&model);
            Some(found)
        })
        .collect();
    number(&mut found);
    let mut findings: Vec<Finding> = found.into_iter().map(|(finding, _)| finding).collect();
    in_order(&mut findings);
    Found { findings, files: map.marked_files() }
}

/// Puts findings in the order of reports: by place, those without one last, then by rule.
pub fn in_order(findings: &mut [Finding]) {
    findings.sort_by_cached_key(order);
}

/// What findings are ordered by.
pub fn order(finding: &Finding) -> impl Ord + use<> {
    let place = finding.spot.as_ref().map(|spot| (spot.file.key(), spot.span));
    (place.is_none(), place, finding.rule.clone(), finding.first)
}

fn group_key(program: &Program, hit: &Hit, per: Per, place: &Place) -> GroupKey {
    match per {
        Per::Node => match (layered(program, hit), &place.spot) {
            (Some((name, pattern)), Some(spot)) => GroupKey::Layers {
                file: spot.file.key(),
                from: (spot.span.start.line, spot.span.start.column),
                message: hit.message.replace(name, &pattern),
            },
            _ => GroupKey::Node(hit.function, hit.place),
        },
        Per::Function => GroupKey::Function(hit.function),
        Per::Program => GroupKey::Program,
        Per::SourceLine => {
            if let Some(spot) = &place.spot {
                let (from, to) = (spot.span.start, spot.span.end);
                return GroupKey::Source {
                    file: spot.file.key(),
                    from: (from.line, from.column),
                    to: (to.line, to.column),
                };
            }
            if let Some((file, line)) = &place.recorded {
                return GroupKey::Line(file.clone(), *line);
            }
            let (module, _) = module_of(program, hit);
            match module.is_empty() {
                true => GroupKey::Node(hit.function, hit.place),
                false => GroupKey::Module {
                    path: index_free(module),
                    op: program.function(hit.function).node(hit.place).op.name().to_owned(),
                },
            }
        }
    }
}

/// Name of the state, input or output that a hit is about, if it has the index of a layer
/// (`layers.3.key`, `layers_3_key`) and the message tells it, and the name without indices.
fn layered<'p>(program: &'p Program, hit: &Hit) -> Option<(&'p str, String)> {
    let function = program.function(hit.function);
    hit.nodes
        .iter()
        .map(|node| function.node(*node))
        .filter(|node| matches!(node.kind, NodeKind::State | NodeKind::Input | NodeKind::Output))
        .map(|node| program.text(node.name))
        .map(|name| (name, name.split('_').map(index_free).collect::<Vec<_>>().join("_")))
        .find(|(name, pattern)| *name != pattern && hit.message.contains(name))
}

/// Path and class of the module that a hit lies in: its place's, or else that of the first of its
/// nodes that has one. What the root itself makes lies in no other module, whoever uses it.
fn module_of<'p>(program: &'p Program, hit: &Hit) -> (&'p str, &'p str) {
    let function = program.function(hit.function);
    let consumers = match function.node(hit.place).kind {
        NodeKind::Constant(_) => function.consumers(hit.place),
        _ => Vec::new(),
    };
    std::iter::once(&hit.place)
        .chain(&consumers)
        .chain(&hit.nodes)
        .map(|node| {
            let provenance = program.sources.get(function.node(*node).provenance);
            let module = program.sources.get_module(provenance.module);
            (program.text(module.path), program.text(module.class))
        })
        .find(|(path, class)| !path.is_empty() || !class.is_empty())
        .unwrap_or_default()
}

fn finding(
    program: &Program,
    map: &SourceMap<'_>,
    rule: &crate::rules::Rule,
    prepared: &[PreparedFix],
    target: &Target,
    key: &str,
    hits: Vec<PlacedHit<'_>>,
) -> Option<(Finding, Identity)> {
    let (first_hit, _) = hits.iter().min_by_key(|(hit, _)| (hit.function, hit.place))?;
    let first = (first_hit.function, first_hit.place);
    // One place may be worse in one function than in another: the worst speaks, the first of equals.
    let (speaker, place) = hits
        .iter()
        .min_by_key(|(hit, _)| (std::cmp::Reverse(hit.severity), hit.function, hit.place))?;
    let mut functions: BTreeMap<FunctionId, &str> = BTreeMap::new();
    let mut nodes: Vec<(FunctionId, NodeId)> = Vec::new();
    let mut off_unit: Vec<(FunctionId, NodeId)> = Vec::new();
    let mut ordered: Vec<&Hit> = hits.iter().map(|(hit, _)| *hit).collect();
    ordered.sort_by_key(|hit| (hit.function, hit.place));
    for hit in &ordered {
        let name = program.text(program.function(hit.function).name);
        functions.insert(hit.function, name);
        nodes.push((hit.function, hit.place));
        off_unit.extend(hit.off_unit.iter().map(|node| (hit.function, *node)));
    }
    nodes.dedup();
    off_unit.sort_unstable();
    off_unit.dedup();
    let (module, class) = module_of(program, first_hit);
    let node = program.function(first.0).node(first.1);
    let whole = speaker.whole;
    let op = match node.kind {
        NodeKind::Op if !whole => {
            (node.op.name().to_owned(), program.text(node.spelling).to_owned())
        }
        _ => Default::default(),
    };
    let mut place = Place::clone(place);
    let through = telling_frames(&place, &hits);
    join_related(&mut place, &hits);
    let mended = mend(map, prepared, &place, &hits, speaker);
    place.related.extend(mended.related);
    for (node, words) in &speaker.related {
        // Another end of the pattern, as the rule names it; only where it is a place of its own.
        let other = map.place(usize::MAX, &SourceRule::default(), speaker.function, *node, &[]);
        let Some(spot) = &other.spot else { continue };
        let known = place
            .spot
            .iter()
            .chain(place.related.iter().map(|(spot, _)| spot))
            .any(|known| known.file.key() == spot.file.key() && known.span == spot.span);
        if !known {
            place.related.push((spot.clone(), words.clone()));
        }
    }
    let mut names: Vec<&str> = functions.into_values().collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let identity = Identity {
        rule: rule.id().to_owned(),
        model: String::new(),
        class: class.to_owned(),
        module: index_free(module),
        op: node.op.name().to_owned(),
        key: key.to_owned(),
    };
    let message = match layered(program, speaker) {
        Some((name, pattern)) if nodes.len() > 1 && rule.per() == Per::Node => {
            speaker.message.replace(name, &pattern)
        }
        _ => speaker.message.clone(),
    };
    // Where a library makes it, the author cannot follow what is said of his own code.
    let in_library = !place.deeper.is_empty() && !place.explained;
    let help = match rule.library_help() {
        "" => speaker.help.as_str(),
        other if in_library => other,
        _ => speaker.help.as_str(),
    };
    // A whole function is not in the module of its first op.
    if whole {
        nodes.clear();
    }
    let modules: &[&Hit] = if whole { &[] } else { &ordered };
    let finding = Finding {
        rule: rule.id().to_owned(),
        name: rule.name().to_owned(),
        severity: speaker.severity,
        category: rule.category(),
        sureness: rule.sureness(target),
        evidence: evidence_ids(rule),
        message,
        help: help.to_owned(),
        functions: names.into_iter().map(str::to_owned).collect(),
        nodes: nodes.iter().map(|(function, node)| shown_name(program, *function, *node)).collect(),
        op,
        modules: compress(modules.iter().map(|hit| module_of(program, hit).0)),
        count: hits.len(),
        spot: place.spot,
        related: place.related,
        deeper: place.deeper,
        through,
        notes: place.notes,
        fix: mended.fix,
        unfixable: mended.refused.map(|(file, why)| (PlaceFile::Found(file), why)),
        fixed: false,
        fingerprint: String::new(),
        regions_added: None,
        off_unit,
        first,
    };
    Some((finding, identity))
}

/// The rewrite of a finding: one that holds for every hit, inside the finding's place or its causes.
fn mend(
    map: &SourceMap<'_>,
    prepared: &[PreparedFix],
    place: &Place,
    hits: &[PlacedHit<'_>],
    speaker: &Hit,
) -> fix::Outcome {
    let holding: Vec<(usize, &PreparedFix)> = speaker
        .fixes
        .iter()
        .filter(|at| hits.iter().all(|(hit, _)| hit.fixes.contains(at)))
        .filter_map(|at| Some((*at, prepared.get(*at)?)))
        .collect();
    if holding.is_empty() {
        return fix::Outcome::default();
    }
    let place_of = |binding: &Binding| {
        let none = SourceRule::default();
        map.place(usize::MAX, &none, speaker.function, binding.node?, &[]).spot.clone()
    };
    let ask = fix::Ask {
        spot: place.spot.as_ref(),
        causes: &place.related,
        bindings: &speaker.bindings,
        place_of: &place_of,
        refuse: &|file| map.refusal(file),
    };
    fix::fix(&holding, &ask)
}

/// What to call a node: its own name; a literal, which has none, is called after the op that uses it,
/// a promotion made visible after its op.
fn shown_name(program: &Program, function: FunctionId, node: NodeId) -> String {
    let fun = program.function(function);
    let named = |node: NodeId| program.text(fun.node(node).name);
    let own = fun.node(node);
    if !named(node).is_empty() {
        return named(node).to_owned();
    }
    match own.kind {
        NodeKind::Op => own.op.name().to_owned(),
        _ => fun
            .consumers(node)
            .into_iter()
            .map(|user| match named(user) {
                "" => fun.node(user).op.name().to_owned(),
                name => name.to_owned(),
            })
            .next()
            .unwrap_or_else(|| "constant".to_owned()),
    }
}

/// Most telling frames of one finding.
const MAX_THROUGH: usize = 16;

/// The innermost frame of each occurrence that tells something, each line once, the speaker's first.
/// That `nn.Linear` calls `F.linear` is no news.
fn telling_frames(speaker: &Place, hits: &[PlacedHit<'_>]) -> Vec<FrameNote> {
    let mut ordered: Vec<&PlacedHit<'_>> = hits.iter().collect();
    ordered.sort_by_key(|(hit, _)| (hit.function, hit.place));
    let places = std::iter::once(speaker).chain(ordered.iter().map(|(_, place)| &**place));
    let mut frames: Vec<FrameNote> = Vec::new();
    for place in places {
        let telling = place
            .deeper
            .iter()
            .find(|frame| !short_library_path(&frame.file).starts_with("torch/"))
            .or(place.deeper.first());
        let Some(frame) = telling else { continue };
        if !frames.iter().any(|known| known.line == frame.line && known.file == frame.file) {
            frames.push(frame.clone());
        }
        if frames.len() == MAX_THROUGH {
            break;
        }
    }
    frames
}

/// Most related places of one finding.
const MAX_RELATED: usize = 8;

/// Adds the related places of the other hits of a group: each may have its own cause.
fn join_related(place: &mut Place, others: &[PlacedHit<'_>]) {
    let mut ordered: Vec<&PlacedHit<'_>> = others.iter().collect();
    ordered.sort_by_key(|(hit, _)| (hit.function, hit.place));
    for (spot, words) in ordered.iter().flat_map(|(_, other)| &other.related) {
        if place.related.len() >= MAX_RELATED {
            return;
        }
        let known = place
            .related
            .iter()
            .any(|(own, _)| own.file.key() == spot.file.key() && own.span == spot.span);
        if !known {
            place.related.push((spot.clone(), words.clone()));
        }
    }
}

/// Gives each finding its fingerprint: equals are numbered in program order.
fn number(found: &mut [(Finding, Identity)]) {
    found.sort_by(|(a, a_id), (b, b_id)| (a_id, a.first).cmp(&(b_id, b.first)));
    let mut ordinal = 0;
    let mut previous: Option<Identity> = None;
    for (finding, identity) in found {
        ordinal = if previous.as_ref() == Some(identity) { ordinal + 1 } else { 0 };
        finding.fingerprint = identity.fingerprint(ordinal);
        previous = Some(identity.clone());
    }
}

/// The ids of a rule's evidence, each once: one id may speak for several runtimes.
fn evidence_ids(rule: &crate::rules::Rule) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for id in rule.evidence().iter().filter_map(|evidence| evidence.id.as_ref()) {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids
}
