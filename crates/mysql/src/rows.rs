//! Wire -> record batches: a result's rows, and its end.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_cells::{Assembly, ReadColumn};
use longshore_core::{Batches, Error, Kind, ReadOptions, Result, Session};

use crate::connection::is_row;
use crate::layout::{Layout, Stop};
use crate::packet::{HEADER, VIOLATION};
use crate::session::MySqlSession;
use crate::warnings;

/// A result on its way.
pub(crate) struct Rows {
    session: MySqlSession,
    assembly: Assembly,
    layout: Layout,
    options: ReadOptions,
    /// Bytes of the inbox whose rows are in the chunk.
    indexed: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Streaming,
    /// The server's own end has come.
    Complete,
    Failed,
    /// The server has not kept to the protocol.
    Broken,
}

impl Rows {
    pub(crate) fn new(
        session: MySqlSession,
        schema: SchemaRef,
        columns: Vec<ReadColumn>,
        layout: Layout,
        options: &ReadOptions,
    ) -> Self {
        let assembly = Assembly::new(schema, columns, options);
        Self { session, assembly, layout, options: options.clone(), indexed: 0, state: State::Streaming }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while self.state == State::Streaming {
            match self.index()? {
                Stop::Full => self.decode()?,
                Stop::Starved => self.fill()?,
                Stop::Other => self.other()?,
            }
            if self.assembly.is_full() {
                return self.assembly.batch().map(Some);
            }
        }
        self.assembly.last()
    }

    /// First pass: the spans of all complete rows that the chunk can still take.
    fn index(&mut self) -> Result<Stop> {
        let most = self.assembly.chunk_rows();
        let connection = &mut self.session.connection;
        let mut sequence = connection.sequence;
        let spans = self.assembly.spans();
        let stop = self.layout.index(connection.bytes(), &mut self.indexed, &mut sequence, spans, most)?;
        connection.sequence = sequence;
        Ok(stop)
    }

    fn fill(&mut self) -> Result<()> {
        if !self.session.connection.has_room() {
            self.decode()?;
        }
        self.options.budget.ask(self.session.connection.growth())?;
        self.session.connection.fill().map(drop)
    }

    /// A row in several packets, or what is no row.
    fn other(&mut self) -> Result<()> {
        let Some(length) = self.session.connection.message_at(self.indexed)? else {
            // What is before it need not wait.
            return self.fill();
        };
        let start = self.indexed + HEADER;
        let end = start + length;
        let bytes = &self.session.connection.bytes()[..end];
        if is_row(&bytes[start..]) {
            self.layout.row(bytes, start, self.assembly.spans())?;
            self.indexed = end;
            return if self.assembly.spans().rows() < self.assembly.chunk_rows() {
                Ok(())
            } else {
                self.decode()
            };
        }
        self.decode()?;
        self.session.connection.end_rows(length)?;
        if self.session.connection.has_more() {
            self.check_rest()?;
        }
        self.state = State::Complete;
        let connection = &mut self.session.connection;
        if connection.warnings() == 0 || warnings::tell(connection, &self.options.warnings).is_ok() {
            return Ok(());
        }
        // The rows are whole: only a deadline or an interrupt ends the read. A lost connection is the next statement's.
        connection.check()
    }

    /// What follows a procedure's result must be its end.
    fn check_rest(&mut self) -> Result<()> {
        match self.session.connection.columns()? {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::NotSupported, "the statement returns several results")
                .with_hint("have the procedure return one, or write them to tables and read these")),
        }
    }

    /// Second pass: the chunk's cells are decoded, and its bytes consumed.
    fn decode(&mut self) -> Result<()> {
        if self.indexed == 0 {
            return Ok(());
        }
        self.session.connection.check()?;
        self.assembly.decode(self.session.connection.bytes())?;
        self.session.connection.consume(self.indexed);
        self.options.meter.add_bytes(self.indexed as u64);
        self.indexed = 0;
        Ok(())
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, State::Failed | State::Broken) {
            return None;
        }
        let next = self.advance();
        if let Err(error) = &next {
            self.state = if error.sqlstate() == Some(VIOLATION) { State::Broken } else { State::Failed };
        }
        next.transpose()
    }
}

impl Batches for Rows {
    fn schema(&self) -> SchemaRef {
        self.assembly.schema().clone()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        // Bytes of rows that were found and not decoded come before whatever is read on.
        self.session.connection.consume(self.indexed);
        if !self.session.connection.stop() {
            return None;
        }
        // What has broken the protocol once is not trusted with another statement.
        (self.state != State::Broken).then(|| Box::new(self.session) as Box<dyn Session>)
    }
}
