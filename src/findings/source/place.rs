//! Puts the parts of the source mapping together: one node of one hit → one place.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::author::{FrameKind, frame_kind};
use super::branch::Body;
use super::callee::{called_by_class, callee, own_module};
use super::cause::{Candidate, candidates, number, words};
use super::expression::{self, Wanted, regions};
use super::freshness::{CurrentLine, current_line};
use super::locate::{Located, Locator, Recorded, SourceOptions};
use super::modules::{ClassRef, Code};
use super::spelling::OpSpelling;
use super::spot::{
    FrameNote, Place, PlaceFile, Spot, file_column, recorded_range, recorded_spot, shown_path,
    statement_spot,
};
use super::trace::{Reach, Sought, trace};
use crate::findings::python::{
    Definition, Pattern, PythonFile, Region, enclosing_class, enclosing_function, parameter,
    statement_at,
};
use crate::graph::{
    ConstantOrigin, Frame, Function, FunctionId, FunctionRole, ModuleId, Name, NodeId, NodeKind,
    Op, Program, StackId,
};

/// What the mapping needs of a rule.
#[derive(Debug, Clone, Default)]
pub struct SourceRule {
    /// Patterns of the expression that deserves the caret, best first.
    pub find: Vec<Pattern>,
    /// Whether to look for them in what the line calls and names.
    pub helper: bool,
}

/// Maps nodes of one program.
#[derive(Debug)]
pub struct SourceMap<'p> {
    pub(super) program: &'p Program,
    pub(super) locator: Locator,
    siblings: RefCell<HashMap<SiblingKey, Arc<Vec<NodeId>>, rustc_hash::FxBuildHasher>>,
    indexed: RefCell<Vec<FunctionId>>,
    made: RefCell<HashMap<PlaceKey, Arc<Place>, rustc_hash::FxBuildHasher>>,
    pub(super) changed: OnceCell<BTreeSet<PathBuf>>,
}

/// Ops that one line of one module made in one spelling: told apart by their order.
type SiblingKey = (FunctionId, StackId, ModuleId, Name);

/// What a place depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PlaceKey {
    rule: usize,
    stack: StackId,
    callee_class: Name,
    callee: Name,
    pub(super) spelling: OpSpelling,
    attribute: Option<String>,
    pub(super) ordinal: Option<(usize, usize)>,
    /// Bits of the one number that the op or constant has.
    pub(super) value: Option<u64>,
    /// The branch that the op lies in.
    body: Option<Body>,
    /// A constant that may come from another line is used here.
    uses_constant: bool,
}

impl<'p> SourceMap<'p> {
    /// A map for a program.
    pub fn new(program: &'p Program, options: SourceOptions) -> SourceMap<'p> {
        let locator = Locator::new(options, &program.path);
        SourceMap {
            program,
            locator,
            siblings: RefCell::default(),
            indexed: RefCell::default(),
            made: RefCell::default(),
            changed: OnceCell::new(),
        }
    }

    /// The working folder, that shown paths are relative to.
    pub fn working_folder(&self) -> &Path {
        &self.locator.options().working_folder
    }

    /// Source files with suppression comments that ops were recorded in, by path, and the lines of
    /// those ops, as far as they are sure.
    pub fn marked_files(&self) -> Vec<(Arc<PythonFile>, Vec<u32>)> {
        let text = |name: Name| self.program.text(name);
        let mut lines: BTreeMap<PathBuf, (Arc<PythonFile>, BTreeSet<u32>)> = BTreeMap::new();
        // Most frames lie in files without such comments: each file is looked for once.
        let mut unmarked = BTreeSet::new();
        for frame in self.program.sources.all_frames() {
            let recorded = Recorded {
                file: text(frame.file),
                line: frame.line,
                text: text(frame.text).trim(),
                sha256: text(frame.sha256),
            };
            if unmarked.contains(&frame.file)
                || frame_kind(recorded.file, &self.locator.options().roots) != FrameKind::Author
            {
                continue;
            }
            let found = match self.locator.locate_near(recorded) {
                Located::File(file, check) if file.bare().is_some() => (file, check),
                _ => {
                    unmarked.insert(frame.file);
                    continue;
                }
            };
            let (file, check) = found;
            let current = current_line(&file, recorded, text(frame.function), check);
            let own = lines
                .entry(file.path().to_owned())
                .or_insert_with(|| (Arc::clone(&file), BTreeSet::new()));
            if current.trusted {
                own.1.insert(current.line);
            }
        }
        lines.into_values().map(|(file, lines)| (file, lines.into_iter().collect())).collect()
    }

    /// The place of a hit: of its own node, or of the nearest node that has one.
    pub fn place(
        &self,
        rule_index: usize,
        rule: &SourceRule,
        function: FunctionId,
        place: NodeId,
        nodes: &[NodeId],
    ) -> Arc<Place> {
        let made = self.of_node(rule_index, rule, function, place, nodes);
        match self.program.function(function).node(place).kind {
            // What first uses an input, or last makes an output, is not to blame.
            NodeKind::Input | NodeKind::Output => Arc::new(made.alone()),
            _ => made,
        }
    }

    fn of_node(
        &self,
        rule_index: usize,
        rule: &SourceRule,
        own_function: FunctionId,
        place: NodeId,
        nodes: &[NodeId],
    ) -> Arc<Place> {
        let Some((function, node)) = self.node_with_frames(own_function, place, nodes) else {
            return Arc::new(Place::default());
        };
        let fun = self.program.function(function);
        let provenance = self.program.sources.get(fun.node(node).provenance);
        let module = self.program.sources.get_module(provenance.module);
        if function != own_function {
            // A branch that has no frames: the line is that of the op that holds it.
            let fun = self.program.function(own_function);
            let own = fun.node(place);
            let key = PlaceKey {
                rule: rule_index,
                stack: provenance.stack,
                callee_class: module.class,
                callee: module.path,
                spelling: OpSpelling::new("", self.program.text(own.spelling), own.op),
                attribute: None,
                ordinal: None,
                value: number(self.program, fun, place).map(f64::to_bits),
                body: self.body(own_function),
                uses_constant: true,
            };
            return self.kept(rule, provenance.stack, provenance.module, key);
        }
        let provenance = self.program.sources.get(fun.node(node).provenance);
        if node != place && fun.node(place).kind == NodeKind::Input {
            let name = self.program.text(fun.node(place).name);
            let spot = self.in_outermost(provenance.stack, |file, outermost| {
                parameter(file, outermost, name).map(|node| node.byte_range())
            });
            if let Some(spot) = spot {
                return Arc::new(Place::at(spot));
            }
        }
        let attribute = self.constant_attribute(fun, place, nodes);
        let own = fun.node(node);
        let spelling = OpSpelling::new(
            self.program.text(provenance.torch_op),
            self.program.text(own.spelling),
            own.op,
        );
        // A constant is told from its like by the op that uses it, and by its value.
        let counted = match fun.node(node).kind {
            NodeKind::Constant(_) => user_towards(fun, node, nodes).unwrap_or(node),
            _ => node,
        };
        let ordinal = self.ordinal(function, counted);
        let uses_constant = std::iter::once(&place).chain(nodes).any(|node| {
            let NodeKind::Constant(id) = fun.node(*node).kind else { return false };
            self.program.constant(id).origin != ConstantOrigin::Literal
        });
        let key = PlaceKey {
            rule: rule_index,
            stack: provenance.stack,
            callee_class: module.class,
            callee: module.path,
            spelling,
            attribute,
            ordinal,
            value: number(self.program, fun, place).map(f64::to_bits),
            body: self.body(function),
            uses_constant,
        };
        self.kept(rule, provenance.stack, provenance.module, key)
    }

    /// Makes a place once.
    fn kept(
        &self,
        rule: &SourceRule,
        stack: StackId,
        module: ModuleId,
        key: PlaceKey,
    ) -> Arc<Place> {
        if let Some(known) = self.made.borrow().get(&key) {
            return Arc::clone(known);
        }
        let made = Arc::new(self.make(rule, stack, module, &key));
        self.made.borrow_mut().insert(key, Arc::clone(&made));
        made
    }

    /// The node whose frames count: the place itself, the other nodes of the hit, what uses the
    /// place, the node of the outer graph that holds a branch.
    fn node_with_frames(
        &self,
        function: FunctionId,
        place: NodeId,
        nodes: &[NodeId],
    ) -> Option<(FunctionId, NodeId)> {
        let fun = self.program.function(function);
        let shown = |node: &NodeId| {
            let stack = self.program.sources.get(fun.node(*node).provenance).stack;
            self.chosen_frame(stack).is_some()
        };
        if shown(&place) {
            return Some((function, place));
        }
        // An output stands where its value is made; a constant, input or state where it is used.
        let makers: Vec<NodeId> =
            fun.operands(place).iter().map(|operand| fun.producer(operand.value)).collect();
        let makers = match fun.node(place).kind {
            NodeKind::Output => makers,
            _ => Vec::new(),
        };
        let consumers = fun.consumers(place);
        // An input's sizes are taken before anything is done with it, by whoever needs them.
        let written = consumers.iter().filter(|node| {
            let stack = self.program.sources.get(fun.node(**node).provenance).stack;
            fun.node(**node).op != Op::SIZE && self.is_authors(stack)
        });
        let near = makers.iter().chain(written).chain(&consumers).chain(nodes);
        if let Some(node) = near.into_iter().find(|node| shown(node)) {
            return Some((function, *node));
        }
        let FunctionRole::Branch { parent } = fun.role else { return None };
        let outer = self.program.function(parent);
        let holder = outer.node_ids().find(|id| outer.bodies(*id).contains(&function))?;
        if parent == function {
            return None;
        }
        let stack = self.program.sources.get(outer.node(holder).provenance).stack;
        self.chosen_frame(stack).map(|_| (parent, holder))
    }

    /// The frame to show, and how many frames lie within it.
    fn chosen_frame(&self, stack: StackId) -> Option<(&Frame, usize)> {
        let kind = |frame: &Frame| {
            frame_kind(self.program.text(frame.file), &self.locator.options().roots)
        };
        let frames: Vec<&Frame> = self.program.sources.frames(stack).collect();
        let at = frames
            .iter()
            .rposition(|frame| matches!(kind(frame), FrameKind::Author | FrameKind::Notebook))
            .or_else(|| frames.iter().rposition(|frame| kind(frame) == FrameKind::Library))?;
        Some((frames.get(at).copied()?, frames.len() - at - 1))
    }

    /// Whether a stack has a frame of the author's.
    fn is_authors(&self, stack: StackId) -> bool {
        let roots = &self.locator.options().roots;
        self.program
            .sources
            .frames(stack)
            .any(|frame| frame_kind(self.program.text(frame.file), roots) == FrameKind::Author)
    }

    /// The place of a whole function: the name of the author's function that was exported, else the line
    /// of its first op.
    pub fn whole(&self, rule_index: usize, function: FunctionId, first: NodeId) -> Arc<Place> {
        let fun = self.program.function(function);
        // The first ops may be made in a library, or stand in no function.
        let spot = fun.node_ids().filter(|id| fun.is_work(*id)).take(32).find_map(|id| {
            let stack = self.program.sources.get(fun.node(id).provenance).stack;
            self.in_outermost(stack, |_, outermost| {
                outermost.node.child_by_field_name("name").map(|name| name.byte_range())
            })
        });
        if let Some(spot) = spot {
            return Arc::new(Place::at(spot));
        }
        let rule = SourceRule::default();
        Arc::new(self.place(rule_index, &rule, function, first, &[]).alone())
    }

    /// Something in the outermost function of the author's: the one that was exported.
    fn in_outermost(
        &self,
        stack: StackId,
        part: impl Fn(&PythonFile, Definition<'_>) -> Option<Range<usize>>,
    ) -> Option<Spot> {
        let text = |name: Name| self.program.text(name);
        let frame = self.program.sources.frames(stack).find(|frame| {
            frame_kind(text(frame.file), &self.locator.options().roots) == FrameKind::Author
        })?;
        let recorded = Recorded {
            file: text(frame.file),
            line: frame.line,
            text: text(frame.text).trim(),
            sha256: text(frame.sha256),
        };
        let Located::File(file, check) = self.locator.locate(recorded) else { return None };
        let current = current_line(&file, recorded, text(frame.function), check);
        if !current.trusted {
            return None;
        }
        let function = enclosing_function(statement_at(&file, current.line)?)?;
        let range = part(&file, function)?;
        Some(Spot {
            file: PlaceFile::Found(Arc::clone(&file)),
            span: file.span(range),
            exact: true,
            stale: current.stale,
        })
    }

    /// The last name of the buffer or parameter that a hit is about.
    fn constant_attribute(
        &self,
        function: &Function,
        place: NodeId,
        nodes: &[NodeId],
    ) -> Option<String> {
        std::iter::once(&place).chain(nodes).find_map(|node| {
            let NodeKind::Constant(id) = function.node(*node).kind else { return None };
            let constant = self.program.constant(id);
            if matches!(constant.origin, ConstantOrigin::Literal | ConstantOrigin::Folded) {
                return None;
            }
            let name = self.program.text(constant.fqn).rsplit('.').next()?;
            let is_name = !name.is_empty()
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            is_name.then(|| name.to_owned())
        })
    }

    /// Which of how many ops of one spelling, made by one line of one module, this node is.
    fn ordinal(&self, function: FunctionId, node: NodeId) -> Option<(usize, usize)> {
        let fun = self.program.function(function);
        if !self.indexed.borrow().contains(&function) {
            self.indexed.borrow_mut().push(function);
            let mut groups: HashMap<SiblingKey, Vec<NodeId>, rustc_hash::FxBuildHasher> =
                HashMap::default();
            for (id, own) in fun.nodes().filter(|(_, own)| own.kind == NodeKind::Op) {
                let provenance = self.program.sources.get(own.provenance);
                let key = (function, provenance.stack, provenance.module, own.spelling);
                groups.entry(key).or_default().push(id);
            }
            self.siblings
                .borrow_mut()
                .extend(groups.into_iter().map(|(key, list)| (key, Arc::new(list))));
        }
        let own = fun.node(node);
        let provenance = self.program.sources.get(own.provenance);
        let key = (function, provenance.stack, provenance.module, own.spelling);
        let siblings = self.siblings.borrow().get(&key).cloned()?;
        let at = siblings.binary_search(&node).ok()?;
        Some((at, siblings.len()))
    }

    fn make(&self, rule: &SourceRule, stack: StackId, module: ModuleId, key: &PlaceKey) -> Place {
        let Some((frame, deeper)) = self.chosen_frame(stack) else { return Place::default() };
        let text = |name: Name| self.program.text(name);
        let recorded = Recorded {
            file: text(frame.file),
            line: frame.line,
            text: text(frame.text).trim(),
            sha256: text(frame.sha256),
        };
        let mut place = Place {
            recorded: Some((recorded.file.to_owned(), recorded.line)),
            deeper: self
                .program
                .sources
                .frames(stack)
                .rev()
                .take(deeper)
                // Nobody can open the code that torch makes for a branch.
                .filter(|frame| {
                    let roots = &self.locator.options().roots;
                    frame_kind(text(frame.file), roots) != FrameKind::Generated
                })
                .map(|frame| FrameNote {
                    file: text(frame.file).to_owned(),
                    line: frame.line,
                    function: text(frame.function).to_owned(),
                    text: text(frame.text).trim().to_owned(),
                })
                .collect(),
            ..Place::default()
        };
        if frame_kind(recorded.file, &self.locator.options().roots) == FrameKind::Notebook {
            place.notes.push(match recorded.text {
                "" => format!("in a notebook cell, line {}", recorded.line),
                text => format!("in a notebook cell, line {}: {text}", recorded.line),
            });
            return place;
        }
        let (file, check) = match self.locator.locate(recorded) {
            Located::File(file, check) => (file, check),
            Located::Ambiguous(count) => {
                place.notes.push(format!(
                    "{count} files fit the recorded path `{}` (line {}), and nothing in the graph \
                     tells them apart: name one with --source-root or --path-map",
                    recorded.file, recorded.line
                ));
                return place;
            }
            Located::Missing => {
                place.spot = Some(recorded_spot(recorded));
                return place;
            }
        };
        let current = current_line(&file, recorded, text(frame.function), check);
        // A line that is not in the file any more: what stands at its number now is another.
        if !current.trusted || current.line > file.line_count() {
            place.spot = Some(Spot { stale: true, ..recorded_spot(recorded) });
            return place;
        }
        let statement = statement_spot(&file, current);
        self.fill(&mut place, rule, &file, current, statement, module, frame, key);
        place
    }

    /// Finds the expression, and the places related to it.
    #[allow(clippy::too_many_arguments, reason = "the one place where all parts come together")]
    fn fill(
        &self,
        place: &mut Place,
        rule: &SourceRule,
        file: &Arc<PythonFile>,
        current: CurrentLine,
        statement: Spot,
        module: ModuleId,
        frame: &Frame,
        key: &PlaceKey,
    ) {
        let column = file_column(file, current.line, frame.column, !frame.text.is_empty());
        let class = statement_at(file, current.line)
            .and_then(enclosing_class)
            .map(|definition| ClassRef::new(file, definition));
        let module = self.program.sources.get_module(module);
        let own_class =
            |recorded: &str| class.as_ref().and_then(|class| self.made_from(file, recorded, class));
        let at = own_module(self.program, module, |recorded| own_class(recorded).is_some());
        let mut callee = callee(self.program, module, at);
        // The class that runs may be made from the one that the line is in.
        let running = at
            .and_then(|at| module.stack.get(at))
            .and_then(|(_, recorded)| own_class(self.program.text(*recorded)))
            .or_else(|| class.clone());
        if let (Some(body), Some(region)) = (key.body, regions(file, current.line).pop())
            && self.fill_branch(
                place,
                rule,
                file,
                &region,
                current.stale,
                running.as_ref(),
                key,
                body,
            )
        {
            return;
        }
        let mut unsure = false;
        if let (None, Some(library), Some(region)) =
            (&callee, place.deeper.first(), regions(file, current.line).pop())
        {
            let lineage = running.as_ref().map(|class| self.locator.lineage(class));
            let nodes: Vec<_> = region.nodes().collect();
            let mut called = called_by_class(file, &nodes, &library.file, |attribute| {
                let made =
                    self.locator.attribute(lineage.as_deref().unwrap_or_default(), attribute);
                made.iter()
                    .filter_map(|code| code.file.text().get(code.range.clone()))
                    .map(str::to_owned)
                    .collect()
            });
            // One of several calls ran it: the line holds the op, and nothing tells where.
            unsure = called.len() > 1;
            callee = called.pop().filter(|_| !unsure);
        }
        let wanted = Wanted {
            patterns: &rule.find,
            callee: callee.as_ref(),
            op: &key.spelling,
            attribute: key.attribute.as_deref(),
            ordinal: key.ordinal,
            // A moved line keeps its text, and with it its columns.
            column: if current.stale { 0 } else { column },
            recorded: recorded_range(file, current, frame),
            value: key.value.map(f64::from_bits),
        };
        let found = match unsure && wanted.recorded.is_none() {
            true => None,
            false => expression::find(file, current.line, wanted),
        };
        let class = running;
        let lineage = class.as_ref().map(|class| self.locator.lineage(class)).unwrap_or_default();
        let spot_of = |code: &Code, stale: bool| Spot {
            file: PlaceFile::Found(Arc::clone(&code.file)),
            span: code.file.span(code.range.clone()),
            exact: true,
            stale,
        };
        let own = |range: Range<usize>| Code { file: Arc::clone(file), range };
        let mut range = found.map(|expression| expression.node.byte_range());
        let mut set_here: Option<Code> = None;

        // What else stands on the line has nothing to do with an expression that was recorded.
        let region = wanted
            .recorded
            .and_then(|range| expression::exactly(file, range))
            .map(Region::deep)
            .or_else(|| regions(file, current.line).pop());
        let by_pattern = found.is_some_and(|expression| expression.by_pattern);
        place.explained = by_pattern;
        if rule.helper
            && !by_pattern
            && !rule.find.is_empty()
            && let Some(region) = &region
        {
            let sought = Sought::Patterns(&rule.find);
            let search = |reach| {
                let found = trace(&self.locator, file, region, class.as_ref(), sought, reach);
                let value = key.value.map(f64::from_bits);
                let own = candidates(&found, value, self.program.format, key.ordinal);
                let origin = found.origin(&own, key.ordinal);
                (own, origin)
            };
            let (mut found, mut origin) = Default::default();
            if !key.uses_constant {
                (found, origin) = search(Reach::Line);
            }
            if found.is_empty() {
                (found, origin) = search(Reach::Names);
            }
            place.explained = !found.is_empty();
            match found.as_slice() {
                [] => {}
                [(code, _)] => {
                    // A buffer or a call that leads there says more than the op's own name; a
                    // plain name does not.
                    let leads = origin.clone().and_then(|origin| file.text().get(origin));
                    let leads = leads.unwrap_or("");
                    if leads.starts_with("self.") || leads.ends_with(')') {
                        range.clone_from(&origin);
                    }
                    range = range.or(origin);
                    set_here = Some(code.clone());
                    let words = words(code, &key.spelling);
                    place.related.push((spot_of(code, false), words.to_owned()));
                }
                several => place.notes.push(self.several(several)),
            }
        }
        if let (None, Some(region), false) = (&range, &region, unsure) {
            // The line only calls what runs the op.
            let sought = match &callee {
                Some(callee) => Sought::Submodule(&callee.attribute),
                None => Sought::Op(&key.spelling),
            };
            let reach = if key.uses_constant { Reach::Names } else { Reach::Line };
            let trace = trace(&self.locator, file, region, class.as_ref(), sought, reach);
            range = trace.origin(&trace.found, key.ordinal);
            if let [(code, _)] = trace.found.as_slice() {
                place.related.push((spot_of(code, false), "runs here".to_owned()));
            }
        }
        let attribute = match &callee {
            Some(callee) => Some(&callee.attribute),
            None => key.attribute.as_ref(),
        };
        if let Some(attribute) = attribute {
            self.made_here(place, &lineage, attribute, set_here.as_ref(), &spot_of);
        }
        if let (None, None, Some(range)) = (attribute, &set_here, &range) {
            self.buffer_within(place, file, range, &lineage, &spot_of);
        }
        place.spot = Some(match range {
            Some(range) => spot_of(&own(range), current.stale),
            None => statement,
        });
    }

    /// A note on causes of which only one can be it.
    pub(super) fn several(&self, found: &[Candidate]) -> String {
        let places: Vec<_> = found.iter().take(4).map(|(code, _)| self.shown(code)).collect();
        format!(
            "set in one of {} places that this line leads to: {}",
            found.len(),
            places.join(", ")
        )
    }

    fn shown(&self, code: &Code) -> String {
        let at = code.file.position(code.range.start);
        let path = shown_path(code.file.path(), self.working_folder());
        format!("{path}:{}:{}", at.line, at.column)
    }
}

/// The user of a constant that leads to one of the other nodes of the hit; the first if several do, or
/// none within a short walk: a converter makes one constant of equal literals.
fn user_towards(function: &Function, constant: NodeId, nodes: &[NodeId]) -> Option<NodeId> {
    const FAR: usize = 32;
    let users = function.consumers(constant);
    let leads = |user: NodeId| {
        let mut seen = vec![user];
        let mut at = 0;
        while let Some(node) = seen.get(at).copied().filter(|_| at < FAR) {
            if nodes.contains(&node) {
                return true;
            }
            at += 1;
            for next in function.consumers(node) {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        false
    };
    match users.as_slice() {
        [] => None,
        [one] => Some(*one),
        several => several.iter().copied().find(|user| leads(*user)).or(several.first().copied()),
    }
}
