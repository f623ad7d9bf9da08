//! The core's side of asyncpg: the port that its bytes come through, and rows on their way into the memory of Arrow and
//! NumPy.

use std::ffi::c_int;
use std::mem::take;
use std::sync::{Arc, Mutex};

use longshore_core::memory::{Budget, SharedMemory, begin};
use longshore_core::{Error, Protocol, ReadOptions, Warnings, lock};
use longshore_interpreter::capsule::Batch;
use longshore_interpreter::raise;
use longshore_numpy_records::{Column, Fault, Field, Form, Leaf, Mismatch, Rows, Step, Unit, plan};
use longshore_postgres::{Answers, Arrival, Description, Port, RowSink, TypeCache, TypeLookup, native_name};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PySlice};
use pyo3::{PyTraverseError, PyVisit, ffi};

use crate::limit::Limit;
use crate::policy::Policy;
use crate::read::Reading;
use crate::types::data_types;
use crate::warn::warn;

/// The buffer between a transport and asyncpg's protocol.
#[pyclass(frozen, name = "Port", module = "longshore._core")]
pub(crate) struct PyPort(Mutex<PortState>);

struct PortState {
    port: Port,
    /// All of the port's memory.
    view: Option<(Arc<SharedMemory>, Py<PyAny>)>,
    /// asyncpg's `data_received`; `None` once the connection is lost.
    receive: Option<Py<PyAny>>,
}

/// A sink of rows.
#[derive(FromPyObject)]
enum Sink<'py> {
    Rows(Bound<'py, PyRows>),
    Arrival(Bound<'py, PyArrival>),
    Answers(Bound<'py, PyAnswers>),
}

#[pymethods]
impl PyPort {
    #[new]
    fn new(receive: Py<PyAny>) -> PyResult<Self> {
        let port = Port::new().map_err(|error| raise(error.into()))?;
        Ok(Self(Mutex::new(PortState { port, view: None, receive: Some(receive) })))
    }

    /// Where the transport puts what it receives next (`asyncio.BufferedProtocol`).
    #[allow(unsafe_code)]
    fn get_buffer<'py>(&self, py: Python<'py>, sizehint: isize) -> PyResult<Bound<'py, PyAny>> {
        // The whole of what is free: the rest of a row comes sooner.
        let _ = sizehint;
        let mut state = lock(&self.0);
        let PortState { port, view, .. } = &mut *state;
        // SAFETY: the interpreter's lock is held, and Python's views are written by those alone who hold it.
        let (memory, start) = unsafe { port.free_memory() }.map_err(|error| raise(error.into()))?;
        if !view.as_ref().is_some_and(|(seen, _)| Arc::ptr_eq(seen, memory)) {
            let block = Bound::new(py, Block(memory.clone()))?;
            let whole = PyMemoryView::from(block.as_any())?.into_any();
            *view = Some((memory.clone(), whole.unbind()));
        }
        let (start, end) = (start.cast_signed(), memory.len().cast_signed());
        let Some((_, view)) = view else { return Err(raise(Error::internal("a port without memory"))) };
        let view = view.bind(py);
        if start == 0 { Ok(view.clone()) } else { view.get_item(PySlice::new(py, start, end, 1)) }
    }

    /// Takes the bytes that have been put there.
    #[allow(unsafe_code)]
    fn buffer_updated(&self, py: Python<'_>, nbytes: usize) -> PyResult<()> {
        let mut state = lock(&self.0);
        // SAFETY: the interpreter's lock is held until it returns, and no Python code runs that might write meanwhile.
        let others = unsafe { state.port.receive(nbytes, |others| copy(py, others)) };
        let others = others.map_err(raise)?.transpose()?;
        let receive = state.receive.as_ref().map(|receive| receive.clone_ref(py));
        // It may call back.
        drop(state);
        match (others, receive) {
            (Some(others), Some(receive)) => receive.call1(py, (others,)).map(drop),
            _ => Ok(()),
        }
    }

    /// Keeps the rows of the next exchange; false where those of one under way are kept.
    // The interpreter gives a value.
    #[allow(clippy::needless_pass_by_value)]
    fn keep(&self, rows: Sink<'_>) -> bool {
        let rows: Arc<Mutex<dyn RowSink>> = match rows {
            Sink::Rows(rows) => rows.get().0.clone(),
            Sink::Arrival(arrival) => arrival.get().arrival.clone(),
            Sink::Answers(answers) => answers.get().0.clone(),
        };
        lock(&self.0).port.keep(rows)
    }

    /// Has `description` change the description of the next exchange's statement on its way to asyncpg.
    fn describe(&self, description: &PyDescription) {
        lock(&self.0).port.describe(description.0.clone());
    }

    /// Keeps no more rows, and changes no description: asyncpg gets what still comes.
    fn keep_none(&self) {
        lock(&self.0).port.keep_none();
    }

    /// Lets asyncpg's protocol go.
    fn close(&self) {
        let mut state = lock(&self.0);
        state.port.keep_none();
        let held = state.receive.take();
        drop(state);
        drop(held);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(state) => visit.call(&state.receive),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        self.close();
    }
}

/// A statement's description, in which asyncpg sees other types: it asks for a column in the format of its type.
#[pyclass(frozen, name = "Description", module = "longshore._core")]
pub(crate) struct PyDescription(Arc<Mutex<Description>>);

#[pymethods]
impl PyDescription {
    /// The OIDs that asyncpg is to see: those of the first columns, and that of all further ones.
    #[new]
    fn new(columns: Vec<u32>, otherwise: u32) -> Self {
        Self(Arc::new(Mutex::new(Description::new(columns, otherwise))))
    }

    /// The server's own message; `None` where the statement returns no rows.
    fn message<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let description = lock(&self.0);
        description.message().map(|message| PyBytes::new(py, message))
    }
}

/// The same as `PyBytes::new`, which panics without memory.
#[allow(unsafe_code)]
fn copy<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: the bytes are as many, and are copied at once; the call gives a new reference, or null and an exception.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast(), bytes.len().cast_signed());
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// The facts that a connection has been told of the catalogue.
#[pyclass(frozen, name = "TypeCache", module = "longshore._core")]
pub(crate) struct PyTypeCache(TypeCache);

#[pymethods]
impl PyTypeCache {
    #[new]
    fn new() -> Self {
        Self(TypeCache::default())
    }

    /// Forgets it: it may be so no more.
    fn forget(&self) {
        self.0.forget();
    }
}

/// The questions to the catalogue before a statement's rows can be read.
#[pyclass(frozen, name = "TypeLookup", module = "longshore._core")]
pub(crate) struct PyInquiry {
    lookup: Mutex<TypeLookup>,
    budget: Arc<Budget>,
    warnings: Arc<Warnings>,
}

#[pymethods]
impl PyInquiry {
    /// About `statement`; `binary_forms` tells whether the server's are PostgreSQL's. The rest is as in `open_read`.
    #[new]
    #[pyo3(signature = (*, statement, type_cache, binary_forms, types, policy, batch_rows, batch_bytes, memory_limit))]
    // One call from one place, by keyword; the interpreter gives values.
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
    fn new(
        statement: String,
        type_cache: &PyTypeCache,
        binary_forms: bool,
        types: &Bound<'_, PyDict>,
        policy: Policy,
        batch_rows: usize,
        batch_bytes: usize,
        memory_limit: Option<Limit>,
    ) -> PyResult<Self> {
        begin().map_err(|error| raise(error.into()))?;
        let budget = Limit::budget(memory_limit, policy.is_stream());
        let mut options = ReadOptions { batch_rows, batch_bytes, budget: budget.clone(), ..policy.options };
        if !binary_forms {
            options.protocol = Protocol::Text;
        }
        options.schema = data_types(types)?;
        let warnings = options.warnings.clone();
        let lookup = TypeLookup::new(statement, options, type_cache.0.clone());
        Ok(Self { lookup: Mutex::new(lookup), budget, warnings })
    }

    /// The server has described the statement; the last description counts.
    fn describe(&self, description: Option<&[u8]>) -> PyResult<()> {
        lock(&self.lookup).describe(description).map_err(raise)
    }

    /// The server does not understand the questions.
    fn give_up(&self) {
        lock(&self.lookup).give_up();
    }

    /// The next statement to run, with its columns as text; `None` once all is known.
    fn question(&self) -> PyResult<Option<String>> {
        lock(&self.lookup).question().map_err(raise)
    }

    /// Files what the last question was answered with.
    fn answer(&self, answers: &PyAnswers) -> PyResult<()> {
        lock(&self.lookup).answer(take(&mut lock(&answers.0))).map_err(raise)
    }

    /// Which columns are wanted in binary; the others as text.
    fn binary(&self) -> PyResult<Vec<bool>> {
        lock(&self.lookup).binary().map_err(raise)
    }

    /// The sink of the rows.
    fn arrival(&self) -> PyResult<PyArrival> {
        let arrival = lock(&self.lookup).arrival().map_err(raise)?;
        let arrival = Arc::new(Mutex::new(Some(arrival)));
        Ok(PyArrival { arrival, budget: self.budget.clone(), warnings: self.warnings.clone() })
    }
}

/// The rows of one lookup.
#[pyclass(frozen, name = "Answers", module = "longshore._core")]
pub(crate) struct PyAnswers(Arc<Mutex<Answers>>);

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

#[pymethods]
impl PyArrival {
    /// The whole result, once, after the server has told the command's `tag`.
    fn finish(&self, py: Python<'_>, tag: &str) -> PyResult<Reading> {
        let arrival = lock(&self.arrival).take().ok_or_else(read_already)?;
        let batches = py.detach(|| arrival.finish(tag)).map_err(raise)?;
        Reading::from_batches(py, batches, self.budget.clone(), self.warnings.clone())
    }

    /// How many rows to ask the server for next, where they come in pages.
    fn page_rows(&self) -> usize {
        lock(&self.arrival).as_ref().map_or(1, Arrival::page_rows)
    }

    /// The batches that are full, after a page of `asked` rows; and with the last page's `tag` what is left.
    #[pyo3(signature = (asked, tag))]
    fn page(&self, asked: usize, tag: Option<&str>) -> PyResult<Vec<Batch>> {
        let mut arrival = lock(&self.arrival);
        let arrival = arrival.as_mut().ok_or_else(read_already)?;
        let batches = arrival.page(asked, tag).map_err(raise)?;
        if tag.is_some() {
            warn(&self.warnings).map_err(raise)?;
        }
        Ok(batches.into_iter().map(Batch).collect())
    }
}

fn read_already() -> PyErr {
    raise(Error::interface("the result has already been read"))
}

/// A field of a dtype: NumPy's kind, offset and size, the unit of a time, and the numbers that a void is made of.
type PyField = (char, usize, usize, Option<(String, i64)>, Vec<(char, usize, usize)>);

/// Which column of a statement goes into which field of a dtype, and how.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// The bytes of a record.
    size: usize,
}

#[pymethods]
impl Plan {
    /// The plan; or the index of the first field that does not take its column.
    ///
    /// `columns` are the OIDs of the types, and whether their cells come in binary; `size` is the bytes of a record.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        columns: Vec<(u32, bool)>,
        fields: Vec<PyField>,
        size: usize,
    ) -> PyResult<Py<PyAny>> {
        let columns: Vec<Column> = columns
            .into_iter()
            .map(|(oid, binary)| Column { native: native_name(oid).unwrap_or_default(), binary })
            .collect();
        let fields: Vec<Field> = fields.into_iter().map(field).collect();
        match plan(&columns, &fields) {
            Ok(steps) => Ok(Py::new(py, Self { steps, size })?.into_any()),
            Err(Mismatch::Field(index)) => Ok(index.into_pyobject(py)?.into_any().unbind()),
            Err(Mismatch::Count(fields, columns)) => {
                Err(raise(Error::internal(format!("{fields} fields for {columns} columns"))))
            }
        }
    }

    /// No rows yet, but room for as many as may come.
    fn rows(&self, expected: u64) -> PyResult<PyRows> {
        let rows = Rows::new(self.steps.clone(), self.size);
        let mut rows = rows.ok_or_else(|| raise(Error::internal("a field has no place in its array")))?;
        rows.expect(expected);
        Ok(PyRows(Arc::new(Mutex::new(rows))))
    }
}

fn field((kind, offset, size, unit, leaves): PyField) -> Field {
    let (name, multiple) = unit.unwrap_or_default();
    let unit = Unit { name, multiple };
    let form = match kind {
        'b' => Form::Bool,
        'i' => Form::Signed,
        'u' => Form::Unsigned,
        'f' => Form::Float,
        'M' => Form::Datetime(unit),
        'm' => Form::Duration(unit),
        'S' => Form::Bytes,
        'U' => Form::Characters,
        'V' => Form::Void(leaves.into_iter().map(leaf).collect()),
        'O' => Form::Object,
        _ => Form::Other,
    };
    Field { form, offset, size }
}

fn leaf((kind, size, offset): (char, usize, usize)) -> Leaf {
    Leaf { kind, size, offset }
}

/// The fault of a row.
type PyFailure = (Option<usize>, u64, String, &'static str);

/// The rows of one result.
#[pyclass(frozen, name = "Rows", module = "longshore._core")]
pub(crate) struct PyRows(Arc<Mutex<Rows>>);

#[pymethods]
impl PyRows {
    #[getter]
    fn count(&self) -> u64 {
        lock(&self.0).count()
    }

    /// The fault: the column's index, the row, what is wrong, and what to do. No column where the whole row is at fault.
    ///
    /// Raises where there was no memory.
    fn failure(&self) -> PyResult<Option<PyFailure>> {
        let mut rows = lock(&self.0);
        let Some(failure) = rows.failure() else { return Ok(None) };
        if failure.fault == Fault::OutOfMemory {
            return Err(raise(rows.memory_error()));
        }
        let (what, hint) = failure.fault.text();
        Ok(Some((failure.column, failure.row, what, hint)))
    }

    /// The memory of the records, and the indexes of the NULLs.
    fn finish(&self) -> (Block, Vec<u64>) {
        let (memory, nulls) = lock(&self.0).finish();
        (Block(Arc::new(memory.into())), nulls)
    }
}

/// A block of memory that neither moves nor changes its size while Python has a view of it: a longer one is another block.
///
/// The memory that an event loop receives into, read and written by those alone who hold the interpreter's lock: Rust,
/// which runs no Python code meanwhile, and Python through a view. What a result has been made in is Python's alone
/// from then on.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Block(Arc<SharedMemory>);

#[pymethods]
impl Block {
    // The interface gives a value.
    #[allow(unsafe_code, clippy::needless_pass_by_value)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let memory = &slf.get().0;
        let length = memory.len().cast_signed();
        // SAFETY: the address is valid for as long as the block, which the view keeps alive; `view` is the caller's, and
        // not null.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), memory.start().cast(), length, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
