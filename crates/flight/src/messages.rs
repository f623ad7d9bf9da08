//! The messages of a stream, off the connection: the body of each is copied once, to where Arrow may have it.
//!
//! tonic gathers a message first, and its body is wherever the message has it, so that it would be copied twice.

use std::pin::Pin;

use arrow_buffer::MutableBuffer;
use arrow_flight::{FlightData, Ticket};
use arrow_schema::SchemaRef;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use longshore_core::Error;
use longshore_core::memory::check_available;
use longshore_flight_protocol::ipc::{self, Message};
use prost::Message as _;
use tonic::codec::{CompressionEncoding, DecodeBuf, Decoder};
use tonic::{Code, Request, Response, Status, Streaming};
use tower_service::Service;

use crate::error::unreadable;
use crate::link::Link;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
/// The codings of messages, as a header has them: see [`CompressionEncoding`].
const ACCEPTED: &str = "grpc-accept-encoding";
const ENCODING: &str = "grpc-encoding";

/// A message's numbers of Protocol Buffers: its head and its body.
const HEAD: u64 = 2;
const BODY: u64 = 1000;

/// The most bytes that a number of Protocol Buffers has.
const LONGEST: u32 = 10;

/// The messages behind a ticket.
pub(crate) enum Messages {
    Plain(Plain),
    /// Those that are compressed, each as a whole, or that came with a status of HTTP's.
    Other(Box<Streaming<FlightData>>),
}

/// Frames of HTTP/2, and how far they are read.
pub(crate) struct Plain {
    body: Incoming,
    /// The rest of a frame.
    rest: Bytes,
    trailers: Option<HeaderMap>,
    most: usize,
}

/// tonic's codec for what it reads.
struct Whole;

impl Decoder for Whole {
    type Item = FlightData;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<FlightData>, Status> {
        FlightData::decode(bytes).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// Asks for the messages behind a ticket, of which none has more than `most` bytes.
pub(crate) async fn get(
    mut link: Link,
    origin: Uri,
    request: Request<Ticket>,
    most: usize,
) -> Result<Response<Messages>, Status> {
    let (metadata, _, ticket) = request.into_parts();
    let mut asked = http::Request::new(tonic::body::Body::new(Full::new(frame(&ticket))));
    *asked.method_mut() = http::Method::POST;
    *asked.uri_mut() = at(origin)?;
    let headers = asked.headers_mut();
    *headers = metadata.into_headers();
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(ACCEPTED, HeaderValue::from_static("zstd,gzip,identity"));
    std::future::poll_fn(|context| link.poll_ready(context)).await.map_err(failure)?;
    let (head, body) = link.call(asked).await.map_err(failure)?.into_parts();
    if let Some(status) = Status::from_header_map(&head.headers).filter(|status| status.code() != Code::Ok) {
        return Err(status);
    }
    let messages = match (head.status, encoding(&head.headers)?) {
        (StatusCode::OK, None) => {
            // One that has ended at once has its status here.
            let trailers = head.headers.contains_key(Status::GRPC_STATUS).then(|| head.headers.clone());
            Messages::Plain(Plain { body, rest: Bytes::new(), trailers, most })
        }
        (status, encoding) => {
            Messages::Other(Box::new(Streaming::new_response(Whole, body, status, encoding, Some(most))))
        }
    };
    let mut response = Response::new(messages);
    *response.metadata_mut() = tonic::metadata::MetadataMap::from_headers(head.headers);
    Ok(response)
}

impl Messages {
    /// The next; `None` after the status that ends the stream well.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, Status> {
        match self {
            Self::Plain(plain) => plain.next().await,
            Self::Other(stream) => Ok(stream.message().await?.map(Message::from)),
        }
    }
}

impl Plain {
    async fn next(&mut self) -> Result<Option<Message>, Status> {
        if !self.has_more().await? {
            return self.outcome().map(|()| None);
        }
        if self.byte().await? != 0 {
            return Err(Status::internal("a message is compressed, and the stream does not say how"));
        }
        let mut length = [0; 4];
        for byte in &mut length {
            *byte = self.byte().await?;
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.most {
            let most = self.most;
            return Err(Status::out_of_range(format!(
                "a message length too large: {length} bytes, and the limit is {most}"
            )));
        }
        let mut message = Message::default();
        let mut left = length as u64;
        while left > 0 {
            self.field(&mut left, &mut message).await?;
        }
        Ok(Some(message))
    }

    /// Reads a field of a message of which so much is left.
    async fn field(&mut self, left: &mut u64, message: &mut Message) -> Result<(), Status> {
        let key = self.number(left).await?;
        let length = match key & 7 {
            0 => return self.number(left).await.map(drop),
            1 => 8,
            2 => self.number(left).await?,
            5 => 4,
            kind => return Err(Status::internal(format!("a message has a field of the kind {kind}"))),
        };
        *left = left.checked_sub(length).ok_or_else(outside)?;
        let length = usize::try_from(length).map_err(|_| outside())?;
        match (key >> 3, key & 7) {
            (HEAD, 2) => {
                message.head.clear();
                let head = &mut message.head;
                self.take(length, |bytes| head.extend_from_slice(bytes)).await
            }
            (BODY, 2) => {
                check_available(length).map_err(|_| Status::resource_exhausted("no memory for a message"))?;
                let mut body = MutableBuffer::with_capacity(length);
                populate(body.as_mut_ptr(), length);
                self.take(length, |bytes| body.extend_from_slice(bytes)).await?;
                message.body = body.into();
                Ok(())
            }
            _ => self.take(length, |_| {}).await,
        }
    }

    /// Hands `length` bytes over.
    async fn take(&mut self, mut length: usize, mut to: impl FnMut(&[u8])) -> Result<(), Status> {
        while length > 0 {
            if !self.has_more().await? {
                return Err(self.cut());
            }
            let size = length.min(self.rest.len());
            to(&self.rest[..size]);
            self.rest.advance(size);
            length -= size;
        }
        Ok(())
    }

    async fn number(&mut self, left: &mut u64) -> Result<u64, Status> {
        let mut number = 0;
        for place in 0..LONGEST {
            *left = left.checked_sub(1).ok_or_else(outside)?;
            let byte = self.byte().await?;
            number |= u64::from(byte & 127) << (7 * place);
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(outside())
    }

    async fn byte(&mut self) -> Result<u8, Status> {
        if self.has_more().await? { Ok(self.rest.get_u8()) } else { Err(self.cut()) }
    }

    /// Waits for bytes; whether there are any before the stream's end.
    async fn has_more(&mut self) -> Result<bool, Status> {
        while self.rest.is_empty() {
            let frame = std::future::poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let Some(frame) = frame else { return Ok(false) };
            match frame.map_err(failure)?.into_data() {
                Ok(data) => self.rest = data,
                Err(other) => self.trailers = other.into_trailers().ok().or(self.trailers.take()),
            }
        }
        Ok(true)
    }

    /// How the stream has ended.
    fn outcome(&self) -> Result<(), Status> {
        match self.trailers.as_ref().and_then(Status::from_header_map) {
            Some(status) if status.code() == Code::Ok => Ok(()),
            Some(status) => Err(status),
            None => Err(Status::unknown("the stream has ended without a status: it may have been cut")),
        }
    }

    /// The error of an end within a message: the server's, where it tells one.
    fn cut(&self) -> Status {
        self.outcome().err().unwrap_or_else(|| Status::internal("the stream has ended within a message"))
    }
}

/// The schema that a server tells of before its rows; `None` where it tells none.
pub(crate) fn declared_schema(schema: &[u8]) -> Result<Option<SchemaRef>, Error> {
    ipc::declared_schema(schema).map_err(unreadable)
}

/// Has the system give the pages of memory that is about to be written at once: one fault for each would be half of what they cost.
/// Memory that the allocator has kept of an earlier message has its pages: the last one tells, and to look for all takes time, too.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn populate(memory: *mut u8, length: usize) {
    const PAGE: usize = 4096;
    const SOME: usize = 16 * PAGE;
    if length < SOME {
        return;
    }
    let before = memory.align_offset(PAGE);
    let pages = (length - before) / PAGE;
    let first = memory.wrapping_add(before);
    let mut is_there = 0_u8;
    // SAFETY: the pages lie in the memory, of which nothing is written: mincore(2) tells of the last one, and the advice
    // (madvise(2)) changes no bytes; both may be refused.
    unsafe {
        let known = libc::mincore(first.wrapping_add((pages - 1) * PAGE).cast(), PAGE, &raw mut is_there);
        if known != 0 || is_there & 1 == 0 {
            libc::madvise(first.cast(), length - before, libc::MADV_POPULATE_WRITE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn populate(_: *mut u8, _: usize) {}

fn at(origin: Uri) -> Result<Uri, Status> {
    let mut parts = origin.into_parts();
    parts.path_and_query = Some(http::uri::PathAndQuery::from_static(DO_GET));
    Uri::from_parts(parts).map_err(|error| Status::internal(error.to_string()))
}

/// A message as gRPC has it: whether it is compressed, its length, and its bytes.
fn frame(ticket: &Ticket) -> Bytes {
    let length = u32::try_from(ticket.encoded_len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&ticket.encode_to_vec());
    bytes.into()
}

/// How the messages are compressed.
fn encoding(headers: &HeaderMap) -> Result<Option<CompressionEncoding>, Status> {
    match headers.get(ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(None),
        Some(b"gzip") => Ok(Some(CompressionEncoding::Gzip)),
        Some(b"zstd") => Ok(Some(CompressionEncoding::Zstd)),
        Some(_) => Err(Status::unimplemented("the messages are compressed in a way that was not asked for")),
    }
}

fn failure(error: hyper::Error) -> Status {
    Status::from_error(error.into())
}

fn outside() -> Status {
    Status::internal("a field lies outside its message")
}
