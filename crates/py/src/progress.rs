//! Reports of rows read, to a Python callable.

use std::time::{Duration, Instant};

use longshore_core::{Kind, Result};
use pyo3::prelude::*;

use crate::error::wrap;

/// Often enough for the eye.
const EVERY: Duration = Duration::from_millis(100);

/// Calls a Python callable with the number of rows so far.
pub(crate) struct Progress {
    callable: Option<Py<PyAny>>,
    rows: u64,
    last: Instant,
}

impl Progress {
    pub(crate) fn new(callable: Option<Py<PyAny>>) -> Self {
        Self { callable, rows: 0, last: Instant::now() }
    }

    /// `rows` more have come.
    pub(crate) fn add(&mut self, rows: usize) -> Result<()> {
        self.rows += rows as u64;
        if self.last.elapsed() < EVERY {
            return Ok(());
        }
        self.last = Instant::now();
        self.report()
    }

    /// Reports what has come, at the end whatever the time.
    pub(crate) fn report(&self) -> Result<()> {
        let Some(callable) = &self.callable else { return Ok(()) };
        let called = Python::attach(|py| callable.call1(py, (self.rows,)).map(drop));
        called.map_err(|error| wrap(Kind::Interrupted, error))
    }
}
