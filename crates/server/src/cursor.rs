//! Cursors over the parts of a result: `DECLARE c CURSOR FOR query INTO 4`, `FETCH ALL FROM 2 OF c`, `CLOSE c`.

use std::sync::Arc;

use arrow_flight::Ticket;
use arrow_schema::{Schema, SchemaRef};
use longshore_core::{CancelHandle, Deadline, Error};
use longshore_source::sql::POSTGRESQL;
use tonic::Status;

use crate::actions::parts_of;
use crate::context::Context;
use crate::handle::{read_already, ticket};
use crate::parts::{Part, Pending};
use crate::shared::Shared;
use crate::status::{status, unknown};

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

impl Shared {
    /// The columns of a statement over a cursor with parts, where a text is one.
    pub(crate) fn cursor_schema(&self, context: &Context, text: &str) -> Option<SchemaRef> {
        let (name, is_fetch) = match CursorStatement::of(text)? {
            CursorStatement::Declare { .. } => return Some(Arc::new(Schema::empty())),
            CursorStatement::Fetch { name, .. } => (name, true),
            CursorStatement::Close { name } => (name, false),
        };
        let owner = &context.caller.user;
        let handle = self.results.find_all(owner, |pending| pending.cursor.as_ref() == Some(&name)).pop()?;
        let schema = self.results.with(owner, &handle, |pending| pending.schema.clone())?;
        Some(if is_fetch { schema } else { Arc::new(Schema::empty()) })
    }

    /// Does what a statement over a cursor with parts says; nothing where there is no such cursor, for the source may have it.
    pub(crate) fn over_cursor(
        &self,
        context: &Context,
        statement: CursorStatement,
        transaction: Option<&str>,
        deadline: &Deadline,
    ) -> Result<Option<(SchemaRef, Vec<Ticket>)>, Status> {
        let owner = &context.caller.user;
        let find = |name: &str| {
            self.results.find_all(owner, |pending| pending.cursor.as_deref() == Some(name)).pop()
        };
        let nothing = || {
            let pending =
                Pending::new(Arc::new(Schema::empty()), vec![Part::Nothing], CancelHandle::default());
            self.keep(context, pending).map(Some)
        };
        match statement {
            CursorStatement::Declare { name, query, parts } => {
                let parts = parts_of(&parts)?;
                if find(&name).is_some() {
                    return Err(status(declared_already(&name)));
                }
                let mut pending =
                    self.pending(context, &query, Vec::new(), transaction, Some(parts), deadline)?;
                pending.cursor = Some(name);
                pending.transaction = transaction.map(str::to_owned);
                self.keep(context, pending)?;
                nothing()
            }
            CursorStatement::Fetch { name, part } => {
                // No source has this statement.
                let handle = find(&name).ok_or_else(|| unknown("cursor"))?;
                let unread = |pending: &mut Pending| {
                    let part = pending
                        .parts
                        .get(part.wrapping_sub(1))
                        .ok_or_else(|| unknown("part of the cursor"))?;
                    part.as_ref().map(|_| pending.schema.clone()).ok_or_else(read_already)
                };
                let schema = self.results.with(owner, &handle, unread).ok_or_else(|| unknown("cursor"))??;
                Ok(Some((schema, vec![ticket(&handle, part)])))
            }
            CursorStatement::Close { name } => {
                let Some(handle) = find(&name) else { return Ok(None) };
                if let Some(pending) = self.results.take(owner, &handle) {
                    pending.cancel.cancel();
                }
                nothing()
            }
        }
    }
}

/// The error of a second cursor of a name.
pub(crate) fn declared_already(name: &str) -> Error {
    Error::programming(format!("there is a cursor {name} already"))
        .with_sqlstate("42P03")
        .with_hint("CLOSE it first, or give another name")
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
