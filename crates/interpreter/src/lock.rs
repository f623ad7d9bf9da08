//! The interpreter's lock, for work that may be called with it or without it.

use pyo3::ffi;
use pyo3::prelude::*;

/// Does work with the interpreter's lock; `None` where there is no interpreter.
///
/// `Python::try_attach` takes a thread that it has attached for one that still is: it does not see that C code further
/// down has let the lock go, as pyarrow does when it frees a reader, and Python may free one at any time.
#[allow(unsafe_code)]
pub fn with_lock<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    // SAFETY: it may be asked at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: there is an interpreter. Whether this thread has its lock is what the call finds out.
    let _lock = Lock(unsafe { ffi::PyGILState_Ensure() });
    // PyO3 has the lock as well then, and objects that are dropped go at once.
    Python::try_attach(work)
}

struct Lock(ffi::PyGILState_STATE);

impl Drop for Lock {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the call that goes with the one before.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// Drops `value` without the interpreter's lock: to stop a query takes a round trip, and threads that have to end first may
/// wait for the interpreter.
pub fn drop_without_lock<T: Send>(value: T) {
    without_lock(|| drop(value));
}

/// Does what ends a result or a session, without the interpreter's lock, whether this thread has it or not.
pub fn without_lock(work: impl FnOnce() + Send) {
    let mut work = Some(work);
    // Without an interpreter there is no lock.
    let _ = with_lock(|py| {
        // Python drops results while an exception is on its way, and calls made meanwhile would lose that.
        let raised = PyErr::take(py);
        py.detach(|| work.take().map(|work| work()));
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
    if let Some(work) = work {
        work();
    }
}
