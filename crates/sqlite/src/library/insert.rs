//! A statement that runs once for each row, with values that are lent to it and not copied.

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
            // SAFETY: texts and bytes are not copied: they live until the one step below, which comes only once all
            // parameters are bound anew. What was bound before is not looked at.
            unsafe { self.0.bind_with(number, cell?, ffi::SQLITE_STATIC()) }?;
        }
        if number != self.0.parameters() {
            return Err(Error::internal("a row has another number of values than its statement"));
        }
        let ended = self.0.step();
        // It is at rest before the values' lifetime ends with this call.
        self.0.reset();
        ended.map(drop)
    }
}
