//! The database to connect to, as Python gives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::{Kind, PasswordSource, Result, Secret, Target};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use longshore_interpreter::{raise, wrap};
use longshore_source::settings::Url;

/// A URL, or a scheme with keywords, and perhaps a callable that gives the password; `creates` as in the core.
pub(crate) fn target(
    url: Option<&str>,
    scheme: &str,
    keywords: BTreeMap<String, String>,
    password: Option<Py<PyAny>>,
    creates: bool,
) -> PyResult<Target> {
    let mut target = match url {
        Some(url) => Target::from_url(url).map_err(raise)?,
        None => Target::from_keywords(scheme, BTreeMap::new()),
    };
    target.keywords = keywords;
    target.creates = creates;
    target.password = password.map(|callable| Arc::new(Callable(callable)) as Arc<dyn PasswordSource>);
    Ok(target)
}

struct Callable(Py<PyAny>);

impl PasswordSource for Callable {
    fn password(&self) -> Result<Secret> {
        let called = Python::attach(|py| {
            let password = self.0.call0(py)?;
            // The value itself may be a secret: the error does not show it.
            password
                .extract::<String>(py)
                .map_err(|_| PyTypeError::new_err("the password callable must return a str"))
        });
        called.map(Secret::new).map_err(|error| wrap(Kind::Operational, error))
    }
}

/// The parts of what follows a URL's scheme as settings, in order: user, password, host, port, database, and those behind
/// the question mark.
#[pyfunction]
pub(crate) fn url_settings(rest: &str) -> PyResult<Vec<(String, String)>> {
    Url::parse(rest).map(|url| url.settings("database").collect()).map_err(raise)
}

/// The settings behind a URL's question mark, in order.
#[pyfunction]
pub(crate) fn url_query(query: &str) -> PyResult<Vec<(String, String)>> {
    Url::pairs(query).map_err(raise)
}
