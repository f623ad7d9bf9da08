//! A stream of Arrow's C interface, read so that each column of a batch is freed on its own, and is copied only as far as it has to be.
//!
//! A frame keeps a batch's texts where they are and copies its numbers. Imported whole, the numbers would live as long as
//! the texts; here each column is moved out of its batch ("Moving child arrays" in the Arrow C data interface).

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchOptions, RecordBatchReader, make_array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::aligned::{with_bytes, with_decimals};

/// The batches of a stream under the Arrow C stream interface.
pub struct ColumnStream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

/// `struct ArrowArray` of the Arrow C data interface, as far as its children.
#[repr(C)]
struct Parent {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut FFI_ArrowArray,
}

impl ColumnStream {
    /// Takes the stream, and asks it for its schema.
    ///
    /// # Safety
    /// The stream keeps to the interface: above all, its arrays have the types of its schema.
    #[allow(unsafe_code)]
    pub unsafe fn new(mut stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let get_schema = stream.get_schema().ok_or_else(released_error)?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the function is the stream's own, and both structures live here.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if code != 0 {
            return Err(failure(&mut stream, code));
        }
        Ok(Self { schema: Arc::new(Schema::try_from(&schema)?), stream })
    }

    #[allow(unsafe_code)]
    fn step(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let get_next = self.stream.get_next().ok_or_else(released_error)?;
        let mut batch = FFI_ArrowArray::empty();
        // SAFETY: the function is the stream's own, and both structures live here.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut batch) };
        if code != 0 {
            return Err(failure(&mut self.stream, code));
        }
        if batch.is_released() {
            return Ok(None);
        }
        let (rows, offset) = (batch.len(), batch.offset());
        let columns = children(batch, self.schema.fields().len())?.into_iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| {
            // SAFETY: who made this reader has promised it; a decimal is so many bytes.
            let data = unsafe { from_ffi_and_data_type(column, with_bytes(field.data_type())) }?;
            if data.len() < offset + rows {
                return Err(unlike());
            }
            with_decimals(&make_array(data).slice(offset, rows), field.data_type())
        });
        let columns = columns.collect::<Result<_, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map(Some)
    }
}

impl Iterator for ColumnStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

impl RecordBatchReader for ColumnStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The columns of a batch, which is released at once as the interface wants it.
#[allow(unsafe_code)]
fn children(mut batch: FFI_ArrowArray, expected: usize) -> Result<Vec<FFI_ArrowArray>, ArrowError> {
    let any_null = batch.null_count_opt().is_some_and(|nulls| nulls > 0);
    if batch.num_children() != expected || any_null {
        return Err(unlike());
    }
    let parent = (&raw mut batch).cast::<Parent>();
    let child = |at| {
        // SAFETY: the fields before `children` are the interface's, so that it lies where the producer wrote it; there are
        // `expected` pointers, to arrays that are the batch's own until it is released. What is moved out is marked as such.
        unsafe { FFI_ArrowArray::from_raw(*(*parent).children.add(at)) }
    };
    Ok((0..expected).map(child).collect())
}

fn unlike() -> ArrowError {
    ArrowError::CDataInterface("a batch does not fit its schema".to_owned())
}

fn released_error() -> ArrowError {
    ArrowError::CDataInterface("the stream has been released".to_owned())
}

/// The error that the stream tells of its last call.
#[allow(unsafe_code)]
fn failure(stream: &mut FFI_ArrowArrayStream, code: c_int) -> ArrowError {
    let text = stream.get_last_error().map_or(ptr::null(), |last_error| {
        // SAFETY: the function is the stream's own, and its last call has failed.
        unsafe { last_error(&raw mut *stream) }
    });
    if text.is_null() {
        return ArrowError::CDataInterface(format!("the stream failed with code {code}"));
    }
    // SAFETY: a text that is not null ends with a zero, and lives until the stream's next call.
    ArrowError::CDataInterface(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, Int32Type};
    use arrow_array::{ArrayRef, Int32Array, RecordBatchIterator, StringArray};
    use arrow_buffer::Buffer;
    use arrow_data::ArrayData;
    use arrow_schema::{DataType, Field};

    use super::*;

    #[allow(unsafe_code)]
    fn stream(batches: Vec<Result<RecordBatch, ArrowError>>, schema: SchemaRef) -> ColumnStream {
        let reader = RecordBatchIterator::new(batches, schema);
        // SAFETY: Arrow's own reader.
        unsafe { ColumnStream::new(FFI_ArrowArrayStream::new(Box::new(reader))) }.unwrap()
    }

    /// Integers whose memory tells by its owner whether it has been freed.
    #[allow(unsafe_code)]
    fn owned_integers(values: Vec<i32>) -> (Arc<Vec<i32>>, ArrayRef) {
        let owner = Arc::new(values);
        let start = NonNull::from(owner.as_slice()).cast::<u8>();
        let length = size_of_val(owner.as_slice());
        // SAFETY: the owner's memory, which the buffer keeps alive.
        let buffer = unsafe { Buffer::from_custom_allocation(start, length, owner.clone()) };
        (owner, Arc::new(Int32Array::new(buffer.into(), None)))
    }

    #[test]
    fn a_column_that_is_dropped_is_freed_while_others_live() {
        let (owner, numbers) = owned_integers(vec![1, 2, 3]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("long enough")]));
        let fields =
            vec![Field::new("numbers", DataType::Int32, true), Field::new("texts", DataType::Utf8, true)];
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(schema.clone(), vec![numbers, texts.clone()]).unwrap();
        let mut stream = stream(vec![Ok(batch)], schema);
        let batch = stream.next().unwrap().unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[1, 2, 3]);
        let left = batch.column(1).clone();
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(batch);
        assert_eq!(Arc::strong_count(&owner), 1);
        assert_eq!(left.as_string::<i32>(), texts.as_string::<i32>());
        assert!(stream.next().is_none());
        assert!(stream.next().is_none());
    }

    #[test]
    fn decimals_come_as_bytes_that_begin_anywhere() {
        let kind = DataType::Decimal128(20, 2);
        let memory: Buffer = (0..2_001_i64).map(|half| half / 2).collect();
        // What the schema says, the bytes are.
        let schema = Arc::new(Schema::new(vec![Field::new("a", kind, true)]));
        let bytes = ArrayData::builder(DataType::FixedSizeBinary(16)).len(1_000);
        let bytes = make_array(bytes.add_buffer(memory.slice(8)).build().unwrap());
        let batch = RecordBatch::try_from_iter([("a", bytes)]).unwrap();
        let batch = stream(vec![Ok(batch)], schema).next().unwrap().unwrap();
        let expected = (0..1_000_i128).map(|row| Some((row + 1) << 64 | row));
        assert!(batch.column(0).as_primitive::<Decimal128Type>().iter().eq(expected));
    }

    #[test]
    fn rows_without_columns_are_counted_and_errors_keep_their_text() {
        let schema = Arc::new(Schema::empty());
        let rows = RecordBatchOptions::new().with_row_count(Some(7));
        let batch = RecordBatch::try_new_with_options(schema.clone(), vec![], &rows).unwrap();
        let broken = Err(ArrowError::ComputeError("broken".to_owned()));
        let mut stream = stream(vec![Ok(batch), broken], schema);
        assert_eq!(stream.next().unwrap().unwrap().num_rows(), 7);
        let error = stream.next().unwrap().unwrap_err().to_string();
        assert!(error.ends_with("broken"), "{error}");
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_released_stream_is_refused() {
        // SAFETY: a stream that has been released promises nothing.
        assert!(unsafe { ColumnStream::new(FFI_ArrowArrayStream::empty()) }.is_err());
    }
}
