//! From a bare socket to one that is encrypted as agreed, for sessions and cancel requests alike.

use longshore_core::{Error, Result, Watch};
use longshore_wire::{Socket, Tls};

use crate::message::broken;

/// Asks for TLS: length and code of `SSLRequest`.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// How to come to TLS.
#[derive(Clone, Debug)]
pub(crate) struct Upgrade {
    pub(crate) tls: Tls,
    /// The name that the server's certificate has to be for.
    pub(crate) host: String,
    /// Without asking first.
    pub(crate) direct: bool,
}

/// What became of the wish for TLS.
pub(crate) enum Upgraded {
    Encrypted(Socket),
    /// The server has none; the socket is as before.
    Refused(Socket),
}

/// Goes over to TLS if the server can.
pub(crate) fn upgrade(mut socket: Socket, upgrade: &Upgrade, watch: &Watch) -> Result<Upgraded> {
    if !upgrade.direct && !offered(&mut socket, watch)? {
        return Ok(Upgraded::Refused(socket));
    }
    let socket = socket.start_tls(&upgrade.tls, &upgrade.host, watch)?;
    if upgrade.direct && socket.application_protocol() != Some(b"postgresql") {
        return Err(broken("TLS that was not agreed to be for PostgreSQL")
            .with_hint("sslnegotiation=direct needs PostgreSQL 17 or newer; leave it out for others"));
    }
    Ok(Upgraded::Encrypted(socket))
}

/// The server has no TLS where the caller wants nothing else.
pub(crate) fn refused(peer: &str) -> Error {
    Error::operational(format!("{peer} does not speak TLS, which the connection's sslmode demands"))
        .with_hint(
            "turn ssl on in the server's postgresql.conf, or use sslmode=prefer if no one can listen in between",
        )
}

fn offered(socket: &mut Socket, watch: &Watch) -> Result<bool> {
    socket.write_all(&SSL_REQUEST, watch)?;
    // Anything behind the one byte of the answer was put there by somebody in between, to be taken for a part of
    // the encrypted conversation (CVE-2021-23222).
    let mut answer = [0; 16];
    let count = socket.read(&mut answer, watch)?;
    match answer.get(..count).unwrap_or_default() {
        b"S" => Ok(true),
        b"N" => Ok(false),
        [] => Err(Error::operational(format!("{} closed the connection when asked for TLS", socket.peer()))
            .with_hint(
                "check that host and port belong to a PostgreSQL server, and its log for why it hung up",
            )),
        // Nothing vouches for the text of an error that arrives before the server has proved itself.
        [b'E', ..] => Err(Error::operational(format!("{} failed when asked for TLS", socket.peer()))
            .with_hint("look into the server's log: it may have no room for another connection")),
        [b'S' | b'N', ..] => Err(broken("more than one byte in answer to the request for TLS")),
        [other, ..] => Err(broken(format!("the byte {other:#04x} in answer to the request for TLS"))),
    }
}
