//! Days, as `until` names them. Proleptic Gregorian, UTC.

use std::fmt;

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

impl Date {
    /// The first day of the system's clock.
    pub const EPOCH: Date = Date { year: 1970, month: 1, day: 1 };

    /// Reads `2027-03-31`; `None` if there is no such day.
    pub fn parse(text: &str) -> Option<Date> {
        let mut parts = text.split('-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
            return None;
        }
        Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)
    }

    /// A day, if there is such a one.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(Date { year, month, day })
    }

    /// The day that a count of seconds since 1970-01-01 falls on.
    fn of_seconds(seconds: u64) -> Option<Date> {
        let mut days = seconds / 86_400;
        let mut year: u16 = 1970;
        let length = |year: u16| if Date::new(year, 2, 29).is_some() { 366 } else { 365 };
        while days >= length(year) {
            days -= length(year);
            year = year.checked_add(1)?;
        }
        (1..=12)
            .flat_map(|month| (1..=31).filter_map(move |day| Date::new(year, month, day)))
            .nth(usize::try_from(days).ok()?)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Today by the system's clock, or by `ANELINT_TODAY` where that is set: for runs that must not
/// change with the day.
///
/// # Errors
/// If the variable holds no day.
pub fn today() -> Result<Date, String> {
    if let Some(text) = std::env::var_os("ANELINT_TODAY") {
        let text = text.to_string_lossy().into_owned();
        return Date::parse(&text)
            .ok_or_else(|| format!("ANELINT_TODAY={text}: expected a day such as 2027-03-31"));
    }
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Date::of_seconds(seconds).ok_or_else(|| "the system's clock is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(Date::parse("2027-03-31").unwrap().to_string(), "2027-03-31");
        assert!(Date::parse("2028-02-29").is_some());
        for wrong in ["2027-02-29", "2100-02-29", "2027-13-01", "2027-3-1", "soon", "2027-03-31-01"]
        {
            assert_eq!(Date::parse(wrong), None, "{wrong}");
        }
        assert!(Date::parse("2026-12-31") < Date::parse("2027-01-01"));
    }

    #[test]
    fn seconds_fall_on_days() {
        let at = |seconds| Date::of_seconds(seconds).unwrap().to_string();
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(951_782_400), "2000-02-29");
        assert_eq!(at(1_735_689_599), "2024-12-31");
        assert_eq!(at(1_735_689_600), "2025-01-01");
    }
}
