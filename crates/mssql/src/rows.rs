//! A result's rows: the client decodes each, and its own end is the result's.

use longshore_core::memory::Budget;
use longshore_core::{Error, Result, Session};
use longshore_source::rows::{RowWire, Stop};
use longshore_values::{Assembly, Spans};
use mssql_tds::connection::tds_client::StatementResult;

use crate::connection::Taken;
use crate::session::MsSqlSession;
use crate::sink::{CHUNK, Sink};

/// A session whose server sends a result's rows.
pub(crate) struct ResultWire {
    session: MsSqlSession,
    /// The cells of rows that are not decoded yet.
    bytes: Vec<u8>,
    variants: Vec<bool>,
    in_parts: Vec<bool>,
    is_beyond: bool,
    /// A row that has been waited for, and its place among the bytes.
    waited: Spans,
    /// Whether the last row has come.
    has_ended: bool,
}

impl ResultWire {
    pub(crate) fn new(session: MsSqlSession, variants: Vec<bool>) -> Self {
        let (waited, in_parts) = (Spans::new(variants.len()), session.connection.in_parts());
        Self { session, bytes: Vec::new(), variants, in_parts, is_beyond: false, waited, has_ended: false }
    }

    fn check_spans(&self) -> Result<()> {
        if self.is_beyond {
            return Err(Error::not_supported("a row has more than 4 GiB")
                .with_hint("read the long values in pieces, with SUBSTRING in the query"));
        }
        Ok(())
    }

    /// Moves the row that has been waited for into the chunk.
    fn move_waited(&mut self, spans: &mut Spans) {
        for column in 0..self.variants.len() {
            spans.set(column, self.waited.first(column));
        }
        spans.end_row();
        self.waited.clear();
    }
}

impl RowWire for ResultWire {
    type Message = ();

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn consume(&mut self, count: usize) {
        debug_assert!(count == self.bytes.len() || self.waited.rows() > 0 || count == 0);
        self.bytes.clear();
        self.waited.clear();
    }

    fn has_room(&self) -> bool {
        self.bytes.len() < CHUNK
    }

    fn fill(&mut self, budget: &Budget) -> Result<()> {
        budget.ask(self.bytes.len())?;
        let mut sink = Sink {
            bytes: &mut self.bytes,
            spans: &mut self.waited,
            variants: &self.variants,
            in_parts: &self.in_parts,
            is_beyond: &mut self.is_beyond,
            most: 1,
            next: 0,
        };
        self.has_ended = !self.session.connection.wait_row(&mut sink)?;
        self.check_spans()
    }

    fn check(&self) -> Result<()> {
        self.session.connection.check()
    }

    fn index(&mut self, at: &mut usize, spans: &mut Spans, most: usize) -> Result<Stop<()>> {
        if self.has_ended {
            return Ok(Stop::Message(()));
        }
        if self.waited.rows() > 0 {
            self.move_waited(spans);
        }
        let mut sink = Sink {
            bytes: &mut self.bytes,
            spans,
            variants: &self.variants,
            in_parts: &self.in_parts,
            is_beyond: &mut self.is_beyond,
            most,
            next: 0,
        };
        let taken = if sink.is_full() { Taken::Full } else { self.session.connection.try_rows(&mut sink)? };
        let stop = match taken {
            Taken::Full if spans.rows() >= most => Stop::Full,
            Taken::Full | Taken::Waiting => Stop::Starved,
            Taken::Last => {
                self.has_ended = true;
                Stop::Message(())
            }
        };
        self.check_spans()?;
        *at = self.bytes.len();
        Ok(stop)
    }

    /// The last row has come: what follows must be the end of the statement, or another that returns none.
    fn message(&mut self, (): (), _rows: &Assembly) -> Result<bool> {
        loop {
            match self.session.connection.advance()? {
                StatementResult::End => return Ok(true),
                StatementResult::NoRows { .. } => {}
                StatementResult::Rows => {
                    return Err(Error::not_supported("the statement returns several results")
                        .with_hint("have it return one, or write them to tables and read these"));
                }
            }
        }
    }

    fn into_session(mut self) -> Option<Box<dyn Session>> {
        self.session.connection.stop().then(|| Box::new(self.session) as Box<dyn Session>)
    }
}
