//! One result read over several sessions at once.

mod order;
mod workers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::agreement::{nullable, under_schema};
use crate::describe::schema_of_one;
use crate::session::without_transaction;
use crate::{
    Batches, Deadline, Error, Failed, Finaliser, Kind, Parts, Query, ReadOptions, Result, Session,
    SessionFactory, Splitting,
};
use order::Order;
use workers::{Arrival, Workers};

/// How long all sessions of a read together may take to open, where the caller sets no earlier deadline.
const OPENING: Duration = Duration::from_secs(15);

/// How the parts' batches reach the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Part after part; what comes early waits, however much it is: a whole result.
    Ordered,
    /// As they come; a part waits when the consumer is behind: a stream.
    Interleaved,
}

/// Reads the `parts` of `queries` over sessions of their own, while `coordinator` keeps their snapshot.
pub(crate) fn read_parts(
    mut coordinator: Box<dyn Session>,
    factory: &Arc<dyn SessionFactory>,
    queries: &[Query],
    parts: Parts,
    delivery: Delivery,
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<Box<dyn Batches>, Failed> {
    match start(coordinator.as_mut(), factory, queries, parts, delivery, options, deadline) {
        Ok(started) => Ok(Box::new(Parallel { started, coordinator: Some(coordinator) })),
        Err(error) => Err(Failed { error, session: without_transaction(coordinator) }),
    }
}

fn start(
    coordinator: &mut dyn Session,
    factory: &Arc<dyn SessionFactory>,
    queries: &[Query],
    parts: Parts,
    delivery: Delivery,
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<Started> {
    let schema = schema_of(coordinator, queries, options)?;
    let order = Order::new(delivery, parts.queries.len());
    let unfinished = parts.queries.len();
    // Without a snapshot, a pool may serve the sessions one after the other.
    let awaited = if parts.snapshot.is_some() { parts.sessions } else { 1 };
    let workers = Workers::start(parts, factory, &schema, queries.len() > 1, delivery, options)?;
    let finaliser = await_sessions(&workers, coordinator, awaited, deadline)?;
    let staying = workers.size();
    Ok(Started {
        schema,
        finaliser,
        order,
        unfinished,
        staying,
        workers: Some(workers),
        deadline: deadline.clone(),
        checked: Instant::now(),
    })
}

/// The whole's schema: a part's promises may be stronger or weaker.
fn schema_of(session: &mut dyn Session, queries: &[Query], options: &ReadOptions) -> Result<SchemaRef> {
    let first = queries.first().ok_or_else(|| Error::interface("the list of queries is empty"))?;
    let schema = schema_of_one(session, first, options)?;
    Ok(if queries.len() == 1 { Arc::new(schema) } else { nullable(&schema) })
}

/// Waits until `awaited` sessions have begun to read; gives what finalises their result.
fn await_sessions(
    workers: &Workers,
    coordinator: &mut dyn Session,
    awaited: usize,
    deadline: &Deadline,
) -> Result<Option<Arc<dyn Finaliser>>> {
    let opening = deadline.at_most(OPENING);
    let mut finaliser = None;
    for opened in 0..awaited {
        match workers.opening(&opening, &mut || let_waiters_pass(coordinator)) {
            Ok(opening) => finaliser = opening,
            Err(error) if error.kind() == Kind::Timeout => {
                // The caller's own deadline has its own words.
                deadline.check()?;
                return Err(not_open(opened, awaited));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(finaliser)
}

fn let_waiters_pass(coordinator: &mut dyn Session) -> Result<()> {
    coordinator.splitting().map_or(Ok(()), Splitting::let_waiters_pass)
}

fn not_open(opened: usize, awaited: usize) -> Error {
    let seconds = OPENING.as_secs();
    Error::operational(format!("only {opened} of {awaited} parts had a connection and could begin after {seconds} s"))
        .with_hint(
            "a pool between here and the server may be too small: give it partition_num + 1 connections, lower \
             partition_num, or read without one snapshot: options={\"snapshot\": False}; or see on the server what \
             the parts wait for",
        )
}

/// Parts on their way.
struct Started {
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    order: Order,
    /// Parts whose end has not come.
    unfinished: usize,
    /// Sessions that have not ended their transaction.
    staying: usize,
    /// `None` after the end or a failure.
    workers: Option<Workers>,
    deadline: Deadline,
    /// When the deadline was last asked: parts that are never waited for must not keep the caller from being heard.
    checked: Instant,
}

impl Started {
    /// The next batch; `None` when all parts have ended.
    fn advance(&mut self, mut coordinator: Option<&mut Box<dyn Session>>) -> Result<Option<RecordBatch>> {
        let mut while_waiting =
            || coordinator.as_mut().map_or(Ok(()), |coordinator| let_waiters_pass(coordinator.as_mut()));
        if self.checked.elapsed() >= self.deadline.slice() {
            self.checked = Instant::now();
            self.deadline.check()?;
        }
        loop {
            if let Some(batch) = self.order.next()? {
                return under_schema(&batch, &self.schema).map(Some);
            }
            // The parts' transactions end before the coordinator's: until then it must keep the tables as they are.
            let Some(workers) = self.workers.as_ref().filter(|_| self.staying > 0) else { return Ok(None) };
            match workers.arrival(&self.deadline, &mut while_waiting)? {
                Arrival::Batch(part, batch) => self.order.add(part, batch),
                Arrival::Ended(part) => {
                    self.order.end(part);
                    self.unfinished -= 1;
                }
                Arrival::Failed(part, error) => self.order.fail(part, error)?,
                Arrival::Left => self.staying -= 1,
            }
        }
    }
}

/// A result in parts.
struct Parallel {
    started: Started,
    /// Keeps the snapshot, and ends last.
    coordinator: Option<Box<dyn Session>>,
}

impl Parallel {
    /// Ends the coordinator's transaction: it must still be there, for it has kept the tables as they were.
    fn end(&mut self) -> Result<()> {
        self.started.workers = None;
        if self.started.unfinished > 0 {
            return Err(Error::internal("a part of the result ended without its end"));
        }
        match &mut self.coordinator {
            Some(coordinator) => coordinator.commit(),
            None => Ok(()),
        }
    }
}

impl Iterator for Parallel {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.started.workers.as_ref()?;
        match self.started.advance(self.coordinator.as_mut()) {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => self.end().err().map(Err),
            Err(error) => {
                self.started.workers = None;
                Some(Err(error))
            }
        }
    }
}

impl Batches for Parallel {
    fn schema(&self) -> SchemaRef {
        self.started.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.started.finaliser.clone()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        drop(self.started.workers.take());
        without_transaction(self.coordinator.take()?)
    }
}
