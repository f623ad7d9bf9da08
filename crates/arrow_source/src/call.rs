//! A driver's calls: each on a thread of its own, while the caller's looks at the deadline and at signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use longshore_core::memory::{ease, spawn};
use longshore_core::{Deadline, Error, Process, Result};
use longshore_interpreter::{attached, error_of};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::gone;

/// How long a driver may take to obey, before its session is given up.
const OBEYING: Duration = Duration::from_millis(250);

/// The time between two attempts to cancel: the first may come before what is to be cancelled.
const AGAIN: Duration = Duration::from_millis(20);

/// A call that failed.
pub(crate) struct Stopped {
    pub(crate) error: Error,
    /// Whether the driver still works.
    pub(crate) is_running: bool,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self { error, is_running: false }
    }
}

/// Does `work` on a thread of its own. Where the deadline ends it, `cancel` is called until the driver obeys; what comes all the
/// same has its `end`, under the interpreter's lock.
pub(crate) fn on_thread<T: Send + 'static>(
    deadline: &Deadline,
    work: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    cancel: &mut dyn FnMut(),
    end: fn(Python<'_>, T),
) -> Result<T, Stopped> {
    deadline.check()?;
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        ease();
        let done = attached(|py| work(py).map_err(|error| error_of(py, error)));
        // The one who waits may have given up.
        if let Err(SendError(Some(Ok(late)))) = sender.send(done) {
            attached(|py| end(py, late));
        }
    };
    spawn(thread::Builder::new().name("longshore-driver".into()), run)?;
    let error = loop {
        match receiver.recv_timeout(deadline.slice()) {
            Ok(done) => return Ok(done.ok_or_else(gone)??),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("the thread of a driver has panicked").into());
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = deadline.check() {
                    break error;
                }
            }
        }
    };
    let since = Instant::now();
    while since.elapsed() < OBEYING {
        cancel();
        if let Ok(late) = receiver.recv_timeout(AGAIN) {
            // This thread has an exception, which what `end` calls could lose.
            if let Some(Ok(late)) = late {
                apart(move || {
                    attached(|py| end(py, late));
                });
            }
            return Err(error.into());
        }
    }
    Err(Stopped { error, is_running: true })
}

/// A driver's session, and whether it can still be used.
#[derive(Clone)]
pub(crate) struct Handle {
    object: Arc<Py<PyAny>>,
    is_lost: Arc<AtomicBool>,
    /// A forked child has none of the driver's threads.
    process: Process,
}

impl Handle {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self { object: Arc::new(object), is_lost: Arc::default(), process: Process::current() }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.process.is_current() && !self.is_lost.load(Ordering::Relaxed)
    }

    /// Does `work` with the session.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        deadline: &Deadline,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.process.check("connection")?;
        let (object, is_lost) = (self.object.clone(), self.is_lost.clone());
        let run = move |py: Python<'_>| {
            let session = object.bind(py);
            let done = work(session);
            if is_lost.load(Ordering::Relaxed) {
                // It was given up meanwhile, and has no other to close it.
                drop(done);
                session.call_method0("close")?;
                return Err(PyRuntimeError::new_err("the session was given up"));
            }
            done
        };
        let done = on_thread(deadline, run, &mut || self.cancel(), |_, late| drop(late));
        done.map_err(|Stopped { error, is_running }| {
            if is_running {
                self.lose();
            }
            error
        })
    }

    /// Has the driver stop, from any thread.
    pub(crate) fn cancel(&self) {
        // A driver that cannot be stopped any more has ended.
        let _ = attached(|py| self.object.bind(py).call_method0("cancel").map(drop));
    }

    /// Notes that a statement has failed while its rows came; the driver's error, where it is more than the stream's text.
    pub(crate) fn fail(&self) -> Option<Error> {
        attached(|py| {
            let told = self.object.bind(py).call_method0("fail").ok().filter(|told| !told.is_none())?;
            Some(error_of(py, PyErr::from_value(told)))
        })?
    }

    /// What the session says of itself, which costs it nothing.
    pub(crate) fn attribute<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        attached(|py| read(&self.object.bind(py).getattr(name).ok()?).ok()).flatten()
    }

    /// Gives the session up: its driver still works.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Ends the session; what takes long is left to itself.
    pub(crate) fn close(&self) {
        if self.is_usable() {
            let deadline = Deadline::never().at_most(OBEYING);
            let _ = self.call(&deadline, |session| session.call_method0("close").map(drop));
        } else if !self.process.is_current() {
            // A forked child has none of the driver's threads.
            std::mem::forget(self.object.clone());
        }
    }
}

/// What ends a result, on a thread of its own: a signal's handler would run in what it calls on Python's main thread, and
/// its exception be lost. What takes longer than `OBEYING` is left to itself. Returns whether it has ended.
#[allow(clippy::must_use_candidate)] // most have nothing to do about it
pub fn apart(work: impl FnOnce() + Send + 'static) -> bool {
    let work = Arc::new(Mutex::new(Some(work)));
    let (ended, end) = sync_channel::<()>(0);
    let run = {
        let work = work.clone();
        move || {
            done(&work);
            drop(ended);
        }
    };
    if spawn(thread::Builder::new().name("longshore-end".into()), run).is_ok() {
        // It sends nothing: it ends.
        matches!(end.recv_timeout(OBEYING), Err(RecvTimeoutError::Disconnected))
    } else {
        done(&work);
        true
    }
}

fn done(work: &Mutex<Option<impl FnOnce()>>) {
    let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(work) = work {
        work();
    }
}
