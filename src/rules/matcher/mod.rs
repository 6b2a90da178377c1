//! Matches one rule over one function.
//!
//! A plan is anchored: every candidate node, record or value is tried once. A pattern is a
//! conjunction; where it leaves a choice (which operand of two, which source of a flow) the solver
//! tries one after the other and goes back, in a fixed order, so that joins and `where` are judged
//! over every choice. Flows remember per value whether their source can be reached, so that no rule
//! is quadratic in the graph, and a step budget bounds what joins could cost on a hostile graph.

mod datum;
mod eval;
mod flow;
mod inspect;
mod render;
mod run;
mod scope;
mod solve;
mod whole;

pub(super) use run::{on_target, run};
pub(super) use scope::{Scope, Surroundings};
