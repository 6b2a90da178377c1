//! Placement: which ops a unit can run (eligible), where the compiler would put them (predicted),
//! and how many regions that makes. Target knowledge is data in `rules/targets/`.
//!
//! Imports nothing of `rules`: the verdicts of rules with `effect: off-unit` are handed in.
