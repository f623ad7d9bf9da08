//! One snapshot for several sessions. The server cannot export one; so all sessions begin theirs together, and compare
//! their positions in the binary log, or begin while writes are locked out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longshore_core::{Error, Kind, Result};
use longshore_source::NotSplit;

use super::tables::{Catalogue, Table};
use crate::connection::Connection;
use crate::message;
use crate::session::MySqlSession;

/// How often the sessions begin anew before they give up.
const ROUNDS: usize = 200;

/// How often a position is read before it is believed.
const READINGS: usize = 8;

/// The longest that a session waits for a change of a table, in seconds: others may wait for it meanwhile.
const PATIENCE: u8 = 2;

/// Errors of a snapshot that may be had by another attempt: a lock that did not come, a deadlock, a table that was
/// changed since the snapshot.
const PASSING: &[u16] = &[1205, 1213, 1412];

/// The meetings that are going on, by their number.
static MEETINGS: Mutex<Vec<(u64, Weak<Meeting>)>> = Mutex::new(Vec::new());

/// The next meeting's number.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Keeps a meeting going for the sessions that are to come.
pub(crate) struct Keeping(#[allow(dead_code)] Arc<Meeting>);

/// How the sessions of a meeting come to one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Snapshots at one position of the binary log are one.
    Binlog,
    /// The meeting holds the server's read lock until all have begun.
    Lock,
}

struct Meeting {
    way: Way,
    /// Statements that touch each table, and keep it from being changed until the transaction's end.
    touches: Vec<String>,
    /// Held by the one session that confirms where it stands.
    confirming: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    round: u64,
    /// Where each session of the round stands; `None` for one that could not begin.
    votes: Vec<Option<String>>,
    /// Whether the last round's were one.
    agreed: bool,
    lock: Option<Connection>,
}

/// Calls a meeting for the sessions that will read what the `catalogue` has; gives its name.
pub(super) fn call(
    session: &mut MySqlSession,
    catalogue: &Catalogue,
    may_lock: bool,
) -> Result<String, NotSplit> {
    let (way, lock) = if has_positions(&mut session.connection)? {
        (Way::Binlog, None)
    } else if may_lock {
        (Way::Lock, Some(locked(&session.connection)?))
    } else {
        return Err(NotSplit::because(
            "this server gives several sessions no common snapshot; options={\"lock\": True} locks all tables for a \
             moment instead",
        ));
    };
    let names = catalogue.tables.iter().map(Table::qualified);
    let meeting = Arc::new(Meeting {
        way,
        touches: names.map(|name| format!("SELECT 1 FROM {name} LIMIT 0")).collect(),
        confirming: Mutex::new(()),
        state: Mutex::new(State { lock, ..State::default() }),
        changed: Condvar::new(),
    });
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut meetings = MEETINGS.lock().unwrap_or_else(PoisonError::into_inner);
    meetings.retain(|(_, meeting)| meeting.strong_count() > 0);
    meetings.push((number, Arc::downgrade(&meeting)));
    drop(meetings);
    session.keeping = Some(Keeping(meeting));
    Ok(number.to_string())
}

/// Whether a snapshot tells its position in the binary log (MariaDB, `Binlog_snapshot_position`), in which every change
/// of the tables is.
fn has_positions(connection: &mut Connection) -> Result<bool, NotSplit> {
    begin(connection)?;
    let position = position(connection);
    connection.run("ROLLBACK")?;
    if position?.is_none() {
        return Ok(false);
    }
    // What a replica applies is in its own log only where it is told so.
    let running = connection.rows("SHOW GLOBAL STATUS LIKE 'Slaves_running'")?;
    let is_replica =
        running.first().is_some_and(|row| row.get(1).is_some_and(|count| count.as_deref() != Some("0")));
    if is_replica {
        let logged = connection.rows("SELECT @@global.log_slave_updates")?;
        if logged.first().and_then(|row| row.first()?.as_deref()) != Some("1") {
            return Ok(false);
        }
    }
    Ok(!has_filters(connection))
}

/// Whether some databases are kept out of the log, as far as this user may know.
fn has_filters(connection: &mut Connection) -> bool {
    let Ok(rows) = connection.rows("SHOW MASTER STATUS") else {
        connection.stop();
        return false;
    };
    let is_filter = |list: &Option<String>| list.as_ref().is_some_and(|list| !list.is_empty());
    // The log's file and position come first.
    rows.iter().any(|row| row.iter().skip(2).take(2).any(is_filter))
}

/// Another connection, which holds the server's read lock.
fn locked(connection: &Connection) -> Result<Connection, NotSplit> {
    let refused = |error: Error| match error.sqlstate() {
        Some(_) => NotSplit::Reason(format!("the tables cannot be locked: {}", error.message())),
        None => NotSplit::Failed(error),
    };
    let mut lock = connection.another()?;
    lock.run(&format!("SET lock_wait_timeout = {}", 5 * PATIENCE)).map_err(refused)?;
    lock.run("FLUSH TABLES WITH READ LOCK").map_err(refused)?;
    Ok(lock)
}

fn begin(connection: &mut Connection) -> Result<()> {
    connection.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
}

/// Where in the binary log the snapshot stands; `None` where the server does not tell.
fn position(connection: &mut Connection) -> Result<Option<String>> {
    let rows = connection.rows("SHOW STATUS LIKE 'Binlog_snapshot_%'")?;
    let named = |name: &str| {
        let row = rows.iter().find(|row| {
            row.first().is_some_and(|it| it.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(name)))
        })?;
        row.get(1)?.clone().filter(|value| !value.is_empty())
    };
    Ok(named("Binlog_snapshot_file")
        .zip(named("Binlog_snapshot_position"))
        .map(|(file, at)| format!("{file}:{at}")))
}

/// Brings the session to the moment of the meeting called `name`, at which so many `sessions` come together.
pub(crate) fn join(session: &mut MySqlSession, name: &str, sessions: usize) -> Result<()> {
    let meetings = MEETINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = meetings.iter().find(|(number, _)| number.to_string() == name);
    let meeting = found.and_then(|(_, meeting)| meeting.upgrade());
    drop(meetings);
    let meeting = meeting.ok_or_else(|| Error::internal("the snapshot's session is gone"))?;
    let connection = &mut session.connection;
    connection.run(&format!("SET lock_wait_timeout = {PATIENCE}"))?;
    // All are connected before the first begins.
    meeting.vote(connection, sessions, Some(String::new()))?;
    for _ in 0..ROUNDS {
        let stand = meeting.attempt(connection)?;
        if meeting.vote(connection, sessions, stand)? {
            let confirmed = meeting.confirm(connection)?;
            if meeting.vote(connection, sessions, confirmed)? {
                return meeting.unlock();
            }
        }
        connection.run("ROLLBACK")?;
    }
    Err(Error::operational(format!("no common snapshot of {sessions} sessions in {ROUNDS} attempts"))
        .with_hint("too much is being written: read without parts, or lock for a moment with options={\"lock\": True}"))
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a snapshot; gives where it stands, or nothing where another attempt may help.
    fn attempt(&self, connection: &mut Connection) -> Result<Option<String>> {
        let begun = self.begin(connection);
        match begun {
            Err(error) if message::code(&error).is_some_and(|code| PASSING.contains(&code)) => {
                connection.stop();
                connection.forget_loss();
                Ok(None)
            }
            begun => begun.map(Some),
        }
    }

    fn begin(&self, connection: &mut Connection) -> Result<String> {
        begin(connection)?;
        for touch in &self.touches {
            connection.run(touch)?;
        }
        match self.way {
            Way::Lock => Ok(String::new()),
            Way::Binlog => position(connection)?
                .ok_or_else(|| Error::operational("the server's binary log was turned off in between")),
        }
    }

    /// Says once more where the session stands, or nothing where that is not sure. MariaDB puts every session's position
    /// into one variable before it shows it, so that a reading may be of another session's snapshot: each session of the
    /// meeting reads alone, and so often that strangers cannot have come between every time.
    fn confirm(&self, connection: &mut Connection) -> Result<Option<String>> {
        if self.way == Way::Lock {
            return Ok(Some(String::new()));
        }
        let reading = "SELECT group_concat(variable_value ORDER BY variable_name SEPARATOR ':') FROM \
            information_schema.session_status WHERE variable_name LIKE 'Binlog_snapshot_%'";
        let alone = self.confirming.lock().unwrap_or_else(PoisonError::into_inner);
        let readings = connection.rows(&[reading; READINGS].join(" UNION ALL "))?;
        drop(alone);
        let is_one = readings.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(readings.into_iter().next().filter(|_| is_one).and_then(|row| row.into_iter().next()?))
    }

    /// Waits until so many `sessions` have said where they stand; tells whether that is one place.
    fn vote(&self, connection: &Connection, sessions: usize, stand: Option<String>) -> Result<bool> {
        let mut state = self.state();
        let round = state.round;
        state.votes.push(stand);
        if state.votes.len() >= sessions {
            let votes = std::mem::take(&mut state.votes);
            state.agreed = votes.iter().all(|vote| vote.is_some() && *vote == votes[0]);
            state.round += 1;
            self.changed.notify_all();
            return Ok(state.agreed);
        }
        while state.round == round {
            drop(state);
            connection.check()?;
            let slice = Duration::from_millis(20);
            let waited = self.changed.wait_timeout_while(self.state(), slice, |state| state.round == round);
            state = waited.map_or_else(|error| error.into_inner().0, |(state, _)| state);
        }
        Ok(state.agreed)
    }

    /// All have begun: others may write again.
    fn unlock(&self) -> Result<()> {
        let lock = self.state().lock.take();
        match lock {
            Some(mut lock) => lock.run("UNLOCK TABLES").map_err(|error| match error.kind() {
                // A lock that was lost has not kept others from writing.
                Kind::Operational => error.within("the lock was lost while the snapshots began"),
                _ => error,
            }),
            None => Ok(()),
        }
    }
}
