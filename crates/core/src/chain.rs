//! Several queries read one after the other as if they were one.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::agreement::{agree, nullable, under_schema};
use crate::remedy;
use crate::session::without_transaction;
use crate::{Batches, Error, Failed, Finaliser, Query, ReadOptions, Result, Session, Transaction};

/// Reads `queries` in order, in one snapshot of the database unless the options say otherwise, as one result.
pub(crate) fn read_all(
    mut session: Box<dyn Session>,
    queries: Vec<Query>,
    options: &ReadOptions,
) -> Result<Box<dyn Batches>, Failed> {
    if let [query] = queries.as_slice() {
        return remedy::read(session, query, options);
    }
    // The caller's own transaction is the caller's own snapshot.
    let snapshot = options.snapshot && session.transaction() == Transaction::None;
    if snapshot && let Err(error) = begin_snapshot(session.as_mut(), &queries) {
        return Err(Failed { error, session: Some(session) });
    }
    let mut queries = VecDeque::from(queries);
    let Some(first) = queries.pop_front() else {
        let error = Error::interface("the list of queries is empty").with_hint("give at least one query");
        return Err(Failed { error, session: end_snapshot(session, snapshot) });
    };
    match remedy::read(session, &first, options) {
        Ok(current) => Ok(Box::new(Chain {
            schema: nullable(&current.schema()),
            finaliser: current.finaliser(),
            state: State::Reading(current),
            queries,
            number: 1,
            before: 0,
            rows: 0,
            snapshot,
            options: options.clone(),
        })),
        Err(failed) => {
            Err(Failed { session: failed.session.and_then(|it| end_snapshot(it, snapshot)), ..failed })
        }
    }
}

fn begin_snapshot(session: &mut dyn Session, queries: &[Query]) -> Result<()> {
    match session.splitting() {
        Ok(splitting) => splitting.begin_snapshot(queries),
        Err(_) => session.begin_unsplit(),
    }
}

/// The session out of its snapshot, if it was in one.
fn end_snapshot(session: Box<dyn Session>, snapshot: bool) -> Option<Box<dyn Session>> {
    if snapshot { without_transaction(session) } else { Some(session) }
}

/// The current query's batches, and the queries after it.
struct Chain {
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    state: State,
    queries: VecDeque<Query>,
    /// The current query's place in the list, from 1.
    number: usize,
    /// Rows of the queries before the current one.
    before: u64,
    /// Rows so far.
    rows: u64,
    /// Whether the list has a snapshot of its own.
    snapshot: bool,
    options: ReadOptions,
}

enum State {
    Reading(Box<dyn Batches>),
    /// A query has failed, and left its session if that is still good.
    Failed(Option<Box<dyn Session>>),
}

impl Chain {
    fn next_query(&mut self, query: &Query) -> Result<()> {
        let session = match std::mem::replace(&mut self.state, State::Failed(None)) {
            State::Reading(ended) => ended.into_session(),
            State::Failed(session) => session,
        };
        let session = session.ok_or_else(|| Error::internal("the result has already failed"))?;
        match remedy::read(session, query, &self.options) {
            Ok(next) => {
                self.number += 1;
                self.before = self.rows;
                let schema = next.schema();
                self.state = State::Reading(next);
                agree(&self.schema, &schema, &format!("query {} of the list", self.number))
            }
            Err(failed) => {
                self.state = State::Failed(failed.session);
                Err(failed.error)
            }
        }
    }
}

impl Iterator for Chain {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let State::Reading(current) = &mut self.state else { return None };
            match current.next() {
                None => {
                    let query = self.queries.pop_front()?;
                    if let Err(error) = self.next_query(&query) {
                        self.queries.clear();
                        return Some(Err(error));
                    }
                }
                Some(Ok(batch)) => {
                    self.rows += batch.num_rows() as u64;
                    return Some(under_schema(&batch, &self.schema));
                }
                Some(Err(error)) => {
                    self.queries.clear();
                    return Some(Err(error.after(self.before)));
                }
            }
        }
    }
}

impl Batches for Chain {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        let session = match self.state {
            State::Reading(current) => current.into_session(),
            State::Failed(session) => session,
        };
        end_snapshot(session?, self.snapshot)
    }
}
