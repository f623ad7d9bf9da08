//! One snapshot for several sessions. The server cannot export one: all sessions begin theirs while one more keeps others
//! from changing the tables.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_core::{ReadOptions, Result};
use longshore_source::NotSplit;
use longshore_source::split::SharedSnapshots;

use super::statement::Statement;
use crate::connection::Connection;
use crate::session::MsSqlSession;

/// The longest that the lock is waited for, in milliseconds: others may wait behind it meanwhile.
const LOCK_TIMEOUT: u16 = 10_000;

/// The shared snapshots that sessions still join.
static SNAPSHOTS: SharedSnapshots<SharedSnapshot> = SharedSnapshots::new();

/// A snapshot that several sessions share.
pub(crate) struct SharedSnapshot {
    /// Statements that touch each table: a snapshot begins with its first read.
    touches: Vec<String>,
    state: Mutex<State>,
}

struct State {
    /// The sessions that have begun.
    joined: usize,
    /// The connection that keeps others from changing the tables, until all have.
    lock: Option<Connection>,
}

/// The tables that are to be locked for `statements`; or why the sessions can have no snapshot in common.
pub(super) fn tables(
    session: &mut MsSqlSession,
    statements: &[Statement<'_>],
    options: &ReadOptions,
) -> Result<Vec<String>, NotSplit> {
    if !options.own.has("lock", "true") {
        return Err(NotSplit::because(
            "SQL Server gives several sessions no common snapshot; options={\"lock\": True} keeps others from writing \
             while the snapshots begin instead",
        ));
    }
    let allowed = "SELECT snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()";
    let rows = session.connection.table(allowed, Vec::new())?;
    if rows.first().and_then(|row| row.first()?.as_deref()) != Some("1") {
        return Err(NotSplit::because(
            "the database does not allow snapshots: ALTER DATABASE ... SET ALLOW_SNAPSHOT_ISOLATION ON",
        ));
    }
    let mut tables = Vec::new();
    for statement in statements {
        tables.extend(statement.tables()?);
    }
    // In one order for all, so that two reads never wait for each other.
    tables.sort();
    tables.dedup();
    Ok(tables)
}

/// Makes a snapshot of `tables` known for the sessions that will read them; gives its name.
pub(super) fn announce(session: &mut MsSqlSession, tables: &[String]) -> Result<String, NotSplit> {
    let mut lock = Connection::open(&session.settings, session.connection.deadline())?;
    lock_tables(&mut lock, tables).map_err(|error| match error.sqlstate() {
        Some(_) => NotSplit::Reason(format!("the tables cannot be locked: {}", error.message())),
        None => NotSplit::Failed(error),
    })?;
    let shared = Arc::new(SharedSnapshot {
        touches: tables.iter().map(|table| format!("SELECT TOP (1) 1 FROM {table}")).collect(),
        state: Mutex::new(State { joined: 0, lock: Some(lock) }),
    });
    let name = SNAPSHOTS.announce(&shared);
    session.shared_snapshot = Some(shared);
    Ok(name)
}

/// Takes shared locks, which wait for those who write, and hold later ones off.
fn lock_tables(lock: &mut Connection, tables: &[String]) -> Result<()> {
    lock.run(&format!("SET LOCK_TIMEOUT {LOCK_TIMEOUT}; BEGIN TRANSACTION"))?;
    for table in tables {
        lock.run(&format!("SELECT TOP (1) 1 FROM {table} WITH (TABLOCK, HOLDLOCK)"))?;
    }
    Ok(())
}

/// Has the session begin the shared snapshot called `name`, as so many `sessions` do. The last of them ends the lock.
pub(super) fn join(session: &mut MsSqlSession, name: &str, sessions: usize) -> Result<()> {
    let shared = SNAPSHOTS.find(name)?;
    session.begin_isolated()?;
    for touch in &shared.touches {
        session.connection.run(touch)?;
    }
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.joined += 1;
    if state.joined < sessions {
        return Ok(());
    }
    let Some(mut lock) = state.lock.take() else { return Ok(()) };
    drop(state);
    // A lock that was lost has not kept others from writing.
    lock.run("COMMIT TRANSACTION")
        .map_err(|error| error.within("the lock was lost while the snapshots began"))
}
