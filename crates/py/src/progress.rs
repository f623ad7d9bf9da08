//! Reports of a read's progress, to a Python callable.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use longshore_core::{Kind, Meter, Result};
use pyo3::prelude::*;

use crate::error::wrap;
use longshore_arrow_source::attached;

/// Often enough for the eye.
const EVERY: Duration = Duration::from_millis(100);

/// Calls a Python callable with the rows and bytes so far, the rows that the source expects, and whether the result
/// has ended.
pub(crate) struct Progress {
    /// `None` where no one listens, and after the last report: a session outlives its read.
    listener: Mutex<Option<Listener>>,
    meter: Arc<Meter>,
}

struct Listener {
    callable: Arc<Py<PyAny>>,
    last: Instant,
}

impl Progress {
    pub(crate) fn new(callable: Option<Py<PyAny>>, meter: Arc<Meter>) -> Self {
        let last = Instant::now();
        let listener = callable.map(|callable| Listener { callable: Arc::new(callable), last });
        Self { listener: Mutex::new(listener), meter }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Option<Listener>) -> T) -> T {
        work(&mut self.listener.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports if the last report is a while ago.
    pub(crate) fn tick(&self) -> Result<()> {
        // Not called under the mutex: the callable may take as long as it likes.
        let due = self.with(|listener| {
            let listener = listener.as_mut().filter(|listener| listener.last.elapsed() >= EVERY)?;
            listener.last = Instant::now();
            Some(listener.callable.clone())
        });
        due.map_or(Ok(()), |callable| self.report(&callable, false))
    }

    /// Reports that all has come, whatever the time. Nothing is reported after it.
    pub(crate) fn finish(&self) -> Result<()> {
        self.with(Option::take).map_or(Ok(()), |listener| self.report(&listener.callable, true))
    }

    /// Reports no more.
    pub(crate) fn end(&self) {
        let ended = self.with(Option::take);
        // A bar that no one holds any more goes at once, not when the interpreter is next asked for something.
        if ended.is_some() {
            let _ = attached(|_| drop(ended));
        }
    }

    fn report(&self, callable: &Py<PyAny>, ended: bool) -> Result<()> {
        let figures = (self.meter.rows(), self.meter.bytes(), self.meter.expected(), ended);
        let called = Python::attach(|py| callable.call1(py, figures).map(drop));
        called.map_err(|error| wrap(Kind::Interrupted, error))
    }
}
