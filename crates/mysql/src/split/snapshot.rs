//! One snapshot for several sessions. The server cannot export one; so all sessions begin theirs together, and compare
//! their positions in the binary log, or begin while writes are locked out.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_core::{Error, Kind, Result};
use longshore_source::NotSplit;
use longshore_source::split::SharedSnapshots;

use super::tables::{Catalogue, Table};
use crate::connection::Connection;
use crate::message;
use crate::session::MySqlSession;

/// How often the sessions begin again before they give up.
const ROUNDS: usize = 200;

/// How often a position is read before it is believed.
const READINGS: usize = 8;

/// The longest that a session waits for a change of a table, in seconds: others may wait for it meanwhile.
const LOCK_TIMEOUT: u8 = 2;

/// Errors after which another attempt may have a snapshot: a lock that did not come, a deadlock, a table that was changed
/// since the snapshot.
const TRANSIENT: &[u16] = &[1205, 1213, 1412];

/// The shared snapshots that sessions still join.
static SNAPSHOTS: SharedSnapshots<SharedSnapshot> = SharedSnapshots::new();

/// How the sessions of a shared snapshot come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Snapshots at one position of the binary log are one.
    Binlog,
    /// A connection holds the server's read lock until all have begun.
    Lock,
}

/// A snapshot that several sessions share, and where they wait for each other.
pub(crate) struct SharedSnapshot {
    method: Method,
    /// Statements that touch each table, and keep it from being changed until the transaction's end.
    touches: Vec<String>,
    /// Held by the one session that confirms its position.
    confirming: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    round: u64,
    /// The position of each session of the round; `None` for one that could not begin.
    positions: Vec<Option<String>>,
    /// Whether the last round's positions were the same.
    agreed: bool,
    lock: Option<Connection>,
}

/// Makes a snapshot for the sessions that will read the tables of `catalogue` known; gives its name.
pub(super) fn announce(
    session: &mut MySqlSession,
    catalogue: &Catalogue,
    may_lock: bool,
) -> Result<String, NotSplit> {
    let (method, lock) = if has_positions(&mut session.connection)? {
        (Method::Binlog, None)
    } else if may_lock {
        (Method::Lock, Some(lock(&session.connection)?))
    } else {
        return Err(NotSplit::because(
            "this server gives several sessions no common snapshot; options={\"lock\": True} locks all tables \
             while the snapshots begin instead",
        ));
    };
    let names = catalogue.tables.iter().map(Table::qualified_name);
    let shared = Arc::new(SharedSnapshot {
        method,
        touches: names.map(|name| format!("SELECT 1 FROM {name} LIMIT 0")).collect(),
        confirming: Mutex::new(()),
        state: Mutex::new(State { lock, ..State::default() }),
        changed: Condvar::new(),
    });
    let name = SNAPSHOTS.announce(&shared);
    session.shared_snapshot = Some(shared);
    Ok(name)
}

/// Whether a snapshot tells its position in the binary log (MariaDB, `Binlog_snapshot_position`), in which every change
/// of the tables is.
fn has_positions(connection: &mut Connection) -> Result<bool, NotSplit> {
    connection.begin_snapshot()?;
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
        let is_logged = connection.value("SELECT @@global.log_slave_updates")?;
        if is_logged.as_deref() != Some("1") {
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
fn lock(connection: &Connection) -> Result<Connection, NotSplit> {
    let refused = |error: Error| match error.sqlstate() {
        Some(_) => NotSplit::Reason(format!("the tables cannot be locked: {}", error.message())),
        None => NotSplit::Failed(error),
    };
    let mut lock = connection.another()?;
    lock.run(&format!("SET lock_wait_timeout = {}", 5 * LOCK_TIMEOUT)).map_err(refused)?;
    lock.run("FLUSH TABLES WITH READ LOCK").map_err(refused)?;
    Ok(lock)
}

/// The position of the snapshot in the binary log; `None` where the server does not tell it.
fn position(connection: &mut Connection) -> Result<Option<String>> {
    let rows = connection.rows("SHOW STATUS LIKE 'Binlog_snapshot_%'")?;
    let named = |name: &str| {
        let is_named = |cell: &Option<String>| cell.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(name));
        let row = rows.iter().find(|row| row.first().is_some_and(is_named))?;
        row.get(1)?.clone().filter(|value| !value.is_empty())
    };
    let position = named("Binlog_snapshot_file").zip(named("Binlog_snapshot_position"));
    Ok(position.map(|(file, at)| format!("{file}:{at}")))
}

/// Has the session begin the shared snapshot called `name`, as so many `sessions` do.
pub(crate) fn join(session: &mut MySqlSession, name: &str, sessions: usize) -> Result<()> {
    let shared = SNAPSHOTS.find(name)?;
    let connection = &mut session.connection;
    connection.run(&format!("SET lock_wait_timeout = {LOCK_TIMEOUT}"))?;
    // All are connected before the first begins.
    shared.compare(connection, sessions, Some(String::new()))?;
    for _ in 0..ROUNDS {
        let position = shared.attempt(connection)?;
        if shared.compare(connection, sessions, position)? {
            let confirmed = shared.confirm(connection)?;
            if shared.compare(connection, sessions, confirmed)? {
                return shared.unlock();
            }
        }
        connection.run("ROLLBACK")?;
    }
    Err(Error::operational(format!("no common snapshot of {sessions} sessions in {ROUNDS} attempts"))
        .with_hint("too much is being written: read without parts, or lock while the snapshots begin with options={\"lock\": True}"))
}

impl SharedSnapshot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a snapshot; gives its position, or nothing where another attempt may help.
    fn attempt(&self, connection: &mut Connection) -> Result<Option<String>> {
        match self.begin(connection) {
            Err(error) if message::code(&error).is_some_and(|code| TRANSIENT.contains(&code)) => {
                connection.stop();
                connection.forget_loss();
                Ok(None)
            }
            position => position.map(Some),
        }
    }

    fn begin(&self, connection: &mut Connection) -> Result<String> {
        connection.begin_snapshot()?;
        for touch in &self.touches {
            connection.run(touch)?;
        }
        match self.method {
            Method::Lock => Ok(String::new()),
            Method::Binlog => position(connection)?
                .ok_or_else(|| Error::operational("the server's binary log was turned off in between")),
        }
    }

    /// Reads the position once more, or nothing where it is not sure. MariaDB puts every session's position into one
    /// variable before it shows it, so that a reading may be of another session's snapshot: each session reads alone, and
    /// so often that sessions of others cannot have come between every time.
    fn confirm(&self, connection: &mut Connection) -> Result<Option<String>> {
        if self.method == Method::Lock {
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

    /// Waits until so many `sessions` have given their position; tells whether it is the same.
    fn compare(&self, connection: &Connection, sessions: usize, position: Option<String>) -> Result<bool> {
        let mut state = self.state();
        let round = state.round;
        state.positions.push(position);
        if state.positions.len() >= sessions {
            let positions = std::mem::take(&mut state.positions);
            state.agreed = positions.iter().all(|position| position.is_some() && *position == positions[0]);
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
