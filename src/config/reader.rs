//! TOML → a checked [`File`]. Every mistake is found in one go.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobMatcher;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Key};
use super::settings::{RuleFiles, Settings};
use super::{
    ConfigError, Date, File, Given, Model, Origin, Override, PathGlobs, Place, Problem,
    Requirement, Source, Suppress, name_glob, values,
};
use crate::check::absolute;
use crate::rules::schema::problem::{list, nearest};

/// Larger files are no config that a person wrote.
const MAX_BYTES: u64 = 4 << 20;

type Spanned<T> = toml::Spanned<T>;
type Value<'t> = Spanned<DeValue<'t>>;

/// Reads a config file; `None` if it is a project file without our table.
///
/// # Errors
/// Every mistake in it.
pub fn read(path: &Path) -> Result<Option<File>, ConfigError> {
    let fail = |message: String| ConfigError::unreadable(path, message);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(fail(format!("larger than {} MiB: no config file", MAX_BYTES >> 20)));
        }
        Ok(_) => {}
        Err(error) => return Err(fail(error.to_string())),
    }
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    parse(path, text)
}

/// The same from a text.
///
/// # Errors
/// Every mistake in it.
pub fn parse(path: &Path, text: String) -> Result<Option<File>, ConfigError> {
    let project = path.file_name().is_some_and(|name| name == "pyproject.toml");
    let source = Arc::new(Source { path: path.to_owned(), text });
    let document = match DeTable::parse(&source.text) {
        Ok(document) => document,
        Err(_) if project && !source.text.contains("tool.anelint") => return Ok(None),
        Err(error) => {
            let problem = Problem {
                span: error.span().unwrap_or_default(),
                message: error.message().to_owned(),
            };
            return Err(ConfigError { source: Arc::clone(&source), problems: vec![problem] });
        }
    };
    let table = if project {
        let own = get(document.get_ref(), "tool")
            .and_then(|(_, tool)| tool.get_ref().as_table())
            .and_then(|tool| get(tool, "anelint"));
        match own.map(|(_, own)| (own, own.get_ref().as_table())) {
            None => return Ok(None),
            Some((_, Some(table))) => table,
            Some((own, None)) => {
                let found = own.get_ref().type_str();
                let message = format!("expected the table [tool.anelint], found {found}");
                let problem = Problem { span: own.span(), message };
                return Err(ConfigError { source: Arc::clone(&source), problems: vec![problem] });
            }
        }
    } else {
        document.get_ref()
    };
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let mut reader = Reader { source: Arc::clone(&source), folder, problems: Vec::new() };
    let file = reader.file(table);
    let mut problems = reader.problems;
    if problems.is_empty() {
        return Ok(Some(file));
    }
    problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    Err(ConfigError { source, problems })
}

/// A key and its value.
fn get<'a, 't>(
    table: &'a DeTable<'t>,
    name: &str,
) -> Option<(&'a Spanned<std::borrow::Cow<'t, str>>, &'a Value<'t>)> {
    table.iter().find(|(key, _)| key.get_ref() == name)
}

struct Reader {
    source: Arc<Source>,
    folder: PathBuf,
    problems: Vec<Problem>,
}

impl Reader {
    fn problem(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.problems.push(Problem { span, message: message.into() });
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place { source: Arc::clone(&self.source), span }
    }

    fn given<T>(&self, value: T, span: Range<usize>) -> Given<T> {
        Given { value, origin: Origin::File(self.place(span)) }
    }

    /// Reports keys that there are not, and misses those that must be there.
    fn known(&mut self, table: &DeTable<'_>, keys: &[Key], head: Option<Range<usize>>) {
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        for (key, _) in table.iter() {
            if names.contains(&key.get_ref().as_ref()) {
                continue;
            }
            let word = key.get_ref();
            let dashed = word.replace('_', "-");
            let meant = match nearest(&dashed, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys here are {}", list(&names)),
            };
            self.problem(key.span(), format!("unknown key `{word}`; {meant}"));
        }
        for key in keys.iter().filter(|key| key.required && get(table, key.name).is_none()) {
            let span = head.clone().unwrap_or_default();
            self.problem(
                span,
                format!("`{}` is missing; it would read {} = {}", key.name, key.name, key.example),
            );
        }
    }

    fn wrong(&mut self, value: &Value<'_>, expected: &str) {
        let found = value.get_ref().type_str();
        self.problem(value.span(), format!("expected {expected}, found {found}"));
    }

    /// A text, read by `parse`.
    fn word<T>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Given<T>> {
        let (_, value) = get(table, key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(value, expected);
            return None;
        };
        match parse(text) {
            Ok(read) => Some(self.given(read, value.span())),
            Err(message) => {
                self.problem(value.span(), format!("`{text}`: {message}"));
                None
            }
        }
    }

    /// A text or a list of texts, each read by `parse`; not an empty list.
    fn words<T>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Vec<Given<T>>> {
        let (_, value) = get(table, key)?;
        let items: Vec<&Value<'_>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        let mut read = Vec::new();
        for item in items {
            let Some(text) = item.get_ref().as_str() else {
                self.wrong(item, expected);
                continue;
            };
            match parse(text) {
                Ok(own) => read.push(self.given(own, item.span())),
                Err(message) => self.problem(item.span(), format!("`{text}`: {message}")),
            }
        }
        Some(read)
    }

    fn switch(&mut self, table: &DeTable<'_>, key: &str) -> Option<Given<bool>> {
        let (_, value) = get(table, key)?;
        match value.get_ref().as_bool() {
            Some(own) => Some(self.given(own, value.span())),
            None => {
                self.wrong(value, "`true` or `false`");
                None
            }
        }
    }

    fn count(&mut self, table: &DeTable<'_>, key: &str) -> Option<Given<u32>> {
        let (_, value) = get(table, key)?;
        let read = value
            .get_ref()
            .as_integer()
            .and_then(|own| u32::from_str_radix(own.as_str(), own.radix()).ok());
        match read {
            Some(own) => Some(self.given(own, value.span())),
            None => {
                let found = self.source.text.get(value.span()).unwrap_or("").to_owned();
                self.problem(
                    value.span(),
                    format!("expected a whole number from 0, found {found}"),
                );
                None
            }
        }
    }

    fn absolute(&self, path: &str) -> PathBuf {
        absolute(Path::new(path), &self.folder)
    }

    /// Texts that every selector is: checked against the rules when these are loaded.
    fn selectors(&mut self, table: &DeTable<'_>, key: &str) -> Option<Vec<Given<String>>> {
        self.words(
            table,
            key,
            "the id, name, category or id prefix of rules, or a list of such",
            |text| match text.is_empty() {
                true => Err("expected a rule".to_owned()),
                false => Ok(text.to_owned()),
            },
        )
    }

    /// Globs, with their patterns.
    fn path_globs(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
    ) -> Option<(PathGlobs, Vec<Given<String>>)> {
        let patterns = self.words(table, key, "a glob or a list of globs", |text| {
            Ok::<_, String>(text.to_owned())
        })?;
        match PathGlobs::new(patterns.iter().map(|given| given.value.as_str())) {
            Ok(globs) => Some((globs, patterns)),
            Err((at, message)) => {
                if let Some(Given { value, origin: Origin::File(place) }) = patterns.get(at) {
                    let (span, value) = (place.span.clone(), value.clone());
                    self.problem(span, format!("`{value}` is no glob: {message}"));
                }
                None
            }
        }
    }

    fn name_globs(&mut self, table: &DeTable<'_>, key: &str) -> Option<Vec<GlobMatcher>> {
        let globs = self.words(table, key, "a glob or a list of globs", |text| {
            name_glob(text).map_err(|error| format!("no glob: {error}"))
        })?;
        Some(globs.into_iter().map(|given| given.value).collect())
    }

    fn settings(&mut self, table: &DeTable<'_>) -> Settings {
        let target = self.words(table, "target", "a unit or a list of units", values::unit);
        let target = target.filter(|units| !units.is_empty()).and_then(|units| {
            let (_, value) = get(table, "target")?;
            let units = units.into_iter().map(|given| given.value).collect();
            Some(self.given(units, value.span()))
        });
        let rules = self
            .words(table, "rules", "a glob or a list of globs", |text| {
                Ok::<_, String>(text.to_owned())
            })
            .unwrap_or_default()
            .into_iter()
            .map(|given| Given {
                value: RuleFiles { pattern: given.value, folder: self.folder.clone() },
                origin: given.origin,
            })
            .collect();
        Settings {
            target,
            runtime: self.word(table, "runtime", "a runtime", values::runtime),
            chip: self.word(table, "chip", "a chip such as \"m4\" or \"a17\"", values::chip),
            provider: self.word(
                table,
                "provider",
                "a provider such as \"mlprogram@1.26\"",
                values::provider,
            ),
            os: self.os(table),
            select: self.selectors(table, "select"),
            extend_select: self.selectors(table, "extend-select").unwrap_or_default(),
            ignore: self.selectors(table, "ignore").unwrap_or_default(),
            preview: self.switch(table, "preview"),
            severity: self.severities(table),
            rules,
            max_regions: self.count(table, "max-regions"),
            fail_on: self.word(table, "fail-on", "a severity or \"never\"", values::fail_on),
            min_sureness: self.word(table, "min-sureness", "a sureness", values::sureness),
        }
    }

    /// `os = 27` is as good as `os = "27"`.
    fn os(&mut self, table: &DeTable<'_>) -> Option<Given<crate::target::OsVersion>> {
        let (_, value) = get(table, "os")?;
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => {
                self.wrong(value, "an OS version such as \"27\"");
                return None;
            }
        };
        match values::os(&text) {
            Ok(os) => Some(self.given(os, value.span())),
            Err(message) => {
                self.problem(value.span(), format!("`{text}`: {message}"));
                None
            }
        }
    }

    fn severities(&mut self, table: &DeTable<'_>) -> Vec<Given<(String, values::Level)>> {
        let Some((_, value)) = get(table, "severity") else { return Vec::new() };
        let Some(own) = value.get_ref().as_table() else {
            self.wrong(value, "a table such as {ANE010 = \"error\"}");
            return Vec::new();
        };
        let mut found: Vec<(usize, Given<(String, values::Level)>)> = Vec::new();
        for (key, level) in own.iter() {
            let Some(text) = level.get_ref().as_str() else {
                self.wrong(level, "a severity");
                continue;
            };
            match values::level(text) {
                Ok(read) => {
                    let at = key.span();
                    found.push((at.start, self.given((key.get_ref().to_string(), read), at)));
                }
                Err(message) => self.problem(level.span(), format!("`{text}`: {message}")),
            }
        }
        // In the order of the file, whatever the order of the map.
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, given)| given).collect()
    }

    /// The tables of a list, each with the place of its head.
    fn tables<'a, 't>(
        &mut self,
        table: &'a DeTable<'t>,
        key: &str,
        keys: &[Key],
    ) -> Vec<(&'a DeTable<'t>, Place)> {
        let Some((name, value)) = get(table, key) else { return Vec::new() };
        let expected = format!("a list of tables, [[{key}]]");
        let DeValue::Array(items) = value.get_ref() else {
            let found = value.get_ref().type_str();
            self.problem(name.span(), format!("expected {expected}, found {found}"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_table() {
                Some(own) => {
                    self.known(own, keys, Some(item.span()));
                    tables.push((own, self.place(item.span())));
                }
                None => self.wrong(item, &expected),
            }
        }
        tables
    }

    fn file(&mut self, table: &DeTable<'_>) -> File {
        self.known(table, keys::TOP, None);
        let text = |text: &str| Ok::<_, String>(text.to_owned());
        let (exclude, exclude_patterns) = self.path_globs(table, "exclude").unwrap_or_default();
        let baseline = self
            .word(table, "baseline", "a file name", text)
            .map(|given| Given { value: self.absolute(&given.value), origin: given.origin });
        let (source_roots, path_maps) = self.source_tables(table);
        File {
            source: Arc::clone(&self.source),
            folder: self.folder.clone(),
            required_version: self.word(table, "required-version", "a version", Requirement::parse),
            settings: self.settings(table),
            exclude,
            exclude_patterns,
            baseline,
            require_reason: self.switch(table, "require-reason"),
            source_roots,
            path_maps,
            models: self.models(table),
            overrides: self.overrides(table),
            suppress: self.suppressions(table),
        }
    }

    #[allow(clippy::type_complexity, reason = "two lists that one table holds")]
    fn source_tables(
        &mut self,
        table: &DeTable<'_>,
    ) -> (Vec<Given<PathBuf>>, Vec<Given<(String, PathBuf)>>) {
        let Some((_, value)) = get(table, "source") else { return Default::default() };
        let Some(own) = value.get_ref().as_table() else {
            self.wrong(value, "the table [source]");
            return Default::default();
        };
        self.known(own, keys::SOURCE, None);
        let mut roots = Vec::new();
        let texts = self.words(own, "roots", "a folder or a list of folders", |text| {
            Ok::<_, String>(text.to_owned())
        });
        for given in texts.unwrap_or_default() {
            let path = self.absolute(&given.value);
            if let (false, Origin::File(place)) = (path.is_dir(), &given.origin) {
                let span = place.span.clone();
                self.problem(span, format!("`{}`: no such folder", given.value));
            }
            roots.push(Given { value: path, origin: given.origin });
        }
        let mut maps = Vec::new();
        if let Some((_, value)) = get(own, "path-map") {
            match value.get_ref().as_table() {
                None => self.wrong(value, "a table such as {\"/build/project\" = \".\"}"),
                Some(pairs) => {
                    for (old, new) in pairs.iter() {
                        match new.get_ref().as_str() {
                            Some(text) => {
                                let pair = (old.get_ref().to_string(), self.absolute(text));
                                maps.push(self.given(pair, old.span()));
                            }
                            None => self.wrong(new, "a folder"),
                        }
                    }
                }
            }
        }
        (roots, maps)
    }

    fn models(&mut self, table: &DeTable<'_>) -> Vec<Model> {
        let text = |text: &str| match text.trim().is_empty() {
            true => Err("expected a text".to_owned()),
            false => Ok(text.to_owned()),
        };
        let mut models: Vec<Model> = Vec::new();
        for (own, place) in self.tables(table, "model", keys::MODEL) {
            let name = self.word(own, "name", "a name", text);
            let graph = self.word(own, "graph", "the path of a model", text);
            let export = self.word(own, "export", "a command", text).map(|given| given.value);
            let settings = self.settings(own);
            let (Some(name), Some(graph)) = (name, graph) else { continue };
            let path = self.absolute(&graph.value);
            for (given, twice) in [
                (&name, models.iter().any(|other| other.name == name.value)),
                (&graph, models.iter().any(|other| other.graph == path)),
            ] {
                if let (true, Origin::File(place)) = (twice, &given.origin) {
                    let message = format!("`{}` is another [[model]] already", given.value);
                    self.problem(place.span.clone(), message);
                }
            }
            models.push(Model { place, name: name.value, graph: path, export, settings });
        }
        models
    }

    fn overrides(&mut self, table: &DeTable<'_>) -> Vec<Override> {
        let mut overrides = Vec::new();
        for (own, place) in self.tables(table, "override", keys::OVERRIDE) {
            let paths = self.path_globs(own, "paths");
            let settings = self.settings(own);
            let Some((paths, _)) = paths else { continue };
            overrides.push(Override { place, paths, settings });
        }
        overrides
    }

    fn suppressions(&mut self, table: &DeTable<'_>) -> Vec<Suppress> {
        let mut found = Vec::new();
        for (own, place) in self.tables(table, "suppress", keys::SUPPRESS) {
            let rules = self.selectors(own, "rule").unwrap_or_default();
            let models = self.path_globs(own, "model");
            let reason =
                self.word(own, "reason", "a text", |text| Ok::<_, String>(text.trim().to_owned()));
            found.push(Suppress {
                place,
                rules,
                paths: self.path_globs(own, "path").map(|(globs, _)| globs),
                modules: self.name_globs(own, "module"),
                nodes: self.name_globs(own, "node"),
                model_names: models
                    .iter()
                    .flat_map(|(_, patterns)| patterns.iter().map(|given| given.value.clone()))
                    .collect(),
                models: models.map(|(globs, _)| globs),
                reason: reason.map(|given| given.value).filter(|reason| !reason.is_empty()),
                until: self.date(own, "until"),
            });
        }
        found
    }

    /// A date of TOML's own, or a text that reads like one.
    fn date(&mut self, table: &DeTable<'_>, key: &str) -> Option<Date> {
        let (_, value) = get(table, key)?;
        let date = match value.get_ref() {
            DeValue::Datetime(own) => {
                own.date.and_then(|date| Date::new(date.year, date.month, date.day))
            }
            DeValue::String(text) => Date::parse(text),
            _ => None,
        };
        if date.is_none() {
            self.problem(value.span(), "expected a day such as 2027-03-31");
        }
        date
    }
}
