//! A database's type as a caller writes it in `types=`.

use crate::{Error, Result};

/// A mark that opens a quoted name or text, and the one that closes it.
pub type Quotes = (char, char);

/// Refuses a text that is not one type, perhaps with constraints: it would be another column, or another statement. No
/// backslash, dollar sign or comment may be in it, so that no setting of the server makes it end elsewhere than it does
/// here. The error does not show the text: it may be another argument's, and a secret.
pub fn check_type(column: &str, text: &str, quotes: &[Quotes]) -> Result<()> {
    fault(text, quotes).map_or(Ok(()), |fault| {
        Err(Error::interface(format!("types[{column:?}] is not one type of a column: {fault}"))
            .with_hint("write what CREATE TABLE takes, such as \"varchar(20)\" or \"bigint default 5\""))
    })
}

fn fault(text: &str, quotes: &[Quotes]) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some("it is empty");
    }
    if text.contains(['\\', '\0']) {
        return Some("it holds a backslash or a zero byte");
    }
    let mut rest = text;
    let mut depth = 0_usize;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if ["--", "/*", "*/", "#"].iter().any(|mark| rest.starts_with(mark)) => {
                return Some("it holds a comment");
            }
            '$' => return Some("it holds a dollar sign"),
            ';' => return Some("it holds a semicolon"),
            ',' if depth == 0 => return Some("it holds a comma outside of parentheses"),
            '(' => {
                depth += 1;
                1
            }
            ')' if depth == 0 => return Some("it closes a parenthesis that it has not opened"),
            ')' => {
                depth -= 1;
                1
            }
            _ => match quotes.iter().find(|(open, _)| *open == first) {
                // A doubled quote closes one and opens the next.
                Some((_, close)) => match rest[1..].find(*close) {
                    Some(at) => at + 2,
                    None => return Some("it does not close a quote"),
                },
                None if first == '`' => return Some("it holds a backtick"),
                None => first.len_utf8(),
            },
        };
        rest = &rest[length..];
    }
    (depth > 0).then_some("it does not close a parenthesis")
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSTGRESQL: &[Quotes] = &[('\'', '\''), ('"', '"')];
    const SQLITE: &[Quotes] = &[('\'', '\''), ('"', '"'), ('`', '`'), ('[', ']')];

    #[test]
    fn one_type_is_one_type() {
        for text in [
            "int",
            "numeric(10, 2)",
            "timestamp with time zone",
            "int[][]",
            "harbour.\"Ki;nd\"",
            "text collate \"C\" default 'a;b,c)--'",
            "varchar(3) default 'it''s' check (a <> ');')",
            "enum('a','b') not null",
            "bigint check (id > 5 and id in (6, 7))",
            "größe",
        ] {
            assert_eq!(fault(text, POSTGRESQL), None, "{text}");
        }
        assert_eq!(fault("[my ; type] default `x,y`", SQLITE), None);
    }

    #[test]
    fn all_else_is_refused() {
        for text in [
            "",
            " \n",
            "int; DROP TABLE t",
            "int, b int",
            "int) ; --",
            "int)",
            "numeric(3",
            "int check (a; b)",
            "int -- no",
            "int /* no */",
            "int # no",
            "text default 'a",
            "text default 'a\\'",
            "text default $$a$$",
            "text default `a`",
            "int\0",
            "\"a",
        ] {
            assert!(fault(text, POSTGRESQL).is_some(), "{text}");
        }
        assert!(fault("[a]]; b", SQLITE).is_some());
        assert!(!check_type("a", "se;cret", SQLITE).unwrap_err().to_string().contains("cret"));
    }
}
