//! Python source as the findings see it: parsed by tree-sitter, which goes on after a syntax error.
//!
//! Nothing here runs, imports or evaluates Python; nothing here knows of graphs.

pub mod comments;
mod dotted;
mod file;
mod pattern;
mod scope;
mod walk;

pub use dotted::{Imports, dotted_text, named_children};
pub use file::{Position, PythonFile, Span, parse};
pub use pattern::{Bindings, Pattern, PatternError};
pub use scope::{
    Definition, assignments_to, assignments_to_attribute, class_definition, enclosing_class,
    enclosing_function, function_definition, local_function, method_definition, parameter,
    superclasses, top_level_assignments,
};
pub use walk::{Region, descendants, statement_at};
