//! The objects of a NumPy array, where they lie.

use longshore_core::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;

/// Where the slots of an array are.
#[derive(Clone, Copy, Debug)]
struct Memory {
    first: *const u8,
    length: usize,
    /// Bytes from one slot to the next, which may come before it.
    stride: isize,
}

/// The slots of a one-dimensional array of objects, whose memory stays where it is meanwhile: NumPy moves it only for
/// `resize(refcheck=False)`, with which the caller vouches that nothing else refers to it.
pub(crate) struct Slots<'py> {
    py: Python<'py>,
    memory: Memory,
    /// Keeps the memory.
    _buffer: PyUntypedBuffer,
}

impl<'py> Slots<'py> {
    pub(crate) fn of(values: &Bound<'py, PyAny>) -> Result<Self> {
        let py = values.py();
        match PyUntypedBuffer::get(values) {
            Ok(buffer) if is_objects(&buffer) => Ok(Self {
                py,
                memory: Memory {
                    first: buffer.buf_ptr().cast(),
                    length: buffer.shape()[0],
                    stride: buffer.strides()[0],
                },
                _buffer: buffer,
            }),
            _ => Err(Error::interface("the values are not a one-dimensional NumPy array of objects")),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.memory.length
    }

    /// The object of `row`, which is below the length; `None` where there never was one.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn get(&self, row: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: a slot holds a reference to an object, or nothing. Only who has the interpreter's lock changes it, which
        // `py` says is this thread; the reference that is taken here keeps the object alive from now on.
        unsafe { Bound::from_borrowed_ptr_or_opt(self.py, self.memory.slot(row)) }
    }
}

impl Memory {
    #[inline]
    #[allow(unsafe_code)]
    fn slot(&self, row: usize) -> *mut ffi::PyObject {
        assert!(row < self.length, "a row of the array");
        // SAFETY: the buffer has `length` items, each `stride` bytes after the one before, and `row` is one of them; so the
        // product is an offset in its memory. Its format says that each is a pointer to an object. A field of a structured
        // array may lie at any address.
        unsafe {
            let slot = self.first.byte_offset(row.cast_signed() * self.stride);
            slot.cast::<*mut ffi::PyObject>().read_unaligned()
        }
    }
}

fn is_objects(buffer: &PyUntypedBuffer) -> bool {
    buffer.dimensions() == 1
        && buffer.format() == c"O"
        && buffer.item_size() == size_of::<*mut ffi::PyObject>()
        && buffer.suboffsets().is_none()
}
