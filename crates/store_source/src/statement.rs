//! The statements that need no SQL engine.

use longshore_core::{Error, Params, Query, Result};
use longshore_source::sql::{DUCKDB, Kind as TokenKind, Token};

/// The hint for SQL.
pub(crate) const ENGINE: &str = "the option longshore.store.libduckdb names the library of one, for queries; without it there are TABLE t, FROM t, SELECT * or columns or count(*) FROM t, and DROP TABLE t; \
     rows are changed by ingestion, with adbc.ingest.target_table, or by longshore.open(path).sql in Python";

/// A statement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// The rows of a table, of some columns or of all.
    Scan { table: String, columns: Option<Vec<String>> },
    /// How many rows a table has, under a name.
    Count { table: String, name: String },
    /// No table any more.
    Drop { table: String, if_exists: bool },
}

impl Statement {
    /// Reads a text; an error for a statement that needs an engine.
    pub(crate) fn of(query: &Query) -> Result<Self> {
        let tokens = DUCKDB.tokens(&query.text);
        let end = tokens.iter().rposition(|token| !token.is_mark(";")).map_or(0, |last| last + 1);
        let mut reader = Reader { tokens: &tokens[..end], at: 0 };
        let statement = reader.statement().filter(|_| reader.at == end);
        let statement = statement.ok_or_else(|| refusal("this statement needs a SQL engine"))?;
        match query.params {
            Params::None => Ok(statement),
            _ => Err(refusal("a statement with parameters needs a SQL engine")),
        }
    }
}

pub(crate) fn refusal(message: &str) -> Error {
    Error::not_supported(message).with_sqlstate("0A000").with_hint(ENGINE)
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl Reader<'_> {
    fn statement(&mut self) -> Option<Statement> {
        if self.takes_word("TABLE") || self.takes_word("FROM") {
            return Some(Statement::Scan { table: self.table()?, columns: None });
        }
        if self.takes_word("DROP") && self.takes_word("TABLE") {
            let if_exists = self.takes_word("IF") && self.takes_word("EXISTS");
            return Some(Statement::Drop { table: self.table()?, if_exists });
        }
        if !self.takes_word("SELECT") {
            return None;
        }
        let begin = self.at;
        if let Some(name) = self.count() {
            return Some(Statement::Count { table: self.table_after_from()?, name });
        }
        self.at = begin;
        let columns = if self.takes_mark("*") { None } else { Some(self.columns()?) };
        Some(Statement::Scan { table: self.table_after_from()?, columns })
    }

    /// `count(*)`, and its name.
    fn count(&mut self) -> Option<String> {
        let is_count =
            self.takes_word("count") && ["(", "*", ")"].into_iter().all(|mark| self.takes_mark(mark));
        if !is_count {
            return None;
        }
        if self.takes_word("AS") { self.name() } else { Some("count_star()".to_owned()) }
    }

    fn columns(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.name()?];
        while self.takes_mark(",") {
            names.push(self.name()?);
        }
        Some(names)
    }

    fn table_after_from(&mut self) -> Option<String> {
        if self.takes_word("FROM") { self.table() } else { None }
    }

    /// A table's name, which may have the one schema before it.
    fn table(&mut self) -> Option<String> {
        let first = self.name()?;
        if !self.takes_mark(".") {
            return Some(first);
        }
        if first.eq_ignore_ascii_case(crate::catalogue::SCHEMA) { self.name() } else { None }
    }

    fn name(&mut self) -> Option<String> {
        let token = self.tokens.get(self.at)?;
        let is_keyword = ["from", "select", "where", "as"].iter().any(|word| token.is_word(word));
        let name = DUCKDB.name(token).filter(|_| !is_keyword)?;
        self.at += 1;
        // As it is written: names are found in either case, and an error shows them.
        Some(if token.kind == TokenKind::Word { token.text.to_owned() } else { name })
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(|token| token.is_word(word))
    }

    fn takes_mark(&mut self, mark: &str) -> bool {
        self.takes(|token| token.is_mark(mark))
    }

    fn takes(&mut self, is_it: impl Fn(&Token<'_>) -> bool) -> bool {
        let found = self.tokens.get(self.at).is_some_and(is_it);
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

    fn read(text: &str) -> Option<Statement> {
        Statement::of(&Query::new(text)).ok()
    }

    fn scan(table: &str, columns: Option<&[&str]>) -> Statement {
        let columns = columns.map(|names| names.iter().map(ToString::to_string).collect());
        Statement::Scan { table: table.into(), columns }
    }

    #[test]
    fn statements_over_one_table_are_read() {
        for text in [
            "TABLE boats",
            "from boats;",
            "SELECT * FROM main.boats -- all\n;",
            "select * from \"main\".\"boats\"",
        ] {
            assert_eq!(read(text), Some(scan("boats", None)), "{text}");
        }
        assert_eq!(read("SELECT id, \"a \"\"b\" FROM Boats"), Some(scan("Boats", Some(&["id", "a \"b"]))));
        for (text, name) in [("count(*)", "count_star()"), ("COUNT ( * ) AS n", "n")] {
            let count = Statement::Count { table: "boats".into(), name: name.into() };
            assert_eq!(read(&format!("SELECT {text} FROM boats")), Some(count));
        }
        let drop = Statement::Drop { table: "boats".into(), if_exists: true };
        assert_eq!(read("DROP TABLE IF EXISTS boats"), Some(drop));
    }

    #[test]
    fn what_needs_an_engine_is_refused() {
        for text in [
            "",
            ";",
            "SELECT",
            "SELECT 1",
            "SELECT * FROM",
            "SELECT * FROM a, b",
            "SELECT * FROM a WHERE x = 1",
            "SELECT a + 1 FROM t",
            "SELECT a AS b FROM t",
            "SELECT *, a FROM t",
            "SELECT * FROM other.t",
            "TABLE a; TABLE b",
            "DELETE FROM a",
            "SELECT * FROM f(1)",
            "SELECT * FROM a LIMIT 1",
            "DROP TABLE a, b",
            "SELECT a, FROM t",
            "SELECT 'a' FROM t",
            "SELECT * FROM t AS u",
        ] {
            let error = Statement::of(&Query::new(text)).unwrap_err();
            assert_eq!((error.kind(), error.sqlstate()), (Kind::NotSupported, Some("0A000")), "{text}");
        }
        let query =
            Query { text: "TABLE t".into(), params: Params::Positional(vec![longshore_core::Value::Null]) };
        assert!(Statement::of(&query).is_err());
    }
}
