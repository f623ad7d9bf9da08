//! Results that wait for their clients, whole or in parts: queues that one execution fills, each of which is read once.
//!
//! Batches go round to the queues. What does not fit into memory waits in files without a name, up to a quota.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use longshore_core::{Batches, CancelHandle, Deadline, Error, Kind, Result, locked};

use crate::engine::Rows;
use crate::results::check_rows;

/// How long a batch waits for a reader that is slow before it goes to the disk.
const PATIENT: Duration = Duration::from_millis(50);

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

/// What the parts of a result may take together.
#[derive(Clone, Copy)]
pub(crate) struct Quota {
    pub(crate) memory: usize,
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
    /// The bytes in memory and in files, of all queues.
    memory: usize,
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
    waiting: VecDeque<RecordBatch>,
    /// What has come after those, while memory was full: each batch's place in the file, and its length.
    spilled: VecDeque<(u64, usize)>,
    file: Option<File>,
    length: u64,
    /// Whether its reader is gone.
    is_closed: bool,
}

/// The reader of one part.
pub(crate) struct PartReader {
    shared: Arc<Shared>,
    number: usize,
    /// That of the call which reads it.
    deadline: Deadline,
}

/// Divides `rows` into so many parts; a thread of its own runs the statement to its end.
pub(crate) fn divided(rows: Rows, count: usize, quota: Quota) -> Result<Vec<Part>> {
    let queues =
        Queues { each: (0..count).map(|_| Queue::default()).collect(), memory: 0, disk: 0, end: None };
    let (queues, changed) = (Mutex::new(queues), Condvar::new());
    let shared = Arc::new(Shared { queues, changed, cancel: rows.cancel.clone() });
    let filled = shared.clone();
    let fill = move || {
        let ended = filled.fill(rows.batches, quota);
        locked(&filled.queues).end = Some(match ended {
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
    Ok((0..count).map(reader).collect())
}

impl Shared {
    fn fill(&self, batches: Box<dyn Batches>, quota: Quota) -> Result<()> {
        let (mut rows, mut number) = (0, 0);
        for batch in batches {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            check_rows(rows, quota.rows)?;
            let mut queues = locked(&self.queues);
            if queues.each.iter().all(|queue| queue.is_closed) {
                return Err(Error::new(Kind::Cancelled, "no one reads the parts of the result any more"));
            }
            number = (number + 1) % queues.each.len();
            if queues.each[number].is_closed {
                continue;
            }
            let size = batch.get_array_memory_size();
            queues = self.with_room(queues, size, quota);
            queues.push(number, batch, size, quota)?;
            drop(queues);
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Waits a little for room in memory.
    fn with_room<'a>(
        &self,
        mut queues: MutexGuard<'a, Queues>,
        size: usize,
        quota: Quota,
    ) -> MutexGuard<'a, Queues> {
        let since = Instant::now();
        while queues.memory > 0 && queues.memory + size > quota.memory && since.elapsed() < PATIENT {
            let left = PATIENT.saturating_sub(since.elapsed());
            queues = self.changed.wait_timeout(queues, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queues
    }
}

impl Queues {
    fn push(&mut self, number: usize, batch: RecordBatch, size: usize, quota: Quota) -> Result<()> {
        let is_full = self.memory > 0 && self.memory + size > quota.memory;
        let queue = &mut self.each[number];
        if !is_full && queue.spilled.is_empty() {
            queue.waiting.push_back(batch);
            self.memory += size;
            return Ok(());
        }
        let bytes = encoded(&batch)?;
        self.disk += bytes.len() as u64;
        if self.disk > quota.disk {
            return Err(Error::new(
                Kind::Memory,
                format!("the parts that no one has read take more than {} bytes", quota.disk),
            )
            .with_sqlstate("53100")
            .with_hint("read all parts at the same time, or ask for fewer rows"));
        }
        queue.spill(&bytes).map_err(|error| spilling(&error))
    }
}

impl Queue {
    fn spill(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile()?),
        };
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(bytes)?;
        self.spilled.push_back((self.length, bytes.len()));
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The bytes of the first batch in the file.
    fn taken(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let (Some((place, length)), Some(file)) = (self.spilled.pop_front(), &mut self.file) else {
            return Ok(None);
        };
        let mut bytes = vec![0; length];
        file.seek(SeekFrom::Start(place))?;
        file.read_exact(&mut bytes)?;
        if self.spilled.is_empty() {
            // The room is given back.
            file.set_len(0)?;
            self.length = 0;
        }
        Ok(Some(bytes))
    }
}

fn spilling(error: &std::io::Error) -> Error {
    Error::operational(format!("the parts of a result cannot wait on the disk: {error}"))
        .with_sqlstate("53100")
}

fn encoded(batch: &RecordBatch) -> Result<Vec<u8>> {
    let broken = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(broken)?;
    writer.write(batch).map_err(broken)?;
    writer.into_inner().map_err(broken)
}

fn decoded(bytes: &[u8]) -> Result<RecordBatch> {
    let broken = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let mut reader = StreamReader::try_new(bytes, None).map_err(broken)?;
    reader.next().ok_or_else(|| Error::internal("a batch has gone on the disk"))?.map_err(broken)
}

impl PartReader {
    /// Reads under the deadline of a call.
    pub(crate) fn under(mut self, deadline: Deadline) -> Self {
        self.deadline = deadline;
        self
    }

    fn next_batch(&self) -> Result<Option<RecordBatch>> {
        let mut queues = locked(&self.shared.queues);
        loop {
            let queue = &mut queues.each[self.number];
            if let Some(batch) = queue.waiting.pop_front() {
                queues.memory -= batch.get_array_memory_size();
                drop(queues);
                self.shared.changed.notify_all();
                return Ok(Some(batch));
            }
            if let Some(bytes) = queue.taken().map_err(|error| spilling(&error))? {
                queues.disk -= bytes.len() as u64;
                drop(queues);
                return decoded(&bytes).map(Some);
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
        let mut queues = locked(&self.shared.queues);
        let Queue { waiting, file, .. } = std::mem::take(&mut queues.each[self.number]);
        queues.memory -= waiting.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
        queues.each[self.number].is_closed = true;
        if queues.each.iter().all(|queue| queue.is_closed) {
            self.shared.cancel.cancel();
        }
        drop(queues);
        self.shared.changed.notify_all();
        drop((waiting, file));
    }
}
