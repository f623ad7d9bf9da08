//! A snapshot of a database in WAL mode (sqlite.org/c3ref/snapshot.html), which other connections can read.

use std::ptr;

use libsqlite3_sys as ffi;
use longshore_core::Result;

use super::Connection;

/// The bytes of a `sqlite3_snapshot`, which has no pointers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(pub(crate) [u8; SIZE]);

pub(crate) const SIZE: usize = size_of::<ffi::sqlite3_snapshot>();

impl Snapshot {
    /// The snapshot of `connection`'s transaction, which begins to read where it has not yet; `None` where there is no log,
    /// or an empty one.
    pub(crate) fn of(connection: &Connection) -> Result<Option<Self>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open; `raw` takes what is allocated.
        let code = unsafe { ffi::sqlite3_snapshot_get(connection.0.raw, c"main".as_ptr(), &raw mut raw) };
        if code == ffi::SQLITE_ERROR {
            return Ok(None);
        }
        if code != ffi::SQLITE_OK || raw.is_null() {
            return Err(connection.error_of(code));
        }
        // SAFETY: SQLite gave a snapshot, whose bytes are copied before it is freed.
        let bytes = unsafe {
            let bytes = *raw.cast::<[u8; SIZE]>();
            ffi::sqlite3_snapshot_free(raw);
            bytes
        };
        Ok(Some(Self(bytes)))
    }

    /// Has the transaction that `connection` has begun, and has not read in, read this snapshot.
    pub(crate) fn open(&self, connection: &Connection) -> Result<()> {
        // Aligned as the integers within that SQLite reads.
        let mut aligned = [0_u64; SIZE.div_ceil(8)];
        for (word, bytes) in aligned.iter_mut().zip(self.0.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        let raw = aligned.as_mut_ptr().cast::<ffi::sqlite3_snapshot>();
        // SAFETY: these are the bytes of a snapshot of this process, and SQLite only reads them.
        let code = unsafe { ffi::sqlite3_snapshot_open(connection.0.raw, c"main".as_ptr(), raw) };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(connection.error_of(code)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use longshore_core::Deadline;

    use super::*;
    use crate::Cell;
    use crate::connection::Open;

    fn open(path: &str) -> Connection {
        let busy_timeout = Duration::from_millis(50);
        let open = Open { name: path.to_owned(), read_only: false, create: true, busy_timeout, attach: true };
        Connection::open(&open, &Deadline::never()).unwrap()
    }

    /// Waits for the readers of earlier snapshots, but not for a reader that is beginning: that one it must meet again.
    fn checkpoint(writer: &Connection) {
        let mut statement = writer.prepare("PRAGMA wal_checkpoint(FULL)").unwrap().0.unwrap();
        let mut is_done = false;
        while !is_done {
            assert!(statement.step().unwrap());
            is_done = matches!(statement.cell(0), Cell::Integer(0));
            statement.reset();
        }
    }

    fn exec(connection: &Connection, text: &str) {
        let mut statement = connection.prepare(text).unwrap().0.unwrap();
        while statement.step().unwrap() {}
    }

    /// The test of a connection that begins with `snapshot`.
    fn try_open(connection: &Connection, snapshot: &Snapshot) -> Result<()> {
        exec(connection, "BEGIN");
        let opened = snapshot.open(connection);
        exec(connection, "ROLLBACK");
        opened
    }

    #[test]
    fn what_keeps_a_snapshot_from_being_opened_is_told() {
        let path = std::env::temp_dir().join(format!("longshore-snapshot-{}.db", std::process::id()));
        let path = path.to_str().unwrap();
        let (keeper, writer, other) = (open(path), open(path), open(path));
        for text in ["PRAGMA journal_mode = wal", "CREATE TABLE t (a)", "INSERT INTO t VALUES (1)"] {
            exec(&writer, text);
        }
        for reader in [&keeper, &other] {
            exec(reader, "SELECT 1 FROM t");
        }
        exec(&keeper, "BEGIN");
        let snapshot = Snapshot::of(&keeper).unwrap().unwrap();
        exec(&writer, "INSERT INTO t VALUES (2)");
        try_open(&other, &snapshot).unwrap();
        writer.set_busy_timeout(Duration::from_secs(60));
        let checkpoint = std::thread::spawn(move || checkpoint(&writer));
        let until = Instant::now() + Duration::from_secs(10);
        let busy = loop {
            match try_open(&other, &snapshot) {
                Err(error) => break error,
                Ok(()) => assert!(Instant::now() < until, "no checkpoint waits"),
            }
        };
        assert_eq!((busy.message(), busy.is_transient()), ("database is locked [SQLITE_BUSY]", true));
        exec(&keeper, "COMMIT");
        checkpoint.join().unwrap();
        let gone = try_open(&other, &snapshot).unwrap_err();
        assert!(gone.is_transient() && gone.message().contains("SQLITE_ERROR_SNAPSHOT"), "{gone}");
        drop((keeper, other));
        std::fs::remove_file(path).unwrap();
    }
}
