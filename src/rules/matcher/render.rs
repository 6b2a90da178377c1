//! Templates filled in for people.

use super::datum::Datum;
use super::solve::{Bound, Solver};
use crate::rules::hit::Binding;
use crate::rules::schema::template::{Format, Piece, Template};

impl Solver<'_> {
    /// A template with its holes filled; what is not known is `?`.
    pub(super) fn render(&self, template: &Template) -> String {
        let mut text = String::new();
        for piece in &template.0 {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Hole(expr, format) => text.push_str(&shown(&self.eval(expr), format)),
            }
        }
        text
    }

    /// Everything that is bound, for rewrites.
    pub(super) fn bindings(&self) -> Vec<Binding> {
        self.plan
            .slots
            .iter()
            .zip(&self.env)
            .filter_map(|(name, bound)| {
                let (text, node) = match bound.as_ref()? {
                    Bound::Item(subject) | Bound::Items(subject, _) => {
                        (self.shown_name(subject.node), Some(subject.node))
                    }
                    Bound::Datum(datum) => (shown(datum, &Format::Plain), None),
                };
                Some(Binding { name: name.clone(), text, node })
            })
            .collect()
    }
}

fn shown(datum: &Datum, format: &Format) -> String {
    match (datum, format) {
        (Datum::Number(n), Format::Bytes) => bytes(*n),
        (Datum::Number(n), Format::Percent) => format!("{:.0} %", n * 100.0),
        (Datum::Number(n), Format::Plain) => number(*n),
        (Datum::Number(n), Format::Plural(one, many)) => {
            format!("{} {}", number(*n), if *n == 1.0 { one } else { many })
        }
        (Datum::Text(text), _) => text.clone(),
        (Datum::List(list), _) if list.is_empty() => "scalar".to_owned(),
        (Datum::List(list), _) => {
            list.iter().map(|item| shown(item, &Format::Plain)).collect::<Vec<_>>().join("×")
        }
        (Datum::Missing | Datum::Unknown, Format::Plural(_, many)) => format!("? {many}"),
        (Datum::Missing | Datum::Unknown, _) => "?".to_owned(),
    }
}

fn number(n: f64) -> String {
    let magnitude = n.abs();
    if magnitude != 0.0 && n.is_finite() && !(1e-4..1e15).contains(&magnitude) {
        format!("{n:e}")
    } else if n.fract() != 0.0 && n.is_finite() {
        // Numbers that passed through f16 or f32 carry noise in the digits beyond.
        let text = format!("{n:.6}");
        text.trim_end_matches('0').to_owned()
    } else {
        format!("{n}")
    }
}

fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut n = n;
    let mut unit = 0;
    while n >= 1024.0 && unit + 1 < UNITS.len() {
        n /= 1024.0;
        unit += 1;
    }
    if n.fract() == 0.0 {
        format!("{n} {}", UNITS[unit])
    } else {
        format!("{n:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        let plain = |n| shown(&Datum::Number(n), &Format::Plain);
        assert_eq!(plain(-40000.0), "-40000");
        assert_eq!(plain(0.5), "0.5");
        assert_eq!(plain(1e-12), "1e-12");
        assert_eq!(plain(f64::NEG_INFINITY), "-inf");
        assert_eq!(plain(0.0), "0");
        assert_eq!(shown(&Datum::Number(1536.0), &Format::Bytes), "1.5 KiB");
        assert_eq!(shown(&Datum::Number(64.0), &Format::Bytes), "64 B");
        let ops = Format::Plural("op leaves".into(), "ops leave".into());
        assert_eq!(shown(&Datum::Number(1.0), &ops), "1 op leaves");
        assert_eq!(shown(&Datum::Number(0.0), &ops), "0 ops leave");
        assert_eq!(shown(&Datum::Unknown, &ops), "? ops leave");
        assert_eq!(shown(&Datum::Number(2_147_483_648.0), &Format::Bytes), "2 GiB");
    }
}
