//! A result's rows on a wire -> record batches: a first pass finds each cell, a second decodes a column's cells, and only
//! the server's own marker is the end.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::memory::Budget;
use longshore_core::{Batches, Finaliser, Meter, ReadOptions, Result, Session};
use longshore_values::{Assembly, Spans};

/// The SQLSTATE of a peer that does not keep to the protocol.
pub const VIOLATION: &str = "08P01";

/// Why the first pass stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<M> {
    /// The chunk is full.
    Full,
    /// The next message is not complete yet.
    Starved,
    /// The next message is not a row.
    Message(M),
}

/// A session whose server sends rows.
pub trait RowWire: Send + 'static {
    /// A message other than a row.
    type Message;

    /// The bytes received and not yet consumed.
    fn bytes(&self) -> &[u8];

    /// Forgets the first `count` of them.
    fn consume(&mut self, count: usize);

    /// Whether more can be received before the first are consumed.
    fn has_room(&self) -> bool;

    /// Waits for more bytes, in memory of `budget`.
    fn fill(&mut self, budget: &Budget) -> Result<()>;

    /// Looks at the deadline and at the caller's signals.
    fn check(&self) -> Result<()>;

    /// The spans of the complete rows from `at` on, which then is behind the last of them, up to `most` in the chunk.
    fn index(&mut self, at: &mut usize, spans: &mut Spans, most: usize) -> Result<Stop<Self::Message>>;

    /// Consumes a message that stands first; whether it is the end of the result.
    fn message(&mut self, message: Self::Message, rows: &Assembly) -> Result<bool>;

    /// The finaliser of the batches, if their types are not final.
    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        None
    }

    /// Whether the open transaction fails if the statement is stopped.
    fn fails_transaction(&self) -> bool {
        false
    }

    /// The session, with what is left of the result read or cancelled; `None` where that cannot be done.
    fn into_session(self) -> Option<Box<dyn Session>>;
}

/// A result on its way.
pub struct Rows<W> {
    wire: W,
    assembly: Assembly,
    budget: Arc<Budget>,
    meter: Arc<Meter>,
    /// Bytes received whose rows are in the chunk.
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

impl<W: RowWire> Rows<W> {
    /// The rows that `wire` is to bring.
    #[must_use]
    pub fn new(wire: W, assembly: Assembly, options: &ReadOptions) -> Self {
        let (budget, meter) = (options.budget.clone(), options.meter.clone());
        Self { wire, assembly, budget, meter, indexed: 0, state: State::Streaming }
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while self.state == State::Streaming {
            let most = self.assembly.chunk_rows();
            match self.wire.index(&mut self.indexed, self.assembly.spans(), most)? {
                Stop::Full => self.decode()?,
                Stop::Starved => {
                    if !self.wire.has_room() {
                        self.decode()?;
                    }
                    self.wire.fill(&self.budget)?;
                }
                Stop::Message(message) => {
                    self.decode()?;
                    if self.wire.message(message, &self.assembly)? {
                        self.state = State::Complete;
                    }
                }
            }
            if self.assembly.is_full() {
                return self.assembly.batch().map(Some);
            }
        }
        self.assembly.last()
    }

    /// Second pass: the chunk's cells are decoded, and its bytes consumed.
    fn decode(&mut self) -> Result<()> {
        if self.indexed == 0 {
            return Ok(());
        }
        self.wire.check()?;
        self.assembly.decode(self.wire.bytes())?;
        self.meter.add_bytes(self.indexed as u64);
        self.forget();
        Ok(())
    }

    fn forget(&mut self) {
        self.wire.consume(std::mem::take(&mut self.indexed));
    }
}

impl<W: RowWire> Iterator for Rows<W> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, State::Failed | State::Broken) {
            return None;
        }
        let next = self.advance();
        if let Err(error) = &next {
            let is_violation = error.sqlstate() == Some(VIOLATION);
            self.state = if is_violation { State::Broken } else { State::Failed };
        }
        next.transpose()
    }
}

impl<W: RowWire> Batches for Rows<W> {
    fn schema(&self) -> SchemaRef {
        self.assembly.schema().clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.wire.finaliser()
    }

    fn fails_transaction(&self) -> bool {
        self.wire.fails_transaction()
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        // Rows that were found and not decoded come before whatever is read on.
        self.forget();
        let is_broken = self.state == State::Broken;
        // What has broken the protocol once is not trusted with another statement.
        self.wire.into_session().filter(|_| !is_broken)
    }
}
