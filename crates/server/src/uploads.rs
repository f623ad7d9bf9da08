//! The uploads of clients by `DoPut`: a command, and record batches that the statement's thread waits for.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::SchemaRef;
use futures_util::{StreamExt, TryStreamExt, stream};
use longshore_core::{Error, Params, Result};
use longshore_values::parameters;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::status::malformed;

/// The batches that wait for the statement.
const AHEAD: usize = 2;

/// An upload that has begun.
pub(crate) struct Upload {
    pub(crate) descriptor: FlightDescriptor,
    /// `None` where no data is sent.
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) batches: Incoming,
}

/// The batches of an upload, each of which a thread waits for. It ends after the client's own end.
pub(crate) struct Incoming(mpsc::Receiver<Arrived>);

/// A batch, or `None` for the client's end.
type Arrived = Result<Option<RecordBatch>>;

impl Iterator for Incoming {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        // Its task reads what may be a lie, and could end without a word.
        let unread = || Err(Error::operational("the client's data cannot be read"));
        self.0.blocking_recv().unwrap_or_else(unread).transpose()
    }
}

impl Incoming {
    /// The rows as sets of parameters, a batch of them at a time.
    pub(crate) fn sets(self) -> impl Iterator<Item = Result<Vec<Params>>> {
        let mut before = 0;
        self.map(move |batch| {
            let sets = batch.and_then(|batch| parameters(&batch, false, before));
            before += sets.as_ref().map_or(0, |sets| sets.len() as u64);
            sets
        })
    }
}

/// Reads an upload to its schema. A client that sends nothing for so long has stalled.
pub(crate) async fn open(mut stream: Streaming<FlightData>, idle: Duration) -> Result<Upload, Status> {
    let mut first = stream.message().await?.ok_or_else(|| malformed("nothing was sent"))?;
    let descriptor =
        first.flight_descriptor.take().ok_or_else(|| malformed("the first message has no descriptor"))?;
    // A command without data comes alone.
    let data =
        Some(Ok(first)).filter(|first| first.as_ref().is_ok_and(|first| !first.data_header.is_empty()));
    let messages = stream::iter(data).chain(stream.map_err(FlightError::from));
    let mut decoder = FlightDataDecoder::new(messages);
    let (sender, receiver) = mpsc::channel(AHEAD);
    let schema = match decoder.next().await.transpose().map_err(Status::from)?.map(|decoded| decoded.payload)
    {
        Some(DecodedPayload::Schema(schema)) => Some(schema),
        None => None,
        Some(_) => return Err(malformed("the data does not begin with its schema")),
    };
    tokio::spawn(async move {
        loop {
            let next = match tokio::time::timeout(idle, decoder.next()).await {
                Ok(None) => Ok(None),
                Ok(Some(Ok(message))) => match message.payload {
                    DecodedPayload::RecordBatch(batch) => Ok(Some(batch)),
                    DecodedPayload::None => continue,
                    DecodedPayload::Schema(_) => Err(Error::interface("the data has a second schema")),
                },
                Ok(Some(Err(error))) => {
                    Err(Error::operational(format!("the client's data stopped: {error}")))
                }
                Err(_) => Err(Error::operational("the client has sent no data for too long")),
            };
            let is_over = !matches!(next, Ok(Some(_)));
            if sender.send(next).await.is_err() || is_over {
                return;
            }
        }
    });
    Ok(Upload { descriptor, schema, batches: Incoming(receiver) })
}
