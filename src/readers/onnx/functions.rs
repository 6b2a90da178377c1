//! Functions that the model brings along, and the opset versions that hold in a graph.
//!
//! A call is replaced by the function's nodes, as the runtime does before it plans: each call has
//! shapes of its own.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use rustc_hash::FxBuildHasher;

use super::wire::{Wire, proto};
use crate::graph::{Name, ProvenanceId};
use crate::readers::ReadError;

/// Functions inside functions; deeper than exporters nest.
pub(super) const DEPTH: usize = 32;

/// Nodes that inlining may make in all; a small file can ask for any number of them.
pub(super) const INLINED: usize = 1 << 18;

/// Opset versions by domain.
#[derive(Debug, Default)]
pub(super) struct Opsets(Vec<(String, i64)>);

impl Opsets {
    /// As imported.
    pub fn new(imports: &[proto::OpsetId]) -> Opsets {
        let domain = |id: &proto::OpsetId| plain_domain(&id.domain).to_owned();
        Opsets(imports.iter().map(|id| (domain(id), id.version)).collect())
    }

    /// The version of a domain; of the default domain an old one if nothing is said.
    pub fn version(&self, domain: &str) -> i64 {
        let domain = plain_domain(domain);
        self.0.iter().find(|(known, _)| known == domain).map_or(1, |(_, version)| *version)
    }

    /// The default domain's version as people write it (`opset20`); empty if none is imported.
    pub fn text(&self) -> String {
        let found = self.0.iter().find(|(known, _)| known.is_empty());
        found.map(|(_, version)| format!("opset{version}")).unwrap_or_default()
    }
}

/// `ai.onnx` is the default domain by its long name.
pub(super) fn plain_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// The functions of a model.
#[derive(Default)]
pub(super) struct Library {
    functions: HashMap<(String, String, String), Rc<Local>, FxBuildHasher>,
}

/// A function of the model.
pub(super) struct Local {
    pub function: proto::Function,
    pub opsets: Rc<Opsets>,
    /// Attributes with a value for calls that give none.
    pub defaults: Vec<proto::Attribute>,
}

impl Library {
    /// Decodes the functions; their nodes stay slices.
    ///
    /// # Errors
    /// [`ReadError`] if one cannot be decoded.
    pub fn read(wire: &Wire<'_>, stored: Vec<Bytes>) -> Result<Library, ReadError> {
        let mut library = Library::default();
        for bytes in stored {
            let function: proto::Function = wire.decode(bytes, "a function of the model")?;
            let mut defaults = Vec::new();
            for attribute in &function.attribute_proto {
                defaults.push(wire.decode(attribute.clone(), "a function's attribute")?);
            }
            let opsets = Rc::new(Opsets::new(&function.opset_import));
            let key = (
                plain_domain(&function.domain).to_owned(),
                function.name.clone(),
                function.overload.clone(),
            );
            library.functions.insert(key, Rc::new(Local { function, opsets, defaults }));
        }
        Ok(library)
    }

    /// The function that a node calls.
    pub fn find(&self, node: &proto::Node) -> Option<Rc<Local>> {
        if self.functions.is_empty() {
            return None;
        }
        let key =
            (plain_domain(&node.domain).to_owned(), node.op_type.clone(), node.overload.clone());
        self.functions.get(&key).cloned()
    }
}

/// What holds around the nodes of a graph or of an inlined function.
#[derive(Clone)]
pub(super) struct Environment {
    pub opsets: Rc<Opsets>,
    /// Stands before names inside an inlined function; empty in the model itself.
    pub prefix: String,
    /// Attributes that nodes refer to by name.
    pub attributes: Rc<Vec<proto::Attribute>>,
    /// Formal inputs that the call leaves out.
    pub absent: Rc<Vec<Name>>,
    /// Where the outermost call comes from, for nodes that do not say.
    pub caller: ProvenanceId,
    /// Calls around.
    pub depth: usize,
}

impl Environment {
    /// Of the model's own graph.
    pub fn of_model(opsets: Opsets) -> Environment {
        Environment {
            opsets: Rc::new(opsets),
            prefix: String::new(),
            attributes: Rc::default(),
            absent: Rc::default(),
            caller: ProvenanceId::NONE,
            depth: 0,
        }
    }

    /// A name as it is known outside of the function.
    pub fn name(&self, name: &str) -> String {
        if self.prefix.is_empty() || name.is_empty() {
            name.to_owned()
        } else {
            format!("{}{name}", self.prefix)
        }
    }
}
