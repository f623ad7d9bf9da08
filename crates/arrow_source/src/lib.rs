//! One session over any driver that yields Arrow streams: a Python object of a few methods, which `longshore.sources`
//! describes, is a source with every promise of the others.
//!
//! [`SqliteConnection`] is the one source that yields objects instead: a connection of Python's own module `sqlite3`. A client
//! of PostgreSQL's, such as psycopg, hands on the bytes that the server has sent, and one of MySQL's its socket: [`MySqlConnection`].
//!
//! A driver looks neither at a deadline nor at Ctrl-C, so each of its calls is made on a thread of its own while the caller's
//! looks at both, and cancels.

mod batches;
mod call;
mod mysql;
mod postgresql;
mod session;
mod sink;
mod split;
mod sqlite3;

use std::sync::Arc;

use longshore_core::{Deadline, Driver, Error, Kind, Result, Session, Target};
use longshore_interpreter::with_lock;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::Handle;
use crate::session::ArrowSession;

pub use call::{Work, apart};
pub use mysql::MySqlConnection;
pub use session::ArrowConnection;
pub use sqlite3::SqliteConnection;

/// The module of the drivers that Python has.
const SOURCES: &str = "longshore.sources";

/// A driver of `longshore.sources`, by its scheme.
struct Door(String);

/// The driver of a scheme that `longshore.sources` knows.
#[must_use]
pub fn driver(scheme: &str) -> Option<Arc<dyn Driver>> {
    let knows = with_lock(|py| py.import(SOURCES)?.getattr("SCHEMES")?.contains(scheme));
    matches!(knows, Some(Ok(true))).then(|| Arc::new(Door(scheme.to_owned())) as Arc<dyn Driver>)
}

/// A driver whose sessions a callable of Python's opens.
struct Opener {
    scheme: String,
    open: Arc<Py<PyAny>>,
}

/// The driver whose sessions `open` gives, each time it is called.
#[must_use]
pub fn python_driver(scheme: &str, open: Py<PyAny>) -> Arc<dyn Driver> {
    Arc::new(Opener { scheme: scheme.to_owned(), open: Arc::new(open) })
}

impl Driver for Opener {
    fn schemes(&self) -> Vec<&str> {
        vec![&self.scheme]
    }

    fn connect(&self, _target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        let open = self.open.clone();
        session(deadline, move |py| open.call0(py))
    }
}

/// The session that `connect` opens.
fn session(
    deadline: &Deadline,
    connect: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
) -> Result<Box<dyn Session>> {
    let close = |py: Python<'_>, session: Py<PyAny>| drop(session.call_method0(py, "close"));
    let opened = call::on_thread(deadline, connect, &mut || {}, close);
    let object = opened.map_err(|failed| failed.error)?;
    Ok(Box::new(ArrowSession::new(Handle::new(object), deadline)))
}

impl Driver for Door {
    fn schemes(&self) -> Vec<&str> {
        vec![&self.0]
    }

    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>> {
        let target = target.clone();
        let password = target.password.as_ref().map(|source| source.password()).transpose()?;
        let connect = move |py: Python<'_>| {
            let keywords = PyDict::new(py);
            for (key, value) in &target.keywords {
                keywords.set_item(key, value)?;
            }
            if let Some(password) = &password {
                keywords.set_item("password", password.reveal())?;
            }
            let sources = py.import(SOURCES)?;
            let opened = sources
                .call_method1("connect", (target.scheme(), target.rest(), keywords, target.creates))?;
            Ok(opened.unbind())
        };
        session(deadline, connect)
    }
}

/// The error of an interpreter that is gone.
fn no_interpreter() -> Error {
    Error::new(Kind::Operational, "the Python interpreter is shutting down")
}
