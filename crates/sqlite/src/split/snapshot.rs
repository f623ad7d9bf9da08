//! One snapshot of a file for several connections (sqlite.org/isolation.html).
//!
//! With a rollback journal, no other connection commits while the coordinator has its shared lock. In WAL mode a session that
//! begins before a commit finds the coordinator's snapshot; the others open it, for which no checkpoint may be under way.
//! Where the log is empty there is no snapshot to open; but while the coordinator reads, nothing goes from the log into the
//! file, so that a session that finds the log still empty reads the same.

use std::time::Duration;

use longshore_core::{Error, Result};
use longshore_values::text::{hex, unhex};

use crate::connection::Snapshot;
use crate::session::SqliteSession;

/// The state that a session has to find when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SharedSnapshot {
    /// A rollback journal, whose shared lock the coordinator has.
    Locked,
    /// WAL mode with an empty log.
    EmptyLog,
    /// WAL mode.
    Wal(Snapshot),
}

/// The longest wait for a lock while a session joins: the connection that has it may wait for the coordinator.
const BUSY_TIMEOUT: Duration = Duration::from_millis(200);

/// Begins a transaction on `session`; the text says what others need to see the same.
pub(super) fn export(session: &mut SqliteSession) -> Result<String> {
    session.exec("BEGIN")?;
    // The very first read: it keeps a log that has been copied into the file from being begun again, and the snapshot lost.
    Snapshot::of(&session.connection)?;
    session.exec("SELECT 1 FROM sqlite_schema LIMIT 1")?;
    Ok(format!("{} {}", file_of(session)?, SharedSnapshot::of(session)?.text()))
}

/// Begins a transaction on `session` that sees what the one that gave `text` sees.
pub(crate) fn join(session: &mut SqliteSession, text: &str) -> Result<()> {
    let parsed = text.split_once(' ').and_then(|(file, text)| Some((file, SharedSnapshot::parse(text)?)));
    let (file, snapshot) = parsed.ok_or_else(|| Error::internal("the snapshot to join cannot be read"))?;
    let before = session.connection.set_busy_timeout(BUSY_TIMEOUT.min(session.settings.open.busy_timeout));
    let begun = begin(session, &snapshot);
    session.connection.set_busy_timeout(before);
    begun.map_err(|error| error.within("the parts did not get one snapshot"))?;
    if file_of(session)? == file { Ok(()) } else { Err(changed_file()) }
}

/// Begins a transaction on `session` that sees `snapshot`.
fn begin(session: &mut SqliteSession, snapshot: &SharedSnapshot) -> Result<()> {
    session.exec("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1")?;
    // There was no commit meanwhile. A snapshot could not be opened while a checkpoint waits, perhaps for the coordinator.
    if SharedSnapshot::of(session)? == *snapshot {
        return Ok(());
    }
    let SharedSnapshot::Wal(snapshot) = snapshot else { return Err(changed_file()) };
    session.exec("ROLLBACK; BEGIN")?;
    snapshot.open(&session.connection)?;
    session.exec("SELECT 1 FROM sqlite_schema LIMIT 1")
}

fn changed_file() -> Error {
    Error::operational("another process wrote to the database, or replaced its file, while the parts began")
        .with_hint("read again; or without parts, or without one snapshot: options={\"snapshot\": False}")
        .transient()
}

impl SharedSnapshot {
    fn of(session: &SqliteSession) -> Result<Self> {
        let mode = session.query("PRAGMA journal_mode", |row| row.text(0))?;
        if !mode.first().is_some_and(|mode| mode.eq_ignore_ascii_case("wal")) {
            return Ok(Self::Locked);
        }
        Ok(Snapshot::of(&session.connection)?.map_or(Self::EmptyLog, Self::Wal))
    }

    fn text(&self) -> String {
        match self {
            Self::Locked => "locked".to_owned(),
            Self::EmptyLog => "empty".to_owned(),
            Self::Wal(Snapshot(bytes)) => hex(bytes),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "locked" => Self::Locked,
            "empty" => Self::EmptyLog,
            hex => Self::Wal(Snapshot(unhex(hex.as_bytes())?.try_into().ok()?)),
        })
    }
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
