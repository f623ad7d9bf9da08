//! The port that a transport receives into while another client speaks to the server: rows that are asked for are kept,
//! every other byte goes on to the client's own protocol.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use longshore_core::memory::{OutOfMemory, SharedMemory};
use longshore_core::{Error, Result};

use super::Description;
use super::splitter::{Piece, Splitter, Wanted};

/// Large enough for what a socket has at once, small enough to stay in the processor's second cache.
const CAPACITY: usize = 256 << 10;

/// With less room than this at the end, what is left is moved to the beginning.
const HEADROOM: usize = 64 << 10;

/// The sink of the rows of one exchange.
pub trait RowSink: Send {
    /// Takes the row of a whole message.
    fn push(&mut self, message: &[u8]);

    /// Messages for the client in place of the rows since the last call.
    fn take_objects(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The buffer between a transport and a client's protocol.
pub struct Port {
    memory: Arc<SharedMemory>,
    /// The bytes received that are neither a whole row nor the client's.
    held: Range<usize>,
    splitter: Splitter,
    rows: Option<Arc<Mutex<dyn RowSink>>>,
    /// Takes the next statement's description.
    description: Option<Arc<Mutex<Description>>>,
}

impl Port {
    /// A buffer that holds nothing.
    pub fn new() -> Result<Self, OutOfMemory> {
        Ok(Self {
            memory: Arc::new(SharedMemory::new(CAPACITY)?),
            held: 0..0,
            splitter: Splitter::default(),
            rows: None,
            description: None,
        })
    }

    /// The memory that is received into, and where its free part begins.
    ///
    /// # Safety
    /// No other thread reads or writes the memory meanwhile.
    #[allow(unsafe_code)]
    pub unsafe fn free_memory(&mut self) -> Result<(&Arc<SharedMemory>, usize), OutOfMemory> {
        // SAFETY: the caller's promise.
        unsafe { self.try_reserve()? };
        Ok((&self.memory, self.held.end))
    }

    /// Leaves room at the end of the memory.
    #[allow(unsafe_code)]
    unsafe fn try_reserve(&mut self) -> Result<(), OutOfMemory> {
        let capacity = self.memory.len();
        let wanted = if self.held.is_empty() {
            self.held = 0..0;
            // A long message is over.
            CAPACITY
        } else if capacity - self.held.end >= HEADROOM {
            return Ok(());
        } else if self.held.len() + HEADROOM <= capacity {
            capacity
        } else {
            // With what really arrives, and not with what a length word claims.
            capacity * 2
        };
        let into =
            if wanted == capacity { self.memory.clone() } else { Arc::new(SharedMemory::new(wanted)?) };
        // SAFETY: the caller's promise; the new memory is known here alone.
        unsafe { self.memory.shift(self.held.clone(), &into) };
        (self.memory, self.held) = (into, 0..self.held.len());
        Ok(())
    }

    /// Keeps the rows among the next `count` bytes; gives the other bytes to `forward`, if there are any.
    ///
    /// # Safety
    /// No other thread writes the memory until it returns.
    #[allow(unsafe_code)]
    pub unsafe fn receive<T>(&mut self, count: usize, forward: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        if count > self.memory.len() - self.held.end {
            return Err(Error::internal("the event loop has received more than there was room for"));
        }
        self.held.end += count;
        let memory = self.memory.clone();
        let take = |bytes: &[u8]| {
            let mut others = Others::default();
            self.split(&bytes[..self.held.end], &mut others)?;
            let others = if others.spilt.is_empty() { &bytes[others.run] } else { &others.spilt };
            Ok((!others.is_empty()).then(|| forward(others)))
        };
        // SAFETY: the caller's promise.
        unsafe { memory.read(take) }
    }

    /// Keeps the rows of the next exchange; false where those of one under way are kept.
    pub fn keep(&mut self, rows: Arc<Mutex<dyn RowSink>>) -> bool {
        if self.rows.is_some() {
            return false;
        }
        self.rows = Some(rows);
        true
    }

    /// Has `description` change the description of the next exchange's statement on its way to the client.
    pub fn describe(&mut self, description: Arc<Mutex<Description>>) {
        self.description = Some(description);
    }

    /// Keeps no more rows, and changes no description: the client gets what still comes.
    pub fn keep_none(&mut self) {
        (self.rows, self.description) = (None, None);
    }

    fn split(&mut self, bytes: &[u8], others: &mut Others) -> Result<()> {
        let shared = self.rows.clone();
        let mut rows = shared.as_ref().map(|rows| rows.lock().unwrap_or_else(PoisonError::into_inner));
        loop {
            let wanted = Wanted { rows: rows.is_some(), descriptions: self.description.is_some() };
            let Some(piece) = self.splitter.next(bytes, self.held.start, wanted)? else { break };
            match (piece, rows.as_mut()) {
                (Piece::Row(range), Some(rows)) => {
                    self.held.start = range.end;
                    rows.push(&bytes[range]);
                }
                (Piece::Description(range), _) => {
                    self.held.start = range.end;
                    let Some(description) = self.description.take() else { continue };
                    let mut description = description.lock().unwrap_or_else(PoisonError::into_inner);
                    others.append(bytes, &description.replace(&bytes[range])?);
                }
                (Piece::Row(range) | Piece::Other(range), _) => {
                    self.held.start = range.end;
                    if let Some(objects) = rows.as_mut().and_then(|rows| rows.take_objects()) {
                        others.append(bytes, &objects);
                    }
                    others.extend(bytes, range);
                    if self.splitter.take_ready() {
                        // What comes next belongs to another request.
                        rows = None;
                        (self.rows, self.description) = (None, None);
                    }
                }
            }
        }
        if let Some(objects) = rows.as_mut().and_then(|rows| rows.take_objects()) {
            others.append(bytes, &objects);
        }
        Ok(())
    }
}

/// The bytes for the client: most often one run of the block, which is then copied once.
#[derive(Default)]
struct Others {
    run: Range<usize>,
    spilt: Vec<u8>,
}

impl Others {
    fn extend(&mut self, bytes: &[u8], range: Range<usize>) {
        if self.run.is_empty() && self.spilt.is_empty() {
            self.run = range;
        } else if self.run.end == range.start && self.spilt.is_empty() {
            self.run.end = range.end;
        } else {
            self.append(bytes, &bytes[range]);
        }
    }

    fn append(&mut self, bytes: &[u8], more: &[u8]) {
        let run = std::mem::take(&mut self.run);
        self.spilt.extend_from_slice(&bytes[run]);
        self.spilt.extend_from_slice(more);
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::ptr;

    use super::*;

    #[derive(Default)]
    struct Log(Vec<Vec<u8>>);

    impl RowSink for Log {
        fn push(&mut self, message: &[u8]) {
            self.0.push(message.to_vec());
        }
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag], length.to_be_bytes().as_slice(), body].concat()
    }

    /// Receives `bytes` as an event loop does; what went on to the client.
    fn receive(port: &mut Port, mut bytes: &[u8]) -> Vec<u8> {
        let mut others = Vec::new();
        while !bytes.is_empty() {
            // SAFETY: there is one thread, and what is copied fits the free part.
            let forwarded = unsafe {
                let (memory, start) = port.free_memory().unwrap();
                assert!(memory.len() - start >= HEADROOM);
                let count = bytes.len().min(memory.len() - start);
                ptr::copy_nonoverlapping(bytes.as_ptr(), memory.start().add(start), count);
                bytes = &bytes[count..];
                port.receive(count, <[u8]>::to_vec).unwrap()
            };
            others.extend(forwarded.unwrap_or_default());
        }
        others
    }

    fn keep_rows(port: &mut Port) -> Arc<Mutex<Log>> {
        let log = Arc::new(Mutex::new(Log::default()));
        assert!(port.keep(log.clone()));
        log
    }

    #[test]
    fn rows_are_kept_until_the_exchange_ends_wherever_the_stream_is_cut() {
        let (bind, row, end) = (message(b'2', b""), message(b'D', b"a row"), message(b'Z', b"I"));
        let stream = [&bind[..], &row, &row, &end, &row].concat();
        for cut in 0..=stream.len() {
            let mut port = Port::new().unwrap();
            let log = keep_rows(&mut port);
            assert!(!port.keep(Arc::new(Mutex::new(Log::default()))));
            let others = [receive(&mut port, &stream[..cut]), receive(&mut port, &stream[cut..])].concat();
            assert_eq!(others, [&bind[..], &end, &row].concat());
            assert_eq!(log.lock().unwrap().0, [&row[..], &row]);
            assert!(port.keep(Arc::new(Mutex::new(Log::default()))));
        }
    }

    #[test]
    fn a_row_longer_than_the_memory_is_kept_whole_and_the_memory_shrinks_again() {
        let mut port = Port::new().unwrap();
        let log = keep_rows(&mut port);
        let (small, large) = (message(b'D', b"small"), message(b'D', &vec![7; 5 * CAPACITY]));
        assert_eq!(receive(&mut port, &[&small[..], &large, &small].concat()), b"");
        assert_eq!(log.lock().unwrap().0, [&small[..], &large, &small]);
        // SAFETY: there is one thread.
        let capacity = unsafe { port.free_memory().unwrap().0.len() };
        assert_eq!(capacity, CAPACITY);
    }

    #[test]
    fn without_rows_to_keep_every_byte_goes_on() {
        let mut port = Port::new().unwrap();
        let stream = [message(b'D', b"a row"), message(b'T', b"no columns"), message(b'Z', b"I")].concat();
        assert_eq!(receive(&mut port, &stream), stream);
        drop(keep_rows(&mut port));
        port.keep_none();
        assert_eq!(receive(&mut port, &stream), stream);
    }

    #[test]
    fn a_description_is_changed_once() {
        let mut port = Port::new().unwrap();
        let described = message(b'T', b"\0\x01a\0\0\0\0\x07\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
        let description = Arc::new(Mutex::new(Description::new(vec![25], 17)));
        port.describe(description.clone());
        let others = receive(&mut port, &[&described[..], &described].concat());
        assert_eq!(others[others.len() / 2..], described);
        assert_eq!(others[..others.len() / 2], super::super::substitute(&described, &[25], 17).unwrap());
        assert_eq!(description.lock().unwrap().message(), Some(&described[..]));
    }

    #[test]
    fn what_breaks_the_protocol_is_an_error() {
        let mut port = Port::new().unwrap();
        let _log = keep_rows(&mut port);
        // SAFETY: there is one thread, and the bytes fit the free part.
        let received = unsafe {
            let (memory, start) = port.free_memory().unwrap();
            ptr::copy_nonoverlapping(b"D\0\0\0\x01".as_ptr(), memory.start().add(start), 5);
            port.receive(5, <[u8]>::to_vec)
        };
        assert!(received.unwrap_err().to_string().contains("breaks the PostgreSQL protocol"));
        // SAFETY: as above.
        assert!(unsafe { port.receive(CAPACITY + 1, <[u8]>::to_vec) }.is_err());
    }
}
