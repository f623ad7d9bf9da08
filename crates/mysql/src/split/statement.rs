//! A query that may be split: its text, its tree, and what it names.

use longshore_core::{Params, Query, Value};
use longshore_source::NotSplit;
use longshore_source::sql::{Kind, Token, positional};
use sqlparser::ast::{Query as Parsed, Select, SetExpr, TableFactor};

use super::refusal::{calls, refuse};
use super::shape::Shape;
use super::walk::{Name, name_of, parsed, tables};
use crate::dialect::{dialect, quoted_name, tokens};

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
    fn plain(self, text: &str) -> Result<String, NotSplit> {
        if !self.escapes && text.contains('\\') {
            return Err(NotSplit::because("a backslash where it escapes nothing (NO_BACKSLASH_ESCAPES)"));
        }
        if !self.ansi {
            return Ok(text.to_owned());
        }
        let scanned = dialect(self.escapes).scan(text);
        Ok(scanned.iter().map(|token| named(token).unwrap_or_else(|| token.text.to_owned())).collect())
    }
}

/// A name in double quotes, in backticks.
fn named(token: &Token<'_>) -> Option<String> {
    let inner = token.text.strip_prefix('"').filter(|_| token.kind == Kind::Literal)?.strip_suffix('"')?;
    Some(quoted_name(&inner.replace("\"\"", "\"")))
}

/// One query.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its text, with `?` for each parameter and without a semicolon.
    text: String,
    values: Vec<Value>,
    root: Box<Parsed>,
    pub(super) tables: Vec<Name>,
    /// What its calls are called, in lower case.
    pub(super) calls: Vec<String>,
    /// Where its clauses stand, if it is one SELECT.
    shape: Option<Shape>,
    reading: Reading,
}

impl Statement {
    /// The statement of a query; `is_divided` where it is to become several.
    pub(super) fn of(query: &Query, reading: Reading, is_divided: bool) -> Result<Self, NotSplit> {
        let statement = positional(&dialect(reading.escapes), &query.text, &query.params)?;
        let found = tokens(&statement.text, reading.escapes);
        let last = found.iter().rfind(|token| !token.is_mark(";"));
        let text = statement.text[..last.map_or(0, Token::end)].to_owned();
        let plain = reading.plain(&text)?;
        let found = tokens(&plain, true);
        refuse(&found, is_divided)?;
        let root = parsed(&plain)?;
        let tables = tables(&root, &found)?;
        let shape = Shape::of(&root, &tokens(&text, reading.escapes), &text);
        let values = statement.values.into_iter().cloned().collect();
        Ok(Self { text, values, root, tables, calls: calls(&found), shape, reading })
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

    /// The one SELECT that it is.
    pub(super) fn select(&self) -> Result<&Select, NotSplit> {
        match (self.root.body.as_ref(), &self.shape) {
            (SetExpr::Select(select), Some(_)) => Ok(select),
            _ => Err(NotSplit::because("it is not one SELECT from tables")),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.root.order_by.is_some()
    }

    /// Whether the server may put the rows into a temporary table before it sends them. In one plan it does and in
    /// another it does not, and some types differ then: a BIT becomes an integer.
    pub(super) fn is_gathered(&self) -> bool {
        let is_word = |word: &str| self.tokens().iter().filter(|token| token.is_word(word)).count();
        is_word("order") > 0 && (is_word("select") > 1 || self.only_table().is_none())
    }

    /// The part of the query whose rows `condition` takes.
    pub(super) fn part(&self, condition: &str) -> Result<Query, NotSplit> {
        self.select()?;
        let text = self.shape.as_ref().map(|shape| shape.with(&self.text, condition));
        Ok(self.query(text.unwrap_or_default()))
    }

    /// A query of `expression` for each row, and its parameters.
    pub(super) fn rows(&self, expression: &str) -> Result<(String, Vec<&Value>), NotSplit> {
        self.select()?;
        let Some(shape) = &self.shape else { return Ok(Default::default()) };
        let tokens = self.tokens();
        let places = tokens.iter().filter(|token| token.kind == Kind::Parameter);
        let values = places.zip(&self.values).filter(|(place, _)| shape.reads(place.start));
        Ok((shape.rows(&self.text, expression), values.map(|(_, value)| value).collect()))
    }

    fn tokens(&self) -> Vec<Token<'_>> {
        tokens(&self.text, self.reading.escapes)
    }

    /// The only table of its FROM and what it is called.
    pub(super) fn only_table(&self) -> Option<(Name, String)> {
        let select = self.select().ok()?;
        let [from] = select.from.as_slice() else { return None };
        let TableFactor::Table { name, alias, partitions, .. } = &from.relation else { return None };
        if self.root.with.is_some() || !from.joins.is_empty() || !partitions.is_empty() {
            return None;
        }
        let name = name_of(name)?;
        let called = alias.as_ref().map_or_else(|| name.1.clone(), |alias| alias.name.value.clone());
        Some((name, called))
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
        for text in [
            "SELECT a, t.now FROM t",
            "SELECT `limit`, max FROM t",
            "WITH c AS (SELECT a FROM t) SELECT a FROM c JOIN (SELECT b FROM u) AS d ON a = b",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        ] {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn one_table_is_cut_by_its_own_key() {
        let only = |text: &str| of(text).unwrap().only_table().map(|(_, called)| called);
        assert_eq!(only("SELECT a FROM t"), Some("t".into()));
        assert_eq!(only("SELECT a FROM s.t AS x WHERE a = 1 OR (b);"), Some("x".into()));
        for other in [
            "SELECT a FROM t JOIN u ON 1",
            "SELECT a FROM (SELECT a FROM t) AS s",
            "WITH c AS (SELECT a FROM t) SELECT a FROM c",
            "(SELECT a FROM t)",
            "SELECT 1",
        ] {
            assert_eq!(only(other), None, "{other}");
        }
    }

    #[test]
    fn rows_that_may_be_gathered_are_told() {
        assert!(!of("SELECT a FROM t WHERE b = 1 ORDER BY c").unwrap().is_gathered());
        assert!(!of("SELECT a FROM t JOIN u ON 1 WHERE a IN (SELECT 1 FROM v)").unwrap().is_gathered());
        for text in [
            "SELECT a FROM t, u ORDER BY a",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u) ORDER BY a",
            "SELECT a FROM (SELECT a FROM t ORDER BY a) AS s",
        ] {
            assert!(of(text).unwrap().is_gathered(), "{text}");
        }
    }

    #[test]
    fn parameters_are_those_of_the_rows() {
        let text = "WITH c AS (SELECT ? AS a FROM t) SELECT a, ? FROM c WHERE a > ? ORDER BY ?";
        let params = Params::Positional((1..5).map(Value::Int).collect());
        let statement = Statement::of(&Query { text: text.into(), params }, PLAIN, true).unwrap();
        let (rows, values) = statement.rows("a AS k").unwrap();
        assert_eq!(rows, "WITH c AS (SELECT ? AS a FROM t) SELECT a AS k FROM c WHERE a > ? ");
        assert!(matches!(values.as_slice(), [Value::Int(1), Value::Int(3)]));
    }

    #[test]
    fn quotes_mean_what_the_server_takes_them_for() {
        let read =
            |text: &str, escapes, ansi| Statement::of(&Query::new(text), Reading { escapes, ansi }, true);
        let statement = read("SELECT \"a\" FROM \"t\" WHERE b = 'x\"y'", true, true).unwrap();
        assert_eq!(statement.root.to_string(), "SELECT `a` FROM `t` WHERE b = 'x\"y'");
        assert!(read("SELECT '\\' FROM t", false, false).is_err());
    }
}
