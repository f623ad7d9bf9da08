//! The tables and functions that a query names, and what the server's catalogue says of them.

use std::fmt::Display;

use longshore_source::NotSplit;
use longshore_source::sql::Token;
use sqlparser::ast::{
    JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query as Parsed, Select, SetExpr,
    Statement as Tree, TableFactor, TableWithJoins,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use super::statement::{Reading, Statement};
use crate::dialect::{literal, quoted_name, tokens};
use crate::session::MySqlSession;

/// A table's name: its database, if it is named, and its own.
pub(super) type Name = (Option<String>, String);

/// The tree of one SELECT.
pub(super) fn parsed(text: &str) -> Result<Box<Parsed>, NotSplit> {
    match Parser::parse_sql(&MySqlDialect {}, text) {
        Ok(mut trees) if trees.len() == 1 => match trees.remove(0) {
            Tree::Query(query) => Ok(query),
            _ => Err(NotSplit::because("it is not a SELECT")),
        },
        _ => Err(NotSplit::because("its text cannot be parsed")),
    }
}

/// The tables of `tree`, whose text has these tokens.
pub(super) fn tables(tree: &Parsed, found: &[Token<'_>]) -> Result<Vec<Name>, NotSplit> {
    let mut names = TableNames::default();
    names.query(tree);
    let selects = found.iter().filter(|token| token.is_word("select")).count();
    if names.is_unknown || selects != names.selects {
        return Err(NotSplit::because("a form of query that is not looked into"));
    }
    Ok(names.tables)
}

/// A table's name; `None` for a name of more parts.
pub(super) fn name_of(name: &ObjectName) -> Option<Name> {
    let parts: Vec<String> =
        name.0.iter().map(|part| part.as_ident().map(|name| name.value.clone())).collect::<Option<_>>()?;
    match parts.as_slice() {
        [table] => Some((None, table.clone())),
        [schema, table] => Some((Some(schema.clone()), table.clone())),
        _ => None,
    }
}

/// How a join is made: its condition, or the columns that it merges.
fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter, Right, RightOuter, StraightJoin};
    match operator {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | CrossJoin(on)
        | StraightJoin(on) => Some(on),
        _ => None,
    }
}

#[derive(Default)]
struct TableNames {
    tables: Vec<Name>,
    selects: usize,
    is_unknown: bool,
    /// The names of the CTEs that can be seen.
    scope: Vec<String>,
}

impl TableNames {
    fn query(&mut self, query: &Parsed) {
        let outer = self.scope.len();
        if let Some(with) = &query.with {
            for table in &with.cte_tables {
                let name = table.alias.name.value.clone();
                if with.recursive {
                    // Rows of any number of rounds: the same in each part.
                    self.scope.push(name.clone());
                }
                self.query(&table.query);
                self.scope.push(name);
            }
        }
        self.body(&query.body);
        if let Some(order) = &query.order_by {
            match &order.kind {
                OrderByKind::Expressions(by) => by.iter().for_each(|by| self.expression(&by.expr)),
                OrderByKind::All(_) => self.is_unknown = true,
            }
        }
        self.scope.truncate(outer);
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            _ => self.is_unknown = true,
        }
    }

    fn select(&mut self, select: &Select) {
        self.selects += 1;
        select.from.iter().for_each(|from| self.from(from));
        select.projection.iter().for_each(|item| self.expression(item));
        select.selection.iter().chain(&select.having).for_each(|condition| self.expression(condition));
        self.expression(&select.group_by);
    }

    fn from(&mut self, from: &TableWithJoins) {
        self.factor(&from.relation);
        for join in &from.joins {
            self.factor(&join.relation);
            match constraint(&join.join_operator) {
                Some(JoinConstraint::On(condition)) => self.expression(condition),
                Some(_) => {}
                None => self.is_unknown = true,
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.table(name),
            TableFactor::Derived { subquery, lateral: false, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.from(table_with_joins),
            _ => self.is_unknown = true,
        }
    }

    fn table(&mut self, name: &ObjectName) {
        let Some(name) = name_of(name) else {
            self.is_unknown = true;
            return;
        };
        if name.0.is_none() {
            if self.scope.contains(&name.1) {
                return;
            }
            // Whether case counts is the server's own affair.
            self.is_unknown |= self.scope.iter().any(|known| known.eq_ignore_ascii_case(&name.1));
        }
        self.tables.push(name);
    }

    /// The subqueries of an expression, which are found in what it prints as.
    fn expression(&mut self, expression: &impl Display) {
        let text = expression.to_string();
        if !text.to_ascii_lowercase().contains("select") {
            return;
        }
        // It is printed without what escaped it.
        self.is_unknown |= text.contains('\\');
        let found = tokens(&text, false);
        let mut at = 0;
        while at < found.len() {
            let next = found.get(at + 1);
            let is_query = next.is_some_and(|next| next.is_word("select") || next.is_word("with"));
            if !(found[at].is_mark("(") && is_query) {
                at += 1;
                continue;
            }
            let end = closing(&found, at);
            let (from, to) = (found[at].end(), end.map_or(text.len(), |end| found[end].start));
            match parsed(&text[from..to]) {
                Ok(tree) => self.query(&tree),
                Err(_) => self.is_unknown = true,
            }
            at = end.unwrap_or(found.len());
        }
    }
}

/// Where the parenthesis is closed that is opened at `open`.
fn closing(found: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in found.iter().enumerate().skip(open) {
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// A table of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: String,
    name: String,
    /// About so many bytes.
    bytes: u64,
}

impl Table {
    /// The name that means this table whatever the session's database.
    pub(super) fn qualified(&self) -> String {
        format!("{}.{}", quoted_name(&self.schema), quoted_name(&self.name))
    }

    /// A condition on the catalogue's columns that names this table.
    pub(super) fn condition(&self) -> String {
        format!("table_schema = {} AND table_name = {}", literal(&self.schema), literal(&self.name))
    }
}

/// All that the query's names mean.
#[derive(Debug)]
pub(super) struct Catalogue {
    database: Option<String>,
    pub(super) tables: Vec<Table>,
}

impl Catalogue {
    /// The table that `name` means.
    pub(super) fn find(&self, name: &Name) -> Option<&Table> {
        let schema = name.0.as_ref().or(self.database.as_ref())?;
        self.tables.iter().find(|table| table.schema == *schema && table.name == name.1)
    }

    /// About so many bytes that its tables have.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// The settings of the session that decide what a statement means.
pub(super) struct SessionModes {
    pub(super) database: Option<String>,
    pub(super) reading: Reading,
    /// Whether `group_concat_max_len` is that of further sessions.
    has_common_length: bool,
}

impl SessionModes {
    /// Asks the session; refuses what further sessions would do otherwise.
    pub(super) fn of(session: &mut MySqlSession) -> Result<Self, NotSplit> {
        let rows = session.connection.rows(
            "SELECT DATABASE(), @@session.sql_mode = @@global.sql_mode, @@session.autocommit, @@session.sql_mode, \
             @@session.sql_select_limit = 18446744073709551615, \
             @@session.group_concat_max_len = @@global.group_concat_max_len",
        )?;
        let Some([database, is_common, autocommit, modes, is_unlimited, has_common_length]) =
            rows.first().map(Vec::as_slice)
        else {
            return Err(NotSplit::because("the session says nothing of itself"));
        };
        let is_on = |flag: &Option<String>| flag.as_deref() == Some("1");
        let modes = modes.as_deref().unwrap_or_default();
        let reasons = [
            (
                database.as_deref() == session.connection.database(),
                "the session uses another database than its URL names",
            ),
            (is_on(is_common), "the session has a sql_mode of its own"),
            (is_on(autocommit), "the session has autocommit off"),
            (is_on(is_unlimited), "sql_select_limit would hold for each part"),
            (!modes.contains("ORACLE"), "sql_mode=ORACLE"),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(is_fine, _)| !is_fine) {
            return Err(NotSplit::because(reason));
        }
        let has_mode = |name: &str| modes.split(',').any(|mode| mode == name);
        Ok(Self {
            database: database.clone(),
            reading: Reading { escapes: session.connection.escapes(), ansi: has_mode("ANSI_QUOTES") },
            has_common_length: is_on(has_common_length),
        })
    }
}

/// Looks up what `statements` read, which has to be in the reach of a shared snapshot.
pub(super) fn look_up(
    session: &mut MySqlSession,
    modes: &SessionModes,
    statements: &[Statement],
) -> Result<Catalogue, NotSplit> {
    let mut found = Catalogue { database: modes.database.clone(), tables: Vec::new() };
    for name in statements.iter().flat_map(|statement| &statement.tables) {
        if found.find(name).is_none() {
            let schema = name.0.as_ref().or(modes.database.as_ref());
            let schema = schema.ok_or_else(|| NotSplit::because("a table without a database"))?.clone();
            found.tables.push(table(session, schema, name.1.clone())?);
        }
    }
    let calls: Vec<String> = statements.iter().flat_map(|statement| &statement.calls).cloned().collect();
    if calls.iter().any(|call| call == "group_concat") && !modes.has_common_length {
        return Err(NotSplit::because("the session has a group_concat_max_len of its own"));
    }
    check_calls(session, calls)?;
    Ok(found)
}

fn table(session: &mut MySqlSession, schema: String, name: String) -> Result<Table, NotSplit> {
    let mut table = Table { schema, name, bytes: 0 };
    let name = table.qualified();
    // A temporary table, which only this session has, hides another of its name.
    let definition = session.connection.rows(&format!("SHOW CREATE TABLE {name}"))?;
    let text = definition.first().and_then(|row| row.get(1)?.as_deref());
    if text.is_some_and(|text| text.starts_with("CREATE TEMPORARY")) {
        return Err(NotSplit::because("a temporary table"));
    }
    let rows = session.connection.rows(&format!(
        "SELECT table_type, engine, data_length FROM information_schema.tables WHERE {}",
        table.condition()
    ))?;
    let Some([kind, engine, bytes]) = rows.first().map(Vec::as_slice) else {
        return Err(NotSplit::because(format!("the catalogue has no table {name}")));
    };
    match (kind.as_deref(), engine.as_deref()) {
        (Some("BASE TABLE"), Some("InnoDB")) => {}
        (Some("BASE TABLE"), engine) => {
            let engine = engine.unwrap_or("unknown");
            return Err(NotSplit::because(format!("{name} has the engine {engine}, which has no snapshots")));
        }
        (Some("VIEW"), _) => return Err(NotSplit::because(format!("{name} is a view"))),
        _ => return Err(NotSplit::because(format!("{name} is not a table"))),
    }
    table.bytes = bytes.as_deref().and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    Ok(table)
}

/// Refuses a user's functions, which may differ from part to part.
fn check_calls(session: &mut MySqlSession, mut names: Vec<String>) -> Result<(), NotSplit> {
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
    let found = session.connection.value(&format!(
        "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' \
         AND LOWER(routine_name) IN ({}) LIMIT 1",
        names.join(", ")
    ))?;
    match found {
        Some(name) => Err(NotSplit::because(format!("{name}() may differ from part to part"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Vec<Name>> {
        let tree = parsed(text).ok()?;
        tables(&tree, &tokens(text, true)).ok()
    }

    fn names(text: &str) -> Vec<Name> {
        found(text).unwrap()
    }

    fn plain(names: &[&str]) -> Vec<Name> {
        names.iter().map(|name| (None, (*name).to_owned())).collect()
    }

    #[test]
    fn tables_are_those_that_no_cte_is() {
        let both = names("WITH c AS (SELECT * FROM s.t) SELECT * FROM c JOIN (SELECT * FROM u) d ON 1");
        assert_eq!(both, [(Some("s".to_owned()), "t".to_owned()), (None, "u".to_owned())]);
        // Within itself and outside of its query, a CTE's name is a table's.
        assert_eq!(names("WITH c AS (SELECT * FROM c) SELECT * FROM c"), plain(&["c"]));
        assert_eq!(names("SELECT * FROM (WITH c AS (SELECT 1 AS i) SELECT * FROM c) d, c"), plain(&["c"]));
        assert_eq!(
            names("WITH RECURSIVE c AS (SELECT 1 AS i UNION ALL SELECT i FROM c) SELECT * FROM c"),
            plain(&[])
        );
        assert!(found("WITH c AS (SELECT 1 AS i) SELECT * FROM C").is_none());
    }

    #[test]
    fn subqueries_are_looked_into() {
        assert_eq!(
            names(
                "SELECT (SELECT max(a) FROM u) FROM t WHERE a IN (SELECT b FROM v WHERE EXISTS (SELECT 1 FROM w))"
            ),
            plain(&["t", "u", "v", "w"])
        );
        assert_eq!(
            names(
                "SELECT a FROM t JOIN u ON t.a > (SELECT 'it\\'s (select' FROM v) ORDER BY (SELECT 1 FROM w)"
            ),
            plain(&["t", "u", "v", "w"])
        );
        assert_eq!(
            names("WITH c AS (SELECT 1 AS i) SELECT a FROM t WHERE a = ANY (SELECT i FROM c)"),
            plain(&["t"])
        );
        assert!(found("SELECT a FROM t WHERE a = (SELECT '\\\\' FROM u)").is_none());
    }
}
