//! The receive buffer: bytes from the socket wait here, whole messages are read in place.

use longshore_core::memory::zeros;
use longshore_core::{Deadline, Error, Result};

/// Where an inbox gets its bytes: a socket, or a layer above one.
pub trait Incoming {
    /// Waits for bytes and puts as many as are there into `into`; 0 means that the server has closed the connection.
    fn read(&mut self, into: &mut [u8], deadline: &Deadline) -> Result<usize>;
}

/// Large enough for a few chunks of rows, small enough to stay in the processor's second cache.
const CAPACITY: usize = 1 << 20;

/// Enough for most short answers.
const FIRST: usize = 16 << 10;

/// A reused buffer of bytes received and not yet consumed.
#[derive(Debug, Default)]
pub struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes received and not yet consumed. Positions in it hold until the next [`Inbox::consume`] or
    /// [`Inbox::fill`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Forgets the first `count` bytes.
    ///
    /// # Panics
    /// When fewer bytes are there: a mistake in the caller.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "consumed more than was received");
        self.start += count;
    }

    /// Takes `count` bytes out at each of `places`, which ascend: what parts one message into packets.
    ///
    /// # Panics
    /// When fewer bytes are there: a mistake in the caller.
    pub fn cut(&mut self, places: &[usize], count: usize) {
        let Some(first) = places.first() else { return };
        let mut to = self.start + first;
        for (index, place) in places.iter().enumerate() {
            let from = self.start + place + count;
            let until = places.get(index + 1).map_or(self.end, |next| self.start + next);
            self.buffer.copy_within(from..until, to);
            to += until - from;
        }
        self.end = to;
    }

    /// Whether another [`Inbox::fill`] can receive without growing the buffer.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.end - self.start < CAPACITY
    }

    /// Waits for more bytes and appends them; returns how many came. The server's end of the connection is an error.
    ///
    /// The bytes keep their positions relative to [`Inbox::bytes`].
    pub fn fill(&mut self, from: &mut impl Incoming, deadline: &Deadline) -> Result<usize> {
        self.try_reserve()?;
        match from.read(&mut self.buffer[self.end..], deadline)? {
            0 => Err(Error::operational("the server closed the connection in the middle of an answer")
                .with_hint(
                    "look into the server's log: it may have been restarted, or have ended this session",
                )),
            count => {
                self.end += count;
                Ok(count)
            }
        }
    }

    /// The memory that the next [`Inbox::fill`] asks for, where the message that is being received is longer than the
    /// buffer; 0 otherwise.
    #[must_use]
    pub fn growth(&self) -> usize {
        if self.has_room() || self.end - self.start < self.buffer.len() { 0 } else { self.next_size() }
    }

    fn next_size(&self) -> usize {
        if self.buffer.is_empty() { FIRST } else { CAPACITY.max(self.buffer.len() * 2) }
    }

    fn try_reserve(&mut self) -> Result<()> {
        if self.start > 0 && (self.start == self.end || self.buffer.len() - self.end < CAPACITY / 4) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // A buffer grows beyond its capacity for a larger message only, and with what really arrives.
            let size = self.next_size();
            // New memory rather than resized memory: the system's own zeros are not written until they are used.
            let mut grown = zeros(size)?;
            grown[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = grown;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(&'static [u8]);

    impl Incoming for Bytes {
        fn read(&mut self, into: &mut [u8], _deadline: &Deadline) -> Result<usize> {
            into[..self.0.len()].copy_from_slice(self.0);
            Ok(self.0.len())
        }
    }

    #[test]
    fn cuts_leave_what_is_between() {
        let mut inbox = Inbox::new();
        inbox.fill(&mut Bytes(b"xx0123--4567--89"), &Deadline::never()).unwrap();
        inbox.consume(2);
        inbox.cut(&[4, 10], 2);
        assert_eq!(inbox.bytes(), b"0123456789");
        inbox.cut(&[], 2);
        assert_eq!(inbox.bytes(), b"0123456789");
    }
}
