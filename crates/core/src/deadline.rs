//! Deadlines and interruption: every wait in the library looks here between its slices.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::{Error, Kind, Result, lock};

/// The longest sleep between two looks at the deadline and the caller's signals.
const SLICE: Duration = Duration::from_millis(50);

/// Tells whether the caller wants to stop (Ctrl-C). Asked about twenty times a second.
pub trait Interrupt: Send + Sync {
    /// Returns an error of [`Kind::Interrupted`] or [`Kind::Cancelled`] when the caller wants to stop.
    fn check(&self) -> Result<()>;
}

/// An [`Interrupt`] that never stops anything.
#[derive(Debug)]
pub struct Never;

impl Interrupt for Never {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Work that runs on the server while no thread of its owner's waits for it.
pub(crate) trait Idle: Send + Sync {
    /// Ends it, unless a thread has begun to wait: that one looks at its deadline.
    fn end(&self);
}

/// Stops a statement from any thread: within a twentieth of a second it fails, and the server is told.
#[derive(Clone, Default)]
pub struct CancelHandle(Arc<Cancellation>);

#[derive(Default)]
struct Cancellation {
    is_cancelled: AtomicBool,
    idle: Mutex<Option<Weak<dyn Idle>>>,
}

impl CancelHandle {
    /// Stops what waits under a deadline with this handle; what no thread waits for has stopped when this returns.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
        let idle = lock(&self.0.idle).as_ref().and_then(Weak::upgrade);
        if let Some(idle) = idle {
            idle.end();
        }
    }

    /// Has [`CancelHandle::cancel`] end `idle`, too.
    pub(crate) fn ends(&self, idle: Weak<dyn Idle>) {
        *lock(&self.0.idle) = Some(idle);
    }

    /// Whether it has stopped what waits under it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "the statement was cancelled").with_sqlstate("57014"));
        }
        Ok(())
    }
}

/// The time limit and the cancellation that every blocking operation looks at while it waits. Clones share one deadline.
#[derive(Clone)]
pub struct Deadline {
    interrupt: Arc<dyn Interrupt>,
    cancel_handle: CancelHandle,
    limit: Arc<Mutex<Limit>>,
}

#[derive(Clone, Copy)]
struct Limit {
    timeout: Option<Duration>,
    at: Option<Instant>,
}

impl Deadline {
    /// Watches `interrupt`, and a deadline `timeout` from now.
    pub fn new(interrupt: Arc<dyn Interrupt>, timeout: Option<Duration>) -> Self {
        let limit = Arc::new(Mutex::new(Limit { timeout, at: None }));
        let deadline = Self { interrupt, cancel_handle: CancelHandle::default(), limit };
        deadline.restart();
        deadline
    }

    /// The same deadline, which `cancel_handle` ends, too.
    #[must_use]
    pub fn with_cancel_handle(self, cancel_handle: CancelHandle) -> Self {
        Self { cancel_handle, ..self }
    }

    /// The handle that ends the waits of this deadline from another thread.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel_handle.clone()
    }

    /// Never interrupts.
    #[must_use]
    pub fn never() -> Self {
        Self::new(Arc::new(Never), None)
    }

    /// A deadline over the same interrupt and cancel handle that ends at the earlier of this deadline and `timeout` from now.
    #[must_use]
    pub fn at_most(&self, timeout: Duration) -> Self {
        let left = self.remaining().map_or(timeout, |left| left.min(timeout));
        Self::new(self.interrupt.clone(), Some(left)).with_cancel_handle(self.cancel_handle())
    }

    /// Starts the deadline again: a stream's time-out counts for each wait.
    pub fn restart(&self) {
        let mut limit = lock(&self.limit);
        limit.at = limit.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    }

    /// From here on it ends `timeout` from now, for all copies.
    pub fn end_within(&self, timeout: Duration) {
        *lock(&self.limit) = Limit { timeout: Some(timeout), at: Instant::now().checked_add(timeout) };
    }

    /// The time left; `None` where there is no deadline.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let limit = lock(&self.limit);
        limit.at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// How long to sleep at most before the next [`Deadline::check`].
    #[must_use]
    pub fn slice(&self) -> Duration {
        // At least a millisecond: a zero time-out means "for ever" to some system calls.
        self.remaining().map_or(SLICE, |left| left.clamp(Duration::from_millis(1), SLICE))
    }

    /// Fails when the caller wants to stop or the deadline has passed.
    pub fn check(&self) -> Result<()> {
        self.cancel_handle.check()?;
        self.interrupt.check()?;
        match self.remaining() {
            Some(left) if left.is_zero() => Err(self.timed_out()),
            _ => Ok(()),
        }
    }

    /// [`Deadline::check`] once the caller's data has come: where the deadline has passed, the data was what took so long.
    pub fn check_data(&self) -> Result<()> {
        self.check().map_err(|error| match error.kind() {
            Kind::Timeout => {
                Error::new(Kind::Timeout, format!("the data did not come within {} s", self.seconds()))
                    .with_hint("give a longer timeout, or look at what the data comes from")
            }
            _ => error,
        })
    }

    fn seconds(&self) -> f64 {
        lock(&self.limit).timeout.unwrap_or_default().as_secs_f64()
    }

    fn timed_out(&self) -> Error {
        Error::new(Kind::Timeout, format!("no answer within {} s", self.seconds()))
            .with_hint("give a longer timeout, or look on the server for what the statement waits for")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passed_deadline_fails_and_restarts() {
        let deadline = Deadline::new(Arc::new(Never), Some(Duration::from_millis(20)));
        deadline.check().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(deadline.check().unwrap_err().kind(), Kind::Timeout);
        deadline.restart();
        deadline.check().unwrap();
    }

    #[test]
    fn a_cancel_handle_ends_the_waits_of_every_copy() {
        let deadline = Deadline::never();
        let shorter = deadline.at_most(Duration::from_secs(60));
        deadline.cancel_handle().cancel();
        for deadline in [deadline, shorter] {
            assert_eq!(deadline.check().unwrap_err().kind(), Kind::Cancelled);
        }
    }
}
