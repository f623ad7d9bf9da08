//! The tables that a query names, in its FROMs and in subqueries anywhere else.

use std::fmt::Display;

use longshore_source::NotSplit;
use longshore_source::sql::Token;
use sqlparser::ast::{
    JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query as Parsed, Select, SetExpr,
    Statement as Tree, TableFactor, TableWithJoins,
};
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;

use crate::dialect::tokens;

/// A table's name: its database, if it is named, and its own.
pub(super) type Name = (Option<String>, String);

/// The tree of one SELECT.
pub(super) fn parsed(text: &str) -> Result<Box<Parsed>, NotSplit> {
    match Parser::parse_sql(&MySqlDialect {}, text) {
        Ok(mut trees) if trees.len() == 1 => match trees.remove(0) {
            Tree::Query(query) => Ok(query),
            _ => Err(NotSplit::because("it is not a SELECT")),
        },
        _ => Err(NotSplit::because("its text cannot be taken apart")),
    }
}

/// The tables of `tree`, whose text has these tokens.
pub(super) fn tables(tree: &Parsed, found: &[Token<'_>]) -> Result<Vec<Name>, NotSplit> {
    let mut walk = Walk::default();
    walk.query(tree);
    let selects = found.iter().filter(|token| token.is_word("select")).count();
    if walk.is_strange || selects != walk.selects {
        return Err(NotSplit::because("a form of query that is not looked into"));
    }
    Ok(walk.names)
}

/// A table's name; `None` where it is no such name.
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
struct Walk {
    names: Vec<Name>,
    selects: usize,
    is_strange: bool,
    /// The names of the CTEs that can be seen.
    scope: Vec<String>,
}

impl Walk {
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
                OrderByKind::All(_) => self.is_strange = true,
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
            _ => self.is_strange = true,
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
                None => self.is_strange = true,
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.table(name),
            TableFactor::Derived { subquery, lateral: false, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.from(table_with_joins),
            _ => self.is_strange = true,
        }
    }

    fn table(&mut self, name: &ObjectName) {
        let Some(name) = name_of(name) else {
            self.is_strange = true;
            return;
        };
        if name.0.is_none() {
            if self.scope.contains(&name.1) {
                return;
            }
            // Whether case counts is the server's own affair.
            self.is_strange |= self.scope.iter().any(|known| known.eq_ignore_ascii_case(&name.1));
        }
        self.names.push(name);
    }

    /// The subqueries of an expression, which are found in what it prints as.
    fn expression(&mut self, expression: &impl Display) {
        let text = expression.to_string();
        if !text.to_ascii_lowercase().contains("select") {
            return;
        }
        // It is printed without what escaped it.
        self.is_strange |= text.contains('\\');
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
                Err(_) => self.is_strange = true,
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
        // Within itself and beside its query, a CTE's name is a table's.
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
