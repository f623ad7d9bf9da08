//! The text and the tree of a query that may be split, and what in them forbids it.

use longshore_core::{Params, Query, Value};
use longshore_source::NotSplit;
use longshore_source::sql::{Kind, Token, positional};
use sqlparser::ast::{Query as Parsed, Select, SetExpr, TableFactor};

use super::tables::{Name, name_of, parsed, tables};
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
    /// The positions of its clauses, if it is one SELECT.
    clauses: Option<Clauses>,
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
        let clauses = Clauses::of(&root, &tokens(&text, reading.escapes), &text);
        let values = statement.values.into_iter().cloned().collect();
        Ok(Self { text, values, root, tables, calls: calls(&found), clauses, reading })
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
        match (self.root.body.as_ref(), &self.clauses) {
            (SetExpr::Select(select), Some(_)) => Ok(select),
            _ => Err(NotSplit::because("it is not one SELECT from tables")),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.root.order_by.is_some()
    }

    /// Whether the server may put the rows into a temporary table before it sends them. In one plan it does and in
    /// another it does not, and some types differ then: a BIT becomes an integer.
    pub(super) fn may_be_buffered(&self) -> bool {
        let is_word = |word: &str| self.tokens().iter().filter(|token| token.is_word(word)).count();
        is_word("order") > 0 && (is_word("select") > 1 || self.only_table().is_none())
    }

    /// The part of the query whose rows `condition` takes.
    pub(super) fn part(&self, condition: &str) -> Result<Query, NotSplit> {
        self.select()?;
        let text = self.clauses.as_ref().map(|clauses| clauses.with(&self.text, condition));
        Ok(self.query(text.unwrap_or_default()))
    }

    /// A query of `expression` for each row, and its parameters.
    pub(super) fn rows(&self, expression: &str) -> Result<(String, Vec<&Value>), NotSplit> {
        self.select()?;
        let Some(clauses) = &self.clauses else { return Ok(Default::default()) };
        let tokens = self.tokens();
        let positions = tokens.iter().filter(|token| token.kind == Kind::Parameter);
        let values = positions.zip(&self.values).filter(|(position, _)| clauses.reads(position.start));
        Ok((clauses.rows(&self.text, expression), values.map(|(_, value)| value).collect()))
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

/// The clauses of one SELECT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clauses {
    select: usize,
    from: usize,
    /// Where its condition begins, if it has one.
    condition: Option<usize>,
    /// Where its condition ends, or would.
    end: usize,
}

impl Clauses {
    /// The clauses of `text`; `None` where it is not one SELECT that reads a table.
    pub(super) fn of(tree: &Parsed, found: &[Token<'_>], text: &str) -> Option<Self> {
        let SetExpr::Select(select) = tree.body.as_ref() else { return None };
        let outer = outermost(found)?;
        let only = |word: &str| {
            let mut positions = outer.iter().filter(|token| token.is_word(word));
            let first = positions.next();
            positions.next().is_none().then_some(first)
        };
        let (start, from, condition) = (only("select")??, only("from")??, only("where")?);
        if condition.is_some() != select.selection.is_some() || select.from.is_empty() {
            return None;
        }
        let later = ["group", "having", "window", "order"].map(only);
        let mut end = text.len();
        for position in later {
            end = end.min(position?.map_or(text.len(), |token| token.start));
        }
        let condition = condition.map(|token| token.end());
        let is_in_order = start.start < from.start && condition.unwrap_or(from.end()) > from.start;
        (is_in_order && condition.unwrap_or(from.end()) <= end).then_some(Self {
            select: start.start,
            from: from.start,
            condition,
            end,
        })
    }

    /// The rows of `text` that `condition` takes, before anything groups them or puts them in order.
    pub(super) fn with(&self, text: &str, condition: &str) -> String {
        let (head, tail) = text.split_at(self.end);
        match self.condition {
            Some(at) => {
                let (head, own) = head.split_at(at);
                format!("{head} ({own}\n) AND ({condition}) {tail}")
            }
            None => format!("{head}\nWHERE {condition} {tail}"),
        }
    }

    /// Whether what is at this position of the text is part of [`Self::rows`].
    pub(super) fn reads(&self, position: usize) -> bool {
        position < self.select || (self.from..self.end).contains(&position)
    }

    /// A query of `expression` for each row that `text` reads, before anything groups them.
    pub(super) fn rows(&self, text: &str, expression: &str) -> String {
        format!("{}SELECT {expression} {}", &text[..self.select], &text[self.from..self.end])
    }
}

/// The tokens outside of parentheses.
fn outermost<'a, 'b>(found: &'b [Token<'a>]) -> Option<Vec<&'b Token<'a>>> {
    let mut depth = 0_usize;
    let mut kept = Vec::new();
    for (at, token) in found.iter().enumerate() {
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && !(at > 0 && found[at - 1].is_mark(".")) {
            kept.push(token);
        }
    }
    (depth == 0).then_some(kept)
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
pub(super) fn refuse(found: &[Token<'_>], is_divided: bool) -> Result<(), NotSplit> {
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
    let aggregate = calls(found).into_iter().find(|call| is_divided && is_in(AGGREGATES, call));
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

/// Every word before a parenthesis.
pub(super) fn calls(found: &[Token<'_>]) -> Vec<String> {
    let pairs = found.windows(2).filter(|pair| pair[1].is_mark("("));
    let names = pairs.filter_map(|pair| match pair[0].kind {
        Kind::Word => Some(pair[0].text.to_ascii_lowercase()),
        Kind::Quoted => Some(unquoted(pair[0].text).to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}

fn unquoted(name: &str) -> String {
    name.trim_matches('`').replace("``", "`")
}

#[cfg(test)]
mod tests {
    use crate::dialect::tokens;
    use crate::split::tables::parsed;

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
    fn one_table_is_split_by_its_own_key() {
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
    fn rows_that_may_be_buffered_are_known() {
        assert!(!of("SELECT a FROM t WHERE b = 1 ORDER BY c").unwrap().may_be_buffered());
        assert!(!of("SELECT a FROM t JOIN u ON 1 WHERE a IN (SELECT 1 FROM v)").unwrap().may_be_buffered());
        for text in [
            "SELECT a FROM t, u ORDER BY a",
            "SELECT a FROM t WHERE a IN (SELECT b FROM u) ORDER BY a",
            "SELECT a FROM (SELECT a FROM t ORDER BY a) AS s",
        ] {
            assert!(of(text).unwrap().may_be_buffered(), "{text}");
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

    fn with(text: &str) -> Option<String> {
        let tree = parsed(text).ok()?;
        let clauses = Clauses::of(&tree, &tokens(text, true), text)?;
        Some(clauses.with(text, "k < 5").replace('\n', " "))
    }

    #[test]
    fn a_condition_has_its_place() {
        for (text, expected) in [
            ("SELECT a FROM t", "SELECT a FROM t WHERE k < 5 "),
            ("SELECT a FROM t WHERE a OR b", "SELECT a FROM t WHERE ( a OR b ) AND (k < 5) "),
            (
                "WITH c AS (SELECT 1 FROM u WHERE x) SELECT a FROM c WHERE a GROUP BY a HAVING b ORDER BY 1",
                "WITH c AS (SELECT 1 FROM u WHERE x) SELECT a FROM c WHERE ( a  ) AND (k < 5) GROUP BY a HAVING b ORDER BY 1",
            ),
            (
                "SELECT extract(year FROM t.at), t.where FROM t GROUP BY (SELECT 1 FROM t WHERE 1)",
                "SELECT extract(year FROM t.at), t.where FROM t  WHERE k < 5 GROUP BY (SELECT 1 FROM t WHERE 1)",
            ),
        ] {
            assert_eq!(with(text).as_deref(), Some(expected));
        }
        for other in ["(SELECT a FROM t)", "SELECT 1", "SELECT a FROM t UNION SELECT a FROM u"] {
            assert_eq!(with(other), None, "{other}");
        }
    }
}
