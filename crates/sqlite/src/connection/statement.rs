//! Prepared statements: their parameters and their rows.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use libsqlite3_sys as ffi;
use longshore_core::{Error, Result};

use super::Handle;
use crate::cell::Cell;
use crate::error::error_of;

/// A statement. It keeps its connection open.
pub(crate) struct Statement {
    raw: NonNull<ffi::sqlite3_stmt>,
    handle: Arc<Handle>,
    /// A value could not be fetched for want of memory.
    starved: std::cell::Cell<bool>,
}

// SAFETY: see `Handle`: a statement moves with its connection, and is not `Sync`.
unsafe impl Send for Statement {}

/// Where a column of a result comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) schema: CString,
    pub(crate) table: CString,
    pub(crate) column: CString,
}

/// A column's name and declared type.
pub(crate) type Signature = (String, Option<String>);

impl Statement {
    pub(super) fn new(raw: *mut ffi::sqlite3_stmt, handle: Arc<Handle>) -> Option<Self> {
        NonNull::new(raw).map(|raw| Self { raw, handle, starved: std::cell::Cell::new(false) })
    }

    /// Goes to the next row; false after the last.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<bool> {
        // SAFETY: the statement lives; `&mut self` ends every borrow of the last row's values.
        match unsafe { ffi::sqlite3_step(self.raw.as_ptr()) } {
            ffi::SQLITE_ROW if !self.starved.get() => Ok(true),
            ffi::SQLITE_DONE if !self.starved.get() => Ok(false),
            ffi::SQLITE_ROW | ffi::SQLITE_DONE => Err(error_of(ffi::SQLITE_NOMEM, "out of memory")),
            _ => Err(self.handle.error()),
        }
    }

    /// Has it start again with the next step.
    #[inline]
    pub(crate) fn reset(&mut self) {
        // SAFETY: the statement lives, and `&mut self` ends every borrow. The code is that of the last step.
        unsafe { ffi::sqlite3_reset(self.raw.as_ptr()) };
    }

    /// The value of a column of the row.
    #[inline]
    pub(crate) fn cell(&self, column: c_int) -> Cell<'_> {
        // SAFETY: SQLite gives a NULL for a column that is not there. A value of a row is unprotected
        // (sqlite.org/c3ref/value.html): no other thread has the connection meanwhile. What it points to lives until the
        // next step, or until the value is asked for in another form: it is asked for once, and `step` borrows mutably.
        unsafe {
            let value = ffi::sqlite3_column_value(self.raw.as_ptr(), column);
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_INTEGER => Cell::Integer(ffi::sqlite3_value_int64(value)),
                ffi::SQLITE_FLOAT => Cell::Real(ffi::sqlite3_value_double(value)),
                ffi::SQLITE_TEXT => {
                    let start = ffi::sqlite3_value_text(value);
                    let length = ffi::sqlite3_value_bytes(value);
                    if start.is_null() {
                        self.starved.set(true);
                    }
                    Cell::Text(bytes(start, length))
                }
                ffi::SQLITE_BLOB => {
                    let start = ffi::sqlite3_value_blob(value).cast::<u8>();
                    let length = ffi::sqlite3_value_bytes(value);
                    if start.is_null() && length > 0 {
                        self.starved.set(true);
                    }
                    Cell::Blob(bytes(start, length))
                }
                _ => Cell::Null,
            }
        }
    }

    /// The value of a column of the row, where it is an INTEGER.
    pub(crate) fn integer(&self, column: c_int) -> Option<i64> {
        self.cell(column).integer()
    }

    /// Whether a column of the row is an INTEGER and not zero.
    pub(crate) fn is_true(&self, column: c_int) -> bool {
        self.integer(column).is_some_and(|value| value != 0)
    }

    /// The value of a column of the row as text.
    pub(crate) fn text(&self, column: c_int) -> String {
        String::from_utf8_lossy(&self.cell(column).text()).into_owned()
    }

    /// The number of columns; 0 for a statement without a result.
    pub(crate) fn columns(&self) -> c_int {
        // SAFETY: the statement lives.
        unsafe { ffi::sqlite3_column_count(self.raw.as_ptr()) }
    }

    /// The name of a column.
    pub(crate) fn name(&self, column: c_int) -> String {
        // SAFETY: the statement lives, and the text is copied at once.
        unsafe { copy(ffi::sqlite3_column_name(self.raw.as_ptr(), column)) }
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// The declared type of a column, as it is written in CREATE TABLE; `None` for an expression.
    pub(crate) fn declared_type(&self, column: c_int) -> Option<String> {
        // SAFETY: as above.
        unsafe { copy(ffi::sqlite3_column_decltype(self.raw.as_ptr(), column)) }
            .map(|declared| declared.to_string_lossy().into_owned())
    }

    /// The names and declared types of all columns.
    pub(crate) fn signatures(&self) -> Vec<Signature> {
        (0..self.columns()).map(|column| (self.name(column), self.declared_type(column))).collect()
    }

    /// The table's column that a column shows; `None` for an expression.
    pub(crate) fn origin(&self, column: c_int) -> Option<Origin> {
        let raw = self.raw.as_ptr();
        // SAFETY: as above.
        unsafe {
            Some(Origin {
                schema: copy(ffi::sqlite3_column_database_name(raw, column))?,
                table: copy(ffi::sqlite3_column_table_name(raw, column))?,
                column: copy(ffi::sqlite3_column_origin_name(raw, column))?,
            })
        }
    }

    /// Whether it changes nothing in a database.
    pub(crate) fn is_read_only(&self) -> bool {
        // SAFETY: the statement lives.
        unsafe { ffi::sqlite3_stmt_readonly(self.raw.as_ptr()) != 0 }
    }

    /// How many parameters it has: the highest number.
    pub(crate) fn parameters(&self) -> c_int {
        // SAFETY: the statement lives.
        unsafe { ffi::sqlite3_bind_parameter_count(self.raw.as_ptr()) }
    }

    /// The name of a parameter, from 1, with its mark; `None` for a plain `?`.
    pub(crate) fn parameter(&self, number: c_int) -> Option<String> {
        // SAFETY: the statement lives, and the text is copied at once.
        unsafe { copy(ffi::sqlite3_bind_parameter_name(self.raw.as_ptr(), number)) }
            .map(|name| name.to_string_lossy().into_owned())
    }

    /// Binds `value` to a parameter, from 1.
    pub(crate) fn bind(&mut self, number: c_int, value: Cell<'_>) -> Result<()> {
        // SAFETY: SQLite copies texts and bytes (SQLITE_TRANSIENT) within the call.
        unsafe { self.bind_with(number, value, ffi::SQLITE_TRANSIENT()) }
    }

    /// Binds `value` to a parameter, from 1; `destructor` says whether SQLite copies texts and bytes.
    ///
    /// # Safety
    ///
    /// With `SQLITE_STATIC`, the value must live until the parameter is bound again or the statement is stepped no more.
    #[inline]
    unsafe fn bind_with(
        &mut self,
        number: c_int,
        value: Cell<'_>,
        destructor: ffi::sqlite3_destructor_type,
    ) -> Result<()> {
        let raw = self.raw.as_ptr();
        // SAFETY: the statement lives, SQLite keeps to the lengths, and the caller has the value live long enough.
        let code = unsafe {
            match value {
                Cell::Null => ffi::sqlite3_bind_null(raw, number),
                Cell::Integer(value) => ffi::sqlite3_bind_int64(raw, number, value),
                Cell::Real(value) => ffi::sqlite3_bind_double(raw, number, value),
                Cell::Text(text) => ffi::sqlite3_bind_text64(
                    raw,
                    number,
                    text.as_ptr().cast::<c_char>(),
                    text.len() as u64,
                    destructor,
                    u8::try_from(ffi::SQLITE_UTF8).unwrap_or(1),
                ),
                // A null pointer would bind NULL.
                Cell::Blob([]) => ffi::sqlite3_bind_zeroblob(raw, number, 0),
                Cell::Blob(blob) => {
                    ffi::sqlite3_bind_blob64(raw, number, blob.as_ptr().cast(), blob.len() as u64, destructor)
                }
            }
        };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.handle.error()) }
    }

    /// Runs a statement without a result for one row, with a cell for each parameter, none of which is copied.
    pub(crate) fn run_with<'a>(&mut self, cells: impl Iterator<Item = Result<Cell<'a>>>) -> Result<()> {
        let mut number = 0;
        for cell in cells {
            number += 1;
            // SAFETY: texts and bytes live until the one step below, which comes only once all parameters are bound again.
            // What was bound before is not looked at.
            unsafe { self.bind_with(number, cell?, ffi::SQLITE_STATIC()) }?;
        }
        if number != self.parameters() {
            return Err(Error::internal("a row has another number of values than its statement"));
        }
        let ended = self.step();
        // It is at rest before the values' lifetime ends with this call.
        self.reset();
        ended.map(drop)
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // To end it would end its locks, which a forked child shares with its parent.
        if self.handle.process.is_current() {
            // SAFETY: the statement lives, and nothing refers to it any more.
            unsafe { ffi::sqlite3_finalize(self.raw.as_ptr()) };
        }
    }
}

/// # Safety
///
/// `start` is null, or points to `length` bytes that live as long as the borrow.
#[inline]
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller's promise.
        Ok(length) if !start.is_null() => unsafe { &*ptr::slice_from_raw_parts(start, length) },
        _ => &[],
    }
}

/// # Safety
///
/// `text` is null, or ends with a zero byte.
unsafe fn copy(text: *const c_char) -> Option<CString> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}
