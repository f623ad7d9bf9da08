//! The connection of another client, which is open: its socket is spoken on, and given back as it was.

use std::fmt;
use std::time::{Duration, Instant};

use longshore_core::{Deadline, Error, Result, Session};
use longshore_wire::Incoming;

use crate::connection::Connection;
use crate::session::MySqlSession;

/// How long the client's own calls wait at most, before the deadline is asked.
const SLICE: Duration = Duration::from_millis(50);

/// A client that has opened a connection and lends its socket.
pub trait Client: Send {
    /// Receives some bytes: 0 is the connection's end, and `None` says that nothing has come for a while.
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<usize>>;

    /// Sends some of the bytes; `None` where none could be sent for a while.
    fn send(&mut self, bytes: &[u8]) -> Result<Option<usize>>;

    /// Runs statements over another connection to the same server.
    fn run_elsewhere(&self, statements: Vec<String>) -> Result<()>;

    /// Takes the socket back, with the server's last status flags; without them nothing can follow on it.
    fn release(&mut self, status: Option<u16>);
}

/// The greeting of a connection, once client and server are done with it.
#[derive(Clone, Copy, Debug)]
pub struct Greeted {
    /// The capabilities of both.
    pub capabilities: u64,
    /// The server's number of the connection.
    pub thread: u32,
    /// The server's last status flags.
    pub status: u16,
    /// Whether the connection is for us alone: our statements are transactions of their own. Otherwise they are parts of its
    /// owner's.
    pub is_for_us: bool,
    /// Whether the client sends statements as texts alone: nothing is prepared, and rows come as texts.
    pub has_texts_alone: bool,
}

/// A session over a client's connection, which gets it back when the session ends.
pub fn adopt(client: Box<dyn Client>, greeted: Greeted, deadline: &Deadline) -> Result<Box<dyn Session>> {
    let connection = Connection::adopt(ClientSocket { client, checked: Instant::now() }, greeted, deadline)?;
    Ok(Box::new(MySqlSession::over(connection)))
}

/// The socket of a client, each wait of which can be interrupted.
pub(crate) struct ClientSocket {
    pub(crate) client: Box<dyn Client>,
    /// When the deadline was last asked.
    checked: Instant,
}

impl ClientSocket {
    pub(crate) fn write_all(&mut self, mut bytes: &[u8], deadline: &Deadline) -> Result<()> {
        while !bytes.is_empty() {
            match self.client.send(bytes)? {
                Some(0) => return Err(Error::operational("the client's connection takes no more bytes")),
                Some(count) => bytes = bytes.get(count..).unwrap_or_default(),
                None => deadline.check()?,
            }
        }
        Ok(())
    }
}

impl Incoming for ClientSocket {
    fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize> {
        // A server that never pauses for long must not keep the caller from being heard.
        if self.checked.elapsed() >= SLICE {
            self.checked = Instant::now();
            deadline.check()?;
        }
        loop {
            match self.client.receive(into)? {
                Some(count) => return Ok(count),
                None => deadline.check()?,
            }
        }
    }
}

impl fmt::Debug for ClientSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSocket").finish_non_exhaustive()
    }
}
