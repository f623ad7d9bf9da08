//! Messages of Arrow's IPC format, as a stranger sends them: checked before they are read, as a length may be a lie.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_flight::FlightData;
use arrow_ipc::convert::{try_fb_to_schema, try_schema_from_ipc_buffer};
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Endianness, MessageHeader, root_as_message};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use bytes::Bytes;
use longshore_core::Error;
use longshore_core::memory::{OutOfMemory, check_available};

use crate::texts::{check, unchecked_schema};

/// The boundary at which Arrow's buffers begin.
const ALIGNMENT: usize = 64;

/// The length before a compressed buffer that is not compressed.
const AS_IT_IS: i64 = -1;

/// A message of Arrow's.
#[derive(Default)]
pub struct Message {
    /// Its kind, and where in the body its buffers are.
    pub head: Vec<u8>,
    /// The buffers.
    pub body: Buffer,
}

impl From<FlightData> for Message {
    fn from(data: FlightData) -> Self {
        Self { head: data.data_header.to_vec(), body: align(&data.data_body) }
    }
}

/// Why a message is not read.
#[derive(Debug)]
pub enum Fault {
    /// It is not one of Arrow's, or is not as its head says.
    Broken(String),
    /// It is too large.
    OutOfMemory(Error),
}

impl From<OutOfMemory> for Fault {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error.into())
    }
}

type Result<T, E = Fault> = std::result::Result<T, E>;

/// Reads the messages of one stream in their order.
pub struct Decoder {
    /// That of the rows, and that of the rows before their texts are checked.
    schema: Option<(SchemaRef, SchemaRef)>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// The most bytes that a message may have once it is not compressed any more.
    most: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

/// The content of a message.
pub enum Decoded {
    /// That of the rows to come.
    Schema(SchemaRef),
    /// Rows.
    Batch(RecordBatch),
    /// Metadata, or a dictionary.
    Nothing,
}

impl Decoder {
    /// A decoder of a stream whose messages have at most so many bytes each, before compression.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { schema: None, dictionaries: HashMap::new(), most }
    }

    /// Reads a message.
    pub fn decode(&mut self, data: &Message) -> Result<Decoded> {
        // What the checks below leave open must not end the caller.
        let read = catch_unwind(AssertUnwindSafe(|| self.read(data)));
        read.unwrap_or_else(|_| Err(protocol_error("a message is not one of Arrow's")))
    }

    fn read(&mut self, data: &Message) -> Result<Decoded> {
        if data.head.is_empty() {
            return Ok(Decoded::Nothing);
        }
        let message = root_as_message(&data.head)
            .map_err(|error| protocol_error(format_args!("the head of a message: {error}")))?;
        match (message.header_type(), &self.schema) {
            (MessageHeader::NONE, _) => Ok(Decoded::Nothing),
            (MessageHeader::Schema, None) => {
                let schema = Arc::new(schema_of(&message)?);
                self.schema = Some((schema.clone(), unchecked_schema(&schema)));
                Ok(Decoded::Schema(schema))
            }
            (MessageHeader::Schema, Some(_)) => Err(protocol_error("a stream has a second schema")),
            (MessageHeader::DictionaryBatch, Some((schema, _))) => {
                let batch = message.header_as_dictionary_batch();
                let batch = batch.ok_or_else(|| protocol_error("a dictionary without its head"))?;
                check_buffers(batch.data(), &data.body, self.most)?;
                read_dictionary(&data.body, batch, schema, &mut self.dictionaries, &message.version())
                    .map_err(|error| unreadable(&error))?;
                Ok(Decoded::Nothing)
            }
            (MessageHeader::RecordBatch, Some((schema, unchecked))) => {
                let batch = message.header_as_record_batch();
                let batch = batch.ok_or_else(|| protocol_error("a batch without its head"))?;
                check_buffers(Some(batch), &data.body, self.most)?;
                let version = message.version();
                RecordBatchDecoder::try_new(
                    &data.body,
                    batch,
                    unchecked.clone(),
                    &self.dictionaries,
                    &version,
                )
                .and_then(RecordBatchDecoder::read_record_batch)
                .and_then(|batch| check(schema, &batch))
                .map(Decoded::Batch)
                .map_err(|error| unreadable(&error))
            }
            (MessageHeader::DictionaryBatch | MessageHeader::RecordBatch, None) => {
                Err(protocol_error("rows come before their schema"))
            }
            (other, _) => Err(protocol_error(format_args!(
                "a message of the kind {}",
                other.variant_name().unwrap_or("unknown")
            ))),
        }
    }
}

/// The schema that a message tells of beforehand; `None` where it tells none.
pub fn declared_schema(schema: &[u8]) -> Result<Option<SchemaRef>> {
    if schema.is_empty() {
        return Ok(None);
    }
    let read = catch_unwind(|| try_schema_from_ipc_buffer(schema));
    match read {
        Ok(Ok(schema)) => Ok(Some(Arc::new(schema))),
        Ok(Err(error)) => Err(unreadable(&error)),
        Err(_) => Err(protocol_error("a schema is not one of Arrow's")),
    }
}

fn schema_of(message: &arrow_ipc::Message<'_>) -> Result<Schema> {
    let schema = message.header_as_schema().ok_or_else(|| protocol_error("a schema without its head"))?;
    if schema.endianness() != Endianness::Little {
        return Err(protocol_error("its numbers begin with their highest byte (big-endian)"));
    }
    try_fb_to_schema(schema).map_err(|error| unreadable(&error))
}

/// The body where Arrow's buffers may lie: a message begins anywhere.
fn align(body: &Bytes) -> Buffer {
    if body.as_ptr().align_offset(ALIGNMENT) == 0 {
        Buffer::from(body.clone())
    } else {
        Buffer::from(&body[..])
    }
}

/// Checks that a batch has rows, or none, that its buffers lie in its body, and that there is room for what they are before
/// compression: at most so many bytes.
fn check_buffers(batch: Option<arrow_ipc::RecordBatch<'_>>, body: &Buffer, most: usize) -> Result<()> {
    let Some(batch) = batch else { return Err(protocol_error("a dictionary without values")) };
    if batch.length() < 0 {
        return Err(protocol_error(format_args!("a batch of {} rows", batch.length())));
    }
    let mut expanded = 0_usize;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = range.and_then(|(start, length)| body.get(start..start.checked_add(length)?));
        let bytes = bytes.ok_or_else(|| protocol_error("a buffer does not lie in its message"))?;
        if batch.compression().is_some()
            && let Some(length) = bytes.first_chunk()
        {
            let length = i64::from_le_bytes(*length);
            let length = if length == AS_IT_IS { 0 } else { length };
            let length =
                usize::try_from(length).map_err(|_| protocol_error("a compressed buffer's length"))?;
            expanded = expanded.saturating_add(length);
        }
    }
    if expanded > most {
        return Err(protocol_error(format_args!(
            "a message has {expanded} bytes unpacked, and the limit is {most}"
        )));
    }
    Ok(check_available(expanded)?)
}

fn unreadable(error: &ArrowError) -> Fault {
    protocol_error(format_args!("a message is not as its head says: {error}"))
}

fn protocol_error(what: impl std::fmt::Display) -> Fault {
    Fault::Broken(what.to_string())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int64Array, StringArray};
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::IpcWriteOptions;
    use arrow_schema::Field;
    use futures::{StreamExt, executor::block_on};

    use super::*;

    /// The messages of a batch with numbers, texts and labels.
    fn messages(compression: Option<CompressionType>) -> Vec<FlightData> {
        let labels: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            Arc::new(StringArray::from(vec![Some("one"), None, Some("three")])),
            Arc::new(labels),
        ];
        let field =
            |(at, column): (usize, &ArrayRef)| Field::new(at.to_string(), column.data_type().clone(), true);
        let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let encoder = arrow_flight::encode::FlightDataEncoderBuilder::new()
            .with_options(options)
            .with_dictionary_handling(arrow_flight::encode::DictionaryHandling::Resend)
            .build(futures::stream::iter([Ok(batch)]));
        block_on(encoder.map(Result::unwrap).collect())
    }

    #[test]
    fn a_byte_that_is_another_is_an_error_or_another_value() {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let whole = messages(compression);
            let mut read = 0;
            for (at, message) in whole.iter().enumerate() {
                for (is_head, bytes) in [(true, &message.data_header), (false, &message.data_body)] {
                    for byte in 0..bytes.len() {
                        let mut changed = bytes.to_vec();
                        changed[byte] ^= 0x81;
                        let mut lie = message.clone();
                        *(if is_head { &mut lie.data_header } else { &mut lie.data_body }) = changed.into();
                        let mut decoder = Decoder::default();
                        let before = whole[..at]
                            .iter()
                            .try_for_each(|data| decoder.decode(&data.clone().into()).map(drop));
                        before.unwrap();
                        read += usize::from(decoder.decode(&lie.into()).is_ok());
                    }
                }
            }
            assert!(read > 0, "{compression:?}");
        }
    }

    #[test]
    fn rows_before_their_schema_and_a_second_schema_are_refused() {
        let whole = messages(None);
        assert!(Decoder::default().decode(&whole.last().unwrap().clone().into()).is_err());
        let mut decoder = Decoder::default();
        assert!(matches!(decoder.decode(&whole[0].clone().into()), Ok(Decoded::Schema(_))));
        assert!(decoder.decode(&whole[0].clone().into()).is_err());
    }
}
