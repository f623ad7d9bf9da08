//! How one read becomes several: disjoint parts that together are the query, all at one moment.
//!
//! See `docs/design/mysql.md`.

mod bounds;
mod halt;
mod meeting;
mod statement;
mod tables;

use std::num::NonZeroUsize;

use longshore_core::{Division, Params, Parts, Query, ReadOptions, Result, Split, Transaction};

use bounds::Key;
use halt::Halt;
pub(crate) use meeting::{Keeping, join};
use statement::Statement;
use tables::Table;

use crate::session::MySqlSession;

/// Below this many bytes one session reads the whole, unless the caller says how many.
const SMALL: u64 = 32 << 20;

/// Bytes that are worth a session.
const PER_SESSION: u64 = 16 << 20;

/// Divides `queries` as [`longshore_core::Session::split`] says. No transaction keeps the parts' moment: each part's own
/// does, from before the first of them reads.
pub(crate) fn split(
    session: &mut MySqlSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Division> {
    if session.connection.transaction() != Transaction::None {
        return Ok(Division::Serial("an open transaction".into()));
    }
    match divide(session, queries, split, options) {
        Ok(parts) => Ok(Division::Parts(parts)),
        Err(halt) => {
            // What the server has refused leaves the session as it was.
            let is_good = session.connection.stop();
            let division = halt.division()?;
            if is_good {
                Ok(division)
            } else {
                Err(longshore_core::Error::operational("the connection was lost"))
            }
        }
    }
}

fn divide(
    session: &mut MySqlSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, Halt> {
    let most = split.number.or(split.most).map_or(1, NonZeroUsize::get);
    if most < 2 || queries.is_empty() {
        return Err(Halt::Whole);
    }
    let is_divided = queries.len() == 1;
    let escapes = session.connection.escapes();
    let statements = queries
        .iter()
        .map(|query| Statement::of(query, escapes, is_divided))
        .collect::<Result<Vec<_>, _>>()?;
    let tables = tables::look_up(session, &statements)?;
    let number = match split.number {
        Some(_) => most,
        None => sessions_for(tables.iter().map(|table| table.bytes).sum(), most),
    };
    if number < 2 {
        return Err(Halt::Whole);
    }
    let parts = match statements.as_slice() {
        [statement] => parts(session, statement, &tables, split, number)?,
        _ => queries.to_vec(),
    };
    if parts.len() < 2 {
        return Err(Halt::Whole);
    }
    let snapshot = if options.snapshot { Some(meeting::call(session, &tables, options.lock)?) } else { None };
    Ok(Parts { sessions: number.min(parts.len()), queries: parts, snapshot })
}

/// The parts of one query.
fn parts(
    session: &mut MySqlSession,
    statement: &Statement,
    tables: &[Table],
    split: &Split,
    number: usize,
) -> Result<Vec<Query>, Halt> {
    let key = match &split.on {
        Some(on) => Key::of_result(session, statement, on)?,
        None => Key::of_table(session, statement, tables)?,
    };
    let bytes = tables.iter().map(|table| table.bytes).sum();
    let bounds = bounds::find(session, statement, &key, split.range.as_ref(), bytes, number)?;
    let texts: Vec<String> =
        key.conditions(&bounds).iter().map(|condition| key.part(statement, condition)).collect();
    let parts: Vec<Query> = texts.into_iter().map(|text| statement.query(text)).collect();
    if let (Some(part), true) = (parts.first(), split.on.is_some()) {
        check_types(session, statement, part)?;
    }
    Ok(parts)
}

/// A query around another may have other types, where the server writes the inner one's rows down.
fn check_types(session: &mut MySqlSession, statement: &Statement, part: &Query) -> Result<(), Halt> {
    use crate::types::Type;
    let own = session.definitions(&statement.query(statement.text.clone()))?;
    let parts = session.definitions(part)?;
    let is_alike = own.len() == parts.len()
        && own
            .iter()
            .zip(&parts)
            .all(|(own, part)| own.name == part.name && Type::of(own).class == Type::of(part).class);
    if is_alike { Ok(()) } else { Err(Halt::serial("the server gives a part of the query other types")) }
}

fn sessions_for(bytes: u64, most: usize) -> usize {
    if bytes < SMALL { 1 } else { usize::try_from(bytes / PER_SESSION).unwrap_or(most).min(most) }
}

/// How many rows the server expects of `query`; `None` where it cannot say.
pub(crate) fn estimate(session: &mut MySqlSession, query: &Query) -> Result<Option<u64>> {
    let escapes = session.connection.escapes();
    if query.params != Params::None || Statement::of(query, escapes, false).is_err() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_grow_with_the_size() {
        assert_eq!(sessions_for(SMALL - 1, 8), 1);
        assert_eq!(sessions_for(SMALL, 8), 2);
        assert_eq!(sessions_for(u64::MAX, 8), 8);
    }
}
