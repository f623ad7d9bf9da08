//! Rows of Arrow data as the parameters of statements.

use std::sync::Arc;

use adbc_core::error::{Error as AdbcError, Result as AdbcResult};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use longshore_core::{Error, Params, Result};
use longshore_values::{null_parameters, parameters};

use crate::Reader;
use crate::connection::Shared;
use crate::error::adbc_error;

/// The error of batches that a caller hands over.
pub(crate) fn data_error(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::operational(format!("the data stopped: {other}")),
        },
        other => Error::operational(format!("the data stopped: {other}")),
    }
}

/// The caller's rows, whose code may call the connection that they are bound on.
pub(crate) struct Outside {
    reader: Reader,
    shared: Arc<Shared>,
}

impl Outside {
    pub(crate) fn new(reader: Reader, shared: Arc<Shared>) -> Self {
        Self { reader, shared }
    }
}

impl Iterator for Outside {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.shared.call_lock.outside(|| self.reader.next())
    }
}

impl RecordBatchReader for Outside {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// The rows that a statement is run with, a piece at a time.
pub(crate) struct Sets {
    reader: Reader,
    /// Whether columns are parameters by their names.
    by_name: bool,
    /// How many rows have been given.
    given: u64,
}

impl Sets {
    pub(crate) fn new(reader: Reader, by_name: bool) -> Self {
        Self { reader, by_name, given: 0 }
    }

    /// Parameters that are all NULL.
    pub(crate) fn nulls(&self) -> Params {
        null_parameters(&self.reader.schema(), self.by_name)
    }

    /// All rows.
    pub(crate) fn all(self) -> AdbcResult<Vec<Params>> {
        let pieces = self.collect::<Result<Vec<_>>>().map_err(adbc_error)?;
        Ok::<_, AdbcError>(pieces.into_iter().flatten().collect())
    }
}

impl Iterator for Sets {
    type Item = Result<Vec<Params>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        let sets = batch.map_err(data_error).and_then(|batch| parameters(&batch, self.by_name, self.given));
        self.given += sets.as_ref().map_or(0, |sets| sets.len() as u64);
        Some(sets)
    }
}

/// The parameters of the first row, NULL where there is none, and the reader of all rows.
pub(crate) fn first_set(mut reader: Reader, by_name: bool) -> AdbcResult<(Params, Reader)> {
    let schema = reader.schema();
    let first = reader.find(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)).transpose();
    let first = first.map_err(data_error).map_err(adbc_error)?;
    let row = first.as_ref().map_or_else(nothing, |batch| reader_of(batch.slice(0, 1)));
    let params = match Sets::new(row, by_name).all()?.pop() {
        Some(params) => params,
        None => null_parameters(&schema, by_name),
    };
    let all = first.into_iter().map(Ok).chain(reader);
    Ok((params, Box::new(RecordBatchIterator::new(all, schema))))
}

/// One batch as a reader.
pub(crate) fn reader_of(batch: RecordBatch) -> Reader {
    let schema = batch.schema();
    Box::new(RecordBatchIterator::new([Ok(batch)], schema)) as Box<dyn RecordBatchReader + Send>
}

/// A reader of a schema without rows.
pub(crate) fn nothing() -> Reader {
    let schema = Arc::new(Schema::empty());
    Box::new(RecordBatchIterator::new([], schema))
}

/// The key of a schema's metadata that no rows are behind.
const REFUSED: &str = "longshore.refused";

/// A reader that stands for rows that were refused: with it, nothing is bound.
pub(crate) fn refused_rows() -> Reader {
    let metadata = std::collections::HashMap::from([(REFUSED.to_owned(), String::new())]);
    let schema = Arc::new(Schema::empty().with_metadata(metadata));
    Box::new(RecordBatchIterator::new([], schema))
}

/// Whether `reader` stands for rows that were refused.
pub(crate) fn is_refused(reader: &dyn RecordBatchReader) -> bool {
    reader.schema().metadata().contains_key(REFUSED)
}
