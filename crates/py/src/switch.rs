//! What a wait looks at: the caller's deadline, Ctrl-C, a switch that another thread may throw, and the time to report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longshore_core::memory::begin;
use longshore_core::{Error, Interrupt, Kind, Result, Watch};
use pyo3::prelude::*;

use crate::error::raise;
use crate::progress::Progress;
use crate::signals::Signals;

/// Stops a read from any thread.
#[pyclass(frozen, from_py_object, module = "longshore._core")]
#[derive(Clone, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

#[pymethods]
impl Switch {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops what looks at this switch: within a twentieth of a second it raises, and the server is told.
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Interrupts {
    signals: Signals,
    switch: Option<Switch>,
    progress: Option<Arc<Progress>>,
}

impl Interrupt for Interrupts {
    fn check(&self) -> Result<()> {
        if self.switch.as_ref().is_some_and(|switch| switch.0.load(Ordering::Relaxed)) {
            return Err(Error::new(Kind::Cancelled, "the read was cancelled").with_sqlstate("57014"));
        }
        self.signals.check()?;
        self.progress.as_ref().map_or(Ok(()), |progress| progress.tick())
    }
}

/// A watch over Ctrl-C and a deadline `timeout` seconds from now.
pub(crate) fn watch(py: Python<'_>, timeout: Option<f64>) -> PyResult<Watch> {
    switched_watch(py, timeout, None)
}

/// A watch over Ctrl-C, `switch` if there is one, and a deadline `timeout` seconds from now.
pub(crate) fn switched_watch(
    py: Python<'_>,
    timeout: Option<f64>,
    switch: Option<Switch>,
) -> PyResult<Watch> {
    over(Interrupts { signals: Signals::new(py)?, switch, progress: None }, timeout)
}

/// A watch over Ctrl-C, `switch`, and a deadline `timeout` seconds from now, which has `progress` reported.
pub(crate) fn reading_watch(
    py: Python<'_>,
    timeout: Option<f64>,
    switch: Switch,
    progress: Arc<Progress>,
) -> PyResult<Watch> {
    over(Interrupts { signals: Signals::new(py)?, switch: Some(switch), progress: Some(progress) }, timeout)
}

fn over(interrupts: Interrupts, timeout: Option<f64>) -> PyResult<Watch> {
    begin().map_err(|no_room| raise(no_room.into()))?;
    let timeout = timeout
        .map(Duration::try_from_secs_f64)
        .transpose()
        .map_err(|_| raise(Error::interface("timeout is a number of seconds, zero or more")))?;
    Ok(Watch::new(Arc::new(interrupts), timeout))
}
