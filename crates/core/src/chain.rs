//! Several queries read one after the other as if they were one.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{Batches, Error, Query, ReadOptions, Result, Session, Settled};

/// Reads `queries` in order, at one moment of the database unless the options say otherwise, as one result.
pub fn read_all(
    mut session: Box<dyn Session>,
    queries: Vec<Query>,
    options: &ReadOptions,
) -> Result<Box<dyn Batches>> {
    let mut queries = VecDeque::from(queries);
    let Some(first) = queries.pop_front() else {
        return Err(Error::interface("the list of queries is empty"));
    };
    if queries.is_empty() {
        return session.read(&first, options);
    }
    if options.snapshot {
        session.begin_snapshot()?;
    }
    let current = session.read(&first, options)?;
    Ok(Box::new(Chain { schema: current.schema(), current: Some(current), queries, options: options.clone() }))
}

/// The current query's batches, and the queries after it.
struct Chain {
    schema: SchemaRef,
    /// `None` only after a failure.
    current: Option<Box<dyn Batches>>,
    queries: VecDeque<Query>,
    options: ReadOptions,
}

impl Chain {
    fn next_query(&mut self, query: &Query) -> Result<()> {
        let ended = self.current.take().ok_or_else(failed)?;
        let next = ended.into_session()?.read(query, &self.options)?;
        if next.schema().fields() != self.schema.fields() {
            return Err(Error::programming("the queries of the list return different columns")
                .with_hint("give every query the same columns, names and types: cast where they differ"));
        }
        self.current = Some(next);
        Ok(())
    }
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
                some => return some,
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
