//! Frames on their way into the core, under the Arrow `PyCapsule` interface.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use longshore_core::{Error, Kind, Place, Result, misencoded, type_name};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::wrap;

/// What stands before a producer's own message, and, where pyarrow is the producer, before an exception's text and before
/// its traceback.
const PRODUCER: &str = "Producer error: ";
const UNKNOWN: &str = "Unknown error: ";
const TRACE: &str = ". Detail: Python exception: ";

/// The batches of all frames that a Python iterator gives, one after another. All have the first one's columns, in whatever
/// order.
pub(crate) struct Incoming {
    frames: Py<PyAny>,
    schema: SchemaRef,
    /// The frame whose batches come now, and its number.
    current: Option<Box<dyn RecordBatchReader + Send>>,
    number: usize,
    /// Where the first frame's columns are in the current one; `None` where they are in their places.
    order: Option<Vec<usize>>,
    /// Rows that went before.
    rows: u64,
}

impl Incoming {
    /// Takes the first frame of `frames`; an iterator without any has no schema, and is refused.
    pub(crate) fn new(frames: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(first) = next_frame(frames)? else {
            return Err(crate::error::raise(
                Error::interface("the iterator gave no frame, so there are no columns to write")
                    .with_hint("give at least one frame, which may have no rows"),
            ));
        };
        let schema = first.schema();
        Ok(Self {
            frames: frames.clone().unbind(),
            schema,
            current: Some(first),
            number: 1,
            order: None,
            rows: 0,
        })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The batch, whose texts have to be texts: Arrow's interfaces hand on what they are given.
    fn counted(&mut self, mut batch: RecordBatch) -> Result<RecordBatch> {
        if let Some(order) = &self.order {
            batch = batch.project(order).map_err(failed)?;
        }
        for (column, field) in batch.columns().iter().zip(self.schema.fields()) {
            if let Some(row) = misencoded(column) {
                let place = Place {
                    column: Some(field.name().clone()),
                    row: Some(self.rows + row as u64),
                    native_type: None,
                };
                return Err(Error::data("a text is not UTF-8")
                    .with_hint("decode the bytes before the write, or give them as binary")
                    .at(place));
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(batch)
    }

    /// The next frame, if there is one.
    fn advance(&mut self) -> Result<bool> {
        let next = Python::attach(|py| next_frame(self.frames.bind(py)));
        self.current = next.map_err(|error| wrap(Kind::Interrupted, error))?;
        self.number += 1;
        let Some(frame) = &self.current else { return Ok(false) };
        let mut schema = frame.schema();
        self.order = order(&self.schema, &schema);
        if let Some(order) = &self.order {
            schema = Arc::new(schema.project(order).map_err(failed)?);
        }
        match difference(&self.schema, &schema) {
            None => Ok(true),
            Some(difference) => Err(Error::interface(format!(
                "frame {} has other columns than the first: {difference}",
                self.number
            ))
            .with_hint("give all frames of one write the same columns, of the same types")),
        }
    }
}

impl Iterator for Incoming {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.as_mut()?.next() {
                Some(Ok(batch)) => return Some(self.counted(batch)),
                Some(Err(error)) => return Some(Err(failed(error))),
                None => {}
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Where the columns of `schema` are in `other`, which has the same in another order; `None` for every other schema.
fn order(schema: &Schema, other: &Schema) -> Option<Vec<usize>> {
    let names =
        |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let (own, others) = (names(schema), names(other));
    if own == others || own.len() != others.len() {
        return None;
    }
    let places: Vec<usize> =
        own.iter().map(|name| others.iter().position(|other| other == name)).collect::<Option<_>>()?;
    // Of two columns of one name, one would come twice.
    let is_all = (0..places.len()).all(|place| places.contains(&place));
    is_all.then_some(places)
}

/// What `other` has that `schema` has not; nullability is not a difference.
fn difference(schema: &Schema, other: &Schema) -> Option<String> {
    let only = |of: &Schema, not: &Schema| {
        let names = of.fields().iter().map(|field| field.name().as_str());
        names.filter(|name| not.field_with_name(name).is_err()).collect::<Vec<_>>().join(", ")
    };
    let named = [(only(other, schema), "new"), (only(schema, other), "missing")];
    let named: Vec<String> = named
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, what)| format!("{names} is {what}"))
        .collect();
    if !named.is_empty() {
        return Some(named.join(", "));
    }
    if schema.fields().len() != other.fields().len() {
        return Some(format!("{} columns, not {}", other.fields().len(), schema.fields().len()));
    }
    let pairs = schema.fields().iter().zip(other.fields());
    pairs.into_iter().find_map(|(field, other)| {
        if field.name() != other.name() {
            return Some(format!("{:?} in the place of {:?}", other.name(), field.name()));
        }
        let same = field.data_type() == other.data_type();
        (!same).then(|| {
            format!(
                "{:?} is {}, not {}",
                field.name(),
                type_name(other.data_type()),
                type_name(field.data_type())
            )
        })
    })
}

#[cold]
fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => stopped(&other.to_string()),
        },
        other => stopped(&other.to_string()),
    }
}

/// The stream's own reason, of which Arrow's C interface hands on no more than a text: pyarrow ends it with the exception.
fn stopped(reason: &str) -> Error {
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

fn next_frame(frames: &Bound<'_, PyAny>) -> PyResult<Option<Box<dyn RecordBatchReader + Send>>> {
    match frames.try_iter()?.next() {
        Some(frame) => reader(&frame?).map(Some),
        None => Ok(None),
    }
}

/// The batches of one frame.
pub(crate) fn reader(frame: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    if frame.hasattr("__arrow_c_stream__")? {
        let capsule = frame.call_method0("__arrow_c_stream__")?;
        let stream = stream(capsule.cast::<PyCapsule>()?)?;
        return Ok(Box::new(RecordBatchStreamReader::try_new(stream).map_err(invalid)?));
    }
    let capsules = frame.call_method0("__arrow_c_array__")?;
    let (schema, array) =
        capsules.cast::<PyTuple>()?.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
    Ok(Box::new(batch(&schema, &array)?))
}

/// What is an array and no table, and types that Arrow's C interface has no word for, show as a schema that is none.
pub(crate) fn invalid(error: ArrowError) -> PyErr {
    match error {
        ArrowError::CDataInterface(why) => crate::error::raise(
            Error::interface(format!("the data cannot be read as Arrow data: {why}"))
                .with_hint("make a frame of a Series or an array, and cast columns of other types"),
        ),
        other => crate::error::raise(failed(other)),
    }
}

/// The stream in a capsule, which the capsule then has no more.
#[allow(unsafe_code)]
pub(crate) fn stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an `ArrowArrayStream` (Arrow PyCapsule interface), which lives while the capsule
    // is borrowed; `from_raw` moves it out and leaves a released one behind, which the capsule's destructor skips.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) })
}

/// The one batch in two capsules, which they then have no more.
#[allow(unsafe_code)]
fn batch(
    schema: &Bound<'_, PyCapsule>,
    array: &Bound<'_, PyCapsule>,
) -> PyResult<impl RecordBatchReader + Send + use<>> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of this name holds an `ArrowSchema` (Arrow PyCapsule interface), which lives while the capsule is
    // borrowed, and is only looked at.
    let schema = Schema::try_from(unsafe { schema.as_ref() }).map_err(invalid)?;
    // SAFETY: a capsule of this name holds an `ArrowArray`; `from_raw` moves it out and leaves a released one behind.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    let data_type = DataType::Struct(schema.fields().clone());
    // SAFETY: the producer gave the array with this schema, and the interface has it hold to that.
    let data = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(invalid)?;
    let schema: SchemaRef = Arc::new(schema);
    let (_, columns, nulls) = StructArray::from(data).into_parts();
    if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        return Err(crate::error::raise(Error::interface("a row of the batch is NULL as a whole")));
    }
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(invalid)?;
    Ok(arrow_array::RecordBatchIterator::new([Ok(batch)], schema))
}
