//! Memory that two write: the core, and whoever has its address.

use std::ops::Range;
use std::ptr::{self, NonNull};

use super::{OutOfMemory, zeros};

/// Bytes that neither move nor change their number.
///
/// An event loop writes them through their address. References would claim that no other thread does, so here are pointers.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the bytes are the memory's own, and whoever reads or moves them promises that no other thread uses them.
#[allow(unsafe_code)]
unsafe impl Send for SharedMemory {}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// `length` zeros.
    pub fn new(length: usize) -> Result<Self, OutOfMemory> {
        zeros(length).map(Self::from)
    }

    /// Where the bytes begin, for as long as the memory lives.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The bytes.
    ///
    /// # Safety
    /// They are not written until `use_` returns.
    #[allow(unsafe_code)]
    pub unsafe fn read<T>(&self, use_: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: they live as long as `self`, have been zeros at least, and are not written meanwhile.
        use_(unsafe { std::slice::from_raw_parts(self.start(), self.length) })
    }

    /// Moves the bytes of `from` to the beginning of `into`, which may be this memory.
    ///
    /// # Panics
    /// Where one has not so many.
    ///
    /// # Safety
    /// Neither is read or written elsewhere meanwhile.
    #[allow(unsafe_code)]
    pub unsafe fn shift(&self, from: Range<usize>, into: &Self) {
        assert!(from.start <= from.end && from.end <= self.length && from.len() <= into.length);
        // SAFETY: both ranges are within their memories, and may overlap.
        unsafe { ptr::copy(self.start().add(from.start), into.start(), from.len()) };
    }
}

impl From<Vec<u8>> for SharedMemory {
    /// The bytes of a vector, in its own memory without what it has to spare.
    fn from(bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        let bytes: &mut [u8] = Box::leak(bytes.into_boxed_slice());
        Self { start: NonNull::from(bytes).cast(), length }
    }
}

impl Drop for SharedMemory {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the memory was a box of just these bytes, and nothing else frees it.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.start(), self.length)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as an event loop does.
    #[allow(unsafe_code)]
    fn receive(memory: &SharedMemory, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= memory.len());
        // SAFETY: within the memory, which is not read now.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.start().add(at), bytes.len()) };
    }

    #[allow(unsafe_code)]
    fn bytes(memory: &SharedMemory) -> Vec<u8> {
        // SAFETY: it is not written now.
        unsafe { memory.read(<[u8]>::to_vec) }
    }

    #[allow(unsafe_code)]
    fn shift(memory: &SharedMemory, from: Range<usize>, into: &SharedMemory) {
        // SAFETY: neither is used elsewhere.
        unsafe { memory.shift(from, into) }
    }

    #[test]
    fn what_is_received_in_turns_is_read_and_moved() {
        let memory = SharedMemory::new(8).unwrap();
        let early = memory.start();
        assert_eq!(bytes(&memory), [0; 8]);
        receive(&memory, 0, b"abcdef");
        assert_eq!(bytes(&memory), b"abcdef\0\0");
        shift(&memory, 2..6, &memory);
        receive(&memory, 4, b"ghij");
        assert_eq!(bytes(&memory), b"cdefghij");
        shift(&memory, 8..8, &memory);
        let larger = SharedMemory::new(16).unwrap();
        shift(&memory, 1..8, &larger);
        receive(&larger, 7, b"k");
        assert_eq!(&bytes(&larger)[..8], b"defghijk");
        assert_eq!(memory.start(), early);
        drop(larger);
        assert_eq!(bytes(&memory), b"cdefghij");
    }

    #[test]
    fn a_vectors_bytes_are_taken_over() {
        let mut vector = Vec::with_capacity(1 << 10);
        vector.extend_from_slice(b"abc");
        let memory = SharedMemory::from(vector);
        receive(&memory, 1, b"x");
        assert_eq!((memory.len(), bytes(&memory)), (3, b"axc".to_vec()));
        assert_eq!(bytes(&SharedMemory::from(Vec::new())), b"");
    }

    #[test]
    fn no_bytes_are_some_too() {
        let none = SharedMemory::new(0).unwrap();
        assert_eq!(bytes(&none), b"");
        shift(&none, 0..0, &none);
    }

    #[test]
    fn what_does_not_fit_is_not_moved() {
        for (from, room) in [(0..5, 8), (3..5, 8), (0..4, 3)] {
            let moved = std::panic::catch_unwind(|| {
                shift(&SharedMemory::new(4).unwrap(), from.clone(), &SharedMemory::new(room).unwrap());
            });
            assert!(moved.is_err(), "{from:?} into {room}");
        }
    }
}
