//! A result that is read on a thread of its own while its batches are used.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::memory::{rows_size, spawn};
use crate::{Batches, Deadline, Error, Process, Result};

/// Batches that wait for their user: with fewer, one side would wait for the other more often.
const WAITING: usize = 2;
/// The bytes from which on a batch waits alone.
const LARGE: usize = 8 << 20;

/// A place of the queue: a batch, or `None` before one that takes two.
type Place = Option<Result<RecordBatch>>;

/// Batches on their way from one thread to another. Ends only after the result's own end.
pub struct ReadAhead {
    schema: SchemaRef,
    /// `None` once nothing more is wanted.
    batches: Option<Receiver<Place>>,
    reader: Option<JoinHandle<()>>,
    /// Closed by the reader at its end.
    ended: Receiver<()>,
    deadline: Deadline,
    /// When the deadline was last asked: batches that are never waited for must not keep the caller from being heard.
    checked: Instant,
    /// How long the reader may take to end by itself where its batches are no longer wanted; `None` to stop it at once.
    grace: Option<Duration>,
    /// Has the reader stop, whatever it waits for.
    stop: Box<dyn Fn() + Send>,
    /// A forked child has no such reader.
    process: Process,
}

impl ReadAhead {
    /// Reads `batches` on a thread of its own. Every wait for them looks at `deadline`; `stop` is called where they are not
    /// read to their end, and the reader does not end by itself within `grace`.
    pub fn start(
        mut batches: Box<dyn Batches>,
        deadline: &Deadline,
        grace: Option<Duration>,
        stop: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let schema = batches.schema();
        let (sender, receiver) = sync_channel(WAITING);
        let (alive, ended) = sync_channel(0);
        let read = move || {
            for batch in batches.by_ref() {
                let is_large = batch.as_ref().is_ok_and(|batch| rows_size(batch) >= LARGE);
                if (is_large && sender.send(None).is_err()) || sender.send(Some(batch)).is_err() {
                    break;
                }
            }
            // The session is released before the user learns of the end.
            drop(batches);
            drop(sender);
            drop(alive);
        };
        let reader = spawn(thread::Builder::new().name("longshore-ahead".into()), read)?;
        Ok(Self {
            schema,
            batches: Some(receiver),
            reader: Some(reader),
            ended,
            deadline: deadline.clone(),
            checked: Instant::now(),
            grace,
            stop: Box::new(stop),
            process: Process::current(),
        })
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Waits for the reader, which has ended or is about to.
    fn join(&mut self) -> Result<()> {
        let Some(reader) = self.reader.take() else { return Ok(()) };
        reader.join().map_err(|_| Error::internal("the thread that reads has panicked"))
    }
}

impl Iterator for ReadAhead {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.process.check("result") {
            return Some(Err(error));
        }
        if self.checked.elapsed() >= self.deadline.slice() {
            self.checked = Instant::now();
            if let Err(error) = self.deadline.check() {
                return Some(Err(error));
            }
        }
        loop {
            match self.batches.as_ref()?.recv_timeout(self.deadline.slice()) {
                Ok(None) => {}
                Ok(batch) => return batch,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = self.deadline.check() {
                        return Some(Err(error));
                    }
                }
                // Without a panic it has ended after its last batch.
                Err(RecvTimeoutError::Disconnected) => {
                    self.batches = None;
                    return self.join().err().map(Err);
                }
            }
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // Its handle would wait for a thread that is the parent's.
            std::mem::forget((self.batches.take(), self.reader.take()));
            return;
        }
        if self.batches.take().is_some() {
            let ends = |grace| self.ended.recv_timeout(grace) == Err(RecvTimeoutError::Disconnected);
            if !self.grace.is_some_and(ends) {
                (self.stop)();
            }
        }
        // A panic has been told of, or no one asks any more.
        let _ = self.join();
    }
}
