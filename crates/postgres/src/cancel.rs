//! Stops what a session runs, over a connection of its own (PostgreSQL documentation, section "Canceling Requests
//! in Progress").

use std::time::Duration;

use longshore_core::{Error, Result, Watch};
use longshore_wire::{Address, Keepalive, Socket};

use crate::negotiation::{Upgrade, Upgraded, refused, upgrade};

/// How long delivering a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The code of `CancelRequest`.
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
        let watch = Watch::never().at_most(PATIENCE);
        let mut socket = Socket::connect_again(&self.peer, &self.address, &Keepalive::default(), &watch)?;
        if let Some(wanted) = &self.upgrade {
            socket = match upgrade(socket, wanted, &watch)? {
                Upgraded::Encrypted(socket) => socket,
                Upgraded::Refused(_) => return Err(refused(&self.peer)),
            };
        }
        socket.write_all(&self.request(), &watch)?;
        // The server closes the connection once the signal is sent; how it does so says nothing. Until then the request
        // could stop a later statement.
        while matches!(socket.read(&mut [0; 64], &watch), Ok(1..)) {}
        watch.check()
    }
}
