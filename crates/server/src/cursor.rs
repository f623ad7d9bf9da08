//! Cursors over the parts of a result: `DECLARE c CURSOR FOR query INTO 4`, `FETCH ALL FROM 2 OF c`, `CLOSE c`.

use longshore_source::sql::POSTGRESQL;

/// A statement over a cursor with parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CursorStatement {
    Declare { name: String, query: String, parts: String },
    Fetch { name: String, part: usize },
    Close { name: String },
}

impl CursorStatement {
    /// The statement, where a text is one; the server's own statements over cursors are none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let tokens = POSTGRESQL.tokens(text);
        let ended = tokens.len() - usize::from(tokens.last().is_some_and(|token| token.is_mark(";")));
        let tokens = &tokens[..ended];
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
        let word = |at: usize| tokens.get(at).map(|token| token.text);
        let name = |at: usize| word(at).map(str::to_ascii_lowercase);
        let count = tokens.len();
        if is(0, "declare") && is(2, "cursor") && is(3, "for") && count > 6 && is(count - 2, "into") {
            let (from, to) = (tokens[4].start, tokens[count - 2].start);
            let parts = word(count - 1)?.to_owned();
            return Some(Self::Declare {
                name: name(1)?,
                query: text.get(from..to)?.trim_end().to_owned(),
                parts,
            });
        }
        if is(0, "fetch") && is(1, "all") && is(2, "from") && is(4, "of") && count == 6 {
            return Some(Self::Fetch { name: name(5)?, part: word(3)?.parse().ok()? });
        }
        if is(0, "close") && count == 2 {
            return Some(Self::Close { name: name(1)? });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_over_cursors_with_parts_are_the_servers() {
        let declared = CursorStatement::of("DECLARE C CURSOR FOR SELECT a FROM t LIMIT 5 INTO 4;");
        let expected = CursorStatement::Declare {
            name: "c".into(),
            query: "SELECT a FROM t LIMIT 5".into(),
            parts: "4".into(),
        };
        assert_eq!(declared, Some(expected));
        let fetched = CursorStatement::of("fetch all from 2 of c");
        assert_eq!(fetched, Some(CursorStatement::Fetch { name: "c".into(), part: 2 }));
        assert_eq!(CursorStatement::of("CLOSE c"), Some(CursorStatement::Close { name: "c".into() }));
        for other in
            ["DECLARE c CURSOR FOR SELECT 1", "FETCH ALL FROM c", "SELECT 1", "", "FETCH 5 FROM 2 OF c"]
        {
            assert_eq!(CursorStatement::of(other), None, "{other}");
        }
    }
}
