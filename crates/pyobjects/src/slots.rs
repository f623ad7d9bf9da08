//! The objects of a NumPy array, where they lie.

use std::ffi::c_void;
use std::marker::PhantomData;

use longshore_core::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

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
    /// The address of the type `str`.
    text: usize,
}

impl<'py> Slots<'py> {
    pub(crate) fn of(values: &Bound<'py, PyAny>) -> Result<Self> {
        let py = values.py();
        let text = py.get_type::<PyString>().as_type_ptr().addr();
        match PyUntypedBuffer::get(values) {
            Ok(buffer) if is_objects(&buffer) => Ok(Self {
                py,
                memory: Memory {
                    first: buffer.buf_ptr().cast(),
                    length: buffer.shape()[0],
                    stride: buffer.strides()[0],
                },
                _buffer: buffer,
                text,
            }),
            _ => Err(Error::interface("the values are not a one-dimensional NumPy array of objects")),
        }
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.py
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

    /// The object of `row`, if it is a `str` and of no class that inherits from it.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn text(&self, row: usize) -> Option<Bound<'py, PyString>> {
        let item = self.get(row)?;
        let is_text = item.get_type_ptr().addr() == self.text;
        // SAFETY: an object whose type is `str` is a `PyString`.
        is_text.then(|| unsafe { item.cast_into_unchecked() })
    }

    /// The characters of `row`'s object, if it is a `str` and of no class that inherits from it.
    ///
    /// Takes no reference: to write to each object's count makes this half as fast.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn text_length(&self, row: usize) -> Option<usize> {
        let object = self.memory.slot(row);
        if object.is_null() {
            return None;
        }
        // SAFETY: a slot's object is alive as long as the slot is not changed, and neither of the two calls runs Python code
        // or gives the interpreter's lock away. The second is for a `str`, which the first has found.
        unsafe {
            let is_text = ffi::Py_TYPE(object).addr() == self.text;
            if is_text { usize::try_from(ffi::PyUnicode_GetLength(object)).ok() } else { None }
        }
    }

    /// The slots, for threads that work while this one waits for them.
    pub(crate) fn view(&self) -> SlotsView<'_> {
        SlotsView { memory: self.memory, _slots: PhantomData }
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

/// The slots of an array, for threads that read them while the one that has the interpreter's lock waits and runs no Python code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotsView<'a> {
    memory: Memory,
    _slots: PhantomData<&'a Slots<'a>>,
}

// SAFETY: it reads the slots, and no more. They are not written to as long as no other thread gets the interpreter's lock.
#[allow(unsafe_code)]
unsafe impl Send for SlotsView<'_> {}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for SlotsView<'_> {}

impl SlotsView<'_> {
    /// The object of `row`, which is below the length, or a null pointer where there never was one.
    #[inline]
    pub(crate) fn object(&self, row: usize) -> *const c_void {
        self.memory.slot(row).cast_const().cast()
    }
}

fn is_objects(buffer: &PyUntypedBuffer) -> bool {
    buffer.dimensions() == 1
        && buffer.format() == c"O"
        && buffer.item_size() == size_of::<*mut ffi::PyObject>()
        && buffer.suboffsets().is_none()
}
