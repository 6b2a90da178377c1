//! Settings in layers: nobody's defaults, the file's top level, its `[[override]]` tables in order, its
//! `[[model]]` table, the environment, the command line. The later layer wins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{FailOn, File, Given, Level};
use crate::rules::{Selection, Severity, Sureness};
use crate::target::{Generation, OsVersion, Provider, Runtime, Unit};

/// A glob of rule files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleFiles {
    /// The glob.
    pub pattern: String,
    /// The folder it is relative to.
    pub folder: PathBuf,
}

/// One layer: what it sets, and what it leaves to the layers below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Units to check against.
    pub target: Option<Given<Vec<Unit>>>,
    /// The runtime.
    pub runtime: Option<Given<Runtime>>,
    /// The chip's generation.
    pub chip: Option<Given<Generation>>,
    /// ONNX Runtime's Core ML provider.
    pub provider: Option<Given<Provider>>,
    /// The OS.
    pub os: Option<Given<OsVersion>>,
    /// Rules to run; starts afresh, without the `ignore` of the layers below.
    pub select: Option<Vec<Given<String>>>,
    /// Rules to run besides.
    pub extend_select: Vec<Given<String>>,
    /// Rules to leave out, besides.
    pub ignore: Vec<Given<String>>,
    /// Run rules on trial.
    pub preview: Option<Given<bool>>,
    /// Severities by selector, later ones over earlier ones that are as close.
    pub severity: Vec<Given<(String, Level)>>,
    /// The user's rule files.
    pub rules: Vec<Given<RuleFiles>>,
    /// Most regions of a function.
    pub max_regions: Option<Given<u32>>,
    /// Lowest severity that fails the run.
    pub fail_on: Option<Given<FailOn>>,
    /// Lowest sureness that is reported.
    pub min_sureness: Option<Given<Sureness>>,
}

/// What holds where nobody has set it.
#[derive(Debug)]
pub struct Defaults;

impl Defaults {
    /// Units to check against.
    pub const TARGET: &'static [Unit] = &[Unit::NeuralEngine];
    /// Lowest severity that fails the run.
    pub const FAIL_ON: FailOn = FailOn::Severity(Severity::Error);
}

impl Settings {
    /// Puts a layer over this one.
    pub fn put(&mut self, upper: &Settings) {
        fn over<T: Clone>(own: &mut Option<T>, upper: &Option<T>) {
            if upper.is_some() {
                own.clone_from(upper);
            }
        }
        over(&mut self.target, &upper.target);
        over(&mut self.runtime, &upper.runtime);
        over(&mut self.chip, &upper.chip);
        over(&mut self.provider, &upper.provider);
        over(&mut self.os, &upper.os);
        over(&mut self.preview, &upper.preview);
        over(&mut self.max_regions, &upper.max_regions);
        over(&mut self.fail_on, &upper.fail_on);
        over(&mut self.min_sureness, &upper.min_sureness);
        if upper.select.is_some() {
            self.select.clone_from(&upper.select);
            self.extend_select.clear();
            self.ignore.clear();
        }
        self.extend_select.extend_from_slice(&upper.extend_select);
        self.ignore.extend_from_slice(&upper.ignore);
        self.severity.extend_from_slice(&upper.severity);
        self.rules.extend_from_slice(&upper.rules);
    }
}

/// What holds for one input.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The nearest config file.
    pub file: Option<Arc<File>>,
    /// The name that the file gives the model.
    pub model: Option<String>,
    /// All layers in one.
    pub settings: Settings,
}

impl InForce {
    /// The settings for the model at `path`, absolute.
    pub fn new(
        file: Option<Arc<File>>,
        path: &Path,
        environment: &Settings,
        flags: &Settings,
    ) -> InForce {
        let mut settings = Settings::default();
        let mut name = None;
        if let Some(file) = &file {
            settings.put(&file.settings);
            for own in file.overrides.iter().filter(|own| own.paths.matches(path, &file.folder)) {
                settings.put(&own.settings);
            }
            if let Some(model) = file.model_of(path) {
                settings.put(&model.settings);
                name = Some(model.name.clone());
            }
        }
        settings.put(environment);
        settings.put(flags);
        InForce { file, model: name, settings }
    }

    /// Units to check against, each once.
    pub fn units(&self) -> Vec<Unit> {
        let given = self.settings.target.as_ref();
        let given = given.map_or(Defaults::TARGET, |given| given.value.as_slice());
        let mut units = Vec::new();
        for unit in given {
            if !units.contains(unit) {
                units.push(*unit);
            }
        }
        units
    }

    /// Which rules run.
    pub fn selection(&self) -> Selection {
        let texts = |list: &[Given<String>]| list.iter().map(|own| own.value.clone()).collect();
        Selection {
            select: self.settings.select.as_deref().map(texts).unwrap_or_default(),
            extend_select: texts(&self.settings.extend_select),
            ignore: texts(&self.settings.ignore),
            preview: self.settings.preview.as_ref().is_some_and(|given| given.value),
        }
    }

    /// Lowest severity that fails the run.
    pub fn fail_on(&self) -> FailOn {
        self.settings.fail_on.as_ref().map_or(Defaults::FAIL_ON, |given| given.value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::super::Origin;
    use super::*;

    fn texts(list: &[&str]) -> Vec<Given<String>> {
        list.iter().map(|text| Given::default((*text).to_owned())).collect()
    }

    #[test]
    fn a_selection_starts_afresh_and_what_is_ignored_adds_up() {
        let mut all = Settings { ignore: texts(&["ANE022"]), ..Settings::default() };
        all.put(&Settings { ignore: texts(&["ANE017"]), ..Settings::default() });
        assert_eq!(all.ignore, texts(&["ANE022", "ANE017"]));
        all.put(&Settings {
            select: Some(texts(&["ANE"])),
            ignore: texts(&["ANE001"]),
            ..Settings::default()
        });
        assert_eq!(all.select, Some(texts(&["ANE"])));
        assert_eq!(all.ignore, texts(&["ANE001"]));
    }

    #[test]
    fn the_command_line_is_over_the_environment() {
        let chip =
            |value, origin| Settings { chip: Some(Given { value, origin }), ..Settings::default() };
        let environment = chip(Generation::H13, Origin::Environment("ANELINT_CHIP"));
        let flags = chip(Generation::H17, Origin::Flag("--chip"));
        let path = Path::new("/a.pt2");
        let own = InForce::new(None, path, &environment, &flags).settings.chip.unwrap();
        assert_eq!((own.value, own.origin), (Generation::H17, Origin::Flag("--chip")));
        let own = InForce::new(None, path, &environment, &Settings::default());
        assert_eq!(own.settings.chip.unwrap().value, Generation::H13);
    }
}
