//! Reports of a read's progress, to a Python callable.

use std::sync::Arc;

use longshore_core::{Kind, Listener, Meter, Progress, Result};
use longshore_interpreter::{with_lock, wrap};
use pyo3::prelude::*;

/// Calls `callable` with the rows and bytes so far, the rows that the source expects, and whether the result has ended.
pub(crate) fn progress_to(callable: Option<Py<PyAny>>, meter: Arc<Meter>) -> Arc<Progress> {
    Progress::new(callable.map(|callable| Arc::new(Callable(Some(callable))) as Arc<dyn Listener>), meter)
}

struct Callable(Option<Py<PyAny>>);

impl Listener for Callable {
    fn report(&self, figures: &Meter, ended: bool) -> Result<()> {
        let Some(callable) = &self.0 else { return Ok(()) };
        let figures = (figures.rows(), figures.bytes(), figures.expected_rows(), ended);
        let called = Python::attach(|py| callable.call1(py, figures).map(drop));
        called.map_err(|error| wrap(Kind::Interrupted, error))
    }
}

impl Drop for Callable {
    /// A bar that no one holds any more goes at once, not when the interpreter is next asked for something.
    fn drop(&mut self) {
        let callable = self.0.take();
        let _ = with_lock(|_| drop(callable));
    }
}
