//! Settings by environment variables: over config files, under the command line.

use super::Failure;
use crate::config::{Given, Origin, Settings, values};

/// What the environment sets. A variable that is empty sets nothing.
///
/// # Errors
/// A value that is none.
pub fn settings() -> Result<Settings, Failure> {
    let text = |name: &str| match std::env::var(name) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::new(format!("{name}: expected a text, found bytes that are no UTF-8")))
        }
    };
    fn one<T>(
        name: &'static str,
        text: Option<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<Given<T>>, Failure> {
        let Some(text) = text else { return Ok(None) };
        match parse(&text) {
            Ok(value) => Ok(Some(Given { value, origin: Origin::Environment(name) })),
            Err(message) => Err(Failure::new(format!("{name}={text}: {message}"))
                .help("unset the variable, or give it one of these values")),
        }
    }
    fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse).collect()
    }
    let selectors = |name: &'static str| -> Result<Option<Vec<Given<String>>>, Failure> {
        let given = one(name, text(name)?, |text| list(text, |part| Ok(part.to_owned())))?;
        Ok(given.map(|given| {
            let own = |value| Given { value, origin: Origin::Environment(name) };
            given.value.into_iter().map(own).collect()
        }))
    };
    Ok(Settings {
        target: one("ANELINT_TARGET", text("ANELINT_TARGET")?, |text| list(text, values::unit))?,
        runtime: one("ANELINT_RUNTIME", text("ANELINT_RUNTIME")?, values::runtime)?,
        chip: one("ANELINT_CHIP", text("ANELINT_CHIP")?, values::chip)?,
        provider: one("ANELINT_PROVIDER", text("ANELINT_PROVIDER")?, values::provider)?,
        os: one("ANELINT_OS", text("ANELINT_OS")?, values::os)?,
        select: selectors("ANELINT_SELECT")?,
        ignore: selectors("ANELINT_IGNORE")?.unwrap_or_default(),
        preview: one("ANELINT_PREVIEW", text("ANELINT_PREVIEW")?, values::switch)?,
        max_regions: one("ANELINT_MAX_REGIONS", text("ANELINT_MAX_REGIONS")?, values::count)?,
        fail_on: one("ANELINT_FAIL_ON", text("ANELINT_FAIL_ON")?, values::fail_on)?,
        min_sureness: one("ANELINT_MIN_SURENESS", text("ANELINT_MIN_SURENESS")?, values::sureness)?,
        ..Settings::default()
    })
}
