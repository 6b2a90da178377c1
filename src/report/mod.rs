//! Reports: one file an output format.
