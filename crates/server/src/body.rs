//! Rows on their way to the socket in the buffers that Arrow has them in.
//!
//! tonic's codecs copy a message into one buffer, of which its body has been made by a copy before. Here each large buffer is a
//! frame of its own; what is small is gathered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamEncoder;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{ArrowError, Schema};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::Stream;
use http_body::Frame;
use longshore_core::memory::rows_size;
use longshore_core::{Error, Result, lock};
use prost::encoding::{WireType, encode_key, encode_varint};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

/// The bytes of a message that clients take without being told to, about.
const MESSAGE: usize = 2 << 20;
/// The bytes from which on a buffer is a frame of its own.
const LARGE: usize = 16 << 10;

/// The numbers of a message's head and body in `FlightData`.
const HEAD: u32 = 2;
const BODY: u32 = 1000;

/// The lengths of the prefixes of a message in Arrow's stream format, and of one in gRPC's.
const ARROW_PREFIX: usize = 8;
const GRPC_PREFIX: usize = 5;

/// Batches of one schema as frames.
pub(crate) struct Encoder {
    arrow: StreamEncoder,
}

impl Encoder {
    /// The encoder, and the frames of the schema.
    pub(crate) fn begin(schema: &Schema) -> Result<(Self, Vec<Bytes>)> {
        let begin = || {
            // An encoder tells the schema with its first batch, or at its end.
            let told = StreamEncoder::try_new(schema)?.finish()?;
            Ok((Self { arrow: StreamEncoder::try_new(schema)? }, frames(told, true)?))
        };
        begin().map_err(|error| unsent(&error))
    }

    /// The frames of a batch.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        let mut all = Vec::new();
        let most = (batch.num_rows() / rows_size(batch).div_ceil(MESSAGE).max(1)).max(1);
        for start in (0..batch.num_rows()).step_by(most) {
            let part = batch.slice(start, most.min(batch.num_rows() - start));
            let sent = self.arrow.encode(&part).and_then(|buffers| frames(buffers, false));
            all.extend(sent.map_err(|error| unsent(&error))?);
        }
        Ok(all)
    }
}

fn unsent(error: &ArrowError) -> Error {
    Error::internal(format!("rows that cannot be sent: {error}"))
}

/// The messages of Arrow's stream format, but for the end and, unless it is wanted, the schema, as frames of gRPC.
fn frames(buffers: Vec<arrow_buffer::Buffer>, has_schema: bool) -> Result<Vec<Bytes>, ArrowError> {
    let mut stream = Pieces(buffers.into_iter().map(Bytes::from_owner).collect());
    let mut frames = Frames::default();
    while let Some(head) = stream.head() {
        let message = root_as_message(&head).map_err(|error| ArrowError::IpcError(error.to_string()))?;
        let is_schema = message.header_type() == MessageHeader::Schema;
        let length = usize::try_from(message.bodyLength()).unwrap_or_default();
        if has_schema || !is_schema {
            frames.begin(&head, length);
            stream.take(length, |piece| frames.push(piece));
        }
    }
    Ok(frames.end())
}

/// A stream in pieces.
struct Pieces(VecDeque<Bytes>);

impl Pieces {
    fn take(&mut self, mut length: usize, mut to: impl FnMut(Bytes)) {
        while length > 0
            && let Some(piece) = self.0.front_mut()
        {
            let part = piece.split_to(length.min(piece.len()));
            if piece.is_empty() {
                self.0.pop_front();
            }
            length -= part.len();
            to(part);
        }
    }

    fn gather(&mut self, length: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(length);
        self.take(length, |piece| all.extend_from_slice(&piece));
        all
    }

    /// The head of the next message; `None` at the end.
    fn head(&mut self) -> Option<Vec<u8>> {
        let prefix = self.gather(ARROW_PREFIX);
        let mut length = prefix.get(ARROW_PREFIX / 2..)?;
        let length = length.try_get_u32_le().ok().filter(|length| *length > 0)?;
        Some(self.gather(usize::try_from(length).ok()?))
    }
}

/// Frames in the making.
#[derive(Default)]
struct Frames {
    done: Vec<Bytes>,
    open: BytesMut,
}

impl Frames {
    /// Begins a message of gRPC with a body of so many bytes.
    fn begin(&mut self, head: &[u8], body: usize) {
        let mut fields = Vec::with_capacity(head.len() + 32);
        encode_key(HEAD, WireType::LengthDelimited, &mut fields);
        encode_varint(head.len() as u64, &mut fields);
        fields.extend_from_slice(head);
        if body > 0 {
            encode_key(BODY, WireType::LengthDelimited, &mut fields);
            encode_varint(body as u64, &mut fields);
        }
        self.open.reserve(GRPC_PREFIX + fields.len());
        // It is not compressed.
        self.open.put_u8(0);
        self.open.put_u32(u32::try_from(fields.len() + body).unwrap_or(u32::MAX));
        self.open.extend_from_slice(&fields);
    }

    fn push(&mut self, piece: Bytes) {
        if piece.len() < LARGE {
            return self.open.extend_from_slice(&piece);
        }
        self.close();
        self.done.push(piece);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push(self.open.split().freeze());
        }
    }

    fn end(mut self) -> Vec<Bytes> {
        self.close();
        self.done
    }
}

pub(crate) type Encoded = Pin<Box<dyn Stream<Item = Result<Vec<Bytes>, Status>> + Send>>;

/// A response's rows; among its extensions until [`Direct`] makes them its body.
#[derive(Clone)]
pub(crate) struct Rows(Arc<Mutex<Option<Encoded>>>);

impl Rows {
    pub(crate) fn new(encoded: Encoded) -> Self {
        Self(Arc::new(Mutex::new(Some(encoded))))
    }
}

/// Rows as a body, which ends with gRPC's status.
struct Sending {
    ready: VecDeque<Bytes>,
    /// `None` once they have ended.
    encoded: Option<Encoded>,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            let Some(encoded) = &mut self.encoded else { return Poll::Ready(None) };
            let status = match ready!(encoded.as_mut().poll_next(context)) {
                Some(Ok(frames)) => {
                    self.ready = frames.into();
                    continue;
                }
                Some(Err(status)) => status,
                None => Status::ok(""),
            };
            self.encoded = None;
            let mut trailers = http::HeaderMap::new();
            return Poll::Ready(Some(status.add_header(&mut trailers).map(|()| Frame::trailers(trailers))));
        }
    }
}

/// A service of tonic's, some of whose responses have [`Rows`] for a body.
#[derive(Clone)]
pub(crate) struct Direct<S>(pub(crate) S);

impl<S: NamedService> NamedService for Direct<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Direct<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async {
            let mut response = answer.await?;
            let rows = response.extensions_mut().remove::<Rows>();
            if let Some(encoded) = rows.and_then(|rows| lock(&rows.0).take()) {
                let sending = Sending { ready: VecDeque::new(), encoded: Some(encoded) };
                *response.body_mut() = Body::new(sending);
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, StringArray};
    use arrow_flight::FlightData;
    use arrow_flight::decode::FlightRecordBatchStream;
    use arrow_schema::Field;
    use futures_util::{StreamExt, stream};
    use prost::Message;

    use super::*;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let field = |column: &ArrayRef| Field::new("c", column.data_type().clone(), true);
        RecordBatch::try_new(Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>())), columns)
            .unwrap()
    }

    fn rows() -> RecordBatch {
        let labels: DictionaryArray<Int32Type> =
            (0..300_000).map(|row| ["a", "b", "c"].get(row % 4)).map(Option::<&&str>::copied).collect();
        let texts: StringArray =
            (0..300_000).map(|row| (row % 3 > 0).then(|| format!("row {row}"))).collect();
        batch(vec![Arc::new(Int64Array::from_iter_values(0..300_000)), Arc::new(texts), Arc::new(labels)])
    }

    /// The messages of gRPC in frames.
    fn messages(frames: &[Bytes]) -> Vec<FlightData> {
        let mut bytes: Bytes = frames.concat().into();
        let mut all = Vec::new();
        while bytes.has_remaining() {
            assert_eq!(bytes.get_u8(), 0);
            let length = bytes.get_u32() as usize;
            all.push(FlightData::decode(bytes.split_to(length)).unwrap());
        }
        all
    }

    fn read(messages: Vec<FlightData>) -> Vec<RecordBatch> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let stream =
            FlightRecordBatchStream::new_from_flight_data(stream::iter(messages.into_iter().map(Ok)));
        runtime.block_on(stream.map(Result::unwrap).collect())
    }

    #[test]
    fn batches_arrive_as_they_are_in_messages_that_clients_take() {
        let rows = rows();
        let (mut encoder, mut frames) = Encoder::begin(&rows.schema()).unwrap();
        // A slice has its own size, and begins within a byte of the bits that tell of NULLs.
        let parts = [rows.clone(), rows.slice(0, 0), rows.slice(299_991, 9), rows.slice(3, 200_001)];
        for part in &parts {
            frames.extend(encoder.encode(part).unwrap());
        }
        let messages = messages(&frames);
        assert!(messages.iter().all(|message| message.data_body.len() < 2 * MESSAGE));
        let mut found = read(messages).into_iter();
        for part in parts {
            let mut at = 0;
            while at < part.num_rows() {
                let next = found.next().unwrap();
                assert_eq!(next, part.slice(at, next.num_rows()));
                at += next.num_rows();
            }
        }
        assert!(found.next().is_none());
    }

    #[test]
    fn large_buffers_are_not_copied() {
        let rows = batch(vec![Arc::new(Int64Array::from_iter_values(0..100_000))]);
        let (mut encoder, _) = Encoder::begin(&rows.schema()).unwrap();
        let values = rows.column(0).to_data().buffers()[0].as_ptr();
        assert!(encoder.encode(&rows).unwrap().iter().any(|frame| frame.as_ptr() == values));
    }

    #[test]
    fn a_result_without_rows_has_a_schema() {
        let rows = rows().slice(0, 0);
        let (_, frames) = Encoder::begin(&rows.schema()).unwrap();
        let messages = messages(&frames);
        assert_eq!(messages.len(), 1);
        let schema = Schema::try_from(&messages[0]).unwrap();
        assert_eq!(schema.fields(), rows.schema().fields());
    }
}
