//! A moment of a database in WAL mode (sqlite.org/c3ref/snapshot.html), which other connections can read.

use std::ptr;

use libsqlite3_sys as ffi;
use longshore_core::Result;

use super::connection::Connection;

/// The bytes of a `sqlite3_snapshot`, which has no pointers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(pub(crate) [u8; SIZE]);

pub(crate) const SIZE: usize = size_of::<ffi::sqlite3_snapshot>();

impl Snapshot {
    /// The moment of `connection`'s open read transaction; `None` where the log is empty, so that there is none.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open; `raw` takes what is allocated.
        let code = unsafe { ffi::sqlite3_snapshot_get(connection.raw(), c"main".as_ptr(), &raw mut raw) };
        if code != ffi::SQLITE_OK || raw.is_null() {
            return None;
        }
        // SAFETY: SQLite gave a snapshot, whose bytes are copied before it is freed.
        let bytes = unsafe {
            let bytes = *raw.cast::<[u8; SIZE]>();
            ffi::sqlite3_snapshot_free(raw);
            bytes
        };
        Some(Self(bytes))
    }

    /// Has the transaction that `connection` has begun, and has not read in, read this moment.
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
        let code = unsafe { ffi::sqlite3_snapshot_open(connection.raw(), c"main".as_ptr(), raw) };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(connection.error()) }
    }
}
