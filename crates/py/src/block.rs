//! Memory that an event loop receives into.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A block of memory that neither moves nor changes its size while Python has a view of it: a longer one is another block.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Block(UnsafeCell<Box<[u8]>>);

// SAFETY: the memory is read and written by those alone who hold the interpreter's lock: Rust in `read` and `shift`, whose
// borrows end before any Python code runs, and Python through a view.
#[allow(unsafe_code)]
unsafe impl Sync for Block {}

impl Block {
    /// `size` zeros.
    pub(crate) fn new(size: usize) -> Self {
        Self(UnsafeCell::new(vec![0; size].into_boxed_slice()))
    }

    /// The bytes. `use_` runs no Python code.
    #[allow(unsafe_code)]
    pub(crate) fn read<T>(&self, _: Python<'_>, use_: impl FnOnce(&[u8]) -> T) -> T {
        // SAFETY: the interpreter's lock is held until `use_` returns, which runs no code that might write meanwhile.
        use_(unsafe { &*self.0.get() })
    }

    /// Moves the bytes of `from` to the beginning of `into`, which may be this block.
    #[allow(unsafe_code)]
    pub(crate) fn shift(&self, py: Python<'_>, from: std::ops::Range<usize>, into: &Self) {
        let moved = self.read(py, |bytes| bytes[from].to_vec());
        // SAFETY: the interpreter's lock is held, and no other borrow is alive: `read` has returned.
        unsafe { (&mut *into.0.get())[..moved.len()].copy_from_slice(&moved) };
    }
}

#[pymethods]
impl Block {
    // The interface gives a value.
    #[allow(unsafe_code, clippy::needless_pass_by_value)]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        // SAFETY: the pointer is valid for as long as the block, which the view keeps alive, and which never exchanges its
        // box; `view` is the caller's, and not null.
        let filled = unsafe {
            let bytes = &mut *slf.get().0.get();
            let (start, length) = (bytes.as_mut_ptr(), bytes.len().cast_signed());
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast(), length, 0, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
