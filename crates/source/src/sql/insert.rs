//! The INSERT of one row of plain values, which is the form that many rows can take the place of.

use super::dialect::Dialect;
use super::lexer::{Kind, Token};

/// `INSERT INTO table [(columns)] VALUES (values)` and nothing else.
#[derive(Debug)]
pub struct PlainInsert<'a> {
    /// The words of the table's name: a schema's, where it has one, and its own.
    pub table: Vec<Token<'a>>,
    /// The names of the columns; none where the statement names none.
    pub columns: Vec<Token<'a>>,
    /// The statement up to VALUES.
    pub head: &'a str,
    /// Each value: a parameter, a constant, NULL or DEFAULT.
    pub values: Vec<Token<'a>>,
    /// The values in their parentheses.
    pub row: &'a str,
}

impl<'a> PlainInsert<'a> {
    /// The parts of `text`, if it is one.
    #[must_use]
    pub fn parse(dialect: &Dialect, text: &'a str) -> Option<Self> {
        let tokens = dialect.tokens(text);
        let mut rest = tokens.as_slice();
        next(&mut rest, |token| token.is_word("insert"))?;
        next(&mut rest, |token| token.is_word("into"))?;
        let mut table = vec![next(&mut rest, is_name)?];
        if next(&mut rest, |token| token.is_mark(".")).is_some() {
            table.push(next(&mut rest, is_name)?);
        }
        let columns = match rest.first() {
            Some(token) if token.is_mark("(") => list(&mut rest, is_name)?.0,
            _ => Vec::new(),
        };
        let head = &text[..next(&mut rest, |token| token.is_word("values"))?.start];
        let start = rest.first()?.start;
        let (values, end) = list(&mut rest, is_value)?;
        next(&mut rest, |token| token.is_mark(";"));
        rest.is_empty().then_some(Self { table, columns, head, values, row: &text[start..end] })
    }

    /// The table as the statement names it.
    #[must_use]
    pub fn table_text(&self, text: &'a str) -> &'a str {
        let end = self.table.last().map_or(0, Token::end);
        &text[self.table.first().map_or(0, |first| first.start)..end]
    }
}

fn is_name(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Word | Kind::Quoted)
}

fn is_value(token: &Token<'_>) -> bool {
    matches!(token.kind, Kind::Parameter | Kind::Number | Kind::Literal)
        || token.is_word("null")
        || token.is_word("default")
}

/// The items in parentheses between commas, and the text after them.
fn list<'a>(rest: &mut &[Token<'a>], is_item: fn(&Token<'a>) -> bool) -> Option<(Vec<Token<'a>>, usize)> {
    next(rest, |token| token.is_mark("("))?;
    let mut items = vec![next(rest, is_item)?];
    while next(rest, |token| token.is_mark(",")).is_some() {
        items.push(next(rest, is_item)?);
    }
    let end = next(rest, |token| token.is_mark(")"))?.end();
    Some((items, end))
}

/// The next token, if it is one that is looked for.
fn next<'a>(rest: &mut &[Token<'a>], is_it: impl Fn(&Token<'a>) -> bool) -> Option<Token<'a>> {
    let (token, after) = rest.split_first().filter(|(token, _)| is_it(token))?;
    *rest = after;
    Some(*token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::lexer::tests::MYSQL;

    #[test]
    fn the_parts_of_an_insert() {
        let text = "INSERT INTO a.`B c` (x, `y`) /* ( */ VALUES (?, 7, NULL) -- )\n; ";
        let insert = PlainInsert::parse(&MYSQL, text).unwrap();
        assert_eq!(insert.table_text(text), "a.`B c`");
        assert_eq!((insert.columns.len(), insert.values.len()), (2, 3));
        assert_eq!(insert.head, "INSERT INTO a.`B c` (x, `y`) /* ( */ ");
        assert_eq!(insert.row, "(?, 7, NULL)");
    }

    #[test]
    fn every_other_statement_is_left_alone() {
        for text in [
            "INSERT INTO t VALUES (? + 1)",
            "INSERT INTO t VALUES (f(?))",
            "INSERT INTO t VALUES (?), (?)",
            "INSERT INTO t () VALUES ()",
            "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = 1",
            "INSERT INTO t VALUES (?) RETURNING a",
            "INSERT INTO t VALUES (?); SELECT 1",
            "INSERT INTO t SET a = ?",
            "INSERT INTO t SELECT ?",
            "INSERT INTO t PARTITION (p) VALUES (?)",
            "INSERT IGNORE INTO t VALUES (?)",
            "INSERT /*!IGNORE */ INTO t VALUES (?)",
            "REPLACE INTO t VALUES (?)",
            "UPDATE t SET a = ?",
            "",
        ] {
            assert!(PlainInsert::parse(&MYSQL, text).is_none(), "{text}");
        }
    }
}
