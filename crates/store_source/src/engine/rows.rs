//! A query's rows, chunk by chunk, as batches that every consumer of Arrow takes.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex};

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use longshore_core::{Batches, Deadline, Error, Result, Session, lock};
use longshore_duckdb::{EngineBatches, ValueOptions, error_of};

use super::library::{Handle, RawResult, text};
use super::scan::check;
use super::{Engine, Prepared, Watch};

/// The error that has ended the chunks: Arrow's own has no more than its text.
type Failure = Arc<Mutex<Option<Error>>>;

/// The rows of a query.
pub(crate) struct EngineRows {
    batches: EngineBatches<Chunks>,
    failure: Failure,
}

impl EngineRows {
    pub(super) fn open(
        engine: &Arc<Engine>,
        prepared: Prepared,
        deadline: &Deadline,
        most: usize,
    ) -> Result<Self> {
        let failure = Failure::default();
        let chunks = Chunks::open(engine, prepared, deadline, most, failure.clone())?;
        Ok(Self { batches: EngineBatches::new(chunks, ValueOptions::default(), Vec::new()), failure })
    }
}

impl Iterator for EngineRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.next()?;
        Some(next.map_err(|error| lock(&self.failure).take().unwrap_or(error)))
    }
}

impl Batches for EngineRows {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// The columns of a prepared query.
pub(super) fn describe(engine: &Arc<Engine>, prepared: &Prepared) -> Result<SchemaRef> {
    let library = engine.library;
    // SAFETY: the statement is live, and its columns are counted.
    let columns = unsafe {
        let count = (library.prepared_statement_column_count)(prepared.handle);
        (0..count)
            .map(|at| {
                let name = text((library.prepared_statement_column_name)(prepared.handle, at));
                (name, (library.prepared_statement_column_logical_type)(prepared.handle, at))
            })
            .collect()
    };
    let schema = schema_of(engine, columns)?;
    let none = RecordBatchIterator::new([], schema);
    Ok(EngineBatches::new(none, ValueOptions::default(), Vec::new()).schema())
}

/// The Arrow schema of columns, whose types are freed.
fn schema_of(engine: &Engine, columns: Vec<(String, Handle)>) -> Result<SchemaRef> {
    let library = engine.library;
    let (names, mut types): (Vec<String>, Vec<Handle>) = columns.into_iter().unzip();
    let names: Vec<CString> = names.into_iter().map(|name| CString::new(name).unwrap_or_default()).collect();
    let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let mut exported = FFI_ArrowSchema::empty();
    // SAFETY: there are as many names as types, all of which live here; the options and the types are freed once.
    let error = unsafe {
        let mut options = ptr::null_mut();
        (library.connection_get_arrow_options)(engine.connection.0, &raw mut options);
        let count = types.len() as u64;
        let error = (library.to_arrow_schema)(
            options,
            types.as_mut_ptr(),
            pointers.as_ptr(),
            count,
            &raw mut exported,
        );
        (library.destroy_arrow_options)(&raw mut options);
        for kind in &mut types {
            (library.destroy_logical_type)(&raw mut *kind);
        }
        error
    };
    check(library, error)?;
    Schema::try_from(&exported).map(Arc::new).map_err(|error| Error::internal(error.to_string()))
}

/// The engine's chunks, several in a batch.
struct Chunks {
    schema: SchemaRef,
    result: RawResult,
    deadline: Deadline,
    most: usize,
    is_over: bool,
    failure: Failure,
    /// Freed after the result, and before the engine.
    _prepared: Prepared,
    watch: Watch,
    engine: Arc<Engine>,
}

// SAFETY: the result is used by one thread at a time.
unsafe impl Send for Chunks {}

impl Chunks {
    fn open(
        engine: &Arc<Engine>,
        prepared: Prepared,
        deadline: &Deadline,
        most: usize,
        failure: Failure,
    ) -> Result<Self> {
        let library = engine.library;
        let watch = Watch::begin(engine, deadline)?;
        let mut result = RawResult::none();
        // SAFETY: the statement is live; what is pending is freed once.
        let run = watch.over(|| unsafe {
            let mut pending = ptr::null_mut();
            let state = (library.pending_prepared_streaming)(prepared.handle, &raw mut pending);
            let state = if state == 0 { (library.execute_pending)(pending, &raw mut result) } else { state };
            let message = text((library.pending_error)(pending));
            (library.destroy_pending)(&raw mut pending);
            if state == 0 {
                return Ok(());
            }
            let told = text((library.result_error)(&raw mut result));
            (library.destroy_result)(&raw mut result);
            Err(error_of(if told.is_empty() { &message } else { &told }))
        });
        run.map_err(|error| deadline.check().err().unwrap_or(error))?;
        // SAFETY: the result is live, and its columns are counted.
        let columns = unsafe {
            let count = (library.column_count)(&raw mut result);
            (0..count)
                .map(|at| {
                    let name = text((library.column_name)(&raw mut result, at));
                    (name, (library.column_logical_type)(&raw mut result, at))
                })
                .collect()
        };
        let schema = schema_of(engine, columns);
        let (engine, deadline, is_over) = (engine.clone(), deadline.clone(), schema.is_err());
        let empty = || Arc::new(Schema::empty());
        let (schema, failed) = schema.map_or_else(|error| (empty(), Some(error)), |schema| (schema, None));
        let chunks =
            Self { schema, result, deadline, most, is_over, failure, _prepared: prepared, watch, engine };
        failed.map_or(Ok(chunks), Err)
    }

    fn chunk(&mut self) -> Result<Option<RecordBatch>> {
        let (library, result) = (self.engine.library, &mut self.result);
        // SAFETY: the result is live; a chunk is freed once.
        let fetched = self.watch.over(|| unsafe {
            let mut chunk = (library.fetch_chunk)(*result);
            if chunk.is_null() {
                let message = text((library.result_error)(&raw mut *result));
                return if message.is_empty() { Ok(None) } else { Err(error_of(&message)) };
            }
            let (mut options, mut exported) = (ptr::null_mut(), FFI_ArrowArray::empty());
            (library.connection_get_arrow_options)(self.engine.connection.0, &raw mut options);
            let error = (library.data_chunk_to_arrow)(options, chunk, &raw mut exported);
            (library.destroy_arrow_options)(&raw mut options);
            (library.destroy_data_chunk)(&raw mut chunk);
            check(library, error)?;
            let kind = DataType::Struct(self.schema.fields().clone());
            from_ffi_and_data_type(exported, kind)
                .map(Some)
                .map_err(|error| Error::internal(error.to_string()))
        });
        let fetched = fetched.map_err(|error| self.deadline.check().err().unwrap_or(error))?;
        let batch = fetched.map(|data| {
            let (_, columns, _) = StructArray::from(data).into_parts();
            RecordBatch::try_new(self.schema.clone(), columns)
        });
        batch.transpose().map_err(|error| Error::internal(error.to_string()))
    }

    /// A batch of several chunks.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let (mut batches, mut rows) = (Vec::new(), 0);
        while !self.is_over && rows < self.most {
            match self.chunk()? {
                Some(batch) => {
                    rows += batch.num_rows();
                    batches.push(batch);
                }
                None => self.is_over = true,
            }
        }
        match batches.len() {
            0 => Ok(None),
            1 => Ok(batches.pop()),
            _ => concat_batches(&self.schema, &batches)
                .map(Some)
                .map_err(|error| Error::internal(error.to_string())),
        }
    }
}

impl Iterator for Chunks {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batch().map_err(|error| {
            let text = error.message().to_owned();
            *lock(&self.failure) = Some(error);
            ArrowError::CDataInterface(text)
        });
        batch.transpose()
    }
}

impl RecordBatchReader for Chunks {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: the result is this one's own.
        unsafe { (self.engine.library.destroy_result)(&raw mut self.result) };
    }
}
