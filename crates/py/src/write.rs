//! `write_sql`: pours frames into a table.

use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use longshore_core::{
    Deadline, Frame, Frames, IfExists, Kind, Load, Meter, OwnOptions, Progress, ReadAhead, Result, Source,
    Spread, TableName,
};
use longshore_interpreter::capsule::frame;
use longshore_interpreter::{raise, wrap};
use longshore_postgres::CopyData;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::interrupt::{CancelHandle, deadline, reading_deadline};
use crate::policy::Own;
use crate::progress::progress_to;
use crate::read::Reading;
use crate::source::source;
use crate::warn::warn_of_serial_write;

/// Where rows go, and how; `longshore.write` has checked the words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Destination<'py> {
    source: Bound<'py, PyAny>,
    schema: Option<String>,
    table: String,
    if_exists: String,
    key: Vec<String>,
    types: Vec<(String, String)>,
    own: Own,
    sessions: NonZeroUsize,
    most_rows: Option<NonZeroUsize>,
}

/// Writes the frames that the iterator `frames` gives, and returns the number of rows.
#[pyfunction]
#[pyo3(signature = (frames, *, into, timeout, progress, cancel_handle))]
pub(crate) fn write(
    frames: &Bound<'_, PyAny>,
    into: Destination<'_>,
    timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    cancel_handle: CancelHandle,
) -> PyResult<u64> {
    let py = frames.py();
    let write = Write::new(py, into, timeout, progress, cancel_handle)?;
    let frames = Frames::new(PyFrames(frames.try_iter()?.unbind())).map_err(raise)?;
    write.deadline.check_data().map_err(raise)?;
    let schema = frames.schema();
    write.run(py, frames, schema)
}

/// Writes the result of `reading`, which is read meanwhile on a thread of its own, and returns the number of rows.
#[pyfunction]
#[pyo3(signature = (reading, *, into, timeout, progress, cancel_handle))]
pub(crate) fn copy(
    py: Python<'_>,
    reading: &Reading,
    into: Destination<'_>,
    timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    cancel_handle: CancelHandle,
) -> PyResult<u64> {
    let (stop, ctrl_c) = (reading.deadline.cancel_handle(), deadline(py, None, None)?);
    // All that can fail comes first: whoever drops the read-ahead waits for its thread, which may wait for the interpreter.
    let write = Write::new(py, into, timeout, progress, cancel_handle)?;
    let read_ahead =
        ReadAhead::start(reading.take()?, &ctrl_c, None, move || stop.cancel()).map_err(raise)?;
    let schema = read_ahead.schema();
    write.run(py, read_ahead, schema)
}

/// The names and the types of a new table's columns in PostgreSQL, for a frame.
#[pyfunction]
pub(crate) fn postgresql_columns(of: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    longshore_postgres::copy_columns(&frame(of)?.schema).map_err(raise)
}

/// The names and the types of a new table's columns in MySQL or MariaDB of this version, for a frame.
#[pyfunction]
pub(crate) fn mysql_columns(of: &Bound<'_, PyAny>, version: &str) -> PyResult<Vec<(String, String)>> {
    longshore_mysql::column_types(&frame(of)?.schema, version).map_err(raise)
}

/// The statement that makes a table for a frame's rows in MySQL or MariaDB of this version.
#[pyfunction]
// The interpreter gives a value.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn mysql_new_table(
    of: &Bound<'_, PyAny>,
    schema: Option<String>,
    table: String,
    key: Vec<String>,
    types: Vec<(String, String)>,
    version: &str,
) -> PyResult<String> {
    let load = Load {
        table: TableName { schema, table },
        schema: frame(of)?.schema,
        if_exists: IfExists::Fail,
        key,
        types,
        own: OwnOptions::default(),
        meter: Arc::default(),
    };
    longshore_mysql::new_table_statement(&load, version).map_err(raise)
}

/// A statement of PostgreSQL's with a literal in the place of each parameter.
#[pyfunction]
// The interpreter gives a value.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn postgresql_inlined(statement: &str, literals: Vec<String>) -> PyResult<String> {
    longshore_postgres::inline(statement, &literals).map_err(raise)
}

/// The format of a COPY of a frame into such columns, whose types have these OIDs and modifiers: its name, and the bytes.
#[pyfunction]
// The interpreter gives a value.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn postgresql_copy<'py>(
    of: &Bound<'py, PyAny>,
    natives: Vec<(u32, i32)>,
) -> PyResult<(&'static str, Bound<'py, PyBytes>)> {
    let (py, frame) = (of.py(), frame(of)?);
    let data = py.detach(|| CopyData::new(frame, &natives)).map_err(raise)?;
    Ok((data.format, PyBytes::new(py, &data.bytes)))
}

/// The frames that a Python iterator gives.
struct PyFrames(Py<PyIterator>);

impl Iterator for PyFrames {
    type Item = Result<Frame>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::attach(|py| self.0.bind(py).clone().next().map(|next| frame(&next?)));
        next.map(|frame| frame.map_err(|error| wrap(Kind::Interrupted, error)))
    }
}

/// A write that is ready to begin.
struct Write {
    source: Box<dyn Source>,
    load: Load,
    sessions: NonZeroUsize,
    most_rows: Option<NonZeroUsize>,
    deadline: Deadline,
    progress: Arc<Progress>,
}

impl Write {
    fn new(
        py: Python<'_>,
        into: Destination<'_>,
        timeout: Option<f64>,
        progress: Option<Py<PyAny>>,
        cancel_handle: CancelHandle,
    ) -> PyResult<Self> {
        let meter = Arc::<Meter>::default();
        let progress = progress_to(progress, meter.clone());
        Ok(Self {
            source: source(&into.source)?,
            deadline: reading_deadline(py, timeout, cancel_handle, progress.clone())?,
            load: Load {
                table: TableName { schema: into.schema, table: into.table },
                schema: Arc::new(Schema::empty()),
                if_exists: mode(&into.if_exists),
                key: into.key,
                types: into.types,
                own: into.own.0,
                meter,
            },
            sessions: into.sessions,
            most_rows: into.most_rows,
            progress,
        })
    }

    fn run(
        self,
        py: Python<'_>,
        batches: impl Iterator<Item = Result<RecordBatch>> + Send,
        schema: SchemaRef,
    ) -> PyResult<u64> {
        let Self { source, load, sessions, most_rows, deadline, progress } = self;
        let load = Load { schema, ..load };
        let written = py.detach(|| {
            let warn = |reason: &str| warn_of_serial_write(reason);
            let spread = Spread { sessions, most_rows, warn: &warn };
            let rows = longshore_core::write(source.as_ref(), &load, batches, &spread, &deadline)?;
            progress.finish()?;
            Ok(rows)
        });
        progress.end();
        written.map_err(raise)
    }
}

fn mode(word: &str) -> IfExists {
    match word {
        "append" => IfExists::Append,
        "replace" => IfExists::Replace,
        "truncate" => IfExists::Truncate,
        "upsert" => IfExists::Upsert,
        _ => IfExists::Fail,
    }
}
