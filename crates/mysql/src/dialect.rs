//! MySQL's SQL (MySQL documentation, chapter "Language Structure").

use longshore_source::sql::{Comments, Dialect, Markers, Names, Token};
use longshore_values::text::hex;
use sqlparser::ast::Statement;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

/// How a server reads a statement; `escapes` tells whether a backslash in a text escapes. Double quotes hold a name in some
/// SQL modes: a literal, for the scanner.
pub(crate) const fn dialect(escapes: bool) -> Dialect {
    Dialect {
        name_quotes: &[(b'`', b'`')],
        text_quotes: b"'\"",
        prefixes: &[("b", false), ("x", false), ("n", false)],
        backslash_escapes: escapes,
        dollar_quotes: false,
        comments: Comments::MySql,
        markers: Markers::Questions,
        operators: b"",
        names: Names::KeptWithDigits,
    }
}

/// All tokens but blanks and comments.
pub(crate) fn tokens(text: &str, escapes: bool) -> Vec<Token<'_>> {
    dialect(escapes).tokens(text)
}

/// A name in backticks.
pub(crate) fn quoted_name(name: &str) -> String {
    dialect(true).quoted_name(name)
}

/// A text as a literal, whatever the server takes backslashes and quotes for.
pub(crate) fn literal(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte) && !b"'\\".contains(&byte));
    if is_plain {
        return format!("'{text}'");
    }
    // Weaker than any column's collation, as every literal.
    format!("_utf8mb4 x'{}'", hex(text.as_bytes()))
}

/// Whether `text` is one SELECT over one table.
pub(crate) fn is_plain(text: &str) -> bool {
    longshore_source::sql::is_plain(&MySqlDialect {}, text)
}

/// Whether `text` does nothing but SET, and no user's variables, which other sessions have not.
pub(crate) fn is_setting(text: &str) -> bool {
    let parsed = Parser::parse_sql(&MySqlDialect {}, text);
    parsed.is_ok_and(|statements| {
        !statements.is_empty()
            && statements.iter().all(|statement| matches!(statement, Statement::Set(_)))
            && !text.to_ascii_lowercase().contains("global")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_quote_what_they_hold() {
        assert_eq!(literal("plain"), "'plain'");
        assert_eq!(literal("it's"), "_utf8mb4 x'69742773'");
    }

    #[test]
    fn settings_are_set() {
        assert!(is_setting("SET SESSION sql_mode = ''") && is_setting("SET @a = 1"));
        assert!(!is_setting("SET GLOBAL x = 1") && !is_setting("DELETE FROM t") && !is_setting(""));
    }
}
