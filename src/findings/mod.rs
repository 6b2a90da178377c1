//! Findings: hits grouped by place in the author's Python, with fingerprints.
