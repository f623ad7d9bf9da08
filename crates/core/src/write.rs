//! A write from its start: batches into a table, all of them or none.

mod frames;
mod pieces;
mod queue;
mod several;
mod type_text;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::session::loading;
use crate::source::{Lease, Reservation};
use crate::{Deadline, Error, Failed, Loading, Meter, OwnOptions, Result, Session, Source, Transaction};
use pieces::Pieces;

pub use frames::{Frame, Frames};
pub use type_text::{Quotes, check_type};

/// The treatment of a table of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// There must be none: the table is made.
    #[default]
    Fail,
    /// The rows come in addition; there must be one.
    Append,
    /// The rows are a new table's, which takes its place.
    Replace,
    /// The rows take the place of its rows.
    Truncate,
    /// A row whose key is there takes that row's place; others come in addition.
    Upsert,
}

/// A table's name, each part as the catalogue has it: `schema`, `table`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// The schema or database; `None` where the session's own search finds the table.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
}

/// For messages; not for a statement.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.table),
            None => f.write_str(&self.table),
        }
    }
}

/// The rows' target, and how they are written.
#[derive(Clone, Debug)]
pub struct Load {
    /// The table.
    pub table: TableName,
    /// The schema of every batch.
    pub schema: SchemaRef,
    /// The treatment of a table of that name.
    pub if_exists: IfExists,
    /// The columns that tell rows apart: of an upsert, and the primary key of a new table.
    pub key: Vec<String>,
    /// The database's types of a new table's columns, by column, where the caller chooses them.
    pub types: Vec<(String, String)>,
    /// The choices that are one source's own (see [`crate::Driver::options`]).
    pub own: OwnOptions,
    /// Counts what has been sent.
    pub meter: Arc<Meter>,
}

impl Load {
    /// Whether the rows go into a new table.
    #[must_use]
    pub fn makes_table(&self) -> bool {
        matches!(self.if_exists, IfExists::Fail | IfExists::Replace)
    }

    /// Refuses names that no table could have, or that name nothing.
    fn check(&self) -> Result<()> {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        if names.is_empty() {
            return Err(Error::interface("the data has no columns").with_hint("a table needs one at least"));
        }
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(Error::interface(format!("the data has two columns named {name:?}"))
                    .with_hint("rename one: a table's columns have different names"));
            }
        }
        let known = || format!("the data has {}", names.join(", "));
        if let Some(name) = self.key.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Error::interface(format!("key names {name:?}, which is not a column of the data"))
                .with_hint(known()));
        }
        if let Some((name, _)) = self.types.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(Error::interface(format!("types names {name:?}, which is not a column of the data"))
                .with_hint(known()));
        }
        if !self.types.is_empty() && !self.makes_table() {
            return Err(Error::interface("types are for a new table, and this one is kept")
                .with_hint("use them with if_exists=\"fail\" or \"replace\""));
        }
        match self.if_exists {
            IfExists::Upsert if self.key.is_empty() => Err(Error::interface("an upsert needs a key")
                .with_hint("name the columns that tell rows apart: key=[...]")),
            IfExists::Append | IfExists::Truncate if !self.key.is_empty() => {
                Err(Error::interface("a key is for a new table and for an upsert")
                    .with_hint("leave key out, or use if_exists=\"upsert\""))
            }
            _ => Ok(()),
        }
    }
}

/// Rows on their way into a table. Dropped without an end, it leaves the table as it was.
pub trait Sink: Send {
    /// Sends the rows of `batch`, which has the load's schema. After an error there is only [`Sink::abort`].
    fn push(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Makes the rows the table's, unless the session's owner has a transaction open, whose part they are then.
    fn commit(self: Box<Self>) -> Result<Written, Failed>;

    /// Leaves the table as it was, and gives the session back; `None` where it is lost.
    fn abort(self: Box<Self>) -> Option<Box<dyn Session>>;
}

/// A write that has ended well.
pub struct Written {
    /// The rows that came.
    pub rows: u64,
    /// The session, ready for the next statement.
    pub session: Box<dyn Session>,
}

/// A table next to the target that several sessions fill at once, and the session that brings its rows into the target.
/// Dropped without an end, it leaves the target as it was.
pub trait Stage: Send {
    /// The load of each of the other sessions, in a transaction of its own. A column more than the data has takes the
    /// numbers of the rows.
    fn load(&self) -> &Load;

    /// Called now and then while the others write: fails where the session is lost.
    fn keep(&mut self) -> Result<()>;

    /// Once all others have committed, `rows` together: makes their rows the target's, and gives the session back.
    fn commit(self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed>;

    /// Leaves the target as it was, and gives the session back; `None` where it is lost.
    fn abort(self: Box<Self>) -> Option<Box<dyn Session>>;

    /// The statement by which another session removes the table, should this one be lost.
    fn undo(&self) -> String;
}

/// How a write is spread over sessions, and over time.
pub struct Spread<'a> {
    /// Sessions that write at once.
    pub sessions: NonZeroUsize,
    /// The most rows that are one unit of work.
    pub most_rows: Option<NonZeroUsize>,
    /// Told why one session writes what was to be spread, before it does.
    pub warn: &'a dyn Fn(&str) -> Result<()>,
}

/// Writes all of `batches` over sessions of `source`, and returns the number of rows.
pub fn write(
    source: &dyn Source,
    load: &Load,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    spread: &Spread<'_>,
    deadline: &Deadline,
) -> Result<u64> {
    load.check()?;
    let sessions = spread.sessions.get();
    // Next to those that write, one that brings their rows into the target.
    let reserved = source.reserve(if sessions > 1 { 1 + sessions } else { 1 }, deadline)?;
    let Reservation { first, lease, factory, begins, most, is_own } = reserved;
    let first = match loading(first) {
        Ok(first) => first,
        Err(failed) => return release(Err(failed), lease.as_ref()),
    };
    let is_several = match is_several(first.as_ref(), most, is_own, spread) {
        Ok(is_several) => is_several,
        Err(error) => return release(Err(Failed { error, session: Some(first) }), lease.as_ref()),
    };
    let _held = source.hold(if is_several { 1 + sessions } else { 1 });
    let most_rows = spread.most_rows.map(NonZeroUsize::get);
    let outcome = if is_several {
        several::write(first, &factory, load, batches, sessions, most_rows, deadline)
    } else {
        factory.keep_only(1);
        write_all(first, load, Pieces::new(batches, load, most_rows, deadline), begins)
    };
    release(outcome, lease.as_ref())
}

/// Whether several sessions are to write, and can.
fn is_several(first: &dyn Loading, most: usize, is_own: bool, spread: &Spread<'_>) -> Result<bool> {
    let sessions = spread.sessions.get();
    if sessions == 1 {
        return Ok(false);
    }
    if is_own {
        return Err(Error::interface(
            "a connection is one session, and no other can take part in its transaction",
        )
        .with_hint("give a URL or a pool instead, or leave parallel out"));
    }
    if let Some(reason) = first.writes_alone() {
        (spread.warn)(&reason)?;
        return Ok(false);
    }
    if most <= sessions {
        return Err(Error::interface(format!(
            "the pool has {most} connections, and parallel={sessions} takes {}: one brings home what the others write",
            sessions + 1
        ))
        .with_hint("make the pool larger, or lower parallel"));
    }
    Ok(true)
}

fn release(outcome: Result<Written, Failed>, lease: &dyn Lease) -> Result<u64> {
    let (rows, session) = match outcome {
        Ok(Written { rows, session }) => (Ok(rows), Some(session)),
        Err(Failed { error, session }) => (Err(error), session),
    };
    if let Some(session) = session {
        lease.release(session);
    }
    rows
}

fn write_all(
    mut session: Box<dyn Loading>,
    load: &Load,
    pieces: Pieces<'_, impl Iterator<Item = Result<RecordBatch>>>,
    begins: bool,
) -> Result<Written, Failed> {
    if begins
        && session.transaction() == Transaction::None
        && let Err(error) = session.begin_write(load)
    {
        return Err(Failed { error, session: Some(session) });
    }
    let mut sink = session.write(load)?;
    match write_pieces(sink.as_mut(), load, pieces) {
        Ok(()) => sink.commit(),
        Err(error) => Err(Failed { error, session: sink.abort() }),
    }
}

fn write_pieces(
    sink: &mut dyn Sink,
    load: &Load,
    pieces: Pieces<'_, impl Iterator<Item = Result<RecordBatch>>>,
) -> Result<()> {
    for piece in pieces {
        let piece = piece?;
        sink.push(&piece.batch)?;
        piece.count(&load.meter);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn load(names: &[&str], if_exists: IfExists, key: &[&str]) -> Load {
        let fields: Vec<_> = names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect();
        Load {
            table: TableName { schema: None, table: "t".into() },
            schema: Arc::new(Schema::new(fields)),
            if_exists,
            key: key.iter().map(ToString::to_string).collect(),
            types: Vec::new(),
            own: OwnOptions::default(),
            meter: Arc::default(),
        }
    }

    #[test]
    fn what_no_table_could_have_is_refused() {
        assert!(load(&["a", "b"], IfExists::Upsert, &["a"]).check().is_ok());
        for wrong in [
            load(&[], IfExists::Fail, &[]),
            load(&["a", "a"], IfExists::Fail, &[]),
            load(&["a"], IfExists::Upsert, &[]),
            load(&["a"], IfExists::Upsert, &["b"]),
            load(&["a"], IfExists::Append, &["a"]),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
