//! A read from its start: split or not, over one session or several.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::chain::read_all;
use crate::describe::check_key;
use crate::parallel::{Delivery, read_parts};
use crate::remedy::with_remedy;
use crate::session::without_transaction;
use crate::source::{Lease, Reservation, SessionFactory, Source};
use crate::split::divide;
use crate::{
    Batches, Deadline, Done, Error, Failed, Finaliser, Kind, Parts, Query, ReadOptions, Result, Session,
    Split, SplitPlan, Transaction,
};

/// How long parts that could not begin, as somebody was in the way, begin again.
const AGAIN: Duration = Duration::from_millis(500);

/// The queries to be read, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Statements that run first, on every session of the read.
    pub setup: Vec<String>,
    /// One query, or several whose results follow one another.
    pub queries: Vec<Query>,
    /// How to split; `None` reads over one session.
    pub split: Option<Split>,
    /// How the batches of several parts come.
    pub delivery: Delivery,
    /// Whether the meter is to expect a number of rows, which may cost a question to the server.
    pub estimate: bool,
    /// The type policy and the sizes of batches.
    pub options: ReadOptions,
}

impl Request {
    /// A read of queries as they are, over one session.
    #[must_use]
    pub fn unsplit(queries: Vec<Query>, options: ReadOptions) -> Self {
        Self {
            setup: Vec::new(),
            queries,
            split: None,
            delivery: Delivery::Ordered,
            estimate: false,
            options,
        }
    }
}

/// A result on its way.
pub struct Opened {
    /// Its batches. At their end, or when they are dropped, the sessions go back to where they came from.
    pub batches: Box<dyn Batches>,
    /// Why one session reads what the caller asked to split.
    pub serial: Option<String>,
}

/// Starts to read over sessions of `source`.
pub fn open_read(source: &dyn Source, request: &Request, deadline: &Deadline) -> Result<Opened> {
    let split = request.split.as_ref().filter(|split| !split.automatic || source.splits_automatically());
    // The session that keeps the snapshot, and one for each part.
    let wanted = split.map_or(1, |split| 1 + most_parts(split));
    let Reservation { first, lease, factory, most, begins, .. } = source.reserve(wanted, deadline)?;
    let factory: Arc<dyn SessionFactory> =
        Arc::new(Prepared { sessions: factory, setup: request.setup.clone() });
    let opening = Opening { request, split, factory, most, begins, deadline };
    match opening.read(first) {
        Ok((batches, serial)) => Ok(Opened { batches: Box::new(LeasedBatches::new(batches, lease)), serial }),
        Err(Failed { error, session }) => {
            if let Some(session) = session {
                lease.release(session);
            }
            Err(error)
        }
    }
}

fn most_parts(split: &Split) -> usize {
    split.number.or(split.most).map_or(1, NonZeroUsize::get)
}

struct Opening<'a> {
    request: &'a Request,
    split: Option<&'a Split>,
    factory: Arc<dyn SessionFactory>,
    most: usize,
    begins: bool,
    deadline: &'a Deadline,
}

impl Opening<'_> {
    fn read(&self, mut session: Box<dyn Session>) -> Result<(Box<dyn Batches>, Option<String>), Failed> {
        if let Err(error) = self.set_up(session.as_mut()) {
            return Err(Failed { error, session: Some(session) });
        }
        let was_free = session.transaction() == Transaction::None;
        let (since, mut most) = (Instant::now(), self.most);
        loop {
            let mut parts = match self.divide(session.as_mut()) {
                Ok(SplitPlan::Whole) => {
                    let batches = self.read_serially(session)?;
                    let reason = batches.not_split();
                    return Ok((self.with_key(batches)?, reason));
                }
                Ok(SplitPlan::Serial(reason)) => return self.read_instead(session, reason),
                Ok(SplitPlan::Parts(parts)) => parts,
                Err(error) => {
                    let error = with_remedy(error, &self.request.queries, session.placeholders());
                    let session = if was_free { without_transaction(session) } else { Some(session) };
                    return Err(Failed { error, session });
                }
            };
            parts.sessions = parts.sessions.clamp(1, most - 1).min(parts.queries.len());
            // What is given back to a pool is gone.
            most = 1 + parts.sessions;
            self.factory.keep_only(most);
            let begun = self.read_parts(session, parts);
            let (freed, error) = match begun {
                Ok(batches) => return Ok((batches, None)),
                Err(failed) => self.recover(failed)?,
            };
            session = freed;
            if !error.is_transient() || since.elapsed() >= AGAIN {
                return self.read_instead(session, error.message().to_owned());
            }
        }
    }

    fn read_parts(&self, session: Box<dyn Session>, parts: Parts) -> Result<Box<dyn Batches>, Failed> {
        let Request { queries, delivery, options, .. } = self.request;
        read_parts(session, &self.factory, queries, parts, *delivery, options, self.deadline)
    }

    /// The whole over one session, with the reason for those who asked for parts.
    fn read_instead(
        &self,
        session: Box<dyn Session>,
        reason: String,
    ) -> Result<(Box<dyn Batches>, Option<String>), Failed> {
        let reason = (!self.is_automatic()).then_some(reason);
        Ok((self.with_key(self.read_serially(session)?)?, reason))
    }

    /// The batches, which have the column that was to part them: a name that is none must not go unnoticed until the
    /// result is large enough for parts.
    fn with_key(&self, batches: Box<dyn Batches>) -> Result<Box<dyn Batches>, Failed> {
        let Some(on) = self.split.and_then(|split| split.on.as_deref()) else {
            return Ok(batches);
        };
        // A statement without rows has run.
        if batches.effect().is_some() {
            return Ok(batches);
        }
        match check_key(&batches.schema(), on) {
            Ok(()) => Ok(batches),
            Err(error) => Err(Failed { error, session: batches.into_session() }),
        }
    }

    fn set_up(&self, session: &mut dyn Session) -> Result<()> {
        let setup = &self.request.setup;
        // What runs before the query belongs to the owner's transaction as the query does.
        if self.begins && !setup.is_empty() && session.transaction() == Transaction::None {
            session.begin()?;
        }
        setup.iter().try_for_each(|statement| session.run(statement))
    }

    fn is_automatic(&self) -> bool {
        self.split.is_some_and(|split| split.automatic)
    }

    /// The session and the reason, where parts could not begin and the read may go on otherwise: no one has asked for them,
    /// or somebody was in the way.
    fn recover(&self, failed: Failed) -> Result<(Box<dyn Session>, Error), Failed> {
        let Failed { error, session } = failed;
        // Python tells of a Ctrl-C only once.
        let is_stopped = matches!(error.kind(), Kind::Interrupted | Kind::Cancelled);
        let may_go_on = (self.is_automatic() || error.is_transient()) && !is_stopped;
        match session {
            Some(mut session) if may_go_on && self.deadline.check().is_ok() => {
                // The end of its transaction had a deadline of its own.
                session.set_deadline(self.deadline);
                self.request.options.meter.begin_again();
                Ok((session, error))
            }
            session => Err(Failed { error, session }),
        }
    }

    fn divide(&self, session: &mut dyn Session) -> Result<SplitPlan> {
        let Some(split) = self.split else { return Ok(SplitPlan::Whole) };
        if let Ok(splitting) = session.splitting()
            && let Some(index) = self.request.setup.iter().position(|it| !splitting.is_setting(it))
        {
            // Not its text, which may hold a secret.
            let number = index + 1;
            return Ok(SplitPlan::Serial(format!(
                "statement {number} of pre_execution_query does more than SET"
            )));
        }
        if self.most < 2 {
            return Ok(SplitPlan::Serial("the pool has one connection only".into()));
        }
        divide(session, &self.request.queries, split, &self.request.options)
    }

    fn read_serially(&self, mut session: Box<dyn Session>) -> Result<Box<dyn Batches>, Failed> {
        let Request { queries, options, .. } = self.request;
        self.factory.keep_only(1);
        if let Err(error) = self.prepare(session.as_mut()) {
            return Err(Failed { error, session: Some(session) });
        }
        read_all(session, queries.clone(), options)
    }

    fn prepare(&self, session: &mut dyn Session) -> Result<()> {
        let Request { queries, options, estimate, .. } = self.request;
        // A list makes a snapshot of its own.
        let begins = self.begins
            && (queries.len() == 1 || !options.snapshot)
            && queries.iter().any(|query| session.begins_for(&query.text));
        if begins && session.transaction() == Transaction::None {
            session.begin()?;
        }
        if *estimate
            && options.meter.expected_rows().is_none()
            && let Ok(splitting) = session.splitting()
        {
            let rows = queries.iter().map(|query| splitting.estimate(query)).sum::<Result<Option<u64>>>()?;
            options.meter.expect(rows.unwrap_or_default());
        }
        Ok(())
    }
}

/// Sessions on which the caller's own statements have run.
struct Prepared {
    sessions: Arc<dyn SessionFactory>,
    setup: Vec<String>,
}

impl Lease for Prepared {
    fn release(&self, session: Box<dyn Session>) {
        self.sessions.release(session);
    }
}

impl SessionFactory for Prepared {
    fn keep_only(&self, count: usize) {
        self.sessions.keep_only(count);
    }

    fn open(&self, deadline: &Deadline) -> Result<Box<dyn Session>> {
        let mut session = self.sessions.open(deadline)?;
        self.setup.iter().try_for_each(|statement| session.run(statement))?;
        Ok(session)
    }
}

/// Batches whose session is released after them.
struct LeasedBatches {
    schema: SchemaRef,
    finaliser: Option<Arc<dyn Finaliser>>,
    done: Option<Done>,
    /// `None` after the end.
    batches: Option<Box<dyn Batches>>,
    lease: Arc<dyn Lease>,
}

impl LeasedBatches {
    fn new(batches: Box<dyn Batches>, lease: Arc<dyn Lease>) -> Self {
        let (schema, finaliser, done) = (batches.schema(), batches.finaliser(), batches.effect());
        let mut leased = Self { schema, finaliser, done, batches: Some(batches), lease };
        if done.is_some() {
            leased.end();
        }
        leased
    }

    fn end(&mut self) {
        if let Some(batches) = self.batches.take() {
            self.lease.end(batches);
        }
    }
}

impl Drop for LeasedBatches {
    fn drop(&mut self) {
        self.end();
    }
}

impl Iterator for LeasedBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.as_mut()?.next();
        if !matches!(next, Some(Ok(_))) {
            self.end();
        }
        next
    }
}

impl Batches for LeasedBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn effect(&self) -> Option<Done> {
        self.done
    }

    fn fails_transaction(&self) -> bool {
        self.batches.as_ref().is_some_and(|batches| batches.fails_transaction())
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.batches.take().and_then(Batches::into_session)
    }
}
