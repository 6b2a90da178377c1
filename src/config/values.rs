//! Readers of values as flags, environment variables and config files write them, each with what was
//! expected.

use std::fmt;
use std::path::PathBuf;

use crate::rules::schema::problem::hint;
use crate::rules::{Category, Severity, Sureness};
use crate::target::{Generation, OsVersion, Provider, Runtime, Unit};

/// The lowest severity that makes the exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Findings of this severity or worse fail the run.
    Severity(Severity),
    /// No finding does.
    Never,
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailOn::Severity(severity) => severity.fmt(f),
            FailOn::Never => f.write_str("never"),
        }
    }
}

/// A severity that the user gives a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Its findings have this severity.
    Severity(Severity),
    /// It is not reported.
    Off,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Severity(severity) => severity.fmt(f),
            Level::Off => f.write_str("off"),
        }
    }
}

/// `error`, `warning`, `advice`, `never`.
pub fn fail_on(text: &str) -> Result<FailOn, String> {
    match text {
        "never" => Ok(FailOn::Never),
        _ => Severity::parse(text)
            .map(FailOn::Severity)
            .ok_or_else(|| wrong(text, &["error", "warning", "advice", "never"])),
    }
}

/// `error`, `warning`, `advice`, `off`.
pub fn level(text: &str) -> Result<Level, String> {
    match text {
        "off" => Ok(Level::Off),
        _ => Severity::parse(text)
            .map(Level::Severity)
            .ok_or_else(|| wrong(text, &["error", "warning", "advice", "off"])),
    }
}

/// `official`, `measured`, `source`, `reported`, `reverse-engineered`, `folklore`.
pub fn sureness(text: &str) -> Result<Sureness, String> {
    let names: Vec<&str> = Sureness::ALL.iter().rev().map(|sureness| sureness.name()).collect();
    Sureness::parse(text).ok_or_else(|| wrong(text, &names))
}

/// `RULES=SEVERITY`.
pub fn severity_of(text: &str) -> Result<(String, Level), String> {
    match text.split_once('=') {
        Some((rules, severity)) if !rules.is_empty() => {
            level(severity).map(|level| (rules.to_owned(), level))
        }
        _ => Err("expected RULE=SEVERITY, as in ANE010=error".to_owned()),
    }
}

/// A whole number from 0.
pub fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected a whole number from 0".to_owned())
}

/// `true`, `false`, `1`, `0`.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("expected `true` or `false`".to_owned()),
    }
}

/// Names of categories.
pub fn categories() -> Vec<&'static str> {
    Category::ALL.iter().map(|category| category.name()).collect()
}

/// `neural-engine`, `gpu`, `cpu`.
pub fn unit(text: &str) -> Result<Unit, String> {
    let names: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name()).collect();
    Unit::parse(text).ok_or_else(|| wrong(text, &names))
}

/// `core-ai`, `core-ml`, `onnxruntime`.
pub fn runtime(text: &str) -> Result<Runtime, String> {
    let names: Vec<&str> = Runtime::ALL.iter().map(|runtime| runtime.name()).collect();
    Runtime::parse(text).ok_or_else(|| wrong(text, &names))
}

/// `h13` … `h18`, or the name of a chip.
pub fn chip(text: &str) -> Result<Generation, String> {
    Generation::parse(text).ok_or_else(|| {
        "expected a chip (m1…m6, a14…a19) or a Neural Engine generation (h13…h18)".to_owned()
    })
}

/// `neuralnetwork`, `1.26`, `mlprogram@1.26`.
pub fn provider(text: &str) -> Result<Provider, String> {
    Provider::parse(text).ok_or_else(|| {
        "expected mlprogram or neuralnetwork, a release such as 1.26, or both as in mlprogram@1.26"
            .to_owned()
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

/// What was expected, and what was probably meant.
fn wrong(text: &str, names: &[&str]) -> String {
    let meant = match hint(text, names) {
        meant if meant.contains("did you mean") => meant,
        _ => String::new(),
    };
    format!("expected one of: {}{meant}", names.join(", "))
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
