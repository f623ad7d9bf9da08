//! A driver's calls: each on a thread of its own, while the caller's looks at the deadline and at signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use longshore_core::memory::{release_reserve, spawn};
use longshore_core::{Deadline, Error, Process, Result, lock};
use longshore_interpreter::{error_of, with_lock};
use pyo3::prelude::*;

use crate::no_interpreter;

/// How long a caller waits until the driver obeys: Ctrl-C is to be heard soon. What takes longer goes on without it.
const OBEYING: Duration = Duration::from_millis(250);

/// How long the next call of the session waits for that, before the session is given up.
const STOPPING: Duration = Duration::from_secs(10);

/// The time between two attempts to cancel: the first may come before what is to be cancelled.
const AGAIN: Duration = Duration::from_millis(20);

/// Work that its caller has left to a driver's thread, whose end of the channel goes when it is done; before, it may tell that
/// nothing is to be cancelled any more.
pub type Work = Receiver<()>;

/// A call that failed.
pub(crate) struct Stopped {
    pub(crate) error: Error,
    left: Left,
}

/// The work that the driver still does for a call that failed.
enum Left {
    Nothing,
    /// The work itself, which is to be stopped.
    Running(Work),
    /// The end of what came too late.
    Ending(Work),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self { error, left: Left::Nothing }
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
    // Without room: what no one takes comes back to its thread.
    let (sender, receiver) = sync_channel(0);
    let (alive, work_left) = sync_channel(1);
    let run = move || {
        release_reserve();
        let done = with_lock(|py| work(py).map_err(|error| error_of(py, error)));
        // The one who waits may have given up.
        if let Err(SendError(Some(Ok(late)))) = sender.send(done) {
            let _ = alive.try_send(());
            with_lock(|py| end(py, late));
        }
        drop(alive);
    };
    spawn(thread::Builder::new().name("longshore-driver".into()), run)?;
    let error = loop {
        match receiver.recv_timeout(deadline.slice()) {
            Ok(done) => return Ok(done.ok_or_else(no_interpreter)??),
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
            let ending =
                late.and_then(Result::ok).and_then(|late| apart(move || _ = with_lock(|py| end(py, late))));
            return Err(Stopped { error, left: ending.map_or(Left::Nothing, Left::Ending) });
        }
    }
    Err(Stopped { error, left: Left::Running(work_left) })
}

/// A driver's session, and whether it can still be used.
#[derive(Clone)]
pub(crate) struct Handle {
    object: Arc<Py<PyAny>>,
    is_lost: Arc<AtomicBool>,
    /// The work that a caller has left to the driver, which was told to stop.
    left: Arc<Mutex<Option<Work>>>,
    /// A forked child has none of the driver's threads.
    process: Process,
}

impl Handle {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self {
            object: Arc::new(object),
            is_lost: Arc::default(),
            left: Arc::default(),
            process: Process::current(),
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        self.process.is_current() && !self.is_lost.load(Ordering::Relaxed)
    }

    /// Fails in a forked child, whose memory may have rows of the parent's.
    pub(crate) fn check(&self, what: &str) -> Result<()> {
        self.process.check(what)
    }

    /// Does `work` with the session, once the driver has done what was left to it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        deadline: &Deadline,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.call_or_end(deadline, work, |_, late| drop(late))
    }

    /// Does `work` as `call` does; what comes too late has its `end`.
    pub(crate) fn call_or_end<T: Send + 'static>(
        &self,
        deadline: &Deadline,
        work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
        end: fn(Python<'_>, T),
    ) -> Result<T> {
        self.check("connection")?;
        self.await_left(deadline)?;
        let object = self.object.clone();
        let run = move |py: Python<'_>| work(object.bind(py));
        let done = on_thread(deadline, run, &mut || _ = self.cancel(), end);
        done.map_err(|Stopped { error, left }| {
            match left {
                Left::Nothing => {}
                Left::Running(work) => self.leave(work),
                Left::Ending(work) => *lock(&self.left) = Some(work),
            }
            error
        })
    }

    /// Leaves work to the driver that has not stopped yet, and has it stop: what was cancelled before it had begun goes on.
    /// One that cannot be told to keeps the session.
    pub(crate) fn leave(&self, work: Work) {
        let handle = self.clone();
        let stopping = move || {
            while work.recv_timeout(AGAIN) == Err(RecvTimeoutError::Timeout) && handle.cancel() {}
            let _ = work.recv();
        };
        if !self.cancel() {
            self.lose();
        }
        *lock(&self.left) = Some(begin(stopping));
    }

    /// Does `work` without the caller, once the driver has done what was left to it.
    pub(crate) fn call_later(&self, work: impl FnOnce(&Bound<'_, PyAny>) + Send + 'static) {
        let (object, left) = (self.object.clone(), lock(&self.left).take());
        let last = begin(move || {
            let _ = left.map(|work| work.recv());
            with_lock(|py| work(object.bind(py)));
        });
        *lock(&self.left) = Some(last);
    }

    fn await_left(&self, deadline: &Deadline) -> Result<()> {
        let Some(work) = lock(&self.left).take() else { return Ok(()) };
        let since = Instant::now();
        while work.recv_timeout(AGAIN) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = deadline.check().and_then(|()| self.give_up_late(since)) {
                *lock(&self.left) = Some(work);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails, and gives the session up, where its driver has been waited for too long.
    fn give_up_late(&self, since: Instant) -> Result<()> {
        if since.elapsed() < STOPPING {
            return Ok(());
        }
        self.lose();
        Err(Error::operational("the driver has not stopped the statement before").with_hint("connect again"))
    }

    /// Has the driver stop, from any thread. Returns whether it has taken the request.
    pub(crate) fn cancel(&self) -> bool {
        matches!(with_lock(|py| self.object.bind(py).call_method0("cancel").map(drop)), Some(Ok(())))
    }

    /// Notes that a statement has failed while its rows came; the driver's error, where it is more than the stream's text.
    pub(crate) fn fail(&self) -> Option<Error> {
        with_lock(|py| {
            let told = self.object.bind(py).call_method0("fail").ok().filter(|told| !told.is_none())?;
            Some(error_of(py, PyErr::from_value(told)))
        })?
    }

    /// An attribute of the session, which costs it nothing.
    pub(crate) fn attribute<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        with_lock(|py| read(&self.object.bind(py).getattr(name).ok()?).ok()).flatten()
    }

    /// Gives the session up: its driver still works.
    fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Ends the session, once the driver has done what was left to it; what takes long goes on without the caller.
    pub(crate) fn close(&self) {
        if !self.process.is_current() {
            // A forked child has none of the driver's threads.
            std::mem::forget(self.clone());
            return;
        }
        let (object, left) = (self.object.clone(), lock(&self.left).take());
        let is_busy = left.is_some();
        let ending = begin(move || {
            // It is told to stop, and sends nothing: it ends.
            let _ = left.map(|work| work.recv());
            let _ = with_lock(|py| object.bind(py).call_method0("close").map(drop));
        });
        if !is_busy {
            let _ = ending.recv_timeout(OBEYING);
        }
    }
}

/// Runs what ends a result on a thread of its own: a signal's handler would run in what it calls on Python's main
/// thread, and its exception be lost. Returns what takes longer than `OBEYING`.
#[allow(clippy::must_use_candidate)] // most have nothing to do about it
pub fn apart(work: impl FnOnce() + Send + 'static) -> Option<Work> {
    let ending = begin(work);
    // It sends nothing: it ends.
    let is_over = ending.recv_timeout(OBEYING) == Err(RecvTimeoutError::Disconnected);
    (!is_over).then_some(ending)
}

/// Begins work on a thread of its own; where there is none, it is done here.
fn begin(work: impl FnOnce() + Send + 'static) -> Work {
    let work = Arc::new(Mutex::new(Some(work)));
    let (alive, ending) = sync_channel(0);
    let run = {
        let work = work.clone();
        move || {
            run_once(&work);
            drop(alive);
        }
    };
    if spawn(thread::Builder::new().name("longshore-end".into()), run).is_err() {
        run_once(&work);
    }
    ending
}

fn run_once(work: &Mutex<Option<impl FnOnce()>>) {
    let work = lock(work).take();
    if let Some(work) = work {
        work();
    }
}
