//! Results on their way to a client: a thread takes the batches of a statement, and encodes them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_flight::FlightData;
use arrow_schema::Schema;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use longshore_core::{CancelHandle, Deadline, Error, Kind, Result, lock};
use longshore_flight_protocol::wait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tonic::{Response, Status};

use crate::body::{Encoded, Encoder, Rows};
use crate::context;
use crate::log::Call;
use crate::status::{code, status};

/// The bytes that wait for the socket: no batch is taken from a statement while there are more.
const AHEAD: usize = 4 << 20;

/// The messages of a response for tonic to encode: none, as it has [`Rows`] for a body.
pub(crate) type Messages = stream::Empty<Result<FlightData, Status>>;

/// The calls that run for clients, so that a server that ends can stop them, and a client one of its own.
#[derive(Default)]
pub(crate) struct Running(Mutex<HashMap<u64, RunningCall>>, AtomicU64);

struct RunningCall {
    handle: CancelHandle,
    /// The user and the call's name, where the client has given one.
    caller: Option<(String, String)>,
}

impl Running {
    /// Stops everything.
    pub(crate) fn cancel_all(&self) {
        for call in lock(&self.0).values() {
            call.handle.cancel();
        }
    }

    /// How many calls there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Stops a user's calls of this name; whether there was one.
    pub(crate) fn cancel(&self, user: &str, name: &str) -> bool {
        let is_wanted = |call: &RunningCall| {
            call.caller.as_ref().is_some_and(|(owner, own)| (owner.as_str(), own.as_str()) == (user, name))
        };
        let found: Vec<_> = lock(&self.0).extract_if(|_, call| is_wanted(call)).collect();
        for (_, call) in &found {
            call.handle.cancel();
        }
        !found.is_empty()
    }

    /// A call that is cancelled when its client leaves, or by its name.
    pub(crate) fn begin(self: &Arc<Self>, context: &context::Context) -> Guard {
        let caller = context.call.clone().map(|name| (context.caller.user.clone(), name));
        self.insert(CancelHandle::default(), caller)
    }

    /// The same of what has begun already.
    pub(crate) fn adopt(self: &Arc<Self>, handle: CancelHandle) -> Guard {
        self.insert(handle, None)
    }

    fn insert(self: &Arc<Self>, handle: CancelHandle, caller: Option<(String, String)>) -> Guard {
        let number = self.1.fetch_add(1, Ordering::Relaxed);
        lock(&self.0).insert(number, RunningCall { handle: handle.clone(), caller });
        Guard { handle, number, running: self.clone(), is_armed: true }
    }
}

/// Cancels when it is dropped.
pub(crate) struct Guard {
    handle: CancelHandle,
    number: u64,
    running: Arc<Running>,
    is_armed: bool,
}

impl Guard {
    pub(crate) fn handle(&self) -> CancelHandle {
        self.handle.clone()
    }

    /// Lets go of a call that has ended, or whose result goes on.
    pub(crate) fn disarm(mut self) {
        self.is_armed = false;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.running.0).remove(&self.number);
        if self.is_armed {
            self.handle.cancel();
        }
    }
}

/// Whether there are more rows than a result may have.
pub(crate) fn check_rows(rows: u64, most: Option<u64>) -> Result<()> {
    match most {
        Some(most) if rows > most => {
            Err(Error::new(Kind::Memory, format!("the result has more than {most} rows"))
                .with_sqlstate("54000")
                .with_hint("read a part of it, or have the server's limit raised"))
        }
        _ => Ok(()),
    }
}

/// Frames, and the statement that ends with them.
struct Guarded {
    encoded: Encoded,
    _guard: Guard,
}

impl Stream for Guarded {
    type Item = Result<Vec<Bytes>, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.encoded.as_mut().poll_next(context)
    }
}

/// Frames that wait for the socket, and the room that they take.
type Waiting = (Result<Vec<Bytes>, Status>, Option<OwnedSemaphorePermit>);

/// The messages that wait for the socket, on its side.
struct Queue {
    waiting: mpsc::UnboundedReceiver<Waiting>,
    room: Arc<Semaphore>,
}

impl Queue {
    /// The next frames; the room of those before is free once the socket has taken them, which is when it asks for more.
    async fn next(mut self, before: Option<OwnedSemaphorePermit>) -> Option<Next> {
        drop(before);
        let (frames, room) = self.waiting.recv().await?;
        Some((frames, (self, room)))
    }
}

type Next = (Result<Vec<Bytes>, Status>, (Queue, Option<OwnedSemaphorePermit>));

impl Drop for Queue {
    /// Has no one wait for room any more.
    fn drop(&mut self) {
        self.room.close();
    }
}

/// A response with the rows of one batch.
pub(crate) fn of_batch(batch: &RecordBatch) -> Result<Response<Messages>, Status> {
    let encode = || {
        let (mut encoder, mut frames) = Encoder::begin(&batch.schema())?;
        frames.extend(encoder.encode(batch)?);
        Ok(frames)
    };
    let frames = encode().map_err(status)?;
    Ok(response(Box::pin(stream::iter([Ok(frames)]))))
}

fn response(encoded: Encoded) -> Response<Messages> {
    let mut response = Response::new(stream::empty());
    response.extensions_mut().insert(Rows::new(encoded));
    response
}

/// The batches of a statement on their way to the queue.
struct Filling<B> {
    /// `None` once they have failed.
    batches: Option<B>,
    encoder: Encoder,
    rows: u64,
    most: Option<u64>,
    room: Arc<Semaphore>,
    deadline: Deadline,
}

impl<B: Iterator<Item = Result<RecordBatch>>> Filling<B> {
    /// The frames of the next batch, once less waits for the socket than may; `None` at the end, or where the client has left.
    fn next(&mut self) -> Option<(Result<Vec<Bytes>>, Option<OwnedSemaphorePermit>)> {
        let mut place = match wait(&self.deadline, self.room.clone().acquire_owned()) {
            Ok(place) => place.ok()?,
            Err(error) => return Some((Err(error), None)),
        };
        let batch = self.batches.as_mut()?.next()?;
        let frames = batch.and_then(|batch| {
            self.rows += batch.num_rows() as u64;
            check_rows(self.rows, self.most)?;
            self.encoder.encode(&batch)
        });
        fill(&self.room, &mut place, frames.iter().flatten().map(Bytes::len).sum());
        Some((frames, Some(place)))
    }
}

/// A response with the rows of batches that a thread takes until the client has left, or the deadline of their statement has come.
pub(crate) fn of_rows(
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    most: Option<u64>,
    deadline: Deadline,
    guard: Guard,
    call: Call,
) -> Result<Response<Messages>, Status> {
    let (sender, waiting) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(AHEAD));
    let queue = Queue { waiting, room: room.clone() };
    let (encoder, first) = Encoder::begin(schema).map_err(status)?;
    let mut filling = Filling { batches: Some(batches), encoder, rows: 0, most, room, deadline };
    tokio::task::spawn_blocking(move || {
        while let Some((frames, place)) = filling.next() {
            let code = frames.as_ref().err().map(code);
            if code.is_some() {
                // The session is free again before the client hears of the end.
                filling.batches = None;
            }
            if sender.send((frames.map_err(status), place)).is_err() {
                break;
            }
            if code.is_some() {
                return call.log_end(Some(filling.rows), code);
            }
        }
        filling.batches = None;
        call.log_end(Some(filling.rows), sender.is_closed().then_some(tonic::Code::Cancelled));
    });
    let rest = stream::unfold((queue, None), |(queue, before)| queue.next(before));
    let frames = Box::pin(stream::iter([Ok(first)]).chain(rest));
    Ok(response(Box::pin(Guarded { encoded: frames, _guard: guard })))
}

/// Takes as much room as `bytes` need and there is: a batch may be larger than all of it.
fn fill(room: &Arc<Semaphore>, place: &mut OwnedSemaphorePermit, bytes: usize) {
    let more = u32::try_from(bytes.min(room.available_permits())).unwrap_or(u32::MAX);
    if let Ok(more) = room.clone().try_acquire_many_owned(more) {
        place.merge(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_stops_a_call_of_its_own_by_its_name() {
        let running = Arc::new(Running::default());
        let begun = |user: &str, call: &str| {
            running.insert(CancelHandle::default(), Some((user.to_owned(), call.to_owned())))
        };
        let (first, second, strangers) = (begun("ada", "1"), begun("ada", "2"), begun("eve", "1"));
        assert!(running.cancel("ada", "1") && !running.cancel("ada", "1"));
        assert!(first.handle().is_cancelled());
        assert!(!second.handle().is_cancelled() && !strangers.handle().is_cancelled());
        assert_eq!(running.len(), 2);
        drop((first, second, strangers));
        assert_eq!(running.len(), 0);
    }
}
