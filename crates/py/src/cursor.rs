//! What a DB-API cursor has of its statement: rows as tuples, made batch by batch, or the rest of them in Arrow's memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use longshore_core::{
    Batches, DEFERRED, Deadline, Done, Error, Finalised, Finaliser, Kind, NATIVE_TYPE, Progress, Result,
    Session, Warnings, type_name,
};
use longshore_frames::{
    RowMaker, double_batch, double_schema, narrow_batch, narrow_schema, streamed_batch, streamed_schema,
};
use longshore_interpreter::{raise, released};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::read::Reading;
use crate::warn::warn;

/// How long the end of a result is waited for that no one wants.
const LEFT: Duration = Duration::from_millis(50);

/// The bytes of a result that may be a short one.
const SHORT: usize = 1 << 20;

/// A statement that has been sent: what it has done, or its rows.
#[pyclass(frozen, weakref, name = "Result", module = "longshore._core")]
pub(crate) struct StatementResult {
    schema: SchemaRef,
    done: Option<Done>,
    deadline: Deadline,
    progress: Arc<Progress>,
    warnings: Arc<Warnings>,
    rest: Mutex<Rest>,
}

/// The rows that have not been fetched.
struct Rest {
    /// Tuples of a batch that is partly fetched, and the batch.
    tuples: IntoIter<Py<PyTuple>>,
    batch: Option<RecordBatch>,
    maker: RowMaker,
    source: Ahead,
    /// Rows of the batches that tuples were made of.
    rows: u64,
    /// Whether all rows pass here; those of a frame do not.
    is_counted: bool,
    /// Whether what is left was thrown away.
    is_closed: bool,
}

/// Batches that were read ahead, and those that are still to come.
struct Ahead {
    batches: VecDeque<RecordBatch>,
    /// `None` once all has come.
    live: Option<Box<dyn Batches>>,
    finaliser: Option<Arc<dyn Finaliser>>,
    schema: SchemaRef,
    /// A result that has failed has no proper end.
    has_failed: bool,
    /// Why it has failed while it was read ahead: whoever fetches hears of it.
    failure: Option<Error>,
}

impl Ahead {
    fn ended(schema: SchemaRef) -> Self {
        Self {
            batches: VecDeque::new(),
            live: None,
            finaliser: None,
            schema,
            has_failed: false,
            failure: None,
        }
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.batches.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.receive(),
        }
    }

    /// The next batch as it came and with its types; `before` rows went before it.
    fn next_typed(&mut self, before: u64) -> Result<Option<(RecordBatch, RecordBatch)>> {
        let Some(batch) = self.next()? else { return Ok(None) };
        let typed = self.typed(batch.clone(), before)?;
        Ok(Some((batch, typed)))
    }

    /// The next batch from the server.
    fn receive(&mut self) -> Result<Option<RecordBatch>> {
        let Some(live) = &mut self.live else {
            return match self.failure.take() {
                Some(failure) => Err(failure),
                None if self.has_failed => Err(failed()),
                None => Ok(None),
            };
        };
        let next = live.next().transpose();
        if !matches!(next, Ok(Some(_))) {
            self.has_failed = next.is_err();
            self.live = None;
        }
        next
    }

    /// Ends the result, which has no rows any more; gives what is still to come.
    fn fail(&mut self) -> Option<Box<dyn Batches>> {
        self.has_failed = true;
        self.batches.clear();
        self.live.take()
    }

    /// Reads on to the first `rows`, or some of them where they are wide, or to the end: a short result leaves nothing to
    /// stop. Without `rows`, it is to the end.
    fn start(&mut self, rows: Option<usize>) -> Result<()> {
        let (mut come, mut bytes) = (0, 0);
        while self.live.is_some() && rows.is_none_or(|rows| come < rows && bytes < SHORT) {
            if let Some(batch) = self.receive()? {
                come += batch.num_rows();
                bytes += batch.get_array_memory_size();
                self.batches.push_back(batch);
            }
        }
        Ok(())
    }

    /// Reads on until the result has ended, or so many bytes wait to be fetched; whether it has ended.
    fn fill(&mut self, most: usize) -> Result<bool> {
        let mut bytes: usize = self.batches.iter().map(RecordBatch::get_array_memory_size).sum();
        while self.live.is_some() && bytes <= most {
            match self.receive() {
                Ok(Some(batch)) => {
                    bytes += batch.get_array_memory_size();
                    self.batches.push_back(batch);
                }
                Ok(None) => {}
                Err(error) if error.kind() == Kind::Interrupted => return Err(error),
                Err(error) => self.failure = Some(error),
            }
        }
        Ok(self.live.is_none())
    }

    /// `batch`, with the types that hold its own values where only a whole result has types.
    fn typed(&self, batch: RecordBatch, before: u64) -> Result<RecordBatch> {
        let Some(finaliser) = &self.finaliser else { return Ok(batch) };
        let whole = finaliser.finalise(&self.schema, vec![batch]);
        let (_, mut batches) = whole.map_err(|error| later(error, before))?;
        batches.pop().ok_or_else(|| Error::internal("a batch has gone while it got its types"))
    }
}

/// An error in a batch that has `before` rows of the result before it.
fn later(error: Error, before: u64) -> Error {
    let mut place = error.place().clone();
    place.row = place.row.map(|row| row + before);
    error.at(place)
}

fn failed() -> Error {
    Error::interface("the result has failed: its rows cannot be fetched")
        .with_hint("execute the statement again")
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
        let (schema, done, finaliser) = (batches.schema(), batches.done(), batches.finaliser());
        let live = done.is_none().then_some(batches);
        let mut source = Ahead { live, finaliser, ..Ahead::ended(schema.clone()) };
        source.start(rows)?;
        let (tuples, maker) = (Vec::new().into_iter(), RowMaker::default());
        let rest = Rest { tuples, batch: None, maker, source, rows: 0, is_counted: true, is_closed: false };
        Ok(Self { schema, done, deadline, progress, warnings, rest: Mutex::new(rest) })
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
        let checked = if rest.is_closed { Err(failed()) } else { self.deadline.check() };
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
            let Some((batch, typed)) = py.detach(|| source.next_typed(before))? else {
                warn(&self.warnings)?;
                return Ok(false);
            };
            rest.tuples = rest.maker.rows(py, &typed, before)?;
            rest.rows += batch.num_rows() as u64;
            rest.batch = Some(batch);
        }
        Ok(true)
    }
}

impl Drop for StatementResult {
    fn drop(&mut self) {
        if let Ok(rest) = self.rest.get_mut() {
            released(rest.source.live.take());
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
        let ahead = || rest.source.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        Ok((rest.source.live.is_none() && rest.is_counted).then(|| rest.rows + ahead()))
    }

    /// Whether the server has sent all; the connection is free then.
    #[getter]
    fn ended(&self) -> bool {
        self.rest.try_lock().is_ok_and(|rest| rest.source.live.is_none())
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
        let mut rest = self.rest()?;
        let left = rest.tuples.len();
        let partly = rest.batch.take().map(|batch| batch.slice(batch.num_rows() - left, left));
        let before = rest.rows - left as u64;
        rest.tuples = Vec::new().into_iter();
        rest.is_counted = false;
        let ended = Ahead { has_failed: rest.source.has_failed, ..Ahead::ended(self.schema.clone()) };
        let source = std::mem::replace(&mut rest.source, ended);
        if source.has_failed {
            return Err(raise(failed()));
        }
        let warnings = self.warnings.clone();
        let remainder = Remainder::new(partly, source, before, form, warnings.clone()).map_err(raise)?;
        let (deadline, progress) = (self.deadline.clone(), self.progress.clone());
        Ok(Reading::of(Box::new(remainder), Arc::default(), deadline, progress, warnings))
    }

    /// Ends the result. What is left of it is thrown away; where that is much, the statement is stopped on the server.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut rest = self.rest()?;
        (rest.tuples, rest.batch, rest.is_closed) = (Vec::new().into_iter(), None, true);
        let Some(mut live) = rest.source.fail() else { return Ok(()) };
        py.detach(move || {
            self.deadline.end_within(LEFT);
            // Stopped within a transaction, it would end that in PostgreSQL.
            while matches!(live.next(), Some(Ok(_))) {}
        });
        Ok(())
    }
}

/// The rows that were not fetched, as a result of their own.
struct Remainder {
    first: VecDeque<RecordBatch>,
    source: Ahead,
    /// Rows of the result before the next batch.
    before: u64,
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    /// What becomes of each batch.
    change: Change,
    warnings: Arc<Warnings>,
}

#[derive(Clone, Copy)]
enum Change {
    Nothing,
    /// Decimals are what the frame has.
    Decimals(Decimals),
    /// Columns without a type have that of the first batch.
    Streamed,
}

impl Remainder {
    fn new(
        partly: Option<RecordBatch>,
        source: Ahead,
        before: u64,
        form: &str,
        warnings: Arc<Warnings>,
    ) -> Result<Self> {
        let (schema, finaliser) = (source.schema.clone(), source.finaliser.clone());
        let first = partly.into_iter().filter(|batch| batch.num_rows() > 0).collect();
        let change = Change::Nothing;
        let mut rest = Self { first, source, before, schema, finaliser, change, warnings };
        match (form, rest.finaliser.take()) {
            ("pandas" | "polars", finaliser) => {
                let decimals = if form == "pandas" { Decimals::Doubles } else { Decimals::Narrow };
                if let Some(finaliser) = finaliser {
                    let warnings = rest.warnings.clone();
                    rest.finaliser = Some(Arc::new(Final { finaliser, decimals, warnings }));
                } else {
                    rest.schema = decimals.schema(&rest.schema);
                    rest.change = Change::Decimals(decimals);
                }
            }
            ("stream", Some(finaliser)) => {
                let batch = rest.raw()?;
                let (first, _) = finaliser.finalise(&rest.schema, batch.iter().cloned().collect())?;
                rest.schema = streamed_schema(&rest.schema, &first);
                rest.first.extend(batch);
                rest.change = Change::Streamed;
            }
            (_, finaliser) => rest.finaliser = finaliser,
        }
        Ok(rest)
    }

    fn raw(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.first.pop_front() { Ok(Some(batch)) } else { self.source.next() }
    }

    fn changed(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.raw()? else { return Ok(None) };
        let before = self.before;
        self.before += batch.num_rows() as u64;
        Ok(Some(match self.change {
            Change::Nothing => batch,
            Change::Decimals(decimals) => decimals.batch(&batch, &self.schema, before, &self.warnings)?,
            Change::Streamed => streamed_batch(&self.source.typed(batch, before)?, &self.schema, before)?,
        }))
    }
}

impl Iterator for Remainder {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.changed().transpose()
    }
}

impl Batches for Remainder {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// What a frame has for decimals.
#[derive(Clone, Copy)]
enum Decimals {
    /// Doubles, in pandas.
    Doubles,
    /// Decimals of 38 digits, in polars.
    Narrow,
}

impl Decimals {
    fn schema(self, schema: &Schema) -> SchemaRef {
        match self {
            Self::Doubles => double_schema(schema, &[]),
            Self::Narrow => narrow_schema(schema),
        }
    }

    fn batch(
        self,
        batch: &RecordBatch,
        schema: &SchemaRef,
        before: u64,
        warnings: &Arc<Warnings>,
    ) -> Result<RecordBatch> {
        match self {
            Self::Doubles => double_batch(batch, schema, before, warnings),
            Self::Narrow => narrow_batch(batch, schema, before),
        }
    }
}

/// Final types with the decimals of a frame.
struct Final {
    finaliser: Arc<dyn Finaliser>,
    decimals: Decimals,
    warnings: Arc<Warnings>,
}

impl Finaliser for Final {
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised> {
        let (exact, batches) = self.finaliser.finalise(schema, batches)?;
        let (schema, mut rows) = (self.decimals.schema(&exact), 0);
        let change = |batch: RecordBatch| {
            let before = rows;
            rows += batch.num_rows() as u64;
            self.decimals.batch(&batch, &schema, before, &self.warnings)
        };
        let batches = batches.into_iter().map(change).collect::<Result<_>>()?;
        Ok((schema, batches))
    }
}
