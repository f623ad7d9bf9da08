//! MySQL's SQL (MySQL documentation, chapter "Language Structure").

use longshore_source::sql::{Comments, Dialect, Kind, Markers, Names, Token};
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
        blanks: &[],
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

/// Whether a parameter stands in a table of VALUES: not in the rows of an INSERT.
pub(crate) fn binds_table_of_values(text: &str, escapes: bool) -> bool {
    let tokens = tokens(text, escapes);
    let (mut depth, mut is_insert) = (0, false);
    for (at, token) in tokens.iter().enumerate() {
        let is_called = tokens.get(at + 1).is_some_and(|next| next.is_mark("("));
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth == 0 && !is_called => {
                is_insert |= token.is_word("insert") || token.is_word("replace");
            }
            _ if token.is_word("values") => {
                let is_of_insert = depth == 0 && std::mem::take(&mut is_insert);
                if !is_of_insert && has_parameter_in_rows(&tokens[at + 1..]) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether one of the rows in parentheses that the tokens begin with has a parameter.
fn has_parameter_in_rows(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 0 && tokens.get(at + 1).is_some_and(|next| next.is_mark("(")) => {}
            _ if depth == 0 => return false,
            _ if token.kind == Kind::Parameter => return true,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    false
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
    fn tables_of_values() {
        for text in [
            "VALUES (?)",
            "WITH c AS (VALUES (1), (abs(?))) SELECT * FROM c",
            "INSERT INTO t SELECT * FROM (VALUES (?)) AS c",
            "SELECT replace(a, 'b', 'c') FROM t UNION VALUES (1, ?)",
            "SELECT 1 WHERE 1 IN (VALUES (?))",
        ] {
            assert!(binds_table_of_values(text, true), "{text}");
        }
        for text in [
            "INSERT INTO t (a) VALUES (?), (?) ON DUPLICATE KEY UPDATE a = VALUES(a) + ?, b = VALUES(b), c = (?)",
            "REPLACE t VALUES (?)",
            "SELECT * FROM (VALUES (1, 2)) AS c WHERE a = ?",
            "SELECT 'VALUES (?)', ?, `values` FROM t",
        ] {
            assert!(!binds_table_of_values(text, true), "{text}");
        }
    }

    #[test]
    fn settings_are_set() {
        assert!(is_setting("SET SESSION sql_mode = ''") && is_setting("SET @a = 1"));
        assert!(!is_setting("SET GLOBAL x = 1") && !is_setting("DELETE FROM t") && !is_setting(""));
    }
}
