//! Arrow data under the Arrow `PyCapsule` interface, both ways.

use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray, make_array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use longshore_core::{Error, Frame as CoreFrame, Kind, lock};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::aligned::{with_bytes, with_decimals};
use crate::exception::{raise, wrap};
use crate::lock::with_lock;
use crate::stream::ColumnStream;

/// The texts before a producer's own message, and, where pyarrow is the producer, before an exception's text and before
/// its traceback.
const PRODUCER: &str = "Producer error: ";
const UNKNOWN: &str = "Unknown error: ";
const TRACE: &str = ". Detail: Python exception: ";

/// The batches of a stream.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// The capsule of a schema or a field.
pub fn schema_capsule<T>(py: Python<'_>, of: T) -> PyResult<Bound<'_, PyCapsule>>
where
    FFI_ArrowSchema: TryFrom<T, Error = ArrowError>,
{
    let schema = FFI_ArrowSchema::try_from(of).map_err(|error| raise(Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The capsule of a stream.
pub fn stream_capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// The schema of a result.
#[pyclass(frozen, module = "longshore._core")]
pub struct Schema(pub SchemaRef);

#[pymethods]
impl Schema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.as_ref())
    }
}

/// One array, and its field.
#[pyclass(frozen, module = "longshore._core")]
pub struct Array {
    field: FieldRef,
    array: ArrayRef,
}

impl Array {
    /// The array, whose type is the field's.
    #[must_use]
    pub fn new(field: FieldRef, array: ArrayRef) -> Self {
        Self { field, array }
    }
}

#[pymethods]
impl Array {
    /// The array, as often as wanted.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let array = FFI_ArrowArray::new(&self.array.to_data());
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema_capsule(py, self.field.as_ref())?, array])
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }
}

/// One record batch.
#[pyclass(frozen, module = "longshore._core")]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    /// The batch as a struct array, as often as wanted.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let array = FFI_ArrowArray::new(&StructArray::from(self.0.clone()).to_data());
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema_capsule(py, self.0.schema_ref().as_ref())?, array])
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.0.schema_ref().as_ref())
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }
}

/// A whole result, handed over once.
#[pyclass(frozen, module = "longshore._core")]
pub struct Table(Mutex<Option<Reader>>);

impl Table {
    /// The batches of `reader`, which never waits.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        Self(Mutex::new(Some(reader)))
    }
}

#[pymethods]
impl Table {
    /// The result, once. The consumer casts if it wants another schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader = lock(&self.0).take();
        stream_capsule(py, reader.ok_or_else(|| raise(Error::interface("the result has been handed over")))?)
    }
}

/// Batches that can be read any number of times.
#[pyclass(frozen, module = "longshore._core")]
pub struct Frame {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Frame {
    /// The `batches`, all of `schema`.
    #[must_use]
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl Frame {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, self.schema.as_ref())
    }
}

/// The schema behind an object that hands one over.
#[allow(unsafe_code)]
pub fn schema_of(object: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowSchema> {
    let capsule = object.call_method0("__arrow_c_schema__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_schema"))?;
    // SAFETY: a capsule of this name holds an `ArrowSchema` (Arrow PyCapsule interface), which lives while the capsule is
    // borrowed; `from_raw` moves it out and leaves a released one behind, which the capsule's destructor skips.
    Ok(unsafe { FFI_ArrowSchema::from_raw(pointer.as_ptr().cast()) })
}

/// The stream in a capsule, which the capsule then has no more.
#[allow(unsafe_code)]
pub fn stream_in(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: as in `schema_of`, with an `ArrowArrayStream`.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) })
}

#[cold]
fn failure(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => interruption(&other.to_string()),
        },
        ArrowError::CDataInterface(reason) => interruption(&reason),
        other => interruption(&other.to_string()),
    }
}

/// The stream's own reason, of which Arrow's C interface hands on no more than a text: pyarrow ends it with the exception.
fn interruption(reason: &str) -> Error {
    if reason.trim_end().ends_with("KeyboardInterrupt") {
        return wrap(Kind::Interrupted, PyKeyboardInterrupt::new_err(()));
    }
    let (_, reason) = reason.split_once(PRODUCER).unwrap_or(("", reason));
    let (text, trace) = reason.split_once(TRACE).unwrap_or((reason, ""));
    let text = text.strip_prefix(UNKNOWN).unwrap_or(text);
    // An exception without a text has its class's name at the traceback's end.
    let last = trace.trim_end().rsplit('\n').next().unwrap_or_default();
    Error::operational(format!("the data stopped: {}", if text.is_empty() { last } else { text }))
}

/// The error behind Arrow's C interface, which carries texts that end at a zero byte: none may stand inside.
#[must_use]
pub fn external(error: Error) -> ArrowError {
    let mut text = error.to_string();
    let kind = error.kind();
    if let Some(Ok(python)) =
        error.into_source().map(<dyn std::error::Error + Send + Sync>::downcast::<PyErr>)
    {
        let is_interrupt = with_lock(|py| python.is_instance_of::<PyKeyboardInterrupt>(py));
        if is_interrupt == Some(true) {
            interrupt_again();
        } else {
            text = format!("{text}: {python}");
        }
    }
    let text = text.replace('\0', "\u{fffd}");
    // Whoever reads it makes a MemoryError of it.
    if kind == Kind::Memory {
        ArrowError::MemoryError(text)
    } else {
        ArrowError::from_external_error(text.into())
    }
}

/// Has Python see a Ctrl-C again that was taken here and whose exception cannot cross the C interface.
fn interrupt_again() {
    let _ = with_lock(|py| py.import("_thread")?.call_method0("interrupt_main").map(drop));
}

/// The frame behind an object.
pub fn frame(object: &Bound<'_, PyAny>) -> PyResult<CoreFrame> {
    let reader = reader(object)?;
    let schema = reader.schema();
    Ok(CoreFrame { schema, batches: Box::new(reader.map(|batch| batch.map_err(failure))) })
}

/// The batches of one frame.
#[allow(unsafe_code)]
pub fn reader(frame: &Bound<'_, PyAny>) -> PyResult<Reader> {
    if frame.hasattr("__arrow_c_stream__")? {
        let capsule = frame.call_method0("__arrow_c_stream__")?;
        let stream = stream_in(capsule.cast::<PyCapsule>()?)?;
        // SAFETY: an object that hands out such a capsule keeps to the interface.
        return Ok(Box::new(unsafe { ColumnStream::new(stream) }.map_err(invalid)?));
    }
    let capsules = frame.call_method0("__arrow_c_array__")?;
    let (schema, array) =
        capsules.cast::<PyTuple>()?.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
    Ok(Box::new(batch(&schema, &array)?))
}

/// The error of what is not Arrow data: an array that is no table, and types for which Arrow's C interface has no word, show as a
/// schema that cannot be read.
#[must_use]
pub fn invalid(error: ArrowError) -> PyErr {
    match error {
        ArrowError::CDataInterface(why) => raise(
            Error::interface(format!("the data cannot be read as Arrow data: {why}"))
                .with_hint("make a frame of a Series or an array, and cast columns of other types"),
        ),
        other => raise(failure(other)),
    }
}

/// The one batch in two capsules, which they then have no more.
#[allow(unsafe_code)]
fn batch(
    schema: &Bound<'_, PyCapsule>,
    array: &Bound<'_, PyCapsule>,
) -> PyResult<impl RecordBatchReader + Send + use<>> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: as in `schema_of`; this one is only looked at.
    let schema = arrow_schema::Schema::try_from(unsafe { schema.as_ref() }).map_err(invalid)?;
    // SAFETY: as in `schema_of`, with an `ArrowArray`.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    let data_type = DataType::Struct(schema.fields().clone());
    // SAFETY: the producer gave the array with this schema, and the interface has it hold to that; a decimal is so many bytes.
    let data = unsafe { from_ffi_and_data_type(array, with_bytes(&data_type)) }.map_err(invalid)?;
    let schema: SchemaRef = Arc::new(schema);
    let rows = with_decimals(&make_array(data), &data_type).map_err(invalid)?;
    let (_, columns, nulls) = rows.as_struct().clone().into_parts();
    if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        return Err(raise(Error::interface("a row of the batch is NULL as a whole")));
    }
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(invalid)?;
    Ok(RecordBatchIterator::new([Ok(batch)], schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of `interruption` for a producer's reason.
    fn text(reason: &str) -> String {
        interruption(reason).to_string()
    }

    #[test]
    fn a_producers_reason_is_told_without_its_wrappings() {
        let wrapped = "Producer error: Unknown error: it is broken. Detail: Python exception: ValueError";
        assert_eq!(text(wrapped), "the data stopped: it is broken");
        assert_eq!(text("no more"), "the data stopped: no more");
        let unnamed = "Unknown error: . Detail: Python exception: Traceback\n  a line\nKeyError\n";
        assert_eq!(text(unnamed), "the data stopped: KeyError");
    }

    #[test]
    fn an_error_of_the_core_comes_through_as_it_is() {
        let error = failure(ArrowError::from_external_error(Error::data("too long").into()));
        assert_eq!((error.kind(), error.to_string()), (Kind::Data, "too long".into()));
    }
}
