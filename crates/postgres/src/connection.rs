//! One connection: messages out, messages in, and what becomes of it at its end.

mod authentication;
mod cancel;
pub(crate) mod message;
pub(crate) mod pipeline;
mod startup;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use longshore_core::{Deadline, Error, Kind, Process, Result, Target, Transaction};
use longshore_source::rows::VIOLATION;
use longshore_wire::{Inbox, Socket};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use cancel::Canceller;
use message::{Frame, HEADER, Reader, frame, protocol_error, server_error, unexpected_message};
use startup::open_any;

use crate::settings::{Environment, Settings};

/// The state of a syntax error.
const SYNTAX: &str = "42601";

/// The name of the catalogue's own statements: the caller's statement is the unnamed one.
const LOOKUP: &str = "longshore_lookup";

/// The request that is not answered to its end; a drop in the middle must stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    /// Nothing: the server waits for the next statement.
    Idle,
    /// Statements are parsed and described; their `Sync` is not sent yet.
    Parsing,
    /// A simple query runs.
    Simple,
    /// A bound statement runs, and its `Sync` is sent.
    Extended,
    /// A COPY waits for rows.
    Copying,
}

/// A connection past its start-up.
pub(crate) struct Connection {
    socket: Socket,
    inbox: Inbox,
    /// The parameters that the server has reported about itself (`ParameterStatus`).
    parameters: BTreeMap<String, String>,
    canceller: Canceller,
    outbox: BytesMut,
    deadline: Deadline,
    exchange: Exchange,
    /// Nothing more can be sent or received.
    is_lost: bool,
    /// The transaction's state in the server's last `ReadyForQuery`.
    transaction: Transaction,
    /// The unnamed statement that the server has, where the open transaction has parsed it last.
    unnamed: Option<(String, Prepared)>,
    /// A forked child shares the socket and must not speak on it.
    process: Process,
}

/// A statement that the server has parsed.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) parameters: Vec<u32>,
    /// The columns of the result; `None` where the statement returns none.
    pub(crate) columns: Option<Vec<Described>>,
}

/// A column as `RowDescription` tells it.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) name: String,
    /// The table and attribute that the column comes from unchanged; 0 for an expression.
    pub(crate) table: u32,
    pub(crate) attribute: i16,
    pub(crate) oid: u32,
    pub(crate) modifier: i32,
}

/// A row of a lookup, in text.
pub(crate) type TextRow = Vec<Option<String>>;

impl Connection {
    /// A connection to the first of the target's hosts that accepts one and is what the settings want.
    pub(crate) fn open(target: &Target, deadline: &Deadline) -> Result<Self> {
        let settings = Settings::resolve(target, &Environment::of_process())?;
        let mut connection = open_any(&settings, deadline)?;
        connection.set_deadline(deadline);
        Ok(connection)
    }

    /// Whether the database keeps texts as bytes of no known encoding.
    pub(crate) fn is_ascii(&self) -> bool {
        self.parameters.get("server_encoding").is_some_and(|value| value == "SQL_ASCII")
    }

    /// Whether the server's binary forms are PostgreSQL's. H2's temporal ones are not, and it says so; of Redshift's,
    /// nothing is documented.
    pub(crate) fn has_binary_forms(&self) -> bool {
        let has_integers = self.parameters.get("integer_datetimes").is_some_and(|value| value == "on");
        has_integers && !self.is_redshift()
    }

    /// Whether it is Redshift, which says that it is PostgreSQL 8.0.2.
    pub(crate) fn is_redshift(&self) -> bool {
        self.parameters.get("server_version").is_some_and(|version| version.starts_with("8.0."))
    }

    /// The bytes received and not yet consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.inbox.bytes()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.inbox.has_room()
    }

    /// The memory that the next [`Connection::fill`] asks for.
    pub(crate) fn growth(&self) -> usize {
        self.inbox.growth()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.inbox.consume(count);
    }

    /// Looks at the deadline and at the caller's signals.
    pub(crate) fn check(&self) -> Result<()> {
        self.is_ours()?;
        self.deadline.check()
    }

    /// Bytes that a forked child took or sent would be missing, or too many, in its parent.
    fn is_ours(&self) -> Result<()> {
        self.process.check("connection")
    }

    /// From here on, every wait looks at `deadline`.
    pub(crate) fn set_deadline(&mut self, deadline: &Deadline) {
        self.deadline = deadline.clone();
    }

    pub(crate) fn transaction(&self) -> Transaction {
        self.transaction
    }

    /// Waits for more bytes; returns how many came.
    pub(crate) fn fill(&mut self) -> Result<usize> {
        self.is_ours()?;
        let filled = self.inbox.fill(&mut self.socket, &self.deadline);
        if let Err(error) = &filled {
            self.is_lost |= error.kind() == Kind::Operational;
        }
        filled
    }

    /// Sends what is in the outbox, which leads to `exchange`.
    fn flush(&mut self, exchange: Exchange) -> Result<()> {
        if let Err(error) = self.check() {
            // Or it would go out with the next statement, and answers would be taken for those of others.
            self.outbox.clear();
            return Err(error);
        }
        self.exchange = exchange;
        let written = self.socket.write_all(&self.outbox, &self.deadline);
        self.outbox.clear();
        // Half a message may be out: whatever the reason, nothing can follow it.
        self.is_lost |= written.is_err();
        written
    }

    /// The next message that answers a request; it lies at the start of [`Connection::bytes`].
    fn next(&mut self) -> Result<Frame> {
        loop {
            match frame(self.bytes())? {
                None => drop(self.fill()?),
                Some(got) if self.is_notice(got) => self.consume(got.length),
                Some(got) => return Ok(got),
            }
        }
    }

    /// Takes note of messages that may come at any time: notices, notifications, changed settings.
    pub(crate) fn is_notice(&mut self, got: Frame) -> bool {
        if got.tag == b'S' {
            let mut reader = Reader::new(&self.inbox.bytes()[HEADER..got.length]);
            if let (Ok(name), Ok(value)) = (reader.text(), reader.text()) {
                self.parameters.insert(name, value);
            }
        }
        matches!(got.tag, b'S' | b'N' | b'A')
    }

    fn body(&self, got: Frame) -> Reader<'_> {
        Reader::new(&self.bytes()[HEADER..got.length])
    }

    /// The error of an `ErrorResponse` at the start of the inbox.
    pub(crate) fn take_error(&mut self, got: Frame) -> Error {
        let error = server_error(&self.bytes()[HEADER..got.length]);
        self.consume(got.length);
        error
    }

    /// The next message that answers a request, if that has not failed.
    fn next_or_error(&mut self) -> Result<Frame> {
        let got = self.next()?;
        if got.tag == b'E' { Err(self.take_error(got)) } else { Ok(got) }
    }

    /// Consumes a message that must be of type `tag`.
    fn expect(&mut self, tag: u8, during: &str) -> Result<()> {
        let got = self.next_or_error()?;
        if got.tag != tag {
            return Err(unexpected_message(got.tag, during));
        }
        self.consume(got.length);
        Ok(())
    }

    /// The rows, in text, of a statement that is bound and executed.
    fn text_rows(&mut self) -> Result<Vec<TextRow>> {
        self.expect(b'1', "Parse")?;
        self.expect(b'2', "Bind")?;
        let mut rows = Vec::new();
        loop {
            let got = self.next_or_error()?;
            match got.tag {
                b'D' => rows.push(text_row(self.body(got))?),
                b'C' | b'I' => {}
                other => return Err(unexpected_message(other, "Execute")),
            }
            self.consume(got.length);
            if got.tag != b'D' {
                return Ok(rows);
            }
        }
    }

    /// Reads on to `ReadyForQuery`, after which the connection can be used again.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.finish_with_tags(drop)
    }

    /// The same; does `each` with the tag of every command that has ended well.
    fn finish_with_tags(&mut self, mut each: impl FnMut(String)) -> Result<()> {
        let mut first_error = None;
        loop {
            let got = match self.next() {
                Ok(got) => got,
                // A server that ends the session says why before it hangs up.
                Err(error) => return Err(first_error.unwrap_or(error)),
            };
            match got.tag {
                b'E' => {
                    let error = self.take_error(got);
                    first_error.get_or_insert(error);
                }
                b'Z' => {
                    self.ready(got);
                    return first_error.map_or(Ok(()), Err);
                }
                b'G' => {
                    self.consume(got.length);
                    self.refuse_copy()?;
                }
                b'C' => {
                    each(self.body(got).text()?);
                    self.consume(got.length);
                }
                _ => self.consume(got.length),
            }
        }
    }

    /// COPY FROM STDIN waits for data that never comes: the server is told, and answers with an error.
    fn refuse_copy(&mut self) -> Result<()> {
        frontend::copy_fail("COPY FROM STDIN has no data here", &mut self.outbox)
            .map_err(|_| zero_byte("a message"))?;
        // While it copies, the server overhears a `Sync`.
        if self.exchange == Exchange::Extended {
            frontend::sync(&mut self.outbox);
        }
        self.flush(self.exchange)
    }

    /// Consumes the `ReadyForQuery` at the start of the inbox.
    pub(crate) fn ready(&mut self, got: Frame) {
        self.transaction = match self.body(got).rest() {
            [b'T'] => Transaction::Open,
            [b'E'] => Transaction::Failed,
            _ => Transaction::None,
        };
        if self.transaction != Transaction::Open {
            self.unnamed = None;
        }
        self.consume(got.length);
        self.exchange = Exchange::Idle;
    }

    /// Ends a failed exchange, in which no `Sync` was sent yet, and gives `error` back.
    fn recover(&mut self, error: Error) -> Error {
        // After bytes that are not the protocol's, waiting for its end could be for ever.
        let is_servers = error.sqlstate().is_some_and(|state| state != VIOLATION);
        if self.is_lost || !is_servers {
            return error;
        }
        // Whatever fails here, the first error is the one that tells.
        let _ = self.sync();
        error
    }

    fn query(&mut self, text: &str) -> Result<()> {
        self.unnamed = None;
        frontend::query(text, &mut self.outbox).map_err(|_| zero_byte("the statement"))?;
        self.flush(Exchange::Simple)
    }

    /// Runs statements that return nothing of interest.
    pub(crate) fn simple(&mut self, text: &str) -> Result<()> {
        self.query(text)?;
        self.finish()
    }

    /// Runs the statements of a script, which the server tells apart. An error says which one has failed.
    pub(crate) fn script(&mut self, text: &str) -> Result<()> {
        self.query(text)?;
        let mut done = 0;
        self.finish_with_tags(|_| done += 1).map_err(|error| {
            let line = error.position().map(|position| {
                let before = text.chars().take(usize::try_from(position).unwrap_or_default());
                format!("line {}", 1 + before.filter(|letter| *letter == '\n').count())
            });
            // The server reads all of the script before it runs the first statement.
            let is_unread = done == 0 && error.sqlstate() == Some(SYNTAX);
            match line {
                Some(line) if is_unread => error.within(line),
                Some(line) => error.within(format!("statement {}, {line}", done + 1)),
                None => error.within(format!("statement {}", done + 1)),
            }
        })
    }

    /// Has the server parse and describe `text` as the unnamed statement; nothing runs yet.
    ///
    /// Where it is the last statement of this very transaction, the server has it still, and no other session can have changed
    /// its tables.
    pub(crate) fn prepare(&mut self, text: &str) -> Result<Prepared> {
        if let Some((_, prepared)) = self.unnamed.as_ref().filter(|(known, _)| known == text)
            && self.exchange == Exchange::Idle
        {
            return Ok(prepared.clone());
        }
        let prepared = self.prepare_with(text, &[])?;
        self.unnamed = Some((text.to_owned(), prepared.clone()));
        Ok(prepared)
    }

    /// The same, where the parameters have these `types`.
    pub(crate) fn prepare_with(&mut self, text: &str, types: &[u32]) -> Result<Prepared> {
        self.unnamed = None;
        frontend::parse("", text, types.iter().copied(), &mut self.outbox)
            .map_err(|_| zero_byte("the statement"))?;
        frontend::describe(b'S', "", &mut self.outbox).map_err(|_| zero_byte("the statement"))?;
        frontend::flush(&mut self.outbox);
        self.flush(Exchange::Parsing)?;
        self.read_description().map_err(|error| self.recover(error))
    }

    fn read_description(&mut self) -> Result<Prepared> {
        self.expect(b'1', "Parse")?;
        let got = self.next_or_error()?;
        let parameters = match got.tag {
            b't' => parameter_types(self.body(got))?,
            other => return Err(unexpected_message(other, "Describe")),
        };
        self.consume(got.length);
        let got = self.next_or_error()?;
        let columns = match got.tag {
            b'T' => Some(row_description(self.body(got))?),
            b'n' => None,
            other => return Err(unexpected_message(other, "Describe")),
        };
        self.consume(got.length);
        Ok(Prepared { parameters, columns })
    }

    /// Ends the exchange after a description that will not be executed.
    pub(crate) fn sync(&mut self) -> Result<()> {
        frontend::sync(&mut self.outbox);
        self.flush(Exchange::Extended)?;
        self.finish()
    }

    /// Reads what [`Connection::execute`] brings, throws its rows away, and returns the last number of the command's
    /// tag: how many rows it concerned.
    pub(crate) fn discard_rows(&mut self) -> Result<Option<u64>> {
        let mut last = None;
        self.finish_with_tags(|tag| last = Some(tag))?;
        Ok(last.and_then(|tag| tag.rsplit(' ').next()?.parse().ok()))
    }

    /// Binds and executes the unnamed statement; its rows are next in the inbox.
    ///
    /// `exact_floats` has the server print floats with all their digits, until the end of this transaction: in the
    /// same flight, and without a row of its own.
    pub(crate) fn execute(
        &mut self,
        parameters: &[Option<Vec<u8>>],
        formats: &[i16],
        exact_floats: bool,
    ) -> Result<()> {
        if exact_floats {
            // Redshift's own limit; its floats have 15 digits without any.
            let most = if self.is_redshift() { 2 } else { 3 };
            self.enqueue_lookup(&format!("SET LOCAL extra_float_digits = {most}"), &[])?;
        }
        bind("", "", parameters, formats, &mut self.outbox)?;
        frontend::execute("", 0, &mut self.outbox).map_err(|_| zero_byte("the statement"))?;
        frontend::sync(&mut self.outbox);
        self.flush(Exchange::Extended)
    }

    /// Runs a statement of ours between the caller's `Parse` and `Bind`, without ending the exchange.
    pub(crate) fn lookup(&mut self, text: &str, parameter: &str) -> Result<Vec<TextRow>> {
        self.enqueue_lookup(text, &[Some(parameter.as_bytes().to_vec())])?;
        frontend::flush(&mut self.outbox);
        self.flush(Exchange::Parsing)?;
        self.lookup_rows().map_err(|error| self.recover(error))
    }

    /// A statement of ours, which leaves the unnamed one as it is. Its results are in text.
    fn enqueue_lookup(&mut self, text: &str, parameters: &[Option<Vec<u8>>]) -> Result<()> {
        let buffer = &mut self.outbox;
        let no_zero = |_| zero_byte("a lookup");
        frontend::parse(LOOKUP, text, [], buffer).map_err(no_zero)?;
        bind(LOOKUP, LOOKUP, parameters, &[], buffer)?;
        frontend::execute(LOOKUP, 0, buffer).map_err(no_zero)?;
        frontend::close(b'P', LOOKUP, buffer).map_err(no_zero)?;
        frontend::close(b'S', LOOKUP, buffer).map_err(no_zero)
    }

    fn lookup_rows(&mut self) -> Result<Vec<TextRow>> {
        let rows = self.text_rows()?;
        self.expect(b'3', "Close")?;
        self.expect(b'3', "Close")?;
        Ok(rows)
    }

    /// Runs a COPY FROM STDIN; the server then waits for its data.
    pub(crate) fn begin_copy(&mut self, statement: &str) -> Result<()> {
        self.query(statement)?;
        let got = self.next()?;
        match got.tag {
            b'G' => {
                self.consume(got.length);
                self.exchange = Exchange::Copying;
                Ok(())
            }
            b'E' => self.finish(),
            other => Err(unexpected_message(other, "COPY")),
        }
    }

    /// Sends a whole `CopyData` message.
    pub(crate) fn copy_data(&mut self, message: &[u8]) -> Result<()> {
        self.check()?;
        if self.socket.is_readable() {
            self.heed_refusal()?;
        }
        let written = self.socket.write_all(message, &self.deadline);
        if written.is_err() {
            // Half a message may be out. Where the server has hung up, it may have said why.
            self.is_lost = true;
        }
        written
    }

    /// Fails where the server has refused the rows: it would throw away all that follow, however many.
    fn heed_refusal(&mut self) -> Result<()> {
        let deadline = std::mem::replace(&mut self.deadline, Deadline::never().at_most(Duration::ZERO));
        let heard = self.next();
        self.deadline = deadline;
        match heard {
            Ok(got) if got.tag == b'E' => {
                self.exchange = Exchange::Simple;
                self.finish()
            }
            Ok(got) => Err(unexpected_message(got.tag, "COPY")),
            // It was a notice.
            Err(error) if error.kind() == Kind::Timeout => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Tells the server that this was all; returns how many rows it took.
    pub(crate) fn end_copy(&mut self) -> Result<u64> {
        frontend::copy_done(&mut self.outbox);
        self.flush(Exchange::Simple)?;
        Ok(self.discard_rows()?.unwrap_or_default())
    }

    /// Runs one statement; returns how many rows it wrote.
    pub(crate) fn count(&mut self, statement: &str) -> Result<u64> {
        self.query(statement)?;
        Ok(self.discard_rows()?.unwrap_or_default())
    }

    /// Tells the server that no more will come, and that nothing is to be kept.
    fn fail_copy(&mut self) -> Result<()> {
        frontend::copy_fail("the client gave up", &mut self.outbox).map_err(|_| zero_byte("a message"))?;
        self.flush(Exchange::Simple)
    }

    /// Whether the server waits for the next statement.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_lost && self.exchange == Exchange::Idle
    }
}

fn zero_byte(what: &str) -> Error {
    Error::programming(format!("{what} holds a zero byte, which PostgreSQL's text cannot"))
}

fn bind(
    portal: &str,
    statement: &str,
    parameters: &[Option<Vec<u8>>],
    formats: &[i16],
    buffer: &mut BytesMut,
) -> Result<()> {
    let write = |parameter: &Option<Vec<u8>>, into: &mut BytesMut| match parameter {
        Some(text) => {
            into.extend_from_slice(text);
            Ok(IsNull::No)
        }
        None => Ok(IsNull::Yes),
    };
    let formats = formats.iter().copied();
    frontend::bind(portal, statement, [0_i16], parameters, write, formats, buffer).map_err(|_| {
        Error::programming("the parameters are too many or too large for one message")
            .with_hint("at most 65,535 parameters of 1 GiB in all; send a list as one array parameter")
    })
}

pub(crate) fn parameter_types(mut reader: Reader<'_>) -> Result<Vec<u32>> {
    let count = reader.i16()?.cast_unsigned();
    (0..count).map(|_| reader.u32()).collect()
}

pub(crate) fn row_description(mut reader: Reader<'_>) -> Result<Vec<Described>> {
    let count = reader.i16()?.cast_unsigned();
    let mut column = || {
        let name = reader.text()?;
        let (table, attribute, oid) = (reader.u32()?, reader.i16()?, reader.u32()?);
        let (_size, modifier, _format) = (reader.i16()?, reader.i32()?, reader.i16()?);
        Ok(Described { name, table, attribute, oid, modifier })
    };
    (0..count).map(|_| column()).collect()
}

pub(crate) fn text_row(mut reader: Reader<'_>) -> Result<TextRow> {
    let count = reader.i16()?;
    let mut cell = || match reader.i32()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| protocol_error("a cell of negative length"))?;
            Ok(Some(String::from_utf8_lossy(reader.bytes(length)?).into_owned()))
        }
    };
    (0..count).map(|_| cell()).collect()
}

#[cfg(test)]
mod tests;
