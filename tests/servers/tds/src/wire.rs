//! Packets of TDS, and the messages that they carry.

use std::{future, io};

use bytes::{Buf, BytesMut};
use mssql_mock_tds::protocol::PACKET_HEADER_SIZE;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const END_OF_MESSAGE: u8 = 0x01;
const RESETS: u8 = 0x08 | 0x10;
const TABULAR_RESULT: u8 = 0x04;
const FLUSH_BYTES: usize = 1 << 16;

/// A client's message: the packets' type and their content.
pub(crate) struct Message {
    pub(crate) kind: u8,
    /// Whether the session is to be like new before it.
    pub(crate) resets: bool,
    pub(crate) body: Vec<u8>,
}

/// A connection's bytes as messages both ways.
pub(crate) struct Wire<S> {
    pub(crate) stream: S,
    received: BytesMut,
    message: Message,
    content: Vec<u8>,
    framed: Vec<u8>,
    number: u8,
    /// The bytes of a packet, its header included.
    pub(crate) packet_size: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            received: BytesMut::new(),
            message: Message { kind: 0, resets: false, body: Vec::new() },
            content: Vec::new(),
            framed: Vec::new(),
            number: 0,
            packet_size: 4096,
        }
    }

    /// Returns the next message; `None` where the client has closed. May be dropped while it waits.
    pub(crate) async fn receive(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.take() {
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns the next message if it is there already.
    pub(crate) async fn received(&mut self) -> io::Result<Option<Message>> {
        tokio::select! {
            biased;
            message = self.receive() => message,
            () = future::ready(()) => Ok(None),
        }
    }

    /// Sends what is to follow in the message that is being written.
    pub(crate) async fn send(&mut self, tokens: &[u8]) -> io::Result<()> {
        self.content.extend_from_slice(tokens);
        let room = self.packet_size - PACKET_HEADER_SIZE;
        let whole = self.content.len().saturating_sub(1) / room * room;
        for at in (0..whole).step_by(room) {
            self.frame(at, at + room, 0);
        }
        self.content.drain(..whole);
        if self.framed.len() >= FLUSH_BYTES {
            self.write().await?;
        }
        Ok(())
    }

    /// Sends what there is, though the message has not ended.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if !self.content.is_empty() {
            self.frame(0, self.content.len(), 0);
            self.content.clear();
        }
        self.write().await
    }

    /// Ends the message.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        self.frame(0, self.content.len(), END_OF_MESSAGE);
        self.content.clear();
        self.number = 0;
        self.write().await
    }

    async fn write(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.framed).await?;
        self.framed.clear();
        self.stream.flush().await
    }

    fn frame(&mut self, from: usize, to: usize, status: u8) {
        self.number = self.number.wrapping_add(1);
        let length = u16::try_from(to - from + PACKET_HEADER_SIZE).expect("a packet is at most 32767 bytes");
        let [high, low] = length.to_be_bytes();
        self.framed.extend([TABULAR_RESULT, status, high, low, 0, 0, self.number, 0]);
        self.framed.extend_from_slice(&self.content[from..to]);
    }

    fn take(&mut self) -> Option<Message> {
        while self.received.len() >= PACKET_HEADER_SIZE {
            let length = usize::from(u16::from_be_bytes([self.received[2], self.received[3]]));
            if self.received.len() < length.max(PACKET_HEADER_SIZE) {
                return None;
            }
            let (kind, status) = (self.received[0], self.received[1]);
            let mut packet = self.received.split_to(length.max(PACKET_HEADER_SIZE));
            packet.advance(PACKET_HEADER_SIZE);
            self.message.kind = kind;
            self.message.resets |= status & RESETS != 0;
            self.message.body.extend_from_slice(&packet);
            if status & END_OF_MESSAGE != 0 {
                let empty = Message { kind: 0, resets: false, body: Vec::new() };
                return Some(std::mem::replace(&mut self.message, empty));
            }
        }
        None
    }
}
