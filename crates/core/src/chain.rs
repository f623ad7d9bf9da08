//! Several queries read one after the other as if they were one.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::{
    Batches, EXTENSION, Error, NATIVE_TYPE, Query, ReadOptions, Result, Session, Settled, has_deferred,
};

/// Reads `queries` in order, at one moment of the database unless the options say otherwise, as one result.
pub fn read_all(
    mut session: Box<dyn Session>,
    queries: Vec<Query>,
    options: &ReadOptions,
) -> Result<Box<dyn Batches>> {
    let mut queries = VecDeque::from(queries);
    let Some(first) = queries.pop_front() else {
        return Err(Error::interface("the list of queries is empty").with_hint("give at least one query"));
    };
    if queries.is_empty() {
        return session.read(&first, options);
    }
    if options.snapshot {
        session.begin_snapshot()?;
    }
    let current = session.read(&first, options)?;
    let schema = nullable(&current.schema());
    Ok(Box::new(Chain { schema, current: Some(current), queries, number: 1, options: options.clone() }))
}

/// The current query's batches, and the queries after it.
struct Chain {
    schema: SchemaRef,
    /// `None` only after a failure.
    current: Option<Box<dyn Batches>>,
    queries: VecDeque<Query>,
    /// The current query's place in the list, from 1.
    number: usize,
    options: ReadOptions,
}

impl Chain {
    fn next_query(&mut self, query: &Query) -> Result<()> {
        let ended = self.current.take().ok_or_else(failed)?;
        let next = ended.into_session()?.read(query, &self.options)?;
        self.number += 1;
        self.check(&next.schema())?;
        self.current = Some(next);
        Ok(())
    }

    /// The queries must agree in names and types; metadata such as a text's declared length may differ.
    fn check(&self, next: &Schema) -> Result<()> {
        let (first, next) = (self.schema.fields(), next.fields());
        if first.len() != next.len() {
            let said = format!("{} columns where the first has {}", next.len(), first.len());
            return Err(self.mismatch(&said));
        }
        match first.iter().zip(next).find(|(a, b)| !are_alike(a, b)) {
            Some((a, b)) => Err(self.mismatch(&format!("{} where the first has {}", named(b), named(a)))),
            None => Ok(()),
        }
    }

    fn mismatch(&self, said: &str) -> Error {
        Error::programming(format!("query {} of the list returns {said}", self.number))
            .with_hint("give every query the same columns, names and types: cast where they differ")
    }

    fn under_schema(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let options =
            RecordBatchOptions::new().with_row_count(Some(batch.num_rows())).with_match_field_names(false);
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)
            .map_err(|error| Error::internal(format!("the batches of a list do not match: {error}")))
    }
}

/// Whether one column may follow the other. What is settled only with the whole result must be the very same type,
/// for its cells are kept as they came.
fn are_alike(a: &Field, b: &Field) -> bool {
    if a.name() != b.name() || a.metadata().get(EXTENSION) != b.metadata().get(EXTENSION) {
        return false;
    }
    if has_deferred(a) || has_deferred(b) {
        return a.data_type() == b.data_type() && a.metadata() == b.metadata();
    }
    a.data_type().equals_datatype(b.data_type())
}

fn named(field: &Field) -> String {
    let native = field.metadata().get(NATIVE_TYPE).cloned();
    format!("{:?} of {}", field.name(), native.unwrap_or_else(|| field.data_type().to_string()))
}

/// One query's NOT NULL is no promise for the next.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

fn failed() -> Error {
    Error::internal("the result has already failed")
}

impl Iterator for Chain {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.as_mut()?.next() {
                None => {
                    let query = self.queries.pop_front()?;
                    if let Err(error) = self.next_query(&query) {
                        return Some(Err(error));
                    }
                }
                Some(Ok(batch)) => return Some(self.under_schema(&batch)),
                error => return error,
            }
        }
    }
}

impl Batches for Chain {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn is_settled(&self) -> bool {
        self.current.as_ref().is_none_or(|current| current.is_settled())
    }

    fn settle(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Settled> {
        self.current.as_ref().ok_or_else(failed)?.settle(schema, batches)
    }

    fn into_session(self: Box<Self>) -> Result<Box<dyn Session>> {
        let mut session = self.current.ok_or_else(failed)?.into_session()?;
        if self.options.snapshot {
            session.end_snapshot()?;
        }
        Ok(session)
    }
}
