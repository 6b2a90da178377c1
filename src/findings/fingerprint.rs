//! A name of a finding that survives line moves and exports anew.
//!
//! Made of the rule, the model's file stem, class and index-free path of the module, the canonical op
//! and the ordinal among equals; never of lines, node names or counts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// What a fingerprint is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Rule id.
    pub rule: String,
    /// File stem of the model.
    pub model: String,
    /// Class of the module.
    pub class: String,
    /// Path of the module without indices.
    pub module: String,
    /// Canonical op.
    pub op: String,
    /// What tells apart different faults at one place (a symbol's name).
    pub key: String,
}

impl Identity {
    /// 16 hex digits.
    pub fn fingerprint(&self, ordinal: usize) -> String {
        let mut hasher = Sha256::new();
        for part in [&self.rule, &self.model, &self.class, &self.module, &self.op, &self.key] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update((ordinal as u64).to_le_bytes());
        let mut hex = String::with_capacity(16);
        for byte in hasher.finalize().iter().take(8) {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            rule: "ANE004".into(),
            model: "decoder".into(),
            class: "m.Attention".into(),
            module: "layers.*.attn".into(),
            op: "softmax".into(),
            key: String::new(),
        }
    }

    #[test]
    fn it_depends_on_every_part_and_on_nothing_else() {
        let own = identity().fingerprint(0);
        assert_eq!(own.len(), 16);
        assert_eq!(own, identity().fingerprint(0));
        assert_ne!(own, identity().fingerprint(1));
        let other = Identity { op: "softma".into(), key: "x".into(), ..identity() };
        assert_ne!(own, other.fingerprint(0));
        let shifted = Identity { op: "softmax".into(), key: "x".into(), ..identity() };
        assert_ne!(own, shifted.fingerprint(0));
    }
}
