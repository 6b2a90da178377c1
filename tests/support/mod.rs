//! A user's project in a temporary folder, and the built binary run in it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with copies of test graphs and their source.
pub struct Project {
    dir: tempfile::TempDir,
}

/// A masked attention whose mask is made in a helper: a warning of TST001.
pub const HELPER: &[&str] = &["cases/masks.py", "cases/out/neginf_helper.pt2"];
/// Three linear layers: an error of TST002.
pub const LINEAR: &[&str] = &["cases/linear.py", "cases/out/linear_module_list.pt2"];

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Project {
    /// Copies files of `testdata` under the same names.
    pub fn with(files: &[&str]) -> Project {
        let project = Project { dir: tempfile::tempdir().unwrap() };
        for file in files {
            project.copy(file, file);
        }
        project
    }

    pub fn copy(&self, from: &str, to: &str) {
        let target = self.path(to);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(repository().join("testdata").join(from), target).unwrap();
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The binary in this folder, with no variable of ours set but a fixed day.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anelint"));
        command.current_dir(self.dir.path()).args(arguments);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ANELINT_")) {
            command.env_remove(name);
        }
        command.env("ANELINT_TODAY", "2027-01-15");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.command(arguments).output().unwrap())
    }

    /// `check` with the tests' rules only.
    pub fn check(&self, arguments: &[&str]) -> Ran {
        let rules = repository().join("tests/rules/*.yaml");
        let mut all = vec!["check", "--rules", rules.to_str().unwrap(), "--select", "TST"];
        all.extend(arguments);
        self.run(&all)
    }
}

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn new(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// Rule and severity of every finding.
    pub fn found(&self) -> Vec<String> {
        let report = self.json();
        let findings = report["findings"].as_array().unwrap().iter();
        findings
            .map(|own| {
                format!("{} {}", own["rule"].as_str().unwrap(), own["severity"].as_str().unwrap())
            })
            .collect()
    }
}
