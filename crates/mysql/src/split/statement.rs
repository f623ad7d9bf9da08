//! A query that may be split: its text, its tree, and what it names.

use longshore_core::{Params, Query, Value};
use longshore_source::sql::positional;
use longshore_source::sql::{Kind, Token};
use sqlparser::ast::{Query as Parsed, Select, SetExpr, TableFactor};

use super::halt::Halt;
use super::refusal::{calls, refuse};
use super::shape::{Shape, Unordered, unordered};
use super::walk::{Name, name_of, parsed, tables};
use crate::dialect::dialect;
use crate::dialect::{quoted_name, tokens};
use crate::encode;
use crate::zone::Zone;

/// How the server reads a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Whether a backslash in a text escapes.
    pub(super) escapes: bool,
    /// Whether double quotes hold a name.
    pub(super) ansi: bool,
}

impl Reading {
    /// `text` as the parser reads it, which takes double quotes for a text's and lets a backslash escape.
    fn plain(self, text: &str) -> Result<String, Halt> {
        if !self.escapes && text.contains('\\') {
            return Err(Halt::serial("a backslash where it escapes nothing (NO_BACKSLASH_ESCAPES)"));
        }
        if !self.ansi {
            return Ok(text.to_owned());
        }
        let scanned = crate::dialect::dialect(self.escapes).scan(text);
        Ok(scanned.iter().map(|token| named(token).unwrap_or_else(|| token.text.to_owned())).collect())
    }
}

/// A name in double quotes, in backticks.
fn named(token: &Token<'_>) -> Option<String> {
    let inner = token.text.strip_prefix('"').filter(|_| token.kind == Kind::Literal)?.strip_suffix('"')?;
    Some(quoted_name(&inner.replace("\"\"", "\"")))
}

/// A text that has been taken apart.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Box<Parsed>,
    pub(super) tables: Vec<Name>,
    /// What its calls are called, in lower case.
    pub(super) calls: Vec<String>,
}

impl Tree {
    /// The tree of `text`; `is_divided` where it is to become several.
    pub(super) fn of(text: &str, reading: Reading, is_divided: bool) -> Result<Self, Halt> {
        let plain = reading.plain(text)?;
        let found = tokens(&plain, true);
        refuse(&found, is_divided)?;
        let root = parsed(&plain)?;
        let tables = tables(&root, &found)?;
        Ok(Self { root, tables, calls: calls(&found) })
    }
}

/// One query.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its text, with `?` for each parameter and without a semicolon.
    pub(super) text: String,
    values: Vec<Value>,
    pub(super) tree: Tree,
    /// Where its clauses stand, if it is one SELECT.
    pub(super) shape: Option<Shape>,
    reading: Reading,
}

impl Statement {
    /// The statement of a query; `is_divided` where it is to become several.
    pub(super) fn of(query: &Query, reading: Reading, is_divided: bool) -> Result<Self, Halt> {
        let statement = positional(&dialect(reading.escapes), &query.text, &query.params)?;
        let found = tokens(&statement.text, reading.escapes);
        let last = found.iter().rfind(|token| !token.is_mark(";"));
        let text = statement.text[..last.map_or(0, Token::end)].to_owned();
        let tree = Tree::of(&text, reading, is_divided)?;
        let shape = Shape::of(&tree.root, &tokens(&text, reading.escapes), &text);
        let values = statement.values.into_iter().cloned().collect();
        Ok(Self { text, values, tree, shape, reading })
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

    pub(super) fn has_parameters(&self) -> bool {
        !self.values.is_empty()
    }

    /// Its parameters, encoded; nothing where there are none.
    pub(super) fn bound(&self, zone: Zone) -> Result<Vec<u8>, Halt> {
        let values: Vec<&Value> = self.values.iter().collect();
        Ok(encode::parameters(&values, zone)?)
    }

    /// Its text without its ORDER BY, which is one of columns with these `names`.
    pub(super) fn unordered(&self, names: &[&str]) -> Result<Unordered<'_>, Halt> {
        unordered(&self.tree.root, &tokens(&self.text, self.reading.escapes), &self.text, names)
    }

    /// The only table of its FROM and what it is called, where it is one SELECT without clauses behind its WHERE.
    pub(super) fn only_table(&self) -> Option<((Name, String), &Select)> {
        let tree = &self.tree.root;
        let SetExpr::Select(select) = tree.body.as_ref() else { return None };
        let [from] = select.from.as_slice() else { return None };
        let TableFactor::Table { name, alias, partitions, .. } = &from.relation else { return None };
        let is_plain = tree.with.is_none() && tree.order_by.is_none() && from.joins.is_empty();
        if !is_plain || !partitions.is_empty() || select.distinct.is_some() {
            return None;
        }
        let name = name_of(name)?;
        let called = alias.as_ref().map_or_else(|| name.1.clone(), |alias| alias.name.value.clone());
        Some(((name, called), select))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Reading = Reading { escapes: true, ansi: false };

    fn of(text: &str) -> Result<Statement, Halt> {
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
            "not sql",
            "",
        ] {
            assert!(matches!(of(text), Err(Halt::Serial(_))), "{text}");
        }
        for text in [
            "SELECT a, t.now FROM t",
            "SELECT a FROM t UNION ALL SELECT a FROM u",
            "SELECT `limit` FROM t",
            "SELECT DISTINCT a FROM t",
            "SELECT a, count(*) FROM t GROUP BY a",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        ] {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn one_table_is_cut_by_its_own_key() {
        let only = |text: &str| of(text).unwrap().only_table().map(|((_, called), _)| called);
        assert_eq!(only("SELECT a FROM t"), Some("t".into()));
        assert_eq!(only("SELECT a FROM s.t AS x WHERE a = 1 OR (b);"), Some("x".into()));
        for other in [
            "SELECT a FROM t ORDER BY a",
            "SELECT a FROM t JOIN u ON 1",
            "SELECT DISTINCT a FROM t",
            "(SELECT a FROM t)",
            "SELECT 1",
        ] {
            assert_eq!(only(other), None, "{other}");
        }
    }

    #[test]
    fn quotes_mean_what_the_server_takes_them_for() {
        let ansi = Reading { escapes: true, ansi: true };
        let tree = Tree::of("SELECT \"a\" FROM \"t\" WHERE b = 'x\"y'", ansi, true).unwrap();
        assert_eq!(tree.root.to_string(), "SELECT `a` FROM `t` WHERE b = 'x\"y'");
        let literal = Reading { escapes: false, ansi: false };
        assert!(Tree::of("SELECT '\\' FROM t", literal, true).is_err());
    }
}
