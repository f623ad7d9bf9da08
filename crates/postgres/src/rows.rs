//! A result's messages: the first pass, which finds each cell of a chunk of rows, and the result's end.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use longshore_core::memory::Budget;
use longshore_core::{
    Error, Finalised, Finaliser, NATIVE_TYPE, Place, ReadOptions, Result, Session, Transaction,
    finalise_columns, has_deferred,
};
use longshore_source::rows::{RowWire, Rows, Stop};
use longshore_values::{Assembly, Span, Spans};

use crate::columns::ResultColumn;
use crate::connection::message::{Frame, HEADER, Reader, frame, protocol_error, unexpected_message};
use crate::decode::finalise;
use crate::session::PostgresSession;
use crate::types::Format;

/// The SQLSTATE of bytes that are not in the encoding that they should have.
const UNREADABLE: &str = "22021";

/// Rows of a batch whose decimals are finalised later: its cells and its decimals are there at once.
const DEFERRED_ROWS: usize = 1 << 16;

/// The reader of a result's rows into record batches.
#[derive(Debug)]
pub(crate) struct RowReader {
    pub(crate) assembly: Assembly,
    formats: Vec<Format>,
    pub(crate) options: ReadOptions,
}

impl RowReader {
    pub(crate) fn new(columns: Vec<ResultColumn>, options: &ReadOptions) -> Result<Self> {
        let readers = columns.iter().map(|column| column.reader(options)).collect::<Result<Vec<_>>>()?;
        let formats = columns.iter().map(|column| column.format).collect();
        let fields: Vec<Field> = columns.into_iter().map(|column| column.field).collect();
        let mut options = options.clone();
        if fields.iter().any(has_deferred) {
            options.batch_rows = options.batch_rows.min(DEFERRED_ROWS);
        }
        let assembly = Assembly::new(Arc::new(Schema::new(fields)), readers, &options);
        Ok(Self { assembly, formats, options })
    }

    /// The finaliser of the batches, if their types are not final.
    pub(crate) fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        let is_final = !self.assembly.schema().fields().iter().any(|field| has_deferred(field));
        let deferred = || Deferred { formats: self.formats.clone(), options: self.options.clone() };
        (!is_final).then(|| Arc::new(deferred()) as _)
    }
}

/// A session whose server sends a result's rows.
pub(crate) struct ResultWire {
    session: PostgresSession,
    finaliser: Option<Arc<dyn Finaliser>>,
    /// `CommandComplete` has come.
    has_completed: bool,
}

impl ResultWire {
    /// The rows that `session` has asked for.
    pub(crate) fn rows(session: PostgresSession, reader: RowReader) -> Rows<Self> {
        let finaliser = reader.finaliser();
        Rows::new(Self { session, finaliser, has_completed: false }, reader.assembly, &reader.options)
    }
}

impl RowWire for ResultWire {
    type Message = Frame;

    fn bytes(&self) -> &[u8] {
        self.session.connection.bytes()
    }

    fn consume(&mut self, count: usize) {
        self.session.connection.consume(count);
    }

    fn has_room(&self) -> bool {
        self.session.connection.has_room()
    }

    fn fill(&mut self, budget: &Budget) -> Result<()> {
        budget.ask(self.session.connection.growth())?;
        self.session.connection.fill().map(drop)
    }

    fn check(&self) -> Result<()> {
        self.session.connection.check()
    }

    fn index(&mut self, at: &mut usize, spans: &mut Spans, most: usize) -> Result<Stop<Frame>> {
        let bytes = self.session.connection.bytes();
        while spans.rows() < most {
            let Some(got) = frame(&bytes[*at..])? else { return Ok(Stop::Starved) };
            if got.tag != b'D' {
                return Ok(Stop::Message(got));
            }
            let end = *at + got.length;
            index_row(&bytes[..end], *at + HEADER, spans)?;
            *at = end;
        }
        Ok(Stop::Full)
    }

    fn message(&mut self, got: Frame, rows: &Assembly) -> Result<bool> {
        let connection = &mut self.session.connection;
        match got.tag {
            b'E' => {
                let error = connection.take_error(got);
                // A fatal error ends the connection instead of the exchange; the first error tells more.
                let _ = connection.finish();
                let is_text = connection.is_ascii() && error.sqlstate() == Some(UNREADABLE);
                return Err(if is_text { unreadable(error, rows) } else { error });
            }
            b'Z' if self.has_completed => {
                connection.ready(got);
                return Ok(true);
            }
            // CommandComplete, after which only ReadyForQuery is the end.
            b'C' => {
                let tag = Reader::new(&connection.bytes()[HEADER..got.length]).text()?;
                check_count(&tag, rows.decoded_rows())?;
                self.has_completed = true;
            }
            // ParseComplete, BindComplete, CloseComplete: what was complete before was a setting of ours.
            b'1' | b'2' | b'3' => self.has_completed = false,
            _ if connection.is_notice(got) => {}
            other => return Err(unexpected_message(other, "a result")),
        }
        connection.consume(got.length);
        Ok(false)
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn fails_transaction(&self) -> bool {
        self.session.connection.transaction() == Transaction::Open
    }

    fn into_session(mut self) -> Option<Box<dyn Session>> {
        self.session.connection.stop().then(|| Box::new(self.session) as Box<dyn Session>)
    }
}

/// `error`, of a text that the server cannot send as UTF-8, with the place where that is: a row is sent when it is
/// computed, so that it is the next one.
fn unreadable(error: Error, rows: &Assembly) -> Error {
    let schema = rows.schema();
    let texts: Vec<&FieldRef> = schema.fields().iter().filter(|field| has_text(field.data_type())).collect();
    let column = if let [only] = texts.as_slice() { Some(*only) } else { None };
    let place = Place {
        column: column.map(|field| field.name().clone()),
        row: Some(rows.decoded_rows()),
        native_type: column.and_then(|field| field.metadata().get(NATIVE_TYPE).cloned()),
    };
    let names: Vec<&str> = texts.iter().map(|field| field.name().as_str()).collect();
    error.at(place).with_hint(format!(
        "the database's encoding is SQL_ASCII, which has no letters beyond ASCII: convert_to(<column>, 'SQL_ASCII') in the \
         query gives bytes, and convert_from(convert(convert_to(<column>, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') \
         text; the columns of texts are {}",
        names.join(", ")
    ))
}

fn has_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Dictionary(..) => true,
        DataType::List(item) => has_text(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_text(field.data_type())),
        _ => false,
    }
}

/// Compares the number of rows in a command's tag, where it tells one, with those that came.
pub(crate) fn check_count(tag: &str, came: u64) -> Result<()> {
    let counted = tag.strip_prefix("SELECT ").or_else(|| tag.strip_prefix("FETCH "));
    match counted.and_then(|count| count.parse::<u64>().ok()) {
        Some(counted) if counted != came => {
            Err(protocol_error(format!("{came} rows of a result of {counted}")))
        }
        _ => Ok(()),
    }
}

/// The spans of one row, whose message ends where `bytes` end and whose body starts at `start`.
pub(crate) fn index_row(bytes: &[u8], start: usize, spans: &mut Spans) -> Result<()> {
    let columns = spans.columns();
    let count = bytes.get(start..start + 2).and_then(|word| word.try_into().ok()).map(u16::from_be_bytes);
    if count.map(usize::from) != Some(columns) {
        return Err(protocol_error("a row with another number of columns than described"));
    }
    let mut at = start + 2;
    for column in 0..columns {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) else { return Err(short_row()) };
        let length = u32::from_be_bytes(*word);
        at += 4;
        if length == u32::MAX {
            spans.set(column, Span::NULL);
            continue;
        }
        let end = at + length as usize;
        if end > bytes.len() {
            return Err(short_row());
        }
        // A message is shorter than 2 GiB, and so is the inbox around it.
        spans.set(column, Span::new(u32::try_from(at).unwrap_or(u32::MAX), length));
        at = end;
    }
    if at != bytes.len() {
        return Err(short_row());
    }
    spans.end_row();
    Ok(())
}

#[cold]
fn short_row() -> Error {
    protocol_error("a row whose cells do not fill its message")
}

/// The decimals of a whole result whose scale only its values tell.
struct Deferred {
    formats: Vec<Format>,
    options: ReadOptions,
}

impl Finaliser for Deferred {
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised> {
        finalise_columns(schema, batches, |at, field, arrays| {
            finalise(field, arrays, self.formats[at], &self.options)
        })
    }
}
