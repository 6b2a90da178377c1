//! Which settings, and which rules, each input is checked with.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Failure, rule_files};
use crate::check::{CheckOptions, absolute};
use crate::cli::target::TargetArguments;
use crate::config::{
    ConfigError, Date, Finder, Given, InForce, Origin, Place, Problem, RuleFiles, Settings, today,
};
use crate::findings::PreparedRules;
use crate::rules::{Limits, RuleSet, Selection};

/// The layers above the config files, and what has been loaded.
pub struct Planner<'a> {
    arguments: &'a TargetArguments,
    working_folder: &'a Path,
    finder: Finder,
    environment: Settings,
    flags: Settings,
    today: Date,
    /// Rule sets by the user's rule files in them.
    sets: BTreeMap<Vec<RuleFiles>, (RuleSet, PreparedRules)>,
}

/// How one input is checked.
pub struct Plan {
    /// The settings in force.
    pub in_force: InForce,
    /// The same, as the checker takes them.
    pub options: CheckOptions,
    /// Which of the planner's rule sets.
    pub rules: Vec<RuleFiles>,
}

impl<'a> Planner<'a> {
    /// A planner; `flags` holds what the command line sets.
    pub fn new(
        arguments: &'a TargetArguments,
        flags: Settings,
        working_folder: &'a Path,
    ) -> Result<Planner<'a>, Failure> {
        Ok(Planner {
            arguments,
            working_folder,
            finder: arguments.finder(working_folder)?,
            environment: super::environment::settings()?,
            flags,
            today: today().map_err(Failure::new)?,
            sets: BTreeMap::new(),
        })
    }

    /// Today.
    pub fn today(&self) -> Date {
        self.today
    }

    /// Where config files are found.
    pub fn finder(&self) -> &Finder {
        &self.finder
    }

    /// What is in force for the model at `path`.
    pub fn in_force(&self, path: &Path) -> Result<InForce, Failure> {
        let path = absolute(path, self.working_folder);
        let file = self.finder.of(&path)?;
        if let Some(file) = &file
            && let Some(required) = &file.required_version
            && !required.value.allows(env!("CARGO_PKG_VERSION"))
            && let Origin::File(place) = &required.origin
        {
            let own = env!("CARGO_PKG_VERSION");
            let message = format!("this is anelint {own}; {} is required here", required.value);
            return Err(ConfigError::at(place, message).into());
        }
        Ok(InForce::new(file, &path, &self.environment, &self.flags))
    }

    /// Settings and rules for the model at `path`.
    pub fn plan(&mut self, path: &Path) -> Result<Plan, Failure> {
        let in_force = self.in_force(path)?;
        let given = &in_force.settings.rules;
        let rules: Vec<RuleFiles> = given.iter().map(|own| own.value.clone()).collect();
        if !self.sets.contains_key(&rules) {
            let loaded = rule_files::load_from(given, self.working_folder)?;
            self.sets.insert(rules.clone(), loaded);
        }
        if let Some((set, _)) = self.sets.get(&rules) {
            known_selectors(set, &in_force)?;
        }
        let settings = &in_force.settings;
        let options = CheckOptions {
            units: in_force.units(),
            runtime: settings.runtime.as_ref().map(|given| given.value),
            chip: settings.chip.as_ref().map(|given| given.value),
            provider: settings.provider.as_ref().map(|given| given.value),
            os: settings.os.as_ref().map(|given| given.value),
            selection: in_force.selection(),
            severities: settings.severity.iter().map(|given| given.value.clone()).collect(),
            min_sureness: settings.min_sureness.as_ref().map(|given| given.value),
            limits: Limits { max_regions: settings.max_regions.as_ref().map(|given| given.value) },
            model: in_force.model.clone(),
            source: self.arguments.source(self.working_folder, in_force.file.as_deref())?,
            read: self.arguments.read(),
            config: in_force.file.clone(),
            today: self.today,
        };
        Ok(Plan { in_force, options, rules })
    }

    /// The rules of a plan.
    pub fn rules(&self, plan: &Plan) -> Result<(&RuleSet, &PreparedRules), Failure> {
        let (set, prepared) = self.sets.get(&plan.rules).ok_or_else(|| {
            Failure::new("internal error, please report it: a plan without rules")
        })?;
        Ok((set, prepared))
    }
}

/// Every selector must name a rule; one that does not is shown where it stands.
fn known_selectors(set: &RuleSet, in_force: &InForce) -> Result<(), Failure> {
    let settings = &in_force.settings;
    let selection =
        [settings.select.as_deref().unwrap_or_default(), &settings.extend_select, &settings.ignore];
    let mut all: Vec<(&str, &Origin)> =
        selection.into_iter().flatten().map(|own| (own.value.as_str(), &own.origin)).collect();
    all.extend(settings.severity.iter().map(|own| (own.value.0.as_str(), &own.origin)));
    if let Some(file) = &in_force.file {
        let rules = file.suppress.iter().flat_map(|own| &own.rules);
        all.extend(rules.map(|own: &Given<String>| (own.value.as_str(), &own.origin)));
    }
    let mut wrong: Vec<(String, &Place)> = Vec::new();
    for (selector, origin) in all {
        let one = Selection { select: vec![selector.to_owned()], ..Selection::default() };
        let Err(error) = set.select(&one) else { continue };
        match origin {
            Origin::File(place) => wrong.push((error.to_string(), place)),
            Origin::Environment(name) | Origin::Flag(name) => {
                return Err(Failure::new(format!("{name}: {error}"))
                    .help("`anelint rules` lists the rules"));
            }
            Origin::Default => {}
        }
    }
    let Some((_, first)) = wrong.first() else { return Ok(()) };
    let source = first.source.clone();
    let problems = wrong
        .into_iter()
        .map(|(message, place)| Problem { span: place.span.clone(), message })
        .collect();
    Err(ConfigError { source, problems }.into())
}
