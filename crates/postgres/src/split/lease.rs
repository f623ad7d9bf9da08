//! Snapshots for the readers of other processes: what the session that keeps one tells them, and how they join it.
//!
//! See `docs/design/partitions.md`.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::slice;

use longshore_core::{Error, Query, ReadOptions, Result, Split, SplitPlan};
use longshore_source::NotSplit;

use super::coordinator::{Coordinator, DeadlockLock, Inheritance, Settings};
use super::plan::EXPLAIN;
use super::snapshot::BEGIN_REPEATABLE_READ;
use super::{Reader, divide};
use crate::connection::pipeline::Step;
use crate::dialect::literal;
use crate::session::PostgresSession;

/// Divides `query` as [`longshore_core::Leasing::lease`] says.
pub(crate) fn lease(
    session: &mut PostgresSession,
    query: &Query,
    split: &Split,
    options: &ReadOptions,
) -> Result<SplitPlan> {
    let divided = divide(session, slice::from_ref(query), split, options, Reader::Others);
    if divided.is_err() {
        session.connection.abandon();
    }
    divided.map_or_else(NotSplit::into_plan, |parts| Ok(SplitPlan::Parts(parts)))
}

/// The advisory lock by which a reader knows that the session that keeps its snapshot is there. The thread of the lease
/// speaks every second: where it says nothing for so long, its process is stopped, or is gone and a forked child has
/// the socket. The server ends the snapshot then.
const MARK: &str = "\
SELECT pg_catalog.pg_advisory_xact_lock($1::int8), \
       pg_catalog.set_config('idle_in_transaction_session_timeout', '60s', true)";

/// Whether a session of this database has such a lock.
const IS_MARKED: &str = "\
SELECT EXISTS (SELECT FROM pg_catalog.pg_locks \
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
      AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()) \
      AND classid::int8 << 32 | objid::int8 = $1::int8)";

/// The user whose rights and row security decide what a query gives; the role is a setting. A number, for the bytes of a
/// partition name no user.
const USER: &str = "SELECT oid FROM pg_catalog.pg_roles WHERE rolname = session_user";

/// Whether a reader's user is that of the lease, and the names of both.
const IS_USER: &str = "\
SELECT oid = $1::oid, pg_catalog.pg_get_userbyid($1::oid), session_user \
FROM pg_catalog.pg_roles WHERE rolname = session_user";

/// The settings that a reader's session shares with any other's: see [`super::coordinator::join`].
const SETTINGS: &str = "\
SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '0', true), \
       pg_catalog.set_config('max_parallel_workers_per_gather', '0', true), \
       pg_catalog.set_config('synchronize_seqscans', 'off', true)";

/// Marks the session as the one that keeps the `exported` snapshot; gives what its readers have to know.
pub(super) fn grant(
    session: &mut PostgresSession,
    exported: &str,
    settings: &Settings,
    inheritance: Option<&Inheritance>,
) -> Result<String> {
    // Random, for another server may have exported a snapshot of the same name.
    let mark = RandomState::new().build_hasher().finish().cast_signed().to_string();
    let answers = session.connection.flight(&[Step::run(MARK).bind(&mark), Step::run(USER)])?;
    let [parents, children] =
        inheritance.map_or([""; 2], |known| [known.parents.as_str(), known.children.as_str()]);
    // The last may have several lines.
    Ok([exported, &mark, answers[1].cell(0, 0), parents, children, &settings.0].join("\n"))
}

/// Joins a snapshot that [`grant`] has told of, to read `query`.
///
/// A table that is rewritten once the snapshot is kept no longer looks empty to it. So the reader locks its own tables, and
/// looks then whether the snapshot has been kept until now: from here on nothing can rewrite them.
pub(crate) fn join(session: &mut PostgresSession, snapshot: &str, query: &Query) -> Result<()> {
    let mut parts = snapshot.splitn(6, '\n').map(str::to_owned);
    let mut next =
        || parts.next().ok_or_else(|| Error::interface("the partition's snapshot is not PostgreSQL's"));
    let (exported, mark, user) = (next()?, next()?, next()?);
    let (parents, children, settings) = (next()?, next()?, next()?);
    let opening = [
        Step::run(BEGIN_REPEATABLE_READ),
        Step::run(format!("SET TRANSACTION SNAPSHOT {}", literal(&exported))),
    ];
    let begun = session.connection.flight(&opening);
    begun.map_err(|error| if error.sqlstate().is_some() { lost_snapshot(error.message()) } else { error })?;
    check_user(session, &user)?;
    let deadlock_lock = DeadlockLock::of(&exported);
    let steps = [
        Step::run(SETTINGS),
        Step::run(Settings(settings).adopt()),
        Step::run(deadlock_lock.acquire()),
        Step::run(format!("{EXPLAIN}{}", query.text)),
        Step::run(IS_MARKED).bind(&mark),
    ];
    let answers = session.connection.flight(&steps)?;
    if answers.last().is_none_or(|answer| answer.cell(0, 0) != "t") {
        session.connection.abandon();
        return Err(lost_snapshot("no session of this database keeps it"));
    }
    let inheritance = (!parents.is_empty()).then_some(Inheritance { parents, children });
    session.coordinator = Some(Coordinator { deadlock_lock, inheritance, sees_changes: false });
    Ok(())
}

/// Another user may see other rows, or find another table by the same name.
fn check_user(session: &mut PostgresSession, user: &str) -> Result<()> {
    let answer = session.connection.ask(Step::run(IS_USER).bind(user))?;
    if answer.cell(0, 0) == "t" {
        return Ok(());
    }
    session.connection.abandon();
    let [theirs, own] = [1, 2].map(|column| answer.cell(0, column));
    Err(Error::interface(format!(
        "the partition is one of the user {theirs:?}, and the connection one of {own:?}"
    ))
    .with_hint("read it as the user who made it: another may have other rows"))
}

fn lost_snapshot(why: &str) -> Error {
    Error::operational(format!("the snapshot of the partition is kept no longer: {why}"))
        .with_sqlstate("72000")
        .with_hint(
            "make the partitions again by adbc_execute_partitions, with a longer lease, and keep its connection open until \
             all of them are read",
        )
}
