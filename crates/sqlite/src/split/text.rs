//! What a statement's own text tells: its tokens (sqlite.org/lang.html), and the one table that it reads.

use sqlparser::ast::{GroupByExpr, Query, Select, SetExpr, Statement, TableFactor, TableWithJoins};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::Parser;

/// A piece of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword, a name without quotes, a number.
    Word,
    /// A name in double quotes, backticks or brackets.
    Quoted,
    /// A text or a blob.
    Literal,
    /// Anything else, one character each.
    Mark,
}

impl Token<'_> {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// The name that it writes.
    pub(crate) fn name(&self) -> Option<String> {
        let inner = || self.text.get(1..self.text.len() - 1).unwrap_or_default();
        match (self.kind, self.text.as_bytes().first()) {
            (Kind::Word, Some(first)) if !first.is_ascii_digit() => Some(self.text.to_owned()),
            (Kind::Quoted, Some(b'[')) => Some(inner().to_owned()),
            (Kind::Quoted, Some(b'`')) => Some(inner().replace("``", "`")),
            (Kind::Quoted, _) => Some(inner().replace("\"\"", "\"")),
            _ => None,
        }
    }
}

/// The tokens of `text`, without blanks and comments.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (kind, length) = piece(&text[start..]);
        if let Some(kind) = kind {
            found.push(Token { kind, text: &text[start..start + length], start });
        }
        start += length;
    }
    found
}

/// The kind and the length of what `text` starts with; blanks and comments have no kind.
fn piece(text: &str) -> (Option<Kind>, usize) {
    let bytes = text.as_bytes();
    match bytes {
        [b'-', b'-', ..] => (None, bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())),
        [b'/', b'*', ..] => (None, text[2..].find("*/").map_or(text.len(), |at| at + 4)),
        [b'\'', ..] => (Some(Kind::Literal), quoted(bytes, b'\'')),
        [b'x' | b'X', b'\'', ..] => (Some(Kind::Literal), 1 + quoted(&bytes[1..], b'\'')),
        [quote @ (b'"' | b'`'), ..] => (Some(Kind::Quoted), quoted(bytes, *quote)),
        [b'[', ..] => (Some(Kind::Quoted), text.find(']').map_or(text.len(), |at| at + 1)),
        [byte, ..] if byte.is_ascii_whitespace() => (None, 1),
        [byte, ..] if is_name(*byte) => {
            (Some(Kind::Word), bytes.iter().position(|byte| !is_name(*byte)).unwrap_or(bytes.len()))
        }
        _ => (Some(Kind::Mark), text.chars().next().map_or(1, char::len_utf8)),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// The length of a quoted text with the doubled quotes in it.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (byte, Some(next)) if byte == quote && *next == quote => at += 2,
            (byte, _) if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The first word of a statement, in capitals.
pub(crate) fn first_word(text: &str) -> String {
    tokens(text).first().map(|token| token.text.to_ascii_uppercase()).unwrap_or_default()
}

/// Whether nothing but blanks, comments and semicolons is in `text`.
pub(crate) fn rest_is_empty(text: &str) -> bool {
    tokens(text).iter().all(|token| token.is_mark(";"))
}

/// PRAGMAs that set something of a connection, and nothing of the file.
const SETTINGS: &[&str] = &[
    "busy_timeout",
    "cache_size",
    "cache_spill",
    "case_sensitive_like",
    "hard_heap_limit",
    "query_only",
    "recursive_triggers",
    "reverse_unordered_selects",
    "soft_heap_limit",
    "temp_store",
    "threads",
];

/// Whether `text` only sets something of a connection.
pub(crate) fn is_setting(text: &str) -> bool {
    let tokens = tokens(text);
    let statements = tokens.split(|token| token.is_mark(";")).filter(|tokens| !tokens.is_empty());
    let mut statements = statements.peekable();
    let is_pragma = |tokens: &[Token<'_>]| match tokens {
        [pragma, name, ..] => {
            pragma.is_word("pragma") && SETTINGS.iter().any(|setting| name.is_word(setting))
        }
        _ => false,
    };
    statements.peek().is_some() && statements.all(is_pragma)
}

/// Whether `text` reads one table, so that a column that is NOT NULL there is never NULL here. An aggregate over no rows
/// has a row of NULLs.
pub(crate) fn is_one_table(text: &str) -> bool {
    OneTable::parse(text).is_some_and(|table| !calls(&text[..table.name.0]))
}

/// Whether there may be a function call.
fn calls(text: &str) -> bool {
    let tokens = tokens(text);
    tokens.windows(2).any(|pair| pair[1].is_mark("(") && pair[0].name().is_some())
}

/// `SELECT ... FROM table [[AS] alias] [WHERE ...]`, by the places of its parts in the text.
#[derive(Debug)]
pub(crate) struct OneTable<'a> {
    text: &'a str,
    /// Where the table's name is.
    name: (usize, usize),
    /// The table, and its schema if the query names one.
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    /// What the query calls the table, in quotes.
    pub(crate) alias: String,
    /// Where the table and its alias end.
    from_end: usize,
    condition: Option<(usize, usize)>,
}

impl<'a> OneTable<'a> {
    /// Takes `text` apart; `None` where it is anything else or anything more. A parser says what the statement is, the
    /// tokens say where: where both do not agree, it is something else.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let statements = Parser::parse_sql(&SQLiteDialect {}, text).ok()?;
        let [Statement::Query(query)] = statements.as_slice() else { return None };
        let (has_alias, has_condition) = one_table(query)?;
        let found = Self::locate(text)?;
        let tokens = tokens(text);
        let is_nested = tokens.iter().filter(|token| token.is_word("select")).count() != 1;
        let is_alias = found.from_end > found.name.1;
        (!is_nested && is_alias == has_alias && found.condition.is_some() == has_condition).then_some(found)
    }

    fn locate(text: &'a str) -> Option<Self> {
        let tokens = top_level(text)?;
        let mut froms = (0..tokens.len()).filter(|at| tokens[*at].is_word("from"));
        let from = froms.next().filter(|_| froms.next().is_none())?;
        let first = tokens.get(from + 1)?;
        let is_qualified = tokens.get(from + 2).is_some_and(|token| token.is_mark("."));
        let last = if is_qualified { tokens.get(from + 3)? } else { first };
        let mut at = from + if is_qualified { 4 } else { 2 };
        let is_as = tokens.get(at).is_some_and(|token| token.is_word("as"));
        at += usize::from(is_as);
        let alias = tokens.get(at).filter(|token| is_as || !token.is_word("where"));
        at += usize::from(alias.is_some());
        let table = last.name()?;
        Some(Self {
            text,
            name: (first.start, last.end()),
            schema: if is_qualified { Some(first.name()?) } else { None },
            alias: quoted_name(&alias.map_or(Some(table.clone()), Token::name)?),
            table,
            from_end: tokens.get(at - 1)?.end(),
            condition: condition(&tokens[at..])?,
        })
    }

    /// The query over the rows that `condition` holds for as well.
    pub(crate) fn with(&self, condition: &str) -> String {
        let head = &self.text[..self.from_end];
        match self.condition {
            // A comment may end the condition's last line.
            Some((start, end)) => format!("{head} WHERE ({}\n) AND {condition}", &self.text[start..end]),
            None => format!("{head} WHERE {condition}"),
        }
    }
}

/// Whether the table has an alias and the query a condition, if it reads one table and does nothing with its rows
/// together.
fn one_table(query: &Query) -> Option<(bool, bool)> {
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
    let TableFactor::Table { alias, args: None, sample: None, with_ordinality: false, .. } = relation else {
        return None;
    };
    let has_columns = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    (joins.is_empty() && !has_columns).then(|| (alias.is_some(), select.selection.is_some()))
}

fn is_simple(select: &Select) -> bool {
    let is_ungrouped =
        matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    is_ungrouped && select.having.is_none() && select.distinct.is_none() && select.named_window.is_empty()
}

/// The tokens outside of all parentheses, without semicolons at the end; `None` where they do not match.
fn top_level(text: &str) -> Option<Vec<Token<'_>>> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for token in tokens(text) {
        let is_outside = depth == 0;
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.checked_sub(1)?;
        }
        // The outer parentheses belong to the top: a condition may end with one.
        if is_outside || depth == 0 {
            found.push(token);
        }
    }
    while found.last().is_some_and(|token| token.is_mark(";")) {
        found.pop();
    }
    (depth == 0 && !found.iter().any(|token| token.is_mark(";"))).then_some(found)
}

/// Where the condition stands that begins with WHERE; nothing else may follow the table.
#[allow(clippy::option_option)] // outer: whether it can be told; inner: whether there is one
fn condition(tokens: &[Token<'_>]) -> Option<Option<(usize, usize)>> {
    let Some((first, rest)) = tokens.split_first() else { return Some(None) };
    match (rest.first(), rest.last()) {
        (Some(start), Some(end)) if first.is_word("where") => Some(Some((start.start, end.end()))),
        _ => None,
    }
}

/// The statement without semicolons and comments at its end.
pub(crate) fn body(text: &str) -> &str {
    let tokens = tokens(text);
    let last = tokens.iter().rev().find(|token| !token.is_mark(";"));
    &text[..last.map_or(0, Token::end)]
}

/// The names that stand before a parenthesis, in lower case: functions, and keywords such as IN.
pub(crate) fn called(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let pairs = tokens.windows(2).filter(|pair| pair[1].is_mark("("));
    pairs.filter_map(|pair| pair[0].name()).map(|name| name.to_ascii_lowercase()).collect()
}

/// A name in double quotes.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Option<String> {
        OneTable::parse(text).map(|table| table.with("C"))
    }

    #[test]
    fn a_statement_falls_into_its_tokens() {
        let texts: Vec<&str> =
            tokens("SELECT [a b], `c``d`, \"e\"\"f\", x'00', 'it''s', ?1, :n -- no\n/* x */ FROM t.u")
                .iter()
                .map(|token| token.text)
                .collect();
        assert_eq!(
            texts,
            [
                "SELECT",
                "[a b]",
                ",",
                "`c``d`",
                ",",
                "\"e\"\"f\"",
                ",",
                "x'00'",
                ",",
                "'it''s'",
                ",",
                "?",
                "1",
                ",",
                ":",
                "n",
                "FROM",
                "t",
                ".",
                "u"
            ]
        );
        for open in ["'a", "\"a", "[a", "/* a", "-- a", "x'", "é'"] {
            assert!(tokens(open).iter().all(|token| !token.text.is_empty()), "{open}");
        }
    }

    #[test]
    fn a_condition_finds_its_place() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT * FROM t WHERE C"),
            ("select a from main.[T x] ;\n-- end", "select a from main.[T x] WHERE C"),
            (
                "SELECT * FROM t WHERE a = 1 OR b = 2 -- or\n;",
                "SELECT * FROM t WHERE (a = 1 OR b = 2\n) AND C",
            ),
            ("SELECT * FROM t AS x WHERE (a)", "SELECT * FROM t AS x WHERE ((a)\n) AND C"),
            ("SELECT ' FROM ' FROM t x WHERE b > ?", "SELECT ' FROM ' FROM t x WHERE (b > ?\n) AND C"),
        ] {
            assert_eq!(part(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_single_table() {
        for text in [
            "SELECT * FROM t, u",
            "SELECT * FROM t JOIN u USING (a)",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t GROUP BY a",
            "SELECT * FROM t ORDER BY a",
            "SELECT * FROM t LIMIT 1",
            "SELECT * FROM json_each('[]')",
            "SELECT * FROM (SELECT * FROM t)",
            "SELECT (SELECT 1 FROM u) FROM t",
            "SELECT * FROM t WHERE a IN (SELECT 1)",
            "SELECT * FROM t UNION ALL SELECT * FROM t",
            "WITH c AS (SELECT 1) SELECT * FROM c",
            "SELECT * FROM t INDEXED BY i",
            "SELECT 1",
            "SELECT * FROM t; SELECT 1",
            "not sql",
            "",
        ] {
            assert_eq!(part(text), None, "{text}");
        }
    }

    #[test]
    fn promises_hold_for_rows_of_one_table() {
        assert!(is_one_table("SELECT a, b + 1 FROM t WHERE c IN (1)"));
        assert!(!is_one_table("SELECT a, max(b) FROM t"));
        assert!(!is_one_table("SELECT * FROM t LEFT JOIN u"));
    }

    #[test]
    fn settings_change_no_file() {
        assert!(is_setting("PRAGMA cache_size = 5; pragma temp_store=memory;"));
        for other in ["PRAGMA journal_mode = wal", "PRAGMA cache_size = 1; DELETE FROM t", "SELECT 1", ""] {
            assert!(!is_setting(other), "{other}");
        }
    }
}
