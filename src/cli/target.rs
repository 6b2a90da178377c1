//! Flags that several subcommands share: the target, where the source lies, which config file.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use crate::check::absolute;
use crate::config::{Finder, Given, Origin, Settings, values};
use crate::findings::source::SourceOptions;
use crate::readers::ReadOptions;
use crate::target::{Generation, OsVersion, Provider, Runtime, Unit};

/// What to check against, and where the source lies.
#[derive(Debug, Clone, Args)]
pub struct TargetArguments {
    /// Units to check against: neural-engine, gpu, cpu [default: neural-engine]
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = values::unit,
        value_name = "UNIT",
        help_heading = "Target"
    )]
    pub target: Vec<Unit>,
    /// Runtime that loads the graph: core-ai, core-ml, onnxruntime [default: by the format]
    #[arg(long, value_parser = values::runtime, value_name = "RUNTIME", help_heading = "Target")]
    pub runtime: Option<Runtime>,
    /// Chip (m1…m6, a14…a19) or Neural Engine generation (h13…h18) [default: h16, as in M4]
    #[arg(long, value_parser = values::chip, value_name = "CHIP", help_heading = "Target")]
    pub chip: Option<Generation>,
    /// ONNX Runtime's Core ML provider: form, release or both (neuralnetwork, 1.26, mlprogram@1.26)
    /// [default: mlprogram@1.32]
    #[arg(long, value_parser = values::provider, value_name = "PROVIDER", help_heading = "Target")]
    pub provider: Option<Provider>,
    /// OS version (27, 18.2, ios18, macos15) [default: 27 for core-ai, by the opset for core-ml]
    #[arg(long, value_parser = values::os, value_name = "VERSION", help_heading = "Target")]
    pub os: Option<OsVersion>,

    /// Folder of your source; files below it count as yours wherever they lie
    #[arg(long, value_name = "FOLDER", help_heading = "Source")]
    pub source_root: Vec<PathBuf>,
    /// Prefix of recorded paths and what it is on this machine
    #[arg(
        long,
        value_parser = values::path_map,
        value_name = "OLD=NEW",
        help_heading = "Source"
    )]
    pub path_map: Vec<(String, PathBuf)>,

    /// Config file for all inputs [default: the nearest anelint.toml or pyproject.toml above each]
    #[arg(long, value_name = "FILE", conflicts_with = "isolated", help_heading = "Config")]
    pub config: Option<PathBuf>,
    /// Look for no config file
    #[arg(long, help_heading = "Config")]
    pub isolated: bool,
    /// Read files into memory in place of mapping them
    #[arg(long, help_heading = "Files")]
    pub no_mmap: bool,
}

/// Value of a flag.
pub fn flag<T: Clone>(value: &Option<T>, name: &'static str) -> Option<Given<T>> {
    value.as_ref().map(|value| Given { value: value.clone(), origin: Origin::Flag(name) })
}

impl TargetArguments {
    /// What the flags set.
    pub fn settings(&self) -> Settings {
        let target = (!self.target.is_empty()).then(|| self.target.clone());
        Settings {
            target: flag(&target, "--target"),
            runtime: flag(&self.runtime, "--runtime"),
            chip: flag(&self.chip, "--chip"),
            provider: flag(&self.provider, "--provider"),
            os: flag(&self.os, "--os"),
            ..Settings::default()
        }
    }

    /// How files are read.
    pub fn read(&self) -> ReadOptions {
        ReadOptions { no_mmap: self.no_mmap }
    }

    /// Where config files are looked for: `--config`, `--isolated`, `ANELINT_CONFIG`, upward.
    pub fn finder(&self, working_folder: &Path) -> Result<Finder, Failure> {
        if self.isolated {
            return Ok(Finder::isolated(working_folder));
        }
        let variable = std::env::var_os("ANELINT_CONFIG").filter(|path| !path.is_empty());
        match self.config.clone().or(variable.map(PathBuf::from)) {
            Some(path) => Finder::fixed(working_folder, &path).map_err(Failure::from),
            None => Ok(Finder::new(working_folder)),
        }
    }

    /// Where source is looked for: the flags, then the config file.
    pub fn source(
        &self,
        working_folder: &Path,
        file: Option<&crate::config::File>,
    ) -> Result<SourceOptions, Failure> {
        for root in &self.source_root {
            if !root.is_dir() {
                return Err(Failure::new(format!(
                    "--source-root {}: no such folder",
                    root.display()
                ))
                .help("it names the folder that your Python source lies in"));
            }
        }
        let mut roots: Vec<PathBuf> =
            self.source_root.iter().map(|root| absolute(root, working_folder)).collect();
        let mut path_maps = self.path_map.clone();
        if let Some(file) = file {
            if roots.is_empty() {
                roots = file.source_roots.iter().map(|given| given.value.clone()).collect();
            }
            // The longest prefix wins, the first of equals: the flags.
            path_maps.extend(file.path_maps.iter().map(|given| given.value.clone()));
        }
        Ok(SourceOptions {
            working_folder: working_folder.to_owned(),
            project: file.map(|file| file.folder.clone()),
            roots,
            path_maps,
        })
    }
}

/// The working folder.
pub fn working_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working folder cannot be read: {error}")))
}
