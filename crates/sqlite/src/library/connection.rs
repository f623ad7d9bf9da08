//! One connection to a database.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use libsqlite3_sys as ffi;
use longshore_core::{Error, Kind, Result, Watch};

use super::statement::Statement;
use super::watching::Watching;
use crate::fault;

/// How a database is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// A path, `:memory:`, or a URI that starts with `file:`.
    pub(crate) name: String,
    /// Whether it is only read.
    pub(crate) read_only: bool,
    /// Whether a file that is not there is made.
    pub(crate) create: bool,
    /// How long to wait for a lock.
    pub(crate) patience: Duration,
}

/// A connection. One thread at a time uses it.
pub(crate) struct Connection(Arc<Handle>);

pub(super) struct Handle {
    pub(super) raw: *mut ffi::sqlite3,
    watching: Box<Watching>,
    process: u32,
}

// SAFETY: SQLite is compiled threadsafe; a connection opened with NOMUTEX may move between threads as long as one at a
// time uses it. `Connection` and `Statement`, which together stand for it, are moved together and are not `Sync`.
unsafe impl Send for Handle {}
// SAFETY: a handle is shared only by a connection and its statements, which move together: an `Arc` moves what is `Sync`.
unsafe impl Sync for Handle {}

impl Connection {
    pub(crate) fn open(open: &Open, watch: &Watch) -> Result<Self> {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        {
            super::locks::install();
            if super::locks::is_inherited(&open.name) {
                return Err(Error::interface("the file was open when this process was forked from another")
                    .with_hint(
                        "close it before the fork, or start new processes: multiprocessing's \"spawn\"",
                    ));
            }
        }
        let name = CString::new(open.name.as_str())
            .map_err(|_| Error::interface("the database's name has a zero byte in it"))?;
        let access = if open.read_only { ffi::SQLITE_OPEN_READONLY } else { ffi::SQLITE_OPEN_READWRITE };
        let create = if open.create { ffi::SQLITE_OPEN_CREATE } else { 0 };
        let flags = access | create | ffi::SQLITE_OPEN_NOMUTEX | ffi::SQLITE_OPEN_EXRESCODE;
        let mut raw = ptr::null_mut();
        // SAFETY: the name ends with a zero byte, and `raw` takes the handle, which comes even with an error.
        let code = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &raw mut raw, flags, ptr::null()) };
        if raw.is_null() {
            return Err(fault::error(ffi::SQLITE_NOMEM, "out of memory"));
        }
        let watching = Box::new(Watching::new(watch.clone(), open.patience));
        let handle = Handle { raw, watching, process: std::process::id() };
        if code != ffi::SQLITE_OK {
            return Err(handle.error());
        }
        // SAFETY: the connection is open, and `Handle` closes it before the watching goes. The two settings take an int
        // and a pointer that may be null.
        unsafe {
            handle.watching.install(raw);
            let off = |setting: c_int| ffi::sqlite3_db_config(raw, setting, 0, ptr::null_mut::<c_int>());
            off(ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION);
            // As SQLite has it where nobody decides otherwise.
            off(ffi::SQLITE_DBCONFIG_ENABLE_FKEY);
        }
        Ok(Self(Arc::new(handle)))
    }

    pub(crate) fn attend(&self, watch: &Watch) {
        self.0.watching.attend(watch);
    }

    /// How long to wait for a lock from here on; gives how long it was.
    pub(crate) fn be_patient(&self, patience: Duration) -> Duration {
        self.0.watching.be_patient(patience)
    }

    /// Has statements go on where they would be stopped, until it is told otherwise: a change that is stopped takes the whole
    /// transaction with it. [`Connection::look`] tells instead.
    pub(crate) fn hold(&self, is_held: bool) {
        self.0.watching.hold(is_held);
    }

    /// Fails where the caller does not want to go on.
    pub(crate) fn look(&self) -> Result<()> {
        self.0.look()
    }

    /// Whether this is the process that opened it: locks do not pass to a forked child.
    pub(crate) fn is_ours(&self) -> bool {
        self.0.process == std::process::id()
    }

    /// The first statement of `text`, and what follows it; `None` where there is none, as in a comment.
    pub(crate) fn prepare<'a>(&self, text: &'a str) -> Result<(Option<Statement>, &'a str)> {
        if !self.is_ours() {
            return Err(Error::interface("the connection belongs to the process that opened it")
                .with_hint("connect again after a fork"));
        }
        let length = c_int::try_from(text.len())
            .map_err(|_| Error::programming("the statement is longer than 2 GiB"))?;
        let (mut raw, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the text lives for the call, and `length` keeps SQLite within it; a zero byte would end it early,
        // and is then left over.
        let code = unsafe {
            ffi::sqlite3_prepare_v2(
                self.0.raw,
                text.as_ptr().cast::<c_char>(),
                length,
                &raw mut raw,
                &raw mut tail,
            )
        };
        if code != ffi::SQLITE_OK {
            return Err(self.0.error_in(text));
        }
        // SAFETY: `tail` points into the text, or to its end.
        let used = unsafe { tail.offset_from(text.as_ptr().cast::<c_char>()) };
        let rest = usize::try_from(used).ok().and_then(|used| text.get(used..)).unwrap_or_default();
        Ok((Statement::new(raw, self.0.clone()), rest))
    }

    /// Whether no transaction is open.
    pub(crate) fn is_idle(&self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.0.raw) != 0 }
    }

    /// How many rows the last INSERT, UPDATE or DELETE changed.
    pub(crate) fn changes(&self) -> u64 {
        // SAFETY: the connection is open.
        u64::try_from(unsafe { ffi::sqlite3_changes64(self.0.raw) }).unwrap_or_default()
    }

    /// Whether a column of a table is declared NOT NULL, and whether it is (part of) the primary key.
    pub(crate) fn promises(&self, schema: &CStr, table: &CStr, column: &CStr) -> Option<(bool, bool)> {
        let (mut not_null, mut primary, mut auto) = (0, 0, 0);
        // SAFETY: all names end with a zero byte; the two null pointers are for what is not wanted.
        let code = unsafe {
            ffi::sqlite3_table_column_metadata(
                self.0.raw,
                schema.as_ptr(),
                table.as_ptr(),
                column.as_ptr(),
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut not_null,
                &raw mut primary,
                &raw mut auto,
            )
        };
        (code == ffi::SQLITE_OK).then_some((not_null != 0, primary != 0))
    }

    pub(super) fn handle(&self) -> Arc<Handle> {
        self.0.clone()
    }

    pub(super) fn raw(&self) -> *mut ffi::sqlite3 {
        self.0.raw
    }

    /// The error of a call that gave `code` and leaves the connection's own error as it was.
    pub(super) fn error_of(&self, code: c_int) -> Error {
        if let Some(stopped) = self.0.watching.take_stopped() {
            return stopped;
        }
        // SAFETY: SQLite has a text of its own for every code, which is there for ever.
        let text = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(code)) };
        fault::error(code, &text.to_string_lossy())
    }
}

impl Handle {
    /// Fails where the caller does not want to go on.
    pub(super) fn look(&self) -> Result<()> {
        self.watching.look().map_or(Ok(()), Err)
    }

    /// The last error.
    pub(super) fn error(&self) -> Error {
        if let Some(stopped) = self.watching.take_stopped() {
            return stopped;
        }
        // SAFETY: the connection is there; the message is copied before anything else is called.
        let (code, message) = unsafe {
            let message = ffi::sqlite3_errmsg(self.raw);
            let text = if message.is_null() {
                String::new()
            } else {
                CStr::from_ptr(message).to_string_lossy().into()
            };
            (ffi::sqlite3_extended_errcode(self.raw), text)
        };
        fault::error(code, &message)
    }

    /// The last error, with its position in `text` where SQLite tells one.
    fn error_in(&self, text: &str) -> Error {
        // SAFETY: the connection is open.
        let offset = unsafe { ffi::sqlite3_error_offset(self.raw) };
        let error = self.error();
        let before = usize::try_from(offset).ok().and_then(|offset| text.get(..offset));
        let position = before.and_then(|before| u32::try_from(before.chars().count() + 1).ok());
        match position {
            Some(position) if error.kind() == Kind::Programming => error.with_position(position),
            _ => error,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A forked child has its parent's locks in its hands: it must leave the file alone.
        if self.process == std::process::id() {
            // SAFETY: nobody uses the handle any more; statements hold it, so all of them are finalized.
            unsafe { ffi::sqlite3_close(self.raw) };
        }
    }
}
