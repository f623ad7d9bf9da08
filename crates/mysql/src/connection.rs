//! A connection: commands, answers, and the state of the session.

use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Deadline, Error, Kind, Process, Result, Transaction};

use crate::dialect::quoted_name;
use crate::message::{
    Answer, Definition, Done, answer, capability, definition, end_of_rows, server_error, status,
};
use crate::packet::{self, FULL, HEADER, Reader, Sequence, protocol_error};
use crate::settings::Settings;
use crate::startup::{self, Link};
use crate::temporal::Zone;
pub(crate) use statements::FILE;

mod cancel;
mod client;
pub(crate) mod statements;

/// The time for what has to be done although the caller's own deadline may be over.
pub(crate) fn cleanup() -> Deadline {
    Deadline::never().at_most(Duration::from_secs(2))
}

/// A command so long may be too long for the server, which then hangs up.
const LARGE: usize = 1 << 20;

/// Commands, by their first byte (MySQL Internals, "Command Phase").
mod command {
    pub(super) const QUIT: u8 = 0x01;
    pub(super) const QUERY: u8 = 0x03;
    pub(super) const PING: u8 = 0x0e;
    pub(super) const PREPARE: u8 = 0x16;
    pub(super) const EXECUTE: u8 = 0x17;
    pub(super) const CLOSE: u8 = 0x19;
    pub(super) const SET_OPTION: u8 = 0x1b;
    pub(super) const RESET: u8 = 0x1f;

    /// The message that has the server forget a prepared statement.
    pub(super) fn close(statement: u32) -> Vec<u8> {
        [[CLOSE].as_slice(), &statement.to_le_bytes()].concat()
    }
}

/// The rest of the server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    /// Nothing: the server waits for the next command.
    Idle,
    /// The first packet, and whatever follows it.
    Answer,
    /// A statement is being parsed; what it is comes next.
    Parsing,
    /// The definitions of a parsed statement's parameters and columns.
    Definitions,
    /// Rows, and the results behind them.
    Rows,
    /// It is the server that waits, for the rest of a file.
    File,
}

/// A connection past its start-up.
pub(crate) struct Connection {
    link: Link,
    /// The settings that open further connections; none where another client has opened this one.
    settings: Option<Arc<Settings>>,
    /// The lease of another client's connection.
    client: Option<client::ClientState>,
    deadline: Deadline,
    pub(crate) sequence: Sequence,
    exchange: Exchange,
    /// Nothing can be sent or received any more.
    is_dead: bool,
    /// The server's status flags, as of its last answer.
    status: u16,
    /// How many warnings the last statement has left behind.
    warnings: u16,
    /// The last answer was an error, which has no status flags.
    is_status_unknown: bool,
    /// An error has ended the transaction, and the caller has not been told.
    is_transaction_lost: bool,
    zone: Zone,
    /// The database that the session is in.
    database: Option<String>,
    /// Prepared statements to be closed with the next command.
    closing: Vec<u32>,
    /// The lock under which the session makes a new table.
    table_lock: Option<String>,
    /// Commands that may have changed what the text of a statement means: in another database, in another SQL mode.
    pub(crate) changes: u64,
    /// A forked child shares the socket and must not speak on it.
    process: Process,
}

/// A statement that the server has parsed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: u32,
    pub(crate) parameters: usize,
    /// The columns of the result; none where the statement returns none, or where only running it tells.
    pub(crate) columns: Vec<Definition>,
}

impl Connection {
    /// A connection whose session has the settings' time zone.
    pub(crate) fn open(settings: &Arc<Settings>, deadline: &Deadline) -> Result<Self> {
        let mut connection = Self::open_bare(settings, deadline)?;
        connection.set_up(settings)?;
        Ok(connection)
    }

    /// A connection on which nothing has been set.
    pub(crate) fn open_bare(settings: &Arc<Settings>, deadline: &Deadline) -> Result<Self> {
        Self::over(startup::open(settings, deadline)?, Some(settings), deadline)
    }

    fn over(link: Link, settings: Option<&Arc<Settings>>, deadline: &Deadline) -> Result<Self> {
        let mut connection = Self {
            status: link.done.status,
            warnings: 0,
            link,
            settings: settings.cloned(),
            client: None,
            deadline: deadline.clone(),
            sequence: Sequence::Next(0),
            exchange: Exchange::Idle,
            is_dead: false,
            is_status_unknown: false,
            is_transaction_lost: false,
            zone: Zone::Other,
            database: settings.and_then(|settings| settings.database.clone()),
            closing: Vec::new(),
            table_lock: None,
            changes: 0,
            process: Process::current(),
        };
        let done = std::mem::take(&mut connection.link.done);
        connection.note(&done)?;
        Ok(connection)
    }

    /// Sets what every session has.
    fn set_up(&mut self, settings: &Settings) -> Result<()> {
        self.run(&format!("SET time_zone = '{}'", settings.zone.text()))?;
        self.zone = settings.zone;
        if let Some(command) = &settings.init_command {
            self.run(command).map_err(|error| error.within("the init-command"))?;
        }
        Ok(())
    }

    /// The database that a further session would begin with.
    pub(crate) fn database(&self) -> Option<&str> {
        self.settings.as_ref()?.database.as_deref()
    }

    /// Another connection to the same server, which looks at the same deadline.
    pub(crate) fn another(&self) -> Result<Self> {
        match &self.settings {
            Some(settings) => Self::open(settings, &self.deadline),
            None => Err(Error::internal("a client's connection is one connection only")),
        }
    }

    /// The session's time zone.
    pub(crate) fn zone(&self) -> Zone {
        self.zone
    }

    pub(crate) fn capabilities(&self) -> u64 {
        self.link.capabilities
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.capabilities() & capability::MYSQL == 0
    }

    /// Whether a backslash in a text escapes, as it does without the `sql_mode` `NO_BACKSLASH_ESCAPES`.
    pub(crate) fn escapes(&self) -> bool {
        self.status & status::NO_BACKSLASH_ESCAPES == 0
    }

    /// The bytes received and not yet consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.link.inbox.bytes()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.link.inbox.has_room()
    }

    /// The memory that the next [`Connection::fill`] asks for.
    pub(crate) fn growth(&self) -> usize {
        self.link.inbox.growth()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.link.inbox.consume(count);
    }

    /// Looks at the deadline and at the caller's signals.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_owner()?;
        self.deadline.check()
    }

    /// Bytes that a forked child took or sent would be missing, or too many, in its parent.
    fn check_owner(&self) -> Result<()> {
        self.process.check("connection")
    }

    /// From here on, every wait looks at `deadline`; gives the one before.
    pub(crate) fn set_deadline(&mut self, deadline: Deadline) -> Deadline {
        std::mem::replace(&mut self.deadline, deadline)
    }

    /// The session owns `lock`, without which no other makes the same table.
    pub(crate) fn note_table_lock(&mut self, lock: &str) {
        self.table_lock = Some(lock.to_owned());
    }

    /// Has the session be of no more use, whatever its socket is.
    pub(crate) fn give_up(&mut self) {
        self.is_dead = true;
    }

    /// The state of the session's transaction.
    pub(crate) fn transaction(&self) -> Transaction {
        if self.is_transaction_lost {
            Transaction::Failed
        } else if self.is_in_transaction() || self.client.is_some_and(|state| state.is_owners) {
            Transaction::Open
        } else {
            Transaction::None
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.status & (status::IN_TRANSACTION | status::IN_READ_ONLY_TRANSACTION) != 0
    }

    /// Whether each statement is a transaction of its own, unless one is begun.
    pub(crate) fn commits_each(&self) -> bool {
        self.status & status::COMMITS_EACH != 0
    }

    /// The caller knows of the transaction's loss.
    pub(crate) fn forget_loss(&mut self) {
        self.is_transaction_lost = false;
    }

    /// Waits for more bytes; returns how many came.
    pub(crate) fn fill(&mut self) -> Result<usize> {
        self.check_owner()?;
        let filled = self.link.inbox.fill(&mut self.link.channel, &self.deadline);
        if let Err(error) = &filled {
            self.is_dead |= error.kind() == Kind::Operational;
        }
        filled
    }

    /// Sends a command, whose answer `exchange` is.
    fn send(&mut self, code: u8, body: &[u8], exchange: Exchange) -> Result<()> {
        self.check()?;
        if self.exchange != Exchange::Idle {
            return Err(Error::internal("a command was to be sent before the last was answered"));
        }
        let mut commands: Vec<Vec<u8>> = Vec::with_capacity(1 + self.closing.len());
        for statement in self.closing.drain(..) {
            commands.push(command::close(statement));
        }
        // The answer's numbers go on from the command's.
        let packets = (1 + body.len()) / FULL + 1;
        commands.push([[code].as_slice(), body].concat());
        self.exchange = exchange;
        self.changes += u64::from(code != command::PREPARE);
        self.sequence = match u8::try_from(packets & 0xff) {
            Ok(next) if !self.link.channel.is_compressed() => Sequence::Next(next),
            _ => Sequence::Unchecked,
        };
        let written = self.link.channel.send(&commands, &self.deadline);
        // Half a message may be out: whatever the reason, nothing can follow it.
        self.is_dead |= written.is_err();
        written.map_err(|error| match error.kind() {
            Kind::Operational if body.len() > LARGE => error.with_hint(
                "the statement and its parameters may be longer than the server's max_allowed_packet: raise that, or send \
                 less at once",
            ),
            _ => error,
        })
    }

    /// Waits for a message, which may be the server's error; gives the length of its payload, which lies behind a header
    /// in the inbox.
    fn receive(&mut self) -> Result<usize> {
        loop {
            match self.message_at(0)? {
                Some(length) if self.payload(length).first() == Some(&0xff) => {
                    return Err(self.take_error(length));
                }
                Some(length) => return Ok(length),
                None => drop(self.fill()?),
            }
        }
    }

    /// The length of the payload of the message at `at`, which lies behind one header then; `None` where more bytes
    /// are needed.
    pub(crate) fn message_at(&mut self, at: usize) -> Result<Option<usize>> {
        packet::receive(&mut self.link.inbox, at, &mut self.sequence)
    }

    fn payload(&self, length: usize) -> &[u8] {
        &self.bytes()[HEADER..HEADER + length]
    }

    /// Takes note of what a statement has changed.
    fn note(&mut self, done: &Done) -> Result<()> {
        self.status = done.status;
        self.warnings = done.warnings;
        self.is_status_unknown = false;
        if let Some(database) = &done.database {
            self.database = Some(database.clone()).filter(|name| !name.is_empty());
        }
        for (name, value) in &done.changed {
            match name.as_str() {
                "time_zone" => self.zone = Zone::of_server(value),
                "character_set_results" | "character_set_client" | "character_set_connection"
                    if !value.eq_ignore_ascii_case("utf8mb4") =>
                {
                    self.is_dead = true;
                    return Err(Error::interface(format!("the session's {name} was set to {value:?}"))
                        .with_hint(
                            "leave it at utf8mb4: texts would arrive changed. The connection is given up",
                        ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The error of an ERR message at the start of the inbox, which ends the exchange.
    fn take_error(&mut self, length: usize) -> Error {
        let error = server_error(self.payload(length));
        self.consume(HEADER + length);
        self.exchange = Exchange::Idle;
        self.is_status_unknown = true;
        error
    }

    /// The first packet of an answer.
    fn answer(&mut self) -> Result<Answer> {
        let length = self.receive()?;
        let answer = answer(self.payload(length), self.link.capabilities)?;
        self.consume(HEADER + length);
        match &answer {
            Answer::Done(done) => self.end_result(done)?,
            Answer::Columns(_) => self.exchange = Exchange::Rows,
            Answer::File(_) => self.exchange = Exchange::File,
        }
        Ok(answer)
    }

    /// A statement or a result is over; another result may follow.
    fn end_result(&mut self, done: &Done) -> Result<()> {
        let more = done.status & status::MORE_RESULTS != 0;
        self.exchange = if more { Exchange::Answer } else { Exchange::Idle };
        self.note(done)
    }

    fn definitions(&mut self, count: usize) -> Result<Vec<Definition>> {
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.receive()?;
            columns.push(definition(self.payload(length), self.link.capabilities)?);
            self.consume(HEADER + length);
        }
        if self.link.capabilities & capability::DEPRECATE_EOF == 0 && count > 0 {
            let length = self.receive()?;
            if self.payload(length).first() != Some(&0xfe) {
                return Err(protocol_error("definitions of columns without their end"));
            }
            self.consume(HEADER + length);
        }
        Ok(columns)
    }

    /// The columns of the next result; `None` where there is none.
    pub(crate) fn columns(&mut self) -> Result<Option<Vec<Definition>>> {
        self.columns_or_end().map(Result::ok)
    }

    /// The columns of the next result, or the end of all where there is none.
    pub(crate) fn columns_or_end(&mut self) -> Result<Result<Vec<Definition>, Done>> {
        loop {
            match self.answer()? {
                Answer::Columns(count) => return self.definitions(count).map(Ok),
                Answer::Done(_) if self.exchange == Exchange::Answer => {}
                Answer::Done(done) => return Ok(Err(done)),
                Answer::File(_) => return Err(self.refuse_file()),
            }
        }
    }

    /// Sends a statement in text; its answer comes next.
    pub(crate) fn query(&mut self, text: &str) -> Result<()> {
        self.send(command::QUERY, text.as_bytes(), Exchange::Answer)
    }

    /// Has the server parse `text`; nothing runs yet.
    pub(crate) fn prepare(&mut self, text: &str) -> Result<Prepared> {
        self.send(command::PREPARE, text.as_bytes(), Exchange::Parsing)?;
        self.read_prepared()
    }

    fn read_prepared(&mut self) -> Result<Prepared> {
        let length = self.receive()?;
        let mut reader = Reader::new(self.payload(length));
        if reader.u8()? != 0 {
            return Err(protocol_error("an unknown answer to a statement that was to be prepared"));
        }
        let (id, columns, parameters) = (reader.u32()?, reader.u16()?, reader.u16()?);
        self.consume(HEADER + length);
        self.exchange = Exchange::Definitions;
        self.definitions(parameters.into())?;
        let columns = self.definitions(columns.into())?;
        self.exchange = Exchange::Idle;
        Ok(Prepared { id, parameters: parameters.into(), columns })
    }

    /// Runs a prepared statement, whose `bound` parameters are encoded; its answer comes next.
    pub(crate) fn execute(&mut self, statement: u32, bound: &[u8]) -> Result<()> {
        // No cursor, one iteration.
        let body = [statement.to_le_bytes().as_slice(), &[0, 1, 0, 0, 0], bound].concat();
        self.send(command::EXECUTE, &body, Exchange::Answer)
    }

    /// Has the server forget a prepared statement, with the next command.
    pub(crate) fn close(&mut self, statement: u32) {
        self.closing.push(statement);
    }

    /// A message other than a row, at the start of the inbox; gives what the end of the rows tells.
    pub(crate) fn end_rows(&mut self, length: usize) -> Result<()> {
        match self.payload(length).first() {
            Some(0xff) => Err(self.take_error(length)),
            Some(0xfe) if length < FULL => {
                let ended = end_of_rows(self.payload(length), self.link.capabilities)?;
                self.consume(HEADER + length);
                self.end_result(&ended)?;
                if self.exchange == Exchange::Idle && !self.bytes().is_empty() {
                    return Err(protocol_error("more behind the end of the rows"));
                }
                Ok(())
            }
            _ => Err(protocol_error("an unknown message between rows")),
        }
    }

    /// How many warnings the last statement has left behind.
    pub(crate) fn warnings(&self) -> u16 {
        self.warnings
    }

    /// Whether another result follows.
    pub(crate) fn has_more(&self) -> bool {
        self.exchange == Exchange::Answer
    }

    /// Runs a statement of ours that is too long to be copied into a text, and gives its end.
    pub(crate) fn insert(&mut self, statement: &[u8]) -> Result<Done> {
        self.send(command::QUERY, statement, Exchange::Answer)?;
        self.read_end()
    }

    /// The end of a statement that has no rows.
    fn read_end(&mut self) -> Result<Done> {
        match self.answer()? {
            Answer::Done(done) => Ok(done),
            _ => Err(protocol_error("an unknown answer to rows")),
        }
    }

    /// Reads the answer to its end and throws its rows away; gives how many rows the statement concerned.
    pub(crate) fn finish(&mut self) -> Result<u64> {
        let mut count = 0;
        loop {
            match self.exchange {
                Exchange::Idle => return Ok(count),
                Exchange::Answer => match self.answer()? {
                    Answer::Done(done) => count = count.max(done.affected),
                    Answer::Columns(columns) => drop(self.definitions(columns)?),
                    Answer::File(_) => return Err(self.refuse_file()),
                },
                Exchange::File => self.end_of_file()?,
                Exchange::Rows => count = count.max(self.each_row(|_| Ok(()))?),
                Exchange::Parsing => {
                    let prepared = self.read_prepared()?;
                    self.close(prepared.id);
                }
                // How many there were to come is not known any more.
                Exchange::Definitions => return Err(protocol_error("definitions without their end")),
            }
        }
    }

    /// Hands over the payload of each row of a result; gives how many there were.
    fn each_row(&mut self, mut row: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let mut rows = 0;
        while self.exchange == Exchange::Rows {
            let length = self.receive()?;
            if is_row(self.payload(length)) {
                row(self.payload(length))?;
                self.consume(HEADER + length);
                rows += 1;
            } else {
                self.end_rows(length)?;
            }
        }
        Ok(rows)
    }

    /// Forgets all that the session has been told.
    pub(crate) fn reset(&mut self) -> Result<()> {
        // The server forgets prepared statements with the rest.
        self.closing.clear();
        self.send(command::RESET, &[], Exchange::Answer)?;
        self.finish()?;
        self.is_transaction_lost = false;
        let settings = self.settings.clone();
        let settings = settings.ok_or_else(|| Error::internal("a client's connection is never like new"))?;
        self.return_to_database(settings.database.as_deref())?;
        self.set_up(&settings)
    }

    /// Goes back to the database that the session began in, which the server's own reset leaves as it is.
    fn return_to_database(&mut self, first: Option<&str>) -> Result<()> {
        if self.database.as_deref() == first {
            return Ok(());
        }
        if let Some(database) = first {
            return self.run(&format!("USE {}", quoted_name(database)));
        }
        // No statement leaves a database.
        self.is_dead = true;
        Err(Error::operational("the session is in another database than it began with, and cannot leave it"))
    }

    /// Whether the server waits for the next command.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_dead && self.exchange == Exchange::Idle
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(state) = self.client.take() {
            return self.give_back(state);
        }
        // The status of an idle connection does not matter any more.
        self.is_status_unknown = false;
        if !self.stop() {
            return;
        }
        // A failure changes nothing: the server notices the closed socket in any case.
        let deadline = Deadline::never().at_most(Duration::from_millis(100));
        let _ = self.link.channel.send(&[vec![command::QUIT]], &deadline);
    }
}

/// Whether a message between rows is one: an end is marked by 0xfe, and shorter than a row that starts so could be; an
/// error by 0xff, with which no row starts.
pub(crate) fn is_row(payload: &[u8]) -> bool {
    match payload.first() {
        Some(0xff) => false,
        Some(0xfe) => payload.len() >= FULL,
        _ => true,
    }
}
