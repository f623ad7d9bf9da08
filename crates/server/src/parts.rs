//! Results that wait for their clients, whole or in parts: queues that one execution fills, each of which is read once.
//!
//! Batches go round to the queues. What does not fit into memory waits in files without a name, up to a quota.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::memory::rows_size;
use longshore_core::{Batches, CancelHandle, Deadline, Error, Kind, Result, lock};

use crate::engine::Rows;
use crate::results::check_rows;
use crate::room::Room;
use crate::spill::{Spill, Spilled};

/// How long a reader may take for a batch before the next of its part goes to the disk.
const SLOW: Duration = Duration::from_millis(50);

/// A statement that has run to its first rows.
pub(crate) struct Pending {
    pub(crate) schema: SchemaRef,
    /// `None` once it is read.
    pub(crate) parts: Vec<Option<Part>>,
    pub(crate) cancel: CancelHandle,
    /// The transaction that it is part of.
    pub(crate) transaction: Option<String>,
    /// The cursor's name, where it was declared.
    pub(crate) cursor: Option<String>,
    /// Cloned by those who read a part.
    pub(crate) reading: Arc<()>,
}

impl Pending {
    /// The parts of a statement's result, or all of it.
    pub(crate) fn new(schema: SchemaRef, parts: Vec<Part>, cancel: CancelHandle) -> Self {
        let parts = parts.into_iter().map(Some).collect();
        Self { schema, parts, cancel, transaction: None, cursor: None, reading: Arc::default() }
    }

    /// Whether it keeps a transaction's session until its client reads it.
    pub(crate) fn waits_for_reader(&self) -> bool {
        self.parts.iter().flatten().any(|part| matches!(part, Part::Whole(_)))
    }

    pub(crate) fn is_being_read(&self) -> bool {
        Arc::strong_count(&self.reading) > 1
    }

    /// Whether nothing of it is left but the word that it has been read.
    pub(crate) fn is_over(&self) -> bool {
        self.parts.iter().all(Option::is_none) && !self.is_being_read()
    }
}

/// One of the endpoints of a result.
pub(crate) enum Part {
    /// All of its rows, straight from the statement.
    Whole(Rows),
    /// Some of them.
    Queue(PartReader),
    /// None: of a statement over a cursor.
    Nothing,
}

/// The limits of a result in parts.
#[derive(Clone)]
pub(crate) struct Quota {
    /// The memory of the batches of all results, but for one of each part.
    pub(crate) memory: Arc<Room>,
    pub(crate) disk: u64,
    /// The rows of the result.
    pub(crate) rows: Option<u64>,
}

/// The queues of one result.
struct Shared {
    queues: Mutex<Queues>,
    changed: Condvar,
    cancel: CancelHandle,
}

struct Queues {
    each: Vec<Queue>,
    memory: Arc<Room>,
    /// The bytes in files, of all queues.
    disk: u64,
    end: Option<End>,
}

/// How the execution has ended.
#[derive(Clone)]
enum End {
    Whole,
    Failed { kind: Kind, text: String, sqlstate: Option<String>, hint: Option<String> },
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// When its reader last took a batch.
    taken: Option<Instant>,
    /// Whether its reader is gone.
    is_closed: bool,
}

enum Waiting {
    InMemory(RecordBatch, usize),
    OnDisk(Spilled),
}

/// The reader of one part.
pub(crate) struct PartReader {
    shared: Arc<Shared>,
    number: usize,
    /// That of the call which reads it.
    deadline: Deadline,
}

/// Divides `rows` into so many parts; a thread of its own runs the statement to its end.
/// Its first rows are there when this returns: what changes after it is no longer seen.
pub(crate) fn divide(rows: Rows, count: usize, quota: Quota, deadline: &Deadline) -> Result<Vec<Part>> {
    let each = (0..count).map(|_| Queue::default()).collect();
    let queues = Queues { each, memory: quota.memory.clone(), disk: 0, end: None };
    let (queues, changed) = (Mutex::new(queues), Condvar::new());
    let shared = Arc::new(Shared { queues, changed, cancel: rows.deadline.cancel_handle() });
    let filled = shared.clone();
    let fill = move || {
        let ended = filled.fill(rows.batches, &quota);
        lock(&filled.queues).end = Some(match ended {
            Ok(()) => End::Whole,
            Err(error) => End::Failed {
                kind: error.kind(),
                text: error.message().to_owned(),
                sqlstate: error.sqlstate().map(str::to_owned),
                hint: error.hint().map(str::to_owned),
            },
        });
        filled.changed.notify_all();
    };
    let thread = std::thread::Builder::new().name("longshore-parts".into()).spawn(fill);
    thread.map_err(|error| Error::operational(format!("no thread for the parts of a result: {error}")))?;
    let reader =
        |number| Part::Queue(PartReader { shared: shared.clone(), number, deadline: Deadline::never() });
    let parts = (0..count).map(reader).collect();
    shared.wait_for_first(deadline)?;
    Ok(parts)
}

impl Shared {
    fn fill(&self, batches: Box<dyn Batches>, quota: &Quota) -> Result<()> {
        let mut spills: Vec<Spill> = lock(&self.queues).each.iter().map(|_| Spill::default()).collect();
        let mut rows = 0;
        for (batch, number) in batches.zip((0..spills.len()).cycle()) {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            check_rows(rows, quota.rows)?;
            let is_closed: Vec<bool> = lock(&self.queues).each.iter().map(|queue| queue.is_closed).collect();
            if is_closed.iter().all(|is_closed| *is_closed) {
                return Err(Error::new(Kind::Cancelled, "no one reads the parts of the result any more"));
            }
            if is_closed[number] {
                continue;
            }
            if let Some(batch) = self.keep(number, batch) {
                // The readers go on while it is written.
                let spilled = spills[number].write(&batch)?;
                let mut queues = lock(&self.queues);
                queues.push(number, Waiting::OnDisk(spilled));
                if queues.disk > quota.disk {
                    return Err(full(quota.disk));
                }
            }
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Waits until there are rows, or the end.
    fn wait_for_first(&self, deadline: &Deadline) -> Result<()> {
        let mut queues = lock(&self.queues);
        while queues.end.is_none() && queues.each.iter().all(|queue| queue.waiting.is_empty()) {
            deadline.check()?;
            queues =
                self.changed.wait_timeout(queues, deadline.slice()).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Keeps a batch in memory; gives it back where there is no room, nor a reader that makes some soon.
    fn keep(&self, number: usize, batch: RecordBatch) -> Option<RecordBatch> {
        let size = rows_size(&batch);
        let mut queues = lock(&self.queues);
        // A reader that waits for its next batch has it without a way by the disk.
        while !queues.each[number].waiting.is_empty() && !queues.memory.has(size) {
            let taken = queues.each[number].taken;
            let left = taken.map_or(Duration::ZERO, |taken| SLOW.saturating_sub(taken.elapsed()));
            if left.is_zero() {
                return Some(batch);
            }
            queues = self.changed.wait_timeout(queues, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queues.push(number, Waiting::InMemory(batch, size));
        None
    }
}

impl Queues {
    fn push(&mut self, number: usize, waiting: Waiting) {
        let queue = &mut self.each[number];
        if queue.is_closed {
            return;
        }
        match &waiting {
            Waiting::InMemory(_, size) => self.memory.take(*size),
            Waiting::OnDisk(spilled) => self.disk += spilled.length as u64,
        }
        queue.waiting.push_back(waiting);
    }

    fn forget(&mut self, waiting: &Waiting) {
        match waiting {
            Waiting::InMemory(_, size) => self.memory.give_back(*size),
            Waiting::OnDisk(spilled) => self.disk -= spilled.length as u64,
        }
    }
}

fn full(disk: u64) -> Error {
    Error::new(Kind::Memory, format!("the parts that no one has read take more than {disk} bytes"))
        .with_sqlstate("53100")
        .with_hint("read all parts at the same time, or ask for fewer rows")
}

impl PartReader {
    /// Reads under the deadline of a call.
    pub(crate) fn under(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    fn next_batch(&self) -> Result<Option<RecordBatch>> {
        let mut queues = lock(&self.shared.queues);
        loop {
            let queue = &mut queues.each[self.number];
            if let Some(waiting) = queue.waiting.pop_front() {
                queue.taken = Some(Instant::now());
                queues.forget(&waiting);
                drop(queues);
                self.shared.changed.notify_all();
                return match waiting {
                    Waiting::InMemory(batch, _) => Ok(Some(batch)),
                    Waiting::OnDisk(spilled) => spilled.read().map(Some),
                };
            }
            match &queues.end {
                Some(End::Whole) => return Ok(None),
                Some(End::Failed { kind, text, sqlstate, hint }) => {
                    let mut error = Error::new(*kind, text.clone());
                    if let Some(sqlstate) = sqlstate {
                        error = error.with_sqlstate(sqlstate.clone());
                    }
                    return Err(match hint {
                        Some(hint) => error.with_hint(hint.clone()),
                        None => error,
                    });
                }
                None => {}
            }
            self.deadline.check()?;
            let slice = self.deadline.slice();
            queues =
                self.shared.changed.wait_timeout(queues, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Iterator for PartReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl Drop for PartReader {
    fn drop(&mut self) {
        let mut queues = lock(&self.shared.queues);
        let waiting = std::mem::take(&mut queues.each[self.number].waiting);
        for waiting in &waiting {
            queues.forget(waiting);
        }
        queues.each[self.number].is_closed = true;
        if queues.end.is_none() && queues.each.iter().all(|queue| queue.is_closed) {
            self.shared.cancel.cancel();
        }
        drop(queues);
        self.shared.changed.notify_all();
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn a_batch_goes_to_the_disk_where_no_one_takes_those_before_it() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let room = Room::new(16_000);
        let result = || {
            let each = (0..2).map(|_| Queue::default()).collect();
            let queues = Mutex::new(Queues { each, memory: room.clone(), disk: 0, end: None });
            Arc::new(Shared { queues, changed: Condvar::new(), cancel: CancelHandle::default() })
        };
        let keep = |result: &Shared, number| result.keep(number, batch.slice(0, 900)).is_none();
        let (one, other) = (result(), result());
        assert!(keep(&one, 0));
        assert!(keep(&one, 0));
        assert!(!keep(&one, 0));
        // The room is that of all results, but the other readers may be waiting for these.
        assert!(keep(&one, 1));
        assert!(keep(&other, 0));
        assert!(!keep(&other, 0));
        assert_eq!(room.used_bytes(), 4 * 7_200);
        for (shared, number) in [(&one, 0), (&one, 1), (&other, 0)] {
            drop(PartReader { shared: shared.clone(), number, deadline: Deadline::never() });
        }
        assert_eq!(room.used_bytes(), 0);
    }
}
