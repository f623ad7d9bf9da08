//! How one read becomes several: disjoint parts that together are the query, all in one snapshot.
//!
//! See `docs/design/splitting.md`.

mod bounds;
mod coordinator;
mod ctid;
mod key;
mod key_ranges;
mod lease;
mod plan;
mod snapshot;
mod volatile;

use longshore_core::{Parts, Query, ReadOptions, Result, Split, SplitPlan, Transaction};
use longshore_source::NotSplit;
use longshore_source::split::{most_sessions, sessions_for};

use coordinator::{DeadlockLock, join};
use plan::{Plan, RELEASE_SAVEPOINT, SAVEPOINT, Statement, undo_savepoint};
use snapshot::Snapshot;
use volatile::{Calls, checked_calls};

pub(crate) use coordinator::Coordinator;
pub(crate) use lease::{join as join_lease, lease};
pub(crate) use snapshot::{begin_together, private_state};

use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

/// Divides `queries` as [`longshore_core::Session::split`] says. With parts in one snapshot, the session is left in the
/// transaction that keeps it; otherwise in none.
pub(crate) fn split(
    session: &mut PostgresSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
) -> Result<SplitPlan> {
    if session.connection.transaction() != Transaction::None {
        // Who gives a list, or leaves the number to us, expects nothing of a connection with a transaction.
        let asks = split.number.is_some() || split.on.is_some();
        return Ok(if asks { SplitPlan::Serial("an open transaction".into()) } else { SplitPlan::Whole });
    }
    let divided = divide(session, queries, split, options, Reader::Ours);
    if divided.is_err() || !options.snapshot {
        session.connection.abandon();
    }
    divided.map_or_else(NotSplit::into_plan, |parts| Ok(SplitPlan::Parts(parts)))
}

/// Whose sessions read the parts.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Ours,
    /// Those of other processes, now or later. What is small is a part for them, too.
    Others,
}

fn divide(
    session: &mut PostgresSession,
    queries: &[Query],
    split: &Split,
    options: &ReadOptions,
    reader: Reader,
) -> Result<Parts, NotSplit> {
    let small = |error: NotSplit| match error {
        NotSplit::Small if reader == Reader::Others => Ok(1),
        error => Err(error),
    };
    let most = most_sessions(queries, split).or_else(small)?;
    let mut snapshot = snapshot::take(session, queries, options.snapshot)?;
    options.meter.expect(rounded_down(snapshot.queries.iter().map(|query| query.plan.rows).sum()));
    let number = match snapshot.queries.as_slice() {
        [query] if split.number.is_none() => {
            sessions_for(rounded_down(query.plan.rows * query.plan.width), most)
        }
        [_] => most,
        several => several.len().min(most),
    };
    let divided = match number {
        0 | 1 => Err(NotSplit::Small),
        _ => parts(session, &snapshot, queries, split, number),
    };
    let (parts, is_whole) = match divided {
        Err(NotSplit::Small) if reader == Reader::Others => {
            (callers_parts(session, &snapshot, queries)?, true)
        }
        divided => (divided?, false),
    };
    let Some(exported) = snapshot.exported.take() else {
        return Ok(Parts { sessions: number.min(parts.len()), queries: parts, snapshot: None });
    };
    snapshot.settings.add_named(session, &snapshot.queries)?;
    let is_by_blocks = queries.len() == 1 && split.on.is_none() && !is_whole;
    // Parts by blocks name each table alone, so nothing can join it.
    let inheritance = snapshot.inheritance.filter(|_| !is_by_blocks);
    let join = match reader {
        Reader::Ours => join(&exported, &snapshot.settings),
        Reader::Others => lease::grant(session, &exported, &snapshot.settings, inheritance.as_ref())?,
    };
    let deadlock_lock = DeadlockLock::of(&exported);
    session.coordinator = Some(Coordinator { deadlock_lock, inheritance, sees_changes: true });
    Ok(Parts { sessions: number.min(parts.len()), queries: parts, snapshot: Some(join) })
}

fn parts(
    session: &mut PostgresSession,
    snapshot: &Snapshot,
    queries: &[Query],
    split: &Split,
    number: usize,
) -> Result<Vec<Query>, NotSplit> {
    let [query] = snapshot.queries.as_slice() else { return callers_parts(session, snapshot, queries) };
    let calls = checked_calls(query, true, session.used)?;
    match &split.on {
        Some(on) => key_ranges::parts(session, snapshot, &calls, split, on, number),
        None => match ctid::parts(session, snapshot, &calls, number) {
            Err(NotSplit::Reason(reason)) => Err(advice(session, &calls, reason)),
            parts => parts,
        },
    }
}

/// The caller's own parts, unless one of them cannot be read next to the others.
fn callers_parts(
    session: &mut PostgresSession,
    snapshot: &Snapshot,
    queries: &[Query],
) -> Result<Vec<Query>, NotSplit> {
    let calls = snapshot.queries.iter().map(|query| checked_calls(query, false, session.used));
    let lookups = calls.map(|calls| calls.map(|calls| calls.lookup())).collect::<Result<Vec<_>, _>>()?;
    let answers = session.connection.flight(&lookups)?;
    answers.iter().try_for_each(volatile::check)?;
    Ok(queries.to_vec())
}

/// The reason, unless there is one that no `partition_on` helps against.
fn advice(session: &mut PostgresSession, calls: &Calls, reason: String) -> NotSplit {
    if session.connection.transaction() != Transaction::Open {
        return NotSplit::Reason(reason);
    }
    match session.connection.ask(calls.lookup()) {
        Ok(answer) => volatile::check(&answer).err().unwrap_or(NotSplit::Reason(reason)),
        Err(error) => error.into(),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate, never below zero
fn rounded_down(estimate: f64) -> u64 {
    estimate as u64
}

/// How many rows the planner expects of `query`; `None` where it cannot be planned. A transaction that is open stays as
/// it is.
pub(crate) fn estimate(session: &mut PostgresSession, query: &Query) -> Result<Option<u64>> {
    let is_open = session.connection.transaction() == Transaction::Open;
    let estimated = try_estimate(session, query, is_open);
    if estimated.is_err() && is_open && session.connection.is_usable() {
        undo_savepoint(session)?;
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
    let mut steps: Vec<Step> = in_savepoint(SAVEPOINT).into_iter().collect();
    if statement.has_parameters {
        statement.describe_and_bind(session, std::mem::take(&mut steps))?;
    }
    let sent = steps.len();
    steps.push(statement.explanation(&statement.text));
    steps.extend(in_savepoint(RELEASE_SAVEPOINT));
    let answers = session.connection.flight(&steps)?;
    Ok(Plan::parse(answers[sent].cell(0, 0)).map(|plan| rounded_down(plan.rows)))
}
