//! Ctrl-C: Python's signal handlers run while the core waits.

use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use longshore_core::{Interrupt, Kind, Result};
use pyo3::prelude::*;

use crate::error::wrap;
use longshore_arrow_source::attached;

/// The interpreter's lock is not asked for more often than this.
const EVERY: Duration = Duration::from_millis(50);

/// Runs Python's signal handlers, on Python's main thread only: no other may, and one that waits for the
/// interpreter's lock while its holder waits for it would wait for ever.
pub(crate) struct Signals {
    main_thread: Option<ThreadId>,
    last: Mutex<Instant>,
}

impl Signals {
    /// Watches from the calling thread.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?;
        let is_main = threading.call_method0("current_thread")?.is(&main);
        let main_thread = is_main.then(|| std::thread::current().id());
        Ok(Self { main_thread, last: Mutex::new(Instant::now()) })
    }
}

/// Has Python see a Ctrl-C again that was taken here and whose exception cannot cross the Arrow C interface.
pub(crate) fn once_more() {
    let _ = attached(|py| py.import("_thread")?.call_method0("interrupt_main").map(drop));
}

impl Interrupt for Signals {
    fn check(&self) -> Result<()> {
        if self.main_thread != Some(std::thread::current().id()) {
            return Ok(());
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < EVERY {
            return Ok(());
        }
        *last = Instant::now();
        drop(last);
        #[allow(clippy::redundant_closure_for_method_calls)] // the method is not general over lifetimes
        let checked = attached(|py| py.check_signals());
        checked.unwrap_or(Ok(())).map_err(|error| wrap(Kind::Interrupted, error))
    }
}
