//! A stream to a server, plain or under TLS, each wait of which can be interrupted.

use std::fmt;
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::path::Path;
use std::time::Instant;

use longshore_core::{Deadline, Result};

use crate::low_water::LowWater;
use crate::stream::{Address, Keepalive, SLICE, Stream, is_pause, peer_name};
use crate::tunnel::{Tunnel, failure};
use crate::{Incoming, Tls};

/// A connection to a server: TCP or a Unix socket, plain or under TLS.
pub struct Socket {
    stream: Stream,
    tls: Option<Box<Tunnel>>,
    low_water: LowWater,
    /// When the deadline was last asked.
    checked: Instant,
    peer: String,
    address: Address,
}

impl Socket {
    /// Resolves `host` and connects to the first of its addresses that answers.
    pub fn connect_tcp(host: &str, port: u16, keepalive: &Keepalive, deadline: &Deadline) -> Result<Self> {
        Ok(Self::new(Stream::tcp(host, port, keepalive, deadline)?, peer_name(host, port)))
    }

    /// Connects to the Unix socket at `path`.
    #[cfg(unix)]
    pub fn connect_unix(path: &Path, deadline: &Deadline) -> Result<Self> {
        Ok(Self::new(Stream::unix(path, deadline)?, path.display().to_string()))
    }

    /// Connects to the very address that another socket has reached, whose [`Socket::peer`] was `peer`.
    pub fn connect_again(
        peer: &str,
        address: &Address,
        keepalive: &Keepalive,
        deadline: &Deadline,
    ) -> Result<Self> {
        Ok(Self::new(Stream::to(address, keepalive, deadline)?, peer.to_owned()))
    }

    fn new((stream, address): (Stream, Address), peer: String) -> Self {
        Self { stream, tls: None, low_water: LowWater::default(), checked: Instant::now(), peer, address }
    }

    /// Goes over to TLS, in the name of `host`. Bytes received before must all have been read.
    pub fn start_tls(mut self, tls: &Tls, host: &str, deadline: &Deadline) -> Result<Self> {
        let mut tunnel = Tunnel::new(tls, host)?;
        tunnel.handshake(&mut self.stream, deadline, &self.peer)?;
        self.tls = Some(Box::new(tunnel));
        Ok(self)
    }

    /// The server as errors name it: `host:port`, or a path.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The address that was reached.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether the connection is under TLS.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The token that ties an authentication to this very connection under TLS: the digest of the server's certificate
    /// (tls-server-end-point). `None` without TLS, and for certificates whose signature has no digest.
    #[must_use]
    pub fn channel_binding(&self) -> Option<Vec<u8>> {
        self.tls.as_ref()?.end_point()
    }

    /// The application protocol that the server has agreed to, under TLS.
    #[must_use]
    pub fn application_protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.application_protocol()
    }

    /// Waits for bytes and puts as many as are there into `into`; 0 means that the server has closed the
    /// connection.
    #[inline]
    pub fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize> {
        // Before the read: bytes that have come must not be lost with an error.
        self.check_now_and_then(deadline)?;
        loop {
            let outcome = match &mut self.tls {
                None => self.stream.read(into),
                Some(tunnel) => tunnel.read(&mut self.stream, into),
            };
            match outcome {
                Ok(count) => {
                    if self.tls.is_none() {
                        self.low_water.note_read(&self.stream, count, into.len());
                    }
                    return Ok(count);
                }
                Err(error) => {
                    self.low_water.reset(&self.stream);
                    self.wait_or_fail(error, "receiving from", deadline)?;
                }
            }
        }
    }

    /// Whether a read would not wait: bytes are there, or the connection's end.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.stream.is_readable()
    }

    /// Sends all `bytes`.
    pub fn write_all(&mut self, bytes: &[u8], deadline: &Deadline) -> Result<()> {
        // What is asked now may have a short answer.
        self.low_water.reset(&self.stream);
        let mut rest = bytes;
        while !rest.is_empty() {
            let outcome = match &mut self.tls {
                None => self.stream.write(rest),
                Some(tunnel) => tunnel.write(&mut self.stream, rest),
            };
            match outcome {
                Ok(0) => return Err(failure(&self.peer, "sending to", io::ErrorKind::WriteZero.into())),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) => self.wait_or_fail(error, "sending to", deadline)?,
            }
        }
        self.flush(deadline)
    }

    fn flush(&mut self, deadline: &Deadline) -> Result<()> {
        while let Some(tunnel) = &mut self.tls {
            match tunnel.flush(&mut self.stream) {
                Ok(()) => break,
                Err(error) => self.wait_or_fail(error, "sending to", deadline)?,
            }
        }
        Ok(())
    }

    /// A server that never pauses for long must not keep the caller from being heard.
    #[inline]
    fn check_now_and_then(&mut self, deadline: &Deadline) -> Result<()> {
        if self.checked.elapsed() < SLICE {
            return Ok(());
        }
        self.checked = Instant::now();
        deadline.check()
    }

    #[cold]
    fn wait_or_fail(&self, error: io::Error, doing: &str, deadline: &Deadline) -> Result<()> {
        if is_pause(&error) { deadline.check() } else { Err(failure(&self.peer, doing, error)) }
    }
}

impl Incoming for Socket {
    #[inline]
    fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize> {
        Socket::read(self, into, deadline)
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("peer", &self.peer)
            .field("encrypted", &self.is_encrypted())
            .finish_non_exhaustive()
    }
}
