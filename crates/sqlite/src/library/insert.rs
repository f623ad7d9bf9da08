//! A statement that runs once for each row, with values that are lent to it and not copied.

use std::ffi::{c_char, c_int};

use libsqlite3_sys as ffi;
use longshore_core::{Error, Result};

use super::statement::Statement;
use crate::cell::Cell;

/// Runs a statement without a result once for each row.
pub(crate) struct Insert(Statement);

impl Insert {
    pub(crate) fn new(statement: Statement) -> Self {
        Self(statement)
    }

    /// Runs it with one cell for each parameter.
    pub(crate) fn run<'a>(&mut self, cells: impl Iterator<Item = Result<Cell<'a>>>) -> Result<()> {
        let mut number = 0;
        for cell in cells {
            number += 1;
            self.lend(number, cell?)?;
        }
        if number != self.0.parameters() {
            return Err(Error::internal("a row has another number of values than its statement"));
        }
        let ended = self.0.step();
        // SAFETY: the statement lives. It is at rest before the values' lifetime ends with this call; what it still
        // points to is bound anew, parameter by parameter, before the next step, and is not looked at before that.
        unsafe { ffi::sqlite3_reset(self.0.raw()) };
        ended.map(drop)
    }

    #[inline]
    fn lend(&mut self, number: c_int, value: Cell<'_>) -> Result<()> {
        let raw = self.0.raw();
        // SAFETY: texts and bytes are not copied (SQLITE_STATIC): `run`, the only caller, steps while they live, and only
        // once all parameters are bound anew. SQLite keeps to their lengths.
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
                    ffi::SQLITE_STATIC(),
                    u8::try_from(ffi::SQLITE_UTF8).unwrap_or(1),
                ),
                // A null pointer would bind NULL.
                Cell::Blob([]) => ffi::sqlite3_bind_zeroblob(raw, number, 0),
                Cell::Blob(blob) => ffi::sqlite3_bind_blob64(
                    raw,
                    number,
                    blob.as_ptr().cast(),
                    blob.len() as u64,
                    ffi::SQLITE_STATIC(),
                ),
            }
        };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.0.error()) }
    }
}
