//! The Flight SQL server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Direct, Error, Target};
use longshore_interpreter::raise;
use longshore_server::{Limits, Place, Server, Tls, read_only};
use pyo3::prelude::*;

use crate::source::PyTarget;

/// A server that runs until it is stopped or dropped.
#[pyclass(frozen, name = "FlightServer", module = "longshore._core")]
pub(crate) struct FlightServer(Server);

/// The limits of each client.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) struct PyLimits {
    connections: usize,
    sessions: usize,
    statement_timeout: Option<f64>,
    rows: Option<u64>,
    idle: f64,
    greeting: f64,
    silence: f64,
    handles: usize,
    message: usize,
    part_memory: usize,
    part_disk: u64,
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| raise(Error::interface("a time is a number of seconds")))
}

/// The served source: a target, or a callable that opens sessions.
fn served_source(given: &Bound<'_, PyAny>) -> Arc<Direct> {
    if let Ok(target) = given.cast::<PyTarget>() {
        return target.get().0.clone();
    }
    let driver = longshore_arrow_source::python_driver("served", given.clone().unbind());
    Direct::new(driver, Target::from_keywords("served", BTreeMap::new()))
}

#[pymethods]
impl FlightServer {
    /// Starts to serve the sessions of `writers` to those who write, and of `readers` to the others; without these, each statement
    /// of theirs is in a transaction that only reads.
    #[new]
    #[pyo3(signature = (writers, readers, *, host, port, tls, users, insecure, limits, log))]
    #[allow(clippy::too_many_arguments)] // Python names them
    fn new(
        py: Python<'_>,
        writers: &Bound<'_, PyAny>,
        readers: Option<&Bound<'_, PyAny>>,
        host: String,
        port: u16,
        tls: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
        users: Option<PathBuf>,
        insecure: bool,
        limits: PyLimits,
        log: bool,
    ) -> PyResult<Self> {
        let writers = served_source(writers);
        let readers = readers.map_or_else(|| read_only(writers.clone()), served_source);
        let tls = tls.map(|(certificate, key, client_authority)| Tls { certificate, key, client_authority });
        let place = Place { host, port, tls, users, insecure };
        let limits = Limits {
            connections: limits.connections,
            sessions: limits.sessions,
            statement_time: limits.statement_timeout.map(seconds).transpose()?,
            rows: limits.rows,
            idle: seconds(limits.idle)?,
            greeting: seconds(limits.greeting)?,
            silence: seconds(limits.silence)?,
            handles: limits.handles,
            message: limits.message,
            part_memory: limits.part_memory,
            part_disk: limits.part_disk,
        };
        py.detach(|| Server::start(writers, readers, &place, limits, log)).map(Self).map_err(raise)
    }

    #[getter]
    fn host(&self) -> String {
        self.0.address().ip().to_string()
    }

    #[getter]
    fn port(&self) -> u16 {
        self.0.address().port()
    }

    /// How many calls run, and how many results, transactions, prepared statements and sessions clients hold.
    #[getter]
    fn held(&self) -> usize {
        self.0.count_held()
    }

    /// Ends it: what runs has a few seconds.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

impl Drop for FlightServer {
    fn drop(&mut self) {
        // The threads that end may need the interpreter's lock.
        longshore_interpreter::without_lock(|| self.0.stop());
    }
}

/// The line of a user for the file of users; the password is hashed.
#[pyfunction]
pub(crate) fn user_line(py: Python<'_>, name: &str, password: &str, role: &str) -> PyResult<String> {
    py.detach(|| longshore_server::line_of(name, password, role)).map_err(raise)
}
