//! TLS within packets, as TDS 7 shakes hands: that of `mssql-mock-tds` calls them results, where servers send PRELOGIN.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use mssql_mock_tds::protocol::PACKET_HEADER_SIZE;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

const PRELOGIN: u8 = 0x12;
const END_OF_MESSAGE: u8 = 0x01;
/// The most of a record in a packet.
const ROOM: usize = 4096 - PACKET_HEADER_SIZE;

/// A stream whose bytes are in packets until the client's come without them.
pub(crate) struct Wrapped {
    stream: TcpStream,
    is_wrapping: bool,
    received: Vec<u8>,
    /// The bytes received, without headers.
    plain: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Wrapped {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, is_wrapping: true, received: Vec::new(), plain: Vec::new(), outgoing: Vec::new() }
    }

    fn unwrap(&mut self) {
        while let Some(&first) = self.received.first() {
            // A record of TLS.
            if (0x14..=0x17).contains(&first) {
                self.is_wrapping = false;
                self.plain.append(&mut self.received);
                return;
            }
            let Some(length) = self.received.get(2..4) else { return };
            let length = usize::from(u16::from_be_bytes([length[0], length[1]])).max(PACKET_HEADER_SIZE);
            if self.received.len() < length {
                return;
            }
            self.plain.extend(self.received.drain(..length).skip(PACKET_HEADER_SIZE));
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.outgoing))?;
            self.outgoing.drain(..sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wrapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.plain.is_empty() {
            if !self.is_wrapping {
                return Pin::new(&mut self.stream).poll_read(context, into);
            }
            let mut bytes = [0; 4096];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.received.extend_from_slice(read.filled());
            self.unwrap();
        }
        let size = into.remaining().min(self.plain.len());
        into.put_slice(&self.plain[..size]);
        self.plain.drain(..size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wrapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_wrapping {
            ready!(self.poll_send(context))?;
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        for part in bytes.chunks(ROOM) {
            let length = u16::try_from(part.len() + PACKET_HEADER_SIZE).map_err(io::Error::other)?;
            let [high, low] = length.to_be_bytes();
            self.outgoing.extend([PRELOGIN, END_OF_MESSAGE, high, low, 0, 0, 1, 0]);
            self.outgoing.extend_from_slice(part);
        }
        // What cannot be sent now is with the next write or flush.
        let _ = self.poll_send(context)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
