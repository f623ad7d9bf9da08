//! SQLite's SQL (sqlite.org/lang.html).

pub(crate) use longshore_source::sql::SQLITE as DIALECT;
use longshore_source::sql::{OneTable, Token};
use sqlparser::dialect::SQLiteDialect;

/// All tokens but blanks and comments.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    DIALECT.tokens(text)
}

/// A name in double quotes.
pub(crate) fn quoted_name(name: &str) -> String {
    DIALECT.quoted_name(name)
}

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The first word of a statement, in capitals.
pub(crate) fn first_word(text: &str) -> String {
    tokens(text).first().map(|token| token.text.to_ascii_uppercase()).unwrap_or_default()
}

/// Whether nothing but blanks, comments and semicolons is in `text`.
pub(crate) fn rest_is_empty(text: &str) -> bool {
    tokens(text).iter().all(|token| token.is_mark(";"))
}

/// PRAGMAs that set something of a connection, and nothing of the file.
const SETTINGS: &str = "busy_timeout cache_size cache_spill case_sensitive_like hard_heap_limit query_only \
                        recursive_triggers reverse_unordered_selects soft_heap_limit temp_store threads";

/// Whether `text` only sets something of a connection.
pub(crate) fn is_setting(text: &str) -> bool {
    let tokens = tokens(text);
    let statements = tokens.split(|token| token.is_mark(";")).filter(|tokens| !tokens.is_empty());
    let mut statements = statements.peekable();
    let is_pragma = |tokens: &[Token<'_>]| match tokens {
        [pragma, name, ..] => {
            pragma.is_word("pragma") && SETTINGS.split(' ').any(|setting| name.is_word(setting))
        }
        _ => false,
    };
    statements.peek().is_some() && statements.all(is_pragma)
}

/// The one table that `text` reads, in itself and nowhere else, if it does nothing with its rows together.
pub(crate) fn one_table(text: &str) -> Option<OneTable<'_>> {
    let found = OneTable::parse(&DIALECT, &SQLiteDialect {}, text)?;
    let is_nested = tokens(text).iter().filter(|token| token.is_word("select")).count() != 1;
    (!is_nested && found.path.len() <= 2).then_some(found)
}

/// Whether `text` reads one table, so that a column that is NOT NULL there is never NULL here. An aggregate over no rows
/// has a row of NULLs.
pub(crate) fn is_one_table(text: &str) -> bool {
    one_table(text).is_some_and(|table| calls(table.head()).is_empty())
}

/// The names that stand before a parenthesis, in lower case: functions, and keywords such as IN.
pub(crate) fn calls(text: &str) -> Vec<String> {
    DIALECT.calls(&tokens(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_is_not_a_single_table() {
        assert!(one_table("SELECT * FROM main.[T x] WHERE a = 1").is_some());
        for text in [
            "SELECT * FROM json_each('[]')",
            "SELECT (SELECT 1 FROM u) FROM t",
            "SELECT * FROM t WHERE a IN (SELECT 1)",
            "SELECT * FROM t INDEXED BY i",
        ] {
            assert!(one_table(text).is_none(), "{text}");
        }
    }

    #[test]
    fn promises_hold_for_rows_of_one_table() {
        assert!(is_one_table("SELECT a, b + 1 FROM t WHERE c IN (1)"));
        assert!(!is_one_table("SELECT a, max(b) FROM t"));
        assert!(!is_one_table("SELECT * FROM t LEFT JOIN u"));
    }

    #[test]
    fn settings_change_no_file() {
        assert!(is_setting("PRAGMA cache_size = 5; pragma temp_store=memory;"));
        for other in ["PRAGMA journal_mode = wal", "PRAGMA cache_size = 1; DELETE FROM t", "SELECT 1", ""] {
            assert!(!is_setting(other), "{other}");
        }
    }
}
