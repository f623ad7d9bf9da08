//! One moment of a file for several connections (sqlite.org/isolation.html).
//!
//! With a rollback journal, nobody commits while the coordinator has its shared lock. In WAL mode whoever begins before
//! anybody commits finds the coordinator's moment; the others open its snapshot, for which no checkpoint may be under way.
//! Where the log is empty there is no snapshot to open; but while the coordinator reads, nothing goes from the log into the
//! file, so that whoever finds the log still empty reads the same.

use std::time::Duration;

use longshore_core::{Error, Result};

use crate::cell::{Cell, hex};
use crate::connection::Snapshot;
use crate::session::SqliteSession;

/// What a session has to find when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Moment {
    /// A rollback journal, whose shared lock the coordinator has.
    Locked,
    /// WAL mode with an empty log.
    Empty,
    /// WAL mode.
    Logged(Snapshot),
}

/// The longest wait for a lock while a session joins: whoever has it may wait for the coordinator.
const BUSY_TIMEOUT: Duration = Duration::from_millis(200);

/// Begins a transaction on `session`, and tells in a text what others need to see the same.
pub(super) fn take(session: &mut SqliteSession) -> Result<String> {
    session.exec("BEGIN")?;
    // The very first look: it keeps a log that has been copied into the file from being begun anew, and the snapshot lost.
    Snapshot::of(&session.connection)?;
    session.exec("SELECT 1 FROM sqlite_schema LIMIT 1")?;
    let moment = of(session)?;
    Ok(format!("{} {}", file_of(session)?, written(&moment)))
}

/// Begins a transaction on `session` that sees what the one that gave `text` sees.
pub(crate) fn join(session: &mut SqliteSession, text: &str) -> Result<()> {
    let (file, moment) = text.split_once(' ').ok_or_else(|| Error::internal("no moment to join"))?;
    let moment = read(moment).ok_or_else(|| Error::internal("no moment to join"))?;
    let before = session.connection.set_busy_timeout(BUSY_TIMEOUT.min(session.settings.open.busy_timeout));
    let found = find(session, &moment);
    session.connection.set_busy_timeout(before);
    found.map_err(|error| error.within("the parts did not get one snapshot"))?;
    if file_of(session)? == file { Ok(()) } else { Err(changed()) }
}

/// Begins a transaction on `session` that sees `moment`.
fn find(session: &mut SqliteSession, moment: &Moment) -> Result<()> {
    session.exec("BEGIN")?;
    session.exec("SELECT 1 FROM sqlite_schema LIMIT 1")?;
    // Nobody has committed meanwhile. A snapshot could not be opened while a checkpoint waits, perhaps for the coordinator.
    if of(session)? == *moment {
        return Ok(());
    }
    let Moment::Logged(snapshot) = moment else { return Err(changed()) };
    session.exec("ROLLBACK")?;
    session.exec("BEGIN")?;
    snapshot.open(&session.connection)?;
    session.exec("SELECT 1 FROM sqlite_schema LIMIT 1")
}

fn changed() -> Error {
    Error::operational("another process wrote to the database, or replaced its file, while the parts began")
        .with_hint("read again; or without parts, or without one snapshot: options={\"snapshot\": False}")
        .passing()
}

fn of(session: &SqliteSession) -> Result<Moment> {
    let mode = session.query("PRAGMA journal_mode", |row| match row.cell(0) {
        Cell::Text(mode) => mode.to_ascii_lowercase(),
        _ => Vec::new(),
    })?;
    if mode.first().map(Vec::as_slice) != Some(b"wal") {
        return Ok(Moment::Locked);
    }
    Ok(Snapshot::of(&session.connection)?.map_or(Moment::Empty, Moment::Logged))
}

/// Which file is open, whatever its name.
#[cfg(unix)]
fn file_of(session: &SqliteSession) -> Result<String> {
    use std::os::unix::fs::MetadataExt;
    let path = session.settings.file.as_deref().unwrap_or_default();
    let found = std::fs::metadata(path)
        .map_err(|error| Error::operational(format!("{path:?} is not there any more")).with_source(error))?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}

/// An open file cannot be replaced.
#[cfg(not(unix))]
fn file_of(_session: &SqliteSession) -> Result<String> {
    Ok("file".to_owned())
}

fn written(moment: &Moment) -> String {
    match moment {
        Moment::Locked => "locked".to_owned(),
        Moment::Empty => "empty".to_owned(),
        Moment::Logged(Snapshot(bytes)) => hex(bytes),
    }
}

fn read(text: &str) -> Option<Moment> {
    match text {
        "locked" => Some(Moment::Locked),
        "empty" => Some(Moment::Empty),
        hex => {
            let bytes = longshore_cells::text::unhex(hex.as_bytes())?;
            Some(Moment::Logged(Snapshot(bytes.try_into().ok()?)))
        }
    }
}
