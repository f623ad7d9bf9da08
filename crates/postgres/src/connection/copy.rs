//! COPY FROM STDIN: rows on their way in.

use longshore_core::Result;
use postgres_protocol::message::frontend;

use super::{Connection, Exchange, zero_byte};
use crate::message::unexpected;

impl Connection {
    /// Runs a COPY FROM STDIN; the server then waits for its data.
    pub(crate) fn begin_copy(&mut self, statement: &str) -> Result<()> {
        frontend::query(statement, &mut self.outbox).map_err(|_| zero_byte("the statement"))?;
        self.flush(Exchange::Simple)?;
        let got = self.next()?;
        match got.tag {
            b'G' => {
                self.consume(got.length);
                self.exchange = Exchange::Copying;
                Ok(())
            }
            b'E' => self.finish(),
            other => Err(unexpected(other, "COPY")),
        }
    }

    /// Sends a whole `CopyData` message.
    pub(crate) fn copy_data(&mut self, message: &[u8]) -> Result<()> {
        self.check()?;
        let written = self.link.socket.write_all(message, &self.watch);
        if written.is_err() {
            // Half a message may be out. Where the server has hung up, it may have said why.
            self.cut = true;
        }
        written
    }

    /// Tells the server that this was all; returns how many rows it took.
    pub(crate) fn end_copy(&mut self) -> Result<u64> {
        frontend::copy_done(&mut self.outbox);
        self.counted()
    }

    /// Runs one statement; returns how many rows it wrote.
    pub(crate) fn count(&mut self, statement: &str) -> Result<u64> {
        frontend::query(statement, &mut self.outbox).map_err(|_| zero_byte("the statement"))?;
        self.counted()
    }

    fn counted(&mut self) -> Result<u64> {
        self.flush(Exchange::Simple)?;
        let tag = self.finish_with_tag()?;
        Ok(tag.and_then(|tag| tag.rsplit(' ').next()?.parse().ok()).unwrap_or_default())
    }

    /// Tells the server that no more will come, and that nothing is to be kept.
    pub(super) fn fail_copy(&mut self) -> Result<()> {
        frontend::copy_fail("the client gave up", &mut self.outbox).map_err(|_| zero_byte("a message"))?;
        self.flush(Exchange::Simple)
    }
}
