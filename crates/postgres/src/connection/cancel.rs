//! How what runs on the server is stopped: by a request over another connection (PostgreSQL documentation, section
//! "Canceling Requests in Progress"), which a dropped connection sends, too.

use std::time::Duration;

use longshore_core::{Deadline, Error, Kind, Result, Transaction};
use longshore_source::rows::VIOLATION;
use longshore_wire::{Address, Keepalive, Socket};
use postgres_protocol::message::frontend;

use super::startup::{Upgrade, Upgraded, upgrade, without_tls};
use super::{Connection, Exchange};

/// How long it may take to tell the server that a statement, or the connection, is given up.
const STOPPING: Duration = Duration::from_secs(2);

const CODE: [u8; 4] = [0x04, 0xd2, 0x16, 0x2e];

/// The way to the server process of one session, and the key that it gave.
pub(crate) struct Canceller {
    pub(crate) peer: String,
    pub(crate) address: Address,
    /// How the session's own connection came to TLS, if it did.
    pub(crate) upgrade: Option<Upgrade>,
    /// Process number and key, as the server sent them; empty if it did not.
    pub(crate) key: Vec<u8>,
}

impl Canceller {
    fn request(&self) -> Vec<u8> {
        let length = u32::try_from(8 + self.key.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], &CODE, &self.key].concat()
    }

    /// Asks the server to stop; returns when the request has been delivered.
    pub(crate) fn cancel(&self) -> Result<()> {
        if self.key.is_empty() {
            return Err(Error::operational(format!(
                "{} gave no key to cancel its statements with",
                self.peer
            ))
            .with_hint("close the connection instead"));
        }
        // The caller's own deadline may be over: that is why it cancels.
        let deadline = Deadline::never().at_most(STOPPING);
        let mut socket = Socket::connect_again(&self.peer, &self.address, &Keepalive::default(), &deadline)?;
        if let Some(wanted) = &self.upgrade {
            socket = match upgrade(socket, wanted, &deadline)? {
                Upgraded::Encrypted(socket) => socket,
                Upgraded::Refused(_) => return Err(without_tls(&self.peer)),
            };
        }
        socket.write_all(&self.request(), &deadline)?;
        // The server closes the connection once the signal is sent; how it does so says nothing. Until then the request
        // could stop a later statement.
        while matches!(socket.read(&mut [0; 64], &deadline), Ok(1..)) {}
        deadline.check()
    }
}

impl Connection {
    /// [`Connection::stop`] after `error`. A server that has broken the protocol is not trusted with another
    /// statement.
    pub(crate) fn stop_after(&mut self, error: &Error) -> bool {
        self.is_lost |= error.sqlstate() == Some(VIOLATION);
        self.stop()
    }

    /// Stops what runs on the server, if anything does; tells whether the server waits for the next statement.
    pub(crate) fn stop(&mut self) -> bool {
        self.outbox.clear();
        if self.is_lost || self.is_ours().is_err() {
            return false;
        }
        if self.exchange != Exchange::Idle {
            // The caller's own deadline may be over: that is why it stops.
            let deadline = std::mem::replace(&mut self.deadline, Deadline::never().at_most(STOPPING));
            self.interrupt();
            self.deadline = deadline;
            // What could not be stopped now will not be stopped by another attempt.
            self.is_lost |= self.exchange != Exchange::Idle;
        }
        self.is_usable()
    }

    /// A request that comes before the server has begun to execute is lost without a word, so it is repeated until
    /// the answer's end is there.
    fn interrupt(&mut self) {
        if self.exchange == Exchange::Parsing {
            frontend::sync(&mut self.outbox);
            // Mostly nothing runs yet; but to parse can mean to wait for a lock.
            if self.flush(Exchange::Extended).is_err() || self.finishes_within(10) {
                return;
            }
        }
        if self.exchange == Exchange::Copying && (self.fail_copy().is_err() || self.finishes_within(100)) {
            return;
        }
        for milliseconds in [10, 20, 50, 100, 200, 500, 1000] {
            if self.canceller.cancel().is_err() || self.finishes_within(milliseconds) {
                return;
            }
        }
    }

    /// Waits for the exchange's end, whatever it is: a lost socket is one, too.
    fn finishes_within(&mut self, milliseconds: u64) -> bool {
        self.deadline = Deadline::never().at_most(Duration::from_millis(milliseconds));
        // An error of the server's comes before the end, and is told in the place of whatever kept the end away.
        let outcome = self.finish().or_else(|error| match self.exchange {
            Exchange::Idle => Err(error),
            _ => self.finish(),
        });
        !matches!(outcome, Err(error) if error.kind() == Kind::Timeout)
    }

    /// Stops what runs and undoes the transaction, whatever the caller's deadline; a connection on which that fails
    /// cannot be used again.
    pub(crate) fn abandon(&mut self) {
        if !self.stop() || self.transaction == Transaction::None {
            return;
        }
        // Where that fails, the connection is lost.
        let _ = self.undo("ROLLBACK");
    }

    /// Runs `statement`, which undoes what has failed, whatever the caller's deadline.
    pub(crate) fn undo(&mut self, statement: &str) -> Result<()> {
        let deadline = std::mem::replace(&mut self.deadline, Deadline::never().at_most(STOPPING));
        let undone = self.simple(statement);
        self.deadline = deadline;
        self.is_lost |= undone.is_err();
        undone
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.stop() {
            return;
        }
        // A failure has no caller to be told to: the server notices the closed socket in any case.
        self.deadline = Deadline::never().at_most(Duration::from_millis(100));
        self.outbox.clear();
        frontend::terminate(&mut self.outbox);
        let _ = self.socket.write_all(&self.outbox, &self.deadline);
    }
}
