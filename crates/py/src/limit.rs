//! `options={"memory_limit": ...}` as the core has it.

use std::sync::Arc;

use longshore_core::memory::{self, Budget, MemoryLimit, free};
use pyo3::prelude::*;

use longshore_interpreter::raise;

/// A number of bytes, or the word `"auto"`. `None` is not a limit.
pub(crate) struct Limit(MemoryLimit);

impl<'py> FromPyObject<'_, 'py> for Limit {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<&str>() {
            Ok("auto") => Ok(Self(MemoryLimit::Auto)),
            _ => given.extract().map(|bytes| Self(MemoryLimit::Bytes(bytes))),
        }
    }
}

impl Limit {
    /// The budget of one read.
    pub(crate) fn budget(limit: Option<Self>, is_stream: bool) -> Arc<Budget> {
        let limit = limit.map_or(MemoryLimit::Unlimited, |limit| limit.0);
        Arc::new(if is_stream { Budget::of_stream(limit) } else { Budget::new(limit) })
    }
}

/// The bytes that the system leaves to this process; `None` where it does not tell.
#[pyfunction]
pub(crate) fn memory_left() -> Option<u64> {
    free().map(|free| free.bytes)
}

/// Fails where a new thread would not have the memory to begin.
#[pyfunction]
pub(crate) fn check_available_for_thread() -> PyResult<()> {
    memory::begin().and_then(|()| memory::check_available_for_thread()).map_err(|error| raise(error.into()))
}

/// Calls `work`, which is to be done even without memory: as the begin of a thread, whose own memory may have been the
/// last, or as the end of something.
#[pyfunction]
pub(crate) fn with_reserve(work: &Bound<'_, PyAny>) -> PyResult<()> {
    memory::release_reserve();
    work.call0().map(drop)
}
