//! A connection that the caller has opened with the driver itself.

use std::sync::Arc;

use longshore_core::{Deadline, Error, Lease, Reservation, Result, Session, SessionFactory, Source};
use pyo3::prelude::*;

use crate::call::Handle;
use crate::session::ArrowSession;

/// A driver's connection of the caller's: its transaction, its temporary tables.
#[pyclass(frozen, module = "longshore._core")]
pub struct ArrowConnection(Py<PyAny>);

#[pymethods]
impl ArrowConnection {
    /// Over a session of `longshore.sources`.
    #[new]
    fn new(session: Py<PyAny>) -> Self {
        Self(session)
    }
}

impl ArrowConnection {
    /// What the core reads from.
    #[must_use]
    pub fn source(&self, py: Python<'_>) -> Box<dyn Source> {
        Box::new(Borrowed(Handle::new(self.0.clone_ref(py))))
    }
}

struct Borrowed(Handle);

impl Source for Borrowed {
    fn reserve(&self, count: usize, deadline: &Deadline) -> Result<Reservation> {
        Ok(Reservation {
            first: Box::new(ArrowSession::new(self.0.clone(), deadline)),
            lease: None,
            factory: Arc::new(Alone),
            most: count,
            begins: false,
            is_own: true,
        })
    }
}

/// There are no further sessions.
struct Alone;

impl Lease for Alone {
    fn release(&self, session: Box<dyn Session>) {
        drop(session);
    }
}

impl SessionFactory for Alone {
    fn keep_only(&self, _count: usize) {}

    fn open(&self, _deadline: &Deadline) -> Result<Box<dyn Session>> {
        Err(Error::internal("a driver's connection is one connection only"))
    }
}
