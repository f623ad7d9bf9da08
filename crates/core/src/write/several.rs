//! A write over several sessions: they fill a staging table, and one brings its rows into the target.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::Schema;

use super::pieces::{Piece, Pieces, RowNumbers};
use super::queue::{Queue, Waiting};
use super::{Load, Sink, Stage, Written};
use crate::memory::spawn_scoped;
use crate::session::{ENDING, loading, without_transaction};
use crate::{Deadline, Error, Failed, Kind, Loading, Result, Session, SessionFactory, lock};

/// How long all sessions of a write together may take to open, where the caller sets no earlier deadline.
const OPENING: Duration = Duration::from_secs(15);

/// The session that waits for the others is used so often: it must not be idle for long, nor lost for long unnoticed.
const KEEPING: Duration = Duration::from_secs(2);

/// The most rows of a piece, unless the caller says how many.
const PIECE: usize = 1 << 16;

/// Writes `batches` over so many sessions of `factory`; `first` brings the rows into the target.
pub(super) fn write(
    first: Box<dyn Loading>,
    factory: &Arc<dyn SessionFactory>,
    load: &Load,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    sessions: usize,
    most: Option<usize>,
    deadline: &Deadline,
) -> Result<Written, Failed> {
    let mut helper = match factory.open(deadline) {
        Ok(helper) => helper,
        Err(error) => return Err(Failed { error, session: Some(first) }),
    };
    let mut stage = match first.stage(load, helper.as_mut()) {
        Ok(stage) => stage,
        Err(failed) => {
            factory.release(helper);
            return Err(failed);
        }
    };
    let queue = Arc::new(Queue::new(sessions));
    let workers = Workers {
        whole: load,
        load: stage.load().clone(),
        factory,
        sessions,
        deadline: Deadline::new(queue.clone(), None),
        queue,
        helper: Mutex::new(Some(helper)),
        after: Mutex::default(),
    };
    let filled = workers.fill(
        stage.as_mut(),
        Pieces::new(batches, load, Some(most.unwrap_or(PIECE)), deadline),
        deadline,
    );
    let undo = stage.undo();
    let outcome = match filled {
        Ok(rows) => stage.commit(rows).map(|session| Written { rows, session }),
        Err(error) => Err(Failed { error, session: stage.abort() }),
    };
    workers.end(outcome, &undo)
}

/// The sessions that fill the staging table, a thread each.
struct Workers<'a> {
    /// The load of the whole table, and that of each of the sessions.
    whole: &'a Load,
    load: Load,
    factory: &'a Arc<dyn SessionFactory>,
    sessions: usize,
    /// The caller's own deadline is looked at by the thread that reads the data.
    deadline: Deadline,
    queue: Arc<Queue>,
    /// The one session that is open before.
    helper: Mutex<Option<Box<dyn Session>>>,
    /// Sessions that have done their part and can be used again.
    after: Mutex<Vec<Box<dyn Session>>>,
}

impl Workers<'_> {
    /// Has all pieces written; returns the number of their rows.
    fn fill(
        &self,
        stage: &mut dyn Stage,
        pieces: Pieces<'_, impl Iterator<Item = Result<RecordBatch>>>,
        deadline: &Deadline,
    ) -> Result<u64> {
        thread::scope(|scope| {
            let _stop = StopAtEnd(&self.queue);
            for number in 0..self.sessions {
                let thread = thread::Builder::new().name(format!("longshore-{number}"));
                spawn_scoped(thread, scope, || self.work())?;
            }
            let mut kept = Instant::now();
            let mut look = || {
                deadline.check()?;
                if kept.elapsed() >= KEEPING {
                    stage.keep()?;
                    kept = Instant::now();
                }
                Ok(())
            };
            self.hand_out(pieces, &mut Waiting { look: &mut look, slice: deadline.slice() }, deadline)
        })
    }

    fn hand_out(
        &self,
        pieces: Pieces<'_, impl Iterator<Item = Result<RecordBatch>>>,
        waiting: &mut Waiting<'_>,
        deadline: &Deadline,
    ) -> Result<u64> {
        self.await_open(waiting, deadline)?;
        let mut rows = 0;
        for piece in pieces {
            let piece = piece?;
            let count = piece.batch.num_rows() as u64;
            if count > 0 {
                rows += count;
                self.queue.put(piece, waiting)?;
            }
        }
        self.queue.complete();
        self.queue.await_done(self.sessions, waiting)?;
        Ok(rows)
    }

    /// A pooler in between that has too few connections would have the last one wait for the first for ever.
    fn await_open(&self, waiting: &mut Waiting<'_>, deadline: &Deadline) -> Result<()> {
        let opening = deadline.at_most(OPENING);
        let mut look = || opening.check();
        let opened = self.queue.await_ready(self.sessions, &mut Waiting { look: &mut look, ..*waiting });
        match opened {
            Err(error) if error.kind() == Kind::Timeout => {
                // The caller's own deadline has its own words.
                deadline.check()?;
                let (seconds, ready, all) = (OPENING.as_secs(), self.queue.ready(), self.sessions);
                Err(Error::operational(format!(
                    "only {ready} of {all} sessions had a connection and could begin to write after {seconds} s"
                ))
                .with_hint(
                    "a pool between here and the server may be too small: give it parallel + 1 connections, or lower \
                     parallel",
                ))
            }
            other => other,
        }
    }

    /// One thread, from its session to its end.
    fn work(&self) {
        let written = catch_unwind(AssertUnwindSafe(|| self.write()));
        let session = match written {
            Ok(Ok(session)) => {
                self.queue.add_done();
                Some(session)
            }
            Ok(Err(Failed { error, session })) => {
                self.queue.fail(self.rename(error));
                session
            }
            Err(_) => {
                self.queue.fail(Error::internal("a defect of Longshore: please report the data's types"));
                None
            }
        };
        lock(&self.after).extend(session);
    }

    fn write(&self) -> Result<Box<dyn Session>, Failed> {
        let helper = lock(&self.helper).take();
        let session = match helper {
            Some(mut helper) => {
                helper.set_deadline(&self.deadline);
                helper
            }
            None => self.factory.open(&self.deadline)?,
        };
        let mut sink = loading(session)?.write(&self.load)?;
        self.queue.add_ready();
        let mut numbers = RowNumbers::default();
        let ended = match self.write_pieces(sink.as_mut(), &mut numbers) {
            Ok(()) => sink.commit(),
            Err(error) => Err(Failed { error, session: sink.abort() }),
        };
        match ended {
            Ok(Written { session, .. }) => Ok(session),
            Err(Failed { error, session }) => {
                Err(Failed { error: numbers.restore(error, &self.load.table.table), session })
            }
        }
    }

    fn write_pieces(&self, sink: &mut dyn Sink, numbers: &mut RowNumbers) -> Result<()> {
        while let Some(piece) = self.queue.take()? {
            numbers.add(piece.first, piece.batch.num_rows() as u64);
            sink.push(&self.number_rows(&piece)?)?;
            piece.count(&self.load.meter);
        }
        Ok(())
    }

    /// The rows of `piece`, and their numbers where the staging table wants them.
    fn number_rows(&self, piece: &Piece) -> Result<RecordBatch> {
        let fields = self.load.schema.fields();
        if fields.len() == piece.batch.num_columns() {
            return Ok(piece.batch.clone());
        }
        let numbers =
            (piece.first..).take(piece.batch.num_rows()).map(|row| i64::try_from(row).unwrap_or(i64::MAX));
        // A frame's own promises may be other ones than the first frame's.
        let own = piece.batch.schema();
        let schema = Schema::new(own.fields().iter().chain(fields.last()).cloned().collect::<Vec<_>>());
        let mut columns = piece.batch.columns().to_vec();
        columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
        RecordBatch::try_new(Arc::new(schema), columns)
            .map_err(|error| Error::internal(format!("a batch does not have its schema: {error}")))
    }

    /// The error under the name that the caller knows.
    fn rename(&self, error: Error) -> Error {
        error.renaming(&self.load.table.table, &self.whole.table.table)
    }

    /// Gives all sessions back. One of them removes what the first one left, if that is lost.
    fn end(self, outcome: Result<Written, Failed>, undo: &str) -> Result<Written, Failed> {
        let outcome =
            outcome.map_err(|Failed { error, session }| Failed { error: self.rename(error), session });
        let is_lost = matches!(&outcome, Err(Failed { session: None, .. }));
        let helper = self.helper.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut sessions = self.after.into_inner().unwrap_or_else(PoisonError::into_inner);
        sessions.extend(helper);
        if is_lost && let Some(mut session) = sessions.pop() {
            session.set_deadline(&Deadline::never().at_most(ENDING));
            // What cannot be removed now goes with the next write.
            let _ = session.run(undo);
            sessions.extend(without_transaction(session));
        }
        for session in sessions {
            self.factory.release(session);
        }
        outcome
    }
}

/// Whatever ends the reading of the data ends the writing, too.
struct StopAtEnd<'a>(&'a Queue);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
