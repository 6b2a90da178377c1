//! Words of a model or source file inside Markdown: no markup, no row breaks.

use super::host::printable;

/// Longest text of a table's cell, in characters.
const LONGEST: usize = 600;

/// A text that Markdown shows as it is, on one line.
pub fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in clipped(&printable(text)).chars() {
        match c {
            '\n' | '\t' => safe.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A text as code, on one line, fit for a table's cell.
pub fn code(text: &str) -> String {
    let text = clipped(&printable(text)).replace(['\n', '\t'], " ").replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad =
        if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn clipped(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(text("a [b](c) **d**\n<img> |"), r"a \[b\](c) \*\*d\*\* \<img\> \|");
        assert_eq!(code("a`b|c"), "``a`b\\|c``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(text(&"x".repeat(5000)).chars().count(), LONGEST + 1);
    }
}
