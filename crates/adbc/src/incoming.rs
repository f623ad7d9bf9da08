//! Arrow data that a caller hands over, looked at before it is believed.
//!
//! `arrow` and `adbc_ffi` panic at what is released, and take the values behind the mask of a row that is NULL as a whole.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adbc_core::error::{Error as AdbcError, Result, Status};
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{Array, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use crate::Reader;
use crate::bind::reader_of;
use crate::error::refusal;
use crate::ffi::Stream;

/// `ArrowSchema` of Arrow's C data interface.
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

impl CSchema {
    /// Whether it, its children and its dictionary are there.
    unsafe fn is_whole(&self) -> bool {
        let Ok(children) = usize::try_from(self.n_children) else { return false };
        if self.release.is_none() || self.format.is_null() || (children > 0 && self.children.is_null()) {
            return false;
        }
        // SAFETY: a schema that is not released has an array of as many children as it counts, as the caller promises; each is
        // null or a schema.
        unsafe {
            self.dictionary.as_ref().is_none_or(|dictionary| dictionary.is_whole())
                && (0..children)
                    .all(|at| (*self.children.add(at)).as_ref().is_some_and(|child| child.is_whole()))
        }
    }
}

fn released_error(what: &str) -> AdbcError {
    let message = format!("the {what} is released, or lacks what it counts: bind data that is there");
    refusal(Status::InvalidArguments, message)
}

/// The schema of what has `schema`.
unsafe fn schema_of(schema: &FFI_ArrowSchema) -> Result<SchemaRef> {
    let own: *const FFI_ArrowSchema = schema;
    // SAFETY: both are the C interface's layout.
    if !unsafe { (*own.cast::<CSchema>()).is_whole() } {
        return Err(released_error("schema"));
    }
    let fields = DataType::try_from(schema).map_err(invalid)?;
    let DataType::Struct(fields) = fields else {
        return Err(refusal(Status::InvalidArguments, "the data is not a struct of columns"));
    };
    let metadata = schema.metadata().map_err(invalid)?;
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

#[allow(clippy::needless_pass_by_value)] // `map_err` gives it
fn invalid(error: ArrowError) -> AdbcError {
    refusal(Status::InvalidArguments, format!("the data is not Arrow's: {error}"))
}

/// The rows of `array`, of which `first` is the number of the first.
unsafe fn rows_of(
    array: FFI_ArrowArray,
    schema: &SchemaRef,
    first: usize,
) -> std::result::Result<RecordBatch, ArrowError> {
    // SAFETY: the array has this schema, as the caller promises.
    let data = unsafe { from_ffi_and_data_type(array, DataType::Struct(schema.fields().clone())) }?;
    let rows = StructArray::from(data);
    if let Some(at) = (0..rows.len()).find(|at| rows.is_null(*at)) {
        let message = format!("row {} is NULL as a whole: bind a row of NULLs", first + at);
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), rows.into_parts().1, &options)
}

/// The rows in `array`.
pub(crate) unsafe fn batch(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<Reader> {
    if array.is_released() {
        return Err(released_error("array"));
    }
    // SAFETY: as the caller promises.
    let schema = unsafe { schema_of(schema) }?;
    // SAFETY: as above.
    let rows = unsafe { rows_of(array, &schema, 0) }.map_err(|error| match error {
        ArrowError::InvalidArgumentError(message) => refusal(Status::InvalidData, message),
        other => invalid(other),
    })?;
    Ok(reader_of(rows))
}

/// The rows of a caller's stream.
struct Rows {
    stream: Stream,
    schema: SchemaRef,
    read: usize,
}

// SAFETY: the C stream interface has one thread after another call a stream.
unsafe impl Send for Rows {}

/// The rows that `stream` gives.
pub(crate) unsafe fn stream(mut stream: Stream) -> Result<Reader> {
    let get =
        stream.get_schema.filter(|_| stream.release.is_some()).ok_or_else(|| released_error("stream"))?;
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is not released.
    let code = unsafe { get(&raw mut stream, &raw mut schema) };
    if code != 0 {
        return Err(refusal(
            Status::InvalidArguments,
            format!("the stream has no schema: {}", failure_text(&mut stream)),
        ));
    }
    // SAFETY: the stream has written it.
    let schema = unsafe { schema_of(&schema) }?;
    Ok(Box::new(Rows { stream, schema, read: 0 }))
}

/// The text that the stream tells of its error.
fn failure_text(stream: &mut Stream) -> String {
    // SAFETY: the stream is not released, and its text lives until it is asked again.
    let text = unsafe {
        let text = stream.get_last_error.map_or(std::ptr::null(), |get| get(stream));
        if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
    };
    text.unwrap_or_else(|| "it does not say why".into())
}

impl Rows {
    fn next_batch(&mut self) -> std::result::Result<Option<RecordBatch>, ArrowError> {
        let mut array = FFI_ArrowArray::empty();
        let Some(get) = self.stream.get_next else { return Ok(None) };
        // SAFETY: the stream is not released.
        if unsafe { get(&raw mut self.stream, &raw mut array) } != 0 {
            return Err(ArrowError::CDataInterface(failure_text(&mut self.stream)));
        }
        if array.is_released() {
            return Ok(None);
        }
        // SAFETY: the arrays of a stream have its schema.
        let rows = unsafe { rows_of(array, &self.schema, self.read) }?;
        self.read += rows.num_rows();
        Ok(Some(rows))
    }
}

impl Iterator for Rows {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A panic must not cross the interface that is asked for the rows.
        let next = catch_unwind(AssertUnwindSafe(|| self.next_batch()));
        next.unwrap_or_else(|_| {
            Err(ArrowError::CDataInterface("the data is not what its schema says".into()))
        })
        .transpose()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
