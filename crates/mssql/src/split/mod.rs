//! One read in several parts: disjoint, together the whole query, and all of one snapshot.
//!
//! See `docs/design/mssql.md`.

use longshore_core::{Error, Parts, Query, ReadOptions, Result, Split, SplitPlan, Splitting, Transaction};
use longshore_source::NotSplit;
use longshore_source::split::{most_sessions, plan};

use crate::describe::describe;
use crate::dialect::is_setting;
use crate::session::MsSqlSession;
use key::Key;
pub(crate) use snapshot::SharedSnapshot;
use statement::Statement;

mod key;
mod snapshot;
mod statement;

/// Begins a transaction that sees one snapshot from its first read on.
const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION";

impl Splitting for MsSqlSession {
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan> {
        if self.connection.transaction() != Transaction::None {
            return Ok(SplitPlan::Serial("an open transaction".into()));
        }
        plan(divide(self, queries, split, options), || self.connection.stop())
    }

    fn join_snapshot(&mut self, snapshot: &str, sessions: usize) -> Result<()> {
        let joined = snapshot::join(self, snapshot, sessions);
        self.or_stop(joined)
    }

    fn begin_snapshot(&mut self, _queries: &[Query]) -> Result<()> {
        self.begin_isolated()
    }

    fn begin_reading(&mut self, query: &Query) -> Result<()> {
        // The server has no transactions that only read; a SELECT alone writes nothing.
        if !statement::only_reads(&query.text) {
            return Err(Error::not_supported("only a SELECT surely writes nothing")
                .with_hint("give one SELECT, without INTO, sequences and other servers"));
        }
        self.begin_isolated()
    }

    fn is_setting(&self, statement: &str) -> bool {
        is_setting(statement)
    }
}

impl MsSqlSession {
    fn begin_isolated(&mut self) -> Result<()> {
        self.is_isolated = true;
        let begun = self.connection.run(BEGIN);
        self.or_stop(begun)
    }
}

fn divide(
    session: &mut MsSqlSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, NotSplit> {
    let most = most_sessions(queries, split)?;
    let statements = queries.iter().map(Statement::of).collect::<Result<Vec<_>, _>>()?;
    let tables = if options.snapshot { Some(snapshot::tables(session, &statements, options)?) } else { None };
    let parts = match statements.as_slice() {
        [statement] => parts(session, statement, split, most)?,
        _ => queries.to_vec(),
    };
    if parts.len() < 2 {
        return Err(NotSplit::Small);
    }
    // What the server has against a part, such as a column without a name, it tells now.
    if let ([_], Some(part)) = (queries, parts.first()) {
        describe(&mut session.connection, part)?;
    }
    let snapshot = tables.map(|tables| snapshot::announce(session, &tables)).transpose()?;
    Ok(Parts { sessions: most.min(parts.len()), queries: parts, snapshot })
}

/// The parts of one query.
fn parts(
    session: &mut MsSqlSession,
    statement: &Statement<'_>,
    split: &Split,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let key = match &split.on {
        Some(on) => Key::of_result(session, statement, on)?,
        None => Key::of_table(session, statement)?,
    };
    let bounds = key.bounds(session, statement, split.range.as_ref(), number)?;
    Ok(key.conditions(&bounds).iter().map(|condition| key.part(statement, condition)).collect())
}
