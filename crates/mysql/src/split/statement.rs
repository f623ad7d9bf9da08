//! The text of a query that may be split, the tables that it reads, and what in it forbids parts.

use longshore_core::{Params, Query, Value};
use longshore_source::NotSplit;
use longshore_source::sql::{Kind, OneTable, Token, positional};
use sqlparser::dialect::MySqlDialect;

use super::tables::Name;
use crate::dialect::{dialect, tokens};

/// How the server reads a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Whether a backslash in a text escapes.
    pub(super) escapes: bool,
    /// Whether double quotes hold a name.
    pub(super) ansi: bool,
}

impl Reading {
    /// Refuses what the parser would read otherwise.
    fn refuse(self, text: &str) -> Result<(), NotSplit> {
        if !self.escapes && text.contains('\\') {
            return Err(NotSplit::because("a backslash where it escapes nothing (NO_BACKSLASH_ESCAPES)"));
        }
        if self.ansi && text.contains('"') {
            return Err(NotSplit::because("a double quote where it quotes a name (ANSI_QUOTES)"));
        }
        Ok(())
    }
}

/// One query: a SELECT from tables.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its text, with `?` for each parameter and without a semicolon.
    text: String,
    values: Vec<Value>,
    pub(super) tables: Vec<Name>,
    /// The names of its calls, in lower case.
    pub(super) calls: Vec<String>,
}

impl Statement {
    /// The statement of a query; `is_divided` where it is to become several.
    pub(super) fn of(query: &Query, reading: Reading, is_divided: bool) -> Result<Self, NotSplit> {
        reading.refuse(&query.text)?;
        let dialect = dialect(true);
        let numbered = positional(&dialect, &query.text, &query.params)?;
        let text = dialect.body(&numbered.text).to_owned();
        let found = tokens(&text, true);
        refuse(&found, is_divided)?;
        let tables = tables(&text)?;
        let calls = dialect.calls(&found);
        let values = numbered.values.into_iter().cloned().collect();
        Ok(Self { text, values, tables, calls })
    }

    /// A query of `text` with this statement's parameters.
    pub(super) fn query(&self, text: String) -> Query {
        let params =
            if self.values.is_empty() { Params::None } else { Params::Positional(self.values.clone()) };
        Query { text, params }
    }

    /// The query itself.
    pub(super) fn whole(&self) -> Query {
        self.query(self.text.clone())
    }

    /// The one table that it reads, row by row.
    pub(super) fn one_table(&self) -> Result<OneTable<'_>, NotSplit> {
        let table = OneTable::parse(&dialect(true), &MySqlDialect {}, &self.text);
        table.ok_or_else(|| NotSplit::because("it is not a plain SELECT from one table, without an ORDER BY"))
    }

    /// The parameters behind the expressions of its one `table`.
    pub(super) fn values_of(&self, table: &OneTable<'_>) -> &[Value] {
        let before = tokens(table.head(), true).iter().filter(|token| token.kind == Kind::Parameter).count();
        self.values.get(before..).unwrap_or_default()
    }
}

/// The tables of a SELECT that reads nothing else.
fn tables(text: &str) -> Result<Vec<Name>, NotSplit> {
    let found = longshore_source::sql::tables(&dialect(true), &MySqlDialect {}, text);
    let names = found.and_then(|found| found.into_iter().map(name_of).collect());
    names.ok_or_else(|| NotSplit::because("it is not one SELECT from tables"))
}

/// A table's name; `None` for a name of more parts.
fn name_of(mut path: Vec<String>) -> Option<Name> {
    let (table, schema) = (path.pop()?, path.pop());
    path.is_empty().then_some((schema, table))
}

/// Functions, and words that call one, of which two parts would have two values.
const VOLATILE: &str = "\
    rand uuid uuid_short uuid_v4 uuid_v7 sys_guid random_bytes now sysdate curdate curtime current_date \
    current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp \
    unix_timestamp connection_id last_insert_id row_count found_rows sleep benchmark get_lock \
    release_lock release_all_locks is_free_lock is_used_lock master_pos_wait master_gtid_wait nextval \
    lastval setval load_file ps_current_thread_id";

/// Words that lock, write, or change what the statement means.
const FORBIDDEN: &[(&str, &str)] = &[
    ("into", "INTO"),
    ("procedure", "PROCEDURE"),
    ("json_table", "JSON_TABLE"),
    ("table", "TABLE"),
    ("sequence", "a sequence"),
    ("next", "a sequence"),
    ("previous", "a sequence"),
    ("handler", "HANDLER"),
];

/// Words of queries in which a row of the result is more than one row of the tables, or depends on others: parts, each by
/// itself, would have other rows.
const WHOLE_ONLY: &[(&str, &str)] = &[
    ("limit", "LIMIT"),
    ("offset", "OFFSET"),
    ("fetch", "FETCH"),
    ("over", "a window function"),
    ("rownum", "ROWNUM()"),
    ("group", "GROUP BY"),
    ("having", "HAVING"),
    ("distinct", "DISTINCT"),
    ("distinctrow", "DISTINCT"),
    ("union", "UNION"),
    ("intersect", "INTERSECT"),
    ("except", "EXCEPT"),
];

/// Aggregates of MySQL and MariaDB. Those of the server's own plugins are a user's functions.
const AGGREGATES: &str = "\
    avg bit_and bit_or bit_xor count group_concat json_arrayagg json_objectagg max min std stddev \
    stddev_pop stddev_samp sum var_pop var_samp variance any_value st_collect";

/// Refuses what would be something else in each part; `is_divided` where one query becomes several.
fn refuse(found: &[Token<'_>], is_divided: bool) -> Result<(), NotSplit> {
    let first = found.iter().find(|token| !token.is_mark("("));
    if !first.is_some_and(|first| first.is_word("select") || first.is_word("with")) {
        return Err(NotSplit::because("it is not a SELECT"));
    }
    let locks = |(at, token): (usize, &Token<'_>)| {
        let next = found.get(at + 1);
        let is = |word: &str| next.is_some_and(|next| next.is_word(word));
        token.is_word("for") && (is("update") || is("share")) || token.is_word("lock") && is("in")
    };
    if found.iter().enumerate().any(locks) {
        return Err(NotSplit::because("FOR UPDATE or FOR SHARE"));
    }
    for (at, token) in found.iter().enumerate() {
        // A word behind a point is a name.
        let is_name = at > 0 && found[at - 1].is_mark(".");
        match token.kind {
            Kind::Executed => return Err(NotSplit::because("a comment that the server reads")),
            Kind::Mark if token.text == "@" => return Err(NotSplit::because("a variable")),
            Kind::Word if !is_name => check_word(token, is_divided)?,
            _ => {}
        }
    }
    let aggregate = dialect(true).calls(found).into_iter().find(|call| is_divided && is_in(AGGREGATES, call));
    aggregate.map_or(Ok(()), |call| Err(NotSplit::because(format!("the aggregate {call}()"))))
}

fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

fn check_word(token: &Token<'_>, is_divided: bool) -> Result<(), NotSplit> {
    let word = token.text.to_ascii_lowercase();
    if is_in(VOLATILE, &word) {
        return Err(NotSplit::because(format!("{} differs from part to part", word.to_ascii_uppercase())));
    }
    let reasons = FORBIDDEN.iter().chain(WHOLE_ONLY.iter().filter(|_| is_divided));
    match reasons.into_iter().find(|(known, _)| *known == word) {
        Some((_, reason)) => Err(NotSplit::because(*reason)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Reading = Reading { escapes: true, ansi: false };

    fn of(text: &str) -> Result<Statement, NotSplit> {
        Statement::of(&Query::new(text), PLAIN, true)
    }

    #[test]
    fn what_differs_from_part_to_part_is_refused() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "SELECT rand() FROM t",
            "SELECT a FROM t LIMIT 5",
            "SELECT current_date FROM t",
            "SELECT @a FROM t",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            "SELECT /*!40001 SQL_NO_CACHE */ a FROM t",
            "SELECT a, row_number() OVER () FROM t",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u LIMIT 1)",
            "SELECT a FROM t; SELECT b FROM t",
            "SELECT a INTO @x FROM t",
            "SELECT a FROM t WHERE a IN (TABLE u)",
            "SELECT a FROM t UNION ALL SELECT a FROM u",
            "SELECT DISTINCT a FROM t",
            "SELECT a, count(*) FROM t GROUP BY a",
            "SELECT * FROM (SELECT max (a) AS a FROM t) AS s",
            "not sql",
            "",
        ] {
            assert!(matches!(of(text), Err(NotSplit::Reason(_))), "{text}");
        }
        for text in ["SELECT a, t.now FROM t", "SELECT `limit`, max FROM t"] {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn tables_are_known_where_one_select_names_them() {
        let tables = |text: &str| Statement::of(&Query::new(text), PLAIN, false).map(|found| found.tables);
        let t = (Some("s".to_owned()), "t".to_owned());
        let u = (None, "u".to_owned());
        for text in [
            "SELECT * FROM s.t, u",
            "SELECT a, count(*) FROM s.t LEFT JOIN u ON a = b AND c = 'select' GROUP BY a LIMIT 3",
            "SELECT t.`select` FROM s.`t` JOIN `u` USING (`select`) ORDER BY 1",
        ] {
            assert_eq!(tables(text).unwrap(), [t.clone(), u.clone()], "{text}");
        }
        for text in [
            "WITH c AS (SELECT a FROM t) SELECT a FROM c",
            "SELECT a FROM (SELECT a FROM t) AS s",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT a FROM t JOIN u ON a = (SELECT 1 FROM v)",
            "SELECT a FROM t UNION SELECT a FROM u",
            "SELECT a FROM (t JOIN u)",
            "(SELECT a FROM t)",
        ] {
            assert!(tables(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_table_is_split() {
        for text in ["SELECT a FROM t", "SELECT a FROM s.t AS x WHERE a = 1 OR (b);"] {
            assert!(of(text).unwrap().one_table().is_ok(), "{text}");
        }
        for text in [
            "SELECT a FROM t JOIN u ON 1",
            "SELECT a FROM t, u",
            "SELECT a FROM t ORDER BY a",
            "SELECT a FROM t PARTITION (p)",
            "SELECT a FROM t USE INDEX (i)",
            "SELECT 1",
        ] {
            assert!(of(text).is_ok_and(|found| found.one_table().is_err()), "{text}");
        }
    }

    #[test]
    fn parameters_are_those_of_the_rows() {
        let params = Params::Positional((1..4).map(Value::Int).collect());
        let query = Query { text: "SELECT a, '?', ? FROM c WHERE a > ? OR a < ?".into(), params };
        let statement = Statement::of(&query, PLAIN, true).unwrap();
        let table = statement.one_table().unwrap();
        assert_eq!(table.rows("a AS k"), "SELECT a AS k FROM c WHERE (a > ? OR a < ?\n)");
        assert!(matches!(statement.values_of(&table), [Value::Int(2), Value::Int(3)]));
    }

    #[test]
    fn what_the_server_reads_otherwise_is_refused() {
        let read =
            |text: &str, escapes, ansi| Statement::of(&Query::new(text), Reading { escapes, ansi }, true);
        assert!(read("SELECT \"a\" FROM `t`", true, false).is_ok());
        assert!(read("SELECT \"a\" FROM `t`", true, true).is_err());
        assert!(read("SELECT '\\' FROM t", false, false).is_err());
    }
}
