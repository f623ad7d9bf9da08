//! One read in several parts: disjoint, together the whole query, and all of one snapshot.
//!
//! See `docs/design/mysql.md`.

use longshore_core::{Params, Parts, Query, ReadOptions, Result, Split, SplitPlan, Transaction};
use longshore_source::NotSplit;
use longshore_source::split::{most_sessions, plan, sessions_for};

use crate::options::may_lock;
use crate::session::MySqlSession;
use key::Key;
pub(crate) use snapshot::{SharedSnapshot, join};
use statement::{Reading, Statement};
use tables::{Catalogue, SessionModes};

mod key;
mod snapshot;
mod statement;
mod tables;

/// Divides `queries` as [`longshore_core::Session::split`] says. No transaction keeps the parts' snapshot: each part's own
/// does, from before the first of them reads.
pub(crate) fn split(
    session: &mut MySqlSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<SplitPlan> {
    if session.connection.transaction() != Transaction::None {
        return Ok(SplitPlan::Serial("an open transaction".into()));
    }
    // What the server has refused leaves the session as it was.
    plan(divide(session, queries, split, options), || session.connection.stop())
}

fn divide(
    session: &mut MySqlSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, NotSplit> {
    let most = most_sessions(queries, split)?;
    let is_divided = queries.len() == 1;
    let modes = SessionModes::of(session)?;
    let statements = queries
        .iter()
        .map(|query| Statement::of(query, modes.reading, is_divided))
        .collect::<Result<Vec<_>, _>>()?;
    let catalogue = tables::look_up(session, &modes, &statements)?;
    let number = match split.number {
        Some(_) => most,
        None => sessions_for(catalogue.bytes(), most),
    };
    if number < 2 {
        return Err(NotSplit::Small);
    }
    let parts = match statements.as_slice() {
        [statement] => parts(session, statement, &catalogue, split, number)?,
        _ => queries.to_vec(),
    };
    if parts.len() < 2 {
        return Err(NotSplit::Small);
    }
    let snapshot = if options.snapshot {
        Some(snapshot::announce(session, &catalogue, may_lock(options))?)
    } else {
        None
    };
    Ok(Parts { sessions: number.min(parts.len()), queries: parts, snapshot })
}

/// The parts of one query.
fn parts(
    session: &mut MySqlSession,
    statement: &Statement,
    catalogue: &Catalogue,
    split: &Split,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let table = statement.one_table()?;
    let key = match (&split.on, catalogue.tables.as_slice()) {
        (Some(on), _) => Key::of_result(session, statement, &table, on)?,
        (None, [only]) => Key::of_table(session, only, &table.alias)?,
        (None, _) => return Err(NotSplit::because("it is not a plain SELECT from one table")),
    };
    let bounds = key::bounds(session, &key, split.range.as_ref(), catalogue.bytes(), number)?;
    let part = |condition: &String| statement.query(table.over(table.table(), Some(condition)));
    Ok(key.conditions(&bounds).iter().map(part).collect())
}

/// How many rows the server expects of `query`; `None` where it cannot say.
pub(crate) fn estimate(session: &mut MySqlSession, query: &Query) -> Result<Option<u64>> {
    let reading = Reading { escapes: session.connection.escapes(), ansi: false };
    if query.params != Params::None || Statement::of(query, reading, false).is_err() {
        return Ok(None);
    }
    let (names, rows) = match session.connection.table(&format!("EXPLAIN {}", query.text)) {
        Ok(table) => table,
        // Whatever the server has against the query, running it tells it better.
        Err(error) if error.sqlstate().is_some() && session.connection.stop() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(column) = names.iter().position(|name| name == "rows") else { return Ok(None) };
    let counts = rows.iter().filter_map(|row| row.get(column)?.as_ref()?.parse::<u64>().ok());
    Ok(counts.reduce(u64::saturating_mul).filter(|_| rows.len() == 1))
}
