//! The threads that read the parts, one session each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::Delivery;
use crate::agreement::agree;
use crate::memory::{rows_size, spawn};
use crate::session::without_transaction;
use crate::{
    Batches, Deadline, Error, Failed, Finaliser, Interrupt, Kind, Parts, Place, Process, Query, ReadOptions,
    Result, Session, SessionFactory,
};

/// The finaliser that a session needs for its result.
type Opening = Option<Arc<dyn Finaliser>>;

/// The work of the caller's thread while nothing comes from the others.
type WhileWaiting<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Threads from which nothing comes for so long may be waited for.
const QUIET: Duration = Duration::from_millis(250);

/// The messages that the threads send once they read.
pub(super) enum Arrival {
    /// A batch of a part.
    Batch(usize, RecordBatch),
    /// The server's own end of a part has come.
    Ended(usize),
    /// A part could not be read; its place's row counts within it.
    Failed(usize, Error),
    /// A session has ended its transaction: it has read all that it was to read.
    Left,
}

/// The threads. Dropped, they stop what they run on the server, and end.
pub(super) struct Workers {
    stop: Arc<Stop>,
    /// `None` only while they are dropped: a thread that waits for room must not wait for ever.
    channels: Option<Channels>,
    threads: Vec<JoinHandle<()>>,
    /// A forked child has none of the threads.
    process: Process,
}

/// The channels that the threads send on.
struct Channels {
    openings: Receiver<Result<Opening>>,
    arrivals: Receiver<Result<Arrival>>,
}

impl Workers {
    pub(super) fn start(
        parts: Parts,
        factory: &Arc<dyn SessionFactory>,
        schema: &SchemaRef,
        is_list: bool,
        delivery: Delivery,
        options: &ReadOptions,
    ) -> Result<Self> {
        let sessions = parts.sessions;
        let (opened, openings) = mpsc::channel();
        let (sender, arrivals) = batch_channel(delivery, sessions);
        let stop = Arc::new(Stop::default());
        let work = Arc::new(Work {
            parts,
            next: AtomicUsize::new(sessions),
            factory: factory.clone(),
            schema: schema.clone(),
            options: options.clone(),
            // The consumer looks at the caller's deadline and signals.
            deadline: Deadline::new(stop.clone(), None),
            held: AtomicUsize::new(0),
            is_list,
            is_ordered: delivery == Delivery::Ordered,
        });
        let mut workers = Self {
            stop,
            channels: Some(Channels { openings, arrivals }),
            threads: Vec::with_capacity(sessions),
            process: Process::current(),
        };
        for first in 0..sessions {
            let worker = Worker {
                work: work.clone(),
                opened: Some(opened.clone()),
                sender: sender.clone(),
                part: first,
            };
            let thread = thread::Builder::new().name(format!("longshore-{first}"));
            let thread = spawn(thread, move || worker.work_through())?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Waits until another session has begun to read. Calls `while_waiting` now and then while none does.
    pub(super) fn opening(&self, deadline: &Deadline, while_waiting: WhileWaiting<'_>) -> Result<Opening> {
        receive(&self.channels()?.openings, deadline, while_waiting)
    }

    /// Waits for what comes next. Calls `while_waiting` now and then while nothing does.
    pub(super) fn arrival(&self, deadline: &Deadline, while_waiting: WhileWaiting<'_>) -> Result<Arrival> {
        let channels = self.channels()?;
        channels.late_failure()?;
        receive(&channels.arrivals, deadline, while_waiting)
            .map_err(|error| channels.late_failure().err().unwrap_or(error))
    }

    fn channels(&self) -> Result<&Channels> {
        self.process.check("result")?;
        self.channels.as_ref().ok_or_else(lost_part)
    }

    /// The number of sessions.
    pub(super) fn size(&self) -> usize {
        self.threads.len()
    }
}

impl Channels {
    /// The failure of a session that opened, or did not, after others had begun to read.
    fn late_failure(&self) -> Result<()> {
        self.openings.try_iter().find_map(Result::err).map_or(Ok(()), Err)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let (channels, threads) = (self.channels.take(), std::mem::take(&mut self.threads));
        if !self.process.is_current() {
            // They would wait for threads that are the parent's, or for what those had locked.
            std::mem::forget((channels, threads));
            return;
        }
        self.stop.0.store(true, Ordering::Relaxed);
        drop(channels);
        for thread in threads {
            // Whatever a stopped thread has met, no one waits for it.
            let _ = thread.join();
        }
    }
}

fn receive<T>(from: &Receiver<Result<T>>, deadline: &Deadline, while_waiting: WhileWaiting<'_>) -> Result<T> {
    let mut since = Instant::now();
    loop {
        match from.recv_timeout(deadline.slice()) {
            Ok(received) => return received,
            Err(RecvTimeoutError::Timeout) => deadline.check()?,
            Err(RecvTimeoutError::Disconnected) => return Err(lost_part()),
        }
        if since.elapsed() >= QUIET {
            while_waiting()?;
            since = Instant::now();
        }
    }
}

fn lost_part() -> Error {
    Error::internal("a part of the result ended without its end")
}

/// The consumer wants no more.
#[derive(Default)]
struct Stop(AtomicBool);

impl Interrupt for Stop {
    fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(interruption()) } else { Ok(()) }
    }
}

fn interruption() -> Error {
    Error::new(Kind::Interrupted, "the read was stopped")
}

/// The way to the consumer: unbounded where all batches are kept anyway.
#[derive(Clone)]
enum BatchSender {
    Unbounded(Sender<Result<Arrival>>),
    Bounded(SyncSender<Result<Arrival>>),
}

fn batch_channel(delivery: Delivery, sessions: usize) -> (BatchSender, Receiver<Result<Arrival>>) {
    match delivery {
        Delivery::Ordered => {
            let (sender, receiver) = mpsc::channel();
            (BatchSender::Unbounded(sender), receiver)
        }
        Delivery::Interleaved => {
            let (sender, receiver) = mpsc::sync_channel(sessions);
            (BatchSender::Bounded(sender), receiver)
        }
    }
}

impl BatchSender {
    /// Hands `arrival` on when the consumer has room for it; an error when it is gone.
    fn send(&self, arrival: Result<Arrival>) -> Result<()> {
        let sent = match self {
            Self::Unbounded(sender) => sender.send(arrival).is_ok(),
            Self::Bounded(sender) => sender.send(arrival).is_ok(),
        };
        sent.then_some(()).ok_or_else(interruption)
    }
}

/// The state that the threads share.
struct Work {
    parts: Parts,
    /// The next part that no one reads yet.
    next: AtomicUsize,
    factory: Arc<dyn SessionFactory>,
    /// The whole's schema.
    schema: SchemaRef,
    options: ReadOptions,
    deadline: Deadline,
    /// Bytes in the batches so far: those of later parts wait where the consumer does not see them.
    held: AtomicUsize,
    /// Whether the parts are the caller's own queries.
    is_list: bool,
    /// Whether the batches leave part after part.
    is_ordered: bool,
}

impl Work {
    fn hold(&self, batch: &RecordBatch) -> Result<()> {
        let bytes = rows_size(batch);
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        self.options.budget.hold(before.saturating_add(bytes))
    }

    /// The error of a part, whose rows are counted within it. Where parts leave as they come, no one knows how many the
    /// parts before it have.
    fn within(&self, part: usize, error: Error) -> Error {
        let place = error.place().clone();
        if place.row.is_some() && self.is_ordered && !self.is_list {
            return error;
        }
        let Some(row) = place.row else { return error.within(self.name(part)) };
        error.within(format!("{}, row {row} of it", self.name(part))).at(Place { row: None, ..place })
    }

    /// The name by which errors call a part.
    fn name(&self, part: usize) -> String {
        let number = part + 1;
        if self.is_list {
            format!("query {number} of the list")
        } else {
            format!("part {number} of {}", self.parts.queries.len())
        }
    }
}

fn join_snapshot(session: &mut dyn Session, snapshot: &str, sessions: usize) -> Result<()> {
    session.splitting().map_err(Error::internal)?.join_snapshot(snapshot, sessions)
}

/// One thread.
struct Worker {
    work: Arc<Work>,
    /// `None` after the session has begun to read.
    opened: Option<Sender<Result<Opening>>>,
    sender: BatchSender,
    /// The part that is being read.
    part: usize,
}

impl Worker {
    /// Reads its first part, and then whatever is left.
    fn work_through(mut self) {
        let read = catch_unwind(AssertUnwindSafe(|| self.read()));
        let error = match read {
            Ok(Ok(session)) => {
                self.work.factory.release(session);
                drop(self.sender.send(Ok(Arrival::Left)));
                return;
            }
            Ok(Err(Failed { error, session })) => {
                if let Some(session) = session.and_then(without_transaction) {
                    self.work.factory.release(session);
                }
                error
            }
            Err(_) => Error::internal("a defect of Longshore: please report the query"),
        };
        // The parts before it have begun; those after it are not needed.
        self.work.next.store(self.work.parts.queries.len(), Ordering::Relaxed);
        // Where no one listens any more, no one needs to know.
        match self.opened {
            Some(opened) => drop(opened.send(Err(error))),
            None => drop(self.sender.send(Ok(Arrival::Failed(self.part, error)))),
        }
    }

    fn read(&mut self) -> Result<Box<dyn Session>, Failed> {
        let work = self.work.clone();
        let mut session = work.factory.open(&work.deadline)?;
        if let Some(snapshot) = &work.parts.snapshot
            && let Err(error) = join_snapshot(session.as_mut(), snapshot, work.parts.sessions)
        {
            return Err(Failed { error, session: Some(session) });
        }
        while let Some(query) = work.parts.queries.get(self.part) {
            session = self.read_part(session, self.part, query)?;
            self.part = work.next.fetch_add(1, Ordering::Relaxed);
        }
        match session.commit() {
            Ok(()) => Ok(session),
            Err(error) => Err(Failed { error, session: Some(session) }),
        }
    }

    fn read_part(
        &mut self,
        session: Box<dyn Session>,
        part: usize,
        query: &Query,
    ) -> Result<Box<dyn Session>, Failed> {
        let read = session.read(query, &self.work.options);
        let mut batches =
            read.map_err(|failed| Failed { error: self.work.within(part, failed.error), ..failed })?;
        if let Err(error) = self.hand_on(part, batches.as_mut()) {
            return Err(Failed { error, session: batches.into_session() });
        }
        let session = batches.into_session().ok_or_else(lost_part)?;
        match self.sender.send(Ok(Arrival::Ended(part))) {
            Ok(()) => Ok(session),
            Err(error) => Err(Failed { error, session: Some(session) }),
        }
    }

    /// Sends every batch of a part to the consumer.
    fn hand_on(&mut self, part: usize, batches: &mut dyn Batches) -> Result<()> {
        let work = &self.work;
        agree(&work.schema, &batches.schema(), &work.name(part))?;
        if let Some(opened) = self.opened.take() {
            opened.send(Ok(batches.finaliser())).map_err(|_| interruption())?;
        }
        for batch in batches {
            let batch = batch.map_err(|error| work.within(part, error))?;
            work.hold(&batch)?;
            self.sender.send(Ok(Arrival::Batch(part, batch)))?;
        }
        Ok(())
    }
}
