//! Readers of argument values, each with what was expected.

use std::path::PathBuf;

use crate::target::{Generation, OsVersion, Runtime, Unit};

/// `neural-engine`, `gpu`, `cpu`.
pub fn unit(text: &str) -> Result<Unit, String> {
    Unit::parse(text).ok_or_else(|| expected(Unit::ALL.iter().map(|unit| unit.name())))
}

/// `core-ai`, `core-ml`, `onnxruntime`.
pub fn runtime(text: &str) -> Result<Runtime, String> {
    Runtime::parse(text).ok_or_else(|| expected(Runtime::ALL.iter().map(|runtime| runtime.name())))
}

/// `h13` … `h18`, or the name of a chip.
pub fn chip(text: &str) -> Result<Generation, String> {
    Generation::parse(text).ok_or_else(|| {
        "expected a chip (m1…m6, a14…a19) or a Neural Engine generation (h13…h18)".to_owned()
    })
}

/// `27`, `18.2`, `ios18`, `macos15`.
pub fn os(text: &str) -> Result<OsVersion, String> {
    let fail = || "expected an OS version such as 27, 18.2, ios18 or macos15".to_owned();
    let lower = text.to_ascii_lowercase();
    let (mac, number) = match lower.strip_prefix("macos") {
        Some(number) => (true, number),
        None => (false, lower.strip_prefix("ios").unwrap_or(&lower)),
    };
    let number = number.trim_start_matches(['-', ' ']);
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    let major: u16 = major.parse().map_err(|_| fail())?;
    let minor: u16 = minor.parse().map_err(|_| fail())?;
    // macOS 11…15 came with iOS 14…18; from 26 on the numbers are the same.
    let major = if mac && (11..=15).contains(&major) { major + 3 } else { major };
    if (11..=99).contains(&major) { Ok(OsVersion { major, minor }) } else { Err(fail()) }
}

/// `OLD=NEW`.
pub fn path_map(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => {
            Ok((old.to_owned(), PathBuf::from(new)))
        }
        _ => Err("expected OLD=NEW, a recorded prefix and what it is here".to_owned()),
    }
}

fn expected(names: impl Iterator<Item = &'static str>) -> String {
    format!("expected one of: {}", names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_versions_in_every_spelling() {
        let at = |text| os(text).map(|os| (os.major, os.minor));
        assert_eq!(at("27"), Ok((27, 0)));
        assert_eq!(at("iOS18.2"), Ok((18, 2)));
        assert_eq!(at("macos15"), Ok((18, 0)));
        assert_eq!(at("macOS 26.1"), Ok((26, 1)));
        assert!(at("3").is_err());
        assert!(at("soon").is_err());
        assert!(at("18.x").is_err());
    }

    #[test]
    fn a_path_map_has_two_sides() {
        assert_eq!(path_map("/a=b"), Ok(("/a".to_owned(), PathBuf::from("b"))));
        assert!(path_map("/a").is_err());
        assert!(path_map("=b").is_err());
    }
}
