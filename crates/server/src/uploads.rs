//! The uploads of clients by `DoPut`: a command, and record batches that the statement's thread waits for.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::SchemaRef;
use longshore_core::memory::rows_size;
use longshore_core::{Deadline, Error, Kind, Params, Result, Value};
use longshore_flight_protocol::ipc::{Decoded, Decoder, Fault};
use longshore_flight_protocol::wait;
use longshore_values::parameters;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::room::{Reserved, Room};
use crate::status::{not_flight_sql, status};

/// The batches that wait for the statement.
const AHEAD: usize = 2;

/// The most rows that are handed on at once: of NULLs, a batch may have any number, and take no bytes.
const ROWS: usize = 1 << 16;

/// An upload that has begun.
pub(crate) struct Upload {
    pub(crate) descriptor: FlightDescriptor,
    /// `None` where no data is sent.
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) batches: Incoming,
}

/// The batches of an upload, each of which a thread waits for. It ends after the client's own end.
pub(crate) struct Incoming {
    arriving: mpsc::Receiver<Arrived>,
    /// The rest of a batch.
    rest: Option<RecordBatch>,
    /// That of the statement.
    deadline: Deadline,
}

/// Sets of parameters, and the memory that they take.
pub(crate) struct Bound {
    pub(crate) sets: Vec<Params>,
    _memory: Reserved,
}

/// A batch, or `None` for the client's end.
type Arrived = Result<Option<RecordBatch>>;

impl Iterator for Incoming {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.rest.take().map_or_else(|| self.arrive(), |rest| Ok(Some(rest))) {
            Ok(batch) => batch?,
            Err(error) => return Some(Err(error)),
        };
        let rows = batch.num_rows();
        if rows > ROWS {
            self.rest = Some(batch.slice(ROWS, rows - ROWS));
            return Some(Ok(batch.slice(0, ROWS)));
        }
        Some(Ok(batch))
    }
}

impl Incoming {
    fn arrive(&mut self) -> Arrived {
        // Its task could end without a word.
        wait(&self.deadline, self.arriving.recv())?.unwrap_or_else(|| Err(unreadable()))
    }

    /// The same, which a client that stalls does not keep waiting beyond a deadline.
    pub(crate) fn under(self, deadline: &Deadline) -> Self {
        Self { deadline: deadline.clone(), ..self }
    }

    /// All rows as sets of parameters, as far as there is room; each runs a statement whose text has so many bytes.
    pub(crate) fn bound(self, room: &Arc<Room>, text: usize) -> Result<Bound> {
        let (mut sets, mut memory) = (Vec::new(), Reserved::nothing(room.clone()));
        for batch in self {
            let batch = batch?;
            let row = text + (1 + batch.num_columns()) * size_of::<Value>();
            if !memory.grow(rows_size(&batch) + batch.num_rows() * row) {
                let most = room.most();
                let message = format!("the parameters of prepared statements take more than {most} bytes");
                return Err(Error::new(Kind::Memory, message).with_sqlstate("53200").with_hint(
                    "close statements that are not needed any more, or bind fewer sets at a time",
                ));
            }
            sets.extend(parameters(&batch, false, sets.len() as u64)?);
        }
        Ok(Bound { sets, _memory: memory })
    }

    /// The rows as sets of parameters, some of them at a time.
    pub(crate) fn sets(self) -> impl Iterator<Item = Result<Vec<Params>>> {
        let mut before = 0;
        self.map(move |batch| {
            let sets = batch.and_then(|batch| parameters(&batch, false, before));
            before += sets.as_ref().map_or(0, |sets| sets.len() as u64);
            sets
        })
    }
}

/// The messages of a client, as far as they are read.
struct Messages {
    stream: Streaming<FlightData>,
    decoder: Decoder,
    /// How long the next may take to come.
    idle: Duration,
}

impl Messages {
    async fn next(&mut self) -> Result<Option<FlightData>, Status> {
        let next = tokio::time::timeout(self.idle, self.stream.message()).await;
        next.unwrap_or_else(|_| Err(Status::deadline_exceeded("the client has sent no data for too long")))
    }

    fn decode(&mut self, data: FlightData) -> Result<Decoded> {
        self.decoder.decode(&data.into()).map_err(|fault| match fault {
            Fault::Broken(what) => Error::interface(format!("the client's data cannot be read: {what}")),
            Fault::OutOfMemory(error) => error,
        })
    }

    /// The next batch, or the client's end.
    async fn batch(&mut self) -> Arrived {
        let stopped =
            |status: Status| Error::operational(format!("the client's data stopped: {}", status.message()));
        while let Some(data) = self.next().await.map_err(stopped)? {
            if let Decoded::Batch(batch) = self.decode(data)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

fn unreadable() -> Error {
    Error::operational("the client's data cannot be read")
}

/// Reads an upload to its schema; a message has at most `most` bytes. A client that sends nothing for so long has stalled.
pub(crate) async fn open(
    stream: Streaming<FlightData>,
    most: usize,
    idle: Duration,
) -> Result<Upload, Status> {
    let mut messages = Messages { stream, decoder: Decoder::new(most), idle };
    let mut message = messages.next().await?.ok_or_else(|| not_flight_sql("nothing was sent"))?;
    let descriptor = message.flight_descriptor.take();
    let descriptor = descriptor.ok_or_else(|| not_flight_sql("the first message has no descriptor"))?;
    // A command without data comes alone.
    let schema = loop {
        match messages.decode(message).map_err(status)? {
            Decoded::Schema(schema) => break Some(schema),
            Decoded::Batch(_) => return Err(not_flight_sql("the data does not begin with its schema")),
            Decoded::Nothing => {}
        }
        match messages.next().await? {
            Some(next) => message = next,
            None => break None,
        }
    };
    let (sender, arriving) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        loop {
            let next = messages.batch().await;
            let is_over = !matches!(next, Ok(Some(_)));
            if sender.send(next).await.is_err() || is_over {
                return;
            }
        }
    });
    let batches = Incoming { arriving, rest: None, deadline: Deadline::never() };
    Ok(Upload { descriptor, schema, batches })
}

#[cfg(test)]
mod tests {
    use arrow_array::NullArray;

    use super::*;

    /// An upload of NULLs alone, which take no bytes.
    fn nulls(rows: usize) -> Incoming {
        let batch = RecordBatch::try_from_iter([("n", Arc::new(NullArray::new(rows)) as _)]).unwrap();
        let (sender, arriving) = mpsc::channel(AHEAD);
        sender.try_send(Ok(Some(batch))).unwrap();
        sender.try_send(Ok(None)).unwrap();
        Incoming { arriving, rest: None, deadline: Deadline::never() }
    }

    #[test]
    fn a_batch_of_any_number_of_rows_comes_in_pieces() {
        let mut sets = nulls(1 << 40).sets();
        assert_eq!(sets.next().unwrap().unwrap().len(), ROWS);
        assert_eq!(sets.next().unwrap().unwrap().len(), ROWS);
        let pieces: Vec<usize> = nulls(ROWS + 1).map(|batch| batch.unwrap().num_rows()).collect();
        assert_eq!(pieces, [ROWS, 1]);
    }

    #[test]
    fn parameters_that_are_kept_have_a_limit_together() {
        let room = Room::new(1 << 20);
        let kept = nulls(100).bound(&room, 5_000).unwrap();
        assert_eq!(kept.sets.len(), 100);
        assert!(room.used_bytes() > 500_000);
        for (rows, text) in [(100, 6_000), (1 << 40, 0)] {
            assert_eq!(nulls(rows).bound(&room, text).err().map(|error| error.kind()), Some(Kind::Memory));
        }
        drop(kept);
        assert_eq!(room.used_bytes(), 0);
        assert!(nulls(100).bound(&room, 6_000).is_ok());
    }

    #[test]
    fn a_client_that_stalls_is_not_waited_for_beyond_a_deadline() {
        let (_sender, arriving) = mpsc::channel(AHEAD);
        let deadline = Deadline::never().at_most(Duration::from_millis(1));
        let mut stalled = Incoming { arriving, rest: None, deadline };
        assert_eq!(stalled.next().unwrap().unwrap_err().kind(), Kind::Timeout);
    }
}
