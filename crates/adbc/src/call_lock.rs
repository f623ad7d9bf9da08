//! The lock of a connection: the calls of several threads come one after another.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use adbc_core::error::Result;
use longshore_core::{Deadline, in_use, lock};

use crate::error::adbc_error;

/// How long a call waits for one that waits for the caller's data: their code may itself wait for this call.
const LONGEST: Duration = Duration::from_secs(5);

/// Whose call is under way on a connection.
#[derive(Default)]
pub(crate) struct CallLock {
    holder: Mutex<Option<Holder>>,
    changed: Condvar,
}

struct Holder {
    thread: ThreadId,
    /// The thread that runs the code of the caller's data, and since when.
    outside: Option<(ThreadId, Instant)>,
}

impl Holder {
    /// Whether `thread` would wait for itself, or might.
    fn blocks(&self, thread: ThreadId) -> bool {
        let outside = self.outside.is_some_and(|(own, since)| own == thread || since.elapsed() > LONGEST);
        self.thread == thread || outside
    }
}

impl CallLock {
    /// Waits for the lock as long as `deadline` allows. An error where that could be for ever, as the call that has it waits
    /// for code that makes this one.
    pub(crate) fn take(&self, deadline: &Deadline) -> Result<CallGuard<'_>> {
        let thread = thread::current().id();
        let mut holder = lock(&self.holder);
        while let Some(other) = holder.as_ref() {
            if other.blocks(thread) {
                return Err(adbc_error(in_use()));
            }
            deadline.check().map_err(adbc_error)?;
            let waited = self.changed.wait_timeout(holder, deadline.slice());
            holder = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *holder = Some(Holder { thread, outside: None });
        Ok(CallGuard(self))
    }

    /// Runs code of the caller's data, which may call the same connection.
    pub(crate) fn outside<T>(&self, code: impl FnOnce() -> T) -> T {
        self.put(Some((thread::current().id(), Instant::now())));
        let done = code();
        self.put(None);
        done
    }

    fn put(&self, outside: Option<(ThreadId, Instant)>) {
        if let Some(holder) = lock(&self.holder).as_mut() {
            holder.outside = outside;
        }
    }
}

/// The lock while a call is under way.
pub(crate) struct CallGuard<'a>(&'a CallLock);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.holder) = None;
        self.0.changed.notify_one();
    }
}
