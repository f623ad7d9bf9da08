//! A connection to a database, through SQLite's C interface (sqlite.org/c3ref): this folder makes it safe, and is the only one
//! of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libsqlite3_sys as ffi;
use longshore_core::{Deadline, Error, Kind, Process, Result};

use crate::error::error_of;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod locks;
mod regexp;
mod snapshot;
mod statement;
mod virtual_table;

pub(crate) use snapshot::Snapshot;
pub(crate) use statement::{Origin, Signature, Statement};
pub(crate) use virtual_table::{BatchInsert, ROWS_PER_CHECK, ResultSetter};

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
    pub(crate) busy_timeout: Duration,
    /// Whether a statement may open other files, by ATTACH or VACUUM INTO.
    pub(crate) attach: bool,
}

/// A connection. One thread at a time uses it.
pub(crate) struct Connection(Arc<Handle>);

struct Handle {
    raw: *mut ffi::sqlite3,
    interrupt: Box<Interrupt>,
    /// A forked child has its parent's locks in its hands: it must leave the file alone.
    process: Process,
}

// SAFETY: SQLite is compiled threadsafe; a connection opened with NOMUTEX may move between threads as long as one at a
// time uses it. `Connection` and `Statement`, which together stand for it, are moved together and are not `Sync`.
unsafe impl Send for Handle {}
// SAFETY: a handle is shared only by a connection and its statements, which move together: an `Arc` moves what is `Sync`.
unsafe impl Sync for Handle {}

impl Connection {
    pub(crate) fn open(open: &Open, deadline: &Deadline) -> Result<Self> {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        {
            install_locks();
            if locks::is_inherited(&open.name) {
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
            return Err(error_of(ffi::SQLITE_NOMEM, "out of memory"));
        }
        let interrupt = Box::new(Interrupt::new(deadline.clone(), open.busy_timeout));
        let handle = Handle { raw, interrupt, process: Process::current() };
        if code != ffi::SQLITE_OK {
            return Err(handle.error());
        }
        // SAFETY: the connection is open, and `Handle` closes it before the interrupt goes. The two settings take an int
        // and a pointer that may be null.
        unsafe {
            handle.interrupt.install(raw);
            regexp::install(raw);
            let off = |setting: c_int| ffi::sqlite3_db_config(raw, setting, 0, ptr::null_mut::<c_int>());
            off(ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION);
            // As SQLite has it by default.
            off(ffi::SQLITE_DBCONFIG_ENABLE_FKEY);
            if !open.attach {
                ffi::sqlite3_limit(raw, ffi::SQLITE_LIMIT_ATTACHED, 0);
            }
        }
        Ok(Self(Arc::new(handle)))
    }

    pub(crate) fn set_deadline(&self, deadline: &Deadline) {
        let mut state = self.0.interrupt.state();
        state.deadline = deadline.clone();
        state.stopped = None;
        state.is_deferred = false;
    }

    /// How long to wait for a lock from here on; gives how long it was.
    pub(crate) fn set_busy_timeout(&self, busy_timeout: Duration) -> Duration {
        std::mem::replace(&mut self.0.interrupt.state().busy_timeout, busy_timeout)
    }

    /// Has statements go on where they would be stopped, until it is told otherwise: a change that is stopped takes the whole
    /// transaction with it. [`Connection::check`] fails instead.
    pub(crate) fn defer_interrupts(&self, is_deferred: bool) {
        self.0.interrupt.state().is_deferred = is_deferred;
    }

    /// Fails where the caller does not want to go on.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.check()
    }

    /// Fails in a forked child.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.0.process.check("connection")
    }

    /// The first statement of `text`, and what follows it; `None` where there is none, as in a comment.
    pub(crate) fn prepare<'a>(&self, text: &'a str) -> Result<(Option<Statement>, &'a str)> {
        self.check_process()?;
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

    /// The rowid of the last new row.
    pub(crate) fn last_row(&self) -> i64 {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_last_insert_rowid(self.0.raw) }
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

    /// The error of a call that gave `code` and leaves the connection's own error as it was.
    fn error_of(&self, code: c_int) -> Error {
        if let Some(stopped) = self.0.interrupt.take_stopped() {
            return stopped;
        }
        // SAFETY: SQLite has a text of its own for every code, which is there for ever.
        let text = unsafe { CStr::from_ptr(ffi::sqlite3_errstr(code)) };
        error_of(code, &text.to_string_lossy())
    }
}

impl Handle {
    /// Fails where the caller does not want to go on.
    fn check(&self) -> Result<()> {
        self.interrupt.check().map_or(Ok(()), Err)
    }

    /// The last error.
    fn error(&self) -> Error {
        if let Some(stopped) = self.interrupt.take_stopped() {
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
        error_of(code, &message)
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
        if self.process.is_current() {
            // SAFETY: nothing uses the handle any more; statements hold it, so all of them are finalized.
            unsafe { ffi::sqlite3_close(self.raw) };
        }
    }
}

/// Steps of SQLite's machine between two calls: about a tenth of a millisecond.
const STEPS: c_int = 20_000;

/// The caller's signals and deadline are checked no more often than this.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The longest sleep before a lock is tried again.
const LONGEST_SLEEP: Duration = Duration::from_millis(25);

/// The state that the callbacks of one connection share with it.
struct Interrupt(Mutex<State>);

struct State {
    deadline: Deadline,
    last: Instant,
    /// How long to wait for a lock.
    busy_timeout: Duration,
    waiting_since: Option<Instant>,
    /// Why a statement was stopped.
    stopped: Option<Error>,
    /// Whether a statement goes on where it would be stopped.
    is_deferred: bool,
}

impl Interrupt {
    fn new(deadline: Deadline, busy_timeout: Duration) -> Self {
        let state = State {
            deadline,
            last: Instant::now(),
            busy_timeout,
            waiting_since: None,
            stopped: None,
            is_deferred: false,
        };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a statement was stopped, which is now forgotten.
    fn take_stopped(&self) -> Option<Error> {
        self.state().stopped.take()
    }

    /// Looks between two statements whether to go on, as often as within one.
    fn check(&self) -> Option<Error> {
        self.may_work();
        self.take_stopped()
    }

    /// Has SQLite call back on `connection`.
    ///
    /// # Safety
    ///
    /// `connection` is open, and is closed before `self` goes.
    unsafe fn install(&self, connection: *mut ffi::sqlite3) {
        let context = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: the caller's promise; both callbacks use the context as what it is.
        unsafe {
            ffi::sqlite3_progress_handler(connection, STEPS, Some(progress), context);
            ffi::sqlite3_busy_handler(connection, Some(busy), context);
        }
    }

    /// Whether to go on working.
    fn may_work(&self) -> bool {
        let mut state = self.state();
        if state.last.elapsed() < CHECK_INTERVAL {
            return state.stopped.is_none() || state.is_deferred;
        }
        state.last = Instant::now();
        state.may_go_on() || state.is_deferred
    }

    /// Whether to try once more for a lock, after a sleep.
    fn may_wait(&self, tries: c_int) -> bool {
        let mut state = self.state();
        let since = if tries == 0 { None } else { state.waiting_since };
        let since = *state.waiting_since.insert(since.unwrap_or_else(Instant::now));
        let left = state.busy_timeout.saturating_sub(since.elapsed());
        if left.is_zero() || !state.may_go_on() {
            return false;
        }
        let sleep = Duration::from_millis(1 << tries.clamp(0, 5)).min(LONGEST_SLEEP);
        let sleep = sleep.min(left).min(state.deadline.slice());
        drop(state);
        std::thread::sleep(sleep);
        true
    }
}

impl State {
    fn may_go_on(&mut self) -> bool {
        match self.deadline.check() {
            Ok(()) => true,
            Err(error) => {
                self.stopped.get_or_insert(error);
                false
            }
        }
    }
}

extern "C" fn progress(context: *mut c_void) -> c_int {
    // SAFETY: `install` gave this context, which outlives the connection.
    let interrupt = unsafe { &*context.cast::<Interrupt>() };
    c_int::from(!interrupt.may_work())
}

extern "C" fn busy(context: *mut c_void, tries: c_int) -> c_int {
    // SAFETY: as above.
    let interrupt = unsafe { &*context.cast::<Interrupt>() };
    c_int::from(interrupt.may_wait(tries))
}

/// Has SQLite take its locks by `locks`: to be called before this library's first connection to a file.
pub fn install_locks() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    locks::install();
}

/// The start of the file `path`; `None` where it cannot be read or is shorter. Another library's locks on the file, which any
/// other way to close a descriptor of it would drop, stay.
#[must_use]
pub fn first_bytes<const COUNT: usize>(path: &std::path::Path) -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    let is_read = locks::read_start(path, &mut bytes);
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    let is_read = std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes))
        .is_ok();
    is_read.then_some(bytes)
}
