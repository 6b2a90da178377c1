//! `Hit`s → findings: places in the author's source, grouping, fingerprints.

pub mod python;
pub mod source;
