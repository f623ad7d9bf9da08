//! What a statement's own text tells.

use sqlparser::ast::{GroupByExpr, ObjectNamePart, Query, Select, Set, SetExpr, Statement, TableFactor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Whether `text` is one SELECT over one table: outer joins, ROLLUP, set operations and CTEs bring NULLs into
/// columns that are declared NOT NULL. What cannot be parsed is not plain.
pub(crate) fn is_plain(text: &str) -> bool {
    match Parser::parse_sql(&PostgreSqlDialect {}, text).as_deref() {
        Ok([Statement::Query(query)]) => query_is_plain(query),
        _ => false,
    }
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

fn query_is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    query.with.is_none() && select_is_plain(select)
}

fn select_is_plain(select: &Select) -> bool {
    let [from] = select.from.as_slice() else { return false };
    let one_table = matches!(from.relation, TableFactor::Table { args: None, .. });
    one_table && from.joins.is_empty() && is_ungrouped(select)
}

/// Whether a SELECT hands on the rows of what it is from, none of them of its own making.
pub(crate) fn is_ungrouped(select: &Select) -> bool {
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    ungrouped && select.lateral_views.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{is_plain, settings};

    #[test]
    fn only_one_table_is_plain() {
        for plain in [
            "SELECT * FROM t",
            "select a, b + 1 from s.t x where a > $1 order by b limit 3",
            "SELECT \"A\" FROM \"T\" WHERE EXISTS (SELECT 1 FROM u)",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "SELECT * FROM t LEFT JOIN u USING (id)",
            "SELECT * FROM t, u",
            "SELECT a FROM t GROUP BY ROLLUP (a)",
            "SELECT a FROM t UNION ALL SELECT a FROM u",
            "WITH c AS (SELECT * FROM t) SELECT * FROM c",
            "SELECT * FROM (SELECT * FROM t) s",
            "SELECT * FROM generate_series(1, 2)",
            "INSERT INTO t VALUES (1) RETURNING *",
            "not sql",
            "",
        ] {
            assert!(!is_plain(other), "{other}");
        }
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
}
