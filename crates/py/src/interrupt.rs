//! The checks of a wait: the caller's deadline, Ctrl-C, a flag that another thread may raise, and the time to report.

use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use longshore_core::memory::begin;
use longshore_core::{Deadline, Error, Interrupt, Kind, Progress, Result, lock};
use longshore_interpreter::{raise, with_lock, wrap};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The interpreter's lock is not asked for more often than this.
const EVERY: Duration = Duration::from_millis(50);

/// `threading.main_thread` and `threading.current_thread`: to look them up takes longer than to call them.
static THREADS: PyOnceLock<[Py<PyAny>; 2]> = PyOnceLock::new();

/// Runs Python's signal handlers, on Python's main thread only: no other may, and one that waits for the
/// interpreter's lock while its holder waits for it would wait for ever.
struct Signals {
    main_thread: Option<ThreadId>,
    last: Mutex<Instant>,
}

impl Signals {
    /// Watches from the calling thread.
    fn new(py: Python<'_>) -> PyResult<Self> {
        let [main, current] = THREADS.get_or_try_init(py, || {
            let threading = py.import("threading")?;
            PyResult::Ok([
                threading.getattr("main_thread")?.unbind(),
                threading.getattr("current_thread")?.unbind(),
            ])
        })?;
        let is_main = current.bind(py).call0()?.is(&main.bind(py).call0()?);
        let main_thread = is_main.then(|| std::thread::current().id());
        Ok(Self { main_thread, last: Mutex::new(Instant::now()) })
    }
}

impl Interrupt for Signals {
    fn check(&self) -> Result<()> {
        if self.main_thread != Some(std::thread::current().id()) {
            return Ok(());
        }
        let mut last = lock(&self.last);
        if last.elapsed() < EVERY {
            return Ok(());
        }
        *last = Instant::now();
        drop(last);
        #[allow(clippy::redundant_closure_for_method_calls)] // the method is not general over lifetimes
        let checked = with_lock(|py| py.check_signals());
        checked.unwrap_or(Ok(())).map_err(|error| wrap(Kind::Interrupted, error))
    }
}

/// Stops a read from any thread.
#[pyclass(frozen, from_py_object, module = "longshore._core")]
#[derive(Clone, Default)]
pub(crate) struct CancelHandle(pub(crate) longshore_core::CancelHandle);

#[pymethods]
impl CancelHandle {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops what looks at this handle: within a twentieth of a second it raises, and the server is told.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }
}

struct Interrupts {
    signals: Signals,
    progress: Option<Arc<Progress>>,
}

impl Interrupt for Interrupts {
    fn check(&self) -> Result<()> {
        self.signals.check()?;
        self.progress.as_ref().map_or(Ok(()), |progress| progress.tick())
    }
}

/// A deadline over Ctrl-C, `cancel` if there is one, and a deadline `timeout` seconds from now.
pub(crate) fn deadline(
    py: Python<'_>,
    timeout: Option<f64>,
    cancel: Option<CancelHandle>,
) -> PyResult<Deadline> {
    over(Interrupts { signals: Signals::new(py)?, progress: None }, timeout, cancel.unwrap_or_default())
}

/// A deadline over Ctrl-C, `cancel`, and a deadline `timeout` seconds from now, which has `progress` reported.
pub(crate) fn reading_deadline(
    py: Python<'_>,
    timeout: Option<f64>,
    cancel: CancelHandle,
    progress: Arc<Progress>,
) -> PyResult<Deadline> {
    over(Interrupts { signals: Signals::new(py)?, progress: Some(progress) }, timeout, cancel)
}

fn over(interrupts: Interrupts, timeout: Option<f64>, cancel: CancelHandle) -> PyResult<Deadline> {
    begin().map_err(|error| raise(error.into()))?;
    let timeout = timeout
        .map(Duration::try_from_secs_f64)
        .transpose()
        .map_err(|_| raise(Error::interface("timeout is a number of seconds, zero or more")))?;
    Ok(Deadline::new(Arc::new(interrupts), timeout).with_cancel_handle(cancel.0))
}
