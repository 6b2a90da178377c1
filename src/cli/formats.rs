//! Where the report of a check goes, and in which forms: one to standard output or a file, any number
//! besides.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Color, Failure};
use crate::report::{
    CheckReport, HostOptions, TextOptions, github_summary, output, write_concise, write_github,
    write_gitlab, write_html, write_json, write_json_lines, write_junit, write_sarif, write_text,
};
use crate::rules::RuleSet;

/// Arguments that say where the report goes.
#[derive(Debug, Args)]
pub struct FormatArguments {
    /// Output format
    #[arg(
        long,
        alias = "output-format",
        value_enum,
        default_value_t = Format::Text,
        env = "ANELINT_FORMAT",
        hide_env = true,
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    format: Format,
    /// Write the report to a file
    #[arg(
        short,
        long = "output-file",
        alias = "output",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,
    /// Write a report in another format to a file besides; may be given several times
    #[arg(
        long = "report",
        value_parser = report,
        value_name = "FORMAT=FILE",
        help_heading = "Output"
    )]
    reports: Vec<(Format, PathBuf)>,
}

/// A form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Snippets with carets, for people
    Text,
    /// One line a finding
    Concise,
    /// Version 1, see schemas/check.schema.json
    Json,
    /// The same, an object a line
    JsonLines,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub annotations, and a summary of the job
    Github,
    /// GitLab code quality
    Gitlab,
    /// JUnit XML
    Junit,
    /// One page with the map of each function
    Html,
}

/// `sarif=out.sarif`.
fn report(text: &str) -> Result<(Format, PathBuf), String> {
    let names = || {
        let names: Vec<String> = Format::value_variants()
            .iter()
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        names.join(", ")
    };
    let (format, file) = text
        .split_once('=')
        .ok_or_else(|| "expected FORMAT=FILE, as in sarif=out.sarif".to_owned())?;
    let format = Format::from_str(format, false)
        .map_err(|_| format!("no format is called `{format}`: {}", names()))?;
    match file {
        "" => Err("expected a file behind the `=`".to_owned()),
        file => Ok((format, PathBuf::from(file))),
    }
}

impl FormatArguments {
    /// Whether a format is asked for.
    pub fn has(&self, format: Format) -> bool {
        self.format == format || self.reports.iter().any(|(own, _)| *own == format)
    }

    /// Two reports in one file would be one report.
    ///
    /// # Errors
    /// If a file is named twice.
    pub fn check(&self) -> Result<(), Failure> {
        let files: Vec<&Path> = self
            .output
            .iter()
            .chain(self.reports.iter().map(|(_, file)| file))
            .map(PathBuf::as_path)
            .collect();
        for (at, file) in files.iter().enumerate() {
            if files[..at].contains(file) {
                return Err(Failure::new(format!("two reports go to {}", file.display()))
                    .help("give each --report a file of its own"));
            }
        }
        Ok(())
    }

    /// Writes every report that was asked for.
    ///
    /// # Errors
    /// If one cannot be made or written.
    pub fn write(
        &self,
        report: &CheckReport,
        sets: &[&RuleSet],
        text: TextOptions,
        color: Color,
    ) -> Result<(), Failure> {
        let for_file = TextOptions { color: color == Color::Always, ..text };
        for (format, file) in &self.reports {
            to_file(file, &made(report, sets, *format, for_file)?)?;
        }
        match &self.output {
            Some(file) => to_file(file, &made(report, sets, self.format, for_file)?)?,
            None => {
                let own = TextOptions { color: color.on_stdout(), ..text };
                output::to_stdout(&made(report, sets, self.format, own)?).map_err(|error| {
                    Failure::new(format!("the report cannot be written: {error}"))
                })?;
            }
        }
        if self.has(Format::Github) {
            write_summary(report)?;
        }
        Ok(())
    }
}

fn made(
    report: &CheckReport,
    sets: &[&RuleSet],
    format: Format,
    text: TextOptions,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let made: io::Result<()> = match format {
        Format::Text => write_text(report, text, &mut bytes),
        Format::Concise if report.statistics => write_text(report, text, &mut bytes),
        Format::Concise => write_concise(report, &mut bytes),
        Format::Json => write_json(report, &mut bytes),
        Format::JsonLines => write_json_lines(report, &mut bytes),
        Format::Sarif => write_sarif(report, sets, &host(report, "GITHUB_WORKSPACE"), &mut bytes),
        Format::Github => write_github(report, &host(report, "GITHUB_WORKSPACE"), &mut bytes),
        Format::Gitlab => write_gitlab(report, &host(report, "CI_PROJECT_DIR"), &mut bytes),
        Format::Html => write_html(report, sets, &mut bytes),
        Format::Junit => write_junit(report, &HostOptions::default(), &mut bytes),
    };
    made.map_err(|error| Failure::new(format!("the report cannot be made: {error}")))?;
    Ok(bytes)
}

/// Where the repository lies, as the host's variable has it.
fn host(report: &CheckReport, variable: &str) -> HostOptions {
    let root = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    HostOptions::new(&report.working_folder, root.as_deref())
}

fn to_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::to_file(path, bytes)
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}

/// Appends the summary of the job to the file that the runner names.
fn write_summary(report: &CheckReport) -> Result<(), Failure> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|value| !value.is_empty())
    else {
        return Ok(());
    };
    let path = PathBuf::from(path);
    let text = github_summary(report, &host(report, "GITHUB_WORKSPACE"));
    output::append(&path, text.as_bytes())
        .map_err(|error| Failure::new(format!("{} cannot be written: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_format_and_a_file() {
        assert_eq!(report("sarif=a=b.sarif"), Ok((Format::Sarif, PathBuf::from("a=b.sarif"))));
        assert_eq!(report("json-lines=x"), Ok((Format::JsonLines, PathBuf::from("x"))));
        assert!(report("sarif").is_err() && report("sarif=").is_err());
        assert!(report("xml=x").is_err_and(|error| error.contains("json-lines")));
    }
}
