//! How each op name of a file is lowered: looked up in the dialect map once, not per op.

use rustc_hash::FxHashMap;

use super::ir::{Module, OpName, Payload};
use crate::graph::{Attr, Name, Names, Op};
use crate::readers::dialect::{CORE_AI, Literal, Spelling};

/// What an op is to the lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A constant: becomes a node or an attribute of its users.
    Constant,
    /// Orders state access or describes debugging: holds no data.
    Drop,
    /// Ends a region: its operands are the region's results.
    Terminator,
    /// Reads a state.
    ReadState,
    /// Writes a state.
    WriteState,
    /// Calls a graph.
    Call,
    /// Has branches or a body.
    Control,
    /// A scatter whose combiner is a region.
    Scatter,
    /// Anything else.
    Plain,
}

/// One operand position.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Canonical name.
    pub name: Name,
    /// The same as text.
    pub text: &'static str,
    /// Whether the canonical op takes a tensor there.
    pub operand: bool,
    /// Whether the canonical op has a setting of that name.
    pub attribute: bool,
}

/// How an op name is lowered.
#[derive(Debug)]
pub struct Plan {
    /// What it is to the lowering.
    pub action: Action,
    /// The canonical op.
    pub op: Op,
    /// The name as the file has it: the stored one, in a text the printed one.
    pub spelling: Name,
    /// The authored name without its dialect, for node names.
    pub short: Name,
    /// Canonical names by position; `None` skips one.
    positions: Vec<Option<Position>>,
    /// Whether the last position repeats.
    variadic: bool,
    /// Attributes that the spelling itself sets.
    pub set: Vec<(Name, Attr)>,
}

impl Plan {
    /// The name of an operand position; a position past the known ones is an unnamed operand.
    pub fn position(&self, at: usize) -> Option<Position> {
        match self.positions.get(at) {
            Some(position) => *position,
            None if self.variadic => self.positions.last().copied().flatten(),
            None => None,
        }
    }

    fn of(names: &mut Names, name: &OpName<'_>, spelling: Option<&'static Spelling>) -> Plan {
        let authored: &str = &name.authored;
        let short = authored.rsplit('.').next().unwrap_or(authored);
        let mut plan = Plan {
            action: action(authored),
            op: spelling.map_or(Op::UNKNOWN, |spelling| spelling.op),
            spelling: names.intern(&name.stored),
            short: names.intern(short),
            positions: Vec::new(),
            variadic: false,
            set: Vec::new(),
        };
        let Some(spelling) = spelling else {
            let input = Position {
                name: names.intern("input"),
                text: "input",
                operand: true,
                attribute: false,
            };
            plan.positions.push(Some(input));
            plan.variadic = true;
            return plan;
        };
        let (list, variadic) = if spelling.operands.is_empty() {
            (spelling.op.operands(), spelling.op.is_variadic())
        } else {
            match spelling.operands.strip_suffix(&["…"]) {
                Some(list) => (list, true),
                None => (spelling.operands, false),
            }
        };
        plan.variadic = variadic;
        for &text in list {
            plan.positions.push((text != "_").then(|| Position {
                name: names.intern(text),
                text,
                operand: spelling.op.operands().contains(&text),
                attribute: spelling.op.attributes().contains(&text),
            }));
        }
        plan.set = attributes(names, spelling.set);
        plan
    }
}

/// Dialect literals as attributes.
pub fn attributes(names: &mut Names, list: &[(&'static str, Literal)]) -> Vec<(Name, Attr)> {
    list.iter()
        .map(|(name, value)| {
            let attr = match *value {
                Literal::Int(n) => Attr::Int(n),
                Literal::Float(x) => Attr::Float(x),
                Literal::Bool(b) => Attr::Bool(b),
                Literal::Text(text) => Attr::Text(names.intern(text)),
                Literal::Ints(list) => Attr::Ints(list.iter().map(|&n| Some(n)).collect()),
            };
            (names.intern(name), attr)
        })
        .collect()
}

fn action(authored: &str) -> Action {
    match authored {
        "coreai.constant" => Action::Constant,
        "coreai.create_token" | "coreai.join_token" | "coreai.target_spec" => Action::Drop,
        name if name.starts_with("debuginfo.") => Action::Drop,
        "coreai.output"
        | "coreai.yield"
        | "coreai.condition"
        | "udml.return"
        | "serialization.terminator" => Action::Terminator,
        "coreai.read_handle" => Action::ReadState,
        "coreai.write_handle" => Action::WriteState,
        "coreai.invoke" | "udml.call" => Action::Call,
        "coreai.if" | "coreai.while" | "coreai.isolated_group" => Action::Control,
        "coreai.scatter_nd" => Action::Scatter,
        _ => Action::Plain,
    }
}

/// The plans of a module's op names.
#[derive(Debug)]
pub struct Plans {
    by_name: Vec<Plan>,
    /// Spellings that depend on the op's word: `coreai.scan<sum>`.
    by_word: FxHashMap<(u32, Box<str>), Plan>,
}

impl Plans {
    /// Looks up every op name of a module, and every word that an op name is used with.
    pub fn of(module: &Module<'_>, names: &mut Names) -> Plans {
        let by_name: Vec<Plan> = module
            .op_names
            .iter()
            .map(|name| Plan::of(names, name, CORE_AI.find(&name.authored)))
            .collect();
        let mut by_word: FxHashMap<(u32, Box<str>), Plan> = FxHashMap::default();
        for graph in &module.graphs {
            for op in graph.regions.iter().flat_map(|region| &region.ops) {
                let Payload::Word(word) = &op.payload else { continue };
                let key = (op.name, Box::from(&**word));
                let Some(name) = module.op_names.get(op.name as usize) else { continue };
                if by_word.contains_key(&key) {
                    continue;
                }
                if let Some(spelling) = CORE_AI.find(&format!("{}<{word}>", name.authored)) {
                    by_word.insert(key, Plan::of(names, name, Some(spelling)));
                }
            }
        }
        Plans { by_name, by_word }
    }

    /// The plan of an op.
    pub fn get(&self, name: u32, payload: &Payload<'_>) -> &Plan {
        if let Payload::Word(word) = payload
            && !self.by_word.is_empty()
            && let Some(plan) = self.by_word.get(&(name, Box::from(&**word)))
        {
            return plan;
        }
        &self.by_name[name as usize]
    }
}
