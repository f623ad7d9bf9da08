//! A result that is read on a thread of its own while its batches are used.

use std::iter::repeat_with;
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
/// The bytes from which on the next batch is not made before it is asked for: there is one in memory, not four.
const HUGE: usize = 128 << 20;

/// A place of the queue: a batch, or `None` before one that takes two, or after one that no other is made next to.
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
        let none = |count| repeat_with(|| None).take(count);
        let read = move || {
            for batch in batches.by_ref() {
                let size = batch.as_ref().map_or(0, rows_size);
                let (before, after) =
                    (usize::from(size >= LARGE), if size >= HUGE { WAITING + 1 } else { 0 });
                let mut places = none(before).chain([Some(batch)]).chain(none(after));
                if places.any(|place| sender.send(place).is_err()) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use arrow_array::UInt8Array;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;
    use crate::Session;

    /// Batches of a huge column, each but the first of which has to be asked for before it is made.
    struct Huge {
        left: usize,
        asked: Arc<AtomicBool>,
    }

    impl Iterator for Huge {
        type Item = Result<RecordBatch>;

        fn next(&mut self) -> Option<Self::Item> {
            self.left = self.left.checked_sub(1)?;
            if !self.asked.swap(false, Ordering::SeqCst) {
                return Some(Err(Error::internal("a batch is made that is not asked for")));
            }
            let column = Arc::new(UInt8Array::from(vec![0; HUGE]));
            Some(Ok(RecordBatch::try_new(self.schema(), vec![column]).unwrap()))
        }
    }

    impl Batches for Huge {
        fn schema(&self) -> SchemaRef {
            Arc::new(Schema::new(vec![Field::new("n", DataType::UInt8, false)]))
        }

        fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
            None
        }
    }

    #[test]
    fn next_to_a_huge_batch_no_other_is_made() {
        let asked = Arc::new(AtomicBool::new(true));
        let batches = Box::new(Huge { left: 3, asked: asked.clone() });
        let mut ahead = ReadAhead::start(batches, &Deadline::never(), None, || {}).unwrap();
        for _ in 0..3 {
            assert_eq!(ahead.next().unwrap().unwrap().num_rows(), HUGE);
            // One that reads ahead does so meanwhile.
            thread::sleep(Duration::from_millis(5));
            asked.store(true, Ordering::SeqCst);
        }
        assert!(ahead.next().is_none());
    }
}
