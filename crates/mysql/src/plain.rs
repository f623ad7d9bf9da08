//! What a statement's own text tells.

use sqlparser::ast::{GroupByExpr, Query, Select, SetExpr, Statement, TableFactor};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

/// Whether `text` is one SELECT over one table: outer joins, ROLLUP, set operations and CTEs bring NULLs into
/// columns that are declared NOT NULL. What cannot be parsed is not plain.
pub(crate) fn is_plain(text: &str) -> bool {
    match Parser::parse_sql(&MySqlDialect {}, text).as_deref() {
        Ok([Statement::Query(query)]) => query_is_plain(query),
        _ => false,
    }
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

fn query_is_plain(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    query.with.is_none() && select_is_plain(select)
}

fn select_is_plain(select: &Select) -> bool {
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    let [from] = select.from.as_slice() else { return false };
    let one_table = matches!(from.relation, TableFactor::Table { args: None, .. });
    ungrouped && one_table && from.joins.is_empty() && select.lateral_views.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_table_is_plain() {
        for plain in [
            "SELECT * FROM t",
            "select a, b + 1 from s.t x where a > ? order by b limit 3",
            "SELECT `A` FROM `T` WHERE EXISTS (SELECT 1 FROM u)",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "SELECT * FROM t LEFT JOIN u USING (id)",
            "SELECT * FROM t, u",
            "SELECT a FROM t GROUP BY a WITH ROLLUP",
            "SELECT a FROM t UNION ALL SELECT a FROM u",
            "WITH c AS (SELECT * FROM t) SELECT * FROM c",
            "SELECT * FROM (SELECT * FROM t) s",
            "INSERT INTO t VALUES (1) RETURNING *",
            "not sql",
            "",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn settings_are_set() {
        assert!(is_setting("SET SESSION sql_mode = ''") && is_setting("SET @a = 1"));
        assert!(!is_setting("SET GLOBAL x = 1") && !is_setting("DELETE FROM t") && !is_setting(""));
    }
}
