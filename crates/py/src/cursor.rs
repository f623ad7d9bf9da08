//! The result of a DB-API cursor's statement: rows as tuples, made batch by batch, or the rest of them in Arrow's memory.

use std::sync::{Arc, Mutex, MutexGuard};
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef};
use longshore_core::{
    Batches, DEFERRED, Deadline, Done, Error, Kind, NATIVE_TYPE, Progress, Result, Warnings, give_up,
    type_name,
};
use longshore_frames::{Form, Pending, Remainder, RowMaker, failed_result};
use longshore_interpreter::{drop_without_lock, raise};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::read::Reading;
use crate::warn::warn;

/// A statement that has been sent: what it has done, or its rows.
#[pyclass(frozen, weakref, name = "Result", module = "longshore._core")]
pub(crate) struct StatementResult {
    schema: SchemaRef,
    done: Option<Done>,
    deadline: Deadline,
    progress: Arc<Progress>,
    warnings: Arc<Warnings>,
    rest: Mutex<Rest>,
    /// Whether it is a part of a result, whose tables are to have one schema.
    is_part: bool,
}

/// The rows that have not been fetched.
struct Rest {
    /// Tuples of a batch that is partly fetched, and the batch.
    tuples: IntoIter<Py<PyTuple>>,
    batch: Option<RecordBatch>,
    maker: RowMaker,
    source: Pending,
    /// Rows of the batches that tuples were made of.
    rows: u64,
    /// Whether all rows pass here; those of a frame do not.
    is_counted: bool,
    /// Whether what is left was thrown away.
    is_closed: bool,
}

impl StatementResult {
    /// A statement that has run to its first `rows`, or without them to its end: one that writes is done before its rows are
    /// fetched, and fails before.
    pub(crate) fn new(
        batches: Box<dyn Batches>,
        rows: Option<usize>,
        deadline: Deadline,
        progress: Arc<Progress>,
        warnings: Arc<Warnings>,
    ) -> Result<Self> {
        let (schema, done) = (batches.schema(), batches.effect());
        let mut source = if done.is_some() { Pending::empty(schema.clone()) } else { Pending::new(batches) };
        source.start(rows)?;
        let (tuples, maker) = (Vec::new().into_iter(), RowMaker::default());
        let rest = Rest { tuples, batch: None, maker, source, rows: 0, is_counted: true, is_closed: false };
        Ok(Self { schema, done, deadline, progress, warnings, rest: Mutex::new(rest), is_part: false })
    }

    /// The same as a part of a result: no part knows what types the values of the others would have.
    pub(crate) fn of_part(mut self) -> Self {
        self.is_part = true;
        self
    }

    /// The rest, which one thread has at a time: it never waits for another, which may wait for the interpreter.
    fn rest(&self) -> PyResult<MutexGuard<'_, Rest>> {
        self.rest.try_lock().map_err(|_| {
            let error = Error::interface("the cursor is in use by another thread");
            raise(error.with_hint("give each thread a connection of its own"))
        })
    }

    /// Whether rows can be fetched at all.
    fn check(&self, rest: &Rest) -> PyResult<()> {
        let checked = if rest.is_closed { Err(failed_result()) } else { self.deadline.check() };
        checked.map_err(raise)
    }

    /// Has tuples ready; false after the last. Where they cannot be made, what follows would look like the rest: the result
    /// has failed.
    fn advance(&self, py: Python<'_>, rest: &mut Rest) -> Result<bool> {
        self.next_rows(py, rest).inspect_err(|_| {
            let live = rest.source.fail();
            py.detach(|| drop(live));
        })
    }

    fn next_rows(&self, py: Python<'_>, rest: &mut Rest) -> Result<bool> {
        while rest.tuples.len() == 0 {
            rest.batch = None;
            let (source, before) = (&mut rest.source, rest.rows);
            let Some((batch, objects)) = py.detach(|| source.next_objects(before))? else {
                warn(&self.warnings)?;
                return Ok(false);
            };
            rest.tuples = rest.maker.rows(py, &objects, before)?;
            rest.rows += batch.num_rows() as u64;
            rest.batch = Some(batch);
        }
        Ok(true)
    }
}

impl Drop for StatementResult {
    fn drop(&mut self) {
        if let Ok(rest) = self.rest.get_mut() {
            drop_without_lock(rest.source.fail());
        }
    }
}

#[pymethods]
impl StatementResult {
    /// How many rows a statement without rows has changed, and the number of the last new one; `None` for one with rows.
    #[getter]
    fn done(&self) -> Option<(Option<u64>, Option<i128>)> {
        self.done.map(|done| (done.rows, done.last_row))
    }

    /// The columns: the name, the Arrow type as text, empty where only the values tell it, the database's own type, and
    /// whether it may hold NULL.
    fn columns(&self) -> Vec<(String, String, Option<String>, bool)> {
        let column = |field: &Arc<Field>| {
            let metadata = field.metadata();
            let native = metadata.get(NATIVE_TYPE).filter(|native| !native.is_empty()).cloned();
            let kind = match metadata.get(DEFERRED).map(String::as_str) {
                Some("numeric") => "decimal".into(),
                Some("geometry") => "binary".into(),
                // What only the values tell.
                Some(_) if native.is_none() => String::new(),
                _ => type_name(field.data_type()),
            };
            (field.name().clone(), kind, native, field.is_nullable())
        };
        self.schema.fields().iter().map(column).collect()
    }

    /// How many rows the result has; `None` until the server has sent all, and where a frame has got them.
    #[getter]
    fn rows(&self) -> PyResult<Option<u64>> {
        let rest = self.rest()?;
        Ok((rest.source.has_come() && rest.is_counted).then(|| rest.rows + rest.source.rows()))
    }

    /// Whether the server has sent all; the connection is free then.
    #[getter]
    fn ended(&self) -> bool {
        self.rest.try_lock().is_ok_and(|rest| rest.source.has_come())
    }

    /// Whether it must be read to its end, or its transaction fails.
    #[getter]
    fn fails_transaction(&self) -> bool {
        self.rest.try_lock().is_ok_and(|rest| rest.source.fails_transaction())
    }

    /// The next row; `None` after the last.
    fn fetch_one(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let mut rest = self.rest()?;
        self.check(&rest)?;
        if !self.advance(py, &mut rest).map_err(raise)? {
            return Ok(None);
        }
        Ok(rest.tuples.next())
    }

    /// So many of the next rows, or all.
    #[pyo3(signature = (most=None))]
    fn fetch(&self, py: Python<'_>, most: Option<usize>) -> PyResult<Py<PyList>> {
        let mut rest = self.rest()?;
        self.check(&rest)?;
        let most = most.unwrap_or(usize::MAX);
        let mut rows = Vec::new();
        while rows.len() < most && self.advance(py, &mut rest).map_err(raise)? {
            let count = rest.tuples.len().min(most - rows.len());
            rows.extend(rest.tuples.by_ref().take(count));
        }
        Ok(PyList::new(py, rows)?.unbind())
    }

    /// Reads on, so that the connection is free for another statement; false where more than `most` bytes would wait.
    fn read_ahead(&self, py: Python<'_>, most: usize) -> PyResult<bool> {
        let mut rest = self.rest()?;
        let rest = &mut *rest;
        if let Err(error) = self.deadline.check() {
            let live = rest.source.fail();
            py.detach(|| drop(live));
            // It was cancelled: who fetches hears of it, and the session is free. Python tells of a Ctrl-C only once.
            return if error.kind() == Kind::Interrupted { Err(raise(error)) } else { Ok(true) };
        }
        py.detach(|| rest.source.fill(most)).map_err(raise)
    }

    /// The rows that have not been fetched, in Arrow's memory. Where only the whole has types, `form` says of which: those
    /// of the whole in "arrow", "pandas" or "polars", or those of a "stream".
    fn reading(&self, form: &str) -> PyResult<Reading> {
        let form = match form {
            "arrow" if self.is_part => Form::Stream,
            "arrow" => Form::Arrow,
            "pandas" => Form::Pandas,
            "polars" => Form::Polars,
            "stream" => Form::Stream,
            _ => return Err(raise(Error::internal("rows in an unknown form"))),
        };
        let mut rest = self.rest()?;
        let left = rest.tuples.len();
        let partly = rest.batch.take().map(|batch| batch.slice(batch.num_rows() - left, left));
        let before = rest.rows - left as u64;
        rest.tuples = Vec::new().into_iter();
        rest.is_counted = false;
        let source = rest.source.take().map_err(raise)?;
        let warnings = self.warnings.clone();
        let remainder = Remainder::new(partly, source, before, form, warnings.clone()).map_err(raise)?;
        let (deadline, progress) = (self.deadline.clone(), self.progress.clone());
        Ok(Reading::of(Box::new(remainder), Arc::default(), deadline, progress, warnings))
    }

    /// Ends the result. What is left of it is thrown away; where that is much, the statement is stopped on the server, later
    /// where a transaction fails by it that is not undone anyway.
    #[pyo3(signature = (*, undone=false))]
    fn close(&self, py: Python<'_>, undone: bool) -> PyResult<()> {
        let mut rest = self.rest()?;
        (rest.tuples, rest.batch, rest.is_closed) = (Vec::new().into_iter(), None, true);
        if let Some(live) = rest.source.fail() {
            py.detach(|| give_up(live, &self.deadline, undone));
        }
        Ok(())
    }
}
