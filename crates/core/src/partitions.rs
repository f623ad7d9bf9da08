//! Partitions: parts of a query as bytes, which other connections to the same database read, of this process or another.
//!
//! See `docs/design/partitions.md`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::agreement::{nullable, under_schema};
use crate::describe::{check_key, no_partitions, on_session, partition, schema_of_one};
use crate::memory::spawn;
use crate::session::without_transaction;
use crate::{
    Batches, CancelHandle, Connection, Deadline, Error, Finaliser, Leasing, Opened, Params, Parts, Process,
    Query, ReadOptions, Result, Session, SessionFactory, Split, SplitPlan, Splitting, Transaction, remedy,
};

/// The bytes that a partition begins with.
const MAGIC: &[u8] = b"longshore partition 1\n";

/// How often a session that keeps a snapshot sees to those that wait for it.
const LOOK: Duration = Duration::from_secs(1);

/// How long it waits for the server when it does: longer than a server takes to look for a deadlock.
const ANSWER: Duration = Duration::from_secs(30);

/// Parts of one query, which together are the query.
pub struct Partitions {
    /// The columns of each part, but for those whose source has no type of its own.
    pub schema: SchemaRef,
    /// The parts, none of which holds a secret of the connection.
    pub parts: Vec<Vec<u8>>,
}

/// A session that keeps a snapshot for the readers of partitions, until its time is over or this is dropped.
pub(crate) struct SnapshotLease {
    /// `None` only while it is dropped, likewise the thread: that ends when nothing can be sent any more.
    end: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
    cancel_handle: CancelHandle,
    /// A forked child has not the thread.
    process: Process,
}

impl SnapshotLease {
    fn new(session: Box<dyn Session>, time: Duration) -> Result<Self> {
        let (sender, end) = mpsc::channel();
        let deadline = Deadline::never();
        let cancel_handle = deadline.cancel_handle();
        let kept = move || keep(session, &end, time, &deadline);
        let thread = spawn(Builder::new().name("longshore-lease".into()), kept)?;
        Ok(Self { end: Some(sender), thread: Some(thread), cancel_handle, process: Process::current() })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for SnapshotLease {
    fn drop(&mut self) {
        let (end, thread) = (self.end.take(), self.thread.take());
        if !self.process.is_current() {
            std::mem::forget((end, thread));
            return;
        }
        self.cancel_handle.cancel();
        drop(end);
        if let Some(thread) = thread {
            // Whatever it has met, the snapshot is no longer kept.
            let _ = thread.join();
        }
    }
}

fn keep(mut session: Box<dyn Session>, end: &Receiver<Infallible>, time: Duration, deadline: &Deadline) {
    let began = Instant::now();
    loop {
        let left = time.saturating_sub(began.elapsed());
        let waited = end.recv_timeout(left.min(LOOK));
        let goes_on = waited == Err(RecvTimeoutError::Timeout) && !left.is_zero();
        session.set_deadline(&deadline.at_most(ANSWER));
        if !goes_on || session.splitting().map_or(Ok(()), Splitting::let_waiters_pass).is_err() {
            break;
        }
    }
    drop(without_transaction(session));
}

/// Divides `query` into partitions. With `options.snapshot` all of them are of one snapshot, which a session of its own keeps
/// for the `time` of its lease, or until the connection is closed.
pub fn execute_partitions(
    connection: &Arc<Connection>,
    query: Query,
    split: &Split,
    options: &ReadOptions,
    time: Duration,
    deadline: &Deadline,
) -> Result<Partitions> {
    if query.params != Params::None {
        return Err(Error::not_supported("partitions have no parameters")
            .with_hint("write the values into the query"));
    }
    // A read that has the session is told below.
    if !matches!(connection.transaction(), None | Some(Transaction::None)) {
        return Err(Error::programming("a transaction is open, whose changes other connections do not see")
            .with_hint("commit or roll back before adbc_execute_partitions"));
    }
    // The query's own errors, and what other sessions would not have, are the connection's own session's to tell.
    let columns = on_session(connection, deadline, |session| {
        if options.snapshot
            && let Some(reason) = leasing(session)?.private_state()?
        {
            return Err(no_partitions(&reason));
        }
        let schema = schema_of_one(session, &query, options)?;
        if let Some(on) = &split.on {
            check_key(&schema, on)?;
        }
        Ok(nullable(&schema))
    })?;
    let (parts, snapshot) = if options.snapshot {
        lease(connection, &query, split, options, time, deadline)?
    } else {
        (partition(connection, query, split, deadline)?, String::new())
    };
    let scheme = connection.scheme();
    let parts = parts.iter().map(|part| pack([&scheme, &snapshot, &part.text])).collect();
    Ok(Partitions { schema: columns, parts })
}

/// The parts of `query` in a snapshot that the connection keeps, and the snapshot.
fn lease(
    connection: &Arc<Connection>,
    query: &Query,
    split: &Split,
    options: &ReadOptions,
    time: Duration,
    deadline: &Deadline,
) -> Result<(Vec<Query>, String)> {
    let mut session = connection.factory().open(deadline)?;
    match leasing(session.as_mut())?.lease(query, split, options)? {
        SplitPlan::Parts(Parts { queries, snapshot: Some(snapshot), .. }) => {
            connection.keep(SnapshotLease::new(session, time)?)?;
            Ok((queries, snapshot))
        }
        SplitPlan::Serial(reason) => Err(no_partitions(&reason)),
        _ => Err(Error::internal("a snapshot was leased without parts")),
    }
}

fn leasing(session: &mut dyn Session) -> Result<&mut dyn Leasing> {
    session.leasing().map_err(|reason| {
        Error::not_supported(format!("partitions cannot be of one snapshot: {reason}"))
            .with_hint("options={\"snapshot\": False} of the cursor, or longshore.snapshot=false, has each be read as the database is then")
    })
}

/// Reads a partition of [`execute_partitions`] over a connection to the same database.
pub fn read_partition(
    connection: &Arc<Connection>,
    bytes: &[u8],
    options: &ReadOptions,
    deadline: &Deadline,
) -> Result<Opened> {
    let [source, snapshot, text] = unpack(bytes).ok_or_else(|| {
        Error::interface("these bytes are not a partition of Longshore's")
            .with_hint("give those of adbc_execute_partitions as they are")
    })?;
    let own = connection.scheme();
    if source != own {
        return Err(Error::interface(format!(
            "the partition is one of {source}, and the connection one of {own}"
        ))
        .with_hint("read it over a connection to the database that it is of"));
    }
    let query = Query::new(text);
    // Not the connection's own session, whose transaction sees something else, and may write.
    let mut session = connection.factory().open(deadline)?;
    if snapshot.is_empty() {
        session.splitting().map_err(|reason| no_partitions(&reason))?.begin_reading(&query)?;
    } else {
        leasing(session.as_mut())?.join_lease(snapshot, &query)?;
    }
    let batches = remedy::read(session, &query, options)?;
    let part = PartBatches { schema: nullable(&batches.schema()), batches: Some(batches) };
    Ok(Opened { batches: Box::new(part), serial: None })
}

/// The batches of one part in a transaction of its own, whose end has something to say, under the schema of all: a part's promises may be stronger.
struct PartBatches {
    schema: SchemaRef,
    /// `None` after the end.
    batches: Option<Box<dyn Batches>>,
}

impl PartBatches {
    fn end(&mut self) -> Result<()> {
        let Some(batches) = self.batches.take() else { return Ok(()) };
        let session = batches.into_session();
        session.ok_or_else(|| Error::internal("the session of a partition was lost at its end"))?.commit()
    }
}

impl Iterator for PartBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.batches.as_mut()?.next() {
            Some(Ok(batch)) => Some(under_schema(&batch, &self.schema)),
            Some(Err(error)) => {
                self.batches = None;
                Some(Err(error))
            }
            None => self.end().err().map(Err),
        }
    }
}

impl Batches for PartBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.batches.as_ref().and_then(|batches| batches.finaliser())
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// The texts, each after its length.
fn pack(texts: [&str; 3]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// The texts of [`pack`]; `None` for other bytes.
fn unpack(bytes: &[u8]) -> Option<[&str; 3]> {
    let mut left = bytes.strip_prefix(MAGIC)?;
    let mut texts = [""; 3];
    for text in &mut texts {
        let (length, after) = left.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (own, after) = after.split_at_checked(length)?;
        (*text, left) = (std::str::from_utf8(own).ok()?, after);
    }
    left.is_empty().then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_a_partition_are_none() {
        let texts = ["postgresql", "", "SELECT 'ä'"];
        let bytes = pack(texts);
        assert_eq!(unpack(&bytes), Some(texts));
        for end in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..end]), None, "{end}");
        }
        assert_eq!(unpack(&[&bytes[..], b" "].concat()), None);
        let mut endless = bytes;
        endless[MAGIC.len()..][..8].fill(0xff);
        assert_eq!(unpack(&endless), None);
    }
}
