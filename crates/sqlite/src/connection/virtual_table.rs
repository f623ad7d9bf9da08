//! A batch as a virtual table that one INSERT reads (sqlite.org/vtab.html): nothing is bound, and no statement runs for each row.

use std::cell::Cell as Slot;
use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use libsqlite3_sys as ffi;
use longshore_core::{Error, Result};

use super::statement::Statement;
use super::{Connection, Handle};
use crate::cell::Cell;
use crate::error::error_of;

/// Rows between two checks of the caller's deadline: SQLite counts its own steps, however long the values are.
pub(crate) const ROWS_PER_CHECK: usize = 64;

/// The values of a batch: sets that of a row and a column, both from 0. Each is asked for once, row by row.
pub(crate) type Values<'a> = dyn FnMut(usize, usize, ResultSetter<'_>) -> Result<()> + 'a;

/// A value's way into SQLite. A value that were returned would be copied several times.
pub(crate) struct ResultSetter<'a>(*mut ffi::sqlite3_context, PhantomData<&'a ()>);

impl ResultSetter<'_> {
    #[inline]
    pub(crate) fn set(self, cell: Cell<'_>) {
        // SAFETY: the context is that of a call which is under way. SQLite keeps to the lengths, and copies texts and bytes.
        unsafe {
            match cell {
                Cell::Null => ffi::sqlite3_result_null(self.0),
                Cell::Integer(value) => ffi::sqlite3_result_int64(self.0, value),
                Cell::Real(value) => ffi::sqlite3_result_double(self.0, value),
                Cell::Text(text) => ffi::sqlite3_result_text64(
                    self.0,
                    text.as_ptr().cast::<c_char>(),
                    text.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                    u8::try_from(ffi::SQLITE_UTF8).unwrap_or(1),
                ),
                Cell::Blob(blob) => ffi::sqlite3_result_blob64(
                    self.0,
                    blob.as_ptr().cast(),
                    blob.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                ),
            }
        }
    }
}

/// An INSERT, and the virtual table that it reads.
pub(crate) struct BatchInsert {
    // It goes first: it knows the table.
    statement: Statement,
    table: Table,
}

/// The batch that one step of the statement reads.
struct Task<'a> {
    values: &'a mut Values<'a>,
    row: usize,
    length: usize,
    handle: &'a Handle,
    /// Why it ended too early.
    error: Option<Error>,
}

/// The state that the callbacks share with [`BatchInsert`]. SQLite owns it.
struct Shared {
    columns: usize,
    /// The task that is under way, or null.
    task: Slot<*mut Task<'static>>,
}

/// The table, which is there until this is dropped.
struct Table {
    handle: Arc<Handle>,
    name: CString,
    shared: *const Shared,
}

// SAFETY: see `Handle`: it moves with its connection, and is not `Sync`.
unsafe impl Send for Table {}

impl BatchInsert {
    /// Prepares `text`, which reads the table `name` of `columns` columns. No other table may have the name: it would be read.
    pub(crate) fn new(connection: &Connection, name: &str, columns: usize, text: &str) -> Result<Self> {
        let table = Table::new(connection, name, columns)?;
        let (statement, _) = connection.prepare(text)?;
        let statement = statement.ok_or_else(|| Error::internal("an INSERT is not a statement"))?;
        Ok(Self { statement, table })
    }

    /// Runs the statement over `length` rows. An error comes with the row that SQLite was at.
    pub(crate) fn run(&mut self, values: &mut Values<'_>, length: usize) -> Result<(), (Error, usize)> {
        let mut task = Task { values, row: 0, length, handle: &self.table.handle, error: None };
        // SAFETY: the table is there, and so is what it shares.
        let shared = unsafe { &*self.table.shared };
        shared.task.set((&raw mut task).cast());
        let ended = self.statement.step();
        self.statement.reset();
        shared.task.set(ptr::null_mut());
        let row = task.row.min(length.saturating_sub(1));
        match (task.error, ended) {
            (Some(error), _) | (None, Err(error)) => Err((error, row)),
            (None, Ok(_)) if task.row < length => Err((Error::internal("SQLite left rows unread"), row)),
            (None, Ok(_)) => Ok(()),
        }
    }
}

impl Table {
    fn new(connection: &Connection, name: &str, columns: usize) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Error::internal("a name has a zero byte in it"))?;
        let handle = connection.0.clone();
        let shared = Box::into_raw(Box::new(Shared { columns, task: Slot::new(ptr::null_mut()) }));
        // SAFETY: the connection is open, the name ends with a zero byte and is copied, and the module is a constant. SQLite
        // calls `forget` once, with the last use of the module or where it could not be made.
        let code = unsafe {
            ffi::sqlite3_create_module_v2(
                handle.raw,
                name.as_ptr(),
                &raw const MODULE,
                shared.cast(),
                Some(forget),
            )
        };
        if code != ffi::SQLITE_OK {
            return Err(error_of(code, "a virtual table could not be made"));
        }
        Ok(Self { handle, name, shared })
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: as in `new`; no module takes this one away.
        unsafe {
            let (raw, name) = (self.handle.raw, self.name.as_ptr());
            ffi::sqlite3_create_module_v2(raw, name, ptr::null(), ptr::null_mut(), None)
        };
    }
}

impl Task<'_> {
    /// Does what may fail; the error is kept aside, as SQLite has only texts for errors. No panic may pass SQLite.
    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> c_int {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        match done.unwrap_or_else(|_| Err(Error::internal("a row could not be made"))) {
            Ok(()) => ffi::SQLITE_OK,
            Err(error) => {
                self.error = Some(error);
                ffi::SQLITE_ERROR
            }
        }
    }

    fn next(&mut self) -> Result<()> {
        self.row += 1;
        if self.row.is_multiple_of(ROWS_PER_CHECK) { self.handle.check() } else { Ok(()) }
    }
}

/// Without `xCreate` it is not in any schema: it goes by the module's name, and leaves nothing behind.
static MODULE: ffi::sqlite3_module = ffi::sqlite3_module {
    xConnect: Some(connect),
    xBestIndex: Some(best_index),
    xDisconnect: Some(disconnect),
    xOpen: Some(open),
    xClose: Some(close),
    xFilter: Some(filter),
    xNext: Some(next),
    xEof: Some(eof),
    xColumn: Some(column),
    xRowid: Some(rowid),
    // SAFETY: all zeros are no functions.
    ..unsafe { std::mem::zeroed() }
};

/// SQLite's part of an open table comes first, as it demands.
#[repr(C)]
struct Opened {
    base: ffi::sqlite3_vtab,
    shared: *const Shared,
}

/// A cursor, whose row is the task's.
#[repr(C)]
struct Cursor {
    base: ffi::sqlite3_vtab_cursor,
    shared: *const Shared,
}

/// The task under way.
///
/// # Safety
///
/// `cursor` is one that `open` made, and the task is not in use elsewhere.
#[inline]
unsafe fn task<'a>(cursor: *mut ffi::sqlite3_vtab_cursor) -> Option<&'a mut Task<'static>> {
    // SAFETY: the module, and so what is shared, outlives its cursors. A task is there for as long as `BatchInsert::run` steps, which
    // leaves it to the callbacks meanwhile; each of them is done with it before the next one comes.
    unsafe { (*(*cursor.cast::<Cursor>()).shared).task.get().as_mut() }
}

unsafe extern "C" fn forget(shared: *mut c_void) {
    // SAFETY: this is the box of `Table::new`, and SQLite has no more use for it.
    drop(unsafe { Box::from_raw(shared.cast::<Shared>()) });
}

unsafe extern "C" fn connect(
    connection: *mut ffi::sqlite3,
    shared: *mut c_void,
    _: c_int,
    _: *const *const c_char,
    table: *mut *mut ffi::sqlite3_vtab,
    _: *mut *mut c_char,
) -> c_int {
    let shared = shared.cast::<Shared>().cast_const();
    // SAFETY: SQLite gives what `Table::new` gave it.
    let names: Vec<String> = (0..unsafe { (*shared).columns }).map(|column| format!("c{column}")).collect();
    let Ok(declared) = CString::new(format!("CREATE TABLE batch ({})", names.join(", "))) else {
        return ffi::SQLITE_ERROR;
    };
    // SAFETY: both are called where they may be, within `xConnect`. A schema's own triggers and views may not read the table.
    let code = unsafe {
        ffi::sqlite3_vtab_config(connection, ffi::SQLITE_VTAB_DIRECTONLY);
        ffi::sqlite3_declare_vtab(connection, declared.as_ptr())
    };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let base = ffi::sqlite3_vtab { pModule: ptr::null(), nRef: 0, zErrMsg: ptr::null_mut() };
    // SAFETY: `table` takes the pointer; `disconnect` takes the box back.
    unsafe { *table = Box::into_raw(Box::new(Opened { base, shared })).cast() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn disconnect(table: *mut ffi::sqlite3_vtab) -> c_int {
    // SAFETY: this is the box of `connect`, given back once.
    drop(unsafe { Box::from_raw(table.cast::<Opened>()) });
    ffi::SQLITE_OK
}

unsafe extern "C" fn best_index(_: *mut ffi::sqlite3_vtab, _: *mut ffi::sqlite3_index_info) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn open(
    table: *mut ffi::sqlite3_vtab,
    cursor: *mut *mut ffi::sqlite3_vtab_cursor,
) -> c_int {
    // SAFETY: `table` is of `connect`. `cursor` takes the pointer; `close` takes the box back.
    unsafe {
        let shared = (*table.cast::<Opened>()).shared;
        let base = ffi::sqlite3_vtab_cursor { pVtab: table };
        *cursor = Box::into_raw(Box::new(Cursor { base, shared })).cast();
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: this is the box of `open`, given back once.
    drop(unsafe { Box::from_raw(cursor.cast::<Cursor>()) });
    ffi::SQLITE_OK
}

/// A statement reads the table once, from where the task starts.
unsafe extern "C" fn filter(
    _: *mut ffi::sqlite3_vtab_cursor,
    _: c_int,
    _: *const c_char,
    _: c_int,
    _: *mut *mut ffi::sqlite3_value,
) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn next(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: SQLite gives a cursor of `open`.
    match unsafe { task(cursor) } {
        Some(task) => task.attempt(Task::next),
        None => ffi::SQLITE_ERROR,
    }
}

/// Without a task, the table is empty.
unsafe extern "C" fn eof(cursor: *mut ffi::sqlite3_vtab_cursor) -> c_int {
    // SAFETY: as above.
    c_int::from(unsafe { task(cursor) }.is_none_or(|task| task.row >= task.length))
}

unsafe extern "C" fn column(
    cursor: *mut ffi::sqlite3_vtab_cursor,
    context: *mut ffi::sqlite3_context,
    number: c_int,
) -> c_int {
    // SAFETY: as above.
    let Some(task) = (unsafe { task(cursor) }) else { return ffi::SQLITE_ERROR };
    task.attempt(|task| {
        let setter = ResultSetter(context, PhantomData);
        (task.values)(task.row, number.unsigned_abs() as usize, setter)
    })
}

unsafe extern "C" fn rowid(cursor: *mut ffi::sqlite3_vtab_cursor, rowid: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: as above; `rowid` takes the number.
    unsafe { *rowid = task(cursor).map_or(0, |task| i64::try_from(task.row).unwrap_or(i64::MAX)) };
    ffi::SQLITE_OK
}
