//! Arrow's columns next to asyncpg.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_core::memory::{Budget, begin};
use longshore_core::{Error, Protocol, ReadOptions, Warnings};
use longshore_postgres::{Answers, Arrival, Inquiry, Knowledge};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::limit::Limit;
use crate::policy::Policy;
use crate::read::Reading;
use crate::types::data_types;
use crate::warn::warn;
use longshore_interpreter::capsule::Batch;
use longshore_interpreter::raise;

/// What a connection has been told of the catalogue.
#[pyclass(frozen, name = "Knowledge", module = "longshore._core")]
pub(crate) struct PyKnowledge(Knowledge);

#[pymethods]
impl PyKnowledge {
    #[new]
    fn new() -> Self {
        Self(Knowledge::default())
    }

    /// Forgets it: it may be so no more.
    fn forget(&self) {
        self.0.forget();
    }
}

/// What has to be known before a statement's rows can be read.
#[pyclass(frozen, name = "Inquiry", module = "longshore._core")]
pub(crate) struct PyInquiry {
    inquiry: Mutex<Inquiry>,
    budget: Arc<Budget>,
    warnings: Arc<Warnings>,
}

impl PyInquiry {
    fn inquiry(&self) -> MutexGuard<'_, Inquiry> {
        self.inquiry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyInquiry {
    /// About `statement`; `binary_forms` tells whether the server's are PostgreSQL's. The rest is as in `open_read`.
    #[new]
    #[pyo3(signature = (*, statement, knowledge, binary_forms, types, policy, batch_rows, batch_bytes, memory_limit))]
    // One call from one place, by keyword; the interpreter gives values.
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
    fn new(
        statement: String,
        knowledge: &PyKnowledge,
        binary_forms: bool,
        types: &Bound<'_, PyDict>,
        policy: Policy,
        batch_rows: usize,
        batch_bytes: usize,
        memory_limit: Option<Limit>,
    ) -> PyResult<Self> {
        begin().map_err(|no_room| raise(no_room.into()))?;
        let budget = Limit::budget(memory_limit, policy.is_stream());
        let mut options = ReadOptions { batch_rows, batch_bytes, budget: budget.clone(), ..policy.options };
        if !binary_forms {
            options.protocol = Protocol::Text;
        }
        options.schema = data_types(types)?;
        let warnings = options.warnings.clone();
        let inquiry = Inquiry::new(statement, options, knowledge.0.clone());
        Ok(Self { inquiry: Mutex::new(inquiry), budget, warnings })
    }

    /// The server has described the statement; the last description counts.
    fn describe(&self, description: Option<&[u8]>) -> PyResult<()> {
        self.inquiry().describe(description).map_err(raise)
    }

    /// The server does not understand the questions.
    fn give_up(&self) {
        self.inquiry().give_up();
    }

    /// The next statement to run, with its columns as text; `None` once all is known.
    fn question(&self) -> PyResult<Option<String>> {
        self.inquiry().question().map_err(raise)
    }

    /// Files what the last question was answered with.
    fn answer(&self, answers: &PyAnswers) -> PyResult<()> {
        self.inquiry().answer(answers.take()).map_err(raise)
    }

    /// Which columns are wanted in binary; the others as text.
    fn binary(&self) -> PyResult<Vec<bool>> {
        self.inquiry().binary().map_err(raise)
    }

    /// What takes the rows.
    fn arrival(&self) -> PyResult<PyArrival> {
        let arrival = self.inquiry().arrival().map_err(raise)?;
        let arrival = Arc::new(Mutex::new(Some(arrival)));
        Ok(PyArrival { arrival, budget: self.budget.clone(), warnings: self.warnings.clone() })
    }
}

/// The rows of one lookup.
#[pyclass(frozen, name = "Answers", module = "longshore._core")]
pub(crate) struct PyAnswers(Arc<Mutex<Answers>>);

impl PyAnswers {
    pub(crate) fn shared(&self) -> Arc<Mutex<Answers>> {
        self.0.clone()
    }

    fn take(&self) -> Answers {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyAnswers {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }
}

/// The rows of one result, on their way into Arrow's memory.
#[pyclass(frozen, name = "Arrival", module = "longshore._core")]
pub(crate) struct PyArrival {
    arrival: Arc<Mutex<Option<Arrival>>>,
    budget: Arc<Budget>,
    warnings: Arc<Warnings>,
}

impl PyArrival {
    pub(crate) fn shared(&self) -> Arc<Mutex<Option<Arrival>>> {
        self.arrival.clone()
    }

    fn arrival(&self) -> MutexGuard<'_, Option<Arrival>> {
        self.arrival.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyArrival {
    /// The whole result, once, after the server has told the command's `tag`.
    fn finish(&self, py: Python<'_>, tag: &str) -> PyResult<Reading> {
        let arrival = self.arrival().take().ok_or_else(taken)?;
        let batches = py.detach(|| arrival.finish(tag)).map_err(raise)?;
        Reading::received(py, batches, self.budget.clone(), self.warnings.clone())
    }

    /// How many rows to ask the server for next, where they come in pages.
    fn page_rows(&self) -> usize {
        self.arrival().as_ref().map_or(1, Arrival::page_rows)
    }

    /// The batches that are full, after a page of `asked` rows; and with the last page's `tag` what is left.
    #[pyo3(signature = (asked, tag))]
    fn page(&self, asked: usize, tag: Option<&str>) -> PyResult<Vec<Batch>> {
        let mut arrival = self.arrival();
        let arrival = arrival.as_mut().ok_or_else(taken)?;
        let batches = arrival.page(asked, tag).map_err(raise)?;
        if tag.is_some() {
            warn(&self.warnings).map_err(raise)?;
        }
        Ok(batches.into_iter().map(Batch).collect())
    }
}

fn taken() -> PyErr {
    raise(Error::interface("the result has already been read"))
}
