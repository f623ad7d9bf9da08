//! PostgreSQL's SQL (documentation, chapter "Lexical Structure").

use longshore_source::sql::OneTable;
pub(crate) use longshore_source::sql::POSTGRESQL as DIALECT;
use sqlparser::ast::{ObjectNamePart, Set, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// A text as a literal, whatever the server takes backslashes for.
pub(crate) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// An array of texts as the server reads it.
pub(crate) fn text_array(items: &[&str]) -> String {
    let quoted = items.iter().map(|item| format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

/// Whether `text` is one SELECT over one table.
pub(crate) fn is_plain(text: &str) -> bool {
    longshore_source::sql::is_plain(&PostgreSqlDialect {}, text)
}

/// The one table that `text` reads, if it does nothing with its rows together.
pub(crate) fn one_table(text: &str) -> Option<OneTable<'_>> {
    OneTable::parse(&DIALECT, &PostgreSqlDialect {}, text)
}

/// The names of the settings that `text` makes, in lower case, if it does nothing but SET.
pub(crate) fn settings(text: &str) -> Option<Vec<String>> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?;
    statements.iter().map(setting).collect()
}

/// The name of the setting that `statement` makes; empty where it has none, as that of a transaction.
fn setting(statement: &Statement) -> Option<String> {
    let Statement::Set(set) = statement else { return None };
    Some(match set {
        Set::SingleAssignment { variable, .. } => {
            let parts = variable.0.iter().filter_map(ObjectNamePart::as_ident);
            parts.map(|part| part.value.to_lowercase()).collect::<Vec<_>>().join(".")
        }
        Set::SetTimeZone { .. } => "timezone".into(),
        Set::SetRole { .. } => "role".into(),
        Set::SetSessionAuthorization(_) => "session_authorization".into(),
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{literal, settings, text_array};

    #[test]
    fn literals_quote_what_they_hold() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
    }

    #[test]
    fn settings_have_names() {
        for (text, names) in [
            ("SET TimeZone = 'Asia/Tokyo'", &["timezone"][..]),
            ("SET TIME ZONE 'Asia/Tokyo'", &["timezone"]),
            ("set search_path to a, b; SET SESSION \"DateStyle\" = ISO", &["search_path", "datestyle"]),
            ("SET harbour.berth = 2", &["harbour.berth"]),
            ("SET ROLE NONE", &["role"]),
            ("SET SESSION AUTHORIZATION DEFAULT", &["session_authorization"]),
        ] {
            assert_eq!(settings(text).unwrap(), names, "{text}");
        }
        for other in ["SELECT 1", "SET a = 1; CREATE TEMP TABLE t ()", "RESET ALL", "not sql"] {
            assert_eq!(settings(other), None, "{other}");
        }
    }

    #[test]
    fn arrays_quote_their_texts() {
        assert_eq!(text_array(&["a", "b\"\\"]), r#"{"a","b\"\\"}"#);
        assert_eq!(text_array(&[]), "{}");
    }
}
