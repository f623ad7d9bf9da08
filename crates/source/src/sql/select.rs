//! A SELECT over one table, and how conditions are put into its text.

use sqlparser::ast::{GroupByExpr, Query, Select, SetExpr, Statement, TableFactor, TableWithJoins};
use sqlparser::dialect::Dialect as Grammar;
use sqlparser::parser::Parser;

use super::dialect::Dialect;
use super::lexer::Token;

/// Whether `text` is one SELECT over one table: outer joins, ROLLUP, set operations and CTEs bring NULLs into
/// columns that are declared NOT NULL. What cannot be parsed is not plain.
#[must_use]
pub fn is_plain(grammar: &dyn Grammar, text: &str) -> bool {
    let statements = Parser::parse_sql(grammar, text);
    let Ok([Statement::Query(query)]) = statements.as_deref() else { return false };
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let [from] = select.from.as_slice() else { return false };
    let one_table = matches!(from.relation, TableFactor::Table { args: None, .. });
    query.with.is_none() && one_table && from.joins.is_empty() && is_ungrouped(select)
}

/// The names of all tables that `text` reads, each in its parts; `None` where it is not one SELECT, from nothing but tables. With no
/// other SELECT in it, its FROM names all.
#[must_use]
pub fn tables(dialect: &Dialect, grammar: &dyn Grammar, text: &str) -> Option<Vec<Vec<String>>> {
    let statements = Parser::parse_sql(grammar, text).ok()?;
    let [Statement::Query(query)] = statements.as_slice() else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let selects = dialect.tokens(text).iter().filter(|token| token.is_word("select")).count();
    if query.with.is_some() || selects != 1 {
        return None;
    }
    let from = select.from.iter();
    let factors = from
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let named = |factor: &TableFactor| match factor {
        TableFactor::Table { name, args: None, .. } => {
            name.0.iter().map(|part| part.as_ident().map(|name| name.value.clone())).collect()
        }
        _ => None,
    };
    factors.map(named).collect()
}

/// Whether a SELECT hands on the rows of what it is from, none of them of its own making.
fn is_ungrouped(select: &Select) -> bool {
    let ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    ungrouped && select.lateral_views.is_empty()
}

/// `SELECT ... FROM table [[AS] alias] [WHERE ...]`, by the places of its parts in the text.
#[derive(Debug)]
pub struct OneTable<'a> {
    text: &'a str,
    /// The parts of the table's name, as the catalogue has them.
    pub path: Vec<String>,
    /// The query's name for the table, in quotes.
    pub alias: String,
    has_alias: bool,
    /// Where the table's name is.
    name: (usize, usize),
    /// Where the table and its alias end.
    from_end: usize,
    /// The condition after WHERE.
    condition: Option<(usize, usize)>,
}

impl<'a> OneTable<'a> {
    /// Takes `text` apart; `None` where it is anything else or anything more. A parser says what the statement is, the
    /// tokens say where: where both do not agree, it is something else.
    #[must_use]
    pub fn parse(dialect: &Dialect, grammar: &dyn Grammar, text: &'a str) -> Option<Self> {
        let statements = Parser::parse_sql(grammar, text).ok()?;
        let [Statement::Query(query)] = statements.as_slice() else { return None };
        let parsed = one_table(query)?;
        let found = Self::locate(dialect, text)?;
        found.agrees(&parsed).then_some(found)
    }

    fn locate(dialect: &Dialect, text: &'a str) -> Option<Self> {
        let tokens = dialect.outermost(text)?;
        let from = only(&tokens, "from")?;
        let path = path(dialect, &tokens[from + 1..])?;
        let name_end = from + 2 * path.len();
        let is_as = tokens.get(name_end).is_some_and(|token| token.is_word("as"));
        let at = name_end + usize::from(is_as);
        let alias = tokens.get(at).filter(|token| is_as || !token.is_word("where"));
        let name = alias.map_or_else(|| path.last().cloned(), |alias| dialect.name(alias))?;
        let condition_at = at + usize::from(alias.is_some());
        Some(Self {
            text,
            alias: dialect.quoted_name(&name),
            has_alias: alias.is_some(),
            name: (tokens[from + 1].start, tokens[name_end - 1].end()),
            path,
            from_end: tokens.get(condition_at - 1)?.end(),
            condition: condition(&tokens[condition_at..])?,
        })
    }

    fn agrees(&self, parsed: &Parsed) -> bool {
        let written = self.name().split('.').map(str::trim).collect::<Vec<_>>().join(".");
        let same_name = parsed.name == written;
        same_name && parsed.has_alias == self.has_alias && parsed.has_condition == self.condition.is_some()
    }

    /// The table's name without its schema, as the catalogue has it.
    #[must_use]
    pub fn last(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// The table's name as it is written.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.text[self.name.0..self.name.1]
    }

    /// The table's name and its alias, as they are written.
    #[must_use]
    pub fn table(&self) -> &'a str {
        &self.text[self.name.0..self.from_end]
    }

    /// The text between the table's name and the condition: its alias.
    #[must_use]
    pub fn alias_text(&self) -> &'a str {
        &self.text[self.name.1..self.from_end]
    }

    /// The condition after WHERE.
    #[must_use]
    pub fn condition(&self) -> Option<&'a str> {
        self.condition.map(|(start, end)| &self.text[start..end])
    }

    /// Another table, under the name that the query has for its own.
    #[must_use]
    pub fn with_alias(&self, table: &str) -> String {
        if self.has_alias {
            format!("{table}{}", self.alias_text())
        } else {
            format!("{table} AS {}", self.alias)
        }
    }

    /// A query of `expression` for each of its rows.
    #[must_use]
    pub fn rows(&self, expression: &str) -> String {
        self.behind(&format!("SELECT {expression} FROM {}", self.table()), None)
    }

    /// The query over `table` instead, with its alias, and over the rows that `condition` holds for as well.
    #[must_use]
    pub fn over(&self, table: &str, condition: Option<&str>) -> String {
        self.behind(&format!("{}{table}", self.head()), condition)
    }

    fn behind(&self, head: &str, condition: Option<&str>) -> String {
        // A comment may end the condition's last line.
        let own = self.condition().map(|condition| format!("({condition}\n)"));
        let conditions: Vec<_> = own.into_iter().chain(condition.map(str::to_owned)).collect();
        if conditions.is_empty() {
            return head.to_owned();
        }
        format!("{head} WHERE {}", conditions.join(" AND "))
    }

    /// The expressions before FROM.
    #[must_use]
    pub fn head(&self) -> &'a str {
        &self.text[..self.name.0]
    }

    /// The tokens of the whole text but those of the table's name and alias.
    #[must_use]
    pub fn outside(&self, dialect: &Dialect) -> Vec<Token<'a>> {
        let mut tokens = dialect.tokens(self.text);
        tokens.retain(|token| !(self.name.0..self.from_end).contains(&token.start));
        tokens
    }
}

/// The parts of the statement that the parser finds.
struct Parsed {
    name: String,
    has_alias: bool,
    has_condition: bool,
}

/// The table that `query` reads, if that is one table and nothing is done with its rows together.
fn one_table(query: &Query) -> Option<Parsed> {
    let is_bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if !is_bare || !is_simple(select) {
        return None;
    }
    let [TableWithJoins { relation, joins }] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, args: None, sample: None, with_ordinality: false, .. } = relation
    else {
        return None;
    };
    let has_columns = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    (joins.is_empty() && !has_columns).then(|| Parsed {
        name: name.to_string(),
        has_alias: alias.is_some(),
        has_condition: select.selection.is_some(),
    })
}

fn is_simple(select: &Select) -> bool {
    is_ungrouped(select)
        && select.having.is_none()
        && select.distinct.is_none()
        && select.into.is_none()
        && select.named_window.is_empty()
}

/// The place of the keyword `word`, if it is there once. After a point or AS it is a name.
fn only(tokens: &[Token<'_>], word: &str) -> Option<usize> {
    let is_keyword = |index: usize| {
        let before = index.checked_sub(1).map(|index| &tokens[index]);
        let is_name = before.is_some_and(|it| it.is_mark(".") || it.is_word("as") || it.is_word("distinct"));
        tokens[index].is_word(word) && !is_name
    };
    let mut found = (0..tokens.len()).filter(|index| is_keyword(*index));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The parts of the name that `tokens` start with, a point between each.
fn path(dialect: &Dialect, tokens: &[Token<'_>]) -> Option<Vec<String>> {
    let mut path = Vec::new();
    for pair in tokens.chunks(2) {
        // Of reserved words, these two could stand here.
        if pair[0].is_word("only") || pair[0].is_word("lateral") {
            return None;
        }
        path.push(dialect.name(&pair[0])?);
        if !pair.get(1).is_some_and(|token| token.is_mark(".")) {
            return Some(path);
        }
    }
    None
}

/// Where the condition stands that begins with WHERE; nothing else may follow the table.
#[allow(clippy::option_option)] // outer: whether it can be told; inner: whether there is one
fn condition(tokens: &[Token<'_>]) -> Option<Option<(usize, usize)>> {
    let Some((first, rest)) = tokens.split_first() else { return Some(None) };
    let is_alone = !rest.iter().any(|token| token.is_word("where"));
    match (rest.first(), rest.last()) {
        (Some(start), Some(end)) if first.is_word("where") && is_alone => {
            Some(Some((start.start, end.end())))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};

    use super::*;
    use crate::sql::{POSTGRESQL, SQLITE};

    fn parse(text: &str) -> Option<OneTable<'_>> {
        OneTable::parse(&POSTGRESQL, &PostgreSqlDialect {}, text)
    }

    fn part(text: &str) -> Option<String> {
        parse(text).map(|table| table.over(table.table(), Some("C")))
    }

    fn over(text: &str) -> String {
        let table = parse(text).unwrap();
        table.over(&table.with_alias("L"), Some("C"))
    }

    #[test]
    fn only_one_table_is_plain() {
        for plain in ["SELECT * FROM t", "select a, b + 1 from s.t x where a > $1 order by b limit 3"] {
            assert!(is_plain(&PostgreSqlDialect {}, plain), "{plain}");
        }
        assert!(is_plain(&PostgreSqlDialect {}, "SELECT \"A\" FROM \"T\" WHERE EXISTS (SELECT 1 FROM u)"));
        assert!(is_plain(&MySqlDialect {}, "SELECT `A` FROM `T` WHERE EXISTS (SELECT 1 FROM u) AND a > ?"));
        for other in [
            "SELECT * FROM t LEFT JOIN u USING (id)",
            "SELECT * FROM t, u",
            "SELECT a FROM t GROUP BY a WITH ROLLUP",
            "SELECT a FROM t GROUP BY ROLLUP (a)",
            "SELECT a FROM t UNION ALL SELECT a FROM u",
            "WITH c AS (SELECT * FROM t) SELECT * FROM c",
            "SELECT * FROM (SELECT * FROM t) s",
            "SELECT * FROM generate_series(1, 2)",
            "INSERT INTO t VALUES (1) RETURNING *",
            "not sql",
            "",
        ] {
            assert!(!is_plain(&PostgreSqlDialect {}, other), "{other}");
            assert!(!is_plain(&MySqlDialect {}, other), "{other}");
        }
    }

    #[test]
    fn a_condition_finds_its_place() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT * FROM t WHERE C"),
            ("select a from s.\"T x\" ;\n-- end", "select a from s.\"T x\" WHERE C"),
            (
                "SELECT * FROM t WHERE a = 1 OR b = 2 -- or\n;",
                "SELECT * FROM t WHERE (a = 1 OR b = 2\n) AND C",
            ),
            ("SELECT * FROM t AS x WHERE (a)", "SELECT * FROM t AS x WHERE ((a)\n) AND C"),
            ("SELECT * FROM t x", "SELECT * FROM t x WHERE C"),
            (
                "SELECT extract(year FROM d), (SELECT 1 FROM u WHERE 2 > 1), a IS DISTINCT FROM b FROM t WHERE a IN (1)",
                "SELECT extract(year FROM d), (SELECT 1 FROM u WHERE 2 > 1), a IS DISTINCT FROM b FROM t \
                 WHERE (a IN (1)\n) AND C",
            ),
            (
                "SELECT $$ FROM x WHERE $$, ' WHERE ', 1 AS \"where\" /* FROM */ FROM t WHERE a = E'\\' WHERE '",
                "SELECT $$ FROM x WHERE $$, ' WHERE ', 1 AS \"where\" /* FROM */ FROM t \
                 WHERE (a = E'\\' WHERE '\n) AND C",
            ),
            (
                "SELECT t.x AS from_x, a[1] FROM t WHERE a[1] > $1",
                "SELECT t.x AS from_x, a[1] FROM t WHERE (a[1] > $1\n) AND C",
            ),
        ] {
            assert_eq!(part(text).as_deref(), Some(expected), "{text}");
        }
        let text = "select a from main.[T x] ;\n-- end";
        let found = OneTable::parse(&SQLITE, &SQLiteDialect {}, text).unwrap();
        assert_eq!(found.over(found.table(), Some("C")), "select a from main.[T x] WHERE C");
        assert_eq!(
            (found.path, found.alias),
            (vec!["main".to_owned(), "T x".to_owned()], "\"T x\"".to_owned())
        );
    }

    #[test]
    fn another_table_takes_the_name() {
        assert_eq!(
            over("SELECT t.a FROM s.t WHERE a = 1"),
            "SELECT t.a FROM L AS \"t\" WHERE (a = 1\n) AND C"
        );
        assert_eq!(over("SELECT x.a FROM \"T\" AS x"), "SELECT x.a FROM L AS x WHERE C");
        assert_eq!(over("SELECT a FROM Größe"), "SELECT a FROM L AS \"größe\" WHERE C");
    }

    #[test]
    fn anything_else_is_not_a_single_table() {
        for text in [
            "SELECT * FROM t, u",
            "SELECT * FROM t JOIN u USING (a)",
            "SELECT * FROM ONLY t",
            "SELECT * FROM t *",
            "SELECT * FROM t AS x (a, b)",
            "SELECT * FROM t TABLESAMPLE SYSTEM (1)",
            "SELECT * FROM f(1)",
            "SELECT * FROM (SELECT * FROM t) x",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t GROUP BY a",
            "SELECT count(*) FROM t HAVING true",
            "SELECT * FROM t ORDER BY a",
            "SELECT * FROM t LIMIT 1",
            "SELECT * FROM t FETCH FIRST ROW ONLY",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t UNION ALL SELECT * FROM t",
            "WITH c AS (SELECT 1) SELECT * FROM t",
            "SELECT 1",
            "SELECT * FROM t; SELECT 1",
            "TABLE t",
            "not sql",
            "",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(OneTable::parse(&SQLITE, &SQLiteDialect {}, "SELECT * FROM t INDEXED BY i").is_none());
    }
}
