//! A query over one table, and how conditions are put into its text.

use sqlparser::ast::{Query, Select, SetExpr, Statement, TableAlias, TableFactor, TableWithJoins};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use super::tokens::{Token, quoted_name, tokens};
use crate::plain::is_ungrouped;

/// `SELECT ... FROM table [[AS] alias] [WHERE ...]`, by the places of its parts in the text.
#[derive(Debug)]
pub(super) struct OneTable<'a> {
    text: &'a str,
    /// The table's name as it is written.
    name: (usize, usize),
    /// What the query calls the table, in quotes.
    pub(super) alias: String,
    has_alias: bool,
    /// Where the table and its alias end.
    from_end: usize,
    /// The condition after WHERE.
    condition: Option<(usize, usize)>,
}

impl<'a> OneTable<'a> {
    /// Takes `text` apart; `None` where it is anything else or anything more. A parser says what the statement is, the
    /// tokens say where: where both do not agree, it is something else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let statements = Parser::parse_sql(&PostgreSqlDialect {}, text).ok()?;
        let [Statement::Query(query)] = statements.as_slice() else { return None };
        let parsed = one_table(query)?;
        let found = Self::locate(text)?;
        found.agrees(&parsed).then_some(found)
    }

    fn locate(text: &'a str) -> Option<Self> {
        let tokens = top_level(text)?;
        let from = only(&tokens, "from")?;
        let name_end = name_end(&tokens, from + 1)?;
        let (first, last) = (tokens.get(from + 1)?, tokens.get(name_end - 1)?);
        let is_as = tokens.get(name_end).is_some_and(|token| token.is_word("as"));
        let at = name_end + usize::from(is_as);
        let alias = tokens.get(at).filter(|token| is_as || !token.is_word("where"));
        let name = alias.unwrap_or(last).name()?;
        let condition_at = at + usize::from(alias.is_some());
        Some(Self {
            text,
            name: (first.start, last.end()),
            alias: quoted_name(&name),
            has_alias: alias.is_some(),
            from_end: tokens.get(condition_at - 1)?.end(),
            condition: condition(&tokens[condition_at..])?,
        })
    }

    fn agrees(&self, parsed: &Parsed) -> bool {
        let name = self.name();
        let same_name = parsed.name == name.split('.').map(str::trim).collect::<Vec<_>>().join(".");
        same_name && parsed.has_alias == self.has_alias && parsed.has_condition == self.condition.is_some()
    }

    /// The table's name as it is written.
    pub(super) fn name(&self) -> &'a str {
        &self.text[self.name.0..self.name.1]
    }

    /// The query over the rows that `condition` holds for as well, and over no table that inherits from this one:
    /// another table may begin to while the parts are read.
    pub(super) fn with(&self, condition: Option<&str>) -> String {
        let kept = &self.text[self.name.0..self.from_end];
        self.spliced(kept, condition)
    }

    /// The same over the table `leaf`, by its qualified name, instead.
    pub(super) fn over(&self, leaf: &str, condition: Option<&str>) -> String {
        let alias = &self.text[self.name.1..self.from_end];
        if self.has_alias {
            return self.spliced(&format!("{leaf}{alias}"), condition);
        }
        self.spliced(&format!("{leaf} AS {}", self.alias), condition)
    }

    fn spliced(&self, table: &str, condition: Option<&str>) -> String {
        let head = &self.text[..self.name.0];
        let conditions = self.condition.map(|(start, end)| format!("({}\n)", &self.text[start..end]));
        let conditions = conditions.into_iter().chain(condition.map(str::to_owned)).collect::<Vec<_>>();
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        format!("{head}ONLY {table}{filter}")
    }

    /// Whether the text names the row as a whole, or which table it is from: a partition would answer otherwise.
    pub(super) fn asks_for_the_table(&self) -> bool {
        let outside: Vec<Token<'_>> = tokens(self.text)
            .into_iter()
            .filter(|token| !(self.name.0..self.from_end).contains(&token.start))
            .collect();
        let mut depth = 0_usize;
        for (index, token) in outside.iter().enumerate() {
            match token.text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let has_column = outside.get(index + 1).is_some_and(|next| next.is_mark("."));
            let is_all = has_column && outside.get(index + 2).is_some_and(|next| next.is_mark("*"));
            let name = token.name().unwrap_or_default();
            let is_whole = quoted_name(&name) == self.alias && (!has_column || is_all && depth > 0);
            if name == "tableoid" || is_whole {
                return true;
            }
        }
        false
    }
}

/// What the parser says.
struct Parsed {
    name: String,
    has_alias: bool,
    has_condition: bool,
}

/// What `query` reads, if that is one table and nothing is done with its rows together.
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
    let has_columns = alias.as_ref().is_some_and(|TableAlias { columns, .. }| !columns.is_empty());
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

/// The tokens outside of all parentheses, without a semicolon at the end; `None` where they do not match.
fn top_level(text: &str) -> Option<Vec<Token<'_>>> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for token in tokens(text) {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        // The outer parentheses belong to the top: a condition may end with one.
        if depth == 0 || (depth == 1 && matches!(token.text, "(" | "[")) {
            found.push(token);
        }
    }
    while found.last().is_some_and(|token| token.is_mark(";")) {
        found.pop();
    }
    (depth == 0 && !found.iter().any(|token| token.is_mark(";"))).then_some(found)
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

/// Behind the last part of the name that starts at `start`.
fn name_end(tokens: &[Token<'_>], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let token = tokens.get(at)?;
        // Of reserved words, these two could stand here.
        if token.name().is_none() || token.is_word("only") || token.is_word("lateral") {
            return None;
        }
        at += 1;
        if !tokens.get(at).is_some_and(|token| token.is_mark(".")) {
            return Some(at);
        }
        at += 1;
    }
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
    use super::*;

    fn part(text: &str) -> Option<String> {
        OneTable::parse(text).map(|table| table.with(Some("C")))
    }

    fn over(text: &str) -> String {
        OneTable::parse(text).unwrap().over("L", Some("C"))
    }

    #[test]
    fn a_condition_finds_its_place() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT * FROM ONLY t WHERE C"),
            ("select a from s.\"T x\" ;\n-- end", "select a from ONLY s.\"T x\" WHERE C"),
            (
                "SELECT * FROM t WHERE a = 1 OR b = 2 -- or\n;",
                "SELECT * FROM ONLY t WHERE (a = 1 OR b = 2\n) AND C",
            ),
            ("SELECT * FROM t AS x WHERE (a)", "SELECT * FROM ONLY t AS x WHERE ((a)\n) AND C"),
            ("SELECT * FROM t x", "SELECT * FROM ONLY t x WHERE C"),
            (
                "SELECT extract(year FROM d), (SELECT 1 FROM u WHERE 2 > 1), a IS DISTINCT FROM b FROM t WHERE a IN (1)",
                "SELECT extract(year FROM d), (SELECT 1 FROM u WHERE 2 > 1), a IS DISTINCT FROM b FROM ONLY t \
                 WHERE (a IN (1)\n) AND C",
            ),
            (
                "SELECT $$ FROM x WHERE $$, ' WHERE ', 1 AS \"where\" /* FROM */ FROM t WHERE a = E'\\' WHERE '",
                "SELECT $$ FROM x WHERE $$, ' WHERE ', 1 AS \"where\" /* FROM */ FROM ONLY t \
                 WHERE (a = E'\\' WHERE '\n) AND C",
            ),
            (
                "SELECT t.x AS from_x, a[1] FROM t WHERE a[1] > $1",
                "SELECT t.x AS from_x, a[1] FROM ONLY t WHERE (a[1] > $1\n) AND C",
            ),
        ] {
            assert_eq!(part(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn another_table_takes_the_name() {
        assert_eq!(
            over("SELECT t.a FROM s.t WHERE a = 1"),
            "SELECT t.a FROM ONLY L AS \"t\" WHERE (a = 1\n) AND C"
        );
        assert_eq!(over("SELECT x.a FROM \"T\" AS x"), "SELECT x.a FROM ONLY L AS x WHERE C");
        assert_eq!(over("SELECT a FROM Größe"), "SELECT a FROM ONLY L AS \"größe\" WHERE C");
    }

    #[test]
    fn anything_else_is_no_single_table() {
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
            assert!(OneTable::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn whole_rows_are_found() {
        for text in [
            "SELECT t FROM t",
            "SELECT row_to_json(x) FROM t AS x",
            "SELECT pg_typeof(t.*) FROM t",
            "SELECT a FROM t WHERE tableoid > 0",
            "SELECT a FROM t WHERE t IS NULL",
        ] {
            assert!(OneTable::parse(text).unwrap().asks_for_the_table(), "{text}");
        }
        for text in ["SELECT t.*, t.a FROM t", "SELECT x.a, count FROM t AS x", "SELECT t FROM t AS x"] {
            assert!(!OneTable::parse(text).unwrap().asks_for_the_table(), "{text}");
        }
    }
}
