//! Who takes what a port keeps from asyncpg.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_core::Result;
use longshore_postgres::{Answers, Arrival, substitute};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::guest::{PyAnswers, PyArrival};
use crate::rows::PyRows;

/// What takes rows.
pub(crate) trait Taker: Send {
    /// Takes the row of a whole message.
    fn push(&mut self, message: &[u8]);

    /// Messages for asyncpg in place of the rows since the last call.
    fn take_objects(&mut self) -> Option<Vec<u8>> {
        None
    }
}

pub(crate) type SharedTaker = Arc<Mutex<dyn Taker>>;

impl Taker for Option<Arrival> {
    fn push(&mut self, message: &[u8]) {
        if let Some(arrival) = self {
            arrival.push(message);
        }
    }
}

impl Taker for Answers {
    fn push(&mut self, message: &[u8]) {
        Answers::push(self, message);
    }
}

/// What Python hands over to take rows.
#[derive(FromPyObject)]
pub(crate) enum Kept<'py> {
    Rows(Bound<'py, PyRows>),
    Arrival(Bound<'py, PyArrival>),
    Answers(Bound<'py, PyAnswers>),
}

impl Kept<'_> {
    pub(crate) fn shared(&self) -> SharedTaker {
        match self {
            Self::Rows(rows) => rows.get().shared(),
            Self::Arrival(arrival) => arrival.get().shared(),
            Self::Answers(answers) => answers.get().shared(),
        }
    }
}

/// A statement's description, in which asyncpg sees other types: it asks for a column in the format of its type.
#[pyclass(frozen, name = "Description", module = "longshore._core")]
pub(crate) struct PyDescription {
    columns: Vec<u32>,
    otherwise: u32,
    original: Mutex<Option<Vec<u8>>>,
}

impl PyDescription {
    /// Keeps the message, and gives the one for asyncpg.
    pub(crate) fn take(&self, message: &[u8]) -> Result<Vec<u8>> {
        let substituted = substitute(message, &self.columns, self.otherwise)?;
        *self.original.lock().unwrap_or_else(PoisonError::into_inner) = Some(message.to_vec());
        Ok(substituted)
    }
}

#[pymethods]
impl PyDescription {
    /// The OIDs that asyncpg is to see: those of the first columns, and that of all further ones.
    #[new]
    fn new(columns: Vec<u32>, otherwise: u32) -> Self {
        Self { columns, otherwise, original: Mutex::default() }
    }

    /// The server's own message; `None` where the statement returns no rows.
    fn message<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let original = self.original.lock().unwrap_or_else(PoisonError::into_inner);
        original.as_ref().map(|message| PyBytes::new(py, message))
    }
}
