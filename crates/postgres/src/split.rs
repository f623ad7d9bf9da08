//! How one read becomes several: disjoint parts that together are the query, all at one moment.
//!
//! See `docs/design/splitting.md`.

mod attachments;
mod blocks;
mod bounds;
mod cuts;
mod gate;
mod groups;
mod key;
mod keyed;
mod leaves;
mod moment;
mod own;
mod plan;
mod range;
mod refusal;
mod savepoint;
mod settings;
mod statement;
mod table;
mod together;
mod volatile;

use longshore_core::{Division, Parts, Query, ReadOptions, Result, Split, Transaction};

use attachments::Attachments;
use gate::Gate;
use longshore_source::NotSplit;
use moment::Moment;
use plan::EXPLAIN;
use refusal::refuse;
use settings::Settings;
use statement::Statement;
use volatile::Uses;

pub(crate) use together::begin as begin_together;

use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

const MEBIBYTE: f64 = 1_048_576.0;

/// Below this many bytes one session reads the whole, unless the caller says how many.
const SMALL: f64 = 32.0 * MEBIBYTE;

/// Bytes that are worth a session.
const PER_SESSION: f64 = 16.0 * MEBIBYTE;

/// What a coordinator has to do until its parts have ended, and then.
#[derive(Debug)]
pub(crate) struct Keeping {
    gate: Gate,
    attachments: Option<Attachments>,
}

impl Keeping {
    /// While nothing comes from the parts, lets those pass who wait for a lock.
    pub(crate) fn relieve(&self, session: &mut PostgresSession) -> Result<()> {
        self.gate.relieve(session)
    }

    /// Ends the transaction; an error where the parts may not have seen the same tables.
    pub(crate) fn end(&self, session: &mut PostgresSession) -> Result<()> {
        match &self.attachments {
            Some(attachments) => attachments.end(session),
            None => session.connection.simple("COMMIT"),
        }
    }
}

/// Divides `queries` as [`longshore_core::Session::split`] says. With parts at one moment, the session is left in the
/// transaction that keeps it; otherwise in none.
pub(crate) fn split(
    session: &mut PostgresSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Division> {
    if session.connection.transaction() != Transaction::None {
        // Who gives a list, or leaves the number to us, expects nothing of a connection with a transaction.
        let asks = split.number.is_some() || split.on.is_some();
        return Ok(if asks { Division::Serial("an open transaction".into()) } else { Division::Whole });
    }
    let divided = divide(session, queries, split, options);
    if divided.is_err() || !options.snapshot {
        session.connection.abandon();
    }
    divided.map_or_else(NotSplit::division, |parts| Ok(Division::Parts(parts)))
}

fn divide(
    session: &mut PostgresSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<Parts, NotSplit> {
    let most = split.number.or(split.most).map_or(1, std::num::NonZeroUsize::get);
    if most < 2 || queries.is_empty() {
        return Err(NotSplit::Small);
    }
    let mut moment = moment::take(session, queries, options.snapshot)?;
    options.meter.expect(rounded_down(moment.queries.iter().map(|query| query.plan.rows).sum()));
    let number = match moment.queries.as_slice() {
        [query] if split.number.is_none() => sessions_for(query.plan.rows * query.plan.width, most),
        [_] => most,
        several => several.len().min(most),
    };
    if number < 2 {
        return Err(NotSplit::Small);
    }
    let parts = parts(session, &moment, queries, split, number)?;
    if moment.snapshot.is_some() {
        moment.settings.add_named(session, &moment.queries)?;
    }
    let is_by_blocks = queries.len() == 1 && split.on.is_none();
    session.keeping = moment.snapshot.as_deref().map(|snapshot| Keeping {
        gate: Gate::of(snapshot),
        // Parts by blocks name each table alone, so nothing can join it.
        attachments: moment.attachments.filter(|_| !is_by_blocks),
    });
    let join = moment.snapshot.map(|snapshot| join(&snapshot, &moment.settings));
    Ok(Parts { sessions: number.min(parts.len()), queries: parts, snapshot: join })
}

fn parts(
    session: &mut PostgresSession,
    moment: &Moment,
    queries: &[Query],
    split: &Split,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let [query] = moment.queries.as_slice() else { return own::parts(session, moment, queries) };
    let uses = refuse(query, true, session.used)?;
    match &split.on {
        Some(on) => keyed::parts(session, moment, &uses, split, on, number),
        None => match blocks::parts(session, moment, &uses, number) {
            Err(NotSplit::Reason(reason)) => Err(advice(session, &uses, reason)),
            parts => parts,
        },
    }
}

/// The reason, unless there is one that no `partition_on` helps against.
fn advice(session: &mut PostgresSession, uses: &Uses, reason: String) -> NotSplit {
    if session.connection.transaction() != Transaction::Open {
        return NotSplit::Reason(reason);
    }
    match session.connection.flight(&[uses.lookup()]) {
        Ok(answers) => NotSplit::Reason(volatile::reason(&answers[0].rows).unwrap_or(reason)),
        Err(error) => error.into(),
    }
}

/// How many sessions a result of about `bytes` is worth.
fn sessions_for(bytes: f64, most: usize) -> usize {
    if bytes < SMALL {
        1
    } else {
        usize::try_from(rounded_down(bytes / PER_SESSION)).unwrap_or(most).min(most)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate, never below zero
fn rounded_down(estimate: f64) -> u64 {
    estimate as u64
}

/// What a session runs to see what the session that gave `snapshot` away sees, with its `settings`. Its scans begin at
/// the table's start and use no workers: each part is to be read the same way.
fn join(snapshot: &str, settings: &Settings) -> String {
    format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET TRANSACTION SNAPSHOT {}; \
         SET LOCAL idle_in_transaction_session_timeout = 0; \
         SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL synchronize_seqscans = off; {}; {}",
        crate::dialect::literal(snapshot),
        settings.adopt(),
        Gate::of(snapshot).hold()
    )
}

/// How many rows the planner expects of `query`; `None` where it cannot be planned. A transaction that is open stays as
/// it is.
pub(crate) fn estimate(session: &mut PostgresSession, query: &Query) -> Result<Option<u64>> {
    let is_open = session.connection.transaction() == Transaction::Open;
    let estimated = try_estimate(session, query, is_open);
    if estimated.is_err() && is_open && session.connection.is_usable() {
        savepoint::undo(session)?;
    }
    match estimated {
        Ok(rows) => Ok(rows),
        Err(NotSplit::Failed(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn try_estimate(
    session: &mut PostgresSession,
    query: &Query,
    is_open: bool,
) -> Result<Option<u64>, NotSplit> {
    let Ok(mut statement) = Statement::of(query) else { return Ok(None) };
    let in_savepoint = |statement: &'static str| is_open.then(|| Step::run(statement));
    let mut steps: Vec<Step> = in_savepoint(savepoint::SET).into_iter().collect();
    if statement.has_parameters {
        steps.push(statement.description(statement.text.as_str()));
        let answers = session.connection.flight(&steps)?;
        let prepared = answers.into_iter().find_map(|answer| answer.prepared);
        statement.bind(session, prepared.map(|prepared| prepared.parameters).unwrap_or_default())?;
        steps.clear();
    }
    let sent = steps.len();
    steps.push(statement.step(format!("{EXPLAIN}{}", statement.text)));
    steps.extend(in_savepoint(savepoint::RELEASE));
    let answers = session.connection.flight(&steps)?;
    Ok(plan::Plan::parse(answers[sent].cell(0, 0)).map(|plan| rounded_down(plan.rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_grow_with_the_size() {
        let mebibytes = |count: f64| count * MEBIBYTE;
        assert_eq!(sessions_for(mebibytes(31.9), 8), 1);
        assert_eq!(sessions_for(mebibytes(32.0), 8), 2);
        assert_eq!(sessions_for(mebibytes(64.0), 8), 4);
        assert_eq!(sessions_for(1e300, 8), 8);
    }
}
