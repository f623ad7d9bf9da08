//! Several queries read one after the other as if they were one.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};

use crate::{Batches, Error, Query, ReadOptions, Result, Session, Settled};

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
        let differs = |(a, b): (&FieldRef, &FieldRef)| {
            a.name() != b.name() || !a.data_type().equals_datatype(b.data_type())
        };
        if first.len() == next.len() && !first.iter().zip(next).any(differs) {
            return Ok(());
        }
        let said = match first.iter().zip(next).find(|pair| differs(*pair)) {
            Some((a, b)) => format!(
                "{:?} of {} where the first has {:?} of {}",
                b.name(),
                b.data_type(),
                a.name(),
                a.data_type()
            ),
            None => format!("{} columns where the first has {}", next.len(), first.len()),
        };
        Err(Error::programming(format!("query {} of the list returns {said}", self.number))
            .with_hint("give every query the same columns, names and types: cast where they differ"))
    }

    fn under_schema(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let options =
            RecordBatchOptions::new().with_row_count(Some(batch.num_rows())).with_match_field_names(false);
        RecordBatch::try_new_with_options(self.schema.clone(), batch.columns().to_vec(), &options)
            .map_err(|error| Error::internal(format!("the batches of a list do not match: {error}")))
    }
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

    fn settle(&self, batches: Vec<RecordBatch>) -> Result<Settled> {
        self.current.as_ref().ok_or_else(failed)?.settle(batches)
    }

    fn into_session(self: Box<Self>) -> Result<Box<dyn Session>> {
        let mut session = self.current.ok_or_else(failed)?.into_session()?;
        if self.options.snapshot {
            session.end_snapshot()?;
        }
        Ok(session)
    }
}
