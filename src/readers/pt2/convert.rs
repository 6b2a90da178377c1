//! A stored node's arguments under canonical names: tensors become operands, settings attributes,
//! and a Python number that stands where the canonical op has an operand becomes a constant.
//!
//! Nothing here knows shapes: what needs them is put right in `settle`, once the graph is whole.

use super::argument::{Argument, SymArgument};
use super::builder::{Builder, Given};
use crate::graph::{Attr, DType, DraftNode, Name, Op};
use crate::readers::dialect::{ATEN, Literal, Spelling};

/// What is known of an op as stored.
#[derive(Debug, Clone)]
pub struct Target {
    /// The op's name without `torch.ops.`.
    pub spelling: Name,
    /// Its entry in the dialect map.
    pub entry: Option<&'static Spelling>,
    /// Whether it writes into its first argument.
    pub in_place: bool,
    /// Whether it wraps another operator (`auto_functionalized`).
    pub wrapper: bool,
    /// Whether it is an externalised module (`coreai_torch_ext.…`).
    pub module: bool,
    /// Arguments met so far: stored name → canonical name, and what it may be.
    args: Vec<(Name, Name, Role)>,
}

/// What a canonical name may be for an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Role {
    operand: bool,
    attribute: bool,
}

impl Role {
    /// An argument that has no canonical name.
    const RAW: Role = Role { operand: false, attribute: false };
}

/// Whether a spelling (`aten.add_.Tensor`) writes in place: its name ends in one underscore.
fn writes_in_place(spelling: &str) -> bool {
    let mut parts = spelling.split('.');
    let (Some(namespace), Some(name)) = (parts.next(), parts.next()) else { return false };
    if namespace != "aten" {
        return false;
    }
    match name.strip_prefix("__i") {
        // `__iand__`, not `__index__`-like names, which aten does not have.
        Some(_) => name.ends_with("__"),
        None => name.ends_with('_') && !name.ends_with("__"),
    }
}

impl Builder {
    /// Learns what the dialect map says of an op, once.
    pub(super) fn learn(&mut self, target: Name) -> Result<(), String> {
        if self.targets.contains_key(&target) {
            return Ok(());
        }
        let stored = self.program.names.get(target);
        if stored.is_empty() {
            return Err("a node has an empty `target`".into());
        }
        let spelling = stored.strip_prefix("torch.ops.").unwrap_or(stored).to_owned();
        let known = Target {
            entry: ATEN.find(&spelling),
            in_place: writes_in_place(&spelling),
            wrapper: spelling.starts_with("higher_order.auto_functionalized"),
            module: spelling.starts_with("coreai_torch_ext."),
            spelling: self.program.names.intern(&spelling),
            args: Vec::new(),
        };
        self.targets.insert(target, known);
        Ok(())
    }

    /// Fills op, spelling, operands and attributes of `node`; says whether it writes in place.
    pub(super) fn convert(&mut self, given: &mut Given, node: &mut DraftNode) -> bool {
        let mut target = given.target;
        if self.targets.get(&target).is_some_and(|known| known.wrapper) {
            // The wrapped operator is what runs; the wrapper only says that its writes are values.
            let wrapped = given.inputs.iter().find_map(|(_, argument)| match argument {
                Argument::Operator(name) => Some(*name),
                _ => None,
            });
            if let Some(wrapped) = wrapped
                && self.learn(wrapped).is_ok()
            {
                target = wrapped;
            }
        }
        let Some(known) = self.targets.get(&target) else { return false };
        node.spelling = known.spelling;
        let (mut entry, in_place) = (known.entry, known.in_place && target == given.target);
        node.op = entry.map_or(Op::UNKNOWN, |entry| entry.op);
        if known.module {
            node.op = self.module_op(given);
            entry = None;
        }
        let count: usize = given.inputs.len();
        node.operands = Vec::with_capacity(count);
        node.attributes = Vec::with_capacity(count);
        let mut position = 0;
        if target != given.target {
            self.unwrap_bases(given);
        }
        for (stored, argument) in given.inputs.drain(..) {
            if matches!(argument, Argument::None | Argument::Other | Argument::Operator(_)) {
                continue;
            }
            let (canonical, role) = if stored.is_empty() || entry.is_none() {
                let place = self.by_position(node.op, &mut position, stored, &argument);
                (place, Role { operand: true, attribute: false })
            } else {
                self.canonical(target, stored)
            };
            self.argument(node, canonical, role, argument);
        }
        if let Some(entry) = entry {
            self.defaults(node, entry);
            if matches!(entry.op, Op::FULL | Op::FULL_LIKE) {
                self.fill(node);
            }
        }
        in_place
    }

    /// A wrapper names the tensors that are written by their place in a list of bases
    /// (`_cache_base_index: 0`): puts the tensors themselves under their own names.
    fn unwrap_bases(&mut self, given: &mut Given) {
        let names = &mut self.program.names;
        let bases = given.inputs.iter().position(|(name, _)| names.get(*name) == "_all_bases");
        let Some(bases) = bases else { return };
        let Argument::Tensors(list) = given.inputs.swap_remove(bases).1 else { return };
        for (stored, argument) in &mut given.inputs {
            let own = names
                .get(*stored)
                .strip_prefix('_')
                .and_then(|name| name.strip_suffix("_base_index"))
                .map(str::to_owned);
            let (Some(own), Argument::Int(at)) = (own, &*argument) else { continue };
            let base = usize::try_from(*at).ok().and_then(|at| list.get(at).copied().flatten());
            if let Some(base) = base {
                *stored = names.intern(&own);
                *argument = Argument::Tensor(base);
            }
        }
    }

    /// The canonical name of a stored argument.
    fn canonical(&mut self, target: Name, stored: Name) -> (Name, Role) {
        let Some(known) = self.targets.get_mut(&target) else { return (stored, Role::RAW) };
        if let Some(&(_, canonical, role)) = known.args.iter().find(|(name, ..)| *name == stored) {
            return (canonical, role);
        }
        let names = &mut self.program.names;
        let found = known.entry.and_then(|entry| {
            let canonical = entry.canonical(names.get(stored))?;
            let role = Role {
                operand: entry.op.operands().contains(&canonical),
                attribute: entry.op.attributes().contains(&canonical),
            };
            Some((canonical.to_owned(), role))
        });
        let (canonical, role) = match found {
            Some((text, role)) => (names.intern(&text), role),
            None => (stored, Role::RAW),
        };
        known.args.push((stored, canonical, role));
        (canonical, role)
    }

    /// The name of an argument of an op that names none (higher-order ops, modules, unknown ops):
    /// tensors by position, the rest under their own name.
    fn by_position(
        &mut self,
        op: Op,
        position: &mut usize,
        stored: Name,
        argument: &Argument,
    ) -> Name {
        let tensors = match argument {
            Argument::Tensor(_) | Argument::Sym(..) => 1,
            Argument::Tensors(list) => list.len(),
            _ => return stored,
        };
        let names = op.operands();
        let name = names.get(*position).or(names.last()).copied().unwrap_or("input");
        *position += tensors;
        self.program.names.intern(name)
    }

    fn argument(&mut self, node: &mut DraftNode, name: Name, role: Role, argument: Argument) {
        match argument {
            Argument::None | Argument::Other | Argument::Operator(_) => {}
            Argument::Tensor(value) => node.operands.push((name, self.operand(value))),
            Argument::Tensors(list) => {
                // `x[:, i]` leaves axes out: which ones are given is kept.
                if matches!(node.op, Op::INDEX | Op::INDEX_PUT) && name == self.words.indices {
                    let axes = list
                        .iter()
                        .enumerate()
                        .filter(|(_, value)| value.is_some())
                        .map(|(axis, _)| Some(axis as i64))
                        .collect();
                    node.attributes.push((self.words.axes, Attr::Ints(axes)));
                }
                for value in list.into_iter().flatten() {
                    node.operands.push((name, self.operand(value)));
                }
            }
            Argument::Int(n) | Argument::Sym(SymArgument::Int(n), _) => {
                self.number(node, name, role, DType::I64, n as f64, Attr::Int(n));
            }
            Argument::Float(x) => self.number(node, name, role, DType::F32, x, Attr::Float(x)),
            Argument::Bool(b) => {
                self.number(node, name, role, DType::Bool, f64::from(u8::from(b)), Attr::Bool(b));
            }
            Argument::Sym(SymArgument::Name(value), _) => {
                node.operands.push((name, self.operand(value)));
                if role.attribute {
                    node.attributes.push((name, Attr::Dynamic));
                }
            }
            Argument::Syms(list) => {
                let ints = list
                    .iter()
                    .map(|size| match size {
                        SymArgument::Int(n) => Some(*n),
                        SymArgument::Name(_) => None,
                    })
                    .collect();
                node.attributes.push((name, Attr::Ints(ints)));
                for size in list {
                    if let SymArgument::Name(value) = size {
                        node.operands.push((name, self.operand(value)));
                    }
                }
            }
            Argument::Ints(list) => {
                let ints = list.into_iter().map(Some).collect();
                node.attributes.push((name, Attr::Ints(ints)));
            }
            Argument::Floats(list) => node.attributes.push((name, Attr::Floats(list.into()))),
            Argument::Text(text) => node.attributes.push((name, Attr::Text(text))),
            Argument::DType(dtype) => node.attributes.push((name, Attr::DType(dtype))),
            Argument::Graph(id, _) => node.bodies.push(id),
        }
    }

    /// A Python number: a setting where the op has one of that name, else an operand, else (no
    /// canonical name) kept for `settle`.
    fn number(
        &mut self,
        node: &mut DraftNode,
        name: Name,
        role: Role,
        dtype: DType,
        value: f64,
        attr: Attr,
    ) {
        if role.operand && !role.attribute && !name.is_empty() && node.op != Op::UNKNOWN {
            let literal = self.literal(node, dtype, value);
            node.operands.push((name, literal));
        } else {
            node.attributes.push((name, attr));
        }
    }

    /// The value that the name of a creation op says (`ones_like`).
    fn fill(&mut self, node: &mut DraftNode) {
        if node.operand(self.words.value).is_some() {
            return;
        }
        let spelling = self.program.names.get(node.spelling);
        let value = match spelling.split('.').nth(1).map(|name| name.trim_end_matches('_')) {
            Some("ones" | "new_ones" | "ones_like") => 1.0,
            Some("zeros" | "new_zeros" | "zeros_like" | "zero") => 0.0,
            // `empty` has none.
            _ => return,
        };
        let literal = self.literal(node, DType::F32, value);
        node.operands.push((self.words.value, literal));
    }

    fn defaults(&mut self, node: &mut DraftNode, entry: &'static Spelling) {
        for (from, (name, value)) in entry
            .set
            .iter()
            .map(|pair| (true, pair))
            .chain(entry.defaults.iter().map(|pair| (false, pair)))
        {
            let name_id = self.program.names.intern(name);
            let given = node.operand(name_id).is_some() || node.attribute(name_id).is_some();
            if given && !from {
                continue;
            }
            let role = Role {
                operand: entry.op.operands().contains(name),
                attribute: entry.op.attributes().contains(name),
            };
            match *value {
                Literal::Int(n) => {
                    self.number(node, name_id, role, DType::I64, n as f64, Attr::Int(n))
                }
                Literal::Float(x) => {
                    self.number(node, name_id, role, DType::F32, x, Attr::Float(x))
                }
                Literal::Bool(b) => {
                    let value = f64::from(u8::from(b));
                    self.number(node, name_id, role, DType::Bool, value, Attr::Bool(b));
                }
                Literal::Text(text) => {
                    let text = self.program.names.intern(text);
                    node.attributes.push((name_id, Attr::Text(text)));
                }
                Literal::Ints(list) => {
                    let ints = list.iter().map(|&n| Some(n)).collect();
                    node.attributes.push((name_id, Attr::Ints(ints)));
                }
            }
        }
    }

    /// The op that an externalised module stands for, by its class: the file holds no body.
    fn module_op(&self, given: &Given) -> Op {
        let module = self.program.sources.get_module(given.module);
        let class = self.program.names.get(module.class);
        let class = class.rsplit('.').next().unwrap_or(class);
        let spelled: String = class.to_ascii_lowercase().chars().filter(|c| *c != '_').collect();
        let has = |part: &str| spelled.contains(part);
        if has("rmsnorm") {
            Op::RMS_NORM
        } else if has("layernorm") {
            Op::LAYER_NORM
        } else if has("rope") || has("rotary") {
            Op::ROPE
        } else if has("sdpa") || has("scaleddotproductattention") {
            Op::SDPA
        } else if has("gathermm") || has("gathermatmul") {
            Op::GATHER_MATMUL
        } else {
            Op::UNKNOWN
        }
    }
}
