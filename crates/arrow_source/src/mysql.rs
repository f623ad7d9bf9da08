//! A client of MySQL's that Python has: the core speaks on the socket that it has opened.

use std::sync::Arc;

use longshore_core::{Deadline, Error, OneSession, Result, Source};
use longshore_interpreter::{error_of, with_lock};
use longshore_mysql::{Client, Greeted, adopt};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::no_interpreter;

/// Bytes that go through Python at a time.
const BYTES: usize = 256 << 10;

/// A client's connection, by an object of `longshore.sources`.
#[pyclass(frozen, module = "longshore._core")]
pub struct MySqlConnection(Arc<Py<PyAny>>);

#[pymethods]
impl MySqlConnection {
    #[new]
    fn new(client: Py<PyAny>) -> Self {
        Self(Arc::new(client))
    }
}

impl MySqlConnection {
    /// The source that the core reads from.
    #[must_use]
    pub fn source(&self) -> Box<dyn Source> {
        let client = self.0.clone();
        Box::new(OneSession(move |deadline: &Deadline| {
            let leased = PythonClient(client.clone());
            let (capabilities, thread, status, is_for_us, has_texts_alone) =
                leased.call(|client| client.call_method0("lease")?.extract())?;
            adopt(
                Box::new(leased),
                Greeted { capabilities, thread, status, is_for_us, has_texts_alone },
                deadline,
            )
        }))
    }
}

/// The methods of that object.
struct PythonClient(Arc<Py<PyAny>>);

impl PythonClient {
    fn call<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let called = with_lock(|py| {
            // A session may end while an exception is on its way.
            let raised = PyErr::take(py);
            let done = work(self.0.bind(py)).map_err(|error| error_of(py, error));
            if let Some(raised) = raised {
                raised.restore(py);
            }
            done
        });
        called.unwrap_or_else(|| Err(no_interpreter()))
    }
}

impl Client for PythonClient {
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        self.call(|client| {
            let received = client.call_method1("receive", (into.len().min(BYTES),))?;
            let Some(bytes) = received.extract::<Option<Bound<'_, PyBytes>>>()? else { return Ok(None) };
            let bytes = bytes.as_bytes();
            Ok(into.get_mut(..bytes.len()).map(|into| into.copy_from_slice(bytes)).map(|()| bytes.len()))
        })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        let bytes = &bytes[..bytes.len().min(BYTES)];
        self.call(|client| client.call_method1("send", (PyBytes::new(client.py(), bytes),))?.extract())
    }

    fn run_elsewhere(&self, statements: Vec<String>) -> Result<()> {
        self.call(|client| client.call_method1("run_elsewhere", (statements,)).map(drop))
    }

    fn release(&mut self, status: Option<u16>) {
        // What fails here has been said by what went before.
        let _: Result<(), Error> = self.call(|client| client.call_method1("release", (status,)).map(drop));
    }
}
